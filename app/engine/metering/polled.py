"""Power from a polled source, attributed by its averaging: which values, or what share of them, belong to a window.

A value that appears at time t is the mean over [t - lag - averaging, t - lag] (`characterisation`). One whose
averaging lies wholly in the window counts as it is. A slow average still holds some of what ran before: that part is
taken off, by the levels of power between the changes of load, which all its values together tell.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from .power_source import PowerSource

Floats = npt.NDArray[np.float64]
HALF: Final = 0.5  # of its averaging must lie in the window: less would blow up its noise
SHARP: Final = 0.03  # a value may be split if its time is known within this share of its averaging
KEPT_S: Final = 15.0  # values are remembered: longer than any window takes
MOST_KEPT: Final = 4096
BACK: Final = 3.0  # averaging times before a window whose values tell what ran then
WORTH: Final = 0.3  # of one value: a level told by less is not known


class _Tick(NamedTuple):
    before_ns: int  # the last poll that told the value before
    seen_ns: int
    power_w: float


class PolledPower:
    """What one board's polled source told lately, over all that ran. Not thread-safe."""

    def __init__(self, source: PowerSource) -> None:
        assert source.averaging_s is not None, "only a characterised source can be attributed"
        self._averaging_ns = source.averaging_s * 1e9
        self._lag_ns = source.lag_s * 1e9
        self._ticks: deque[_Tick] = deque(maxlen=MOST_KEPT)
        self._edges: deque[int] = deque(maxlen=MOST_KEPT)
        self._last: tuple[int, float] | None = None
        self._since_ns: int | None = None  # what ran is known from then on
        splits = 1.5 * source.poll_s <= SHARP * source.averaging_s
        self.lead_s = source.lag_s + source.averaging_s * (HALF if splits else 1.0)  # of a window, until a value counts

    def edge(self, time_ns: int) -> None:
        """A load began or ended."""
        self._edges.append(time_ns)
        if self._since_ns is None:
            self._since_ns = time_ns

    def note(self, time_ns: int, power_w: float) -> None:
        """A poll."""
        if math.isnan(power_w):
            return
        if self._last is not None and power_w != self._last[1]:
            self._ticks.append(_Tick(self._last[0], time_ns, power_w))
            while self._ticks[0].seen_ns < time_ns - KEPT_S * 1e9:
                self._ticks.popleft()
            while self._edges and self._edges[0] < time_ns - 2 * KEPT_S * 1e9:
                self._edges.popleft()
        self._last = (time_ns, power_w)

    def powers(self, opened_ns: int, end_ns: int) -> list[float]:
        """Mean powers, W, between two times: one for each value that belongs there, oldest first."""
        wholly, partly = [], []
        for tick in self._ticks:
            if tick.seen_ns - self._lag_ns > end_ns:
                break
            if tick.before_ns - self._lag_ns - self._averaging_ns >= opened_ns:
                wholly.append(tick.power_w)
            elif self._share_after(tick, opened_ns) >= HALF and self._is_sharp(tick):
                partly.append(tick)
        return [*self._freed(partly, opened_ns, end_ns), *wholly] if partly else wholly

    # --- inside -----------------------------------------------------------------------------------------------------

    def _is_sharp(self, tick: _Tick) -> bool:
        return tick.seen_ns - tick.before_ns <= SHARP * self._averaging_ns

    def _share_after(self, tick: _Tick, opened_ns: int) -> float:
        """Of its averaging, what lies after `opened_ns`."""
        return ((tick.before_ns + tick.seen_ns) / 2 - self._lag_ns - opened_ns) / self._averaging_ns

    def _freed(self, partly: Sequence[_Tick], opened_ns: int, end_ns: int) -> list[float]:
        """Values without what they hold of the time before; none where that time's power is not known."""
        inner = {edge for edge in self._edges if edge < opened_ns or edge > end_ns}
        edges = np.asarray([-np.inf, *sorted(inner | {opened_ns, end_ns}), np.inf])
        window = int(np.searchsorted(edges, opened_ns))
        from_ns = opened_ns - BACK * self._averaging_ns
        ticks = [tick for tick in self._ticks if self._is_sharp(tick) and tick.before_ns >= from_ns]
        shares = self._shares(ticks, edges)
        levels = np.linalg.lstsq(shares, np.asarray([tick.power_w for tick in ticks]), rcond=1e-6)[0]
        errors = np.sqrt(np.maximum(np.diag(np.linalg.pinv(shares.T @ shares, rcond=1e-9, hermitian=True)), 0.0))
        unknown = (shares.sum(axis=0) < WORTH) | (errors > 1.0 / WORTH)
        freed = []
        for tick, share in zip(partly, self._shares(partly, edges), strict=True):
            before = share[:window]
            seen = self._since_ns is not None and tick.before_ns - self._lag_ns - self._averaging_ns >= self._since_ns
            if seen and not unknown[:window][before > 1e-3].any():
                freed.append(float((tick.power_w - before @ levels[:window]) / share[window]))
        return freed

    def _shares(self, ticks: Sequence[_Tick], edges: Floats) -> Floats:
        """Share of each value's averaging in each interval between the edges; shape (ticks, edges - 1)."""
        to_ns = np.asarray([(tick.before_ns + tick.seen_ns) / 2 for tick in ticks]) - self._lag_ns
        overlap = np.minimum(to_ns[:, None], edges[1:]) - np.maximum(to_ns[:, None] - self._averaging_ns, edges[:-1])
        shares: Floats = np.maximum(0.0, overlap) / self._averaging_ns
        return shares
