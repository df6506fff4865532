"""The check of what setting a board needs: the helper with root's rights, and a way to start it."""

from __future__ import annotations

import os
import sys

from ..control.helper.policy import PolicyError, load
from ..control.installing import installation, why_install
from ..control.rights import INSTALL, READ_ONLY, Asking, read_only, ways_to_root
from . import machine
from .finding import Finding, missing, ok, wrong

_FIRST_INSTALL = "wattridge helper install"


def helper() -> Finding:
    """The helper is installed, only root can change it, and this user has a way to start it."""
    if os.name != "posix" or sys.platform == "darwin":
        return ok("boards are set on Linux only: nothing needs to be installed here")
    found = installation()
    facts = {"installed": found.installed, "ready": found.ready, "current": found.current}
    try:
        load("")
    except PolicyError as error:
        return wrong(f"nothing may be set: {error}", "an administrator corrects or removes that file", **facts)
    if amiss := why_install():
        text = amiss.rstrip(".")
        if found.installed:
            return wrong(text, INSTALL, **facts)
        found_missing = missing(text, _FIRST_INSTALL, **facts)
        of_nvidia = machine.unless_not_needed(found_missing, machine.NVIDIA)
        return found_missing if machine.has_board(machine.AMD) else of_nvidia
    if not any(ways_to_root(Asking.TERMINAL)):
        return wrong("neither sudo nor pkexec is here, which would start the helper", "install one of them", **facts)
    note = f"; {READ_ONLY}=1 forbids every setting" if read_only() else ""
    return ok(("installed" if found.installed else "root may use this copy") + note, **facts)
