"""The ways to tune for energy in stages, as one strategy [Schoonhoven2024, section 6.5.1]: see `methods`."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

import numpy as np

from ...errors import InputError
from ..measurement import State
from ..space.search_space import SearchSpace
from . import base as strategies
from .base import CheckedOptions, Outcome, Search, Strategy, option
from .evaluations import Evaluations, delegate, search_within
from .methods import METHODS, Clocks, Key, Rows, Seen, base_clock_mhz, recipe, seen_of


class Staged(Strategy, name="staged", label="In stages"):
    """Tunes in stages, for time or for energy at one clock, then the clock; a space without clocks as a whole."""

    @dataclass(frozen=True)
    class Options(CheckedOptions):
        method: str = option(
            "race_to_idle_then_clocks",
            "which stages",
            choices=[method for method in METHODS if method != "model_steered"],  # that one is the strategy `steered`
        )
        base: str = option(
            "brute_force",
            "the strategy that searches the parameters",
            choices=lambda: strategies.names(but=Staged.name),
        )
        stage_evaluations: int = option(1_000_000, "measure at most so many configurations in a stage", least=1)
        base_clock_mhz: int = option(0, "the base clock; 0: 60 % of the highest", least=0)

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: Options) -> Search:
        known, chosen = Evaluations(space, rng), self.within(strategies.get(options.base))

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

        def measured(rows: list[int]) -> Generator[list[int], Sequence[Outcome], list[Seen]]:
            yield from known.ask(rows)
            outcomes = [known.outcome(row) for row in rows]
            return [seen_of(o.row, o.state is State.OK, o.values) for o in outcomes]

        try:
            clocks = Clocks(space)
        except InputError as lacking:  # there are no stages
            whole = self.within(strategies.get("auto"))
            remark = f"Not in stages: {lacking.what}. By {whole.label}."
            yield from search_within(np.arange(space.size), whole, known, batch, remark)
            return
        base = clocks.nearest(options.base_clock_mhz) if options.base_clock_mhz else base_clock_mhz("", clocks)
        yield from delegate(recipe(options.method, clocks, base_mhz=base, search=within), measured)


def _outcome(row: int, seen: Seen, key: Key) -> Outcome:
    cost = key(seen)
    return Outcome(row, cost, State.OK if np.isfinite(cost) else State.RUNTIME)
