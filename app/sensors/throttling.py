"""Time for which a board's clock was held back, by reason, as the board counts it: exact where samples may miss it.

The counters are read at the two ends of a window, never at every sample.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Final, Protocol, runtime_checkable

from ..base.formatting import duration
from .event_reasons import NAMES, EventReason
from .gpu import Gpu, SensorError

# Reasons by their names in figures -> the bit whose samples the counter stands in for; NONE where no bit says the same
COUNTED: Final[Mapping[str, EventReason]] = {
    "power": EventReason.POWER_CAP,
    "thermal": EventReason.SOFTWARE_THERMAL,
    "hardware_thermal": EventReason.HARDWARE_THERMAL,
    "power_brake": EventReason.POWER_BRAKE,
    "sync_boost": EventReason.SYNC_BOOST,
    "board_limit": EventReason.NONE,
    "reliability": EventReason.NONE,
    "low_utilisation": EventReason.NONE,
}
HELD_BACK: Final = tuple(COUNTED)[:-1]  # a board with little to do is not held back
THROTTLED: Final = tuple(f"throttled_{reason}_share" for reason in HELD_BACK)  # figures of a measurement
LEAST_SHARE: Final = 0.01  # of a window: a reason that acted for less did not decide its clock

Mark = tuple[int, Mapping[str, int]]  # when counters were read, on the GPU's clock, and what they said, ns
NO_MARK: Final[Mark] = (0, {})


@runtime_checkable
class CountsThrottling(Protocol):
    """A board that counts for how long each reason held its clock back."""

    def throttled_ns(self) -> Mapping[str, int]:
        """By the names of COUNTED, ns since the driver was loaded; empty if none is counted. Raises SensorError."""
        ...


def mark(gpu: Gpu) -> Mark:
    """Read the counters now; there are none where the board has none or does not answer."""
    counted: Mapping[str, int] = {}
    with suppress(SensorError):
        counted = gpu.throttled_ns() if isinstance(gpu, CountsThrottling) else {}
    return gpu.clock.now_ns(), counted


def throttled_s(gpu: Gpu) -> dict[str, float]:
    """By reason, seconds since the driver was loaded; empty if none is counted."""
    return {reason: ns / 1e9 for reason, ns in mark(gpu)[1].items()}


def throttled_words(seconds: Mapping[str, float]) -> str:
    """Those of `throttled_s` that are not 0, as they are shown; empty if none is counted."""
    acted = [f"{words_of(reason)} {duration(s)}" for reason, s in seconds.items() if s]
    return f"held back since the driver was loaded: {', '.join(acted) or 'never'}" if seconds else ""


def shares_between(before: Mark, after: Mark) -> dict[str, float]:
    """By reason the share, 0..1, of the time between two marks; empty if that is not known."""
    passed_ns = max(1, after[0] - before[0])
    rose = {name: after[1][name] - before[1][name] for name in HELD_BACK if name in before[1] and name in after[1]}
    return {name: min(1.0, ns / passed_ns) for name, ns in rose.items() if ns >= 0}  # one that fell began again


def in_place_of_samples(bits: int, shares: Mapping[str, float]) -> tuple[int, dict[str, float]]:
    """The event reasons of a window with those that only the counters show, and the shares to be believed.

    A counter that hardly rose while its reason was sampled is not: some count only below the application clocks.
    """
    believed = {name: share for name, share in shares.items() if share >= LEAST_SHARE or not bits & COUNTED[name]}
    for name, share in believed.items():
        bits |= int(COUNTED[name]) if share >= LEAST_SHARE else 0
    return bits, believed


def seconds_counted(sampled_s: Mapping[str, float], shares: Mapping[str, float], time_s: float) -> dict[str, float]:
    """Seconds by reason in words, as sampled, with what was counted in their place where it is to be believed."""
    counted_s = {words_of(name): share * time_s for name, share in shares.items() if share >= LEAST_SHARE}
    return {**sampled_s, **counted_s}


def throttled_figures(shares: Mapping[str, float]) -> dict[str, float]:
    """The figures of counted shares: power and temperature wherever they are counted, the rest where they acted."""
    shown = {reason: share for reason, share in shares.items() if share or reason in ("power", "thermal")}
    return {f"throttled_{reason}_share": share for reason, share in shown.items()}


def words_of(reason: str) -> str:
    """A reason of COUNTED as it is shown."""
    return NAMES.get(COUNTED[reason], reason.replace("_", " "))
