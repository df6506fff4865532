"""A stamped socket: when a request left and when its answer came, however late that is read."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextvars import copy_context

import pytest

from app.engine.workloads.load_generator import EXCHANGE, StampedSocket, stamped_socket

linux = pytest.mark.skipif(sys.platform != "linux", reason="other systems do not say when data came")


class Asked:
    def __init__(self) -> None:
        self.sent_ns = self.came_ns = 0
        self.ended = False


@pytest.fixture
def ends() -> Iterator[tuple[StampedSocket, socket.socket]]:
    """A client's socket and the server's, connected."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = stamped_socket((socket.AF_INET, socket.SOCK_STREAM, 0, "", listener.getsockname()))
        client.connect(listener.getsockname())
        server, _ = listener.accept()
        with client, server:
            yield client, server


def send(client: StampedSocket, exchange: Asked, way: Callable[[], object] | None = None) -> None:
    """In the context of that exchange."""

    def sent() -> None:
        EXCHANGE.set(exchange)
        way() if way is not None else client.send(b"asked")

    copy_context().run(sent)


@linux
@pytest.mark.parametrize("into", [False, True])
def test_an_answer_came_when_it_came_and_not_when_it_was_read(
    ends: tuple[StampedSocket, socket.socket], into: bool
) -> None:
    client, server = ends
    late = []
    for _ in range(20):  # the system begins to stamp a moment after the first socket asks for it
        asked = Asked()
        send(client, asked)
        assert server.recv(100) == b"asked"
        server.sendall(b"answer")
        sent_ns = time.monotonic_ns()
        time.sleep(0.2)
        if into:
            buffer = bytearray(20)
            assert client.recv_into(buffer) == 6
            assert buffer.startswith(b"answer")
        else:
            assert client.recv(100) == b"answer"
        assert asked.came_ns >= asked.sent_ns
        late.append((asked.came_ns - sent_ns) / 1e6)
        if late[-1] < 150:  # ms, where it was read 200 later
            return
    pytest.fail(f"it came when it was read: {late} ms")


@pytest.mark.parametrize("into", [False, True])
def test_the_end_of_the_connection_is_no_answer(ends: tuple[StampedSocket, socket.socket], into: bool) -> None:
    client, server = ends
    asked = Asked()
    send(client, asked)
    server.recv(100)
    server.sendall(b"answer")
    assert client.recv(100) == b"answer"
    came_ns = asked.came_ns
    server.close()
    assert (client.recv_into(bytearray(9)) if into else len(client.recv(9))) == 0
    assert asked.came_ns == came_ns > 0


def test_it_left_when_it_was_sent(ends: tuple[StampedSocket, socket.socket]) -> None:
    client, server = ends
    for way in (None, lambda: client.sendmsg([b"as", b"ked"])):
        asked, before = Asked(), time.monotonic_ns()
        send(client, asked, way)
        assert before <= asked.sent_ns <= time.monotonic_ns()
        assert server.recv(100) == b"asked"
        assert asked.came_ns == 0


def test_what_comes_is_of_the_last_that_was_sent(ends: tuple[StampedSocket, socket.socket]) -> None:
    client, server = ends
    first, second = Asked(), Asked()
    send(client, first)
    first.ended = True
    send(client, second)
    left = second.sent_ns
    send(client, first)  # a callback in the context of one that has ended
    server.sendall(b"answer")
    assert client.recv(100) == b"answer"
    assert first.came_ns == 0
    assert left == second.sent_ns <= second.came_ns <= time.monotonic_ns()


@linux
@pytest.mark.parametrize("step_s", [-3600, 3600])
def test_a_clock_that_is_set_meanwhile_leaves_it_between_what_was_before_and_now(
    ends: tuple[StampedSocket, socket.socket], monkeypatch: pytest.MonkeyPatch, step_s: int
) -> None:
    client, server = ends
    asked = Asked()
    send(client, asked)
    server.sendall(b"answer")
    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() + step_s * 1_000_000_000)
    assert client.recv(100) == b"answer"
    assert asked.sent_ns <= asked.came_ns <= time.monotonic_ns()


def test_without_anybody_to_tell_it_is_a_socket(ends: tuple[StampedSocket, socket.socket]) -> None:
    client, server = ends
    server.sendall(b"unasked")
    assert client.recv(100) == b"unasked"
    client.setblocking(False)
    with pytest.raises(BlockingIOError):
        client.recv(100)
