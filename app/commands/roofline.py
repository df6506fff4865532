"""`wattridge roofline`: what a flop, a byte and a second cost on a board, measured, from a file, or on file."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..base.errors import InputError
from ..sensors.gpu import LIVE
from .arguments import add_board, add_control, clock_list
from .terminal import print_json, print_listing, say, show

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..engine.models.roofline.points import PlacedKernel, Sweep
    from ..engine.results.description import Description


def roofline_arguments(parser: ArgumentParser) -> None:
    """Declare the options of `wattridge roofline`."""
    parser.add_argument(
        "file",
        nargs="?",
        metavar="FILE",
        help="a recorded sweep, a CSV, or the number of a session (default: all on file, and published boards)",
    )
    add_board(parser, speed=float("inf"))
    parser.add_argument("--precision", metavar="P,...", help="fp32,fp64 (default), fp16_tensor, bf16_tensor")
    parser.add_argument(
        "--clock", type=clock_list, default=(), metavar="MHZ,...", help="lock the graphics clock to these, one by one"
    )
    add_control(parser)
    parser.add_argument("--predict", metavar="FLOP,BYTE|SESSION", help="time, power and energy of a kernel")


def roofline(arguments: Namespace) -> int:
    """Measure the microbenchmarks on a board, read a sweep, or take what is on file; one document per board."""
    from ..scripting.rooflines import measured_sweeps, sweeps_named
    from .control import guarded_board

    if arguments.file is not None and arguments.gpu is not None:
        raise InputError("one source is enough", "roofline", "name a file or session number, or a board with --gpu")
    if arguments.clock and arguments.gpu is None:
        raise InputError("no board is named whose clock could be locked", "--clock", "name one with --gpu")
    kernel = _kernel(arguments.predict) if arguments.predict is not None else None
    if arguments.gpu is not None:
        with guarded_board(arguments, by="roofline") as (gpu, guard):
            wanted = arguments.precision.split(",") if arguments.precision else ()
            sweeps = measured_sweeps(gpu, guard, wanted, arguments.clock, quiet=arguments.json)
    else:
        sweeps = sweeps_named(arguments.file)
    documents = _documents(sweeps, kernel)
    if arguments.json:
        on_file = arguments.file is None and arguments.gpu is None
        print_json(documents if on_file or len(documents) > 1 else documents[0])
    else:
        _print(sweeps, kernel, rows=arguments.file is not None or arguments.gpu is not None)
    return 0


# --- what is known of them --------------------------------------------------------------------------------------------


def _documents(sweeps: list[Sweep], kernel: PlacedKernel | None) -> list[dict[str, Any]]:
    """One per board and source. Raises InputError if no sweep gives a fit."""
    from ..engine.models.roofline.roofline_document import limit_to_json, published_to_json, to_json

    boards: dict[tuple[str, str], dict[str, Any]] = {}
    for sweep in sweeps:
        document: dict[str, Any]
        if sweep.published is not None:
            document = published_to_json(sweep.published, sweep.points.precision)
            document |= {"citation": sweep.origin, "tdp_w": sweep.limit_w, "reasons": list(sweep.reasons)}
        elif sweep.fit is not None:
            document = to_json(sweep.fit)
        else:
            say(f"{sweep.label}: {sweep.why_not}")
            continue
        document["limit"] = limit_to_json(sweep)
        if kernel is not None:
            expected = sweep.predict(kernel)
            names = ("time_s", "energy_j", "power_w")
            document["predicted"] = None if expected is None else dict(zip(names, expected, strict=True))
            if kernel.time_s is not None:
                document["measured"] = {"gpu": kernel.gpu, **{name: getattr(kernel, name) for name in names}}
        boards.setdefault((sweep.points.gpu, sweep.source), {})[sweep.points.precision] = document
    if not boards:
        what, _, remedy = sweeps[0].why_not.partition(": ")
        raise InputError(what, f"{sweeps[0].points.gpu}, {sweeps[0].points.precision}", remedy)
    return [{"gpu": gpu, "source": source, "precisions": precisions} for (gpu, source), precisions in boards.items()]


def _kernel(text: str) -> PlacedKernel:
    """The kernel of `--predict`: its flops and bytes, or a session's best configuration whose values give both."""
    from ..engine.models.roofline.points import PlacedKernel

    if text.isdecimal():
        return _kernel_of_session(int(text))
    try:
        work_flop, traffic_byte = (float(part) for part in text.split(","))
        if not (0 < work_flop < float("inf") and 0 < traffic_byte < float("inf")):
            raise ValueError
    except ValueError:
        remedy = "write its flops and bytes, as 1.4e11,2e8, or the number of a session"
        raise InputError(f"'{text}' is no kernel", "--predict", remedy) from None
    return PlacedKernel(work_flop, traffic_byte)


def _kernel_of_session(session: int) -> PlacedKernel:
    from ..engine.models.roofline.points import kernel_of
    from ..engine.session.summary import by_goal
    from ..engine.store.database import Store

    with Store() as store:
        loaded = store.load(session)
    record, table = loaded.record, loaded.table
    kernels = (
        kernel_of(table.measurement(index), record.title, record.gpu) for index in by_goal(table, record.objective.goal)
    )
    kernel = next((kernel for kernel in kernels if kernel is not None), None)
    if kernel is None:
        raise InputError(
            f"session {session} has no configuration with a known work and traffic",
            "--predict",
            "give its specification the metrics 'GFLOP/s' and 'GB/s', or write its flops and bytes, as 1.4e11,2e8",
        )
    return kernel


def _print(sweeps: Sequence[Sweep], kernel: PlacedKernel | None, rows: bool) -> None:
    """The figures of each board in a table, what a limit held, what --predict expects on all of them, then remarks."""
    from ..engine.models.roofline.describe_sweeps import describe_held, describe_kernel, describe_sweep
    from ..engine.models.roofline.points import precision_words
    from ..engine.results.description import side_by_side

    fitted = [sweep for sweep in sweeps if sweep.fit is not None or sweep.published is not None]
    tables: dict[str, list[Description]] = {}
    for sweep in fitted:
        board, column = sweep.points.gpu, precision_words(sweep.points.precision)
        if sweep.published is not None:
            title, column = "Published: fitted by others, nothing was measured here", f"{board} · {column}"
        else:
            title = board if sweep.source in LIVE else f"{board} ({sweep.source})"
        tables.setdefault(title, []).append(replace(describe_sweep(sweep), title=column))
    listings = [side_by_side(columns, title) for title, columns in tables.items()]
    listings += [held for held in map(describe_held, fitted if rows else ()) if held.rows]
    if kernel is not None:
        listings.append(describe_kernel(kernel, fitted))
    for listing in listings:
        print_listing(listing)
        show()
    remarks = {(reason, sweep.label): None for sweep in fitted for reason in sweep.reasons}
    for remark in dict.fromkeys(reason for reason, _ in remarks):
        show(f"{', '.join(label for reason, label in remarks if reason == remark)}: {remark}")
