"""Energy as the objective of another tuner, here NVIDIA CompileIQ: a function from a configuration to one number.

Not run: CompileIQ is not on the package index, and this follows its description alone. `compile_and_load` stands for
what builds the kernel with the compiler's options that the tuner proposes and returns a function that launches it.
"""

import math
from collections.abc import Callable, Mapping

import wattridge.triton


def energy_objective(
    compile_and_load: Callable[[Mapping[str, object]], Callable[[], object]],
) -> Callable[[Mapping[str, object]], float]:
    """Joules of one launch for the options that a tuner proposes; infinity for those that do not compile or run."""
    hook = wattridge.triton.bench(minimise="energy")

    def objective(options: Mapping[str, object]) -> float:
        try:
            return hook(compile_and_load(options))[0]
        except RuntimeError:
            return math.inf

    return objective
