"""The difference of two sides that were measured in turns, with a confidence interval that holds whenever one stops.

Blocks come in pairs, one of each side, and a coin decides which side begins a pair. The unit is the log ratio of a
pair's blocks, B over A, less the local drift: the smaller of the slopes of the pairs' mean logs, from the pair before
and to the pair after, and none where they differ in sign, so that a step is a matter of its own pair. If B needs
exp(d) times what A does, block for block, then all but the signs of `unit - d` follows from what the blocks would
have shown whichever side they were given, and the signs are the coins'. So they are symmetric about 0 and independent
in sign, whatever the noise is: drift that is not straight, heavy tails, neighbours that are alike, another process
that comes and goes. [Fisher1935]'s test of such units as an e-value [Vovk2024] is the product of 2 / (1 + exp(-2 g))
over the units, where g is an odd function of `unit - d`, here l times that, at most `_MOST` either way: an outlier
costs what four good units gain. Its mean over a fixed grid of l is a martingale, which exceeds 1/a with a probability
of a at most, at any time [Howard2021, sect. 3]. The interval holds the d for which neither this nor the same of the
other sign has exceeded 2/a: a confidence sequence, which may be looked at after every block. No variance is estimated
and nothing is assumed normal. It takes 9 units before there is an interval that holds with 99 %.

What a block of B leaves behind for the next beyond what one of A does, such as heat, makes a difference seem smaller,
by half of it. The last pair counts when the next one has shown its drift. How often the intervals cover, and how soon
they decide: tests/benchmarks/energy_test.txt.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, Final, Literal

import numpy as np

from ...base.records import Count, Finite, figure
from ..models.arrays import Floats
from ..results.evidence import Evidence
from .difference import Difference

Side = Literal["A", "B"]
SIDES: Final[tuple[Side, Side]] = ("A", "B")
ERROR: Final = 0.01  # probability that an interval ever misses the difference
THRESHOLD: Final = 0.005
FEWEST: Final = 22  # blocks: the first interval, of two fewer, is a wide one
_STAKES: Final = 2.0 ** np.arange(2, 14)  # l: for units that scatter by 10 % down to 0.01 %
_MOST: Final = 1.5
_WIDEST: Final = 20.0  # of a log ratio: beyond it an interval has no end
_LONGEST: Final = 1000.0  # times the units so far, that are looked ahead


class Verdict(StrEnum):
    """The verdict on B against A."""

    NO_WORSE = "no worse"
    WORSE = "worse"
    OPEN = "undecided"


@dataclass(frozen=True, slots=True)
class Block:
    """One block of one side: its work, repeated for longer than the sensor's lag. Figures are of one unit of work."""

    side: Side
    start_s: Finite  # on the board's clock, from the first block's begin
    end_s: Finite
    time_s: float  # of one unit of work
    energy_j: float  # the board's, NaN if it is not known
    host_energy_j: float = math.nan
    work: float = 1.0  # units in the block
    evidence: Evidence | None = field(default=None, compare=False, metadata=figure(key=None))


@dataclass(frozen=True, slots=True)
class TurnsDifference(Difference):
    """A figure of B relative to that of A: 0.04 is 4 % more. Its interval holds with 1 - `error`, at any time."""

    IN_JSON: ClassVar = {"interval": "interval", "distinguishable": "distinguishable"}


@dataclass(frozen=True, slots=True, repr=False)
class InTurns:
    """B against A by the blocks so far."""

    energy: TurnsDifference
    time: TurnsDifference
    host_energy: TurnsDifference
    threshold: Finite
    error: Finite
    blocks: Count
    seconds: Finite  # on the board, from the first block's begin to the last one's end
    units: Floats = field(compare=False, metadata=figure(key=None))  # log ratios of joules, shape (n,)
    IN_JSON: ClassVar = ("verdict", "words", "seconds_more")

    @property
    def verdict(self) -> Verdict:
        """The verdict: B may need more joules than A by the threshold."""
        ends = self.energy.interval
        if ends is None or ends[0] <= self.threshold <= ends[1]:
            return Verdict.OPEN
        return Verdict.WORSE if ends[0] > self.threshold else Verdict.NO_WORSE

    @property
    def worse(self) -> bool:
        """True if B needs more joules than A by more than the threshold, with the stated error."""
        return self.verdict is Verdict.WORSE

    @property
    def no_worse(self) -> bool:
        """True if B needs less than that, with the same error."""
        return self.verdict is Verdict.NO_WORSE

    def __repr__(self) -> str:  # an assertion that fails shows it
        return f"<{self.verdict}: {self.words}>"

    @property
    def seconds_more(self) -> float:
        """Seconds more until it is decided, if units go on as they are; 0 if it is, infinite if it would never be."""
        if self.verdict is not Verdict.OPEN:
            return 0.0
        return self.seconds * (_times(self) - 1.0) if self.blocks else math.inf

    @property
    def words(self) -> str:
        """'B needs 1.3 ± 0.4 % more joules and 0.2 ± 0.1 % less time'."""
        named = [(self.energy, "joules"), (self.time, "time")]
        if not math.isnan(self.host_energy.change):
            named.append((self.host_energy, "joules of the host"))
        decided = [known.words(what) for known, what in named if known.distinguishable]
        rest = [known.words(what) for known, what in named if not known.distinguishable]
        needs = [f"B needs {' and '.join(decided)}"] if decided else []
        return "; ".join([*needs, *rest])


