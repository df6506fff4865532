"""Sessions over 1 to 1,000 simulated boards: configurations per second, what the session's thread needs, store writes.

    python tests/benchmarks/pool_scale.py [--boards 1,10,100,1000] [--measurement 0.35] [--strategy random_sample,auto]
    python tests/benchmarks/pool_scale.py --dask 1,10,100 [--measurement 0.35]

The first form is the session as it is: strategy, `PoolRunner`, store on disk, and the lines of JSON of the
pool's protocol. The boards are coroutines of another process, each of which takes `--measurement` seconds of real time
for a configuration; what carries the lines is a pipe in place of Dask. `0` seconds shows what the session's own thread
can do. `thread` is the processor time of that thread over the wall time, and `ms each` over the configurations: it
holds on a busy machine too, and its inverse is where one session saturates.

The second form is a real scheduler of Dask in a process of its own, under TLS, with so many real Dask workers, which
are coroutines of one further process; each request is one configuration. `scheduler` is the scheduler's processor time
over the wall time.
"""

from __future__ import annotations

import argparse
import asyncio
import heapq
import multiprocessing as mp
import os
import queue
import sys
import tempfile
import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np  # noqa: E402

from app.base.paths import resources  # noqa: E402
from app.engine.control.serving import hello_of  # noqa: E402
from app.engine.results.measurement import Measurement, State  # noqa: E402
from app.engine.runner.boards import InProcess  # noqa: E402
from app.engine.runner.pool.messages import (  # noqa: E402
    Abilities,
    Bundle,
    abilities_document,
    answer_line,
    begun_line,
    measured_line,
    parse_request,
    rows_of,
)
from app.engine.runner.pool.pool import Heard, PoolBoard, Said  # noqa: E402
from app.engine.runner.pool.runner import PoolRunner  # noqa: E402
from app.engine.session.load import load_specification  # noqa: E402
from app.engine.session.planning import plan_specification  # noqa: E402
from app.engine.session.run import run_session  # noqa: E402
from app.engine.specification.model import Specification, evaluate_metrics  # noqa: E402
from app.engine.specification.plan import SearchOptions  # noqa: E402
from app.engine.store.database import Store  # noqa: E402
from app.sensors.clock import VirtualClock  # noqa: E402
from app.sensors.simulated.gpu import SimulatedGpu  # noqa: E402
from app.sensors.simulated.twin import load_twin  # noqa: E402

EACH = 60  # configurations of a board
MOST = 12_000  # of a session
ROW = "{:>7} {:14}{:>9}{:>9}{:>8}{:>8}{:>9}{:>10}{:>10}{:>9}"


def specification() -> Specification:
    return load_specification(resources() / "examples" / "gemm.toml")


class Figures:
    """What a board would report of a row: the same for all, but for its gain and noise."""

    def __init__(self, spec: Specification, space: Any) -> None:
        self._spec, self._space = spec, space

    def __call__(self, row: int, board: int) -> Measurement:
        configuration = self._space.configuration(row)
        drawn = np.random.default_rng((row, board)).standard_normal()
        power_w = (100.0 + row % 251) * (1.0 + 0.02 * np.sin(board)) * (1.0 + 0.004 * drawn)
        values = {"time_s": 1e-3 * (1 + row % 97), "power_w": power_w, "energy_j": 1e-3 * (1 + row % 97) * power_w}
        values |= evaluate_metrics(self._spec, configuration, values)
        ends = {name: (0.99 * values[name], 1.01 * values[name]) for name in ("power_w", "energy_j")}
        return Measurement(row, configuration, State.OK, values, ends, source="simulated", timestamp_s=0.0)


def far_side(pipe: Connection, figures: Figures, measurement_s: float) -> None:
    """All boards, in one process: each works off its requests one row after the other."""
    waiting: dict[str, deque[tuple[int, int, bool, list[Measurement]]]] = {}
    due: list[tuple[float, str]] = []
    while True:
        timeout = max(0.0, due[0][0] - time.monotonic()) if due else None
        if pipe.poll(timeout):
            message = pipe.recv()
            if message is None:
                return
            board, number, line = message
            request = parse_request(line)
            if request.do != "measure":
                documents = {
                    "open": abilities_document(Abilities(frozenset(), (), 8)),
                    "restate": {"measurements": list(request.measurements)},
                    "conclude": {"origin": {}},
                }
                pipe.send((number, board, answer_line(number, documents.get(request.do, {}))))
                continue
            pipe.send((number, board, begun_line(number)))
            own = waiting.setdefault(board, deque())
            found: list[Measurement] = []
            if not own:
                heapq.heappush(due, (time.monotonic() + measurement_s, board))
            own.extend((number, row, row == request.rows[-1], found) for row in request.rows)
        now = time.monotonic()
        while due and due[0][0] <= now:
            _, board = heapq.heappop(due)
            number, row, last, found = waiting[board].popleft()
            found.append(figures(row, int(board[1:])))
            pipe.send((number, board, measured_line(number, found[-1])))
            if last:
                pipe.send((number, board, answer_line(number, {"measured": rows_of(found)})))
            if waiting[board]:
                heapq.heappush(due, (now + measurement_s, board))


