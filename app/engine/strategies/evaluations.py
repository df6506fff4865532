"""The evaluated rows with their outcomes, and the moves from them to rows not yet evaluated."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt

from ..results.measurement import Depth
from ..space.search_space import Neighbourhood, SearchSpace
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
        """The cost of an evaluated row.

        Parameters
        ----------
        row : int
            A row that was evaluated; one that was only timed is not.

        Returns
        -------
        float
            Smaller is better; inf if the row failed or breaks a limit.
        """
        return self._outcomes[row].cost

    def outcome(self, row: int) -> Outcome:
        """The outcome of an evaluated row.

        Parameters
        ----------
        row : int
            A row that was evaluated; one that was only timed is in `timed`.

        Returns
        -------
        Outcome
        """
        return self._outcomes[row]

    @property
    def timed(self) -> Mapping[int, Outcome]:
        """The rows that were only timed so far, with what is known of them."""
        return self._timed

    def learn(self, outcomes: Iterable[Outcome]) -> None:
        """Add outcomes of rows that were asked for otherwise than by `ask` and `time`.

        Parameters
        ----------
        outcomes : iterable of Outcome
            Final ones count as evaluated, the others as only timed.
        """
        for outcome in outcomes:
            if outcome.final:
                self._timed.pop(outcome.row, None)
                self._outcomes[outcome.row] = outcome
            else:
                self._timed[outcome.row] = outcome

    def ask(self, rows: Sequence[int], remark: str = "") -> Generator[list[int], Sequence[Outcome], list[float]]:
        """Measure rows that are not evaluated yet: `costs = yield from known.ask(rows)`.

        Parameters
        ----------
        rows : sequence of int
            Any rows; those already evaluated are not measured again.
        remark : str, optional
            A remark for the user, which goes with the batch.

        Yields
        ------
        Batch
            The rows to measure, all in one; nothing if there are none.

        Receives
        --------
        sequence of Outcome
            The outcomes of these rows, in the same order.

        Returns
        -------
        list of float
            The cost of each of `rows`.
        """
        fresh = [int(row) for row in dict.fromkeys(rows) if row not in self._outcomes]
        if fresh:
            self.learn((yield Batch(fresh, remark=remark)))
        return [self._outcomes[int(row)].cost for row in rows]

    def time(
        self, rows: Sequence[int], remark: str = "", likely: Sequence[int] = ()
    ) -> Generator[list[int], Sequence[Outcome], list[Outcome]]:
        """Time rows of which nothing is known yet: `outcomes = yield from known.time(rows)`.

        Parameters
        ----------
        rows : sequence of int
            Any rows; those already timed or evaluated are not timed again.
        remark : str, optional
            A remark for the user, which goes with the batch.
        likely : sequence of int, optional
            Rows that may come next, the likeliest first.

        Yields
        ------
        Batch
            The rows to time, all in one; nothing if there are none.

        Receives
        --------
        sequence of Outcome
            The outcomes of these rows, in the same order; they may be deeper than the time.

        Returns
        -------
        list of Outcome
            The outcome of each of `rows`, that of its evaluation where it has been evaluated.
        """
        fresh = [int(row) for row in dict.fromkeys(rows) if row not in self._outcomes and row not in self._timed]
        if fresh:
            self.learn((yield Batch(fresh, depth=Depth.TIME, remark=remark, likely=likely)))
        return [self._outcomes.get(int(row)) or self._timed[int(row)] for row in rows]

    # --- moves --------------------------------------------------------------------------------------------------------

    def draw(self, count: int) -> list[int]:
        """Draw different rows uniformly from those not evaluated.

        Parameters
        ----------
        count : int
            How many rows to draw.

        Returns
        -------
        list of int
            `count` rows; fewer only where fewer are left.
        """
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
        """Measure new rows drawn at random, and return the best of them.

        Parameters
        ----------
        count : int
            How many rows to draw, at least 1. One row of the space at least must be left.

        Yields
        ------
        Batch
            These rows.

        Returns
        -------
        row : int
            The best of them.
        cost : float
            Its cost.
        """
        rows = self.draw(count)
        costs = yield from self.ask(rows)
        best = int(np.argmin(costs))
        return rows[best], costs[best]

    def unseen_neighbours(self, row: int) -> list[int]:
        """The neighbours of a row that are not evaluated.

        Parameters
        ----------
        row : int
            Any row of the space.

        Returns
        -------
        list of int
            In random order.
        """
        return [near for near in self.rng.permutation(self.space.neighbours(row)).tolist() if near not in self]

    def fresh_near(self, row: int) -> int:
        """A row that is not evaluated, as near to a row as possible.

        Parameters
        ----------
        row : int
            Any row of the space.

        Returns
        -------
        int
            The row itself if it is new, else a random new neighbour, else any new row; the row if none is left.
        """
        if row not in self or self.exhausted:
            return row
        near = self.unseen_neighbours(row)
        return near[0] if near else self.draw(1)[0]

    def random_walk(self, row: int, steps: int) -> int:
        """Walk from a row by random steps to neighbours.

        Parameters
        ----------
        row : int
            Where the walk begins.
        steps : int
            Its length.

        Returns
        -------
        int
            The row reached; the row itself if it has no neighbours.
        """
        for _ in range(steps):
            near = self.space.neighbours(row)
            if not len(near):
                break
            row = int(self.rng.choice(near))
        return row

    def descend(self, row: int, step: Step, together: int, kind: Neighbourhood = "hamming") -> Found:
        """Go to a better neighbour until there is none.

        Parameters
        ----------
        row : int
            Where the descent begins.
        step : {'best', 'first', 'ordered'}
            Which neighbour is next: the 'best' of all; the 'first' better one, which is the best of those already
            known, else the first of the others in random order; or 'ordered', the first parameter by parameter as the
            user wrote them.
        together : int
            How many neighbours are measured before it decides; at the step 'best', all are.
        kind : {'hamming', 'adjacent', 'strictly_adjacent'}, optional
            Which rows are neighbours; see `SearchSpace.neighbours_of`.

        Yields
        ------
        Batch
            The rows to measure.

        Returns
        -------
        row : int
            The local minimum.
        cost : float
            Its cost.
        """
        (cost,) = yield from self.ask([row])
        while True:
            near = self.space.neighbours(row, kind)
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
    """Run a generator to its end, with its requests answered by another.

    Parameters
    ----------
    inner : generator
        Yields requests, and is sent the answer to each.
    answer : callable
        Given a request, a generator of rows to measure that returns the answer: `yield from answer(request)`.

    Yields
    ------
    list of int
        The rows that `answer` asks for.

    Returns
    -------
    R
        What `inner` returns.
    """
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
    """Run several searches at the same time, until all have ended.

    Parameters
    ----------
    searches : sequence of generator
        Searches that were not begun yet.

    Yields
    ------
    list of int
        All the rows that the searches ask for, each once.

    Receives
    --------
    sequence of Outcome
        The outcomes of these rows; each search is sent those of its own.
    """
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
    """Let another strategy search some rows. What is known already is answered without measuring.

    Parameters
    ----------
    rows : array of int, shape (n,)
        The rows to search, ascending.
    chosen : Strategy
        The other strategy; its options are at their defaults.
    evaluations : Evaluations
        What is known of the whole space; outcomes are added to it.
    batch : int
        How many rows the runner can prepare at once.
    remark : str
        A remark for the user, which goes with the next rows that are measured, before the other strategy's own.

    Yields
    ------
    Batch
        Rows of the whole space.

    Returns
    -------
    str or None
        Why the other strategy ended, where it says.
    """
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

    return (yield from delegate(chosen.search(part, evaluations.rng, batch, chosen.Options()), answer))
