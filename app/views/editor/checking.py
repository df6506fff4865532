"""What the reader says of a text, and the space it describes. Runs off Qt's thread; free of Qt."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...engine.specification.check import specification_of
from ...engine.specification.model import Specification
from ...engine.specification.problems import Problem, problem_of, problems_of
from ...engine.specification.toml_edit import Place, line_of
from ...engine.specification.toml_section import parse_toml
from ...errors import InputError

if TYPE_CHECKING:
    from ...engine.space.search_space import SearchSpace
    from ...sensors.gpu import Gpu


@dataclass(frozen=True, slots=True)
class Found:
    """A problem and its line in the text, from 1; None where it has none."""

    problem: Problem
    line: int | None

    def __str__(self) -> str:
        place = _words(self.problem.place)
        return f"{place}: {self.problem}" if place else str(self.problem)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a text says; `document` is None where it is not TOML, `spec` where something is wrong."""

    text: str
    path: Path
    document: Mapping[str, Any] | None
    spec: Specification | None
    found: tuple[Found, ...] = ()


@dataclass(frozen=True, slots=True)
class Measured:
    """The space of a text, or why there is none."""

    text: str
    space: SearchSpace | None
    found: tuple[Found, ...] = field(default=())


def read(text: str, path: Path) -> Reading:
    """Read a text as the file of that path would be."""
    try:
        document = parse_toml(text, path)
    except InputError as error:
        line = re.search(r"at line (\d+)", error.what)
        at = int(line[1]) if line else max(1, text.count("\n") + (not text.endswith("\n")))
        return Reading(text, path, None, None, (Found(Problem((), error.what, error.remedy), at),))
    problems = problems_of(document, path)
    if problems:
        return Reading(text, path, document, None, tuple(Found(each, line_of(text, each.place)) for each in problems))
    spec = specification_of(document, path)
    try:
        _check_search(spec)
    except InputError as error:
        problem = problem_of(error, document, path)
        return Reading(text, path, document, None, (Found(problem, line_of(text, problem.place)),))
    return Reading(text, path, document, spec)


def measure(reading: Reading, gpu: Gpu, stop: threading.Event) -> Measured:
    """Build the space that was read, with the limits and clocks of a board."""
    from ...engine.session.planning import space_of

    if reading.spec is None or reading.document is None:
        return Measured(reading.text, None)
    try:
        return Measured(reading.text, space_of(reading.spec, gpu, stop))
    except InputError as error:
        problem = problem_of(error, reading.document, reading.path)
        return Measured(reading.text, None, (Found(problem, line_of(reading.text, problem.place)),))


def _check_search(spec: Specification) -> None:
    from ...engine.session.planning import check_search

    check_search(spec)


def _words(place: Place) -> str:
    """A place as the reader names it: kernel.arguments[0].type."""
    text = ""
    for key in place:
        text += f"[{key}]" if isinstance(key, int) else f".{key}" if text else str(key)
    return text
