"""`PowerSource`: time-stamped power of one board, and the energy of any window of time. Nothing else attributes joules.

A value that appears at time t is the mean over [t - lag - averaging, t - lag]. It belongs to a window where that time
lies wholly within it: what ran before and after has no part in it. `find_sensor` chooses which of a board's readings
to use, and how late and how smeared they are: as characterised, else by the board's generation [Yang2024].

Launches may keep step with the samples of the driver's buffer. Power differs between the beginning and the end of one
launch, and a sample is not the mean of the whole time since the one before, so that samples follow the phase of the
launch that they fall into, like a stroboscope. Launches of 20.05 ms and samples of 20 ms come out of step within 7 s,
and a window of 0.2 s is off by as much as the samples swing: on an H200 by 1.4 % (one sigma) against 0.4 %
(tests/benchmarks/reference.txt). A second window whose launches begin half a launch earlier or later sees the opposite
part; in the mean of both the first harmonic is gone.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Final

import numpy as np
import numpy.typing as npt

from ...sensors.gpu import Gpu
from .characterisation.aftereffect import HISTORY_S
from .characterisation.sensor_figures import CHANNEL_OF, Characterisation, SourceFigures, source_words
from .condition import PowerHistory
from .confidence import NORMAL_95, Interval, Spread, not_negative, student_t

# The first two harmonics, relative, one sigma: 0.53 and 0.27 % in 23 runs of kernels of 5 to 146 ms on one H200, 0.8
# and 0.3 % in 24 runs of 6 to 43 ms on another. Shorter launches average out within a sample.
HARMONICS: Final = (0.007, 0.003)
SEEN_FROM_S: Final = 0.004
SECOND_SAMPLE_WORTH: Final = 0.7  # of the first harmonic left in a window's mean, from which on a second one pays


def phases(times_s: Floats, launch_s: float) -> Floats:
    """Return the phases of launches back to back since time 0, in launches, not wrapped.

    Parameters
    ----------
    times_s : array, shape (n,)
        The times, s.
    launch_s : float
        The time of one launch, s.

    Returns
    -------
    array, shape (n,)
        The phase at each time; 1.5 in the middle of the second launch.
    """
    return times_s / launch_s


def unseen(windows: list[Floats]) -> float:
    """Return the error of the mean of windows whose samples see only a part of each launch.

    Parameters
    ----------
    windows : list of array, shape (n,)
        Of each window the phases of its samples, in launches. Windows count alike, whatever their n.

    Returns
    -------
    float
        The error, relative, one sigma.
    """
    orders = np.arange(1, len(HARMONICS) + 1)
    seen = np.mean([np.exp(2j * np.pi * np.outer(phase, orders)).mean(axis=0) for phase in windows], axis=0)
    return float(np.hypot.reduce(np.asarray(HARMONICS) * np.abs(seen)))


def keeps_step(samples: int, refresh_s: float, launch_s: float) -> bool:
    """Return whether the mean of samples shows mostly one part of the launches.

    Parameters
    ----------
    samples : int
        The number of samples.
    refresh_s : float
        From one sample to the next, s.
    launch_s : float
        The time of one launch, s; NaN if it is not known.

    Returns
    -------
    bool
        True if a second window is worth its time; False without samples, for launches so short that they average out
        within one, and if the time of a launch is not known.
    """
    if not launch_s >= SEEN_FROM_S or samples < 1:
        return False
    phase = phases(refresh_s * np.arange(samples, dtype=np.float64), launch_s)
    return abs(complex(np.exp(2j * np.pi * phase).mean())) > SECOND_SAMPLE_WORTH


def opposite_s(least_s: float, between_s: float, refresh_s: float, launch_s: float) -> float:
    """Return the pause between two runs of launches whose samples then see opposite parts of a launch.

    From the middle of the first run's samples to that of the second's passes a whole number of samples; counted in
    launches, without the pause, it should be half a launch more than whole ones.

    Parameters
    ----------
    least_s : float
        The shortest pause, s.
    between_s : float
        The time from one middle to the other in which launches run, s.
    refresh_s : float
        From one sample to the next, s.
    launch_s : float
        The time of one launch, s.

    Returns
    -------
    float
        From the end of the first run to the begin of the second, s.
    """
    reach = max(refresh_s, launch_s) / 2 * (1 + 1e-9)
    fewest = math.floor((least_s + between_s) / refresh_s)
    pauses_s = []
    for count in range(fewest, fewest + 3):
        first = math.ceil((between_s - reach) / launch_s - 0.5)
        last = math.floor((between_s + reach) / launch_s - 0.5)
        pauses_s += [count * refresh_s - (whole + 0.5) * launch_s for whole in range(first, last + 1)]
    return min(pause_s for pause_s in pauses_s if pause_s >= least_s)


Floats = npt.NDArray[np.float64]
LEAST_POLL_S: Final = 0.004
ASSUMED_LAG_S: Final = 0.01  # of a polled source that is not characterised: measured on an H200,
ASSUMED_MARGIN_S: Final = 0.01  # and how far other boards may be off it
BUFFERS_DIFFER_S: Final = 0.003  # the same of stamps of the driver's buffer, from one board of a model to another,
BOARDS_DIFFER: Final = 0.005  # and of the mean of a short window; relative, one sigma: as four H200 did
STAMP_S: Final = 0.0005  # how well stamps of the buffer's samples and their lag are known
TOLERANCE_S: Final = 0.002  # by which a value that counts may stick out of a window of whatever ran
COVERED: Final = 0.95  # share of a window that values must cover for its energy to be known
KEPT_S: Final = 30.0  # values are kept: longer than a window, its history and the run after it take
HALF: Final = 0.5  # of its averaging must lie in the window for a value to be split: less would blow up its noise
SHARP: Final = 0.03  # a value may be split if its time is known within this share of its averaging
BACK: Final = 3.0  # averaging times before a window in which values show what ran then
WORTH: Final = 0.3  # of one value: a level that less of it shows is not known
LEAST_HISTORY: Final = 0.5  # of the second before a window, that values must cover to know what it leaves behind
LONGEST_SAMPLE_S: Final = 0.1  # of what a value averages that shows peaks, which limits respond to within about 1 s
OVERLAP: Final = 1.5  # averaging over refresh: from here on values overlap


@dataclass(frozen=True, slots=True)
class PowerSensor:
    """One of a board's power readings: how often it is new, what it averages, and how late it is."""

    words: str
    channel: str | None  # polled; None for the driver's buffer
    refresh_s: float  # a new value this often
    averaging_s: float  # each value is the mean of that long
    lag_s: float = 0.0  # between the end of that time and the value's appearance, or its stamp in the buffer
    margin_s: float = 0.0  # how far the lag may be off
    window_s: float | None = None  # that a mean power needs; None where not characterised
    aftereffect: float = 0.0  # W of excess per W by which the second before a window drew more
    wander: float = 0.0  # of the mean of a short window beyond its noise; relative, one sigma
    counted: bool = False  # by an energy counter: values hold all of every launch

    @property
    def buffered(self) -> bool:
        return self.channel is None

    @property
    def sees_phase(self) -> bool:
        """Whether values follow the phase of the launch that they fall into, where launches take milliseconds."""
        return self.buffered and not self.counted

    def peak_w(self, powers: Sequence[float] | Floats) -> float:
        """Return the largest of some values.

        Parameters
        ----------
        powers : sequence of float
            The values, W.

        Returns
        -------
        float
            In W; NaN without any, or where they average over too long to show a peak.
        """
        return float(max(powers)) if len(powers) and self.averaging_s <= LONGEST_SAMPLE_S else math.nan

    @property
    def poll_s(self) -> float:
        """The interval of polling that shows when values appeared, s."""
        return max(LEAST_POLL_S, self.refresh_s / (4 if self.window_s is None else 10))

    @property
    def splits(self) -> bool:
        """Whether values that hold some of the load before can be freed of it."""
        if self.buffered or self.window_s is None:
            return False
        return 1.5 * self.poll_s + self.margin_s <= SHARP * self.averaging_s

    @property
    def lead_s(self) -> float:
        """From the beginning of a window until a value counts, s."""
        return self.lag_s + self.margin_s + self.averaging_s * (HALF if self.splits else 1.0)

    @property
    def shortest_s(self) -> float:
        """The shortest window: it must hold two refreshes, and time for a value that is wholly its own; s."""
        return self.refresh_s + max(self.refresh_s, self.averaging_s)


