"""Spaces of which the true time and energy of every row is known, and strategies driven over them at two depths.

The energy is a simulated board's, thermally steady, or a recorded cache's. What a search is told scatters about it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from app.base.paths import resources
from app.engine.formats.read import read_recording
from app.engine.models.energy_cost import EnergyCostModel, Sample, fit
from app.engine.results.measurement import Depth, State
from app.engine.session.load import load_specification
from app.engine.space.build import build_space
from app.engine.space.search_space import SearchSpace
from app.engine.specification.model import Specification
from app.engine.strategies import base
from app.engine.strategies.base import Background, Batch, Outcome
from app.engine.strategies.energy_aware import RowNumbers
from app.engine.workloads.machine_code import FEATURES, as_rows
from app.engine.workloads.profiled import ProfiledKernel
from app.sensors.simulated import laws
from app.sensors.simulated.profiles import LaunchRefused
from app.sensors.simulated.twin import Twin, load_twin

TIME_SCATTER = 0.005  # of a few launches, relative
ENERGY_SCATTER = 0.005  # of a window of a fifth of a second
COST_S = {Depth.TIME: 0.07, Depth.ENERGY: 0.25}  # of a board for one row, as tests/benchmarks/depths.txt has it
SIMULATED = tuple(name for name, feature in FEATURES.items() if feature.simulated)


@dataclass(frozen=True)
class Table:
    """Every row's truth; inf where it fails."""

    name: str
    space: SearchSpace
    time_s: np.ndarray
    energy_j: np.ndarray
    feature_names: tuple[str, ...]
    features: np.ndarray

    @property
    def worked(self) -> np.ndarray:
        """The rows that do not fail."""
        return np.flatnonzero(np.isfinite(self.energy_j))


@dataclass
class Found:
    """What a search came to."""

    table: Table
    timed: list[int] = field(default_factory=list)
    measured: dict[int, float] = field(default_factory=dict)  # row -> energy as it was told, J
    before: list[int] = field(default_factory=list)  # energies measured before each generation was timed
    remarks: list[str] = field(default_factory=list)
    asked: list[tuple[Depth, int]] = field(default_factory=list)  # in its order

    @property
    def board_s(self) -> float:
        """What a board would have taken for what was asked."""
        return sum(COST_S[depth] for depth, _ in self.asked)

    def seconds_to(self, within: float) -> float:
        """The board's seconds until the row that would be chosen is within that of the best; inf where it never is."""
        best, spent, reached = math.inf, 0.0, math.inf
        for depth, row in self.asked:
            spent += COST_S[depth]
            if depth is Depth.ENERGY and self.measured.get(row, math.inf) < best:
                best = self.measured[row]
                near = self.table.energy_j[row] <= (1 + within) * self.table.energy_j.min()
                reached = min(reached, spent) if near else math.inf
        return reached

    def regret_after(self, seconds: float) -> float:
        """As `regret`, of the row that would have been chosen after so many of the board's seconds; NaN without one."""
        best, least, spent = -1, math.inf, 0.0
        for depth, row in self.asked:
            spent += COST_S[depth]
            if spent > seconds:
                break
            if depth is Depth.ENERGY and self.measured.get(row, math.inf) < least:
                best, least = row, self.measured[row]
        return float(self.table.energy_j[best] / self.table.energy_j.min() - 1) if best >= 0 else math.nan

    @property
    def chosen(self) -> int:
        """The row of least energy as measured."""
        return min(self.measured, key=lambda row: self.measured[row])

    @property
    def regret(self) -> float:
        """How much more energy it needs than the best row of the space, relative; by the truth."""
        return float(self.table.energy_j[self.chosen] / self.table.energy_j.min() - 1)

    @property
    def slowdown(self) -> float:
        """How much slower it is than the fastest row of the space, relative."""
        return float(self.table.time_s[self.chosen] / self.table.time_s.min() - 1)


@cache
def twin_table(example: str, twin_name: str, **constants: int) -> Table:
    """An example of `resources/examples` on a simulated board at its highest clock, at its own limit."""
    spec = load_specification(resources() / "examples" / f"{example}.toml")
    twin = load_twin(twin_name)
    return table_of(spec, twin, f"{example} on {twin_name}", **constants)


