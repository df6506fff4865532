"""A service that a simulated board models: no server runs. The board's clock passes as fast as its power is read."""

from __future__ import annotations

import math
import threading
from contextlib import ExitStack, suppress
from functools import reduce
from operator import or_
from typing import Final, Protocol

import numpy as np

from ...sensors.channel import Reading
from ...sensors.clock import ScaledClock
from ...sensors.gpu import Gpu, NotSupported, SensorError
from ...sensors.service import Requests, Served, ServesLoad, ServiceLoad
from ..metering.characterisation.store import known_characterisation
from ..metering.meter import throttled_share
from ..metering.power_source import Energy, PowerSource, find_sensor
from ..metering.window import Window
from ..results.evidence import EVIDENT, Evidence
from ..results.measurement import Configuration, State, Value
from ..workloads.command import CommandFailed
from ..workloads.service import Service

TAKEN_S: Final = 1.0  # of a load at once
_POLLED_S: Final = 0.1  # between two readings where the board keeps no buffer of power, at least


class ModelledBoard(Gpu, ServesLoad, Protocol):
    """A board that is both."""


class ServiceModelled:
    """Implements `ServiceUnderLoad` with a board that implements `ServesLoad`."""

    def __init__(self, gpu: ModelledBoard, service: Service) -> None:
        self._gpu = gpu
        self._service = service
        self._started_with: dict[str, Value] | None = None
        self._load: ServiceLoad | None = None
        self._buffered = False
        with suppress(SensorError):
            gpu.power_samples(gpu.clock.now_ns())
            self._buffered = True
        characterisation = None
        with suppress(OSError):  # without a data folder one can measure too
            characterisation = known_characterisation(gpu.info)
        self._sensor = find_sensor(gpu, characterisation, buffered=self._buffered)
        self._source: PowerSource | None = None  # of the load
        self._newest_ns = 0
        self._readings: list[Reading] = []
        self._stepping = ExitStack()

    @property
    def started_with(self) -> dict[str, Value | None]:
        started = self._started_with or {}
        return {name: started.get(name) for name in self._service.argument_names}

    def prepare(self, configuration: Configuration, stop: threading.Event) -> float | None:
        """As of `ServiceHere`: the seconds that a start took pass on the board's clock."""
        if stop.is_set():
            return None
        wanted = self._service.arguments(configuration)
        if wanted == self._started_with:
            return 0.0
        self.drop()
        begun_ns = self._gpu.clock.now_ns()
        try:
            self._gpu.start_service(wanted)
        except NotSupported as error:
            raise CommandFailed(State.CONSTRAINTS, str(error)) from None
        self._started_with = wanted
        return (self._gpu.clock.now_ns() - begun_ns) / 1e9

    def begin(self, configuration: Configuration) -> int:
        """Begin the load of a configuration; when that was, on the board's clock. Raises CommandFailed."""
        self._load = self._service.load(configuration)
        if isinstance(self._gpu.clock, ScaledClock) and self._gpu.clock.speed > 1.0:
            self._stepping.enter_context(self._gpu.clock.stepped())
        self._source = None if self._sensor is None else PowerSource(self._sensor, kept_s=math.inf)
        self._newest_ns = self._gpu.clock.now_ns()
        self._readings = []
        return self._newest_ns

    def take(self, stop: threading.Event) -> Served | None:
        """What became of requests in the next second of the board's clock."""
        assert self._load is not None
        parts: list[Served] = []
        step_s = TAKEN_S if self._buffered else max(_POLLED_S, self._sensor.poll_s if self._sensor else 0.0)
        while not stop.is_set() and sum(part.end_ns - part.start_ns for part in parts) < TAKEN_S * 1e9 - 1e3:
            parts.append(self._gpu.serve(self._load, step_s))
            self._read()
        return _joined(parts) if parts else None

    def end_load(self) -> None:
        """Nothing is left under way: the next load is another one."""
        self._stepping.close()
        self._load = None

    def energy(self, start_ns: int, end_ns: int) -> Energy:
        """What the board drew between two times."""
        if self._source is None:
            return Energy(np.empty(0), np.empty(0), unknown="the board reports no power")
        return self._source.energy(start_ns, end_ns)

    def window(self, start_ns: int, end_ns: int, time_s: float) -> Window:
        """The figures of the board, `time_s` for each unit of work."""
        energy = self.energy(start_ns, end_ns)
        reasons = self._reported("event_reasons", start_ns, end_ns)
        inside = [reading for reading in self._readings if start_ns <= reading.time_ns <= end_ns]
        readings = [(reading.time_ns, *(self._value(reading, name) for name in EVIDENT)) for reading in inside]
        evidence = Evidence.of([(start_ns, end_ns)], energy.times_s, energy.power_w, readings)
        return Window(
            time_s=time_s,
            power_w=energy.mean_power_w,
            power_interval_w=energy.power_interval_w,
            observed_clock_mhz=self._mean("graphics_clock_mhz", start_ns, end_ns),
            temperature_c=self._mean("temperature_c", start_ns, end_ns),
            core_voltage_mv=self._mean("core_voltage_mv", start_ns, end_ns),
            memory_clock_mhz=self._mean("memory_clock_mhz", start_ns, end_ns),
            event_reasons=reduce(or_, map(int, reasons), 0),
            peak_power_w=math.nan if self._sensor is None else self._sensor.peak_w(energy.power_w),
            throttled_share=throttled_share(reasons),
            window_ns=(start_ns, end_ns),
            power_source=f"{self._sensor.words if self._sensor else 'none'}, {self._gpu.info.source}",
            settled=None,
            said=(f"energy is not known: {energy.unknown}",) if energy.unknown else (),
            evidence=None if energy.unknown else evidence,
        )

    def run_client(
        self, configuration: Configuration, stop: threading.Event
    ) -> tuple[int, int, float, dict[str, float]] | None:
        """Raise CommandFailed: an external program cannot send requests to a model."""
        raise CommandFailed(
            State.CONSTRAINTS, "a program cannot ask a service that is simulated: use the load generator"
        )

    def drop(self) -> None:
        """End the service: the next configuration starts it again."""
        self._gpu.stop_service()
        self._started_with = None

    def close(self) -> None:
        """End everything. Safe to call twice."""
        self.drop()

    # --- inside -----------------------------------------------------------------------------------------------------

    def _read(self) -> None:
        reading = self._gpu.read()
        self._readings.append(reading)
        if self._source is None or self._sensor is None:
            return
        if self._sensor.channel is not None:
            self._source.poll(reading.time_ns, self._value(reading, self._sensor.channel))
            return
        samples = self._gpu.power_samples(self._newest_ns)
        self._source.add_samples((sample.time_ns, sample.power_w) for sample in samples)
        self._newest_ns = samples[-1].time_ns if samples else self._newest_ns

    def _value(self, reading: Reading, name: str) -> float:
        names = [channel.name for channel in self._gpu.channels]
        return reading.values[names.index(name)] if name in names else math.nan

    def _mean(self, name: str, start_ns: int, end_ns: int) -> float:
        values = self._reported(name, start_ns, end_ns)
        return float(np.mean(values)) if values else math.nan

    def _reported(self, name: str, start_ns: int, end_ns: int) -> list[float]:
        values = (self._value(reading, name) for reading in self._readings if start_ns <= reading.time_ns <= end_ns)
        return [value for value in values if not math.isnan(value)]


def _joined(parts: list[Served]) -> Served:
    faults: dict[str, int] = {}
    for part in parts:
        for words, count in part.faults.items():
            faults[words] = faults.get(words, 0) + count
    return Served(
        start_ns=parts[0].start_ns,
        end_ns=parts[-1].end_ns,
        requests=Requests.joined([part.requests for part in parts]),
        idle_s=sum(part.idle_s for part in parts),
        output_tokens=sum(part.output_tokens for part in parts),
        problem=next((part.problem for part in parts if part.problem), ""),
        faults=faults,
    )
