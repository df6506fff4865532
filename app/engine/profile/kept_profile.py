"""A profile in one file with its timeline: NumPy's `.npz` of columns, and the profile as JSON beside them.

Such a file may come from anyone: a column is read only where its kind and length are as they were written, within
bounds, and nothing in it is unpickled. Of a slice its power is kept, to 0.01 W, and its time.
"""

from __future__ import annotations

import io
import json
import re
import struct
import time
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...base.errors import InputError
from ...base.files import free_name, open_input, read_text, refuse_taken, write_text
from ...base.paths import private_folder
from ...base.records import as_json, from_json
from ...sensors.recorded.gpu import read_any
from .aligned_power import align
from .attributed import AttributedTrace, attribute_trace
from .chrome_trace import read_chrome_trace
from .families import Family
from .program_profile import ProgramProfile
from .program_trace import KINDS, ProgramTrace

SUFFIX: Final = ".wprofile"
DELETED: Final = ".deleted"
_REMEDY: Final = "write one with `wattridge profile ... --out FOLDER`"
_HEAD, _FORMAT = "head", 1
_MOST, _MOST_HEAD, _MOST_ENTRIES = 2**29, 2**26, 64  # bytes, and entries of the zip file
_FAR_NS: Final = 2**56  # two years
_SLICES: Final = {"kind": "u1", "stream": "i4", "start_ns": "i8", "duration_ns": "i8", "instance": "i4"}
_RANGES: Final = {"range_path": "i4", "range_start_ns": "i8", "range_duration_ns": "i8"}
_ATTRIBUTED: Final = {"family": "i4", "power_w": "f4"}
_SAMPLES: Final = {"sample_s": "f8", "sample_w": "f4", "sample_mhz": "f4"}
_COLUMNS: Final = {**_SLICES, **_RANGES, **_ATTRIBUTED, **_SAMPLES}
_STEPS: Final = ("start_ns", "range_start_ns")  # kept as differences: half of the bytes
_FAULTS: Final = (  # of a damaged file
    ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RuntimeError, MemoryError, EOFError, OSError,
    zipfile.BadZipFile, zlib.error, struct.error,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class KeptProfile:
    """What a list says of a kept profile."""

    path: Path
    created_s: float
    profile: ProgramProfile


def save_profile(path: Path, profile: ProgramProfile, attributed: AttributedTrace, *, force: bool = False) -> Path:
    """Write a profile with its timeline. Raises WattridgeError where a file lies and not `force`, or it cannot."""
    refuse_taken(path, force=force)
    trace = attributed.trace
    head = {
        "format": _FORMAT,
        "profile": as_json(profile),
        "trace": {
            "title": trace.title, "device": trace.device, "on_wall": trace.on_wall,
            "boards": {str(number): name for number, name in trace.boards.items()}, "paths": trace.paths,
        },
        "families": [[each.name, each.kind, each.full_name] for each in attributed.families],
    }  # fmt: skip
    columns = {_HEAD: np.frombuffer(json.dumps(head, allow_nan=False).encode(), np.uint8)}
    for names, owner in ((_SLICES | _RANGES, trace), (_ATTRIBUTED | _SAMPLES, attributed)):
        for name, kind in names.items():
            values = getattr(owner, name)
            if name in _STEPS:
                values = np.diff(values, prepend=0)
            if name == "power_w":
                values = np.round(values, 2)
            columns[name] = values.astype(f"<{kind}")
    packed = io.BytesIO()
    np.savez_compressed(packed, **columns)  # type: ignore[arg-type]  # NumPy's stub takes them for its option
    return write_text(path, packed.getvalue(), overwrite=force)


def open_profile(path: Path) -> tuple[ProgramProfile, AttributedTrace]:
    """Read a profile with its timeline. Raises InputError for a file that is none, or is damaged."""
    try:
        with _archive(path) as archive:
            return _opened(archive)
    except _FAULTS as error:
        raise InputError(f"this is no profile, or it is damaged: {error}", str(path), _REMEDY) from None


def read_profile(path: Path) -> tuple[ProgramProfile, AttributedTrace | None]:
    """Read a profile from a file of this kind, or as `--json` and `--out` write it, without its timeline.

    Raises InputError for what is neither.
    """
    if is_kept(path):
        return open_profile(path)
    text = read_text(path)
    try:
        return _checked(from_json(ProgramProfile, json.loads(text))), None
    except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError):
        raise InputError("this is no profile", str(path), _REMEDY) from None


