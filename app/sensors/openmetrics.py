"""The readings of GPUs as OpenMetrics text (version 1.0.0) for Prometheus and Grafana.

Base units, as the format requires: watts, joules, hertz, celsius, bytes, ratios. An unknown value is left out, never 0.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    InfoMetricFamily,
    Metric,
    StateSetMetricFamily,
)
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST, generate_latest

from .. import __version__
from .channel import POWER_SAMPLES
from .event_reasons import NAMES
from .gpu import Gpu, GpuInfo
from .watch import SampledBoard

CONTENT_TYPE = CONTENT_TYPE_LATEST

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
_LABELS = ("gpu", "name", "source")  # of every sample
_REASONS, _COUNTER = "event_reasons", "energy_j"


_KEPT_S = 60.0
_STALE_S = 5.0  # a board without a reading for so long does not answer


@dataclass(frozen=True, slots=True)
class BoardReading:
    """One board now. Values by channel name, NaN where unknown."""

    info: GpuInfo
    values: Mapping[str, float]
    labels_of: Mapping[str, str]  # channel -> its name in words
    integrated_j: float  # of the finest power since watching began
    readings: int  # since watching began
    answers: bool
    clock_range_mhz: tuple[float, float] | None = None


class MeteredBoard(SampledBoard):
    """A board whose energy is added up for as long as it is watched; `reading` from any thread.

    `report` is called with a line for each event of the sensors.
    """

    def __init__(self, gpu: Gpu, *, interval_s: float, report: Callable[[str], None]) -> None:
        self._labels = {c.name: c.label for c in (*gpu.channels, POWER_SAMPLES)}
        self._clocks = gpu.graphics_clocks_mhz()
        self._mutex = threading.Lock()
        self._counted_ns = gpu.clock.now_ns()
        self._energy_j = 0.0
        super().__init__(
            gpu,
            interval_s=interval_s,
            span_s=_KEPT_S,
            on_event=lambda event: report(f"{gpu.info.label}: {event}"),
        )

    def reading(self) -> BoardReading:
        """The last reading; the energy since the reading before is added up."""
        self.add_up()
        last_ns = self.trace.last_ns
        values = self.trace.at(last_ns) if last_ns else {}
        silent_s = (self.gpu.clock.now_ns() - last_ns) / 1e9 / max(1.0, self.gpu.clock.speed)
        answers = silent_s < _STALE_S and any(math.isfinite(value) for value in values.values())
        return BoardReading(
            info=self.gpu.info,
            values=values if answers else {},
            labels_of=self._labels,
            integrated_j=self._energy_j,
            readings=self.trace.appended,
            answers=answers,
            clock_range_mhz=(self._clocks[0], self._clocks[-1]) if self._clocks else None,
        )

    def add_up(self) -> None:
        """Integrate the power up to its newest value; often enough that the trace still holds it.

        The driver's samples come late, so that the newest reading is newer than what is known of the power.
        """
        with self._mutex:
            last_ns = self.trace.last_ns
            if self.trace.power_name == POWER_SAMPLES.name:
                times_ns, _ = self.trace.power_samples(self._counted_ns, last_ns)
                last_ns = int(times_ns[-1]) if len(times_ns) else self._counted_ns
            if last_ns > self._counted_ns:
                energy_j = self.trace.energy_j(self._counted_ns, last_ns)
                self._energy_j += 0.0 if math.isnan(energy_j) else energy_j
                self._counted_ns = last_ns


def exposition(boards: Sequence[BoardReading]) -> str:
    """The whole document; each family once, the boards within it."""
    registry = CollectorRegistry()
    registry.register(_Boards(boards))
    text: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]
    return text.decode()


@dataclass(frozen=True, eq=False)
class _Boards:
    """Collects the families of some boards. A family without a sample is left out."""

    boards: Sequence[BoardReading]

    def collect(self) -> Iterator[Metric]:
        about = InfoMetricFamily("wattridge_gpu", "A board and where its figures come from", labels=_LABELS)
        why = StateSetMetricFamily("wattridge_clock_event_reason", "Why the clock is what it is", labels=_LABELS)
        families: dict[str, GaugeMetricFamily | CounterMetricFamily] = {}
        for board in self.boards:
            info = board.info
            labels = (str(info.index), info.name, info.source)
            about.add_metric(labels, {"uuid": info.uuid, "driver": info.driver, "version": __version__})
            for kind, name, text, value in _samples(board):
                if math.isfinite(value):
                    unit = next((unit for _, unit, _ in _UNITS if name.endswith(f"_{unit}")), "")
                    family = families.setdefault(name, kind(name, text, labels=_LABELS, unit=unit))
                    family.add_metric(labels, value)
            reasons = board.values.get(_REASONS, math.nan)
            if math.isfinite(reasons):
                why.add_metric(labels, {words: bool(int(reasons) & bit) for bit, words in NAMES.items()})
        yield from (family for family in (about, *families.values(), why) if family.samples)


def _samples(board: BoardReading) -> Iterator[tuple[type[GaugeMetricFamily | CounterMetricFamily], str, str, float]]:
    """Kind, name, help and value of what is one number; NaN where unknown."""
    gauge, counter = GaugeMetricFamily, CounterMetricFamily
    yield gauge, "wattridge_up", "1 while the board answers", float(board.answers)
    text = "Readings and power samples taken since watching began"
    yield counter, "wattridge_readings", text, float(board.readings)
    for channel, value in board.values.items():
        if channel not in (_REASONS, _COUNTER):
            name, factor = _name(channel)
            yield gauge, name, board.labels_of.get(channel, channel), value * factor
    counted_j = board.values.get(_COUNTER, math.nan)
    yield counter, "wattridge_energy_joules", "Energy drawn as the board counts it", counted_j
    text = "Integral of the finest power since watching began"
    yield counter, "wattridge_integrated_energy_joules", text, board.integrated_j
    limit = board.info.power_limit
    for bound, limit_w in (("minimum", limit.minimum_w), ("maximum", limit.maximum_w), ("default", limit.default_w)):
        limit_w = math.nan if limit_w is None else limit_w
        yield gauge, f"wattridge_power_limit_{bound}_watts", f"Power limit, {bound}", limit_w
    for bound, clock_mhz in zip(("minimum", "maximum"), board.clock_range_mhz or (), strict=False):
        text = f"Supported graphics clock, {bound}"
        yield gauge, f"wattridge_graphics_clock_{bound}_hertz", text, clock_mhz * 1e6


def _name(channel: str) -> tuple[str, float]:
    """The family of a channel and the factor into its base unit."""
    for ending, unit, factor in _UNITS:
        if channel.endswith(ending):
            return f"wattridge_{channel.removesuffix(ending)}_{unit}", factor
    return f"wattridge_{channel}", 1.0
