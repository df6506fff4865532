"""What is known of the gain of boards' sensors, on disk: one JSON file per board, by its UUID, in the user's folder."""

from __future__ import annotations

import hashlib
import json
import math
import re
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ...base.errors import InputError, WattridgeError
from ...base.files import read_text, write_text
from ...base.paths import data_folder
from ...base.records import as_json, from_json
from ...sensors.gpu import GpuInfo
from .gain import PLAUSIBLE, Gain

VERSION: Final = 1
_MAXIMUM_BYTES: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class KnownGain:
    """A gain, and when it was fitted: seconds since the epoch."""

    gain: Gain
    fitted_s: float


def known_gain(info: GpuInfo) -> KnownGain | None:
    """What is kept of that board; None where nothing is. Another board of its name has another gain."""
    try:
        document = json.loads(read_text(_path(info.uuid), _MAXIMUM_BYTES))
        if document["version"] != VERSION or not math.isfinite(document["fitted_s"]):
            return None
        return KnownGain(read_gain(document["gain"]), float(document["fitted_s"]))
    except (InputError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None


def keep_gain(uuid: str, name: str, gain: Gain, now_s: float | None = None) -> None:
    """Keep what a session has shown of a board's sensor, in place of what was known before."""
    document = {
        "version": VERSION,
        "uuid": uuid,
        "name": name,
        "fitted_s": time.time() if now_s is None else now_s,
        "gain": as_json(gain),
    }
    with suppress(WattridgeError):  # a disk that is full or read-only: the session itself still holds it
        write_text(_path(uuid), json.dumps(document, indent=1, allow_nan=False) + "\n", overwrite=True)


def read_gain(document: Any) -> Gain:
    """Read a gain from its document. Raises ValueError and what damage besides may raise."""
    found = from_json(Gain, document)
    intervals = (*found.interval, *(found.offset_interval_w or ()), *found.range_w)
    every = (found.gain, found.offset_w, found.scatter, *intervals)
    if not all(map(math.isfinite, every)) or not PLAUSIBLE[0] <= found.gain <= PLAUSIBLE[1]:
        raise ValueError("it is no gain")
    if not 0 <= found.windows < 1 << 53:
        raise ValueError("it is no gain")
    return found


def _path(uuid: str) -> Path:
    name = re.sub(r"[^a-z0-9]+", "-", uuid.lower()).strip("-")[:60]
    return data_folder() / "gains" / f"{name}-{hashlib.sha256(uuid.encode()).hexdigest()[:8]}.json"
