"""`Alarms`: checks one board twice a second, keeps what was raised, and marks it on the traces."""

from __future__ import annotations

from collections import deque
from datetime import datetime
from typing import TYPE_CHECKING

from PySide6.QtCore import QLine, QObject, QPointF, QTimer, Signal, Slot
from PySide6.QtGui import QColor, QPainter, QPen, QPolygonF

from ...sensors.alarms import Alarm, AlarmKind, AlarmRules, AlarmWatch
from ..plots.theme import Colours
from ..settings import Settings
from .lane_layout import Layout

if TYPE_CHECKING:
    from ...sensors.sampler import Sampler

_TICK_MS = 500
_KEPT = 500
_FLAG_PX = 6.0


class Alarms(QObject):
    """The rules are those of the settings, for every board alike."""

    raised = Signal(str)  # one line that names the board too
    over = Signal(str)  # the line of one that was raised

    def __init__(self, sampler: Sampler, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._sampler = sampler
        self._settings = Settings()
        self._watch = AlarmWatch(sampler.trace)
        self.raised_so_far: deque[tuple[datetime, Alarm]] = deque(maxlen=_KEPT)  # when, on the wall; oldest first
        self._lines: dict[AlarmKind, str] = {}  # of those that are not over
        self._timer = QTimer(self, interval=_TICK_MS)
        self._timer.timeout.connect(self.check)
        self._timer.start()

    @property
    def rules(self) -> AlarmRules:
        """What raises an alarm."""
        return self._settings.alarms

    @rules.setter
    def rules(self, rules: AlarmRules) -> None:
        self._settings.alarms = rules

    @Slot()
    def check(self) -> None:
        """Look at what was read since the last time."""
        for alarm in self._watch.check(self.rules, lost=self._sampler.lost):
            self.raised_so_far.append((datetime.now().astimezone(), alarm))
            self._lines[alarm.kind] = f"Alarm: {alarm.text} · {self._sampler.gpu.info.label}"
            self.raised.emit(self._lines[alarm.kind])
        for kind in self._lines.keys() - self._watch.active:
            self.over.emit(self._lines.pop(kind))

    def paint(self, painter: QPainter, layout: Layout, bounds: tuple[int, int], colours: Colours) -> None:
        """A flagged line in every lane for each alarm within bounds: an overlay of the traces."""
        start, end = bounds
        plots = [box.plot for box in layout.lanes if box.shown.lines] + [layout.events]
        painter.setPen(QPen(QColor(colours.vermillion), 1))
        painter.setBrush(QColor(colours.vermillion))
        for _, alarm in self.raised_so_far:
            if start <= alarm.time_ns <= end:
                x = round(layout.left + (alarm.time_ns - start) / max(1, end - start) * layout.columns)
                top = plots[0].top()
                painter.drawLines([QLine(x, plot.top(), x, plot.bottom()) for plot in plots])
                flag = (QPointF(x, top), QPointF(x + _FLAG_PX, top + _FLAG_PX / 2), QPointF(x, top + _FLAG_PX))
                painter.drawPolygon(QPolygonF(flag))
        painter.setBrush(QColor(0, 0, 0, 0))

    def shutdown(self) -> None:
        """Check no more."""
        self._timer.stop()
