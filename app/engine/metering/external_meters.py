"""Meters beside a board: opened once for all measurements on it, and read for the same windows as its own sensor.

A window keeps the power of every source by its name: `board` is the board's own sensor. The power that counts, and with
it `energy_j`, is that of the source that the user chose (`MeterChoice`); the gain of the board's sensor is taken out
only on request.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from ...base.errors import InputError
from ...sensors.clock import Clock
from ...sensors.gpu import Gpu, GpuInfo
from ...sensors.meters.sampled import SampledMeter
from ...sensors.meters.select import open_meter
from .gain import Gain, known_gain
from .power_source import COVERED, Energy, PowerSensor, PowerSource, Stretch
from .window import SourcePower, Window

BOARD: Final = "board"  # the board's own sensor, as a source of power
MEDIAN: Final = "median"  # of that sensor's readings in place of their mean, as other tools take it: it is biased
OF_A_MEDIAN: Final = math.sqrt(math.pi / 2)  # its standard error over that of the mean, where noise is normal


@dataclass(frozen=True, slots=True)
class MeterChoice:
    """The user's choice of meters, on the command line, in a specification or in the window."""

    selectors: tuple[str, ...] = ()  # as `--meter` names them
    energy_from: str = BOARD  # the source that `energy_j` comes from, by its name
    corrected: bool = False  # the known gain of the board's sensor is taken out of its power

    def __bool__(self) -> bool:
        return bool(self.selectors) or self.energy_from != BOARD or self.corrected

    def with_more(self, selectors: Sequence[str]) -> MeterChoice:
        """The choice with further meters, as `--meter` names them.

        Parameters
        ----------
        selectors : sequence of str
            The further ones.

        Returns
        -------
        MeterChoice
        """
        return replace(self, selectors=tuple(dict.fromkeys((*self.selectors, *selectors))))


NO_METERS: Final = MeterChoice()
PATIENCE_S: Final = 0.5  # for a meter's samples of a window that has ended
MEAN_S: Final = 0.001  # samples that come faster are counted as means of so long,
MOST_VALUES: Final = 2000  # or longer, so that a window has no more of them
SILENCE: Final = 5.0  # periods without a value that are a gap


@dataclass(frozen=True, slots=True)
class Beside:
    """The meters beside one board, by their names in figures, and which source counts."""

    meters: Mapping[str, SampledMeter] = field(default_factory=dict)
    energy_from: str = BOARD
    gain: Gain | None = None  # to be taken out of the board's own power
    choice: MeterChoice = NO_METERS  # that they were opened for
    clock: Clock | None = None  # the board's

    @property
    def of_the_board(self) -> tuple[str, ...]:
        """The meters that report the power of the board, and not of the host or the node."""
        return tuple(name for name, meter in self.meters.items() if meter.info.scope == "board")

    @property
    def least_s(self) -> float:
        """The least length of a window for the source that counts, s."""
        return 0.0 if self.energy_from in (BOARD, MEDIAN) else self.meters[self.energy_from].info.least_s

    def seen(self, start_ns: int, end_ns: int, *, steady: bool) -> dict[str, SourcePower]:
        """Return the power of a window that has ended by each meter, once its samples have come.

        Parameters
        ----------
        start_ns, end_ns : int
            The window, ns on the board's clock.
        steady : bool
            Whether nothing but one load ran in it.

        Returns
        -------
        dict of str to SourcePower
            By the name of the meter; a power that is not known is NaN, and its `said` states why.
        """
        powers = {}
        apart = self.clock is not None and not self.clock.kept_pace  # the board's time is none of the day
        for name, meter in self.meters.items():
            if apart and not meter.info.boards_clock:
                energy = Energy(np.empty(0), np.empty(0), unknown="the board's clock has not kept pace with real time")
            else:
                energy = energy_of(meter, start_ns, end_ns, steady=steady)
            caution, seconds = "", (end_ns - start_ns) / 1e9
            if energy.unknown:
                caution = f"{name}: {energy.unknown}"
            elif seconds < meter.info.least_s:
                caution = f"{name}: {seconds:.1f} s is short for it, {meter.info.least_s:g} s are recommended"
            powers[name] = SourcePower(energy.mean_power_w, energy.power_interval_w, meter.info.label, caution)
        return powers

    def complete(self, window: Window, *, steady: bool = True) -> Window:
        """Return a window of the board's own sensor with the powers of every source.

        Parameters
        ----------
        window : Window
            The window, which has ended, by the board's own sensor; NaN as its power if the board has none.
        steady : bool, optional
            Whether nothing but one load ran in it.

        Returns
        -------
        Window
            The window with the meters' powers; its power and interval are those of the chosen source. If that is the
            board's own sensor and its gain is to be taken out, both are corrected by it.
        """
        board_w = window.power_w + window.aftereffect_w
        sources: dict[str, SourcePower] = {}
        if (self.meters or self.energy_from == MEDIAN) and not math.isnan(board_w):
            sources[BOARD] = SourcePower(board_w, window.power_interval_w, window.power_source)
        if self.energy_from == MEDIAN:
            low_w, high_w = window.power_interval_w or (math.nan, math.nan)
            half_w, median_w = OF_A_MEDIAN * (high_w - low_w) / 2, window.median_w
            words = f"of the readings, {100 * (median_w / board_w - 1):+.2f} % off their mean: {window.power_source}"
            interval = None if math.isnan(half_w) else (median_w - half_w, median_w + half_w)
            sources[MEDIAN] = SourcePower(median_w, interval, words)
        sources |= self.seen(*window.window_ns, steady=steady)
        cautions = tuple(source.said for source in sources.values() if source.said)
        if self.energy_from != BOARD:
            chosen = sources[self.energy_from]
            return replace(
                window,
                power_w=chosen.power_w,
                power_interval_w=chosen.interval_w,
                power_source=f"{self.energy_from}: {chosen.words}",
                aftereffect_w=0.0,
                sources=sources,
                said=cautions,
            )
        window = replace(window, sources=sources, said=(*window.said, *cautions))
        if self.gain is None:
            return window
        gain, power_w = self.gain, self.gain.corrected(window.power_w)
        ends = window.power_interval_w
        return replace(
            window,
            power_w=power_w,
            power_interval_w=None if ends is None else _with_gain(gain, power_w, (ends[1] - ends[0]) / 2),
            power_source=f"{window.power_source}, corrected by its gain of {gain.gain:.4f} against {gain.meter}",
            aftereffect_w=window.aftereffect_w / gain.gain,
        )


