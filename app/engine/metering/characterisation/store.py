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
OF_A_MODEL: Final = 1  # this version did not keep the UUID of the board: it counts as another board's
_FILES: Final = BoardFiles("characterisations", (VERSION, OF_A_MODEL), most_bytes=4 << 20)
_MOST_POINTS: Final = 20_000
_MOST_FILES: Final = 200
_LEAST: Final = {"lag_ms": -math.inf, "share": -1.0}  # the other figures are not negative
_ANSWER_DIGITS: Final = {"time_s": 5, "power_w": 3}
_UNFINISHED: Final = ".unfinished"


def save_characterisation(characterisation: Characterisation) -> Path:
    """Keep a characterisation in place of an older one of the same board and driver.

    One that is not complete stands beside a complete one, which counts until then.

    Parameters
    ----------
    characterisation : Characterisation
        The characterisation.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    WattridgeError
        Where the file cannot be written: the disk is full or read-only, or there can be no data folder.
    """
    path = _path(characterisation.uuid, characterisation.gpu, characterisation.driver)
    unfinished = _unfinished(path)
    written = _FILES.keep(path if characterisation.complete else unfinished, to_json(characterisation))
    if characterisation.complete:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
    return written


def stored_characterisation(info: GpuInfo) -> Characterisation | None:
    """Return what is kept of that very board under its driver.

    One that was made when the board reported another power source (a driver that lost its buffer, a changed simulated
    board) does not count.

    Parameters
    ----------
    info : GpuInfo
        The board.

    Returns
    -------
    Characterisation or None
        The complete one, else the unfinished one; None if nothing is kept, or nothing that can be read.
    """
    try:
        path = _path(info.uuid, info.name, info.driver)
    except InputError:  # there is no folder, which is reported when something is kept
        return None
    return _read(info, path) or _read(info, _unfinished(path))


def unfinished_characterisation(info: GpuInfo) -> Characterisation | None:
    """Return what is kept of a characterisation of that board that was begun and not ended, to go on from.

    Parameters
    ----------
    info : GpuInfo
        The board.

    Returns
    -------
    Characterisation or None
        The unfinished one; None if there is none.

    Raises
    ------
    InputError
        Where there can be no data folder, as `data_folder` raises it.
    """
    return _read(info, _unfinished(_path(info.uuid, info.name, info.driver)))


def known_characterisation(info: GpuInfo) -> Characterisation | None:
    """Return what is kept of a board, else, as a prior, the newest complete one of its model and driver.

    Boards of a kind differ: a prior is named as one, and measurements with it have wider intervals.

    Parameters
    ----------
    info : GpuInfo
        The board.

    Returns
    -------
    Characterisation or None
        The characterisation; `prior` is set if it is another board's. None if nothing is kept.
    """
    stored = stored_characterisation(info)
    if stored is not None:
        return stored
    alike = [
        other
        for other in _all_kept()
        if other.complete
        and (other.gpu, other.driver, other.declared) == (info.name, info.driver, info.power_source)
        and other.uuid != info.uuid
    ]
    newest = max(alike, key=lambda other: other.timestamp_s, default=None)
    return None if newest is None else replace(newest, prior=True)


def latest_characterisation(gpu: str, driver: str, uuid: str = "") -> Characterisation | None:
    """Return the newest characterisation of a board under a driver, complete ones first.

    Without one of that board, or without a UUID, as for a recording, the newest of all boards of that name; its notes
    state that where it may be another board.

    Parameters
    ----------
    gpu : str
        The name of the board.
    driver : str
        The version of its driver.
    uuid : str, optional
        The board's UUID; empty if it is not known.

    Returns
    -------
    Characterisation or None
        The characterisation; None if nothing is kept.
    """
    alike = [kept for kept in _all_kept() if (kept.gpu, kept.driver) == (gpu, driver)]
    of_board = [kept for kept in alike if uuid and kept.uuid == uuid]
    newest = max(of_board or alike, key=lambda kept: (kept.complete, kept.timestamp_s), default=None)
    if newest is None or of_board:
        return newest
    if uuid and newest.uuid:
        return replace(newest, notes=(*newest.notes, "this is a look at another GPU of this model"))
    if len({kept.uuid for kept in alike}) == 1:
        return newest
    return replace(newest, notes=(*newest.notes, "several GPUs of this model were looked at; this is the newest look"))


