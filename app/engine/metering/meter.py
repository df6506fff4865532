"""`Meter`: time, power and energy of one load on one board, through nothing but its sensors.

Time and power come from the same stretch of back-to-back launches. It opens once the sensor has settled and the effects
of the load before (a limit, a clock on its way) have gone, and it closes when the confidence interval of mean power is
narrow enough. Where the driver's buffer answers, samples are attributed by their time stamps after the fact, so the
board may already run something else when they appear.

A board at its power limit swings: on an H200 the controller lets a kernel exceed the limit for up to 0.7 s, then
undershoots, so that about one second averages to the limit. A window under a limit is therefore one such period, and
it is settled when its mean is the limit itself or when two windows in a row agree.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import reduce
from operator import or_
from statistics import fmean, median
from typing import Final

from ...base.errors import WattridgeError
from ...sensors.channel import Reading
from ...sensors.event_reasons import LIMITING, EventReason
from ...sensors.gpu import Execution, HoldsValues, Load, NotSupported
from ...sensors.throttling import in_place_of_samples, mark, shares_between
from ..results.evidence import EVIDENT, Evidence
from .characterisation.store import known_characterisation
from .condition import Condition
from .confidence import limited_interval, not_negative
from .external_meters import meters_beside
from .launching import LaunchingGpu, few, lap
from .power_source import Energy, PowerSensor, PowerSource, Stretch, find_sensor, keeps_step, opposite_s
from .window import STEADY_TIME, Run, Window, steady

RISE_S: Final = 0.04  # clock and power after a launch or a new clock, before a window opens
BUFFER_WINDOW_S: Final = 0.14  # at least: what is queued still runs after it, and makes seven to nine samples
BUFFER_MOST_S: Final = 1.0
OPPOSITE_S: Final = 0.09  # of each of two windows where launches keep step with the samples, at least: four samples
RESUME_S: Final = 0.02  # the same after a pause of a launch, with no other load between
POLLED_WINDOW_S: Final = 1.0  # of values, and at least ten refreshes, where the source is not characterised
POLLED_MOST_S: Final = 3.0
TARGET: Final = 0.01  # half of the 95 % interval of mean power, relative
LOOK_S: Final = 0.02  # between looks where the buffer reports power
LEFT_OVER_S: Final = 1.5  # how long a limit that the load before ran into may last
LIMITED_WINDOW_S: Final = 0.95  # one period of the controller
LIMITED_MOST_S: Final = 6.0  # windows under a limit, in all
BELOW_LIMIT: Final = 0.96  # of the limit: so little power cannot be held back by it
AT_LIMIT: Final = (0.985, 1.01)  # mean power over the limit that counts as the limit
BUFFER_PATIENCE_S: Final = 0.5  # the buffer's newest sample is up to about 0.1 s old
MOVED: Final = 0.01  # change of clock within a window that makes it begin again
TRIES: Final = 2  # windows at most where the time per launch does not stand still
AGAIN_S: Final = 0.01  # of launches to measure it again
RECOVERED: Final = 0.004  # below the clock before a limit: less than a step of the clock of most boards
MEMORY_POWER_S: Final = 1.1  # its averaging window, and a refresh
VOLTAGE_MOST_S: Final = 2.5  # how long a window that needs a voltage waits for one: nvidia-smi is asked once a second
FOLLOW_CLOCKS: Final = ("core_voltage_mv", "memory_clock_mhz")  # of another kernel or clock, they would be wrong
TIMED_S: Final = 0.01  # of launches that are only timed, at least one, once the clock stands still,
TIMED_TRIES: Final = 10  # which is waited for so many times as long
WARM_STEP_S: Final = 1.0
WARM_STEADY_C: Final = 0.25  # change over a step
WARM_MOST_S: Final = 30.0
COLD_AFTER_S: Final = 3.0  # idle for longer: warm up again


def least_window_s(sensor: PowerSensor) -> float:
    """Return the shortest useful window through these power readings.

    Parameters
    ----------
    sensor : PowerSensor
        The power readings.

    Returns
    -------
    float
        Its length, s.
    """
    if sensor.buffered:
        return BUFFER_WINDOW_S
    return sensor.lead_s + sensor.refresh_s + (sensor.window_s or max(POLLED_WINDOW_S, 10 * sensor.refresh_s))


class Meter:
    """Measures loads on one board. Not thread-safe; other threads may read the board meanwhile."""

    def __init__(self, gpu: LaunchingGpu, *, needs: Collection[str] = (), target: float = TARGET) -> None:
        """Prepare to measure on a board.

        Parameters
        ----------
        gpu : LaunchingGpu
            The board.
        needs : collection of str, optional
            Names of figures that windows must be long enough for, where the board reports them: the memory's power is
            a slow average, and the core voltage of a real board is read about once a second.
        target : float, optional
            Half of the 95 % interval of mean power that ends a window, relative.
        """
        self._gpu = gpu
        self._target = target
        self._channel = {channel.name: i for i, channel in enumerate(gpu.channels) if channel.available}
        self._wants_memory_power = "memory_power_w" in needs and "memory_power_w" in self._channel
        self._wants_voltage = "core_voltage_mv" in needs and "core_voltage_mv" in self._channel
        self._holding = gpu if isinstance(gpu, HoldsValues) else None
        self._last_end_ns: int | None = None
        self._found: PowerSource | None = None
        self._free_mhz = math.nan  # the clock of the last window that no limit held back
        self._after_limit = False  # the last window was one that a limit held back

    def measure(
        self,
        load: Load,
        *,
        stop: threading.Event | None = None,
        settle_s: float = 0.0,
        window_s: float = 0.0,
    ) -> Window | None:
        """Run and measure a load.

        Parameters
        ----------
        load : Load
            The load.
        stop : threading.Event or None, optional
            Ends the measurement when set.
        settle_s, window_s : float, optional
            How long the load runs before the window, and the length of that; lower bounds, s on the board's clock.

        Returns
        -------
        Window or None
            The figures; None when `stop` was set first.
        """
        window = None
        for _ in range(TRIES):
            run = self.run(load, stop=stop, settle_s=settle_s, window_s=window_s)
            if run is None:
                return None
            self._begin(load)  # the board stays as it is until the buffer has reported the last samples
            try:
                window = self.window(run)
                if not self._source.sensor.buffered:
                    self._gpu.clock.wait(AGAIN_S)
            finally:
                execution = self._end()
            window = replace(window, again=_longer(run, execution))
            if not window.unsteady:
                break
        return window

    def look_again(self, run: Run) -> None:
        """Measure the time per launch of a run again and keep the change in the run; its power is not measured.

        Nothing is kept where a limit acted on the run, or while a clock that another load's limit lowered returns.

        Parameters
        ----------
        run : Run
            A run of this meter, whose load can still be launched; its `again` is set, relative.
        """
        if self._reasons(run.readings) & LIMITING:
            return
        execution = self._few(run.load, AGAIN_S)
        if not self._recovering(self._gpu.read()):
            run.again = _longer(run, execution)

    def warm(self, load: Load, stop: threading.Event | None = None) -> bool:
        """Run a load until the temperature stands still; a warm board is left alone.

        A sweep begins with it. A session does not: its first configurations warm the board, and their figures follow
        from the condition that they were measured in, once that is known.

        Parameters
        ----------
        load : Load
            The load.
        stop : threading.Event or None, optional
            Ends the run when set.

        Returns
        -------
        bool
            False when `stop` was set.
        """
        last, now = self._last_end_ns, self._gpu.clock.now_ns()
        if last is not None and now - last < COLD_AFTER_S * 1e9:
            return True
        before = math.nan
        self._note_power()
        for _ in range(round(WARM_MOST_S / WARM_STEP_S)):
            self._begin(load)
            try:
                if self._gpu.clock.wait(WARM_STEP_S, stop):
                    return False
                self._note_power()
            finally:
                self._end()
            temperature = self._value(self._gpu.read(), "temperature_c")
            if math.isnan(temperature) or abs(temperature - before) < WARM_STEADY_C:
                break
            before = temperature
        self._last_end_ns = self._gpu.clock.now_ns()
        return True

    def time(self, load: Load, *, stop: threading.Event | None = None, settle_s: float = 0.0) -> float | None:
        """Time a few launches of a load, on the board as it is.

        A power limit that the load runs into later does not show.

        Parameters
        ----------
        load : Load
            The load.
        stop : threading.Event or None, optional
            Ends the timing when set.
        settle_s : float, optional
            How long the load runs before it is timed, s on the board's clock.

        Returns
        -------
        float or None
            Seconds per launch; None when `stop` was set.
        """
        if settle_s:
            self._begin(load)
            try:
                if self._gpu.clock.wait(settle_s, stop):
                    return None
            finally:
                self._end()
        execution, now = None, self._value(self._gpu.read(), "graphics_clock_mhz")
        for _ in range(TIMED_TRIES):
            if stop is not None and stop.is_set():
                return None
            execution = self._few(load, TIMED_S)
            before, now = now, self._value(self._gpu.read(), "graphics_clock_mhz")
            if not abs(now - before) > MOVED * now:
                break
        assert execution is not None, "it is tried at least once"
        return execution.time_s

    def run(
        self,
        load: Load,
        *,
        stop: threading.Event | None = None,
        settle_s: float = 0.0,
        window_s: float = 0.0,
    ) -> Run | None:
        """Launch a load, watch it until its window holds enough, and end the launches.

        `window` may be called later, while something else runs.

        Parameters
        ----------
        load : Load
            The load.
        stop : threading.Event or None, optional
            Ends the run when set.
        settle_s, window_s : float, optional
            How long the load runs before the window, and the length of that; lower bounds, s on the board's clock.

        Returns
        -------
        Run or None
            The run; None when `stop` was set.

        Raises
        ------
        WattridgeError
            Where the board reports no power.
        """
        settle_s = max(settle_s, RISE_S, MEMORY_POWER_S if self._wants_memory_power else 0.0)
        beside = meters_beside(self._gpu.info)
        window_s = window_s if beside is None else max(window_s, beside.least_s)
        run = self._run_once(load, stop, settle_s, max(window_s, least_window_s(self._source.sensor)))
        if run is not None and self._disturbed(run):  # something else ran, or the clock moved unseen
            run = self._run_once(load, stop, settle_s, max(window_s, least_window_s(self._source.sensor)))
        return run if run is None or not self._keeps_step(run) else self._with_opposite(run, stop)

    def _keeps_step(self, run: Run) -> bool:
        """Whether its launches keep step with the samples, which show one part of them."""
        seconds = (run.ended.end_ns - run.opened_ns) / 1e9 - self._source.sensor.lead_s
        return not self._after_limit and self._in_step(run.ended.time_s, seconds)

    def _in_step(self, launch_s: float, seconds: float = 0.0) -> bool:
        """Whether launches of that time keep step, in a window of so many seconds of samples, or a usual one.

        Meters beside the board's own measure all of every launch, and would measure the pause between two windows.
        """
        sensor, beside = self._source.sensor, meters_beside(self._gpu.info)
        if beside is not None and beside.meters:
            return False
        samples = int(max(seconds, BUFFER_WINDOW_S + sensor.refresh_s) / sensor.refresh_s)
        return sensor.sees_phase and keeps_step(samples, sensor.refresh_s, launch_s)

    def _with_opposite(self, run: Run, stop: threading.Event | None) -> Run | None:
        """The run with a second one, whose samples see the other part of each launch; None when stopped."""
        sensor, seconds = self._source.sensor, (run.ended.end_ns - run.opened_ns) / 1e9
        least_s = max(OPPOSITE_S, seconds / 2)
        between_s = (seconds - sensor.lead_s) / 2 + RESUME_S + (sensor.lead_s + least_s) / 2
        now_s = (self._gpu.clock.now_ns() - run.ended.end_ns) / 1e9
        delay_s = min(max(0.0, (run.launched_ns - run.began_ns) / 1e9), RESUME_S)  # until the launches begin
        later_s = opposite_s(now_s + delay_s, between_s, sensor.refresh_s, run.ended.time_s)
        if self._gpu.clock.wait(later_s - delay_s - now_s, stop):
            return None
        run.opposite = self._run_once(run.load, stop, RESUME_S, least_s, least_s)
        if run.opposite is None:
            return None
        if self._after_limit or self._disturbed(run.opposite):  # another state of the board than in the first
            run.opposite = None
        return run

    def _run_once(
        self, load: Load, stop: threading.Event | None, settle_s: float, least_s: float, most_s: float | None = None
    ) -> Run | None:
        self._note_power()
        run = Run(load, self._gpu.clock.now_ns())
        self._begin(load)
        try:
            if self._gpu.clock.wait(settle_s, stop) or not self._watch(run, least_s, most_s, stop):
                return None
        finally:
            execution = self._end()
        run.closed = execution.end_ns, mark(self._gpu)[1]  # nothing holds an idle board back
        if run.execution is None:
            run.execution = execution
        self._after_limit = bool(self._reasons(run.readings) & LIMITING)
        if not self._after_limit:
            self._free_mhz = self._mean(run.readings, "graphics_clock_mhz")
        return run

    def _disturbed(self, run: Run) -> bool:
        """Whether the time per launch changed within the window, and no limit acted."""
        return run.execution is not None and abs(run.execution.change) > STEADY_TIME and not self._after_limit

    def window(self, run: Run) -> Window:
        """Return the figures of a run that ended, once the buffer has reported its samples.

        Parameters
        ----------
        run : Run
            A run that `run` of this meter returned; samples of power are kept for half a minute.

        Returns
        -------
        Window
            The figures, with the powers by the meters beside the board.

        Raises
        ------
        WattridgeError
            Without any samples of power.
        """
        ended = [part.ended for part in run.runs]
        if self._source.sensor.buffered:
            self._await_samples(ended[-1].end_ns + round(self._source.sensor.lag_s * 1e9))
        stretches = [Stretch(part.opened_ns, part.ended.end_ns, part.ended.end_ns) for part in run.runs]
        for part, stretch in zip(run.runs, stretches, strict=True):
            powers = self._source.powers(stretch.start_ns, stretch.end_ns)
            if not self._limited(part.readings, powers):
                self._source.spread.note(powers)
        window = self._describe(run, _together(ended), stretches)
        beside = meters_beside(self._gpu.info)
        return window if beside is None else beside.complete(window)

    # --- watching ---------------------------------------------------------------------------------------------------

    @property
    def _source(self) -> PowerSource:
        """The board's power, chosen at the first load. Raises WattridgeError if it reports none."""
        if self._found is None:
            try:
                buffered = bool(self._gpu.power_samples(0))
            except NotSupported:
                buffered = False
            sensor = find_sensor(self._gpu, known_characterisation(self._gpu.info), buffered=buffered)
            if sensor is None:
                remedy = "energy cannot be measured on it"
                raise WattridgeError("the board reports no power", self._gpu.info.label, remedy)
            self._found = PowerSource(sensor)
        return self._found

    def _begin(self, load: Load) -> None:
        self._gpu.begin(load)
        self._source.edge(self._gpu.clock.now_ns())

    def _end(self) -> Execution:
        execution = self._gpu.end()
        self._note_end(execution)
        return execution

    def _few(self, load: Load, seconds: float) -> Execution:
        self._source.edge(self._gpu.clock.now_ns())
        execution = few(self._gpu, load, seconds)
        self._note_end(execution)
        return execution

    def _note_end(self, execution: Execution) -> None:
        self._last_end_ns = self._gpu.clock.now_ns()
        self._source.edge(execution.end_ns)

    def _watch(self, run: Run, least_s: float, most_s: float | None, stop: threading.Event | None) -> bool:
        """Poll until the window holds enough, and note in `run` whether the board was at rest; False when stopped.

        With `most_s` it is a further window of a load, in which only time and power count.
        """
        lately = self._open(run)
        run.launched_ns = lately.start_ns
        sensor = self._source.sensor
        further_s, look_s = (BUFFER_MOST_S, LOOK_S) if sensor.buffered else (POLLED_MOST_S, sensor.poll_s)
        whole = most_s is None
        in_step = whole and least_s <= least_window_s(sensor) and self._in_step(lately.time_s)
        if in_step:
            least_s = OPPOSITE_S  # a second one will follow
        if most_s is None:
            most_s = least_s + further_s
        before: Window | None = None
        while True:
            if self._gpu.clock.wait(look_s, stop):
                return False
            run.readings.append(self._look(run.opened_ns))
            now = self._gpu.clock.now_ns()
            seconds = (now - run.opened_ns) / 1e9 + 1e-6
            powers = self._source.powers(run.opened_ns, now)
            limited = self._limited(run.readings, powers)
            if before is None and now - run.began_ns < LEFT_OVER_S * 1e9 and self._left_over(run, limited, powers):
                self._open(run)
            elif limited and seconds >= max(least_s, LIMITED_WINDOW_S):
                execution = lap(self._gpu, run.load)
                window = self._describe(run, execution, [Stretch(run.opened_ns, now, execution.end_ns)])
                at_rest = self._at_limit(powers, run.readings[-1]) or steady(before, window)
                if at_rest or (now - run.began_ns) / 1e9 >= LIMITED_MOST_S:
                    run.settled, run.execution = at_rest, execution
                    return True
                before = window
                self._open(run)
            elif not limited and seconds >= least_s and not (whole and self._awaits_voltage(run, seconds)):
                if in_step and len(powers) < 2:  # its spread is not known yet: the second one shows it as well
                    return True
                looked_s = look_s * len(run.readings)  # without a power, time alone may pass unseen
                if self._certain(powers, seconds) or min(seconds, math.inf if powers else looked_s) >= most_s:
                    return True

    def _look(self, opened_ns: int) -> Reading:
        """A reading without the channels that follow the clocks, where they were read before the window opened."""
        self._drain()
        ages = {name: self._holding.held(name) for name in FOLLOW_CLOCKS} if self._holding is not None else {}
        reading = self._gpu.read()  # after the ages: what it holds is at least as new
        if self._source.sensor.channel is not None:
            self._source.poll(reading.time_ns, self._value(reading, self._source.sensor.channel))
        stale = {self._channel.get(name) for name, age in ages.items() if age is not None and age.asked_ns < opened_ns}
        if not stale:
            return reading
        return Reading(reading.time_ns, tuple(math.nan if i in stale else v for i, v in enumerate(reading.values)))

    def _note_power(self) -> None:
        """Take in the board's power now: how warm it is follows from that, too."""
        channel = self._source.sensor.channel
        if channel is None:
            self._drain()
        else:
            reading = self._gpu.read()
            self._source.poll(reading.time_ns, self._value(reading, channel))

    def _awaits_voltage(self, run: Run, seconds: float) -> bool:
        return self._wants_voltage and seconds < VOLTAGE_MOST_S and not self._reported(run.readings, "core_voltage_mv")

    def _open(self, run: Run) -> Execution:
        """Open the window now; the execution of the launches before it."""
        before = lap(self._gpu, run.load)
        run.opened = mark(self._gpu)
        run.opened_ns = self._gpu.clock.now_ns()
        run.readings.clear()
        return before

    def _left_over(self, run: Run, limited: bool, powers: Sequence[float]) -> bool:
        """Whether the clock is on its way, or a limit acts that this load does not reach: the load before did."""
        moving = limited or self._moved(run.readings) or self._recovering(run.readings[-1])
        if not self._source.sensor.buffered or not moving:
            return False
        return bool(powers) and fmean(powers) < BELOW_LIMIT * self._limit_w(run.readings[-1])

    def _recovering(self, reading: Reading) -> bool:
        """Whether the clock is still below its value before a limit; it may climb too slowly to be seen moving."""
        return self._after_limit and self._value(reading, "graphics_clock_mhz") < (1.0 - RECOVERED) * self._free_mhz

    def _limited(self, readings: Sequence[Reading], powers: Sequence[float]) -> bool:
        """Whether a limit acts, or will: its controller takes a while to respond to a power above it."""
        limit_w = self._limit_w(readings[-1])
        return bool(self._reasons(readings) & LIMITING) or (len(powers) >= 4 and fmean(powers) > limit_w)

    def _at_limit(self, powers: Sequence[float], reading: Reading) -> bool:
        """Whether the window's mean is the limit itself: the swing of the controller is over."""
        limit_w = self._limit_w(reading)
        return bool(powers) and AT_LIMIT[0] * limit_w <= fmean(powers) <= AT_LIMIT[1] * limit_w

    def _moved(self, readings: Sequence[Reading]) -> bool:
        clocks = self._reported(readings, "graphics_clock_mhz")
        return bool(clocks) and max(clocks) - min(clocks) > MOVED * max(clocks)

    def _certain(self, powers: Sequence[float], seconds: float) -> bool:
        """Whether mean power will be known well enough, from the spread of the samples so far."""
        if len(powers) < 2:
            return False
        sensor = self._source.sensor
        due = self._source.independent(powers)
        if sensor.buffered:
            due = max(due, int(seconds / sensor.refresh_s) - 1)  # the last ones come later
        if due < 2:
            return True  # a slow sensor's window is long for what it is
        return self._source.spread.half_w(powers, due) <= self._target * abs(fmean(powers))

    def _drain(self) -> None:
        if self._source.sensor.buffered:
            self._source.add_samples(self._gpu.power_samples(self._source.newest_ns))

    def _await_samples(self, until_ns: int) -> None:
        deadline_ns = until_ns + round(BUFFER_PATIENCE_S * 1e9)
        self._drain()
        while self._source.newest_ns < until_ns and self._gpu.clock.now_ns() < deadline_ns:
            self._gpu.clock.wait(LOOK_S)
            self._drain()

    # --- figures ----------------------------------------------------------------------------------------------------

    def _describe(self, run: Run, execution: Execution, stretches: Sequence[Stretch]) -> Window:
        """The figures of a window, as its power is known of those stretches. Raises WattridgeError without any."""
        energy = self._source.steady(stretches, execution.time_s)
        if energy.unknown:
            raise WattridgeError(energy.unknown, self._gpu.info.label, "look at it with: wattridge monitor")
        power_w, interval, aftereffect_w = energy.mean_power_w, energy.power_interval_w, 0.0
        powers = energy.power_w.tolist()
        if self._limited(run.readings, powers):
            limit_w = self._limit_w(run.readings[-1])
            interval = limited_interval(powers, self._source.independent(powers), limit_w, run.settled)
        else:
            aftereffect_w = fmean(self._source.left_behind_w(stretch.start_ns, power_w) for stretch in stretches)
            power_w -= aftereffect_w
            interval = interval and not_negative((interval[0] - aftereffect_w, interval[1] - aftereffect_w))
        temperature_c = self._mean(run.readings, "temperature_c")
        fast_w, slow_w = self._source.drawn_lately_w(run.opened_ns, stretches[-1].end_ns)
        reasons, throttled = in_place_of_samples(self._reasons(run.readings), shares_between(run.opened, run.closed))
        return Window(
            time_s=execution.time_s,
            power_w=power_w,
            power_interval_w=interval,
            median_w=median(powers),
            observed_clock_mhz=self._mean(run.readings, "graphics_clock_mhz"),
            memory_power_w=self._value(run.readings[-1], "memory_power_w") if self._wants_memory_power else math.nan,
            temperature_c=temperature_c,
            core_voltage_mv=self._mean(run.readings, "core_voltage_mv"),
            memory_clock_mhz=self._mean(run.readings, "memory_clock_mhz"),
            event_reasons=reasons,
            throttled=throttled,
            peak_power_w=self._source.sensor.peak_w(powers),
            throttled_share=throttled.get("power", throttled_share(self._reported(run.readings, "event_reasons"))),
            window_ns=(run.opened_ns, stretches[0].launch_ns),
            power_source=self._source.sensor.words,
            settled=run.settled,
            change=execution.change,
            again=run.again,
            condition=Condition(temperature_c, self._mean(run.readings, "memory_temperature_c"), fast_w, slow_w),
            aftereffect_w=aftereffect_w,
            evidence=self._evidence(run, energy, stretches),
        )

    def _evidence(self, run: Run, energy: Energy, stretches: Sequence[Stretch]) -> Evidence:
        windows_ns = [(stretch.start_ns, stretch.end_ns) for stretch in stretches]
        readings = [
            (r.time_ns, *(self._value(r, name) for name in EVIDENT)) for part in run.runs for r in part.readings
        ]
        return Evidence.of(windows_ns, energy.times_s, energy.power_w, readings)

    def _reasons(self, readings: Sequence[Reading]) -> int:
        return reduce(or_, map(int, self._reported(readings, "event_reasons")), 0)

    def _limit_w(self, reading: Reading) -> float:
        """The power limit in force; NaN if not known."""
        reported = self._value(reading, "power_limit_w")
        at_open_w = self._gpu.info.power_limit.current_w
        return reported if not math.isnan(reported) else math.nan if at_open_w is None else at_open_w

    def _value(self, reading: Reading, name: str) -> float:
        place = self._channel.get(name)
        return math.nan if place is None else reading.values[place]

    def _mean(self, readings: Sequence[Reading], name: str) -> float:
        values = self._reported(readings, name)
        return fmean(values) if values else math.nan

    def _reported(self, readings: Sequence[Reading], name: str) -> list[float]:
        return [value for value in (self._value(r, name) for r in readings) if not math.isnan(value)]


def throttled_share(reasons: Sequence[float]) -> float:
    """Return the share of readings in which power throttled the load.

    Parameters
    ----------
    reasons : sequence of float
        The event reasons of each reading, as bits.

    Returns
    -------
    float
        From 0 to 1; NaN without any reading.
    """
    return fmean(bool(int(bits) & EventReason.POWER_CAP) for bits in reasons) if reasons else math.nan


def _together(parts: Sequence[Execution]) -> Execution:
    """The execution of launches in several parts; its change and reports are those of the first alone."""
    launches = sum(part.launches for part in parts)
    if len(parts) == 1 or not launches:
        return parts[0]
    time_s = sum(part.launches * part.time_s for part in parts if part.launches) / launches
    return replace(parts[0], launches=launches, time_s=time_s)


def _longer(run: Run, second: Execution) -> float:
    """How much longer a launch took afterwards than in the window; relative."""
    first = run.execution
    if first is None or not first.time_s or not second.launches:
        return 0.0
    return second.time_s / first.time_s - 1.0
