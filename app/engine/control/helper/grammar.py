"""The requests to the helper: five verbs, one JSON object a line, each field within bounds, and nothing else.

    {"id": 1, "do": "state"}
    {"id": 2, "do": "set", "settings": {"graphics_clock_mhz": [900, 1200], "memory_clock_mhz": 2619}}
    {"id": 3, "do": "reset", "to": "start", "settings": ["graphics_clock_mhz"]}
    {"id": 4, "do": "confirm"}
    {"id": 5, "do": "quit"}

The other settings are "power_limit_w", and "workload_power_profile": the number of one, -1 for none. `reset` goes back
to what was in force when the helper began ("start", the default), to what was there before anything was ever confirmed
("prior"), or, where the board's record cannot be read, to no locks, no profile and the default limit ("defaults"). No
request holds a path or a command.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Any, NoReturn

MOST_BYTES = 1024  # of a line
SETTINGS = ("workload_power_profile", "power_limit_w", "memory_clock_mhz", "graphics_clock_mhz")  # as applied
_FIELDS = {
    "state": set(),
    "set": {"settings"},
    "reset": {"settings", "to"},
    "confirm": set(),
    "quit": set(),
}  # type: dict[str, set[str]]
_MOST_ID = 2**53 - 1
_MOST_MHZ = 20_000
_MOST_W = 10_000
NO_PROFILE, _MOST_PROFILE = -1, 254


class Refused(Exception):
    """The line is not a request. `number` is its id where one could be read."""

    def __init__(self, what: str, number: int | None = None) -> None:
        super().__init__(what)
        self.number = number


class Failed(Exception):
    """A request was not carried out.

    `kind`: refused, policy, not_supported, no_permission, lost, driver, busy, record or unreadable.
    """

    def __init__(self, kind: str, what: str) -> None:
        super().__init__(what)
        self.kind = kind

    def document(self) -> dict[str, str]:
        """The error as replies hold it."""
        return {"kind": self.kind, "what": str(self)}


@dataclass(frozen=True)
class Request:
    """A line that is in the grammar."""

    number: int
    verb: str
    settings: dict[str, Any] = field(default_factory=dict)  # of `set`: name -> value, a clock range as (low, high)
    names: tuple[str, ...] = ()  # of `reset`: these only; none stands for all
    to: str = "start"


def parse(line: bytes) -> Request:
    """The request of one line, without its end. Raises Refused."""
    if len(line) > MOST_BYTES:
        raise Refused(f"longer than {MOST_BYTES} bytes")
    try:
        given = json.loads(line.decode("utf-8"), object_pairs_hook=_once, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise Refused("not a line of JSON") from None
    if not isinstance(given, dict):
        raise Refused("not a JSON object")
    number = given.pop("id", None)
    if not _whole(number) or not 0 <= number <= _MOST_ID:
        raise Refused("no id")
    verb = given.pop("do", None)
    if not isinstance(verb, str) or verb not in _FIELDS:
        raise Refused("not one of the five verbs", number)
    if not set(given) <= _FIELDS[verb]:
        raise Refused(f"a field that {verb} does not have", number)
    try:
        if verb == "set":
            return Request(number, verb, settings=_settings(given.get("settings")))
        if verb == "reset":
            names = _names(given["settings"]) if "settings" in given else ()
            return Request(number, verb, names=names, to=_target(given.get("to", "start")))
    except Refused as refused:
        raise Refused(str(refused), number) from None
    return Request(number, verb)


def line_of(request: dict[str, Any]) -> bytes:
    """A request as a line. It is parsed again first: what is not in the grammar is not even sent. Raises Refused."""
    try:
        line = json.dumps(request, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise Refused(str(error)) from None
    parse(line)
    return line + b"\n"


def _settings(given: Any) -> dict[str, Any]:
    if not isinstance(given, dict) or not given:
        raise Refused("settings are missing")
    accepted = {}
    for name, value in given.items():
        if name == "graphics_clock_mhz":
            if not isinstance(value, list) or len(value) != 2 or not all(_clock(end) for end in value):
                raise Refused(f"{name} is not [low, high] in MHz")
            if value[0] > value[1]:
                raise Refused(f"{name}: low is above high")
            accepted[name] = (value[0], value[1])
        elif name == "memory_clock_mhz":
            if not _clock(value):
                raise Refused(f"{name} is not a number of MHz")
            accepted[name] = value
        elif name == "workload_power_profile":
            if not _whole(value) or not NO_PROFILE <= value <= _MOST_PROFILE:
                raise Refused(f"{name} is no number of a profile")
            accepted[name] = value
        elif name == "power_limit_w":
            if not _number(value) or not 1 <= value <= _MOST_W:
                raise Refused(f"{name} is not a number of W")
            accepted[name] = value
        else:
            raise Refused("there is no such setting")
    return accepted


def _names(given: Any) -> tuple[str, ...]:
    if (
        not isinstance(given, list)
        or not given
        or not all(isinstance(name, str) and name in SETTINGS for name in given)
    ):
        raise Refused("settings are not names of settings")
    if len(set(given)) != len(given):
        raise Refused("a setting is named twice")
    return tuple(given)


def _target(given: Any) -> str:
    if given not in ("start", "prior", "defaults") or not isinstance(given, str):
        raise Refused("reset goes to start, prior or defaults")
    return given


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _clock(value: Any) -> bool:
    return _whole(value) and 1 <= value <= _MOST_MHZ


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    accepted = dict(pairs)
    if len(accepted) != len(pairs):
        raise ValueError("a key stands twice")
    return accepted


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")
