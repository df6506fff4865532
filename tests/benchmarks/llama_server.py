"""A real OpenAI-compatible server, llama-cpp-python's, tuned over concurrency and an argument within a latency limit.

    PYTHONPATH=. python tests/benchmarks/llama_server.py PYTHON [PART ...]

PYTHON is one that has `llama-cpp-python[server]` and `gguf` (built for the CPU; some 15 minutes on one core). The
table of the last run is kept in `llama_server.txt`. Parts: `set`, `faults`, `endings`; all of them without one.

`set`: `wattridge tune` over clients at once and the server's batch of prompt tokens, against a client of this script's
own (http.client, a thread for each), which asks servers that this script starts. The limit is the middle of the widest
gap between the times to the first token that this client found, the least and the greatest of them apart: on which side
of a limit close to one of them that falls is chance. The server has one thread; run this where nothing else wants the
processor, or before the rest (chrt -r 5 as root). Board and power are simulated; server, requests and latencies are
real. `faults`: the server is killed, stopped (SIGSTOP), refuses or is slow to start; what each configuration comes to,
and that the next one runs. `endings`: Wattridge itself is ended in the middle. After each, whether anything of it is
left running.
"""

from __future__ import annotations

import http.client
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
USERS, BATCHES = (1, 2, 4, 8), (8, 512)
PROMPT, ANSWER = 32, 24
SPECIFICATION = """
[service]
start = '''{python} -m llama_cpp.server --model {model} --port {{free_port}} --n_threads 1 \
--n_threads_batch 1 --n_ctx 1024 --n_batch {batch} --interrupt_requests false --verbose false{more}'''
url = "http://127.0.0.1:{{free_port}}"
ready = "http://127.0.0.1:{{free_port}}{ready}"
ready_s = {ready_s}
stop_s = 3
least_s = {least_s}
most_s = {most_s}
precision = 0.05
[service.client]
concurrency = "users"
prompts = "{prompts}"
output_tokens = {answer}
timeout_s = 60
extra = {{ temperature = 0 }}
[parameters]
users = {users}
{parameters}
[objective]
maximise = "output_tokens_per_s"
[limits]
ttft_p95_s = "<= {limit_s:.3f}"
[search]
strategy = "brute_force"
"""


class Bench:
    """A folder with the model, and what is run in it."""

    def __init__(self, python: str, folder: Path) -> None:
        self.python, self.folder = python, folder
        self.model = folder / "random.gguf"
        subprocess.run([python, str(HERE / "random_gguf.py"), str(self.model)], check=True)
        self.prompts = folder / "prompts.jsonl"  # of the model's own words, so that each is one token; none begin alike
        self.lines = prompts(500)
        self.prompts.write_text("".join(json.dumps({"prompt": each}) + "\n" for each in self.lines))

    def specification(self, name: str, **more: Any) -> Path:
        given = {
            "batch": "{batch}",
            "parameters": f"batch = {list(BATCHES)}",
            "more": "",
            "ready": "/v1/models",
            "ready_s": 60,
            "least_s": 4.0,
            "most_s": 10.0,
            "users": list(USERS),
            "limit_s": 60.0,
            **more,
        }
        path = self.folder / f"{name}.toml"
        text = SPECIFICATION.format(python=self.python, model=self.model, prompts=self.prompts, answer=ANSWER, **given)
        path.write_text(text)
        return path

    def tune(self, path: Path) -> subprocess.Popen[str]:
        words = [sys.executable, "-m", "app", "tune", str(path), "--gpu", "simulated:a100", "--speed", "1", "--json"]
        data = {**os.environ, "WATTRIDGE_DATA": str(self.folder / "data")}
        return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=data)

    def rows(self, path: Path) -> list[dict[str, Any]]:
        """The measurements of the last session of a specification."""
        script = """
import json, sys
from pathlib import Path
from app.engine.store.database import Store
with Store() as store:
    table = store.load(max(each.id for each in store.sessions())).table
    print(json.dumps([{"configuration": m.configuration, "state": str(m.state), "error": m.error, "values": m.values}
        for m in map(table.measurement, range(len(table)))]))
"""
        data = {**os.environ, "WATTRIDGE_DATA": str(self.folder / "data")}
        ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=data, check=True)
        return list(json.loads(ran.stdout))

    def servers(self) -> list[int]:
        """The servers that serve this folder's model."""
        return self._processes(b"llama_cpp.server", str(self.model).encode())

    def _processes(self, *having: bytes) -> list[int]:
        """By their command lines."""
        found = []
        for each in Path("/proc").iterdir():
            if each.name.isdecimal():
                try:
                    words = (each / "cmdline").read_bytes()
                except OSError:
                    continue
                if all(each in words for each in having):
                    found.append(int(each.name))
        return found

    def asked(self) -> bool:
        """Whether a load generator asks for answers to this folder's prompts."""
        return bool(self._processes(b"load_generator", str(self.prompts).encode()))

    def until(self, condition: Callable[[], bool], seconds: float = 90.0) -> bool:
        deadline = time.monotonic() + seconds
        while not condition() and time.monotonic() < deadline:
            time.sleep(0.1)
        return condition()


