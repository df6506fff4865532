"""A session as a Kernel Tuner cache: the field's other tools read it, and this program reads it back whole."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from app import __version__
from app.engine.formats.files import write_text
from app.engine.formats.kernel_tuner import DEVICE_SETTINGS
from app.engine.measurement import Measurement, State
from app.engine.results import ResultTable

_KERNEL_TUNER_NAMES = {ours: theirs for theirs, ours in DEVICE_SETTINGS.items()}
_MARKS = {State.COMPILE: "CompilationFailedConfig", State.CONSTRAINTS: "InvalidConfig"}


def write_cache(
    table: ResultTable,
    path: Path,
    *,
    device: str,
    kernel: str,
    objective: str,
    source: str = "",
    overwrite: bool = False,
) -> Path:
    """Write every measurement of the table, failures too; returns the path.

    Device settings get Kernel Tuner's names. Values keep theirs; `time` in ms is added where only `time_s` is there.
    What Kernel Tuner has no place for stands under 'wattridge', which it ignores. Raises as `write_text` does.
    """
    names = [_KERNEL_TUNER_NAMES.get(name, name) for name in table.space.names]
    header = {
        "device_name": device,
        "kernel_name": kernel,
        "problem_size": "",
        "tune_params_keys": names,
        "tune_params": {n: list(p.values) for n, p in zip(names, table.space.parameters, strict=True)},
        "objective": objective,
        "wattridge": {
            "version": __version__,
            "source": source,
            "values": list(table.value_names),
            "parameters": list(table.space.names),
        },
    }
    entries = []
    for index in range(len(table)):
        measurement = table.measurement(index)
        values = list(measurement.configuration.values())
        key = json.dumps(",".join(str(value) for value in values))
        entry = dict(zip(names, values, strict=True)) | _entry(measurement, objective, names)
        entries.append(f"{key}: {json.dumps(entry)}")
    head = json.dumps(header, indent=0)[:-2]  # without the newline and the closing brace
    text = head + ',\n"cache": {\n' + ",\n".join(entries) + "}\n}\n"
    return write_text(path, text, overwrite=overwrite)


def _entry(measurement: Measurement, objective: str, names: list[str]) -> dict[str, Any]:
    entry: dict[str, Any] = {n: v for n, v in measurement.values.items() if math.isfinite(v) and n not in names}
    if measurement.state is not State.OK:
        entry[objective] = _MARKS.get(measurement.state, "RuntimeFailedConfig")
    elif "time" not in entry and "time_s" in entry:
        entry["time"] = entry["time_s"] * 1e3
    if math.isfinite(measurement.cost_s):
        entry.setdefault("benchmark_time", measurement.cost_s * 1e3)
    if math.isfinite(measurement.timestamp_s):
        entry["timestamp"] = datetime.fromtimestamp(measurement.timestamp_s, UTC).isoformat(sep=" ")
    entry["wattridge"] = {name: value for name, value in _own(measurement).items() if value is not None}
    return entry


def _own(measurement: Measurement) -> Mapping[str, Any]:
    def known(value: float) -> float | None:
        return value if math.isfinite(value) else None

    return {
        "state": measurement.state.value,
        "error": measurement.error or None,
        "message": measurement.message or None,
        "intervals": {n: list(pair) for n, pair in measurement.intervals.items()} or None,
        "window_ns": list(measurement.window_ns) if measurement.window_ns else None,
        "observed_clock_mhz": known(measurement.observed_clock_mhz),
        "event_reasons": measurement.event_reasons or None,
        "power_source": measurement.power_source or None,
        "source": measurement.source or None,
        "timestamp_s": known(measurement.timestamp_s),
        "cost_s": known(measurement.cost_s),
    }
