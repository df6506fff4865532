"""Who may read the counters of NVIDIA's boards: the rule that the driver's module was loaded with."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

REFUSAL: Final = "ERR_NVGPUCTRPERM"
ADMINISTRATORS_ONLY: Final = f"the driver lets only administrators read its counters ({REFUSAL})"
OPEN_COUNTERS: Final = (
    "run this command as root, or have an administrator set NVreg_RestrictProfilingToAdminUsers=0 for the module"
    " nvidia and reboot; a container needs --cap-add=SYS_ADMIN"
)
_PARAMETERS: Final = Path("/proc/driver/nvidia/params")
_RULE: Final = re.compile(r"^RmProfilingAdminOnly: *(\d+)", re.MULTILINE)
_SYS_ADMIN: Final = 1 << 21  # CAP_SYS_ADMIN in CapEff
_CAPABILITIES: Final = re.compile(r"^CapEff:\s*([0-9a-f]+)", re.MULTILINE)


def counters_refused(parameters: Path = _PARAMETERS, status: Path = Path("/proc/self/status")) -> bool | None:
    """Whether the driver refuses its counters to this process; None where it does not say."""
    try:
        rule = _RULE.search(parameters.read_text(encoding="ascii", errors="replace"))
    except OSError:
        return None
    return None if rule is None else rule[1] != "0" and not _is_administrator(status)


def _is_administrator(status: Path) -> bool:
    """As the driver sees it: CAP_SYS_ADMIN, which root in a container may lack."""
    try:
        found = _CAPABILITIES.search(status.read_text(encoding="ascii", errors="replace"))
    except OSError:
        found = None
    return bool(int(found[1], 16) & _SYS_ADMIN) if found else os.name == "posix" and os.geteuid() == 0