def prompts(count: int) -> list[str]:
    rng = np.random.default_rng(2)
    return [" ".join(f"w{at}" for at in rng.integers(0, 1000, PROMPT)) for _ in range(count)]


class Asked:
    """What the independent client saw: seconds to the first token and tokens of answers in full."""

    def __init__(self, lines: Sequence[str], port: int, users: int, seconds: float) -> None:
        self.lines = itertools.cycle(lines)
        self.first_s: list[float] = []
        self.tokens = 0
        self._lock = threading.Lock()
        begun = time.monotonic()
        threads = [threading.Thread(target=self._ask, args=(port, begun + seconds)) for _ in range(users)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.seconds = time.monotonic() - begun

    def _ask(self, port: int, until: float) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        while time.monotonic() < until:
            with self._lock:
                body = {"prompt": next(self.lines), "max_tokens": ANSWER, "stream": True, "temperature": 0}
            sent = time.monotonic()
            connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
            response, first, said = connection.getresponse(), 0.0, 0
            for line in response:
                if line.startswith(b"data: {") and json.loads(line[6:])["choices"][0]["text"]:
                    first = first or time.monotonic()
                    said += 1
            with self._lock:
                self.first_s.append(first - sent)
                self.tokens += said
        connection.close()

    @property
    def p95_s(self) -> float:
        return float(np.percentile(self.first_s, 95))


def served(bench: Bench, batch: int) -> tuple[subprocess.Popen[bytes], int]:
    """A server that this script starts and waits for."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = int(listener.getsockname()[1])
    words = [bench.python, "-m", "llama_cpp.server", "--model", str(bench.model), "--port", str(port)]
    words += [
        "--verbose",
        "false",
        "--n_threads",
        "1",
        "--n_threads_batch",  # without it as many as there are cores, which wait for one another in each step
        "1",
        "--n_ctx",
        "1024",
        "--n_batch",
        str(batch),
        "--interrupt_requests",
        "false",
    ]
    server = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def answers() -> bool:
        with socket.socket() as caller:
            return caller.connect_ex(("127.0.0.1", port)) == 0

    assert bench.until(answers)
    return server, port


def feasible_set(bench: Bench) -> None:
    by_hand: dict[tuple[int, int], Asked] = {}
    for batch in BATCHES:
        server, port = served(bench, batch)
        try:
            Asked(bench.lines, port, 1, 2.0)  # warm
            for users in USERS:
                by_hand[users, batch] = Asked(bench.lines, port, users, 8.0)
        finally:
            server.terminate()
            server.wait(10)
    between = sorted(each.p95_s for each in by_hand.values())[1:-1]
    limit_s = max((after / before, (after * before) ** 0.5) for before, after in itertools.pairwise(between))[1]
    path = bench.specification("set", limit_s=limit_s)
    begun = time.monotonic()
    out, _ = bench.tune(path).communicate()
    took_s = time.monotonic() - begun
    said = json.loads(out)
    rows = {(r["configuration"]["users"], r["configuration"]["batch"]): r for r in bench.rows(path)}
    print(f"\nlimit on the 95th percentile of the time to the first token: {limit_s:.3f} s; {took_s:.0f} s in all")
    print("clients  n_batch   ttft p95 s  by hand   tokens/s  by hand   within  by hand")
    agree = 0
    for key, asked in sorted(by_hand.items()):
        values = rows[key]["values"]
        if not values:
            print(f"{key[0]:7}  {key[1]:7}  {rows[key]['error'][:90]}")
            continue
        kept, kept_by_hand = values["ttft_p95_s"] <= limit_s, asked.p95_s <= limit_s
        agree += kept == kept_by_hand
        rates = f"{values['output_tokens_per_s']:9.1f}  {asked.tokens / asked.seconds:7.1f}"
        print(
            f"{key[0]:7}  {key[1]:7}  {values['ttft_p95_s']:11.3f}  {asked.p95_s:7.3f}  {rates}"
            f"   {'yes' if kept else 'no':>6}  {'yes' if kept_by_hand else 'no':>7}"
        )
    starts = said["service_starts"]
    print(f"within the limit alike: {agree} of {len(by_hand)}; best {said['best'] and said['best']['configuration']}")
    print(f"starts of the server: {starts['count']} ({starts['seconds']:.1f} s); left running: {len(bench.servers())}")


FAULTS: Sequence[tuple[str, dict[str, Any]]] = (
    ("killed under load", {"users": [1, 2]}),
    ("stopped under load (SIGSTOP)", {"users": [1, 2], "most_s": 6.0, "least_s": 3.0}),
    ("refuses every request", {"users": [1, 2], "more": " --api_key secret", "ready": "/docs"}),
    ("slow to start", {"users": [1], "ready_s": 0.3}),
)


def faults(bench: Bench) -> None:
    print("\nfault                            what became of the configurations; left running")
    for what, more in FAULTS:
        path = bench.specification("fault", parameters="", batch="512", **more)
        session = bench.tune(path)
        sent = {"killed": signal.SIGKILL, "stopped": signal.SIGSTOP}.get(what.split()[0])
        if sent is not None:
            assert bench.until(bench.asked)
            time.sleep(2.0)  # less than one configuration takes
            for server in bench.servers():
                os.kill(server, sent)
        session.communicate()
        left = len(bench.servers())
        rows = "; ".join(
            f"{row['configuration']['users']} clients: {row['state']}" + f" ({row['error'][:60]})" * bool(row["error"])
            for row in bench.rows(path)
        )
        print(f"{what:32} {' '.join(rows.split())}; {left}")


def endings(bench: Bench) -> None:
    print("\nWattridge ended by   servers left after 15 s   exit status")
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGKILL"):
        session = bench.tune(
            bench.specification("ending", parameters="", batch="512", users=[2], least_s=60.0, most_s=90.0)
        )
        assert bench.until(lambda: bool(bench.servers()))
        time.sleep(5.0)
        session.send_signal(getattr(signal, name))
        session.communicate()
        bench.until(lambda: not bench.servers(), 15.0)
        print(f"{name:20} {len(bench.servers()):>23}   {session.returncode}")


PARTS = {"set": feasible_set, "faults": faults, "endings": endings}


def main() -> None:
    python, *parts = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="llama-") as folder:
        bench = Bench(python, Path(folder))
        for part in parts or PARTS:
            PARTS[part](bench)
            sys.stdout.flush()


if __name__ == "__main__":
    main()
