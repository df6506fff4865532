"""The quick characterisation of a board's power sources: at most 8 s, enough to begin to measure with.

A step of load from rest, then a wave of short bursts, all with a load in the middle of the board's range of power: no
time is spent on finding the heaviest that no limit holds back. It ends as soon as the driver's buffer of samples is
known, which is what measures where a board has it. The figures are kept with their wide margins, and a source that is
not known sharply enough is left to the full characterisation.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from ....base.errors import WattridgeError
from ....sensors.clock import Clock
from ....sensors.gpu import Gpu, Load
from ..launching import LaunchingGpu
from .observed import Observed
from .sensor_figures import MEASURABLE, PARTS, Characterisation, choose_source, require_undisturbed
from .square_wave import Stopped, WaveDriver

OnProgress = Callable[[str, float, float], None]  # what is done, in words; seconds done; seconds in all, at most


class Estimate:
    """Progress of work that is done part by part, in seconds on one clock.

    How long a part takes is known only as a bound. So the total is the time so far and the bounds of everything that
    may still come: it shrinks where a part proves shorter or needless, and never grows. The time done never goes back.
    `on_progress` is called from the thread that reports.
    """

    def __init__(self, clock: Clock, parts: Mapping[str, float], on_progress: OnProgress | None) -> None:
        """Begin; `parts` has the words of each part and the seconds that it takes at most, in their order."""
        self._clock = clock
        self._begun_ns = self._part_ns = clock.now_ns()
        self._left = dict(parts)
        self._part, self._most_s = "", 0.0
        self._total_s = sum(parts.values())
        self._on_progress = on_progress

    @property
    def seconds(self) -> float:
        """Seconds done by now."""
        return self._since_s(self._begun_ns)

    def begin(self, part: str) -> None:
        """Begin a part; the parts before it are done, or not needed.

        Parameters
        ----------
        part : str
            The words of the part, one of those that the estimate began with.
        """
        while self._left and self._part != part:
            self._part = next(iter(self._left))
            self._most_s = self._left.pop(self._part)
        self._part_ns = self._clock.now_ns()
        self.report()

    @contextmanager
    def standing(self) -> Iterator[None]:
        """Leave the time inside out of account, as a wait for something else."""
        begun_ns = self._clock.now_ns()
        try:
            yield
        finally:
            waited_ns = self._clock.now_ns() - begun_ns
            self._begun_ns += waited_ns
            self._part_ns += waited_ns

    def end(self) -> None:
        """Report that nothing is left to do."""
        self._left.clear()
        self._most_s = 0.0
        self.report()

    def report(self) -> None:
        """Report the progress."""
        done_s = self.seconds
        left_s = max(0.0, self._most_s - self._since_s(self._part_ns)) + sum(self._left.values())
        self._total_s = min(self._total_s, done_s + left_s)
        if self._on_progress is not None:
            self._on_progress(self._part, min(done_s, self._total_s), self._total_s)

    def _since_s(self, time_ns: int) -> float:
        return (self._clock.now_ns() - time_ns) / 1e9


QUICK: Final = PARTS[0]
QUICK_S: Final = 8.0  # on the board's clock, at most
FITTING_S: Final = 0.6  # of it, to make figures of the record
REST_S: Final = 0.5  # before the step
AGAIN_REST_S: Final = 1.1  # before another step: no average may hold the one before
STEP_S: Final = 1.3  # longer than the slowest average known, and long enough for a limit to act
AFTER_S: Final = 0.2  # and after it: from then on the clocks stay up, and rest has one power
SHORT_ON_S: Final = (0.05, 0.2)
SHORT_OFF_S: Final = (0.08, 0.3)
PIECE_S: Final = 1.0  # of the wave, after which it is looked whether that is enough
ENOUGH: Final = 0.2  # of a refresh: the margin of the driver's samples then, 4 ms of 20
HELD_UP_S: Final = 0.3  # without a poll: longer than any burst
LOOSE: Final = "how late its power is is not known well enough: the figures of its generation count"
LIMITED: Final = "a limit acted under every load: the power may not have been a clean square wave"


def quick_look(
    gpu: LaunchingGpu,
    loads: Sequence[Load],
    *,
    seed: int = 0,
    estimate: Estimate | None = None,
    stop: threading.Event | None = None,
) -> Characterisation | None:
    """Characterise the board's power sources within 8 s, with margins.

    Parameters
    ----------
    gpu : LaunchingGpu
        The board.
    loads : sequence of Load
        Loads that differ in power, heaviest first.
    seed : int, optional
        Of the random half-periods of the wave.
    estimate : Estimate or None, optional
        The progress of a longer look that this is a part of.
    stop : threading.Event or None, optional
        Ends the look when set.

    Returns
    -------
    Characterisation or None
        Stopped early, or where the program was kept from polling, one without the part; None where too little is known.

    Raises
    ------
    WattridgeError
        Where the board reports no power, or something else runs on it.
    GpuLost
        When the board is gone.
    """
    estimate = estimate or Estimate(gpu.clock, {QUICK: QUICK_S}, None)
    begun_ns = gpu.clock.now_ns()
    driver = WaveDriver(gpu, seed, estimate.report)
    middle = len(loads) // 2
    drive = _Drive(driver, loads[middle], begun_ns)
    stopped = False
    try:
        drive.to_the_end(loads[min(middle + 1, len(loads) - 1)], stop)
    except Stopped:
        stopped = True
    observed = drive.observed
    sources, missing = observed.figures(driver)
    held_up_s = drive.record.held_up_s
    if held_up_s > HELD_UP_S:
        sources = {  # the values reported meanwhile are not known
            name: figures and replace(figures, lag_margin_ms=figures.lag_margin_ms + held_up_s * 1e3)
            for name, figures in sources.items()
        }
    usable = {name: figures if figures is not None and figures.usable else None for name, figures in sources.items()}
    try:
        any_usable = any(usable[name] for name in MEASURABLE)
        chosen, measure_s, why = choose_source(usable if any_usable else sources, gpu.info.label)
    except WattridgeError:
        if stopped:
            return None
        raise
    require_undisturbed(sources[chosen], gpu.info.label)
    return Characterisation(
        uuid=gpu.info.uuid,
        gpu=gpu.info.name,
        driver=gpu.info.driver,
        source=gpu.info.source,
        declared=gpu.info.power_source,
        sources=sources,
        missing=missing,
        chosen=chosen,
        why=why,
        measure_ms=measure_s * 1e3,
        counter_ratio=None,
        load=drive.load.name,
        seconds=(gpu.clock.now_ns() - begun_ns) / 1e9,
        timestamp_s=time.time(),
        notes=tuple(note for note, holds in ((LIMITED, drive.record.reasons), (LOOSE, not usable[chosen])) if holds),
        parts=() if stopped or held_up_s > HELD_UP_S else (QUICK,),
    )


class _Drive:
    """The load of a quick look, and the record of the sources under it."""

    def __init__(self, driver: WaveDriver, load: Load, begun_ns: int) -> None:
        self.load = load
        self._driver = driver
        self._clock = driver.gpu.clock
        self._ends_ns = begun_ns + round((QUICK_S - FITTING_S) * 1e9)
        self.record, self.counts_from_ns = driver.start(), self._clock.now_ns()

    def to_the_end(self, lighter: Load, stop: threading.Event | None) -> None:
        """Drive a step, of the lighter load where a limit acts, and a wave for the time left. Raises Stopped."""
        self._step(REST_S, stop)
        if self.record.reasons and self.load != lighter:
            self.load = lighter
            self.record = self._driver.start()
            self._step(AGAIN_REST_S, stop)
        self._driver.rest(AFTER_S, stop)
        self.counts_from_ns = self._clock.now_ns()
        while (left_s := (self._ends_ns - self._clock.now_ns()) / 1e9 - SHORT_ON_S[1] - SHORT_OFF_S[1]) > 0:
            self._driver.wave(self.load, min(PIECE_S, left_s), stop, on_s=SHORT_ON_S, off_s=SHORT_OFF_S)
            if self._driver.has("buffer") and self.observed.knows("buffer", ENOUGH):
                return

    @property
    def observed(self) -> Observed:
        """The record so far."""
        return Observed(self.record, self.counts_from_ns, self._driver.gpu.info.label)

    def _step(self, rest_s: float, stop: threading.Event | None) -> None:
        self._driver.rest(rest_s, stop)
        self._driver.run(self.load, STEP_S, stop)


IDLE_S: Final = 10.0  # without work: longer than a program pauses between two of its steps
_LOOK_S: Final = 0.25


def is_busy(gpu: Gpu) -> bool:
    """Return whether the board is in use now.

    Parameters
    ----------
    gpu : Gpu
        The board.

    Returns
    -------
    bool
        Whether its utilisation is above 0; False if the reading failed this time.

    Raises
    ------
    WattridgeError
        Where the board does not report its utilisation.
    GpuLost
        When the board is gone.
    """
    available = [channel.name if channel.available else "" for channel in gpu.channels]
    if "utilisation_percent" not in available:
        raise WattridgeError("it does not report whether it idles", gpu.info.label, "leave out --when-idle")
    percent = gpu.read().values[available.index("utilisation_percent")]
    return not math.isnan(percent) and percent > 0


def await_idle(gpu: Gpu, stop: threading.Event | None) -> None:
    """Return once the board has idled for `IDLE_S`.

    Parameters
    ----------
    gpu : Gpu
        The board.
    stop : threading.Event or None
        Ends the wait when set.

    Raises
    ------
    WattridgeError
        Where the board does not report its utilisation.
    GpuLost
        When the board is gone.
    """
    since_ns = gpu.clock.now_ns()
    while gpu.clock.now_ns() - since_ns < IDLE_S * 1e9:
        if is_busy(gpu):
            since_ns = gpu.clock.now_ns()
        if gpu.clock.wait(_LOOK_S, stop):
            return
