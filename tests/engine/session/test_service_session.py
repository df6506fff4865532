"""Sessions that tune a service: over its load and its arguments, within limits, with servers that fail."""

from __future__ import annotations

import http.client
import json
import math
import os
import socket
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from app.base.errors import InputError, WattridgeError
from app.base.paths import resources
from app.engine.results.measurement import State
from app.engine.results.service_figures import SERVICE_FIGURES
from app.engine.results.state import SessionState
from app.engine.session.describe_session import describe_search
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_specification
from app.engine.session.run import run_session
from app.engine.session.service_boards import boards_of_service
from app.engine.session.summary import session_summary
from app.engine.space.result_table import ResultTable
from app.engine.specification.check import specification_of
from app.engine.specification.document import document_of
from app.engine.specification.model import programs_of
from app.engine.specification.plan import SearchOptions
from app.engine.store.database import Store
from app.engine.workloads.subprocesses import BackgroundProgram
from app.sensors.clock import ScaledClock, VirtualClock
from app.sensors.select import open_gpu
from app.sensors.service import Requests, Served, ServiceLoad
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin

SERVER = Path(__file__).parents[1] / "service_stand_in.py"
posix = pytest.mark.skipif(os.name != "posix", reason="signals end the programs")


def document(server: str = "", **more: object) -> dict[str, object]:
    return {
        "service": {
            "start": f"{sys.executable} -I -S {SERVER} {{free_port}} --log log {server}",
            "url": "http://127.0.0.1:{free_port}",
            "ready": "ready to serve",
            "ready_s": 20,
            "stop_s": 0.5,
            "least_s": 0.5,
            "most_s": 1.0,
            "precision": 0.2,
            "client": {"concurrency": "users", "prompt_tokens": 5, "output_tokens": 4},
        },
        "parameters": {"users": [1, 8]},
        "objective": {"maximise": "output_tokens_per_s"},
        "search": {"strategy": "brute_force"},
        **more,
    }


def tuned(folder: Path, described: Mapping[str, object], gpu: object = None) -> tuple[ResultTable, dict[str, object]]:
    """Run the session of a specification; its table and its summary."""
    spec = specification_of(described, folder / "spec.toml")
    (folder / "spec.toml").write_text("# as above")
    plan = plan_specification(spec, gpu if gpu is not None else open_gpu("simulated:a100"))
    with Store(folder / "store.db") as store:
        result = run_session(plan, store, lambda *a, **k: None, threading.Event())
    return result.table, session_summary(result.table, result.plan)


def starts(folder: Path) -> list[str]:
    return (folder / "log").read_text().splitlines()


