"""Builds an OpenCL program for one device, as a compiler is called: `build NUMBER [OPTION ...] -o IMAGE SOURCE`."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

os.environ["PYOPENCL_NO_CACHE"] = "1"  # images are kept by `compiler`

import pyopencl as cl

from .image import make_image


def main(arguments: Sequence[str]) -> int:
    """Exit status 1 and the build log where the source does not build."""
    number, *options = arguments[:-3]
    image, source = Path(arguments[-2]), Path(arguments[-1])
    warnings.simplefilter("ignore")  # of pyopencl's; the compiler's messages are in the log
    try:
        device = device_of(number)
        program = cl.Program(cl.Context([device]), source.read_text(encoding="utf-8"))
    except (cl.Error, LookupError) as error:
        print(f"no OpenCL context: {error}", file=sys.stderr)
        return 1
    try:
        program.build(options=list(options), cache_dir=False)
    except cl.Error as error:
        print(log_of(program, device) or str(error), file=sys.stderr)
        return 1
    if log := log_of(program, device):
        print(log, file=sys.stderr)
    names = program.get_info(cl.program_info.KERNEL_NAMES).split(";")
    image.write_bytes(make_image(names, program.get_info(cl.program_info.BINARIES)[0]))
    return 0


def device_of(number: str) -> Any:
    """The device PLATFORM.DEVICE. Raises LookupError where it is gone, and cl.Error."""
    platform, _, device = number.partition(".")
    return cl.get_platforms()[int(platform)].get_devices()[int(device)]


def log_of(program: cl.Program, device: cl.Device) -> str:
    """The messages of the device's compiler, where it warns or refuses."""
    try:
        message = program.get_build_info(device, cl.program_build_info.LOG).strip().strip("\0")
    except cl.Error:
        return ""
    return message if "warning" in message or "error" in message else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
