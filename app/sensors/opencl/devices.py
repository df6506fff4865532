"""OpenCL's devices, as a process of its own lists them, and the real board that each of them is."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from typing import Final

from ...base.errors import InputError, WattridgeError
from ...base.installation import how_to_add, how_to_repair
from ...base.processes import lone_module_command

REMEDY: Final = f"{how_to_add('opencl')}, and the OpenCL driver of the device (PoCL's for processors)"
NO_DEVICE: Final = "there is no OpenCL device"
_OF_A_DRIVER: Final = (
    "reinstall the device's OpenCL driver; to find the one at fault, let OCL_ICD_VENDORS name one file of"
    " /etc/OpenCL/vendors after the other"
)
_LIST_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class OpenclDevice:
    """A device as OpenCL describes it. Texts are empty if it tells nothing."""

    number: str  # PLATFORM.DEVICE, as OpenCL orders them
    name: str
    platform: str
    driver: str
    kind: str  # such as CPU or GPU
    uuid: str  # without 'GPU-'
    pci: str
    compute_units: int
    work_group_size: int
    local_byte: int
    memory_mib: float


def opencl_installed() -> bool:
    """Whether pyopencl is there; nothing of it is run."""
    return find_spec("pyopencl") is not None


@lru_cache(maxsize=1)
def opencl_devices() -> tuple[OpenclDevice, ...]:
    """Every device, in OpenCL's order. Raises WattridgeError without pyopencl, or where listing them fails."""
    if not opencl_installed():
        raise WattridgeError("pyopencl is not installed", "OpenCL", REMEDY)
    try:
        listed = subprocess.run(
            lone_module_command(f"{__package__}.listing", packages=True),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_LIST_S,
            check=False,
        )
    except OSError as error:
        raise WattridgeError(f"its devices cannot be listed: {error}", "OpenCL", REMEDY) from None
    except subprocess.TimeoutExpired:
        raise WattridgeError(f"its driver did not answer within {_LIST_S:g} s", "OpenCL", _OF_A_DRIVER) from None
    try:
        return tuple(OpenclDevice(**entry) for entry in json.loads(listed.stdout))
    except (ValueError, TypeError):
        raise _why_not_listed(listed) from None


def _why_not_listed(listed: subprocess.CompletedProcess[bytes]) -> WattridgeError:
    """pyopencl does not load (a wheel of another architecture, mostly), or a vendor's driver ended the process."""
    lines = listed.stderr.decode("utf-8", "replace").strip().splitlines()
    if listed.returncode < 0:
        what = f"a driver ended the process that lists its devices (signal {-listed.returncode})"
        return WattridgeError(what, "OpenCL", _OF_A_DRIVER)
    if lines and lines[-1].startswith(("ImportError", "ModuleNotFoundError", "OSError")):
        return WattridgeError(f"pyopencl does not load: {lines[-1]}", "OpenCL", how_to_repair("pyopencl"))
    return WattridgeError(
        f"its devices cannot be listed: {lines[-1] if lines else 'no answer'}", "OpenCL", _OF_A_DRIVER
    )


def find_device(text: str) -> OpenclDevice:
    """The device of that number or (part of) name, the first where the text is empty. Raises WattridgeError."""
    devices = opencl_devices()
    if not devices:
        raise WattridgeError(NO_DEVICE, "OpenCL", REMEDY)
    wanted = text.strip().lower()
    if not wanted:
        return devices[0]
    if wanted.isdigit() and int(wanted) < len(devices):
        return devices[int(wanted)]
    fits = [device for device in devices if wanted == device.number or wanted in device.name.lower()]
    if len(fits) != 1:
        there = ", ".join(f"{index} ({item.name}, {item.platform})" for index, item in enumerate(devices))
        what = f"there is no OpenCL device '{text}'" if not fits else f"'{text}' is in the name of several devices"
        raise InputError(what, "--gpu", f"OpenCL devices here: {there}")
    return fits[0]


def device_of_board(uuid: str, pci: str) -> OpenclDevice | None:
    """The device that is the board of that UUID and PCI address, where OpenCL says so; nothing is guessed."""
    for device in opencl_devices():
        if is_board(device, uuid, pci):
            return device
    return None


def is_board(device: OpenclDevice, uuid: str, pci: str) -> bool:
    """Whether a device is a board, by its UUID, else by its PCI address."""
    if device.uuid:
        return uuid.lower() == f"gpu-{device.uuid.lower()}"
    return bool(device.pci) and _address(device.pci) == _address(pci)


def _address(pci: str) -> tuple[int, ...] | None:
    """Domain, bus, device; None for what is none."""
    try:
        return tuple(int(part, 16) for part in pci.partition(".")[0].split(":"))
    except ValueError:
        return None
