"""Checks of what boards need: drivers, device files, compilers, the profiler, sensors, and the helper for settings.

Whether a board of a vendor is in the machine is read from the system itself, so that a missing driver is only reported
where there is something to drive.
"""

from __future__ import annotations

import ctypes
import glob
import importlib
import math
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from ...base.errors import InputError, WattridgeError
from ...base.installation import how_to_add, how_to_repair
from ...base.processes import current_stop
from ...sensors.amd.gpu import boards as boards_of_amd
from ...sensors.amd.library import LIBRARY as AMD_LIBRARY
from ...sensors.gpu import NoDriver, SensorError, Source
from ...sensors.nvml.library import LIBRARY
from ...sensors.opencl.devices import NO_DEVICE, REMEDY, opencl_devices, opencl_installed
from ...sensors.pci import pci_boards
from ...sensors.select import amd_boards, open_gpu, real_boards
from ..control.client import INSTALL, READ_ONLY, Asking, read_only, ways_to_root
from ..control.helper.policy import PolicyError, load
from ..control.installing import installation, why_install
from ..runner.cuda.gpu import find_library
from ..runner.cuda.toolchain import find_toolchain
from ..runner.hip.hiprtc import library_version
from ..runner.hip.language import NEEDS_HIPRTC, ROCM_REMEDY
from ..runner.kernels.compiler import once_compiled
from ..runner.kernels.process import KernelFailed
from ..runner.profiling.ncu import ADMINISTRATORS_ONLY, OPEN_COUNTERS, counters_refused, find_ncu, version_of
from .finding import NOT_LOOKED_AT, Finding, State, as_missing, as_wrong, missing, ok, wrong

NVIDIA: Final = "NVIDIA"
AMD: Final = "AMD"
_SOURCES: Final[dict[str, Source]] = {NVIDIA: "nvml", AMD: "amd"}
_SIGNS: Final = {NVIDIA: ("proc/driver/nvidia", "dev/nvidiactl", "dev/dxg"), AMD: ("dev/kfd",)}


def has_board(vendor: str, root: Path = Path("/")) -> bool:
    """Whether this machine has a GPU of a vendor, or its driver is loaded."""
    signs = any(os.path.lexists(root / sign) for sign in _SIGNS[vendor])
    return signs or bool(pci_boards(_SOURCES[vendor], root / "sys"))


def _unless_not_needed(finding: Finding, vendor: str) -> Finding:
    """The finding; where something is missing for boards of a vendor and there are none, that it is not needed."""
    if finding.state is State.MISSING and not has_board(vendor):
        return ok(f"not needed: no GPU of {vendor}'s is in this machine", absent=finding.what, **finding.facts)
    return finding


SIMULATED: Final = "simulated and recorded boards need none: --gpu simulated:a100"
_DEVICES: Final = ("/dev/nvidiactl", "/dev/nvidia[0-9]*", "/dev/nvidia-uvm")
_AMD_DEVICES: Final = ("/dev/kfd", "/dev/dri/renderD*")
_CAPABILITIES: Final = ((8, 0), (5, 0), (3, 5))  # for one of these every compiler since CUDA 7 makes code
_TRIAL: Final = """#include <cuda_fp16.h>
extern "C" __global__ void trial(float *a) { a[threadIdx.x] = __half2float(__float2half(a[threadIdx.x])); }
"""
_CUDA: Final = ("nvcuda.dll",) if sys.platform == "win32" else ("libcuda.so.1", "libcuda.so")
_CUDA_ERRORS: Final = {  # CUresult of cuInit -> what that is, and the remedy
    100: ("CUDA shows no device", "unset CUDA_VISIBLE_DEVICES; in a container, start it with the GPU passed in"),
    802: ("the system is not ready for CUDA", "start the fabric manager: sudo systemctl start nvidia-fabricmanager"),
    803: ("libcuda and the driver's module are of different versions", "reboot; restart a container"),
    804: ("CUDA's compatibility package does not know this board", "remove it, or install a newer driver"),
    999: ("CUDA does not start (CUDA_ERROR_UNKNOWN)", "sudo modprobe nvidia_uvm; else reboot"),
}


def nvidia_driver() -> Finding:
    """NVML loads, and every board answers."""
    try:
        count = int(LIBRARY.call("nvmlDeviceGetCount"))
        version = _text(LIBRARY.call("nvmlSystemGetDriverVersion"))
    except NoDriver as error:
        here = has_board(NVIDIA)
        return as_wrong(error) if here else missing("no driver answers, and no board of NVIDIA's is here", SIMULATED)
    except SensorError as error:
        return wrong(error.what, error.remedy or "reboot, or install NVIDIA's driver again")
    refused = {index: why for index in range(count) if (why := _why_no_board(index))}
    facts = {"version": version, "boards": count, "refused": {str(index): why for index, why in refused.items()}}
    if refused:
        reasons = "; ".join(f"board {index}: {why}" for index, why in refused.items())
        remedy = "your user needs access to its device files (ls -l /dev/nvidia*); a lost board needs a reboot"
        return wrong(f"{len(refused)} of {count} boards cannot be asked: {reasons}", remedy, **facts)
    if not count:
        remedy = "is the board seated and powered (lspci)? In a container, start it with the GPU passed in"
        return wrong(f"driver {version} shows no board", remedy, **facts)
    return ok(f"driver {version}, {count} board{'s' if count > 1 else ''}", **facts)


