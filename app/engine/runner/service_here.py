"""A real service on real time: its process, its client, and what all its boards draw meanwhile."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import or_
from typing import Final

import numpy as np

from ...base.errors import WattridgeError
from ...sensors.gpu import Gpu
from ...sensors.service import Served
from ..metering.external_meters import meters_beside
from ..metering.power_source import Energy
from ..metering.span import Span, read_span, window_of
from ..metering.watching import Watch, mark_all, watch
from ..metering.window import Window
from ..results.measurement import Configuration, State, Value
from ..workloads.command import CommandFailed
from ..workloads.service import GeneratedLoad, RunningService, Service

_PAUSE_S: Final = 0.25  # between two looks at what the load generator reports


class ServiceHere:
    """Implements `ServiceUnderLoad` with a server of this machine, or one that is attached to."""

    def __init__(self, gpu: Gpu, service: Service) -> None:
        """Raises InputError and SensorError for a board of the service that is not there."""
        self._gpu = gpu
        self._service = service
        self._watches = _watched(gpu, service.spec.boards)
        self._running: RunningService | None = None
        self._started_with: dict[str, Value] = {}
        self._load: GeneratedLoad | None = None

    @property
    def others(self) -> list[Gpu]:
        """The boards that it runs on beside the session's."""
        return [item.gpu for item in self._watches[1:]]

    @property
    def started_with(self) -> dict[str, Value | None]:
        names = self._service.argument_names
        return {name: self._started_with.get(name) if self._running is not None else None for name in names}

    def prepare(self, configuration: Configuration, stop: threading.Event) -> float | None:
        """Have it run with the arguments of a configuration; the seconds that a start took, 0 without one.

        None where `stop` was set. Raises CommandFailed.
        """
        wanted = self._service.arguments(configuration)
        running = self._running
        if running is not None and wanted == self._started_with and not running.why_ended:
            return 0.0
        self.drop()
        self._running = self._service.start(configuration, stop)
        if self._running is None:
            return None
        self._started_with = wanted
        return 0.0 if math.isnan(self._running.start_s) else self._running.start_s

    def begin(self, configuration: Configuration) -> int:
        """Begin the load of a configuration; when that was, on the board's clock. Raises CommandFailed."""
        assert self._running is not None
        load = self._service.load(configuration)
        self._load = GeneratedLoad(self._service.spec.client, self._running.url, load)
        return self._gpu.clock.now_ns()

    def take(self, stop: threading.Event) -> Served | None:
        """What became of requests since the last call; None if nothing was reported. Raises CommandFailed."""
        assert self._load is not None
        assert self._running is not None
        self._gpu.clock.wait(_PAUSE_S, stop)
        mark_all(self._watches)
        served = self._load.take()
        if how := self._running.why_ended:
            raise CommandFailed(State.RUNTIME, f"the server ended under load: {how}")
        if served is not None and served.problem:
            raise CommandFailed(State.RUNTIME, served.problem)
        return served

    def end_load(self) -> None:
        """Drop what is under way. Safe to call twice."""
        if self._load is not None:
            self._load.end()
            self._load = None

    def energy(self, start_ns: int, end_ns: int) -> Energy:
        """What all the boards drew between two times."""
        return _added([_energy_of(read_span(value, start_ns, end_ns)) for value in self._watches])

    def window(self, start_ns: int, end_ns: int, time_s: float) -> Window:
        """The figures of the boards, `time_s` for each unit of work: the power is of all, the rest of the session's."""
        spans = [read_span(value, start_ns, end_ns) for value in self._watches]
        window = window_of(spans[0], (start_ns, end_ns), time_s)
        if len(spans) == 1:
            beside = meters_beside(self._gpu.info)
            return window if beside is None else beside.complete(window, steady=False)
        energy = _added([_energy_of(span) for span in spans])
        return replace(
            window,
            power_w=energy.mean_power_w,
            power_interval_w=energy.power_interval_w,
            peak_power_w=float(np.max([span.sampled_peak_w for span in spans])),  # each board has the limit for itself
            throttled_share=float(np.max([span.throttled_share for span in spans])),
            event_reasons=reduce(or_, (span.event_reasons for span in spans)),
            power_source=f"{window.power_source}, {len(spans)} boards together",
            evidence=replace(window.evidence, power_w=energy.power_w)
            if window.evidence and not energy.unknown
            else None,
            said=(f"energy is not known: {energy.unknown}",) if energy.unknown else (),
        )

    def run_client(
        self, configuration: Configuration, stop: threading.Event
    ) -> tuple[int, int, float, dict[str, float]] | None:
        """Run the program that is the client: start and end, seconds on the wall, figures; None where stopped."""
        assert self._running is not None
        mark_all(self._watches)
        outcome = self._service.run_client(configuration, self._running, stop, self._gpu.clock.now_ns)
        if outcome is None:
            return None
        ended, figures = outcome
        if how := self._running.why_ended:
            raise CommandFailed(State.RUNTIME, f"the server ended under load: {how}")
        return ended.start_ns, ended.end_ns, ended.time_s, figures

    def drop(self) -> None:
        """End load and server: the next configuration starts it again."""
        self.end_load()
        if self._running is not None:
            self._running.end()
            self._running = None

    def close(self) -> None:
        """End everything. Safe to call twice."""
        self.drop()
        for item in self._watches:
            item.release()
        self._watches = []


def _watched(gpu: Gpu, others: Sequence[str]) -> list[Watch]:
    """All that it runs on, each once."""
    watches = [watch(gpu)]
    try:
        for name in others:
            other = watch(name)
            if other.gpu.info.uuid in {item.gpu.info.uuid for item in watches}:
                other.release()
            else:
                watches.append(other)
    except WattridgeError:
        for item in watches:
            item.release()
        raise
    return watches


def _energy_of(span: Span) -> Energy:
    return Energy(span.times_s, span.power_w, span.energy_j, span.mean_power_w, span.power_interval_w, span.unknown)


def _added(energies: Sequence[Energy]) -> Energy:
    """Of all boards together: their intervals add up, as the sensors of one model may be off alike."""
    first, *others = energies
    if not others:
        return first
    unknown = next((energy.unknown for energy in energies if energy.unknown), "")
    if unknown:
        return replace(first, energy_j=math.nan, mean_power_w=math.nan, power_interval_w=None, unknown=unknown)
    power_w = first.power_w + sum(np.interp(first.times_s, other.times_s, other.power_w) for other in others)
    ends = [energy.power_interval_w for energy in energies]
    present = [end for end in ends if end is not None]
    interval = (sum(low for low, _ in present), sum(high for _, high in present)) if len(present) == len(ends) else None
    total_j, total_w = (sum(getattr(energy, name) for energy in energies) for name in ("energy_j", "mean_power_w"))
    return Energy(first.times_s, power_w, total_j, total_w, interval)
