"""Averaging window and lag of a power source, from its answer to a square wave with known edges.

A value reported at time t is taken as the mean of the true power over [t - lag - window, t - lag]. The true power has
two levels, with load and without, that drift slowly as the board warms up. Levels enter linearly, so they are solved
for at every window and lag tried (variable projection), and the pair with the least relative residual counts. It is
looked for by direct search [Kolda2003]: a pattern of places moves to the best of them, and is halved, or doubled where
that was at its edge. All places of all patterns are solved in one call: in few and large steps, NumPy does without
Python's lock, for which the window would wait.

Some sources are no mean but a low-pass of first order, as an H200's buffer: its time constant and lag are found too.

A polled source changes at ticks of its own, of which polling shows only the brackets; `ticks_of` finds them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from ....base.errors import WattridgeError
from .sensor_figures import Floats

DEGREE: Final = 2  # of the levels' drift, as a polynomial of time
LEAST_WINDOW_S: Final = 1e-3
MOST_WINDOW_S: Final = 4.0
LEAST_LAG_S: Final = -0.06  # a stamp may stand at the beginning or the middle of what it averages
MOST_LAG_S: Final = 0.4
MOST_MARGINS_S: Final = (MOST_WINDOW_S, MOST_LAG_S - LEAST_LAG_S)  # as far as they are looked for
UNSEEN: Final = 1e-12  # squared relative change of all readings by a step of a parameter
STARTS: Final = 4
APART: Final = 0.7  # of the logarithms of two windows, or of two lags over 0.1 s, that may lie in different valleys
ROUGH: Final = 300  # readings that the first look at all windows and lags takes
WIDE: Final = APART / 2  # the first pattern, from its middle to its edge
NARROW: Final = 5e-5  # the last one
STEPS: Final = 200  # at most; 15 are usual
DEEP_ENOUGH: Final = 0.1  # a pattern of this width or less is dropped at a cost of so many times the least:
NO_BETTER: Final = 4.0
LOW_PASS: Final = 0.7  # of a mean's cost, at which a low-pass is what the source is
NEAREST: Final = 0.65  # a low-pass's time constant, of the window of the mean that comes nearest
OUTLIER: Final = 6.0  # standard deviations
TINY: Final = 1e-12  # of the sum of squares, where the levels are not determined


@dataclass(frozen=True, slots=True)
class Spans:
    """When the load ran: [start, end) pairs, ascending, in s since the same origin as the readings; shape (n,)."""

    start_s: Floats
    end_s: Floats

    def on_time(self, time_s: Floats) -> Floats:
        """Return the time under load since the first span's start.

        Parameters
        ----------
        time_s : array, any shape
            Times, s since the origin of the spans.

        Returns
        -------
        array, same shape
            The seconds under load up to each time.
        """
        edges = np.column_stack([self.start_s, self.end_s]).ravel()
        done = np.cumsum(self.end_s - self.start_s)
        values = np.column_stack([done - (self.end_s - self.start_s), done]).ravel()
        return np.interp(time_s, edges, values)

    def share(self, from_s: Floats, to_s: Floats) -> Floats:
        """Return the share of each interval under load.

        Parameters
        ----------
        from_s, to_s : array, shapes that broadcast
            Begin and end of the intervals, s since the origin of the spans.

        Returns
        -------
        array, broadcast shape
            The shares, 0..1.
        """
        return (self.on_time(to_s) - self.on_time(from_s)) / (to_s - from_s)

    def low_passed(self, time_s: Floats, constants_s: Floats) -> Floats:
        """Return what a low-pass of first order shows of the load, which is 1 in the spans and 0 outside.

        Parameters
        ----------
        time_s : array, shape (places, n)
            Times, s since the origin of the spans.
        constants_s : array, shape (places, 1)
            Time constants, s.

        Returns
        -------
        array, shape (places, n)
            What is shown, 0..1.
        """
        edges = np.column_stack([self.start_s, self.end_s]).ravel()
        kept = np.exp(-np.diff(edges) / constants_s)
        shown = np.zeros((len(constants_s), len(edges)))
        for edge in range(1, len(edges)):  # under load up to every other one
            shown[:, edge] = edge % 2 + (shown[:, edge - 1] - edge % 2) * kept[:, edge - 1]
        last = np.searchsorted(edges, time_s, side="right") - 1
        loaded, since_s = 1 - last % 2, time_s - edges[np.maximum(last, 0)]
        before = np.take_along_axis(shown, np.maximum(last, 0), axis=1)
        return np.where(last < 0, 0.0, loaded + (before - loaded) * np.exp(-np.maximum(since_s, 0.0) / constants_s))


@dataclass(frozen=True, slots=True)
class ResponseFit:
    """A source's window and lag with 95 % margins, and the power behind its readings."""

    window_s: float
    lag_s: float
    window_margin_s: float
    lag_margin_s: float
    noise: float  # relative scatter of single values
    until_s: float  # of the last reading; the levels do not reach beyond
    low_pass: tuple[float, float] | None  # time constant and lag of a low-pass that fits far better than any mean
    _centre_s: float
    _scale_s: float
    _levels: Floats  # shape (2 (DEGREE + 1),): under load, then without

    def energy_j(self, spans: Spans, from_s: float, to_s: float) -> float:
        """Return the integral of the power by this source's levels.

        Parameters
        ----------
        spans : Spans
            When the load ran.
        from_s, to_s : float
            The time to integrate over, s since the origin of the spans; not beyond `until_s`.

        Returns
        -------
        float
            The energy, J.
        """
        edges = np.linspace(from_s, to_s, max(2, round((to_s - from_s) / 1e-3)))
        share = spans.share(edges[:-1], edges[1:])
        middle = (edges[:-1] + edges[1:]) / 2
        power = _design(share, (middle - self._centre_s) / self._scale_s) @ self._levels
        return float(np.sum(power * np.diff(edges)))


