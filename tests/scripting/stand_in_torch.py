"""What is used of PyTorch, with a device whose time is the sum of what was launched, whatever the host is busy with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any


class Device:
    """Runs what is launched one after the other, without a gap, in no time of the host's."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.launches = 0
        self.captured: list[float] | None = None  # what is launched goes there

    def launch(self, seconds: float) -> None:
        if self.captured is not None:
            self.captured.append(seconds)
            return
        self.launches += 1
        self.seconds += seconds


def stand_in(device: Device, *, graphs: bool = False) -> Any:
    """The module; where it has no graphs, what is launched while one is captured cannot be."""

    class Event:
        def __init__(self, enable_timing: bool = False) -> None:
            assert enable_timing
            self.at_s: float | None = None

        def record(self) -> None:
            self.at_s = device.seconds

        def synchronize(self) -> None:
            assert self.at_s is not None

        def elapsed_time(self, later: Event) -> float:
            assert self.at_s is not None
            assert later.at_s is not None
            return (later.at_s - self.at_s) * 1e3

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
        synchronize=lambda: None,
    )
    return SimpleNamespace(cuda=cuda, __name__="torch")
