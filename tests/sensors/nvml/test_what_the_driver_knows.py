"""What NVML knows beside the channels: throttled time, limits from outside, scopes of power, MIG slices, no voltage."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures.fake_pynvml import FUNCTION_NOT_FOUND, NOT_SUPPORTED, Board, FakePynvml, sampled_board
from PySide6.QtWidgets import QGridLayout, QWidget
from pytestqt.qtbot import QtBot

from app.base.errors import InputError
from app.cli import main
from app.sensors.gpu import NotSupported
from app.sensors.nvml import channels
from app.sensors.nvml.channels import VoltageReader
from app.sensors.nvml.gpu import NvmlGpu
from app.sensors.nvml.library import LIBRARY, NvmlLibrary
from app.sensors.select import open_gpu
from app.views.control.setting_rows import SettingRows, choices_of
from app.views.shell.about import board_facts

POLICIES = {74: 4_000, 75: 5_000, 76: 6_000, 77: 7_000, 78: 8_000, 79: 9_000}
SLOWDOWNS = {269: 1_000, 270: 2_000, 271: 3_000}
Stage = Callable[..., FakePynvml]


def opened(board: Board, **module: Any) -> NvmlGpu:
    return NvmlGpu(0, library=NvmlLibrary(FakePynvml(board, **module)), voltage=None)  # type: ignore[arg-type]


def missing(gpu: NvmlGpu, name: str) -> str:
    return next(c.unavailable or "" for c in gpu.channels if c.name == name)


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """`stage(board, ...)`: the program's own NVML shows these boards."""

    def make(*boards: Board, **module: Any) -> FakePynvml:
        LIBRARY.close()
        fake = FakePynvml(*boards, **module)
        monkeypatch.setattr(LIBRARY, "_stand_in", fake)
        return fake

    yield make
    LIBRARY.close()