def fit_response(time_s: Floats, power_w: Floats, spans: Spans, *, windows_s: Floats | None = None) -> ResponseFit:
    """Fit window and lag to readings.

    Parameters
    ----------
    time_s : array, shape (n,)
        When each reading appeared, s since the origin of the spans.
    power_w : array, shape (n,)
        The readings, W.
    spans : Spans
        When the load ran.
    windows_s : array, shape (n,), or None, optional
        The windows where they are known, as those of a counter's increments, s. Then only the lag is looked for.

    Returns
    -------
    ResponseFit
        The window, the mean of those that are known, and the lag, with their margins and the levels of power.
    """
    problem = _Problem(time_s, power_w, spans, windows_s)
    rough = problem
    if len(time_s) > ROUGH:  # enough to find the valley
        few = slice(None, ROUGH)
        rough = _Problem(time_s[few], power_w[few], spans, None if windows_s is None else windows_s[few])
    grid = rough.grid()
    starts = _apart(grid[np.argsort(rough.costs(grid), kind="stable")])
    best = _descend(problem, starts)
    if problem.drop_outliers(best):
        best = _descend(problem, best[None])
    window_s, lag_s = problem.unpack(best)
    margins = problem.margins(best)
    low_pass = None if windows_s is not None else _low_pass(problem, best)
    return ResponseFit(
        window_s=window_s,
        lag_s=lag_s,
        window_margin_s=margins[0] if windows_s is None else 0.0,
        lag_margin_s=margins[-1],
        noise=problem.scatter(best),
        until_s=float(time_s[-1]),
        low_pass=low_pass,
        _centre_s=problem.centre_s,
        _scale_s=problem.scale_s,
        _levels=problem.levels(best),
    )


def _low_pass(problem: _Problem, mean: Floats) -> tuple[float, float] | None:
    """Time constant and lag of a low-pass, where it fits far better than the best mean does."""
    window_s, lag_s = problem.unpack(mean)
    start = np.array([math.log(NEAREST * window_s), (lag_s + (0.5 - NEAREST) * window_s) / 0.1])
    cost = problem.costs(mean[None])[0]
    other = copy(problem)
    other.low_pass = True
    found = _descend(other, start[None])
    return other.unpack(found) if other.costs(found[None])[0] < LOW_PASS * cost else None


