"""`ServiceRunner`: measures a service under load: throughput, latencies, and what its boards draw for a token.

A window opens when throughput and power are steady, and closes when both are known well enough, or at its time limit.
The figures follow from what became of the requests in that window. On a simulated board that models a service no server
is run. On another one server and requests are real, but draw nothing there: power and energy are that board's own, and
every measurement says so.
"""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from ...base.formatting import percent
from ...sensors.gpu import Gpu
from ...sensors.service import Requests, Served, note_served
from ..control.guard import DeviceGuard, SeveralBoards
from ..metering.confidence import EVEN, SMOOTH, Interval, Weights
from ..metering.power_source import Energy
from ..metering.steady_window import Known, Look, known_of, look
from ..metering.window import Window
from ..results.measurement import Configuration, Measurement, State, Value
from ..results.service_figures import PERCENTILES, START
from ..space.search_space import SearchSpace
from ..specification.model import Specification
from ..workloads.command import CommandFailed
from ..workloads.service import Service
from .base import BoardRunner, RowByRow, by_setting, setting_names, settings_of
from .measurement_figures import Figures, Intervals, measurement_of

Floats = npt.NDArray[np.float64]


def figures_of_requests(
    served: Sequence[Served], start_ns: int, end_ns: int, weights: Weights = EVEN
) -> dict[str, float]:
    """The figures of the requests that ended in a window, by `service_figures`; what is not known is left out.

    Latencies are of the requests that were answered in full, and count from when each was due. Tokens count when they
    arrive where that is known, else with the end of their request. Rates and the idle share are means over the window
    by the weights; requests and errors are counted.
    """
    ended = Requests.joined([request.requests for request in served]).ended_within(start_ns, end_ns)
    seconds = (end_ns - start_ns) / 1e9
    good = ~ended.failed
    counts = weights.at((ended.ended_ns - start_ns) / max(1, end_ns - start_ns)) * good
    figures = {
        "requests": float(len(ended)),
        "errors": float(ended.failed.sum()),
        "error_share": float(ended.failed.mean()) if len(ended) else math.nan,
        "requests_per_s": float(counts.sum()) / seconds,
        "input_tokens_per_s": float((ended.input_tokens * counts)[good].sum()) / seconds,
        "output_tokens_per_s": _tokens_per_s(served, ended, counts, start_ns, end_ns, weights),
        "idle_share": min(1.0, max(0.0, _idle(served, start_ns, end_ns, weights))),
    }
    if len(ended):
        figures["sent_late_p99_s"] = float(np.percentile(ended.sent_ns - ended.due_ns, 99)) / 1e9
    due, first, last = (times[good] for times in (ended.due_ns, ended.first_ns, ended.ended_ns))
    tokens, began = ended.output_tokens[good], first > 0
    several = began & (tokens > 1)
    figures |= _latency("e2e", (last - due) / 1e9)
    figures |= _latency("ttft", (first - due)[began] / 1e9)
    figures |= _latency("tpot", (last - first)[several] / 1e9 / (tokens[several] - 1))
    return {name: value for name, value in figures.items() if math.isfinite(value)}


def faults_in_words(served: Sequence[Served]) -> str:
    """'HTTP status 503 (12), no connection (3)': what failed requests met, the most frequent first."""
    faults: Counter[str] = Counter()
    for request in served:
        faults.update(request.faults)
    return ", ".join(f"{words} ({count})" for words, count in faults.most_common(3))


def work_of(served: Sequence[Served]) -> tuple[Floats, Floats]:
    """By when work was done, ns, ascending, and how much: tokens as they arrive, else requests as they end."""
    counted = [request for request in served if math.isfinite(request.output_tokens)]
    if counted and len(counted) == len([request for request in served if request.end_ns > request.start_ns]):
        times = np.array([item.end_ns for item in counted], dtype=np.float64)
        return times, _tokens_of(counted)
    ended = Requests.joined([request.requests for request in served])
    tokens = ended.output_tokens[~ended.failed]
    if not len(tokens) or not np.isfinite(tokens).all() or not tokens.sum() > 0:
        return answers_of(served)
    ended_ns = ended.ended_ns[~ended.failed]
    order = np.argsort(ended_ns, kind="stable")
    return ended_ns[order].astype(np.float64), tokens[order]


