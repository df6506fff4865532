"""Loaded by the user's Python at its start, since `wattridge profile` puts this folder first on PYTHONPATH.

It uses the standard library alone, and any Python from 3.9 on loads it.
"""

import importlib
import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))
_this = sys.modules.pop("sitecustomize", None)
sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _here]
try:
    importlib.import_module("sitecustomize")  # the user's own, which this one hides
except ImportError:
    if _this is not None:
        sys.modules["sitecustomize"] = _this
if os.environ.get("WATTRIDGE_PROFILE"):
    sys.path.insert(0, _here)
    try:
        importlib.import_module("wattridge_watcher").watch_imports(os.environ["WATTRIDGE_PROFILE"])
    except Exception as error:  # noqa: BLE001 - the user's program runs, whatever is wrong here
        sys.stderr.write(f"wattridge: process {os.getpid()} is not watched: {error!r}\n")
    finally:
        sys.path.remove(_here)
