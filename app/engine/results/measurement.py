"""`Measurement`: the outcome of one configuration."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum

from ...base.records import Finite
from ...sensors.throttling import THROTTLED

Value = int | Finite | str | bool
Configuration = Mapping[str, Value]  # one value per tunable parameter and device setting
FEWEST = 5  # members of a group below which its mean, its spread, or a coefficient is unknown

# What a measurement on a board may report, where the board does; metrics come on top.
MEASURED = (
    *("time_s", "energy_j", "power_w", "observed_clock_mhz", "temperature_c", "memory_power_w"),
    *("core_voltage_mv", "observed_memory_clock_mhz"),
    *("memory_temperature_c", "recent_power_1s_w", "recent_power_30s_w"),
    *THROTTLED,
)


def source_figures(source: str) -> tuple[str, str]:
    """The names of the power and energy that one of several sources reports: `power_rapl_w`, `energy_rapl_j`."""
    return f"power_{source}_w", f"energy_{source}_j"


def of_sources(names: Collection[str]) -> set[str]:
    """Those of `names` that several sources of power report of the same: none where there were no meters."""
    result = set()
    if set(source_figures("board")) <= set(names):
        for name in names:
            source = name.removeprefix("power_").removesuffix("_w")
            pair = source_figures(source)
            if name == pair[0] and pair[1] in names and name not in STATED_FROM:
                result |= set(pair)
    return result


THERMAL_CORRECTION = "thermal_correction"  # power and energy stated for a thermal condition, over those that were drawn

# What a figure stated for one thermal condition keeps of its measurement: of the session, not of the configuration.
STATED_FROM = frozenset(
    {
        *("energy_raw_j", "power_raw_w", THERMAL_CORRECTION, "thermal_uncertainty"),
        *("recent_power_1s_w", "recent_power_30s_w"),
    }
)

# What a configuration that was measured several times has besides the mean of a figure `x`: min_x, max_x and std_x,
# the sample standard deviation.
SPREADS = ("min", "max", "std")


def scattered(names: Collection[str]) -> list[str]:
    """The figures among `names` of which the scatter of repeats is there too."""
    return [name for name in names if all(f"{kind}_{name}" in names for kind in SPREADS)]


def spreads(names: Collection[str]) -> set[str]:
    """Those of `names` that say how the repeats of a figure scatter, as `std_time_s` beside `time_s`."""
    return {f"{kind}_{name}" for name in scattered(names) for kind in SPREADS}


class State(StrEnum):
    """How a configuration ended. Everything but OK is a result too, and never repeats."""

    OK = "ok"
    COMPILE = "compile"
    RUNTIME = "runtime"
    CORRECTNESS = "correctness"
    TIMEOUT = "timeout"
    CONSTRAINTS = "constraints"


class Depth(StrEnum):
    """How much of a configuration is looked at. Energy implies time."""

    TIME = "time"  # a few launches, milliseconds, verified: the time per launch, and what derives from that alone
    ENERGY = "energy"  # all that the runner can measure


@dataclass(frozen=True, slots=True)
class Measurement:
    """One configuration, measured. `values` holds measured quantities (units in their names) and the metrics."""

    row: int  # row of the search space
    configuration: Configuration
    state: State
    values: Mapping[str, float] = field(default_factory=dict)  # time_s, energy_j, power_w, ..., then the metrics
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # 95 % confidence, where known
    error: str = ""  # why it failed: the compiler's or driver's message
    message: str = ""  # what was said though it worked, or beside the failure: a compiler's warnings
    window_ns: tuple[int, int] | None = None  # on the GPU's clock
    observed_clock_mhz: float = math.nan
    event_reasons: int = 0
    power_source: str = ""
    source: str = ""  # nvml, simulated or recorded
    timestamp_s: float = math.nan  # wall clock, seconds since the epoch
    cost_s: float = 0.0  # what this measurement cost, on the GPU's clock
    depth: Depth = Depth.ENERGY
    board: str = ""  # UUID of the board that measured it, where several measure a session; empty if one does
    as_measured: Mapping[str, float] = field(default_factory=dict)  # figures that `values` states otherwise
    evidence: bytes = field(default=b"", repr=False)  # `Evidence`, packed; on its way to the store, and not in tables

    @property
    def final(self) -> bool:
        """Whether nothing more can be measured of it: it failed, or it was measured in full."""
        return self.depth is Depth.ENERGY or self.state is not State.OK

    @classmethod
    def failed(
        cls,
        row: int,
        configuration: Configuration,
        state: State,
        error: str,
        *,
        source: str,
        values: Mapping[str, float] | None = None,
        message: str = "",
        cost_s: float = 0.0,
        depth: Depth = Depth.ENERGY,
    ) -> Measurement:
        """A configuration that did not come to an end as it should, now."""
        return cls(
            row=row,
            configuration=configuration,
            state=state,
            values=values or {},
            error=error,
            message=message,
            source=source,
            timestamp_s=time.time(),
            cost_s=cost_s,
            depth=depth,
        )


def stated_otherwise(measured: Mapping[str, float], stated: Mapping[str, float]) -> dict[str, float]:
    """Those of the figures as they were measured that are stated otherwise."""
    return {name: value for name, value in measured.items() if value == value != stated.get(name)}  # NaN is no figure


def same(one: Measurement, other: Measurement) -> bool:
    """Whether they are alike in every field. A figure that is not known (NaN) differs from itself by ==, since 3.13."""
    pairs = ((getattr(one, member.name), getattr(other, member.name)) for member in fields(Measurement))
    return all(first is second or first == second for first, second in pairs)


_SPEEDS = {"GFLOP/s": 1e9, "GFLOPS": 1e9, "TFLOP/s": 1e12, "TFLOPS": 1e12}  # names of metrics -> flop/s


def speed_of(values: Mapping[str, float]) -> float:
    """flop/s by a metric with a usual name for the speed; 0 if there is none."""
    return next((values[name] * factor for name, factor in _SPEEDS.items() if name in values), 0.0)
