"""Savings against the board's own state, and what locking a clock costs by itself.

The board's own state is the level at which its settings are untouched, and nothing else: a clock that is locked at the
highest value is another state, though the board reports the same clock. On an RTX 5090 any upper end of a locked memory
clock costs 10 % of the frames a second at a higher graphics clock (NVIDIA/open-gpu-kernel-modules#1266). A session
without that level is compared with the highest values that were measured, and says so.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import ClassVar, Final

import numpy as np
import numpy.typing as npt

from ...base.records import figure
from ...sensors.event_reasons import LIMITING
from ...sensors.power_profiles import NO_PROFILE
from ..formats.names import DEVICE_SETTINGS
from ..models.arrays import Mask
from ..models.fit.points import LIMIT_SETTINGS
from ..results.measurement import Value
from ..results.settings import HIGHEST_CLOCK, OWN_STATE, PROFILE, UNTOUCHED, WORDS, with_unit
from ..space.repeats import repeat_names
from ..space.result_table import ResultTable
from .costs import Costs
from .difference import relative_half_width
from .tradeoff import Tradeoff, percent_words, tradeoff

_REPEATS_WITHIN: Final = 0.01  # 95 %, of a time per launch whose own interval is not known (benchmarks/reference.txt)
_SAME_CLOCK: Final = 0.01  # relative; observed clocks are means over a window
_OBSERVED: Final = {
    "graphics_clock_mhz": "observed_clock_mhz",
    "memory_clock_mhz": "observed_memory_clock_mhz",
}


@dataclass(frozen=True, slots=True)
class LockCost:
    """Clocks that were locked at their highest values, against the board's own state at the same parameters."""

    IN_JSON: ClassVar = {"settings": "by_name", "words": "words"}

    settings: tuple[tuple[str, float], ...] = field(metadata=figure(key=None))
    speed_change: float  # of the work per second, a share, the mean over the pairs
    speed_interval: tuple[float, float]  # 95 %
    energy_change: float  # per work, a share; NaN if unknown
    pairs: int

    @property
    def by_name(self) -> Mapping[str, float]:
        """The clocks in MHz."""
        return dict(self.settings)

    @property
    def words(self) -> str:
        """'locking the memory clock at 14001 MHz costs 10 % of the speed here: leave it untouched'."""
        clocks = " and ".join(f"the {WORDS[name]} at {with_unit(name, value)}" for name, value in self.settings)
        verb = "costs" if self.speed_change < 0 else "brings"
        text = f"locking {clocks} {verb} {percent_words(self.speed_change)} of the speed here"
        advice = self.speed_change < 0 and not self.energy_change < 0
        return f"{text}: leave {'it' if len(self.settings) == 1 else 'them'} untouched" if advice else text


@dataclass(frozen=True, slots=True)
class OwnState:
    """A choice against the board's own state with the same parameters."""

    IN_JSON: ClassVar = {"untouched": "untouched", "baseline": "baseline", "words": "words"}

    levels: Mapping[str, Value]  # that stand for that state, by setting
    index: int | None  # its measurement; None if there is none with these parameters
    gain: Tradeoff | None = field(metadata=figure(key=None))  # of the choice
    locks: tuple[LockCost, ...]  # those that change the speed by more than the interval of the difference

    @property
    def untouched(self) -> bool:
        """Whether that state was measured; else the highest values stand for it."""
        return all(level == UNTOUCHED for level in self.levels.values())

    @property
    def baseline(self) -> str:
        """The state that the choice is compared with."""
        return baseline_words(self.levels)

    @property
    def words(self) -> str:
        """'18 % less energy for 4 % more time, against the board's own state'."""
        if self.gain is not None:
            return f"{self.gain.words}, against {self.baseline}"
        return f"{'not ' if self.index is None else ''}measured at {self.baseline}"

    @property
    def remarks(self) -> tuple[str, ...]:
        """What locks cost by themselves, in a line for each."""
        return tuple(lock.words for lock in self.locks)

    @property
    def sentences(self) -> tuple[str, ...]:
        """All of it, each with a stop."""
        return tuple(f"{words[:1].upper()}{words[1:]}." for words in (self.words, *self.remarks))


