"""Wattridge: what a GPU draws while it works, and where it does the most work per joule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .measuring import measure as measure

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """`from wattridge import measure`, loaded only when asked for: the window and the command line start without it."""
    if name == "measure":
        from .measuring import measure

        return measure
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
