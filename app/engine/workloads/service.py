"""A service as a workload: started or attached to, waited for, put under load, and ended.

Nothing is started before `start`. `GeneratedLoad` runs the load generator and returns its reports as `Served`.
"""

from __future__ import annotations

import http.client
import json
import math
import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from importlib.util import find_spec
from typing import Any, Final
from urllib.parse import urlsplit

import numpy as np

from ...base.errors import InputError
from ...base.installation import how_to_add
from ...base.processes import original_environment
from ...base.text import json_or_none
from ...sensors.service import Requests, Served, ServiceLoad
from ..children.python import python_command, python_environment
from ..results.measurement import Configuration, State, Value
from ..results.process import changed_environment
from ..space.expression import parse
from ..specification.model import Specification
from ..specification.service import APIS, FREE_PORT, ClientSpec, ServiceSpec, is_url
from ..specification.toml_section import groups_of
from .command import (
    CommandFailed,
    CommandLine,
    TooSlow,
    figures_in,
    fill_places,
    last_matches,
    no_figure,
    run_command,
    with_last_words,
    with_output,
)
from .subprocesses import BackgroundProgram, Ended, run_process

_MODULE: Final = f"{__package__}.load_generator"


def require_generator() -> None:
    """Raises InputError if what the load generator needs is not installed."""
    if find_spec("aiohttp") is None:
        raise InputError("the load generator needs aiohttp", "service.client", how_to_add("service"))


class GeneratedLoad:
    """A load generator at work, from its start to `end`. Starting it takes a moment, before the first request."""

    def __init__(self, client: ClientSpec, url: str, load: ServiceLoad) -> None:
        self._lock = threading.Lock()
        self._rest = b""
        self._reports: list[Mapping[str, Any]] = []
        self._broken = ""
        self._tokens = self._pieces = 0.0  # of answers that ended: tokens for each piece of a stream
        job = {
            "url": url.rstrip("/") + (client.endpoint or APIS[client.api]),
            "api": client.api,
            "model": client.model,
            "rate_per_s": None if math.isnan(load.rate_per_s) else load.rate_per_s,
            "concurrency": load.concurrency,
            "ramp_s": load.ramp_s,
            "prompt_tokens": client.prompt_tokens,
            "output_tokens": client.output_tokens,
            "prompts": str(client.prompts) if client.prompts is not None else None,
            "stream": client.stream,
            "extra": dict(client.extra),
            "key_from": client.key_from,
            "seed": client.seed,
            "timeout_s": client.timeout_s,
        }
        self._program = BackgroundProgram(
            python_command(_MODULE, json.dumps(job)), environment=python_environment(), on_output=self._hear
        )

    def take(self) -> Served | None:
        """What became of requests since the last call; None if nothing was reported since."""
        with self._lock:
            reports, self._reports, broken = self._reports, [], self._broken
        ended = self._program.ended
        if ended is not None and not broken:
            last = (ended.errors.strip() or ended.output.strip()).splitlines()
            broken = f"the load generator ended: {last[-1][:300] if last else ended.how}"
        if not reports:
            return Served(0, 0, Requests.none(), problem=broken) if broken else None
        rows = np.array([row for report in reports for row in report["rows"]], dtype=np.float64).reshape(-1, 8)
        stamps = np.array([row[:4] for report in reports for row in report["rows"]], dtype=np.int64).reshape(-1, 4)
        made = np.where(rows[:, 5] < 0, np.nan, rows[:, 5])
        streamed = np.isfinite(made) & (rows[:, 6] > 0)
        self._tokens += float(made[streamed].sum())
        self._pieces += float(rows[streamed, 6].sum())
        pieces = [report["chunks"] for report in reports]
        streamed_all = all(piece is not None for piece in pieces)
        counted = self._tokens > 0 and self._pieces > 0  # once the first answer has ended
        for_each = self._tokens / self._pieces if counted else 1.0
        faults: Counter[str] = Counter()
        for report in reports:
            faults.update(report["faults"])
        due, sent, first, last_token = stamps.T
        return Served(
            start_ns=reports[0]["from"],
            end_ns=reports[-1]["to"],
            requests=Requests(due, sent, first, last_token, rows[:, 4], made, rows[:, 7] > 0),
            idle_s=sum(report["idle"] for report in reports) / 1e9,
            output_tokens=sum(pieces) * for_each if streamed_all else math.nan,
            tokens_per_piece=for_each,
            problem=broken,
            faults=faults,
        )

    def end(self) -> None:
        """End it; requests under way are dropped. Safe to call twice."""
        self._program.end()

    # --- on the program's threads -------------------------------------------------------------------------------------

    def _hear(self, stream: int, chunk: bytes) -> None:
        if stream != 1:
            return
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        with self._lock:
            for line in lines:
                try:
                    self._reports.append(json.loads(line))
                except ValueError:
                    self._broken = "the load generator's report makes no sense"


_ASK_S: Final = 2.0  # for one answer to the question whether it is ready
_LOOK_S: Final = 0.1  # between two of them
_STOP_COMMAND_S: Final = 30.0
_STEP: Final = re.compile(r'(\w[\w-]*)|\[(\d+)\]|\["([^"]*)"\]')


