"""What each restriction leaves of a space, as bars on a logarithmic scale."""

from __future__ import annotations

import math
from collections.abc import Sequence

from PySide6.QtCore import QEvent, QRectF, QSize, Qt, Slot
from PySide6.QtGui import QColor, QHelpEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from ...base.formatting import count_text
from ...engine.space.search_space import PruningStep
from ..shared import theme
from ..shared.label import plain_tip

_GAP = 10  # pixels between columns
_WORDS = 0.42  # of the width is for the text of a restriction
_HEAD = ("Restrictions in the order applied", "What is left, on a logarithmic scale", "removed")


class PruningPicture(QWidget):
    """One line for all combinations and one per restriction: its words, a bar of what it leaves, and figures."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._lines: tuple[tuple[str, int, str, str], ...] = ()  # restriction, left, share removed, tool tip
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName("What each restriction leaves")
        theme.notifier().changed.connect(self.recolour)

    @property
    def lines(self) -> tuple[tuple[str, int, str, str], ...]:
        """What is drawn, line by line: words, combinations left, share removed, tool tip."""
        return self._lines

    def show_steps(self, cartesian: int, steps: Sequence[PruningStep]) -> None:
        """Draw a space of `cartesian` combinations, pruned in these steps."""
        every = ("all combinations", cartesian, "", f"{count_text(cartesian)} combinations before any restriction")
        self._lines = (every, *((s.restriction, s.after, _share(s), _explanation(s)) for s in steps))
        self.setAccessibleDescription("\n".join(line[3] for line in self._lines))
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(400, self.height_of(1 + len(self._lines)))

    def height_of(self, lines: int) -> int:
        """The height of `lines` lines, that of the heads included, in pixels."""
        return self._height * lines + 2

    def minimumSizeHint(self) -> QSize:
        return QSize(320, self.sizeHint().height())

    @property
    def _height(self) -> int:
        return self.fontMetrics().height() + 5

    @Slot()
    def recolour(self) -> None:
        self.update()

    def event(self, event: QEvent) -> bool:
        """The tool tip of the line under the mouse."""
        if isinstance(event, QHelpEvent) and event.type() is QEvent.Type.ToolTip:
            line = event.pos().y() // self._height - 1
            tip = self._lines[line][3] if 0 <= line < len(self._lines) else ""
            QToolTip.showText(event.globalPos(), plain_tip(tip), self)
            return True
        return super().event(event)

    def paintEvent(self, _event: QPaintEvent) -> None:
        if not self._lines:
            return
        colours, metrics = theme.colours(), self.fontMetrics()
        painter = QPainter(self)
        figures = max(metrics.horizontalAdvance(count_text(left)) for _, left, _, _ in self._lines)
        shares = metrics.horizontalAdvance("−99.99 %")
        width = self.width() - _GAP
        words = int(width * _WORDS)
        room = max(20, width - words - figures - shares - 3 * _GAP)
        scale = room / max(1e-9, _decades(self._lines[0][1]))
        right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        before = self._lines[0][1]
        painter.setPen(QColor(colours.muted))
        begin = words + _GAP
        for left, width_of, text in ((0, words, _HEAD[0]), (begin, room + _GAP + figures, _HEAD[1])):
            elided = metrics.elidedText(text, Qt.TextElideMode.ElideRight, width_of)
            painter.drawText(QRectF(left, 0, width_of, self._height), Qt.AlignmentFlag.AlignVCenter, elided)
        painter.drawText(QRectF(width - shares, 0, shares, self._height), right, _HEAD[2])
        for place, (text, left, share, _) in enumerate(self._lines, start=1):
            top, height = place * self._height, self._height
            elided = metrics.elidedText(text, Qt.TextElideMode.ElideMiddle, words)
            painter.setPen(QColor(colours.text if place == 1 or share else colours.muted))
            painter.drawText(QRectF(0, top, words, height), Qt.AlignmentFlag.AlignVCenter, elided)
            painter.fillRect(QRectF(begin, top + 3, room, height - 6), QColor(colours.grid))
            painter.fillRect(QRectF(begin, top + 3, scale * _decades(before), height - 6), QColor(colours.border))
            painter.fillRect(QRectF(begin, top + 3, scale * _decades(left), height - 6), QColor(colours.accent))
            painter.drawText(QRectF(begin + room + _GAP, top, figures, height), right, count_text(left))
            painter.setPen(QColor(colours.muted))
            painter.drawText(QRectF(width - shares, top, shares, height), right, share)
            before = left


def _decades(count: int) -> float:
    """The length of a bar: the logarithm of a count, so that one combination is still seen."""
    return math.log10(count) + 0.3 if count > 0 else 0.0


def _share(step: PruningStep) -> str:
    """How much of what was left a restriction removed; empty where it was nothing."""
    if not step.removed:
        return ""
    percent = 100 * step.share
    return f"−{percent:.1f} %" if 0.05 <= percent < 99.95 else "−<0.1 %" if percent < 0.05 else f"−{percent:.2f} %"


def _explanation(step: PruningStep) -> str:
    removed = f"removes {count_text(step.removed)} of {count_text(step.before)}" if step.removed else "removes nothing"
    return f"{step.restriction}\n{removed}, {count_text(step.after)} left"