def profile_files(trace: Path, power: Path) -> tuple[Path, ProgramProfile, AttributedTrace]:
    """Profile a trace with the power of the same time; returns where it is kept, too. Raises WattridgeError."""
    log, read = read_any(power), read_chrome_trace(trace)
    found = attribute_trace(read, align(read, log.boards, str(power)), log.notes)
    return keep_profile(*found), *found


def is_kept(path: Path) -> bool:
    """Whether a file is named as one that holds a profile with its timeline."""
    return path.suffix.lower() == SUFFIX and not path.is_dir()


def keep_profile(profile: ProgramProfile, attributed: AttributedTrace) -> Path:
    """Write a profile into the data folder, and let go of those that were deleted. Raises WattridgeError."""
    folder = private_folder("profiles")
    for old in folder.glob(f"*{SUFFIX}{DELETED}"):
        old.unlink(missing_ok=True)
    stem = re.sub(r"[^\w.-]+", "-", profile.title).strip("-._")[:60] or "program"
    return save_profile(free_name(folder / f"{time.strftime('%Y-%m-%d-%H%M%S')}-{stem}{SUFFIX}"), profile, attributed)


def kept_profiles() -> list[KeptProfile]:
    """List the profiles of the data folder, the newest first; files that are damaged are left out."""
    found = []
    for path in private_folder("profiles").glob(f"*{SUFFIX}"):
        try:
            with _archive(path) as archive:
                profile = _checked(from_json(ProgramProfile, _head(archive)["profile"]))
            created_s = path.stat().st_mtime
        except (InputError, *_FAULTS):
            continue
        found.append(KeptProfile(path, created_s, profile))
    return sorted(found, key=lambda each: -each.created_s)


# --- inside -----------------------------------------------------------------------------------------------------------


