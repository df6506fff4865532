"""Models of energies on disk: one JSON file for each board's name and kernel, in the user's data folder.

A kernel is known by the names of its parameters: shapes and boards of one template share them. A model is a prior for
the next shape or board, and never more than that: the search tests it before it uses it.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from ...base.errors import InputError, WattridgeError
from ...base.files import read_text, write_text
from ...base.paths import data_folder, private_folder
from .energy_cost import EnergyCostModel

VERSION: Final = 3
_FOLDER: Final = "energy-models"
_MAXIMUM_BYTES: Final = 16 << 20


def keep_model(board: str, parameters: Sequence[str], model: EnergyCostModel) -> None:
    """Keep what a session has learnt, in place of what was kept of that board and kernel."""
    document = {
        "version": VERSION,
        "board": board,
        "parameters": sorted(parameters),
        "learnt_s": time.time(),
        "model": model.to_json(),
    }
    with suppress(WattridgeError):  # a disk that is full or read-only: the next session learns it again
        private_folder(_FOLDER)
        write_text(_path(board, parameters), json.dumps(document, allow_nan=False) + "\n", overwrite=True)


def kept_model(board: str, parameters: Sequence[str]) -> EnergyCostModel | None:
    """What is kept of a board and kernel, else the newest of the kernel on another board; None where nothing is."""
    own = _read(_path(board, parameters), parameters)
    if own is not None:
        return own[1]
    alike = _folder().glob(f"*-{_digest(parameters)}.json")
    others = [found for path in alike if (found := _read(path, parameters)) is not None]
    return max(others, key=lambda each: each[0])[1] if others else None


def _read(path: Path, parameters: Sequence[str]) -> tuple[float, EnergyCostModel] | None:
    """When it was learnt, and the model; None where it cannot be read, which costs a search some measurements."""
    try:
        document: Any = json.loads(read_text(path, _MAXIMUM_BYTES))
        if document["version"] != VERSION or document["parameters"] != sorted(parameters):
            return None
        return float(document["learnt_s"]), EnergyCostModel.from_json(document["model"], str(path))
    except (InputError, ValueError, LookupError, TypeError, RecursionError):
        return None


def _path(board: str, parameters: Sequence[str]) -> Path:
    name = re.sub(r"[^a-z0-9]+", "-", board.lower()).strip("-")[:60]
    return _folder() / f"{name}-{hashlib.sha256(board.encode()).hexdigest()[:8]}-{_digest(parameters)}.json"


def _digest(parameters: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(sorted(parameters)).encode()).hexdigest()[:12]


def _folder() -> Path:
    return data_folder() / _FOLDER
