"""A trace as JSON: columns of the same length, null where unknown."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from .channel import CHANNELS, POWER_SAMPLES
from .trace import Trace

_COUNTER = "energy_j"  # kept in double


def write_json(trace: Trace, path: Path, t0_ns: int, t1_ns: int, *, gpu: str = "", source: str = "") -> None:
    """Write every reading and every driver's sample of the span. `time_s` counts from `t0_ns`. Raises OSError."""
    columns = trace.columns(t0_ns, t1_ns)
    sample_ns, sample_w = trace.power_samples(t0_ns, t1_ns)
    names = [name for name in columns if name != "time_ns"]
    document: dict[str, Any] = {
        "gpu": gpu,
        "source": source,
        "units": {name: CHANNELS[name].unit for name in names},
        "readings": {
            "time_s": _seconds(columns["time_ns"].tolist(), t0_ns),
            **{name: _known(columns[name].tolist(), exact=name == _COUNTER) for name in names},
        },
    }
    if len(sample_ns):
        document["units"][POWER_SAMPLES.name] = POWER_SAMPLES.unit
        document["power_samples"] = {
            "time_s": _seconds(sample_ns.tolist(), t0_ns),
            POWER_SAMPLES.name: _known(sample_w.tolist()),
        }
    path.write_text(json.dumps(document, allow_nan=False, ensure_ascii=False) + "\n", encoding="utf-8")


def _seconds(times_ns: list[int], t0_ns: int) -> list[float]:
    return [round((time_ns - t0_ns) / 1e9, 6) for time_ns in times_ns]


def _known(values: list[float], *, exact: bool = False) -> list[float | None]:
    """Seven digits are what single precision holds; the energy counter keeps its millijoules."""
    return [(round(v, 3) if exact else float(f"{v:.7g}")) if math.isfinite(v) else None for v in values]
