"""`wattridge helper`: the helper with root's rights, as it is installed here; installing and removing it."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from typing import Any

from ..base.errors import InputError, PermissionRefused
from .control import asking_here
from .terminal import print_json, say, show


def helper_arguments(parser: ArgumentParser) -> None:
    """Declare the options of `wattridge helper`."""
    parser.add_argument(
        "do", nargs="?", choices=("show", "install", "remove"), default="show", help="what to do (default: show)"
    )
    parser.add_argument("--print", action="store_true", help="only print the program that root would run for it")
    parser.add_argument(
        "--leave-records", action="store_true", help="remove it though a board cannot be put back; keep its record"
    )


def helper(arguments: Namespace) -> int:
    """Show, install or remove the helper; 0 if it is ready, or the work is done."""
    if os.name != "posix":
        raise PermissionRefused("boards are set on Linux only", "helper", "nothing needs to be installed here")
    if arguments.do == "show":
        return _show(arguments)
    from ..engine.control import installing
    from ..engine.control.helper.__main__ import LAUNCHER

    if arguments.leave_records and arguments.do != "remove":
        raise InputError("--leave-records is for remove", f"helper {arguments.do}", "leave it out")
    if arguments.print:
        program = installing.setup_program(arguments.do, installing.PLACES, leave_records=arguments.leave_records)
        print(program, end="")  # noqa: T201  (a program for root: as it is)
        return 0
    asking = asking_here()
    if arguments.do == "install":
        report = installing.install(asking, places=installing.PLACES)
    else:
        report = installing.remove(asking, places=installing.PLACES, leave_records=arguments.leave_records)
    _print_report(report, "Installed" if arguments.do == "install" else "Removed", as_json=arguments.json)
    if arguments.do == "install" and not arguments.json:
        say("You are asked for a password when control is switched on. For a group that need not be, with visudo:")
        launcher = f"{installing.PLACES.library}/{LAUNCHER}"
        say(f"  %GROUP ALL=(root) NOPASSWD: {launcher} GPU-*, {launcher} AMD-*")
        say(f"What may be set on this machine, and by whom: {installing.PLACES.policy}")
    return 0


def _show(arguments: Namespace) -> int:
    from ..engine.control import installing
    from ..engine.control.helper.policy import PolicyError, load

    installed = installing.installation()
    policy_fault = ""
    try:
        load("")
    except PolicyError as error:
        policy_fault = str(error)
    document: dict[str, Any] = {
        "folder": installing.PLACES.library,
        "installed": installed.installed,
        "ready": installed.ready,
        "fault": installed.fault,
        "current": installed.current,
        "policy": installing.PLACES.policy,
        "policy_fault": policy_fault,
    }
    if arguments.json:
        print_json(document)
    elif not installed.installed:
        show("The helper is not installed. Install it: wattridge helper install")
    elif installed.fault:
        show(f"The helper may not run as root: {installed.fault}. Install it again: wattridge helper install")
    else:
        show(f"The helper is installed in {installing.PLACES.library}; only root can change it.")
        if not installed.current:
            show("It is of another version than this program. Replace it: wattridge helper install")
    if policy_fault and not arguments.json:
        show(f"Nothing may be set: {policy_fault}")
    return 0 if installed.ready and not policy_fault else 1


def _print_report(report: dict[str, list[str]], done: str, *, as_json: bool) -> None:
    if as_json:
        print_json(report)
        return
    for line in report["done"]:
        show(f"{done}: {line}")
    for line in report["notes"]:
        say(f"Note: {line}")
