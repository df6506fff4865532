"""Characterises a board's power sources under a square wave of load, and chooses the one to measure through."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from ....errors import WattridgeError
from ....sensors.load import Load
from ..launching import BringsLoads, LaunchingGpu
from . import aftereffect as aftereffects
from .figures import SOURCES, WORDS, Answer, Characterisation, Floats, SourceFigures
from .response import ResponseFit, Spans, fit_response, spans_of
from .square_wave import Stopped, WaveDriver, WaveRecord
from .ticks import LEAST_CHANGES, increments, ticks_of

PROBE_S: Final = 1.0  # of each load, for a limit to show; and of rest after one under which it did
LOOK_S: Final = 0.2  # afterwards, for a limit that acts
WARM_S: Final = 4.0  # of the wave, before it counts
WAVE_S: Final = 20.0  # and as much again while a figure is not known sharply
PATIENCE_S: Final = 60.0  # of wave, in all
VIRTUAL_PATIENCE_S: Final = 240.0  # on a clock that only advances while a thread waits, where time costs nothing
STEPS: Final = 3
REST_S: Final = 1.6  # before a step
SHIFT_S: Final = 0.037  # of the later steps, so that they meet the sensors at other phases
STEP_S: Final = 2.4  # longer than the slowest average
BEFORE_S: Final = 0.2  # the step, as the picture shows it
TAIL_S: Final = 0.5  # at the end of a step, in which the final power is read
SETTLED: Final = 0.03  # a reading within this share of the final one has settled
READINGS: Final = 10  # that a window holds at least
SHORTEST_WINDOW_S: Final = 0.2
TARGET: Final = 0.01  # 95 % confidence of the mean power
SIMULATED_SHARES: Final = (1.0, 0.7, 0.5, 0.3, 0.15)  # of a full load's rate
SHARP: Final = 0.05  # 95 % margins within this share are sharp
SHARP_MS: Final = 0.5  # or within this


def wave_loads(gpu: LaunchingGpu) -> Sequence[Load]:
    """Loads to drive the wave with, heaviest first. Raises WattridgeError where the board brings none."""
    if isinstance(gpu, BringsLoads):
        return gpu.wave_loads()
    if gpu.info.source != "simulated":
        raise WattridgeError("there is no load to characterise this board with", gpu.info.label, "name a kernel")
    from ....sensors.simulated.profiles import full_load

    full = full_load()
    return [replace(full, issue_efficiency=share * full.issue_efficiency) for share in SIMULATED_SHARES]


def characterise(
    gpu: LaunchingGpu,
    loads: Sequence[Load],
    *,
    seed: int = 0,
    patience_s: float | None = None,
    on_progress: Callable[[float, float], None] | None = None,
    stop: threading.Event | None = None,
) -> Characterisation | None:
    """Refresh, window, lag and cost of every power source of the board; None if stopped.

    Takes 40 s on the board's clock or more, and 30 s more where the driver's buffer is chosen, for what its samples
    still hold of the load before. The wave goes on for at most `patience_s` (60 s; 240 s on a virtual clock) while a
    figure is not known sharply: the lag of a slow average takes longest. It is driven with the first of `loads`
    (heaviest first) under which no limit acts: at a limit the clocks move, and the power with them. `on_progress` is
    called with the seconds done and in all.
    Raises WattridgeError where the board reports no power at all, GpuLost when it is gone.
    """
    progress = _Progress(gpu, PROBE_S + WARM_S + WAVE_S + STEPS * (REST_S + STEP_S), on_progress)
    driver = WaveDriver(gpu, seed, progress.report)
    try:
        load, notes = _choose_load(driver, loads, stop)
        steps = driver.start()
        for number in range(STEPS):
            driver.rest(REST_S + number * SHIFT_S, stop)
            driver.run(load, STEP_S, stop)
        wave = driver.start()
        driver.wave(load, WARM_S, stop)
        observed = _Observed(wave, steps, gpu.clock.now_ns(), gpu.info.label)
        waves = max(1, round(_patience_s(gpu, patience_s) / WAVE_S))
        loose = _drive_until_sharp(driver, observed, load, waves, progress, stop)
        chosen, measure_s, why = _choose(observed.sources, gpu.info.label)
        aftereffect = None
        if chosen == "buffer" and loads[-1] != load:
            progress.total_s = progress.seconds + aftereffects.SECONDS
            aftereffect = aftereffects.look_at_aftereffect(driver, load, loads[-1], stop)
    except Stopped:
        return None
    notes += tuple(f"{WORDS[name]}: window and lag are known only within their margins" for name in loose)
    return Characterisation(
        gpu=gpu.info.name,
        driver=gpu.info.driver,
        source=gpu.info.source,
        declared=gpu.info.power_source,
        sources=observed.sources,
        missing=observed.missing,
        chosen=chosen,
        why=why,
        measure_ms=measure_s * 1e3,
        counter_ratio=observed.counter_ratio(chosen),
        load=load.name,
        seconds=progress.seconds,
        timestamp_s=time.time(),
        notes=notes,
        aftereffect=aftereffect,
    )


class _Progress:
    """The seconds done and in all, on the board's clock; `total_s` changes as more proves to be needed."""

    def __init__(self, gpu: LaunchingGpu, total_s: float, on_progress: Callable[[float, float], None] | None) -> None:
        self.total_s = total_s
        self._clock = gpu.clock
        self._begun_ns = gpu.clock.now_ns()
        self._on_progress = on_progress

    @property
    def seconds(self) -> float:
        """Done by now."""
        return (self._clock.now_ns() - self._begun_ns) / 1e9

    def report(self) -> None:
        if self._on_progress is not None:
            done_s = self.seconds
            self._on_progress(done_s, max(done_s, self.total_s))