class _Problem:
    """The residuals as a function of (ln window, lag / 0.1 s), or of the lag alone, at many places at once."""

    def __init__(self, time_s: Floats, power_w: Floats, spans: Spans, windows_s: Floats | None) -> None:
        self._time_s, self._power_w, self._windows_s = time_s, power_w, windows_s
        self._spans, self.low_pass = spans, False
        self.centre_s = float((time_s[0] + time_s[-1]) / 2)
        self.scale_s = float((time_s[-1] - time_s[0]) / 2)
        self._weight = 1.0 / np.maximum(np.abs(power_w), 0.02 * np.max(power_w))

    def unpack(self, parameters: Floats) -> tuple[float, float]:
        """(window, lag) in s; the window is the mean one where the windows are known."""
        windows_s, lags_s = self._unpacked(parameters[None])
        return float(np.mean(windows_s)), float(lags_s[0, 0])

    def grid(self) -> Floats:
        """Places all over the possible range, shape (places, axes)."""
        lags = np.linspace(LEAST_LAG_S, MOST_LAG_S, 24) / 0.1
        if self._windows_s is not None:
            return lags[:, None]
        logs = np.log(np.geomspace(4e-3, 2.5, 18))
        return np.column_stack([np.repeat(logs, len(lags)), np.tile(lags, len(logs))])

    def about(self, places: Floats, moves: Floats) -> Floats:
        """Where moves lead, both of shape (places, moves, axes).

        Readings determine the begin and the end of the time that they average. So these two are moved, in units of the
        window: along ln window and lag, the valley is narrow and oblique.
        """
        if places.shape[-1] == 1:
            return np.asarray(places[:, None] + moves)
        windows_s, lags_s = np.exp(places[:, None, 0]), 0.1 * places[:, None, 1]
        windows_s, lags_s = windows_s * (1.0 + moves[..., 0] - moves[..., 1]), lags_s + windows_s * moves[..., 1]
        return np.stack([np.log(windows_s), lags_s / 0.1], axis=-1)

    def costs(self, places: Floats) -> Floats:
        """Mean squared relative residual at each of some places, shape (places,)."""
        return np.asarray((self._solved(places)[0] ** 2).mean(axis=1))

    def scatter(self, parameters: Floats) -> float:
        """Relative standard deviation of most residuals; the few at edges, where the power rises, do not count."""
        return 1.4826 * float(np.median(np.abs(self._residuals(parameters))))

    def levels(self, parameters: Floats) -> Floats:
        return np.asarray(self._solved(parameters[None])[1][0])

    def drop_outliers(self, parameters: Floats) -> bool:
        """Leave out readings far off the fit (a reading the driver repeated, say); False if there are none."""
        residuals = np.abs(self._residuals(parameters))
        sigma = 1.4826 * float(np.median(residuals))
        keep = residuals <= OUTLIER * max(sigma, 1e-6)
        if keep.all() or keep.sum() < 0.8 * len(keep):
            return False
        self._time_s, self._power_w, self._weight = self._time_s[keep], self._power_w[keep], self._weight[keep]
        if self._windows_s is not None:
            self._windows_s = self._windows_s[keep]
        return True

    def margins(self, parameters: Floats) -> list[float]:
        """95 % half-widths in s, from the curvature of the residuals at the optimum."""
        steps = 1e-3 * np.eye(len(parameters))
        jacobian = np.column_stack(
            [(self._residuals(parameters + s) - self._residuals(parameters - s)) / 2e-3 for s in steps]
        )
        count = len(self._time_s)
        variance = float(self.costs(parameters[None])[0]) * count / max(1, count - 2 * (DEGREE + 1) - len(parameters))
        errors = np.sqrt(variance * np.diag(np.linalg.pinv(jacobian.T @ jacobian)))
        errors[(jacobian**2).sum(axis=0) < UNSEEN] = np.inf  # no reading depends on it
        scales, most_s = (
            ([self.unpack(parameters)[0], 0.1], MOST_MARGINS_S) if len(parameters) == 2 else ([0.1], MOST_MARGINS_S[1:])
        )
        return [
            min(most, 1.96 * float(error) * scale) for error, scale, most in zip(errors, scales, most_s, strict=True)
        ]

    def _residuals(self, parameters: Floats) -> Floats:
        return np.asarray(self._solved(parameters[None])[0][0])

    def _unpacked(self, places: Floats) -> tuple[Floats, Floats]:
        """Windows and lags in s, each of shape (places, 1), or (1, readings) for windows that are known."""
        lags_s = np.clip(0.1 * places[:, -1:], LEAST_LAG_S, MOST_LAG_S)
        if self._windows_s is not None:
            return self._windows_s[None], lags_s
        return np.clip(np.exp(places[:, :1]), LEAST_WINDOW_S, MOST_WINDOW_S), lags_s

    def _solved(self, places: Floats) -> tuple[Floats, Floats]:
        """Residuals, shape (places, readings), and levels, shape (places, 2 (DEGREE + 1))."""
        windows_s, lags_s = self._unpacked(places)
        to_s = self._time_s - lags_s
        if self.low_pass:
            share = self._spans.low_passed(to_s, windows_s)
        else:
            share = self._spans.share(to_s - windows_s, to_s)
        design = _design(share, (self._time_s - self.centre_s) / self.scale_s) * self._weight[:, None]
        target = self._power_w * self._weight
        turned = design.swapaxes(1, 2)
        normal = turned @ design
        diagonal = np.arange(normal.shape[-1])
        normal[:, diagonal, diagonal] += TINY * np.trace(normal, axis1=1, axis2=2)[:, None]  # where load never changes
        levels = np.linalg.solve(normal, (turned @ target)[..., None])
        return np.asarray((design @ levels)[..., 0] - target), np.asarray(levels[..., 0])


