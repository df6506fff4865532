"""Every check by its name, in the order in which they are shown. Each runs in a process of its own (`child`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Final

from ...base.installation import how_to_add, how_to_repair
from .finding import Finding


@dataclass(frozen=True, slots=True)
class Check:
    """One check: the function `function` of the module `module` of this package."""

    name: str
    title: str
    module: str
    if_it_dies: str  # the remedy where what it asks crashes or hangs
    limit_s: float = 20.0

    @property
    def function(self) -> Callable[[], Finding]:
        """The check itself. Importing it loads nothing of a vendor's."""
        found: Callable[[], Finding] = getattr(import_module(f".{self.module}", __package__), self.name)
        return found


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
    Check("amd_smi", "AMD SMI", "amd", _ROCM),
    Check("amd_devices", "AMD device files", "amd", _ROCM),
    Check("hip", "HIP compiler", "amd", _ROCM),
    Check("qt", "Qt", "installation", how_to_repair("PySide6-Essentials"), limit_s=60.0),
    Check(
        "display", "Display", "installation", "is DISPLAY or WAYLAND_DISPLAY right, and may you use it (ssh -X, xhost)?"
    ),
    Check("fonts", "Fonts", "installation", "rebuild the list of fonts: fc-cache -f"),
)
BY_NAME: Final = {check.name: check for check in CHECKS}
