"""`attribute`: the joules of a program's families from the power of its board, with intervals that hold.

The equations are in README.md beside this file.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import Final

import numpy as np
import numpy.typing as npt

from ...base.errors import InputError
from .activity import Activity, Floats
from .design import Design, Program
from .groups import NORMAL_95, choose_groups, independent
from .noise import Noise, noise_of, overlaps_of, white_noise
from .posterior import Evidence, Gaussian, bounded
from .samples import PowerSamples
from .timeline import Timeline

LEAST_SAMPLES: Final = 12
LEAST_W: Final = 1e-3  # mean power, for scales
ROUNDS: Final = 4
SPREADS: Final = (0.1, 0.2, 0.35, 0.55, 0.8)  # of powers of families about their mean, of the mean power above idle
USUAL_SPREAD: Final = (0.5, 0.5)  # what is expected of it: median, and sigma of its logarithm
DRIFTS: Final = (0.002, 0.01, 0.03)  # of the mean power
EXPONENTS: Final = (0.0, 1.0, 2.0, 3.0)  # of the power above the base with the clock
CLOCK_CHANGED: Final = 0.02  # of the clock, from which on its exponent is looked for
BURSTS: Final = 1.25  # times the limit: a burst may draw more before the limit's controller reacts
UNKNOWN_IDLE: Final = 0.4  # of the least sample, which may be a mean over much that ran
WIDE_LAG_S: Final = 1e-3  # margin of the lag from which on it is looked for all over it
LAGS: Final = 9
WIDE_CONSTANT: Final = 0.25  # margin of a time constant that was looked for
TIME_CONSTANTS: Final = (0.4, 0.65, 0.9)  # of a low-pass, of the window of a mean that comes near it
JITTERS: Final = (0.0, 0.003, 0.006, 0.012, 0.025, 0.05, 0.1)  # of the window, one sigma
LOOKED_AT: Final = 3000  # samples that such a look takes
LEAST_S: Final = 1e-6  # of an item
BLOCKS: Final = 16  # of the span, that are compared
WHITENED: Final = 4_000_000  # values that are whitened at a time


@dataclass(frozen=True, slots=True)
class Joules:
    """An amount of energy with its 95 % interval, J."""

    value: float
    low: float
    high: float

    @property
    def half(self) -> float:
        return (self.high - self.low) / 2


@dataclass(frozen=True, slots=True)
class Item:
    """An entry of the result: a family, several that the samples do not separate, or the gaps."""

    families: tuple[int, ...]  # places in the names of the activity; none for the gaps alone
    gaps: bool  # whether it has the energy of the gaps
    seconds: float  # divided where slices overlap
    count: int  # slices; 0 for the gaps alone
    joules: Joules


@dataclass(frozen=True, slots=True)
class _Powers:
    """The unknowns as the samples show them, and how blocks of the span differ about them."""

    known: Gaussian
    scores: Floats  # X'r of each block; shape (blocks, unknowns)
    gram: Floats  # what their squares add up to where the noise is as modelled
    moved: Floats  # X' of how unknown powers and an unknown lag or window change samples together; likewise

    def joules(self, row: Floats) -> Joules:
        value, carried = float(row @ self.known.mean), self.known.covariance @ row
        half = NORMAL_95 * math.sqrt(max(0.0, float(row @ carried))) * self.wider(row)
        return Joules(value, max(0.0, value - half), value + half)

    def wider(self, row: Floats) -> float:
        """By how much the error is larger than the posterior's, as the blocks differ: 1 or more [White1980]."""
        carried = self.known.covariance @ row
        variance = float(row @ carried)
        excess = float(np.sum((self.scores @ carried) ** 2)) - float(carried @ self.gram @ carried)
        excess = max(0.0, excess) + float(np.sum((self.moved @ carried) ** 2))
        return math.sqrt(1.0 + excess / variance) if variance > 0 else 1.0


