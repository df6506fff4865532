"""A process that opens a CUDA context, launches nothing, and waits to be ended: run as a program, to see what it costs.

The driver's library is asked directly, so that no package of CUDA's is needed. It is the first of the boards that the
process sees: `CUDA_VISIBLE_DEVICES` says which one that is.
"""

from __future__ import annotations

import ctypes
import sys
import time
from typing import Any, Final

LIBRARY: Final = "libcuda.so.1"


def hold(library: Any) -> str:
    """Open the primary context of the first board; why it does not open, or an empty text."""
    device, context = ctypes.c_int(), ctypes.c_void_p()
    steps = (
        ("cuInit", (0,)),
        ("cuDeviceGet", (ctypes.byref(device), 0)),
        ("cuDevicePrimaryCtxRetain", (ctypes.byref(context), device)),
    )
    for name, arguments in steps:
        status = getattr(library, name)(*arguments)
        if status != 0:
            return f"{name} returned {status}"
    return ""


def main() -> None:
    """Hold a context until this process is ended; exit status 1 and one line if it does not open."""
    try:
        problem = hold(ctypes.CDLL(LIBRARY))
    except (OSError, AttributeError) as error:
        problem = str(error)
    if problem:
        sys.exit(f"no CUDA context: {problem}")
    while True:
        time.sleep(3600)


if __name__ == "__main__":
    main()
