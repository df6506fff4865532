"""A small web server that hands out one document, `/metrics`, to whoever asks; on loopback unless told otherwise."""

from __future__ import annotations

import ipaddress
import socket
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from socketserver import ThreadingMixIn
from typing import Any

from app import __version__
from app.errors import InputError, WattridgeError
from app.sensors.openmetrics import CONTENT_TYPE

_MOST_AT_ONCE = 8  # requests; more are turned away
_LONGEST_S = 5.0  # that a request may take
_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


def parse_address(text: str) -> tuple[str, int]:
    """'PORT', ':PORT', 'HOST:PORT' or '[IPV6]:PORT'; loopback where no host is named. Raises InputError."""
    host, _, port = text.strip().rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not port.isascii() or not port.isdecimal() or not 0 <= int(port) <= 65535:
        raise InputError(f"'{text}' is no address", "--openmetrics", "write :PORT or HOST:PORT, as in :9400")
    return host or "127.0.0.1", int(port)


class MetricsServer:
    """Serves `document()` on a thread of its own until closed. Port 0 takes a free one: see `url`.

    Raises WattridgeError where the address cannot be had. Not more than eight requests at once, none longer than five
    seconds; on loopback a request that names another host is refused, so that no web page can read it by a name of its
    own.
    """

    def __init__(self, host: str, port: int, document: Callable[[], str]) -> None:
        try:
            self._server = _Server(host, port, document)
        except OSError as error:
            raise WattridgeError(
                f"cannot listen on {host}:{port}: {error.strerror or error}", "--openmetrics", "choose another port"
            ) from error
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), name="metrics server")
        self._thread.daemon = True
        self._thread.start()

    @property
    def url(self) -> str:
        """Where the document is."""
        host, port = self._server.server_address[:2]
        shown = f"[{host!s}]" if ":" in str(host) else str(host)
        return f"http://{shown}:{port}/metrics"

    @property
    def served(self) -> int:
        """How often the document was handed out."""
        return self._server.served

    def close(self) -> None:
        """Stop; requests that are still open are cut off. Safe to call twice."""
        self._server.shutdown()
        self._thread.join()
        self._server.cut_off(0.0)
        self._server.server_close()


class _Server(ThreadingMixIn, HTTPServer):
    daemon_threads = False  # closing waits for them; none lives long
    allow_reuse_address = True

    def __init__(self, host: str, port: int, document: Callable[[], str]) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.document = document
        self.served = 0
        self.only_loopback = _is_loopback(host)
        self._open: dict[socket.socket, float] = {}  # and when it began
        self._mutex = threading.Lock()
        super().__init__((host, port), _Handler)

    def count(self) -> None:
        with self._mutex:
            self.served += 1

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._mutex:
            room = len(self._open) < _MOST_AT_ONCE
            if room:
                self._open[request] = time.monotonic()
        if room:
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def shutdown_request(self, request: Any) -> None:
        with self._mutex:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        super().service_actions()
        self.cut_off(_LONGEST_S)

    def cut_off(self, older_than_s: float) -> None:
        """End the requests that have taken longer than that."""
        now = time.monotonic()
        with self._mutex:
            late = [request for request, begun in self._open.items() if now - begun >= older_than_s]
        for request in late:
            try:
                request.shutdown(socket.SHUT_RDWR)
            except OSError:  # it ended meanwhile
                continue

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is none of our business."""


class _Handler(BaseHTTPRequestHandler):
    server_version = f"wattridge/{__version__}"
    sys_version = ""
    timeout = _LONGEST_S
    server: _Server

    def do_GET(self) -> None:
        self._answer(body=True)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def _answer(self, *, body: bool) -> None:
        if self.server.only_loopback and not self._asks_for_this_host():
            self.send_error(HTTPStatus.FORBIDDEN, "this server answers to localhost only")
            return
        path = self.path.partition("?")[0]
        if path == "/metrics":
            self.server.count()
            self._send(CONTENT_TYPE, self.server.document(), body=body)
        elif path == "/":
            self._send("text/plain; charset=utf-8", "Wattridge: the figures are at /metrics\n", body=body)
        else:
            self.send_error(HTTPStatus.NOT_FOUND, "the figures are at /metrics")

    def _asks_for_this_host(self) -> bool:
        host = self.headers.get("Host", "localhost")
        name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
        return name.lower() in _LOOPBACK_NAMES or _is_loopback(name)

    def _send(self, kind: str, text: str, *, body: bool) -> None:
        data = text.encode()
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if body:
            self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: a scrape every few seconds is no news."""


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
