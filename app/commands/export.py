"""`wattridge export`: what was measured, and the chosen configuration, in other formats."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from .analyse import preferences_of
from .arguments import add_force, add_preferences, add_table, columns_of, existing_of
from .terminal import print_json, say, show


def export_arguments(parser: ArgumentParser) -> None:
    """Declare the options of `wattridge export`."""
    parser.add_argument(
        "source",
        nargs="?",
        metavar="SESSION|FILE",
        help="a session's number (default: the newest), a cache, T4 results, a CSV file, or a specification",
    )
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--configuration", metavar="NAME=VALUE,...", help="the configuration (default: the best)")
    chosen.add_argument("--choose", metavar="RULE", help="a rule that chooses it: fastest, least_energy, knee, ...")
    add_preferences(parser)
    kinds = ("json", "header", "source", "code", "python", "script", "csv", "cache", "t4", "t1")
    parser.add_argument("--kind", action="append", choices=kinds, help="only these files")
    parser.add_argument("--gpu", metavar="GPU", help="the board that sets the limits in a specification's T1")
    parser.add_argument("--out", metavar="FOLDER", help="where to write (default: a new folder in the data folder)")
    add_force(parser)
    add_table(parser)


def export(arguments: Namespace) -> int:
    """Write a stored session, a recording or a specification in other formats."""
    from ..engine.report.export_named import Wish, export_named

    wish = Wish(
        kinds=arguments.kind,
        folder=Path(arguments.out) if arguments.out else None,
        existing=existing_of(arguments),
        configuration=arguments.configuration,
        rule=arguments.choose,
        preferences=preferences_of(arguments),
        columns=columns_of(arguments),
        gpu=arguments.gpu,
    )
    written = export_named(arguments.source, wish)
    if arguments.json:
        print_json(written)
    else:
        show(*map(str, written.files))
        for remark in written.remarks:
            say(remark)
    return 0
