"""The `Pool` seam: boards elsewhere that are sent requests and answer them, whatever carries both."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from .boards import PoolBoard


class Failure(Enum):
    """Why a request was not answered."""

    LOST = "lost"  # its worker died with it: perhaps of it
    BROKEN = "broken"  # the way there broke, or the worker left: nothing is known of it


@dataclass(frozen=True, slots=True)
class Said:
    """A line that came back for the request of that number: one of the parts, or the answer. Not to be trusted."""

    number: int
    board: str
    line: bytes


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A request that will not be answered any more."""

    number: int
    board: str
    how: Failure
    why: str


@dataclass(frozen=True, slots=True)
class Came:
    """A board that joined the pool, also where it had left: its worker knows nothing of a session then."""

    board: PoolBoard


@dataclass(frozen=True, slots=True)
class Left:
    """A board that is gone; each request that it had is `Unanswered` besides."""

    board: str
    why: str


@dataclass(frozen=True, slots=True)
class Remark:
    """What the user should know of the pool, in one line."""

    text: str


Heard = Said | Unanswered | Came | Left | Remark


class Pool(Protocol):
    """Used by one thread. Nothing but `heard` waits."""

    def boards(self) -> tuple[PoolBoard, ...]:
        """Those that are there now."""
        ...

    def send(self, board: str, number: int, line: bytes) -> None:
        """Send a request to a board; it takes its turn there behind those that were sent before."""
        ...

    def cancel(self, number: int) -> None:
        """Nobody waits for the answer any more; what has not begun will not begin."""
        ...

    def end_until(self, session: str, number: int) -> None:
        """Requests of the session up to that number end early: what is measured at that moment is answered."""
        ...

    def heard(self, timeout_s: float) -> Heard | None:
        """The next that happened, waited for so long; None where nothing did."""
        ...

    def close(self) -> None:
        """Leave the pool. Its boards stay. Safe to call twice."""
        ...