def document(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert main([words[0], "--json", *words[1:]]) == 0
    return json.loads(capsys.readouterr().out)


# --- throttled time ---------------------------------------------------------------------------------------------------


def test_throttled_time_is_read_by_reason_and_what_the_board_lacks_is_left_out() -> None:
    assert opened(Board(throttled_ns={**POLICIES, **SLOWDOWNS})).throttled_ns() == {
        "power": 4_000, "sync_boost": 6_000, "board_limit": 7_000, "low_utilisation": 8_000, "reliability": 9_000,
        "thermal": 1_000, "hardware_thermal": 2_000, "power_brake": 3_000,
    }  # fmt: skip
    assert opened(Board(throttled_ns={74: 4_000, 75: 5_000})).throttled_ns() == {"power": 4_000, "thermal": 5_000}
    assert opened(Board()).throttled_ns() == {}
    assert opened(Board(failing={"nvmlDeviceGetFieldValues": FUNCTION_NOT_FOUND})).throttled_ns() == {}


def test_a_counter_of_months_keeps_its_nanoseconds() -> None:
    month_ns = 30 * 86_400 * 10**9
    assert opened(Board(throttled_ns={74: month_ns + 1})).throttled_ns() == {"power": month_ns + 1}


@pytest.mark.parametrize("version", ["535.288.01", "575.57.08", "580.65.06"])
def test_a_driver_that_numbers_other_figures_269_to_271_is_not_asked_for_them(version: str) -> None:
    """On those the numbers belong to power smoothing, whose settings would be taken for nanoseconds."""
    gpu = opened(Board(throttled_ns={**POLICIES, **SLOWDOWNS}), version=version)
    assert gpu.throttled_ns()["thermal"] == POLICIES[75]
    assert "power_brake" not in gpu.throttled_ns()


def test_counters_are_not_read_at_every_sample() -> None:
    board = Board(throttled_ns={74: 0})
    gpu = opened(board)
    before = board.calls["nvmlDeviceGetFieldValues"]
    for _ in range(50):
        gpu.read()
    gpu.close()
    assert board.calls["nvmlDeviceGetFieldValues"] - before <= 52, "the power fields, and now and then a temperature"


def test_a_board_that_is_held_back_is_seen_in_gpus_and_about(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    stage(Board(throttled_ns={74: 12_500_000_000, 75: 0}))
    (board,) = document(capsys, "gpus")
    assert board["throttled_s"] == {"power": 12.5, "thermal": 0.0}
    assert main(["gpus", "--verbose"]) == 0
    assert "held back since the driver was loaded: power cap 12.5 s" in capsys.readouterr().out
    gpu = open_gpu("0", voltage=False)
    assert dict(board_facts(gpu))["Clocks"] == "held back since the driver was loaded: power cap 12.5 s"
    gpu.close()


class Throttling(dict[int, int]):
    """Counters of a board that its temperature holds back for a share of the time."""

    def __init__(self, share: float) -> None:
        super().__init__({74: 0, 269: 0})
        self.share = share

    def __getitem__(self, number: int) -> int:
        return round(self.share * time.monotonic_ns()) if number == 269 else 0


def test_a_program_has_the_share_that_was_counted_though_no_sample_shows_it(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    stage(Board(reasons=0, throttled_ns=Throttling(0.3), failing={"nvmlDeviceGetSamples": NOT_SUPPORTED}))
    program = [sys.executable, "-c", "import time; time.sleep(1.0)"]
    measured = document(capsys, "measure", "--gpu", "0", "--", *program)
    (seen,) = measured["gpus"]
    assert seen["event_reasons_s"] == {"thermal": pytest.approx(0.3 * measured["time_s"], rel=0.2)}
    watched = document(capsys, "monitor", "--gpu", "0", "--duration", "1")
    assert watched["event_reasons_s"] == {"thermal": pytest.approx(0.3 * watched["duration_s"], rel=0.2)}


# --- limits -----------------------------------------------------------------------------------------------------------


def test_a_limit_from_outside_is_seen_below_the_one_that_is_set(
    stage: Stage, capsys: pytest.CaptureFixture[str], qtbot: QtBot
) -> None:
    stage(Board(set_mw=650_000, enforced_mw=650_000, limits_mw={190: 500_000, 192: 650_000}))
    assert main(["gpus", "--json"]) == 0
    printed = capsys.readouterr()
    (board,) = json.loads(printed.out)
    assert board["power_limit_w"] == {
        "min": 200.0, "max": 700.0, "default": 700.0, "current": 500.0, "set": 650.0, "requested": 650.0,
        "enforced": 650.0,
    }  # fmt: skip
    assert "a limit from outside acts: 500 W, below the 650 W set" in printed.err
    gpu = open_gpu("0", voltage=False)
    assert "from outside acts: 500 W" in dict(board_facts(gpu))["Power limit"]
    place = QWidget()
    qtbot.addWidget(place)
    beside = QWidget(place)
    rows = SettingRows(gpu, choices_of(gpu), QGridLayout(place), QGridLayout(beside))
    assert rows.facts["power_limit_w"].text() == (
        "200 to 700 W, by default 700 W, a limit from outside acts: 500 W, below the 650 W set"
    )
    gpu.close()


def test_an_enforced_limit_below_the_set_one_is_from_outside_where_there_are_no_fields() -> None:
    gpu = opened(Board(set_mw=700_000, enforced_mw=400_000))
    assert gpu.info.power_limit.current_w == 400.0
    assert "400 W, below the 700 W" in gpu.info.power_limit.from_outside
    assert opened(Board()).info.power_limit.from_outside == ""


# --- scopes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counter_w", "module_mw", "said"),
    [(83.0, None, ""), (83.0, 210_000, ""), (210.0, 210_000, "the module's"), (210.0, None, "none that the board")],
)
def test_a_counter_that_does_not_fit_the_power_is_named(
    stage: Stage, capsys: pytest.CaptureFixture[str], counter_w: float, module_mw: int | None, said: str
) -> None:
    stage(Board(counter_w=counter_w, module_mw=module_mw, failing={"nvmlDeviceGetSamples": NOT_SUPPORTED}))
    (board,) = document(capsys, "gpus", "--verbose")
    watched = document(capsys, "monitor", "--gpu", "0", "--duration", "1")
    for note in (board["energy_counter_note"], watched["energy_counter_note"]):
        assert (said in note) if said else note == ""
    assert 0 < watched["energy_j"] / watched["duration_s"] < 100, "of the GPU, 83 W, and not the module's 210"
    assert ("module_power_w" in watched["channels"]) == (module_mw is not None)


# --- MIG --------------------------------------------------------------------------------------------------------------


def test_a_slice_never_shows_the_boards_watts(stage: Stage) -> None:
    limits = {190: 400_000, 192: 400_000}
    whole = sampled_board(partitioned=True)
    part = sampled_board(uuid="MIG-1111", throttled_ns=POLICIES, limits_mw=limits, module_mw=300_000, slice_of_it=True)
    stage(whole, part)
    gpu = open_gpu("MIG-1111")
    assert isinstance(gpu, NvmlGpu)
    watts = ("power_instant_w", "power_average_w", "memory_power_w", "module_power_w", "energy_j", "power_limit_w")
    for name in watts:
        assert "a MIG slice has no power of its own" in missing(gpu, name)
    reported = {c.name: value for c, value in zip(gpu.channels, gpu.read().values, strict=True)}
    assert all(math.isnan(reported[name]) for name in watts)
    assert reported["graphics_clock_mhz"] == 345.0
    for ask in (lambda: gpu.power_samples(0), gpu.energy_j, lambda: gpu.ask_power_w("power_instant_w")):
        with pytest.raises(NotSupported, match="MIG slice"):
            ask()
    limit = gpu.info.power_limit
    assert (limit.current_w, limit.set_w, limit.requested_w, limit.maximum_w) == (None, None, None, None)
    assert "MIG slice" in gpu.info.power_source
    assert gpu.throttled_ns() == {}
    assert "partitioned" in str(gpu.why_not_set("graphics_clock_mhz"))
    gpu.close()


def test_the_board_of_slices_says_that_its_power_is_of_all_of_them(stage: Stage) -> None:
    stage(sampled_board(partitioned=True))
    gpu = open_gpu("0", voltage=False)
    assert gpu.info.power_source.endswith("of the whole board with all its MIG slices")
    gpu.close()


def test_a_handle_that_is_a_slices_is_one_whatever_its_uuid() -> None:
    assert "MIG slice" in missing(opened(Board(slice_of_it=True)), "power_instant_w")


def test_a_slice_that_is_not_there_is_refused_in_one_line(stage: Stage) -> None:
    stage(Board(partitioned=True))
    with pytest.raises(InputError, match="no GPU MIG-2222"):
        open_gpu("MIG-2222")


# --- voltage ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("modules", "reason"),
    [
        ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05\n", "with the open kernel modules"),
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05\n", "reports none here"),
    ],
)
def test_why_there_is_no_voltage_names_the_open_modules(
    modules: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = tmp_path / "version"
    version.write_text(modules)
    monkeypatch.setattr(channels, "MODULES", version)
    assert reason in str(VoltageReader("GPU-1", lambda _: "Graphics : N/A\n").unavailable())
