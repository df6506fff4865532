"""A session described for the terminal, the report and the window: how it was searched, and what it found."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from ...base.formatting import duration, percent
from ...sensors.event_reasons import LIMITING
from ...sensors.simulated.twin import not_shown
from ..analysis.costs import costs_of
from ..analysis.failures import most_frequent
from ..analysis.health import health_of
from ..analysis.iso_lines import Role
from ..analysis.own_state import own_state
from ..analysis.peak_share import peak_share
from ..analysis.quantities import quantity
from ..analysis.standing import ratio
from ..analysis.tradeoff import change_words, relative_change
from ..formats.names import unit_of
from ..metering.external_meters import BOARD
from ..metering.limit_effect import in_words
from ..models.roofline.operator_floor import OperatorFloor
from ..models.series import limit_effects
from ..results.description import Cell, Description, Figure, Listing
from ..results.measurement import Measurement, scattered
from ..results.state import Purpose
from ..runner.kernels.reference import Baseline
from ..runner.pool.pool import boards_of_origin, status_of_origin
from ..runner.stating import Statement
from ..space.repeats import fold
from ..space.result_table import ResultTable
from ..space.within_limits import broken_in_words, feasible, nearest, unsure_in_words
from ..specification.operator_shapes import parameters_had
from ..specification.plan import SessionPlan
from ..strategies.energy_log import EnergyLog
from .gains import choice_of_origin, describe_gain
from .references import Kind, references_of
from .service_boards import boards_of_service
from .summary import (
    best_of,
    by_goal,
    finals_of_session,
    front_indices,
    library_index,
    starts_of,
)

_SOURCES = {
    "nvml": "measured on the board",
    "amd": "measured on the board",
    "simulated": "SIMULATED: from a model of the board, not from one",
    "recorded": "replayed from a recording",
    "unmetered": "timed; energy is not known: what it ran on reports none",
}


def source_in_words(source: str) -> str:
    """Where the figures of a session come from: a simulated or replayed session says so wherever it is shown."""
    return _SOURCES.get(source, source)


def describe_search(plan: SessionPlan, table: ResultTable, seconds: float = math.nan) -> Description:
    """The space, how much of it was measured, and how the search went."""
    failed = ", ".join(f"{count} {state}" for state, count in table.failures().items())
    timed = int(table.timed().sum())
    share = (len(table) - timed) / plan.space.size if plan.space.size else math.nan
    limits = {"evaluations": plan.max_evaluations, "s": plan.max_seconds, "without a better one": plan.patience}
    budget = ", ".join(f"{limit:g} {what}" for what, limit in limits.items() if limit is not None)
    health = health_of(table, plan.objective.goal.name, plan.origin)
    figures = [
        *([] if not health.known else [Figure("Health", health.words, important=not health.healthy)]),
        Figure("Source", _source_of(plan)),
        *([Figure("Data", data)] if (data := plan.origin.get("data")) else []),
        Figure("Combinations", f"{plan.space.cartesian}, of which {plan.space.size} are valid"),
        Figure("Measured", f"{len(table) - timed} ({percent(share)} of the valid ones)"),
        Figure("Failed", failed or "none"),
        *_describe_measuring(plan, table),
        *describe_decision(plan, table),
        Figure("Search", f"{plan.strategy}, seed {plan.seed}"),
        Figure("Budget", budget or "none"),
        *describe_statement(plan),
        *describe_gain(plan.origin),
        *describe_references(plan),
    ]
    if timed:
        figures.insert(
            3 + health.known, Figure("Only timed", str(timed), note="by a few launches: their energy is not known")
        )
    if math.isfinite(seconds):
        figures.append(Figure("Took", duration(seconds)))
    unlike = not_shown(plan.origin.get("gpu", ""))
    remarks = [*plan.space.notes, *filter(None, (unlike, in_words(limit_effects(table))))]
    return Description(plan.title, plan.gpu, figures, remarks=remarks)


def _source_of(plan: SessionPlan) -> str:
    if plan.source == "unmetered" and choice_of_origin(plan.origin).energy_from != BOARD:
        return "timed; the energy is a meter's"
    if plan.source == "simulated" and plan.purpose is Purpose.REPLAY:
        return f"{source_in_words(plan.source)}; {source_in_words('recorded')}"
    return source_in_words(plan.source)


def describe_session(
    plan: SessionPlan, table: ResultTable, *, session: int | None = None, seconds: float = math.nan, reason: str = ""
) -> Description:
    """How a session was searched, its best configuration by the objective, the scatter of its repeats, its front.

    `reason` says why it ended.
    """
    searched = describe_search(plan, table, seconds)
    ended = [Figure("Ended", reason)] if reason else []
    repeats = fold(table)
    compared = repeats.table if repeats is not None else table  # of repeats none is better than another
    best = best_of(plan, compared)
    listings: list[Listing] = [*describe_board_work(plan.origin)]
    if best is None:
        outcome = list(_none_feasible(plan, compared) or _failure(table))
    else:
        measurement = compared.measurement(best)
        standing = list(describe_standing(plan, compared, best))
        against = _own_state(compared, best)
        outcome = [*_best(plan, measurement), *against, *standing, *describe_energy_search(plan, compared)]
        listings += [_repeats(plan, measurement), turns_of(plan), _front(plan, compared)]
    return Description(
        title=f"Session {session}: {plan.title}" if session is not None else plan.title,
        origin=f"{plan.gpu} ({plan.source})",
        figures=[*searched.figures, *ended, *outcome],
        listings=[listing for listing in listings if listing.rows],
        remarks=[*searched.remarks, *([repeats.words] if repeats is not None else [])],
    )


def describe_statement(plan: SessionPlan) -> Iterator[Figure]:
    """The condition that energy and power are stated for, and the three ways in which they can be off, apart."""
    stated = Statement.of_origin(plan.origin)
    if stated is None:
        return
    yield Figure("Energy and power at", stated.condition.words, note="corrected with what the session showed")
    within, between = stated.model.repeatability, stated.model.uncertainty(0.0)
    yield Figure("Repeatability", f"±{percent(within)}", note="of power within the session, 95 %")
    yield Figure("Reproducibility", f"±{percent(between)}", note="between sessions at that condition, 95 %")
    if next(describe_gain(plan.origin), None) is None:
        yield Figure("Gain of the sensor", None, unknown="needs a meter; up to ±5 % of a board's own [Yang2024]")


def describe_energy_search(plan: SessionPlan, table: ResultTable) -> Iterator[Figure]:
    """What an energy-aware search saved and gained; nothing of other searches."""
    log = EnergyLog.of_origin(plan.origin)
    if log is None:
        return
    note = f"k of the last round {log.rounds[-1].k:.2f}" if log.rounds else ""
    yield Figure("Energies measured", f"{log.measured} of {log.offered} candidates, {log.saved} saved", note=note)
    measured = [table.measurement(int(index)).values for index in np.flatnonzero(table.comparable)]
    pairs = [(values["energy_j"], values["time_s"]) for values in measured if {"energy_j", "time_s"} <= values.keys()]
    if pairs:
        (energy, time), fastest = min(pairs), min(pairs, key=lambda pair: pair[1])
        words = change_words(relative_change(fastest[0], energy), "energy")
        words += f" and {change_words(relative_change(fastest[1], time), 'time')} than the fastest that was measured"
        yield Figure("It gained", words if energy < fastest[0] else "nothing: the fastest needs the least energy")


def _describe_measuring(plan: SessionPlan, table: ResultTable) -> Iterator[Figure]:
    """What a session has of limits, and of the starts, intervals and boards of a service."""
    limits = plan.objective.limits
    if limits:
        kept = feasible(table, limits)
        worked = len(table) - sum(table.failures().values()) - int(table.timed().sum())
        yield Figure("Limits", "; ".join(map(str, limits)), note=f"kept by {kept.sum()} of {worked} configurations")
    count, seconds = starts_of(table)
    if count:
        yield Figure("Server started", f"{count} times" if count > 1 else "once", note=f"{duration(seconds)} in all")
    if {"requests_per_s", "idle_share"} <= set(table.value_names):
        note = "how far another session comes from them, on a host or with a server in another state, is not in them"
        yield Figure("Intervals", "of what changes within a window, 95 %", note=note)
    if boards := boards_of_service(plan.origin):
        named = ", ".join(board["name"] for board in boards)
        yield Figure("Boards of the service", named, note="their energy adds up; settings are made on all of them")


def describe_decision(plan: SessionPlan, table: ResultTable) -> Iterator[Figure]:
    """The board whose figures were compared; nothing if one board measured the session."""
    if table.decided_on:
        facts = boards_of_origin(plan.origin).get(table.decided_on, {})
        note = "it measured the finalists of all boards; only its figures are compared"
        yield Figure("Decided on", facts.get("label", table.decided_on), note=note)
    elif len(table.boards) > 1:
        yield Figure("Decided on", None, unknown="no board: figures of several are compared as each reported them")


def describe_board_work(origin: Mapping[str, str]) -> Iterator[Listing]:
    """What each board did; nothing of a session on one board."""
    status = status_of_origin(origin)
    if status is None or len(status.boards) < 2:
        return
    rows: list[list[Cell]] = [
        [board.label, board.measured, board.failed, percent(board.share, 0), board.lost] for board in status.boards
    ]
    title = "What the boards did: results that they reported, and the share of their time with rows to measure"
    yield Listing(title, ("board", "results", "failed", "at work", "times lost"), rows)


def _none_feasible(plan: SessionPlan, table: ResultTable) -> list[Figure]:
    """That nothing keeps the limits, and what comes nearest; empty if that is not why nothing is best."""
    index = nearest(table, plan.objective.limits)
    if index is None:
        return []
    measurement = table.measurement(index)
    chosen = ", ".join(f"{name}={value}" for name, value in measurement.configuration.items())
    return [
        Figure("Best", None, unknown="no configuration keeps the limits", important=True),
        Figure("Nearest", chosen, note=broken_in_words(plan.objective.limits, measurement.values)),
    ]


def _failure(table: ResultTable) -> Iterator[Figure]:
    worked = len(table) > sum(table.failures().values())
    yield Figure("Best", None, unknown=f"no configuration {'has the figure' if worked else 'worked'}", important=True)
    if (failure := most_frequent(table)) is not None:
        state, message, count = failure
        yield Figure("Most frequent failure", message, note=f"{count} {state}")


def _best(plan: SessionPlan, best: Measurement) -> Iterator[Figure]:
    goal = plan.objective.goal
    chosen = ", ".join(f"{name}={value}" for name, value in parameters_had(best.configuration).items())
    value = quantity(goal.name, units=plan.units).text(best.values[goal.name])
    yield Figure(f"Best by {goal}", value, important=True)
    yield Figure("Its configuration", chosen)
    if unsure := unsure_in_words(plan.objective.limits, best):
        yield Figure("Not certain to keep", unsure)
    share = peak_share(plan, best)
    if share is not None:
        yield Figure("It reaches", share.words)


def _own_state(table: ResultTable, best: int) -> Iterator[Figure]:
    """The best against the board's own state, and what locks cost by themselves."""
    state = own_state(table, costs_of(table), best)
    if state is not None:
        yield Figure("It takes" if state.gain is not None else "It is", state.words)
        for remark in state.remarks:
            yield Figure("Of the board", remark)


