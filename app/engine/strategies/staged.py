"""One of the ways to tune for energy of S1 6.5.1, in its stages: see `engine.recipes`."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from ...errors import InputError
from ..measurement import State
from ..space.search_space import SearchSpace
from . import base as strategies
from .base import Evaluations, Outcome, Remarked, Search, strategy
from .methods import METHODS, Clocks, Key, Recipe, Rows, Seen, base_clock_mhz, recipe, seen_of
from .moves import check_least


def _methods() -> tuple[str, ...]:
    return tuple(method for method in METHODS if method != "model_steered")  # that one is the strategy `steered`


def _others() -> tuple[str, ...]:
    return tuple(name for name in strategies.names() if name != Staged.name)


@strategy
class Staged:
    """Tunes in stages, for time or for energy at one clock, then the clock; a space without clocks as a whole."""

    name: ClassVar[str] = "staged"
    label: ClassVar[str] = "In stages"

    @dataclass(frozen=True)
    class Options:
        method: str = field(default="race_to_idle_then_clocks", metadata={"help": "which stages", "choices": _methods})
        base: str = field(
            default="brute_force", metadata={"help": "the strategy that searches the parameters", "choices": _others}
        )
        stage_evaluations: int = field(
            default=1_000_000, metadata={"help": "measure at most so many configurations in a stage"}
        )
        base_clock_mhz: int = field(default=0, metadata={"help": "the base clock; 0: 60 % of the highest"})

        def __post_init__(self) -> None:
            if strategies.get(self.base).name == Staged.name:
                raise ValueError("base must be another strategy")
            check_least("stage_evaluations", self.stage_evaluations, 1)
            check_least("base_clock_mhz", self.base_clock_mhz, 0)

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: Options) -> Search:
        known, chosen = Evaluations(space), strategies.get(options.base)

        def within(rows: Rows, key: Key) -> Generator[list[int], Sequence[Seen], list[Seen]]:
            inner = space.subset(rows)
            steps = chosen.search(inner, rng, batch, chosen.Options())
            found: list[Seen] = []
            try:
                asked = next(steps)
                while len(found) < options.stage_evaluations:
                    seen = yield [int(rows[row]) for row in asked][: options.stage_evaluations - len(found)]
                    found += seen
                    if len(seen) < len(asked):
                        break
                    asked = steps.send([_outcome(row, one, key) for row, one in zip(asked, seen, strict=True)])
            except StopIteration:
                pass
            finally:
                steps.close()
            return found

        try:
            clocks = Clocks(space)
        except InputError as lacking:  # nothing to stage
            whole = strategies.get("auto")
            steps = whole.search(space, rng, batch, whole.Options())
            yield from _remarked(steps, f"Not in stages: {lacking.what}. By {whole.label}.")
            return
        base = clocks.nearest(options.base_clock_mhz) if options.base_clock_mhz else base_clock_mhz("", clocks)
        yield from _answered(recipe(options.method, clocks, base_mhz=base, search=within), known)


def _remarked(steps: Search, remark: str) -> Search:
    """A search with a word before its first batch."""
    rows = next(steps, None)
    if rows is None:
        return
    rows = Remarked(rows, remark)
    with suppress(StopIteration):
        while True:
            rows = steps.send((yield rows))


def _answered(steps: Recipe, known: Evaluations) -> Search:
    """Drive a recipe; rows that are known are not asked for again."""
    try:
        rows = next(steps)
        while True:
            yield from known.ask(rows)
            outcomes = [known.outcome(row) for row in rows]
            rows = steps.send([seen_of(o.row, o.state is State.OK, o.values) for o in outcomes])
    except StopIteration:
        return


def _outcome(row: int, seen: Seen, key: Key) -> Outcome:
    cost = key(seen)
    return Outcome(row, cost, State.OK if np.isfinite(cost) else State.RUNTIME)
