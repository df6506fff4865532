"""A device without sensors in the window, and what a start would run: shown before it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest
from fixtures.lab import ready
from pytestqt.qtbot import QtBot

from app.base.errors import LockedOutside
from app.base.paths import resources
from app.engine.control.guard import DeviceGuard
from app.sensors.select import open_gpu

pytestmark = pytest.mark.skipif(not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="needs a C compiler")


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


def test_what_the_board_cannot_run_is_set_up_where_it_runs_by_one_press(
    qtbot: QtBot, open_program: Callable[..., Any]
) -> None:
    window = ready(qtbot, open_program())
    tune = window.panels["tune"]
    window.open_specification(resources() / "examples" / "polynomial_generated.toml")
    qtbot.waitUntil(lambda: not tune.summary.elsewhere.isHidden(), timeout=30_000)
    assert "does not run kernels in C" in tune.summary.space.text()
    assert tune.summary.elsewhere.text() == "Set it up on this computer's processor"
    assert not window.banner.text, "what can be pressed is no fault"
    simulated = window.board
    tune.summary.elsewhere.click()
    qtbot.waitUntil(lambda: tune.draft is not None, timeout=30_000)
    assert window.board.gpu.info.source == "unmetered"
    assert "this computer" not in tune.summary.space.text()
    assert tune.summary.elsewhere.isHidden()
    assert simulated in window.boards.all, "and the board is watched as before"


def test_what_was_to_be_started_starts_where_it_runs_only_when_that_is_pressed(
    qtbot: QtBot, open_program: Callable[..., Any]
) -> None:
    window = ready(qtbot, open_program())
    tune = window.panels["tune"]
    home = window.board
    window.open_specification(resources() / "examples" / "polynomial_generated.toml", start=True)
    qtbot.waitUntil(lambda: not tune.summary.elsewhere.isHidden(), timeout=30_000)
    assert tune.summary.elsewhere.text() == "Run it on this computer's processor"
    window.boards.show("host")
    qtbot.waitUntil(lambda: tune.draft is not None, timeout=30_000)
    assert not window.bridge.activity.busy, "it was only looked at"
    window.boards.show(home.uuid)
    qtbot.waitUntil(lambda: not tune.summary.elsewhere.isHidden(), timeout=30_000)
    assert tune.summary.elsewhere.text() == "Set it up on this computer's processor"


def test_a_clock_that_another_tool_locked_is_a_question_before_a_session_is_set_up(
    qtbot: QtBot, open_program: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def seen(guard: DeviceGuard, names: Collection[str]) -> None:
        if "graphics_clock_mhz" in names and not guard.over_locks:
            raise LockedOutside("the graphics clock stands at 1200 MHz as if locked", guard.gpu.info.label)

    monkeypatch.setattr(DeviceGuard, "require_unlocked", seen)
    window = ready(qtbot, open_program())
    tune = window.panels["tune"]
    window.open_specification(resources() / "examples" / "gemm.toml")
    qtbot.waitUntil(lambda: not tune.summary.elsewhere.isHidden(), timeout=30_000)
    assert "stands at 1200 MHz as if locked" in tune.summary.space.text()
    assert tune.summary.elsewhere.text() == "Set it up on this board all the same, and leave it unlocked"
    assert not tune.start.isEnabled()
    tune.summary.elsewhere.click()
    qtbot.waitUntil(lambda: tune.draft is not None, timeout=30_000)
    assert "graphics_clock_mhz" in tune.draft.plan.space.names
    assert window.board.guard.over_locks
    assert tune.summary.elsewhere.isHidden()


def test_a_file_that_is_wrong_on_any_board_offers_no_other(
    qtbot: QtBot, open_program: Callable[..., Any], tmp_path: Path
) -> None:
    window = ready(qtbot, open_program())
    tune = window.panels["tune"]
    path = tmp_path / "wrong.toml"
    text = (resources() / "examples" / "polynomial_generated.toml").read_text()
    path.write_text(text.replace("[parameters]", 'restrictions = ["no such thing"]\n[parameters]'))
    window.open_specification(path)
    qtbot.waitUntil(lambda: bool(window.banner.text), timeout=30_000)
    assert tune.summary.elsewhere.isHidden()
