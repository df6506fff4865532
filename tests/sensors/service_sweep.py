"""The published sweep of a service on an RTX 5090, and a fit of a twin's service model to any of its points."""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.optimize import least_squares

from app.sensors.simulated import laws, serving_laws
from app.sensors.simulated.serving_laws import Serving
from app.sensors.simulated.twin import Twin

Floats = npt.NDArray[np.float64]
# table of the twin, key, start, least, most: what is fitted
_FITTED = (
    ("service", "core_s", 0.013, 1e-4, 1.0),
    ("service", "core_exponent", 1.0, 0.5, 1.5),
    ("service", "memory_s", 0.006, 1e-4, 1.0),
    ("service", "memory_exponent", 1.0, 0.8, 1.3),
    ("service", "blend", 4.0, 1.0, 15.0),
    ("service", "core_j", 1.0, 0.0, 20.0),
    ("service", "memory_j", 0.5, 0.0, 20.0),
    ("power", "static_w", 40.0, 1.0, 100.0),
    ("power", "clock_tree_w_per_mhz", 0.01, 0.0, 0.1),
    ("power", "memory_clock_w_per_mhz", 0.002, 0.0, 0.01),
    ("voltage", "ridge_mhz", 1000.0, 200.0, 2800.0),
    ("voltage", "curve_per_mhz2", 1e-7, 0.0, 1e-6),
)


@dataclasses.dataclass(frozen=True)
class Point:
    memory_mhz: int
    clock_mhz: int
    tokens_per_s: float
    power_w: float


def published(shared_data: Path) -> list[Point]:
    with (shared_data / "service-sweeps/rtx5090_vllm_gemma31b_clocks.csv").open() as file:
        rows = list(csv.DictReader(file))
    return [
        Point(
            int(row["memory_clock_mhz"]),
            int(row["graphics_clock_mhz"]),
            float(row["narrative_tokens_per_s"]),
            float(row["power_w"]),
        )
        for row in rows
    ]


def served(twin: Twin, memory_mhz: int, clock_mhz: int, sequences: int, limit_w: float) -> tuple[float, float]:
    """(tokens/s, W) of so many sequences at once, thermally steady."""
    point, power_w, _ = laws.settled_under_limits(
        twin, Serving(sequences), clock_mhz, memory_mhz, limit_w, serving_laws.under_service
    )
    return sequences / point.launch_s, power_w


def relative_errors(twin: Twin, points: Sequence[Point]) -> Floats:
    """Of tokens/s and power, shape (n, 2)."""
    assert twin.service is not None
    sequences = round(twin.service.reference_sequences)
    found = [served(twin, each.memory_mhz, each.clock_mhz, sequences, 1e6) for each in points]
    return np.array(found) / np.array([(each.tokens_per_s, each.power_w) for each in points]) - 1


def fitted(twin: Twin, points: Sequence[Point]) -> Twin:
    """The twin with the figures that fit these points best, whatever figures it had."""

    def with_figures(figures: Floats) -> Twin:
        tables: dict[str, dict[str, float]] = {}
        for (table, key, *_), figure in zip(_FITTED, figures, strict=True):
            tables.setdefault(table, {})[key] = float(figure)
        return dataclasses.replace(
            twin, **{table: dataclasses.replace(getattr(twin, table), **changed) for table, changed in tables.items()}
        )

    def residuals(figures: Floats) -> Floats:
        return np.log1p(relative_errors(with_figures(figures), points)).ravel()

    start, low, high = (np.array([each[i] for each in _FITTED]) for i in (2, 3, 4))
    return with_figures(least_squares(residuals, start, bounds=(low, high), x_scale=start).x)
