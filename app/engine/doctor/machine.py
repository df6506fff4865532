"""What the system itself says is in this machine, without asking any maker's library."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from .finding import Finding, State, ok

NVIDIA: Final = "NVIDIA"
AMD: Final = "AMD"
_VENDORS: Final = {NVIDIA: "0x10de", AMD: "0x1002"}
_DISPLAY_CLASS: Final = "0x03"  # of PCI: VGA, 3D and other display controllers
_SIGNS: Final = {NVIDIA: ("proc/driver/nvidia", "dev/nvidiactl", "dev/dxg"), AMD: ("dev/kfd",)}


def has_board(vendor: str, root: Path = Path("/")) -> bool:
    """Whether this machine has a GPU of a maker's, or its driver is loaded."""
    if any(os.path.lexists(root / sign) for sign in _SIGNS[vendor]):
        return True
    for device in sorted((root / "sys/bus/pci/devices").glob("*")):
        if _read(device / "vendor") == _VENDORS[vendor] and _read(device / "class").startswith(_DISPLAY_CLASS):
            return True
    return False


def unless_not_needed(found: Finding, vendor: str) -> Finding:
    """What is missing for boards of a maker's is not needed where there are none."""
    if found.state is State.MISSING and not has_board(vendor):
        return ok(f"not needed: no GPU of {vendor}'s is in this machine", absent=found.what, **found.facts)
    return found


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""