def _apart(sorted_starts: Floats) -> Floats:
    """The best few that do not all lie in one valley, shape (starts, axes)."""
    chosen: list[Floats] = []
    for start in sorted_starts:
        if all(float(np.abs(start - other).max()) > APART for other in chosen):
            chosen.append(start)
        if len(chosen) == STARTS:
            break
    return np.array(chosen)


def _descend(problem: _Problem, starts: Floats) -> Floats:
    """The place of least cost in the valleys of some places, which have the shape (starts, axes)."""
    axes = starts.shape[1]
    square = np.stack(np.meshgrid(*[np.linspace(-1.0, 1.0, 5)] * axes), axis=-1).reshape(-1, axes)
    pattern = square[np.abs(square).max(axis=1).argsort(kind="stable")]  # of equals the first, the innermost, counts
    at_edge = np.abs(pattern).max(axis=1) == 1.0
    middles, width = starts, np.full(len(starts), WIDE)
    for _ in range(STEPS):
        places = problem.about(middles, width[:, None, None] * pattern)
        all_costs = problem.costs(places.reshape(-1, axes)).reshape(len(middles), -1)
        lowest, patterns = all_costs.argmin(axis=1), np.arange(len(middles))
        middles, costs = places[patterns, lowest], all_costs[patterns, lowest]
        width = np.minimum(WIDE, np.where(at_edge[lowest], 2.0 * width, width / 2.0))
        kept = ~(costs > NO_BETTER * costs.min()) | (width > DEEP_ENOUGH)  # NaN too, which the figures show in the end
        middles, costs, width = middles[kept], costs[kept], width[kept]
        if (width < NARROW).all():
            break
    return np.asarray(middles[costs.argmin()])


def _design(share: Floats, time: Floats) -> Floats:
    """Columns of the levels under load and without, each times 1, t, t^2; shape (..., n, 2 (DEGREE + 1))."""
    powers = np.vander(time, DEGREE + 1, increasing=True)
    return np.concatenate([share[..., None] * powers, (1.0 - share)[..., None] * powers], axis=-1)


def spans_of(pairs_ns: Sequence[tuple[int, int]], origin_ns: int) -> Spans:
    """Return spans from begin and end of each time under load.

    Parameters
    ----------
    pairs_ns : sequence of tuple of int
        The (start, end) pairs, ns on the board's clock, ascending.
    origin_ns : int
        The origin of the spans, ns on the same clock.

    Returns
    -------
    Spans
        The spans, s since the origin.
    """
    table = (np.asarray(pairs_ns, dtype=np.int64).reshape(-1, 2) - origin_ns) / 1e9
    return Spans(table[:, 0], table[:, 1])


LEAST_CHANGES = 8


class Change(NamedTuple):
    """A value that was not there at the previous poll."""

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
        """Return the ticks from a time on.

        Parameters
        ----------
        time_s : float
            The time, s since the origin of the ticks.

        Returns
        -------
        Ticks
            Those at that time or later, with the same refresh and margin.
        """
        keep = self.time_s >= time_s
        return Ticks(self.time_s[keep], self.value[keep], self.refresh_s, self.margin_s)


def ticks_of(changes: Sequence[Change], origin_ns: int, where: str = "") -> Ticks:
    """Find a source's own ticks from the changes between polls.

    A straight line through the brackets' middles gives the period far better than one bracket; a tick that does not lie
    on it (the driver was late) is put to the end of its bracket.

    Parameters
    ----------
    changes : sequence of Change
        The changes, ascending.
    origin_ns : int
        The origin of the ticks, ns on the board's clock.
    where : str, optional
        The board, for errors.

    Returns
    -------
    Ticks
        A tick for each change, with its value.

    Raises
    ------
    WattridgeError
        Where the value hardly ever changes.
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
    """Return a counter's rises as mean power.

    Parameters
    ----------
    counter : Ticks
        The n ticks of an energy counter, with values in J.

    Returns
    -------
    Ticks
        The n - 1 rises, W: each value is the mean over the interval that ends with its tick.
    """
    return Ticks(
        counter.time_s[1:], np.diff(counter.value) / np.diff(counter.time_s), counter.refresh_s, counter.margin_s
    )
