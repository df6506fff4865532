"""Every field for a number: what is typed and cannot be is refused in words, and becomes no other number."""

from __future__ import annotations

import ast
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures.lab import OBJECTIVE, Lab, grid_space, plan_for
from PySide6.QtCore import QLocale, Qt
from PySide6.QtWidgets import QDoubleSpinBox, QSpinBox, QToolTip, QWidget
from pytestqt.qtbot import QtBot

import app.views
from app.base.paths import resources
from app.sensors.select import open_gpu
from app.views.inspector.chooser_bar import ChooserBar
from app.views.inspector.load_form import LoadForm
from app.views.library.log_window import LogWindow
from app.views.shared.settings import Settings
from app.views.shared.watched_boards import WatchedBoard
from app.views.shared.widgets import ShortNumberBox, WholeBox
from app.views.tune.add_to_queue import VariantsWindow
from app.views.tune.draft import draft_of_file
from app.views.tune.runs_on import BoardsDialog
from app.views.tune.session_form import SessionForm
from app.views.understand.analysis_panel import CountersBar
from app.views.watch.alarm_window import AlarmWindow
from app.views.watch.monitor_panel import LanesWindow


def session_form() -> SessionForm:
    """The form of Tune, with an example whose strategy has whole and broken numbers as options."""
    form = SessionForm()
    path = resources() / "examples" / "gemm.toml"
    form.show_draft(draft_of_file(path, open_gpu("simulated:a100"), None, threading.Event()))
    return form


FORMS: dict[str, Callable[[], QWidget]] = {
    "the form of Tune": session_form,
    "several runs": lambda: VariantsWindow(Lab().context, lambda: None, lambda: plan_for(grid_space(), OBJECTIVE)),
    "the chooser": lambda: ChooserBar(Lab().context, Settings()),
    "a load": lambda: LoadForm(Settings()),
    "a log": LogWindow,
    "lanes": LanesWindow,
    "boards of this computer": lambda: BoardsDialog([("simulated:a100", "A100")], 1.0),
    "hardware counters": lambda: CountersBar(Lab().context),
}


@pytest.fixture
def board() -> Iterator[WatchedBoard]:
    made = WatchedBoard("test", open_gpu("simulated:a100"))
    yield made
    made.close()


def numbers_in(form: QWidget) -> list[Any]:
    return [*form.findChildren(QSpinBox), *form.findChildren(QDoubleSpinBox)]


def ancestors(of: QWidget) -> Iterator[QWidget]:
    while (around := of.parentWidget()) is not None:
        yield (of := around)


def text_of(box: Any, value: float) -> str:
    special = box.specialValueText() if value == box.minimum() else ""
    return str(special or f"{box.prefix()}{box.textFromValue(value)}{box.suffix()}")


def check_every_number(form: QWidget, qtbot: QtBot) -> None:
    """Type a number of one digit more than the largest into each field, as an impatient user does."""
    boxes = numbers_in(form)
    assert boxes
    for box in boxes:
        for ancestor in (box, *ancestors(box)):
            ancestor.setEnabled(True)
        before, refused = box.value(), []
        box.refused.connect(refused.append)
        beyond = "9" * (len(str(int(box.maximum()))) + 1)
        box.selectAll()
        qtbot.keyClicks(box, beyond)
        typed = box.lineEdit().text().removesuffix(box.suffix()).replace(box.locale().groupSeparator(), "")
        assert typed == beyond, "no digit was dropped"
        assert box.value() == before, "nor is some of the digits the value"
        qtbot.keyClick(box, Qt.Key.Key_Return)
        assert (box.value(), box.text()) == (before, text_of(box, before))
        (words,) = refused
        assert words.startswith(beyond), words
        assert words.endswith(" stays"), words


@pytest.mark.parametrize("name", FORMS)
def test_a_number_beyond_the_range_is_refused_in_words_wherever_one_is_typed(qtbot: QtBot, name: str) -> None:
    form = FORMS[name]()
    qtbot.addWidget(form)
    check_every_number(form, qtbot)
    getattr(form, "shutdown", lambda: None)()


def test_so_is_one_of_an_alarm(qtbot: QtBot, board: WatchedBoard) -> None:
    form = AlarmWindow(board.alarms, board.gpu)
    qtbot.addWidget(form)
    check_every_number(form, qtbot)


