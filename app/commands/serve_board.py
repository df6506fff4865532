"""`wattridge serve-board`: one board for a Wattridge on another machine, which starts this through ssh."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from contextlib import closing

from ..base.errors import InputError


def serve_board_arguments(parser: ArgumentParser) -> None:
    """Declare the options of `wattridge serve-board`."""
    parser.add_argument("--gpu", metavar="GPU", help="an index, a UUID or simulated:NAME")


def serve_board(arguments: Namespace) -> int:
    """Send what the board reports and answer questions, on standard output and input, until the other end closes."""
    from ..engine.control.serving import BoardServer
    from ..sensors.select import open_gpu

    if sys.stdin.isatty():
        remedy = "on the other machine: wattridge monitor --gpu ssh://HOST/INDEX"
        raise InputError("this is started by another Wattridge, through ssh", "serve-board", remedy)
    # What is meant for the other end goes to a descriptor of its own: nothing else that prints may reach it.
    sink = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    with sink, closing(open_gpu(arguments.gpu)) as gpu:
        BoardServer(gpu, sys.stdin.buffer, sink).run()
    return 0
