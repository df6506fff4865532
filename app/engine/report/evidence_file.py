"""Evidence files: what energy tests measured, with every sample, so that others can compute each figure again.

The file is one JSON document. A board is named by its model, source and driver alone: no serial number, UUID or
address. `resources/ci/verify_evidence.py` computes the same with NumPy and nothing of ours.
"""

from __future__ import annotations

import json
import math
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from ...base.errors import InputError
from ...base.files import read_text, write_text
from ...base.records import as_json, from_json
from ...sensors.gpu import GpuInfo, Source
from ..analysis.baseline import against_baseline, call_energy
from ..results.evidence import Evidence, Floats

KIND: Final = "wattridge evidence"
VERSION: Final = 1
TOLERANCE: Final = 1e-6  # relative


@dataclass(frozen=True, slots=True)
class EvidenceBlock:
    """One block of calls, its windows and samples; times from the begin of its first window."""

    side: str  # "A" or "B" where two are measured in turns
    start_s: float  # from the begin of the first block
    calls: int
    time_s: float  # of one call
    energy_j: float
    starts_s: Floats  # of each window, shape (k,)
    ends_s: Floats
    times_s: Floats  # the middle of what each sample averages, shape (n,)
    power_w: Floats

    @classmethod
    def of(cls, side: str, start_s: float, calls: int, evidence: Evidence) -> EvidenceBlock:
        """Return the block of what a sensor reported of so many calls."""
        parts = (evidence.starts_s, evidence.ends_s, evidence.times_s, evidence.power_w)
        return cls(side, start_s, calls, math.nan, math.nan, *(np.round(part, 7) for part in parts)).again()

    def again(self) -> EvidenceBlock:
        """Return the same with the figures that its windows and samples say."""
        none, bits = np.empty(0), np.empty(0, np.int64)
        seen = Evidence(self.starts_s, self.ends_s, self.times_s, self.power_w, none, none, bits)
        return replace(self, time_s=seen.seconds / self.calls, energy_j=seen.energy_j / self.calls)


@dataclass(frozen=True, slots=True)
class Measured:
    """One result: what was stated of it, what it was computed with, and its blocks."""

    name: str
    kind: str  # a key of `_FIGURES`
    parameters: Mapping[str, Any]
    figures: Mapping[str, Any]
    blocks: tuple[EvidenceBlock, ...]

    @classmethod
    def of(cls, name: str, kind: str, parameters: Mapping[str, Any], blocks: Sequence[EvidenceBlock]) -> Measured:
        """Return the result whose figures follow from the blocks."""
        return cls(name, kind, parameters, _FIGURES[kind](blocks, parameters), tuple(blocks))


@dataclass(frozen=True, slots=True)
class EvidenceFile:
    """All that one run measured on one board."""

    gpu: str
    source: Source
    driver: str
    power_source: str
    measured: tuple[Measured, ...]
    kind: str = KIND
    version: int = VERSION
    made: str = field(default_factory=lambda: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))
    wattridge: str = ""
    python: str = field(default_factory=platform.python_version)


@dataclass(frozen=True, slots=True)
class Verified:
    """Whether every figure of a file follows from its samples, and which do not."""

    file: str
    gpu: str
    results: int
    blocks: int
    samples: int
    holds: bool
    faults: Sequence[str]


def write_evidence(path: Path, info: GpuInfo, power_source: str, measured: Sequence[Measured]) -> Path:
    """Write an evidence file in place of an older one. Raises WattridgeError if the disk refuses it."""
    from ... import __version__

    document = EvidenceFile(info.name, info.source, info.driver, power_source, tuple(measured), wattridge=__version__)
    return write_text(path, json.dumps(as_json(document), allow_nan=False, ensure_ascii=False) + "\n", overwrite=True)


def verify_evidence(path: Path) -> Verified:
    """Compute every figure of an evidence file again. Raises InputError if it is none, or is damaged."""
    try:
        document = json.loads(read_text(path))
        if document["kind"] != KIND or document["version"] != VERSION:
            raise ValueError(f"it is no evidence file of version {VERSION}")
        read = from_json(EvidenceFile, document)
        faults = [fault for measured in read.measured for fault in _faults(measured)]
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        what = f"it is damaged, or no evidence file: {error}"
        raise InputError(what, str(path), "name a file that --evidence or --energy-evidence wrote") from None
    blocks = [block for measured in read.measured for block in measured.blocks]
    samples = sum(len(block.times_s) for block in blocks)
    return Verified(str(path), read.gpu, len(read.measured), len(blocks), samples, not faults, faults)


# --- inside -----------------------------------------------------------------------------------------------------------


def _faults(measured: Measured) -> Iterator[str]:
    """What of a result does not follow from its samples."""
    ended_s = -math.inf
    for number, block in enumerate(measured.blocks, 1):
        where, times_s = f"{measured.name}, block {number}", block.times_s
        ends_s = np.stack([block.starts_s, block.ends_s], axis=1).ravel()
        if block.calls < 1 or not len(times_s) or len(times_s) != len(block.power_w) or not len(ends_s):
            yield f"{where}: it has no calls, no windows or no samples"
            return
        if (np.diff(ends_s) < 0).any() or ends_s[0] != 0 or block.start_s < ended_s:
            yield f"{where}: its windows are not in order"
        if (np.diff(times_s) < 0).any() or times_s[0] < 0 or times_s[-1] > ends_s[-1]:
            yield f"{where}: its samples are not in order, or not of its windows"
        ended_s = block.start_s + float(ends_s[-1]) - TOLERANCE
        yield from _differing(where, {"time_s": block.time_s, "energy_j": block.energy_j}, block.again())
    blocks = [block.again() for block in measured.blocks]
    yield from _differing(measured.name, measured.figures, _FIGURES[measured.kind](blocks, measured.parameters))


def _differing(where: str, stated: Mapping[str, Any], found: Any) -> Iterator[str]:
    """The figures that are not what was found."""
    said, right = _flat(stated), _flat(as_json(found))
    for key in (key for key in {**said, **right} if key in said or not isinstance(found, EvidenceBlock)):
        one, other = said.get(key), right.get(key)
        if not _alike(one, other):
            yield f"{where}: {key} is {_shown(one)}, and its samples say {_shown(other)}"


def _alike(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=1e-9)
    return bool(one == other)


def _flat(value: Any, name: str = "") -> dict[str, Any]:
    """Every number and text of a document under its place in it: 'interval.0'."""
    if not isinstance(value, Mapping | list | tuple):
        return {name: value}
    items = value.items() if isinstance(value, Mapping) else enumerate(value)
    return {k: v for key, item in items for k, v in _flat(item, f"{name}.{key}" if name else str(key)).items()}


def _shown(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _energy(blocks: Sequence[EvidenceBlock], parameters: Mapping[str, Any]) -> Any:
    """Figures of one function, against earlier sessions where there are any."""
    energies_j, times_s = [block.energy_j for block in blocks], [block.time_s for block in blocks]
    energy = call_energy(energies_j, times_s, parameters["wander"])
    sessions_j = parameters["sessions_j"]
    return {"energy": energy, "against_baseline": against_baseline(energy, sessions_j) if sessions_j else None}


_FIGURES: Final[Mapping[str, Callable[[Sequence[EvidenceBlock], Mapping[str, Any]], Any]]] = {"energy": _energy}
