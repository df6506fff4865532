"""A profile for other programs: a Chrome trace with power and joules, speedscope, CSV, and the profile itself."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

from ...base.files import refuse_taken, write_text
from ...base.records import as_json
from .attributed import AttributedTrace
from .kept_profile import SUFFIX, save_profile
from .program_profile import Part, ProgramProfile
from .stacks import stacks_of

_COLUMNS: Final = (
    "kind", "name", "count", "time_s", "energy_j", "energy_j_low", "energy_j_high", "power_w", "share", "each_j",
)  # fmt: skip
_AT_ONCE: Final = 5000  # events that are written together


def export_profile(profile: ProgramProfile, trace: AttributedTrace, folder: Path, *, force: bool = False) -> list[Path]:
    """Write every file into a folder; returns their paths. Raises WattridgeError if one is there and not `force`."""
    stem = profile.title
    contents: dict[str, Iterator[str]] = {
        f"{stem}-profile.json": iter([json.dumps(as_json(profile), indent=1, allow_nan=False) + "\n"]),
        f"{stem}-trace.json": chrome_trace(profile, trace),
        f"{stem}-speedscope.json": iter([json.dumps(speedscope(profile, trace), allow_nan=False) + "\n"]),
        f"{stem}-profile.csv": iter([table(profile)]),
    }
    kept = folder / f"{stem}{SUFFIX}"
    for name in (*contents, kept.name):
        refuse_taken(folder / name, force=force)
    save_profile(kept, profile, trace, force=force)
    return [kept, *(write_text(folder / name, text, overwrite=force) for name, text in contents.items())]


def chrome_trace(profile: ProgramProfile, attributed: AttributedTrace) -> Iterator[str]:
    """The trace with power as a counter track and joules on each slice, in pieces of text; Perfetto opens it."""
    head = {"displayTimeUnit": "ms", "gpu": profile.gpu, "source": profile.source, "made_by": "Wattridge"}
    yield json.dumps(head)[:-1] + ', "traceEvents": [\n'
    names = ((0, profile.gpu), (1, "ranges of the host"), (2, f"power of {profile.gpu}"))
    first = [{"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}} for pid, name in names]
    yield ",\n".join(json.dumps(event) for event in first)
    every = _events(attributed)
    while events := list(islice(every, _AT_ONCE)):
        yield "".join(f",\n{json.dumps(event)}" for event in events)
    yield "\n]}\n"


def speedscope(profile: ProgramProfile, attributed: AttributedTrace) -> dict[str, Any]:
    """Ranges and families as stacks whose width is joules, in speedscope's file format."""
    frames: dict[str, int] = {}
    samples, weights = [], []
    for stack, joules in stacks_of(profile, attributed):
        samples.append([frames.setdefault(name, len(frames)) for name in stack])
        weights.append(round(joules, 6))
    return {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "name": f"{profile.title}: joules",
        "exporter": "Wattridge",
        "activeProfileIndex": 0,
        "shared": {"frames": [{"name": name} for name in frames]},
        "profiles": [
            {
                "type": "sampled",
                "name": f"joules on {profile.gpu}",
                "unit": "none",
                "startValue": 0,
                "endValue": math.fsum(weights),
                "samples": samples,
                "weights": weights,
            }
        ],
    }


def table(profile: ProgramProfile) -> str:
    """Families, groups, ranges, gaps, the remainder and the total as one CSV table; unknown cells are empty."""
    rows: list[tuple[str, str, Part]] = [(item.kind, item.label, item) for item in profile.families]
    rows += [("group", item.label, item) for item in profile.groups]
    rows += [("range", item.label, item) for item in profile.ranges]
    rows += [("gaps", "", profile.gaps), ("remainder", "", profile.remainder), ("total", "", profile)]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for kind, label, part in rows:
        ends = part.energy_j_interval or (math.nan, math.nan)
        figures = part.time_s, part.energy_j, *ends, part.power_w, part.share, part.each_j
        writer.writerow((kind, label, part.count, *("" if math.isnan(value) else f"{value:.6g}" for value in figures)))
    return text.getvalue()


# --- inside -----------------------------------------------------------------------------------------------------------


def _events(attributed: AttributedTrace) -> Iterator[dict[str, Any]]:
    trace, origin_ns = attributed.trace, int(attributed.trace.start_ns[0])
    names = [family.name for family in attributed.families]
    rows = zip(
        attributed.family.tolist(), trace.stream.tolist(), ((trace.start_ns - origin_ns) / 1e3).tolist(),
        (trace.duration_ns / 1e3).tolist(), attributed.energy_j.tolist(), attributed.power_w.tolist(), strict=True,
    )  # fmt: skip
    for family, stream, start_us, duration_us, energy_j, power_w in rows:
        event: dict[str, Any] = {"ph": "X", "name": names[family], "pid": 0, "tid": stream}
        event |= {"cat": attributed.families[family].kind, "ts": start_us, "dur": duration_us}
        if math.isfinite(energy_j + power_w):
            event["args"] = {"energy_j": float(f"{energy_j:.4g}"), "power_w": float(f"{power_w:.4g}")}
        yield event
    ranges = zip(
        trace.range_path.tolist(), ((trace.range_start_ns - origin_ns) / 1e3).tolist(),
        (trace.range_duration_ns / 1e3).tolist(), strict=True,
    )  # fmt: skip
    for path, start_us, duration_us in ranges:
        name = trace.paths[path][-1]
        yield {"ph": "X", "name": name, "pid": 1, "tid": 0, "cat": "range", "ts": start_us, "dur": duration_us}
    for time_s, power_w in zip(attributed.sample_s.tolist(), attributed.sample_w.tolist(), strict=True):
        yield {"ph": "C", "name": "power", "pid": 2, "ts": round(1e6 * time_s, 3), "args": {"W": power_w}}
