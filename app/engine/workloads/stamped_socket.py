"""Sockets that note when a request left and when its answer came, whenever this process gets round to reading it.

Linux says when data came in from the network, the last of it where several pieces are read at once. It begins to a
moment after the first socket asks for that; until then, and elsewhere, it is when data was read. Whom a socket tells is
the context's affair: the last one that sent something over it hears of what comes.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import sys
import time
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

_SO_TIMESTAMPNS: Final = 35  # of <asm-generic/socket.h>, which Python has no name for; also the type of its messages
_STAMP: Final = struct.Struct("@ll")  # struct timespec, of the realtime clock
_ROOM: Final = 64  # bytes for such a message


class Exchange(Protocol):
    """A request and its answer. Times in ns on the monotonic clock; 0: not yet."""

    sent_ns: int  # when the last of the request was handed to the system
    came_ns: int  # when the last of the answer came
    ended: bool  # nothing more is to be noted


EXCHANGE: ContextVar[Exchange] = ContextVar("exchange")


class StampedSocket(socket.socket):
    """Tells the `EXCHANGE` in whose context it sends."""

    _exchange: Exchange | None = None

    def send(self, data: ReadableBuffer, flags: int = 0, /) -> int:
        self._note_sent()
        return super().send(data, flags)

    def sendmsg(self, *arguments: Any) -> int:
        self._note_sent()
        return super().sendmsg(*arguments)

    def _note_sent(self) -> None:
        exchange = EXCHANGE.get(None)
        if exchange is not None and not exchange.ended:  # a callback of this socket's may be of an earlier one
            self._exchange = exchange
            exchange.sent_ns = time.monotonic_ns()

    if sys.platform == "linux":

        def recv(self, size: int, flags: int = 0, /) -> bytes:
            data, messages, _, _ = super().recvmsg(size, _ROOM, flags)
            self._note_came(len(data), messages)
            return data

        def recv_into(self, buffer: WriteableBuffer, size: int = 0, flags: int = 0, /) -> int:
            room = memoryview(buffer)[: size or None]
            count, messages, _, _ = super().recvmsg_into([room], _ROOM, flags)
            self._note_came(count, messages)
            return count

    else:

        def recv(self, size: int, flags: int = 0, /) -> bytes:
            data = super().recv(size, flags)
            self._note_came(len(data), [])
            return data

        def recv_into(self, buffer: WriteableBuffer, size: int = 0, flags: int = 0, /) -> int:
            count = super().recv_into(buffer, size, flags)
            self._note_came(count, [])
            return count

    def _note_came(self, count: int, messages: list[tuple[int, int, bytes]]) -> None:
        if self._exchange is None or not count:  # the end of the connection is no answer
            return
        now_ns = came_ns = time.monotonic_ns()
        for level, kind, stamp in messages:
            if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPNS and len(stamp) == _STAMP.size:
                seconds, ns = _STAMP.unpack(stamp)
                came_ns = now_ns - (time.time_ns() - (seconds * 1_000_000_000 + ns))
        # where the realtime clock was set meanwhile: not before what came before, nor in the future
        earliest_ns = self._exchange.came_ns or self._exchange.sent_ns
        self._exchange.came_ns = min(now_ns, max(came_ns, earliest_ns))


def stamped_socket(address: tuple[Any, ...]) -> StampedSocket:
    """A socket for an address of `getaddrinfo`."""
    made = StampedSocket(*address[:3])
    if sys.platform == "linux":
        with contextlib.suppress(OSError):  # a system that does not have it: when it is read
            made.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    return made
