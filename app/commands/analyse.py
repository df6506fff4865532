"""`wattridge analyse` and `compare`: the analysis of a session, and several side by side, without the window.

`wattridge analyse LOG`: energy and sampling of a recording over time, of this program or another tool.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.errors import InputError, WattridgeError
from ..base.files import write_text
from ..engine.session.named import (
    is_specification,
    log_named,
    newest_session,
    open_session,
    session_number,
)
from .arguments import (
    add_board,
    add_choosing,
    add_control,
    add_force,
    add_goal,
    add_repeats,
    add_search,
    add_sweep,
    add_table,
    columns_of,
    positive_int,
)
from .side_by_side import measured_sessions, show_comparison
from .terminal import print_description, print_json, print_wrapped, say_listing, show

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..engine.analysis.answers import Answer
    from ..engine.analysis.choosers import Preferences
    from ..engine.analysis.over_load import ModelAtLoad
    from ..engine.analysis.session_analysis import Analysis
    from ..engine.analysis.tradeoff import Load
    from ..engine.results.objectives import Limit, Objective
    from ..engine.session.opened import Opened


def add_log(parser: ArgumentParser) -> None:
    """The options that are of a log of power over time."""
    group = parser.add_argument_group("a log of power over time")
    group.add_argument("--span", metavar="FROM:TO", help="energy of this span only, in s from the log's beginning")
    group.add_argument("--interval", metavar="S", help="time between readings, where the log does not hold it")


def analyse_log(path: Path, arguments: Namespace) -> int:
    """Trapezoid and counter side by side, gaps and repeated readings, and what the sampling resolves."""
    from ..engine.metering.recorded_energy import LogEnergies, describe_energy, document_of, recorded_energy
    from ..sensors.recorded.gpu import read_any, seconds

    span_s = _span(arguments.span)
    log = read_any(path, None if arguments.interval is None else seconds(arguments.interval, "--interval"))
    energies = [recorded_energy(board, span_s) for board in log.boards]
    longest_s = max(energy.recording_s for energy in energies)
    if span_s is not None and span_s[0] >= longest_s:
        raise InputError(f"the log ends after {longest_s:g} s", "--span", "seconds from its beginning, such as 10:20")
    if arguments.json:
        boards = [document_of(item, board) for item, board in zip(energies, log.boards, strict=True)]
        print_json(LogEnergies(log=str(path), tool=log.tool, notes=log.notes, boards=boards))
        return 0
    for index, (value, board) in enumerate(zip(energies, log.boards, strict=True)):
        if index:
            show()
        print_description(describe_energy(value, board, log.notes if index == len(energies) - 1 else ()))
    return 0


def _span(text: str | None) -> tuple[float, float] | None:
    """'10:20' as seconds. Raises InputError."""
    if text is None:
        return None
    try:
        start, end = (float(part) for part in text.split(":"))
    except ValueError:
        start, end = 1.0, 0.0
    if not 0 <= start < end < float("inf"):
        raise InputError(f"'{text[:40]}' is no span of time", "--span", "FROM:TO in s from the log's beginning: 10:20")
    return start, end


def analyse_arguments(parser: ArgumentParser) -> None:
    """Declare the options of `wattridge analyse`."""
    parser.add_argument(
        "source", nargs="?", metavar="SESSION|FILE", help="a session (default: the newest), a cache or a log"
    )
    parser.add_argument("more", nargs="*", metavar="FILE", help="more results of a benchmark of a server, and logs")
    add_goal(parser)
    add_choosing(parser)
    add_sweep(parser)
    add_table(parser)
    add_log(parser)
    words = "power samples, clocks and event reasons of measurement N, or of several side by side"
    parser.add_argument("--evidence", nargs="+", type=positive_int, metavar="N", help=words)
    parser.add_argument("--out", metavar="FILE", help="write all of them to this file as CSV")
    add_force(parser)


def analyse(arguments: Namespace) -> int:
    """Front, choices, correlations, importance, difficulty, drift and failures of a session or a recording.

    Of a log of power over time, energy and sampling.
    """
    from ..engine.analysis.analysis_document import document_of
    from ..engine.analysis.answers import answers, models_of
    from ..engine.analysis.health import health_of
    from ..engine.analysis.peak_share import peak_share
    from ..engine.analysis.session_analysis import analyse as analyse_table
    from ..engine.models.administrator import sweep_of_model
    from ..engine.session.gains import gains_by_meter
    from ..engine.store.database import Store

    if arguments.evidence:
        return _show_evidence(arguments)
    if arguments.out:
        raise InputError("nothing to write", "--out", "name measurements, by their numbers: --evidence 12 15")
    log = None if arguments.more else log_named(arguments.source)
    if log is not None:
        return analyse_log(log, arguments)
    opened = open_session(arguments.source, columns_of(arguments), say_listing)
    sides = opened.side.by_kernel()
    parts = []
    for side in sides if len(sides) > 1 else ():
        space = replace(side.table.space, notes=opened.plan.space.notes)
        parts.append(replace(opened, plan=replace(opened.plan, title=side.kernel, space=space), table=side.table))
    shown = (opened, *parts) if arguments.json else (parts or [opened])
    sweep = sweep_of_model(Path(arguments.sweep), opened.plan.gpu) if arguments.sweep else None
    try:
        with Store() as store:
            models_there = [models_of(part.table, part.plan, store, sweep) for part in shown]
    except WattridgeError:  # the store cannot be read: `opened` is a file
        models_there = [models_of(part.table, part.plan, of_model=sweep) for part in shown]
    documents = []
    for part, known in zip(shown, models_there, strict=True):
        objective = objective_of(part, arguments)
        analysis = analyse_table(part.table, objective, preferences=preferences_of(arguments), load=load_of(arguments))
        found = answers(analysis, part.plan, known, load_of(arguments))
        best = analysis.best
        if arguments.json:
            share = peak_share(part.plan, analysis.table.measurement(best)) if best is not None else None
            models = _models(part, analysis)
            documents.append(
                {
                    **_heading(part),
                    "health": health_of(part.table, objective.goal.name, part.plan.origin),
                    "sensor_gains": [gain for gain in gains_by_meter(part.table).values() if not isinstance(gain, str)],
                    "answers": found,
                    **document_of(analysis),
                    "models_over_load": models,
                    "share_of_peak": share,
                }
            )
        else:
            _print(part, analysis, found)
    if arguments.json:
        print_json({**documents[0], "kernels": documents[1:]})
    return 0


def _show_evidence(arguments: Namespace) -> int:
    """What the sensors reported during some measurements of a stored session."""
    from ..engine.session.evidence import csv_lines, describe_evidence, evidence_of_session
    from ..engine.store.database import Store

    number = None if arguments.source is None else session_number(arguments.source)
    if arguments.source is not None and number is None:
        raise InputError("a file holds no samples", arguments.source, "name a stored session by its number")
    with Store() as store:
        shown = evidence_of_session(store, number or newest_session(store, "analyse"), arguments.evidence)
    if arguments.out:
        path = write_text(Path(arguments.out), csv_lines(shown), overwrite=arguments.force)
        shown = replace(shown, files=(str(path),))
    if arguments.json:
        print_json(shown)
    else:
        print_description(describe_evidence(shown))
    return 0


def _print(opened: Opened, analysis: Analysis, found: Sequence[Answer]) -> None:
    """The answers, then every finding."""
    from ..engine.analysis.describe_analysis import MOST_POINTS, describe_analysis, describe_models_over_load
    from ..engine.analysis.peak_share import peak_share
    from ..engine.metering.external_meters import MEDIAN
    from ..engine.results.description import Description, Figure
    from ..engine.session.gains import gains_by_meter

    plan, table, plane = opened.plan, analysis.table, analysis.plane
    failed = ", ".join(f"{count} {state}" for state, count in table.failures().items()) or "none"
    timed = int(table.timed().sum())
    also = f", {timed} timed" if timed else ""
    figures = [
        Figure("measured", f"{len(table) - timed} of {plan.space.size} configurations{also}"),
        Figure("failed", failed),
    ]
    share = peak_share(plan, table.measurement(analysis.best)) if analysis.best is not None else None
    if share is not None:
        figures.append(Figure(f"the best by {analysis.objective.goal} reaches", share.words))
    for meter, gain in gains_by_meter(opened.table).items():
        of = "the mean of the board's readings" if meter == MEDIAN else "the board's sensor"
        said = gain if isinstance(gain, str) else gain.sentence(of, "W")
        figures.append(Figure(f"beside {meter}", said))
    board = f"{plan.gpu} ({plan.source})"
    show(f"{opened.name}, {plan.title}: {board}")
    for answer in found:
        print_wrapped("  ", answer.sentence)
        if answer.confidence:
            print_wrapped("      ", answer.confidence)
    show()
    print_description(Description("What was measured", "", figures, remarks=plan.space.notes))
    for value in (*describe_analysis(analysis), *describe_models_over_load(_models(opened, analysis))):
        show()
        print_description(value)
    if plane is not None and max(len(plane.front), len(plane.hull)) > MOST_POINTS:
        show("", "--json has every point of the front and of the hull")


def _models(opened: Opened, analysis: Analysis) -> tuple[ModelAtLoad, ...]:
    """The frequency model at each load of a service; none of anything else."""
    from ..engine.analysis.over_load import models_over_load

    if analysis.over_load is None:
        return ()
    return models_over_load(analysis.table, gpu=opened.plan.gpu, simulated=opened.plan.source == "simulated")


def compare_arguments(parser: ArgumentParser) -> None:
    """Declare the options of `wattridge compare`."""
    parser.add_argument(
        "sources",
        nargs="+",
        metavar="SESSION|FILE|SPEC",
        help="numbers of sessions, caches, or specifications to tune on every board of --gpu first",
    )
    add_board(parser, speed=float("inf"))
    add_repeats(parser)
    add_search(parser)
    add_control(parser)
    add_table(parser)


def compare(arguments: Namespace) -> int:
    """Several sessions or boards: fronts, what tuning for energy gains on each, and configurations carried over.

    Kernels by boards with means and deviations, and averages over the boards of a model.
    """
    columns = columns_of(arguments)
    named = [source for source in arguments.sources if is_specification(source)]
    measured = measured_sessions(named, arguments) if named else []
    if arguments.gpu is not None and not named:
        remedy = "name a specification to tune on these boards; sessions and files are compared as they are"
        raise InputError("nothing is to be measured", "--gpu", remedy)
    read = [
        limited(open_session(source, columns, say_listing), arguments)
        for source in arguments.sources
        if source not in named
    ]
    show_comparison([*read, *measured], arguments)
    return 0


def limited(opened: Opened, arguments: Namespace) -> Opened:
    """A session with the limits that the command line names, if any, instead of its own. Raises InputError."""
    if not arguments.limit:
        return opened
    return replace(opened, objective=replace(opened.objective, limits=_limits(opened, arguments)))


def preferences_of(arguments: Namespace) -> Preferences:
    """The limits and the weight from the command line. Raises InputError."""
    from ..engine.analysis.choosers import Preferences

    if not 0 <= arguments.slower < float("inf"):
        raise InputError(f"at most {arguments.slower} % slower", "--slower", "a number of per cent, 0 or more")
    if not 0 <= arguments.weight <= 1:
        raise InputError(f"a weight of {arguments.weight}", "--weight", "a number between 0 (energy) and 1 (time)")
    return Preferences(slower=arguments.slower / 100, power_w=arguments.power, weight=arguments.weight)


def load_of(arguments: Namespace) -> Load:
    """The load of a year from the command line. Raises InputError."""
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
    """The session's objective, front and limits, or those that the command line names instead. Raises InputError."""
    from ..engine.results.objectives import Goal, Objective

    goal = opened.objective.goal
    for option, maximise in (("maximise", True), ("minimise", False)):
        name = getattr(arguments, option)
        if name is not None:
            goal = Goal(name, maximise)
            _check(name, f"--{option}", opened)
    return Objective(goal, _front(arguments, opened) or opened.objective.front, _limits(opened, arguments))


def _limits(opened: Opened, arguments: Namespace) -> tuple[Limit, ...]:
    """Those of the command line, else the session's own. Raises InputError."""
    from ..engine.results.objectives import parse_limit

    limits = tuple(parse_limit(text) for text in arguments.limit) or opened.objective.limits
    for limit in limits:
        _check(limit.name, "--limit", opened)
    return limits


def _front(arguments: Namespace, opened: Opened | None = None) -> Any:
    from ..engine.results.objectives import parse_front

    if not arguments.front:
        return ()
    goals = parse_front(arguments.front)
    for goal in goals:
        if opened is not None:
            _check(goal.name, "--front", opened)
    return goals


def _check(name: str, option: str, opened: Opened) -> None:
    columns = (*opened.table.value_names, *opened.table.space.names)
    if name not in columns:
        raise InputError(f"there is no value '{name}'", option, f"known: {', '.join(columns)}")


def _repeats(opened: Opened) -> dict[str, Any] | None:
    """The scatter of repeats of a configuration, where a parameter counts them."""
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
