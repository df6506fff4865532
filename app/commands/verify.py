"""`wattridge verify FILE`: whether every figure of an evidence file follows from its samples."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from ..base.formatting import counted
from .terminal import print_json, show


def verify_arguments(parser: ArgumentParser) -> None:
    """Declare the options of `wattridge verify`."""
    parser.add_argument("file", type=Path, metavar="FILE", help="what --evidence or --energy-evidence wrote")


def verify(arguments: Namespace) -> int:
    """Compute the figures again; status 1 where one does not hold."""
    from ..engine.report.evidence_file import verify_evidence

    verified = verify_evidence(arguments.file)
    if arguments.json:
        print_json(verified)
    else:
        show(*verified.faults)
        of = f"{counted(verified.results, 'result')}, {counted(verified.blocks, 'block')}"
        figures = "every figure follows" if verified.holds else "figures do not follow"
        show(f"{verified.gpu}: {of}, {counted(verified.samples, 'sample')}: {figures} from the samples")
    return 0 if verified.holds else 1
