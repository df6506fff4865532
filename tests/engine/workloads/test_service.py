"""A service: started, waited for, asked, ended; each way in which it fails is a clear result, and nothing is left."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.engine.results.measurement import State
from app.engine.runner.service import figures_of_requests
from app.engine.session.load import load_specification
from app.engine.workloads.command import CommandFailed
from app.engine.workloads.load_generator import MOST_LEAD_NS, Answer, Garbage
from app.engine.workloads.service import GeneratedLoad, RunningService, Service, at_path, why_not_ready
from app.sensors.service import Served

SERVER = Path(__file__).parents[1] / "service_stand_in.py"
pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals end the programs")


def written(folder: Path, server: str = "", service: str = "", client: str = "concurrency = 2") -> Path:
    """A specification of the stand-in with these options."""
    path = folder / "spec.toml"
    path.write_text(
        f"""
[service]
start = "{sys.executable} -I -S {SERVER} {{free_port}} --log {folder / "log"} {server}"
url = "http://127.0.0.1:{{free_port}}"
{service or 'ready = "ready to serve"'}
stop_s = 0.5
[service.client]
prompt_tokens = 5
output_tokens = 4
{client}
[parameters]
n = [1, 2]
[objective]
maximise = "output_tokens_per_s"
"""
    )
    return path


def service_of(folder: Path, server: str = "", service: str = "", client: str = "concurrency = 2") -> Service:
    return Service(load_specification(written(folder, server, service, client)))


def processes(folder: Path) -> list[int]:
    """Those that the stand-in said it has, by its log."""
    log = folder / "log"
    return [int(line.split()[0]) for line in log.read_text().splitlines()] if log.exists() else []


def alive(process: int) -> bool:
    """Whether it runs; one that has ended and that nobody waited for does not."""
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


def all_gone(folder: Path, patience_s: float = 10.0) -> bool:
    deadline = time.monotonic() + patience_s
    while any(map(alive, processes(folder))):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


@contextmanager
def started(service: Service) -> Iterator[RunningService]:
    running = service.start({"n": 1}, threading.Event())
    assert running is not None
    try:
        yield running
    finally:
        running.end()


def asked(service: Service, running: RunningService, until: Callable[[list[Served]], bool]) -> list[Served]:
    """What becomes of its client's requests until that is enough."""
    load = GeneratedLoad(service.spec.client, running.url, service.load({"n": 1}))
    served: list[Served] = []
    deadline = time.monotonic() + 20.0
    try:
        while not until(served) and time.monotonic() < deadline:
            time.sleep(0.05)
            if (new := load.take()) is not None:
                assert not new.problem, new.problem
                served.append(new)
    finally:
        load.end()
    assert until(served), "too few requests ended"
    return served


def ended(count: int) -> Callable[[list[Served]], bool]:
    return lambda served: sum(len(each.requests) for each in served) >= count


# --- its start and its end --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ready", ["", 'ready = "http://127.0.0.1:{free_port}/health"', 'ready = "ready to (serve)"'])
def test_it_is_waited_for_and_ended_with_all_that_it_started(tmp_path: Path, ready: str) -> None:
    service = service_of(tmp_path, "--child", ready or "ready_s = 20")
    assert not processes(tmp_path), "nothing runs before a start"
    with started(service) as running:
        assert 0 < running.start_s < 20
        assert not running.why_ended
        assert len(processes(tmp_path)) == 2
        assert all(map(alive, processes(tmp_path)))
    assert all_gone(tmp_path)


def test_one_that_ignores_being_asked_to_end_is_killed(tmp_path: Path) -> None:
    begun = time.monotonic()
    with started(service_of(tmp_path, "--fault stubborn", "ready_s = 20")):
        pass
    assert all_gone(tmp_path)
    assert time.monotonic() - begun < 15


FAILURES = {  # server, what is written of the service -> state, words
    "it ends at once": ("--fault exit", "ready_s = 20", State.RUNTIME, "ended before it was ready: exit status 1"),
    "its words are told": ("--fault exit", "ready_s = 20", State.RUNTIME, "no such model"),
    "it is slow to start": ("--fault slow", "ready_s = 0.5", State.TIMEOUT, "not ready after 0.5 s"),
    "it prints something else": (
        "",
        'ready = "Uvicorn running"\nready_s = 0.8',
        State.TIMEOUT,
        "nothing that it printed",
    ),
}