def describe_references(plan: SessionPlan) -> Iterator[Figure]:
    """What the vendor's library takes for the session's operator, and the roofline's floor; or why it is not known."""
    library, floor = Baseline.of_origin(plan.origin), OperatorFloor.of_origin(plan.origin)
    by_kind = {reference.kind: reference for reference in references_of(plan)}
    if (reference := by_kind.get(Kind.LIBRARY)) is not None:
        yield Figure("Vendor library", f"{reference.label}: {reference.words}", note=reference.note)
    elif library is not None:
        yield Figure("Vendor library", None, unknown=f"{library.library}: {library.why_not}".removeprefix(": "))
    if (reference := by_kind.get(Kind.FLOOR)) is not None:
        yield Figure(reference.label, reference.words, note=reference.note)
    elif floor is not None:
        yield Figure("Roofline floor", None, unknown=floor.why_not)


def describe_standing(plan: SessionPlan, table: ResultTable, index: int) -> Iterator[Figure]:
    """What a configuration gains on the library, or that this is to be kept, and how far it is from the floor."""
    library = library_index(table, plan.space)
    if library is not None:
        yield from _against_library(plan, table, index, library)
    for reference in references_of(plan):
        if reference.kind is Kind.LIBRARY and library is not None:
            continue  # a row of the session, of which its own measurements say more
        if words := reference.standing(table.measurement(index)):
            against = "Above the floor" if reference.kind is Kind.FLOOR else f"Against {reference.label}"
            yield Figure(against, words, note=f"{reference.words}; {reference.note}")


