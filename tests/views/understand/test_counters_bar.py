"""Hardware counters from the window: the command is shown, the engine takes them, and every view has them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from fixtures.lab import OBJECTIVE, Lab, filled, grid_space, plan_for
from pytestqt.qtbot import QtBot

from app.base.errors import WattridgeError
from app.base.paths import resources
from app.engine.control.guard import DeviceGuard
from app.engine.session import events
from app.engine.session.engine_thread import Tuner
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_specification
from app.engine.session.profiling import Wanted, Which
from app.engine.session.run import run_session
from app.engine.specification.plan import SearchOptions
from app.engine.store.database import Store
from app.sensors.gpu import Gpu
from app.sensors.select import open_gpu
from app.views.understand.analysis_panel import AnalysisPanel, CountersBar


@pytest.fixture
def bar(lab: Lab, qtbot: QtBot) -> CountersBar:
    made = CountersBar(lab.context)
    qtbot.addWidget(made)
    made.show()
    return made


def show(lab: Lab, kind: str = "specification") -> None:
    table = filled(grid_space())
    plan = plan_for(table.space, OBJECTIVE)
    plan = replace(plan, origin={"kind": kind, "gpu": "GPU-1"})
    lab.bridge.deliver(events.SessionStarted(7, plan, table, running=False))


def test_the_command_is_shown_and_the_engine_is_asked_for_the_same(lab: Lab, bar: CountersBar) -> None:
    assert "no session yet" in bar.command.text()
    assert not bar.start.isEnabled()
    show(lab)
    session = lab.context.result.session
    assert bar.command.text() == f"wattridge counters {session} --front"
    assert not bar.count.isVisible()
    bar.which.setCurrentIndex(bar.which.findData(Which.BEST))
    bar.count.setValue(7)
    assert bar.command.text() == f"wattridge counters {session} --best 7"
    bar.start.click()
    assert session is not None
    assert lab.engine.commands[-1] == events.Profile(session, "GPU-1", Wanted(Which.BEST, 7))


def test_nothing_is_profiled_beside_what_is_measured(lab: Lab, bar: CountersBar) -> None:
    show(lab)
    session = lab.context.result.session or 0
    lab.bridge.deliver(events.ProfilingProgress(session, 1, 4))
    assert not bar.start.isEnabled()
    activity = lab.context.bridge.activity
    assert (activity.busy, activity.share, activity.can_pause) == (True, (1, 4), False)
    assert activity.title == f"Hardware counters of session {session}"
    lab.bridge.deliver(events.ProfilingFinished(session, "4 of 4 configurations profiled (simulated)"))
    assert bar.start.isEnabled()
    assert not activity.busy
    assert "4 of 4" in bar.message.text()


def test_a_recording_has_nothing_to_profile(lab: Lab, bar: CountersBar) -> None:
    show(lab, kind="replay")
    assert not bar.start.isEnabled()
    assert "sessions of a specification" in bar.start.toolTip()


def test_the_bar_opens_above_the_figures_and_closes_again(lab: Lab, qtbot: QtBot) -> None:
    panel = AnalysisPanel(lab.context)
    qtbot.addWidget(panel, before_close_func=lambda widget: widget.shutdown())
    panel.show()
    assert not panel.counters.isVisible()
    panel.show_counters.click()
    assert panel.counters.isVisible()
    panel.show_counters.click()
    assert not panel.counters.isVisible()


# --- the engine -------------------------------------------------------------------------------------------------------


@pytest.fixture
def board() -> Iterator[Gpu]:
    gpu = open_gpu("simulated:a100", speed=float("inf"))
    yield gpu
    gpu.close()


def test_the_engine_profiles_and_every_view_gets_the_counters(board: Gpu, own_data_folder: Path) -> None:
    heard: list[events.Event] = []
    done = threading.Event()

    def hear(event: events.Event) -> None:
        heard.append(event)
        if isinstance(event, events.FiguresRestated | events.EngineFault):
            done.set()

    def guard_of(uuid: str) -> DeviceGuard:
        if uuid != board.info.uuid:
            raise WattridgeError("that GPU is not watched", uuid, "watch it")
        return DeviceGuard(board)

    with Store() as store:
        spec = load_specification(resources() / "examples" / "gemm.toml")
        plan = plan_specification(spec, board, SearchOptions(strategy="random_sample", max_evaluations=12, seed=1))
        session = run_session(plan, store, lambda event: None, threading.Event()).session
        engine = Tuner(store, hear, guard_of=guard_of)
        engine.start()
        engine.submit(events.Open(session))
        engine.submit(events.Profile(session, board.info.uuid, Wanted(Which.BEST, 3)))
        assert done.wait(60)
        done.clear()
        engine.submit(events.Profile(session, "GPU-9", Wanted(Which.BEST, 3)))
        assert done.wait(60)
        engine.stop()
        engine.join(10)
    restated = next(event for event in heard if isinstance(event, events.FiguresRestated))
    assert sum("inst_executed" in restated.table.measurement(index).values for index in range(len(restated.table))) == 3
    assert restated.plan.units["inst_executed"] == "inst"
    finished = [event.words for event in heard if isinstance(event, events.ProfilingFinished)]
    assert finished == ["3 of 3 configurations profiled (simulated)", ""]
    assert any("not watched" in event.what for event in heard if isinstance(event, events.EngineFault))
