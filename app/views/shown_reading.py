"""What every panel shows of a board as its present: one reading, the same in all of them until the next beat."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import WeakKeyDictionary, WeakSet

from PySide6.QtCore import QObject, Qt, QTimer, Signal, Slot

if TYPE_CHECKING:
    from ..sensors.trace import Trace

_BEAT_MS: Final = 100


class ShownReading(NamedTuple):
    """Values by channel name at an instant of the GPU's clock; 0 and none where nothing was read yet."""

    time_ns: int
    values: dict[str, float]


class Beat(QObject):
    """At each beat the readings are the newest ones, and all panels that follow `struck` show them in one turn."""

    struck = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._fresh: WeakSet[Trace] = WeakSet()  # traces that were asked for since the last beat
        self._readings: WeakKeyDictionary[Trace, tuple[int, ShownReading]] = WeakKeyDictionary()
        self._timer = QTimer(self, interval=_BEAT_MS, timerType=Qt.TimerType.CoarseTimer)
        self._timer.timeout.connect(self.strike)
        self._timer.start()

    @Slot()
    def strike(self) -> None:
        """Show what is new."""
        self._fresh.clear()
        self.struck.emit()

    def reading(self, trace: Trace) -> ShownReading:
        """The same object until there is a beat and a new reading."""
        appended, shown = self._readings.get(trace, (-1, ShownReading(0, {})))
        if trace not in self._fresh and appended != trace.appended:
            appended, newest = trace.appended, trace.last_ns
            shown = ShownReading(newest, trace.at(newest) if newest else {})
            self._readings[trace] = appended, shown
        self._fresh.add(trace)
        return shown


@cache
def beat() -> Beat:
    """The one of the window; made at the first call, which must be in Qt's thread."""
    return Beat()


def shown_reading(trace: Trace) -> ShownReading:
    """What is shown of that board now."""
    return beat().reading(trace)
