"""Characterisations on disk: one JSON file per board's name and driver, in the user's data folder."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

import numpy as np

from ....errors import InputError
from ....files import read_text, write_text
from ....numbers import as_json
from ....paths import data_folder
from ....sensors.gpu import GpuInfo
from .figures import SOURCES, Aftereffect, Answer, Characterisation, Floats, SourceFigures

VERSION: Final = 1
_MAXIMUM_BYTES: Final = 4 << 20
_MOST_POINTS: Final = 20_000
_LEAST: Final = {"lag_ms": -math.inf, "share": -1.0}  # the other figures are not negative
_ANSWER_DIGITS: Final = {"time_s": 5, "power_w": 3}


def save_characterisation(found: Characterisation) -> Path:
    """Keep it, in place of an older one of the same board and driver; returns the file."""
    path = _path(found.gpu, found.driver)
    text = json.dumps(to_json(found), indent=1, allow_nan=False, ensure_ascii=False)
    return write_text(path, text + "\n", overwrite=True)


def stored_characterisation(info: GpuInfo) -> Characterisation | None:
    """What is kept of that board under its driver; None where nothing is, or nothing that can be read.

    One that was found when the board reported another power source (a driver that lost its buffer, a changed simulated
    board) does not count.
    """
    found = latest_characterisation(info.name, info.driver)
    return found if found is not None and found.declared == info.power_source else None


def latest_characterisation(gpu: str, driver: str) -> Characterisation | None:
    """What is kept of a board of that name under that driver, whatever it says of itself now; None where nothing is."""
    try:
        path = _path(gpu, driver)
        found = from_json(json.loads(read_text(path, _MAXIMUM_BYTES)), str(path))
    except (InputError, json.JSONDecodeError, RecursionError):
        return None
    return found if (found.gpu, found.driver) == (gpu, driver) else None


def to_json(found: Characterisation, *, answers: bool = True) -> dict[str, Any]:
    """As `characterise --json` prints it and as it is kept, with the answers to the steps or without."""
    document: dict[str, Any] = {"version": VERSION, **as_json(found), "settle_ms": found.settle_ms}
    for figures in document["sources"].values():
        if figures is not None and answers:
            for name, digits in _ANSWER_DIGITS.items():
                figures["answer"][name] = [round(value, digits) for value in figures["answer"][name]]
        elif figures is not None:
            del figures["answer"]
    return document


def from_json(document: Any, where: str) -> Characterisation:
    """The reverse of `to_json`. Raises InputError."""
    if not isinstance(document, dict) or document.get("version") != VERSION:
        raise InputError("not a characterisation of this version", where, "run: wattridge characterise")
    try:
        given = {name: document["sources"].get(name) for name in SOURCES}
        after = document.get("aftereffect")
        found = Characterisation(
            **_texts_and_figures(document),
            sources={name: None if each is None else _source(each) for name, each in given.items()},
            missing={str(name): str(why) for name, why in document["missing"].items()},
            notes=tuple(str(note) for note in document["notes"]),
            aftereffect=None if after is None else Aftereffect(**_figures(Aftereffect, after)),
        )
        if found.sources[found.chosen] is None or found.chosen == "counter":
            raise ValueError("the chosen source is not there")
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"a damaged characterisation: {error}", where, "run: wattridge characterise") from None
    return found


def _source(given: Mapping[str, Any]) -> SourceFigures:
    answer = Answer(*(_array(given["answer"][name]) for name in _ANSWER_DIGITS))
    if answer.time_s.shape != answer.power_w.shape:
        raise ValueError("times and powers of an answer do not match")
    return SourceFigures(**_figures(SourceFigures, given), answer=answer)


def _texts_and_figures(document: Mapping[str, Any]) -> dict[str, Any]:
    texts = {name: str(document[name]) for name in _fields(Characterisation, "str")}
    return texts | _figures(Characterisation, document)


def _fields(kind: type[Any], *types: str) -> list[str]:
    return [field.name for field in fields(kind) if field.type in types]


def _figures(kind: type[Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers of a dataclass, each within its bounds."""
    numbers: dict[str, Any] = {name: _number(given[name], _LEAST.get(name, 0.0)) for name in _fields(kind, "float")}
    for name in _fields(kind, "float | None"):
        numbers[name] = None if given[name] is None else _number(given[name])
    return numbers


def _number(given: Any, least: float = 0.0) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not math.isfinite(given) or given < least:
        raise ValueError(f"{given!r} is not a number that it can be")
    return float(given)


def _array(given: Any) -> Floats:
    if not isinstance(given, list) or len(given) > _MOST_POINTS:
        raise ValueError("an answer is a list of numbers")
    return np.asarray([_number(each, -math.inf) for each in given])


def _path(gpu: str, driver: str) -> Path:
    name = re.sub(r"[^a-z0-9]+", "-", f"{gpu} {driver}".lower()).strip("-")[:80]
    digest = hashlib.sha256(f"{gpu}\0{driver}".encode()).hexdigest()[:8]
    return data_folder() / "characterisations" / f"{name}-{digest}.json"