class Service:
    """The service of a specification: its commands and its client's load, for a configuration."""

    def __init__(self, spec: Specification, *, modelled: bool = False) -> None:
        """`modelled`: a board answers by its model, and no program is run.

        Raises InputError if a command makes no sense, or a program or a package is not there.
        """
        if spec.service is None:
            raise InputError("there is no [service]", str(spec.path), "add one with start = 'PROGRAM' or attach = URL")
        self.spec: ServiceSpec = spec.service
        self._constants = dict(spec.constants)
        self._where = f"{spec.path}: service"
        self._folder = spec.path.resolve().parent
        client = self.spec.client
        self._start, self._stop, self._run = (
            CommandLine(text, self._folder, f"{self._where}.{key}") if text and not modelled else None
            for key, text in (("start", self.spec.start), ("stop", self.spec.stop), ("client.run", client.run))
        )
        self._environment = spec.environment
        named = self.spec.arguments(tuple(spec.parameters) + tuple(spec.device_settings))
        self.argument_names = tuple(dict.fromkeys((*named, *spec.environment)))
        if modelled and client.run:
            what, remedy = "a program cannot ask a simulated service", "give rate or concurrency instead of run"
            raise InputError(what, f"{self._where}.client", remedy)
        if spec.environment and (modelled or self.spec.attach):
            what = "nothing is started, so that there is no environment to change"
            raise InputError(what, f"{spec.path}: environment", "leave it out, or give start = COMMAND and a real GPU")
        if modelled:
            return
        if not client.run:
            require_generator()
        if client.prompts is not None and not client.prompts.is_file():
            raise InputError("there is no such file of prompts", str(client.prompts), "name one with a prompt a line")

    def arguments(self, configuration: Configuration) -> dict[str, Value]:
        """The arguments of the server among a configuration."""
        return {name: configuration[name] for name in self.argument_names if name in configuration}

    def load(self, configuration: Configuration) -> ServiceLoad:
        """The load that its clients generate. Raises CommandFailed if that is no rate or number."""
        client, scope = self.spec.client, {**self._constants, **configuration}
        key, text = ("rate", client.rate) if client.rate else ("concurrency", client.concurrency)
        number = parse(text, f"{self._where}.client.{key}").number(scope)
        sound = 1e-6 <= number <= 1e6 if key == "rate" else 1 <= number <= 1e5 and number == round(number)
        if not sound:
            raise CommandFailed(State.CONSTRAINTS, f"a {key} of {number:g} cannot be asked for")
        lengths = [sum(ends) / 2 for ends in (client.prompt_tokens, client.output_tokens)]
        if key == "rate":
            return ServiceLoad(rate_per_s=number, input_tokens=lengths[0], output_tokens=lengths[1])
        return ServiceLoad(math.nan, int(number), lengths[0], lengths[1], client.ramp_s)

    def start(self, configuration: Configuration, stop: threading.Event) -> RunningService | None:
        """Start it, or find the one to attach to, and wait until it is ready; None where `stop` was set meanwhile.

        Raises CommandFailed, and nothing of it is left running then.
        """
        scope = {**self._constants, **configuration}
        if FREE_PORT in f"{self.spec.start}{self.spec.url}{self.spec.ready}":
            scope[FREE_PORT] = _free_port()
        url, ready = fill_places([self.spec.attach or self.spec.url, self.spec.ready], scope)
        program: BackgroundProgram | None = None
        begun = time.monotonic()
        if self._start is not None:
            environment = changed_environment(self._environment, configuration, original_environment())
            program = BackgroundProgram(
                self._start.words(scope), folder=self._folder, environment=environment, ask_s=self.spec.stop_s
            )
        running = RunningService(url, program, lambda: self._ask_to_end(scope))
        try:
            stopped = not self._wait_until_ready(running, ready, stop)
        except BaseException:
            running.end()
            raise
        if stopped:
            running.end()
            return None
        running.start_s = time.monotonic() - begun if program is not None else math.nan
        return running

    def run_client(
        self, configuration: Configuration, running: RunningService, stop: threading.Event, now_ns: Callable[[], int]
    ) -> tuple[Ended, dict[str, float]] | None:
        """Run the program that is its client, and read its figures; None where `stop` was set. Raises CommandFailed."""
        assert self._run is not None
        client = self.spec.client
        port = urlsplit(running.url).port if running.url else None
        scope = {**self._constants, **({FREE_PORT: port} if port else {}), **configuration}
        words = self._run.words(scope)
        ended = run_command(words, self._folder, client.timeout_s, stop=stop, now_ns=now_ns, role="the client")
        if ended.stopped:
            return None
        values = figures_in(client.values, ended, stop)
        return None if values is None else (ended, {**values, **_picked(client.json, ended)})

    # --- inside -----------------------------------------------------------------------------------------------------

    def _wait_until_ready(self, running: RunningService, ready: str, stop: threading.Event) -> bool:
        """Whether it is, by the time limit; False where `stop` was set. Raises CommandFailed."""
        deadline = time.monotonic() + self.spec.ready_s
        answers = is_url(ready) or not ready
        why, heard = "", ""
        while not stop.is_set():
            if how := running.why_ended:
                raise CommandFailed(State.RUNTIME, f"the server ended before it was ready: {how}")
            if answers:
                why = why_not_ready(ready or running.url, anything=not ready)
                if not why:
                    return True
            elif running.heard != heard:
                heard = running.heard
                if _matches(ready, heard, stop):
                    return True
                why = f"nothing that it printed matches {ready}"
            if time.monotonic() > deadline:
                what = f"the server was not ready after {self.spec.ready_s:g} s" + (f": {why}" if why else "")
                raise CommandFailed(State.TIMEOUT, with_output(what, running.heard))
            stop.wait(_LOOK_S)
        return False

    def _ask_to_end(self, scope: Mapping[str, Value]) -> None:
        """Run the command that ends it."""
        if self._stop is not None:
            with suppress(OSError, ValueError):
                run_process(self._stop.words(scope), folder=self._folder, timeout_s=_STOP_COMMAND_S)


