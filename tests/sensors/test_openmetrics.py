"""What Prometheus reads: the text, the server, and the command."""

from __future__ import annotations

import http.client
import json
import math
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from app.base.errors import InputError, WattridgeError
from app.cli import main
from app.sensors.channel import CHANNELS
from app.sensors.gpu import GpuInfo, PowerLimit
from app.sensors.openmetrics import CONTENT_TYPE, BoardReading, MeteredBoard, MetricsServer, exposition, parse_address
from app.sensors.select import open_gpu

LIMIT = PowerLimit(100.0, 400.0, 250.0, 300.0)


def board(index: int = 0, name: str = "A board", limit: PowerLimit = LIMIT, **values: float) -> BoardReading:
    info = GpuInfo(index, f"GPU-{index}", name, "simulated", "1.0", limit)
    return BoardReading(info, values, {c: CHANNELS[c].label for c in CHANNELS}, 12.5, 7, True, (210.0, 1410.0))


def parse(text: str) -> dict[str, Metric]:
    """Every family by name, as the reference parser reads them."""
    return {family.name: family for family in text_string_to_metric_families(text)}


def value_of(family: Metric, **labels: str) -> float:
    """The one sample with these labels among its own."""
    [found] = [sample.value for sample in family.samples if labels.items() <= sample.labels.items()]
    return found


def test_figures_in_base_units() -> None:
    found = parse(
        exposition(
            [
                board(
                    power_instant_w=123.25,
                    graphics_clock_mhz=1410.0,
                    core_voltage_mv=850.0,
                    temperature_c=41.0,
                    utilisation_percent=87.0,
                    memory_used_mib=2.0,
                    pcie_rx_mb_per_s=1.5,
                    energy_j=1234567.891,
                    event_reasons=5.0,
                    fan_percent=math.nan,
                )
            ]
        )
    )

    def value(name: str) -> float:
        return value_of(found[f"wattridge_{name}"], gpu="0", name="A board", source="simulated")

    assert value("power_instant_watts") == 123.25
    assert value("graphics_clock_hertz") == 1.41e9
    assert value("core_voltage_volts") == 0.85
    assert value("temperature_celsius") == 41
    assert value("utilisation_ratio") == 0.87
    assert value("memory_used_bytes") == 2**21
    assert value("pcie_rx_bytes_per_second") == 1.5e6
    assert value("energy_joules") == 1234567.891
    assert value("integrated_energy_joules") == 12.5
    assert value("up") == 1
    assert value("power_limit_default_watts") == 250
    assert value("graphics_clock_maximum_hertz") == 1.41e9
    assert found["wattridge_energy_joules"].type == "counter"
    assert found["wattridge_power_instant_watts"].unit == "watts"
    assert "wattridge_fan_ratio" not in found, "what is unknown is left out"
    reasons = found["wattridge_clock_event_reason"].samples
    assert {reason.labels["wattridge_clock_event_reason"] for reason in reasons if reason.value} == {
        "idle",
        "power cap",
    }
    assert found["wattridge_gpu"].samples[0].labels["uuid"] == "GPU-0"


def test_every_channel_has_a_name_of_its_own() -> None:
    found = parse(exposition([board(**dict.fromkeys(CHANNELS, 1.0))]))
    assert len([name for name, one in found.items() if one.type == "gauge"]) == len(CHANNELS) - 2 + 1 + 3 + 2


@given(st.text(max_size=30), st.lists(st.floats(), min_size=2, max_size=2))
def test_whatever_a_board_is_called_and_reports_the_text_is_valid(name: str, figures: list[float]) -> None:
    boards = [
        board(index, name, PowerLimit(None, None, None, None), power_instant_w=w) for index, w in enumerate(figures)
    ]
    found = parse(exposition([*boards, board(2, name)]))
    assert value_of(found["wattridge_up"], gpu="2", name=name) == 1
    known = [w for w in figures if math.isfinite(w)]
    power = found.get("wattridge_power_instant_watts")
    assert sorted(sample.value for sample in (power.samples if power else [])) == sorted(known)


