"""A served model on a real board: tokens/s, joules per token and latency at four loads, three times over.

    PYTHONPATH=. python tests/benchmarks/service_on_board.py [--gpu 0] [--size 3b] [--seconds 18] [--out FOLDER]

One call of at most 290 s on an H200: the server of `torch_server.py` starts once, with a transformer of random weights
whose answers are as long as is asked for; `wattridge tune` then attaches to it three times, each time over four numbers
of clients at once with a limit on the time to the first token. Nothing is ever set: the only parameter is the load.
Clients begin one after another, and the lengths of answers are drawn, by the same seed in each session: clients that
all begin at once and ask for as much go in step, and latencies then depend on how they began. A window closes once
throughput and power are known to 0.8 %, after 12 s at least and `--seconds` at most: twelve windows of 18 s and all
that is around them fit into the 290 s.
The table has each figure's mean over the three sessions, the mean half-width of the 95 % interval of J/token as each
session states it, and the coefficient of variation of J/token between the sessions, of which 1 % is asked. The first is
of what changes within a window; only the second sees what another session finds changed. Below it tokens/s and J/token
of each session. Needs torch and aiohttp beside Wattridge. `--size toy` tries all of it on a processor, with `--gpu
simulated:h200`.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from app.engine.results.measurement import Measurement

HERE = Path(__file__).resolve().parent
LOADS, REPEATS = (1, 8, 32, 64), 3
LEAST_S, RAMP_S = 12.0, 2.0
SPECIFICATION = """
[service]
attach = "http://127.0.0.1:{port}"
ready = "http://127.0.0.1:{port}/health"
least_s = {least_s}
most_s = {most_s}
precision = 0.008
[service.client]
concurrency = "clients"
ramp_s = {ramp_s}
prompt_tokens = {prompt}
output_tokens = {answer}
[parameters]
clients = {loads}
[objective]
minimise = "energy_per_token_j"
[limits]
ttft_p95_s = "<= 0.5"
[search]
strategy = "brute_force"
"""


def started(port: int, size: str, python: str) -> subprocess.Popen[bytes]:
    """The server, once it answers. Raises RuntimeError where it ends before."""
    words = [python, str(HERE / "torch_server.py"), str(port), "--size", size, "--slots", str(max(LOADS))]
    begun = time.monotonic()
    server = subprocess.Popen(words)
    while server.poll() is None and time.monotonic() - begun < 120:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2).read()
        except OSError:
            time.sleep(0.2)
            continue
        print(f"the server answers after {time.monotonic() - begun:.1f} s")
        return server
    server.kill()
    raise RuntimeError("the server did not answer")


def measured(folder: Path, specification: Path, gpu: str) -> dict[int, Measurement]:
    """One session of `wattridge tune`; its measurements by the number of clients."""
    words = [sys.executable, "-m", "app", "tune", str(specification), "--gpu", gpu, "--speed", "1", "--json"]
    ran = subprocess.run(words, capture_output=True, text=True)
    if ran.returncode:
        raise RuntimeError(f"{ran.stdout[-500:]} {ran.stderr[-500:]}")
    from app.engine.store.database import Store

    with Store() as store:
        table = store.load(int(json.loads(ran.stdout)["session"])).table
    found = map(table.measurement, range(len(table)))
    return {int(each.configuration["clients"]): each for each in found}


def show(sessions: Sequence[dict[int, Measurement]]) -> None:
    """The table, and what the sessions themselves say against their figures."""
    latency = "ttft p50/p95/p99 ms     tpot p50/p95 ms  e2e p95 s  idle %  late p99 ms"
    print(f"clients  tokens/s  J/token  ±95 %  CV %     W  {latency}")
    for load in LOADS:
        rows = [each[load] for each in sessions if load in each and each[load].values]
        if len(rows) < len(sessions):
            print(f"{load:7}  not measured in every session: see below")
            continue

        def mean(name: str, times: float = 1.0) -> float:
            return times * float(np.mean([row.values.get(name, np.nan) for row in rows]))  # noqa: B023

        joules = np.array([row.values.get("energy_per_token_j", np.nan) for row in rows])
        ends = [row.intervals.get("energy_per_token_j", (np.nan, np.nan)) for row in rows]
        half = float(np.mean([(high - low) / 2 for low, high in ends]) / joules.mean())
        spread = float(joules.std(ddof=1) / joules.mean())
        first = "/".join(f"{mean(f'ttft_p{at}_s', 1e3):.1f}" for at in (50, 95, 99))
        each = "/".join(f"{mean(f'tpot_p{at}_s', 1e3):.2f}" for at in (50, 95))
        print(
            f"{load:7}  {mean('output_tokens_per_s'):8.0f}  {joules.mean():7.4f}  {100 * half:5.1f}"
            f"  {100 * spread:4.2f}  {mean('power_w'):4.0f}  {first:>20}  {each:>16}  {mean('e2e_p95_s'):9.3f}"
            f"  {mean('idle_share', 100):6.1f}  {mean('sent_late_p99_s', 1e3):10.1f}"
        )
    for number, session in enumerate(sessions, start=1):
        figures = (f"{load} clients {_figures(row)}" for load, row in session.items() if row.values)
        print(f"session {number}, tokens/s and J/token: {'; '.join(figures)}")
    for number, session in enumerate(sessions, start=1):
        for load, row in session.items():
            if row.message or row.error:
                print(f"session {number}, {load} clients: {row.error or row.message}")


def _figures(row: Measurement) -> str:
    return f"{row.values.get('output_tokens_per_s', np.nan):.0f} {row.values.get('energy_per_token_j', np.nan):.5f}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpu", default="0")
    parser.add_argument("--size", default="3b")
    parser.add_argument("--seconds", type=float, default=18.0, help="of a window, at most")
    parser.add_argument("--prompt", type=int, default=128)
    parser.add_argument("--answer", type=int, nargs="+", default=[64, 192], help="tokens, or the least and the most")
    parser.add_argument("--server-python", default=sys.executable, help="the Python that has torch")
    parser.add_argument("--out", type=Path, help="keep the sessions in this folder")
    arguments = parser.parse_args()
    folder = arguments.out or Path(tempfile.mkdtemp(prefix="service-"))
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["WATTRIDGE_DATA"] = str(folder)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = int(listener.getsockname()[1])
    path = folder / "service.toml"
    lengths = {"prompt": arguments.prompt, "answer": arguments.answer, "loads": list(LOADS)}
    least_s = min(LEAST_S, arguments.seconds)
    path.write_text(
        SPECIFICATION.format(port=port, least_s=least_s, most_s=arguments.seconds, ramp_s=RAMP_S, **lengths)
    )
    begun = time.monotonic()
    server = started(port, arguments.size, arguments.server_python)
    try:
        sessions = [measured(folder, path, arguments.gpu) for _ in range(REPEATS)]
    finally:
        server.terminate()
        server.wait(20)
    show(sessions)
    print(f"{time.monotonic() - begun:.0f} s in all")


if __name__ == "__main__":
    main()
