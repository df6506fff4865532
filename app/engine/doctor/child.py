"""Runs one check in a process of its own: `python -P -m PACKAGE.engine.doctor.child NAME`; the finding as JSON."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence

from ...base.errors import WattridgeError
from .checks import BY_NAME
from .finding import Finding, as_wrong, wrong


def found_by(name: str) -> Finding:
    """What a check finds; one that fails finds just that."""
    try:
        return BY_NAME[name].function()
    except WattridgeError as error:
        return as_wrong(error)
    except Exception as error:  # noqa: BLE001  (whatever a vendor's library raises costs one line)
        return wrong(f"the check failed: {type(error).__name__}: {error}", BY_NAME[name].if_it_dies)


def main(words: Sequence[str]) -> int:
    """The finding on standard output, whatever a library prints there meanwhile."""
    answer = os.dup(1)
    os.dup2(2, 1)
    found = found_by(words[0])
    document = {"state": found.state, "what": found.what, "remedy": found.remedy, "facts": dict(found.facts)}
    with open(answer, "w", encoding="ascii") as stream:
        json.dump(document, stream)
    sys.stdout.flush()
    os._exit(0)  # what a library does when it is unloaded is no finding of ours


if __name__ == "__main__":
    main(sys.argv[1:])