def _with_gain(gain: Gain, power_w: float, half_w: float) -> tuple[float, float]:
    """The interval of a corrected power, by its own half-width and that of the gain."""
    of_gain = (gain.interval[1] - gain.interval[0]) / 2 / gain.gain
    wide_w = math.hypot(half_w / gain.gain, of_gain * power_w)
    return power_w - wide_w, power_w + wide_w


def energy_of(meter: SampledMeter, start_ns: int, end_ns: int, *, steady: bool) -> Energy:
    """Return the energy of a window by a meter.

    Parameters
    ----------
    meter : SampledMeter
        The meter.
    start_ns, end_ns : int
        The window, ns on the board's clock.
    steady : bool
        Whether nothing but one load ran in it.

    Returns
    -------
    Energy
        The energy; `unknown` states why if the meter was lost, or reported power for too little of the window.
    """
    period_s = meter.info.period_s
    came = meter.wait_until(end_ns, PATIENCE_S + 2 * period_s)
    values = _values(meter, start_ns, end_ns)
    if values is None or not len(values[0]):
        lost = "it was lost" if meter.lost else "it reported nothing" if came else "its samples did not come"
        return Energy(np.empty(0), np.empty(0), unknown=f"no power of this window, {lost}")
    time_ns, power_w, each_s = values
    time_s = (end_ns - start_ns) / 1e9
    lasted_s = np.diff(time_ns, prepend=start_ns, append=[end_ns] if came else []) / 1e9
    covered = float(lasted_s[lasted_s <= SILENCE * each_s].sum()) / time_s
    if covered < COVERED and time_s > 4 * each_s:
        return Energy(np.empty(0), np.empty(0), unknown=f"it reported power for {covered:.0%} of the time only")
    source = PowerSource(PowerSensor(meter.info.label, None, each_s, each_s), kept_s=math.inf)
    source.add_samples(zip(time_ns.tolist(), power_w.tolist(), strict=True))
    if steady:
        return source.steady([Stretch(start_ns, end_ns, start_ns)])
    return source.energy(start_ns, end_ns)


def _values(meter: SampledMeter, start_ns: int, end_ns: int) -> tuple[np.ndarray, np.ndarray, float] | None:
    """Time stamps, watts, and the seconds that each value is the mean of."""
    record, period_s = meter.record, meter.info.period_s
    fine = record.fine(start_ns, end_ns)
    if fine is None:  # longer ago than single samples are kept
        columns = record.trace.columns(start_ns, end_ns)
        watts = columns[meter.channels[0].name].astype(np.float64)
        finite = np.isfinite(watts)
        return columns["time_ns"][finite], watts[finite], record.mean_s
    time_ns, power_w = fine
    mean_s = max(MEAN_S, (end_ns - start_ns) / 1e9 / MOST_VALUES)
    if period_s >= mean_s or not len(time_ns):
        return time_ns, power_w, period_s
    mean_ns = round(mean_s * 1e9)
    bins = (time_ns - start_ns - 1) // mean_ns
    first = np.flatnonzero(np.diff(bins, prepend=-1))
    counts = np.diff(first, append=len(bins))
    means = np.add.reduceat(power_w, first) / counts
    return start_ns + (bins[first] + 1) * mean_ns, means, mean_s


