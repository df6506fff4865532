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


def build(folder: Path) -> dict[str, str]:
    """Build it; the environment in which a process finds it."""
    library = folder / "libcuda.so.1"
    command = ["c++", "-std=c++17", "-O1", "-shared", "-fPIC", "-Wall", "-Wl,-soname,libcuda.so.1"]
    subprocess.run([*command, "-o", str(library), str(HERE / "driver.cpp"), "-ldl"], check=True)
    return {"LD_LIBRARY_PATH": str(folder)}