def nvidia_devices() -> Finding:
    """The driver's device files are there, and this user may use them."""
    return _devices_of(_DEVICES, NVIDIA, "start a container with the GPU passed in; else: sudo nvidia-modprobe -u")


def cuda() -> Finding:
    """A library that launches kernels is installed, loads, and suits the driver."""
    try:
        library = find_library("here")
    except InputError as error:  # the user chose one that does not exist
        return as_wrong(error)
    except WattridgeError as error:
        return _unless_not_needed(as_missing(error), NVIDIA)
    if library.name == "cuda-bindings":
        try:
            importlib.import_module("cuda.bindings.driver")
        except (ImportError, OSError) as error:
            return wrong(f"{library} does not load: {error}", how_to_repair("cuda-bindings"))
    driver = _cuda_driver()
    if isinstance(driver, Finding):
        return _unless_not_needed(driver, NVIDIA)
    release = f"{driver // 1000}.{driver % 1000 // 10}"
    needs = int(str(library.version).split(".")[0]) if library.name == "cuda-bindings" else 0
    if needs > driver // 1000:
        what = f"{library} needs a driver for CUDA {needs}; this one is for {release}"
        return wrong(what, f"{how_to_add('cuda')}, which is for older drivers; or install a newer driver")
    return ok(f"{library}, driver for CUDA {release}", library=str(library), driver_cuda=release)


def cuda_compiler() -> Finding:
    """A kernel with one of CUDA's headers compiles."""
    try:
        toolchain = find_toolchain()
    except WattridgeError as error:
        return _unless_not_needed(as_missing(error), NVIDIA)
    message, stop = "", current_stop()
    for capability in _CAPABILITIES:
        with ThreadPoolExecutor(1) as pool, closing(toolchain.maker(capability)) as maker:
            try:
                once_compiled(pool.submit(maker.make, _TRIAL, ()), stop)
                return ok(f"{toolchain.version} compiles", compiler=toolchain.version)
            except KernelFailed as failed:
                if stop is not None and stop.is_set():
                    return NOT_LOOKED_AT
                message = message or failed.what
    first_error = next((line for line in message.splitlines() if "error" in line.lower()), message.splitlines()[0])
    if "cuda_fp16.h" in message:
        what = f"{toolchain.version} has no headers of CUDA's: {first_error.strip()}"
        return wrong(what, f"{how_to_add('cuda')}, which brings them; or set CUDA_HOME to a toolkit that has them")
    what = f"{toolchain.version} does not compile: {first_error.strip()}"
    return wrong(what, f"install it again; or {how_to_add('cuda')}, whose NVRTC needs no compiler of the host")


def profiler() -> Finding:
    """Nsight Compute is there, and the driver lets this user read its counters."""
    try:
        tool = version_of(find_ncu("profiler"))
    except WattridgeError as error:
        return _unless_not_needed(as_missing(error), NVIDIA)
    refused = counters_refused()
    if refused:
        return wrong(ADMINISTRATORS_ONLY, OPEN_COUNTERS, tool=tool)
    unknown = "" if refused is not None else "; whether the driver shows its counters is seen at the first profile"
    return ok(f"{tool}{unknown}", tool=tool)


def amd_smi() -> Finding:
    """AMD SMI loads, and the driver answers it."""
    try:
        AMD_LIBRARY.open()
        names = [name for _, _, name in boards_of_amd()]
    except NoDriver as error:
        return as_wrong(error) if has_board(AMD) else _unless_not_needed(as_missing(error), AMD)
    except SensorError as error:
        return wrong(error.what, error.remedy or "reboot, or install ROCm again")
    if not names:
        remedy = "join the groups render and video, then log in again"
        return _unless_not_needed(missing("AMD SMI shows no board to this user", remedy), AMD)
    return ok(f"AMD SMI shows {', '.join(names)}", boards=len(names))


def amd_devices() -> Finding:
    """The device files of amdgpu are there, and this user may use them."""
    if not has_board(AMD):
        return ok(f"not needed: no GPU of {AMD}'s is in this machine")
    return _devices_of(_AMD_DEVICES, AMD, "load the driver: sudo modprobe amdgpu; pass them into a container")


def hip() -> Finding:
    """hipRTC, which compiles kernels for AMD's boards, loads."""
    version = library_version()
    if version is None:
        return _unless_not_needed(missing(NEEDS_HIPRTC, ROCM_REMEDY), AMD)
    return ok(f"hipRTC {version}", version=version)


# --- inside -----------------------------------------------------------------------------------------------------------


