"""The engine thread with several boards: a setting belongs to the board it was made on, and goes with it."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from fixtures.engine_fakes import FakeRunner, Listener, grid, plan

from app.engine.control.guard import DeviceGuard
from app.engine.results.state import SessionState
from app.engine.session.engine_thread import Tuner
from app.engine.session.events import (
    Allow,
    Apply,
    BoardReleased,
    Confirm,
    ControlChanged,
    EngineFault,
    Pause,
    Release,
    SessionChanged,
    SessionStarted,
    SettingApplied,
    Start,
)
from app.engine.store.database import Store
from app.sensors.clock import VirtualClock
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin


class TwoBoards:
    """The engine thread with two simulated boards that it may set."""

    def __init__(self, store: Store) -> None:
        self.heard = Listener()
        self.gpus = {
            gpu.info.uuid: gpu
            for gpu in (SimulatedGpu(load_twin(name), clock=VirtualClock()) for name in ("a100", "h200"))
        }
        self.a100, self.h200 = self.gpus
        guards = {uuid: DeviceGuard(gpu) for uuid, gpu in self.gpus.items()}
        self.tuner = Tuner(store, self.heard, guard_of=guards.__getitem__)
        self.tuner.start()

    def clock_mhz(self, uuid: str) -> float | None:
        return DeviceGuard(self.gpus[uuid]).watch().observed["graphics_clock_mhz"]


@pytest.fixture
def two() -> Iterator[TwoBoards]:
    with Store() as store:
        made = TwoBoards(store)
        yield made
        made.tuner.stop()
        made.tuner.join(10)


def test_settings_belong_to_the_board_they_were_made_on_and_go_with_it(two: TwoBoards) -> None:
    for uuid in two.gpus:
        two.tuner.submit(Apply(uuid, {"graphics_clock_mhz": 1005}))
        two.heard.wait_for(SettingApplied, lambda e, uuid=uuid: e.board == uuid)
    two.tuner.submit(Release(two.a100))
    two.heard.wait_for(BoardReleased, lambda e: e.board == two.a100)
    assert two.clock_mhz(two.a100) != 1005
    assert two.clock_mhz(two.h200) == 1005
    two.tuner.stop()
    two.tuner.join(10)
    assert two.clock_mhz(two.h200) != 1005
    assert two.heard.of(EngineFault) == []


def test_what_one_board_waits_for_is_confirmed_there_alone(two: TwoBoards) -> None:
    for uuid in two.gpus:
        two.tuner.submit(Apply(uuid, {"graphics_clock_mhz": 1005}, confirm_s=60.0))
        two.heard.wait_for(SettingApplied, lambda e, uuid=uuid: e.board == uuid)
    two.tuner.submit(Confirm(two.h200, keep=False))
    two.heard.wait_for(SettingApplied, lambda e: e.board == two.h200 and e.confirm_s is None)
    assert two.clock_mhz(two.h200) != 1005
    assert two.clock_mhz(two.a100) == 1005


def test_a_board_on_which_a_session_runs_is_not_released_but_another_one_is(
    two: TwoBoards,
) -> None:
    space = grid()
    runner = FakeRunner(space, before=lambda _: threading.Event().wait(0.001) and None)
    two.tuner.submit(Start(plan(space, runner, origin={"gpu": two.a100})))
    two.heard.wait_for(SessionStarted)
    two.tuner.submit(Pause())
    two.heard.wait_for(SessionChanged, lambda e: e.progress.state is SessionState.PAUSED)
    two.tuner.submit(Release(two.a100))
    two.tuner.submit(Release(two.h200))
    two.heard.wait_for(BoardReleased)
    assert [event.board for event in two.heard.of(BoardReleased)] == [two.h200]
    assert [event.what for event in two.heard.of(EngineFault)] == ["a session is running"]


def test_what_waits_on_any_board_is_put_back_and_said_before_a_session_begins(two: TwoBoards) -> None:
    for uuid in two.gpus:
        two.tuner.submit(Apply(uuid, {"graphics_clock_mhz": 1005}, confirm_s=60.0))
        two.heard.wait_for(SettingApplied, lambda e, uuid=uuid: e.board == uuid)
    two.tuner.submit(Start(plan(grid(), FakeRunner(grid()), origin={"gpu": two.a100})))
    two.heard.wait_for(SessionStarted)
    put_back = [e for e in two.heard.of(SettingApplied) if e.confirm_s is None]
    assert [e.board for e in put_back] == [two.a100, two.h200]
    assert all("as they were before" in e.message for e in put_back)
    assert 1005 not in (two.clock_mhz(two.a100), two.clock_mhz(two.h200))


def test_a_board_that_is_let_go_of_is_read_only_until_it_is_asked_for_again(two: TwoBoards) -> None:
    two.tuner.submit(Allow(two.h200))
    two.heard.wait_for(ControlChanged, lambda e: e.allowed)
    two.tuner.submit(Release(two.h200))
    two.heard.wait_for(BoardReleased)
    assert two.heard.of(ControlChanged)[-1] == ControlChanged(two.h200, False, None)
