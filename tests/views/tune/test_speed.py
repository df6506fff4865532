"""How fast simulated boards run is chosen in the window, also while a session runs; what they report stays the same."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fixtures.fakes import FakeGpu, working
from fixtures.lab import ready
from pytestqt.qtbot import QtBot

from app.base.paths import resources
from app.engine.results.state import SessionState
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_specification
from app.engine.session.run import run_session
from app.engine.specification.plan import SearchOptions
from app.engine.store.database import Store
from app.sensors.clock import ScaledClock, VirtualClock
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin
from app.views.shared.watched_boards import EXAMPLE_SPEED, SPEEDS
from app.views.shell.window_actions import every_action

Open = Callable[..., Any]
GEMM = resources() / "examples" / "gemm.toml"


def choose(choice: Any, speed: float) -> None:
    """As a user picks an entry of the list."""
    at = choice.findData(speed)
    choice.setCurrentIndex(at)
    choice.activated.emit(at)


def test_another_speed_is_that_of_every_board_that_is_not_real_and_is_said(qtbot: QtBot, open_program: Open) -> None:
    window = ready(qtbot, open_program())
    boards, tune = window.boards, window.panels["tune"]
    boards.watch("simulated:v100")
    qtbot.waitUntil(lambda: len(boards.all) == 2, timeout=10_000)
    assert window.badge.field.text() == "SIMULATED"
    assert tune.speed.isVisibleTo(tune)
    assert [tune.speed.choice.itemText(index) for index in range(tune.speed.choice.count())] == list(SPEEDS.values())
    with qtbot.waitSignal(tune.form.draft_shown, timeout=20_000):
        tune.open(GEMM)
    assert " · simulated · " in tune.header.text()
    choose(tune.speed.choice, 60.0)
    assert [board.gpu.clock.speed for board in boards.all] == [60.0, 60.0]
    assert window.badge.field.text() == "SIMULATED 60×"
    assert " · simulated, 60× · " in tune.header.text()
    boards.watch("simulated:h200")
    qtbot.waitUntil(lambda: len(boards.all) == 3, timeout=10_000)
    assert boards.all[2].gpu.clock.speed == 60.0, "those that are opened later too"
    choose(tune.speed.choice, 1.0)
    assert window.badge.field.text() == "SIMULATED"


def test_it_can_be_chosen_in_the_menu_too(qtbot: QtBot, open_program: Open) -> None:
    window = ready(qtbot, open_program())
    actions = {action.text(): action for path, action in every_action(window.menuBar()) if "Speed" in path}
    assert list(actions) == list(SPEEDS.values()), "so the palette finds them"
    assert actions["Real time"].isChecked()
    actions["10×"].trigger()
    assert actions["10×"].isChecked()
    assert window.board.gpu.clock.speed == 10.0
    assert window.panels["tune"].speed.choice.currentText() == "10×"


def test_a_real_board_has_its_own_pace(qtbot: QtBot, open_program: Open) -> None:
    window = ready(qtbot, open_program(FakeGpu(working, source="nvml")))
    assert not window.panels["tune"].speed.isVisibleTo(window.panels["tune"])
    window.boards.set_speed(60.0)
    assert window.board.gpu.clock.speed == 1.0
    assert window.badge.field.text() == "LIVE"


def test_what_is_started_at_once_as_an_example_takes_well_under_a_minute(qtbot: QtBot, open_program: Open) -> None:
    window = ready(qtbot, open_program())
    tune = window.panels["tune"]
    window.open_specification(GEMM, start=True)
    assert window.board.gpu.clock.speed == EXAMPLE_SPEED
    qtbot.waitUntil(lambda: tune.state is SessionState.RUNNING, timeout=20_000)
    assert "simulated, 10×" in tune.header.text()
    choose(tune.speed.choice, 60.0)  # while it runs
    qtbot.waitUntil(lambda: tune.state is SessionState.DONE, timeout=120_000)
    table, plan = window.result.table, window.result.plan
    assert table is not None
    assert plan is not None
    assert 20 <= np.count_nonzero(~table.timed()) <= 250
    assert window.result.caption.endswith("· simulated"), "where the figures come from is as before"


def test_a_speed_that_was_chosen_is_kept_when_an_example_is_started(qtbot: QtBot, open_program: Open) -> None:
    window = ready(qtbot, open_program())
    window.boards.set_speed(60.0)
    window.open_specification(GEMM, start=True)
    assert window.board.gpu.clock.speed == 60.0


@pytest.mark.parametrize("speed", [60.0])
def test_times_and_joules_are_those_of_the_simulated_clock_at_any_speed(speed: float) -> None:
    def measured(clock: Any) -> dict[int, tuple[float, float]]:
        gpu = SimulatedGpu(load_twin("a100"), seed=1, clock=clock)
        plan = plan_specification(
            load_specification(GEMM), gpu, SearchOptions(max_evaluations=12, strategy="random_sample")
        )
        with Store() as store:
            result = run_session(plan, store, lambda _event: None, threading.Event())
        table = result.table
        figures = zip(table.values("time_s").tolist(), table.values("energy_j").tolist(), strict=True)
        return dict(zip(table.rows().tolist(), figures, strict=True))

    exact, fast = measured(VirtualClock()), measured(ScaledClock(speed))
    assert exact.keys() == fast.keys()
    for row, (time_s, energy_j) in exact.items():
        assert math.isfinite(time_s) == math.isfinite(fast[row][0])
        if math.isfinite(time_s):
            assert fast[row] == pytest.approx((time_s, energy_j), rel=0.05)
