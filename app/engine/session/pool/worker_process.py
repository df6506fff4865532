"""A board of a pool, as a process: a Dask worker that answers requests for it."""

from __future__ import annotations

import asyncio
import os
import platform
import secrets
import shutil
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any, Final

from distributed import Worker
from distributed.comm.addressing import get_address_host
from distributed.utils import get_ip

from ....sensors.select import open_gpu
from ....standard_error import say
from ...children.scratch import scratch_folder
from ...control.guard import DeviceGuard
from ...runner.pool import tasks
from ...runner.pool.certificates import Certificates, find_certificates
from ...runner.pool.messages import AHEAD
from ...runner.pool.network import security_of, settle
from .board_work import BoardWork
from .child import run_child

_SAY_S: Final = 3.0  # without a scheduler, until the user hears of it
_IDLE_LOOK_S: Final = 5.0
_CLOSE_S: Final = 3.0
_AGAIN_S: Final = 0.5


class PoolWorker(Worker):  # type: ignore[misc]  # Dask has no types
    """A Dask worker with a board; it has as many threads as requests.

    Of the requests for a board one is answered and the next waits beside it, whose rows the board knows meanwhile.
    """

    def __init__(self, work: BoardWork, scheduler: str, **options: Any) -> None:
        self._work = work
        announced = {tasks.ANNOUNCED: lambda _worker: work.announcement}
        super().__init__(
            scheduler,
            nthreads=AHEAD,
            resources={tasks.GPU_RESOURCE: AHEAD},
            startup_information=announced,
            dashboard=False,
            memory_limit=0,
            **options,
        )
        self.handlers[tasks.END_UNTIL] = self.end_until

    def start_http_server(self, *_: Any, **__: Any) -> None:
        """None is started: nothing listens that TLS does not guard."""

    def answer_request(self, number: int, line: bytes, topic: str) -> bytes:
        """The answer to a request, on a thread of the worker's; parts are published as they come."""
        return self._work.answer(line, lambda part: self.log_event(topic, [number, part]), topic)

    def end_until(self, session: str = "", number: int = 0) -> str:
        """A handler: requests of that session up to that number end early."""
        if isinstance(session, str) and isinstance(number, int):
            self._work.end_until(session, number)
        return "OK"


async def serve(task: Mapping[str, Any], end: asyncio.Event, ready: Callable[[Mapping[str, Any]], None]) -> None:
    """Offer what the task names to the scheduler, whenever that is there, until the parent is gone.

    Raises WattridgeError.
    """
    settle()
    certificates = find_certificates(Path(task["certificates"]))
    host = platform.node() or "a machine without a name"
    with ExitStack() as stack:
        _keep_to_share(task["number"], task["workers"])
        gpu = stack.enter_context(closing(open_gpu(task["gpu"], seed=task["seed"], speed=task["speed"])))
        guard = DeviceGuard(gpu, allow_control=task["allow_control"], by="pool")
        key = gpu.info.uuid if gpu.info.live else f"{gpu.info.uuid}@{host}/{task['number']}"
        work = BoardWork(gpu, guard, host=host, key=key)
        try:
            while not end.is_set():
                with suppress(OSError, ValueError, RuntimeError):  # the scheduler is not there, or was lost
                    await _offer(work, task["scheduler"], certificates, end, ready)
                with suppress(TimeoutError):
                    await asyncio.wait_for(end.wait(), _AGAIN_S)
        finally:
            await asyncio.to_thread(work.close)


def _keep_to_share(number: int, workers: int) -> None:
    """Use this worker's share of the cores: each compiles on as many as it finds, and must not disturb the others."""
    if hasattr(os, "sched_setaffinity"):
        own = sorted(os.sched_getaffinity(0))[number::workers]
        if len(own) > 1:
            os.sched_setaffinity(0, own)


async def _offer(
    work: BoardWork,
    scheduler: str,
    certificates: Certificates,
    end: asyncio.Event,
    ready: Callable[[Mapping[str, Any]], None],
) -> None:
    """Be a worker of the scheduler until that, or the parent, is gone. Raises OSError where it is not there."""
    folder = scratch_folder()
    worker = PoolWorker(
        work,
        scheduler,
        host=get_ip(get_address_host(scheduler)),
        name=f"{work.key} {secrets.token_hex(4)}",
        security=security_of(certificates),
        local_directory=str(folder),
    )
    try:
        if await _has_started(worker, scheduler, end):
            ready({"board": work.label, "address": worker.address})
            await _until_over(worker, work, end)
    finally:
        work.abandon()
        with suppress(Exception):
            await asyncio.wait_for(worker.close(executor_wait=False, nanny=False), _CLOSE_S)
        shutil.rmtree(folder, ignore_errors=True)


async def _has_started(worker: PoolWorker, scheduler: str, end: asyncio.Event) -> bool:
    """Wait until the scheduler has taken the worker; False where the parent is gone before. Raises OSError.

    Dask tries again by itself for as long as nobody answers, or whoever does has certificates of another pool.
    """
    starting, ended = asyncio.create_task(_started(worker)), asyncio.create_task(end.wait())
    try:
        done, _ = await asyncio.wait((starting, ended), timeout=_SAY_S, return_when=asyncio.FIRST_COMPLETED)
        if not done:
            say(f"no scheduler of this pool answers at {scheduler} yet; it is tried again")
            await asyncio.wait((starting, ended), return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            starting.result()
        return starting.done()
    finally:
        starting.cancel()
        ended.cancel()


async def _started(worker: PoolWorker) -> None:
    await worker


async def _until_over(worker: PoolWorker, work: BoardWork, end: asyncio.Event) -> None:
    ended = [asyncio.create_task(worker.finished()), asyncio.create_task(end.wait())]
    while not any(each.done() for each in ended):
        await asyncio.wait(ended, timeout=_IDLE_LOOK_S, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.to_thread(work.let_go_where_idle)
    for each in ended:
        each.cancel()


if __name__ == "__main__":
    sys.exit(run_child(serve))
