"""AMD boards through AMD SMI: a stand-in for its library, asked by the product and by AMD's own package."""

from __future__ import annotations

import ctypes
import importlib.util
import json
import math
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fixtures.gpu_conformance import GpuConformance, value

sys.path.insert(0, str(Path(__file__).parents[1] / "nvml"))

from boards import AMD_LIBRARY, SOURCES, StandIn, compiler
from fixtures.stand_in_fixtures import boards, opened_amd  # noqa: F401

from app.base.errors import InputError
from app.cli import main
from app.engine.results.settings import why_not_set
from app.sensors.amd import binding
from app.sensors.amd.binding import AmdSmi, Metrics, PowerCap
from app.sensors.amd.gpu import AmdGpu, CountedPower, _values_of, event_reasons, pci_address
from app.sensors.event_reasons import EventReason
from app.sensors.gpu import Gpu, GpuLost, HoldsValues, NotSupported
from app.sensors.select import gpu_selectors, list_gpus, open_gpu

Boards = Callable[..., StandIn]
Opened = Callable[..., AmdGpu]
IO_ERROR, NOT_SUPPORTED_HERE = 12, 2


class TestAmd(GpuConformance):
    @pytest.fixture
    def gpu(self, boards: Boards, opened_amd: Opened) -> Gpu:  # noqa: F811
        stand_in = boards("mi210")
        stand_in.work(30.0)
        return opened_amd()


# --- AMD's own package ------------------------------------------------------------------------------------------------


@pytest.fixture
def amdsmi(tmp_path: Path) -> Callable[..., list[dict[str, Any]]]:
    """`amdsmi(stand_in)`: what the package `amdsmi` reads of its boards, in a process of its own.

    The package wants every function of the library to be there; those that the stand-in lacks say 'not implemented'.
    """
    package = importlib.util.find_spec("amdsmi")
    if package is None or package.origin is None:
        pytest.skip("AMD's package amdsmi is not here (pip install amdsmi==7.0.2)")
    wanted = set(re.findall(r"\]\.(amdsmi_\w+)", Path(package.origin).with_name("amdsmi_wrapper.py").read_text()))
    source = SOURCES[AMD_LIBRARY]
    lacking = wanted - set(re.findall(r"^int (amdsmi_\w+)\(", source.read_text(), re.MULTILINE))
    (tmp_path / "others.c").write_text("".join(f"int {name}(void) {{ return 3; }}\n" for name in sorted(lacking)))
    (tmp_path / "lib").mkdir()
    library = tmp_path / "lib" / AMD_LIBRARY
    words = [compiler() or "cc", "-std=gnu11", "-shared", "-fPIC", "-o", str(library), str(source)]
    subprocess.run([*words, str(tmp_path / "others.c"), "-ldl", "-lpthread"], check=True)

    def read(stand_in: StandIn, *words: str) -> list[dict[str, Any]]:
        if not (tmp_path / "lib" / "boards.bin").exists():
            (tmp_path / "lib" / "boards.bin").symlink_to(stand_in.folder / "boards.bin")
        program = [sys.executable, str(Path(__file__).with_name("amdsmi_reads.py")), *words]
        environment = {**os.environ, "ROCM_PATH": str(tmp_path), "STAND_IN_RIGHTS": "1"}
        ran = subprocess.run(program, env=environment, capture_output=True, text=True, check=True)
        return [dict(board) for board in json.loads(ran.stdout)]

    return read