def test_a_simulated_board_without_a_model_of_services_says_why_it_takes_real_time(tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        tuned(tmp_path, document(), open_gpu("simulated:a100", speed=float("inf")))
    assert "no model of a service" in refused.value.what
    assert "--speed 1" in refused.value.remedy
    assert not (tmp_path / "log").exists(), "nothing was started"


def time_to_first_token(port: int, users: int, each: int = 2) -> float:
    """The 95th percentile, by a client that shares nothing with the load generator's."""
    found: list[float] = []

    def ask() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        for _ in range(each):
            begun = time.monotonic()
            connection.request("POST", "/v1/completions", json.dumps({"prompt": "a", "max_tokens": 4, "stream": True}))
            response = connection.getresponse()
            response.readline()
            found.append(time.monotonic() - begun)
            response.read()
        connection.close()

    threads = [threading.Thread(target=ask) for _ in range(users)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return float(np.percentile(found, 95))


@posix
def test_the_feasible_set_over_concurrency_and_arguments_is_that_of_brute_force(tmp_path: Path) -> None:
    limit_s, options = 0.25, "--prefill 0.06 --token 0.005"
    described = document(
        f"--slots {{slots}} {options}",
        parameters={"users": [1, 8], "slots": [1, 8]},
        limits={"ttft_p95_s": f"<= {limit_s}"},
    )
    # too short for a known throughput: what is compared are latencies, three times as long or a third of the limit
    brief = {"least_s": 0.5, "most_s": 1.0}
    described["service"] = {**described["service"], **brief}  # type: ignore[dict-item]
    table, summary = tuned(tmp_path, described)
    assert [measurement_state(table, at) for at in range(len(table))] == [State.OK] * 4, errors(table)
    kept = {
        (m.configuration["users"], m.configuration["slots"])
        for m in map(table.measurement, range(len(table)))
        if m.values["ttft_p95_s"] <= limit_s
    }
    by_hand = within_by_hand(limit_s, options.split())
    assert kept == by_hand == {(1, 1), (1, 8), (8, 8)}
    assert summary["infeasible"] == 1
    assert summary["service_starts"]["count"] == 2  # type: ignore[index]
    best = summary["best"]
    assert isinstance(best, dict)
    assert best["configuration"] == {"users": 8, "slots": 8}
    assert len(starts(tmp_path)) == 2, "one start for each of the server's arguments"
    assert sum("service_start_s" in table.measurement(at).values for at in range(4)) == 2
    figures = table.measurement(0).values
    if "power_w" in figures:
        cost = figures["power_w"] / figures["output_tokens_per_s"]
        assert figures["energy_per_token_j"] == pytest.approx(cost, rel=0.05), (
            "power is a plain mean, the cost a smooth one"
        )
        assert figures["energy_j"] == pytest.approx(figures["energy_per_token_j"])
    else:  # on a busy machine no reading may fall into so short a window
        assert "energy is not known" in table.measurement(0).message
    unknown = {"energy_j", "energy_per_token_j", "output_tokens_per_s"}
    assert not unknown & set(table.measurement(0).intervals), "a second says too little: not what the sensor is off by"
    of_energy = set() if "power_w" in figures else {name for name in SERVICE_FIGURES if "energy" in name}
    assert set(SERVICE_FIGURES) - {"service_start_s"} - of_energy <= set(figures)


def within_by_hand(limit_s: float, options: Sequence[str]) -> set[tuple[int, int]]:
    """Users and slots within the limit, by servers and a client of the test's own: both servers at the same time."""
    servers = {}
    for slots in (1, 8):
        port = free_port()
        words = [sys.executable, "-I", "-S", str(SERVER), str(port), "--slots", str(slots), *options]
        servers[slots] = port, BackgroundProgram(words, ask_s=0.5)
    try:
        for _, program in servers.values():
            while "ready" not in program.heard:
                time.sleep(0.02)

        def asked(slots: int) -> set[tuple[int, int]]:
            port, _ = servers[slots]
            return {(users, slots) for users in (1, 8) if time_to_first_token(port, users) <= limit_s}

        with ThreadPoolExecutor() as asking:
            return set().union(*asking.map(asked, servers))
    finally:
        for _, program in servers.values():
            program.end()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def measurement_state(table: ResultTable, at: int) -> State:
    return table.measurement(at).state


def errors(table: ResultTable) -> list[str]:
    return [table.measurement(at).error for at in range(len(table))]


FAULTS = {
    "hang": (State.TIMEOUT, "no request was answered"),
    "refuse": (State.RUNTIME, "requests failed: HTTP status 503"),
    "garbage": (State.RUNTIME, "requests failed: the answer is no stream of events"),
    "die": (State.RUNTIME, "the server ended under load: ended by SIGKILL"),
}


@posix
@pytest.mark.parametrize("fault", FAULTS)
def test_a_server_that_fails_costs_its_configuration_and_is_started_again(tmp_path: Path, fault: str) -> None:
    state, words = FAULTS[fault]
    table, summary = tuned(tmp_path, document(f"--fault {fault}"))
    assert [measurement_state(table, at) for at in range(2)] == [state] * 2, errors(table)
    assert all(words in error for error in errors(table)), errors(table)
    assert len(starts(tmp_path)) == 2
    assert summary["best"] is None
    processes = [int(line.split()[0]) for line in starts(tmp_path)]
    assert not any(Path(f"/proc/{process}").exists() for process in processes)


def test_a_specification_with_a_service_is_written_as_it_was_read(tmp_path: Path) -> None:
    described = document("--slots {users}", limits={"ttft_p99_s": "<= 1.5"}, metrics={"t_per_j": "1 / energy_j"})
    spec = specification_of(described, tmp_path / "spec.toml")
    again = specification_of(document_of(spec, tmp_path), tmp_path / "spec.toml")
    assert again == spec
    assert spec.service is not None
    assert spec.service.arguments(("users", "other")) == ("users",)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("start", "", "the service is not clear"),
        ("attach", "http://127.0.0.1:1", "the service is not clear"),
        ("url", "127.0.0.1:8000", "is not a URL"),
        ("ready", "(a)(b)", "one group at most"),
        ("start", "true {nothing}", "unknown name 'nothing'"),
        ("most_s", 0.3, "at least least_s"),
        ("client", {}, "the load is not clear"),
        ("client", {"rate": 1, "concurrency": 1}, "the load is not clear"),
        ("client", {"rate": 1, "ramp_s": 1}, "'ramp_s' is for clients of a closed loop"),
        ("client", {"concurrency": 1, "ramp_s": -1}, "ramp_s"),
        ("client", {"rate": "users + nothing"}, "nothing"),
        ("client", {"rate": 1, "prompt_tokens": [9, 3]}, "number of tokens"),
        ("client", {"rate": 1, "values": {"x": "(.)"}}, "read from a program's output"),
        ("client", {"run": "true", "json": {"x": "a..b"}}, "a path such as"),
    ],
)
def test_what_makes_no_sense_is_one_line(tmp_path: Path, key: str, value: object, words: str) -> None:
    described = document()
    service = described["service"]
    assert isinstance(service, dict)
    described["service"] = {**service, key: value}
    with pytest.raises(InputError) as raised:
        specification_of(described, tmp_path / "spec.toml")
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)


