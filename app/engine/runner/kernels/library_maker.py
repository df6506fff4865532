"""A compiler that is a library: loaded once in each of a few processes, which stay.

On an H200's host NVRTC takes 0.2 s for the first image of a process, and 0.02 to 0.2 s for each of the others, where a
process for each image takes 0.6 s or more (`tests/benchmarks/compilers.txt`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Final

from ...children.python import python_command
from ...measurement import State
from .image_maker import COMPILE_S, MAX_MESSAGE, Compiled, NotCompiled, session_ended, took_too_long
from .process import AskedProcess, KernelFailed

WORTH_S: Final = 0.05  # what waits for longer has another process started
MOST_RESIDENT_BYTE: Final = 1 << 30  # a process that has grown beyond it is not asked again


class LibraryMaker:
    """Implements `ImageMaker` by processes that stay: one that starts at once, and others where images have to wait.

    A process that crashes, hangs or grows costs the image that it makes, and another takes its place.
    """

    def __init__(
        self, module: str, identity: str, options: Sequence[str] = (), *, compile_s: float = COMPILE_S
    ) -> None:
        """`module` has `compile_text`, as `compile_worker` wants it; `options` come before those of each text."""
        self.identity = identity
        self._module = module
        self._options = tuple(options)
        self._compile_s = compile_s
        self._changed = threading.Condition()
        self._idle: list[AskedProcess] = []  # the one that was used last at the end
        self._standing: set[AskedProcess] = set()  # these, and those that compile
        self._starting: set[AskedProcess] = set()
        self._waiting = 0
        self._not_started = 0
        self._why_not = ""
        self._closed = False
        with self._changed:
            self._start()

    def make(self, text: str, options: Sequence[str]) -> Compiled:
        process, stays = self._take(), False
        message = {"do": "compile", "options": [*self._options, *options]}
        try:
            reply, (image,) = process.exchange(message, [text.encode()], timeout_s=self._compile_s)
            stays = reply["resident_byte"] <= MOST_RESIDENT_BYTE
        except KernelFailed as failure:
            if self._closed:
                raise session_ended() from None
            if failure.state is State.TIMEOUT:
                raise took_too_long(self._compile_s) from None
            raise NotCompiled(failure.what) from None
        finally:
            self._give_back(process, stays)
        said = str(reply["said"])[:MAX_MESSAGE]
        if not image:
            raise NotCompiled(said)
        return Compiled(image, said)

    def close(self) -> None:
        with self._changed:
            self._closed = True
            processes = [*self._standing, *self._starting]
            self._changed.notify_all()
        for process in processes:
            process.kill()

    # --- the processes ----------------------------------------------------------------------------------------------

    def _take(self) -> AskedProcess:
        """One that stands and is idle, once there is one. Raises NotCompiled where none starts."""
        with self._changed:
            before, began = self._not_started, time.monotonic()
            self._waiting += 1
            try:
                while not self._stands() or self._closed:
                    if self._closed:
                        raise session_ended()
                    if self._not_started > before and not self._standing and not self._starting:
                        raise NotCompiled(self._why_not)
                    if self._worth_another(time.monotonic() - began):
                        self._start()
                    else:
                        self._changed.wait(WORTH_S)
                return self._idle.pop()
            finally:
                self._waiting -= 1

    def _stands(self) -> bool:
        """Whether one is idle: what ended while it was, by whoever's doing, costs no image. The condition is held."""
        while self._idle and self._idle[-1].has_ended:
            ended = self._idle.pop()
            self._standing.discard(ended)
            ended.kill()
        return bool(self._idle)

    def _worth_another(self, waited_s: float) -> bool:
        """At most as many start as stand, and none for what is soon its turn. The condition is held."""
        standing = len(self._standing)
        if len(self._starting) >= min(self._waiting, max(1, standing)):
            return False
        return not standing or waited_s > WORTH_S

    def _give_back(self, process: AskedProcess, stays: bool) -> None:
        with self._changed:
            stays = stays and not self._closed
            if stays:
                self._idle.append(process)
            else:
                self._standing.discard(process)
            self._changed.notify_all()
        if not stays:
            process.kill()

    def _start(self) -> None:
        """Start one, and a thread that waits until it stands. The condition is held."""
        try:
            command = python_command(f"{__package__}.compile_worker", self._module)
            process = AskedProcess("compiler's process", command)
        except OSError as error:
            self._not_started += 1
            self._why_not = f"the compiler does not start: {error}"
            return
        self._starting.add(process)
        threading.Thread(target=self._await, args=(process,), name="compiler starts", daemon=True).start()

    def _await(self, process: AskedProcess) -> None:
        why_not = ""
        try:
            process.ready()
        except KernelFailed as failure:
            why_not = failure.what
        with self._changed:
            self._starting.discard(process)
            stays = not why_not and not self._closed
            if stays:
                self._standing.add(process)
                self._idle.append(process)
            else:
                self._not_started += 1
                self._why_not = why_not
            self._changed.notify_all()
        if not stays:
            process.kill()
