"""Commands of Wattridge on another machine: one that lists its boards, and one that puts a board back."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from ...base.records import figure
from ...base.text import one_line, shortened
from ..gpu import LIVE, SensorError
from .address import Address, can_ask, install_command, ssh_command

_MOST_BYTES: Final = 1 << 20
_MOST_BOARDS: Final = 256
_SOURCES: Final = (*LIVE, "simulated")  # what can be served
_ANSWER_S: Final = 90.0
_LOOK_S: Final = 0.2


@dataclass(frozen=True, slots=True)
class RemoteBoard:
    """A board of another machine, as its Wattridge lists it."""

    selector: str
    index: int
    name: str
    source: str
    machine: str = field(metadata=figure(key=None))


@dataclass(frozen=True, slots=True)
class Ended:
    """A command that has ended there; the texts are on single lines, without control characters."""

    status: int
    output: str
    errors: tuple[str, ...]


def run_there(address: Address, words: Sequence[str], give_up: threading.Event | None = None) -> Ended:
    """Run `wattridge WORDS` on the machine, without input, and wait. Raises SensorError if it cannot be started.

    Setting `give_up` ends it.
    """
    command = ssh_command(address, words, batch=not can_ask())
    try:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except OSError as error:
        what = f"ssh does not start: {error.strerror or error}"
        raise SensorError(what, address.machine, "install an OpenSSH client") from None
    until = time.monotonic() + _ANSWER_S
    while True:
        try:
            output, errors = process.communicate(timeout=_LOOK_S)
            break
        except subprocess.TimeoutExpired:
            given_up = give_up is not None and give_up.is_set()
            if given_up or time.monotonic() > until:
                process.kill()
                with suppress(subprocess.TimeoutExpired):  # what ssh itself started may hold its pipes
                    process.communicate(timeout=_LOOK_S)
                what = "given up" if given_up else f"no answer within {_ANSWER_S:.0f} s"
                raise SensorError(what, address.machine, f"try: {address.login}") from None
    lines = tuple(shortened(line, 300) for line in errors[:_MOST_BYTES].decode("utf-8", "replace").splitlines()[-20:])
    if process.returncode == 255:  # ssh's own
        raise SensorError(
            f"no connection: {lines[-1] if lines else 'ssh failed'}", address.machine, f"try: {address.login}"
        )
    if process.returncode in (126, 127):
        raise SensorError(
            "Wattridge is not installed there", address.machine, f"install it there: {install_command(address)}"
        )
    return Ended(process.returncode, output[:_MOST_BYTES].decode("utf-8", "replace"), lines)


def boards_there(address: Address, give_up: threading.Event | None = None) -> list[RemoteBoard]:
    """The boards of a machine. Setting `give_up` ends the asking. Raises SensorError."""
    ended = run_there(address, ["gpus", "--json"], give_up)
    try:
        listed: Any = json.loads(ended.output)
    except (ValueError, RecursionError):
        listed = None
    if not isinstance(listed, list):
        what = ended.errors[-1] if ended.errors else "its answer is none of Wattridge's"
        raise SensorError(
            f"the boards there are not known: {what}", address.machine, f"try: {address.login} wattridge gpus"
        )
    results = []
    for entry in listed[:_MOST_BOARDS]:
        if not isinstance(entry, dict) or entry.get("source") not in _SOURCES:
            continue
        index, name, source = entry.get("index"), entry.get("name"), str(entry["source"])
        if (
            isinstance(index, bool)
            or not isinstance(index, int)
            or not 0 <= index < 1 << 16
            or not isinstance(name, str)
        ):
            continue
        uuid = entry.get("uuid")
        board = uuid if source != "nvml" and isinstance(uuid, str) else str(index)
        selector = Address(address.host, address.user, address.port, board).selector
        results.append(RemoteBoard(selector, index, shortened(one_line(name)), source, address.machine))
    return results
