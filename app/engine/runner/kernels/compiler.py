"""Compiling ahead: kernels become images on the other cores while the GPU measures, and stay on disk for next time.

An image's key is the SHA-256 of its text, the files it includes, options, the compiler and the device; not of the name
of a temporary folder, which is another one in each session of a pool. The cache in the data folder is bounded: what was
not used for longest goes first. A kept file is what the compiler said, as one line of JSON, and the image.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from ....errors import WattridgeError
from ....interrupts import current_stop
from ....paths import make_folder, open_private, private_folder
from ...children.scratch import without_scratch
from ...measurement import State
from ...workloads.included_files import included
from ...workloads.source_kernel import Build
from ...workloads.subprocesses import MOST_OUTPUT, run_process
from .image_maker import COMPILE_S, MAX_MESSAGE, Compiled, ImageMaker, NotCompiled, once_compiled, session_ended
from .process import KernelFailed

MAX_CACHE_BYTES: Final = 512 << 20
_TOO_LARGE: Final = re.compile(r"^ptxas error\s*: Entry function '([\w$]+)' uses too much shared data", re.MULTILINE)


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Compiler:
    """Compiles in processes, several at once. Thread-safe; `close` when done."""

    def __init__(
        self,
        maker: ImageMaker,
        *,
        folder: Path | None = None,
        jobs: int | None = None,
        most_bytes: int = MAX_CACHE_BYTES,
    ) -> None:
        self.jobs = jobs or max(1, cores() - 1)
        self.compiled = 0  # images made rather than found
        self._maker = maker
        if folder is not None:
            make_folder(folder)
        self._folder: Path | None = folder or _cache_folder()
        self._most_bytes = most_bytes
        self._pool = ThreadPoolExecutor(self.jobs, thread_name_prefix="compile")
        self._lock = threading.Lock()
        self._stop = threading.Event()

    @property
    def identity(self) -> str:
        """What compiles, with its version, and for which device."""
        return self._maker.identity

    def submit(self, build: Build) -> Future[Compiled]:
        """What `compile` gives, some time; its exception is KernelFailed with the compiler's message."""
        return self._pool.submit(self.compile, build)

    def image(self, build: Build) -> bytes:
        """The image alone. Raises KernelFailed."""
        return once_compiled(self.submit(build), current_stop()).image

    def compile(self, build: Build) -> Compiled:
        """The image and what was said of it, from the cache or compiled now. Raises KernelFailed."""
        began = time.monotonic()
        try:
            return self._found_or_made(build)._replace(compiler_s=time.monotonic() - began)
        except KernelFailed as failure:
            failure.compiler_s = time.monotonic() - began
            raise

    def _found_or_made(self, build: Build) -> Compiled:
        build = self._generated(build)
        if self._folder is None:
            return self._compiled(build)
        path = self._folder / f"{self.key(build)}.image"
        found = _kept_in(path)
        if found is None:
            found = self._compiled(build)
            self._keep(path, json.dumps(found.said).encode() + b"\n" + found.image)
        return found

    def key(self, build: Build) -> str:
        """What an image depends on, as a hexadecimal SHA-256."""
        return _key(self._maker.identity, build)

    def close(self) -> None:
        """End what compiles."""
        self._stop.set()
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._maker.close()
        self._pool.shutdown(wait=True)

    # --- inside -----------------------------------------------------------------------------------------------------

    def _generated(self, build: Build) -> Build:
        """With the source that the build's generator prints now. Raises KernelFailed."""
        if not build.generator:
            return build
        if self._stop.is_set():
            raise session_ended()
        program = f"the generator {Path(build.generator[0]).name}"
        try:
            ended = run_process(build.generator, folder=build.folder, timeout_s=COMPILE_S, stop=self._stop)
        except (OSError, ValueError) as error:  # ValueError: a NUL in a word
            raise KernelFailed(State.COMPILE, f"{program} does not start: {error}") from None
        if ended.timed_out:
            raise KernelFailed(State.COMPILE, f"{program} took longer than {COMPILE_S:g} s")
        if ended.exit_status != 0:
            said = (ended.errors.strip() or ended.output.strip())[-MAX_MESSAGE:]
            raise KernelFailed(State.COMPILE, f"{program}: {ended.how}" + (f"\n{said}" if said else ""))
        if not ended.output.strip():
            raise KernelFailed(State.COMPILE, f"{program} printed no source")
        if len(ended.output.encode()) >= MOST_OUTPUT:
            raise KernelFailed(State.COMPILE, f"{program} printed more than {MOST_OUTPUT >> 20} MiB")
        return replace(build, text=build.text + ended.output, generator=())

    def _compiled(self, build: Build) -> Compiled:
        options = [*build.options, *(f"-I{include}" for include in build.include)]
        try:
            made = self._maker.make(build.text, options)
        except NotCompiled as refused:
            others = set(_TOO_LARGE.findall(refused.what))
            if not others or build.kernel in ("", *others):
                raise
            try:  # for the wanted kernel alone, which the assembler knows by this name where it is extern "C"
                made = self._maker.make(build.text, [*options, "-Xptxas", f"-e={build.kernel}"])
            except NotCompiled:
                raise refused from None
            said = f"left out, as it takes too much shared memory: {', '.join(sorted(others))}"
            made = made._replace(said=f"{said}\n{made.said}".strip())
        self.compiled += 1
        return made

    def _keep(self, path: Path, content: bytes) -> None:
        """Write whole or not at all, and make room. A full disk costs the next session its time, not this one."""
        with suppress(OSError):
            unfinished = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}.part")
            with open_private(unfinished, "wb") as file:
                file.write(content)
            unfinished.replace(path)
            with self._lock:
                self._make_room(path.parent)

    def _make_room(self, folder: Path) -> None:
        kept = []
        for path in folder.iterdir():
            with suppress(OSError):  # another session may remove it meanwhile
                status = path.stat()
                kept.append((status.st_mtime, status.st_size, path))
        total = sum(size for _, size, _ in kept)
        for _, size, path in sorted(kept):
            if total <= self._most_bytes:
                return
            with suppress(OSError):
                path.unlink()
                total -= size


def kept_image(identity: str, build: Build) -> bytes | None:
    """What a compiler of this identity made of a build in some session; None where that is no longer kept."""
    folder = _cache_folder()
    found = None if folder is None else _kept_in(folder / f"{_key(identity, build)}.image")
    return None if found is None else found.image


def _key(identity: str, build: Build) -> str:
    digest = hashlib.sha256()
    parts = (identity, build.text, *build.options, *map(str, build.include))
    for part in (*parts, build.kernel) if build.kernel else parts:
        digest.update(without_scratch(part).encode() + b"\0")
    for path, text in included(build):
        digest.update(without_scratch(str(path)).encode() + b"\0" + text + b"\0")
    return digest.hexdigest()


def _kept_in(path: Path) -> Compiled | None:
    """An image that is on disk; None where it is not."""
    try:
        said, _, image = path.read_bytes().partition(b"\n")
        found = Compiled(image, str(json.loads(said)))
        os.utime(path)  # used: it stays
    except (OSError, ValueError):
        return None
    return found


def _cache_folder() -> Path | None:
    """Where images are kept; None where nothing can be, which costs time and no session."""
    with suppress(WattridgeError):
        return private_folder("cubins")
    return None
