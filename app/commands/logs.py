"""`wattridge analyse LOG`: energy and sampling of a recording over time, of this program or another tool."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from ..errors import InputError
from ..input_files import is_input
from ..numbers import as_json
from .sources import recording_path
from .terminal import print_description, print_json, show


def add_log(parser: ArgumentParser) -> None:
    """The options that are of a log of power over time."""
    group = parser.add_argument_group("a log of power over time")
    group.add_argument("--span", metavar="FROM:TO", help="energy of this span only, in s from the log's beginning")
    group.add_argument("--interval", metavar="S", help="time between readings, where the log does not hold it")


def log_named(source: str | None) -> Path | None:
    """The log or recording over time that the user names; None for anything else."""
    from ..sensors.recorded.logs.read import is_log
    from ..sensors.recorded.open import is_own

    path = None if source is None else recording_path(source)
    if path is None or not is_input(path):
        return None
    return path if is_own(path) or is_log(path) else None


def analyse_log(path: Path, arguments: Namespace) -> int:
    """Trapezoid and counter side by side, gaps and repeated readings, and what the sampling resolves."""
    from ..engine.metering.recorded_energy import describe_energy, document_of, recorded_energy
    from ..sensors.recorded.open import read_any, seconds

    span_s = _span(arguments.span)
    log = read_any(path, None if arguments.interval is None else seconds(arguments.interval, "--interval"))
    found = [recorded_energy(board, span_s) for board in log.boards]
    longest_s = max(each.recording_s for each in found)
    if span_s is not None and span_s[0] >= longest_s:
        raise InputError(f"the log ends after {longest_s:g} s", "--span", "seconds from its beginning, such as 10:20")
    if arguments.json:
        boards = [document_of(each, board) for each, board in zip(found, log.boards, strict=True)]
        print_json(as_json({"log": str(path), "tool": log.tool, "notes": list(log.notes), "boards": boards}))
        return 0
    for at, (each, board) in enumerate(zip(found, log.boards, strict=True)):
        if at:
            show()
        print_description(describe_energy(each, board, log.notes if at == len(found) - 1 else ()))
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
