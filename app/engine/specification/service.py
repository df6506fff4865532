"""The section `[service]`: a server to start or attach to, and its client. Read and checked, not started, here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from ...base.errors import InputError
from ..results.service_figures import OF_EVERY_CLIENT, SERVICE_FIGURES
from ..space.expression import parse
from .toml_section import MOST_PATTERN, PLACE, Section, as_name, check_places, groups_of

APIS: Final[Mapping[str, str]] = {"completions": "/v1/completions", "chat": "/v1/chat/completions", "http": "/"}
FREE_PORT: Final = "free_port"  # in braces: a port of this machine that is free when the service is started
MOST_TOKENS: Final = 1_000_000
_STEP: Final = r"\[\d{1,9}\]|\[\"[^\"]{1,200}\"\]"
_JSON_PATH: Final = re.compile(rf"\$?(?:\.?\w[\w-]*|{_STEP})(?:\.\w[\w-]*|{_STEP})*")


@dataclass(frozen=True, slots=True)
class ClientSpec:
    """The client of the service: the load generator, at a rate or a concurrency, or a program that prints figures."""

    rate: str = ""  # requests per second, an expression: open loop, Poisson arrivals
    concurrency: str = ""  # requests under way, an expression: closed loop
    ramp_s: float = 0.0  # over which the clients of a closed loop begin, one after another
    api: str = "completions"  # one of APIS
    endpoint: str = ""  # the path of the URL; empty: the usual one of `api`
    model: str = ""  # as the server calls it; empty: not named
    prompt_tokens: tuple[int, int] = (512, 512)  # words of a prompt, from least to most
    output_tokens: tuple[int, int] = (128, 128)
    prompts: Path | None = None  # one a line: text, or a JSON object with `prompt` and `output_tokens`; absolute
    stream: bool = True
    extra: Mapping[str, object] = field(default_factory=dict)  # further fields of each request, as `ignore_eos`
    key_from: str = ""  # the environment variable that holds the key of the service
    seed: int = 1
    timeout_s: float = 120.0  # of one request; of one run of `run`
    run: str = ""  # a program instead; `{name}` stands for a parameter
    values: Mapping[str, str] = field(default_factory=dict)  # by regular expressions on its output
    json: Mapping[str, str] = field(default_factory=dict)  # by paths into its output, or its last line, as JSON


@dataclass(frozen=True, slots=True)
class ServiceSpec:
    """A server: how it is started and ended, when it is ready, on which boards it runs, how long it is looked at."""

    client: ClientSpec
    start: str = ""  # a command; a parameter in it is a server argument, a change of which starts it again
    attach: str = ""  # the URL of one that runs already, and is left running
    url: str = ""  # where one that was started answers
    ready: str = ""  # a URL that answers, or a regular expression on its output; empty: its URL answers
    ready_s: float = 300.0  # the time limit of that
    stop: str = ""  # a command that ends it; it is asked to end, and killed, where that does not
    stop_s: float = 10.0  # from asking it to end to killing it
    boards: tuple[str, ...] = ()  # that it runs on beside the session's, as `--gpu` names them; their power adds up
    least_s: float = 10.0  # of a window
    most_s: float = 120.0  # of a window, with the time until the load is steady
    precision: float = 0.02  # half-width of the 95 % intervals of throughput and power at which a window closes
    repeats: int = 1  # windows per configuration

    @property
    def figures(self) -> tuple[str, ...]:
        """What it reports by itself."""
        client = self.client
        if not client.run:
            return tuple(SERVICE_FIGURES)
        return tuple(dict.fromkeys((*client.values, *client.json, *OF_EVERY_CLIENT)))

    def arguments(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Those of these parameters that are arguments of the server: a change of one starts it again."""
        used = set(PLACE.findall(f"{self.start} {self.url} {self.ready} {self.stop}"))
        return tuple(name for name in names if name in used)


def read_service(section: Section, folder: Path, scope: tuple[str, ...], repeats: int) -> ServiceSpec:
    """The service that a section describes; `scope` are the names that its commands and expressions may use.

    Raises InputError.
    """
    client = _client(section.table("client", _keys(ClientSpec)), folder, scope)
    start, attach = section.text("start", ""), section.text("attach", "")
    if bool(start) == bool(attach):
        raise InputError("the service is not clear", section.where, "give either start = COMMAND or attach = URL")
    for key in ("start", "url", "ready", "stop"):
        check_places(section.text(key, ""), section.place(key), (*scope, FREE_PORT))
    url = section.text("url", "")
    if attach:
        unfit = next((key for key in ("url", "stop", "stop_s") if key in section), None)
        if unfit is not None:
            raise InputError(f"'{unfit}' is for a service that is started", section.place(unfit), "leave it out")
        check_url(attach, section.place("attach"))
    elif not client.run and not url:
        raise section.wrong("url", "where the service answers, as http://127.0.0.1:8000,")
    if url:
        check_url(url, section.place("url"))
    ready = section.text("ready", "")
    if not is_url(ready):
        _check_pattern(ready, section, "ready", (0, 1))
        if attach and ready:
            raise section.wrong("ready", "a URL")
        if start and not ready and not url:
            raise section.wrong("ready", "a URL that answers, or a regular expression on its output,")
    least_s = section.number("least_s", 10.0, least=0.2) or 10.0
    most_s = section.number("most_s", max(120.0, least_s), least=0.2) or 120.0
    if most_s < least_s:
        raise section.wrong("most_s", f"a number of at least least_s, {least_s:g},")
    precision = section.number("precision", 0.02, least=1e-4) or 0.02
    return ServiceSpec(
        client=client,
        start=start,
        attach=attach.rstrip("/"),
        url=url,
        ready=ready,
        ready_s=section.number("ready_s", 300.0, least=0.1) or 300.0,
        stop=section.text("stop", ""),
        stop_s=section.number("stop_s", 10.0, least=0.1) or 10.0,
        boards=section.texts("boards", numbers=True),
        least_s=least_s,
        most_s=most_s,
        precision=precision,
        repeats=repeats,
    )


