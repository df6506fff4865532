"""Search strategies, one file for each or for a family. Importing the package registers them all."""

from . import (  # noqa: F401
    auto,
    bayesian_optimisation,
    energy_aware,
    local_search,
    population,
    sampling,
    scipy_optimisers,
    steered,
)