def answers_of(served: Sequence[Served]) -> tuple[Floats, Floats]:
    """When requests were answered in full, ns, ascending, and 1 for each."""
    ended = Requests.joined([request.requests for request in served])
    times = np.sort(ended.ended_ns[~ended.failed]).astype(np.float64)
    return times, np.ones(len(times))


def _tokens_per_s(
    served: Sequence[Served], ended: Requests, counts: Floats, start_ns: int, end_ns: int, weights: Weights
) -> float:
    """Of the answers within the window; NaN if nothing counts them."""
    shares = _shares(served, start_ns, end_ns, weights)
    inside = shares > 0
    tokens = _tokens_of(served)[inside]
    if len(tokens) and np.isfinite(tokens).all():
        return float(tokens / _lengths_s(served)[inside] @ shares[inside])
    return float((ended.output_tokens * counts)[~ended.failed].sum()) / ((end_ns - start_ns) / 1e9)


def _idle(served: Sequence[Served], start_ns: int, end_ns: int, weights: Weights) -> float:
    shares = _shares(served, start_ns, end_ns, weights)
    inside = shares > 0
    idle_s = np.array([request.idle_s for request in served])
    return float(idle_s[inside] / _lengths_s(served)[inside] @ shares[inside])


def _tokens_of(served: Sequence[Served]) -> Floats:
    """The output tokens of each stretch, for each piece of a stream as many as all answers had."""
    latest = served[-1].tokens_per_piece if served else 1.0
    return np.array([request.output_tokens * (latest / request.tokens_per_piece) for request in served])


def _lengths_s(served: Sequence[Served]) -> Floats:
    return np.array([(request.end_ns - request.start_ns) / 1e9 for request in served])


def _shares(served: Sequence[Served], start_ns: int, end_ns: int, weights: Weights) -> Floats:
    """How much of the weight of a window lies in each stretch, 0 to 1."""
    length = max(1, end_ns - start_ns)
    return np.array(
        [
            weights.between((request.start_ns - start_ns) / length, (request.end_ns - start_ns) / length)
            for request in served
        ]
    )


def _latency(name: str, values_s: Floats) -> dict[str, float]:
    if not len(values_s):
        return {}
    quantiles = np.percentile(values_s, PERCENTILES)
    named = {f"{name}_p{item}_s": float(value) for item, value in zip(PERCENTILES, quantiles, strict=True)}
    return {f"{name}_mean_s": float(values_s.mean()), **named}


_LOOK_EACH: Final = 1.15  # times as long as at the look before: a long window is not looked at all the time
_HOPELESS: Final = 20  # requests that failed, and none that did not, after which a configuration has failed
_GENERATOR_S: Final = 60.0  # for the load generator to start
_LATE_S: Final = 0.01  # after it was due, that a request of a hundred may leave without a remark,
_LATE_SHARE: Final = 0.05  # or so much of the latency
_BEHIND: Final = 0.95  # of the rate that is asked for: below that the service falls behind


class ServiceUnderLoad(Protocol):
    """A service that answers requests: a real one (`ServiceHere`), or a board's model of one (`ServiceModelled`)."""

    @property
    def started_with(self) -> Mapping[str, Value | None]:
        """The server's arguments by name; None before a start."""
        ...

    def prepare(self, configuration: Configuration, stop: threading.Event) -> float | None: ...

    def begin(self, configuration: Configuration) -> int: ...

    def take(self, stop: threading.Event) -> Served | None: ...

    def end_load(self) -> None: ...

    def energy(self, start_ns: int, end_ns: int) -> Energy: ...

    def window(self, start_ns: int, end_ns: int, time_s: float) -> Window: ...

    def run_client(
        self, configuration: Configuration, stop: threading.Event
    ) -> tuple[int, int, float, dict[str, float]] | None: ...

    def drop(self) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class _Seen:
    """One window, with its figures and what they may be off by."""

    window: Window
    figures: Figures
    work: Known | None  # how well throughput, power and their ratio are known; None: a program states them
    answers: Known | None  # the same of requests instead of units of work
    said: tuple[str, ...]


