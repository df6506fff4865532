"""The log of changes of devices: a line for each change, with its time, settings, user and outcome."""

from __future__ import annotations

import getpass
import json
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from ...base.errors import WattridgeError
from ...base.paths import data_folder, open_private, private_folder
from ...sensors.gpu import GpuInfo

BY_HAND: Final = "by hand"
_MOST_BYTES: Final = 1 << 20  # then the older half is dropped


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a device, or one that was refused."""

    time_s: float  # wall clock, since the epoch
    gpu: str  # its name
    what: str  # the settings, in words
    by: str  # by hand or a session, and who
    outcome: str  # done, or the message of the device or the system
    uuid: str  # the board's
    asked: str = ""  # values with their units, or 'as before'
    observed: str = ""  # the state of the device afterwards; empty if it was not observed

    @classmethod
    def now(cls, gpu: GpuInfo, what: str, asked: str, by: str, outcome: str) -> Change:
        """A change made this moment by the present user."""
        return cls(time.time(), gpu.label, what, f"{by}, {_user()}", outcome, gpu.uuid, asked)

    @property
    def when(self) -> str:
        """The time in the user's time zone, to the second."""
        return datetime.fromtimestamp(self.time_s, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")

    @property
    def by_hand(self) -> bool:
        """Whether the user made it, not a session or a sweep."""
        return self.by.startswith(BY_HAND)

    def same_as(self, other: Change) -> bool:
        """Whether this is the same change, of which one record may lack the observation."""
        return (self.time_s, self.uuid, self.what) == (other.time_s, other.uuid, other.what)

    @property
    def line(self) -> str:
        """The change as a line of text."""
        return f"{self.when}  {self.gpu}: {f'{self.what} {self.asked}'.rstrip()} ({self.by}): {self.outcome}"


def log_file() -> Path:
    """The file that keeps the changes of real boards, one JSON object a line."""
    return data_folder() / "device-log.jsonl"


def keep(change: Change) -> None:
    """Append a change. A log that cannot be written must not keep a board from being put back."""
    line = json.dumps(asdict(change), ensure_ascii=False) + "\n"
    try:
        path = private_folder() / log_file().name
        if path.exists() and path.stat().st_size > _MOST_BYTES:
            lines = path.read_text("utf-8").splitlines(keepends=True)
            path.write_text("".join(lines[len(lines) // 2 :]), "utf-8")
        with open_private(path, "ab") as file:
            file.write(line.encode("utf-8", "replace"))
    except (OSError, WattridgeError):
        return


def changes_of(uuid: str, at_most: int) -> list[Change]:
    """The newest changes of a board, the oldest first. Damaged lines are left out."""
    try:
        lines = log_file().read_text("utf-8", "replace").splitlines()
    except OSError:
        return []
    changes: list[Change] = []
    for change in map(_change_of, lines):
        if change is None or change.uuid != uuid:
            continue
        if changes and changes[-1].same_as(change):
            changes.pop()  # the later record has the observation
        changes.append(change)
    return changes[-at_most:]


def _change_of(line: str) -> Change | None:
    try:
        change = Change(**json.loads(line))
        texts = (change.gpu, change.what, change.by, change.outcome, change.uuid, change.asked, change.observed)
        return change if all(isinstance(text, str) for text in texts) and change.when else None
    except (ValueError, TypeError, OverflowError, OSError, RecursionError):
        return None


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without a name
        return "unknown user"
