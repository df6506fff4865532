"""Search strategies, one file for each or for a family. Importing the package registers them all."""

from . import (  # noqa: F401
    auto,
    bayesian_optimisation,
    brute_force,
    differential_evolution,
    energy_aware,
    firefly,
    genetic_algorithm,
    greedy_ils,
    latin_hypercube,
    multi_start,
    nsga2,
    particle_swarm,
    random_sample,
    scipy_optimisers,
    simulated_annealing,
    staged,
    steered,
    tabu_search,
)
