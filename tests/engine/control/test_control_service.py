"""Settings by hand through the engine's thread, on a real board's stand-in: allowed, confirmed or not, taken back."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from boards import StandIn

from app.engine.control.device_log import Change, changes_of, keep, log_file
from app.engine.control.guard import DeviceGuard
from app.engine.control.helper import record
from app.engine.control.helper.record import started
from app.engine.control.left_over import left_over
from app.engine.session.engine_thread import Tuner
from app.engine.session.events import (
    Allow,
    Apply,
    Confirm,
    ControlChanged,
    DeviceChanged,
    EngineFault,
    Forbid,
    SettingApplied,
)
from app.engine.store.database import Store
from app.sensors.nvml.gpu import NvmlGpu

Boards = Callable[..., StandIn]


class Window:
    """What a window does with the engine, and what it hears."""

    def __init__(self, gpu: NvmlGpu, folder: Path) -> None:
        self._heard: list[Any] = []
        self._new = threading.Condition()
        self._store = Store(folder / "sessions.sqlite")
        guard = DeviceGuard(gpu, on_change=lambda change: self._hear(DeviceChanged(change)))
        self.board = gpu.info.uuid
        self.tuner = Tuner(self._store, self._hear, guard_of=lambda _: guard)
        self.tuner.start()

    def _hear(self, event: Any) -> None:
        with self._new:
            self._heard.append(event)
            self._new.notify_all()

    def ask(self, command: Any, kind: type[Any]) -> Any:
        """Submit, and wait for the first event of that kind after it."""
        with self._new:
            begun = len(self._heard)
        self.tuner.submit(command)
        return self.wait(kind, begun)

    def wait(self, kind: type[Any], begun: int = 0) -> Any:
        with self._new:
            assert self._new.wait_for(lambda: any(isinstance(e, kind) for e in self._heard[begun:]), 20.0), self._heard
            return next(event for event in self._heard[begun:] if isinstance(event, kind))

    def count(self) -> int:
        with self._new:
            return len(self._heard)

    def of(self, kind: type[Any]) -> list[Any]:
        with self._new:
            return [event for event in self._heard if isinstance(event, kind)]

    def close(self) -> None:
        self.tuner.stop()
        self.tuner.join(20.0)
        self._store.close()


@pytest.fixture
def window(opened: Callable[..., NvmlGpu], tmp_path: Path) -> Iterator[Callable[[], Window]]:
    made: list[Window] = []

    def make() -> Window:
        made.append(Window(opened(), tmp_path))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_control_is_off_until_it_is_switched_on_and_off_again(
    with_rights: Boards, window: Callable[[], Window]
) -> None:
    stand_in = with_rights("h200")
    before = stand_in.settings()
    one = window()
    refused = one.ask(Apply(one.board, {"graphics_clock_mhz": 1200}), EngineFault)
    assert "only looked at" in refused.what
    on = one.ask(Allow(one.board), ControlChanged)
    assert on.allowed
    found = left_over(stand_in.uuids[0])
    assert found is None  # nothing is set yet
    assert any("unlock" in note for note in on.notes)
    stand_in.work(30.0)
    applied = one.ask(Apply(one.board, {"graphics_clock_mhz": 1200, "power_limit_w": 300.0}), SettingApplied)
    assert applied.applied == {"graphics_clock_mhz": 1200, "power_limit_w": 300}
    assert applied.prior == {"graphics_clock_mhz": None, "power_limit_w": 650}
    assert applied.obeyed, applied.message
    assert applied.confirm_s is None
    found = left_over(stand_in.uuids[0])
    assert found is not None
    assert found.held_by == on.holder
    off = one.ask(Forbid(one.board), ControlChanged)
    assert (off.allowed, off.holder) == (False, None)
    assert stand_in.settings() == before
    changes = [event.change for event in one.of(DeviceChanged)]
    assert [(change.what, change.asked) for change in changes] == [
        ("power limit, graphics clock", "300 W, 1200 MHz"),
        ("power limit, graphics clock", "300 W, 1200 MHz"),  # once more, with what was observed
        ("power limit, graphics clock", "as before"),
    ]
    assert changes[1].same_as(changes[0])
    assert [change.observed.partition(",")[0] for change in changes] == ["", "300 W", ""]
    assert {change.outcome for change in changes} == {"done"}
    assert all(change.by_hand for change in changes)


def test_what_is_not_confirmed_in_time_returns(with_rights: Boards, window: Callable[[], Window]) -> None:
    stand_in = with_rights("h200")
    before = stand_in.settings()
    one = window()
    one.ask(Allow(one.board), ControlChanged)
    applied = one.ask(Apply(one.board, {"graphics_clock_mhz": 1200}, confirm_s=1.5), SettingApplied)
    assert 0.0 < applied.confirm_s < 1.5
    lapsed = one.wait(SettingApplied, one.count())
    assert lapsed.applied == {}
    assert "not confirmed in time" in lapsed.message
    assert stand_in.settings() == before


def test_a_workload_power_profile_by_hand_waits_to_be_confirmed_like_a_clock(
    with_rights: Boards, window: Callable[[], Window]
) -> None:
    stand_in = with_rights("b200")
    before = stand_in.settings()
    one = window()
    one.ask(Allow(one.board), ControlChanged)
    applied = one.ask(Apply(one.board, {"workload_power_profile": 6.0}, confirm_s=1.5), SettingApplied)
    assert applied.applied == {"workload_power_profile": 6.0}
    assert applied.prior == {"workload_power_profile": 5.0}
    assert stand_in.settings()["requested"] == 1 << 6
    lapsed = one.wait(SettingApplied, one.count())
    assert "not confirmed in time" in lapsed.message
    assert stand_in.settings() == before
    one.ask(Apply(one.board, {"workload_power_profile": -1.0}, confirm_s=60.0), SettingApplied)
    assert stand_in.settings()["requested"] == 0
    one.ask(Confirm(one.board, keep=False), SettingApplied)
    assert stand_in.settings() == before


def test_what_is_confirmed_stays_until_it_is_restored(with_rights: Boards, window: Callable[[], Window]) -> None:
    stand_in = with_rights("h200")
    before = stand_in.settings()
    one = window()
    one.ask(Allow(one.board), ControlChanged)
    one.ask(Apply(one.board, {"graphics_clock_mhz": 1200}, confirm_s=60.0), SettingApplied)
    confirmed = one.ask(Confirm(one.board), SettingApplied)
    assert confirmed.confirm_s is None
    assert confirmed.message == "graphics clock 1200 MHz: kept until everything is put back"
    assert stand_in.settings()["lock"] == (1200, 1200)
    one.close()
    assert stand_in.settings()["lock"] == (1200, 1200)
    again = window()
    # read-only as it is: putting back is always allowed
    restored = again.ask(Apply(again.board, reset=True), SettingApplied)
    assert restored.applied == {}
    assert stand_in.settings() == before


def test_what_is_declined_goes_back_to_what_was_confirmed_before(
    with_rights: Boards, window: Callable[[], Window]
) -> None:
    stand_in = with_rights("h200")
    one = window()
    one.ask(Allow(one.board), ControlChanged)
    one.ask(Apply(one.board, {"graphics_clock_mhz": 1200}, confirm_s=60.0), SettingApplied)
    one.ask(Confirm(one.board), SettingApplied)
    one.ask(Apply(one.board, {"graphics_clock_mhz": 900}, confirm_s=60.0), SettingApplied)
    declined = one.ask(Confirm(one.board, keep=False), SettingApplied)
    assert (declined.applied, declined.confirm_s) == ({}, None)
    assert stand_in.settings()["lock"] == (1200, 1200)


def test_what_cannot_be_confirmed_is_back_and_the_window_shows_both(
    by_sudo: Boards, window: Callable[[], Window]
) -> None:
    stand_in = by_sudo("h200")
    before = stand_in.settings()
    one = window()
    one.ask(Allow(one.board), ControlChanged)
    one.ask(Apply(one.board, {"graphics_clock_mhz": 1200}, confirm_s=60.0), SettingApplied)
    Path(record.FOLDER, f"{stand_in.uuids[0]}.new").mkdir()  # where the helper would write
    begun = one.count()
    assert "not confirmed" in one.ask(Confirm(one.board), EngineFault).what
    shown = one.wait(SettingApplied, begun)
    assert (shown.applied, shown.confirm_s) == ({}, None)
    assert stand_in.settings() == before


@pytest.mark.usefixtures("as_root")
def test_an_answer_that_comes_after_the_helper_s_end_says_so(with_rights: Boards, window: Callable[[], Window]) -> None:
    stand_in = with_rights("h200")
    before = stand_in.settings()
    one = window()
    holder = one.ask(Allow(one.board), ControlChanged).holder
    one.ask(Apply(one.board, {"graphics_clock_mhz": 1200}, confirm_s=60.0), SettingApplied)
    os.kill(holder, signal.SIGTERM)
    deadline = time.monotonic() + 20.0
    while started(holder) is not None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert "has ended" in one.ask(Confirm(one.board), EngineFault).what
    assert stand_in.settings() == before
    again = one.ask(Apply(one.board, {"graphics_clock_mhz": 900}, confirm_s=60.0), SettingApplied)
    assert (again.applied, again.prior) == ({"graphics_clock_mhz": 900}, {"graphics_clock_mhz": None})


def test_nobody_is_asked_for_a_password_to_put_back_nothing(
    boards: Boards, sudo: Callable[..., Path], window: Callable[[], Window]
) -> None:
    asked = sudo(boards("h200"), free=False, granted=True)
    one = window()
    restored = one.ask(Apply(one.board, reset=True), SettingApplied)
    assert "as they were before" in restored.message
    assert asked.read_text() == ""


def test_closing_puts_back(with_rights: Boards, window: Callable[[], Window]) -> None:
    stand_in = with_rights("h200")
    before = stand_in.settings()
    one = window()
    one.ask(Allow(one.board), ControlChanged)
    one.ask(Apply(one.board, {"power_limit_w": 300.0}, confirm_s=60.0), SettingApplied)
    one.close()
    assert stand_in.settings() == before


def test_without_rights_the_switch_stays_off(
    boards: Boards, sudo: Callable[..., Path], window: Callable[[], Window]
) -> None:
    stand_in = boards("h200")
    sudo(stand_in, free=False, granted=False)
    one = window()
    assert not one.ask(Allow(one.board), ControlChanged).allowed
    fault = one.wait(EngineFault)
    assert "rights of root" in fault.what


def test_read_only_wins_over_the_switch(
    with_rights: Boards, window: Callable[[], Window], monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in = with_rights("h200")
    first = window()
    first.ask(Allow(first.board), ControlChanged)
    first.ask(Apply(first.board, {"graphics_clock_mhz": 1200}), SettingApplied)
    first.ask(Confirm(first.board), SettingApplied)
    first.close()
    calls = stand_in.calls()
    monkeypatch.setenv("WATTRIDGE_READ_ONLY", "1")
    one = window()
    assert not one.ask(Allow(one.board), ControlChanged).allowed
    assert "WATTRIDGE_READ_ONLY" in one.wait(EngineFault).what
    assert "WATTRIDGE_READ_ONLY" in one.ask(Apply(one.board, reset=True), EngineFault).what
    assert stand_in.calls() == calls


def test_the_log_keeps_its_newer_half() -> None:
    for number in range(3):
        keep(Change(float(number), "Some board", "x" * 500_000, "by hand", "done", "GPU-1"))
    keep(Change(3.0, "Some board", "graphics clock 1200 MHz", "by hand, alice", "done", "GPU-1"))
    keep(Change(3.0, "Some board", "graphics clock", "by hand, alice", "done", "GPU-2"))
    lines = log_file().read_text().splitlines()[:-1]
    assert len(lines) < 4
    assert '"graphics clock 1200 MHz"' in lines[-1]
    assert (
        "Some board: graphics clock 1200 MHz (by hand, alice): done"
        in Change(3.0, "Some board", "graphics clock 1200 MHz", "by hand, alice", "done", "GPU-1").line
    )


def test_of_a_change_the_log_shows_the_line_that_knows_what_was_observed() -> None:
    asked = Change(3.0, "Some board", "graphics clock", "by hand, alice", "done", "GPU-1", "1200 MHz")
    seen = replace(asked, observed="900 MHz", outcome="not obeyed")
    swept = Change(4.0, "Some board", "graphics clock", "session, alice", "done", "GPU-1", "600 MHz")
    for change in (asked, seen, replace(asked, uuid="GPU-2"), swept):
        keep(change)
    with log_file().open("a") as file:
        file.write('{"time_s": 1}\n[1]\nnot a line\n')
        file.write('{"time_s": 1e300, "gpu": "", "what": "", "by": "", "outcome": "", "uuid": "GPU-1"}\n')
        file.write('{"time_s": 1, "gpu": "", "what": 7, "by": "", "outcome": "", "uuid": "GPU-1"}\n')
    assert changes_of("GPU-1", 10) == [seen, swept]
    assert changes_of("GPU-1", 1) == [swept]
    assert [change.by_hand for change in (seen, swept)] == [True, False]
