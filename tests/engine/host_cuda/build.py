"""The stand-in's driver, built into a folder from which a runner process loads it as it would load the real one."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from app.engine.runner.cuda.toolchain import Toolchain

HERE = Path(__file__).parent
TOOLCHAIN = Toolchain((sys.executable, str(HERE / "compile.py")), "host 1")


def why_not() -> str:
    """Why it cannot be built here; empty where it can."""
    if sys.platform != "linux":
        return "the stand-in for CUDA's driver is for Linux"
    return "" if shutil.which("c++") else "the stand-in for CUDA's driver needs c++"


def build_hip(folder: Path) -> dict[str, str]:
    """Build what stands for HIP and hipRTC; the environment in which a process finds them."""
    libraries = folder / "lib"
    libraries.mkdir()
    for name, source in (("libamdhip64.so", "hip.cpp"), ("libhiprtc.so", "hiprtc.cpp")):
        command = ["c++", "-std=c++17", "-O1", "-shared", "-fPIC", "-Wall", "-o", str(libraries / name)]
        subprocess.run([*command, str(HERE / source), "-ldl"], check=True)
    return {"ROCM_PATH": str(folder), "STAND_IN_HIPCC": f"{sys.executable} {HERE / 'compile.py'} -cubin"}


def build(folder: Path) -> dict[str, str]:
    """Build it; the environment in which a process finds it, which must find the folder's `sitecustomize` too.

    PyCUDA is linked to much more of the driver than it is asked to call here, and must not look for all of it at once.
    """
    library = folder / "libcuda.so.1"
    command = ["c++", "-std=c++17", "-O1", "-shared", "-fPIC", "-Wall", "-Wl,-soname,libcuda.so.1"]
    subprocess.run([*command, "-o", str(library), str(HERE / "driver.cpp"), "-ldl"], check=True)
    (folder / "sitecustomize.py").write_text("import os, sys\nsys.setdlopenflags(os.RTLD_LAZY)\n")
    return {"LD_LIBRARY_PATH": str(folder)}
