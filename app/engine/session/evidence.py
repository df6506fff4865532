"""The samples of a stored measurement as arrays, or why there are none; as a document, a description and CSV."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TypedDict

from ...base.records import Count
from ..results.description import Description, Figure, side_by_side
from ..results.evidence import Evidence, unpack
from ..results.measurement import Configuration, Depth, Measurement, State
from ..store.database import Store

Measured = tuple[int, Measurement, Evidence | str]  # the number of a measurement, from 1


class Samples(TypedDict):
    """What the board's own sensor reported, over the middle of what each sample averages."""

    time_s: list[float]
    power_w: list[float]


class ReadingsBeside(TypedDict):
    """What was read beside the power."""

    time_s: list[float]
    graphics_clock_mhz: list[float]
    event_reasons: list[int]


class EvidenceOfMeasurement(TypedDict):
    """The samples of one measurement, in s from the begin of its first window; null where it has none."""

    measurement: Count
    configuration: Configuration
    unknown: str | None
    windows_s: list[tuple[float, float]]
    mean_power_w: float
    samples: Samples | None
    readings: ReadingsBeside | None


class EvidenceOfSession(TypedDict):
    """How many measurements of a session keep their samples, and those of some."""

    session: int
    measured: Count
    kept: Count
    evidence: list[EvidenceOfMeasurement]
    files: list[str]


def evidence_of(store: Store, session: int, measurement: Measurement) -> Evidence | str:
    """The samples of a measurement of a stored session, or why there are none."""
    if measurement.source == "recorded":
        return "Replayed: the recording holds this configuration's figures, not its samples."
    if measurement.state is not State.OK:
        return "It failed: nothing was sampled."
    if measurement.depth is Depth.TIME:
        return "It was only timed: nothing was sampled."
    most_byte = store.session(session).evidence_byte
    if packed := store.evidence(session, measurement.row):
        try:
            return unpack(packed)
        except ValueError as error:
            return f"Its samples cannot be read: {error}."
    if most_byte is None:
        return "No samples: this session was measured before they were kept."
    if most_byte == 0:
        return "No samples: this session was to do without."
    if math.isnan(measurement.values.get("power_w", math.nan)):
        return "No samples: its power is not known."
    return (
        f"No samples: beyond {most_byte / (1 << 20):g} MB a session keeps those of the front, the best, the chosen and"
        " the newest measurements."
    )


def document_of(
    session: int, counts: tuple[int, int], shown: Sequence[Measured], files: list[str]
) -> EvidenceOfSession:
    """The evidence of some measurements; `counts`: how many keep theirs, of how many."""
    kept, measured = counts
    return {
        "session": session,
        "measured": measured,
        "kept": kept,
        "evidence": [_document(*of_one) for of_one in shown],
        "files": files,
    }


def _document(number: int, measurement: Measurement, evidence: Evidence | str) -> EvidenceOfMeasurement:
    seen = None if isinstance(evidence, str) else evidence
    return {
        "measurement": number,
        "configuration": dict(measurement.configuration),
        "unknown": evidence if isinstance(evidence, str) else None,
        "windows_s": [] if seen is None else [(start, end) for start, end in seen.windows_s.tolist()],
        "mean_power_w": math.nan if seen is None else seen.mean_power_w,
        "samples": seen and {"time_s": seen.times_s.tolist(), "power_w": seen.power_w.tolist()},
        "readings": seen
        and {
            "time_s": seen.read_s.tolist(),
            "graphics_clock_mhz": seen.clock_mhz.tolist(),
            "event_reasons": seen.event_reasons.tolist(),
        },
    }


def describe_evidence(session: int, board: str, counts: tuple[int, int], shown: Sequence[Measured]) -> Description:
    """The samples of measurements side by side, and remarks on what has none."""
    kept, measured = counts
    described = [Description(f"measurement {number}", "", tuple(_figures(item))) for number, _, item in shown]
    missing = [f"measurement {number}: {item}" for number, _, item in shown if isinstance(item, str)]
    remarks = [*missing, f"{kept} of {measured} measurements keep their samples"]
    return Description(
        f"session {session}",
        board,
        listings=[side_by_side(described)] if len(missing) < len(shown) else (),
        remarks=remarks,
    )


def _figures(evidence: Evidence | str) -> Iterator[Figure]:
    if isinstance(evidence, str):
        return
    yield Figure("samples", len(evidence.times_s), meaning="of the board's own sensor")
    yield Figure("window", evidence.seconds, "s", meaning="repeats together")
    yield Figure("energy", evidence.energy_j, "J", meaning="integral of the samples over the window")
    yield Figure("mean power", evidence.mean_power_w, "W", digits=5, meaning="as sampled, nothing taken out")
    if len(evidence.power_w):
        yield Figure("lowest sample", float(evidence.power_w.min()), "W")
        yield Figure("highest sample", float(evidence.power_w.max()), "W")
    clock = evidence.clock_mhz[evidence.clock_mhz == evidence.clock_mhz]
    if len(clock):
        yield Figure("graphics clock", float(clock.mean()), "MHz", meaning="observed, mean")
    for name, seconds in evidence.reasons_s().items():
        yield Figure(name, seconds, "s", meaning="event reason")


def csv_lines(shown: Sequence[Measured]) -> Iterator[str]:
    """The samples and readings of measurements in the order of time, as CSV."""
    yield "measurement,time_s,power_w,graphics_clock_mhz,event_reasons\n"
    for number, _, evidence in shown:
        if isinstance(evidence, str):
            continue
        lines = [(at, f"{power:.3f},,") for at, power in zip(evidence.times_s, evidence.power_w, strict=True)]
        readings = zip(evidence.read_s, evidence.clock_mhz, evidence.event_reasons, strict=True)
        lines += [(at, f",{'' if math.isnan(mhz) else f'{mhz:g}'},{reasons}") for at, mhz, reasons in readings]
        yield from (f"{number},{at:.6f},{cells}\n" for at, cells in sorted(lines))
