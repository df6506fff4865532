"""Checks of what NVIDIA's boards need: the driver, its device files, CUDA, a compiler, and the counters' rights."""

from __future__ import annotations

import ctypes
import glob
import importlib
import os
import sys
from contextlib import closing
from typing import Final

from ...errors import InputError, WattridgeError
from ...own_installation import how_to_add, how_to_repair
from ...sensors.errors import NoDriver, SensorError
from ...sensors.nvml.library import LIBRARY
from ..runner.cuda.backends import find_library
from ..runner.cuda.toolchain import find_toolchain
from ..runner.kernels.process import KernelFailed
from ..runner.profiling.ncu import find_ncu, version_of
from ..runner.profiling.rights import ADMINISTRATORS_ONLY, OPEN_COUNTERS, counters_refused
from . import machine
from .finding import Finding, as_missing, as_wrong, missing, ok, wrong

SIMULATED: Final = "simulated and recorded boards need none: --gpu simulated:a100"
_DEVICES: Final = ("/dev/nvidiactl", "/dev/nvidia[0-9]*", "/dev/nvidia-uvm")
_WSL: Final = "/dev/dxg"
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
        here = machine.has_board(machine.NVIDIA)
        return as_wrong(error) if here else missing("no driver answers, and no board of NVIDIA's is here", SIMULATED)
    except SensorError as error:
        return wrong(error.what, error.remedy or "reboot, or install NVIDIA's driver again")
    refused = {index: why for index in range(count) if (why := _why_no_board(index))}
    facts = {"version": version, "boards": count, "refused": {str(index): why for index, why in refused.items()}}
    if refused:
        said = "; ".join(f"board {index}: {why}" for index, why in refused.items())
        remedy = "your user needs access to its device files (ls -l /dev/nvidia*); a lost board needs a reboot"
        return wrong(f"{len(refused)} of {count} boards cannot be asked: {said}", remedy, **facts)
    if not count:
        remedy = "is the board seated and powered (lspci)? In a container, start it with the GPU passed in"
        return wrong(f"driver {version} shows no board", remedy, **facts)
    return ok(f"driver {version}, {count} board{'s' if count > 1 else ''}", **facts)


def nvidia_devices() -> Finding:
    """The driver's device files are there, and this user may use them."""
    return devices_of(
        _DEVICES, machine.NVIDIA, "start a container with the GPU passed in; else: sudo nvidia-modprobe -u"
    )


def cuda() -> Finding:
    """A library that launches kernels is installed, loads, and suits the driver."""
    try:
        library = find_library("here")
    except InputError as error:  # an unknown one is asked for
        return as_wrong(error)
    except WattridgeError as error:
        return machine.unless_not_needed(as_missing(error), machine.NVIDIA)
    if library.name == "cuda-bindings":
        try:
            importlib.import_module("cuda.bindings.driver")
        except (ImportError, OSError) as error:
            return wrong(f"{library} does not load: {error}", how_to_repair("cuda-bindings"))
    driver = _cuda_driver()
    if isinstance(driver, Finding):
        return machine.unless_not_needed(driver, machine.NVIDIA)
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
        return machine.unless_not_needed(as_missing(error), machine.NVIDIA)
    said = ""
    for capability in _CAPABILITIES:
        with closing(toolchain.maker(capability)) as maker:
            try:
                maker.make(_TRIAL, ())
            except KernelFailed as failed:
                said = said or failed.what
            else:
                return ok(f"{toolchain.version} compiles", compiler=toolchain.version)
    line = next((each for each in said.splitlines() if "error" in each.lower()), said.splitlines()[0])
    if "cuda_fp16.h" in said:
        what = f"{toolchain.version} has no headers of CUDA's: {line.strip()}"
        return wrong(what, f"{how_to_add('cuda')}, which brings them; or set CUDA_HOME to a toolkit that has them")
    what = f"{toolchain.version} does not compile: {line.strip()}"
    return wrong(what, f"install it again; or {how_to_add('cuda')}, whose NVRTC needs no compiler of the host")


def profiler() -> Finding:
    """Nsight Compute is there, and the driver lets this user read its counters."""
    try:
        tool = version_of(find_ncu("profiler"))
    except WattridgeError as error:
        return machine.unless_not_needed(as_missing(error), machine.NVIDIA)
    refused = counters_refused()
    if refused:
        return wrong(ADMINISTRATORS_ONLY, OPEN_COUNTERS, tool=tool)
    unknown = "" if refused is not None else "; whether the driver shows its counters is seen at the first profile"
    return ok(f"{tool}{unknown}", tool=tool)


# --- inside -----------------------------------------------------------------------------------------------------------


def devices_of(patterns: tuple[str, ...], vendor: str, remedy: str) -> Finding:
    """Device files that the driver of a maker needs: they are there, and this user may read and write them."""
    if os.name != "posix":
        return ok("not needed on this system")
    there = {pattern: sorted(glob.glob(pattern)) for pattern in patterns}
    absent = [pattern for pattern, found in there.items() if not found]
    if absent:
        return machine.unless_not_needed(missing(f"{', '.join(absent)} not there", remedy), vendor)
    files = [path for found in there.values() for path in found]
    closed = [path for path in files if not os.access(path, os.R_OK | os.W_OK)]
    if closed:
        group = _group_of(closed[0])
        remedy = f"sudo usermod -aG {group} $USER, then log in again" if group else "ask the administrator"
        return wrong(f"you may not use {', '.join(closed)}", remedy, closed=closed)
    return ok(f"{', '.join(files)} can be used", files=files)


def _group_of(path: str) -> str:
    """The group that the file belongs to; empty where joining it would not help, or is not wise."""
    import grp

    about = os.stat(path)
    try:
        name = grp.getgrgid(about.st_gid).gr_name
    except KeyError:
        return ""
    return name if about.st_gid and about.st_mode & 0o060 == 0o060 else ""


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
