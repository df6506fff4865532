"""The load generator against a mock server in another process, which keeps its own times. By hand:

python tests/benchmarks/load_generator.py [--seconds 20] [--repeats 3] [--record "where, when"]

Streamed at 100 requests/s with 16 chunks an answer, and in one piece at 500 requests/s. The schedule is drawn again
here from its seed, and compared with when each request arrived at the mock; percentiles of the latency are compared
with the mock's, from a request's arrival to its last byte. Both ends have the system's own times of arrival; how long
the mock, which is Python too, leaves a request unread is its own affair, and stated beside. The generator's share of a
processor is that of its process. A busy machine makes all of this worse: its load stands with each row.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from app.engine.runner.service import figures_of_requests  # noqa: E402
from app.engine.specification.service import ClientSpec  # noqa: E402
from app.engine.workloads.service import GeneratedLoad  # noqa: E402
from app.sensors.service import Requests, ServiceLoad  # noqa: E402

MOCK = ROOT / "tests" / "engine" / "service_stand_in.py"
CHUNKS = 16
BEGINNING_S = 2.0  # left out, as a window does that opens when the load is steady: each connection is made in it
ROW = "{:22} {:>8} {:>9} {:>9} {:>9} {:>9} {:>9} {:>26} {:>26} {:>14} {:>6} {:>5} {:>8}"
TICKS = os.sysconf("SC_CLK_TCK")


def process_of(name: str) -> int:
    """The process whose command line has that word."""
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and name in (entry / "cmdline").read_bytes().decode(errors="replace"):
                return int(entry.name)
        except OSError:
            continue
    raise LookupError(name)


def processor_s(process: int) -> float:
    """Processor time of that process, s."""
    fields = Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def stolen_s() -> float:
    """Processor time that the machine below took from this one, which is virtual, s."""
    return int(Path("/proc/stat").read_text().split()[8]) / TICKS


def measured(rate: int, stream: bool, seconds: float, seed: int, first: bool) -> str:
    """One run, as a row."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    truth = Path(tempfile.mkdtemp()) / "truth"
    words = [sys.executable, "-I", "-S", str(MOCK), str(port), "--prefill", "0.05", "--token", "0.01"]
    mock = subprocess.Popen([*words, "--truth", str(truth)], stdout=subprocess.PIPE)
    assert mock.stdout is not None
    mock.stdout.readline()
    tokens = CHUNKS if stream else 2
    client = ClientSpec(prompt_tokens=(32, 32), output_tokens=(tokens, tokens), stream=stream, seed=seed)
    load = GeneratedLoad(client, f"http://127.0.0.1:{port}", ServiceLoad(rate_per_s=rate))
    served = []
    begun = used = stolen = 0.0
    generator = 0
    while not begun or time.monotonic() - begun < BEGINNING_S + seconds:
        time.sleep(0.2)
        if (new := load.take()) is not None:
            assert not new.problem, new.problem
            served.append(new)
            if not begun:
                generator = process_of(f"127.0.0.1:{port}/")
                for each in (mock.pid, generator) if first else ():  # and not this one, which they would wait for
                    os.sched_setscheduler(each, os.SCHED_RR, os.sched_param(5))
                begun, used, stolen = time.monotonic(), processor_s(generator), stolen_s()
    used, took = processor_s(generator) - used, time.monotonic() - begun
    stolen = stolen_s() - stolen
    busy = os.getloadavg()[0]
    load.end()
    mock.kill()
    mock.wait()
    requests = Requests.joined([each.requests for each in served])
    received, read, _, ended = np.loadtxt(truth, dtype=np.int64).T
    order = np.argsort(requests.due_ns)
    due, sent = requests.due_ns[order], requests.sent_ns[order]
    # drawn again: the gaps from one request to the next
    rng = random.Random(seed)
    drawn = np.cumsum([rng.expovariate(rate) for _ in range(len(due))])
    assert np.abs(np.diff(due)[: len(due) // 2] / 1e9 - np.diff(drawn)[: len(due) // 2]).max() < 1e-6, "its schedule"
    count = min(len(due), len(received))
    arrived = np.sort(received)[:count]
    elapsed = (due[count - 1] - due[0]) / 1e9
    off = ((arrived[-1] - arrived[0]) / 1e9 / elapsed - 1) * 100
    from_ns = due[0] + round(BEGINNING_S * 1e9)
    late = (sent - due)[due >= from_ns] / 1e6
    to_ns = served[-1].end_ns
    figures = figures_of_requests(served, int(from_ns), to_ns)
    requests = requests.ended_within(int(from_ns), to_ns)
    received, read, ended = (each[ended > from_ns] for each in (received, read, ended))
    unread = np.percentile((read - received) / 1e6, [50, 99])
    whole = (ended - received) / 1e9
    told = np.array([figures[f"e2e_p{each}_s"] for each in (50, 95, 99)]) * 1e3
    true = np.percentile(whole, [50, 95, 99]) * 1e3
    from_sent = np.percentile((requests.ended_ns - requests.sent_ns) / 1e6, [50, 95, 99])
    return ROW.format(
        f"{rate}/s {'streamed' if stream else 'in one piece'}",
        len(due),
        f"{off:+.3f}",
        f"{100 * np.mean(late <= 1000 / rate):.1f}",
        f"{np.percentile(late, 50):.2f}",
        f"{np.percentile(late, 99):.2f}",
        figures["errors"] + 0.0,
        " ".join(f"{each:+8.2f}" for each in from_sent - true),
        " ".join(f"{each:+8.2f}" for each in told - true),
        " ".join(f"{each:6.2f}" for each in unread),
        f"{100 * used / took:.0f}",
        f"{busy:.1f}",
        f"{100 * stolen / took:.1f}",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--record", default="", help="a line for the head of the table")
    parser.add_argument(
        "--first", action="store_true", help="as root: before all other processes, as on an idle machine"
    )
    arguments = parser.parse_args()
    print(
        f"Load generator, {arguments.seconds:g} s each. {arguments.record} {os.cpu_count()} cores, {platform.machine()}"
    )
    print("off: time from the first to the last request as they arrived at the mock, against the schedule")
    print("in time: sent within one mean gap of its time; late: from its time until it was sent")
    print(
        "percentiles: of the latency against the mock's own from arrival to last byte, from sending, and from when due"
    )
    print("unread: from a request's arrival until the mock had read it, ms, which is in both latencies")
    print("busy: the load of the machine; stolen: of a core, that the machine below took for others")
    names = ("load", "requests", "off %", "in time %", "late p50", "late p99 ms", "errors")
    also = ("from sent p50 p95 p99 ms", "from due p50 p95 p99 ms", "unread p50 p99", "cpu %", "busy", "stolen %")
    print(ROW.format(*names, *also))
    for seed in range(1, arguments.repeats + 1):
        for rate, stream in ((100, True), (500, False)):
            print(measured(rate, stream, arguments.seconds, seed, arguments.first), flush=True)


if __name__ == "__main__":
    main()