def test_what_a_start_runs_and_sends_where_is_said_before(tmp_path: Path) -> None:
    described = document()
    client = {"rate": 1, "prompts": "prompts.txt", "key_from": "MY_KEY"}
    described["service"] = {**described["service"], "client": client}  # type: ignore[dict-item]
    said = "; ".join(programs_of(specification_of(described, tmp_path / "spec.toml")))
    assert str(SERVER) in said
    assert "sends requests to http://127.0.0.1:{free_port}" in said
    assert f"the prompts of {tmp_path / 'prompts.txt'} and the key that MY_KEY holds" in said


@posix
def test_boards_under_one_service_count_together(tmp_path: Path) -> None:
    both = document("", parameters={"users": [1]})
    both["service"] = {**both["service"], "boards": ["simulated:h200", "simulated:h200"]}  # type: ignore[dict-item]
    table, summary = tuned(tmp_path, both)
    measured = table.measurement(0)
    assert [each["uuid"] for each in summary["service_boards"]] == ["simulated:a100", "simulated:h200"]  # type: ignore[attr-defined]
    assert measured.state is State.OK, measured.error
    alone = [SimulatedGpu(load_twin(name)).read() for name in ("a100", "h200")]
    idle_w = sum(
        reading.values[names_of(name).index("power_instant_w")]
        for reading, name in zip(alone, ("a100", "h200"), strict=True)
    )
    assert measured.values["power_w"] == pytest.approx(idle_w, rel=0.1)
    assert "2 boards together" in measured.power_source
    for wanted in ({"graphics_clock_mhz": [900, 300]}, {"power_limit_w": [150]}):
        with pytest.raises(InputError, match=r"H200 .* does not take a"):
            tuned(tmp_path, {**both, "device_settings": wanted})
    with pytest.raises(InputError, match="runs on one board"):
        tuned(tmp_path, both, Modelled())


def names_of(twin: str) -> list[str]:
    return [channel.name for channel in SimulatedGpu(load_twin(twin)).channels]


def test_energy_of_a_service_needs_a_board_that_reports_it(tmp_path: Path) -> None:
    wanted = document(objective={"minimise": "energy_per_token_j"})
    with pytest.raises(InputError, match="needs energy"):
        plan_specification(specification_of(wanted, tmp_path / "spec.toml"), open_gpu("host"))


def test_a_service_needs_real_time(tmp_path: Path) -> None:
    spec = specification_of(document(), tmp_path / "spec.toml")
    gpu = SimulatedGpu(load_twin("a100"), clock=ScaledClock(4.0))
    with pytest.raises(WattridgeError, match="real time"):
        plan_specification(spec, gpu)


# --- a board that models a service ------------------------------------------------------------------------------------


class Modelled(SimulatedGpu):
    """It answers each request after a time that grows with those under way, without any server."""

    service_assumptions = "all of it is assumed"

    def __init__(self) -> None:
        super().__init__(load_twin("a100"), clock=VirtualClock())
        self.service_assumptions = "all of it is assumed"
        self.started: list[dict[str, object]] = []

    def start_service(self, arguments: Mapping[str, object]) -> None:
        self.started.append(dict(arguments))
        self.clock.wait(30.0)

    def serve(self, load: ServiceLoad, seconds: float) -> Served:
        start_ns = self.clock.now_ns()
        self.clock.wait(seconds)
        users = load.concurrency or 1
        answer_s = 0.1 + 0.05 * users
        count = round(users / answer_s * seconds)
        ended = start_ns + np.linspace(0, seconds * 1e9, count + 1, dtype=np.int64)[1:]
        due = ended - round(answer_s * 1e9)
        tokens = np.full(count, 10.0)
        requests = Requests(due, due, due + round(0.02 * users * 1e9), ended, tokens, tokens, np.zeros(count, np.bool_))
        return Served(start_ns, self.clock.now_ns(), requests, output_tokens=10 * users / answer_s * seconds)

    def stop_service(self) -> None:
        pass


