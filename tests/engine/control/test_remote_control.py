"""A board of another machine is set through the Wattridge there, which puts it back when the connection ends."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from boards import StandIn
from fixtures.waiting import wait_for

from app.base.errors import PermissionRefused
from app.engine.children.python import python_command, python_environment
from app.engine.control.client import HelperGone
from app.engine.control.guard import DeviceGuard
from app.engine.control.left_over import left_over
from app.engine.control.serving import BoardServer
from app.sensors.nvml.gpu import NvmlGpu
from app.sensors.remote.address import Address
from app.sensors.remote.connection import Connection
from app.sensors.remote.gpu import RemoteGpu
from app.sensors.remote.messages import line_of

Boards = Callable[..., StandIn]
Opened = Callable[[], RemoteGpu]


@pytest.fixture
def there(boards: Boards, as_root: None, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """The boards of the other machine."""
    stand_in = boards("b200")
    for name, value in python_environment().items():
        monkeypatch.setenv(name, value)
    return stand_in


@pytest.fixture
def opened(there: StandIn) -> Iterator[Opened]:
    """A connection to its first board; the command is the one that ssh starts."""
    made: list[RemoteGpu] = []

    def make() -> RemoteGpu:
        words = python_command("app", "serve-board", "--gpu", "0")
        made.append(RemoteGpu(Address("there"), lambda address, give_up: Connection(address, words, give_up)))
        return made[-1]

    yield make
    for gpu in made:
        gpu.close()


def test_it_is_set_obeys_and_is_as_it_was_again(there: StandIn, opened: Opened) -> None:
    before = there.settings()
    gpu = opened()
    with DeviceGuard(gpu, allow_control=True) as guard:
        guard.open()
        there.work(30.0)
        guard.apply(graphics_clock_mhz=1200, power_limit_w=400.0, workload_power_profile=1)
        assert there.settings()["lock"] == (1200, 1200)
        assert there.settings()["requested"] == 1 << 1
        seen = guard.watch()
        assert seen.obeyed, seen.message
        assert guard.prior == {
            "workload_power_profile": 5,
            "power_limit_w": before["limit"] / 1000,
            "graphics_clock_mhz": None,
        }
    assert there.settings() == before
    guard.close()
    assert left_over(there.uuids[0]) is None


def test_what_is_confirmed_stays_when_the_connection_ends(there: StandIn, opened: Opened) -> None:
    before = there.settings()
    gpu = opened()
    guard = DeviceGuard(gpu, allow_control=True)
    guard.apply(power_limit_w=400.0)
    guard.confirm()
    gpu.close()
    assert there.settings()["limit"] == 400_000
    again = DeviceGuard(opened(), allow_control=True)
    again.restore_prior()
    assert there.settings() == before
    again.close()


@pytest.mark.parametrize("how", ["closed", "the end there killed", "this end killed"])
def test_a_connection_that_breaks_puts_the_board_back(there: StandIn, opened: Opened, how: str) -> None:
    before = there.settings()
    gpu = opened()
    guard = DeviceGuard(gpu, allow_control=True)
    guard.apply(graphics_clock_mhz=1200, power_limit_w=400.0, workload_power_profile=1)
    assert there.settings() != before
    server = gpu.connection.process
    if how == "the end there killed":
        os.kill(server, signal.SIGKILL)
    elif how == "closed":
        gpu.close()
    else:
        gpu.connection._process.close_input()  # as when this process is killed: its pipes close
    wait_for(lambda: there.settings() == before)
    wait_for(lambda: left_over(there.uuids[0]) is None)
    with pytest.raises((HelperGone, PermissionRefused)):
        guard.apply(power_limit_w=500.0)
    assert guard.in_force == {}


def test_an_end_that_falls_silent_without_closing_is_given_up_and_the_board_put_back(
    there: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As behind a cable that is cut: no pipe closes, and nothing is asked any more."""
    monkeypatch.setattr("app.engine.control.serving.SILENCE_S", 2.0)
    before = there.settings()
    source, asking = os.pipe()
    answers, sink = os.pipe()
    with closing(NvmlGpu(0, voltage=None)) as gpu, open(source, "rb") as read, open(sink, "wb") as written:
        server = threading.Thread(target=BoardServer(gpu, read, written).run)
        server.start()
        heard: list[bytes] = []
        drained = threading.Thread(target=lambda: heard.extend(iter(lambda: os.read(answers, 1 << 16), b"")))
        drained.start()
        os.write(asking, line_of({"id": 1, "do": "open"}))
        os.write(asking, line_of({"id": 2, "do": "set", "settings": {"power_limit_w": 400.0}}))
        server.join(60.0)
        assert not server.is_alive()
        os.close(asking)
    drained.join(60.0)
    os.close(answers)
    (answer,) = (line for line in b"".join(heard).splitlines() if b'"id":2' in line)
    assert b'"prior":{"power_limit_w":' in answer, "it was set"
    assert there.settings() == before
    assert left_over(there.uuids[0]) is None


def test_without_leave_nothing_is_set_and_the_rules_there_win(
    there: StandIn, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = there.settings()
    with pytest.raises(PermissionRefused, match="only looked at"):
        DeviceGuard(opened()).apply(power_limit_w=400.0)
    monkeypatch.setenv("WATTRIDGE_READ_ONLY", "1")
    gpu = opened()
    monkeypatch.delenv("WATTRIDGE_READ_ONLY")
    with pytest.raises(PermissionRefused, match="READ_ONLY"):
        DeviceGuard(gpu, allow_control=True).apply(power_limit_w=400.0)
    assert there.settings() == before


@pytest.mark.parametrize(
    "fields",
    [
        {"settings": {"power_limit_w": 0}},
        {"settings": {"power_limit_w": 1e9}},
        {"settings": {"power_limit_w": "400; reboot"}},
        {"settings": {"fan_percent": 0}},
        {"settings": {"graphics_clock_mhz": [1, 2, 3]}},
        {"settings": {}},
        {"settings": [400]},
        {},
    ],
)
def test_settings_that_make_no_sense_change_nothing(there: StandIn, opened: Opened, fields: dict[str, object]) -> None:
    before = there.settings()
    gpu = opened()
    gpu.answer("open", 20.0)
    assert "error" in gpu.answer("set", 20.0, **fields)
    assert "error" in gpu.answer("format_disk", 20.0)
    assert there.settings() == before