@pytest.mark.parametrize("case", FAILURES)
def test_one_that_does_not_get_ready_is_a_clear_result(tmp_path: Path, case: str) -> None:
    server, service, state, words = FAILURES[case]
    with pytest.raises(CommandFailed, match=words) as raised:
        service_of(tmp_path, server, service).start({"n": 1}, threading.Event())
    assert raised.value.state is state
    assert all_gone(tmp_path)


def test_one_that_answers_with_an_error_is_not_ready(tmp_path: Path) -> None:
    with started(service_of(tmp_path, "--fault unwell", 'ready = "ready to serve"')) as running:
        assert "HTTP status 503" in why_not_ready(f"{running.url}/health")
        assert why_not_ready(f"{running.url}/health", anything=True) == ""
    assert "http" in why_not_ready(running.url)


@pytest.mark.parametrize("answer", [b"HTTP/1.1 200 OK", b"HTTP/1.1 200 OK\r\n" + b"X-More: 1\r\n" * 20_000])
def test_one_whose_answer_drips_for_ever_does_not_hold_the_session(answer: bytes) -> None:
    over = threading.Event()

    def drip() -> None:
        peer, _ = listener.accept()
        with peer, suppress(OSError):
            for byte in answer:
                if over.wait(0.05):
                    return
                peer.sendall(bytes((byte,)))
            over.wait()

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        serving = threading.Thread(target=drip, daemon=True)
        serving.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/health"
        said: list[str] = []
        asking = threading.Thread(target=lambda: said.append(why_not_ready(url)), daemon=True)
        asking.start()
        asking.join(30)
        over.set()
    assert said == [f"{url} does not answer"]
    serving.join(30)


def test_a_stop_ends_the_waiting(tmp_path: Path) -> None:
    stop = threading.Event()
    threading.Timer(0.5, stop.set).start()
    assert service_of(tmp_path, "--fault slow", "ready_s = 60").start({"n": 1}, stop) is None
    assert not any(map(alive, processes(tmp_path)))


def test_one_that_is_attached_to_is_left_running(tmp_path: Path) -> None:
    with started(service_of(tmp_path)) as other:
        path = tmp_path / "attached.toml"
        client = "[service.client]\nrate = 5\n[parameters]\nn = [1]\n[objective]\nminimise = 'energy_j'\n"
        path.write_text(f'[service]\nattach = "{other.url}"\nready_s = 10\n{client}')
        running = Service(load_specification(path)).start({"n": 1}, threading.Event())
        assert running is not None
        running.end()
        assert not other.why_ended
        assert all(map(alive, processes(tmp_path)))


# --- its client -------------------------------------------------------------------------------------------------------


def test_latencies_of_a_stream_are_those_of_the_server(tmp_path: Path) -> None:
    service = service_of(tmp_path, "--prefill 0.1 --token 0.05", client="concurrency = 2")
    with started(service) as running:
        served = asked(service, running, ended(8))
    figures = figures_of_requests(served, served[0].start_ns, served[-1].end_ns)
    assert figures["ttft_p50_s"] >= 0.1
    assert figures["tpot_p50_s"] >= 0.9 * 0.05
    assert figures["e2e_p50_s"] == pytest.approx(figures["ttft_p50_s"] + 3 * figures["tpot_p50_s"], rel=0.2)
    assert figures["errors"] == 0
    assert 0.5 < figures["output_tokens_per_s"] / (figures["requests_per_s"] * 4) < 2
    assert figures["input_tokens_per_s"] == pytest.approx(5 * figures["requests_per_s"])


def test_latency_counts_from_when_a_request_was_due_so_that_a_stall_is_seen(tmp_path: Path) -> None:
    service = service_of(tmp_path, "--fault stall --token 0", client="rate = 60\nstream = false")
    with started(service) as running:
        served = asked(service, running, ended(120))
    figures = figures_of_requests(served, served[0].start_ns, served[-1].end_ns)
    assert figures["e2e_p99_s"] > 0.8
    waited = np.concatenate([(each.requests.ended_ns - each.requests.due_ns) / 1e9 for each in served])
    assert (waited > 0.2).sum() > 20, "all that were due within the stall waited, not the one that was under way"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not say when data came")
