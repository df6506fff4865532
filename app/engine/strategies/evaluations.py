"""The evaluated rows with their outcomes, and the moves from them to rows not yet evaluated."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt

from ..results.measurement import Depth
from ..space.search_space import SearchSpace
from .base import Batch, Outcome, Search, Strategy

Y = TypeVar("Y")
A = TypeVar("A")
R = TypeVar("R")
Step = Literal["best", "first", "ordered"]
Found = Generator[list[int], Sequence[Outcome], tuple[int, float]]  # a search that returns a row and its cost
MOST_TOGETHER = 4  # neighbours that a greedy descent measures before it decides


class Evaluations:
    """The memory of one search: row -> outcome, and its random generator. Requests only rows without an outcome.

    Evaluated are the rows of which nothing more can be asked; those that were only timed are kept beside them.
    """

    def __init__(self, space: SearchSpace, rng: np.random.Generator) -> None:
        self.space, self.rng = space, rng
        self._outcomes: dict[int, Outcome] = {}
        self._timed: dict[int, Outcome] = {}
        self._left: list[int] | None = None  # in random order; made once most rows are known

    def __len__(self) -> int:
        return len(self._outcomes)

    def __contains__(self, row: int) -> bool:
        return row in self._outcomes

    def __iter__(self) -> Iterator[int]:
        """The evaluated rows, in the order they were asked for."""
        return iter(self._outcomes)

    @property
    def exhausted(self) -> bool:
        """Every row of the space has been evaluated."""
        return len(self._outcomes) >= self.space.size

    def costs(self) -> Iterator[float]:
        """The cost of every evaluated row, in the order they were asked for."""
        return (outcome.cost for outcome in self._outcomes.values())

    def cost(self, row: int) -> float:
        """The cost of an evaluated row."""
        return self._outcomes[row].cost

    def outcome(self, row: int) -> Outcome:
        """The outcome of an evaluated row."""
        return self._outcomes[row]

    @property
    def timed(self) -> Mapping[int, Outcome]:
        """The rows that were only timed so far, with what is known of them."""
        return self._timed

    def learn(self, outcomes: Iterable[Outcome]) -> None:
        """Add outcomes of rows that were asked for otherwise than by `ask` and `time`."""
        for outcome in outcomes:
            if outcome.final:
                self._timed.pop(outcome.row, None)
                self._outcomes[outcome.row] = outcome
            else:
                self._timed[outcome.row] = outcome

    def ask(self, rows: Sequence[int], remark: str = "") -> Generator[list[int], Sequence[Outcome], list[float]]:
        """`costs = yield from known.ask(rows)`: measure the unknown ones, return the cost of each."""
        fresh = [int(row) for row in dict.fromkeys(rows) if row not in self._outcomes]
        if fresh:
            self.learn((yield Batch(fresh, remark=remark)))
        return [self._outcomes[int(row)].cost for row in rows]

    def time(
        self, rows: Sequence[int], remark: str = "", likely: Sequence[int] = ()
    ) -> Generator[list[int], Sequence[Outcome], list[Outcome]]:
        """`outcomes = yield from known.time(rows)`: time those of which nothing is known; the outcome of each.

        `likely` are rows that may come next.
        """
        fresh = [int(row) for row in dict.fromkeys(rows) if row not in self._outcomes and row not in self._timed]
        if fresh:
            self.learn((yield Batch(fresh, depth=Depth.TIME, remark=remark, likely=likely)))
        return [self._outcomes.get(int(row)) or self._timed[int(row)] for row in rows]

    # --- moves --------------------------------------------------------------------------------------------------------

    def draw(self, count: int) -> list[int]:
        """Up to `count` different rows drawn uniformly from those not evaluated; fewer only where fewer are left."""
        count = min(count, self.space.size - len(self))
        if 2 * len(self) <= self.space.size:
            results: dict[int, None] = {}
            while len(results) < count:
                for row in self.rng.integers(self.space.size, size=2 * (count - len(results)) + 2).tolist():
                    if row not in self._outcomes and len(results) < count:
                        results[row] = None
            return list(results)
        if self._left is None:
            self._left = [row for row in self.rng.permutation(self.space.size).tolist() if row not in self._outcomes]
        while self._left and self._left[-1] in self._outcomes:
            self._left.pop()
        return list(islice((row for row in reversed(self._left) if row not in self._outcomes), count))

    def best_of_random(self, count: int) -> Found:
        """The best of `count` new rows drawn at random, and its cost."""
        rows = self.draw(count)
        costs = yield from self.ask(rows)
        best = int(np.argmin(costs))
        return rows[best], costs[best]

    def unseen_neighbours(self, row: int) -> list[int]:
        """The neighbours of a row that are not evaluated, in random order."""
        return [near for near in self.rng.permutation(self.space.neighbours(row)).tolist() if near not in self]

    def fresh_near(self, row: int) -> int:
        """The row itself if it is new, else a random new neighbour, else any new row; the row if none is left."""
        if row not in self or self.exhausted:
            return row
        near = self.unseen_neighbours(row)
        return near[0] if near else self.draw(1)[0]

    def random_walk(self, row: int, steps: int) -> int:
        """The row reached by `steps` random steps to neighbours; the row itself if it has none."""
        for _ in range(steps):
            near = self.space.neighbours(row)
            if not len(near):
                break
            row = int(self.rng.choice(near))
        return row

    def descend(self, row: int, step: Step, together: int) -> Found:
        """Go to a better neighbour until there is none; the local minimum and its cost.

        `step` selects it: the 'best' of all; the 'first' better one, which is the best of those already known, else
        the first of the others in random order; or 'ordered', the first parameter by parameter as the user wrote them.
        So many neighbours are measured `together` before it decides.
        """
        (cost,) = yield from self.ask([row])
        while True:
            near = self.space.neighbours(row)
            order = near.tolist() if step == "ordered" else self.rng.permutation(near).tolist()
            seen = min((other for other in order if other in self), key=self.cost, default=row)
            if step != "best" and self.cost(seen) < cost:  # what is known costs nothing
                row, cost = seen, self.cost(seen)
                continue
            fresh = [other for other in order if other not in self]
            groups = [fresh[index : index + together] for index in range(0, len(fresh), together)]
            if step == "best":
                groups = [[seen, *fresh]]
            for group in groups:
                costs = yield from self.ask(group)
                best = int(np.argmin(costs))
                if costs[best] < cost:
                    row, cost = group[best], costs[best]
                    break
            else:
                return row, cost


def delegate(
    inner: Generator[Y, A, R], answer: Callable[[Y], Generator[list[int], Sequence[Outcome], A]]
) -> Generator[list[int], Sequence[Outcome], R]:
    """Run a generator to its end and return its result; `yield from answer(request)` gives what it is sent."""
    try:
        request = next(inner)
        while True:
            request = inner.send((yield from answer(request)))
    except StopIteration as end:
        result: R = end.value
        return result
    finally:
        inner.close()


def abreast(searches: Sequence[Search]) -> Search:
    """Several searches at the same time: a batch holds what all of them ask for. It ends when all have."""
    asked: dict[int, list[int]] = {}
    outcomes: dict[int, Outcome] = {}
    going = dict(enumerate(searches))
    try:
        while going:
            for number, search in list(going.items()):
                try:
                    rows = asked.get(number)
                    asked[number] = next(search) if rows is None else search.send([outcomes[row] for row in rows])
                except StopIteration:
                    del going[number]
            batch = list(dict.fromkeys(row for number in going for row in asked[number]))
            outcomes = {outcome.row: outcome for outcome in (yield batch)} if batch else {}
    finally:
        for search in searches:
            search.close()


def search_within(
    rows: npt.NDArray[np.int64], chosen: Strategy, evaluations: Evaluations, batch: int, remark: str
) -> Search:
    """Another strategy over some rows (ascending). What is known already is answered without measuring."""
    part = evaluations.space if len(rows) == evaluations.space.size else evaluations.space.subset(rows)

    def answer(asked: list[int]) -> Generator[list[int], Sequence[Outcome], list[Outcome]]:
        nonlocal remark
        batch_asked = Batch.of(asked)
        remark = f"{remark} {batch_asked.remark}".strip()
        outer_rows = [int(rows[row]) for row in asked]
        if batch_asked.depth is Depth.TIME:
            fresh = any(row not in evaluations and row not in evaluations.timed for row in outer_rows)
            outcomes = yield from evaluations.time(outer_rows, remark)
        else:
            fresh = any(row not in evaluations for row in outer_rows)
            yield from evaluations.ask(outer_rows, remark)
            outcomes = [evaluations.outcome(row) for row in outer_rows]
        remark = "" if fresh else remark  # goes with the next batch that is measured
        return [dataclasses.replace(outcome, row=row) for outcome, row in zip(outcomes, asked, strict=True)]

    yield from delegate(chosen.search(part, evaluations.rng, batch, chosen.Options()), answer)
