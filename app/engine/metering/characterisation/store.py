"""Characterisations on disk: one JSON file per board and driver in the user's data folder, and one while unfinished."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import fields, replace
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np

from ....base import records
from ....base.board_files import BoardFiles
from ....base.errors import InputError
from ....sensors.gpu import GpuInfo
from .sensor_figures import PARTS, SOURCES, Characterisation

VERSION: Final = 2
OF_A_MODEL: Final = 1  # this version did not keep of which board a look was: it counts as another one's
_FILES: Final = BoardFiles("characterisations", (VERSION, OF_A_MODEL), most_bytes=4 << 20)
_MOST_POINTS: Final = 20_000
_MOST_FILES: Final = 200
_LEAST: Final = {"lag_ms": -math.inf, "share": -1.0}  # the other figures are not negative
_ANSWER_DIGITS: Final = {"time_s": 5, "power_w": 3}
_UNFINISHED: Final = ".unfinished"


def save_characterisation(found: Characterisation) -> Path:
    """Keep it in place of an older one of the same board and driver; returns the file.

    One that is not complete stands beside a complete one, which counts until then.
    """
    path = _path(found.uuid, found.gpu, found.driver)
    unfinished = _unfinished(path)
    written = _FILES.keep(path if found.complete else unfinished, to_json(found))
    if found.complete:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
    return written


def stored_characterisation(info: GpuInfo) -> Characterisation | None:
    """What is kept of that very board under its driver; None where nothing is, or nothing that can be read.

    One that was found when the board reported another power source (a driver that lost its buffer, a changed simulated
    board) does not count.
    """
    try:
        path = _path(info.uuid, info.name, info.driver)
    except InputError:  # no folder to look into: who writes there says so
        return None
    return _of(info, _read(path)) or _of(info, _read(_unfinished(path)))


def unfinished_characterisation(info: GpuInfo) -> Characterisation | None:
    """What is kept of a full look at that board that was begun and not ended: it can go on from there."""
    return _of(info, _read(_unfinished(_path(info.uuid, info.name, info.driver))))


def known_characterisation(info: GpuInfo) -> Characterisation | None:
    """What is kept of that board, else, as a prior, the newest complete one of another board of its model and driver.

    Boards of a kind differ: a prior says so in its words, and what is measured with it has wider intervals.
    """
    own = stored_characterisation(info)
    if own is not None:
        return own
    alike = [
        found
        for found in _all_kept()
        if found.complete
        and (found.gpu, found.driver, found.declared) == (info.name, info.driver, info.power_source)
        and found.uuid != info.uuid
    ]
    newest = max(alike, key=lambda found: found.timestamp_s, default=None)
    return None if newest is None else replace(newest, prior=True)


def latest_characterisation(gpu: str, driver: str, uuid: str = "") -> Characterisation | None:
    """The newest of that board under that driver, complete ones first; else of all of its name, which then says so.

    None where nothing is kept. Without a UUID, as for a recording, of all boards of that name.
    """
    alike = [found for found in _all_kept() if (found.gpu, found.driver) == (gpu, driver)]
    own = [found for found in alike if uuid and found.uuid == uuid]
    newest = max(own or alike, key=lambda found: (found.complete, found.timestamp_s), default=None)
    if newest is None or own:
        return newest
    if uuid and newest.uuid:
        return replace(newest, notes=(*newest.notes, "this is a look at another GPU of this model"))
    if len({found.uuid for found in alike}) == 1:
        return newest
    return replace(newest, notes=(*newest.notes, "several GPUs of this model were looked at; this is the newest look"))


@contextmanager
def one_look(info: GpuInfo) -> Iterator[bool]:
    """Whether this process may look at the board now: one at a time, since two would see each other's load."""
    from ...children.lock import SessionLock  # of the system's own kind

    lock, taken = None, False
    with suppress(OSError):  # without a data folder one can look, too
        lock = SessionLock.acquire(_path(info.uuid, info.name, info.driver).with_suffix(".lock"))
        taken = lock is None
    try:
        yield not taken
    finally:
        if lock is not None:
            lock.release()


def to_json(found: Characterisation, *, answers: bool = True) -> dict[str, Any]:
    """As `characterise --json` prints it and as it is kept, with the answers to the steps or without."""
    document: dict[str, Any] = {"version": VERSION, **records.as_json(found)}
    for figures in document["sources"].values():
        if figures is not None and answers:
            for name, digits in _ANSWER_DIGITS.items():
                figures["answer"][name] = [round(value, digits) for value in figures["answer"][name]]
        elif figures is not None:
            del figures["answer"]
    return document


def from_json(document: Any, where: str) -> Characterisation:
    """The reverse of `to_json`. Raises InputError."""
    if not isinstance(document, dict) or document.get("version") not in (OF_A_MODEL, VERSION):
        raise InputError("not a characterisation of this version", where, "run: wattridge characterise")
    if document["version"] == OF_A_MODEL:
        document = {**document, "uuid": "", "parts": PARTS}
    try:
        found = records.from_json(Characterisation, document)
        figures = [each for each in found.sources.values() if each is not None]
        _require_plausible(found, *figures, *([found.aftereffect] if found.aftereffect else []))
        for answer in (each.answer for each in figures):
            if answer.time_s.ndim != 1 or answer.time_s.shape != answer.power_w.shape:
                raise ValueError("times and powers of an answer do not match")
            if len(answer.time_s) > _MOST_POINTS:
                raise ValueError("an answer has too many points")
            if not np.isfinite([answer.time_s, answer.power_w]).all():
                raise ValueError("an answer is a list of numbers")
        if found.sources[found.chosen] is None or found.chosen == "counter":
            raise ValueError("the chosen source is not there")
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"a damaged characterisation: {error}", where, "run: wattridge characterise") from None
    return replace(found, sources={name: found.sources.get(name) for name in SOURCES})


def _require_plausible(*figures: Any) -> None:
    """Raises ValueError where a figure of one of these records is not finite, or below what it can be."""
    for record in figures:
        for name in (field.name for field in fields(record)):
            value = getattr(record, name)
            if isinstance(value, float) and not _LEAST.get(name, 0.0) <= value < math.inf:
                raise ValueError(f"{name} = {value} is not what it can be")


def _of(info: GpuInfo, found: Characterisation | None) -> Characterisation | None:
    """What was found, where it is of that board as it is now."""
    if found is None or (found.uuid, found.gpu, found.driver) != (info.uuid, info.name, info.driver):
        return None
    return found if found.declared == info.power_source else None


def _read(path: Path) -> Characterisation | None:
    return _FILES.read(path, lambda document: from_json(document, str(path)))


def _all_kept() -> list[Characterisation]:
    try:
        return list(islice(_FILES.all(lambda document: from_json(document, _FILES.folder)), _MOST_FILES))
    except (InputError, OSError):
        return []


def _unfinished(path: Path) -> Path:
    return path.with_name(f"{path.stem}{_UNFINISHED}{path.suffix}")


def _path(uuid: str, gpu: str, driver: str) -> Path:
    return _FILES.path(f"{gpu} {driver}", key=f"{uuid}\0{driver}")
