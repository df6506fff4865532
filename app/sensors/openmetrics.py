"""The readings of GPUs as OpenMetrics text (version 1.0.0) for Prometheus and Grafana.

Base units, as the format requires: watts, joules, hertz, celsius, bytes, ratios. An unknown value is left out, never 0.

A small web server that hands out one document, `/metrics`; on loopback unless another address is named.
"""

from __future__ import annotations

import ipaddress
import math
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from socketserver import ThreadingMixIn
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    InfoMetricFamily,
    Metric,
    StateSetMetricFamily,
)
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST, generate_latest

from .. import __version__
from ..base.errors import InputError, WattridgeError
from .channel import POWER_SAMPLES
from .event_reasons import NAMES
from .gpu import Gpu, GpuInfo
from .trace.live_board import LiveBoard

CONTENT_TYPE = CONTENT_TYPE_LATEST

# ending of a channel's name -> (unit here, factor)
_UNITS: tuple[tuple[str, str, float], ...] = (
    ("_mb_per_s", "bytes_per_second", 1e6),
    ("_w", "watts", 1.0),
    ("_j", "joules", 1.0),
    ("_mhz", "hertz", 1e6),
    ("_mv", "volts", 1e-3),
    ("_c", "celsius", 1.0),
    ("_percent", "ratio", 1e-2),
    ("_mib", "bytes", 2.0**20),
)
_LABELS = ("gpu", "name", "source")  # of every sample
_REASONS, _COUNTER = "event_reasons", "energy_j"


_KEPT_S = 60.0
_STALE_S = 5.0  # a board without a reading for so long does not answer


@dataclass(frozen=True, slots=True)
class BoardReading:
    """One board now. Values by channel name, NaN if unknown."""

    info: GpuInfo
    values: Mapping[str, float]
    labels_of: Mapping[str, str]  # channel -> its name in words
    integrated_j: float  # of the finest power since watching began
    readings: int  # since watching began
    answers: bool
    clock_range_mhz: tuple[float, float] | None = None


class MeteredBoard(LiveBoard):
    """A board whose energy is added up for as long as it is watched; `reading` from any thread.

    `report` is called with a line for each event of the sensors.
    """

    def __init__(self, gpu: Gpu, *, interval_s: float, report: Callable[[str], None]) -> None:
        self._labels = {c.name: c.label for c in (*gpu.channels, POWER_SAMPLES)}
        self._clocks = gpu.graphics_clocks_mhz()
        self._mutex = threading.Lock()
        self._counted_ns = gpu.clock.now_ns()
        self._energy_j = 0.0
        super().__init__(
            gpu,
            interval_s=interval_s,
            span_s=_KEPT_S,
            on_event=lambda event: report(f"{gpu.info.label}: {event}"),
        )

    def reading(self) -> BoardReading:
        """The last reading; the energy since the reading before is added up."""
        self.add_up()
        last_ns = self.trace.last_ns
        values = self.trace.at(last_ns) if last_ns else {}
        silent_s = (self.gpu.clock.now_ns() - last_ns) / 1e9 / max(1.0, self.gpu.clock.speed)
        answers = silent_s < _STALE_S and any(math.isfinite(value) for value in values.values())
        return BoardReading(
            info=self.gpu.info,
            values=values if answers else {},
            labels_of=self._labels,
            integrated_j=self._energy_j,
            readings=self.trace.appended,
            answers=answers,
            clock_range_mhz=(self._clocks[0], self._clocks[-1]) if self._clocks else None,
        )

    def add_up(self) -> None:
        """Integrate the power up to its newest value; often enough that the trace still holds it.

        The driver's samples come late, so that the newest reading is newer than what is known of the power.
        """
        with self._mutex:
            last_ns = self.trace.last_ns
            if self.trace.power_name == POWER_SAMPLES.name:
                times_ns, _ = self.trace.power_samples(self._counted_ns, last_ns)
                last_ns = int(times_ns[-1]) if len(times_ns) else self._counted_ns
            if last_ns > self._counted_ns:
                energy_j = self.trace.energy_j(self._counted_ns, last_ns)
                self._energy_j += 0.0 if math.isnan(energy_j) else energy_j
                self._counted_ns = last_ns


def exposition(boards: Sequence[BoardReading]) -> str:
    """The whole document; each family once, the boards within it."""
    registry = CollectorRegistry()
    registry.register(_Boards(boards))
    text: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]
    return text.decode()


@dataclass(frozen=True, eq=False)
class _Boards:
    """Collects the families of some boards. A family without a sample is left out."""

    boards: Sequence[BoardReading]

    def collect(self) -> Iterator[Metric]:
        about = InfoMetricFamily("wattridge_gpu", "A board and where its figures come from", labels=_LABELS)
        why = StateSetMetricFamily("wattridge_clock_event_reason", "Why the clock is what it is", labels=_LABELS)
        families: dict[str, GaugeMetricFamily | CounterMetricFamily] = {}
        for board in self.boards:
            info = board.info
            labels = (str(info.index), info.name, info.source)
            about.add_metric(labels, {"uuid": info.uuid, "driver": info.driver, "version": __version__})
            for kind, name, text, value in _samples(board):
                if math.isfinite(value):
                    unit = next((unit for _, unit, _ in _UNITS if name.endswith(f"_{unit}")), "")
                    family = families.setdefault(name, kind(name, text, labels=_LABELS, unit=unit))
                    family.add_metric(labels, value)
            reasons = board.values.get(_REASONS, math.nan)
            if math.isfinite(reasons):
                why.add_metric(labels, {label: bool(int(reasons) & bit) for bit, label in NAMES.items()})
        yield from (family for family in (about, *families.values(), why) if family.samples)


def _samples(board: BoardReading) -> Iterator[tuple[type[GaugeMetricFamily | CounterMetricFamily], str, str, float]]:
    """Kind, name, help and value of what is one number; NaN if unknown."""
    gauge, counter = GaugeMetricFamily, CounterMetricFamily
    yield gauge, "wattridge_up", "1 while the board answers", float(board.answers)
    text = "Readings and power samples taken since watching began"
    yield counter, "wattridge_readings", text, float(board.readings)
    for channel, value in board.values.items():
        if channel not in (_REASONS, _COUNTER):
            name, factor = _name(channel)
            yield gauge, name, board.labels_of.get(channel, channel), value * factor
    counted_j = board.values.get(_COUNTER, math.nan)
    yield counter, "wattridge_energy_joules", "Energy drawn as the board counts it", counted_j
    text = "Integral of the finest power since watching began"
    yield counter, "wattridge_integrated_energy_joules", text, board.integrated_j
    limit = board.info.power_limit
    for bound, limit_w in (("minimum", limit.minimum_w), ("maximum", limit.maximum_w), ("default", limit.default_w)):
        limit_w = math.nan if limit_w is None else limit_w
        yield gauge, f"wattridge_power_limit_{bound}_watts", f"Power limit, {bound}", limit_w
    for bound, clock_mhz in zip(("minimum", "maximum"), board.clock_range_mhz or (), strict=False):
        text = f"Supported graphics clock, {bound}"
        yield gauge, f"wattridge_graphics_clock_{bound}_hertz", text, clock_mhz * 1e6


def _name(channel: str) -> tuple[str, float]:
    """The family of a channel and the factor into its base unit."""
    for ending, unit, factor in _UNITS:
        if channel.endswith(ending):
            return f"wattridge_{channel.removesuffix(ending)}_{unit}", factor
    return f"wattridge_{channel}", 1.0


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
