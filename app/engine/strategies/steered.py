"""Model-steered search [Schoonhoven2024, section 6.5.4]: any other strategy, only near the most efficient clock.

A short clock sweep of one good configuration comes first; the frequency model fitted to it gives the clocks.

The ways to tune for energy in stages, as one strategy [Schoonhoven2024, section 6.5.1]: see `methods`.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...base.errors import InputError
from ..models.arrays import Indices
from ..models.fit.frequency import MINIMUM_CLOCKS, FrequencyFit, fit_points
from ..models.fit.points import LIMIT_SETTINGS, Points
from ..models.tuning_methods import METHODS, Clocks, Key, Seen, recipe, seen_of
from ..results.measurement import State
from ..space.search_space import SearchSpace
from . import base as strategies
from .base import CheckedOptions, Outcome, Search, Strategy, option
from .evaluations import Evaluations, delegate, search_within

_LOWEST_SHARE = 0.4  # of the highest clock: no ridge measured yet lies below it
_CONTRADICTION = 0.02  # of the objective: if it is that much better elsewhere, it does not follow the energy
_ATTEMPTS = 4  # samples without a configuration that works


class Steered(Strategy, name="steered", label="Model-steered clocks"):
    """Sweeps the clocks of one good configuration, then searches only those near the model's most efficient one.

    Where power or clock is unknown, or the model is not identifiable, it says so and searches the whole space.
    """

    times = True

    @dataclass(frozen=True)
    class Options(CheckedOptions):
        base: str = option(
            "auto", "the strategy that searches these clocks", choices=lambda: strategies.names(but=Steered.name)
        )
        within: float = option(0.1, "clocks that far from the most efficient one, as a share", least=0, most=1)
        clocks: int = option(8, f"clocks of the sweep, at least {MINIMUM_CLOCKS}", least=MINIMUM_CLOCKS)
        first_samples: int = option(16, "random configurations at the highest clock; the best is swept", least=1)

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: Options) -> Search:
        evaluations, chosen = Evaluations(space, rng), self.within(strategies.get(options.base))
        rows, remark = yield from self._steer(evaluations, options)
        if rows is None:
            rows, remark = np.arange(space.size), f"Not steered: {remark}. By {chosen.label}."
        else:
            remark = f"{remark}, {len(rows)} of {space.size} configurations, by {chosen.label}."
        return (yield from search_within(rows, chosen, evaluations, batch, remark))

    def _steer(
        self, evaluations: Evaluations, options: Options
    ) -> Generator[list[int], Sequence[Outcome], tuple[npt.NDArray[np.int64] | None, str]]:
        """The rows to search, or None, and the reason."""
        try:
            clocks = Clocks(evaluations.space)
        except InputError as lacking:
            return None, lacking.what
        if len(clocks.values) < MINIMUM_CLOCKS:
            return None, f"{clocks.setting} has {len(clocks.values)} values, the model needs {MINIMUM_CLOCKS}"
        good = yield from self._good_row(clocks.at(clocks.highest), evaluations, options)
        if good is None:
            return None, "no configuration worked at the highest clock"
        sweep, clock_mhz = _sweep_rows(clocks, good, options.clocks), clocks.of_row
        yield from evaluations.ask(sweep, f"Sweeping the clocks of {_words(evaluations.space, good, clocks.setting)}.")
        fit = _fit(evaluations.space, clocks, [evaluations.outcome(row) for row in sweep])
        if isinstance(fit, str):
            return None, fit
        optimum = fit.optimum_mhz
        if optimum is None:
            return None, f"the frequency model is not identifiable ({'; '.join(fit.reasons)})"
        near = np.abs(clock_mhz - optimum) <= options.within * optimum
        if not near.any():  # clocks far apart: those next to it
            near = np.abs(clock_mhz - optimum) == np.nanmin(np.abs(clock_mhz - optimum))
        here, elsewhere = (
            min((evaluations.cost(r) for r in sweep if near[r] == side), default=math.inf) for side in (1, 0)
        )
        if math.isfinite(elsewhere) and here - elsewhere > _CONTRADICTION * abs(elsewhere):
            return None, f"the objective is better at other clocks than near {optimum:.0f} MHz, where energy is lowest"
        low, high = clock_mhz[near].min(), clock_mhz[near].max()
        bracketed = "" if fit.optimum_bracketed else ", the end of the sweep"
        span = f"{low:g}–{high:g}" if high > low else f"{low:g}"
        near |= np.isnan(clock_mhz)  # the board's own state
        return np.flatnonzero(near), f"Most efficient near {optimum:.0f} MHz{bracketed}: only {span} MHz is searched"

    def _good_row(
        self, fastest: npt.NDArray[np.int64], evaluations: Evaluations, options: Options
    ) -> Generator[list[int], Sequence[Outcome], int | None]:
        """The best of a sample of rows; a few more are drawn where none works."""
        order = evaluations.rng.permutation(fastest)
        for start in range(0, min(len(order), _ATTEMPTS * options.first_samples), options.first_samples):
            sample = order[start : start + options.first_samples].tolist()
            costs = yield from evaluations.ask(sample)
            if math.isfinite(min(costs)):
                return int(sample[int(np.argmin(costs))])
        return None


def _sweep_rows(clocks: Clocks, row: int, count: int) -> list[int]:
    """Rows that differ from one only in the clock: about `count`, evenly spread over the clocks, the row's own too."""
    alike = clocks.alike(row)
    alike = alike[np.argsort(clocks.of_row[alike], kind="stable")]
    of_alike = clocks.of_row[alike]
    wanted = np.linspace(max(of_alike[0], _LOWEST_SHARE * clocks.highest), clocks.of_row[row], count)
    nearest = np.abs(of_alike[None, :] - wanted[:, None]).argmin(axis=1)
    return [int(value) for value in alike[np.unique(nearest)]]


