"""The full characterisation of a board's power sources under a square wave of load, and the choice of one of them.

It is made part by part, so that a caller can keep each part at once, and go on from there another time.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from ....base.errors import WattridgeError
from ....sensors.gpu import Load
from ..launching import BringsLoads, LaunchingGpu
from . import aftereffect as aftereffects
from .observed import Observed, settle_s
from .quick_look import LIMITED, QUICK_S, Estimate, OnProgress, quick_look
from .sensor_figures import PARTS, WORDS, Characterisation, SourceFigures, choose_source, require_undisturbed
from .square_wave import OFF_S, ON_S, Stopped, WaveDriver

PROBE_S: Final = 1.0  # of each load, for a limit to show; and of rest after one under which it did
LOOK_S: Final = 0.2  # afterwards, for a limit that acts
WARM_S: Final = 4.0  # of the wave, before it counts
WAVE_S: Final = 20.0  # and as much again while a figure is not known sharply
PATIENCE_S: Final = 60.0  # of wave, in all
VIRTUAL_PATIENCE_S: Final = 240.0  # on a clock that only advances while a thread waits, where time costs nothing
FITTING_S: Final = 2.0  # to make figures of a wave, at most
STEPS: Final = 3
REST_S: Final = 1.6  # before a step
SHIFT_S: Final = 0.037  # of the later steps, so that they meet the sensors at other phases
STEP_S: Final = 2.4  # longer than the slowest average
SIMULATED_SHARES: Final = (1.0, 0.7, 0.5, 0.3, 0.15)  # of a full load's rate
_QUICK, _STEPS, _WAVE, _AFTEREFFECT = PARTS
DOING: Final = {  # parts of a look, in the words of its progress
    _QUICK: "a quick look at the power sensor",
    _STEPS: "steps of load, from rest",
    _WAVE: "a square wave of load",
    _AFTEREFFECT: "heavy and light loads in turn",
}


def wave_loads(gpu: LaunchingGpu) -> Sequence[Load]:
    """Return loads to drive the wave with.

    Parameters
    ----------
    gpu : LaunchingGpu
        The board.

    Returns
    -------
    sequence of Load
        The loads, heaviest first.

    Raises
    ------
    WattridgeError
        Where the board brings none, and is not simulated.
    """
    if isinstance(gpu, BringsLoads):
        return gpu.wave_loads()
    if gpu.info.source != "simulated":
        raise WattridgeError("there is no load to characterise this board with", gpu.info.label, "name a kernel")
    from ....sensors.simulated.profiles import full_load

    full = full_load()
    return [
        replace(full, name=f"{share:.0%} of a full load", issue_efficiency=share * full.issue_efficiency)
        for share in SIMULATED_SHARES
    ]


def characterise(
    gpu: LaunchingGpu,
    loads: Sequence[Load],
    *,
    characterisation: Characterisation | None = None,
    seed: int = 0,
    patience_s: float | None = None,
    on_progress: OnProgress | None = None,
    on_part: Callable[[Characterisation], None] | None = None,
    before_part: Callable[[], None] | None = None,
    stop: threading.Event | None = None,
) -> Characterisation | None:
    """Find refresh, window, lag and cost of every power source of a board, and the aftereffect of the load before.

    Takes 45 s on the board's clock or more, and 30 s more where the driver's buffer is chosen. The wave is driven with
    the first load under which no limit acts: at a limit the clocks move, and the power with them.

    Parameters
    ----------
    gpu : LaunchingGpu
        The board.
    loads : sequence of Load
        Loads that differ in power, heaviest first.
    characterisation : Characterisation or None, optional
        An unfinished characterisation of the same board, to go on from.
    seed : int, optional
        Of the random half-periods of the wave.
    patience_s : float or None, optional
        How long the wave goes on at most while a figure is not known sharply, s: 60, and 240 on a virtual clock. The
        lag of a slow average takes longest.
    on_progress : OnProgress or None, optional
        Called with the part in words, the seconds done, and the seconds in all at most.
    on_part : callable or None, optional
        Called with the characterisation after each part.
    before_part : callable or None, optional
        Called before each part; it may wait for a suitable time.
    stop : threading.Event or None, optional
        Ends the characterisation when set.

    Returns
    -------
    Characterisation or None
        Stopped early, an unfinished one; None if nothing is known.

    Raises
    ------
    WattridgeError
        Where the board reports no power at all.
    GpuLost
        When the board is gone.
    """
    look = _Look(gpu, loads, seed, on_part, stop)
    look.known = characterisation if characterisation is None or not characterisation.complete else None
    if patience_s is None:
        patience_s = PATIENCE_S if math.isfinite(gpu.clock.speed) else VIRTUAL_PATIENCE_S
    waves = max(1, round(patience_s / WAVE_S))
    left = [part for part in PARTS if part not in look.parts]
    waves_left = waves if look.known is None else max(1, waves - look.known.waves)
    most_s = {
        _QUICK: QUICK_S,
        _STEPS: len(loads) * (2 * PROBE_S + LOOK_S) + STEPS * (REST_S + STEP_S + STEPS * SHIFT_S),
        _WAVE: WARM_S + waves_left * (WAVE_S + FITTING_S) + (waves_left + 1) * (ON_S[1] + OFF_S[1]),
        _AFTEREFFECT: aftereffects.SECONDS + PROBE_S,
    }
    make: dict[str, Callable[[Estimate], None]] = {
        _QUICK: look.quick,
        _STEPS: look.steps,
        _WAVE: partial(look.wave, waves=waves),
        _AFTEREFFECT: look.aftereffect,
    }
    estimate = Estimate(gpu.clock, {DOING[part]: most_s[part] for part in left}, on_progress)
    try:
        for part in left:
            if before_part is not None:
                with estimate.standing():
                    before_part()
            estimate.begin(DOING[part])
            make[part](estimate)
    except Stopped:
        return look.known
    estimate.end()
    return look.known


class _Look:
    """The characterisation of one board; `known` is its state by now."""

    def __init__(
        self,
        gpu: LaunchingGpu,
        loads: Sequence[Load],
        seed: int,
        on_part: Callable[[Characterisation], None] | None,
        stop: threading.Event | None,
    ) -> None:
        self.known: Characterisation | None = None
        self._gpu = gpu
        self._loads = loads
        self._seed = seed
        self._on_part = on_part
        self._stop = stop

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts that are known."""
        return () if self.known is None else self.known.parts

    def quick(self, estimate: Estimate) -> None:
        """The part that a session makes do with. Raises Stopped."""
        result = quick_look(self._gpu, self._loads, seed=self._seed, estimate=estimate, stop=self._stop)
        if result is None:
            raise Stopped
        self._keep(result)
        if self._stop is not None and self._stop.is_set():
            raise Stopped
        self.known = replace(result, parts=(_QUICK,))  # also where it was held up: the rest shows more

    def steps(self, estimate: Estimate) -> None:
        """The load that the rest is driven with, and each source's answer to steps of it. Raises Stopped."""
        begun_s, driver = estimate.seconds, WaveDriver(self._gpu, self._seed, estimate.report)
        load, notes = _choose_load(driver, self._loads, self._stop)
        record, begun_ns = driver.start(), self._gpu.clock.now_ns()
        for number in range(STEPS):
            driver.rest(REST_S + number * SHIFT_S, self._stop)
            driver.run(load, STEP_S, self._stop)
        observed, so_far = Observed(record, begun_ns, self._gpu.info.label), self._so_far
        sources = {
            name: figures if figures is None else _answering(figures, observed, name)
            for name, figures in so_far.sources.items()
        }
        self._done(_STEPS, replace(so_far, sources=sources, load=load.name, notes=notes), estimate.seconds - begun_s)

    def wave(self, estimate: Estimate, waves: int) -> None:
        """Window and lag of every source, until all are sharp or so many waves have been driven. Raises Stopped."""
        driver, load, so_far = WaveDriver(self._gpu, self._seed, estimate.report), self._load, self._so_far
        begun_s, record = estimate.seconds, driver.start()
        driver.wave(load, WARM_S, self._stop)
        observed = Observed(record, self._gpu.clock.now_ns(), self._gpu.info.label)
        answers = {name: figures.answer for name, figures in so_far.sources.items() if figures is not None}
        # of the waves before; a figure that is sharp after the quick look is sharper after a wave
        sharp = so_far.sources if so_far.waves else {}
        while True:
            driver.wave(load, WAVE_S, self._stop)
            sources, missing = observed.figures(driver, sharp, answers)
            chosen, measure_s, why = choose_source(sources, self._gpu.info.label)
            require_undisturbed(sources[chosen], self._gpu.info.label)
            ratio = observed.counter_ratio(chosen)
            so_far = replace(
                so_far,
                sources=sources,
                missing=missing,
                chosen=chosen,
                why=why,
                measure_ms=measure_s * 1e3,
                counter_ratio=so_far.counter_ratio if ratio is None else ratio,
            )
            sharp, seconds = sources, estimate.seconds - begun_s
            loose = [name for name, figures in sources.items() if figures is not None and not figures.sharp]
            if not loose or so_far.waves + 1 >= waves:
                break
            self._done(f"{_WAVE} {so_far.waves + 1}", so_far, seconds)
            so_far, begun_s = self._so_far, estimate.seconds
        notes = (f"{WORDS[name]}: window and lag are known only within their margins" for name in loose)
        self._done(_WAVE, replace(so_far, notes=(*so_far.notes, *notes)), seconds)

    def aftereffect(self, estimate: Estimate) -> None:
        """The aftereffect in the buffer's samples; None if another source is chosen. Raises Stopped."""
        begun_s, so_far, load = estimate.seconds, self._so_far, self._load
        aftereffect = None
        if so_far.chosen == "buffer" and self._loads[-1] != load:
            driver = WaveDriver(self._gpu, self._seed, estimate.report)
            aftereffect = aftereffects.look_at_aftereffect(driver, load, self._loads[-1], self._stop)
        self._done(_AFTEREFFECT, replace(so_far, aftereffect=aftereffect), estimate.seconds - begun_s)

    # --- inside -----------------------------------------------------------------------------------------------------

    @property
    def _so_far(self) -> Characterisation:
        assert self.known is not None, "the quick look comes first"
        return self.known

    @property
    def _load(self) -> Load:
        """The load of the wave, by its name."""
        name = self._so_far.load
        return next((load for load in self._loads if load.name == name), self._loads[-1])

    def _done(self, part: str, characterisation: Characterisation, seconds: float) -> None:
        self._keep(
            replace(characterisation, parts=(*characterisation.parts, part), seconds=characterisation.seconds + seconds)
        )

    def _keep(self, characterisation: Characterisation) -> None:
        self.known = replace(characterisation, timestamp_s=time.time())
        if self._on_part is not None:
            self._on_part(self.known)


def _answering(figures: SourceFigures, observed: Observed, name: str) -> SourceFigures:
    """The figures with the source's answer to the observed steps."""
    try:
        answer = observed.answer(name)
    except WattridgeError:  # hardly any values in so short a time
        return figures
    window_s = 0.0 if figures.window_ms is None else figures.window_ms / 1e3
    settled_s = settle_s(figures.lag_ms / 1e3, figures.refresh_ms / 1e3, window_s, answer)
    return replace(figures, answer=answer, settle_ms=settled_s * 1e3)


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
    return loads[-1], (LIMITED,)