class PipePool:
    """Implements `Pool` over a pipe to `far_side`."""

    def __init__(self, boards: int, figures: Figures, measurement_s: float) -> None:
        gpu = SimulatedGpu(load_twin("a100"), clock=VirtualClock())
        first = PoolBoard("b0", "simulation", hello_of(gpu), gpu.limits)
        self._boards = tuple(replace(first, key=f"b{number}") for number in range(boards))
        self._pipe, other = mp.Pipe()
        self._far = mp.get_context("fork").Process(target=far_side, args=(other, figures, measurement_s), daemon=True)
        self._far.start()
        self.model = first.model
        self._heard: queue.SimpleQueue[Said] = queue.SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()  # as Dask has a thread of its own

    def _listen(self) -> None:
        with suppress(EOFError, OSError):
            while True:
                self._heard.put(Said(*self._pipe.recv()))

    def boards(self) -> tuple[PoolBoard, ...]:
        return self._boards

    def send(self, board: str, number: int, line: bytes) -> None:
        self._pipe.send((board, number, line))

    def cancel(self, number: int) -> None:
        pass

    def end_until(self, session: str, number: int) -> None:
        pass

    def heard(self, timeout_s: float) -> Heard | None:
        try:
            return self._heard.get(timeout=timeout_s) if timeout_s > 0 else self._heard.get_nowait()
        except queue.Empty:
            return None

    def close(self) -> None:
        self._pipe.send(None)
        self._far.join(10)


class CountingStore(Store):
    """Counts what it commits."""

    commits = 0
    write_s = 0.0

    def append(self, *arguments: Any, **named: Any) -> None:
        begun = time.perf_counter()
        super().append(*arguments, **named)
        self.commits += 1
        self.write_s += time.perf_counter() - begun


def one_session(boards: int, strategy: str, measurement_s: float) -> None:
    gpu = SimulatedGpu(load_twin("a100"), clock=VirtualClock())
    clocks = tuple(gpu.graphics_clocks_mhz())
    budget = min(MOST, EACH * boards)
    options = SearchOptions(strategy=strategy, max_evaluations=budget, device_settings={"graphics_clock_mhz": clocks})
    spec = specification()
    plan = plan_specification(spec, gpu, options)
    pool = PipePool(boards, Figures(spec, plan.space), measurement_s)
    runner = PoolRunner(pool, pool.model, "simulated", plan.space, Bundle("k.toml", {"k.toml": b""}))
    while len(runner.boards) < boards:
        runner._hear(0.05)
    plan = replace(plan, boards=InProcess(lambda _: runner))
    with tempfile.TemporaryDirectory() as folder, CountingStore(Path(folder) / "store.sqlite") as store:
        wall, cpu, process = time.perf_counter(), time.thread_time(), time.process_time()
        result = run_session(plan, store, lambda _: None, threading.Event())
        wall, cpu = time.perf_counter() - wall, time.thread_time() - cpu
        process = time.process_time() - process
        done = result.progress.evaluated
        while_running = result.progress.elapsed_s  # without what comes before the first row
        ideal = boards / measurement_s if measurement_s else float("inf")
        print(
            ROW.format(
                boards,
                strategy,
                done,
                f"{while_running:.1f}",
                f"{done / while_running:.0f}",
                "" if ideal == float("inf") else f"{100 * done / while_running / ideal:.0f} %",
                f"{100 * cpu / wall:.0f} %",
                f"{1e3 * cpu / done:.2f}",
                f"{done / while_running:.0f}/{store.commits / while_running:.0f}",
                f"{100 * store.write_s / while_running:.0f} %",
            ),
            flush=True,
        )
    pool.close()


# --- Dask itself ------------------------------------------------------------------------------------------------------


def workers_process(address: str, folder: str, count: int, measurement_s: float, ready: Connection) -> None:
    """Real Dask workers, coroutines of one process, each with one thread and a board that takes its time."""
    from distributed import Worker

    from app.engine.runner.pool import dask_pool
    from app.engine.runner.pool.dask_pool import security_of, settle
    from app.engine.session.pool.opening import find_certificates

    class SleepingWorker(Worker):  # type: ignore[misc]
        def start_http_server(self, *_: Any, **__: Any) -> None:
            pass

        def answer_request(self, number: int, line: bytes, topic: str) -> bytes:
            self.log_event(topic, [number, b"begun"])
            time.sleep(measurement_s)
            self.log_event(topic, [number, line])  # the part with the measurement
            return line

    async def live() -> None:
        settle()
        security = security_of(find_certificates(Path(folder)))

        async def start(number: int) -> Any:
            return await SleepingWorker(
                address,
                nthreads=1,
                resources={dask_pool.GPU_RESOURCE: 1},
                dashboard=False,
                memory_limit=0,
                security=security,
                name=f"b{number}",
                host="127.0.0.1",
                local_directory=tempfile.mkdtemp(),
            )

        kept = []
        for number in range(count):
            kept.append(await start(number))
        ready.send(len(kept))
        await asyncio.Event().wait()

    asyncio.run(live())


