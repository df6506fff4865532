"""A device of OpenCL on which this machine can run kernels: a GPU's driver, PoCL's wheel, or Intel's for processors.

PoCL's wheel (3.0, with LLVM 14) builds nothing on processors that are newer than its LLVM: 'unknown target CPU'
(pocl/pocl#1049). `pip install intel-opencl-rt intel-cmplr-lib-rt` brings another driver, which its wheel does not
register.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
from functools import lru_cache
from pathlib import Path

from app.base.processes import lone_module_command
from app.engine.children.python import python_command, python_environment
from app.sensors.opencl import devices


@lru_cache(maxsize=1)
def usable_device() -> tuple[dict[str, str], str, str]:
    """What processes need in their environment, the number of a device for them, and why there is none."""
    if not devices.opencl_installed():
        return {}, "", "pyopencl is not installed: pip install '.[opencl]'"
    why = "OpenCL has no devices here"
    for environment in ({}, _intels()):
        if environment is None:
            continue
        listed = subprocess.run(
            lone_module_command("app.sensors.opencl.listing", packages=True),
            env=os.environ | environment,
            capture_output=True,
            check=False,
        )
        for device in json.loads(listed.stdout or "[]"):
            said = _why_not(device["number"], environment)
            if not said:
                return environment, str(device["number"]), ""
            why = f"{device['platform']} builds nothing here: {said}"
    return {}, "", why


def _intels() -> dict[str, str] | None:
    """Where Intel's driver is that pip installed, if it did."""
    found = sorted(Path(sys.prefix).glob("lib/libintelocl.so*[0-9]"))
    if not found:
        return None
    vendors = Path(tempfile.mkdtemp(prefix="opencl-vendors"))
    atexit.register(shutil.rmtree, vendors, ignore_errors=True)
    (vendors / "intel.icd").write_text(f"{found[0]}\n")
    return {"OPENCL_VENDOR_PATH": str(vendors), "LD_LIBRARY_PATH": str(found[0].parent)}


def _why_not(number: str, environment: dict[str, str]) -> str:
    """What the device's compiler says of the smallest kernel; empty where it builds it."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "kernel.cl"
        source.write_text("__kernel void nothing(__global int *x) { x[0] = 1; }\n")
        words = python_command(
            "app.engine.runner.opencl.build", number, "-o", str(source.with_suffix(".image")), str(source)
        )
        done = subprocess.run(words, env=python_environment(environment), capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["it ended"])[0]
