"""Which channels are drawn in which lane of the monitor, and how far each lane's axis reaches."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ...engine.models.voltage_estimate import UNIT as VOLTAGE_RATIO
from ...sensors.channel import Channel
from ..plots.ticks import round_up

POWER = "power"  # stands for the finest power series that the trace has
# Of the frequency model, where the board reports no voltage: a ratio, never volts.
ESTIMATED_VOLTAGE = Channel("core_voltage_estimated", VOLTAGE_RATIO, "Core voltage, estimated")


@dataclass(frozen=True, slots=True)
class Line:
    """One trace of a lane. A dashed one is a limit, a request or a model, never a measured quantity."""

    channel: str
    label: str
    dashed: bool = False
    colour: str = ""  # of the theme, by name; empty: the channel's own


@dataclass(frozen=True, slots=True)
class Lane:
    """Traces on one axis. `weight` is its share of the height."""

    title: str
    unit: str
    lines: tuple[Line, ...]
    weight: float
    from_zero: bool = True
    least_span: float = 1.0  # the axis never shows less than this, so that noise does not look like a storm
    top: float | None = None  # a fixed upper end


VOLTAGE_LANE = Lane("Core voltage", "mV", (Line("core_voltage_mv", "core"),), 1.0, from_zero=False, least_span=100.0)
ESTIMATED_VOLTAGE_LANE = Lane(
    "Core voltage",
    VOLTAGE_RATIO,
    (Line(ESTIMATED_VOLTAGE.name, "estimated", dashed=True),),
    1.0,
    from_zero=False,
    least_span=0.1,
)
LANES: tuple[Lane, ...] = (
    Lane(
        "Power",
        "W",
        (Line(POWER, "board"), Line("memory_power_w", "memory"), Line("power_limit_w", "limit", dashed=True)),
        2.2,
        least_span=10.0,
    ),
    Lane(
        "Graphics clock",
        "MHz",
        (Line("graphics_clock_mhz", "observed"), Line("requested_graphics_clock_mhz", "requested", dashed=True)),
        1.6,
        least_span=100.0,
    ),
    Lane(
        "Memory clock",
        "MHz",
        (Line("memory_clock_mhz", "observed"), Line("requested_memory_clock_mhz", "requested", dashed=True)),
        0.8,
        least_span=100.0,
    ),
    VOLTAGE_LANE,
    Lane(
        "Temperature",
        "°C",
        (Line("temperature_c", "GPU"), Line("memory_temperature_c", "memory")),
        1.0,
        from_zero=False,
        least_span=10.0,
    ),
    Lane(
        "Utilisation",
        "%",
        (Line("utilisation_percent", "GPU"), Line("memory_utilisation_percent", "memory controller")),
        0.9,
        top=100.0,
    ),
)
_BOARDS = "Power of every board"
_BOARD_COLOURS = ("blue", "green", "purple", "sky", "vermillion", "grey")
_METERS = "Meters beside the board"
SERVICE_LANES: tuple[Lane, ...] = (
    Lane("Service: requests", "1/s", (Line("requests_per_s", "answered", colour="blue"),), 0.8),
    Lane("Service: output tokens", "1/s", (Line("output_tokens_per_s", "tokens", colour="green"),), 0.8),
    Lane(
        "Service: latency, 95 %",
        "s",
        (Line("ttft_p95_s", "first token", colour="purple"), Line("e2e_p95_s", "whole answer", colour="sky")),
        0.8,
        least_span=0.01,
    ),
)
# what is shown until the user chooses
AT_FIRST = frozenset({_BOARDS, _METERS, *(lane.title for lane in (*LANES, *SERVICE_LANES))})
MORE_LANES: tuple[Lane, ...] = (
    Lane("Memory used", "MiB", (Line("memory_used_mib", "used"),), 0.8, least_span=1000.0),
    Lane(
        "PCIe",
        "MB/s",
        (Line("pcie_rx_mb_per_s", "received"), Line("pcie_tx_mb_per_s", "sent")),
        0.8,
        least_span=10.0,
    ),
    Lane("Fan", "%", (Line("fan_percent", "fan"),), 0.6, top=100.0),
    Lane("Video clock", "MHz", (Line("video_clock_mhz", "observed"),), 0.6, least_span=100.0),
)


@dataclass(frozen=True, slots=True)
class ShownLane:
    """A lane as this GPU fills it. `note` says why where it has nothing to draw; `source` where an estimate is from."""

    lane: Lane
    lines: tuple[Line, ...]
    note: str = ""
    source: str = ""


def shown_lanes(
    channels: Iterable[Channel], *, estimate: str = "", lanes: Iterable[Lane] = LANES
) -> tuple[ShownLane, ...]:
    """The lanes as a GPU's channels fill them.

    A board without a voltage sensor shows the estimate instead, where `estimate` says what it is from.
    """
    known = {channel.name: channel for channel in channels}
    shown = []
    for lane in lanes:
        lines = tuple(line for line in lane.lines if line.channel == POWER or _available(known, line.channel))
        if any(not line.dashed for line in lines):
            shown.append(ShownLane(lane, lines))
        elif lane is VOLTAGE_LANE and estimate:
            source = f"from a {estimate}; V₀ is the voltage below the ridge"
            shown.append(ShownLane(ESTIMATED_VOLTAGE_LANE, ESTIMATED_VOLTAGE_LANE.lines, source=source))
        else:
            hint = " · after a fit of its clocks an estimate is drawn here" if lane is VOLTAGE_LANE else ""
            shown.append(ShownLane(lane, (), f"not available: {_reason(known, lane)}{hint}"))
    return tuple(shown)


def boards_lane(own: str, others: Mapping[str, str]) -> ShownLane:
    """The power of the window's own board, named `own`, and of others: their names by the names of their series.

    Those beyond the colours that can be distinguished are left out, and counted.
    """
    coloured = zip(others.items(), _BOARD_COLOURS, strict=False)
    lines = (Line(POWER, own), *(Line(series, name, colour=colour) for (series, name), colour in coloured))
    more = len(others) + 1 - len(lines)
    source = f"and {more} more" if more else ""
    return ShownLane(Lane(_BOARDS, "W", lines, 1.6, least_span=10.0), lines, source=source)


def meters_lane(meters: Mapping[str, str]) -> ShownLane:
    """The powers of the meters beside the board: their labels by the names of their series."""
    coloured = zip(meters.items(), _BOARD_COLOURS, strict=False)
    lines = tuple(Line(series, label, colour=colour) for (series, label), colour in coloured)
    more = len(meters) - len(lines)
    return ShownLane(Lane(_METERS, "W", lines, 1.6, least_span=10.0), lines, source=f"and {more} more" if more else "")


def axis_range(lane: Lane, low: float, high: float, before: tuple[float, float] | None = None) -> tuple[float, float]:
    """The axis for values between low and high (NaN: none known). It grows at once and shrinks only when half empty."""
    if math.isnan(low) or math.isnan(high):
        return before or (0.0, lane.top or lane.least_span)
    if lane.top is not None:
        return 0.0, max(lane.top, high)
    if lane.from_zero:
        top = round_up(max(high * 1.03, lane.least_span))
        wanted = (min(0.0, low), top)
    else:
        room = max(lane.least_span, (high - low) * 1.15)
        step = round_up(room) / 5
        middle = (low + high) / 2
        wanted = (math.floor((middle - room / 2) / step) * step, math.ceil((middle + room / 2) / step) * step)
    if before is None or low < before[0] or high > before[1]:
        return wanted
    return wanted if (wanted[1] - wanted[0]) < 0.6 * (before[1] - before[0]) else before


def _available(known: Mapping[str, Channel], name: str) -> bool:
    return name in known and known[name].available


def _reason(known: Mapping[str, Channel], lane: Lane) -> str:
    channel = known.get(lane.lines[0].channel)
    return (channel.unavailable if channel is not None else None) or "this GPU does not report it"