# --- opened once for all ----------------------------------------------------------------------------------------------

_opening = threading.Lock()  # held while a meter opens, which takes its time
_lock = threading.Lock()
_opened: dict[tuple[str, str], tuple[SampledMeter, int]] = {}  # with the number of its users
_beside: dict[str, list[Beside]] = {}  # by the board's UUID, the newest last


def meters_beside(info: GpuInfo) -> Beside | None:
    """Return the meters that are beside a board now.

    Parameters
    ----------
    info : GpuInfo
        The board.

    Returns
    -------
    Beside or None
        The meters, those put there last where there are several choices; None if there are none.
    """
    with _lock:
        stack = _beside.get(info.uuid)
        return stack[-1] if stack else None


@contextmanager
def shared_meter(selector: str, gpu: Gpu) -> Iterator[SampledMeter]:
    """Open a meter once for all that name it in the same way, and close it after the last.

    Parameters
    ----------
    selector : str
        The meter, as `--meter` names it.
    gpu : Gpu
        The board that it is beside.

    Yields
    ------
    SampledMeter
        The meter, which is read from now on.

    Raises
    ------
    InputError
        Where no meter has that name, or it cannot be beside that board.
    SensorError
        Where the meter does not answer.
    """
    key = (selector.strip(), gpu.info.uuid)
    with _opening:
        meter, users = _opened.get(key) or (SampledMeter(open_meter(selector, gpu)), 0)
        _opened[key] = meter, users + 1
    try:
        yield meter
    finally:
        with _opening:
            meter, users = _opened.pop(key)
            if users > 1:
                _opened[key] = meter, users - 1
            else:
                meter.close()


@contextmanager
def put_beside(gpu: Gpu, choice: MeterChoice) -> Iterator[Beside | None]:
    """Open meters and put them beside a board, for all measurements on it meanwhile; without a choice change nothing.

    Parameters
    ----------
    gpu : Gpu
        The board.
    choice : MeterChoice
        The meters, and which source counts. Without selectors the meters that are there already stay.

    Yields
    ------
    Beside or None
        The meters; without a choice those that are there already, None if there are none.

    Raises
    ------
    InputError
        Where a meter or a source is unknown, or a gain is to be taken out that is not known or not needed.
    SensorError
        Where a meter does not answer.
    """
    if not choice:
        yield meters_beside(gpu.info)
        return
    with ExitStack() as stack:
        before = meters_beside(gpu.info)
        meters = dict(before.meters) if before is not None and not choice.selectors else {}
        meters |= named([stack.enter_context(shared_meter(selector, gpu)) for selector in choice.selectors])
        beside = Beside(meters, choice.energy_from, _gain_of(gpu, choice), choice, gpu.clock)
        own = (BOARD,) if gpu.info.source == "unmetered" else (BOARD, MEDIAN)
        if choice.energy_from not in (*own, *meters):
            there = ", ".join((*own, *meters))
            raise InputError(f"there is no source '{choice.energy_from}'", "--energy-from", f"choose one of {there}")
        with _lock:
            _beside.setdefault(gpu.info.uuid, []).append(beside)
        try:
            yield beside
        finally:
            with _lock:
                _beside[gpu.info.uuid].remove(beside)


def named(meters: Sequence[SampledMeter]) -> dict[str, SampledMeter]:
    """Return the meters by their names in figures: their kinds, the second of a kind with a number.

    Parameters
    ----------
    meters : sequence of SampledMeter
        The meters, in the order in which those of a kind are numbered.

    Returns
    -------
    dict of str to SampledMeter
        By name: `rapl`, `rapl_2`.
    """
    by_name: dict[str, SampledMeter] = {}
    for meter in meters:
        same = sum(other.info.kind == meter.info.kind for other in by_name.values())
        by_name[meter.info.kind if not same else f"{meter.info.kind}_{same + 1}"] = meter
    return by_name


def _gain_of(gpu: Gpu, choice: MeterChoice) -> Gain | None:
    if not choice.corrected:
        return None
    if choice.energy_from != BOARD:
        what = f"the energy comes from {choice.energy_from}, which needs no correction"
        raise InputError(what, "--correct-gain", "leave one of the two out")
    gain = known_gain(gpu.info)
    if gain is None:
        remedy = "tune with a meter beside it first: --meter"
        raise InputError("no gain of this board's sensor is known", gpu.info.label, remedy)
    return gain
