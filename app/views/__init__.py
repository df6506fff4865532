"""The window. Qt is imported here and nowhere else in `app`."""

import builtins

import PySide6.QtCore  # noqa: F401

# PySide puts an import function in the place of Python's that reads the source of every module imported from then on,
# to see whether it switches PySide's names to snake_case. Nobody here does, and 45 MB of sources, above all SciPy's,
# would stay in memory.
if hasattr(builtins, "__orig_import__"):
    builtins.__import__ = builtins.__orig_import__