def test_amds_own_package_reads_the_same_values(
    boards: Boards,  # noqa: F811
    opened_amd: Opened,  # noqa: F811
    amdsmi: Callable[..., list[dict[str, Any]]],
) -> None:
    stand_in = boards("h200", "mi210", "mi210")
    stand_in.boards[2].limit = 200_000
    before_j = [opened_amd(at).energy_j() for at in (0, 1)]
    theirs = amdsmi(stand_in)
    assert len(theirs) == 2
    for index, told in enumerate(theirs):
        gpu = opened_amd(index)
        reading, info = gpu.read(), gpu.info
        assert info.uuid == f"AMD-{told['uuid']}"
        assert (info.name, info.driver) == (told["asic"]["market_name"], told["driver"]["driver_version"])
        assert pci_address(info.uuid) == told["bdf"]
        cap = told["cap"]
        limits = [cap[name] / 1e6 for name in ("min_power_cap", "max_power_cap", "default_power_cap", "power_cap")]
        limit = info.power_limit
        assert [limit.minimum_w, limit.maximum_w, limit.default_w, limit.current_w] == limits
        assert value(gpu, reading, "power_limit_w") == limits[3] == (280 if index == 0 else 200)
        assert value(gpu, reading, "power_average_w") == told["power"]["average_socket_power"]
        assert math.isnan(value(gpu, reading, "power_instant_w"))
        assert told["power"]["current_socket_power"] == "N/A"
        assert value(gpu, reading, "graphics_clock_mhz") == told["graphics"]["clk"]
        assert value(gpu, reading, "memory_clock_mhz") == told["memory"]["clk"]
        assert [mhz * 10**6 for mhz in gpu.memory_clocks_mhz()] == told["memory_clocks"]["frequency"]
        clocks = gpu.graphics_clocks_mhz()
        assert [clocks[0], clocks[-1]] == [told["graphics"]["min_clk"], told["graphics"]["max_clk"]]
        assert [clocks[0] * 10**6, clocks[-1] * 10**6] == list(told["range"]["sclk_freq_limits"].values())
        assert value(gpu, reading, "core_voltage_mv") == told["millivolt"] == told["power"]["gfx_voltage"]
        assert value(gpu, reading, "utilisation_percent") == told["activity"]["gfx_activity"]
        assert value(gpu, reading, "memory_utilisation_percent") == told["activity"]["umc_activity"]
        assert (info.memory_mib, value(gpu, reading, "memory_used_mib")) == tuple(told["vram"].values())
        for name, theirs_name in (
            ("temperature_c", "temperature_edge"),
            ("junction_temperature_c", "temperature_hotspot"),
            ("memory_temperature_c", "temperature_mem"),
        ):
            assert value(gpu, reading, name) == told["metrics"][theirs_name]
        counted_j = told["energy"]["energy_accumulator"] * told["energy"]["counter_resolution"] * 1e-6
        assert before_j[index] <= counted_j <= gpu.energy_j()
        assert gpu.energy_j() - before_j[index] < 60 * 300  # of the same size, and not only in order


def test_our_structures_lie_as_in_amds_own_package(
    boards: Boards,  # noqa: F811
    amdsmi: Callable[..., list[dict[str, Any]]],
) -> None:
    [theirs] = amdsmi(boards("mi210"), "layout")
    same = {
        "gpu_metrics": (
            binding.Metrics,
            "edge_c temperature_edge junction_c temperature_hotspot memory_c temperature_mem gfx_percent "
            "average_gfx_activity memory_percent average_umc_activity average_w average_socket_power energy_counts "
            "energy_accumulator graphics_mhz current_gfxclk memory_mhz current_uclk video_mhz current_vclk0 "
            "graphics_mv voltage_gfx throttle_bits indep_throttle_status current_w current_socket_power",
        ),
        "power_cap_info": (
            binding.PowerCap,
            "now power_cap default default_power_cap least min_power_cap most max_power_cap",
        ),
        "clk_info": (binding.Clock, "now clk least min_clk most max_clk"),
        "od_volt_freq_data": (
            binding.Overdrive,
            "graphics curr_sclk_range graphics_limits sclk_freq_limits",
        ),
        "frequencies": (binding.Frequencies, "supported num_supported current current hz frequency"),
        "vram_usage": (binding.Memory, "total vram_total used vram_used"),
        "range": (binding.Range, "lower lower_bound upper upper_bound"),
    }
    for kind, (structure, words) in same.items():
        ours, named = words.split()[::2], words.split()[1::2]
        for name, their_name in zip(ours, named, strict=True):
            field = getattr(structure, name)
            assert [field.offset, field.size] == theirs[kind][their_name], (kind, name)


def test_amds_own_package_sets_what_we_read(
    boards: Boards,  # noqa: F811
    opened_amd: Opened,  # noqa: F811
    amdsmi: Callable[..., list[dict[str, Any]]],
) -> None:
    stand_in = boards("mi210")
    [told] = amdsmi(stand_in, "set")
    assert stand_in.settings() == {"limit": 200_000, "lock": (900, 1200), "level": 3}
    gpu = opened_amd()
    assert gpu.info.power_limit.current_w == 200.0
    assert value(gpu, gpu.read(), "requested_graphics_clock_mhz") == 1200.0
    assert (told["level"], told["range"]["curr_sclk_range"]["upper_bound"]) == (3, 1_200_000_000)
    amdsmi(stand_in, "auto")
    assert opened_amd().graphics_clocks_mhz()[-1] == 1700
    assert stand_in.settings() == {"limit": 200_000, "lock": (0, 0), "level": 0}


