"""Drafts in the data folder: what was not saved survives a crash."""

from __future__ import annotations

import hashlib
import json
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ...errors import WattridgeError
from ...files import read_text, write_text
from ...paths import private_folder

_MAX_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class Draft:
    """A text, the file it is for (None: not saved yet), the folder its file names are relative to, and when."""

    text: str
    path: Path | None
    folder: Path
    name: str
    saved_s: float = 0.0


def keep(draft: Draft) -> None:
    """Write a draft in place of an older one for the same file. Raises WattridgeError where that fails."""
    file = _file(draft.path)
    document = {
        "text": draft.text,
        "path": None if draft.path is None else str(draft.path.absolute()),
        "folder": str(draft.folder),
        "name": draft.name,
        "saved_s": time.time(),
    }
    write_text(file, json.dumps(document), overwrite=True)


def kept(path: Path | None) -> Draft | None:
    """The draft for a file, or the one that is for none; None where there is none that can be read."""
    with suppress(WattridgeError, ValueError, KeyError, TypeError, OSError):
        found = json.loads(read_text(_file(path), _MAX_BYTES))
        own = None if found["path"] is None else Path(found["path"])
        return Draft(str(found["text"]), own, Path(found["folder"]), str(found["name"]), float(found["saved_s"]))
    return None


def forget(path: Path | None) -> None:
    """It was saved, or is not wanted any more."""
    with suppress(WattridgeError, OSError):
        _file(path).unlink(missing_ok=True)


def _file(path: Path | None) -> Path:
    name = "untitled" if path is None else hashlib.sha256(str(path.absolute()).encode("utf-8", "replace")).hexdigest()
    return private_folder("drafts") / f"{name[:32]}.json"