class ServiceRunner(RowByRow, BoardRunner):
    """Measures a service under load. Takes over the guard: closing the runner restores the settings of the boards."""

    def __init__(
        self,
        gpu: Gpu,
        spec: Specification,
        space: SearchSpace,
        guard: DeviceGuard | SeveralBoards,
        service: Service,
        under_load: ServiceUnderLoad,
    ) -> None:
        super().__init__(gpu, spec, space, guard)
        # a start costs most, then a change of clocks: the more rows are known at once, the fewer there are of both
        self.batch = 256 if service.argument_names else 8 if setting_names(space) else 1
        self._service = service
        self._under_load = under_load

    def close(self) -> None:
        """End the service where it was started here, and restore the board's settings."""
        try:
            self._under_load.drop()
        finally:
            try:
                super().close()
            finally:
                self._under_load.close()

    # --- inside -----------------------------------------------------------------------------------------------------

    def _ordered(self, rows: Sequence[int]) -> Sequence[int]:
        """Rows of one start together, and of these those of one setting."""
        return by_setting(rows, self._space, self._guard, self._under_load.started_with)

    def _measure(self, row: int, stop: threading.Event) -> Measurement | None:
        configuration = self._space.configuration(row)
        settings = settings_of(self._space, configuration)
        if not self._set(settings, stop):
            return None
        begun_ns = self._gpu.clock.now_ns()
        started_s = 0.0
        try:
            seen: list[_Seen] = []
            for _ in range(self._spec.repeats):
                took_s = self._under_load.prepare(configuration, stop)
                if took_s is None:
                    return None
                started_s += took_s
                one = (
                    self._run(configuration, stop) if self._service.spec.client.run else self._look(configuration, stop)
                )
                if one is None:
                    return None
                seen.append(one)
        except CommandFailed as failure:
            self._under_load.drop()  # whatever it was, the next configuration finds a server that was started for it
            cost_s, source = self._since_s(begun_ns), self.source
            return Measurement.failed(row, configuration, failure.state, str(failure), source=source, cost_s=cost_s)
        return self._measured(row, configuration, seen, started_s, settings, self._since_s(begun_ns))

    def _look(self, configuration: Configuration, stop: threading.Event) -> _Seen | None:
        """One window under the load of a configuration; None when stopped. Raises CommandFailed."""
        spec, under_load = self._service.spec, self._under_load
        served: list[Served] = []
        try:
            load_ns = under_load.begin(configuration)
            began_ns = 0  # once all clients have begun: the load generator takes a moment to start
            all_begun_ns = 0
            next_s = spec.least_s
            while True:
                new = under_load.take(stop)
                if stop.is_set():
                    return None
                if new is not None:
                    served.append(new)
                    note_served(self._gpu.info, new.end_ns, figures_of_requests([new], new.start_ns, new.end_ns))
                    all_begun_ns = all_begun_ns or new.start_ns + round(1e9 * spec.client.ramp_s)
                    if not began_ns and new.start_ns >= all_begun_ns:
                        began_ns, served = new.start_ns, [new]
                if not began_ns:
                    self._check_hope(served, 0.0)
                    if not served and self._since_s(load_ns) > _GENERATOR_S:
                        raise CommandFailed(
                            State.RUNTIME, f"the load generator did not start within {_GENERATOR_S:g} s"
                        )
                    continue
                now_ns = served[-1].end_ns
                elapsed_s = (now_ns - began_ns) / 1e9
                self._check_hope(served, elapsed_s)
                if elapsed_s < min(next_s, spec.most_s):
                    continue
                next_s = elapsed_s * _LOOK_EACH
                window = self._best_window(served, began_ns, now_ns)
                long_enough = window.end_s - window.start_s >= spec.least_s
                if elapsed_s >= spec.most_s or (long_enough and window.narrow(spec.precision)):
                    return self._seen(configuration, served, window, began_ns)
        finally:
            under_load.end_load()

    def _best_window(self, served: Sequence[Served], began_ns: int, now_ns: int) -> Look:
        times_ns, work = work_of(served)
        energy = self._under_load.energy(began_ns, now_ns)
        return look((times_ns - began_ns) / 1e9, work, energy.times_s, energy.power_w, (now_ns - began_ns) / 1e9)

    def _answers(self, served: Sequence[Served], stretch: Look, began_ns: int) -> Known:
        times_ns, answers = answers_of(served)
        energy = self._under_load.energy(began_ns, began_ns + round(stretch.end_s * 1e9))
        times_s = (times_ns - began_ns) / 1e9
        return known_of(stretch.start_s, stretch.end_s, times_s, answers, energy.times_s, energy.power_w)

    def _check_hope(self, served: Sequence[Served], elapsed_s: float) -> None:
        """Raises CommandFailed where requests fail and none is answered, or where none ended in all the time."""
        ended = sum(len(request.requests) for request in served)
        failed = sum(int(request.requests.failed.sum()) for request in served)
        if failed == ended >= _HOPELESS or (failed == ended > 0 and elapsed_s >= self._service.spec.most_s):
            raise CommandFailed(State.RUNTIME, f"all of {failed} requests failed: {faults_in_words(served)}")
        if not ended and elapsed_s >= self._service.spec.most_s:
            raise CommandFailed(State.TIMEOUT, f"no request was answered within {elapsed_s:.1f} s")

    def _seen(self, configuration: Configuration, served: Sequence[Served], stretch: Look, began_ns: int) -> _Seen:
        start_ns, end_ns = (began_ns + round(value * 1e9) for value in (stretch.start_s, stretch.end_s))
        figures = figures_of_requests(served, start_ns, end_ns, SMOOTH)
        work_per_s = figures.get("output_tokens_per_s", 0.0) or figures["requests_per_s"]
        if not work_per_s > 0:
            raise CommandFailed(
                State.TIMEOUT, f"nothing was answered in full within {stretch.end_s - stretch.start_s:.1f} s"
            )
        window = self._under_load.window(start_ns, end_ns, 1.0 / work_per_s)
        remarks = (*self._doubts(configuration, figures, stretch, served), *window.said)
        return _Seen(window, figures, stretch.known, self._answers(served, stretch, began_ns), remarks)

    def _doubts(
        self, configuration: Configuration, figures: Figures, stretch: Look, served: Sequence[Served]
    ) -> Iterator[str]:
        """The reasons why the figures of a window may not hold."""
        spec = self._service.spec
        if not stretch.steady:
            yield f"throughput or power was not steady within {spec.most_s:g} s"
        elif not stretch.narrow(spec.precision):
            half = max(stretch.known.rate_half, stretch.known.power_half)
            precision = f"to ±{percent(half)}" if math.isfinite(half) else "to nothing"
            yield f"after {spec.most_s:g} s throughput and power are known {precision} only"
        late_s = figures.get("sent_late_p99_s", 0.0)
        if late_s > max(_LATE_S, _LATE_SHARE * figures.get("e2e_p50_s", 0.0)):
            yield f"the load generator was up to {1e3 * late_s:.0f} ms late: other work keeps this machine busy"
        if figures.get("errors"):
            yield f"{figures['errors']:.0f} of {figures['requests']:.0f} requests failed: {faults_in_words(served)}"
        asked = self._service.load(configuration).rate_per_s
        if figures["requests_per_s"] < _BEHIND * asked * (1 - stretch.known.rate_half):
            yield f"the service falls behind: {figures['requests_per_s']:.4g} of {asked:.4g} requests/s are answered"

    def _run(self, configuration: Configuration, stop: threading.Event) -> _Seen | None:
        """One run of the program that is the client; None when stopped. Raises CommandFailed."""
        outcome = self._under_load.run_client(configuration, stop)
        if outcome is None:
            return None
        start_ns, end_ns, time_s, figures = outcome
        rate = figures.get("output_tokens_per_s", 0.0) or figures.get("requests_per_s", 0.0)
        window = self._under_load.window(start_ns, end_ns, 1.0 / rate if rate > 0 else time_s)
        return _Seen(window, figures, None, None, window.said)

    def _measured(
        self,
        row: int,
        configuration: Configuration,
        seen: Sequence[_Seen],
        started_s: float,
        settings: Mapping[str, float],
        cost_s: float,
    ) -> Measurement:
        measured = measurement_of(
            self._spec,
            row,
            configuration,
            [item.window for item in seen],
            source=self.source,
            cost_s=cost_s,
            reported=[{**item.figures, **_of_energy(item)} for item in seen],
            more={START: started_s} if started_s else None,
        )
        lines = [text for item in seen for text in item.said] + self._disobedience(measured, settings)
        message = "; ".join(dict.fromkeys(line for line in lines if line))
        return replace(measured, message=message, intervals=_intervals(measured.values, measured.intervals, seen))

    def _since_s(self, begun_ns: int) -> float:
        return (self._gpu.clock.now_ns() - begun_ns) / 1e9


