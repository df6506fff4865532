"""A span of a trace as a file: CSV, or JSON where the name ends so."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ...base.text import text_cell
from ..channel import CHANNELS, POWER_SAMPLES, figure_text
from ..gpu import GpuInfo
from .trace import Trace


def write_trace(trace: Trace, path: Path, t0_ns: int, t1_ns: int, info: GpuInfo, *, as_json: bool) -> None:
    """Write every reading and every sample of the driver's buffer of a span. `time_s` counts from `t0_ns`.

    Where a value is unknown, a CSV file has an empty cell and a JSON file null. Names carry the units. The board is
    named by `info.label`, which says 'simulated' where it is. Raises OSError.
    """
    pieces = (_json if as_json else _csv)(trace, t0_ns, t1_ns, info)
    with path.open("w", newline="", encoding="utf-8") as file:
        file.writelines(pieces)


def _csv(trace: Trace, t0_ns: int, t1_ns: int, info: GpuInfo) -> Iterator[str]:
    """Lines in order of time; the board fills a column of its own."""
    columns = trace.columns(t0_ns, t1_ns)
    sample_ns, sample_w = trace.power_samples(t0_ns, t1_ns)
    time_ns = columns.pop("time_ns")
    board = io.StringIO()
    csv.writer(board, lineterminator="").writerow([text_cell(info.label)])
    samples = [POWER_SAMPLES.name] if len(sample_ns) else []
    yield ",".join(["time_s", *columns, *samples, "gpu"]) + "\r\n"
    order = np.argsort(np.concatenate((time_ns, sample_ns)), kind="stable")
    for place in order.tolist():
        if place < len(time_ns):
            stamp, cells = time_ns[place], [figure_text(name, column[place]) for name, column in columns.items()]
            cells += [""] * len(samples)
        else:
            offset = place - len(time_ns)
            stamp, cells = sample_ns[offset], [*[""] * len(columns), figure_text(POWER_SAMPLES.name, sample_w[offset])]
        yield ",".join([f"{(int(stamp) - t0_ns) / 1e9:.6f}", *cells, board.getvalue()]) + "\r\n"


def _json(trace: Trace, t0_ns: int, t1_ns: int, info: GpuInfo) -> list[str]:
    """One object with columns of the same length."""

    def seconds(times_ns: Any) -> list[float]:
        return [round((time_ns - t0_ns) / 1e9, 6) for time_ns in times_ns.tolist()]

    def figures(name: str, values: Any) -> list[float | None]:
        return [float(text) if (text := figure_text(name, value)) else None for value in values.tolist()]

    columns = trace.columns(t0_ns, t1_ns)
    time_ns = columns.pop("time_ns")
    sample_ns, sample_w = trace.power_samples(t0_ns, t1_ns)
    document: dict[str, Any] = {
        "gpu": info.label,
        "source": info.source,
        "units": {name: CHANNELS[name].unit for name in columns},
        "readings": {"time_s": seconds(time_ns), **{name: figures(name, column) for name, column in columns.items()}},
    }
    if len(sample_ns):
        name = POWER_SAMPLES.name
        document["units"][name] = POWER_SAMPLES.unit
        document["power_samples"] = {"time_s": seconds(sample_ns), name: figures(name, sample_w)}
    return [json.dumps(document, allow_nan=False, ensure_ascii=False), "\n"]
