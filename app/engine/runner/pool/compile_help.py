"""`CompileHelp`: which rows of a session the compile workers of its pool are asked for, and where their images go.

A board compiles the rows of a request from the first one on; compile workers begin with the last, so that the two meet
somewhere, and whoever is slower has done less. Then come the requests that a board has next, in their order, and what
the session expects. The first row that a machine makes for a board is one that the board compiles as well: it is
compared there, before any other is used (`given_images`).

Nothing waits for an image. A compile worker that dies, hangs or sends what is no image helps no more, and that is all.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, Final

from ....sensors.remote.fields import Garbled, object_of, text_of
from ..kernels.given_images import GivenImage
from ..kernels.image_target import ImageTarget
from .compilers import CompileRequest, PoolCompiler, compile_request_line, given_line, parse_image
from .messages import Answer, SessionWork, UnknownSession, parse_answer
from .pool import Pool, Said
from .status import BoardStatus, Doing

MOST_KEPT: Final = 256 << 20  # bytes of images that were made before a board has their rows
MOST_EXPECTED: Final = 4096  # rows
AGAIN_S: Final = 5.0  # until a worker that has let go of the session is asked again
_MOST_MAKERS: Final = 64  # that a board names


@dataclass(slots=True)
class _Helper:
    """A compile worker."""

    compiler: PoolCompiler
    opening: int = 0  # the request that gets it ready
    ready: bool = False
    refused: str = ""
    again_s: float = math.inf
    requests: dict[int, int] = field(default_factory=dict)  # numbers -> rows that it makes
    made: int = 0  # images

    @property
    def status(self) -> BoardStatus:
        """What it does, as boards say it."""
        doing = Doing.COMPILING if self.requests else Doing.WAITING if self.ready else Doing.PREPARING
        if self.refused:
            doing = Doing.REFUSED
        each = self.compiler
        return BoardStatus(each.key, each.label, each.host, doing, self.refused, measured=self.made, compiles=True)

    @property
    def room(self) -> int:
        """How many rows more it can be asked for: one beyond those that it makes at once."""
        return self.compiler.jobs + 1 - len(self.requests) if self.ready and not self.refused else 0


@dataclass(slots=True)
class _Wanted:
    """Rows that a board has, or has next."""

    board: str
    rows: deque[int]
    open: Collection[int]  # of them, those that are not known yet


class CompileHelp:
    """Used by the thread of the session."""

    def __init__(
        self, pool: Pool, work: SessionWork, number: Callable[[], int], on_remark: Callable[[str], None]
    ) -> None:
        """`number` gives the next request's."""
        self._pool, self._work, self._number, self._remark = pool, work, number, on_remark
        self._target: ImageTarget | None = None  # of the boards that take images
        self._boards: set[str] = set()
        self._helpers: dict[str, _Helper] = {}
        self._sent: dict[int, str] = {}  # numbers -> helpers
        self._begun: OrderedDict[int, _Wanted] = OrderedDict()  # by the boards' requests
        self._coming: OrderedDict[int, _Wanted] = OrderedDict()
        self._waiting: Sequence[Collection[int]] = ()
        self._expected: deque[int] = deque()
        self._making: set[int] = set()  # rows
        self._made: OrderedDict[int, GivenImage] = OrderedDict()
        self._made_bytes = 0
        self._has: set[tuple[str, int]] = set()  # boards and rows whose images they were sent
        self._introduced: set[tuple[str, str]] = set()  # machines and boards
        self._refused: set[tuple[str, str]] = set()  # machines and boards that do not use their images
        self._used: dict[str, int] = {}  # images, by the boards that used them
        self._said: set[str] = set()

    @property
    def used(self) -> int:
        """Images that boards used in place of compiling."""
        return sum(self._used.values())

    @property
    def status(self) -> tuple[BoardStatus, ...]:
        """What each compile worker does."""
        return tuple(helper.status for helper in self._helpers.values())

    # --- who is there -------------------------------------------------------------------------------------------------

    def join(self, compiler: PoolCompiler) -> None:
        """A compile worker is there, from the start."""
        before = self._helpers.get(compiler.key)
        if before is None or not before.refused:
            helper = self._helpers[compiler.key] = _Helper(compiler)
            self._open(helper)

    def leave(self, key: str) -> bool:
        """That one left; False where it is no compile worker."""
        helper = self._helpers.get(key)
        if helper is None:
            return False
        for number in list(helper.requests):
            self._forget(number)
        if not helper.refused:
            del self._helpers[key]
        return True

    def board(self, board: str, target: ImageTarget | None) -> None:
        """A board is ready, and its images are for this. All that are helped have the first one's compiler."""
        self._has = {(key, row) for key, row in self._has if key != board}
        self._introduced = {(maker, key) for maker, key in self._introduced if key != board}
        if target is None:
            return
        if self._target is None:
            self._target = target
            for helper in self._helpers.values():
                self._open(helper)
        if target == self._target:
            self._boards.add(board)

    # --- what is wanted -----------------------------------------------------------------------------------------------

    def queue(self, waiting: Sequence[Collection[int]]) -> None:
        """Rows that no board has yet, in their order, as they are whenever somebody has room."""
        self._waiting = waiting

    def expect(self, rows: Iterable[int]) -> None:
        """These may come after all others, the likeliest first; in place of what was expected before."""
        self._expected = deque(islice(rows, MOST_EXPECTED))

    def want(self, number: int, board: str, rows: Sequence[int], still: Collection[int]) -> None:
        """A board was sent these rows in that request; `still` are those of them that are not known, as it is then."""
        if board not in self._boards or not self._helpers:
            return
        self._coming[number] = _Wanted(board, deque(rows), still)
        for row in rows:
            if row in self._made:
                self._give(board, row)

    def begun(self, number: int) -> None:
        """The board works on that request now."""
        if number in self._coming:
            self._begun[number] = self._coming.pop(number)

    def over(self, number: int) -> None:
        """That request is."""
        self._coming.pop(number, None)
        self._begun.pop(number, None)

    def turn(self) -> None:
        """Ask those that have room for the next rows."""
        for helper in self._helpers.values():
            if helper.again_s <= time.monotonic():
                helper.again_s = math.inf
                self._open(helper)
            while helper.room > 0 and (row := self._next(helper.compiler.host)) is not None:
                number = self._send(helper, CompileRequest("compile", self._work.session, self._number(), row))
                helper.requests[number] = row
                self._making.add(row)

    # --- what is heard ------------------------------------------------------------------------------------------------

    def hears(self, number: int) -> bool:
        """Whether a request of that number is one of these."""
        return number in self._sent

    def take(self, said: Said) -> None:
        """A line that a compile worker said."""
        helper = self._helpers.get(self._sent[said.number])
        if helper is None or helper.compiler.key != said.board:
            return
        try:
            answer = parse_answer(said.line, helper.compiler.label)
            if answer.number != said.number:
                raise Garbled("an answer to something else")
            self._take_answer(helper, said.number, answer)
        except Garbled as error:
            self._forget(said.number)
            self._refuse(helper, error.what)

    def unanswered(self, number: int) -> None:
        """That request will not be answered any more."""
        helper = self._helpers.get(self._sent[number])
        opening = helper is not None and helper.opening == number
        self._forget(number)
        if helper is not None and opening:
            helper.again_s = time.monotonic() + AGAIN_S

    def reported(self, board: str, label: str, answer: Mapping[str, Any]) -> None:
        """What a board says of images with the rows that it measured. Raises Garbled."""
        if "images" not in answer:
            return
        document = object_of(answer["images"])
        used = document.get("used")
        if isinstance(used, int) and 0 <= used < 1 << 40:
            self._used[board] = used
        for maker, why in object_of(document.get("refused"), _MOST_MAKERS).items():
            self._refused.add((maker, board))
            self._remark_once(f"images made on {text_of(maker, 253)} are not used by {label}: {text_of(why)}")

    def close(self) -> None:
        """The session needs no more images."""
        for number in list(self._sent):
            self._pool.cancel(number)
        self._sent.clear()
        for helper in self._helpers.values():
            if helper.ready:
                request = CompileRequest("close", self._work.session, self._number())
                self._pool.send(helper.compiler.key, request.number, compile_request_line(request))

    # --- inside -------------------------------------------------------------------------------------------------------

    def _open(self, helper: _Helper) -> None:
        if self._target is None or helper.refused:
            return
        helper.ready = False
        request = CompileRequest("open", self._work.session, self._number(), work=self._work, target=self._target)
        helper.opening = self._send(helper, request)

    def _send(self, helper: _Helper, request: CompileRequest) -> int:
        self._sent[request.number] = helper.compiler.key
        self._pool.send(helper.compiler.key, request.number, compile_request_line(request))
        return request.number

    def _next(self, maker: str) -> int | None:
        """The row that is worth most now; None where nothing is to be made."""
        for queue in (self._begun, self._coming):
            for number in list(queue):
                wanted = queue[number]
                if (maker, wanted.board) in self._refused:
                    continue
                row = self._of(wanted, last=queue is self._begun and (maker, wanted.board) in self._introduced)
                if row is not None:
                    self._introduced.add((maker, wanted.board))
                    queue.move_to_end(number)  # the boards take turns
                    return row
        for row in chain(*self._waiting):
            if row not in self._made and row not in self._making:
                return row
        while self._expected:
            row = self._expected.popleft()
            if row not in self._made and row not in self._making:
                return row
        return None

    def _of(self, wanted: _Wanted, *, last: bool) -> int | None:
        """The first or last row of a request that nobody has made, and nobody makes."""
        while wanted.rows:
            row = wanted.rows.pop() if last else wanted.rows.popleft()
            if row in wanted.open and row not in self._made and row not in self._making:
                return row
        return None

    def _take_answer(self, helper: _Helper, number: int, answer: Answer) -> None:
        """Raises Garbled."""
        if answer.begun:
            return
        opening, row = helper.opening == number, helper.requests.get(number)
        self._forget(number)
        if answer.error is not None:
            if isinstance(answer.error, UnknownSession):
                if helper.ready:
                    self._open(helper)
            elif opening:
                self._refuse(helper, answer.error.what)
            return  # a text that does not compile there is compiled beside the board, which says why
        assert answer.answer is not None, "parts come from boards alone"
        if opening:
            helper.ready = True
        elif row is not None:
            self._keep(row, parse_image(answer.answer, helper.compiler.host))
            helper.made += 1
            for each in (*self._begun.values(), *self._coming.values()):
                if row in each.open:
                    self._give(each.board, row)

    def _keep(self, row: int, image: GivenImage) -> None:
        self._made[row] = image
        self._made_bytes += len(image.image)
        while self._made_bytes > MOST_KEPT:
            _, oldest = self._made.popitem(last=False)
            self._made_bytes -= len(oldest.image)

    def _give(self, board: str, row: int) -> None:
        given = self._made.get(row)
        if given is None or (board, row) in self._has or (given.maker, board) in self._refused:
            return
        self._has.add((board, row))
        self._introduced.add((given.maker, board))
        self._pool.tell(board, given_line(self._work.session, given))

    def _forget(self, number: int) -> None:
        key = self._sent.pop(number, None)
        helper = self._helpers.get(key) if key is not None else None
        if helper is not None and (row := helper.requests.pop(number, None)) is not None:
            self._making.discard(row)

    def _refuse(self, helper: _Helper, why: str) -> None:
        helper.refused = why
        for number in list(helper.requests):
            self._pool.cancel(number)
            self._forget(number)
        self._remark_once(f"{helper.compiler.label} makes no images for this session: {why}")

    def _remark_once(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self._remark(text)
