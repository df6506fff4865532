"""The conversation with the program: requests, replies, and the dead man's switch."""

from __future__ import annotations

import json
import os
import select
import time
from collections.abc import Callable
from typing import Any

from . import policy
from .grammar import MOST_BYTES, Failed, Refused, Request, parse
from .keeper import Keeper

BEAT_S = 5.0  # without a request for so long, the program that asked for the settings counts as dead
_TURN_S = 1.0
_CHUNK = 4096


def serve(keeper: Keeper, inward: int, outward: int, *watched: int, alive: Callable[[], None] = lambda: None) -> None:
    """Answer until `quit`, the input's end, silence, or until one of the `watched` descriptors becomes readable.

    `alive` is called at least every second, unless a call of the driver takes longer.
    """
    conversation = _Conversation(keeper, inward, outward, watched, alive)
    os.set_blocking(outward, False)
    conversation.say({"hello": 1, "state": keeper.state()})
    while conversation.go_on():
        pass


class _Conversation:
    def __init__(
        self, keeper: Keeper, inward: int, outward: int, watched: tuple[int, ...], alive: Callable[[], None]
    ) -> None:
        self._keeper = keeper
        self._alive = alive
        self._in, self._out, self._watched = inward, outward, watched
        self._beat = time.monotonic()
        self._read = b""
        self._skipping = False  # the rest of a line that is too long
        self._over = False

    def go_on(self) -> bool:
        """Wait a second for more and answer it; False when it is over."""
        self._alive()
        ready, _, _ = select.select([self._in, *self._watched], [], [], min(_TURN_S, self._left_s()))
        if not ready:
            return self._left_s() > 0
        if any(descriptor in ready for descriptor in self._watched):
            return False
        try:
            chunk = os.read(self._in, _CHUNK)
        except OSError:
            return False
        if not chunk:
            return False
        *lines, self._read = (self._read + chunk).split(b"\n")
        for line in lines:
            if self._skipping:
                self._skipping = False
            elif line.strip():
                self._answer(line)
            if self._over:
                return False
        if len(self._read) > MOST_BYTES:
            if not self._skipping:
                self._answer(self._read)
            self._read, self._skipping = b"", True
        return not self._over and self._left_s() > 0

    def say(self, reply: dict[str, Any]) -> None:
        """Send a line. A reader that does not read counts as silence."""
        line = json.dumps(reply).encode() + b"\n"
        while line:
            try:
                line = line[os.write(self._out, line) :]
            except BlockingIOError:
                self._alive()
                select.select([], [self._out], [], min(_TURN_S, self._left_s()))
                if not self._left_s():
                    self._over = True
                    return
            except OSError:
                self._over = True
                return

    def _left_s(self) -> float:
        return max(0.0, self._beat + BEAT_S - time.monotonic())

    def _answer(self, line: bytes) -> None:
        try:
            request = parse(line)
        except Refused as refused:
            self.say({"id": refused.number, "error": Failed("refused", str(refused)).document()})
            return
        try:
            self._do(request)
            self.say({"id": request.number, "state": self._keeper.state()})
        except Failed as failed:
            self.say({"id": request.number, "error": failed.document(), "state": self._keeper.state()})
        self._beat = time.monotonic()  # a driver that takes its time is not silence

    def _do(self, request: Request) -> None:
        setting = request.verb in ("set", "confirm")  # by the policy as it is now: root may have changed it
        if setting and (reason := policy.require(self._keeper.uuid, request.settings)):
            raise Failed("policy", reason)
        if request.verb == "set":
            self._keeper.set(request.settings)
        elif request.verb == "reset":
            self._keeper.reset(request.to, request.names)
        elif request.verb == "confirm":
            self._keeper.confirm()
        elif request.verb == "quit":
            self._over = True
            self._keeper.end()
