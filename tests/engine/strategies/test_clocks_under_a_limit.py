"""`auto` over pairs of clocks with a limit that binds: a small version of `tests/benchmarks/service_clocks.py`."""

from __future__ import annotations

import numpy as np
import pytest

from app.engine.results.measurement import Measurement, State
from app.engine.results.objectives import Goal, Limit, Objective
from app.engine.space.search_space import Parameter, SearchSpace
from app.engine.strategies.base import Outcome, get, make_options
from app.sensors.simulated import laws
from app.sensors.simulated.laws import Serving
from app.sensors.simulated.twin import load_twin

POINTS, LIMIT_S = 15, 0.0105  # of a token at 6 sequences at once
TWIN = load_twin("rtx5090")
MEMORY, GRAPHICS = TWIN.clocks.memory_mhz, TWIN.clocks.graphics_mhz[::3]
Truth = dict[tuple[int, int], tuple[float, float]]  # memory and graphics clock -> J per token, s per token


@pytest.fixture(scope="module")
def truth() -> Truth:
    """J per token and s per token of a sequence, of every pair of clocks."""
    found = {}
    for memory in MEMORY:
        for graphics in GRAPHICS:
            point = laws.under_service(TWIN, Serving(6), graphics, memory)
            found[memory, graphics] = laws.settled(TWIN, point)[0] * point.launch_s / 6, point.launch_s
    return found


def chosen_by(
    strategy: str, seed: int, truth: dict[tuple[int, int], tuple[float, float]]
) -> tuple[float, float] | None:
    """The true figures of the choice after POINTS exact measurements; None where none kept the limit."""
    pairs = list(truth)
    codes = np.array([(MEMORY.index(m), GRAPHICS.index(g)) for m, g in pairs], dtype=np.uint16)
    space = SearchSpace(
        (Parameter("memory_clock_mhz", MEMORY, True), Parameter("graphics_clock_mhz", GRAPHICS, True)),
        codes,
        len(codes),
    )
    objective = Objective(Goal("energy_j", maximise=False), (), (Limit("tpot_p95_s", True, LIMIT_S),))
    search = get(strategy).search(space, np.random.default_rng(seed), 1, make_options(get(strategy), {}))
    seen: list[int] = []
    rows = next(search)
    while True:
        outcomes = []
        for row in rows[: POINTS - len(seen)]:
            seen.append(row)
            energy_j, token_s = truth[pairs[row]]
            values = {"energy_j": energy_j, "tpot_p95_s": token_s}
            outcomes.append(Outcome.of(Measurement(row, space.configuration(row), State.OK, values), objective))
        if len(seen) >= POINTS:
            break
        rows = search.send(outcomes)
    search.close()
    kept = [truth[pairs[row]] for row in seen if truth[pairs[row]][1] <= LIMIT_S]
    return min(kept) if kept else None


def test_fifteen_points_find_the_least_energy_within_the_limit(truth: Truth) -> None:
    assert len(truth) >= 400
    within = [energy_j for energy_j, token_s in truth.values() if token_s <= LIMIT_S]
    assert min(energy_j for energy_j, _ in truth.values()) < 0.97 * min(within)  # the limit binds
    regret: dict[str, list[float]] = {"auto": [], "random_sample": []}
    for strategy, found in regret.items():
        for seed in range(3):
            choice = chosen_by(strategy, seed, truth)
            assert choice is None or choice[1] <= LIMIT_S
            found.append(choice[0] / min(within) - 1 if choice is not None else 1.0)
    assert np.median(regret["auto"]) <= 0.01
    assert np.median(regret["auto"]) < np.median(regret["random_sample"])
