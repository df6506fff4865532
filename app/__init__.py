"""Wattridge: what a GPU draws while it works, and where it does the most work per joule.

`measure` a block of code or `profile` it, `mark` an instant of the recordings that run, `tune` any function,
`tune_kernel` and `run_kernel` a CUDA kernel; `boards`, `fit`, `roofline`, `open_session`, `analyse` and `export` do
what the commands of these names do. What cannot be used raises `InputError`, whatever else fails a `WattridgeError`.
`wattridge.triton`, `.helion`, `.meters`, `.observers` and `.strategies` are modules; so is `.kernel_tuner`, whose
import gives `import kernel_tuner` another meaning, and which is not loaded by a look at it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import helion as helion
    from . import meters as meters
    from . import observers as observers
    from . import strategies as strategies
    from . import triton as triton
    from .base.errors import InputError as InputError
    from .base.errors import PermissionRefused as PermissionRefused
    from .base.errors import WattridgeError as WattridgeError
    from .scripting.callables import tunable as tunable
    from .scripting.callables import tune as tune
    from .scripting.calls import analyse as analyse
    from .scripting.calls import boards as boards
    from .scripting.calls import export as export
    from .scripting.calls import fit as fit
    from .scripting.calls import open_session as open_session
    from .scripting.calls import roofline as roofline
    from .scripting.kernel_tuner import run_kernel as run_kernel
    from .scripting.kernel_tuner import tune_kernel as tune_kernel
    from .scripting.measuring import measure as measure
    from .scripting.profiling import profile as profile
    from .sensors.recorded.marks import mark as mark

__version__ = "0.1.0"

_PUBLIC = {  # name -> the module that has it
    "InputError": "base.errors",
    "PermissionRefused": "base.errors",
    "WattridgeError": "base.errors",
    **dict.fromkeys(("analyse", "boards", "export", "fit", "open_session", "roofline"), "scripting.calls"),
    "mark": "sensors.recorded.marks",
    "measure": "scripting.measuring",
    "profile": "scripting.profiling",
    "run_kernel": "scripting.kernel_tuner",
    "tunable": "scripting.callables",
    "tune": "scripting.callables",
    "tune_kernel": "scripting.kernel_tuner",
}
_MODULES = ("helion", "meters", "observers", "strategies", "triton")
__all__ = [*_PUBLIC]


def __dir__() -> list[str]:
    return sorted([*(name for name in globals() if name.startswith("__")), *_PUBLIC, *_MODULES])


if not TYPE_CHECKING:  # so that a name which does not exist is an error to type checkers

    def __getattr__(name: str) -> Any:
        """Load what `from wattridge import tune` asks for; the window and the command line start without it."""
        from importlib import import_module

        if name in _MODULES:
            return import_module(f".{name}", __name__)
        if name in _PUBLIC:
            return getattr(import_module(f".{_PUBLIC[name]}", __name__), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
