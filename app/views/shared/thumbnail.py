"""`Thumbnail`: a stored session's Pareto front, small; `SmallFronts` reads those that are painted, each once.

`SmallFront`: the Pareto front of a stored session as it fits into a thumbnail. Read off Qt's thread; free of Qt.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QObject, QPointF, QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QSizePolicy, QWidget

from ...base.errors import WattridgeError
from ...engine.analysis.quantities import quantity, usual_goals
from ...engine.results.objectives import Goal
from ...engine.results.pareto import best, front
from ...engine.space.result_table import DECIDED_ON
from . import theme
from .tasks import LatestTask

if TYPE_CHECKING:
    from ...engine.store.database import Store
    from ...engine.store.record import SessionRecord

Floats = npt.NDArray[np.float64]
CELLS = (60, 36)  # of the crowd: of the points in one cell one is drawn
_CUT = (2.0, 98.0)  # percentiles: what lies beyond both these and the front would press all else into a corner


def _no_points() -> Floats:
    return np.empty((0, 2))


@dataclass(frozen=True, slots=True)
class SmallFront:
    """Places are (n, 2), from 0 to 1 within the picture: to the right and up."""

    axes: tuple[str, str] = ("", "")  # titles of the figures across and up, those that the Front view begins with
    crowd: Floats = field(default_factory=_no_points)
    front: Floats = field(default_factory=_no_points)  # from the left to the right
    best: str = ""  # the best figure of the objective, with its unit; '' if there is none

    def __bool__(self) -> bool:
        """There is something to draw."""
        return bool(len(self.front))


def read_small_front(store: Store, record: SessionRecord, stop: threading.Event | None = None) -> SmallFront:
    """Of all that the session has measured so far; an empty one where nothing of it can be read."""
    columns: tuple[Goal, Goal, Goal] | None = None
    parts: list[Floats] = []
    try:
        for values in store.values(record.id, record.origin.get(DECIDED_ON, "")):
            if stop is not None and stop.is_set():
                break
            if columns is None and values and values[0]:
                columns = (*usual_goals(record.objective, tuple(values[0])), record.objective.goal)
            if columns is not None:
                names = [goal.name for goal in columns]
                parts.append(np.array([[value.get(name, np.nan) for name in names] for value in values]).reshape(-1, 3))
    except WattridgeError:
        return SmallFront()  # the list of sessions says what is wrong with it
    return _small_front(np.concatenate(parts), columns, record) if columns is not None else SmallFront()


def _small_front(table: Floats, columns: tuple[Goal, Goal, Goal], record: SessionRecord) -> SmallFront:
    x, y, goal = columns
    shown = [quantity(column.name, units=record.units) for column in columns]
    index = best(table[:, 2], goal.maximise)
    best_text = "" if index is None else shown[2].text(float(table[index, 2]))
    points = table[np.isfinite(table[:, :2]).all(axis=1), :2]
    if x.name == y.name or not len(points):
        return SmallFront(best=best_text)
    along = points[front(points, (x.maximise, y.maximise))]
    low = np.minimum(np.percentile(points, _CUT[0], axis=0), along.min(axis=0))
    high = np.maximum(np.percentile(points, _CUT[1], axis=0), along.max(axis=0))
    span = np.where(high > low, high - low, 1.0)
    low = np.where(high > low, low, low - 0.5)  # all alike: in the middle
    places = (points - low) / span
    inside = places[((places >= 0) & (places <= 1)).all(axis=1)]
    cells = np.unique(np.floor(inside * (np.array(CELLS) - 1e-9)).astype(np.int64), axis=0)
    crowd = (cells + 0.5) / CELLS
    along = (along - low) / span
    return SmallFront((shown[0].title, shown[1].title), crowd, along[np.argsort(along[:, 0], kind="stable")], best_text)


_KEPT = 400  # small fronts, some 10 kB each
_WAITING = 40  # at most as many as are in sight at a time
_MARGIN = 7.0  # pixels
_LEAST_DOT_PX, _DOT_SHARE = 2.4, 0.8  # of the crowd; the share is of the cell that a dot stands for
_FRONT_DOTS = 1.8  # times as wide
_NO_FRONT = "no front yet"


class SmallFronts(QObject):
    """The small fronts of a store, read off Qt's thread one after another, again only where a session has grown.

    `made` says that one is there. Whoever shows them ends the reading with `shutdown`.
    """

    made = Signal(int)  # the session

    def __init__(self, store: Store, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self._kept: OrderedDict[int, tuple[int, SmallFront]] = OrderedDict()  # with how many measurements
        self._waiting: dict[int, SessionRecord] = {}
        self._reading: SessionRecord | None = None
        self._open = True
        self._task = LatestTask(self, self._read, self._not_read)

    def known(self, record: SessionRecord) -> SmallFront | None:
        """The front as far as it was read."""
        kept = self._kept.get(record.id)
        return kept[1] if kept is not None else None

    def of(self, record: SessionRecord) -> SmallFront | None:
        """The front as far as it was read; it is read where it was not, or where the session has grown since."""
        kept = self._kept.get(record.id)
        if kept is None or kept[0] < record.evaluated:
            self._ask(record)
        return self.known(record)

    def _ask(self, record: SessionRecord) -> None:
        if self._open and self._reading != record:
            self._waiting[record.id] = record
            while len(self._waiting) > _WAITING:
                del self._waiting[next(iter(self._waiting))]  # it is painted again if it is still in sight
            self._read_next()

    def _read_next(self) -> None:
        if self._reading is None and self._waiting:
            session = next(iter(self._waiting))
            record = self._reading = self._waiting.pop(session)
            self._task.run(lambda stop: read_small_front(self._store, record, stop))

    @Slot(object)
    def _read(self, small: SmallFront) -> None:
        record, self._reading = self._reading, None
        assert record is not None
        self._kept[record.id] = record.evaluated, small
        self._kept.move_to_end(record.id)
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        self.made.emit(record.id)
        self._read_next()

    @Slot(str, str)
    def _not_read(self, _what: str, _remedy: str) -> None:
        self._read(SmallFront())

    def shutdown(self) -> None:
        """Read no more. Safe to call twice."""
        self._open = False
        self._waiting.clear()
        self._task.shutdown()


class Thumbnail(QWidget):
    """One session's front, read when it is first in sight."""

    def __init__(self, fronts: SmallFronts, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._fronts = fronts
        self._record: SessionRecord | None = None
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        fronts.made.connect(self._made)

    def sizeHint(self) -> QSize:
        return QSize(176, 104)

    def minimumSizeHint(self) -> QSize:
        return QSize(88, 52)

    def show_record(self, record: SessionRecord | None) -> None:
        """Show this session's front, or none."""
        self._record = record
        self.setAccessibleName(f"Pareto front of session {record.id}" if record is not None else "No session")
        self.update()

    @property
    def small(self) -> SmallFront | None:
        """What is drawn; None while it is read."""
        return self._fronts.of(self._record) if self._record is not None else SmallFront()

    @Slot(int)
    def _made(self, session: int) -> None:
        if self._record is not None and session == self._record.id:
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        paint_small_front(painter, QRectF(self.rect()), self.small, _NO_FRONT if self._record else "Select a session")


def paint_small_front(painter: QPainter, box: QRectF, small: SmallFront | None, nothing: str = _NO_FRONT) -> None:
    """The crowd in grey, the front over it as a line; a plain ground while it is read, words where there is nothing."""
    c = theme.colours()
    painter.setPen(QPen(QColor(c.border), 1))
    painter.setBrush(QColor(c.base))
    painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), 3, 3)
    inner = box.adjusted(_MARGIN, _MARGIN, -_MARGIN, -_MARGIN)
    if not small:
        if small is not None:
            painter.setPen(QColor(c.muted))
            painter.drawText(inner, Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap, nothing)
        return

    def placed(points: Floats) -> QPolygonF:
        across = inner.left() + points[:, 0] * inner.width()
        down = inner.bottom() - points[:, 1] * inner.height()
        return QPolygonF([QPointF(x, y) for x, y in zip(across.tolist(), down.tolist(), strict=True)])

    crowd = QColor(c.grey)
    crowd.setAlpha(150)
    dot = max(_LEAST_DOT_PX, _DOT_SHARE * min(inner.width() / CELLS[0], inner.height() / CELLS[1]))
    painter.setPen(QPen(crowd, dot, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
    painter.drawPoints(placed(small.crowd))
    line = placed(small.front)
    painter.setPen(QPen(QColor(c.front), 1.4))
    painter.drawPolyline(line)
    painter.setPen(QPen(QColor(c.accent), _FRONT_DOTS * dot, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
    painter.drawPoints(line)
