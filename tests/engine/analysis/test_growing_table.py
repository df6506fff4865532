"""Whoever reads several columns of a session that runs gets as many of each."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.engine.analysis.compare import Compared, compare_sessions
from app.engine.analysis.costs import costs_of
from app.engine.analysis.session_analysis import analyse
from app.engine.results.measurement import Measurement, State
from app.engine.results.objectives import Goal, Objective
from app.engine.space.result_table import ResultTable
from app.engine.space.search_space import space_of_table

BEGUN = 1020  # its columns double their room at 1024, while they are read


class GrowingTable(ResultTable):
    """The engine measures one more whenever a column was read, but not of what was read `so_far`."""

    def __init__(self, begun: int, most: int) -> None:
        super().__init__(space_of_table({"x": ()}, [(x,) for x in range(most)]))
        self._engine: GrowingTable | None = None
        for _ in range(begun):
            self.measure()
        self._engine = self

    def measure(self) -> None:
        row = len(self)
        if row < self.space.size:
            figures = {"time_s": 1.0 + row, "power_w": 100.0 + row % 7, "GFLOP/s": 10.0 / (1 + row)}
            efficiency = figures["GFLOP/s"] / figures["power_w"]
            self.append(
                Measurement(row, self.space.configuration(row), State.OK, {**figures, "GFLOPS/W": efficiency}),
            )

    def values(self, name: str, start: int = 0) -> Any:
        found = super().values(name, start)
        if self._engine is self:
            self.measure()
        return found


def growing() -> GrowingTable:
    return GrowingTable(BEGUN, 1200)


def test_what_there_was_stays_while_the_table_grows() -> None:
    table = growing()
    seen = table.so_far()
    times = np.array(seen.values("time_s"))
    for _ in range(10):
        table.measure()
    assert len(table) > len(seen) == BEGUN
    assert np.array_equal(seen.values("time_s"), times)
    assert np.array_equal(seen.rows(), np.arange(BEGUN))
    assert np.array_equal(seen.values("x"), np.arange(BEGUN)), "a parameter's column too"
    assert len(seen.states()) == len(seen.values("unknown")) == BEGUN


def test_costs_of_a_session_that_runs() -> None:
    table = growing()
    costs = costs_of(table)
    assert len(costs.time_s) == len(costs.energy_j) == len(costs.power_w) == BEGUN
    assert np.array_equal(costs.energy_j, costs.time_s * costs.power_w)
    assert len(table.so_far()) == BEGUN, "nothing but a snapshot was read"


def test_a_session_that_runs_is_analysed_as_far_as_it_was() -> None:
    table = growing()
    both = (Goal("GFLOP/s", True), Goal("GFLOPS/W", True))
    found = analyse(table, Objective(both[1], both), with_difficulty=False)
    assert len(found.costs.time_s) == len(found.best_so_far) == BEGUN
    assert found.plane is not None
    assert len(found.plane.values) == BEGUN
    assert found.table is table, "whose result it is, stays known"


def test_sessions_that_run_are_compared_as_far_as_they_were() -> None:
    sides = [Compared(name, "A100", "simulated", growing()) for name in ("one", "other")]
    found = compare_sessions(sides)
    assert [side.measured for side in found.sides] == [BEGUN, BEGUN]
