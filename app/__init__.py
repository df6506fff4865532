"""Wattridge: what a GPU draws while it works, and where it does the most work per joule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .measuring import measure as measure
    from .scripting.callables import tunable as tunable
    from .scripting.callables import tune as tune
    from .scripting.kernel_tuner import run_kernel as run_kernel
    from .scripting.kernel_tuner import tune_kernel as tune_kernel

__version__ = "0.1.0"


_PUBLIC = {  # name -> the module that has it
    "measure": "measuring",
    "tunable": "scripting.callables",
    "tune": "scripting.callables",
    "run_kernel": "scripting.kernel_tuner",
    "tune_kernel": "scripting.kernel_tuner",
}


_MODULES = ("helion", "observers", "triton")


def __getattr__(name: str) -> Any:
    """`from wattridge import tune`, loaded only when asked for: the window and the command line start without it."""
    from importlib import import_module

    if name in _MODULES:
        return import_module(f".{name}", __name__)
    if name in _PUBLIC:
        return getattr(import_module(f".{_PUBLIC[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
