"""Where a board of another machine is: `ssh://[user@]host[:port][/board]`, and the command line that reaches it."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ...base.errors import InputError

SCHEME: Final = "ssh://"
# Stricter than ssh: what could be an option, a path or a word of a shell is no name. ssh's own Host aliases fit.
_USER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9._-]{0,63}\Z")
_HOST: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}\Z|\[[0-9A-Fa-f:.]{2,45}\]\Z")
_BOARD: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9:._-]{0,79}\Z")
_REMEDY: Final = "ssh://[user@]host[:port][/index], as in ssh://me@gpu-server/0"
# A login shell that is not interactive often lacks the folder where `pipx` and `pip --user` put commands.
_SCRIPT: Final = 'PATH="$PATH:$HOME/.local/bin"; export PATH; exec wattridge "$@"'


@dataclass(frozen=True, slots=True)
class Address:
    """One board of one machine. An empty user is ssh's choice, port 0 too."""

    host: str
    user: str = ""
    port: int = 0
    board: str = "0"  # as `--gpu` there: an index, a UUID, simulated:NAME

    @property
    def machine(self) -> str:
        """As shown: user@host:port, as far as they are given."""
        port = f":{self.port}" if self.port else ""
        return f"{self.user}@{self.host}{port}" if self.user else f"{self.host}{port}"

    @property
    def login(self) -> str:
        """The command line of ssh to that machine, which takes neither a port behind the host nor brackets."""
        port = f" -p {self.port}" if self.port else ""
        return f"ssh{port} {self.user}{'@' if self.user else ''}{self.host.strip('[]')}"

    @property
    def selector(self) -> str:
        """As `--gpu` takes it."""
        return f"{SCHEME}{self.machine}/{self.board}"


def parse_address(text: str) -> Address:
    """What stands behind `ssh://` in a selector, with or without the scheme.

    Raises InputError where user, host, port or board is not a plain name: none of them can be an option of ssh, or
    mean anything to a shell.
    """
    rest = text.strip()
    if rest.lower().startswith(SCHEME):
        rest = rest[len(SCHEME) :]
    machine, slash, board = rest.partition("/")
    user, at, place = machine.rpartition("@")
    host, port = place, 0
    if (match := re.fullmatch(r"(.*[^:\]]|\[.*\]):([0-9]{1,5})", place)) is not None:
        host, port = match[1], int(match[2])
        if not 0 < port < 1 << 16:
            raise InputError(f"there is no port {port}", text, _REMEDY)
    if not _HOST.match(host):
        raise InputError(f"'{host}' is no name of a host", text, _REMEDY)
    if at and not _USER.match(user):
        raise InputError(f"'{user}' is no name of a user", text, _REMEDY)
    if slash and board and not _BOARD.match(board):
        raise InputError(f"'{board}' names no board of another machine", text, _REMEDY)
    return Address(host, user, port, board or "0")


def can_ask() -> bool:
    """Whether ssh can ask the user for a password: on this terminal, or by the desktop's askpass."""
    return (sys.stdin is not None and sys.stdin.isatty()) or bool(os.environ.get("SSH_ASKPASS"))


def install_command(address: Address) -> str:
    """What installs Wattridge on that machine."""
    return f"{address.login} pipx install wattridge"


def ssh_command(address: Address, words: Sequence[str], *, batch: bool = False) -> list[str]:
    """The command line that runs `wattridge WORDS` there, through the user's ssh with its own configuration.

    No terminal is asked for, and nothing is forwarded. `batch`: ssh never asks for anything. The words are quoted for
    the shell there, whichever it is: each has `exec` and `sh`.
    """
    port = ["-p", str(address.port)] if address.port else []
    user = ["-l", address.user] if address.user else []
    asking = ["-o", "BatchMode=yes"] if batch else []
    there = shlex.join(["exec", "sh", "-c", _SCRIPT, "wattridge", *words])
    options = ["-T", "-o", "ClearAllForwardings=yes", "-o", "ConnectTimeout=15", *asking]
    return ["ssh", *options, *port, *user, "--", address.host.strip("[]"), there]
