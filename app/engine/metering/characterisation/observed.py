"""`Observed`: the record of a board's power sources under a wave of load, and the figures that follow from it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from ....base.errors import WattridgeError
from .response import LEAST_CHANGES, ResponseFit, Spans, fit_response, increments, spans_of, ticks_of
from .sensor_figures import SOURCES, Answer, Floats, LowPass, SourceFigures
from .square_wave import ON_S, WaveDriver, WaveRecord

BEFORE_S: Final = 0.2  # the step, as the plot shows it
TAIL_S: Final = 0.5  # at the end of a step, in which the final power is read
SETTLED: Final = 0.03  # a reading within this share of the final one has settled
RISEN_S: Final = 0.4  # into a step, from when on its power is steady
LEAST_STEADY: Final = 6  # values
NO_ANSWER: Final = Answer(np.empty(0), np.empty(0))


@dataclass(frozen=True, slots=True)
class _Series:
    """One source's values of a record; arrays of shape (n,). `windows_s` where they are known (counter)."""

    time_s: Floats
    power_w: Floats
    refresh_s: float
    windows_s: Floats | None = None
    margin_s: float = 0.0  # of the times


class Observed:
    """The record of one wave. Times under load that are longer than any of a wave are steps."""

    def __init__(self, record: WaveRecord, counts_from_ns: int, where: str) -> None:
        """Take a record, whose values count from a time on: ns on the board's clock."""
        self._record = record
        self._origin_ns = counts_from_ns
        self._where = where
        self._fits: dict[str, ResponseFit] = {}

    def figures(
        self,
        driver: WaveDriver,
        known: Mapping[str, SourceFigures | None] | None = None,
        answers: Mapping[str, Answer] | None = None,
    ) -> tuple[dict[str, SourceFigures | None], dict[str, str]]:
        """Return the figures of every source, and why one has none.

        Parameters
        ----------
        driver : WaveDriver
            What drove the wave.
        known : mapping of str to SourceFigures or None, optional
            Figures by source; those that are sharp stay as they are.
        answers : mapping of str to Answer or None, optional
            Answers to the steps of another record; those of this one are taken where they are not given.

        Returns
        -------
        figures : dict of str to SourceFigures or None
            The figures by the names in SOURCES; None if there are none.
        missing : dict of str to str
            Why, of each source without figures.
        """
        by_source: dict[str, SourceFigures | None] = dict.fromkeys(SOURCES)
        missing = dict(driver.missing)
        for name in SOURCES:
            before = (known or {}).get(name)
            if name in missing:
                continue
            if before is not None and before.sharp:
                by_source[name] = before
                continue
            try:
                by_source[name] = self._figures(name, driver.read_s[name], (answers or {}).get(name))
            except WattridgeError as error:
                missing[name] = error.what
        return by_source, missing

    def knows(self, name: str, margin: float) -> bool:
        """Return whether a source is known well enough by now.

        Parameters
        ----------
        name : str
            The source, one in SOURCES.
        margin : float
            Of what its values average and how late they are, as a share of its refresh, at most.

        Returns
        -------
        bool
            False where the board does not have it.
        """
        try:
            figures = self._figures(name, math.nan, None)
        except WattridgeError:
            return False
        return figures.margin_ms <= margin * figures.refresh_ms

    def answer(self, name: str) -> Answer:
        """Return the answer of a source to the steps of the record, laid over each other.

        Parameters
        ----------
        name : str
            The source, one in SOURCES that the board has.

        Returns
        -------
        Answer
            The answer, with times in s and powers in W; empty if the record holds no steps.

        Raises
        ------
        WattridgeError
            Where the record holds hardly any values of the source.
        """
        series = self._series(name)
        spans = self._spans
        times, powers, settled_s = [], [], 0.0
        for start_s, end_s in zip(spans.start_s, spans.end_s, strict=True):
            if end_s - start_s <= 2 * ON_S[1]:
                continue
            near = (series.time_s >= start_s - BEFORE_S) & (series.time_s <= end_s)
            time_s, power_w = series.time_s[near] - start_s, series.power_w[near]
            times.append(time_s)
            powers.append(power_w)
            tail = power_w[time_s >= end_s - start_s - TAIL_S]
            if len(tail):
                off = (np.abs(power_w - np.median(tail)) > SETTLED * np.median(tail)) & (time_s > 0)
                settled_s = max(settled_s, float(np.max(time_s[off], initial=0.0)))
        if not times:
            return NO_ANSWER
        time_s = np.concatenate(times)
        order = np.argsort(time_s, kind="stable")
        return Answer(time_s[order], np.concatenate(powers)[order], settled_s)

    def counter_ratio(self, chosen: str) -> float | None:
        """Return the rise of the energy counter over the integral of a source's power.

        Parameters
        ----------
        chosen : str
            The source, one in SOURCES.

        Returns
        -------
        float or None
            The ratio; None unless `figures` has fitted both to this record.
        """
        if not {"counter", chosen} <= self._fits.keys():
            return None
        counter, best = self._fits["counter"], self._fits[chosen]
        ticks = ticks_of(self._record.changes["counter"], self._origin_ns).since(0.0)
        last = int(np.searchsorted(ticks.time_s, min(counter.until_s, best.until_s), side="right")) - 1
        from_s, to_s = float(ticks.time_s[0]) - counter.lag_s, float(ticks.time_s[last]) - counter.lag_s
        return float(ticks.value[last] - ticks.value[0]) / best.energy_j(self._spans, from_s, to_s)

    # --- inside -----------------------------------------------------------------------------------------------------

    @property
    def _spans(self) -> Spans:
        return spans_of(self._record.spans, self._origin_ns)

    def _figures(self, name: str, read_s: float, answer: Answer | None) -> SourceFigures:
        """Raises WattridgeError if the source does not answer to the load."""
        series = self._series(name)
        keep = series.time_s >= 0
        windows_s = None if series.windows_s is None else series.windows_s[keep]
        if keep.sum() < LEAST_CHANGES or not self._record.spans or not np.ptp(series.power_w[keep]):
            raise WattridgeError("the reading does not change under load", self._where, "see: wattridge monitor")
        fit = fit_response(series.time_s[keep], series.power_w[keep], self._spans, windows_s=windows_s)
        self._fits[name] = fit
        answer = self.answer(name) if answer is None else answer
        cumulative = windows_s is not None
        return SourceFigures(
            refresh_ms=series.refresh_s * 1e3,
            window_ms=None if cumulative else fit.window_s * 1e3,
            lag_ms=fit.lag_s * 1e3,
            read_us=read_s * 1e6,
            window_margin_ms=None if cumulative else math.hypot(fit.window_margin_s, series.margin_s) * 1e3,
            lag_margin_ms=math.hypot(fit.lag_margin_s, series.margin_s) * 1e3,
            noise_percent=min(fit.noise, self._steady_scatter(series)) * 100,
            settle_ms=settle_s(fit.lag_s, series.refresh_s, 0.0 if cumulative else fit.window_s, answer) * 1e3,
            published_ms=self._published_s() * 1e3 if name == "buffer" else None,
            answer=answer,
            low_pass=None if fit.low_pass is None else LowPass(*(1e3 * each for each in fit.low_pass)),
        )

    def _steady_scatter(self, series: _Series) -> float:
        """Relative standard deviation at the end of a step, where nothing but noise is left; inf if it is too short.

        The residual of a wave's fit is larger on a board whose power rises slowly.
        """
        scatter = math.inf
        for start_s, end_s in zip(self._spans.start_s, self._spans.end_s, strict=True):
            steady = (series.time_s >= start_s + RISEN_S) & (series.time_s <= end_s)
            if end_s - start_s <= 2 * ON_S[1] or steady.sum() < LEAST_STEADY:
                continue
            time_s, power_w = series.time_s[steady], series.power_w[steady]
            line = np.polyval(np.polyfit(time_s, power_w, 1), time_s)  # it warms meanwhile
            scatter = min(scatter, float(np.sqrt(((power_w - line) ** 2).sum() / (len(line) - 2)) / power_w.mean()))
        return scatter

    def _series(self, name: str) -> _Series:
        seen = self._record
        if name == "buffer":
            if len(seen.samples) < LEAST_CHANGES:
                raise WattridgeError("the buffer holds hardly any samples", self._where, "see: wattridge monitor")
            stamps = np.asarray([s.time_ns - self._origin_ns for s in seen.samples], dtype=np.float64) / 1e9
            return _Series(stamps, np.asarray([s.power_w for s in seen.samples]), float(np.median(np.diff(stamps))))
        ticks = ticks_of(seen.changes[name], self._origin_ns, self._where)
        if name != "counter":
            return _Series(ticks.time_s, ticks.value, ticks.refresh_s, margin_s=ticks.margin_s)
        windows_s = np.diff(ticks.time_s)
        rises = increments(ticks)
        return _Series(rises.time_s, rises.value, ticks.refresh_s, windows_s, ticks.margin_s)

    def _published_s(self) -> float:
        """The interval at which new samples appear in the buffer, s."""
        times = np.asarray([time_ns for time_ns, _ in self._record.drains], dtype=np.float64) / 1e9
        return float(np.median(np.diff(times)))


def settle_s(lag_s: float, refresh_s: float, window_s: float, answer: Answer) -> float:
    """Return the time from a step of load until readings stay within 3 % of the final value.

    Parameters
    ----------
    lag_s : float
        How late the source is, s.
    refresh_s : float
        From one value to the next, s.
    window_s : float
        What a value averages, s; 0 for a counter.
    answer : Answer
        The answer of the source to steps.

    Returns
    -------
    float
        The time, s: the longer one of what the figures and the answer show.
    """
    return max(lag_s + refresh_s + window_s, answer.settled_s + refresh_s)
