"""The samples of a stored measurement as arrays, or why there are none; as a document, a description and CSV."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ...base.errors import InputError
from ...base.records import Count, figure
from ..results.description import Description, Figure, side_by_side
from ..results.evidence import Evidence, unpack
from ..results.measurement import Configuration, Depth, Measurement, State
from ..store.database import Store


@dataclass(frozen=True, slots=True)
class EvidenceOfMeasurement:
    """The samples of one measurement by its number, which counts from 1; or why it has none."""

    measurement: Count
    configuration: Configuration
    samples: Evidence | None
    unknown: str = field(metadata=figure(nullable=True))


@dataclass(frozen=True, slots=True)
class EvidenceOfSession:
    """How many measurements of a session keep their samples, and the samples of some."""

    session: int
    gpu: str
    measured: Count
    kept: Count
    evidence: tuple[EvidenceOfMeasurement, ...]
    files: tuple[str, ...] = ()


def evidence_of(store: Store, session: int, measurement: Measurement) -> Evidence | str:
    """The samples of a measurement of a stored session, or why there are none."""
    if measurement.source == "recorded":
        return "Replayed: the recording holds this configuration's figures, not its samples."
    if measurement.state is not State.OK or measurement.depth is Depth.TIME:
        return "It failed, or was only timed: nothing was sampled."
    most_byte = store.session(session).evidence_byte
    if packed := store.evidence(session, measurement.row):
        try:
            return unpack(packed)
        except ValueError as error:
            return f"No samples: {error}."
    if not most_byte:
        why = "was measured before they were kept" if most_byte is None else "was to do without"
        return f"No samples: this session {why}."
    if math.isnan(measurement.values.get("power_w", math.nan)):
        return "No samples: its power is not known."
    return (
        "No samples: it was measured before they were kept, or they gave way: beyond"
        f" {most_byte / (1 << 20):g} MB those of the front, the best, the chosen and the newest measurements are kept."
    )


def evidence_of_session(store: Store, session: int, numbers: Sequence[int]) -> EvidenceOfSession:
    """The samples of measurements by their numbers, as the Inspector counts them. Raises InputError without such."""
    loaded = store.load(session)
    if max(numbers) > len(loaded.table):
        remedy = f"session {session} has {len(loaded.table)}, counted as in the Inspector"
        raise InputError(f"there is no measurement {max(numbers)}", "--evidence", remedy)
    shown = []
    for number in dict.fromkeys(numbers):
        measurement = loaded.table.measurement(number - 1)
        seen = evidence_of(store, session, measurement)
        samples, unknown = (None, seen) if isinstance(seen, str) else (seen, "")
        shown.append(EvidenceOfMeasurement(number, measurement.configuration, samples, unknown))
    board, measured, kept = loaded.record.board, len(loaded.table), len(store.evident(session))
    return EvidenceOfSession(session, board, measured, kept, tuple(shown))


def describe_evidence(of_session: EvidenceOfSession) -> Description:
    """The samples of measurements side by side, and remarks on what has none."""
    seen = [(one.measurement, one.samples) for one in of_session.evidence if one.samples is not None]
    described = [Description(f"measurement {number}", "", tuple(_figures(samples))) for number, samples in seen]
    remarks = [f"measurement {one.measurement}: {one.unknown}" for one in of_session.evidence if one.unknown]
    remarks.append(f"{of_session.kept} of {of_session.measured} measurements keep their samples")
    listings = [side_by_side(described)] if described else []
    return Description(f"session {of_session.session}", of_session.gpu, (), listings, remarks)


def _figures(evidence: Evidence) -> Iterator[Figure]:
    yield Figure("samples", len(evidence.times_s), meaning="of the board's own sensor")
    yield Figure("window", evidence.seconds, "s", meaning="repeats together")
    yield Figure("energy", evidence.energy_j, "J", meaning="integral of the samples over the window")
    yield Figure("mean power", evidence.mean_power_w, "W", digits=5, meaning="as sampled, nothing taken out")
    clock_mhz = evidence.clock_mhz[evidence.clock_mhz == evidence.clock_mhz]
    yield Figure("graphics clock", float(clock_mhz.mean()) if len(clock_mhz) else None, "MHz", meaning="observed, mean")
    for name, seconds in evidence.reasons_s().items():
        yield Figure(name, seconds, "s", meaning="event reason")


def csv_lines(of_session: EvidenceOfSession) -> Iterator[str]:
    """The samples and readings of measurements in the order of time, as CSV."""
    yield "measurement,time_s,power_w,graphics_clock_mhz,event_reasons\n"
    for one in of_session.evidence:
        if (kept := one.samples) is not None:
            lines = [(time_s, f"{power_w:.3f},,") for time_s, power_w in zip(kept.times_s, kept.power_w, strict=True)]
            for time_s, clock_mhz, bits in zip(kept.read_s, kept.clock_mhz, kept.event_reasons, strict=True):
                lines.append((time_s, f",{'' if math.isnan(clock_mhz) else f'{clock_mhz:g}'},{bits}"))
            yield from (f"{one.measurement},{time_s:.6f},{cells}\n" for time_s, cells in sorted(lines))