def test_no_board_is_a_document_too() -> None:
    assert parse(exposition([])) == {}


@pytest.mark.parametrize(
    ("text", "address"),
    [
        (":9400", ("127.0.0.1", 9400)),
        ("9400", ("127.0.0.1", 9400)),
        ("0.0.0.0:1", ("0.0.0.0", 1)),
        ("[::1]:9400", ("::1", 9400)),
        ("host.example:80", ("host.example", 80)),
    ],
)
def test_addresses(text: str, address: tuple[str, int]) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["", ":", "host", ":70000", ":-1", ":9x", ":²"])
def test_bad_addresses(text: str) -> None:
    with pytest.raises(InputError, match="--openmetrics"):
        parse_address(text)


# --- the server -------------------------------------------------------------------------------------------------------


def ask(url: str, path: str = "/metrics", method: str = "GET", **headers: str) -> tuple[int, str, str]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.getheader("Content-Type") or "", answer.read().decode()
    finally:
        connection.close()


def test_the_server_hands_out_the_document_and_nothing_else() -> None:
    server = MetricsServer("127.0.0.1", 0, lambda: "# EOF\n")
    try:
        assert ask(server.url) == (200, CONTENT_TYPE, "# EOF\n")
        assert ask(server.url, "/metrics?x=1")[0] == 200
        assert ask(server.url, method="HEAD") == (200, CONTENT_TYPE, "")
        assert ask(server.url, "/")[0] == 200
        assert ask(server.url, "/../etc/passwd")[0] == 404
        assert ask(server.url, method="POST")[0] == 501
        assert ask(server.url, Host="evil.example")[0] == 403, "a web page cannot read it by a name of its own"
        assert ask(server.url, Host="localhost:9400")[0] == 200
        with pytest.raises(WattridgeError, match="another port"):
            MetricsServer("127.0.0.1", urlsplit(server.url).port or 0, lambda: "")
    finally:
        server.close()
    assert server.served == 4
    server.close()


@pytest.mark.parametrize("sent", [b"", b"GET /metrics HTTP/1.0\r\nX-Slow: "], ids=["silent", "half a request"])
def test_it_answers_while_many_slow_clients_hold_connections(sent: bytes) -> None:
    before = set(threading.enumerate())
    server = MetricsServer("127.0.0.1", 0, lambda: "# EOF\n")
    parts = urlsplit(server.url)
    with ExitStack() as clients:
        clients.callback(server.close)
        for _ in range(4 * 16):
            slow = clients.enter_context(socket.create_connection((parts.hostname or "", parts.port or 0), timeout=60))
            slow.sendall(sent)
            assert ask(server.url) == (200, CONTENT_TYPE, "# EOF\n")
        threads = set(threading.enumerate()) - before
        assert len(threads) < 2 * 16, "the server's, one for each of 16 connections, and those about to end"
        server.close()
        assert not set(threading.enumerate()) - before, "closing waits for no client and leaves no thread"
        assert server.served == 4 * 16, "what a slow client did not get does not count"


# --- a board ----------------------------------------------------------------------------------------------------------


def test_the_integrated_energy_is_the_boards_own() -> None:
    gpu = open_gpu("simulated:h200", speed=20.0)
    watched = MeteredBoard(gpu, interval_s=0.02, report=print)
    try:
        deadline = time.monotonic() + 20
        while (found := watched.reading()).values.get("energy_j", 0.0) < 800:
            assert time.monotonic() < deadline
            time.sleep(0.02)  # often: what comes late must count too
        families = parse(exposition([found]))
    finally:
        watched.close()
    assert value_of(families["wattridge_integrated_energy_joules"], gpu="0") == pytest.approx(
        found.values["energy_j"], rel=0.1
    )
    assert value_of(families["wattridge_up"], gpu="0") == 1


