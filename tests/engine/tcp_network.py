"""`Network`: a stretch of TCP between a client and a server, which a test stalls and cuts."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress


class Network:
    """Listens on loopback and carries bytes both ways to an address."""

    def __init__(self, to: tuple[str, int]) -> None:
        self._to = to
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._flows = threading.Event()
        self._flows.set()
        self._sockets: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, name="network")]
        self._threads[0].start()

    def stall(self, seconds: float) -> None:
        """Nothing arrives for so long; all of it afterwards."""
        self._flows.clear()
        timer = threading.Timer(seconds, self._flows.set)
        self._threads.append(timer)
        timer.start()

    def cut(self) -> None:
        """Break every connection that is there. New ones are carried."""
        for each in list(self._sockets):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._flows.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()
        for thread in self._threads:
            thread.join()
        for each in self._sockets:
            each.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(self._to)
                self._sockets += [near, far]
                for source, sink in ((near, far), (far, near)):
                    thread = threading.Thread(target=self._carry, args=(source, sink), name="network")
                    self._threads.append(thread)
                    thread.start()

    def _carry(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                self._flows.wait()
                sink.sendall(data)
        for each in (source, sink):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
