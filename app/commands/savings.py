"""`wattridge savings TARGET`: what this user may save here, as it is: levers in turns with the untouched state."""

from __future__ import annotations

import shlex
import sys
from argparse import ArgumentParser, Namespace
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

from ..base.errors import InputError
from ..engine.session.named import SPECIFICATION
from .arguments import add_board, add_control, positive_float
from .terminal import ProgressBar, print_description, print_json, say, stop_on_interrupt

if TYPE_CHECKING:
    from ..engine.analysis.in_turns import InTurns
    from ..engine.session.sides import Named


def savings_arguments(parser: ArgumentParser) -> None:
    """Declare the options of `wattridge savings`."""
    usage = "wattridge savings [OPTION ...]"
    parser.usage = f"{usage} TARGET\n       {usage} -- PROGRAM [ARGUMENT ...]"
    what = f"{SPECIFICATION}, with values as in sgemm.toml:block_size_x=32; FILE.py:FUNCTION, a script or a command"
    parser.add_argument("target", nargs="?", metavar="TARGET", help=what)
    parser.add_argument(
        "--seconds", type=positive_float, metavar="S", help="for all of it, about (45 for each lever, at least 14)"
    )
    slower = "of a lever's values those at most so much slower (5)"
    parser.add_argument("--slower", type=positive_float, default=5.0, metavar="PERCENT", help=slower)
    parser.add_argument(
        "--rounding", action="store_true", help="try math modes too, which round results otherwise: TF32 in PyTorch"
    )
    inputs = "of the same file: makes a function's arguments"
    parser.add_argument("--inputs", default="", metavar="FUNCTION", help=inputs)
    parser.add_argument("--seed", type=int, metavar="N", help="of the coins that decide which side begins a pair")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write it with its points in the front, as HTML")
    add_board(parser, speed=float("inf"))
    add_control(parser)


def savings(arguments: Namespace) -> int:
    """Try the levers that this user may use here, and answer with a table."""
    from ..engine.analysis.in_turns import FEWEST
    from ..engine.session.savings import Asked, find_savings
    from ..engine.session.sides import Opening
    from ..sensors.select import open_gpu
    from .control import guard_of

    side, bar = _target(arguments), ProgressBar(quiet=arguments.json)

    def on_step(words: str, now: InTurns | None) -> None:
        if sys.stderr.isatty():
            blocks, so_far = (0, "") if now is None else (now.blocks, f": {now.words}")
            bar.show(min(blocks, FEWEST), FEWEST, f"blocks  {words}{so_far}")

    asked = Asked(arguments.seconds, arguments.slower / 100, arguments.rounding, arguments.seed)
    with ExitStack() as stack:
        stop = stack.enter_context(stop_on_interrupt())
        speed = 1.0 if side.takes_real_time else arguments.speed
        board = open_gpu(arguments.gpu, seed=arguments.sim_seed, speed=speed, voltage=False)
        gpu = stack.enter_context(closing(board))
        guard = stack.enter_context(closing(guard_of(gpu, arguments)))
        opening = Opening(gpu, stop, stack, say, inputs=arguments.inputs)
        found = find_savings(side, opening, guard, asked, on_step)
    if arguments.out is not None:
        from ..engine.report.savings_page import write_savings

        write_savings(found, arguments.out)
    if arguments.json:
        print_json(found)
    else:
        print_description(found.describe())
    return 0


def _target(arguments: Namespace) -> Named:
    """Return the target that the arguments name. Raises InputError."""
    from ..engine.session.sides import target_of

    if bool(arguments.target) == bool(arguments.program):
        raise InputError("name one target", "savings", "as in: wattridge savings sgemm, or savings -- python train.py")
    return target_of(arguments.target or shlex.join(arguments.program), arguments.program)
