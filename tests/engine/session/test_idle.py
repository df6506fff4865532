"""`wattridge idle`: what is looked at, what is started and ended, what is set and put back."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.base.records import as_json
from app.cli import main
from app.engine.analysis.idle import (
    BARE,
    CONTEXT,
    LOADED,
    LOADED_NO_BOOST,
    LOADING_S,
    MEMORY,
    IdleLook,
    IdleProgram,
    IdleStudy,
    describe_idle,
    idle_document,
    study_idle,
    suggestions,
    year_of,
)
from app.engine.analysis.tradeoff import Load
from app.engine.control.guard import DeviceGuard
from app.engine.runner.cuda.hold_context import hold
from app.sensors.channel import Reading, channel
from app.sensors.clock import Clock, VirtualClock
from app.sensors.gpu import GpuInfo, NotSupported, PowerLimit
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin

BUSY_WAIT = "import pathlib, time, os\npathlib.Path({path!r}).write_text(str(os.getpid()))\ntime.sleep(60)\n"


@pytest.fixture
def twin() -> SimulatedGpu:
    return SimulatedGpu(load_twin("rtx5090"), seed=1, clock=VirtualClock())


class WaitsForTheFile(VirtualClock):
    """Time passes at once, but for the time in which a program loads: that lasts until it has written its file."""

    def __init__(self, flag: Path) -> None:
        super().__init__()
        self._flag = flag

    def wait(self, seconds: float, stop: threading.Event | None = None) -> bool:
        deadline = time.monotonic() + 60
        while seconds == LOADING_S and not written(self._flag) and time.monotonic() < deadline:
            time.sleep(0.002)
        return super().wait(seconds, stop)


class LooksAgain(VirtualClock):
    """Time passes at once, but other processes run a little with each look."""

    def wait(self, seconds: float, stop: threading.Event | None = None) -> bool:
        if seconds == LOADING_S:
            time.sleep(0.002)
        return super().wait(seconds, stop)


def written(flag: Path) -> bool:
    return flag.exists() and bool(flag.read_text())


class LiveBoard:
    """A board of this machine that draws 20 W, and 70 W while the file of a loaded program is there."""

    def __init__(self, flag: Path, clock: Clock | None = None) -> None:
        self.clock = clock or WaitsForTheFile(flag)
        self.channels = (channel("power_instant_w"), channel("utilisation_percent"))
        limit = PowerLimit(None, None, None, None)
        self.info = GpuInfo(0, "GPU-0", "A board", "nvml", "1", limit, power_source="scripted")
        self._flag = flag

    def read(self) -> Reading:
        wobble = 0.01 * (self.clock.now_ns() // 10**7 % 7)
        return Reading(self.clock.now_ns(), ((70.0 if self._flag.exists() else 20.0) + wobble, 0.0))

    def power_samples(self, since_ns: int) -> list[Any]:
        raise NotSupported("no buffer")

    def graphics_clocks_mhz(self) -> tuple[int, ...]:
        return ()

    def memory_clocks_mhz(self) -> tuple[int, ...]:
        return (405, 810)

    def close(self) -> None: ...


def ends(process: int) -> bool:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.01)
    return False


@pytest.fixture
def flag(tmp_path: Path) -> Iterator[Path]:
    return tmp_path / "loaded"


def look(gpu: LiveBoard, program: IdleProgram, **more: Any) -> IdleStudy:
    return study_idle(gpu, DeviceGuard(gpu), seconds=0.5, settle_s=0.05, contexts=False, program=program, **more)  # type: ignore[arg-type]


def test_a_twin_draws_its_idle_power_and_more_at_each_higher_memory_clock(twin: SimulatedGpu) -> None:
    study = study_idle(twin, DeviceGuard(twin), memory_clocks=True)
    assert study.power_w(BARE) == pytest.approx(30.0, abs=0.2)
    at = {each.asked_memory_mhz: each.power_w for each in study.looks if each.condition == MEMORY}
    assert list(at) == [405, 810, 7001, 14001]
    for clock, power_w in at.items():
        assert clock is not None
        assert power_w == pytest.approx(30.0 + 0.001445 * (clock - 405), abs=0.2)
    assert math.isnan(twin.read().values[[c.name for c in twin.channels].index("requested_memory_clock_mhz")])


class CoolingBoard(LiveBoard):
    """It draws 80 W at rest, and 4 W more that fade with a time constant of 6 s."""

    def read(self) -> Reading:
        now_s = self.clock.now_ns() / 1e9
        wobble = 0.01 * (self.clock.now_ns() // 10**7 % 7 - 3)
        return Reading(self.clock.now_ns(), (80.0 + 4.0 * math.exp(-now_s / 6) + wobble, 0.0))


def test_a_board_that_still_cools_is_not_known_to_hundredths_of_a_watt(tmp_path: Path) -> None:
    gpu = CoolingBoard(tmp_path / "none", VirtualClock())
    early, late = (
        study_idle(gpu, DeviceGuard(gpu), seconds=8.0, settle_s=settle_s, contexts=False).looks[0]  # type: ignore[arg-type]
        for settle_s in (2.0, 120.0)
    )
    assert early.interval_w is not None
    assert late.interval_w is not None
    assert early.interval_w[0] <= 80.0 <= early.power_w, "the interval reaches down to where it will rest"
    assert "fell by 1." in "; ".join(early.notes)
    assert late.interval_w[1] - late.interval_w[0] < 0.1
    assert not late.notes


def test_without_being_asked_nothing_is_set(twin: SimulatedGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(twin, "lock_memory_clock", lambda *a, **k: pytest.fail("it was set"))
    study = study_idle(twin, DeviceGuard(twin))
    assert [each.condition for each in study.looks if not each.why_not] == [BARE]
    assert "no CUDA contexts" in next(each.why_not for each in study.looks if each.condition == CONTEXT)


def test_a_program_is_looked_at_while_it_runs_and_is_ended_afterwards(flag: Path) -> None:
    gpu = LiveBoard(flag)
    words = [sys.executable, "-c", BUSY_WAIT.format(path=str(flag))]
    study = look(gpu, IdleProgram(words, loads_s=LOADING_S))
    by_condition = {each.condition: each for each in study.looks}
    assert by_condition[BARE].power_w == pytest.approx(20.0, abs=0.2)
    assert by_condition[LOADED].power_w == pytest.approx(70.0, abs=0.2)
    assert LOADED_NO_BOOST in by_condition
    assert ends(int(flag.read_text()))


def test_a_program_that_ends_too_soon_is_said_with_its_last_words(flag: Path) -> None:
    words = [sys.executable, "-c", "import sys; sys.exit('no weights here')"]
    study = look(LiveBoard(flag, LooksAgain()), IdleProgram(words, loads_s=5000))
    assert "no weights here" in next(each.why_not for each in study.looks if each.condition == LOADED)
    missing = look(LiveBoard(flag, LooksAgain()), IdleProgram(["no-such-program"], loads_s=5000))
    assert "no-such-program" in next(each.why_not for each in missing.looks if each.condition == LOADED)


def test_a_look_that_is_stopped_ends_the_program_and_keeps_what_it_has(flag: Path) -> None:
    gpu, stop = LiveBoard(flag, LooksAgain()), threading.Event()
    words = [sys.executable, "-c", BUSY_WAIT.format(path=str(flag))]

    def when_loaded() -> None:
        deadline = time.monotonic() + 20
        while not written(flag) and time.monotonic() < deadline:
            time.sleep(0.005)
        stop.set()

    watcher = threading.Thread(target=when_loaded)
    watcher.start()
    study = look(gpu, IdleProgram(words, loads_s=1e6), stop=stop)
    watcher.join()
    assert [each.condition for each in study.looks if math.isfinite(each.power_w)] == [BARE]
    assert ends(int(flag.read_text()))


def test_memory_clocks_of_a_real_board_need_control(flag: Path) -> None:
    gpu = LiveBoard(flag)
    study = study_idle(gpu, DeviceGuard(gpu), seconds=0.4, settle_s=0.0, contexts=False, memory_clocks=True)  # type: ignore[arg-type]
    assert "--allow-control" in next(each.why_not for each in study.looks if each.condition == MEMORY)


@pytest.mark.parametrize(
    ("failing", "words"), [("", ""), ("cuInit", "cuInit returned 100"), ("cuDeviceGet", "returned")]
)
def test_a_context_is_opened_through_the_drivers_own_library(failing: str, words: str) -> None:
    class Library:
        def __getattr__(self, name: str) -> Any:
            return lambda *arguments: 100 if name == failing else 0

    said = hold(Library())
    assert words in said
    assert bool(said) == bool(failing)


STUDY = IdleStudy(
    "A board",
    "nvml",
    "polled",
    (
        IdleLook(BARE, 20.0, (19.5, 20.5), 210.0, 405.0),
        IdleLook(LOADED, 70.0, None, 1980.0, 7001.0),
        IdleLook(LOADED_NO_BOOST, 45.0, None, 210.0, 405.0),
        IdleLook(MEMORY, why_not="control is off"),
    ),
)


def test_a_year_costs_power_times_hours_and_a_suggestion_says_what_it_saved_here() -> None:
    load = Load(hours_per_year=1000, boards=2, price_per_kwh=0.5, carbon_g_per_kwh=400)
    assert as_json(year_of(50.0, load)) == {"kwh": 100.0, "money": 50.0, "co2_kg": 40.0}
    boost, memory = suggestions(STUDY)[1:]
    assert boost.saves_w == 25.0
    assert math.isnan(memory.saves_w)
    text = str(describe_idle(STUDY, load))
    assert "50 W more than bare, 100 kWh, 50 EUR in 1000 idle hours" in text
    assert "nothing was set" in text


def test_the_json_of_a_study_has_null_for_what_is_not_known() -> None:
    document = json.loads(json.dumps(as_json(idle_document(STUDY, Load())), allow_nan=False))
    assert [each["power_w"] for each in document["looks"]] == [20.0, 70.0, 45.0, None]
    assert document["looks"][3]["why_not"] == "control is off"
    assert {each["name"] for each in document["suggestions"]} == {each.name for each in suggestions(STUDY)}


def test_the_command_prints_a_table_or_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["idle", "--gpu", "simulated:rtx5090", "--memory-clocks", "--seconds", "2", "--idle-hours", "100"]
    assert main([*words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["source"] == "simulated"
    [bare] = [each for each in document["looks"] if each["condition"] == "bare"]
    assert bare["year"]["kwh"] == pytest.approx(bare["power_w"] * 100 / 1000)
    assert main(words) == 0
    assert "simulated" in capsys.readouterr().out
    assert main(["idle", "--gpu", "simulated:rtx5090", "--with", "an 'open quote"]) == 2
    assert "--with" in capsys.readouterr().err


def test_a_board_without_power_is_refused_in_one_line(twin: SimulatedGpu) -> None:
    silent = dataclasses.replace(twin.twin, sensors=dataclasses.replace(twin.twin.sensors, average=None))
    gpu = SimulatedGpu(silent, clock=VirtualClock())
    gpu.channels = tuple(dataclasses.replace(each, unavailable="not here") for each in gpu.channels)
    with pytest.raises(NotSupported, match="reports no power"):
        study_idle(gpu, DeviceGuard(gpu))
