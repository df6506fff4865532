"""`DoctorWindow`: what is missing or wrong on this machine, and the remedy of the chosen line.

`FirstLook`: checks the machine in the background at the first start, and offers the list of problems.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog, QWidget

from ...engine.doctor.checks import Check
from ...engine.doctor.examine import examine
from ...engine.doctor.finding import Finding, State
from ...engine.results.description import Listing
from ..plots.descriptions import ListingTable
from ..shared.label import PlainLabel
from ..shared.panel import Ending
from ..shared.tasks import LatestTask
from ..shared.widgets import button, hbox, vbox

if TYPE_CHECKING:
    pass

Found = Sequence[tuple[Check, Finding]]
_LOOKING = "Looking at this machine: drivers, rights, compilers, fonts. This takes some seconds."


class DoctorWindow(QDialog, Ending):
    """Stays beside the main window. The checks run in processes of their own, waited for off Qt's thread."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Check this machine")
        self.found: Found = ()
        self.summary = PlainLabel(wrap=True)
        self.table = ListingTable("What was looked at")
        self.table.horizontalHeader().setStretchLastSection(True)  # what was found is long
        self.remedy = PlainLabel(wrap=True, selectable=True)
        self.again = button("Check &again", "Look at everything once more", self.look)
        self.copy = button("&Copy all", "Every line with its remedy, as text", self.copy_all)
        close = button("Close", clicked=self.close)
        for widget in (self.again, self.copy, close):
            widget.setAutoDefault(False)
        vbox(self.summary, (self.table, 1), self.remedy, hbox(self.again, self.copy, 1, close), of=self)
        self.resize(900, 620)
        self.table.currentCellChanged.connect(self._show_remedy)
        self._task = LatestTask(self, self.show_found, self._failed)

    @property
    def busy(self) -> bool:
        """The machine is being looked at."""
        return self._task.busy

    @Slot()
    def look(self) -> None:
        """Run every check."""
        self.again.setEnabled(False)
        self.copy.setEnabled(False)
        self.summary.setText(_LOOKING)
        self._task.run(lambda stop: list(examine(stop=stop)))

    @Slot(object)
    def show_found(self, findings: Found) -> None:
        """The findings, what is wrong first, then what is missing."""
        order = [State.WRONG, State.MISSING, State.OK]
        self.found = sorted(findings, key=lambda each: order.index(each[1].state))
        counts = {state: sum(each.state is state for _, each in findings) for state in State}
        self.summary.setText(", ".join(f"{count} {state.value}" for state, count in counts.items()))
        rows = [(finding.state.value, check.title, finding.what) for check, finding in self.found]
        tips = [_said(check, finding) for check, finding in self.found]
        self.table.show_listing(Listing("", ("state", "of", "found"), rows), tips=tips)
        self.table.setCurrentCell(0, 0)
        self._show_remedy(0)
        self.again.setEnabled(True)
        self.copy.setEnabled(True)

    @Slot()
    def copy_all(self) -> None:
        """Put every line on the clipboard."""
        QGuiApplication.clipboard().setText("\n".join(_said(*match) for match in self.found))

    @Slot(int)
    def _show_remedy(self, row: int, *_: int) -> None:
        self.remedy.setText(_said(*self.found[row]) if 0 <= row < len(self.found) else "")

    @Slot(str, str)
    def _failed(self, what: str, remedy: str) -> None:
        self.summary.setText(f"{what} · {remedy}")
        self.again.setEnabled(True)


def _said(check: Check, finding: Finding) -> str:
    remedy = f"\n    -> {finding.remedy}" if finding.remedy else ""
    return f"{finding.state.value}: {check.title}: {finding.what}{remedy}"


class FirstLook(QObject, Ending):
    """Says nothing if all is well, nor where it could not look."""

    amiss = Signal(str, object)  # in one line, and what was found

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._task = LatestTask(self, self._looked)

    @property
    def busy(self) -> bool:
        """It has not looked at everything yet."""
        return self._task.busy

    @Slot()
    def look(self) -> None:
        """Run every check."""
        self._task.run(_examined)

    @Slot(object)
    def _looked(self, findings: Found) -> None:
        from ...engine.doctor.finding import State

        titles = [check.title for check, finding in findings if finding.state is not State.OK]
        if titles:
            self.amiss.emit(f"Missing or wrong on this machine: {', '.join(titles)}", findings)


def _examined(stop: threading.Event) -> Found:
    from ...engine.doctor.examine import examine  # imported late: the window's first frame does not need it

    return list(examine(stop=stop, at_once=1))  # nobody waits for it: the cores are the window's
