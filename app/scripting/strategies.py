"""Kernel Tuner's strategies and their options, and which of ours stand for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..base.errors import InputError
from ..engine.specification.model import SearchOfAnySize
from ..engine.strategies import base as strategies

# By Kernel Tuner's names. Each is the same method, with the defaults of ours.
STRATEGIES: Final[Mapping[str, str]] = {
    "brute_force": "brute_force",
    "random_sample": "random_sample",
    "basinhopping": "basin_hopping",
    "bayes_opt": "bayesian_optimisation",
    "diff_evo": "differential_evolution",
    "dual_annealing": "dual_annealing",
    "firefly_algorithm": "firefly",
    "genetic_algorithm": "genetic_algorithm",
    "greedy_ils": "greedy_ils",
    "greedy_mls": "greedy_mls",
    "mls": "mls",
    "ordered_greedy_mls": "ordered_greedy_mls",
    "pso": "particle_swarm",
    "simulated_annealing": "simulated_annealing",
    "nsga2": "nsga2",
}
# The methods of "minimize", by SciPy's names.
MINIMISERS: Final[Mapping[str, str]] = {
    "Nelder-Mead": "nelder_mead",
    "Powell": "powell",
    "CG": "cg",
    "BFGS": "bfgs",
    "L-BFGS-B": "l_bfgs_b",
    "TNC": "tnc",
    "COBYLA": "cobyla",
    "SLSQP": "slsqp",
}
_MINIMISER: Final = "L-BFGS-B"
_OPTIONS: Final[Mapping[str, Mapping[str, str]]] = {  # of ours, by theirs, where both mean the same
    "genetic_algorithm": {"popsize": "population_size"},
    "differential_evolution": {"popsize": "population_size", "recombination": "recombination"},
    "particle_swarm": {"popsize": "particles", "w": "inertia", "c1": "own_pull", "c2": "swarm_pull"},
    "firefly": {"popsize": "fireflies", "B0": "attraction", "gamma": "absorption", "alpha": "wandering"},
    "nsga2": {"pop_size": "population_size"},
}


_FRACTION: Final = 0.1  # of the space, that random_sample measures by default
_POPULATION: Final = 20  # individuals, and ...
_GENERATIONS: Final = 100  # ... generations of the methods that have them, by default
_EVALUATIONS: Final = 100  # of all other methods but brute force, by default
_WITH_POPULATION: Final = ("genetic_algorithm", "differential_evolution", "particle_swarm", "firefly")


def read_strategy(name: Any, options: Mapping[str, Any] | None) -> SearchOfAnySize:
    """A strategy of ours, its options and the limits that Kernel Tuner's would have.

    Parameters
    ----------
    name : str or None
        By Kernel Tuner's name or by ours; None for brute force.
    options : mapping or None
        Kernel Tuner's `strategy_options`, its limits among them; None for the defaults.

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
    ours = _strategy(name, given)
    evaluations, seconds = given.pop("max_fevals", None), given.pop("time_limit", None)
    fraction = None
    if ours == "random_sample":
        fraction = given.pop("fraction", _FRACTION)
    if evaluations is None and ours in _WITH_POPULATION:
        evaluations = int(given.get("popsize", _POPULATION)) * int(given.pop("maxiter", _GENERATIONS))
    elif evaluations is None and ours not in ("brute_force", "random_sample"):
        evaluations = _EVALUATIONS
    if ours in _WITH_POPULATION:
        given.pop("maxiter", None)  # the evaluations say it
    renamed = {_OPTIONS.get(ours, {}).get(key, key): value for key, value in given.items()}
    strategies.make_options(strategies.get(ours), renamed)
    return SearchOfAnySize(
        strategy=ours,
        strategy_options=renamed,
        max_evaluations=evaluations,
        max_fraction=fraction,
        max_seconds=seconds,
    )


def _strategy(name: Any, given: dict[str, Any]) -> str:
    """Ours by Kernel Tuner's name or by its own; takes the method of minimize out of the options."""
    if name is None:
        return "brute_force"
    if name == "minimize":
        method = given.pop("method", _MINIMISER)
        if method not in MINIMISERS:
            choices = ", ".join(MINIMISERS)
            raise InputError(f"'{method}' is no method of minimize here", "strategy_options", f"one of {choices}")
        return MINIMISERS[method]
    if isinstance(name, str) and (name in STRATEGIES or name in strategies.names()):
        return STRATEGIES.get(name, name)
    what = f"'{name}' is no strategy here" if isinstance(name, str) else "a strategy of the script's own is not run"
    choices = ", ".join(dict.fromkeys((*STRATEGIES, "minimize", *strategies.names())))
    raise InputError(what, "strategy", f"one of {choices}")
