"""The check of OpenCL: pyopencl loads, and a driver shows a device."""

from __future__ import annotations

from ...errors import WattridgeError
from ...sensors.opencl.devices import NO_DEVICE, REMEDY, opencl_devices, opencl_installed
from .finding import Finding, as_missing, as_wrong, missing, ok


def opencl() -> Finding:
    """Devices that kernels in OpenCL can run on."""
    try:
        devices = opencl_devices()
    except WattridgeError as error:
        return as_wrong(error) if opencl_installed() else as_missing(error)
    if not devices:
        return missing(NO_DEVICE, REMEDY)
    listed = [{"name": each.name, "platform": each.platform, "driver": each.driver} for each in devices]
    return ok(", ".join(f"{each.name} ({each.platform})" for each in devices), devices=listed)
