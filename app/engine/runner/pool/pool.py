"""A pool: its boards, what each does for a session, and the `Pool` seam.

Nothing here depends on what carries requests (`dask_pool.py`), or hands rows out (`runner.py`).
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import Enum, StrEnum
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol

from .... import __version__
from ....base.errors import WattridgeError
from ....base.records import Amount, Count, Share, figure, from_json
from ....sensors.gpu import GpuInfo
from ....sensors.limits import DeviceLimits
from ....sensors.remote.messages import (
    Garbled,
    Hello,
    hello_message,
    number_of,
    object_of,
    parse_hello,
    parse_line,
    text_of,
)

# --- a board ----------------------------------------------------------------------------------------------------------

LONGEST_GREETING: Final = 1 << 20
_KEY: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9:./@#_-]{0,159}\Z")
_MOST_OF_A_LIMIT: Final = 1 << 40


@dataclass(frozen=True, slots=True)
class PoolBoard:
    """A board, and what its worker may do with it."""

    key: str  # its UUID; of simulated boards, which share theirs, with the machine and their number there
    host: str
    hello: Hello
    limits: DeviceLimits
    read_only: str = ""  # why its worker sets nothing; empty if it may

    @property
    def info(self) -> GpuInfo:
        return self.hello.info

    @property
    def model(self) -> str:
        """Its name, with the source where its figures are not a real board's: boards of one model share sessions."""
        return self.info.name if self.info.live else f"{self.info.name} ({self.info.source})"

    @property
    def label(self) -> str:
        """The board among the others: 'NVIDIA H200 on node7 #0 (GPU-4f2a19c0)'."""
        return f"{self.model} on {self.host} #{self._number} ({shortened_key(self.key)})"

    @property
    def _number(self) -> str:
        """On its machine. Simulated boards all have the index 0: their keys end with their number there."""
        where, _, number = self.key.rpartition("/")
        return number if "@" in where and number.isdecimal() else str(self.info.index)

    def why_not(self, setting: str) -> str:
        """Why its worker would not make a setting; empty if it would."""
        return self.hello.cannot_set.get(setting) or self.read_only


def shortened_key(key: str) -> str:
    """Enough of a UUID to tell boards apart."""
    return key[:12] if key.startswith(("GPU-", "MIG-", "AMD-")) else key


def board_name(key: str) -> str:
    """A board among those of a session, in a few letters: 'GPU-4f2a19c0'; of a simulated one, 'node7 #2'."""
    model, _, place = key.partition("@")
    host, _, number = place.rpartition("/")
    return f"{host} #{number}" if model.startswith("simulated:") and host else shortened_key(key)


def models_of(boards: Iterable[PoolBoard]) -> dict[str, tuple[PoolBoard, ...]]:
    """The boards by their models."""
    by_model: dict[str, list[PoolBoard]] = {}
    for board in boards:
        by_model.setdefault(board.model, []).append(board)
    return {model: tuple(sorted(there, key=lambda board: board.key)) for model, there in sorted(by_model.items())}


def board_message(board: PoolBoard) -> dict[str, Any]:
    """As its worker announces it."""
    return {
        **hello_message(board.hello),
        "board": {
            "key": board.key,
            "host": board.host,
            "limits": board.limits.as_names(),
            "read_only": board.read_only,
        },
    }


def parse_board(line: bytes) -> PoolBoard:
    """What a worker announced. Raises Garbled, and WattridgeError for another version of the program."""
    message = parse_line(line, LONGEST_GREETING)
    announced = object_of(message.get("board"))
    key, host = announced.get("key"), text_of(announced.get("host"), 253) or "a machine without a name"
    if not isinstance(key, str) or not _KEY.match(key):
        raise Garbled("a board without a key")
    hello = parse_hello(message, host)
    if hello.version != __version__:
        what = f"the worker runs Wattridge {hello.version}, this is {__version__}"
        raise WattridgeError(what, host, "install the same version on all machines of a pool")
    return PoolBoard(key, host, hello, _limits(object_of(announced.get("limits"))), text_of(announced.get("read_only")))


def _limits(limits: Mapping[str, Any]) -> DeviceLimits:
    figures = {}
    for member in fields(DeviceLimits):
        value = number_of(limits.get(member.name))
        if not 0 <= value < _MOST_OF_A_LIMIT:
            raise Garbled("a limit of the board is out of its range")
        figures[member.name] = value if member.name == "compute_capability" else int(value)
    return DeviceLimits(**figures)  # type: ignore[arg-type]


