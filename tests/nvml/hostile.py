"""Requests that no helper may follow: malformed, out of every range, or just beside what the board takes."""

from __future__ import annotations

import json
import random
import string
from collections.abc import Callable
from typing import Any

_NUMBERS: tuple[Any, ...] = (
    -1, 0, 0.5, -0.0, 1e308, -1e308, 1e-320, 2**31, 2**32 + 1200, 2**63, 2**64, 10**300, True, False, None, "1200",
    "0x4b0", [], {}, [1200], [1200, 1200, 1200], "NaN", "../../etc/passwd", "$(reboot)", 1200.5, 1201, 344, 1981, 99999,
)  # fmt: skip
_VERBS = ("State", "set ", "get", "restore", "exec", "__init__", "", "quit\u0000", "shutdown", "write", "confirm;quit")
_TEXTS = ("../../../etc/shadow", "/dev/nvidia0", "GPU-0", "; rm -rf /", "\u202e", "\ud800", "%n%n", "A" * 900)


# kind of board -> (clocks, limits in W) just beside what it takes: an H200 345 to 1980 MHz by 15 and 200 to 700 W, an
# MI210 every whole MHz from 500 to 1700 and 100 to 300 W
_BESIDE: dict[str, tuple[tuple[int, int], tuple[float, float]]] = {
    "h200": ((344, 1201), (199.9, 700.1)),
    "mi210": ((499, 1701), (99.9, 300.1)),
}


def hostile(rng: random.Random, board: str = "h200") -> bytes:
    """One line, its end included (or missing): nothing that may be done on a board of that kind."""
    make = rng.choice(_KINDS)
    made = _setting(rng, board) if make is _setting else make(rng)
    return made if made.endswith(b"\n") else made + b"\n"


def _noise(rng: random.Random) -> bytes:
    return bytes(rng.randrange(256) for _ in range(rng.randrange(1, 200))).replace(b"\n", b" ") + b"\xff"


def _cut(rng: random.Random) -> bytes:
    line = json.dumps({"id": 1, "do": "set", "settings": {"graphics_clock_mhz": [1200, 1200]}}).encode()
    return line[: rng.randrange(1, len(line) - 1)]


def _setting(rng: random.Random, board: str = "h200") -> bytes:
    wrong_mhz, wrong_w = _BESIDE[board]
    name = rng.choice(("graphics_clock_mhz", "memory_clock_mhz", "power_limit_w"))
    if name == "graphics_clock_mhz":
        clocks = [rng.choice((1200, *wrong_mhz, -15, 2**40, True, "1200", None, 1200.0, 0)) for _ in range(2)]
        value: Any = clocks if clocks != [1200, 1200] else [1980, 345]
    elif name == "memory_clock_mhz":
        value = rng.choice((0, 1, 2200, 3202, 2**40, -3201, "3201", True, [3201], 3201.0))
    else:
        value = rng.choice((0, *wrong_w, 1e9, -300, True, "300", [300], None, 10**30))
    return _line({"id": rng.randrange(2**20), "do": "set", "settings": {name: value}})


def _verb(rng: random.Random) -> bytes:
    return _line({"id": rng.randrange(9), "do": rng.choice(_VERBS)})


def _id(rng: random.Random) -> bytes:
    bad = rng.choice((-1, 2**53, 1.0, "1", None, True, [1], {}, 10**40))
    return _line({"id": bad, "do": "set", "settings": {"graphics_clock_mhz": [1200, 1200]}})


def _extra(rng: random.Random) -> bytes:
    key = rng.choice(
        ("path", "env", "uuid", "gpu", "file", "argv", "__class__", "force", "".join(rng.sample(string.printable, 5)))
    )
    request: dict[str, Any] = {"id": 1, "do": "set", "settings": {"graphics_clock_mhz": [1200, 1200]}}
    if rng.random() < 0.5:
        request[key] = rng.choice(_TEXTS)
    else:
        request["settings"][key] = rng.choice(_NUMBERS)
    return _line(request)


def _twice(rng: random.Random) -> bytes:
    return rng.choice(
        (
            b'{"id": 1, "id": 2, "do": "set", "settings": {"power_limit_w": 300}}',
            b'{"id": 1, "do": "state", "do": "set", "settings": {"power_limit_w": 300}}',
            b'{"id": 1, "do": "set", "settings": {"power_limit_w": 300, "power_limit_w": 300}}',
            b'{"id": 1, "do": "reset", "settings": ["power_limit_w", "power_limit_w"]}',
        )
    )


def _no_number(rng: random.Random) -> bytes:
    word = rng.choice((b"NaN", b"Infinity", b"-Infinity", b"1e999", b"0x10", b"1_0", b"+300", b"03", b"--1"))
    return b'{"id": 1, "do": "set", "settings": {"power_limit_w": ' + word + b"}}"


def _deep(rng: random.Random) -> bytes:
    depth = rng.randrange(2, 450)
    return b'{"id": 1, "do": "set", "settings": ' + b"[" * depth + b"]" * depth + b"}"


def _long(rng: random.Random) -> bytes:
    padding = b" " * rng.randrange(1024, 9000)
    return b'{"id": 1, "do": "set", "settings": {"graphics_clock_mhz": [1200, 1200]}}' + padding


def _shape(rng: random.Random) -> bytes:
    return _line(rng.choice(([], [1], "set", 7, None, True, {"id": 1}, {"do": "set"}, {}, {"id": 1, "do": ["set"]})))


def _argument(rng: random.Random) -> bytes:
    wrong: tuple[dict[str, Any], ...] = (
        {"do": "reset", "to": "default"},
        {"do": "reset", "to": 1},
        {"do": "reset", "settings": []},
        {"do": "reset", "settings": "power_limit_w"},
        {"do": "reset", "settings": ["fan"]},
        {"do": "set"},
        {"do": "set", "settings": {}},
        {"do": "set", "settings": []},
        {"do": "set", "settings": {"fan_percent": 0}},
        {"do": "state", "settings": {}},
        {"do": "confirm"},  # nothing is set
        {"do": "quit", "settings": {}},
    )
    return _line({"id": 3, **rng.choice(wrong)})


def _encoding(rng: random.Random) -> bytes:
    line = json.dumps({"id": 1, "do": "set", "settings": {"power_limit_w": 300}})
    return line.encode(rng.choice(("utf-16", "utf-32", "utf-16-le"))).replace(b"\n", b" ")


def _line(document: Any) -> bytes:
    return json.dumps(document).encode()


_KINDS: tuple[Callable[[random.Random], bytes], ...] = (
    _noise, _cut, _setting, _verb, _id, _extra, _twice, _no_number, _deep, _long, _shape, _argument, _encoding,
)  # fmt: skip
