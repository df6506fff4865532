"""The environment of Python processes that run Wattridge's own modules; `base/processes.py` has their command lines.

Nothing is imported from the working directory: the path that the child gets does not name it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ...base.processes import module_command as python_command

__all__ = ("multiprocessing_without_working_directory", "python_command", "python_environment")

_ROOT: Final = Path(__file__).resolve().parents[3]  # the folder that holds the package


def python_environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a child: this process's with `more`, and the folders from which this process imports."""
    return {**os.environ, **(more or {}), "PYTHONPATH": os.pathsep.join(_folders())}


@contextmanager
def multiprocessing_without_working_directory() -> Iterator[None]:
    """Start a pool of `multiprocessing` inside: it has no way to pass `-P`."""
    before = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONSAFEPATH"]
        else:
            os.environ["PYTHONSAFEPATH"] = before


def _folders() -> list[str]:
    """`sys.path` without the working directory, however it is written; the package's own folder stays."""
    root = str(_ROOT)
    kept = [entry for entry in sys.path if os.path.isabs(entry) and (_same(entry, root) or not _same(entry, os.curdir))]
    return kept if any(_same(entry, root) for entry in kept) else [root, *kept]


def _same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False