def test_a_board_that_says_nothing_is_not_up() -> None:
    gpu = open_gpu("simulated:a100")
    watched = MeteredBoard(gpu, interval_s=0.02, report=print)
    watched.close()
    reading = watched.reading()
    late = BoardReading(reading.info, {}, {}, reading.integrated_j, reading.readings, answers=False)
    assert value_of(parse(exposition([late]))["wattridge_up"], gpu="0") == 0


def test_the_command_serves_until_it_is_interrupted() -> None:
    words = [sys.executable, "-m", "app", "monitor", "--gpu", "simulated:a4000", "--openmetrics", ":0", "--json"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        url = line.partition("OpenMetrics at ")[2].split()[0]
        assert url.startswith("http://127.0.0.1:")
        deadline = time.monotonic() + 20
        while "power_instant" not in (text := ask(url)[2]):
            assert time.monotonic() < deadline
        found = parse(text)
        assert (
            value_of(found["wattridge_power_instant_watts"], gpu="0", name="NVIDIA RTX A4000", source="simulated") > 0
        )
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=20)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0
    document = json.loads(out)
    assert document["url"] == url
    assert document["served"] >= 1


@pytest.mark.parametrize("words", [["gpus"], ["monitor", "--gpu", "simulated:a4000", "--duration", "0.1"]])
def test_commands_that_serve_nothing_load_no_server(words: list[str]) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "app", *words, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert "app.sensors.select" in done.stderr
    assert "prometheus_client" not in done.stderr


def test_without_a_name_every_real_board_is_served(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    boards = [open_gpu(f"simulated:{name}") for name in ("a100", "v100")]
    for index, gpu in enumerate(boards):
        gpu.info = replace(gpu.info, index=index, source="nvml")
    monkeypatch.setattr("app.sensors.select.list_gpus", lambda: boards)
    documents: list[str] = []

    def served(self: MetricsServer) -> str:
        documents.append(self.document())
        return "http://127.0.0.1/metrics"

    monkeypatch.setattr(MetricsServer, "url", property(served))
    assert main(["monitor", "--openmetrics", ":0", "--duration", "1.2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["gpu"] for each in found["gpus"]] == [gpu.info.name for gpu in boards]
    assert all(each["energy_j"] > 0 for each in found["gpus"])
    families = parse(documents[-1])
    assert value_of(families["wattridge_power_instant_watts"], gpu="0", name=boards[0].info.name) > 0
    assert value_of(families["wattridge_power_instant_watts"], gpu="1", name=boards[1].info.name) > 0


def test_what_does_not_go_together_is_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = str(tmp_path / "x.csv")
    for words in (["--openmetrics", "nowhere"], ["--openmetrics", ":0", "--out", out]):
        assert main(["monitor", "--gpu", "simulated:a100", "--json", *words]) == 2
        assert json.loads(capsys.readouterr().out)["error"]["remedy"]


# --- traces as JSON ---------------------------------------------------------------------------------------------------


def test_a_trace_as_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    words = ["--gpu", "simulated:h200", "--duration", "2", "--speed", "8", "--out", str(file), "--json"]
    assert main(["monitor", *words]) == 0
    document = json.loads(capsys.readouterr().out)
    found = json.loads(file.read_text())
    assert (found["gpu"], found["source"]) == ("NVIDIA H200 (simulated)", "simulated")
    assert found["units"]["power_instant_w"] == "W"
    columns = found["readings"]
    assert len({len(column) for column in columns.values()}) == 1
    assert columns["time_s"] == sorted(columns["time_s"])
    assert len(found["power_samples"]["time_s"]) == len(found["power_samples"]["power_samples_w"])
    told_w = [w for w in columns["power_instant_w"] if w is not None]
    assert max(told_w) == pytest.approx(document["channels"]["power_instant_w"]["max"], rel=1e-6)


def test_a_trace_that_cannot_be_written_is_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = str(tmp_path / "nowhere" / "trace.json")
    words = ["--gpu", "simulated:h200", "--duration", "0.2", "--speed", "8", "--out", out, "--json"]
    assert main(["monitor", *words]) == 1
    assert "folder" in json.loads(capsys.readouterr().out)["error"]["remedy"]
