"""Sessions on a pool of simulated boards whose workers, their parent and the scheduler are killed or stopped at random.

    PYTHONPATH=. .venv/bin/python tests/benchmarks/pool_kills.py [KILLS]

A session ends with every row measured once, and with a board that decided, whatever was killed meanwhile; the next
one begins until there were so many kills. The scheduler and the parent of the workers are processes of their own, which
this script starts again as an operator would; the parent itself starts killed workers again.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from app.base.paths import resources
from app.engine.children.python import python_command, python_environment
from app.engine.results.measurement import State
from app.engine.runner.pool.dask_pool import DaskPool
from app.engine.runner.pool.pool import Certificates
from app.engine.runner.pool.pooled_gpu import PooledGpu
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_specification
from app.engine.session.pool.opening import make_certificates
from app.engine.session.run import run_session
from app.engine.specification.plan import SearchOptions
from app.engine.store.database import Store

BOARDS = 4
PORT = 18786
ROWS = 120
EVERY_S = (0.5, 4.0)
STALL_S = 5.0


class Parts:
    """The scheduler and the parent of the workers."""

    def __init__(self, certificates: Certificates) -> None:
        shared = ["--certificates", str(certificates.folder)]
        self._commands = {
            "scheduler": ["pool", "scheduler", "--listen", f"127.0.0.1:{PORT}", *shared],
            "parent": [
                *("worker", f"tls://127.0.0.1:{PORT}", "--speed", "20", *shared),
                *("--gpu", ",".join(["simulated:a100"] * BOARDS)),
            ],
        }
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        for name in self._commands:
            self.start(name)

    def start(self, name: str) -> None:
        quiet = subprocess.DEVNULL
        command = python_command("app", *self._commands[name])
        self.processes[name] = subprocess.Popen(command, stdout=quiet, stderr=quiet, env=python_environment())

    def workers(self) -> list[int]:
        """The processes of the boards."""
        parent = self.processes["parent"].pid
        with suppress(OSError):
            return [int(pid) for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]
        return []

    def kill(self, what: str, rng: random.Random) -> bool:
        """Kill one of them now; False where there is none."""
        if what in ("worker", "stall"):
            workers = self.workers()
            if not workers:
                return False
            chosen = rng.choice(workers)
            with suppress(ProcessLookupError):
                os.kill(chosen, signal.SIGKILL if what == "worker" else signal.SIGSTOP)
            if what == "stall":
                time.sleep(rng.uniform(1.0, STALL_S))
                with suppress(ProcessLookupError):
                    os.kill(chosen, signal.SIGCONT)
            return True
        self.processes[what].kill()
        self.processes[what].wait()
        self.start(what)
        return True

    def close(self) -> None:
        for process in reversed(list(self.processes.values())):
            process.terminate()
            process.wait()


def main(kills: int) -> int:
    rng = random.Random(kills)
    folder = Path(tempfile.mkdtemp(prefix="pool-kills-"))
    os.environ["WATTRIDGE_DATA"] = str(folder / "data")
    certificates = make_certificates(folder / "certificates")
    parts = Parts(certificates)
    killed: Counter[str] = Counter()
    wrong = sessions = stored = failed = 0
    pool = DaskPool(f"tls://127.0.0.1:{PORT}", certificates, connect_s=60)
    while not pool.boards():
        time.sleep(0.1)
    specification = load_specification(resources() / "examples" / "gemm.toml")
    began = time.monotonic()
    with Store() as store:
        while killed.total() < kills:
            ended = threading.Event()

            def kill_now_and_then(ended: threading.Event = ended) -> None:
                while not ended.wait(rng.uniform(*EVERY_S)) and killed.total() < kills:
                    while not pool.boards() and not ended.is_set():  # the next blow falls when something works again
                        time.sleep(0.05)
                    what = rng.choices(("worker", "stall", "parent", "scheduler"), (6, 1, 2, 2))[0]
                    if parts.kill(what, rng):
                        killed[what] += 1

            thread = threading.Thread(target=kill_now_and_then)
            while not pool.boards():
                time.sleep(0.1)
            gpu = PooledGpu(pool, pool.boards())
            options = SearchOptions(max_evaluations=ROWS, strategy="random_sample", seed=sessions)
            plan = plan_specification(specification, gpu, options)
            thread.start()
            result = run_session(plan, store, lambda _: None, threading.Event())
            ended.set()
            thread.join()
            table = store.load(result.session).table
            rows = table.rows().tolist()
            good = result.state == "done" and len(rows) == ROWS == len(set(rows)) and table.decided_on in table.boards
            died = [m for at in range(len(table)) if (m := table.measurement(at)).state is State.RUNTIME]
            sessions, stored, failed, wrong = sessions + 1, stored + len(rows), failed + len(died), wrong + (not good)
            took = time.monotonic() - began
            if not good:
                print(f"session {sessions}: {result.reason}; decided on {table.decided_on or 'no board'}")
            print(f"{took:6.0f} s  session {sessions}: {result.state}, {len(rows)} rows; killed so far {dict(killed)}")
    pool.close()
    parts.close()
    print(f"{killed.total()} kills {dict(killed)}, {sessions} sessions, {stored} rows stored, {failed} of them failed")
    print(f"{wrong} sessions with a row lost or stored twice, or that no board decided")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100))
