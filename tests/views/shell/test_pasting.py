"""A megabyte that is pasted into any field of any page stalls nothing, and what was cut is said once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fixtures.fakes import FakeGpu, working
from fixtures.lab import ready
from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractSpinBox, QApplication, QComboBox, QLineEdit, QPlainTextEdit, QToolTip, QWidget
from pytestqt.qtbot import QtBot

from app.views.shared.pasting import TextField
from app.views.shared.widgets import lies_behind, takes_focus
from app.views.shell.panels import PANELS
from app.views.shell.window import MainWindow

_MOST_S = 1.0  # of the processor, and of a slow one: by hand it is to be below 0.05
_BYTES = 1_000_000
TEXTS = {
    "one line": "x" * _BYTES,
    "digits": "7" * _BYTES,
    "20,000 lines": ("block_size_x = [16, 32, 64]  # abcdefghijklmnop\n" * 20_000)[:_BYTES],
}


def fields(root: QWidget) -> Iterator[QWidget]:
    """What can be typed in now."""
    for widget in root.findChildren(QWidget):
        inside = isinstance(widget.parentWidget(), (QAbstractSpinBox, QComboBox))
        typed = isinstance(widget, (QLineEdit, QPlainTextEdit, QAbstractSpinBox)) and not widget.isReadOnly()
        if isinstance(widget, QComboBox):
            typed = widget.isEditable()
        if typed and not inside and takes_focus(widget) and not lies_behind(widget):
            yield widget


def text_of(field: Any) -> str:
    if isinstance(field, QPlainTextEdit):
        return field.toPlainText()
    return str(field.currentText() if isinstance(field, QComboBox) else field.text())


@pytest.mark.filterwarnings("ignore:.*setActiveWindow:DeprecationWarning")
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_megabyte_is_cut_to_what_a_field_can_show(qtbot: QtBot, open_program: Callable[..., Any], text: str) -> None:
    window: MainWindow = ready(qtbot, open_program(FakeGpu(working)))
    qtbot.waitUntil(lambda: window.panels["control"].rows is not None, timeout=20_000)
    for spec in PANELS:
        window.workspaces.bring(spec.name)
        qtbot.waitUntil(lambda spec=spec: spec.name in window.panels, timeout=20_000)  # type: ignore[misc]
        paste_everywhere(window.panels[spec.name], text)
    for name in ("settings", "alarms", "meters", "new_specification", "palette"):
        window.actions_by_name[name].trigger()
    qtbot.wait(50)
    roots: list[QWidget] = [*window.side_windows.by_name.values(), window.search]
    assert sum(paste_everywhere(root, text) for root in roots) >= 6


def is_in(field: QWidget, focused: QWidget | None) -> bool:
    return focused is field or (focused is not None and field.isAncestorOf(focused))


def paste_everywhere(root: QWidget, text: str) -> int:
    count = 0
    for field in fields(root):
        before = text_of(field)
        QApplication.setActiveWindow(field.window())  # else what is pasted into has no focus yet
        field.setFocus()
        assert is_in(field, QApplication.focusWidget())
        QCoreApplication.processEvents()  # what the field before it says as it loses the focus
        QGuiApplication.clipboard().setText(text)
        QToolTip.hideText()
        began = time.thread_time()
        QTest.keyClick(field, Qt.Key.Key_V, Qt.KeyboardModifier.ControlModifier)
        QCoreApplication.processEvents()
        spent = time.thread_time() - began
        name = f"{type(field).__name__} '{field.accessibleName()}' in {type(field.parentWidget()).__name__}"
        print(f"{spent * 1000:.0f} ms {name} {len(before)} > {len(text_of(field))}")
        assert spent < _MOST_S, name
        assert len(text_of(field)) <= len(before) + 100_000, name
        cut = isinstance(field, (TextField, QLineEdit)) and 0 < len(text_of(field)) - len(before) < _BYTES - 1
        if cut:
            assert "Cut: " in QToolTip.text(), name
        QTest.keyClick(field, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
        QCoreApplication.processEvents()
        count += 1
    return count


def test_what_is_no_longer_than_the_field_is_pasted_as_it_is(qtbot: QtBot) -> None:
    field = TextField()
    qtbot.addWidget(field)
    field.show()
    lines = "a = 1\nb = [1, 2]\n\nénd"
    QGuiApplication.clipboard().setText(lines)
    QToolTip.hideText()
    field.paste()
    assert field.toPlainText() == lines
    assert not QToolTip.isVisible()
