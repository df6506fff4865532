"""Root's policy for the boards of this machine: `/etc/wattridge/policy.conf`, obeyed by the helper with rights itself.

    [all boards]
    read_only = no
    users = alice, @gpu
    power_limit_w = 200:500

    [GPU-8f6c21a3-0b7e-4c55-9d3e-2f1a7c0e4b90]
    read_only = yes

It restricts what may be set and who may start the helper. Putting a board back is never forbidden to a user who may
start the helper. Without the file nothing is restricted; a file that cannot be relied on forbids every setting: others
could have written it, or a section or a line of it is not understood.
"""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .__main__ import unsafe_path
from .grammar import NO_PROFILE, SETTINGS
from .record import is_uuid

PATH = "/etc/wattridge/policy.conf"
ALL_BOARDS = "all boards"
_MOST_BYTES = 1 << 16


class PolicyError(Exception):
    """The policy cannot be relied on; one line with the file and the reason."""


@dataclass(frozen=True)
class Policy:
    """What root allows on one board."""

    read_only: bool = False
    users: tuple[str, ...] | None = None  # names, numeric ids, @groups; None stands for everybody
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # setting -> (least, most), in its unit

    def refuses_user(self, uid: int) -> str:
        """Why a user may not start the helper; empty if they may. Root always may."""
        if uid == 0 or self.users is None or any(_is(uid, user) for user in self.users):
            return ""
        return f"{PATH} does not list user {_name(uid)}"

    def refuses(self, settings: Mapping[str, Any]) -> str:
        """Why these settings may not be made; empty if they may. A clock range counts with both ends."""
        if self.read_only:
            return f"{PATH} makes this board read-only"
        for name, value in settings.items():
            if name == "workload_power_profile" and value == NO_PROFILE:
                continue  # as a board is by itself
            low, high = self.ranges.get(name, (-math.inf, math.inf))
            for end in value if isinstance(value, (list, tuple)) else (value,):
                if not low <= end <= high:
                    return f"{name} = {end:g} is outside {low:g}:{high:g}, which {PATH} allows"
        return ""


def load(uuid: str) -> Policy:
    """The policy of one board. Raises PolicyError where the file is there and not root's alone, or not understood."""
    text = _text()
    if text is None:
        return Policy()
    sections = _sections(text)
    return _policy_of({**sections[ALL_BOARDS], **sections.get(uuid, {})})


def require(uuid: str, settings: Mapping[str, Any]) -> str:
    """Why a setting may not be made or confirmed on a board now; empty if it may."""
    try:
        return load(uuid).refuses(settings)
    except PolicyError as error:
        return str(error)


# --- reading ----------------------------------------------------------------------------------------------------------


def _text() -> str | None:
    """The file's text; None if there is none."""
    try:
        file = os.open(PATH, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise PolicyError(f"{PATH} is not a regular file")
            if reason := unsafe_path(PATH):
                raise PolicyError(f"{PATH} is not under the control of root alone: {reason}")
            raw = os.read(file, _MOST_BYTES + 1)
        finally:
            os.close(file)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise PolicyError(f"{PATH} cannot be read: {error.strerror}") from None
    if len(raw) > _MOST_BYTES:
        raise PolicyError(f"{PATH} is larger than {_MOST_BYTES} bytes")
    try:
        return raw.decode("utf-8")
    except ValueError:
        raise PolicyError(f"{PATH} is not UTF-8 text") from None


def _sections(text: str) -> dict[str, dict[str, str]]:
    """Every section's lines. Raises PolicyError for a line that is neither of a policy nor a comment."""
    sections: dict[str, dict[str, str]] = {ALL_BOARDS: {}}
    met, name = set(), ""
    for number, each in enumerate(text.split("\n"), 1):
        line, where = each.replace("\t", " ").strip(" \r"), f"{PATH}, line {number}"
        if not line or line.startswith("#"):
            continue
        key, equals, value = (part.strip(" ") for part in line.partition("="))
        key = key.lower()
        if line.startswith("["):
            key, name = line, line[1:-1]
            if not line.endswith("]") or not (name == ALL_BOARDS or is_uuid(name)):
                whole = "the whole UUID of a board in small letters, as in [GPU-...] or [AMD-...]"
                raise PolicyError(f"{where}: {line!a} is neither [{ALL_BOARDS}] nor {whole}")
            sections.setdefault(name, {})
        elif not name:
            raise PolicyError(f"{where}: no section stands above it, as [{ALL_BOARDS}]")
        elif not equals or not line.isprintable():
            raise PolicyError(f"{where}: {line!a} is no NAME = VALUE")
        else:
            _policy_of({key: value}, where)
            sections[name][key] = value
        if (name, key) in met:
            raise PolicyError(f"{where}: {key} is there twice")
        met.add((name, key))
    return sections


def _policy_of(section: Mapping[str, str], where: str = PATH) -> Policy:
    read_only, users, ranges = False, None, {}
    for key, value in section.items():
        if key == "read_only":
            if value not in ("yes", "no"):
                raise PolicyError(f"{where}: read_only = {value} is neither yes nor no")
            read_only = value == "yes"
        elif key == "users":
            users = tuple(user.strip() for user in value.split(",") if user.strip())
        elif key in SETTINGS:
            ranges[key] = _range(key, value, where)
        else:
            raise PolicyError(f"{where}: {key} is not one of read_only, users, {', '.join(SETTINGS)}")
    return Policy(read_only, users, ranges)


def _range(key: str, value: str, where: str) -> tuple[float, float]:
    try:
        low, high = (float(end) for end in value.split(":"))
    except ValueError:
        low, high = math.nan, math.nan
    if not 0 <= low <= high < math.inf:
        raise PolicyError(f"{where}: {key} = {value} is not a range LOW:HIGH")
    return low, high


def _is(uid: int, user: str) -> bool:
    """Whether an entry of `users` means that user. An unknown name means no user."""
    import grp  # not on Windows, where this module is imported too
    import pwd

    try:
        if user.startswith("@"):
            group, own = grp.getgrnam(user[1:]), pwd.getpwuid(uid)
            return group.gr_gid == own.pw_gid or own.pw_name in group.gr_mem
        return uid == (int(user) if user.isdecimal() else pwd.getpwnam(user).pw_uid)
    except KeyError:
        return False


def _name(uid: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
