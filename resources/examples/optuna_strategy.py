"""A strategy of your own, in one class: Optuna proposes the configurations of one session, by its ask and tell.

    pip install optuna
    python optuna_strategy.py [GPU]

On a simulated GPU, the default, every figure is simulated.
"""

import math
import sys
from dataclasses import dataclass

import numpy as np
import wattridge
from wattridge.strategies import CheckedOptions, Evaluations, Search, SearchSpace, Strategy, option

SOURCE = """
extern "C" __global__ void vector_add(float *c, const float *a, const float *b, int n) {
    for (int i = (blockIdx.x * block_size_x + threadIdx.x) * per_thread, end = min(n, i + per_thread); i < end; i++)
        c[i] = a[i] + b[i];
}
"""


class OptunaTpe(Strategy, name="optuna_tpe", label="Optuna's TPE"):
    """Optuna's tree-structured Parzen estimator; what it proposes twice is measured once."""

    @dataclass(frozen=True)
    class Options(CheckedOptions):
        repeats: int = option(20, "proposals in a row that are all known, after which it ends", least=1)

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: Options) -> Search:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        sampler = optuna.samplers.TPESampler(seed=int(rng.integers(2**31)))
        study = optuna.create_study(direction="minimize", sampler=sampler)
        choices = {each.name: optuna.distributions.CategoricalDistribution(each.values) for each in space.parameters}
        evaluations, known = Evaluations(space, rng), 0
        while not evaluations.exhausted and known < options.repeats:
            trial = study.ask(choices)
            row = space.row_of(trial.params)
            known = known + 1 if row is None or row in evaluations else 0
            cost = math.inf  # of what a restriction forbids
            if row is not None:
                (cost,) = yield from evaluations.ask([row])
            failed = optuna.trial.TrialState.FAIL if math.isinf(cost) else None
            study.tell(trial, None if failed else cost, state=failed)


def main(gpu: str) -> None:
    n = np.int32(1_000_000)
    a = np.ones(n, np.float32)
    results, environment = wattridge.tune_kernel(
        "vector_add",
        SOURCE,
        int(n),
        [np.zeros_like(a), a, a, n],
        {"block_size_x": [32 * i for i in range(1, 33)], "per_thread": [1, 2, 4, 8]},
        grid_div_x=["block_size_x", "per_thread"],
        strategy=OptunaTpe,
        strategy_options={"max_fevals": 25},
        objective="nvml_energy",
        gpu=gpu,
        profile="vector_add",
        quiet=True,
    )
    best = environment["best_config"]
    print(f"{len(results)} configurations by Optuna, {environment['source']}; the best takes {best['energy_j']:.3g} J:")
    print(f"block_size_x={best['block_size_x']}, per_thread={best['per_thread']}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "simulated:a100")
