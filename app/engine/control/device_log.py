"""The log of changes: every change of a device is a line that says when, what, by whom and what came back."""

from __future__ import annotations

import getpass
import json
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from ...errors import WattridgeError
from ...paths import data_folder, open_private, private_folder
from ...sensors.gpu import GpuInfo

_MOST_BYTES: Final = 1 << 20  # then the older half is dropped


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a device, or one that was refused."""

    time_s: float  # wall clock, since the epoch
    gpu: str  # its name
    what: str
    by: str  # by hand or a session, and who
    outcome: str  # done, or what the device or the system said
    uuid: str  # the board's

    @classmethod
    def now(cls, gpu: GpuInfo, what: str, by: str, outcome: str) -> Change:
        """A change made this moment by the present user."""
        return cls(time.time(), gpu.label, what, f"{by}, {_user()}", outcome, gpu.uuid)

    @property
    def line(self) -> str:
        """The change as a line of text."""
        when = datetime.fromtimestamp(self.time_s, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")
        return f"{when}  {self.gpu}: {self.what} ({self.by}): {self.outcome}"


def log_file() -> Path:
    """Where the changes of real boards are kept: one JSON object a line."""
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


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without a name
        return "unknown user"