@dataclass(frozen=True, slots=True)
class Attribution:
    """The joules of a program between the begin of its first slice and the end of its last.

    Attributes
    ----------
    items : tuple of Item
        Families, groups and gaps, by falling joules. Their joules and the remainder add up to the total.
    remainder : Joules
        What the samples show beyond all items: nothing of the program's explains it.
    total : Joules
        The energy of the span.
    lag_s, window_s : float
        The sensor's, as the program itself showed them within the margins.
    low_pass : bool
        Whether the sensor is a low-pass of first order, whose time constant the window is.
    explained : float
        R squared of the samples.
    """

    activity: Activity
    span: tuple[float, float]
    items: tuple[Item, ...]
    remainder: Joules
    total: Joules
    lag_s: float
    window_s: float
    low_pass: bool
    explained: float
    _program: Program
    _powers: _Powers

    @property
    def seconds(self) -> Floats:
        """The time of each slice, divided where slices overlap, shape (slices,)."""
        return self._program.timeline.seconds

    def family(self, number: int) -> Joules:
        """Return the joules of one family, whether or not the samples tell it from others.

        Parameters
        ----------
        number : int
            Its place in the names of the activity.

        Returns
        -------
        Joules
            The joules; with an interval as wide as what is not known.
        """
        return self._powers.joules(self._program.of_families()[number])

    def slices(self, which: npt.NDArray[np.bool_]) -> Joules:
        """Return the joules of some slices, of a range of the program say.

        Parameters
        ----------
        which : array of bool, shape (slices,)
            The slices that count.

        Returns
        -------
        Joules
            Their joules.
        """
        return self._powers.joules(self._program.of_families(which).sum(axis=0))

    def slice_joules(self) -> Floats:
        """Return the joules of each slice, as its family's power and its own time give them.

        Returns
        -------
        array, shape (slices,)
            The joules, without intervals: within a group, how they divide is a guess.
        """
        return self._program.of_slices(self._powers.known.mean)

    def gaps_between(self, begin_s: float, end_s: float) -> Joules:
        """Return the joules of the gaps between two times.

        Parameters
        ----------
        begin_s, end_s : float
            The times, s on the activity's clock.

        Returns
        -------
        Joules
            The joules.
        """
        return self._powers.joules(self._program.of_gaps(begin_s, end_s))


def attribute(
    activity: Activity, samples: PowerSamples, *, limit_w: float = math.inf, idle_w: float = math.nan
) -> Attribution:
    """Find the joules of a program's families, of its gaps, and which of them the samples do not separate.

    Parameters
    ----------
    activity : Activity
        What ran.
    samples : PowerSamples
        The board's power of the same time.
    limit_w : float, optional
        The power limit, W.
    idle_w : float, optional
        The board's power at rest, W; by default well below the least sample.

    Returns
    -------
    Attribution
        The joules.

    Raises
    ------
    InputError
        Where nothing ran, or too few samples lie between the first slice and the last.
    """
    if not len(activity):
        raise InputError("nothing ran on the board", "activity", "profile a program that launches kernels")
    return _Estimator(activity, samples, limit_w, idle_w).attribution()