# --- what is read -----------------------------------------------------------------------------------------------------


def test_a_field_of_all_ones_or_a_power_of_nothing_is_not_known() -> None:
    metrics = Metrics()
    ctypes.memset(ctypes.byref(metrics), 0xFF, ctypes.sizeof(metrics))
    assert all(math.isnan(number) for number in _values_of(metrics).values())
    metrics.average_w, metrics.graphics_mhz, metrics.junction_c = 0, 0, 61
    values = _values_of(metrics)
    assert math.isnan(values["power_average_w"])
    assert math.isnan(values["graphics_clock_mhz"])
    assert values["temperature_c"] == values["junction_temperature_c"] == 61.0  # MI300 has no edge sensor


def test_a_board_without_a_throttle_status_is_known_to_be_idle_and_no_more() -> None:
    metrics = Metrics()
    ctypes.memset(ctypes.byref(metrics), 0xFF, ctypes.sizeof(metrics))
    metrics.gfx_percent = 0
    assert _values_of(metrics)["event_reasons"] == EventReason.IDLE
    metrics.gfx_percent = 40
    assert math.isnan(_values_of(metrics)["event_reasons"])


@pytest.mark.parametrize(
    ("bit", "reason"),
    [
        (0, EventReason.POWER_CAP),  # PPT0
        (7, EventReason.POWER_CAP),
        (16, EventReason.HARDWARE_SLOWDOWN),  # TDC of the graphics rail
        (36, EventReason.SOFTWARE_THERMAL),  # hotspot
        (46, EventReason.HARDWARE_THERMAL),  # PROCHOT
        (56, EventReason.HARDWARE_SLOWDOWN),  # PPM
    ],
)
def test_throttle_bits_become_event_reasons(bit: int, reason: EventReason) -> None:
    assert event_reasons(1 << bit, idle=False) == reason
    assert event_reasons(1 << bit, idle=True) == reason | EventReason.IDLE
    assert event_reasons(0, idle=False) == EventReason.NONE


def test_power_is_counted_by_the_counters_own_time() -> None:
    counted = CountedPower()
    for step in range(5):  # 300 W for 20 ms each
        counted.count(step * 6e6 * 1.0, step * 20_000_000, 1000 + step)
    counted.count(4 * 6e6, 100_000_000, 1005)  # it has not moved: waited for
    counted.count(6 * 6e6, 120_000_000, 1006)
    counted.count(0.0, 140_000_000, 1007)  # a reset: counting begins again
    counted.count(3e6, 160_000_000, 1008)
    samples = counted.since(0)
    assert [sample.time_ns for sample in samples] == [1001, 1002, 1003, 1004, 1006, 1008]
    assert [sample.power_w for sample in samples] == pytest.approx([300.0] * 5 + [150.0])
    assert counted.since(1004) == samples[4:]


def test_the_counted_power_and_the_counter_agree_with_what_the_board_draws(
    boards: Boards,  # noqa: F811
    opened_amd: Opened,  # noqa: F811
) -> None:
    stand_in = boards("mi210")
    stand_in.work(30.0)
    gpu = opened_amd()
    gpu.read()
    time.sleep(0.1)
    begun_ns, before_j = gpu.clock.now_ns(), gpu.energy_j()
    time.sleep(0.6)
    passed_s, counted_j = (gpu.clock.now_ns() - begun_ns) / 1e9, gpu.energy_j() - before_j
    drawn_w = value(gpu, gpu.read(), "power_average_w")
    assert value(gpu, gpu.read(), "event_reasons") == EventReason.POWER_CAP
    assert counted_j / passed_s == pytest.approx(drawn_w, rel=0.02)
    samples = gpu.power_samples(begun_ns)
    assert sum(sample.power_w for sample in samples) / len(samples) == pytest.approx(drawn_w, rel=0.02)
    assert isinstance(gpu, HoldsValues)
    assert gpu.held("power_limit_w") is not None
    assert gpu.held("power_average_w") is None