def _devices_of(patterns: tuple[str, ...], vendor: str, remedy: str) -> Finding:
    """Device files that the driver of a vendor needs: they are there, and this user may read and write them."""
    if os.name != "posix":
        return ok("not needed on this system")
    present = {pattern: sorted(glob.glob(pattern)) for pattern in patterns}
    absent = [pattern for pattern, paths in present.items() if not paths]
    if absent:
        return _unless_not_needed(missing(f"{', '.join(absent)} not there", remedy), vendor)
    files = [path for paths in present.values() for path in paths]
    closed = [path for path in files if not os.access(path, os.R_OK | os.W_OK)]
    if closed:
        group = _group_of(closed[0])
        remedy = f"sudo usermod -aG {group} $USER, then log in again" if group else "ask the administrator"
        return wrong(f"you may not use {', '.join(closed)}", remedy, closed=closed)
    return ok(f"{', '.join(files)} can be used", files=files)


def _group_of(path: str) -> str:
    """The group that the file belongs to; empty where joining it would not help, or is not wise."""
    import grp

    status = os.stat(path)
    try:
        name = grp.getgrgid(status.st_gid).gr_name
    except KeyError:
        return ""
    return name if status.st_gid and status.st_mode & 0o060 == 0o060 else ""


def _why_no_board(index: int) -> str:
    try:
        LIBRARY.call("nvmlDeviceGetHandleByIndex", index)
    except SensorError as error:
        return error.what
    return ""


def _cuda_driver() -> int | Finding:
    """The CUDA release of the driver, as 12040; or why there is none."""
    for name in _CUDA:
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        code = library.cuInit(0)
        if code:
            what, remedy = _CUDA_ERRORS.get(code, (f"CUDA does not start (error {code})", "see what nvidia-smi says"))
            return wrong(what, remedy)
        version = ctypes.c_int()
        library.cuDriverGetVersion(ctypes.byref(version))
        return version.value
    return missing("the driver's libcuda is not there", "install NVIDIA's driver, with its part for computing")


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def opencl() -> Finding:
    """Devices that kernels in OpenCL can run on."""
    try:
        devices = opencl_devices()
    except WattridgeError as error:
        return as_wrong(error) if opencl_installed() else as_missing(error)
    if not devices:
        return missing(NO_DEVICE, REMEDY)
    listed = [{"name": device.name, "platform": device.platform, "driver": device.driver} for device in devices]
    return ok(", ".join(f"{device.name} ({device.platform})" for device in devices), devices=listed)


def helper() -> Finding:
    """The helper is installed, only root can change it, and this user has a way to start it."""
    if os.name != "posix" or sys.platform == "darwin":
        return ok("boards are set on Linux only: nothing needs to be installed here")
    installed = installation()
    facts = {"installed": installed.installed, "ready": installed.ready, "current": installed.current}
    try:
        load("")
    except PolicyError as error:
        return wrong(f"nothing may be set: {error}", "an administrator corrects or removes that file", **facts)
    if amiss := why_install():
        text = amiss.rstrip(".")
        if installed.installed:
            return wrong(text, INSTALL, **facts)
        absent = missing(text, "wattridge helper install", **facts)
        return absent if has_board(AMD) else _unless_not_needed(absent, NVIDIA)
    if not any(ways_to_root(Asking.TERMINAL)):
        return wrong("neither sudo nor pkexec is here, which would start the helper", "install one of them", **facts)
    note = f"; {READ_ONLY}=1 forbids every setting" if read_only() else ""
    return ok(("installed" if installed.installed else "root may use this copy") + note, **facts)


_REMEDY = "a newer driver may report it; `wattridge meters` lists power meters that measure beside the board"


def sensors() -> Finding:
    """What each board reports, and that its power is among it."""
    boards = [_look(name, uuid) for _, uuid, name in (*real_boards(), *amd_boards())]
    if not boards:
        return ok("no board answers whose sensors could be read")
    summary = "; ".join(f"{board['name']}: {board['says']}" for board in boards)
    return (
        wrong(summary, _REMEDY, boards=boards)
        if any(board["amiss"] for board in boards)
        else ok(summary, boards=boards)
    )


def _look(name: str, uuid: str) -> dict[str, Any]:
    """What one board reports, as JSON has it; `amiss` where it does not open or has no power."""
    try:
        with closing(open_gpu(uuid)) as gpu:
            reading = dict(zip((channel.name for channel in gpu.channels), gpu.read().values, strict=True))
            absent = {channel.name: channel.unavailable for channel in gpu.channels if not channel.available}
            present = [name for name in reading if name not in absent]
            powers = [name for name in present if name.startswith("power_") and name.endswith("_w")]
            power = any(math.isfinite(reading[name]) for name in powers if name != "power_limit_w")
    except WattridgeError as error:
        return {"name": name, "says": f"does not open: {error.what}", "amiss": True, "channels": [], "absent": {}}
    says = f"{len(present)} quantities" + (f", not {', '.join(absent)}" if absent else "")
    says = says if power else f"no power ({absent.get('power_instant_w') or 'the sensor gives no value'}); {says}"
    return {"name": name, "says": says, "amiss": not power, "channels": present, "absent": absent}
