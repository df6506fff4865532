"""A small web server that hands out one document, `/metrics`; on loopback unless another address is named."""

from __future__ import annotations

import ipaddress
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from socketserver import ThreadingMixIn
from typing import Any

from .. import __version__
from ..errors import InputError, WattridgeError
from .openmetrics import CONTENT_TYPE

_MOST_CONNECTIONS = 16  # with a thread each
_LONGEST_SILENCE_S = 5.0  # of a client


def parse_address(text: str) -> tuple[str, int]:
    """'PORT', ':PORT', 'HOST:PORT' or '[IPV6]:PORT'; loopback where no host is named. Raises InputError."""
    host, _, port = text.strip().rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not port.isascii() or not port.isdecimal() or not 0 <= int(port) <= 65535:
        raise InputError(f"'{text}' is no address", "--openmetrics", "write :PORT or HOST:PORT, as in :9400")
    return host or "127.0.0.1", int(port)


class MetricsServer(ThreadingMixIn, HTTPServer):
    """Serves `document()` on threads of its own until closed. Port 0 takes a free one: see `url`.

    Raises WattridgeError if it cannot listen on the address. Where all connections are in use, the oldest is cut off
    for a new one, so that slow clients never keep others out. On loopback, a request for another host name is refused,
    so that no web page can read the document through a name that it makes resolve to this machine (DNS rebinding).
    """

    allow_reuse_address = True
    request_queue_size = _MOST_CONNECTIONS
    daemon_threads = False  # closing waits for them

    def __init__(self, host: str, port: int, document: Callable[[], str]) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.document = document
        self.only_loopback = _is_loopback(host)
        self.served = 0  # documents
        self._connections: list[socket.socket] = []  # the oldest first
        self._change = threading.Condition()
        try:
            super().__init__((host, port), _Handler)
        except OSError as error:
            raise WattridgeError(
                f"cannot listen on {host}:{port}: {error.strerror or error}", "--openmetrics", "choose another port"
            ) from error
        self._thread = threading.Thread(target=self.serve_forever, args=(0.1,), name="metrics server", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Where the document is."""
        host, port = self.server_address[:2]
        shown = f"[{host!s}]" if ":" in str(host) else str(host)
        return f"http://{shown}:{port}/metrics"

    def close(self) -> None:
        """Stop, cutting off the open connections. Safe to call twice."""
        self.shutdown()
        self._thread.join()
        with self._change:
            for connection in self._connections:
                _cut_off(connection)
        self.server_close()

    def count(self) -> None:
        """Count a document that was handed out."""
        with self._change:
            self.served += 1

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._change:
            self._connections.append(request)
            while len(self._connections) > _MOST_CONNECTIONS:
                _cut_off(self._connections[0])
                self._change.wait()
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        with self._change:
            self._connections.remove(request)
            self._change.notify()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a client that went away or was cut off."""


class _Handler(BaseHTTPRequestHandler):
    server_version = f"wattridge/{__version__}"
    sys_version = ""
    timeout = _LONGEST_SILENCE_S
    server: MetricsServer

    def do_GET(self) -> None:
        if self.server.only_loopback and not _is_loopback(self._host()):
            self.send_error(HTTPStatus.FORBIDDEN, "this server answers to localhost only")
            return
        path = self.path.partition("?")[0]
        if path == "/metrics":
            self._send(CONTENT_TYPE, self.server.document())
            self.server.count()
        elif path == "/":
            self._send("text/plain; charset=utf-8", "Wattridge: the figures are at /metrics\n")
        else:
            self.send_error(HTTPStatus.NOT_FOUND, "the figures are at /metrics")

    do_HEAD = do_GET

    def _host(self) -> str:
        """The host that the request names, without its port."""
        host = self.headers.get("Host", "localhost")
        return host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]

    def _send(self, kind: str, text: str) -> None:
        data = text.encode()
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing of each scrape."""


def _cut_off(connection: socket.socket) -> None:
    """End its reads and writes; the thread that serves it closes it."""
    with suppress(OSError):  # it has ended meanwhile
        connection.shutdown(socket.SHUT_RDWR)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
