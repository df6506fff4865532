"""A device without sensors in the window, and what a start would run: shown before it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lab import ready
from pytestqt.qtbot import QtBot

from app.paths import resources
from app.sensors.select import open_gpu


def test_what_a_start_runs_is_shown_before_it(qtbot: QtBot, open_program: Callable[..., Any]) -> None:
    window = ready(qtbot, open_program(open_gpu("host")))
    assert window.header.badge.field.text() == "TIME ONLY"
    tune = window.panels["tune"]
    window.open_specification(resources() / "examples" / "polynomial_generated.toml")
    qtbot.waitUntil(lambda: tune.draft is not None, timeout=30_000)
    shown = tune.summary.details.text()
    for command in ("../kernels/polynomial_source.py {degree} {scheme}", "../kernels/polynomial_check.py {y} {x}"):
        assert command in shown
    assert "no energy: this device reports none" in shown
    assert not window.bridge.activity.busy, "nothing was started"
