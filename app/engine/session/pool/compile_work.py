"""`CompileWork`: a machine of a pool that only compiles, and what is asked of it, whatever carries the requests.

It prepares the same kernel as a worker with a board does, from the same files, and compiles it with the same compiler
or not at all. Sessions and compilers of several clients stand side by side; nothing that it makes runs here.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from ....errors import InputError, WattridgeError
from ....sensors.errors import NotSupported
from ....sensors.remote.fields import Garbled, line_of
from ...children.scratch import scratch_folder
from ...runner.cuda.compiler import cuda_compiler
from ...runner.kernels.compiler import Compiler
from ...runner.kernels.process import KernelFailed
from ...runner.pool.compilers import (
    MOST_IMAGE,
    CompileRequest,
    PoolCompiler,
    compiler_message,
    image_document,
    parse_compile_request,
)
from ...runner.pool.messages import UnknownSession, answer_line, begun_line, error_line
from ...specification.programs import programs_of
from ...workloads.source_kernel import KernelRefused, SourceKernel
from ..load import load_specification

IDLE_S: Final = 120.0  # without a request, after which a session is let go
SHORT_S: Final = 5.0  # the same, where there are as many as there may be: a client may end without a word
MOST_SESSIONS: Final = 8

Say = Callable[[bytes], None]


class _Session:
    """A session for whose boards images are made."""

    def __init__(self, request: CompileRequest, folder: Path) -> None:
        """Raises WattridgeError where they cannot be made here."""
        work, target = request.work, request.target
        assert work is not None, "the request was checked"
        assert target is not None, "the request was checked"
        self.folder = folder
        self.space = work.space
        spec = load_specification(work.bundle.unpack(folder))
        if spec.kernel is None or spec.kernel.language != "CUDA" or programs_of(spec):
            raise WattridgeError("only CUDA kernels from source are compiled for a pool", spec.name, "")
        self.kernel = SourceKernel.of(spec, target.limits, target.shared_opt_in)
        self.compiler: Compiler = cuda_compiler(target.capability, jobs=1)
        self.compiler.root = folder
        self.asked_at = time.monotonic()
        if self.compiler.identity != target.compiler:
            self.compiler.close()
            what = f"it has {self.compiler.identity}, and the boards have {target.compiler}"
            raise WattridgeError(what, spec.name, "install the same compiler")

    def close(self) -> None:
        self.compiler.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class CompileWork:
    """Answers requests, on as many threads as it compiles images at once."""

    def __init__(self, *, host: str, key: str, jobs: int) -> None:
        self.compiler = PoolCompiler(key, host, jobs)
        self._sessions: dict[str, _Session] = {}
        self._lock = threading.Lock()
        self._opening = threading.Lock()

    @property
    def key(self) -> str:
        return self.compiler.key

    @property
    def label(self) -> str:
        return self.compiler.label

    @property
    def announcement(self) -> str:
        """How it is announced to the pool, as one line."""
        return line_of(compiler_message(self.compiler)).decode("ascii")

    def answer(self, line: bytes, say: Say, client: str = "") -> bytes:
        """The answer to a request."""
        number = 0
        try:
            request = parse_compile_request(line)
            number = request.number
            say(begun_line(number))
            return answer_line(number, self._answered(request))
        except (WattridgeError, OSError) as error:
            return error_line(number, error)

    def end_until(self, session: str, number: int) -> None:
        """Nothing is to end early: an image takes a moment, and stays on disk for the next session."""

    def take_image(self, line: bytes) -> None:
        """Images are for boards."""

    def abandon(self) -> None:
        """Nobody waits for what is compiled now; that ends by itself."""

    def let_go_where_idle(self) -> None:
        """End sessions that have asked for nothing for long: whoever has one opens it again."""
        self._let_go(IDLE_S)

    def _let_go(self, idle_s: float) -> None:
        with self._lock:
            idle = [name for name, each in self._sessions.items() if time.monotonic() - each.asked_at > idle_s]
            gone = [self._sessions.pop(name) for name in idle]
        for session in gone:
            session.close()

    def close(self) -> None:
        with self._lock:
            gone = list(self._sessions.values())
            self._sessions.clear()
        for session in gone:
            session.close()

    # --- inside -------------------------------------------------------------------------------------------------------

    def _answered(self, request: CompileRequest) -> dict[str, Any]:
        if request.do == "open":
            with self._opening:
                self._open(request)
            return {}
        if request.do == "close":
            with self._lock:
                session = self._sessions.pop(request.session, None)
            if session is not None:
                session.close()
            return {}
        return self._image(request)

    def _open(self, request: CompileRequest) -> None:
        with self._lock:
            if request.session in self._sessions:
                return
        self._let_go(IDLE_S if len(self._sessions) < MOST_SESSIONS else SHORT_S)
        if len(self._sessions) >= MOST_SESSIONS:
            raise WattridgeError(f"it compiles for {MOST_SESSIONS} sessions already", self.label, "wait for one to end")
        folder = scratch_folder()
        try:
            opened = _Session(request, folder)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        with self._lock:
            self._sessions[request.session] = opened

    def _image(self, request: CompileRequest) -> dict[str, Any]:
        with self._lock:
            session = self._sessions.get(request.session)
            if session is None:
                raise UnknownSession("it does not know the session", self.label)
            session.asked_at = time.monotonic()
        if request.row >= session.space.size:
            raise Garbled("a row that the space does not have")
        try:
            build = session.kernel.prepare(session.space.configuration(request.row)).build
            made = session.compiler.compile(build)
        except (KernelRefused, InputError, KernelFailed) as refused:
            raise NotSupported(str(refused), self.label) from None
        if len(made.image) > MOST_IMAGE:
            raise NotSupported("the image is too large to travel", self.label)
        return image_document(session.compiler.key(build), made.image, made.said)
