"""`Ledger`: keeps account of what each board of a pool does for one session, also of those that left."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from .boards import PoolBoard
from .status import BoardStatus, Doing, PoolStatus


@dataclass(slots=True)
class _Account:
    """Of one board."""

    board: PoolBoard
    doing: Doing
    since_s: float | None  # when it joined; None while it is not there
    reason: str = ""
    rows: dict[int, list[int]] = field(default_factory=dict)  # request that has begun -> its rows not yet known
    begun_s: float | None = None  # since when it has such a request
    measured: int = 0
    failed: int = 0
    lost: int = 0
    worked_s: float = 0.0
    there_s: float = 0.0
    opens_s: float | None = None  # since when it gets ready
    opening_s: float = 0.0
    preparing_s: float = 0.0
    joined_s: float = 0.0  # when it did first
    first_s: float | None = None


class Ledger:
    """Hears from the runner what happens. `changed` says that a board does something else than in the last status."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` gives seconds that only grow."""
        self._clock = clock
        self._accounts: dict[str, _Account] = {}
        self.changed = False

    def joined(self, board: PoolBoard) -> None:
        """A board is there, and gets ready; also one that was there before."""
        account = self._accounts.get(board.key)
        if account is None:
            now = self._clock()
            account = self._accounts[board.key] = _Account(board, Doing.PREPARING, now, joined_s=now)
        else:
            account.board = board
            account.rows.clear()
            self._rest(account)
            account.since_s = self._clock() if account.since_s is None else account.since_s
            self._become(account, Doing.PREPARING)
        account.opens_s = self._clock() if account.opens_s is None else account.opens_s
        self.changed = True

    def ready(self, key: str) -> None:
        """It can measure rows of the session."""
        self._opened(self._accounts[key])
        self._become(self._accounts[key], Doing.WAITING)

    def busy(self, key: str) -> None:
        """Another session has it."""
        self._become(self._accounts[key], Doing.BUSY)

    def begun(self, key: str, number: int, rows: list[int]) -> None:
        """It works on a request for these rows."""
        account = self._accounts[key]
        account.rows[number] = rows
        if account.begun_s is None:
            account.begun_s = self._clock()
        self._become(account, Doing.MEASURING)

    def prepared(self, key: str, seconds: float) -> None:
        """It says that so many seconds of its work came before its first row."""
        self._accounts[key].preparing_s += seconds

    def measured(self, key: str, number: int, row: int, *, failed: bool) -> None:
        """It reported the result of a row."""
        account = self._accounts[key]
        account.first_s = self._clock() - account.joined_s if account.first_s is None else account.first_s
        account.measured += 1
        account.failed += failed
        rows = account.rows.get(number, [])
        if row in rows:
            rows.remove(row)

    def over(self, key: str, number: int) -> None:
        """A request is answered, or will not be any more."""
        account = self._accounts.get(key)
        if account is None or account.rows.pop(number, None) is None:
            return
        if not account.rows:
            self._rest(account)
            if account.doing is Doing.MEASURING:
                self._become(account, Doing.WAITING)

    def left(self, key: str, why: str) -> None:
        """Its worker died, or cannot be reached any more."""
        account = self._accounts[key]
        account.lost += 1
        self._go(account, Doing.LEFT, why)

    def refused(self, key: str, why: str) -> None:
        """It takes no part any more."""
        self._go(self._accounts[key], Doing.REFUSED, why)

    def status(self) -> PoolStatus:
        """How it stands now."""
        self.changed = False
        now = self._clock()
        return PoolStatus(tuple(_status_of(account, now) for account in self._accounts.values()))

    # --- inside -------------------------------------------------------------------------------------------------------

    def _become(self, account: _Account, doing: Doing, reason: str = "") -> None:
        self.changed |= (account.doing, account.reason) != (doing, reason)
        account.doing, account.reason = doing, reason

    def _rest(self, account: _Account) -> None:
        if account.begun_s is not None:
            account.worked_s += self._clock() - account.begun_s
            account.begun_s = None

    def _opened(self, account: _Account) -> None:
        if account.opens_s is not None:
            account.opening_s += self._clock() - account.opens_s
            account.opens_s = None

    def _go(self, account: _Account, doing: Doing, why: str) -> None:
        account.rows.clear()
        self._rest(account)
        self._opened(account)
        if account.since_s is not None:
            account.there_s += self._clock() - account.since_s
            account.since_s = None
        self._become(account, doing, why)


def _status_of(account: _Account, now: float) -> BoardStatus:
    rows = next((rows for rows in account.rows.values() if rows), [])
    return BoardStatus(
        account.board.key,
        account.board.label,
        account.board.host,
        account.doing,
        account.reason,
        row=rows[0] if rows else None,
        next_rows=max(0, sum(map(len, account.rows.values())) - 1),
        measured=account.measured,
        failed=account.failed,
        lost=account.lost,
        worked_s=account.worked_s + (0.0 if account.begun_s is None else now - account.begun_s),
        there_s=account.there_s + (0.0 if account.since_s is None else now - account.since_s),
        opening_s=account.opening_s + (0.0 if account.opens_s is None else now - account.opens_s),
        preparing_s=account.preparing_s,
        first_s=account.first_s,
    )
