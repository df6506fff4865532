"""`BoardFiles`: what was learnt of boards, one JSON file for each of them in the user's data folder."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from .errors import InputError
from .files import read_text, write_text
from .paths import data_folder

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BoardFiles:
    """The files of one folder. A file that is damaged, too large or of another version counts as none."""

    folder: str  # in the data folder
    versions: tuple[int, ...]  # that are read; the first is the one that is written
    most_bytes: int = 1 << 16

    def path(self, name: str, key: str = "", suffix: str = "") -> Path:
        """The file of `key` (`name`, where it is not given), of which the name makes it recognisable."""
        plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
        digest = hashlib.sha256((key or name).encode()).hexdigest()[:8]
        return data_folder() / self.folder / f"{plain[: 80 if key else 60]}-{digest}{suffix}.json"

    def read(self, path: Path, parse: Callable[[Any], T | None]) -> T | None:
        """Read and parse a file's document; None if there is none, or it is damaged."""
        try:
            document = json.loads(read_text(path, self.most_bytes))
            return parse(document) if document["version"] in self.versions else None
        except (InputError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return None

    def all(self, parse: Callable[[Any], T | None], pattern: str = "*.json") -> Iterator[T]:
        """What can be read of all files, in the order of their names."""
        for path in sorted((data_folder() / self.folder).glob(pattern)):
            if (value := self.read(path, parse)) is not None:
                yield value

    def keep(self, path: Path, document: dict[str, Any], indent: int | None = 1) -> Path:
        """Write a document in place of an older one. Raises WattridgeError if the disk is full or read-only."""
        text = json.dumps({"version": self.versions[0], **document}, indent=indent, allow_nan=False, ensure_ascii=False)
        return write_text(path, text + "\n", overwrite=True)
