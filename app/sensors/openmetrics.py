"""What boards tell, as OpenMetrics text (version 1.0.0) that Prometheus and Grafana read.

Base units as that format asks for: watts, joules, hertz, celsius, bytes, ratios. What is unknown is left out, never 0.
See the OpenMetrics specification, sections 'Text format' and 'Metric types'.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from app import __version__
from app.sensors.event_reasons import NAMES
from app.sensors.gpu import GpuInfo

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"

# ending of a channel's name -> (unit here, factor)
_UNITS: tuple[tuple[str, str, float], ...] = (
    ("_mb_per_s", "bytes_per_second", 1e6),
    ("_w", "watts", 1.0),
    ("_j", "joules", 1.0),
    ("_mhz", "hertz", 1e6),
    ("_mv", "volts", 1e-3),
    ("_c", "celsius", 1.0),
    ("_percent", "ratio", 1e-2),
    ("_mib", "bytes", 2.0**20),
)
_REASONS, _COUNTER = "event_reasons", "energy_j"


@dataclass(frozen=True, slots=True)
class BoardReading:
    """One board now. Values by channel name, NaN where unknown."""

    info: GpuInfo
    values: Mapping[str, float]
    labels_of: Mapping[str, str]  # channel -> what people call it
    integrated_j: float  # of the finest power since watching began
    readings: int  # since watching began
    answers: bool
    clock_range_mhz: tuple[float, float] | None = None


@dataclass(slots=True)
class _Family:
    kind: str
    unit: str
    help: str
    samples: list[tuple[str, dict[str, str], float]] = field(default_factory=list)  # suffix, labels, value


def exposition(boards: Sequence[BoardReading]) -> str:
    """The whole document, from the first # TYPE to # EOF; each family once, the boards within it."""
    families: dict[str, _Family] = {}

    def put(name: str, kind: str, help_text: str, board: BoardReading, value: float, **more: str) -> None:
        """One sample of a gauge or counter whose name ends in its unit, where the unit is one."""
        if not math.isfinite(value):
            return
        unit = next((unit for _, unit, _ in _UNITS if name.endswith(f"_{unit}")), "")
        family = families.setdefault(name, _Family(kind, unit, help_text))
        family.samples.append(("_total" if kind == "counter" else "", {**_labels(board.info), **more}, value))

    about = families.setdefault("wattridge_gpu", _Family("info", "", "A board and where its figures come from"))
    for board in boards:
        info = board.info
        labels = {**_labels(info), "uuid": info.uuid, "driver": info.driver, "version": __version__}
        about.samples.append(("_info", labels, 1.0))
        put("wattridge_up", "gauge", "1 while the board answers", board, float(board.answers))
        text = "Readings and power samples taken since watching began"
        put("wattridge_readings", "counter", text, board, float(board.readings))
    for board in boards:
        for channel, value in board.values.items():
            if channel in (_REASONS, _COUNTER):
                continue
            name, factor = _name(channel)
            put(name, "gauge", board.labels_of.get(channel, channel), board, value * factor)
        text = "Energy drawn as the board counts it"
        put("wattridge_energy_joules", "counter", text, board, board.values.get(_COUNTER, math.nan))
        text = "Integral of the finest power since watching began"
        put("wattridge_integrated_energy_joules", "counter", text, board, board.integrated_j)
        limit = board.info.power_limit
        for bound, told in (("minimum", limit.minimum_w), ("maximum", limit.maximum_w), ("default", limit.default_w)):
            text = f"Power limit, {bound}"
            put(f"wattridge_power_limit_{bound}_watts", "gauge", text, board, math.nan if told is None else told)
        for bound, clock in zip(("minimum", "maximum"), board.clock_range_mhz or (), strict=False):
            text = f"Supported graphics clock, {bound}"
            put(f"wattridge_graphics_clock_{bound}_hertz", "gauge", text, board, clock * 1e6)
    _put_reasons(families, boards)
    return "".join(f"{line}\n" for line in _lines(families))


def _put_reasons(families: dict[str, _Family], boards: Sequence[BoardReading]) -> None:
    """Which clock event reasons are set: a state set, one sample per reason."""
    name = "wattridge_clock_event_reason"
    for board in boards:
        told = board.values.get(_REASONS, math.nan)
        if not math.isfinite(told):
            continue
        family = families.setdefault(name, _Family("stateset", "", "Why the clock is what it is"))
        for reason, words in NAMES.items():
            labels = {**_labels(board.info), name: words}
            family.samples.append(("", labels, float(bool(int(told) & reason))))


def _name(channel: str) -> tuple[str, float]:
    """The family of a channel and the factor into its base unit."""
    for ending, unit, factor in _UNITS:
        if channel.endswith(ending):
            return f"wattridge_{channel.removesuffix(ending)}_{unit}", factor
    return f"wattridge_{channel}", 1.0


def _labels(info: GpuInfo) -> dict[str, str]:
    return {"gpu": str(info.index), "name": info.name, "source": info.source}


def _lines(families: Mapping[str, _Family]) -> Iterable[str]:
    for name, family in families.items():
        if not family.samples:
            continue
        yield f"# TYPE {name} {family.kind}"
        if family.unit:
            yield f"# UNIT {name} {family.unit}"
        yield f"# HELP {name} {_escaped(family.help)}"
        for suffix, labels, value in family.samples:
            told = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
            yield f"{name}{suffix}{{{told}}} {_number(value)}"
    yield "# EOF"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(value)