def _of_energy(seen: _Seen) -> Figures:
    """What a token, a request and a unit of work cost, as far as their rates are known: by the smooth mean power.

    The mean power that is stated is the energy that was drawn over the time; of waves it may have a part too many.
    """
    rates = {"energy_per_token_j": "output_tokens_per_s", "energy_per_request_j": "requests_per_s"}
    smooth = 1.0 if seen.work is None else seen.work.smooth_power
    power_w = seen.window.power_w * smooth
    if not math.isfinite(power_w):
        return {}
    figures = {name: power_w / seen.figures[rate] for name, rate in rates.items() if seen.figures.get(rate, 0.0) > 0}
    return figures if seen.work is None else {**figures, "energy_j": seen.window.energy_j * smooth}


def _intervals(values: Mapping[str, float], known: Mapping[str, Interval], seen: Sequence[_Seen]) -> Intervals:
    """The 95 % intervals of the values: what the load wanders by, with what the sensor may be off (`known`).

    None of what the load is not known well enough for: the sensor's alone would promise too much.
    """
    work = [item.work for item in seen if item.work is not None]
    answers = [item.answers for item in seen if item.answers is not None]
    if not work:
        return dict(known)
    low_w, high_w = known.get("power_w", (math.nan, math.nan))
    sensor = (high_w - low_w) / 2 / values["power_w"] if values.get("power_w") else math.nan

    def half(name: str, of: Sequence[Known]) -> float:
        return float(np.mean([getattr(item, name) for item in of])) / math.sqrt(len(of))

    uneven = float(
        np.mean([abs(element.smooth_power - 1) for element in work])
    )  # that far the plain mean is off the smooth
    cost = math.hypot(sensor, half("cost_half", work))
    halves = {
        "time_s": half("rate_half", work),
        "output_tokens_per_s": half("rate_half", work),
        "requests_per_s": half("rate_half", answers),
        "power_w": math.hypot(sensor, half("power_half", work)) + uneven,
        "energy_j": cost,
        "energy_per_token_j": cost,
        "energy_per_request_j": math.hypot(sensor, half("cost_half", answers)),
    }
    result = {name: ends for name, ends in known.items() if name not in halves}
    for name, half_width in halves.items():
        value = values.get(name, math.nan)
        if math.isfinite(value * half_width) and half_width > 0:
            low, high = known.get(name, (value, value))
            wide = max(half_width * abs(value), (high - low) / 2)
            result[name] = (max(0.0, value - wide), value + wide)
    return result
