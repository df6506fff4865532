"""The command that gives what a view shows: one line per view."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from ...errors import InputError
from ..context import Context
from ..current_result import CurrentResult
from .loading import Panels

if TYPE_CHECKING:
    from ...engine.report.command_line import CommandLine
    from ...engine.session.plan import SessionPlan
    from ...engine.space.result_table import ResultTable

Job = Callable[[], "CommandLine"]


def command_of(view: str, panels: Panels, context: Context, seconds: float) -> Job:
    """What makes the command of a view as it is now, off Qt's thread: files may be read. The traces show `seconds`.

    Both this and what it returns raise WattridgeError, with the reason, where no command gives the same.
    """
    from ...engine.report import reproduce  # imported late: few ask for it
    from ...engine.report.command_line import CommandLine

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
    """What is shown. Raises InputError where there is none."""
    if result.plan is None or result.table is None or result.session is None:
        raise InputError("there is no result yet", "copy", "start a session in Tune, or open one in Library")
    return result.plan, result.session, result.table
