"""`FirstLook`: at the first start the machine is looked at in the background, and what is amiss is offered."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from ..threads.tasks import LatestTask

if TYPE_CHECKING:
    from .window import Found


class FirstLook(QObject):
    """Says nothing where all is well, nor where it could not look."""

    amiss = Signal(str, object)  # in one line, and what was found

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._task = LatestTask(self)
        self._task.done.connect(self._looked)

    @property
    def busy(self) -> bool:
        """It has not looked at everything yet."""
        return self._task.busy

    @Slot()
    def look(self) -> None:
        """Run every check."""
        self._task.run(_examined)

    def shutdown(self) -> None:
        """End what runs."""
        self._task.shutdown()

    @Slot(object)
    def _looked(self, found: Found) -> None:
        from ...engine.doctor.finding import State

        titles = [check.title for check, finding in found if finding.state is not State.OK]
        if titles:
            self.amiss.emit(f"Missing or wrong on this machine: {', '.join(titles)}", found)


def _examined(stop: threading.Event) -> Found:
    from ...engine.doctor.examine import examine  # imported late: the window's first frame does not need it

    return list(examine(stop=stop, at_once=1))  # nobody waits for it: the cores are the window's
