"""`wattridge monitor --openmetrics`: every figure that the window reads, for Prometheus and Grafana."""

from __future__ import annotations

import math
import threading
from argparse import Namespace
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from ..sensors.channel import POWER_SAMPLES
from ..sensors.gpu import Gpu
from ..sensors.metrics_server import MetricsServer, parse_address
from ..sensors.openmetrics import BoardReading, exposition
from ..sensors.sampler import Sampler, SensorEvent
from ..sensors.trace import Trace
from .terminal import print_json, say, show, stop_on_interrupt

_KEPT_S = 60.0
_STALE_S = 5.0  # a board without a reading for so long does not answer


class Watched:
    """One board with its sampler; `reading` from any thread."""

    def __init__(self, gpu: Gpu, interval_s: float) -> None:
        self.gpu = gpu
        self.trace = Trace(gpu.channels, rate_hz=1.0 / interval_s, span_s=_KEPT_S)
        self._labels = {c.name: c.label for c in (*gpu.channels, POWER_SAMPLES)}
        self._sampler = Sampler(gpu, self.trace, interval_s=interval_s, on_event=self._report)
        self._clocks = gpu.graphics_clocks_mhz()
        self._mutex = threading.Lock()
        self._counted_ns = gpu.clock.now_ns()
        self._energy_j = 0.0
        self._sampler.start()

    def reading(self) -> BoardReading:
        """The last reading; the energy since the reading before is added up."""
        self.add_up()
        last_ns = self.trace.last_ns
        values = self.trace.at(last_ns) if last_ns else {}
        silent_s = (self.gpu.clock.now_ns() - last_ns) / 1e9 / max(1.0, self.gpu.clock.speed)
        answers = silent_s < _STALE_S and any(math.isfinite(value) for value in values.values())
        return BoardReading(
            info=self.gpu.info,
            values=values if answers else {},
            labels_of=self._labels,
            integrated_j=self._energy_j,
            readings=self.trace.appended,
            answers=answers,
            clock_range_mhz=(self._clocks[0], self._clocks[-1]) if self._clocks else None,
        )

    def add_up(self) -> None:
        """Integrate the power up to its newest value; often enough that the trace still holds it.

        The driver's samples come late, so that the newest reading is newer than what is known of the power.
        """
        with self._mutex:
            last_ns = self.trace.last_ns
            if self.trace.power_name == POWER_SAMPLES.name:
                times_ns, _ = self.trace.power_samples(self._counted_ns, last_ns)
                last_ns = int(times_ns[-1]) if len(times_ns) else self._counted_ns
            if last_ns > self._counted_ns:
                energy_j = self.trace.energy_j(self._counted_ns, last_ns)
                self._energy_j += 0.0 if math.isnan(energy_j) else energy_j
                self._counted_ns = last_ns

    def close(self) -> None:
        self._sampler.stop()
        self._sampler.join()
        self.gpu.close()

    def _report(self, event: SensorEvent) -> None:
        say(f"{self.gpu.info.label}: {event}")


def serve(arguments: Namespace) -> int:
    """Serve until Ctrl+C, or for the duration that was asked for."""
    host, port = parse_address(arguments.openmetrics)
    with ExitStack() as ends:
        watched = [Watched(gpu, arguments.interval) for gpu in _boards(arguments)]
        for each in watched:
            ends.callback(each.close)
        server = MetricsServer(host, port, lambda: exposition([each.reading() for each in watched]))
        ends.callback(server.close)
        names = ", ".join(each.gpu.info.label for each in watched)
        say(f"{names}: OpenMetrics at {server.url} (Ctrl+C ends)")
        passed_s = _until_stopped(watched, arguments.duration)
        server.close()  # what is being sent counts or fails
        document: dict[str, Any] = {
            "url": server.url,
            "duration_s": passed_s,
            "served": server.served,
            "gpus": [
                {"gpu": each.gpu.info.name, "source": each.gpu.info.source, "energy_j": each.reading().integrated_j}
                for each in watched
            ],
        }
    if arguments.json:
        print_json(document)
    else:
        show(f"served {document['served']} times in {passed_s:.1f} s")
    return 0


def _boards(arguments: Namespace) -> Sequence[Gpu]:
    """The board that is named; else every real one, or the simulated one that the program shows without a driver."""
    from ..sensors.select import list_gpus, open_gpu

    if arguments.gpu is None:
        found = list_gpus()
        if found and found[0].info.source == "nvml":
            return found
        for gpu in found:
            gpu.close()
    return [open_gpu(arguments.gpu, seed=arguments.sim_seed, speed=arguments.speed)]


def _until_stopped(watched: Sequence[Watched], duration_s: float | None) -> float:
    """Wait on the wall's clock; how long it was."""
    import time

    begun = time.monotonic()
    with stop_on_interrupt() as stopped:
        while not stopped.is_set():
            left_s = math.inf if duration_s is None else begun + duration_s - time.monotonic()
            if left_s <= 0:
                break
            stopped.wait(min(1.0, left_s))
            for each in watched:
                each.add_up()
    return time.monotonic() - begun
