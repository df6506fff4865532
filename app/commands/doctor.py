"""`wattridge doctor`: what is missing or wrong on this machine, and the remedy for each."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Final

from ..base.errors import InputError
from ..base.files import refuse_taken
from ..base.formatting import counted
from ..engine.doctor.bundle import write_bundle
from ..engine.doctor.checks import BY_NAME, CHECKS
from ..engine.doctor.examine import examine, to_json
from ..engine.doctor.finding import State
from .terminal import print_json, print_wrapped, show, stop_on_interrupt

_BUNDLE: Final = "wattridge-bundle.zip"


def doctor_arguments(parser: ArgumentParser) -> None:
    """Declare the options of `wattridge doctor`."""
    parser.add_argument("check", nargs="*", metavar="CHECK", help="only these (default: all); --json names them")
    parser.add_argument(
        "--bundle",
        nargs="?",
        const=_BUNDLE,
        metavar="FILE.zip",
        help=f"also write what to send with a report: findings, and some seconds of each board ({_BUNDLE})",
    )
    parser.add_argument("--gpu", metavar="GPU", help="of --bundle: this board in place of every real one")
    parser.add_argument("--force", action="store_true", help="replace what --bundle names, where it exists")


def doctor(arguments: Namespace) -> int:
    """Look at everything that the program needs; 1 where something is wrong. What is only missing is status 0."""
    unknown = [name for name in arguments.check if name not in BY_NAME]
    if unknown:
        raise InputError(f"there is no check '{unknown[0]}'", "doctor", f"one of {', '.join(BY_NAME)}")
    bundle = None if arguments.bundle is None else Path(arguments.bundle)
    if bundle is not None:
        if bundle.suffix.lower() != ".zip":
            raise InputError("a bundle is a ZIP file", str(bundle), f"as in: --bundle {_BUNDLE}")
        refuse_taken(bundle, force=arguments.force)
    checks = [BY_NAME[name] for name in dict.fromkeys(arguments.check)] or list(CHECKS)
    findings = []
    with stop_on_interrupt() as stop:
        for check, finding in examine(checks, stop):
            findings.append((check, finding))
            if not arguments.json:
                print_wrapped(f"{finding.state.value:<8} {check.title:<20} ", finding.what)
                if finding.remedy:
                    print_wrapped(f"{'':<29} -> ", finding.remedy)
        if len(findings) < len(checks):
            raise KeyboardInterrupt
        if bundle is not None:
            boards = write_bundle(bundle, findings, selector=arguments.gpu, overwrite=arguments.force, stop=stop)
    document = to_json(findings)
    if arguments.json:
        print_json(document)
    else:
        show("", f"{document['ok']} ok, {document['missing']} missing, {document['wrong']} wrong")
        if bundle is not None:
            recorded = counted(sum("file" in board for board in boards), "recording")
            show(f"{bundle}: these findings and {recorded} of boards, without names of boards, machine and user")
    return int(any(finding.state is State.WRONG for _, finding in findings))
