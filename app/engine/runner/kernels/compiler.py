"""Compiling ahead: kernels become images on the other cores while the GPU measures, and stay on disk for next time.

An image's key is the SHA-256 of its text, the files it includes, options, the compiler and the device; not of the name
of a temporary folder, which is another one in each session of a pool. The cache in the data folder is bounded: what was
not used for longest goes first. A kept file is the compiler's message, as one line of JSON, and the image.

An `ImageMaker` turns a text into an image. A compiler that is a program is called once for each image; one that is a
library is loaded once in each of a few processes, which stay: on an H200's host NVRTC takes 0.2 s for the first image
of a process, and 0.02 to 0.2 s for each of the others, where a process for each image takes 0.6 s or more
(`tests/benchmarks/compilers.txt`).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from ....base.errors import WattridgeError
from ....base.paths import make_folder, open_private, private_folder
from ....base.processes import current_stop
from ...children.ending import ends_with_us, prepare_for_the_end
from ...children.python import python_command, python_environment
from ...children.reaper import Family
from ...children.scratch import scratch_folder, without_scratch
from ...results.measurement import State
from ...workloads.source_kernel import Build, included
from ...workloads.subprocesses import MOST_OUTPUT, run_process
from .process import AskedProcess, KernelFailed

COMPILE_S: Final = 300.0
MAX_MESSAGE: Final = 4000  # characters of what a compiler says
_LOOK_S: Final = 0.05  # between looks at a stop
ENDED: Final = "the session ended"
_ERROR: Final = re.compile(r"\berror\b", re.IGNORECASE)


class Compiled(NamedTuple):
    """An image, and the messages of the compiler that made it all the same: warnings, mostly."""

    image: bytes
    said: str
    compiler_s: float = 0.0  # what it took here, to make it or to find it


class NotCompiled(KernelFailed):
    """This compiler does not compile the text, or ends over it; another one may."""

    def __init__(self, message: str) -> None:
        """`message` of the compiler: its first error comes first, as lists show that line."""
        super().__init__(State.COMPILE, _error_first(message) or "the compiler wrote nothing and said nothing")


class ImageMaker(Protocol):
    """A compiler for one device, used by several threads at once."""

    @property
    def identity(self) -> str:
        """Of the compiler, with its version, and of the device: another one gives other images."""
        ...

    def make(self, text: str, options: Sequence[str]) -> Compiled:
        """Compile a text, in another process. Raises NotCompiled, and KernelFailed if it takes too long."""
        ...

    def close(self) -> None:
        """End what compiles."""
        ...


def once_compiled(image: Future[Compiled], stop: threading.Event | None) -> Compiled:
    """Wait for an image, until a stop comes. Raises KernelFailed."""
    while not wait((image,), _LOOK_S).done:
        if stop is not None and stop.is_set():
            raise session_ended()
    return image.result()


def symbol_among(symbols: Sequence[str], name: str) -> str:
    """The kernel of that name among an image's: C++ mangles names that are not extern "C". Raises KernelFailed."""
    if name in symbols:
        return name
    mangled = re.compile(rf"_Z(N[\w$]*?)?{len(name)}{re.escape(name)}(?!\d)")
    for symbol in symbols:
        if mangled.match(symbol):
            return symbol
    raise KernelFailed(State.COMPILE, f"the source has no kernel '{name}'")


def took_too_long(seconds: float) -> KernelFailed:
    """What is raised of a compiler that was ended then."""
    return KernelFailed(State.COMPILE, f"the compiler took longer than {seconds:g} s")


def session_ended() -> KernelFailed:
    """What is raised once a maker is closed."""
    return KernelFailed(State.COMPILE, ENDED)


