"""`SavingsWindow`: what this user may save here: levers in turns with the untouched state, on the shown board."""

from __future__ import annotations

import math
import threading
from contextlib import ExitStack, closing

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QDialog, QLineEdit, QTextBrowser, QWidget

from ...engine.control.guard import DeviceGuard
from ...engine.session.savings import Savings, find_savings
from ...engine.session.sides import Opening, Remark, target_of
from ...sensors.gpu import Gpu
from ...sensors.select import open_gpu
from ..plots.chart_plot import ChartPlot
from ..plots.descriptions import rich_text
from ..shared.label import PlainLabel
from ..shared.panel import Ending
from ..shared.tasks import LatestTask
from ..shared.widgets import button, hbox, vbox

_EXAMPLE = "mm:1,512,512,512"
_WHAT = "A specification, an example or an operator, FILE.py:FUNCTION, a script or a command line"
_FIRST = f"{_WHAT}. Nothing of a real board is set; the time that it takes is said first."


class SavingsWindow(QDialog, Ending):
    """Table and points of one target. It is measured on a connection of its own to the board."""

    _said = Signal(str)

    def __init__(self, gpu: Gpu, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("What can I save?")
        self.resize(900, 760)
        self._stop = threading.Event()
        self.found: Savings | None = None
        self.target = QLineEdit(_EXAMPLE)
        self.target.setAccessibleName("What is to save")
        self.target.setToolTip(_WHAT)
        self.start = button("&Try the levers", "Each in turns with the untouched state", self.try_levers)
        self.end = button("&Stop", "Keep what was tried", lambda: self._stop.set())
        self.said, self.chart, self.words = PlainLabel(_FIRST, wrap=True), ChartPlot(), QTextBrowser()
        vbox(hbox((self.target, 1), self.start, self.end), self.said, (self.chart, 2), (self.words, 3), of=self)
        self.words.setAccessibleName("What was found")
        self.chart.say("The levers' points in the front come here")
        self._task = LatestTask(self, self._show, self._failed)
        self._said.connect(self.said.setText)
        self.show_board(gpu)
        self._ready()

    @property
    def busy(self) -> bool:
        """Something is being measured."""
        return self._task.busy

    def show_board(self, gpu: Gpu) -> None:
        """What is tried next is tried on this board."""
        self._gpu = gpu

    @Slot()
    def try_levers(self) -> None:
        """Begin; what is measured is said meanwhile."""
        self._stop, text, selector = threading.Event(), self.target.text().strip(), self._gpu.info.uuid
        self._task.run(lambda _: _found(text, selector, self._stop, self._said.emit))
        self._ready()

    def shutdown(self) -> None:
        self._stop.set()
        super().shutdown()

    def _ready(self) -> None:
        self.start.setEnabled(not self.busy)
        self.end.setEnabled(self.busy)

    @Slot(object)
    def _show(self, found: Savings) -> None:
        self.found = found
        self.said.setText(found.words)
        self.chart.show_chart(found.chart())
        self.words.setHtml(rich_text([found.describe()]))
        self._ready()

    @Slot(str, str)
    def _failed(self, what: str, remedy: str) -> None:
        self.said.setText(f"{what} · {remedy}")
        self._ready()


def _found(text: str, selector: str, stop: threading.Event, say: Remark) -> Savings:
    side = target_of(text)
    with ExitStack() as stack:
        speed = 1.0 if side.takes_real_time else math.inf
        gpu = stack.enter_context(closing(open_gpu(selector, speed=speed, voltage=False)))
        guard = stack.enter_context(closing(DeviceGuard(gpu)))
        opening = Opening(gpu, stop, stack, say)
        return find_savings(
            side, opening, guard, on_step=lambda words, now: say(f"{words} … {now.words if now else ''}")
        )
