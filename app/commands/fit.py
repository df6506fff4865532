"""`wattridge fit`: the frequency model, power caps, and the two side by side."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from ..base.errors import InputError
from .arguments import add_board, add_control
from .terminal import ProgressBar, print_description, print_json, say, show

if TYPE_CHECKING:
    from ..engine.session.fits import LoadFits


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
    fits = _of_board(arguments) if arguments.file is None else _of_file(arguments)
    for note in fits.notes:
        say(note)
    if arguments.json:
        print_json(fits.document)
        return 0
    for number, description in enumerate(fits.descriptions):
        if number:
            show()
        print_description(description)
    return 0


def _of_file(arguments: Namespace) -> LoadFits:
    from ..engine.session.fits import fits_of_source

    names = ("caps", "transpose", "clock", "power", "time", "rate", "series")
    return fits_of_source(arguments.file, **{name: getattr(arguments, name) for name in names})


def _of_board(arguments: Namespace) -> LoadFits:
    from ..engine.session.fits import fits_of_board
    from .control import guarded_board

    bar = ProgressBar(quiet=arguments.json)
    with guarded_board(arguments, by="fit") as (gpu, guard):
        options = {name: getattr(arguments, name) for name in ("points", "uniform", "memory_clocks", "caps")}
        return fits_of_board(gpu, guard, **options, on_progress=bar.of_step)
