"""Clocks and caps as dimensions: of each, whether it is varied, and over which values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from PySide6.QtCore import QSignalBlocker, Qt, Slot
from PySide6.QtWidgets import QComboBox, QGridLayout, QLineEdit, QWidget

from ...engine.board_settings import PROFILE, WORDS, unit
from ..number_boxes import WholeBox
from ..plots.label import PlainLabel
from .cells import shown_values, typed_values
from .complaint import Complaint
from .edited import EditedSpecification
from .entry_table import Problems

_KINDS = {
    "": "not varied",
    "supported": "all that are supported",
    "ridge": "near the ridge of the model",
    "points": "evenly spread points",
    "list": "these values",
}


class DeviceSettings(QWidget):
    """One row for each setting of a board."""

    def __init__(self, edited: EditedSpecification, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        tip = "Each value of a clock or a cap is measured with every configuration of the kernel."
        grid.addWidget(PlainLabel(tip, wrap=True, muted=True), 0, 0, 1, 3)
        self.rows = {name: SettingRow(edited, name) for name in WORDS}
        for row, each in enumerate(self.rows.values(), start=1):
            grid.addWidget(each.label, 2 * row, 0)
            grid.addWidget(each.kind, 2 * row, 1)
            grid.addWidget(each.points, 2 * row, 2)
            grid.addWidget(each.values, 2 * row, 2)
            grid.addWidget(each.complaint, 2 * row + 1, 0, 1, 3)
        grid.setColumnStretch(2, 1)
        grid.setRowStretch(2 * len(self.rows) + 2, 1)
        self.complaint = Complaint()
        grid.addWidget(self.complaint, 1, 0, 1, 3)

    def show_settings(self, document: Mapping[str, Any], problems: Problems) -> None:
        """Show what a document has under [device_settings]."""
        given = document.get("device_settings", {})
        for name, row in self.rows.items():
            wrong = [str(problem) for at, problem in problems.items() if at[:2] == ("device_settings", name)]
            row.show_value(given.get(name) if isinstance(given, Mapping) else None, "; ".join(wrong))
        self.complaint.say("; ".join(str(p) for at, p in problems.items() if at == ("device_settings",)))


class SettingRow(QWidget):
    """One setting; its widgets lie in the grid around."""

    def __init__(self, edited: EditedSpecification, name: str) -> None:
        super().__init__()
        self._edited, self._place = edited, ("device_settings", name)
        words = WORDS[name].capitalize()
        self.label = PlainLabel(f"{words} ({unit(name)})" if unit(name) else words)
        self.kind, self.points, self.values = QComboBox(), WholeBox(), QLineEdit()
        self.complaint = Complaint(self.kind)
        for key, text in _KINDS.items():
            if (key != "ridge" or name == "graphics_clock_mhz") and (key != "points" or name != PROFILE):
                self.kind.addItem(text, key)
        self.points.setRange(2, 1000)
        self.points.setSuffix(" points")
        self.values.setPlaceholderText('"none", "max_q"' if name == PROFILE else "900, 1100, 1300")
        for widget, what in ((self.kind, "varied over"), (self.points, "points"), (self.values, "values")):
            widget.setAccessibleName(f"{words}: {what}")
        self.label.setBuddy(self.kind)
        self._show_kind("")
        self.kind.activated.connect(self._kind_chosen)
        self.points.valueChanged.connect(self._points_changed)
        self.values.textChanged.connect(self._values_changed)

    def show_value(self, value: Any, problem: str) -> None:
        """Show what the document has."""
        kind = "" if value is None else value if value in ("supported", "ridge") else "list"
        with QSignalBlocker(self.points), QSignalBlocker(self.values):
            if isinstance(value, Mapping):
                kind = "points"
                points = value.get("points")
                self.points.setValue(points if isinstance(points, int) and 2 <= points <= 1000 else 7)
            elif kind == "list" and typed_values(self.values.text()) != value:
                self.values.setText(shown_values(value))
        self._show_kind(str(kind))
        self.complaint.say(problem)

    def _show_kind(self, kind: str) -> None:
        self.kind.setCurrentIndex(max(0, self.kind.findData(kind)))
        self.points.setVisible(kind == "points")
        self.values.setVisible(kind == "list")

    @Slot()
    def _kind_chosen(self) -> None:
        kind = self.kind.currentData(Qt.ItemDataRole.UserRole)
        if kind == "points":
            self._edited.set_value(self._place, {"points": max(2, self.points.value())})
        elif kind == "list":
            usual = {"power_limit_w": [200.0], PROFILE: [-1]}.get(self._place[1], [1000])
            self._edited.set_value(self._place, typed_values(self.values.text()) or usual)
        else:
            self._edited.set_value(self._place, kind)

    @Slot()
    def _points_changed(self) -> None:
        self._edited.set_value((*self._place, "points"), self.points.value())

    @Slot()
    def _values_changed(self) -> None:
        if self.values.text().strip():
            self._edited.set_value(self._place, typed_values(self.values.text()))
