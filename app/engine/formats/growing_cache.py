"""A cache of Kernel Tuner's that a session reads what it knows from, and adds what it measures to.

What other programs wrote stays as they wrote it. The file is whole at every moment: it is replaced, never rewritten in
place.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from ...errors import InputError
from ...files import read_text, write_text
from ..measurement import Measurement
from ..space.search_space import SearchSpace
from .entries import COST_MS
from .kernel_tuner import cache_entry, cache_header, their_names
from .names import DEVICE_SETTINGS
from .own import About, OwnHeader
from .read import read_recording
from .recording import Recording

_SHARE: Final = 20  # of the time, at most one part in so many is spent on writing
_LEAST_S: Final = 1.0  # between two writings
_MOST_BYTES: Final = 1 << 29


class GrowingCache:
    """One file. `write` when a session has measured something more."""

    def __init__(self, path: Path) -> None:
        """The suffix .json is added where it is missing. Raises InputError where the file is there and no cache."""
        if not path.name:
            raise InputError(f"'{path}' is no file", "cache", "name one")
        self.path = path if path.suffix == ".json" else path.with_name(f"{path.name}.json")
        self.recording: Recording | None = None
        self._document: dict[str, Any] = {}
        self._entries: dict[str, Any] = {}
        self._found: frozenset[str] = frozenset()  # the entries that were there before
        self._next_s = 0.0
        if self.path.is_file() and self.path.stat().st_size:
            document = _document(self.path)
            if document["cache"]:  # else the run that made it was ended before its first measurement
                self.recording = read_recording(self.path)
                self._document, self._entries = document, document.pop("cache")
                self._found = frozenset(self._entries)

    def require(
        self, names: Iterable[str], *, kernel: str, problem_size: str = "", board: str = "", known_as: str | None = None
    ) -> None:
        """Raises InputError where the file is of another kernel, problem size, board or set of parameters.

        What is not known on one side is not compared. `known_as` is the board's name to Kernel Tuner.
        """
        if self.recording is None:
            return
        device = self._document.get("device_name")
        there = {
            "kernel": self._document.get("kernel_name"),
            "problem size": self.recording.problem_size,
            "board": OwnHeader(self._document).text("device") or (None if device == known_as else device),
            "set of parameters": ", ".join(map(str, self._document.get("tune_params_keys") or ())),
        }
        mine = (kernel, problem_size, board, ", ".join(their_names(tuple(names), str(self.path))))
        for (what, its), here in zip(there.items(), mine, strict=True):
            if here and its and here != its:
                raise InputError(f"it is of another {what}: {its}", str(self.path), f"name another file for {here}")

    def known(self, space: SearchSpace) -> dict[int, Measurement]:
        """What the file holds of a space, by its rows."""
        if self.recording is None:
            return {}
        found = {}
        for measurement in self.recording.in_file_order():
            named = {DEVICE_SETTINGS.get(name, name): value for name, value in measurement.configuration.items()}
            row = space.row_of(named)
            if row is not None:
                found[row] = replace(measurement, row=row, configuration=space.configuration(row))
        return found

    def other_values(self, measurement: Measurement) -> Mapping[str, Any]:
        """What is no figure in the entry of a configuration: lists, such as of times, and what was spent on it."""
        entry = self._entries.get(_key(measurement), {})
        return {name: value for name, value in entry.items() if _is_kept(name, value)}

    def add(self, measurement: Measurement, about: About, more: Mapping[str, Any]) -> None:
        """One entry, with what is no figure of it; the next `write` writes it. What the file held of it stays."""
        names = their_names(tuple(measurement.configuration), str(self.path))
        entry = cache_entry(measurement, about, names, ()) | {
            name: value for name, value in more.items() if _is_kept(name, value) and name not in names
        }
        values = measurement.configuration.values()
        key = _key(measurement)
        before = self._entries[key] if key in self._found else {}
        self._entries[key] = dict(zip(names, values, strict=True)) | entry | before

    def write(self, space: SearchSpace, about: About, *, at_last: bool = False) -> None:
        """Write the file, unless it was written a moment ago and more is to come. Raises WattridgeError."""
        began = time.monotonic()
        if not at_last and began < self._next_s:
            return
        names = their_names(space.names, str(self.path))
        header = self._document or cache_header(space, about, names)
        listed = header.setdefault("tune_params", {})
        for name, parameter in zip(names, space.parameters, strict=True):
            listed[name] = list(dict.fromkeys([*listed.get(name, ()), *parameter.values]))
        entries = ",\n".join(f"{json.dumps(key)}: {json.dumps(entry)}" for key, entry in self._entries.items())
        text = f'{json.dumps(header, indent=0)[:-2]},\n"cache": {{\n{entries}}}\n}}'
        write_text(self.path, text, overwrite=True)
        now = time.monotonic()
        self._next_s = now + max(_LEAST_S, _SHARE * (now - began))


def _key(measurement: Measurement) -> str:
    return ",".join(str(value) for value in measurement.configuration.values())


def _is_kept(name: str, value: Any) -> bool:
    return isinstance(value, list) or (name in COST_MS and isinstance(value, int | float))


def _document(path: Path) -> dict[str, Any]:
    """The whole file, also where its writer was ended before it closed it. Raises InputError."""
    text = read_text(path, _MOST_BYTES).strip()
    for end in ("", "}\n}"):
        try:
            document = json.loads(text.removesuffix(",") + end if end else text)
        except (ValueError, RecursionError):
            continue
        if isinstance(document, dict) and isinstance(document.get("cache"), dict):
            return document
    raise InputError("it is no cache of Kernel Tuner's", str(path), "name another file")
