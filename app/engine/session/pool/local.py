"""`LocalPool`: a pool that this machine has to itself: a scheduler and a worker for each board, on loopback.

Its certificates are made for it and go with it: other users of the machine cannot take part.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ....errors import WattridgeError
from ...children.scratch import scratch_folder
from ...children.supervised import Child, Supervisor
from ...runner.pool.certificates import Certificates, make_certificates

READY_S: Final = 180.0
_LOOK_S: Final = 0.2
_PACKAGE: Final = __package__


def worker_children(
    selectors: Sequence[str],
    scheduler: str,
    certificates: Certificates,
    *,
    seed: int = 0,
    speed: float = 1.0,
    allow_control: bool = False,
) -> list[Child]:
    """The workers of this machine's boards as children; the noise of simulated ones begins at `seed` and differs."""
    return [
        Child(
            f"worker of {selector}",
            f"{_PACKAGE}.worker_process",
            {
                "scheduler": scheduler,
                "certificates": str(certificates.folder),
                "gpu": selector,
                "number": number,
                "workers": len(selectors),
                "seed": seed + number,
                "speed": speed,
                "allow_control": allow_control,
            },
        )
        for number, selector in enumerate(selectors)
    ]


class LocalPool:
    """Runs until it is closed; what dies of it is started again."""

    def __init__(
        self,
        selectors: Sequence[str],
        *,
        seed: int = 0,
        speed: float = 1.0,
        allow_control: bool = False,
        on_line: Callable[[str], None] = lambda _: None,
        stop: threading.Event | None = None,
    ) -> None:
        """Raises WattridgeError where the scheduler does not start, a board does not open, or `stop` is set before."""
        self._stop = stop or threading.Event()
        self._folder = scratch_folder()
        self._supervisors: list[Supervisor] = []
        try:
            self.certificates = make_certificates(self._folder / "certificates")
            self.address = self._start_scheduler(on_line)
            children = worker_children(
                selectors, self.address, self.certificates, seed=seed, speed=speed, allow_control=allow_control
            )
            self.workers = self._supervise(children, on_line)
            for child in children:
                if self._until_ready(self.workers, child) is None:
                    raise WattridgeError(child.failed or "it does not get ready", child.name)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End all of it. Safe to call twice."""
        for supervisor in reversed(self._supervisors):
            supervisor.close()
        self._supervisors.clear()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _start_scheduler(self, on_line: Callable[[str], None]) -> str:
        task = {"address": f"tls://127.0.0.1:{_free_port()}", "certificates": str(self.certificates.folder)}
        child = Child("scheduler", f"{_PACKAGE}.scheduler_process", task)
        self.scheduler = self._supervise([child], on_line)
        ready = self._until_ready(self.scheduler, child)
        if ready is None:
            raise WattridgeError(child.failed or "it does not start", "scheduler of the pool")
        return str(ready["address"])

    def _until_ready(self, supervisor: Supervisor, child: Child) -> Mapping[str, Any] | None:
        until, ready = time.monotonic() + READY_S, None
        while ready is None and not child.failed and not self._stop.is_set() and time.monotonic() < until:
            ready = supervisor.until_ready(child, _LOOK_S)
        return ready

    def _supervise(self, children: Sequence[Child], on_line: Callable[[str], None]) -> Supervisor:
        supervisor = Supervisor(children, on_line)
        self._supervisors.append(supervisor)
        return supervisor


def _free_port() -> int:
    """A port of loopback that is free now: a scheduler that is started again has the same one."""
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