def _error_first(message: str) -> str:
    lines = message.splitlines()
    error_line = next((line for line in lines if _ERROR.search(line)), "")
    return f"{error_line.strip()}\n{message}" if error_line and error_line != lines[0] else message


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
        others: Callable[[str], ImageMaker] | None = None,
        folder: Path | None = None,
        jobs: int | None = None,
        most_bytes: int = MAX_CACHE_BYTES,
    ) -> None:
        self.jobs = jobs or max(1, cores() - 1)
        self.compiled = 0  # images made rather than found
        self._maker = maker
        self._others = others  # makers of builds that name one, begun with the first of them
        self._begun: dict[str, ImageMaker] = {}
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
        """The image and the compiler's messages, from the cache or compiled now. Raises KernelFailed."""
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
        result = _kept_in(path)
        if result is None:
            result = self._compiled(build)
            self._keep(path, json.dumps(result.said).encode() + b"\n" + result.image)
        return result

    def key(self, build: Build) -> str:
        """What an image depends on, as a hexadecimal SHA-256."""
        return _key(self._maker_of(build).identity, build)

    def close(self) -> None:
        """End what compiles."""
        self._stop.set()
        self._pool.shutdown(wait=False, cancel_futures=True)
        for maker in (self._maker, *self._begun.values()):
            maker.close()
        self._pool.shutdown(wait=True)

    # --- inside -----------------------------------------------------------------------------------------------------

    def _maker_of(self, build: Build) -> ImageMaker:
        if not build.maker:
            return self._maker
        if self._others is None:
            raise KernelFailed(State.COMPILE, f"no {build.maker} is known for this device")
        with self._lock:
            if build.maker not in self._begun:
                self._begun[build.maker] = self._others(build.maker)
            return self._begun[build.maker]

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
            message = (ended.errors.strip() or ended.output.strip())[-MAX_MESSAGE:]
            raise KernelFailed(State.COMPILE, f"{program}: {ended.how}" + (f"\n{message}" if message else ""))
        if not ended.output.strip():
            raise KernelFailed(State.COMPILE, f"{program} printed no source")
        if len(ended.output.encode()) >= MOST_OUTPUT:
            raise KernelFailed(State.COMPILE, f"{program} printed more than {MOST_OUTPUT >> 20} MiB")
        return replace(build, text=build.text + ended.output, generator=())

    def _compiled(self, build: Build) -> Compiled:
        options = [*build.options, *(f"-I{include}" for include in build.include)]
        try:
            made = self._maker_of(build).make(build.text, options)
        except NotCompiled as refused:
            others = set(_TOO_LARGE.findall(refused.what))
            if not others or build.kernel in ("", *others):
                raise
            try:  # for the wanted kernel alone, which the assembler knows by this name where it is extern "C"
                made = self._maker.make(build.text, [*options, "-Xptxas", f"-e={build.kernel}"])
            except NotCompiled:
                raise refused from None
            message = f"left out, as it takes too much shared memory: {', '.join(sorted(others))}"
            made = made._replace(said=f"{message}\n{made.said}".strip())
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
    """What a compiler of this identity made of a build in some session; None if that is no longer kept."""
    folder = _cache_folder()
    kept = None if folder is None else _kept_in(folder / f"{_key(identity, build)}.image")
    return None if kept is None else kept.image


def _key(identity: str, build: Build) -> str:
    digest = hashlib.sha256()
    parts = (identity, build.text, *build.options, *map(str, build.include))
    for part in (*parts, build.kernel) if build.kernel else parts:
        digest.update(without_scratch(part).encode() + b"\0")
    for path, text in included(build):
        digest.update(without_scratch(str(path)).encode() + b"\0" + text + b"\0")
    return digest.hexdigest()


def _kept_in(path: Path) -> Compiled | None:
    """An image that is on disk; None if it is not."""
    try:
        message, _, image = path.read_bytes().partition(b"\n")
        compiled = Compiled(image, str(json.loads(message)))
        os.utime(path)  # used: it stays
    except (OSError, ValueError):
        return None
    return compiled


def _cache_folder() -> Path | None:
    """Where images are kept; None if nothing can be, which costs time and no session."""
    with suppress(WattridgeError):
        return private_folder("cubins")
    return None


class Target(Protocol):
    """A compiler's program and what it compiles for."""

    @property
    def identity(self) -> str:
        """Of both, with the version: another one gives other images."""
        ...

    @property
    def suffix(self) -> str:
        """Of the source that it is given: compilers recognise languages by it."""
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
        """Raises NotCompiled, KernelFailed, and WattridgeError if the program does not start."""
        folder = scratch_folder()
        try:
            source, image = folder / f"kernel{self.target.suffix}", folder / "image"
            source.write_text(text, encoding="utf-8")
            failed, message = self._call(self.target.call(source, image, options), str(folder))
            if failed or not image.is_file():
                raise NotCompiled(message)
            return Compiled(image.read_bytes(), message)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            running = list(self._running)
        for process in running:
            _end(process)

    def _call(self, command: Sequence[str], folder: str) -> tuple[bool, str]:
        """Whether the compiler failed, and its messages. Raises KernelFailed if it takes too long."""
        try:
            with self._lock:
                if self._closed:
                    raise session_ended()
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    env=python_environment(),
                    start_new_session=True,  # Ctrl+C is for the session: a compiler that it ends is no bad kernel
                )
                self._running.add(process)
        except OSError as error:
            raise WattridgeError(f"the compiler does not start: {error}", command[0]) from None
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
        message = output.decode("utf-8", "replace").replace(folder + os.sep, "").strip()
        return process.returncode != 0, message[:MAX_MESSAGE]


def _end(process: subprocess.Popen[bytes]) -> None:
    """A compiler and the programs that it calls."""
    if os.name == "posix":
        Family(process.pid, group=True).signal(signal.SIGKILL)
    else:
        process.kill()


WORTH_S: Final = 0.05  # what waits for longer has another process started
MOST_RESIDENT_BYTE: Final = 1 << 30  # a process that has grown beyond it is not asked again


class LibraryMaker:
    """Implements `ImageMaker` by processes that stay: one that starts at once, and others where images have to wait.

    A process that crashes, hangs or grows costs the image that it makes, and another takes its place.
    """

    def __init__(
        self, module: str, identity: str, options: Sequence[str] = (), *, compile_s: float = COMPILE_S
    ) -> None:
        """`module` has `compile_text`, as `compile_worker` requires; `options` come before those of each text."""
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
            reply, (image,) = process.exchange(message, [text.encode()], self._compile_s)
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
