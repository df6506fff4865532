"""Lines of JSON from other machines, and the fields in them: bounded, typed, and never more than data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from ...plain_text import one_line, shortened
from ..errors import SensorError

LONGEST_LINE: Final = 1 << 18
LONGEST_TEXT: Final = 400


class Garbled(SensorError):
    """A line from the other end that is not what it should be."""


def line_of(message: Mapping[str, Any]) -> bytes:
    """A message as it is sent. Raises ValueError where it holds what JSON has no word for."""
    return json.dumps(message, separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n"


def parse_line(line: bytes, most: int = LONGEST_LINE) -> dict[str, Any]:
    """One line of at most so many bytes as an object. Raises Garbled."""
    if len(line) > most or not line.endswith(b"\n"):
        raise Garbled("a line without end")
    try:
        message = json.loads(line.decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise Garbled(f"not a line of ours: {shortened(line.decode('ascii', 'replace'))}") from None  # ours are ASCII
    if not isinstance(message, dict):
        raise Garbled("not a line of ours")
    return message


def _no_constant(name: str) -> float:
    raise ValueError(name)


def object_of(value: Any, most: int = 256) -> dict[str, Any]:
    """An object of at most so many members. Raises Garbled."""
    if not isinstance(value, dict) or len(value) > most:
        raise Garbled("a field has another type than it should")
    return value


def list_of(value: Any, most: int, *, exactly: bool = False) -> list[Any]:
    """A list of at most, or exactly, so many. Raises Garbled."""
    if not isinstance(value, list) or len(value) > most or (exactly and len(value) != most):
        raise Garbled("a list has another length than it should")
    return value


def text_of(value: Any, most: int = LONGEST_TEXT) -> str:
    """A text on one line, cut and without control characters; empty where it is none."""
    return shortened(one_line(value), most) if isinstance(value, str) else ""


def number_of(value: Any) -> float:
    """A finite number. Raises Garbled."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e300:
        raise Garbled("a value is no number")
    return float(value)


def number_or_none(value: Any) -> float | None:
    """A finite number, or null. Raises Garbled."""
    return None if value is None else number_of(value)


def whole_of(value: Any, most: int) -> int:
    """A whole number from 0 to below `most`. Raises Garbled."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < most:
        raise Garbled("a number is out of its range")
    return value
