"""Characterisations on disk: one JSON file per board's name and driver, in the person's data folder."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Final

import numpy as np

from ....errors import InputError
from ....files import read_text, write_text
from ....paths import data_folder
from ....sensors.gpu import GpuInfo
from .figures import SOURCES, Aftereffect, Answer, Characterisation, Floats, SourceFigures

VERSION: Final = 1
_MAXIMUM_BYTES: Final = 4 << 20
_MOST_POINTS: Final = 20_000
MOST_SHARE: Final = 1.0


def save_characterisation(found: Characterisation) -> Path:
    """Keep it, in place of an older one of the same board and driver; returns the file."""
    path = _path(found.gpu, found.driver)
    text = json.dumps(to_json(found), indent=1, allow_nan=False, ensure_ascii=False)
    return write_text(path, text + "\n", overwrite=True)


def stored_characterisation(info: GpuInfo) -> Characterisation | None:
    """What is kept of that board under its driver; None where nothing is, or nothing that can be read.

    What was found when the board told another power source (a driver that lost its buffer, a changed simulated board)
    does not count.
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
    sources = {name: None if each is None else _figures_to_json(each) for name, each in found.sources.items()}
    if not answers:
        for each in sources.values():
            if each is not None:
                del each["answer"]
    return {
        "version": VERSION,
        "gpu": found.gpu,
        "driver": found.driver,
        "source": found.source,
        "declared": found.declared,
        "sources": sources,
        "missing": dict(found.missing),
        "chosen": found.chosen,
        "why": found.why,
        "measure_ms": found.measure_ms,
        "settle_ms": found.settle_ms,
        "counter_ratio": found.counter_ratio,
        "load": found.load,
        "seconds": found.seconds,
        "timestamp_s": found.timestamp_s,
        "notes": list(found.notes),
        "aftereffect": None if found.aftereffect is None else asdict(found.aftereffect),
    }


def from_json(document: Any, where: str) -> Characterisation:
    """The reverse of `to_json`. Raises InputError."""
    if not isinstance(document, dict) or document.get("version") != VERSION:
        raise InputError("not a characterisation of this version", where, "run: wattridge characterise")
    try:
        sources: dict[str, SourceFigures | None] = {}
        for name in SOURCES:
            given = document["sources"].get(name)
            sources[name] = None if given is None else _figures_of_json(given)
        ratio = document["counter_ratio"]
        found = Characterisation(
            gpu=str(document["gpu"]),
            driver=str(document["driver"]),
            source=str(document["source"]),
            declared=str(document["declared"]),
            sources=sources,
            chosen=str(document["chosen"]),
            why=str(document["why"]),
            measure_ms=_number(document["measure_ms"], least=0.0),
            load=str(document["load"]),
            seconds=_number(document["seconds"], least=0.0),
            timestamp_s=_number(document["timestamp_s"], least=0.0),
            missing={str(name): str(why) for name, why in document["missing"].items()},
            counter_ratio=None if ratio is None else _number(ratio, least=0.0),
            notes=tuple(str(note) for note in document["notes"]),
            aftereffect=_aftereffect_of_json(document.get("aftereffect")),
        )
        if sources[found.chosen] is None or found.chosen == "counter":
            raise ValueError("the chosen source is not there")
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"a damaged characterisation: {error}", where, "run: wattridge characterise") from None
    return found


def _figures_to_json(figures: SourceFigures) -> dict[str, Any]:
    told = {f.name: getattr(figures, f.name) for f in fields(figures) if f.name != "answer"}
    answer = {"time_s": _rounded(figures.answer.time_s, 5), "power_w": _rounded(figures.answer.power_w, 3)}
    return {**told, "answer": answer}


def _figures_of_json(given: Mapping[str, Any]) -> SourceFigures:
    answer = given["answer"]
    time_s, power_w = _array(answer["time_s"]), _array(answer["power_w"])
    if time_s.shape != power_w.shape:
        raise ValueError("times and powers of an answer do not match")
    return SourceFigures(
        refresh_ms=_number(given["refresh_ms"], least=0.0),
        window_ms=_optional(given["window_ms"]),
        lag_ms=_number(given["lag_ms"]),
        read_us=_number(given["read_us"], least=0.0),
        window_margin_ms=_optional(given["window_margin_ms"]),
        lag_margin_ms=_number(given["lag_margin_ms"], least=0.0),
        noise_percent=_number(given["noise_percent"], least=0.0),
        settle_ms=_number(given["settle_ms"], least=0.0),
        published_ms=_optional(given["published_ms"]),
        answer=Answer(time_s, power_w),
    )


def _aftereffect_of_json(given: Any) -> Aftereffect | None:
    if given is None:
        return None
    return Aftereffect(
        share=_number(given["share"], least=-MOST_SHARE),
        margin=_number(given["margin"], least=0.0),
        wander=_number(given["wander"], least=0.0),
    )


def _optional(given: Any) -> float | None:
    return None if given is None else _number(given, least=0.0)


def _number(given: Any, least: float = -math.inf) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not math.isfinite(given) or given < least:
        raise ValueError(f"{given!r} is no sensible number")
    return float(given)


def _array(given: Any) -> Floats:
    if not isinstance(given, list) or len(given) > _MOST_POINTS:
        raise ValueError("an answer is a list of numbers")
    return np.asarray([_number(each) for each in given])


def _rounded(values: Floats, digits: int) -> list[float]:
    return [round(float(value), digits) for value in values]


def _path(gpu: str, driver: str) -> Path:
    name = re.sub(r"[^a-z0-9]+", "-", f"{gpu} {driver}".lower()).strip("-")[:80]
    digest = hashlib.sha256(f"{gpu}\0{driver}".encode()).hexdigest()[:8]
    return data_folder() / "characterisations" / f"{name}-{digest}.json"