@pytest.mark.parametrize("stream", ["true", "false"])
def test_a_generator_that_is_held_up_does_not_add_that_to_the_latency(tmp_path: Path, stream: str) -> None:
    truth = tmp_path / "truth"
    server = f"--prefill 0.2 --token 0 --truth {truth}"
    service = service_of(tmp_path, server, client=f"rate = 50\nstream = {stream}")

    def answered_since(stamp_ns: int) -> bool:
        """Whether the server sent the last of an answer after that, by its own log."""
        lines = truth.read_text().splitlines(keepends=True) if truth.exists() else []
        return any(int(line.split()[-1]) > stamp_ns for line in lines if line.endswith("\n"))

    def waited_for(condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 20
        while not condition():
            assert time.monotonic() < deadline
            time.sleep(0.01)

    with started(service) as running:
        load = GeneratedLoad(service.spec.client, running.url, service.load({"n": 1}))
        served: list[Served] = []

        def ended_after(stamp_ns: int) -> np.ndarray:
            served.extend(new for new in [load.take()] if new is not None)
            stamps = [each.requests.ended_ns for each in served]
            return np.concatenate([np.empty(0, np.int64), *(stamp[stamp > stamp_ns] for stamp in stamps)])

        try:
            waited_for(lambda: len(ended_after(0)) > 0)
            [generator] = [each for each in children_of(os.getpid()) if "load_generator" in _commands({each})]
            os.kill(generator, signal.SIGSTOP)
            waited_for(lambda: "T" in Path(f"/proc/{generator}/stat").read_text().rpartition(")")[2].split()[0])
            stopped_ns = time.monotonic_ns()
            waited_for(lambda: answered_since(stopped_ns))
            time.sleep(0.1)
            resumed_ns = time.monotonic_ns()
            os.kill(generator, signal.SIGCONT)
            waited_for(lambda: len(ended_after(resumed_ns)) > 0)
        finally:
            load.end()
    assert ((ended_after(stopped_ns)) < resumed_ns).any(), "what came meanwhile"


def test_open_loop_keeps_its_rate_whatever_the_server_does(tmp_path: Path) -> None:
    service = service_of(tmp_path, "--prefill 0.5", client="rate = 40")
    with started(service) as running:
        served = asked(service, running, ended(80))
    due = np.sort(np.concatenate([each.requests.due_ns for each in served]))
    rate = (len(due) - 1) / ((due[-1] - due[0]) / 1e9)
    assert rate == pytest.approx(40, rel=0.4), "of a Poisson process; a closed loop of one would reach 2"
    early_ns = np.concatenate([each.requests.due_ns - each.requests.sent_ns for each in served])
    assert early_ns.max() < MOST_LEAD_NS + 100_000, "begun earlier by what beginning takes, and never by much"


def test_clients_of_a_closed_loop_begin_one_after_another_over_the_ramp(tmp_path: Path) -> None:
    service = service_of(tmp_path, "--prefill 1.2 --token 0 --slots 4", client="concurrency = 4\nramp_s = 1")
    with started(service) as running:
        served = asked(service, running, ended(4))
    due = np.sort(np.concatenate([each.requests.due_ns for each in served]))[:4]
    since_s = (due - served[0].start_ns) / 1e9
    assert (since_s > np.array([0.0, 0.25, 0.5, 0.75]) - 0.01).all(), "a busy host only makes it later"


def test_too_old_an_aiohttp_is_told_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "aiohttp.py").write_text("__version__ = '3.11.18'\n")
    words = [sys.executable, "-m", "app.engine.workloads.load_generator", "{}"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    ran = subprocess.run(words, cwd=SERVER.parents[2], env=environment, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 1
    assert ran.stderr.startswith("aiohttp 3.11.18 is too old")
    assert "install" in ran.stderr


EVENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda each: (
        st.lists(each, max_size=3)
        | st.dictionaries(
            st.sampled_from(("choices", "delta", "content", "text", "usage", "completion_tokens", "error", "x")),
            each,
            max_size=3,
        )
    ),
    max_leaves=8,
)


@given(st.binary(max_size=40) | EVENTS.map(lambda event: json.dumps(event).encode()))
def test_whatever_a_server_sends_is_counted_or_refused(data: bytes) -> None:
    answer = Answer(3)
    with suppress(Garbage):
        assert answer.hear(data, 7) >= 0
    row = answer.row(1, 9, False)
    assert len(row) == 8
    assert all(isinstance(each, int) for each in row)


# --- figures ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("ttft.p95", 0.4),
        ("$.runs[1].rate", 7),
        ('runs[0]["p 99"]', 3),
        ("runs[5].rate", None),
        ("ttft.p95.deeper", None),
        ("nothing", None),
    ],
)
def test_a_path_into_json(path: str, found: float | None) -> None:
    document = {"ttft": {"p95": 0.4}, "runs": [{"p 99": 3}, {"rate": 7}]}
    assert at_path(document, path) == found


