"""`Copying`: the command, or the script, that gives what the view in use shows, onto the clipboard.

The command that gives what a view shows: one line per view.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QWidget

from ...base.errors import InputError, WattridgeError
from ..shared.context import Context
from ..shared.current_result import CurrentResult
from ..shared.tasks import LatestTask
from .loading import Panels
from .panels import TRACES

if TYPE_CHECKING:
    from ...engine.report.reproduce import CommandLine
    from ...engine.space.result_table import ResultTable
    from ...engine.specification.plan import SessionPlan

Job = Callable[[], "CommandLine"]


def command_of(view: str, panels: Panels, context: Context, seconds: float) -> Job:
    """What makes the command of a view as it is now, off Qt's thread: files may be read. The traces show `seconds`.

    Both this and what it returns raise WattridgeError, with the reason, where no command gives the same.
    """
    from ...engine.report import reproduce  # imported late: few ask for it
    from ...engine.report.reproduce import CommandLine

    result = context.result
    match view:
        case "traces" | "channels":
            info = context.gpu.info
            return lambda: reproduce.monitor_command(info.uuid, info.label, seconds)
        case "tune" | "pool":
            tune = panels["tune"]
            if tune.draft is not None or result.plan is None:
                plan = tune.plan_as_set_up()
            else:  # what ran last, from its beginning
                plan = replace(result.plan, resume=None)
            return lambda: reproduce.run_command(plan, context.store)
        case "queue":
            chosen = panels["queue"].chosen()
            if not chosen:
                raise InputError("no run is selected", "Queue", "select one")
            return lambda: reproduce.run_command(chosen[0].plan, context.store)
        case "front" | "analysis" | "table" | "convergence":
            shown, session, _ = _result(result)
            return lambda: reproduce.analyse_command(shown, session)
        case "inspector":
            shown, session, table = _result(result)
            index = result.chosen
            if index is None:
                raise InputError("no configuration is selected", "Inspector", "select one")
            return lambda: reproduce.export_command(shown, session, table, index)
        case "compare":
            sources = panels["compare"].ticked()
            return lambda: reproduce.compare_command(sources)
        case "model":
            fit = panels["model"].list.focus
            return lambda: reproduce.fit_command(fit)
        case "roofline":
            sweep = panels["roofline"].list.focus
            return lambda: reproduce.roofline_command(sweep)
        case "sessions":
            records = panels["sessions"].chosen()
            if len(records) == 1:
                return lambda: reproduce.analyse_command(records[0], records[0].id)
            if records:
                return lambda: reproduce.compare_command([record.id for record in records])
            return lambda: CommandLine(("sessions",), "The stored sessions")
        case "boards":
            return lambda: CommandLine(("gpus",), "Every board")
        case "idle":
            info = context.gpu.info
            return lambda: CommandLine(("idle", "--gpu", info.uuid), f"What {info.label} draws without work")
    raise InputError(f"no command gives what {view.capitalize()} shows", view, "go to another view, and copy there")


def _result(result: CurrentResult) -> tuple[SessionPlan, int, ResultTable]:
    """What is shown. Raises InputError if there is none."""
    if result.plan is None or result.table is None or result.session is None:
        raise InputError("there is no result yet", "copy", "start a session in Tune, or open one in Library")
    return result.plan, result.session, result.table


class Copying(QObject):
    """The view in use is the one that had the focus last, as long as it is in sight. Made in Qt's thread."""

    said = Signal(str)
    failed = Signal(str, str)  # why nothing was copied, and the remedy

    def __init__(self, panels: Panels, context: Callable[[], Context], length_s: Callable[[], float]) -> None:
        """`length_s` is how many seconds the traces show."""
        super().__init__(panels)
        self._panels, self._context, self._length_s = panels, context, length_s
        self._last = TRACES
        self._reader = LatestTask(self, self._copy, self.failed)
        application = QApplication.instance()
        assert isinstance(application, QApplication)
        application.focusChanged.connect(self._focus_changed)

    @property
    def view(self) -> str:
        """The view in use."""
        return self._last if self._in_sight(self._last) else next(filter(self._in_sight, self._panels), TRACES)

    def copy_command(self) -> None:
        """Copy a line for the shell."""
        self._run(lambda command: command.shell())

    def copy_python(self) -> None:
        """Copy a script."""
        self._run(lambda command: command.python())

    def _run(self, write: Callable[..., str]) -> None:
        try:
            make = command_of(self.view, self._panels, self._context(), self._length_s())
        except WattridgeError as error:
            self.failed.emit(error.what, error.remedy)
            return
        self._reader.run(lambda _stop: write(make()))

    @Slot(object)
    def _copy(self, text: str) -> None:
        QGuiApplication.clipboard().setText(text)
        lines = text.count("\n")
        self.said.emit(f"Copied: a script of {lines} lines" if lines else f"Copied: {text}")

    def _in_sight(self, name: str) -> bool:
        return self._panels.has(name) and self._panels[name].isVisible()

    @Slot(QWidget, QWidget)
    def _focus_changed(self, _before: QWidget | None, now: QWidget | None) -> None:
        if now is not None:
            within = [name for name, panel in self._panels.items() if panel is now or panel.isAncestorOf(now)]
            around = [name for name, panel in self._panels.items() if now.isAncestorOf(panel)]  # it has no field
            copyable = within or (around if len(around) == 1 else [])
            self._last = copyable[0] if copyable else self._last
