"""`Finding`: the result of a check, in one line, with the remedy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from ...base.errors import WattridgeError


class State(StrEnum):
    """Whether what a check is about works."""

    OK = "ok"  # it works, or is not needed on this machine
    MISSING = "missing"  # it is not installed: what needs it does not work, all else does
    WRONG = "wrong"  # it is here and does not work


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check. `facts` are JSON-ready; `remedy` is empty if nothing is wrong."""

    state: State
    what: str
    remedy: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


def ok(what: str, **facts: Any) -> Finding:
    """It works."""
    return Finding(State.OK, what, facts=facts)


def missing(what: str, remedy: str, **facts: Any) -> Finding:
    """It is not there."""
    return Finding(State.MISSING, what, remedy, facts)


def wrong(what: str, remedy: str, **facts: Any) -> Finding:
    """It does not work."""
    return Finding(State.WRONG, what, remedy, facts)


def as_missing(error: WattridgeError) -> Finding:
    """The finding that something is not there, in the words of the error that every other command would print."""
    return missing(error.what, error.remedy)


def as_wrong(error: WattridgeError) -> Finding:
    """The finding that something is there and does not work, in the words of the error."""
    return wrong(error.what, error.remedy)


NOT_LOOKED_AT: Final = wrong("not looked at", "look again")  # a stop came first
