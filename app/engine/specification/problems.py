"""Everything that is wrong with a document at once, where the reader names the first thing alone."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ...base.errors import InputError
from .check import specification_of
from .toml_edit import Place
from .toml_section import UnknownKey

MAX_PROBLEMS: Final = 20
# What takes the place of something wrong, so that the reader goes on and nothing else becomes wrong by it.
_HARMLESS: Final[Mapping[str, Any]] = {"restrictions": "1 == 1", "parameters": [1], "constants": 1, "metrics": "1"}


@dataclass(frozen=True, slots=True)
class Problem:
    """The reader's message, and the place in the document that it is about; () is the document as a whole."""

    place: Place
    what: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.what} ({self.remedy})" if self.remedy else self.what


def problems_of(document: Mapping[str, Any], path: Path) -> tuple[Problem, ...]:
    """What the reader refuses, in its own words and order. What follows from an earlier problem alone is left out."""
    left: dict[str, Any] = copy.deepcopy(dict(document))
    problems: list[Problem] = []
    for _ in range(2 * MAX_PROBLEMS):
        try:
            specification_of(left, path)
            break
        except InputError as error:
            problem = problem_of(error, document, path)
        if any(item.place[: len(problem.place)] == problem.place for item in problems):  # it follows from that one
            if not _drop(left, problem.place):
                break
            continue
        problems.append(problem)
        if len(problems) == MAX_PROBLEMS or not _make_harmless(left, problem.place):
            break
    return tuple(problems)


def problem_of(error: InputError, document: Mapping[str, Any], path: Path) -> Problem:
    """The problem that the reader, or the builder of the space, raised for a file of that path."""
    where = re.sub(r"^(: |\.)", "", error.where.removeprefix(str(path)))
    place = _place(where, document)
    return Problem((*place, error.key) if isinstance(error, UnknownKey) else place, error.what, error.remedy)


def _place(where: str, document: Mapping[str, Any]) -> Place:
    """The path of 'kernel.arguments[0].type'. Keys that have dots themselves are found in the document."""
    place: list[str | int] = []
    inner: Any = document
    while where:
        if where[0] == "[" and "]" in where:
            index, where = where[1:].split("]", 1)
            if not index.isdecimal():
                break
            place.append(int(index))
            inner = inner[int(index)] if isinstance(inner, list) and int(index) < len(inner) else None
        else:
            keys = [k for k in inner if where.startswith(k)] if isinstance(inner, Mapping) else []
            keys = [k for k in keys if where[len(k) : len(k) + 1] in ("", ".", "[")]
            key = max(keys, key=len) if keys else where.split(".", 1)[0].split("[", 1)[0]
            place.append(key)
            inner, where = inner.get(key) if isinstance(inner, Mapping) else None, where[len(key) :]
            if not key and not where.startswith("."):
                break
        where = where.removeprefix(".")
    return tuple(place)


def _make_harmless(document: dict[str, Any], place: Place) -> bool:
    """Replace what is wrong; whether there is something to replace."""
    section = place[0] if place else ""
    if section in _HARMLESS and len(place) > 1 and not _missing(document.get(str(section)), place[1]):
        document[str(section)][place[1]] = copy.copy(_HARMLESS[str(section)])
        return True
    return _drop(document, place)


def _drop(document: dict[str, Any], place: Place) -> bool:
    """Remove the value of a place, or what it is missing from; an item of a list goes with the list."""
    while place:
        inner: Any = document
        for key in place[:-1]:
            inner = None if _missing(inner, key) else inner[key]
        if isinstance(inner, dict) and place[-1] in inner:
            del inner[place[-1]]
            return True
        place = place[:-1]
    return False


def _missing(inner: Any, key: str | int) -> bool:
    if isinstance(inner, list):
        return not (isinstance(key, int) and 0 <= key < len(inner))
    return not isinstance(inner, dict) or key not in inner
