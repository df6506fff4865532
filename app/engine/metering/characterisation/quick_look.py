"""The quick look at a board's power sources: at most 8 s, enough to begin to measure with.

A step of load from rest, then a wave of short bursts, all with a load in the middle of what the board can draw: no time
is spent on finding the heaviest that no limit holds back. What so little shows is kept with its margins, and a source
that it does not show sharply enough is left to the full look.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ....errors import WattridgeError
from ....sensors.load import Load
from ..launching import LaunchingGpu
from .choosing import MEASURABLE, choose_source, require_undisturbed
from .estimate import Estimate
from .figures import PARTS, Characterisation, SourceFigures
from .observed import Observed
from .square_wave import Stopped, WaveDriver

QUICK: Final = PARTS[0]
QUICK_S: Final = 8.0  # on the board's clock, at most
FITTING_S: Final = 0.6  # of it, to make figures of what was seen
REST_S: Final = 0.5  # before the step
AGAIN_REST_S: Final = 1.1  # before another step: no average may hold the one before
STEP_S: Final = 1.3  # longer than the slowest average known, and long enough for a limit to act
AFTER_S: Final = 0.2  # and after it: from then on the clocks stay up, and rest has one power
SHORT_ON_S: Final = (0.05, 0.2)
SHORT_OFF_S: Final = (0.08, 0.3)
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
    """What 8 s show of the board's power sources, with margins. `loads` are heaviest first.

    When stopped, or where the program was kept from polling: what was seen, as a look that is not done; None where that
    is too little. Raises WattridgeError where the board reports no power, or something else runs on it; GpuLost when it
    is gone.
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
    observed = Observed(drive.record, drive.counts_from_ns, gpu.info.label)
    sources, missing = observed.figures(driver)
    held_up_s = drive.record.held_up_s
    if held_up_s > HELD_UP_S:
        sources = {name: figures and _looser(figures, held_up_s * 1e3) for name, figures in sources.items()}
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


def _looser(figures: SourceFigures, held_up_ms: float) -> SourceFigures:
    """Of a source that was not watched for so long: what it reported meanwhile is not known."""
    return replace(figures, lag_margin_ms=figures.lag_margin_ms + held_up_ms)


class _Drive:
    """The load of a quick look, and the record of what was reported under it."""

    def __init__(self, driver: WaveDriver, load: Load, begun_ns: int) -> None:
        self.load = load
        self._driver = driver
        self._clock = driver.gpu.clock
        self._ends_ns = begun_ns + round((QUICK_S - FITTING_S) * 1e9)
        self.record, self.counts_from_ns = driver.start(), self._clock.now_ns()

    def to_the_end(self, lighter: Load, stop: threading.Event | None) -> None:
        """A step, of the lighter load where a limit acts, and a wave for the time that is left. Raises Stopped."""
        self._step(REST_S, stop)
        if self.record.reasons and self.load != lighter:
            self.load = lighter
            self.record = self._driver.start()
            self._step(AGAIN_REST_S, stop)
        self._driver.rest(AFTER_S, stop)
        self.counts_from_ns = self._clock.now_ns()
        left_s = (self._ends_ns - self._clock.now_ns()) / 1e9 - SHORT_ON_S[1] - SHORT_OFF_S[1]
        self._driver.wave(self.load, left_s, stop, on_s=SHORT_ON_S, off_s=SHORT_OFF_S)

    def _step(self, rest_s: float, stop: threading.Event | None) -> None:
        self._driver.rest(rest_s, stop)
        self._driver.run(self.load, STEP_S, stop)
