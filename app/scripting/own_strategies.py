"""A strategy of a script's own: a `Strategy` of ours, or what Kernel Tuner takes for one.

That is any object with `tune(searchspace, runner, tuning_options)`, such as an `OptAlgWrapper`. It calls a `CostFunc`
and waits for its answer, so it runs as SciPy's optimisers do (`engine/strategies/scipy_optimisers.py`). Each
configuration is measured once and is in the results once, however often it is asked for.
"""

from __future__ import annotations

import math
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import numpy as np

from ..base.errors import InputError
from ..engine.space.search_space import SearchSpace
from ..engine.strategies import base
from ..engine.strategies.evaluations import Evaluations, delegate
from ..engine.strategies.scipy_optimisers import questions
from .searchspace import Searchspace

_MOST_REPEATS: Final = 100_000  # requests in a row of which all was known already
_OWN: Final = "own_"  # how the names of strategies begin that were made of an object


class StopCriterionReached(Exception):
    """The limits of the search are reached."""


class _Options(dict[str, Any]):
    """As Kernel Tuner's: its keys are attributes, too."""

    __getattr__ = dict.__getitem__
    __setattr__ = dict.__setitem__


class _Runner:
    """Measures rows for a strategy that waits for them, within its limits."""

    def __init__(
        self, measure: Callable[[list[int]], Sequence[float]], evaluations: Evaluations, options: Mapping[str, Any]
    ) -> None:
        self._measure, self._evaluations, self._began = measure, evaluations, time.perf_counter()
        self._most = min(int(options.get("max_fevals") or evaluations.space.size), evaluations.space.size)
        self._seconds, self._repeats = float(options.get("time_limit") or math.inf), 0

    @property
    def spent(self) -> float:
        """The share of the limits that is spent, 0 to 1."""
        return max(len(self._evaluations) / self._most, (time.perf_counter() - self._began) / self._seconds)

    def outcome(self, row: int) -> base.Outcome:
        """The outcome of a row. Raises StopCriterionReached when the limits are, or when nothing new is asked for."""
        self._repeats = self._repeats + 1 if row in self._evaluations else 0
        if self.spent >= 1 or self._repeats > _MOST_REPEATS:
            raise StopCriterionReached("the limits of the search are reached")
        self._measure([row])
        return self._evaluations.outcome(row)


