"""`Measuring`: what the runner of a board measures without a break, whichever requests the rows came with.

The next request's rows are handed to the runner while it is at those before: they compile and load meanwhile, and the
board does not rest between two requests. Each row is reported under the number of its own request.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from ...measurement import Depth, Measurement
from ...runner.base import Continues, Runner, Times
from ...runner.pool.messages import Request, begun_line, measured_line

Say = Callable[[bytes], None]


@dataclass(slots=True)
class Coming:
    """A request, and where what comes of it is said."""

    request: Request
    say: Say
    left: list[int]  # of its rows
    found: list[Measurement] = field(default_factory=list)


class Measuring:
    """Of one depth. It goes on with whatever request drives it: one thread at a time."""

    def __init__(
        self, runner: Runner, first: Coming, stop: threading.Event, following: Callable[[], Sequence[Coming]]
    ) -> None:
        """`following` gives requests of the same kind that wait for their turn; the runner hears of each once.

        `stop` ends all of it. Raises TypeError where the runner cannot time rows, and is asked to.
        """
        self.depth, self.stop = first.request.depth, stop
        self._following = following
        self._requests = {first.request.number: first}
        self._measuring = self._started(runner, first)

    def _started(self, runner: Runner, first: Coming) -> Iterator[Measurement]:
        rows = list(first.left)
        if isinstance(runner, Continues):
            fresh = [rows]
            return runner.go_on(lambda: fresh.pop() if fresh else self._more(), self.depth, self.stop)
        if self.depth is Depth.ENERGY:
            return runner.measure(rows, self.stop)
        if not isinstance(runner, Times):
            raise TypeError("it cannot time rows")
        return runner.time(rows, self.stop)

    def has(self, number: int) -> bool:
        """Whether the rows of that request were handed to the runner."""
        return number in self._requests

    def measure(self, number: int) -> list[Measurement]:
        """Go on until all of that request is known, or it was stopped: what came of it."""
        own = self._requests[number]
        while own.left or not any(each.left for each in self._requests.values()):
            measured = next(self._measuring, None)
            if measured is None:
                break
            self._take(measured)
        del self._requests[number]
        return own.found

    @property
    def is_over(self) -> bool:
        """Whether nobody will ask for anything of it any more."""
        return not self._requests

    def close(self) -> None:
        """Release the board."""
        close = getattr(self._measuring, "close", None)
        if close is not None:
            close()

    def _more(self) -> list[int]:
        rows: list[int] = []
        for each in self._following():
            self._requests[each.request.number] = each
            rows += each.left
            each.say(begun_line(each.request.number))  # a worker that dies may do so of these
        return rows

    def _take(self, measured: Measurement) -> None:
        for number, each in self._requests.items():
            if measured.row in each.left:
                each.left.remove(measured.row)
                each.found.append(measured)
                each.say(measured_line(number, measured))
                return
