"""The page of checks in the window, and the first start, which offers it where something is missing or wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fixtures.lab import ready
from PySide6.QtCore import QObject
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from app.engine.doctor import examine as examining
from app.engine.doctor.checks import CHECKS, Check
from app.engine.doctor.finding import Finding, missing, ok, wrong
from app.views.shell import doctor_window as doctor_window
from app.views.shell.doctor_window import FirstLook

Open = Callable[..., Any]


@pytest.fixture
def findings(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Check, Finding]]:
    """What the checks find, in place of this machine's."""
    found: list[tuple[Check, Finding]] = [
        (CHECKS[0], ok("all well")),
        (CHECKS[1], missing("the helper is not installed", "wattridge helper install")),
        (CHECKS[2], wrong("<b>no</b> driver", "reboot")),
    ]

    def examine(*_: Any, **__: Any) -> Iterator[tuple[Check, Finding]]:
        return iter(list(found))

    monkeypatch.setattr(examining, "examine", examine)
    monkeypatch.setattr(doctor_window, "examine", examine)
    return found


def test_help_shows_what_is_wrong_first_with_its_remedy(qtbot: QtBot, open_program: Open, findings: list[Any]) -> None:
    window = ready(qtbot, open_program())
    window.actions_by_name["doctor"].trigger()
    page = window.side_windows.by_name["doctor"]
    qtbot.waitUntil(lambda: bool(page.found))
    assert page.summary.text() == "1 ok, 1 missing, 1 wrong"
    assert [page.table.item(row, 0).text() for row in range(3)] == ["wrong", "missing", "ok"]
    assert page.remedy.text() == "wrong: Optional parts: <b>no</b> driver\n    -> reboot"
    assert page.table.horizontalHeader().stretchLastSection(), "what was found has all the room"
    page.table.setCurrentCell(1, 0)
    assert "wattridge helper install" in page.remedy.text()
    page.copy.click()
    assert len(QGuiApplication.clipboard().text().splitlines()) == 5
    findings[:] = findings[:1]
    page.again.click()
    qtbot.waitUntil(lambda: not page.busy)
    assert page.table.rowCount() == 1


def test_the_first_start_offers_it_once_where_something_is_amiss(
    qtbot: QtBot, open_program: Open, findings: list[Any]
) -> None:
    program = open_program()
    program.offer_doctor()
    window = ready(qtbot, program)
    qtbot.waitUntil(lambda: bool(window.banner.text))
    assert window.banner.text == f"Missing or wrong on this machine: {CHECKS[1].title}, {CHECKS[2].title}"
    window.banner.offered.click()
    assert len(window.side_windows.by_name["doctor"].found) == 3
    first = program.first_look
    program.offer_doctor()
    assert program.first_look is first, "once, ever"


def test_a_first_start_on_a_machine_without_faults_says_nothing(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[bool] = []

    def examine(*_: Any, **__: Any) -> Iterator[tuple[Check, Finding]]:
        looked.append(True)
        return iter([(CHECKS[0], ok("all well"))])

    monkeypatch.setattr(examining, "examine", examine)
    parent = QObject()
    look = FirstLook(parent)
    said: list[str] = []
    look.amiss.connect(lambda what, _: said.append(what))
    look.look()
    qtbot.waitUntil(lambda: bool(looked) and not look.busy)
    assert not said
    look.shutdown()
