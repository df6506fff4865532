"""`ProcessGpu`: a real board that runs kernels: its sensors here, its launches in the runner process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Final

from ....base.errors import WattridgeError
from ....base.processes import current_stop
from ....sensors.channel import PowerSample, Reading
from ....sensors.gpu import Execution, Gpu, Held, HoldsValues, Load
from ....sensors.limits import DeviceLimits
from ....sensors.throttling import CountsThrottling
from ...metering.launching import require_here
from .own_process import OwnProcess, OwnThread
from .process import KernelFailed, RunnerProcess, RunnerProcesses

DRAIN_S: Final = 20.0  # beyond a launch's own time limit: what is queued may have to run first


class ProcessGpu:
    """Implements `LaunchingGpu` over the sensors of a board. A load's name is the name of a kernel loaded before."""

    def __init__(
        self,
        sensors: Gpu,
        backend: str,
        device: str = "0",
        environment: Mapping[str, str] | None = None,
        *,
        context: str,
        remedy: str = "end what holds the board; wattridge doctor looks at its driver",
        isolated: bool = True,
    ) -> None:
        """Starts the runner process and waits for its context. Raises WattridgeError, with the remedy, without one.

        `backend` is the module that opens the device, in a process with so much more in its environment; `context` is
        what it opens, in words. Unless `isolated`, the context is this process's own, in its environment as it is.
        """
        require_here(sensors)
        self.info = sensors.info
        self.channels = sensors.channels
        self.clock = sensors.clock
        self.timeout_s = 10.0  # of one launch
        # of the command or the session that runs: no process is waited for any longer once it is set
        self.stop: threading.Event = current_stop() or threading.Event()
        self.sensors = sensors
        self.backend = backend
        self._device = device
        self.environment = dict(environment or {})  # of the runner processes, beside this one's
        self._prepared: list[tuple[dict[str, Any], Sequence[bytes]]] = []
        self.processes: RunnerProcesses | OwnProcess
        self.processes = RunnerProcesses(self._start, self._prepare) if isolated else self._own_process()
        try:
            self.described = self.processes.current.request({"do": "describe"})
        except KernelFailed as failure:
            self.processes.close()
            raise WattridgeError(f"no {context}: {failure.what}", sensors.info.label, remedy) from None
        names = {field.name for field in fields(DeviceLimits)}
        limits = self.described["limits"]
        self.limits = DeviceLimits(**{name: value for name, value in limits.items() if name in names})

    # --- looking ----------------------------------------------------------------------------------------------------

    def read(self) -> Reading:
        return self.sensors.read()

    def held(self, channel: str) -> Held | None:
        """As the sensors report."""
        return self.sensors.held(channel) if isinstance(self.sensors, HoldsValues) else None

    def throttled_ns(self) -> Mapping[str, int]:
        """As the sensors report."""
        return self.sensors.throttled_ns() if isinstance(self.sensors, CountsThrottling) else {}

    def power_samples(self, since_ns: int) -> Sequence[PowerSample]:
        return self.sensors.power_samples(since_ns)

    def energy_j(self) -> float:
        return self.sensors.energy_j()

    def graphics_clocks_mhz(self) -> Sequence[int]:
        return self.sensors.graphics_clocks_mhz()

    def memory_clocks_mhz(self) -> Sequence[int]:
        return self.sensors.memory_clocks_mhz()

    def close(self) -> None:
        """End the runner processes. The sensors stay open: they are not ours."""
        self.processes.close()

    # --- running ----------------------------------------------------------------------------------------------------

    def prepare(self, messages: list[tuple[dict[str, Any], Sequence[bytes]]]) -> None:
        """Send the same to this process, the spare one and every later one."""
        self._prepared = messages
        self.processes.prepare_again()

    def ask(
        self,
        message: dict[str, Any],
        blocks: Sequence[bytes] = (),
        *,
        timeout_s: float = 60.0,
        meanwhile: Callable[[], None] | None = None,
    ) -> dict[str, Any]:
        """As `RunnerProcess.request`."""
        return self.processes.current.request(message, blocks, timeout_s=timeout_s, meanwhile=meanwhile)

    def begin(self, load: Load) -> None:
        """Launch the kernel of that name back to back. Raises KernelFailed."""
        self.ask({"do": "begin", "id": load.name}, timeout_s=self.timeout_s + DRAIN_S)

    def lap(self) -> Execution:
        """How it went since `begin` or the last lap; launches go on. Raises KernelFailed."""
        return Execution(**self.ask({"do": "lap"}, timeout_s=self.timeout_s + DRAIN_S))

    def end(self) -> Execution:
        """Stop once what is queued has run; how it went since `begin` or the last lap. Raises KernelFailed."""
        return Execution(**self.ask({"do": "end"}, timeout_s=self.timeout_s + DRAIN_S))

    def few(self, load: Load, seconds: float) -> Execution:
        """How launches for about so long go, at least one, right after those of `warm`. Raises KernelFailed."""
        message = {"do": "few", "id": load.name, "seconds": seconds}
        return Execution(**self.ask(message, timeout_s=2 * self.timeout_s + DRAIN_S))

    # --- inside -----------------------------------------------------------------------------------------------------

    def _start(self) -> RunnerProcess:
        process = RunnerProcess(self.backend, self._device, self.environment)
        process.stopping = lambda: self.stop.is_set()
        return process

    def _own_process(self) -> OwnProcess:
        return OwnProcess(self.backend, self._device, self._prepare, self.clock.now_ns)

    def _prepare(self, process: RunnerProcess | OwnThread) -> None:
        for message, blocks in self._prepared:
            process.post(message, blocks)
