"""What is used of PyTorch, with a device that takes its time: launches return at once, events mark its queue."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any


class Device:
    """Runs what is launched one after the other."""

    def __init__(self) -> None:
        self.free_ns = time.perf_counter_ns()
        self.launches = 0

    def launch(self, seconds: float) -> None:
        self.launches += 1
        self.free_ns = max(self.free_ns, time.perf_counter_ns()) + round(seconds * 1e9)

    def wait_until(self, at_ns: int) -> None:
        while (left_ns := at_ns - time.perf_counter_ns()) > 0:
            time.sleep(left_ns / 1e9)


class Graph:
    """A graph of what was launched while it was captured."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self.seconds: list[float] = []

    def replay(self) -> None:
        for each in self.seconds:
            self._device.launch(each)


def stand_in(device: Device) -> Any:
    """The module."""

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

    cuda = SimpleNamespace(
        Event=Event,
        is_available=lambda: True,
        is_initialized=lambda: True,
        synchronize=lambda: device.wait_until(device.free_ns),
    )
    return SimpleNamespace(cuda=cuda, __name__="torch")