def test_a_board_that_models_a_service_runs_no_server(tmp_path: Path) -> None:
    gpu = Modelled()
    described = document(
        "--slots {slots}",
        parameters={"users": [1, 2, 4, 8], "slots": [1, 2]},
        limits={"ttft_p95_s": "<= 0.1"},
    )
    described["service"] = {**described["service"], "least_s": 5, "most_s": 30, "precision": 0.02}  # type: ignore[dict-item]
    begun = time.monotonic()
    table, summary = tuned(tmp_path, described, gpu)
    assert time.monotonic() - begun < 20, "its clock passes as fast as it can"
    assert not (tmp_path / "log").exists(), "nothing was started"
    assert len(gpu.started) == 2
    assert len(table) == 8
    values = [table.measurement(at).values for at in range(8)]
    for at in range(8):
        users = float(table.measurement(at).configuration["users"])
        assert values[at]["output_tokens_per_s"] == pytest.approx(10 * users / (0.1 + 0.05 * users), rel=0.05)
        assert values[at]["ttft_p95_s"] == pytest.approx(0.02 * users, rel=1e-6)
        assert values[at]["power_w"] == pytest.approx(32, abs=3)
    assert summary["infeasible"] == 2
    assert sum(each.get("service_start_s", 0.0) for each in values) == pytest.approx(60.0)
    assert "all of it is assumed" in " ".join(map(str, summary["notes"]))  # type: ignore[call-overload]
    assert math.isfinite(values[0]["energy_per_request_j"])


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
def test_the_power_of_a_modelled_service_is_known_at_any_speed(busy: bool) -> None:
    """The simulation is slower where the machine cannot read the board as often as that takes."""
    gpu, ended = SimulatedGpu(load_twin("rtx5090"), clock=ScaledClock(200.0)), threading.Event()

    def work() -> None:
        while not ended.is_set():
            sum(range(20_000))

    threading.Thread(target=work, daemon=busy).start() if busy else None
    spec = load_specification(resources() / "examples" / "services" / "rtx5090_clocks.toml")
    plan = plan_specification(spec, gpu, SearchOptions(strategy="random_sample", max_evaluations=3, seed=1))
    try:
        with Store() as store:
            result = run_session(plan, store, lambda _event: None, threading.Event())
    finally:
        ended.set()
    assert len(result.table) == 3
    assert np.isfinite(result.table.values("energy_j")).all()
    assert result.state is SessionState.DONE
    assert gpu.clock.speed == 200.0


def test_a_session_says_what_its_intervals_are_of(tmp_path: Path) -> None:
    described = document(parameters={"users": [4]}, limits={})
    described["service"] = {**described["service"], "least_s": 12, "most_s": 14}  # type: ignore[dict-item]
    gpu = Modelled()
    table, _ = tuned(tmp_path, described, gpu)
    plan = plan_specification(specification_of(described, tmp_path / "spec.toml"), gpu)
    [said] = [each for each in describe_search(plan, table).figures if each.label == "Intervals"]
    assert "within a window" in str(said.value)
    assert "another session" in said.note
    nothing_measured = ResultTable(plan.space)
    assert "Intervals" not in [each.label for each in describe_search(plan, nothing_measured).figures]


@pytest.mark.parametrize("ramp_s", [0.0, 30.0])
def test_a_window_opens_once_all_clients_have_begun(tmp_path: Path, ramp_s: float) -> None:
    """While they begin this service answers nothing, which no figure may hold."""

    class Ramped(Modelled):
        began_s = math.nan

        def serve(self, load: ServiceLoad, seconds: float) -> Served:
            now_s = self.clock.now_ns() / 1e9
            self.began_s = now_s if math.isnan(self.began_s) else self.began_s
            served = super().serve(load, seconds)
            if now_s - self.began_s >= load.ramp_s:
                return served
            return replace(served, requests=Requests.none(), output_tokens=0.0)

    gpu = Ramped()
    described = document(parameters={"users": [4]}, limits={})
    client = {**described["service"]["client"], "ramp_s": ramp_s}  # type: ignore[index]
    described["service"] = {**described["service"], "client": client, "least_s": 12, "most_s": 14}  # type: ignore[dict-item]
    table, _ = tuned(tmp_path, described, gpu)
    measured = table.measurement(0)
    assert measured.values["output_tokens_per_s"] == pytest.approx(10 * 4 / 0.3, rel=0.01)
    assert not measured.message


@pytest.mark.parametrize("stored", ["", "{", "1", "null", '["b"]', "[1]", "[" * 100_000])
def test_boards_that_a_damaged_store_holds_are_an_error_and_not_one_board(stored: str) -> None:
    assert boards_of_service({}) == []
    with pytest.raises(InputError, match="cannot be read"):
        boards_of_service({"service_boards": stored})
