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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from ...base.errors import InputError, WattridgeError
from ...base.files import read_text, write_text
from ...base.records import as_json, from_json
from ...sensors.gpu import GpuInfo, Source
from ..analysis.baseline import against_baseline, call_energy
from ..analysis.in_turns import Block, InTurns, Side, compare_in_turns
from ..results.evidence import Evidence, Floats

KIND: Final = "wattridge evidence"
VERSION: Final = 1
TOLERANCE: Final = 1e-6  # relative
LONGER: Final = 1.1  # times its windows that the work of a block may take: it has a timer of its own


@dataclass(frozen=True, slots=True)
class EvidenceBlock:
    """One block with its windows and samples, whose times count from its begin."""

    side: Side
    start_s: float  # from the begin of the first block
    end_s: float
    work: float  # units, as calls
    time_s: float  # of one unit
    energy_j: float
    starts_s: Floats  # of each window, shape (k,)
    ends_s: Floats
    times_s: Floats  # the middle of what each sample averages, shape (n,)
    power_w: Floats

    @property
    def block(self) -> Block:
        """The same with the energy that the samples say."""
        none, bits = np.empty(0), np.empty(0, np.int64)
        seen = Evidence(self.starts_s, self.ends_s, self.times_s, self.power_w, none, none, bits)
        return Block(self.side, self.start_s, self.end_s, self.time_s, seen.mean_power_w * self.time_s, work=self.work)


@dataclass(frozen=True, slots=True)
class Measured:
    """One result: what was stated of it, what it was computed with, and its blocks."""

    name: str
    kind: Literal["calls", "in turns"]
    parameters: Mapping[str, Any]
    figures: Mapping[str, Any]
    blocks: tuple[EvidenceBlock, ...]


def calls_evidence(name: str, blocks: Sequence[Block], wander: float, sessions_j: Sequence[float]) -> Measured:
    """The evidence of the energy of calls, against earlier sessions. Raises as `in_turns_evidence` does."""
    return _measured(name, "calls", {"wander": wander, "sessions_j": list(sessions_j)}, blocks)


def in_turns_evidence(name: str, blocks: Sequence[Block], compared: InTurns) -> Measured:
    """The evidence of two sides measured in turns, of the pairs that count. Raises WattridgeError without samples."""
    pairs = [pair for pair in zip(blocks[::2], blocks[1::2], strict=False) if all(each.evidence for each in pair)]
    parameters = {"threshold": compared.threshold, "error": compared.error}
    return _measured(name, "in turns", parameters, [block for pair in pairs for block in pair])


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


def write_evidence(path: Path, info: GpuInfo, measured: Sequence[Measured]) -> Path:
    """Write an evidence file in place of an older one. Raises WattridgeError if the disk refuses it."""
    from ... import __version__

    document = EvidenceFile(
        info.name, info.source, info.driver, info.power_source, tuple(measured), wattridge=__version__
    )
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


def _measured(
    name: str, kind: Literal["calls", "in turns"], parameters: Mapping[str, Any], blocks: Sequence[Block]
) -> Measured:
    kept = []
    if not blocks or any(block.evidence is None for block in blocks):
        raise WattridgeError("there are no samples", name, "only boards whose power is sampled leave evidence")
    for block in blocks:
        seen = block.evidence
        assert seen is not None
        head = block.side, block.start_s - blocks[0].start_s, block.end_s - blocks[0].start_s, block.work, block.time_s
        samples = seen.starts_s, seen.ends_s, seen.times_s, seen.power_w
        kept.append(EvidenceBlock(*head, seen.mean_power_w * block.time_s, *samples))
    return Measured(name, kind, parameters, _FIGURES[kind]([each.block for each in kept], parameters), tuple(kept))


def _faults(measured: Measured) -> Iterator[str]:
    """What of a result does not follow from its samples."""
    ended_s = 0.0
    for number, block in enumerate(measured.blocks, 1):
        where, times_s = f"{measured.name}, block {number}", block.times_s
        ends_s = np.stack([block.starts_s, block.ends_s], axis=1).ravel()
        if not len(times_s) or len(times_s) != len(block.power_w) or not len(ends_s):
            yield f"{where}: it has no windows or no samples"
            return
        seconds = float((block.ends_s - block.starts_s).sum())
        in_order = (np.diff(ends_s) >= 0).all() and ended_s <= block.start_s <= block.end_s
        if not in_order or not 0 <= block.time_s * block.work <= min(seconds, block.end_s - block.start_s) * LONGER:
            yield f"{where}: its windows are not in order, or too short for its work"
        if (np.diff(times_s) < 0).any() or times_s[0] < ends_s[0] or times_s[-1] > ends_s[-1]:
            yield f"{where}: its samples are not in order, or not of its windows"
        ended_s = block.end_s
        if not _alike(block.energy_j, block.block.energy_j):
            yield f"{where}: energy_j is {block.energy_j:.6g}, and its samples say {block.block.energy_j:.6g}"
    found = _FIGURES[measured.kind]([block.block for block in measured.blocks], measured.parameters)
    stated, right = _flat(measured.figures), _flat(as_json(found))
    for key in {**stated, **right}:
        if not _alike(stated.get(key), right.get(key)):
            yield f"{measured.name}: {key} is {_shown(stated.get(key))}, and its samples say {_shown(right.get(key))}"


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


def _calls(blocks: Sequence[Block], parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    energy = call_energy([block.energy_j for block in blocks], [block.time_s for block in blocks], parameters["wander"])
    sessions_j = parameters["sessions_j"]
    return {"energy": energy, "against_baseline": against_baseline(energy, sessions_j) if sessions_j else None}


def _in_turns(blocks: Sequence[Block], parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    compared = compare_in_turns(blocks, parameters["threshold"], parameters["error"])
    changes = {"energy": compared.energy, "time": compared.time}
    figures = {name: {"change": known.change, "interval": known.interval} for name, known in changes.items()}
    return {**figures, "verdict": compared.verdict}


_FIGURES: Final[Mapping[str, Callable[[Sequence[Block], Mapping[str, Any]], Mapping[str, Any]]]] = {
    "calls": _calls,
    "in turns": _in_turns,
}
