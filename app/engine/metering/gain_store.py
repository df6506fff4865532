"""What is known of the gain of boards' sensors, on disk: one JSON file per board, by its UUID, in the user's folder."""

from __future__ import annotations

import hashlib
import json
import math
import re
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from ...base.errors import InputError, WattridgeError
from ...base.files import read_text, write_text
from ...base.paths import data_folder
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
        return KnownGain(gain_from_json(document["gain"]), float(document["fitted_s"]))
    except (InputError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None


def keep_gain(uuid: str, name: str, gain: Gain, now_s: float | None = None) -> None:
    """Keep what a session has shown of a board's sensor, in place of what was known before."""
    document = {
        "version": VERSION,
        "uuid": uuid,
        "name": name,
        "fitted_s": time.time() if now_s is None else now_s,
        "gain": gain_to_json(gain),
    }
    with suppress(WattridgeError):  # a disk that is full or read-only: the session itself still holds it
        write_text(_path(uuid), json.dumps(document, indent=1, allow_nan=False) + "\n", overwrite=True)


def gain_to_json(gain: Gain) -> dict[str, Any]:
    """As it is kept with a board and with a session."""
    return asdict(gain)


def gain_from_json(document: Any) -> Gain:
    """The reverse of `gain_to_json`. Raises ValueError and what damage besides may raise."""
    ends = document["offset_interval_w"]
    found = Gain(
        meter=document["meter"],
        gain=float(document["gain"]),
        interval=_pair(document["interval"]),
        offset_w=float(document["offset_w"]),
        offset_interval_w=None if ends is None else _pair(ends),
        scatter=float(document["scatter"]),
        windows=int(document["windows"]),
        range_w=_pair(document["range_w"]),
    )
    intervals = (*found.interval, *(found.offset_interval_w or ()), *found.range_w)
    every = (found.gain, found.offset_w, found.scatter, *intervals)
    if not all(map(math.isfinite, every)) or not PLAUSIBLE[0] <= found.gain <= PLAUSIBLE[1]:
        raise ValueError("it is no gain")
    if not isinstance(found.meter, str) or not 0 <= found.windows < 1 << 53:
        raise ValueError("it is no gain")
    return found


def _pair(ends: Any) -> tuple[float, float]:
    low, high = ends
    return float(low), float(high)


def _path(uuid: str) -> Path:
    name = re.sub(r"[^a-z0-9]+", "-", uuid.lower()).strip("-")[:60]
    return data_folder() / "gains" / f"{name}-{hashlib.sha256(uuid.encode()).hexdigest()[:8]}.json"