class CostFunc:
    """What a strategy minimises: a call with a configuration measures it.

    With `scaling` a configuration is a point of a box, in which each value takes `eps`; with `snap` the nearest values
    stand for those given. One that is not valid costs `invalid_value`, and one that failed as well.
    """

    def __init__(
        self,
        searchspace: Searchspace,
        tuning_options: Any,
        runner: Any,
        *,
        scaling: bool = False,
        snap: bool = True,
        return_invalid: bool = False,
        invalid_value: float = sys.float_info.max,
    ) -> None:
        self.searchspace, self.tuning_options, self.runner = searchspace, tuning_options, runner
        self.scaling, self.snap, self.invalid_return_value = scaling, snap, invalid_value
        self.constraint_aware = bool(tuning_options.strategy_options.get("constraint_aware"))
        self.results: list[dict[str, Any]] = []

    @property
    def budget_spent_fraction(self) -> float:
        """The share of the limits that is spent, 0 to 1."""
        return float(self.runner.spent)

    def __call__(self, x: Sequence[Any], check_restrictions: bool = True) -> Any:
        """The cost of a configuration, a tuple where there are several objectives. Smaller is better."""
        space = self.searchspace
        config = tuple(self._snapped(x) if self.snap else x)
        if not space.is_param_config_valid(config) and self.constraint_aware:
            config = next(iter(space.get_neighbors(config, "closest-param-indices")), config)
        row = space.get_param_config_index(config)
        if row is None:
            return self._cost([math.inf])
        outcome = self.runner.outcome(row)
        values = {"time": outcome.values["time_s"] * 1e3} if "time_s" in outcome.values else {}
        self.results.append({**dict(zip(space.param_names, config, strict=True)), **outcome.values, **values})
        return self._cost(outcome.front if len(self.tuning_options.objective) > 1 else (outcome.cost,))

    eval = __call__

    def eval_all(self, xs: Sequence[Sequence[Any]], check_restrictions: bool = True) -> list[Any]:
        """The costs of configurations.

        Parameters
        ----------
        xs : sequence of sequence
            Configurations.
        check_restrictions : bool, optional
            No effect: one that is not valid is never measured.

        Returns
        -------
        list of float, or of tuple where there are several objectives
        """
        return [self(x, check_restrictions) for x in xs]

    def get_results(self) -> list[dict[str, Any]]:
        """What was measured, in the order in which it was asked for."""
        return self.results

    def get_start_pos(self) -> Any:
        """Where to begin: x0, or a configuration at random."""
        return self.get_bounds_x0_eps()[1]

    def get_bounds(self) -> list[tuple[Any, Any]]:
        """The least and the greatest value of each parameter; of words the first and the last."""
        kinds = zip(self.searchspace.params_values, self.searchspace.tune_param_is_numeric_mask, strict=True)
        return [(min(values), max(values)) if numeric else (values[0], values[-1]) for values, numeric in kinds]

    def get_bounds_x0_eps(self) -> tuple[list[tuple[Any, Any]], Any, float]:
        """The bounds of each parameter, where to begin, and the size of a step."""
        sizes = [len(values) for values in self.searchspace.params_values]
        start = self.tuning_options.strategy_options.get("x0") or self.searchspace.get_random_sample(1)[0]
        if not self.scaling:
            return self.get_bounds(), list(start), 1.0
        eps = 1.0 / max(sizes)
        self.tuning_options["eps"] = eps
        places = np.array(self.searchspace.get_param_indices(start))
        return [(0.0, eps * size) for size in sizes], (places + 0.5) * eps, eps

    def _snapped(self, x: Sequence[Any]) -> list[Any]:
        """The nearest value of each parameter."""
        values = self.searchspace.params_values
        if self.scaling:
            eps = 1.0 / max(map(len, values))
            places = [min(max(int(value // eps), 0), len(of) - 1) for value, of in zip(x, values, strict=True)]
            return list(self.searchspace.get_param_config_from_param_indices(places))
        return [v if v in of else min(of, key=lambda o: abs(o - v)) for v, of in zip(x, values, strict=True)]

    def _cost(self, costs: Sequence[float]) -> Any:
        """As Kernel Tuner has it: times in ms."""
        names = self.tuning_options.objective
        several = costs if len(costs) == len(names) else [math.inf] * len(names)
        units = [1e3 if name == "time" else 1.0 for name in names]
        known = zip(several, units, strict=True)
        scaled = [cost * unit if math.isfinite(cost) else self.invalid_return_value for cost, unit in known]
        return scaled[0] if len(scaled) == 1 else tuple(scaled)


class OptAlg(ABC):
    """Base of an optimiser that Kernel Tuner's users write. `costfunc_kwargs` are those of its `CostFunc`."""

    def __init__(self) -> None:
        self.costfunc_kwargs: dict[str, Any] = {"scaling": False, "snap": False}

    @abstractmethod
    def __call__(self, func: CostFunc, searchspace: Searchspace) -> tuple[Any, float]:
        """Minimise `func` over the space; returns the best configuration and its cost."""


class OptAlgWrapper:
    """An `OptAlg` as a strategy."""

    def __init__(self, optimizer: OptAlg) -> None:
        self.optimizer = optimizer

    def tune(self, searchspace: Searchspace, runner: Any, tuning_options: Any) -> list[dict[str, Any]]:
        """Run the optimiser to its end, or to the limits of the search.

        Parameters
        ----------
        searchspace : Searchspace
            The space.
        runner : object
            Measures its configurations.
        tuning_options : object
            What the script asks for.

        Returns
        -------
        list of dict
            What was measured, in the order in which it was asked for.
        """
        kwargs = getattr(self.optimizer, "costfunc_kwargs", {"scaling": False, "snap": False})
        cost = CostFunc(searchspace, tuning_options, runner, **kwargs)
        with suppress(StopCriterionReached):  # as it was meant to end
            self.optimizer(cost, searchspace)
        return cost.results


def is_own(name: str) -> bool:
    """Whether the strategy of a name was made of an object of a script.

    Parameters
    ----------
    name : str
        The name.

    Returns
    -------
    bool
    """
    return name.startswith(_OWN)


def named_strategy(given: Any, options: Mapping[str, Any], objective: Sequence[str] = ("time",)) -> str:
    """The name under which a strategy that a script passes is known from now on.

    Parameters
    ----------
    given : Strategy, type, or object with `tune`
        The strategy.
    options : mapping
        Kernel Tuner's `strategy_options`, for an object with `tune`.
    objective : sequence of str, optional
        Kernel Tuner's names of the objectives.

    Returns
    -------
    str
        Its name.

    Raises
    ------
    InputError
        If it is no strategy.
    """
    kind = given if isinstance(given, type) else type(given)
    if issubclass(kind, base.Strategy):
        return kind.name
    if not callable(getattr(given, "tune", None)):
        what = f"it is of type {kind.__name__}"
        raise InputError(what, "strategy", "pass a name, a wattridge.strategies.Strategy, or an object with tune()")
    options_given = _Options(options)
    bag = _Options(strategy_options=options_given, objective=list(objective), verbose=False, eps=1.0)
    of = getattr(given, "optimizer", given)
    label = getattr(of, "__name__", type(of).__name__).rpartition(".")[2]

    class Own(base.Strategy, name=f"{_OWN}{label}", label=label):
        """The script's own."""

        def search(
            self, space: SearchSpace, rng: np.random.Generator, batch: int, options: base.CheckedOptions
        ) -> base.Search:
            evaluations, searchspace = Evaluations(space, rng), Searchspace.of(space, rng)

            def run(measure: Callable[[list[int]], Sequence[float]]) -> None:
                with suppress(StopCriterionReached):
                    given.tune(searchspace, _Runner(measure, evaluations, options_given), bag)

            yield from delegate(questions(run), evaluations.ask)

    return Own.name
