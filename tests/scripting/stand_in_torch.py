"""What is used of PyTorch, with a device that takes its time: launches return at once, events mark its queue."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any


class Device:
    """Runs what is launched one after the other."""

    def __init__(self) -> None:
        self.free_ns = time.perf_counter_ns()
        self.launches = 0
        self.captured: list[float] | None = None  # what is launched goes there

    def launch(self, seconds: float) -> None:
        if self.captured is not None:
            self.captured.append(seconds)
            return
        self.launches += 1
        self.free_ns = max(self.free_ns, time.perf_counter_ns()) + round(seconds * 1e9)

    def wait_until(self, at_ns: int) -> None:
        while (left_ns := at_ns - time.perf_counter_ns()) > 0:
            time.sleep(left_ns / 1e9)


def stand_in(device: Device, *, graphs: bool = False) -> Any:
    """The module; where it has no graphs, what is launched while one is captured cannot be."""

    class Event:
        def __init__(self, enable_timing: bool = False) -> None:
            assert enable_timing
            self.at_ns = 0

        def record(self) -> None:
            self.at_ns = max(device.free_ns, time.perf_counter_ns())

        def synchronize(self) -> None:
            device.wait_until(self.at_ns)

        def elapsed_time(self, later: Event) -> float:
            return (later.at_ns - self.at_ns) / 1e6

    class CUDAGraph:
        def __init__(self) -> None:
            self.seconds: list[float] = []

        def replay(self) -> None:
            device.launch(sum(self.seconds))

    @contextmanager
    def capture(graph: CUDAGraph) -> Iterator[None]:
        if not graphs:
            raise RuntimeError("operation not permitted when stream is capturing")
        device.captured = graph.seconds
        yield
        device.captured = None

    stream = SimpleNamespace(wait_stream=lambda _other: None)
    cuda = SimpleNamespace(
        Event=Event,
        CUDAGraph=CUDAGraph,
        Stream=lambda: stream,
        current_stream=lambda: stream,
        stream=lambda _stream: nullcontext(),
        graph=capture,
        is_available=lambda: True,
        is_initialized=lambda: True,
        synchronize=lambda: device.wait_until(device.free_ns),
    )
    return SimpleNamespace(cuda=cuda, __name__="torch")
