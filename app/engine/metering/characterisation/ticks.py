"""When a polled source took on its values: it changes at ticks of its own, of which polling sees only the brackets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ....errors import WattridgeError
from .figures import Floats

LEAST_CHANGES = 8


class Change(NamedTuple):
    """A value that was not there at the poll before."""

    before_ns: int  # the last poll with the old value
    seen_ns: int
    value: float


@dataclass(frozen=True, slots=True)
class Ticks:
    """The changes of one source, ascending; arrays of shape (n,)."""

    time_s: Floats  # since the origin given
    value: Floats
    refresh_s: float
    margin_s: float  # 95 % half-width of where the ticks lie, all of them together

    def since(self, time_s: float) -> Ticks:
        """Those from that time on."""
        keep = self.time_s >= time_s
        return Ticks(self.time_s[keep], self.value[keep], self.refresh_s, self.margin_s)


def ticks_of(changes: Sequence[Change], origin_ns: int, where: str = "") -> Ticks:
    """The source's own ticks, from the changes that polling saw.

    A straight line through the brackets' middles gives the period far better than one bracket; a tick that does not lie
    on it (the driver was late) is where its bracket says. Raises WattridgeError where the value hardly ever changes.
    """
    if len(changes) < LEAST_CHANGES:
        raise WattridgeError("the reading does not change under load", where, "look at it with: wattridge monitor")
    table = np.asarray([(c.before_ns - origin_ns, c.seen_ns - origin_ns, c.value) for c in changes], dtype=np.float64)
    low, high = table[:, 0] / 1e9, table[:, 1] / 1e9
    middle = (low + high) / 2
    intervals = np.diff(middle)
    shortest = float(np.quantile(intervals, 0.2))
    refresh_s = float(np.median(intervals[intervals < 1.5 * shortest]))
    number = np.concatenate([[0.0], np.cumsum(np.maximum(1.0, np.round(intervals / refresh_s)))])
    weight = 1.0 / np.maximum(high - low, 1e-4)
    refresh_s, first_s = np.polyfit(number, middle, 1, w=weight)
    on_line = first_s + refresh_s * number
    margin_s = 1.96 * float(np.std(middle - on_line)) / math.sqrt(len(changes))
    return Ticks(np.clip(on_line, low, high), table[:, 2], float(refresh_s), margin_s)


def increments(counter: Ticks) -> Ticks:
    """A counter's rises as mean power, W: each value is the mean over the interval that ends with its tick."""
    return Ticks(
        counter.time_s[1:], np.diff(counter.value) / np.diff(counter.time_s), counter.refresh_s, counter.margin_s
    )
