"""Undo and redo of what is set up for a session."""

from __future__ import annotations

import threading
from pathlib import Path

from pytestqt.qtbot import QtBot

from app.base.paths import resources
from app.sensors.select import open_gpu
from app.views.tune.draft import draft_of_file
from app.views.tune.session_form import SessionForm


def test_undo_and_redo_of_what_is_set_up(qtbot: QtBot) -> None:
    form = SessionForm()
    qtbot.addWidget(form)
    draft = draft_of_file(resources() / "examples" / "gemm.toml", open_gpu("simulated:a100"), None, threading.Event())
    form.show_draft(draft)
    history, first = form.history, form.state()
    assert not history.can_undo

    form.evaluations.setValue(12)
    form.evaluations.setValue(123)  # as it is typed: one step
    form.strategy.setCurrentIndex(form.strategy.findData("brute_force"))
    brute = form.state()
    form.objective.setCurrentIndex(form.objective.findData("time_s"))
    assert form.direction.currentData() is False, "a time is to be small"
    last = form.state()
    history.undo()
    assert form.state() == brute
    history.undo()
    assert form.state() == {**first, "max_evaluations": 123}
    history.undo()
    assert form.state() == first
    assert not history.can_undo
    for _ in range(3):
        history.redo()
    assert form.state() == last
    history.undo()
    form.seed.setValue(9)
    assert not history.can_redo, "another way was taken"
    assert form.plan().seed == 9

    form.show_draft(draft)
    assert not history.can_undo, "a new draft has a history of its own"
    assert form.state() == first


def test_another_objective_keeps_the_limits_of_the_specification(qtbot: QtBot, tmp_path: Path) -> None:
    text = (resources() / "examples" / "mm.toml").read_text()
    path = tmp_path / "mm.toml"
    path.write_text(f"{text}\n[limits]\n'power_w' = '<= 200'\n")
    form = SessionForm()
    qtbot.addWidget(form)
    form.show_draft(draft_of_file(path, open_gpu("simulated:a100"), None, threading.Event()))
    form.objective.setCurrentIndex(form.objective.findData("time_s"))
    objective = form.plan().objective
    assert objective.goal.name == "time_s"
    assert [str(limit) for limit in objective.limits] == ["power_w <= 200"]
