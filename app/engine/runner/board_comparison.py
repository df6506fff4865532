"""`BoardComparison`: which rows the boards of a session measure so that each can be compared with the reference board.

It measures nothing: it says which board is to measure which row, hears what came of it, and fits the offsets of a board
(`metering/board_offsets`) as soon as all is known that it was asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from ...sensors.event_reasons import LIMITING
from ..measurement import Depth, Measurement, State
from ..metering.board_offsets import BoardOffset, fit_offsets

SHARED: Final = 5  # configurations that every board begins with; of 0.5 % scatter each, ratios are known to 0.9 %
TRIES: Final = 3  # so many times a board measures others, where too few of them worked without a limit
TOGETHER: Final = 32  # among so many boards one more waits for others to be compared with it: a fit takes its time

Restate = Callable[[Sequence[Measurement]], Sequence[Measurement]]


class BoardComparison:
    """Of one session. Boards are named by their keys."""

    def __init__(self, size: int, reference: str = "") -> None:
        """`size` is that of the space. The first board that there is becomes the reference where none is given."""
        self._size = size
        self.reference = reference
        self.offsets: dict[str, BoardOffset] = {}  # of every board that is compared with the reference
        self.numbers: dict[str, int] = {}  # of the boards, the reference first and then as they joined
        self._shared: list[int] = []  # rows
        self._awaited: dict[str, set[int]] = {}  # of a board that was asked: the rows that it has not reported yet
        self._tries: Counter[str] = Counter()  # how often a board was asked for other rows
        self._seen: list[Measurement] = []  # as their boards reported them
        self._left_out: set[int] = set()  # rows that say nothing of how boards differ
        self._boards_of: dict[int, list[str]] = {}  # that measured a row in full,
        self._showing: dict[int, set[str]] = {}  # and of which it shows what they draw: it worked, and no limit acted
        self._measured: Counter[str] = Counter()  # how much by each board

    def meet(self, keys: Sequence[str]) -> None:
        """Boards that can be used now; the first becomes the reference where that left before it reported anything."""
        if keys and self.reference not in keys and not self._measured[self.reference]:
            self.reference = keys[0]
            self.numbers.clear()
        for key in (self.reference, *keys) if keys else ():
            self.numbers.setdefault(key, len(self.numbers) + 1)
        if not self.offsets and keys:
            self.fit()

    def share(self, rows: Sequence[int]) -> None:
        """The first of these rows are those that every board measures, unless there are enough by now."""
        fresh = [int(row) for row in rows if row not in self._boards_of and row not in self._shared]
        self._shared += fresh[: max(0, SHARED - len(self._shared))]

    def is_shared(self, row: int) -> bool:
        """Whether every board measures it."""
        return row in self._shared

    def is_awaited(self, row: int) -> bool:
        """Whether the reference board is to report it."""
        return row in self._awaited.get(self.reference, ())

    def is_measured(self, row: int) -> bool:
        """Whether some board reported it."""
        return row in self._boards_of

    def wanted(self, keys: Sequence[str], *, draw: bool = False) -> list[tuple[str, int]]:
        """Which of these boards is to measure which rows, beside all that it was asked for before.

        Where too few of a board's rows showed anything, others that a compared board has measured; rows that nobody
        asked for only with `draw`.
        """
        self.meet(keys)
        asked: list[tuple[str, int]] = []
        for key in keys:
            if key in self.offsets and key != self.reference:
                continue
            awaited = self._awaited.setdefault(key, set())
            rows = [r for r in self._shared if r not in awaited and key not in self._boards_of.get(r, ())]
            if not rows and self._needs_others(key):
                rows, drawn = self._others(key, draw)
                asked += self._ask(self.reference, rows) if drawn and self.reference in keys else []
            asked += self._ask(key, rows)
        return asked

    def forget_but(self, keys: Sequence[str]) -> None:
        """Nothing is awaited any more of boards that are none of these."""
        for key in self._awaited.keys() - set(keys):
            del self._awaited[key]

    def note(self, measured: Measurement) -> bool:
        """What a board reported; whether that tells more of how boards compare."""
        if measured.depth is not Depth.ENERGY:
            return False
        self._seen.append(measured)
        self._boards_of.setdefault(measured.row, []).append(measured.board)
        self._measured[measured.board] += 1
        if measured.state is State.OK and not measured.event_reasons & LIMITING:
            self._showing.setdefault(measured.row, set()).add(measured.board)
        awaited = self._awaited.get(measured.board, set())
        if measured.row not in awaited:
            return False
        awaited.discard(measured.row)
        return self.compare(most=len(self.offsets) // TOGETHER if any(self._awaited.values()) else 0)

    def compare(self, *, most: int = 0) -> bool:
        """Fit, where there are more than so many boards to be compared of which all is known; whether it was done."""
        complete = sum(key not in self.offsets and self._is_complete(key) for key in self._awaited)
        if complete > most:
            self.fit()
        return complete > most

    def fit(self) -> None:
        """The offsets by all that was reported."""
        found = fit_offsets([each for each in self._seen if each.row not in self._left_out], self.reference)
        for board in (self.reference, *(each.board for each in self._seen)):
            self.numbers.setdefault(board, len(self.numbers) + 1)
        self.offsets = {board: found[board] for board in self.numbers if board in found}

    def leave_out(self, rows: Sequence[int]) -> None:
        """These rows are measured again since they looked best: that was partly luck, which a second look has not."""
        self._left_out.update(map(int, rows))

    def restated(self, own: Sequence[Measurement], restate: Restate) -> None:
        """All that was reported is stated again; `own` holds besides what boards reported that are no longer here."""
        self._seen = list(restate(self._seen))
        noted = {(each.row, each.board) for each in self._seen}
        for each in own:
            if (each.row, each.board) not in noted:
                self.note(each)
        self.fit()

    @property
    def settled(self) -> Mapping[int, Measurement]:
        """What the reference board reported last of the rows that worked there."""
        return {each.row: each for each in self._seen if each.board == self.reference and each.state is State.OK}

    def second_looks(self, rows: Sequence[int], keys: Sequence[str]) -> list[tuple[str, int]]:
        """Which of these boards looks again at each row: at a shared one every board that has measured it.

        The reference looks at all that it has not measured. The others are shared out, first to boards that have not
        measured them.
        """
        together = [(key, row) for row in rows if row in self._shared for key in keys if key in self._boards_of[row]]
        alone = [row for row in rows if row not in {each for _, each in together}]
        unseen_by = {row: [key for key in keys if key not in self._boards_of[row]] for row in alone}
        chosen: dict[int, str] = {}
        load = Counter(key for key, _ in together)
        for row in sorted(alone, key=lambda row: (self.reference not in unseen_by[row], not unseen_by[row])):
            others = [self.reference] if self.reference in unseen_by[row] else unseen_by[row] or keys
            chosen[row] = min(others, key=lambda key: (load[key], self._measured[key]), default="")
            load[chosen[row]] += 1
        return [*together, *((chosen[row], row) for row in alone)]

    # --- inside -----------------------------------------------------------------------------------------------------

    def _ask(self, key: str, rows: Sequence[int]) -> list[tuple[str, int]]:
        missing = [row for row in dict.fromkeys(rows) if key not in self._boards_of.get(row, ())]
        self._awaited.setdefault(key, set()).update(missing)
        return [(key, row) for row in missing]

    def _is_complete(self, key: str) -> bool:
        """Whether the board, and the reference, reported all that they were asked for."""
        return not self._awaited.get(key) and not self._awaited.get(self.reference)

    def _needs_others(self, key: str) -> bool:
        """Whether too few of the rows that it was asked for worked."""
        enough = len(self._shared) >= min(SHARED, self._size)
        return enough and key not in self.offsets and self._is_complete(key) and self._tries[key] < TRIES

    def _others(self, key: str, draw: bool) -> tuple[list[int], bool]:
        """Other rows to compare a board by, and whether they were drawn; none where that has to wait."""
        known = [row for row, boards in self._showing.items() if not boards.isdisjoint(self.offsets)]
        missing = SHARED - sum(key in self._showing[row] for row in known)
        spare = sorted(row for row in known if key not in self._boards_of[row])
        rng = np.random.default_rng(self._tries[key])
        if missing <= len(spare):
            self._tries[key] += 1
            return [int(row) for row in rng.permutation(spare)[: max(0, missing)]], False
        if not draw:
            return [], False
        self._tries[key] += 1
        return [int(row) for row in rng.integers(self._size, size=missing)], True