def _against_library(plan: SessionPlan, table: ResultTable, index: int, library: int) -> Iterator[Figure]:
    """Whether anything is better for certain than what the vendor's library does by itself."""
    ranked = by_goal(table, plan.objective.goal, plan.objective.limits)
    other = index if index != library else next((each for each in ranked if each != library), None)
    found = ""
    if other is not None:
        energies = table.values("energy_j")
        pair = np.array([library]), np.array([other])
        found = ratio(table, pair, (energies[library], energies[other]), "energy_j", Role.ENERGY).words("energy")
    whose = "the best of the others" if index == library else "this one"
    if best_of(plan, table) == library:
        yield Figure("Answer", "keep the library as it is", note=f"{whose}: {found}" if found else "", important=True)
    elif found:
        yield Figure("Against the library by itself", found, note="" if index != library else whose)
    if table.measurement(library).event_reasons & LIMITING:
        yield Figure("Of the board", "it runs at its power limit, where energy is time")


def _repeats(plan: SessionPlan, best: Measurement) -> Listing:
    """The repeats of the best: minimum, mean, maximum and deviation, as of every test in [Anzt2015]."""
    values = best.values
    rows: list[list[Cell]] = [
        [name, values[f"min_{name}"], values[name], values[f"max_{name}"], values[f"std_{name}"], unit_of(name, {})]
        for name in scattered(values)
    ]
    count = plan.origin.get("repeats", "1")
    return Listing(f"Over its {count} repeats", ("", "minimum", "mean", "maximum", "deviation", "unit"), rows)


def turns_of(plan: SessionPlan) -> Listing:
    """The configurations that contended for the best, against the winner."""
    finals = finals_of_session(plan)
    others = [] if finals is None else finals["others"]
    rows: list[list[Cell]] = [
        [each["energy"].words("energy"), each["time"].words("time"), each["turns"], *each["configuration"].values()]
        for each in others
    ]
    title = "Measured in turns at the end: more or less than the best takes"
    return Listing(title, ("energy", "time", "turns", *(others[0]["configuration"] if others else ())), rows)


def _front(plan: SessionPlan, table: ResultTable) -> Listing:
    goals = plan.objective.front
    points = [table.measurement(index) for index in front_indices(table, goals, plan.objective.limits)]
    names = list(points[0].configuration) if points else []
    rows: list[list[Cell]] = [
        [*(point.values.get(goal.name) for goal in goals), *point.configuration.values()] for point in points
    ]
    title = f"Pareto front over {' and '.join(map(str, goals))}, {len(points)} points"
    return Listing(title, [*(goal.name for goal in goals), *names], rows)
