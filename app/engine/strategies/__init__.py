"""Search strategies, one file each. Importing the package registers them all."""

from app.engine.strategies import (  # noqa: F401
    auto,
    brute_force,
    genetic_algorithm,
    greedy_ils,
    random_sample,
    simulated_annealing,
)
