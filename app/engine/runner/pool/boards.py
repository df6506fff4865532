"""`PoolBoard`: one board of a pool, as its worker describes it when it joins."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from .... import __version__
from ....errors import WattridgeError
from ....sensors.device_limits import DeviceLimits
from ....sensors.gpu import GpuInfo
from ....sensors.remote.fields import Garbled, number_of, object_of, parse_line, text_of
from ....sensors.remote.messages import Hello, hello_message, parse_hello

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
    read_only: str = ""  # why its worker sets nothing; empty where it may

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
        """Why its worker would not make a setting; empty where it would."""
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
    found: dict[str, list[PoolBoard]] = {}
    for board in boards:
        found.setdefault(board.model, []).append(board)
    return {model: tuple(sorted(there, key=lambda each: each.key)) for model, there in sorted(found.items())}


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
    for each in fields(DeviceLimits):
        value = number_of(limits.get(each.name))
        if not 0 <= value < _MOST_OF_A_LIMIT:
            raise Garbled("a limit of the board is out of its range")
        figures[each.name] = value if each.name == "compute_capability" else int(value)
    return DeviceLimits(**figures)  # type: ignore[arg-type]
