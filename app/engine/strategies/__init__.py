"""Search strategies, one file each. Importing the package registers them all."""

from . import (  # noqa: F401
    auto,
    basin_hopping,
    bayesian_optimisation,
    brute_force,
    differential_evolution,
    dual_annealing,
    firefly,
    genetic_algorithm,
    greedy_ils,
    latin_hypercube,
    multi_objective_bayesian,
    multi_start,
    nsga2,
    particle_swarm,
    random_sample,
    scipy_local,
    simulated_annealing,
    staged,
    steered,
    tabu_search,
)