def test_a_program_as_the_client(tmp_path: Path) -> None:
    printed = '{"throughput": {"tokens": 120.5}}'
    script = tmp_path / "bench.sh"
    script.write_text(f"#!/bin/sh\necho noise\necho 'TTFT p95: 41 ms' $1\necho '{printed}'\n")
    script.chmod(0o755)
    client = """run = "./bench.sh {n}"
values = { ttft_ms = 'TTFT p95: ([0-9.]+) ms 2' }
json = { output_tokens_per_s = "throughput.tokens" }"""
    path = written(tmp_path)
    path.write_text(path.read_text().replace("prompt_tokens = 5\noutput_tokens = 4\nconcurrency = 2", client))
    service = Service(load_specification(path))
    with started(service) as running:
        found = service.run_client({"n": 2}, running, threading.Event(), time.monotonic_ns)
        assert found is not None
        assert found[1] == {"ttft_ms": 41.0, "output_tokens_per_s": 120.5}
        with pytest.raises(CommandFailed, match="ttft_ms: it is not in the output"):
            service.run_client({"n": 1}, running, threading.Event(), time.monotonic_ns)


# --- Wattridge is killed ----------------------------------------------------------------------------------------------


def children_of(process: int) -> set[int]:
    """Its descendants."""
    found: set[int] = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_bytes().rpartition(b")")[2].split()[1])
            except (OSError, IndexError):
                continue
            if parent == process:
                found |= {int(entry.name), *children_of(int(entry.name))}
    return found


@pytest.mark.usefixtures("no_signal_is_ignored")
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_nothing_is_left_running_however_wattridge_ends(tmp_path: Path) -> None:
    running: dict[signal.Signals, tuple[subprocess.Popen[bytes], Path]] = {}
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGKILL):
        folder = tmp_path / number.name
        folder.mkdir()
        path = written(folder, "--child", client="concurrency = 2")
        path.write_text(path.read_text().replace("stop_s = 0.5", "stop_s = 0.5\nleast_s = 300\nmost_s = 300"))
        words = [sys.executable, "-m", "app", "tune", str(path), "--gpu", "simulated:a100", "--speed", "1"]
        environment = {**os.environ, "XDG_DATA_HOME": str(folder), "HOME": str(folder)}
        quiet = subprocess.DEVNULL
        process = subprocess.Popen(
            words, cwd=SERVER.parents[2], env=environment, stdout=quiet, stderr=quiet, start_new_session=True
        )
        running[number] = process, folder
    families: dict[signal.Signals, set[int]] = {}
    try:
        for number, (process, folder) in running.items():
            deadline = time.monotonic() + 60
            while "load_generator" not in _commands(children_of(process.pid)):
                assert process.poll() is None, "it ended by itself"
                assert time.monotonic() < deadline, "no load was begun"
                time.sleep(0.1)
            families[number] = children_of(process.pid)
            assert len(processes(folder)) == 2
        for number, (process, _) in running.items():
            process.send_signal(number)
        for number, (process, folder) in running.items():
            process.wait(30)
            assert all_gone(folder, 20), number
            deadline = time.monotonic() + 20
            while any(map(alive, families[number])) and time.monotonic() < deadline:
                time.sleep(0.1)
            assert not any(map(alive, families[number])), number
    finally:
        for process, folder in running.values():
            process.kill()
            process.wait()
            for each in processes(folder):
                if alive(each):
                    os.kill(each, signal.SIGKILL)


def _commands(found: set[int]) -> str:
    lines = []
    for process in found:
        try:
            lines.append(Path(f"/proc/{process}/cmdline").read_bytes().decode(errors="replace"))
        except OSError:
            continue
    return " ".join(lines)
