"""Checks of what AMD's boards need: AMD SMI, the device files, and hipRTC."""

from __future__ import annotations

from typing import Final

from ...sensors.amd.gpu import boards
from ...sensors.amd.library import LIBRARY
from ...sensors.gpu import NoDriver, SensorError
from ..runner.hip.hiprtc import library_version
from ..runner.hip.open import NEEDS_HIPRTC, ROCM_REMEDY
from . import boards as machine
from .boards import devices_of
from .finding import Finding, as_missing, as_wrong, missing, ok, wrong

_DEVICES: Final = ("/dev/kfd", "/dev/dri/renderD*")


def amd_smi() -> Finding:
    """AMD SMI loads, and the driver answers it."""
    try:
        LIBRARY.open()
        names = [name for _, _, name in boards()]
    except NoDriver as error:
        here = machine.has_board(machine.AMD)
        return as_wrong(error) if here else machine.unless_not_needed(as_missing(error), machine.AMD)
    except SensorError as error:
        return wrong(error.what, error.remedy or "reboot, or install ROCm again")
    if not names:
        found = missing("AMD SMI shows no board to this user", "join the groups render and video, then log in again")
        return machine.unless_not_needed(found, machine.AMD)
    return ok(f"AMD SMI shows {', '.join(names)}", boards=len(names))


def amd_devices() -> Finding:
    """The device files of amdgpu are there, and this user may use them."""
    if not machine.has_board(machine.AMD):
        return ok(f"not needed: no GPU of {machine.AMD}'s is in this machine")
    return devices_of(_DEVICES, machine.AMD, "load the driver: sudo modprobe amdgpu; pass them into a container")


def hip() -> Finding:
    """What compiles kernels for AMD's boards."""
    version = library_version()
    if version is None:
        return machine.unless_not_needed(missing(NEEDS_HIPRTC, ROCM_REMEDY), machine.AMD)
    return ok(f"hipRTC {version}", version=version)
