"""Real boards, through a stand-in for pynvml at the choke point."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from fixtures.fake_pynvml import (
    FUNCTION_NOT_FOUND,
    LOST,
    NO_PERMISSION,
    NOT_SUPPORTED,
    Board,
    FakePynvml,
    sampled_board,
)
from fixtures.gpu_conformance import GpuConformance, value

from app.sensors.gpu import GpuLost, NoDriver, NotSupported
from app.sensors.nvml.channels import VoltageReader, parse_voltage_mv
from app.sensors.nvml.gpu import NvmlGpu, boards
from app.sensors.nvml.library import NvmlLibrary

TOLD = "GPU 00000000:01:00.0\n    Voltage\n        Graphics                          : 737.500 mV\n"
NOT_TOLD = "GPU 00000000:01:00.0\n    Voltage\n        Graphics                          : N/A\n"


def open_board(*boards_: Board, answer: str = NOT_TOLD, index: int = 0, **module: Any) -> NvmlGpu:
    library = NvmlLibrary(FakePynvml(*boards_, **module))  # type: ignore[arg-type]
    return NvmlGpu(index, library=library, voltage=lambda uuid: VoltageReader(uuid, lambda _: answer))


def missing(gpu: NvmlGpu, name: str) -> str | None:
    return next(c.unavailable for c in gpu.channels if c.name == name)


class TestFullBoard(GpuConformance):
    @pytest.fixture
    def gpu(self) -> Iterator[NvmlGpu]:
        gpu = open_board(sampled_board(), answer=TOLD)
        yield gpu
        gpu.close()


class TestOldBoard(GpuConformance):
    """No fields, no samples, no energy counter, functions that the driver lacks."""

    @pytest.fixture
    def gpu(self) -> Iterator[NvmlGpu]:
        failing = {
            "nvmlDeviceGetFieldValues": FUNCTION_NOT_FOUND,
            "nvmlDeviceGetSamples": NOT_SUPPORTED,
            "nvmlDeviceGetTotalEnergyConsumption": NOT_SUPPORTED,
            "nvmlDeviceGetSupportedMemoryClocks": NOT_SUPPORTED,
        }
        board = Board(name="Tesla K20X", capability=(3, 5), cores=2688, failing=failing)
        gpu = open_board(board, missing=("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetTemperatureV"))
        yield gpu
        gpu.close()

    def test_what_it_lacks_is_not_available_with_the_reason(self, gpu: NvmlGpu) -> None:
        assert "lacks the function" in str(missing(gpu, "memory_power_w"))
        assert "does not report it" in str(missing(gpu, "energy_j"))
        assert gpu.graphics_clocks_mhz() == ()
        assert gpu.info.multiprocessors == 14

    def test_the_one_power_it_reports_is_instant_on_a_board_so_old(self, gpu: NvmlGpu) -> None:
        assert value(gpu, gpu.read(), "power_instant_w") == pytest.approx(83.1)
        assert missing(gpu, "power_average_w") is not None
        assert "polled" in gpu.info.power_source

    def test_the_old_names_of_functions_serve(self, gpu: NvmlGpu) -> None:
        assert value(gpu, gpu.read(), "event_reasons") == 1.0
        assert value(gpu, gpu.read(), "temperature_c") == 38.0


@pytest.fixture
def board() -> Board:
    return sampled_board()


@pytest.fixture
def gpu(board: Board) -> Iterator[NvmlGpu]:
    gpu = open_board(board)
    yield gpu
    gpu.close()


def test_units_are_watts_joules_and_megabytes(gpu: NvmlGpu) -> None:
    reading = gpu.read()
    reported = {c.name: v for c, v in zip(gpu.channels, reading.values, strict=True)}
    assert reported["power_instant_w"] == pytest.approx(83.0)
    assert reported["power_average_w"] == pytest.approx(83.5)
    assert reported["memory_power_w"] == pytest.approx(21.0)
    assert reported["power_limit_w"] == pytest.approx(700.0)
    assert reported["energy_j"] == pytest.approx(123_456_789.0, abs=0.1)
    assert reported["memory_used_mib"] == 3 * 1024
    assert (reported["pcie_rx_mb_per_s"], reported["pcie_tx_mb_per_s"]) == (1.5, 2.5)
    assert (reported["utilisation_percent"], reported["memory_utilisation_percent"]) == (97, 41)
    assert (reported["requested_graphics_clock_mhz"], reported["memory_temperature_c"]) == (1980, 44)
    assert gpu.info.memory_mib == 141 * 1024
    assert (gpu.info.multiprocessors, gpu.info.compute_capability) == (132, (9, 0))
    assert (gpu.info.power_limit.minimum_w, gpu.info.power_limit.maximum_w) == (200.0, 700.0)
    assert gpu.graphics_clocks_mhz() == tuple(range(345, 1981, 15))
    assert gpu.memory_clocks_mhz() == (2201, 3201)


def test_a_field_that_fails_by_its_own_code_is_nan_and_the_others_stand(board: Board, gpu: NvmlGpu) -> None:
    board.failing[185, 2] = NO_PERMISSION
    reading = gpu.read()
    assert math.isnan(value(gpu, reading, "memory_power_w"))
    assert value(gpu, reading, "power_instant_w") == pytest.approx(83.0)


def test_a_power_of_nothing_is_not_reported_as_zero(board: Board, gpu: NvmlGpu) -> None:
    board.power_mw = 0
    assert math.isnan(value(gpu, gpu.read(), "power_instant_w"))


def test_what_is_refused_when_opened_is_not_available_and_says_why() -> None:
    gpu = open_board(Board(failing={"nvmlDeviceGetUtilizationRates": NO_PERMISSION}))
    assert "refuses" in str(missing(gpu, "utilisation_percent"))
    assert math.isnan(value(gpu, gpu.read(), "memory_utilisation_percent"))
    gpu.close()


def test_slow_channels_are_not_asked_at_every_read(board: Board, gpu: NvmlGpu) -> None:
    gpu.read()
    time.sleep(0.05)
    before = dict(board.calls)
    for _ in range(100):
        gpu.read()
    assert board.calls["nvmlDeviceGetFieldValues"] - before["nvmlDeviceGetFieldValues"] == 100
    for function in ("nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetPcieThroughput", "nvmlDeviceGetFanSpeed"):
        assert board.calls[function] - before[function] <= 2, function
    assert "nvmlDeviceGetSupportedGraphicsClocks" not in board.calls


def test_a_quick_channel_that_takes_long_on_this_board_is_read_by_the_slow_thread() -> None:
    board = Board(delays_s={"nvmlDeviceGetUtilizationRates": 0.004})
    gpu = open_board(board)
    board.asked_by.clear()
    for _ in range(20):
        assert value(gpu, gpu.read(), "utilisation_percent") == 97
    gpu.close()
    assert threading.current_thread().name in board.asked_by["nvmlDeviceGetFieldValues"]
    assert board.asked_by["nvmlDeviceGetUtilizationRates"] <= {"slow channels"}


def test_slow_channels_are_read_anew_as_time_passes(board: Board, gpu: NvmlGpu) -> None:
    first = value(gpu, gpu.read(), "energy_j")
    deadline = time.monotonic() + 5
    while value(gpu, gpu.read(), "energy_j") == first:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_the_drivers_samples_carry_monotonic_time_to_a_millisecond(gpu: NvmlGpu) -> None:
    samples = gpu.power_samples(0)
    assert len(samples) == 50
    ages_s = [(time.monotonic_ns() - s.time_ns) / 1e9 for s in samples]
    assert 0.02 <= ages_s[-1] < 1.0
    assert ages_s[0] - ages_s[-1] == pytest.approx(49 * 0.020, abs=1e-3)
    assert samples[-1].power_w == pytest.approx(90.001)


def test_a_sample_keeps_its_time_and_comes_once_however_often_the_buffer_is_drained(board: Board, gpu: NvmlGpu) -> None:
    known = list(gpu.power_samples(0))
    board.samples.append((time.time_ns() // 1000, 95_000))
    newer = gpu.power_samples(known[-1].time_ns)
    assert [s.power_w for s in newer] == [95.0]
    assert list(gpu.power_samples(0)) == [*known, *newer]
    assert gpu.power_samples(newer[-1].time_ns) == []


def test_after_the_wall_clock_was_set_back_new_samples_still_come(
    board: Board, gpu: NvmlGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = gpu.power_samples(0)
    true_time_ns = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: true_time_ns() - 3_600_000_000_000)
    board.samples[:] = [(time.time_ns() // 1000, 96_000)]
    assert [s.power_w for s in gpu.power_samples(known[-1].time_ns)] == [96.0]


def test_a_board_without_a_buffer_says_so() -> None:
    gpu = open_board(Board(failing={"nvmlDeviceGetSamples": NOT_SUPPORTED}))
    with pytest.raises(NotSupported, match="no power samples"):
        gpu.power_samples(0)
    gpu.close()


def test_a_lost_board_is_reported_as_lost_and_found_again_by_its_uuid(board: Board, gpu: NvmlGpu) -> None:
    gpu.read()
    board.failing["everything"] = LOST
    for _ in range(2):
        with pytest.raises(GpuLost, match="lost"):
            gpu.read()
    board.failing.clear()
    assert value(gpu, gpu.read(), "power_instant_w") == pytest.approx(83.0)


def test_a_board_lost_by_one_fields_code_alone_is_lost(board: Board, gpu: NvmlGpu) -> None:
    board.failing[186, 0] = LOST
    with pytest.raises(GpuLost):
        gpu.read()


def test_one_lost_board_does_not_take_another_with_it() -> None:
    lost, well = Board(), Board(uuid="GPU-2", power_mw=90_000)
    module = FakePynvml(lost, well)
    library = NvmlLibrary(module)  # type: ignore[arg-type]
    first, second = (NvmlGpu(i, library=library, voltage=None) for i in (0, 1))
    lost.failing["everything"] = LOST
    for _ in range(3):
        with pytest.raises(GpuLost):
            first.read()
        assert value(second, second.read(), "power_instant_w") == pytest.approx(90.0)
    first.close()
    second.close()


def test_without_a_driver_opening_says_no_driver() -> None:
    with pytest.raises(NoDriver, match="no NVIDIA driver answers"):
        open_board(Board(), driver=False)
    with pytest.raises(NoDriver):
        boards(NvmlLibrary(FakePynvml(driver=False)))  # type: ignore[arg-type]


def test_boards_are_listed_by_index_uuid_and_name() -> None:
    library = NvmlLibrary(FakePynvml(Board(), Board(name="NVIDIA A100", uuid="GPU-2")))  # type: ignore[arg-type]
    assert boards(library)[1] == (1, "GPU-2", "NVIDIA A100")


@pytest.mark.parametrize(
    ("answer", "expected_mv"),
    [(TOLD, 737.5), (NOT_TOLD, None), ("", None), ("Graphics : 0.000 mV", None), ("Graphics : 1e9 V", None)],
)
def test_voltage_is_read_from_nvidia_smis_words(answer: str, expected_mv: float | None) -> None:
    assert parse_voltage_mv(answer) == expected_mv


def test_voltage_is_a_channel_where_nvidia_smi_reports_it() -> None:
    gpu = open_board(Board(), answer=TOLD)
    assert value(gpu, gpu.read(), "core_voltage_mv") == 737.5
    gpu.close()


def test_a_slow_nvidia_smi_holds_up_neither_opening_nor_reading() -> None:
    def slow(uuid: str) -> str:
        time.sleep(0.5)
        return TOLD

    reader = VoltageReader("GPU-1", slow)
    assert "did not answer" in str(reader.unavailable(timeout_s=0.05))
    assert math.isnan(reader.latest_mv())
    reader.join()


def test_voltage_is_asked_at_most_once_a_second() -> None:
    asked: list[float] = []

    def ask(uuid: str) -> str:
        asked.append(time.monotonic())
        return TOLD

    reader = VoltageReader("GPU-1", ask)
    assert reader.unavailable() is None
    reader.start()
    deadline = time.monotonic() + 20.0
    while len(asked) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    reader.stop()
    reader.join()
    assert len(asked) >= 2
    assert np.diff(asked).min() >= 1.0


def test_the_age_of_a_held_value_is_known() -> None:
    """Whoever asks for the age first and then reads has a value that is at least as new."""
    before_ns = time.monotonic_ns()
    gpu = open_board(sampled_board(), answer=TOLD)
    try:
        gpu.read()
        for channel in ("core_voltage_mv", "temperature_c"):
            held = gpu.held(channel)
            assert held is not None
            assert before_ns <= held.asked_ns <= time.monotonic_ns()
            assert held.longest_s >= 1.0
        assert gpu.held("graphics_clock_mhz") is None, "asked at every read"
    finally:
        gpu.close()


@pytest.mark.parametrize(
    ("default_mhz", "failing", "base_mhz"),
    [
        (1395, {}, 1395.0),
        (1395, {"nvmlDeviceGetDefaultApplicationsClock": FUNCTION_NOT_FOUND}, None),  # the stand-in has but one answer
        (1980, {}, None),  # the highest clock of all, as an H200 reports it, is no base clock
        (0, {}, None),
    ],
)
def test_the_drivers_default_clock_is_a_base_clock_unless_it_is_the_highest(
    default_mhz: int, failing: dict[str, int], base_mhz: float | None
) -> None:
    gpu = open_board(sampled_board(default_mhz=default_mhz, failing=failing))
    assert gpu.base_clock_mhz() == base_mhz
    gpu.close()
