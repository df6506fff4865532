"""A session as T4 results, which the field's benchmarks and other tuners read, and this program reads back whole."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ...files import write_text
from ..measurement import Measurement, State
from ..space.result_table import ResultTable
from .entries import OWN
from .kernel_tuner_writer import their_names, time_of
from .names import unit_of
from .own import About, own_entry, own_header

SCHEMA_VERSION = "1.0.0"


def write_t4(table: ResultTable, path: Path, about: About, *, overwrite: bool = False) -> Path:
    """Write every measurement of the table, failures too; returns the path. Raises as `write_text` does.

    Values keep their names; `time` in ms is added where only `time_s` is there, as the field's tools want it.
    """
    return write_text(path, _pieces(table, about, their_names(table.space.names, str(path))), overwrite=overwrite)


def _pieces(table: ResultTable, about: About, names: list[str]) -> Iterator[str]:
    listed = {p.name: list(p.values) for p in table.space.parameters}
    more = {"device": about.device, "kernel": about.kernel, "problem_size": about.problem_size}
    header = {
        "schema_version": SCHEMA_VERSION,
        # what a configuration cost is known as a whole, so it all stands under times.benchmark
        "metadata": {"timeunit": "milliseconds", "device": about.device, "kernel": about.kernel},
        OWN: own_header(table, about, parameter_values=listed, **more),
    }
    yield json.dumps(header, indent=0)[:-2] + ',\n"results": ['
    for index in range(len(table)):
        result = _result(table.measurement(index), about, names, table.value_names)
        yield f"{',' if index else ''}\n{json.dumps(result)}"
    yield "]\n}\n"


def _result(m: Measurement, about: About, names: Sequence[str], value_names: Sequence[str]) -> dict[str, Any]:
    values = {name: value for name, value in m.values.items() if math.isfinite(value)}
    measured = [{"name": n, "value": v, "unit": unit_of(n, about.units)} for n, v in values.items()]
    ok = m.state is State.OK
    time_ms = values.get("time", values["time_s"] * 1e3 if "time_s" in values else math.nan)
    if ok and "time" not in value_names and math.isfinite(time_ms):
        measured.append({"name": "time", "value": time_ms, "unit": "ms"})
    result: dict[str, Any] = {
        "configuration": dict(zip(names, m.configuration.values(), strict=True)),
        "times": {
            "compilation": 0.0,
            "benchmark": m.cost_s * 1e3 if math.isfinite(m.cost_s) else 0.0,
            "framework": 0.0,
            "search_algorithm": 0.0,
            "validation": 0.0,
            "runtimes": [time_ms] if ok and math.isfinite(time_ms) else [],
        },
        "invalidity": "correct" if ok else m.state.value,
        "correctness": 0 if m.state is State.CORRECTNESS else 1,
        "measurements": measured,
        "objectives": [goal.name for goal in about.objective.front] or [about.objective.goal.name],
        OWN: own_entry(m),
    }
    if math.isfinite(m.timestamp_s):
        result = {"timestamp": time_of(m.timestamp_s), **result}
    return result