def _drive_until_sharp(
    driver: WaveDriver, observed: _Observed, load: Load, waves: int, progress: _Progress, stop: threading.Event | None
) -> list[str]:
    """Drive at most so many waves, until all figures are known sharply; the sources of those that are not."""
    while True:
        driver.wave(load, WAVE_S, stop)
        observed.fit(driver)
        loose = [name for name, figures in observed.sources.items() if figures is not None and not _sharp(figures)]
        waves -= 1
        if not loose or not waves:
            return loose
        progress.total_s += WAVE_S


def _choose_load(
    driver: WaveDriver, loads: Sequence[Load], stop: threading.Event | None
) -> tuple[Load, tuple[str, ...]]:
    for load in loads:
        driver.run(load, PROBE_S, stop)
        seen = driver.start()
        driver.run(load, LOOK_S, stop)
        if not seen.reasons:
            return load, ()
        driver.rest(PROBE_S, stop)
    return loads[-1], ("a limit acted under every load: the power may not have been a clean square wave",)


def _patience_s(gpu: LaunchingGpu, asked_s: float | None) -> float:
    if asked_s is not None:
        return asked_s
    return PATIENCE_S if math.isfinite(gpu.clock.speed) else VIRTUAL_PATIENCE_S


def _sharp(figures: SourceFigures) -> bool:
    margins = [(figures.lag_ms, figures.lag_margin_ms)]
    if figures.window_ms is not None and figures.window_margin_ms is not None:
        margins.append((figures.window_ms, figures.window_margin_ms))
    return all(margin_ms <= max(SHARP * abs(value_ms), SHARP_MS) for value_ms, margin_ms in margins)


@dataclass(frozen=True, slots=True)
class _Series:
    """One source's values of a record; arrays of shape (n,). `windows_s` where they are known (counter)."""

    time_s: Floats
    power_w: Floats
    refresh_s: float
    windows_s: Floats | None = None
    margin_s: float = 0.0  # of the times