def baseline_words(levels: Mapping[str, Value]) -> str:
    """Describe what stands for the board's own state.

    Parameters
    ----------
    levels : mapping
        Levels by setting, as `own_levels` has them.

    Returns
    -------
    str
        "the board's own state", or "the highest measured clock, which may not be the board's own state".
    """
    held = [name for name, level in levels.items() if level != UNTOUCHED]
    kinds = dict.fromkeys("power limit" if name in LIMIT_SETTINGS else "clock" for name in held)
    return HIGHEST_CLOCK.replace("clock", " and ".join(kinds), 1) if held else OWN_STATE


def own_levels(table: ResultTable, among: Mask) -> dict[str, Value]:
    """The level of each device setting that stands for the board's own state.

    Parameters
    ----------
    table : ResultTable
        The measurements, n of them.
    among : array of bool, shape (n,)
        Those that count as measured.

    Returns
    -------
    dict
        By parameter: 'untouched' where that was measured, else no profile, or the highest clock or limit. Empty if
        nothing counts.
    """
    levels: dict[str, Value] = {}
    for axis, parameter in enumerate(table.space.parameters):
        if not parameter.device_setting or not among.any():
            continue
        codes = np.unique(table.space.codes[table.rows()[: len(among)][among], axis])
        measured = [parameter.values[code] for code in codes.tolist()]
        if UNTOUCHED in measured:
            levels[parameter.name] = UNTOUCHED
        elif parameter.name == PROFILE:
            levels[parameter.name] = float(NO_PROFILE)
        else:
            levels[parameter.name] = max(float(value) for value in measured)
    return levels


def at_level(table: ResultTable, name: str, level: Value, length: int) -> Mask:
    """Which of the first measurements have this level of a setting.

    Parameters
    ----------
    table : ResultTable
        The measurements.
    name : str
        A device setting of the space.
    level : value
        A number, or 'untouched'.
    length : int
        How many measurements.

    Returns
    -------
    array of bool, shape (length,)
    """
    numbers = table.values(name)[:length]
    return np.isnan(numbers) if level == UNTOUCHED else np.asarray(numbers == level)


def nothing_held(table: ResultTable, name: str, length: int) -> Mask:
    """Find where a setting is untouched, or a clock or limit at the highest value measured, or there is no profile.

    Parameters
    ----------
    table : ResultTable
        The measurements.
    name : str
        A device setting of the space.
    length : int
        How many measurements.

    Returns
    -------
    array of bool, shape (length,)
    """
    numbers = table.values(name)[:length]
    highest = NO_PROFILE if name == PROFILE else np.nanmax(numbers, initial=-np.inf)
    return np.asarray(np.isnan(numbers) | (numbers == highest))


def own_state(table: ResultTable, costs: Costs, index: int | None, *, with_locks: bool = True) -> OwnState | None:
    """Compare a choice with the board's own state.

    Parameters
    ----------
    table : ResultTable
        The measurements, n of them.
    costs : Costs
        Their times and energies, columns of shape (n,).
    index : int or None
        The choice; None if there is none.
    with_locks : bool
        Whether to look for what locks cost, which takes longer in a large table.

    Returns
    -------
    OwnState or None
        None if no device setting has several levels, or nothing worked.
    """
    measured = np.isfinite(costs.energy_j) & np.isfinite(costs.time_s) & table.comparable[: len(costs.energy_j)]
    levels = own_levels(table, measured)
    if not any(len(p.values) > 1 for p in table.space.parameters if p.name in levels):
        return None
    own = np.logical_and.reduce([at_level(table, name, level, len(measured)) for name, level in levels.items()])
    state = OwnState(levels, None, None, ())
    kernels = _kernels(table, len(measured), levels)
    if with_locks and state.untouched:
        state = replace(state, locks=tuple(_locks(table, costs, levels, own & measured, kernels)))
    if index is None or not measured[index]:
        return state
    rows = np.flatnonzero(own & measured & (kernels == kernels[index]).all(axis=1))
    baseline = None if not len(rows) else int(rows[-1])
    gain = None if baseline is None or own[index] else _change(costs, baseline, index)
    return replace(state, index=baseline, gain=gain)


