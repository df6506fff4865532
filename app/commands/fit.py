"""`wattridge fit`: the frequency model, power caps, and the two side by side."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..base.errors import InputError
from ..base.records import as_json
from .arguments import add_board, add_control, session_number
from .sources import recording_path
from .terminal import ProgressBar, print_description, print_json, say, show

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..engine.models.clock_log import Plateau
    from ..engine.models.fit.caps import CapFit
    from ..engine.models.fit.frequency import FrequencyFit
    from ..engine.results.description import Description


def fit_arguments(parser: ArgumentParser) -> None:
    """Declare the options of `wattridge fit`."""
    parser.add_argument(
        "file", nargs="?", metavar="FILE", help="a CSV, a cache, T4 results, or the number of a session"
    )
    add_board(parser, speed=float("inf"))
    parser.add_argument(
        "--points", type=int, default=10, metavar="N", help="at most so many clocks with --gpu (default 10)"
    )
    parser.add_argument(
        "--uniform", action="store_true", help="clocks evenly spread, not each where it is most informative"
    )
    parser.add_argument("--memory-clocks", action="store_true", help="a sweep at each memory clock of the board")
    parser.add_argument("--caps", action="store_true", help="power limits too, and how they compare with clocks")
    add_control(parser)
    for column in ("clock", "power", "time", "rate"):
        parser.add_argument(f"--{column}", metavar="COLUMN", help=f"the column or value that holds the {column}")
    parser.add_argument(
        "--transpose",
        action="store_true",
        help="the file has one row per application and a column of powers per clock; --rate or --time: such a file",
    )
    parser.add_argument("--series", metavar="KEY=VALUE", help="the device, kernel or configuration to take")


def fit(arguments: Namespace) -> int:
    """Fit the frequency model, or power caps, to a file, a stored session, or a sweep of a board."""
    if (arguments.file is None) == (arguments.gpu is None):
        raise InputError("one source is needed", "fit", "name a file or session number, or a board with --gpu")
    document, descriptions = _of_board(arguments) if arguments.file is None else _of_file(arguments)
    if arguments.json:
        print_json(document)
        return 0
    for number, description in enumerate(descriptions):
        if number:
            show()
        print_description(description)
    return 0


def _of_file(arguments: Namespace) -> tuple[Any, list[Description]]:
    from ..engine.models.clock_fits import caps_of_session, fit_of_session
    from ..engine.models.describe_fits import describe_caps, describe_fit
    from ..engine.models.fit.caps import AllSeries, most_telling
    from ..engine.models.fit.frequency import fit_memory_clocks
    from ..engine.models.series import read_caps, read_series
    from ..engine.store.database import Store

    path = recording_path(arguments.file)
    named = {name: getattr(arguments, name) for name in ("power", "time", "rate", "series")}
    caps: list[CapFit] = []
    fitted: FrequencyFit | None = None
    plateaus: Sequence[Plateau] = ()
    try:
        number = session_number(arguments.file)
        if number is not None:
            with Store() as store:
                session = store.load(number)
            if session.left_out:
                say(session.space.notes[-1])
            caps = caps_of_session(session)
            fitted, _ = fit_of_session(session)
        else:
            caps = [] if arguments.transpose else read_caps(path, **named)
            series = read_series(path, clock=arguments.clock, transpose=arguments.transpose, **named)
            fitted = fit_memory_clocks(series)
            plateaus = next(points.plateaus for points in series if points.series == fitted.series)
    except InputError:
        if not caps:
            raise
    if caps and (fitted is None or arguments.caps):
        best = most_telling(caps)
        return replace(best, all_series=AllSeries.of(caps) if len(caps) > 1 else None), [describe_caps(best, caps)]
    if arguments.caps:
        raise InputError("no series has three power limits", f"{arguments.file}, --caps", "leave --caps out")
    assert fitted is not None
    return as_json(fitted) | ({"plateaus": plateaus} if plateaus else {}), [describe_fit(fitted, plateaus=plateaus)]


def _of_board(arguments: Namespace) -> tuple[Any, list[Description]]:
    from ..engine.models.clock_fits import caps_of_sweep, fit_of_sweep
    from ..engine.models.describe_fits import describe_fit, describe_load
    from ..engine.models.fit.caps import compare
    from .control import guarded_board

    bar = ProgressBar(quiet=arguments.json)
    with guarded_board(arguments, by="fit") as (gpu, guard):
        fitted, origin = fit_of_sweep(
            gpu,
            points=arguments.points,
            steered=not arguments.uniform,
            memory_clocks=arguments.memory_clocks,
            on_progress=lambda done, total: bar.show(done, total, "clocks", final=done == total),
            guard=guard,
        )
        if not arguments.caps:
            return fitted, [describe_fit(fitted, origin)]
        caps = caps_of_sweep(
            gpu,
            points=arguments.points,
            on_progress=lambda done, total: bar.show(done, total, "power limits", final=done == total),
            guard=guard,
        )
        comparison = compare(fitted, caps)
        document = {"clocks": fitted, "caps": caps, "comparison": comparison}
        return document, describe_load(fitted, caps, comparison, origin)
