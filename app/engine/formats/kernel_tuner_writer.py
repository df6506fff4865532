"""A session as a Kernel Tuner cache: the field's other tools read it, and this program reads it back whole."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ...errors import InputError
from ...files import write_text
from ..measurement import Measurement, State
from ..space.result_table import ResultTable
from .entries import OWN
from .names import THEIR_SETTINGS
from .own import About, own_entry, own_header

_MARKS = {State.COMPILE: "CompilationFailedConfig", State.CONSTRAINTS: "InvalidConfig"}


def write_cache(table: ResultTable, path: Path, about: About, *, overwrite: bool = False) -> Path:
    """Write every measurement of the table, failures too; returns the path.

    Device settings get Kernel Tuner's names. Values keep theirs; `time` in ms is added where only `time_s` is there.
    What Kernel Tuner has no place for stands under a key of our own, which it ignores. Raises as `write_text` does.
    """
    return write_text(path, _pieces(table, about, their_names(table.space.names, str(path))), overwrite=overwrite)


def their_names(names: Sequence[str], where: str) -> list[str]:
    """The parameters as Kernel Tuner calls them. Raises InputError for a name that the file needs itself."""
    if OWN in names:
        raise InputError(f"a parameter is named '{OWN}'", where, "rename it")
    return [THEIR_SETTINGS[n] if n in THEIR_SETTINGS and THEIR_SETTINGS[n] not in names else n for n in names]


def time_of(seconds: float) -> str:
    """A time stamp as the field's files have it."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(sep=" ")


def _pieces(table: ResultTable, about: About, names: list[str]) -> Iterator[str]:
    goals = [goal.name for goal in about.objective.front] or [about.objective.goal.name]
    header = {
        "device_name": about.device,
        "kernel_name": about.kernel,
        **_problem_size(about.problem_size),
        "tune_params_keys": names,
        "tune_params": {n: list(p.values) for n, p in zip(names, table.space.parameters, strict=True)},
        "objective": goals[0] if len(goals) == 1 else goals,
        OWN: own_header(table, about),
    }
    yield json.dumps(header, indent=0)[:-2] + ',\n"cache": {'  # without the newline and the closing brace
    for index in range(len(table)):
        measurement = table.measurement(index)
        values = list(measurement.configuration.values())
        key = json.dumps(",".join(str(value) for value in values))
        entry = dict(zip(names, values, strict=True)) | _entry(measurement, about, names, table.value_names)
        yield f"{',' if index else ''}\n{key}: {json.dumps(entry)}"
    yield "}\n}\n"


def _problem_size(told: str) -> dict[str, Any]:
    """Kernel Tuner compares it with the one it is given, unless it is not told."""
    sizes = told.split(", ")
    if all(re.fullmatch(r"0|[1-9][0-9]{0,17}", size) for size in sizes):
        return {"problem_size": [int(size) for size in sizes] if len(sizes) > 1 else int(sizes[0])}
    return {"problem_size": told} if told else {}


def _entry(m: Measurement, about: About, names: Sequence[str], value_names: Sequence[str]) -> dict[str, Any]:
    """What was measured; where a parameter has the name of a value, the parameter stays."""
    entry: dict[str, Any] = {name: value for name, value in m.values.items() if math.isfinite(value)}
    if m.state is not State.OK:
        mark = _MARKS.get(m.state, "RuntimeFailedConfig")
        for name in ("__error__", about.objective.goal.name):  # as it is now, and as it was
            entry.setdefault(name, mark)
    elif "time_s" in entry and "time" not in value_names:
        entry["time"] = entry["time_s"] * 1e3
    if math.isfinite(m.cost_s):
        entry.setdefault("benchmark_time", m.cost_s * 1e3)
    if math.isfinite(m.timestamp_s):
        entry.setdefault("timestamp", time_of(m.timestamp_s))
    return {name: value for name, value in entry.items() if name not in names} | {OWN: own_entry(m)}