def find_sensor(gpu: Gpu, characterisation: Characterisation | None, *, buffered: bool) -> PowerSensor | None:
    """Choose the power readings of a board to measure with.

    The source that the characterisation chose, where the board has it; else the driver's buffer if it answers, else
    instant power, else the average. Refresh, averaging and lag are as characterised, else those of the board's
    generation.

    Parameters
    ----------
    gpu : Gpu
        The board.
    characterisation : Characterisation or None
        Its characterisation, where there is one.
    buffered : bool
        Whether the driver's buffer answers.

    Returns
    -------
    PowerSensor or None
        The readings; None if the board reports no power.
    """
    available = {channel.name for channel in gpu.channels if channel.available}
    sources = ["buffer"] if buffered else []
    sources += [source for source, channel in CHANNEL_OF.items() if channel in available]
    if not sources:
        return None
    source = (
        characterisation.chosen if characterisation is not None and characterisation.chosen in sources else sources[0]
    )
    sensor = _by_generation(source, gpu.info.compute_capability)
    figures = None if characterisation is None else characterisation.sources[source]
    origin = ""
    if characterisation is not None and figures is not None and figures.usable:
        sensor, origin = _as_known(sensor, characterisation, figures), f", {characterisation.origin}"
    counted = gpu.info.source == "amd"
    words = source_words(source, sensor.refresh_s * 1e3, sensor.averaging_s * 1e3, counted=counted)
    return replace(sensor, words=f"{words}{origin}", counted=counted)