def table_of(spec: Specification, twin: Twin, name: str, **constants: int) -> Table:
    """The same of any specification with a profile."""
    spec = replace(spec, constants={**spec.constants, **constants}, device_settings={})
    names = {"block_size_names": spec.kernel.block_size_names} if spec.kernel else {}
    space = build_space(spec.parameters, spec.restrictions, spec.constants, twin.limits, {}, **names)
    kernel = ProfiledKernel.of(spec, twin.limits)
    time_s, energy_j = np.full(space.size, np.inf), np.full(space.size, np.inf)
    for row in range(space.size):
        try:
            load = kernel.prepare(space.configuration(row))
        except LaunchRefused:
            continue
        point, power_w, _ = laws.settled_under_limits(
            twin, load, twin.clocks.graphics_mhz[-1], twin.clocks.memory_mhz[-1], twin.power.limit_default_w
        )
        time_s[row], energy_j[row] = point.launch_s, power_w * point.launch_s
    features = as_rows(SIMULATED, [kernel.features(space.configuration(row)) for row in range(space.size)])
    return Table(name, space, time_s, energy_j, SIMULATED, features)


def recorded_table(path: Path) -> Table:
    """A recorded cache with energies."""
    recording = read_recording(path)
    space, measured = recording.space(), recording.measurements()
    time_s, energy_j = (
        np.array([m.values.get(name, math.inf) if m.state is State.OK else math.inf for m in measured])
        for name in ("time_s", "energy_j")
    )
    registers = [{"registers_per_thread": m.values.get("num_regs", math.nan)} for m in measured]
    return Table(
        path.name.split(".")[0],
        space,
        time_s,
        energy_j,
        ("registers_per_thread",),
        as_rows(("registers_per_thread",), registers),
    )


def sample_of(table: Table, rows: np.ndarray) -> Sample:
    """What a model is given of rows, at their true times."""
    numbers = RowNumbers(table.space)
    features = np.hstack([numbers.of(rows), table.features[rows]])
    return Sample((*numbers.names, *table.feature_names), features, table.time_s[rows])


def model_of(table: Table, size: int) -> EnergyCostModel:
    """A model of a table of which so many rows were measured, without scatter."""
    rows = np.random.default_rng(5).choice(table.worked, min(size, len(table.worked)), replace=False)
    return fit(sample_of(table, rows), table.energy_j[rows])


def search(
    table: Table,
    seed: int,
    options: Mapping[str, Any] | None = None,
    *,
    prior: EnergyCostModel | None = None,
    strategy: str = "energy_aware",
    seconds: float = math.inf,
) -> Found:
    """Drive a strategy to its end, or for so many of the board's seconds; it is told the truth with its scatter."""
    chosen = base.get(strategy).informed(
        Background(table.feature_names, lambda rows: table.features[rows], lambda: prior)
    )
    rng, scatter = np.random.default_rng((seed, 1)), np.random.default_rng((seed, 2))
    asking = chosen.search(
        table.space, rng, 16, base.make_options(chosen, {**({"use_prior": True} if prior else {}), **(options or {})})
    )
    found = Found(table)

    def outcome(row: int, depth: Depth) -> Outcome:
        found.asked.append((depth, row))
        time_s = table.time_s[row] * (1 + TIME_SCATTER * scatter.standard_normal())
        energy_j = table.energy_j[row] * (1 + ENERGY_SCATTER * scatter.standard_normal())
        if not math.isfinite(energy_j):
            return Outcome(row, math.inf, State.RUNTIME, depth=depth)
        if depth is Depth.TIME:
            return Outcome(row, math.nan, State.OK, (time_s, math.nan), {"time_s": time_s}, depth)
        found.measured[row] = energy_j
        return Outcome(row, energy_j, State.OK, (time_s, energy_j), {"time_s": time_s, "energy_j": energy_j})

    try:
        batch = Batch.of(next(asking))
        while found.board_s < seconds:
            found.remarks += [batch.remark] if batch.remark else []
            if batch.depth is Depth.TIME:
                found.before.append(len(found.measured))
                found.timed += batch
            batch = Batch.of(asking.send([outcome(row, batch.depth) for row in batch]))
    except StopIteration:
        pass
    return found