class RunningService:
    """One that was started, or attached to."""

    def __init__(self, url: str, program: BackgroundProgram | None, ask_to_end: Callable[[], None]) -> None:
        self.url = url
        self.program = program  # None: it is not ours
        self.start_s = math.nan  # until it was ready
        self._ask_to_end = ask_to_end

    @property
    def heard(self) -> str:
        """What it has printed lately."""
        return "" if self.program is None else self.program.heard

    @property
    def why_ended(self) -> str:
        """How it ended by itself, with its last words; empty while it runs."""
        if self.program is None:
            return ""
        try:
            ended = self.program.ended
        except (OSError, ValueError) as error:
            return f"it does not start: {getattr(error, 'strerror', None) or error}"
        return "" if ended is None else with_last_words(ended.how, ended)

    def end(self) -> None:
        """End the server and its children, if it was started here. Safe to call twice."""
        if self.program is not None:
            if not self.why_ended:
                self._ask_to_end()
            self.program.end()


def why_not_ready(url: str, *, anything: bool = False) -> str:
    """Why a URL does not answer with success (`anything`: with whatever); empty if it does."""
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    answers: list[str] = []
    connections: list[http.client.HTTPConnection] = []

    def ask() -> None:
        try:
            with closing(kind(parts.hostname or "", parts.port, timeout=_ASK_S)) as connection:
                connections.append(connection)
                connection.request("GET", path)
                status = connection.getresponse().status
                well = anything or 200 <= status < 300
                answers.append("" if well else f"{url} answers with HTTP status {status}")
        except TimeoutError:
            pass
        except (OSError, http.client.HTTPException, ValueError) as error:
            answers.append(f"{url}: {getattr(error, 'strerror', None) or type(error).__name__}")

    asking = threading.Thread(target=ask, name="is it ready", daemon=True)
    asking.start()
    asking.join(_ASK_S)  # the connection's own limit is for each of its bytes, not for the whole answer
    why = answers[0] if answers else f"{url} does not answer"
    with suppress(OSError, AttributeError, IndexError):
        connections[0].sock.shutdown(socket.SHUT_RDWR)  # which ends the thread too
    return why


def _matches(pattern: str, text: str, stop: threading.Event) -> bool:
    grouped = pattern if groups_of(pattern) == 1 else f"({pattern})"
    try:
        matches = last_matches({"ready": grouped}, text, stop=stop)
    except TooSlow as error:
        raise CommandFailed(State.TIMEOUT, f"{error} (avoid nested repetitions such as '(a+)+')") from None
    except OSError as error:
        raise CommandFailed(State.RUNTIME, f"its output cannot be searched: {error.strerror or error}") from None
    return matches is not None and matches["ready"] is not None


def _picked(paths: Mapping[str, str], ended: Ended) -> dict[str, float]:
    """The figures at these paths of its output, or of the last line of it, as JSON. Raises CommandFailed."""
    if not paths:
        return {}
    texts = (ended.output, *reversed(ended.output.strip().splitlines()[-20:]))
    document = next((read for read in map(json_or_none, texts) if isinstance(read, dict | list)), None)
    if document is None:
        raise CommandFailed(State.CORRECTNESS, with_last_words("the client's output holds no JSON", ended))
    return {name: _number(name, at_path(document, path), path, ended) for name, path in paths.items()}


def at_path(document: Any, path: str) -> Any:
    """What a path such as `summary.ttft[0]["p95 ms"]` leads to; None if it leads nowhere."""
    for step in _STEP.finditer(path.removeprefix("$")):
        name, index, quoted = step.groups()
        key: Any = int(index) if index is not None else quoted if quoted is not None else name
        try:
            document = document[key]
        except (LookupError, TypeError):
            return None
    return document


def _number(name: str, value: Any, where: str, ended: Ended) -> float:
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise no_figure(name, value, where, ended)
    return number


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