# --- inside -----------------------------------------------------------------------------------------------------------


def _kernels(table: ResultTable, length: int, levels: Collection[str]) -> npt.NDArray[np.unsignedinteger]:
    """The codes of all but settings and repeats, of each measurement a row."""
    apart = {*levels, *repeat_names(table)}
    axes = [axis for axis, name in enumerate(table.space.names) if name not in apart]
    return table.space.codes[table.rows()[:length]][:, axes]


def _change(costs: Costs, before: int, after: int) -> Tradeoff:
    t, e = costs.time_s, costs.energy_j
    return tradeoff(float(t[before]), float(e[before]), to_time_s=float(t[after]), to_energy_j=float(e[after]))


def _locks(
    table: ResultTable,
    costs: Costs,
    levels: Collection[str],
    own: Mask,
    kernels: npt.NDArray[np.unsignedinteger],
) -> Iterator[LockCost]:
    """Find what locks at the highest clocks change, of one clock first, where the interval of the change excludes zero.

    Only where the board ran as fast as by itself: what a lower clock or a power limit costs is no cost of a lock.
    """
    own_of = {kernels[row].tobytes(): row for row in np.flatnonzero(own).tolist()}
    clocks = [name for name in levels if DEVICE_SETTINGS.get(name, name).endswith("_clock_mhz")]
    for locked in (chosen for count in range(1, len(clocks) + 1) for chosen in combinations(clocks, count)):
        highest, rows = _locked_highest(table, levels, clocks, locked, np.isfinite(costs.energy_j))
        of_rows = ((own_of.get(kernels[row].tobytes()), row) for row in rows)
        pairs = [(own, row) for own, row in of_rows if own is not None and _as_fast(table, levels, locked, own, row)]
        if not pairs:
            continue
        changes = [
            (costs.time_s[before] / costs.time_s[after] - 1, _change(costs, before, after)) for before, after in pairs
        ]
        speed = float(np.mean([change for change, _ in changes]))
        half = math.sqrt(sum(_half_width(table, row) ** 2 for pair in pairs for row in pair)) / len(pairs)
        if abs(speed) > half:
            energy = float(np.mean([change.energy_change for _, change in changes]))
            named = tuple((DEVICE_SETTINGS.get(name, name), highest[name]) for name in locked)
            yield LockCost(named, speed, (speed - half, speed + half), energy, len(pairs))


def _locked_highest(
    table: ResultTable, levels: Collection[str], clocks: Collection[str], locked: Collection[str], among: Mask
) -> tuple[dict[str, float], list[int]]:
    """The highest value of each clock that is locked, and the rows in which nothing but these clocks is set."""
    length = len(among)
    numbers = {name: table.values(name)[:length] for name in clocks}
    highest = {name: float(np.nanmax(numbers[name], initial=-math.inf)) for name in locked}
    masks = [among, *(numbers[name] == mhz for name, mhz in highest.items())]
    masks += [nothing_held(table, name, length) for name in levels if name not in clocks]
    masks += [np.isnan(numbers[name]) for name in clocks if name not in locked]
    return highest, np.flatnonzero(np.logical_and.reduce(masks)).tolist()


def _as_fast(table: ResultTable, levels: Collection[str], locked: Collection[str], before: int, after: int) -> bool:
    """Test that the locked clocks were observed as high as the board's own, and that no limit that was set acted."""
    limited = bool(table.measurement(after).event_reasons & LIMITING)
    if limited and any(np.isfinite(table.values(name)[after]) for name in levels if name in LIMIT_SETTINGS):
        return False
    seen = [table.values(_OBSERVED[DEVICE_SETTINGS.get(name, name)]) for name in locked]
    return all(mhz[after] >= (1 - _SAME_CLOCK) * mhz[before] for mhz in seen)  # never where one is not known


def _half_width(table: ResultTable, index: int) -> float:
    """Of the 95 % interval of a time per launch, relative."""
    half = relative_half_width(table.measurement(index), "time_s")
    return half if math.isfinite(half) else _REPEATS_WITHIN
