"""`PoolStatus`: what each board of a pool does for a session and has done, at one moment; and how that is reported."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from ....numbers import finite_or_none

STATUS: Final = "pool_status"  # in a session's origin: what its boards had done by its end
_MOST_BOARDS: Final = 1 << 16


class Doing(StrEnum):
    """What a board does for the session."""

    PREPARING = "getting ready"
    WAITING = "waiting"  # it is ready, and has nothing to measure
    MEASURING = "measuring"
    BUSY = "busy with another session"
    LEFT = "left"
    REFUSED = "takes no part"


@dataclass(frozen=True, slots=True)
class BoardStatus:
    """One board of a session, since the session began or was resumed."""

    key: str
    label: str
    host: str
    doing: Doing
    reason: str = ""  # why it left, or takes no part
    row: int | None = None  # of the space: what it measures
    next_rows: int = 0  # how many it has after that one
    measured: int = 0  # rows whose result it reported, timed ones among them
    failed: int = 0  # of them
    lost: int = 0  # how often its worker died, or could not be reached any more
    worked_s: float = 0.0  # with rows to measure
    there_s: float = 0.0  # as part of the pool
    opening_s: float = 0.0  # of that, until it could measure rows of the session
    preparing_s: float = 0.0  # of `worked_s`, before its first row: a look at its sensor, arguments, first images
    first_s: float | None = None  # from joining until its first result

    @property
    def there(self) -> bool:
        """Whether it takes part, now or as soon as it is ready or free."""
        return self.doing not in (Doing.LEFT, Doing.REFUSED)

    @property
    def share(self) -> float:
        """Of the time that it was there, the part in which it worked, 0 to 1; NaN where it was not."""
        return min(1.0, self.worked_s / self.there_s) if self.there_s > 0 else math.nan

    @property
    def waited_s(self) -> float:
        """How long it was ready and had nothing to measure."""
        return max(0.0, self.there_s - self.opening_s - self.worked_s)


@dataclass(frozen=True, slots=True)
class PoolStatus:
    """All boards that were seen in a session, in the order in which they joined."""

    boards: tuple[BoardStatus, ...] = ()

    @property
    def there(self) -> int:
        """How many take part."""
        return sum(board.there for board in self.boards)

    @property
    def working(self) -> int:
        """How many measure now."""
        return sum(board.doing is Doing.MEASURING for board in self.boards)

    @property
    def measured(self) -> int:
        return sum(board.measured for board in self.boards)

    @property
    def failed(self) -> int:
        return sum(board.failed for board in self.boards)

    @property
    def lost(self) -> int:
        return sum(board.lost for board in self.boards)

    @property
    def share(self) -> float:
        """Over all boards, the part of their time in which they worked; NaN where there was none."""
        there_s = sum(board.there_s for board in self.boards)
        return min(1.0, sum(board.worked_s for board in self.boards) / there_s) if there_s > 0 else math.nan


class BoardReports:
    """Where the runner of a pool reports, and whoever runs a session on it listens; of one thread."""

    def __init__(self, options: Sequence[str] = ()) -> None:
        """`options` are those with which a command uses the same boards."""
        self.options = tuple(options)
        self._hear: Callable[[PoolStatus, str], None] | None = None
        self._last = PoolStatus()

    @contextmanager
    def heard_by(self, hear: Callable[[PoolStatus, str], None]) -> Iterator[None]:
        """Let `hear` have every status, and a line for the user that may come with it, while the block runs."""
        self._hear, self._last = hear, PoolStatus()
        try:
            yield
        finally:
            self._hear = None

    def status(self, status: PoolStatus) -> None:
        """The boards do something else now."""
        self._last = status
        self._say("")

    def remark(self, text: str) -> None:
        """What the user should know of the boards, in one line."""
        self._say(text)

    def _say(self, remark: str) -> None:
        if self._hear is not None:
            self._hear(self._last, remark)


def boards_to_json(status: PoolStatus) -> list[dict[str, Any]]:
    """What the boards did, for `--json` and a session's origin."""
    return [
        {
            "board": board.key,
            "label": board.label,
            "host": board.host,
            "state": board.doing.value,
            "reason": board.reason,
            "measured": board.measured,
            "failed": board.failed,
            "lost": board.lost,
            "worked_s": board.worked_s,
            "there_s": board.there_s,
            "share_working": finite_or_none(board.share),
            "opening_s": board.opening_s,
            "preparing_s": board.preparing_s,
            "waited_s": board.waited_s,
            "first_result_s": board.first_s,
        }
        for board in status.boards
    ]


def status_of_origin(origin: Mapping[str, str]) -> PoolStatus | None:
    """What the boards of a stored session had done by its end; None where it had one board, or that is damaged."""
    try:
        documents = json.loads(origin[STATUS])
        return PoolStatus(tuple(_board_of(each) for each in documents[:_MOST_BOARDS]))
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError):
        return None


def _board_of(document: Mapping[str, Any]) -> BoardStatus:
    """Raises ValueError, TypeError or LookupError for what is none."""
    key, label, host, reason = (str(document[name]) for name in ("board", "label", "host", "reason"))
    measured, failed, lost = (int(document[name]) for name in ("measured", "failed", "lost"))
    worked_s, there_s = (float(document[name]) for name in ("worked_s", "there_s"))
    opening_s, preparing_s = (float(document.get(name, 0.0)) for name in ("opening_s", "preparing_s"))
    first_s = document.get("first_result_s")
    return BoardStatus(
        key,
        label,
        host,
        Doing(document["state"]),
        reason,
        measured=measured,
        failed=failed,
        lost=lost,
        worked_s=worked_s,
        there_s=there_s,
        opening_s=opening_s,
        preparing_s=preparing_s,
        first_s=None if first_s is None else float(first_s),
    )