_AUTHORITY, _CERTIFICATE, _PRIVATE_KEY = "ca.pem", "pool.pem", "pool-key.pem"


@dataclass(frozen=True, slots=True)
class Certificates:
    """Where the three files of a pool are, on every machine of it the same ones."""

    folder: Path

    @property
    def authority(self) -> Path:
        return self.folder / _AUTHORITY

    @property
    def certificate(self) -> Path:
        return self.folder / _CERTIFICATE

    @property
    def key(self) -> Path:
        return self.folder / _PRIVATE_KEY

    @property
    def files(self) -> tuple[Path, ...]:
        return self.authority, self.certificate, self.key


# --- the seam ---------------------------------------------------------------------------------------------------------


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
    """A board that joined or rejoined the pool; no session is open on its worker."""

    board: PoolBoard


@dataclass(frozen=True, slots=True)
class Left:
    """A board that left; each of its pending requests is reported as `Unanswered`."""

    board: str
    why: str


@dataclass(frozen=True, slots=True)
class Remark:
    """A one-line message about the pool for the user."""

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
        """Cancel a request: its answer is dropped, and it is not started if it has not begun."""
        ...

    def end_until(self, session: str, number: int) -> None:
        """Requests of the session up to that number end early: what is measured at that moment is answered."""
        ...

    def heard(self, timeout_s: float) -> Heard | None:
        """The next that happened, waited for so long; None if nothing did."""
        ...

    def close(self) -> None:
        """Leave the pool. Its boards stay. Safe to call twice."""
        ...


# --- what each board does ---------------------------------------------------------------------------------------------

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

    IN_JSON: ClassVar = {"share_working": "share", "waited_s": "waited_s"}

    key: str = field(metadata=figure(key="board"))
    label: str
    host: str
    doing: Doing = field(metadata=figure(key="state"))
    reason: str = ""  # why it left, or takes no part
    row: int | None = field(default=None, metadata=figure(key=None))  # of the space: what it measures
    next_rows: int = field(default=0, metadata=figure(key=None))  # how many it has after that one
    measured: Count = 0  # rows whose result it reported, timed ones among them
    failed: Count = 0  # of them
    lost: Count = 0  # how often its worker died, or could not be reached any more
    worked_s: Amount = 0.0  # with rows to measure
    there_s: Amount = 0.0  # as part of the pool
    opening_s: Amount = 0.0  # of that, until it could measure rows of the session
    preparing_s: Amount = 0.0  # of `worked_s`, before its first row: a look at its sensor, arguments, first images
    # From joining until its first result.
    first_s: Amount | None = field(default=None, metadata=figure(key="first_result_s"))

    @property
    def there(self) -> bool:
        """Whether it takes part, now or as soon as it is ready or free."""
        return self.doing not in (Doing.LEFT, Doing.REFUSED)

    @property
    def share(self) -> Share:
        """Of the time that it was there, the part in which it worked, 0 to 1; NaN if it was not."""
        return min(1.0, self.worked_s / self.there_s) if self.there_s > 0 else math.nan

    @property
    def waited_s(self) -> Amount:
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
        """Over all boards, the part of their time in which they worked; NaN if there was none."""
        there_s = sum(board.there_s for board in self.boards)
        return min(1.0, sum(board.worked_s for board in self.boards) / there_s) if there_s > 0 else math.nan


def status_of_origin(origin: Mapping[str, str]) -> PoolStatus | None:
    """What the boards of a stored session had done by its end; None if it had one board, or that is damaged."""
    try:
        documents = json.loads(origin[STATUS])
        return PoolStatus(tuple(from_json(BoardStatus, document) for document in documents[:_MOST_BOARDS]))
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError):
        return None