def test_a_board_without_a_counter_is_polled_and_says_so(boards: Boards, opened_amd: Opened) -> None:  # noqa: F811
    stand_in = boards("mi210")
    stand_in.fault("amdsmi_get_energy_count", NOT_SUPPORTED_HERE)
    gpu = opened_amd()
    assert "average power, polled" in gpu.info.power_source
    with pytest.raises(NotSupported, match="energy counter"):
        gpu.power_samples(0)
    assert next(c for c in gpu.channels if c.name == "energy_j").unavailable


def test_a_lost_board_is_an_event_and_comes_back(boards: Boards, opened_amd: Opened) -> None:  # noqa: F811
    stand_in = boards("mi210")
    gpu = opened_amd()
    gpu.read()
    stand_in.boards[0].lost = 1
    for _ in range(2):
        with pytest.raises(GpuLost, match="MI210"):
            gpu.read()
    stand_in.boards[0].lost = 0
    assert value(gpu, gpu.read(), "graphics_clock_mhz") == 800


def test_a_cap_in_watts_is_understood_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some versions of AMD SMI give the present cap in watts beside limits in microwatts."""
    smi = object.__new__(AmdSmi)
    mixed = PowerCap(now=280, default=300_000_000, dpm=0, least=0, most=300_000_000)
    monkeypatch.setattr(smi, "_asked", lambda *a: mixed)
    assert smi.power_cap_uw(ctypes.c_void_p()) == (280_000_000, 300_000_000, 0, 300_000_000)


# --- which board ------------------------------------------------------------------------------------------------------


@pytest.fixture
def two_makers(boards: Boards) -> StandIn:  # noqa: F811
    return boards("h200", "mi210", "mi210")


def name_of(selector: str | None) -> tuple[str, int]:
    gpu = open_gpu(selector, voltage=False)
    gpu.close()
    return gpu.info.uuid, gpu.info.index


def test_both_makers_boards_are_named_on_one_machine(two_makers: StandIn) -> None:
    nvidia, first, second = two_makers.uuids
    assert name_of(None) == name_of("0") == (nvidia, 0)
    assert name_of("amd") == name_of("amd:0") == name_of("AMD:0") == name_of(first) == name_of(first[:12]) == (first, 0)
    assert name_of("amd:1") == name_of(second) == (second, 1)
    labels = dict(gpu_selectors())
    assert labels[second] == "amd:1: AMD Instinct MI210"
    gpus = list_gpus()
    assert [gpu.info.source for gpu in gpus] == ["nvml", "amd", "amd"]
    for gpu in gpus:
        gpu.close()
    with pytest.raises(InputError, match="no GPU amd:2") as refused:
        open_gpu("amd:2")
    assert "amd:1 (AMD Instinct MI210)" in refused.value.remedy
    with pytest.raises(InputError, match="at its own speed"):
        open_gpu("amd:0", speed=2.0)


def test_boards_that_share_a_uuid_stay_two_and_are_not_set(boards: Boards) -> None:  # noqa: F811
    """As boards without a serial number do."""
    stand_in = boards("mi210", "mi210")
    stand_in.boards[1].uuid = stand_in.boards[0].uuid
    stand_in.boards[1].limit = 150_000
    found = [open_gpu(f"amd:{at}") for at in (0, 1)]
    assert [gpu.info.uuid for gpu in found] == [f"{stand_in.uuids[0]}@0000:{bus}:00.0" for bus in (41, 42)]
    assert [gpu.info.power_limit.current_w for gpu in found] == [280.0, 150.0]
    assert name_of(found[1].info.uuid)[1] == 1
    assert pci_address(found[1].info.uuid) == "0000:42:00.0"
    assert why_not_set(found[0], "power_limit_w") == "boards without a serial number share a UUID, and are not set"
    for gpu in found:
        gpu.close()


def test_where_there_are_only_amds_boards_an_index_is_theirs(boards: Boards) -> None:  # noqa: F811
    stand_in = boards("mi210")
    assert name_of(None) == name_of("0") == (stand_in.uuids[0], 0)


def test_without_amds_library_the_remedy_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.sensors.amd.library.places", lambda: iter(["/nowhere/libamd_smi.so"]))
    with pytest.raises(InputError, match="no AMD driver answers here") as refused:
        open_gpu("amd:0")
    assert "amd-smi-lib" in refused.value.remedy


# --- commands ---------------------------------------------------------------------------------------------------------


def document(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert main([words[0], "--json", *words[1:]]) == 0
    return json.loads(capsys.readouterr().out)


def test_gpus_lists_boards_of_both_makers(two_makers: StandIn, capsys: pytest.CaptureFixture[str]) -> None:
    listed = document(capsys, "gpus")
    assert [board["source"] for board in listed] == ["nvml", "amd", "amd"]
    assert listed[1]["power_source"] == "the board's energy counter, read every 20 ms"
    assert listed[1]["channels"]["junction_temperature_c"] == "°C"
    assert listed[1]["cannot_set"] == {
        "workload_power_profile": "workload power profiles are of NVIDIA's boards",
        "memory_clock_mhz": "memory clocks of AMD boards are not set",
    }


def test_a_board_is_monitored(two_makers: StandIn, capsys: pytest.CaptureFixture[str]) -> None:
    two_makers.work(30.0, 1)
    seen = document(capsys, "monitor", "--gpu", "amd:0", "--duration", "1")
    assert seen["energy_source"] == "power_samples_w"
    assert seen["channels"]["power_average_w"]["mean"] == pytest.approx(279, rel=0.02)
    assert seen["event_reasons_s"]["power cap"] > 0.5


def test_a_program_is_measured(two_makers: StandIn, capsys: pytest.CaptureFixture[str]) -> None:
    two_makers.work(30.0, 2)
    measured = document(capsys, "measure", "--gpu", "amd:1", "--", sys.executable, "-c", "import time; time.sleep(0.8)")
    assert measured["mean_power_w"] == pytest.approx(279, rel=0.03)
    assert "energy counter" in measured["power_source"]


# --- oddities of boards that Zeus handles too -------------------------------------------------------------------------


def test_of_the_two_dies_of_an_mi250x_one_reports_both_and_the_other_nothing(
    boards: Boards,  # noqa: F811
    opened_amd: Opened,  # noqa: F811
) -> None:
    stand_in = boards("mi210", "mi210")
    for die in stand_in.boards:
        die.name = b"AMD Instinct MI250X"
    stand_in.boards[1].idle_mw = stand_in.boards[1].load_mw = 0
    first, second = opened_amd(), opened_amd(1)
    assert first.info.power_source.endswith("of both dies of the board")
    lacking = {c.name: c.unavailable or "" for c in second.channels}
    for name in ("power_instant_w", "power_average_w", "energy_j"):
        assert "the first one reports the power of both" in lacking[name]
    with pytest.raises(NotSupported, match="second die"):
        second.power_samples(0)
    assert "of both dies of the board" not in second.info.power_source


@pytest.mark.parametrize(("reported", "other"), [("average_w", "current_w"), ("current_w", "average_w")])
def test_a_board_with_one_of_the_two_powers_says_which(
    boards: Boards,  # noqa: F811
    opened_amd: Opened,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    reported: str,
    other: str,
) -> None:
    """An MI210 has no present power, an MI300X no average."""
    boards("mi210")
    asked = AmdSmi.metrics

    def metrics(smi: AmdSmi, board: ctypes.c_void_p) -> Metrics:
        answer = asked(smi, board)
        watts = answer.average_w
        answer.average_w = answer.current_w = 0xFFFF
        setattr(answer, reported, watts)
        return answer

    monkeypatch.setattr(AmdSmi, "metrics", metrics)
    gpu = opened_amd()
    channels = {"average_w": "power_average_w", "current_w": "power_instant_w"}
    lacking = {c.name: c.unavailable for c in gpu.channels}
    assert lacking[channels[reported]] is None
    assert lacking[channels[other]] == f"this board does not report it, but {channels[reported]}"
    assert value(gpu, gpu.read(), channels[reported]) == 41.0


@pytest.mark.parametrize(("times", "said"), [(0.0, "stands still"), (100.0, "it counts"), (0.01, "it counts")])
def test_a_counter_that_stands_still_or_is_far_off_is_not_used(
    boards: Boards,  # noqa: F811
    opened_amd: Opened,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    times: float,
    said: str,
) -> None:
    boards("mi210")
    asked = AmdSmi.energy_uj
    monkeypatch.setattr(AmdSmi, "energy_uj", lambda smi, board: (5e6 + times * asked(smi, board)[0], 1))
    gpu = opened_amd()
    assert said in str(next(c.unavailable for c in gpu.channels if c.name == "energy_j"))
    assert "average power, polled" in gpu.info.power_source
    with pytest.raises(NotSupported, match=said):
        gpu.power_samples(0)
