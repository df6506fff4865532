"""The only door to a setting: it opens for simulated boards, and leaves everything as it found it."""

from __future__ import annotations

import pytest
from fixtures.fake_board import HEAVY, FakeBoard

from app.base.errors import PermissionRefused
from app.engine.control.guard import DeviceGuard
from app.sensors.gpu import NotSupported


def test_leaving_restores_what_was_there_before() -> None:
    board = FakeBoard()
    board.lock_graphics_clock(900)
    with DeviceGuard(board) as guard:
        guard.apply(graphics_clock_mhz=1200, power_limit_w=200.0)
        guard.apply(graphics_clock_mhz=600)
        assert board.clock_mhz == 600
        assert guard.applied == {"power_limit_w": 200.0, "graphics_clock_mhz": 600}
        assert guard.prior == {"power_limit_w": 250.0, "graphics_clock_mhz": 900}
    assert board.settings_made[-2:] == [("graphics_clock_mhz", 900), ("power_limit_w", 250.0)]
    assert guard.applied == {}


def test_a_clock_that_was_not_locked_is_unlocked_again_also_after_an_error() -> None:
    board = FakeBoard()

    def fail() -> None:
        with DeviceGuard(board) as guard:
            guard.apply(graphics_clock_mhz=600, memory_clock_mhz=800)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert board.settings_made[-2:] == [("graphics_clock_mhz", None), ("memory_clock_mhz", None)]


def test_a_setting_in_force_is_not_made_again() -> None:
    board = FakeBoard()
    guard = DeviceGuard(board)
    for _ in range(3):
        guard.apply(graphics_clock_mhz=600)
    assert board.settings_made == [("graphics_clock_mhz", 600)]


def test_a_nested_use_ends_where_it_began() -> None:
    board = FakeBoard()
    outer = DeviceGuard(board)
    outer.apply(graphics_clock_mhz=900)
    with outer.nested() as inner:
        inner.apply(graphics_clock_mhz=600, power_limit_w=150.0)
    assert board.clock_mhz == 900
    assert outer.applied == {"graphics_clock_mhz": 900}
    outer.restore()
    assert board.settings_made[-1] == ("graphics_clock_mhz", None)


def test_settings_that_are_held_alone_put_back_the_others_that_were_made_here() -> None:
    board = FakeBoard()
    board.lock_memory_clock(800)  # by somebody else
    guard = DeviceGuard(board)
    assert guard.hold(graphics_clock_mhz=600, power_limit_w=200.0)
    assert guard.hold(power_limit_w=200.0)
    made = [("power_limit_w", 200.0), ("graphics_clock_mhz", 600), ("graphics_clock_mhz", None)]
    assert board.settings_made[1:] == made
    assert guard.applied == {"power_limit_w": 200.0}
    assert not guard.hold(power_limit_w=200.0), "nothing changes"
    assert guard.hold()
    assert board.settings_made[4:] == [("power_limit_w", 250.0)]
    assert (guard.applied, guard.prior) == ({}, {})
    assert not guard.hold()
    guard.restore()
    assert len(board.settings_made) == 5, "nothing is left to be put back"
    assert ("memory_clock_mhz", None) not in board.settings_made


def test_nothing_that_was_not_set_here_is_reset_where_nothing_is_held() -> None:
    board = FakeBoard()
    board.lock_graphics_clock(900)
    with DeviceGuard(board) as guard:
        assert not guard.hold()
        guard.hold(graphics_clock_mhz=1200)
        guard.hold()
        assert board.clock_mhz == 900, "as it was found"
    assert board.settings_made == [("graphics_clock_mhz", clock) for clock in (900, 1200, 900)]


def test_within_another_guard_the_values_of_the_outer_one_are_held_again() -> None:
    board = FakeBoard()
    outer = DeviceGuard(board)
    outer.apply(graphics_clock_mhz=900)
    with outer.nested() as inner:
        inner.hold(graphics_clock_mhz=600, power_limit_w=150.0)
        assert inner.hold()
        assert board.clock_mhz == 900
        assert inner.applied == {"graphics_clock_mhz": 900}
        assert board.settings_made[-1] == ("graphics_clock_mhz", 900)
        assert ("power_limit_w", 250.0) in board.settings_made
        assert not inner.hold()
    assert outer.applied == {"graphics_clock_mhz": 900}
    outer.restore()
    assert board.settings_made[-1] == ("graphics_clock_mhz", None)


def test_watching_shows_whether_the_board_obeys() -> None:
    board, deaf = FakeBoard(), FakeBoard(obeys=False)
    for each in (board, deaf):
        DeviceGuard(each)
    guard = DeviceGuard(board)
    guard.apply(graphics_clock_mhz=600)
    seen = guard.watch()
    assert (seen.obeyed, seen.observed["graphics_clock_mhz"]) == (True, 600)
    ignored = DeviceGuard(deaf)
    ignored.apply(graphics_clock_mhz=600)
    seen = ignored.watch()
    assert not seen.obeyed
    assert "1500 MHz instead of 600" in seen.message


def test_a_clock_held_down_by_a_cap_still_counts_as_obeyed() -> None:
    board = FakeBoard(cap_clock_mhz=(1000.0,))
    guard = DeviceGuard(board)
    guard.apply(graphics_clock_mhz=1400)
    board.begin(HEAVY)
    seen = guard.watch()
    board.end()
    assert seen.obeyed
    assert "power cap" in seen.message


def test_real_boards_are_refused_unless_control_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    board = FakeBoard(source="nvml")
    with pytest.raises(PermissionRefused) as refused:
        DeviceGuard(board).apply(graphics_clock_mhz=600)
    assert "--allow-control" in refused.value.remedy
    assert not DeviceGuard(board).allowed
    assert DeviceGuard(board, allow_control=True).allowed
    monkeypatch.setenv("WATTRIDGE_READ_ONLY", "1")
    assert not DeviceGuard(board, allow_control=True).allowed
    with pytest.raises(PermissionRefused, match="WATTRIDGE_READ_ONLY"):
        DeviceGuard(board, allow_control=True).apply(power_limit_w=200.0)
    assert board.settings_made == []


def test_read_only_does_not_concern_a_simulated_board(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATTRIDGE_READ_ONLY", "1")
    board = FakeBoard()
    DeviceGuard(board).apply(graphics_clock_mhz=600)
    assert board.clock_mhz == 600


def test_a_recording_cannot_be_set() -> None:
    with pytest.raises(NotSupported):
        DeviceGuard(FakeBoard(source="recorded")).apply(graphics_clock_mhz=600)
