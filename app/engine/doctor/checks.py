"""Every check by its name, in the order in which they are shown.

Run as a module with a check's name, this makes that check and prints the finding as JSON: each check has a process of
its own (`examine`), so that a driver that crashes or hangs costs one line.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Final

from ...base.errors import WattridgeError
from ...base.installation import how_to_add, how_to_repair
from ...base.processes import end_on_signals
from .finding import Finding, as_wrong, wrong


@dataclass(frozen=True, slots=True)
class Check:
    """One check: the function of that name in the module `module` of this package."""

    name: str
    title: str
    module: str
    if_it_dies: str  # the remedy where a library that it calls crashes or hangs
    limit_s: float = 20.0

    @property
    def function(self) -> Callable[[], Finding]:
        """The check itself. Importing it loads no library of a vendor."""
        function: Callable[[], Finding] = getattr(import_module(f".{self.module}", __package__), self.name)
        return function


_DRIVER: Final = "install the driver again, or reboot; `nvidia-smi` asks the same library"
_ROCM: Final = "install ROCm again, or reboot; `amd-smi` asks the same library"
_REPORT: Final = "please report it"

CHECKS: Final = (
    Check("program", "Wattridge", "installation", _REPORT),
    Check(
        "data",
        "Data folder",
        "installation",
        "its disk does not answer: is it a network's? WATTRIDGE_DATA names another",
    ),
    Check("extras", "Optional parts", "installation", _REPORT),
    Check("nvidia_driver", "NVIDIA driver", "boards", _DRIVER),
    Check("nvidia_devices", "NVIDIA device files", "boards", _DRIVER),
    Check("sensors", "Sensors", "boards", _DRIVER, limit_s=60.0),
    Check("helper", "Helper for settings", "boards", _REPORT),
    Check("cuda", "CUDA", "boards", _DRIVER, limit_s=60.0),
    Check("cuda_compiler", "CUDA compiler", "boards", f"{how_to_add('cuda')}, which brings another", limit_s=90.0),
    Check("profiler", "Hardware counters", "boards", "install Nsight Compute again", limit_s=90.0),
    Check("opencl", "OpenCL", "boards", "reinstall the OpenCL driver of the device", limit_s=90.0),
    Check("amd_smi", "AMD SMI", "boards", _ROCM),
    Check("amd_devices", "AMD device files", "boards", _ROCM),
    Check("hip", "HIP compiler", "boards", _ROCM),
    Check("qt", "Qt", "installation", how_to_repair("PySide6-Essentials"), limit_s=60.0),
    Check(
        "display", "Display", "installation", "is DISPLAY or WAYLAND_DISPLAY right, and may you use it (ssh -X, xhost)?"
    ),
    Check("fonts", "Fonts", "installation", "rebuild the list of fonts: fc-cache -f"),
)
BY_NAME: Final = {check.name: check for check in CHECKS}


def found_by(name: str) -> Finding:
    """Make a check; one that fails is itself a finding."""
    try:
        return BY_NAME[name].function()
    except WattridgeError as error:
        return as_wrong(error)
    except Exception as error:  # noqa: BLE001  (whatever a vendor's library raises costs one line)
        return wrong(f"the check failed: {type(error).__name__}: {error}", BY_NAME[name].if_it_dies)


def _print_finding(name: str) -> None:
    """Print a finding on standard output, and only that, whatever a library prints there meanwhile."""
    answer = os.dup(1)
    os.dup2(2, 1)
    with end_on_signals():
        finding = found_by(name)
    document = {"state": finding.state, "what": finding.what, "remedy": finding.remedy, "facts": dict(finding.facts)}
    with open(answer, "w", encoding="ascii") as stream:
        json.dump(document, stream)
    sys.stdout.flush()
    os._exit(0)  # a library that crashes while it is unloaded is not a finding


if __name__ == "__main__":
    _print_finding(sys.argv[1])