class _Estimator:
    """The estimate of one program's powers, in rounds: noise, then powers, then lag and window."""

    def __init__(self, activity: Activity, samples: PowerSamples, limit_w: float, idle_w: float) -> None:
        self._timeline = timeline = Timeline(activity)
        self._span = span = float(activity.begin_s[0]), float(activity.end_s.max())
        self._samples = samples = samples.within(*span)
        self._power_w = samples.power_w
        if len(self._power_w) < LEAST_SAMPLES:
            raise InputError(
                f"{len(self._power_w)} samples of power lie between the first launch and the last; "
                f"{LEAST_SAMPLES} are needed",
                "power",
                "profile for longer, or check that power and activity are of the same time",
            )
        self._program = Program(timeline, samples, span, 0.0)
        self._clock = samples.clock_mhz
        self._mean_w = max(float(self._power_w.mean()), LEAST_W)
        least_w = float(self._power_w.min())
        self._idle_w = min(least_w, idle_w) if math.isfinite(idle_w) else UNKNOWN_IDLE * least_w
        self._above_w = max(self._mean_w - self._idle_w, 0.05 * self._mean_w)
        self._limit_w = limit_w
        self._lag_s, self._window_s, self._jitter_s = samples.lag_s, samples.window_s, 0.0

    def attribution(self) -> Attribution:
        if self._samples.lag_margin_s > WIDE_LAG_S or self._samples.low_pass is None:
            self._look_at_sensor()
        self._look_for_jitter()
        design = self._program.design(self._lag_s, self._window_s, self._jitter_s)
        noise = white_noise(np.full(len(self._power_w), max(0.02 * self._mean_w, 1e-3)))
        evidence = self._evidence(design, noise, self._power_w)
        prior = self._best_prior(design, evidence)
        powers = self._bounded(evidence.posterior(prior))
        if self._clock is not None and np.ptp(self._clock) > CLOCK_CHANGED * float(np.median(self._clock)):
            self._choose_exponent(noise)
        for _ in range(ROUNDS):
            design = self._program.design(self._lag_s, self._window_s, self._jitter_s)
            columns = self._program.lag_column, self._program.window_column
            for place, column in zip((-2, -1), columns, strict=True):
                design.columns[:, place] = column(design, self._lag_s, self._window_s, powers.mean)
            residual_w = self._power_w - design.columns[:, :-2] @ powers.mean[:-2]
            noise = self._noise(design, residual_w, evidence, prior)
            evidence = self._evidence(design, noise, self._power_w)
            prior = self._best_prior(design, evidence)
            powers = self._bounded(evidence.posterior(prior))
            self._lag_s += float(powers.mean[-2])
            self._window_s += float(powers.mean[-1])
        return self._reported(design, noise, evidence, powers)

    # --- what is known before ---------------------------------------------------------------------------------------

    def _prior(self, design: Design, spread: float, drift: float) -> Gaussian:
        above_w, count = self._above_w, design.columns.shape[1]
        mean, variance = np.zeros(count), np.zeros(count)
        mean[:3] = self._idle_w + above_w * np.array([0.2, 0.1, 0.05])
        variance[:3] = (0.4 * above_w + 0.05 * self._mean_w) ** 2
        kinds = np.asarray([kind == "kernel" for kind in self._timeline.activity.kinds])
        families = np.arange(design.families.start, design.families.stop)
        mean[families] = np.where(kinds, 1.0, 0.5) * above_w
        variance[families] = (spread * above_w) ** 2
        covariance = np.diag(variance)
        for of, level in ((kinds, 0.6), (~kinds, 0.4)):  # what all of a kind have in common
            alike = families[of]
            covariance[np.ix_(alike, alike)] += (level * above_w) ** 2
        drifts = np.arange(design.drifts.start, design.drifts.stop)
        covariance[drifts, drifts] = (drift * self._mean_w / np.arange(1, len(drifts) + 1)) ** 2
        samples = self._samples
        mean[-2:] = samples.lag_s - self._lag_s, samples.window_s - self._window_s
        margins = np.maximum([samples.lag_margin_s, samples.window_margin_s], 1e-5) / NORMAL_95
        covariance[[-2, -1], [-2, -1]] = margins**2
        return Gaussian(mean, covariance)

    def _best_prior(self, design: Design, evidence: Evidence) -> Gaussian:
        """The prior with the spread of powers and the drift that the samples make likely, in the mean of squares."""
        usual, sigma = USUAL_SPREAD
        pairs = np.asarray(list(product(SPREADS, DRIFTS)))
        likely = np.asarray([evidence.log_of(self._prior(design, *pair)) for pair in pairs])
        likely -= 0.5 * (np.log(pairs[:, 0] / usual) / sigma) ** 2
        weights = np.exp(likely - likely.max())
        spread, drift = np.sqrt(weights @ pairs**2 / weights.sum())
        return self._prior(design, float(spread), float(drift))

    def _bounded(self, free: Gaussian) -> Gaussian:
        low, high = np.full(len(free.mean), -np.inf), np.full(len(free.mean), np.inf)
        families = slice(3, 3 + len(self._timeline.activity.names))
        low[:3], high[:3] = 0.9 * self._idle_w, max(self._limit_w, self._idle_w)
        low[families] = 0.0
        high[families] = max(BURSTS * self._limit_w - self._idle_w, 1.0)
        return bounded(free, low, high)

    # --- the noise, the clock and the lag ---------------------------------------------------------------------------

    def _evidence(self, design: Design, noise: Noise, power_w: Floats) -> Evidence:
        count = design.columns.shape[1]
        gram, moments = np.zeros((count, count)), np.zeros(count)
        step = max(1000, WHITENED // count)
        for first in range(0, len(power_w), step):
            white = noise.whitened(design.columns, first, first + step)
            gram += white.T @ white
            moments += white.T @ noise.whitened(power_w, first, first + step)
        return Evidence(gram, moments)

    def _noise(self, design: Design, residual_w: Floats, evidence: Evidence, prior: Gaussian) -> Noise:
        model_w = self._power_w - residual_w
        used = float(np.trace(np.linalg.solve(evidence.gram + np.linalg.inv(prior.covariance), evidence.gram)))
        grows_with = np.column_stack(
            [
                np.full(len(residual_w), self._mean_w**2),
                model_w**2,
                design.columns[:, -2] ** 2 * self._window_s**2 + 1e-9,  # stamps that jitter
                design.uneven * self._mean_w**2 + 1e-9,
            ]
        )
        freedom = max(len(residual_w) - used, 0.1 * len(residual_w))
        overlaps = overlaps_of(self._samples.refresh_s, self._window_s)
        return noise_of(residual_w, grows_with, self._samples.noise * np.abs(model_w), freedom, overlaps)

    def _choose_exponent(self, noise: Noise) -> None:
        best, most = self._program, -math.inf
        for exponent in EXPONENTS:
            program = Program(self._timeline, self._samples, self._span, exponent)
            design = program.design(self._lag_s, self._window_s, self._jitter_s)
            evidence = self._evidence(design, noise, self._power_w)
            likely = evidence.log_of(self._best_prior(design, evidence))
            if likely > most:
                best, most = program, likely
        self._program = best

    def _look_at_sensor(self) -> None:
        """Start from the most likely lag and response, where these are not known well."""
        samples, most = self._samples, -math.inf
        sensors = [replace(samples, low_pass=bool(samples.low_pass))]
        for share in TIME_CONSTANTS if samples.low_pass is None else ():  # as late as the mean in the mean
            lag_s, window_s = samples.lag_s + (0.5 - share) * samples.window_s, share * samples.window_s
            margin_s = WIDE_CONSTANT * window_s
            sensors.append(replace(samples, lag_s=lag_s, window_s=window_s, window_margin_s=margin_s, low_pass=True))
        looked_at = LOOKED_AT if len(sensors) == 1 else LOOKED_AT // 3
        for sensor in sensors:
            some = Program(self._timeline, sensor.first(looked_at), self._span, 0.0)
            for lag_s in sensor.lag_s + sensor.lag_margin_s * np.linspace(-1.2, 1.2, LAGS):
                likely = self._likely(some, lag_s, 0.01 * samples.window_s)
                if likely > most:
                    most, self._samples, self._lag_s, self._window_s = likely, sensor, float(lag_s), sensor.window_s
        self._program = Program(self._timeline, self._samples, self._span, 0.0)

    def _look_for_jitter(self) -> None:
        """Whether stamps jitter about even times, or tell when samples were taken, and how well."""
        most, even = -math.inf, False
        for evenly in (False, True):
            samples = self._samples.evened() if evenly else self._samples
            some = Program(self._timeline, samples.first(LOOKED_AT), self._span, 0.0)
            for share in JITTERS:
                likely = self._likely(some, self._lag_s, share * self._window_s)
                if likely > most:
                    most, even, self._jitter_s = likely, evenly, share * self._window_s
        if even:
            self._samples = self._samples.evened()
            self._program = Program(self._timeline, self._samples, self._span, 0.0)

    def _likely(self, program: Program, lag_s: float, jitter_s: float) -> float:
        """The logarithm of the likelihood of the first samples with a lag, and with stamps that jitter."""
        samples, power_w = program.samples, program.samples.power_w
        variance = np.full(len(power_w), (0.02 * self._mean_w) ** 2)
        design = program.design(lag_s, samples.window_s, jitter_s)
        columns = design.columns
        for _ in range(3):
            noise = white_noise(np.sqrt(variance))
            evidence = self._evidence(design, noise, power_w)
            prior = self._prior(design, USUAL_SPREAD[0], DRIFTS[1])
            powers = evidence.posterior(prior).mean
            residual_w = power_w - columns @ powers
            jitters = (jitter_s * program.lag_column(design, lag_s, samples.window_s, powers)) ** 2
            rest = max(float(np.mean(residual_w**2 - jitters)), float(np.mean(residual_w**2)) / 10, 1e-9)
            variance = rest + jitters
        likely = evidence.log_of(prior) - 0.5 * float(np.sum(np.log(noise.sigma_w**2) + (power_w / noise.sigma_w) ** 2))
        return likely - 0.5 * (NORMAL_95 * (lag_s - samples.lag_s) / max(samples.lag_margin_s, 1e-5)) ** 2

    # --- the result -------------------------------------------------------------------------------------------------

    def _reported(self, design: Design, noise: Noise, evidence: Evidence, powers: Gaussian) -> Attribution:
        timeline, activity = self._timeline, self._timeline.activity
        rows = np.vstack([self._program.of_families(), self._program.of_gaps(*self._span)])
        residual_w = self._power_w - design.columns[:, :-2] @ powers.mean[:-2]
        known = _Powers(
            powers, self._scores(design, noise, residual_w), evidence.gram, self._moved(design, noise, powers)
        )
        wider = np.asarray([known.wider(row) for row in rows])
        joules, covariance = rows @ powers.mean, rows @ powers.covariance @ rows.T * np.outer(wider, wider)
        total = known.joules(rows.sum(axis=0))
        beyond = float(residual_w.mean()) * (self._span[1] - self._span[0])
        seconds = np.append(
            np.bincount(activity.family, timeline.seconds, len(activity.names)),
            timeline.gaps(np.array([self._span[0]]), np.array([self._span[1]])).sum(),
        )
        counts = np.append(activity.counts, 0)
        gaps = len(activity.names)
        items = []
        for group in choose_groups(joules, covariance, total.value, independent(design.shares)):
            places = np.asarray(group)
            if seconds[places].sum() > LEAST_S:
                families, of_group = (
                    tuple(place for place in group if place != gaps),
                    known.joules(rows[places].sum(axis=0)),
                )
                items.append(Item(families, gaps in group, seconds[places].sum(), int(counts[places].sum()), of_group))
        items.sort(key=lambda item: -item.joules.value)
        varied = float(np.sum((self._power_w - self._mean_w) ** 2))
        return Attribution(
            activity=activity,
            span=self._span,
            items=tuple(items),
            remainder=Joules(beyond, beyond - total.half, beyond + total.half),
            total=Joules(total.value + beyond, total.low + beyond, total.high + beyond),
            lag_s=self._lag_s,
            window_s=self._window_s,
            low_pass=bool(self._samples.low_pass),
            explained=1.0 - float(residual_w @ residual_w) / varied if varied > 0 else math.nan,
            _program=self._program,
            _powers=known,
        )

    def _scores(self, design: Design, noise: Noise, residual_w: Floats) -> Floats:
        """How blocks of the span pull at the unknowns, one against another: shape (blocks, unknowns)."""
        count = max(2, min(BLOCKS, len(residual_w) // 10))
        scores = np.zeros((count, design.columns.shape[1]))
        edges = np.linspace(0, len(residual_w), count + 1).astype(int)
        for number, part in enumerate(pairwise(edges.tolist())):
            scores[number] = noise.whitened(design.columns, *part).T @ noise.whitened(residual_w, *part)
        scores -= scores.mean(axis=0)
        return np.asarray(scores * math.sqrt(count / (count - 1)))

    def _moved(self, design: Design, noise: Noise, powers: Gaussian) -> Floats:
        """What the columns of lag and window leave out, which take the powers for known: (2 * unknowns, unknowns)."""
        samples = self._samples.first(LOOKED_AT)
        count = len(samples.time_s)
        white = noise.whitened(design.columns, 0, count) * (len(self._power_w) / count)
        program = Program(self._timeline, samples, self._span, self._program.exponent)
        root = np.linalg.cholesky(powers.covariance)
        rows = []
        for place, sigma_s in zip((-2, -1), np.sqrt(np.diag(powers.covariance)[-2:]).tolist(), strict=True):
            lag_s, window_s = (sigma_s * (place == which) for which in (-2, -1))
            more, less = (
                program.design(self._lag_s + sign * lag_s, self._window_s + sign * window_s, self._jitter_s).columns
                for sign in (1.0, -1.0)
            )
            rows.append(root.T @ noise.whitened((more - less) / 2, 0, count).T @ white)
        return np.vstack(rows)