@contextmanager
def _archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open the zip file. Raises InputError where it cannot be read, one of `_FAULTS` for what is none."""
    try:
        file = open_input(path)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"cannot be read: {why}", str(path), "check the path") from None
    with file:
        if file.seek(0, io.SEEK_END) > _MOST:
            raise ValueError("it is too large")
        with zipfile.ZipFile(file) as archive:
            entries = archive.infolist()
            if len(entries) > _MOST_ENTRIES or sum(entry.file_size for entry in entries) > _MOST:
                raise ValueError("it has too many parts, or unpacks to too much")
            yield archive


def _column(archive: zipfile.ZipFile, name: str, kind: str) -> npt.NDArray[Any]:
    """Read a column of that kind. Raises one of `_FAULTS` for any other, before room for it is made."""
    entry = archive.getinfo(f"{name}.npy")
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{name} is packed in another way")
    data = io.BytesIO(archive.read(entry))
    if np.lib.format.read_magic(data) != (1, 0):
        raise ValueError(f"{name} is of another version")
    shape, _, dtype = np.lib.format.read_array_header_1_0(data)
    rest = data.read()
    if dtype != np.dtype(f"<{kind}") or len(shape) != 1 or len(rest) != shape[0] * dtype.itemsize:
        raise ValueError(f"{name} is not the column that it should be")
    return np.frombuffer(rest, dtype)


def _head(archive: zipfile.ZipFile) -> Any:
    if archive.getinfo(f"{_HEAD}.npy").file_size > _MOST_HEAD:
        raise ValueError("its head is too large")
    text = _column(archive, _HEAD, "u1").tobytes().decode()
    head = json.loads(text, parse_int=_bounded, parse_constant=_bounded)
    if head["format"] != _FORMAT:
        raise ValueError("a later version of Wattridge wrote it")
    return head


def _bounded(text: str) -> int:
    if len(text) > 18:
        raise ValueError("a number is out of bounds")
    return int(text)


def _opened(archive: zipfile.ZipFile) -> tuple[ProgramProfile, AttributedTrace]:
    head = _head(archive)
    profile, of_trace = _checked(from_json(ProgramProfile, head["profile"])), head["trace"]
    columns: dict[str, Any] = {name: _column(archive, name, kind) for name, kind in _COLUMNS.items()}
    for name in _STEPS:
        columns[name] = np.cumsum(columns[name])  # may wrap: then the times are not in order, or too far away
    families = tuple(Family(str(name), str(kind), str(full), None) for name, kind, full in head["families"])
    paths = tuple(tuple(map(str, path)) for path in of_trace["paths"])
    for names in (_SLICES | _ATTRIBUTED, _RANGES, _SAMPLES):
        if len({len(columns[name]) for name in names}) != 1:
            raise ValueError("columns are not of one length")
    known = {frozenset(each.name for each in given) for given in (profile.families, families)}
    if not len(columns["kind"]) or not all(paths) or len(known) != 1:
        raise ValueError("the timeline does not fit the profile")
    _check_places(columns, len(families), len(paths))
    none = np.full(len(columns["kind"]), -1, np.int32)
    trace = ProgramTrace(
        str(of_trace["title"]), int(of_trace["device"]),
        {int(number): str(name) for number, name in of_trace["boards"].items()}, bool(of_trace["on_wall"]),
        tuple(each.full_name for each in families), (), paths,
        name=columns["family"], operator=none, moved_bytes=np.zeros(len(none), np.int64),
        range_parent=np.full(len(columns["range_path"]), -1, np.int32),
        **{name: columns[name] for name in (*_SLICES, *_RANGES)},
    )  # fmt: skip
    power_w = columns["power_w"].astype(np.float64)
    energy_j = np.where(trace.duration_ns > 0, power_w * trace.duration_ns / 1e9, 0.0)
    samples = (columns[name].astype(np.float64) for name in _SAMPLES)
    return profile, AttributedTrace(trace, families, columns["family"], energy_j, power_w, *samples)


def _check_places(columns: dict[str, npt.NDArray[Any]], families: int, paths: int) -> None:
    ranges = len(columns["range_path"])
    bounds = {"kind": (0, len(KINDS)), "family": (0, families), "instance": (-1, ranges), "range_path": (0, paths)}
    bounds |= {"duration_ns": (0, _FAR_NS), "range_duration_ns": (0, _FAR_NS)}
    for name, (low, high) in bounds.items():
        values = columns[name]
        if len(values) and not low <= values.min() <= values.max() < high:
            raise ValueError(f"{name} is out of bounds")
    origin, times = columns["start_ns"][0], np.concatenate((columns["start_ns"], columns["range_start_ns"]))
    apart = np.abs(times.astype(np.float64) - float(origin))
    if (np.diff(columns["start_ns"]) < 0).any() or apart.max() > _FAR_NS or abs(float(origin)) > 2.0**62:
        raise ValueError("the times are not in order, or out of bounds")
    if not (np.isfinite(columns["sample_s"]).all() and (np.diff(columns["sample_s"]) > 0).all()):
        raise ValueError("the samples are not in order")


def _checked(profile: ProgramProfile) -> ProgramProfile:
    """Raises ValueError for a profile of no time, or whose groups and families do not fit."""
    numbers = {group.number for group in profile.groups}
    members = {profile.gaps.group, *(each.group for each in profile.families)} - {None}
    if not (profile.time_s > 0 and members <= numbers and all(group.families for group in profile.groups)):
        raise ValueError("its parts do not fit each other")
    return profile
