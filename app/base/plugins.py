"""Plug-ins of other packages, by entry points in the groups `wattridge.KIND`.

| kind | the name is | the object is |
|---|---|---|
| strategies | the strategy's | a class, a `wattridge.strategies.Strategy` |
| meters | the selector's before its colon | a function of the text after the colon that returns an open `PowerMeter` |
| workloads | that of `wattridge tune NAME` | a function of nothing that returns the path of a specification |
| formats | the suffix of the files, without its dot | a function of a path that returns rows, as dicts |

One that cannot be imported is left out, and named where it is asked for. The helper with root's rights imports none of
this: an import contract forbids it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from .errors import InputError, WattridgeError


@cache
def plugins(kind: str) -> dict[str, Any]:
    """Import the plug-ins of a kind; in place of one that cannot be imported its error stands."""
    found: dict[str, Any] = {}
    for entry in entry_points(group=f"wattridge.{kind}"):
        try:
            found[entry.name] = entry.load()
        except Exception as error:  # noqa: BLE001  (another package's: the others are not concerned)
            found[entry.name] = InputError(f"{entry.value}: {type(error).__name__}: {error}", f"plug-in {entry.name}")
    return found


def call(kind: str, name: str, *arguments: Any) -> Any:
    """Call a plug-in. What fails in it is a WattridgeError that names it."""
    plugin: Callable[..., Any] | InputError = plugins(kind)[name]
    if isinstance(plugin, InputError):
        raise plugin
    try:
        return plugin(*arguments)
    except WattridgeError:
        raise
    except Exception as error:
        what = f"it failed: {type(error).__name__}: {error}"
        raise WattridgeError(what, f"plug-in {name}", "report it to its authors, or uninstall it") from error