def _as_known(sensor: PowerSensor, characterisation: Characterisation, figures: SourceFigures) -> PowerSensor:
    """The sensor with the figures of this board's characterisation, or, less sure, of another board of its model."""
    after = characterisation.aftereffect if sensor.buffered else None
    margin_s = 0.0 if figures.sharp else figures.margin_ms / 1e3
    characterised = replace(
        sensor,
        refresh_s=figures.refresh_ms / 1e3,
        averaging_s=figures.refresh_ms / 1e3 if figures.window_ms is None else figures.window_ms / 1e3,
        lag_s=figures.lag_ms / 1e3,
        margin_s=margin_s,
        window_s=characterisation.measure_ms / 1e3,
        wander=0.0 if after is None else after.wander,
    )
    if characterisation.prior:  # the aftereffect is another board's: not taken out
        differs_s = BUFFERS_DIFFER_S if sensor.buffered else ASSUMED_MARGIN_S
        wander = math.hypot(characterised.wander, BOARDS_DIFFER)
        return replace(characterised, margin_s=math.hypot(margin_s, differs_s), wander=wander)
    if after is None or abs(after.share) < after.margin:
        return characterised
    return replace(characterised, aftereffect=after.share)


def _by_generation(source: str, capability: tuple[int, int] | None) -> PowerSensor:
    """The sensor with refresh and averaging of its generation: measured on an H200, else [Yang2024]."""
    if source == "buffer":
        return PowerSensor("", None, 0.02, 0.02)
    refresh_s, averaging_s = 0.1, 0.1
    if source == "average":
        averaging_s = 1.0
    elif capability is not None and (6, 0) <= capability < (7, 5):
        refresh_s, averaging_s = 0.02, 0.01
    elif capability is not None and (capability == (8, 0) or capability >= (9, 0)):
        averaging_s = 0.025
    return PowerSensor("", CHANNEL_OF[source], refresh_s, averaging_s, ASSUMED_LAG_S, ASSUMED_MARGIN_S)


