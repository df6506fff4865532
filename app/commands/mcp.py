"""`wattridge mcp`: an assistant watches, tunes and reports, over standard input and output; it sets no real board."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from ..base.errors import InputError
from .terminal import say


def mcp_arguments(parser: ArgumentParser) -> None:
    """Declare the options of `wattridge mcp`."""
    parser.add_argument(
        "--folder",
        action="append",
        default=[],
        metavar="FOLDER",
        help="a folder of specifications and kernels that the assistant may use; may be given several times",
    )


def mcp(arguments: Namespace) -> int:
    """Serve the Model Context Protocol until the input ends."""
    from .assistant.allowed import Folders
    from .assistant.protocol import Server
    from .assistant.tools import INSTRUCTIONS, Tools

    if arguments.json:
        raise InputError("the protocol is JSON already", "--json", "leave it out")
    if sys.stdin.isatty():
        say("wattridge mcp: for an assistant that starts it; it reads one message a line. Ctrl+D ends it.")
    tools = Tools(Folders([Path(folder) for folder in arguments.folder]))
    sink = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever prints must not come between the messages
    try:
        Server(tools.by_name, INSTRUCTIONS, sys.stdin.buffer, sink).run()
    finally:
        tools.close()
    return 0
