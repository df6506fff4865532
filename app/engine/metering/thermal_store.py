"""What is known of boards' heat, on disk: one JSON file per board, by its UUID, in the user's data folder.

Boards of a kind differ: what another of the same name showed is a weak prior. What a board showed itself counts for
less as it ages.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from ...base.errors import InputError, WattridgeError
from ...base.files import read_text, write_text
from ...base.paths import data_folder
from ...sensors.gpu import GpuInfo
from .condition import Condition
from .thermal import ANY_BOARD, PRIOR, ThermalModel

VERSION: Final = 1
HALVED_AFTER_S: Final = 30 * 86400.0  # age at which half of what was learnt counts
NEXT_SESSION: Final = 0.7  # of it counts in the next session: boards change, and models are only models
OTHER_BOARD: Final = 0.1
# Five boards wander by 0.4 to 1.9 %. More was learnt from windows that something else disturbed, by a version that did
# not leave them out, and would widen every interval of the sessions that begin with it.
MOST_WANDER: Final = 0.06
_MAXIMUM_BYTES: Final = 1 << 16
_WIDEST: Final = 1e12


@dataclass(frozen=True, slots=True)
class BoardHeat:
    """How a board's power follows its temperature, as far as is known before a session."""

    model: ThermalModel = ANY_BOARD
    condition: Condition | None = None  # that its figures are stated for, fixed by its first session


def known_heat(info: GpuInfo, now_s: float | None = None) -> BoardHeat:
    """What is kept of that board, else of the newest of its name, weakened by age; the default where nothing is."""
    now_s = time.time() if now_s is None else now_s
    own = _read(_path(info.uuid))
    if own is not None:
        heat, document = own
        return BoardHeat(heat.model.weakened(NEXT_SESSION * _left(document, now_s)), heat.condition)
    others = [each for path in _folder().glob("*.json") if (each := _read(path)) is not None]
    alike = [each for each in others if each[1].get("name") == info.name]
    if not alike:
        return BoardHeat()
    heat, document = max(alike, key=lambda each: each[1]["learnt_s"])
    return BoardHeat(heat.model.weakened(OTHER_BOARD * _left(document, now_s)))


def keep_heat(info: GpuInfo, heat: BoardHeat, now_s: float | None = None) -> None:
    """Keep what a session has shown of a board, in place of what was known before."""
    document = {
        "version": VERSION,
        "uuid": info.uuid,
        "name": info.name,
        "learnt_s": time.time() if now_s is None else now_s,
        "model": model_to_json(heat.model),
        "condition": None if heat.condition is None else heat.condition.as_names(),
    }
    with suppress(WattridgeError):  # a disk that is full or read-only: the next session learns it again
        write_text(_path(info.uuid), json.dumps(document, indent=1, allow_nan=False) + "\n", overwrite=True)


def model_to_json(model: ThermalModel) -> dict[str, Any]:
    """As it is kept with a board and with a session."""
    return asdict(model)


def model_from_json(document: Any) -> ThermalModel:
    """The reverse of `model_to_json`. Raises ValueError and what damage besides may raise."""
    size = len(PRIOR)
    coefficients, precision = (np.asarray(document[name], dtype=np.float64) for name in ("coefficients", "precision"))
    wander, degrees = float(document["wander"]), float(document["wander_degrees"])
    if (
        coefficients.shape != (size,)
        or precision.shape != (size, size)
        or not 0 <= wander < 1
        or not 1 <= degrees < 1e9
    ):
        raise ValueError("it is no thermal model")
    if not (np.abs(precision).max() < _WIDEST and np.abs(coefficients).max() < 1):
        raise ValueError("it is no model of a board")
    np.linalg.cholesky(precision)  # raises LinAlgError, a ValueError, where it is no precision
    return ThermalModel(tuple(coefficients.tolist()), tuple(map(tuple, precision.tolist())), wander, degrees)


def _read(path: Path) -> tuple[BoardHeat, Mapping[str, Any]] | None:
    try:
        document = json.loads(read_text(path, _MAXIMUM_BYTES))
        if document["version"] != VERSION or not math.isfinite(document["learnt_s"]):
            return None
        condition = document["condition"]
        named = None if condition is None else Condition(**{name: float(value) for name, value in condition.items()})
        model = model_from_json(document["model"])
        return BoardHeat(ANY_BOARD if model.wander > MOST_WANDER else model, named), document
    except (InputError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None


def _left(document: Mapping[str, Any], now_s: float) -> float:
    """The share of what was learnt that its age leaves."""
    age_s: float = max(0.0, now_s - document["learnt_s"])
    return math.pow(0.5, age_s / HALVED_AFTER_S)


def _folder() -> Path:
    return data_folder() / "boards"


def _path(uuid: str) -> Path:
    name = re.sub(r"[^a-z0-9]+", "-", uuid.lower()).strip("-")[:60]
    return _folder() / f"{name}-{hashlib.sha256(uuid.encode()).hexdigest()[:8]}.json"