def test_no_field_of_the_window_is_another_one() -> None:
    """Each place is of the classes that refuse; the forms above are those that have them."""
    root = Path(app.views.__file__).parent
    used = {
        (path.relative_to(root).as_posix(), node.id)
        for path in root.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Name) and node.id in ("QSpinBox", "QDoubleSpinBox")
    }
    assert used == {("shared/widgets.py", "QSpinBox"), ("shared/widgets.py", "QDoubleSpinBox")}


# --- one field --------------------------------------------------------------------------------------------------------


def shown(box: Any, qtbot: QtBot, least: float, most: float, value: float) -> Any:
    """The field as a window of its own."""
    qtbot.addWidget(box)
    box.setRange(least, most)
    box.setValue(value)
    box.show()
    return box


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("99999", "99999 W is outside 100 to 300 W: 200 W stays"),
        ("7", "7 W is outside 100 to 300 W: 200 W stays"),
        ("-150", "-150 W is outside 100 to 300 W: 200 W stays"),
        ("150.25", "150.25 W cannot be given so exactly: 200 W stays"),
        ("1e", "1e W is no number: 200 W stays"),
    ],
)
def test_the_words_name_what_was_typed_why_not_and_what_stays(qtbot: QtBot, typed: str, words: str) -> None:
    box = ShortNumberBox()
    box.setDecimals(1)
    box.setSuffix(" W")
    shown(box, qtbot, 100, 300, 200)
    box.selectAll()
    qtbot.keyClicks(box, typed)
    with qtbot.waitSignal(box.refused) as refused:
        box.clearFocus()
        box.interpretText()
    assert refused.args == [words]
    qtbot.waitUntil(lambda: QToolTip.text() == words)
    assert box.text() == "200 W"


def test_the_words_stand_beside_the_field_while_it_is_typed(qtbot: QtBot) -> None:
    box = shown(WholeBox(), qtbot, 1, 50, 20)
    QToolTip.hideText()
    box.selectAll()
    qtbot.keyClicks(box, "99")
    assert QToolTip.text() == "99 is outside 1 to 50: 20 stays"


def test_a_number_within_the_range_counts_at_once(qtbot: QtBot) -> None:
    box = shown(WholeBox(), qtbot, 1, 50, 20)
    box.selectAll()
    qtbot.keyClicks(box, "42")
    assert box.value() == 42
    qtbot.keyClick(box, Qt.Key.Key_Return)
    box.selectAll()
    qtbot.keyClicks(box, "999")
    box.interpretText()
    assert box.value() == 42, "what stays is the last number that was accepted"
    box.stepUp()
    box.selectAll()
    qtbot.keyClicks(box, "999")
    box.interpretText()
    assert box.value() == 43


def test_return_presses_no_button_with_a_number_that_was_refused(qtbot: QtBot) -> None:
    form = VariantsWindow(Lab().context, lambda: None, lambda: plan_for(grid_space(), OBJECTIVE))
    qtbot.addWidget(form)
    form.show()
    form.add.setEnabled(True)
    pressed: list[bool] = []
    form.add.clicked.connect(pressed.append)
    form.seeds.selectAll()
    qtbot.keyClicks(form.seeds, "99999")
    qtbot.keyClick(form.seeds, Qt.Key.Key_Return)
    assert (form.seeds.value(), pressed) == (1, [])


@pytest.mark.parametrize("language", [QLocale.Language.German, QLocale.Language.English])
def test_decimals_are_read_as_they_are_shown_in_any_language(qtbot: QtBot, language: QLocale.Language) -> None:
    box = ShortNumberBox()
    box.setLocale(QLocale(language))
    box.setDecimals(6)
    shown(box, qtbot, 0, 5000, 0.3)
    assert box.text() == QLocale(language).toString(0.3, "f", 1)
    box.selectAll()
    qtbot.keyClicks(box, QLocale(language).toString(1234.5, "f", 1))
    box.interpretText()
    assert box.value() == 1234.5
    box.setValue(0.3)
    box.lineEdit().setModified(True)
    box.interpretText()
    assert box.value() == 0.3, "0,3 was read as 3"