def through_dask(count: int, measurement_s: float, seconds: float) -> None:
    import psutil

    from app.engine.children.supervised import Child, Supervisor
    from app.engine.runner.pool import dask_pool
    from app.engine.runner.pool.dask_pool import security_of, settle
    from app.engine.session.pool.opening import _free_port, find_certificates, make_certificates

    settle()
    folder = tempfile.mkdtemp()
    certificates = make_certificates(Path(folder) / "certificates")
    child = Child(
        "scheduler",
        "app.engine.session.pool.worker",
        {"address": f"tls://127.0.0.1:{_free_port()}", "certificates": str(certificates.folder)},
    )
    supervisor = Supervisor([child], lambda _: None)
    here, there = mp.Pipe()
    try:
        told = supervisor.until_ready(child, 60)
        assert told is not None, child.failed
        address = str(told["address"])
        workers = mp.get_context("spawn").Process(
            target=workers_process, args=(address, str(certificates.folder), count, measurement_s, there), daemon=True
        )
        begun = time.monotonic()
        workers.start()
        assert here.poll(300), "the workers do not start"
        here.recv()
        started_s = time.monotonic() - begun
        assert child.process is not None
        scheduler = psutil.Process(child.process.pid)
        asyncio.run(
            _load(
                address,
                security_of(find_certificates(certificates.folder)),
                count,
                measurement_s,
                seconds,
                psutil.Process(workers.pid),
                scheduler,
                started_s,
                dask_pool,
            )
        )
        workers.terminate()
        workers.join(10)
    finally:
        supervisor.close()


async def _load(
    address: str,
    security: Any,
    count: int,
    measurement_s: float,
    seconds: float,
    workers: Any,
    scheduler: Any,
    started_s: float,
    dask_pool: Any,
) -> None:
    from distributed import Client

    line = b"x" * 1200  # of a measurement
    async with Client(address, security=security, asynchronous=True, set_as_default=False) as client:
        addresses = list(await client.scheduler.ncores())
        heard = 0

        def hear(_event: Any) -> None:
            nonlocal heard
            heard += 1

        client.subscribe_topic("scale", hear)
        done, number, until = 0, 0, time.monotonic() + seconds
        before, own, wall = scheduler.cpu_times(), time.process_time(), time.monotonic()
        far = workers.cpu_times()

        async def keep_busy(worker: str) -> None:
            nonlocal done, number
            while time.monotonic() < until:
                number += 1
                await client.submit(
                    dask_pool.answer,
                    number,
                    line,
                    "scale",
                    workers=[worker],
                    resources={dask_pool.GPU_RESOURCE: 1},
                    pure=False,
                    retries=0,
                )
                done += 1

        await asyncio.gather(*(keep_busy(worker) for worker in addresses))
        wall = time.monotonic() - wall
        after, far_after, own = scheduler.cpu_times(), workers.cpu_times(), time.process_time() - own
        cpu = after.user + after.system - before.user - before.system
        far_cpu = far_after.user + far_after.system - far.user - far.system
        print(
            f"{count:>7}{done:>10}{wall:>9.1f}{done / wall:>9.0f}{100 * done / wall * measurement_s / count:>8.0f} %"
            f"{100 * cpu / wall:>9.0f} %{1e3 * cpu / done:>9.2f}{1e3 * own / done:>9.2f}{1e3 * far_cpu / done:>9.2f}"
            f"{started_s:>9.0f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--boards", default="1,10,100,1000")
    parser.add_argument("--strategy", default="random_sample,auto")
    parser.add_argument("--measurement", type=float, default=0.35)
    parser.add_argument("--dask", default="")
    parser.add_argument("--seconds", type=float, default=15.0)
    arguments = parser.parse_args()
    if arguments.dask:
        print(f"a measurement takes {arguments.measurement} s; ms of processor time for each configuration")
        print("boards  measured   wall s    per s   of ideal scheduler   sched.   client  workers  start s")
        for count in map(int, arguments.dask.split(",")):
            through_dask(count, arguments.measurement, arguments.seconds)
        return
    print(f"a measurement takes {arguments.measurement} s")
    heads = ("boards", "strategy", "measured", "s", "per s", "ideal", "thread", "ms each", "rows/commits", "writing")
    print(ROW.format(*heads))
    for strategy in arguments.strategy.split(","):
        for boards in map(int, arguments.boards.split(",")):
            one_session(boards, strategy, arguments.measurement)


if __name__ == "__main__":
    main()
