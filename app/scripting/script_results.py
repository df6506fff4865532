"""What `tune_kernel` returns of a session: results, the environment, and why no configuration worked."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Sequence
from typing import Final

from .. import __version__
from ..base.text import shortened
from ..engine.analysis.failures import most_frequent
from ..engine.formats.entries import COST_MS
from ..engine.results.measurement import State
from ..engine.results.objectives import Objective
from ..engine.results.state import Purpose
from ..engine.session.live_session import SessionResult
from ..engine.session.summary import front_indices
from ..engine.space.result_table import ResultTable
from .kernel_planning import NOT_ISOLATED
from .tuned import Figures, Result

_MOST: Final = 200  # characters of the reason
_ARCHITECTURE: Final = re.compile(r"gpu.arch|sm_\d|compute_\d", re.IGNORECASE)
_REMEDIES: Final = {
    State.COMPILE: "check the source and compiler_options",
    State.CORRECTNESS: "check answer, atol and verify",
    State.TIMEOUT: "make the problem smaller",
    State.CONSTRAINTS: "check tune_params, problem_size and the grid's divisors",
}
_NO_SUCH_BOARD: Final = "leave -arch out of compiler_options, or name an architecture that this compiler knows"


def why_none_worked(table: ResultTable) -> str:
    """Why no configuration worked, by the failure that most of them share.

    Parameters
    ----------
    table : ResultTable
        The measurements.

    Returns
    -------
    str
        One line with the remedy; empty if one worked, nothing was measured, or no failure has a message.
    """
    failed = sum(table.failures().values())
    if not failed or failed < len(table) or (commonest := most_frequent(table)) is None:
        return ""
    state, message, count = commonest
    remedy = _REMEDIES.get(State(state), "look at 'error' in the results")
    if state == State.COMPILE and _ARCHITECTURE.search(message):
        remedy = _NO_SUCH_BOARD
    of_all = "all" if count == failed else str(count)
    return f"none of {failed} configurations worked; {of_all} failed by {state}: {shortened(message, _MOST)} ({remedy})"


class Results(list[Result]):
    """Results as a list, and the session that they are of."""

    def __init__(self, results: Sequence[Result], rows: Sequence[int], session: SessionResult) -> None:
        super().__init__(results)
        self.plan, self.table = session.plan, session.table
        self.by_row = dict(zip(rows, results, strict=True))


def script_results(result: SessionResult, figures: Figures, objective: Objective) -> tuple[Results, Result]:
    """What `tune_kernel` returns of a session.

    Parameters
    ----------
    result : SessionResult
        The session.
    figures : Figures
        Complete its measurements.
    objective : Objective
        What the script works for.

    Returns
    -------
    results : Results
        One for each configuration, with times in ms.
    environment : dict
        Of the session, without the totals of what was spent.
    """
    plan, table = result.plan, result.table
    goal = plan.objective.goal
    name = "time" if goal.name == "time_s" else goal.name
    measured = [m for index in range(len(table)) if (m := table.measurement(index)).final]
    if plan.strategy == "brute_force":  # they come as they are compiled
        measured.sort(key=lambda measurement: measurement.row)
    results = [figures.result(measurement) for measurement in measured]
    rows = [measurement.row for measurement in measured]
    _share_out(result, results, rows)
    worked = [item for item in results if "__error__" not in item and item.get(name) is not None]
    environment: Result = {
        "device_name": plan.gpu,
        "driver": plan.driver,
        "source": plan.source,
        "wattridge": __version__,
        "session": result.session,
        "seconds": result.progress.elapsed_s,
        "isolated": plan.origin.get("isolated", "True") == "True",
        "notes": list(plan.space.notes),
    }
    if plan.purpose is Purpose.REPLAY:
        environment["simulation"] = True
        for item in results:  # of what other programs wrote nothing but that is there
            item.pop("time_s", None)
    if not environment["isolated"]:
        environment["warning"] = NOT_ISOLATED
    if len(objective.front) > 1:
        front = {table.measurement(front_index).row for front_index in front_indices(table, objective.front)}
        best = [value for value, row in zip(results, rows, strict=True) if row in front]
        for optimal in best:
            optimal["optimal"] = True
        environment["best_config"] = best
    elif worked:
        environment["best_config"] = (max if goal.maximise else min)(worked, key=lambda result: result[name])
    return Results(results, rows, result), environment


def _share_out(session: SessionResult, results: Sequence[Result], rows: Sequence[int]) -> None:
    """What the strategy and the rest of the session took, evenly over the results, in ms.

    What other sessions spent on configurations that a cache holds was not spent now.
    """
    plan, progress = session.plan, session.progress
    taken_over = {item.row for item in plan.known}
    for from_cache in (result for result, row in zip(results, rows, strict=True) if row in taken_over):
        from_cache |= dict.fromkeys(COST_MS, 0.0)
    on_this_clock = plan.source not in ("recorded", "simulated")
    spent = math.fsum(element.get(name, 0.0) for element in results for name in COST_MS) if on_this_clock else 0.0
    strategy = progress.strategy_s * 1e3
    rest = max(0.0, progress.elapsed_s * 1e3 - strategy - spent)
    for result in results:
        result |= {"strategy_time": strategy / len(results), "framework_time": rest / len(results)}


def add_totals(results: Sequence[Result], environment: Result, began: float) -> None:
    """Add the sums of what was spent, in ms, where it is known of every result; the rest is `overhead_time`.

    Parameters
    ----------
    results : sequence of dict
        The results.
    environment : dict
        Gets the sums.
    began : float
        When the call began, s by `time.perf_counter`.
    """
    if environment.get("simulation"):
        environment["simulated_time"] = math.fsum(result.get(name, 0.0) for result in results for name in COST_MS)
    names = ("framework_time", "strategy_time", *COST_MS)
    if all(name in result for result in results for name in names):
        totals = {f"total_{name}": math.fsum(result[name] for result in results) for name in names}
        took = (time.perf_counter() - began) * 1e3 + environment.get("simulated_time", 0.0)
        environment |= {**totals, "overhead_time": took - math.fsum(totals.values())}
