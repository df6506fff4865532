"""`Stopwatch`: times one load on a device that reports no power, in the place of a `Meter`.

The power that meters beside the device report of a window is kept with it.
"""

from __future__ import annotations

import math
import threading
from typing import Final

from ...sensors.gpu import Load
from .external_meters import meters_beside
from .launching import LaunchingGpu, lap
from .window import STEADY_TIME, Run, Window

SETTLE_S: Final = 0.02  # caches and clocks after the first launches
WINDOW_S: Final = 0.1
LEAST: Final = 7  # launches of a window, as far as they take no longer than MOST_S
MOST_S: Final = 1.0
LOOK_S: Final = 0.01
METERED_S: Final = 0.5  # of a window beside a meter: RAPL is read every 50 ms


class Stopwatch:
    """Times loads on one device. Not thread-safe."""

    def __init__(self, gpu: LaunchingGpu, words: str, window_s: float | None = None) -> None:
        """Prepare to time loads.

        Parameters
        ----------
        gpu : LaunchingGpu
            The device.
        words : str
            Why a window has no energy, as its power source says it.
        window_s : float or None, optional
            The least length of a window, s; WINDOW_S by default.
        """
        self._gpu = gpu
        self._words = words
        self._window_s = WINDOW_S if window_s is None else window_s

    def run(
        self,
        load: Load,
        *,
        stop: threading.Event | None = None,
        settle_s: float = 0.0,
        window_s: float = 0.0,
    ) -> Run | None:
        """Launch a load back to back for a window.

        A window in which the time per launch changed is repeated once.

        Parameters
        ----------
        load : Load
            The load.
        stop : threading.Event or None, optional
            Ends the run when set.
        settle_s, window_s : float, optional
            How long the load runs before the window, and the length of that; lower bounds, s.

        Returns
        -------
        Run or None
            The run; None when `stop` was set.
        """
        run = self._run_once(load, stop, settle_s, window_s)
        if run is not None and run.execution is not None and abs(run.execution.change) > STEADY_TIME:
            run = self._run_once(load, stop, settle_s, window_s)
        return run

    def window(self, run: Run) -> Window:
        """Return the figures of a run.

        Parameters
        ----------
        run : Run
            A run that `run` returned.

        Returns
        -------
        Window
            The time per launch, with the powers by the meters beside the device; without any, the power is NaN.
        """
        execution = run.ended
        seen = dict(zip((channel.name for channel in self._gpu.channels), run.readings[-1].values, strict=True))
        window = Window(
            time_s=execution.time_s,
            window_ns=(execution.start_ns, execution.end_ns),
            observed_clock_mhz=seen.get("graphics_clock_mhz", math.nan),
            temperature_c=seen.get("temperature_c", math.nan),
            power_source=self._words,
            settled=None,
            change=execution.change,
        )
        beside = meters_beside(self._gpu.info)
        return window if beside is None else beside.complete(window)

    def _run_once(self, load: Load, stop: threading.Event | None, settle_s: float, window_s: float) -> Run | None:
        run = Run(load, self._gpu.clock.now_ns())
        self._gpu.begin(load)
        try:
            if self._gpu.clock.wait(max(settle_s, SETTLE_S), stop):
                return None
            launch_s = lap(self._gpu, load).time_s
            beside = meters_beside(self._gpu.info)
            window_s = window_s if beside is None else max(window_s, beside.least_s, METERED_S)
            run.opened_ns = self._gpu.clock.now_ns()
            least_s = max(window_s, self._window_s, min(MOST_S, LEAST * launch_s))
            while (self._gpu.clock.now_ns() - run.opened_ns) / 1e9 < least_s:
                if self._gpu.clock.wait(LOOK_S, stop):
                    return None
            run.readings.append(self._gpu.read())  # while it still runs
        finally:
            run.execution = self._gpu.end()
        return run