def is_url(text: str) -> bool:
    """Whether a text is meant as a URL, rather than as a regular expression."""
    return text.startswith(("http://", "https://"))


def check_url(url: str, where: str) -> None:
    """Raises InputError for what is no URL of HTTP; a port may be a name in braces."""
    plain = PLACE.sub("1", url)
    try:
        parts = urlsplit(plain)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        sound = False
    if not sound or any(letter.isspace() for letter in plain):
        raise InputError(f"'{url[:80]}' is not a URL", where, "as http://127.0.0.1:8000")


def _check_load(section: Section, run: str, scope: tuple[str, ...]) -> None:
    """Raises InputError if a client is neither a program nor one kind of load."""
    loads = [key for key in ("rate", "concurrency") if key in section]
    if run and (loads or "prompts" in section):
        raise InputError("both a program and a load", section.where, "keep run, or rate or concurrency")
    if not run and len(loads) != 1:
        raise InputError("the load is not clear", section.where, "give either rate or concurrency, or run = COMMAND")
    if "ramp_s" in section and "concurrency" not in section:
        raise InputError("'ramp_s' is for clients of a closed loop", section.place("ramp_s"), "leave it out")
    check_places(run, section.place("run"), (*scope, FREE_PORT))
    for key in loads:
        parse(_expression(section, key), section.place(key)).check_names(scope)


def _printed_figures(section: Section, run: str) -> tuple[Section, Section]:
    """The figures read from a program's output, by patterns and by paths in JSON. Raises InputError."""
    values, paths = section.table("values"), section.table("json")
    for name in values:
        _check_pattern(values.text(name), values, name, (1,))
    for name in paths:
        if len(paths.text(name)) > MOST_PATTERN or not _JSON_PATH.fullmatch(paths.text(name)):
            raise paths.wrong(name, 'a path such as summary.ttft[0]["p95 ms"]')
    if not run and (list(values) or list(paths)):
        raise InputError("figures are read from a program's output", section.where, "add run = COMMAND")
    return values, paths


def _client(section: Section, folder: Path, scope: tuple[str, ...]) -> ClientSpec:
    run = section.text("run", "")
    _check_load(section, run, scope)
    api = section.text("api", "completions")
    if api not in APIS:
        raise section.wrong("api", f"one of {', '.join(APIS)}")
    endpoint = section.text("endpoint", "")
    if endpoint and (not endpoint.startswith("/") or any(letter.isspace() for letter in endpoint)):
        raise section.wrong("endpoint", "a path such as /v1/completions")
    values, paths = _printed_figures(section, run)
    prompts = section.text("prompts", "")
    extra = section.raw("extra") or {}
    if not isinstance(extra, dict):
        raise section.wrong("extra", "a table")
    return ClientSpec(
        rate=_expression(section, "rate") if "rate" in section else "",
        concurrency=_expression(section, "concurrency") if "concurrency" in section else "",
        ramp_s=section.number("ramp_s", 0.0, least=0.0) or 0.0,
        api=api,
        endpoint=endpoint,
        model=section.text("model", ""),
        prompt_tokens=_tokens(section, "prompt_tokens", 512),
        output_tokens=_tokens(section, "output_tokens", 128),
        prompts=(folder / prompts).resolve() if prompts else None,
        stream=section.flag("stream", True),
        extra=extra,
        key_from=section.text("key_from", ""),
        seed=section.integer("seed", 1, least=0) or 0,
        timeout_s=section.number("timeout_s", 600.0 if run else 120.0, least=0.1) or 120.0,
        run=run,
        values={as_name(name, values): values.text(name) for name in values},
        json={as_name(name, paths): paths.text(name) for name in paths},
    )


def _expression(section: Section, key: str) -> str:
    """A number or an expression, as text."""
    texts = section.texts(key, numbers=True)
    if len(texts) != 1:
        raise section.wrong(key, "a number, or an expression of parameters and constants")
    return texts[0]


def _tokens(section: Section, key: str, default: int) -> tuple[int, int]:
    """A number of tokens, or the least and the most."""
    given = section.items(key) if key in section else [default]
    whole = all(isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_TOKENS for value in given)
    if not whole or len(given) not in (1, 2) or given[0] > given[-1]:
        raise section.wrong(key, f"a number of tokens from 1 to {MOST_TOKENS}, or the least and the most,")
    return given[0], given[-1]


def _check_pattern(pattern: str, section: Section, key: str, groups: tuple[int, ...]) -> None:
    if groups_of(pattern) not in groups:
        wanted = "one group" if groups == (1,) else "one group at most"
        raise section.wrong(key, f"a regular expression with {wanted}, of at most {MOST_PATTERN} characters,")


def _keys(kind: type[ClientSpec]) -> tuple[str, ...]:
    return tuple(member.name for member in fields(kind))
