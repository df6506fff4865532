"""The errors that users see: what happened, where, and the remedy. None of them needs a traceback."""

from __future__ import annotations

from .text import shortened


class WattridgeError(Exception):
    """Something failed that the user can act on. `exit_code` is what the command line returns."""

    exit_code = 1

    def __init__(self, what: str, where: str = "", remedy: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.remedy = remedy

    def __str__(self) -> str:
        line = f"{self.where}: {self.what}" if self.where else self.what
        return f"{line} ({self.remedy})" if self.remedy else line

    def as_json(self) -> dict[str, dict[str, str]]:
        """The `error` document that every `--json` command prints on failure."""
        return {"error": {"what": self.what, "where": self.where, "remedy": self.remedy}}


_LONGEST = 400  # characters of a part of a message that quotes user input


class InputError(WattridgeError):
    """A file, option or expression of the user's is wrong; nothing was written. One line, whatever it quotes."""

    exit_code = 2

    def __init__(self, what: str, where: str = "", remedy: str = "") -> None:
        super().__init__(*(shortened(part, _LONGEST) for part in (what, where, remedy)))


class LockedOutside(WattridgeError):
    """A clock that is to be set looks locked by another tool, and the user has not agreed to lose that lock."""


class PermissionRefused(WattridgeError):
    """The device or the read-only rule refuses a setting."""
