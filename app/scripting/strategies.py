"""Kernel Tuner's strategies and their options, and which of ours stand for them: `resources/kernel_tuner.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ..base.errors import InputError
from ..base.paths import resources
from ..engine.specification.model import SearchOfAnySize
from ..engine.strategies import base as strategies
from .own_strategies import is_own, named_strategy
from .searchspace import require_construction

TABLE: Final = tomllib.loads((resources() / "kernel_tuner.toml").read_text(encoding="utf-8"))
STRATEGIES: Final[Mapping[str, str]] = TABLE["strategies"]  # ours by Kernel Tuner's names
ELSEWHERE: Final[Mapping[str, str]] = TABLE["elsewhere"]  # what does the work of those that are not here
MINIMISERS: Final[Mapping[str, str]] = TABLE["minimise"]
OPTIONS: Final[Mapping[str, Mapping[str, Any]]] = TABLE["options"]
_MINIMISER: Final = "L-BFGS-B"
_LIMITS: Final = ("max_fevals", "time_limit")  # beside the options of each strategy
_WITHOUT_START: Final = ("brute_force", "random_sample", "bayes_opt", "nsga2")  # as in Kernel Tuner
_FORMS: Final[Mapping[str, Callable[[float, int], float]]] = {  # of a value and the number of parameters
    "one_in": lambda value, _: 1 / max(1.0, value),
    "share": lambda value, parameters: max(1, int(value * parameters)),
}
_FRACTION: Final = 0.1  # of the space, that random_sample measures by default
_POPULATION: Final = 20  # individuals, and ...
_GENERATIONS: Final = 100  # ... generations of the methods that have them, by default
_EVALUATIONS: Final = 100  # of all other methods but brute force, by default
_WITH_POPULATION: Final = ("genetic_algorithm", "diff_evo", "pso", "firefly_algorithm")


def read_strategy(
    name: Any, options: Mapping[str, Any] | None, parameters: int = 1, objective: str | Sequence[str] = "time"
) -> SearchOfAnySize:
    """A strategy of ours, its options and the limits that Kernel Tuner's would have.

    Parameters
    ----------
    name : str, object or None
        By Kernel Tuner's name or by ours; a strategy of the script's own, as `own_strategies` has it; None for brute
        force.
    options : mapping or None
        Kernel Tuner's `strategy_options`, its limits among them; None for the defaults.
    parameters : int, optional
        How many parameters there are.
    objective : str or sequence of str, optional
        Kernel Tuner's names of the objectives, for a strategy of the script's own.

    Returns
    -------
    SearchOfAnySize
        The search, for a space whose size is not known yet.

    Raises
    ------
    InputError
        For a strategy or an option that is not offered here.
    """
    given = dict(options or {})
    if not isinstance(name, str | None):
        name = named_strategy(name, given, [objective] if isinstance(objective, str) else objective)
        given = {key: value for key, value in given.items() if key in _LIMITS or not is_own(name)}
    name = _greedy("brute_force" if name is None else name, given)
    ours = _strategy(name, given)
    evaluations, seconds = (given.pop(limit, None) for limit in _LIMITS)
    if given.pop("x0", None) is not None and name in _WITHOUT_START:
        raise InputError(f"{name} has no start", "strategy_options: x0", "leave x0 out, or choose another strategy")
    require_construction(given.pop("searchspace_construction_options", None))
    fraction = given.pop("fraction", _FRACTION) if ours == "random_sample" else None
    if name == "diff_evo" and given.pop("popsize_times_dimensions", False):
        given["popsize"] = int(given.get("popsize", _POPULATION)) * parameters
    generations = given.pop("maxiter", _GENERATIONS) if name in _WITH_POPULATION else _GENERATIONS
    if evaluations is None and name in _WITH_POPULATION:
        evaluations = min(int(given.get("popsize", _POPULATION)) * int(generations), strategies.LARGEST)
    elif evaluations is None and ours not in ("brute_force", "random_sample") and not is_own(ours):
        evaluations = _EVALUATIONS
    renamed = _renamed(name, given, parameters)
    strategies.make_options(strategies.get(ours), renamed)
    return SearchOfAnySize(
        strategy=ours,
        strategy_options=renamed,
        max_evaluations=evaluations,
        max_fraction=fraction,
        max_seconds=seconds,
    )


def _renamed(strategy: str, given: Mapping[str, Any], parameters: int) -> dict[str, Any]:
    """Our options of a strategy; those that it does not declare there are left for ours to judge."""
    renamed = {}
    for key, value in given.items():
        entry = OPTIONS.get(strategy, {}).get(key, key)
        entry = {"as": entry} if isinstance(entry, str) else entry
        known = entry.get("values", [entry["only"]] if "only" in entry else None)
        if ("as" not in entry and known is None) or (known is not None and value not in known):
            remedy = entry.get("why") or f"one of {', '.join(known or ())}"
            raise InputError(f"{key}={value!r} is not available here", f"strategy_options of {strategy}", remedy)
        if "as" in entry:
            form = _FORMS[entry["form"]](float(value), parameters) if "form" in entry else value
            renamed[entry["as"]] = known[value] if isinstance(known, Mapping) else form
    return renamed


def _greedy(name: str, given: dict[str, Any]) -> str:
    """The multi-start search that `restart` and `randomize` describe."""
    if name not in ("mls", "greedy_mls", "ordered_greedy_mls"):
        return name
    greedy = given.pop("restart", name != "mls")
    randomly = given.pop("randomize", name != "ordered_greedy_mls")
    return "mls" if not greedy else "greedy_mls" if randomly else "ordered_greedy_mls"


def _strategy(name: Any, given: dict[str, Any]) -> str:
    """Ours by Kernel Tuner's name or by its own; takes the method of minimize out of the options."""
    if name == "minimize":
        method = given.pop("method", _MINIMISER)
        if method not in MINIMISERS:
            choices = ", ".join(MINIMISERS)
            raise InputError(f"'{method}' is no method of minimize here", "strategy_options", f"one of {choices}")
        return MINIMISERS[method]
    if name in ELSEWHERE:
        raise InputError(f"'{name}' is not available here", "strategy", ELSEWHERE[name])
    if name in STRATEGIES or name in strategies.names():
        return STRATEGIES.get(name, name)
    choices = ", ".join(dict.fromkeys((*STRATEGIES, "minimize", *strategies.names())))
    raise InputError(f"'{name}' is no strategy here", "strategy", f"one of {choices}")
