"""`Finding`: what a check found, in one line, with the remedy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from ...base.errors import WattridgeError


class State(StrEnum):
    """How it stands with one thing."""

    OK = "ok"  # it works, or is not needed on this machine
    MISSING = "missing"  # it is not installed: what needs it does not work, all else does
    WRONG = "wrong"  # it is here and does not work


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found. `facts` are JSON-ready; `remedy` is empty where all is well."""

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
    """An error in the words in which every other command would say it: the thing is not there."""
    return missing(error.what, error.remedy)


def as_wrong(error: WattridgeError) -> Finding:
    """As `as_missing`, of something that is there."""
    return wrong(error.what, error.remedy)
