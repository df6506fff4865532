"""A board of another machine behaves as one of this: the same conformance, times on this clock, breaks as losses."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from fixtures.gpu_conformance import GpuConformance
from fixtures.served_board import NAMES, made_at_ns
from fixtures.waiting import wait_for

from app.base.errors import InputError
from app.engine.children.python import python_command, python_environment
from app.sensors.channel import CHANNELS
from app.sensors.gpu import Gpu, GpuLost, SensorError
from app.sensors.remote import connection as connections
from app.sensors.remote.address import Address, parse_address
from app.sensors.remote.connection import Connection
from app.sensors.remote.gpu import RemoteGpu
from app.sensors.remote.messages import Hello, hello_message, line_of
from app.sensors.remote.run_there import boards_there
from app.sensors.select import open_gpu
from app.sensors.trace.sampler import Sampler, SensorEvent
from app.sensors.trace.trace import Trace

HERE = Path(__file__).parents[2] / "fixtures"
Open = Callable[[Sequence[str]], RemoteGpu]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """`opened(command)`: the board at the other end of a program, which stands for ssh."""
    for name, value in python_environment().items():
        monkeypatch.setenv(name, value)
    made: list[RemoteGpu] = []

    def make(command: Sequence[str]) -> RemoteGpu:
        made.append(RemoteGpu(Address("there"), lambda address, give_up: Connection(address, command, give_up)))
        return made[-1]

    yield make
    for gpu in made:
        gpu.close()


def through(network: Sequence[str], program: Sequence[str]) -> list[str]:
    """The program behind a network."""
    return [sys.executable, str(HERE / "slow_network.py"), *network, *program]


COUNTING = [sys.executable, "-P", str(HERE / "served_board.py"), "1000"]


class TestRemote(GpuConformance):
    """The other end is the command that ssh starts, with a simulated board."""

    @pytest.fixture
    def gpu(self, opened: Open) -> Gpu:
        return opened(python_command("app", "serve-board", "--gpu", "simulated:h200"))

    def test_it_says_where_it_is(self, gpu: Gpu) -> None:
        assert gpu.info.host == "there"
        assert "H200 on there (simulated)" in gpu.info.label
        assert not gpu.info.here


def test_stamps_are_right_within_the_stated_error_however_far_the_other_clock_is_ahead(opened: Open) -> None:
    gpu = opened(COUNTING)
    offset_s, error_s = gpu.clock_offset_s()
    assert offset_s == pytest.approx(1000.0, abs=error_s)
    assert error_s < 0.5
    time.sleep(0.5)
    readings = gpu.readings(0)
    assert len(readings) > 3
    names = [channel.name for channel in gpu.channels]
    _, error_s = gpu.clock_offset_s()
    for reading in readings:
        assert abs(reading.time_ns - made_at_ns(only(reading, names), NAMES)) / 1e9 <= error_s + 2e-3


def only(reading, names):  # type: ignore[no-untyped-def]
    """The channels that the counting board has."""
    values = dict(zip(names, reading.values, strict=True))
    return reading._replace(values=tuple(values[name] for name in NAMES))


def test_a_slow_network_that_stalls_delays_readings_and_loses_none(opened: Open, tmp_path: Path) -> None:
    gpu = opened(through(["0.05", "2.0:1.0,4.0:1.0", str(tmp_path / "cut")], COUNTING))
    trace = Trace(gpu.channels, rate_hz=50.0, span_s=60.0)
    kept: list[tuple[int, float]] = []
    append = trace.append

    def keep(reading):  # type: ignore[no-untyped-def]
        append(reading)
        counted = only(reading, [channel.name for channel in gpu.channels])
        if counted.values[3] == counted.values[3]:
            kept.append((reading.time_ns - made_at_ns(counted, NAMES), counted.values[3]))

    trace.append = keep  # type: ignore[method-assign]
    sampler = Sampler(gpu, trace, interval_s=0.02)
    sampler.start()
    time.sleep(6.0)
    sampler.stop()
    sampler.join()
    _, error_s = gpu.clock_offset_s()
    counts = [count for _, count in kept]
    assert len(counts) > 20
    assert counts == list(range(round(counts[0]), round(counts[0]) + len(counts)))  # none is lost, none comes twice
    assert max(abs(wrong_ns) for wrong_ns, _ in kept) / 1e9 <= error_s + 0.05


def test_a_break_is_a_loss_with_a_gap_and_it_is_connected_again(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "SILENCE_S", 1.5)
    monkeypatch.setattr("app.sensors.remote.gpu._AGAIN_S", 0.2)
    monkeypatch.setattr("app.sensors.trace.sampler._RETRY_S", 0.2)
    cut = tmp_path / "cut"
    gpu = opened(through(["0", "", str(cut)], COUNTING))
    events: list[SensorEvent] = []
    trace = Trace(gpu.channels, rate_hz=50.0, span_s=60.0)
    sampler = Sampler(gpu, trace, interval_s=0.02, on_event=events.append)
    sampler.start()
    wait_for(lambda: len(trace) > 10)
    cut.touch()
    wait_for(lambda: any(event.kind == "lost" for event in events))
    assert sampler.lost
    cut.unlink()
    wait_for(lambda: any(event.kind == "back" for event in events))
    before = trace.appended
    wait_for(lambda: trace.appended > before + 10)
    sampler.stop()
    sampler.join()


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("import sys; sys.exit(127)", "not installed there (install it there: ssh there pipx install wattridge)"),
        ("import sys; sys.exit('Permission denied (publickey).')", "no connection: Permission denied"),
        ("print('Welcome to Ubuntu!', flush=True); input()", "not a line of ours: Welcome to Ubuntu!"),
        ("print('[' * 100000, flush=True); input()", "not a line of ours"),
        ('print(\'{"hello": {"protocol": 99, "version": "9.9"}}\', flush=True); input()', "another protocol"),
        ("print('x' * 1000000, flush=True); input()", "a line without end"),
        ("import sys; sys.exit('wattridge: there is no GPU 7')", "there is no GPU 7"),
    ],
)
def test_what_does_not_answer_as_it_should_is_said_in_one_line(opened: Open, script: str, said: str) -> None:
    with pytest.raises(SensorError) as caught:
        opened([sys.executable, "-c", script])
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.remedy


HOSTILE_COUNTER = """
import sys
for line in sys.stdin:
    number = line.partition('"id":')[2].partition(",")[0]
    print('{"id":%s,"at_ns":1,"answer":{"energy_j":FIGURE}}' % number, flush=True)