@dataclass(frozen=True, slots=True)
class Stretch:
    """A window in which nothing but one load ran, back to back."""

    start_ns: int
    end_ns: int
    launch_ns: int  # when one of its launches ended, or began

    @property
    def seconds(self) -> float:
        return (self.end_ns - self.start_ns) / 1e9


@dataclass(frozen=True, slots=True)
class Energy:
    """The energy of a board in a window. Figures are NaN, and intervals None, if they are not known."""

    times_s: Floats  # of each value, the middle of what it averages, from the window's start; shape (n,)
    power_w: Floats  # shape (n,)
    energy_j: float = math.nan
    mean_power_w: float = math.nan
    power_interval_w: Interval | None = None  # 95 % confidence of the mean power
    unknown: str = ""  # why the energy is not known

    @property
    def energy_interval_j(self) -> Interval | None:
        if self.power_interval_w is None:
            return None
        low, high = (self.energy_j * ends / self.mean_power_w for ends in self.power_interval_w)
        return low, high


class PowerSource:
    """The recent values of one sensor of a board. Not thread-safe.

    Values come from the driver's buffer (`add_samples`) or from polls (`poll`). Where it is known when loads begin and
    end (`edge`), values of a slow average that hold some of the load before are split: that part is taken off, by the
    levels of power between the edges, which all its values together show.
    """

    def __init__(self, sensor: PowerSensor, *, kept_s: float = KEPT_S, poll_s: float | None = None) -> None:
        self.sensor = sensor
        self.spread = Spread()
        self._poll_s = sensor.poll_s if poll_s is None else poll_s
        self._kept_ns = kept_s * 1e9
        self._lag_ns, self._averaging_ns = sensor.lag_s * 1e9, sensor.averaging_s * 1e9
        self._margin_ns = (sensor.margin_s - (STAMP_S if sensor.buffered else 0.0)) * 1e9
        self._refresh_ns = round(sensor.refresh_s * 1e9)
        self._before_ns = array("q")  # a value appeared after that time,
        self._seen_ns = array("q")  # and by that one
        self._power_w = array("d")
        self._history = PowerHistory()
        self._lately_w = array("d"), array("d")  # its two averages, when the value was there
        self._polled: tuple[int, float] | None = None  # the last poll
        self._found_w = math.nan  # by the first poll: a value of some time before it
        self._repeats_ns = 0  # from then on the same value counts as a new one
        self._edges: deque[int] = deque(maxlen=4096)
        self._edges_since_ns: int | None = None  # the load is known from then on

    # --- values in --------------------------------------------------------------------------------------------------

    @property
    def newest_ns(self) -> int:
        """When the newest value appeared, ns; 0 before any."""
        return self._seen_ns[-1] if self._seen_ns else 0

    def add_samples(self, samples: Iterable[tuple[int, float]]) -> None:
        """Take in what is new in the driver's buffer.

        Parameters
        ----------
        samples : iterable of tuple
            (time stamp in ns, power in W), oldest first.
        """
        fresh = list(samples)
        if fresh and not self._seen_ns:  # the power before is not known: the best guess is the mean of the buffer
            self._history.add(fresh[0][0] / 1e9, fmean(power_w for _, power_w in fresh))
        for time_ns, power_w in fresh:
            self._history.add(time_ns / 1e9, power_w)
            self._add(time_ns, time_ns, power_w)

    def poll(self, time_ns: int, power_w: float) -> None:
        """Take in a reading. A value that is the same a refresh later is a new one; before that, the old one.

        Parameters
        ----------
        time_ns : int
            When it was read, ns on the board's clock.
        power_w : float
            The power, W; NaN does not count.
        """
        if math.isnan(power_w):
            return
        self._history.add(time_ns / 1e9, power_w)
        if self._polled is None:
            self._found_w = power_w
            self._repeats_ns = time_ns + 2 * self._refresh_ns
        else:
            last_ns, last_w = self._polled
            if power_w != last_w:
                self._add(max(last_ns, time_ns - self._refresh_ns), time_ns, power_w)
                self._repeats_ns = 2 * time_ns - last_ns + self._refresh_ns
            elif time_ns >= self._repeats_ns:
                self._add(max(last_ns, time_ns - self._refresh_ns), time_ns, power_w)
                self._repeats_ns = max(self._repeats_ns + self._refresh_ns, time_ns)
        self._polled = time_ns, power_w

    def add_recorded(self, time_ns: npt.NDArray[np.int64], power_w: Floats) -> None:
        """Take in at once what was recorded, as `add_samples` or `poll` would, but for `drawn_lately_w`.

        Parameters
        ----------
        time_ns, power_w : array, shape (n,)
            Time stamps of samples, or when the sensor was read, ns, rising; the powers, W, NaN does not count.
        """
        before_ns = seen_ns = time_ns = time_ns[np.isfinite(power_w)]
        power_w = power_w[np.isfinite(power_w)]
        if not self.sensor.buffered and len(time_ns):
            self._found_w = float(power_w[0])
            changed = np.diff(power_w, prepend=np.nan) != 0
            changed_ns = np.maximum.accumulate(np.where(changed, time_ns, time_ns[0]))
            new = changed | (np.diff((time_ns - changed_ns) // self._refresh_ns, prepend=0) > 0)
            new[0] = False
            before_ns = np.maximum(np.roll(time_ns, 1), time_ns - self._refresh_ns)[new]
            seen_ns, power_w = time_ns[new], power_w[new]
        for kept, new in ((self._before_ns, before_ns), (self._seen_ns, seen_ns), (self._power_w, power_w)):
            kept.frombytes(new.tobytes())

    def edge(self, time_ns: int) -> None:
        """Note that a load began or ended.

        Parameters
        ----------
        time_ns : int
            When it did, ns on the board's clock; not before the edge noted last.
        """
        self._edges.append(time_ns)
        if self._edges_since_ns is None:
            self._edges_since_ns = time_ns
        while self._edges[0] < time_ns - self._kept_ns:
            self._edges.popleft()

    def _add(self, before_ns: int, seen_ns: int, power_w: float) -> None:
        self._before_ns.append(before_ns)
        self._seen_ns.append(seen_ns)
        self._power_w.append(power_w)
        for averages, lately_w in zip(self._lately_w, (self._history.fast_w, self._history.slow_w), strict=True):
            averages.append(lately_w)
        if self._seen_ns[0] < seen_ns - 2 * self._kept_ns:  # now and then, not at every value
            old = bisect_left(self._seen_ns, seen_ns - self._kept_ns)
            for kept in (self._before_ns, self._seen_ns, self._power_w, *self._lately_w):
                del kept[:old]

    # --- figures out ------------------------------------------------------------------------------------------------

    def powers(self, start_ns: int, end_ns: int) -> list[float]:
        """Return the powers of the values that belong to a window.

        Parameters
        ----------
        start_ns, end_ns : int
            The window, ns on the board's clock.

        Returns
        -------
        list of float
            The powers, W, oldest first; those of values that were split are without the load before.
        """
        first, last = self._inside(start_ns, end_ns)
        powers = self._power_w[first:last].tolist()
        return [*self._freed(first, start_ns, end_ns)[1], *powers] if self.sensor.splits else powers

    def independent(self, values: Sequence[float] | Floats) -> int:
        """Return how many of the values are independent of each other.

        Parameters
        ----------
        values : sequence of float or array, shape (n,)
            Values in a row, of which only the number counts.

        Returns
        -------
        int
            The number: fewer than n where values average over more than a refresh.
        """
        return round(len(values) * min(1.0, self.sensor.refresh_s / self.sensor.averaging_s))

    def steady(self, stretches: Sequence[Stretch], launch_s: float = math.nan) -> Energy:
        """Return the energy of windows in which nothing but one load ran: the scatter of their values is noise.

        The windows count alike. The error that the scatter does not show is added: where launches keep step with the
        values, all of these are of the same part of a launch.

        Parameters
        ----------
        stretches : sequence of Stretch
            The windows, at least one.
        launch_s : float, optional
            The time of one launch, s; NaN if it does not matter.

        Returns
        -------
        Energy
            The energy of all of them together, unknown if no value belongs to any; times count from the start of the
            first window.
        """
        origin_ns = stretches[0].start_ns
        parts: list[tuple[Stretch, Floats, list[float]]] = []
        for stretch in stretches:
            first, last = self._inside(stretch.start_ns, stretch.end_ns)
            freed = self._freed(first, stretch.start_ns, stretch.end_ns) if self.sensor.splits else ([], [])
            times_s = np.concatenate([freed[0], self._middles_s(first, last, stretch.start_ns)])
            if len(times_s) > min(1, len(parts)):  # one value alone shows nothing beside another window
                parts.append((stretch, times_s, [*freed[1], *self._power_w[first:last]]))
        if not parts:
            return Energy(np.empty(0), np.empty(0), unknown="no power reading fell into the window")
        mean_w = fmean(fmean(powers) for _, _, powers in parts)
        noise_w = math.hypot(*(self._noise_w(powers) for _, _, powers in parts)) / len(parts)
        hidden = self._in_step([(stretch, times_s) for stretch, times_s, _ in parts], launch_s)
        return self._energy(
            np.concatenate([times_s + (stretch.start_ns - origin_ns) / 1e9 for stretch, times_s, _ in parts]),
            np.concatenate([powers for _, _, powers in parts]),
            mean_w,
            math.hypot(noise_w, NORMAL_95 * mean_w * hidden),
            sum(stretch.seconds for stretch in stretches),
        )

    def energy(self, start_ns: int, end_ns: int) -> Energy:
        """Return the energy of any window: each value counts for the time nearer to it than to another.

        The interval comes from the differences between neighbours, and from the edges, which no value covers. Where
        polling began with the window, the value of the first poll stands for the one before it.

        Parameters
        ----------
        start_ns, end_ns : int
            The window, ns on the board's clock.

        Returns
        -------
        Energy
            The energy; `unknown` states why if the window is too short, or values cover too little of it.
        """
        first, last = self._inside_probably(start_ns, end_ns)
        time_s = (end_ns - start_ns) / 1e9
        times_s = self._middles_s(first, last, start_ns)
        power_w = np.asarray(self._power_w[first:last])
        counts_s = np.diff(np.concatenate(([0.0], (times_s[1:] + times_s[:-1]) / 2, [time_s])))[: len(times_s)]
        unknown = self._why_unknown(counts_s, time_s)
        if unknown:
            return Energy(times_s, power_w, unknown=unknown)
        before_w = self._power_w[first - 1] if first else self._found_w
        known_before = [] if math.isnan(before_w) else [before_w]
        half_w = self._changes_w(times_s, [*known_before, *self._power_w[first : last + 1]], bool(known_before), time_s)
        return self._energy(times_s, power_w, float(counts_s @ power_w) / time_s, half_w, time_s)

    def left_behind_w(self, start_ns: int, power_w: float) -> float:
        """Return what the second before a window still adds to its power.

        Parameters
        ----------
        start_ns : int
            The window's start, ns on the board's clock.
        power_w : float
            The mean power of the window, W.

        Returns
        -------
        float
            The excess, W, negative after a lighter load; 0 where values do not reach that far, or no aftereffect of the
            board is known.
        """
        history = self.powers(start_ns - round(HISTORY_S * 1e9), start_ns)
        if not self.sensor.aftereffect or len(history) * self.sensor.refresh_s < LEAST_HISTORY * HISTORY_S:
            return 0.0
        return self.sensor.aftereffect * (fmean(history) - power_w)

    def drawn_lately_w(self, start_ns: int, end_ns: int) -> tuple[float, float]:
        """Return the averages of the power over the last 1 and 30 s, in the mean of a window.

        Parameters
        ----------
        start_ns, end_ns : int
            The window, ns on the board's clock.

        Returns
        -------
        fast_w, slow_w : float
            The averages, W; NaN without values.
        """
        first, last = bisect_left(self._seen_ns, start_ns), bisect_right(self._seen_ns, end_ns)
        if first == last:  # no value came in the window: the one before
            first, last = max(0, last - 1), max(0, last - 1) + 1
        fast_w, slow_w = (averages[first:last] for averages in self._lately_w)
        return (fmean(fast_w), fmean(slow_w)) if fast_w else (math.nan, math.nan)

    # --- which values belong ----------------------------------------------------------------------------------------

    def _inside(self, start_ns: int, end_ns: int) -> tuple[int, int]:
        """The indices of the first value that surely lies wholly in the window, and behind the last."""
        first = bisect_left(self._before_ns, start_ns + self._averaging_ns + self._lag_ns + self._margin_ns)
        return first, max(first, bisect_right(self._seen_ns, end_ns + self._lag_ns - self._margin_ns))

    def _inside_probably(self, start_ns: int, end_ns: int) -> tuple[int, int]:
        """As `_inside`, of values taken to have appeared in the middle of the time in which they did.

        Leaving out a value near an edge would leave the edge to its neighbour.
        """
        places, slack_ns = range(len(self._seen_ns)), TOLERANCE_S * 1e9

        def appeared_ns(place: int) -> float:
            return (self._before_ns[place] + self._seen_ns[place]) / 2 - self._lag_ns

        first = bisect_left(places, start_ns + self._averaging_ns - slack_ns, key=appeared_ns)
        return first, max(first, bisect_right(places, end_ns + slack_ns, key=appeared_ns))

    def _middles_s(self, first: int, last: int, start_ns: int) -> Floats:
        """The middle of what each value averages, s from the window's start."""
        before, seen = (np.asarray(times[first:last], dtype=np.int64) for times in (self._before_ns, self._seen_ns))
        middles: Floats = ((before - start_ns) + (seen - start_ns)) / 2e9
        return middles - self.sensor.lag_s - self.sensor.averaging_s / 2

    def _freed(self, first: int, start_ns: int, end_ns: int) -> tuple[list[float], list[float]]:
        """Times and powers of the values before `first` without their part from before the window.

        Empty if the power of that time is not known.
        """
        back = bisect_left(self._before_ns, start_ns - BACK * self._averaging_ns)
        stop = bisect_right(self._seen_ns, end_ns + self._lag_ns)
        before, seen = (np.asarray(times[back:], dtype=np.float64) for times in (self._before_ns, self._seen_ns))
        power_w = np.asarray(self._power_w[back:])
        to_ns = (before + seen) / 2 - self._lag_ns
        sharp = seen - before <= SHARP * self._averaging_ns
        partly = sharp & (to_ns - start_ns >= HALF * self._averaging_ns)
        partly[max(0, min(first, stop) - back) :] = False
        if not partly.any():
            return [], []
        inner = {edge for edge in self._edges if edge < start_ns or edge > end_ns}
        edges = np.asarray([-np.inf, *sorted(inner | {start_ns, end_ns}), np.inf])
        window = int(np.searchsorted(edges, start_ns))
        overlap = np.minimum(to_ns[:, None], edges[1:]) - np.maximum(to_ns[:, None] - self._averaging_ns, edges[:-1])
        shares: Floats = np.maximum(0.0, overlap) / self._averaging_ns  # (values, times between edges)
        design = shares[sharp]
        levels = np.linalg.lstsq(design, power_w[sharp], rcond=1e-6)[0]
        errors = np.sqrt(np.maximum(np.diag(np.linalg.pinv(design.T @ design, rcond=1e-9, hermitian=True)), 0.0))
        unknown = (design.sum(axis=0) < WORTH) | (errors > 1.0 / WORTH)
        since_ns = math.inf if self._edges_since_ns is None else self._edges_since_ns
        partly &= before - self._lag_ns - self._averaging_ns >= since_ns
        partly &= ~(unknown[:window] & (shares[:, :window] > 1e-3)).any(axis=1)
        freed_w = (power_w - shares[:, :window] @ levels[:window])[partly] / shares[partly, window]
        return ((to_ns[partly] - start_ns) / 2e9).tolist(), freed_w.tolist()

    # --- how well it is known ---------------------------------------------------------------------------------------

    def _energy(
        self, times_s: Floats, powers: Sequence[float] | Floats, mean_w: float, half_w: float, time_s: float
    ) -> Energy:
        half_w = math.hypot(half_w, NORMAL_95 * self.sensor.wander * mean_w)
        interval = None if math.isnan(half_w) else not_negative((mean_w - half_w, mean_w + half_w))
        return Energy(times_s, np.asarray(powers), mean_w * time_s, mean_w, interval)

    def _noise_w(self, powers: Sequence[float]) -> float:
        """Half of the 95 % interval of a mean of values that differ by noise; NaN below two that are independent."""
        independent = self.independent(powers)
        return math.nan if independent < 2 else self.spread.half_w(powers, independent)

    def _in_step(self, windows: Sequence[tuple[Stretch, Floats]], launch_s: float) -> float:
        """The error of the windows' mean by seeing only a part of each launch; relative, one sigma."""
        if not self.sensor.sees_phase or not launch_s >= SEEN_FROM_S:
            return 0.0
        since_s = (times_s + (stretch.start_ns - stretch.launch_ns) / 1e9 for stretch, times_s in windows)
        return unseen([phases(times_s, launch_s) for times_s in since_s])

    def _changes_w(self, times_s: Floats, around_w: Sequence[float], from_before: bool, time_s: float) -> float:
        """Half of the 95 % interval of a mean of values that may differ by more than noise; NaN below two.

        `around_w` are their powers and the neighbours before (`from_before`) and after the window. No value is of the
        window's edges alone: the power there may be that of its own first or last value, as is assumed, or, all of the
        time, the neighbour's.
        The change of a slow average within a refresh, times the number of values that overlap, is the difference of the
        power at the end of what it averages from that at its beginning.
        """
        steps = np.diff(np.asarray(around_w))
        inner = steps[int(from_before) :][: len(times_s) - 1]
        if not len(inner):
            return math.nan
        overlap = self.sensor.averaging_s / self.sensor.refresh_s
        usual_w = math.sqrt(float(np.mean(inner**2)))
        noise_w = student_t(len(inner)) * usual_w / math.sqrt(2 * max(1, self.independent(times_s)))
        half_s = 0.0 if overlap > OVERLAP else self.sensor.averaging_s / 2
        gaps_s = (float(times_s[0]) - half_s, time_s - float(times_s[-1]) - half_s)
        edges_w = (
            max(0.0, gap_s) / time_s * max(1.0, overlap) * max(usual_w, abs(float(step_w)))
            for gap_s, step_w in zip(gaps_s, (steps[0], steps[-1]), strict=True)
        )
        return math.hypot(noise_w, *edges_w)

    def _why_unknown(self, counts_s: Floats, time_s: float) -> str:
        """Why the window has no energy; empty if it has one. `counts_s` is the time that each value counts for."""
        sensor = self.sensor
        surely_s = sensor.shortest_s + (0.0 if sensor.buffered else 2 * sensor.margin_s + self._poll_s)
        if time_s < sensor.shortest_s or (not len(counts_s) and time_s < surely_s):
            return (
                f"{time_s * 1e3:.0f} ms is too short for this board's power readings, {sensor.words}; "
                f"{surely_s * 1e3:.0f} ms at least are needed"
            )
        if not len(counts_s):
            return "the board reported no power"
        most_s = sensor.averaging_s + 2 * (sensor.refresh_s + self._poll_s + sensor.margin_s)
        covered = float(np.minimum(counts_s, most_s).sum()) / time_s
        return "" if covered >= COVERED else f"power was reported for {covered:.0%} of the time only"
