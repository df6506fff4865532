"""Calls a function of a file for a while whenever it is asked to: the process of a `FunctionContender`.

Its one argument is JSON: `file`, `function`, the `folder` to work in, `inputs` (the name of a function that makes the
arguments, or ''), `copies` of them that are used in turn, the `seed` of random numbers that each copy is made with, the
`data` that their arrays hold in place of their own ('' or 'own': none), and the number of `sms` to run on (0: all).
With more copies than a cache holds, every call finds cold caches, and nothing is drawn to flush them.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import random
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from ...base.conversation import Parent
from ..metering.meter import RISE_S
from ..results.process import OWN_DATA
from ..workloads.kernel_arguments import Argument, make_array
from .function import call_repeatedly, find_timer

_ORPHAN_S: Final = 5.0


def main() -> None:
    """Answer with `start_ns`, `end_ns`, `time_s` and `calls` of each block, or with `failed` and end."""
    parent, asked = Parent(_ORPHAN_S), json.loads(sys.argv[1])
    try:
        call = _call(asked)
        with _on_sms(asked["sms"]):
            _serve(call, parent)
    except Exception as error:  # noqa: BLE001  (the user's own)
        parent.send({"failed": f"{type(error).__name__}: {error}"[:2000]})


def _serve(call: Callable[[], object], parent: Parent) -> None:
    call()  # compiles, allocates, fills caches
    timer = find_timer()
    while (frame := parent.inbox.get()) is not None:
        seconds = frame[0]["seconds"]
        repeated = call_repeatedly(
            call, timer, time.monotonic_ns, rise_s=RISE_S, least_s=seconds, most_s=seconds, target=0.0
        )
        assert repeated is not None, "nothing stops it"
        answer = {"time_s": repeated.time_s, "calls": repeated.calls}
        parent.send({**answer, "start_ns": repeated.start_ns, "end_ns": repeated.end_ns})


def _on_sms(count: int) -> AbstractContextManager[object]:
    """Have PyTorch launch in a stream on a part of the SMs. Raises ImportError and DeviceFault where it cannot."""
    if not count:
        return nullcontext()
    if "torch" not in sys.modules:
        raise ImportError("a function runs on a part of the SMs by PyTorch's streams, and its file imports no torch")
    from .cuda.bindings_backend import BindingsDriver

    cuda = sys.modules["torch"].cuda
    cuda.init()
    stream, _ = BindingsDriver(str(cuda.current_device())).partition(count)
    part = cuda.ExternalStream(int(stream))
    part.wait_stream(cuda.current_stream())
    entered: AbstractContextManager[object] = cuda.stream(part)
    return entered


def _call(asked: dict[str, Any]) -> Callable[[], object]:
    os.chdir(asked["folder"])
    sys.path.insert(0, str(Path(asked["file"]).resolve().parent))
    spec = importlib.util.spec_from_file_location("_checked", asked["file"])
    if spec is None or spec.loader is None:
        raise ImportError(f"{asked['file']} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules["_checked"] = module
    spec.loader.exec_module(module)
    function = getattr(module, asked["function"])
    if not asked["inputs"]:
        if asked["data"]:
            raise ValueError("name the function that makes its arguments, too: --inputs FUNCTION,zeros,random")
        return lambda: function()
    turns = itertools.cycle([_inputs(module, asked) for _ in range(asked["copies"])])
    return lambda: function(*next(turns))


def _inputs(module: ModuleType, asked: dict[str, Any]) -> tuple[Any, ...]:
    """The arguments of a call, the same for whatever is called with that seed."""
    random.seed(asked["seed"])
    for name, seeded in (("numpy", "random.seed"), ("torch", "manual_seed"), ("cupy", "random.seed")):
        if name in sys.modules:
            attrgetter(seeded)(sys.modules[name])(asked["seed"])
    made = getattr(module, asked["inputs"])()
    every = made if isinstance(made, tuple) else (made,)
    filled = [_refill(value, asked["data"]) for value in every] if asked["data"] not in ("", OWN_DATA) else [True]
    if not any(filled):
        raise ValueError(f"{asked['inputs']} makes no arrays of floating-point numbers to fill")
    return every


def _refill(value: Any, data: str) -> bool:
    """Fill an array, or a tensor, of floating-point numbers in place; whether it was one."""
    kind = str(getattr(value, "dtype", ""))
    if "float" not in kind and "complex" not in kind:
        return False
    shape, torch = tuple(value.shape), type(value).__module__.partition(".")[0] == "torch"
    plain = "complex64" if "complex" in kind else "float32"
    filled = make_array(Argument("data", plain, shape, data, None, False, False, 0), 0)
    if torch:
        value.data.copy_(sys.modules["torch"].from_numpy(filled))
    else:
        value[...] = getattr(sys.modules.get("cupy"), "asarray", lambda host: host)(filled)
    return True


if __name__ == "__main__":
    main()
