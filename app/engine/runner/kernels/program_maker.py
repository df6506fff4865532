"""A compiler that is a program: called once for each image."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from ....errors import WattridgeError
from ...children.ending import ends_with_us, prepare_for_the_end
from ...children.python import python_environment
from ...children.reaper import Family
from ...children.scratch import scratch_folder
from .image_maker import COMPILE_S, MAX_MESSAGE, Compiled, NotCompiled, session_ended, took_too_long


class Target(Protocol):
    """A compiler's program and what it compiles for."""

    @property
    def identity(self) -> str:
        """Of both, with the version: another one gives other images."""
        ...

    @property
    def suffix(self) -> str:
        """Of the source that it is given, by which compilers know languages."""
        ...

    def call(self, source: Path, image: Path, options: Sequence[str]) -> list[str]:
        """The command line that compiles a source to an image."""
        ...


class ProgramMaker:
    """Implements `ImageMaker` by a program, in a process for each image."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._closed = False
        prepare_for_the_end()

    @property
    def identity(self) -> str:
        return self.target.identity

    def make(self, text: str, options: Sequence[str]) -> Compiled:
        """Raises NotCompiled, KernelFailed, and WattridgeError where the program does not start."""
        folder = scratch_folder()
        try:
            source, image = folder / f"kernel{self.target.suffix}", folder / "image"
            source.write_text(text, encoding="utf-8")
            failed, said = self._call(self.target.call(source, image, options), str(folder))
            if failed or not image.is_file():
                raise NotCompiled(said)
            return Compiled(image.read_bytes(), said)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            running = list(self._running)
        for process in running:
            _end(process)

    def _call(self, words: Sequence[str], folder: str) -> tuple[bool, str]:
        """Whether the compiler failed, and what it says. Raises KernelFailed where it takes too long."""
        try:
            with self._lock:
                if self._closed:
                    raise session_ended()
                process = subprocess.Popen(
                    words,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    env=python_environment(),
                    start_new_session=True,  # Ctrl+C is for the session: a compiler that it ends is no bad kernel
                )
                self._running.add(process)
        except OSError as error:
            raise WattridgeError(f"the compiler does not start: {error}", words[0]) from None
        try:
            with ends_with_us(process.pid, group=True):
                output, _ = process.communicate(timeout=COMPILE_S)
        except subprocess.TimeoutExpired:
            _end(process)
            process.communicate()
            raise took_too_long(COMPILE_S) from None
        except BaseException:  # a signal's
            _end(process)
            process.communicate()
            raise
        finally:
            with self._lock:
                self._running.discard(process)
        said = output.decode("utf-8", "replace").replace(folder + os.sep, "").strip()
        return process.returncode != 0, said[:MAX_MESSAGE]


def _end(process: subprocess.Popen[bytes]) -> None:
    """A compiler and the programs that it calls."""
    if os.name == "posix":
        Family(process.pid, group=True).signal(signal.SIGKILL)
    else:
        process.kill()
