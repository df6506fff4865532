"""`wattridge monitor --openmetrics`: every figure that the window reads, for Prometheus and Grafana."""

from __future__ import annotations

import math
import time
from argparse import Namespace
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from ..errors import InputError
from ..sensors.gpu import Gpu
from ..sensors.metrics_server import MetricsServer, parse_address
from ..sensors.openmetrics import MeteredBoard, exposition
from .terminal import print_json, say, show, stop_on_interrupt


def serve(arguments: Namespace) -> int:
    """Serve until Ctrl+C, or for the duration that was asked for. Raises InputError for options that do not fit."""
    unfit = next((name for name in ("out", "record") if getattr(arguments, name)), None)
    if unfit is not None:
        raise InputError(f"--{unfit} does not go with --openmetrics", "monitor", "run monitor twice")
    if arguments.duration is not None and not 0 < arguments.duration < math.inf:
        raise InputError(f"a duration of {arguments.duration} s", "--duration", "a positive number of seconds")
    if math.isinf(arguments.speed):
        raise InputError("--speed inf does not go with --openmetrics", "monitor", "a server lives on the wall's clock")
    host, port = parse_address(arguments.openmetrics)
    with ExitStack() as ends:
        watched = [MeteredBoard(gpu, interval_s=arguments.interval, report=say) for gpu in _boards(arguments)]
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
        if found and found[0].info.live:
            return found
        for gpu in found:
            gpu.close()
    return [open_gpu(arguments.gpu, seed=arguments.sim_seed, speed=arguments.speed, remote=True)]


def _until_stopped(watched: Sequence[MeteredBoard], duration_s: float | None) -> float:
    """Wait on the wall's clock; how long it was."""
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
