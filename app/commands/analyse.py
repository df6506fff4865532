"""`wattridge analyse` and `compare`: what a session tells, and several side by side, without the window."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from .analysis_tables import print_analysis, print_comparison
from .arguments import add_choosing, add_goal
from .sources import Opened, open_session
from .terminal import print_json

if TYPE_CHECKING:
    from ..engine.analysis.choices import Wishes
    from ..engine.analysis.tradeoff import Load
    from ..engine.objectives import Objective


def analyse_arguments(parser: ArgumentParser) -> None:
    """Declare the options of `wattridge analyse`."""
    parser.add_argument("source", nargs="?", metavar="SESSION|FILE", help="a session (default: the newest) or a cache")
    add_goal(parser)
    add_choosing(parser)


def analyse(arguments: Namespace) -> int:
    """Front, choices, correlations, importance, difficulty, drift and failures of a session or a recording."""
    from ..engine.analysis.document import document_of
    from ..engine.analysis.session import analyse as analyse_table
    from ..engine.session.summary import by_goal, share_to_json

    opened = open_session(arguments.source)
    objective = objective_of(opened, arguments)
    found = analyse_table(opened.table, objective, wishes=wishes_of(arguments), load=load_of(arguments))
    best = next(iter(by_goal(found.table, objective.goal)), None)
    if arguments.json:
        share = share_to_json(opened.plan, found.table, best)
        print_json({**_heading(opened), **document_of(found), "share_of_peak": share})
    else:
        print_analysis(opened, found, best)
    return 0


def compare_arguments(parser: ArgumentParser) -> None:
    """Declare the options of `wattridge compare`."""
    parser.add_argument("sources", nargs="+", metavar="SESSION|FILE", help="numbers of sessions, or caches")
    parser.add_argument("--front", metavar="max:A,min:B", help="the figures of the Pareto fronts")


def compare(arguments: Namespace) -> int:
    """Several sessions or boards: fronts, what tuning for energy gains on each, and configurations carried over."""
    from ..engine.analysis.compare import compare_sessions
    from ..engine.models.documents import plain

    sides = [open_session(source).side for source in arguments.sources]
    front = _front(arguments)
    found = compare_sessions(sides, front)
    if arguments.json:
        print_json(plain(found))
    else:
        print_comparison(found)
    return 0


def wishes_of(arguments: Namespace) -> Wishes:
    """The limits and the weight that a person gave."""
    from ..engine.analysis.choices import Wishes

    if arguments.slower < 0:
        raise InputError(f"at most {arguments.slower} % slower", "--slower", "a number of per cent, 0 or more")
    if not 0 <= arguments.weight <= 1:
        raise InputError(f"a weight of {arguments.weight}", "--weight", "a number between 0 (energy) and 1 (time)")
    return Wishes(slower=arguments.slower / 100, power_w=arguments.power, weight=arguments.weight)


def load_of(arguments: Namespace) -> Load:
    """The year that a person states."""
    from ..engine.analysis.tradeoff import HOURS_PER_YEAR, Load

    if not 0 < arguments.hours <= HOURS_PER_YEAR:
        raise InputError(f"{arguments.hours} hours a year", "--hours", f"a number up to {HOURS_PER_YEAR:.0f}")
    return Load(
        hours_per_year=arguments.hours,
        boards=arguments.boards,
        price_per_kwh=arguments.price,
        currency=arguments.currency,
        carbon_g_per_kwh=arguments.carbon,
    )


def objective_of(opened: Opened, arguments: Namespace) -> Objective:
    """The session's objective and front, or those that a person names in their place. Raises InputError."""
    from ..engine.objectives import Goal, Objective

    goal = opened.objective.goal
    for option, maximise in (("maximise", True), ("minimise", False)):
        name = getattr(arguments, option)
        if name is not None:
            goal = Goal(name, maximise)
            _check(name, f"--{option}", opened)
    return Objective(goal, _front(arguments, opened) or opened.objective.front)


def _front(arguments: Namespace, opened: Opened | None = None) -> Any:
    from ..engine.objectives import parse_front

    if not arguments.front:
        return ()
    goals = parse_front(arguments.front)
    for goal in goals:
        if opened is not None:
            _check(goal.name, "--front", opened)
    return goals


def _check(name: str, option: str, opened: Opened) -> None:
    known = (*opened.table.value_names, *opened.table.space.names)
    if name not in known:
        raise InputError(f"there is no value '{name}'", option, f"known: {', '.join(known)}")


def _repeats(opened: Opened) -> dict[str, Any] | None:
    """What repeats of a configuration scatter by, where a parameter counts them."""
    repeats = opened.repeats
    if repeats is None:
        return None
    low, high = repeats.repeats
    return {"parameters": list(repeats.names), "least": low, "most": high, "scatter": dict(repeats.scatter)}


def _heading(opened: Opened) -> dict[str, Any]:
    plan = opened.plan
    return {
        "session": opened.record.id if opened.record else None,
        "title": plan.title,
        "gpu": plan.gpu,
        "source": plan.source,
        "strategy": plan.strategy,
        "valid": plan.space.size,
        "notes": list(plan.space.notes),
        "repeats": _repeats(opened),
    }
