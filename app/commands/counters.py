"""`wattridge counters`: the hardware counters of a session's configurations, profiled in a pass of their own."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np

from ..base.processes import ProgressBar, stop_on_interrupt
from ..engine.session.named import newest_session
from .arguments import add_board, positive_int
from .terminal import print_description, print_json, print_table, say, show

if TYPE_CHECKING:
    from ..engine.results.description import Listing
    from ..engine.session.opened import Opened
    from ..engine.session.profiling import ProfilingResult, Wanted
    from ..engine.store.database import Store
    from .documents import CountersDocument, ProfiledConfiguration


def counters_arguments(parser: ArgumentParser) -> None:
    """Declare the options of `wattridge counters`."""
    parser.add_argument(
        "session", nargs="?", type=positive_int, metavar="SESSION", help="a session (default: the newest)"
    )
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--front", action="store_true", help="profile the configurations of the front")
    choice.add_argument("--best", type=positive_int, metavar="K", help="profile the best K by the objective")
    choice.add_argument("--random", type=positive_int, metavar="N", help="profile N of those measured, at random")
    choice.add_argument("--names", action="store_true", help="the counters, and the metrics that give them")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the choice at random (0)")
    add_board(parser, speed=float("inf"))


def counters(arguments: Namespace) -> int:
    """Profile configurations of a session that have no counters yet, if any are asked for; show what is known."""
    from ..engine.session.opened import stored_session
    from ..engine.store.database import Store

    if arguments.names:
        _print_names(arguments)
        return 0
    wanted = _wanted(arguments)
    with Store() as store:
        session = arguments.session or newest_session(store, "counters")
        result = _profile(store, session, wanted, arguments) if wanted is not None else None
        opened = stored_session(store, session)
        if arguments.json:
            print_json(_document(store, session, opened, result))
        else:
            _print(store, session, opened, result)
    return 1 if result is not None and result.failed and not result.profiled and not result.known else 0


def _wanted(arguments: Namespace) -> Wanted | None:
    from ..engine.session.profiling import Wanted, Which

    if arguments.front:
        return Wanted(Which.FRONT)
    for which in (Which.BEST, Which.RANDOM):
        if (count := getattr(arguments, which)) is not None:
            return Wanted(which, count, arguments.seed)
    return None


def _profile(store: Store, session: int, wanted: Wanted, arguments: Namespace) -> ProfilingResult:
    from ..engine.session.profiling import profile_session
    from ..sensors.select import open_gpu

    record = store.session(session)
    named = arguments.gpu or record.origin.get("gpu")
    bar = ProgressBar(quiet=arguments.json)
    with closing(open_gpu(named, seed=arguments.sim_seed, speed=arguments.speed)) as gpu, stop_on_interrupt() as stop:
        result = profile_session(
            store,
            session,
            wanted,
            gpu,
            on_progress=lambda done, total: bar.show(done, total, "profiled", final=done == total),
            stop=stop,
        )
    if stop.is_set():
        say("stopped: what was profiled is kept, and the same command goes on from there")
    return result


def _print(store: Store, session: int, opened: Opened, result: ProfilingResult | None) -> None:
    from ..engine.analysis.describe_analysis import describe_counter_split, describe_counters
    from ..engine.analysis.session_analysis import analyse
    from ..engine.results.description import Description

    analysis = analyse(opened.table, opened.objective, with_difficulty=False)
    tools = ", ".join(store.profiled_by(session))
    remarks = [result.words] if result is not None else []
    if analysis.counted is None:
        remarks.append("no configuration was profiled: choose some with --front, --best K or --random N")
    elif tools != "simulated":
        remarks.append("at the clock that the board chose, each pass from empty caches")
    title = f"Hardware counters of session {session}, {opened.plan.title}"
    print_description(Description(title, f"{opened.plan.board}{f', {tools}' if tools else ''}", remarks=remarks))
    if analysis.counted is None:
        return
    listing = _listing(opened)
    show()
    print_table(listing.rows, listing.header)
    for description in (*describe_counters(analysis), *describe_counter_split(analysis)):
        show()
        print_description(description)


def _listing(opened: Opened) -> Listing:
    """A line for each configuration that was profiled, in the order in which they were measured."""
    from ..engine.results.description import Listing
    from ..engine.workloads.hardware_counters import COUNTERS

    table = opened.table
    names = [name for name in COUNTERS if name in table.value_names]
    figures = [name for name in ("time_s", "energy_j") if name in table.value_names]
    rows = [
        [*item.configuration.values(), *(item.values.get(name) for name in (*figures, *names))]
        for item in map(table.measurement, _profiled(opened))
    ]
    heads = [f"{name} ({COUNTERS[name].unit})" for name in names]
    return Listing("", (*table.space.names, *figures, *heads), rows)


def _profiled(opened: Opened) -> list[int]:
    """The indices of the configurations that were."""
    from ..engine.workloads.hardware_counters import COUNTERS

    table = opened.table
    columns = [table.values(name) for name in COUNTERS if name in table.value_names]
    return np.flatnonzero(np.any(np.isfinite(columns), axis=0)).tolist() if columns else []


def _document(store: Store, session: int, opened: Opened, result: ProfilingResult | None) -> CountersDocument:
    from ..engine.analysis.analysis_document import entry
    from ..engine.analysis.session_analysis import analyse
    from ..engine.workloads.hardware_counters import COUNTERS

    metrics, table = store.metrics(session), opened.table
    configurations: list[ProfiledConfiguration] = []
    for index in _profiled(opened):
        values = table.measurement(index).values
        configurations.append(
            {
                **entry(table, index),
                "values": {name: value for name, value in values.items() if name not in COUNTERS},
                "counters": {name: values[name] for name in COUNTERS if name in values},
                "metrics": metrics.get(int(table.rows()[index]), {}),
            }
        )
    return {
        "session": session,
        "gpu": opened.plan.gpu,
        "source": opened.plan.source,
        "tools": store.profiled_by(session),
        "chosen": None if result is None else len(result.chosen),
        "profiled": None if result is None else result.profiled,
        "known": None if result is None else result.known,
        "failed": None if result is None else [{"row": row, "error": why} for row, why in result.failed.items()],
        "configurations": configurations,
        "analysis": analyse(table, opened.objective, with_difficulty=False).counted,
    }


def _print_names(arguments: Namespace) -> None:
    from ..engine.workloads.hardware_counters import COUNTERS

    if arguments.json:
        print_json(COUNTERS)
        return
    rows = [[name, c.unit, c.meaning, " × ".join(c.metrics), c.published] for name, c in COUNTERS.items()]
    print_table(rows, ("counter", "unit", "what it is", "metrics of Nsight Compute", "in"))