def _fit(space: SearchSpace, clocks: Clocks, swept: Sequence[Outcome]) -> FrequencyFit | str:
    """The frequency model of the sweep, or why there is none."""
    worked = [outcome for outcome in swept if math.isfinite(_power_w(outcome))]
    if len(worked) < MINIMUM_CLOCKS:
        if any(outcome.values for outcome in swept) and not worked:
            return "the measurements hold no power_w"
        return f"power was measured at {len(worked)} clocks, the model needs {MINIMUM_CLOCKS}"
    time_s = np.array([outcome.values.get("time_s", math.nan) for outcome in worked])
    limit = next((space.configuration(worked[0].row)[name] for name in LIMIT_SETTINGS if name in space.names), None)
    return fit_points(
        Points(
            clock_mhz=np.array([_clock_mhz(outcome, clocks) for outcome in worked]),
            power_w=np.array([_power_w(outcome) for outcome in worked]),
            rate=1.0 / time_s if (time_s > 0).all() else None,
            limited=None,
            limit_w=float(limit) if isinstance(limit, int | float) else None,
            supported_mhz=tuple(clocks.values.tolist()),
            gpu="",
            series="sweep",
        )
    )


def _power_w(outcome: Outcome) -> float:
    values = outcome.values
    if "power_w" in values:
        return values["power_w"]
    time_s = values.get("time_s", math.nan)
    return values.get("energy_j", math.nan) / time_s if time_s > 0 else math.nan


def _clock_mhz(outcome: Outcome, clocks: Clocks) -> float:
    """The observed clock, else the requested one."""
    observed = outcome.values.get("observed_clock_mhz", math.nan)
    return observed if math.isfinite(observed) else float(clocks.of_row[outcome.row])


def _words(space: SearchSpace, row: int, setting: str) -> str:
    configuration = space.configuration(row).items()
    return ", ".join(f"{name}={value}" for name, value in configuration if name != setting) or "the board"


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
        base_clock_mhz: int = option(0, "the base clock, MHz; 0: the board's", least=0)

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: Options) -> Search:
        evaluations, chosen = Evaluations(space, rng), self.within(strategies.get(options.base))

        def within(rows: Indices, key: Key) -> Generator[list[int], Sequence[Seen], list[Seen]]:
            inner = space.subset(rows)
            steps = chosen.search(inner, rng, batch, chosen.Options())
            all_seen: list[Seen] = []
            try:
                asked = next(steps)
                while len(all_seen) < options.stage_evaluations:
                    seen = yield [int(rows[row]) for row in asked][: options.stage_evaluations - len(all_seen)]
                    all_seen += seen
                    if len(seen) < len(asked):
                        break
                    asked = steps.send([_outcome(row, one, key) for row, one in zip(asked, seen, strict=True)])
            except StopIteration:
                pass
            finally:
                steps.close()
            return all_seen

        def measured(rows: list[int]) -> Generator[list[int], Sequence[Outcome], list[Seen]]:
            yield from evaluations.ask(rows)
            outcomes = [evaluations.outcome(row) for row in rows]
            return [seen_of(o.row, o.state is State.OK, o.values) for o in outcomes]

        try:
            clocks = Clocks(space)
        except InputError as lacking:  # there are no stages
            whole = self.within(strategies.get("auto"))
            remark = f"Not in stages: {lacking.what}. By {whole.label}."
            return (yield from search_within(np.arange(space.size), whole, evaluations, batch, remark))
        base = clocks.nearest(options.base_clock_mhz) if options.base_clock_mhz else None
        yield from delegate(recipe(options.method, clocks, base_mhz=base, search=within), measured)
        return None


def _outcome(row: int, seen: Seen, key: Key) -> Outcome:
    cost = key(seen)
    return Outcome(row, cost, State.OK if np.isfinite(cost) else State.RUNTIME)
