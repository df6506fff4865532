"""`wattridge doctor`: what is missing or wrong on this machine, and the remedy for each."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from ..base.errors import InputError
from ..engine.doctor.checks import BY_NAME, CHECKS
from ..engine.doctor.examine import examine, to_json
from ..engine.doctor.finding import State
from .terminal import print_json, print_wrapped, show, stop_on_interrupt


def doctor_arguments(parser: ArgumentParser) -> None:
    """Declare the options of `wattridge doctor`."""
    parser.add_argument("check", nargs="*", metavar="CHECK", help="only these (default: all); --json names them")


def doctor(arguments: Namespace) -> int:
    """Look at everything that the program needs; 1 where something is wrong. What is only missing is status 0."""
    unknown = [name for name in arguments.check if name not in BY_NAME]
    if unknown:
        raise InputError(f"there is no check '{unknown[0]}'", "doctor", f"one of {', '.join(BY_NAME)}")
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
    document = to_json(findings)
    if arguments.json:
        print_json(document)
    else:
        show("", f"{document['ok']} ok, {document['missing']} missing, {document['wrong']} wrong")
    return int(any(finding.state is State.WRONG for _, finding in findings))