"""


@pytest.mark.parametrize("figure", ["1e999", "1" + "0" * 400, "[]", "true", '"x"'])
def test_an_energy_counter_that_is_no_finite_number_is_an_error_of_a_sensor(opened: Open, figure: str) -> None:
    with closing(open_gpu("simulated:h200")) as board:
        hello = Hello("1", board.info, board.channels, (), (), buffered=False, lists_processes=False, cannot_set={})
        greeting = line_of(hello_message(hello)).decode("ascii")
    program = f"print({greeting!r}, end='', flush=True){HOSTILE_COUNTER.replace('FIGURE', figure)}"
    with pytest.raises(SensorError, match="no number"):
        opened([sys.executable, "-c", program]).energy_j()


def test_an_end_that_goes_silent_after_its_greeting_is_lost(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = opened(COUNTING)
    gpu.connection.close()
    with pytest.raises(GpuLost, match="connection"):
        gpu.read()


def test_a_machine_that_does_not_answer_is_given_up_at_once_when_nobody_waits_any_more(opened: Open) -> None:
    give_up = threading.Event()
    threading.Timer(0.3, give_up.set).start()
    command = [sys.executable, "-c", "input()"]
    with pytest.raises(SensorError, match="given up"):
        RemoteGpu(Address("there"), lambda address, wait: Connection(address, command, wait), give_up)


def test_only_a_caller_that_runs_nothing_may_open_one() -> None:
    with pytest.raises(InputError, match="what runs on it is started there") as caught:
        open_gpu("ssh://there/1")
    assert "ssh there wattridge tune" in caught.value.remedy


@pytest.mark.parametrize(
    ("machine", "login"),
    [
        ("[::1]:22", "ssh -p 22 ::1"),
        ("me@[fe80::1]", "ssh me@fe80::1"),
        ("me@there:2222", "ssh -p 2222 me@there"),
        ("there", "ssh there"),
    ],
)
def test_a_remedy_is_a_command_that_ssh_understands(
    machine: str, login: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError) as caught:
        open_gpu(f"ssh://{machine}/1")
    assert f"as in: {login} wattridge tune ... --gpu 1" in caught.value.remedy
    (tmp_path / "ssh").write_text("#!/bin/sh\nexit 255\n")
    (tmp_path / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    for ask in (boards_there, lambda address: RemoteGpu(address)):
        with pytest.raises(SensorError) as failed:
            ask(parse_address(machine))
        assert failed.value.remedy == f"try: {login}"


def test_channels_that_one_end_does_not_know_are_not_available(opened: Open) -> None:
    gpu = opened(COUNTING)
    assert [channel.name for channel in gpu.channels] == list(CHANNELS)
    assert {channel.name for channel in gpu.channels if channel.available} == set(NAMES) - {"energy_j"}