class _Observed:
    """The two records of a board: the wave, from which the figures come, and the steps from rest."""

    def __init__(self, wave: WaveRecord, steps: WaveRecord, counts_from_ns: int, where: str) -> None:
        self._wave, self._steps = wave, steps
        self._origin_ns = counts_from_ns
        self._where = where
        self.sources: dict[str, SourceFigures | None] = dict.fromkeys(SOURCES)
        self.missing: dict[str, str] = {}  # why a source has no figures
        self._fits: dict[str, ResponseFit] = {}

    def fit(self, driver: WaveDriver) -> None:
        """Figures of every source, as far as the wave has gone. What is known sharply is not fitted again."""
        self.missing = dict(driver.missing)
        for name, known in self.sources.items():
            if name in self.missing or (known is not None and _sharp(known)):
                continue
            try:
                self.sources[name], self._fits[name] = self._figures(name, driver.read_s[name])
            except WattridgeError as error:
                self.missing[name] = error.what

    @property
    def _spans(self) -> Spans:
        return spans_of(self._wave.spans, self._origin_ns)

    def _figures(self, name: str, read_s: float) -> tuple[SourceFigures, ResponseFit]:
        """Raises WattridgeError where the source does not answer to the load."""
        series = self._series(self._wave, name)
        keep = series.time_s >= 0
        windows_s = None if series.windows_s is None else series.windows_s[keep]
        if keep.sum() < LEAST_CHANGES:
            raise WattridgeError("the reading does not change under load", self._where, "see: wattridge monitor")
        fit = fit_response(series.time_s[keep], series.power_w[keep], self._spans, windows_s=windows_s)
        answer, settled_s = self._answer(name)
        cumulative = windows_s is not None
        seen_s = fit.lag_s + series.refresh_s + (0.0 if cumulative else fit.window_s)
        return SourceFigures(
            refresh_ms=series.refresh_s * 1e3,
            window_ms=None if cumulative else fit.window_s * 1e3,
            lag_ms=fit.lag_s * 1e3,
            read_us=read_s * 1e6,
            window_margin_ms=None if cumulative else math.hypot(fit.window_margin_s, series.margin_s) * 1e3,
            lag_margin_ms=math.hypot(fit.lag_margin_s, series.margin_s) * 1e3,
            noise_percent=fit.noise * 100,
            settle_ms=max(seen_s, settled_s + series.refresh_s) * 1e3,
            published_ms=self._published_s() * 1e3 if name == "buffer" else None,
            answer=answer,
        ), fit

    def counter_ratio(self, chosen: str) -> float | None:
        """The counter's rise during the wave over the integral of the chosen source in the same time."""
        if "counter" not in self._fits:
            return None
        counter, best = self._fits["counter"], self._fits[chosen]
        ticks = ticks_of(self._wave.changes["counter"], self._origin_ns).since(0.0)
        last = int(np.searchsorted(ticks.time_s, min(counter.until_s, best.until_s), side="right")) - 1
        from_s, to_s = float(ticks.time_s[0]) - counter.lag_s, float(ticks.time_s[last]) - counter.lag_s
        return float(ticks.value[last] - ticks.value[0]) / best.energy_j(self._spans, from_s, to_s)

    def _series(self, seen: WaveRecord, name: str) -> _Series:
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
        """How often new samples appear in the buffer."""
        times = np.asarray([time_ns for time_ns, _ in self._wave.drains], dtype=np.float64) / 1e9
        return float(np.median(np.diff(times)))

    def _answer(self, name: str) -> tuple[Answer, float]:
        """The steps laid over each other, and when the last reading off the final power appeared, s."""
        series = self._series(self._steps, name)
        spans = spans_of(self._steps.spans, self._origin_ns)
        times, powers, settled_s = [], [], 0.0
        for start_s, end_s in zip(spans.start_s, spans.end_s, strict=True):
            near = (series.time_s >= start_s - BEFORE_S) & (series.time_s <= end_s)
            time_s, power_w = series.time_s[near] - start_s, series.power_w[near]
            times.append(time_s)
            powers.append(power_w)
            tail = power_w[time_s >= end_s - start_s - TAIL_S]
            if len(tail):
                off = (np.abs(power_w - np.median(tail)) > SETTLED * np.median(tail)) & (time_s > 0)
                settled_s = max(settled_s, float(np.max(time_s[off], initial=0.0)))
        time_s = np.concatenate(times)
        order = np.argsort(time_s, kind="stable")
        return Answer(time_s[order], np.concatenate(powers)[order]), settled_s


def _choose(sources: Mapping[str, SourceFigures | None], where: str) -> tuple[str, float, str]:
    """The source that gives a mean power in the least time: its name, the window it needs in s, and why."""
    needs: dict[str, tuple[float, float]] = {}  # seconds in all, of which the window
    for name in ("buffer", "instant", "average"):
        figures = sources[name]
        if figures is None or figures.window_ms is None:
            continue
        values = max(READINGS, (1.96 * figures.noise_percent / 100 / TARGET) ** 2 + 2)
        window_s = max(SHORTEST_WINDOW_S, values * figures.refresh_ms / 1e3, figures.window_ms / 1e3)
        needs[name] = (window_s + figures.settle_ms / 1e3, window_s)
    if not needs:
        raise WattridgeError("the board reports no power", where, "energy cannot be measured on it")
    ranked = sorted(needs, key=lambda name: needs[name])
    times = ", ".join(f"{needs[name][0]:.2g} s through {WORDS[name]}" for name in ranked)
    return ranked[0], needs[ranked[0]][1], f"least time for a mean power after a change of load: {times}"