@contextmanager
def one_look(info: GpuInfo) -> Iterator[bool]:
    """Hold the right to characterise a board: two looks at a time would measure each other's load.

    Parameters
    ----------
    info : GpuInfo
        The board.

    Yields
    ------
    bool
        Whether this process may characterise the board now; True as well where no lock can be made.

    Raises
    ------
    InputError
        Where there can be no data folder, as `data_folder` raises it.
    """
    from ....base.file_lock import FileLock  # of the system's own kind

    lock, taken = None, False
    with suppress(OSError):  # a characterisation needs no data folder
        lock = FileLock.acquire(_path(info.uuid, info.name, info.driver).with_suffix(".lock"))
        taken = lock is None
    try:
        yield not taken
    finally:
        if lock is not None:
            lock.release()


def to_json(characterisation: Characterisation, *, answers: bool = True) -> dict[str, Any]:
    """Return the document of `characterise --json` and of the file.

    Parameters
    ----------
    characterisation : Characterisation
        The characterisation.
    answers : bool, optional
        Whether the document has the answers to the steps.

    Returns
    -------
    dict
        The document, which `from_json` reads if it has the answers.
    """
    document: dict[str, Any] = {"version": VERSION, **records.as_json(characterisation)}
    for figures in document["sources"].values():
        if figures is not None and answers:
            for name, digits in _ANSWER_DIGITS.items():
                figures["answer"][name] = [round(value, digits) for value in figures["answer"][name]]
        elif figures is not None:
            del figures["answer"]
    return document


def from_json(document: Any, where: str) -> Characterisation:
    """Read the document of `to_json`.

    Parameters
    ----------
    document : object
        The document, of this version or the one before.
    where : str
        Where it stands, for errors.

    Returns
    -------
    Characterisation
        The characterisation.

    Raises
    ------
    InputError
        For a document that is damaged or of another version.
    """
    if not isinstance(document, dict) or document.get("version") not in (OF_A_MODEL, VERSION):
        raise InputError("not a characterisation of this version", where, "run: wattridge characterise")
    if document["version"] == OF_A_MODEL:
        document = {**document, "uuid": "", "parts": PARTS}
    try:
        read = records.from_json(Characterisation, document)
        figures = [source for source in read.sources.values() if source is not None]
        _require_plausible(read, *figures, *([read.aftereffect] if read.aftereffect else []))
        for answer in (source.answer for source in figures):
            if answer.time_s.ndim != 1 or answer.time_s.shape != answer.power_w.shape:
                raise ValueError("times and powers of an answer do not match")
            if len(answer.time_s) > _MOST_POINTS:
                raise ValueError("an answer has too many points")
            if not np.isfinite([answer.time_s, answer.power_w]).all():
                raise ValueError("an answer is a list of numbers")
        if read.sources[read.chosen] is None or read.chosen == "counter":
            raise ValueError("the chosen source is not there")
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"a damaged characterisation: {error}", where, "run: wattridge characterise") from None
    return replace(read, sources={name: read.sources.get(name) for name in SOURCES})


def _require_plausible(*figures: Any) -> None:
    """Raise ValueError if a figure of one of these records is not finite, or below its least value."""
    for record in figures:
        for name in (field.name for field in fields(record)):
            value = getattr(record, name)
            if isinstance(value, float) and not _LEAST.get(name, 0.0) <= value < math.inf:
                raise ValueError(f"{name} = {value} is not what it can be")


def _read(info: GpuInfo, path: Path) -> Characterisation | None:
    """The characterisation in a file, where it is of that board as it is now."""
    kept = _FILES.read(path, lambda document: from_json(document, str(path)))
    if kept is None or (kept.uuid, kept.gpu, kept.driver) != (info.uuid, info.name, info.driver):
        return None
    return kept if kept.declared == info.power_source else None


def _all_kept() -> list[Characterisation]:
    try:
        return list(islice(_FILES.all(lambda document: from_json(document, _FILES.folder)), _MOST_FILES))
    except (InputError, OSError):
        return []


def _unfinished(path: Path) -> Path:
    return path.with_name(f"{path.stem}{_UNFINISHED}{path.suffix}")


def _path(uuid: str, gpu: str, driver: str) -> Path:
    return _FILES.path(f"{gpu} {driver}", key=f"{uuid}\0{driver}")