def turns(seed: int | None = None) -> Iterator[Side]:
    """Yield the sides to measure, without end: pairs of both, each begun by the side that a coin decides.

    Parameters
    ----------
    seed : int or None, optional
        Of the coins; None for the system's own chance.

    Yields
    ------
    'A' or 'B'
    """
    coin = random.Random(seed)
    while True:
        yield from SIDES if coin.random() < 0.5 else SIDES[::-1]


def compare_in_turns(blocks: Sequence[Block], threshold: float = THRESHOLD, error: float = ERROR) -> InTurns:
    """Compare two sides by their blocks, in the order in which `turns` had them measured.

    Parameters
    ----------
    blocks : sequence of Block
        The blocks so far, two to a pair; the first half of a pair may stand at the end. A pair with a figure that is
        not known does not count for that figure.
    threshold : float, optional
        By how much B may need more, relative.
    error : float, optional
        The probability that the intervals, looked at however often, ever miss the difference.

    Returns
    -------
    InTurns
        The differences, of which each is NaN, or has no interval, as long as too little is known.
    """
    units = {name: _units(blocks, name) for name in ("energy_j", "time_s", "host_energy_j")}
    seconds = blocks[-1].end_s - blocks[0].start_s if blocks else 0.0
    energy, time, host = (_difference(of, error) for of in units.values())
    return InTurns(energy, time, host, threshold, error, len(blocks), seconds, units["energy_j"])


def interval_of(units: Floats, error: float = ERROR, times: float = 1.0) -> tuple[float, float]:
    """Return the interval of the centre of units that are symmetric about it.

    Parameters
    ----------
    units : array, shape (n,)
        The log ratios.
    error : float, optional
        The probability that the intervals for n = 1, 2, ... ever miss the centre.
    times : float, optional
        Count each unit so often: the interval that so many more of the like would give.

    Returns
    -------
    tuple of float
        Its ends; infinite where the units are too few for one.
    """
    below = _end(lambda centre: _log_evidence(units - centre, times), error)
    above = _end(lambda centre: _log_evidence(-units - centre, times), error)
    return below, -above


# --- inside -----------------------------------------------------------------------------------------------------------


def _units(blocks: Sequence[Block], name: str) -> Floats:
    """The log ratio of each pair but the last, less the drift; shape (n,)."""
    pairs = [pair for pair in zip(blocks[::2], blocks[1::2], strict=False) if _known(pair, name)]
    if len(pairs) < 2:
        return np.empty(0)
    logs = np.log([[getattr(block, name) for block in pair] for pair in pairs])
    middles_s = np.array([[(block.start_s + block.end_s) / 2 for block in pair] for pair in pairs])
    level, at_s = logs.mean(axis=1), middles_s.mean(axis=1)
    slopes = np.diff(level) / np.diff(at_s)
    before, after = np.append(slopes[0], slopes[:-1]), slopes
    slope = np.where(before * after > 0, np.sign(after) * np.minimum(np.abs(before), np.abs(after)), 0.0)
    later = (np.diff(logs)[:, 0])[:-1] - slope * np.diff(middles_s)[:-1, 0]
    signs = np.array([1.0 if pair[0].side == "A" else -1.0 for pair in pairs[:-1]])
    return np.asarray(signs * later)


def _known(pair: tuple[Block, Block], name: str) -> bool:
    return {block.side for block in pair} == {*SIDES} and all(0 < getattr(block, name) < math.inf for block in pair)


def _difference(units: Floats, error: float) -> TurnsDifference:
    """As a share of A; the middle of the interval, the median where there is none yet."""
    low, high = interval_of(units, error)
    if not math.isfinite(high - low):
        return TurnsDifference(math.expm1(float(np.median(units))) if len(units) else math.nan, math.nan)
    low, high = math.expm1(low), math.expm1(high)
    return TurnsDifference((low + high) / 2, (high - low) / 2)


def _log_evidence(x: Floats, times: float) -> float:
    """The log of the e-value against a centre of at most 0; increases in every x."""
    odd = np.clip(np.outer(_STAKES, x), -_MOST, _MOST)
    logs = times * (math.log(2) - np.logaddexp(0.0, -2.0 * odd)).sum(axis=1)
    return float(np.logaddexp.reduce(logs)) - math.log(len(_STAKES))


def _end(log_evidence: Callable[[float], float], error: float) -> float:
    """The largest centre that the evidence, which falls with it, excludes; minus infinity if there is none."""
    enough, low, high = math.log(2.0 / error), -_WIDEST, _WIDEST
    if not log_evidence(low) > enough:
        return -math.inf
    while high - low > 1e-7:
        middle = (low + high) / 2
        low, high = (middle, high) if log_evidence(middle) > enough else (low, middle)
    return low


def _times(compared: InTurns) -> float:
    """How many times the units it takes until their interval leaves out the threshold; infinite if too many."""
    threshold = math.log1p(compared.threshold)

    def decided(times: float) -> bool:
        low, high = interval_of(compared.units, compared.error, times)
        return not low <= threshold <= high

    at_least = max(1.0, FEWEST / compared.blocks)
    if not len(compared.units):
        return at_least
    if not decided(_LONGEST):
        return math.inf
    low, high = 1.0, _LONGEST
    while high > 1.02 * low:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if decided(middle) else (middle, high)
    return max(at_least, high)