@dataclass(slots=True)
class _Account:
    """Of one board: its status without the seconds that are under way, and since when those are."""

    status: BoardStatus
    joined_s: float  # when it did first
    since_s: float | None  # when it joined; None while it is not there
    rows: dict[int, list[int]] = field(default_factory=dict)  # request that has begun -> its rows not yet known
    begun_s: float | None = None  # since when it has such a request
    opens_s: float | None = None  # since when it gets ready

    def add(self, **counted: float) -> None:
        """Add to counts and seconds of the status."""
        sums = {name: getattr(self.status, name) + more for name, more in counted.items()}
        self.status = replace(self.status, **sums)

    def at(self, now: float) -> BoardStatus:
        """The status with the seconds that are under way."""
        rows = next((rows for rows in self.rows.values() if rows), [])
        status = self.status
        return replace(
            status,
            row=rows[0] if rows else None,
            next_rows=max(0, sum(map(len, self.rows.values())) - 1),
            worked_s=status.worked_s + (0.0 if self.begun_s is None else now - self.begun_s),
            there_s=status.there_s + (0.0 if self.since_s is None else now - self.since_s),
            opening_s=status.opening_s + (0.0 if self.opens_s is None else now - self.opens_s),
        )


class Ledger:
    """Receives the runner's events. `changed` is True if a board's activity differs from the last status."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` gives seconds that only grow."""
        self._clock = clock
        self._accounts: dict[str, _Account] = {}
        self.changed = False

    def joined(self, board: PoolBoard) -> None:
        """A board is there, and gets ready; also one that was there before."""
        account, now = self._accounts.get(board.key), self._clock()
        if account is None:
            status = BoardStatus(board.key, board.label, board.host, Doing.PREPARING)
            account = self._accounts[board.key] = _Account(status, now, now)
        else:
            account.rows.clear()
            self._rest(account)
            account.status = replace(account.status, label=board.label, host=board.host)
            account.since_s = now if account.since_s is None else account.since_s
            self._become(account, Doing.PREPARING)
        account.opens_s = now if account.opens_s is None else account.opens_s
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
        """Note the seconds of preparation that preceded the board's first row."""
        self._accounts[key].add(preparing_s=seconds)

    def measured(self, key: str, number: int, row: int, *, failed: bool) -> None:
        """It reported the result of a row."""
        account = self._accounts[key]
        if account.status.first_s is None:
            account.status = replace(account.status, first_s=self._clock() - account.joined_s)
        account.add(measured=1, failed=int(failed))
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
            if account.status.doing is Doing.MEASURING:
                self._become(account, Doing.WAITING)

    def left(self, key: str, why: str) -> None:
        """Its worker died, or cannot be reached any more."""
        account = self._accounts[key]
        account.add(lost=1)
        self._go(account, Doing.LEFT, why)

    def refused(self, key: str, why: str) -> None:
        """It takes no part any more."""
        self._go(self._accounts[key], Doing.REFUSED, why)

    def status(self) -> PoolStatus:
        """How it stands now."""
        self.changed = False
        now = self._clock()
        return PoolStatus(tuple(account.at(now) for account in self._accounts.values()))

    # --- inside -------------------------------------------------------------------------------------------------------

    def _become(self, account: _Account, doing: Doing, reason: str = "") -> None:
        self.changed |= (account.status.doing, account.status.reason) != (doing, reason)
        account.status = replace(account.status, doing=doing, reason=reason)

    def _rest(self, account: _Account) -> None:
        if account.begun_s is not None:
            account.add(worked_s=self._clock() - account.begun_s)
            account.begun_s = None

    def _opened(self, account: _Account) -> None:
        if account.opens_s is not None:
            account.add(opening_s=self._clock() - account.opens_s)
            account.opens_s = None

    def _go(self, account: _Account, doing: Doing, why: str) -> None:
        account.rows.clear()
        self._rest(account)
        self._opened(account)
        if account.since_s is not None:
            account.add(there_s=self._clock() - account.since_s)
            account.since_s = None
        self._become(account, doing, why)


# --- in the origin of a session ---------------------------------------------------------------------------------------

ORIGIN: Final = "boards"  # in a session's origin: the boards that measured it, as JSON by their keys
SELECTOR: Final = "pool"  # in place of a board's UUID


def boards_document(boards: Mapping[str, Mapping[str, str]]) -> str:
    """The boards of a session, for its origin."""
    return json.dumps(boards, sort_keys=True)


def boards_of_origin(origin: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """The boards that measured a session, by their keys: `label` and how each one's figures are stated.

    Empty if one board did, and where what is stored is damaged.
    """
    try:
        stored = json.loads(origin.get(ORIGIN, "{}"))
    except (ValueError, RecursionError):
        return {}
    if not isinstance(stored, dict):
        return {}
    return {
        key: {name: text for name, text in facts.items() if isinstance(text, str)}
        for key, facts in stored.items()
        if isinstance(facts, dict)
    }
