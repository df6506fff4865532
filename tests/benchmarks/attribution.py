"""Random programs over all simulated boards, whose joules are known: how well the attribution finds them.

    PYTHONPATH=. python tests/benchmarks/attribution.py [PROGRAMS]

Prints a line for each kind of program and for each board, then those made to fool it. Kept in attribution.txt.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from app.engine.attribution.activity import Activity
from app.engine.attribution.attribute import Attribution, attribute
from app.engine.attribution.samples import PowerSamples
from tests.fixtures.programs import ATTACKS, Program, random_program

LARGE = 0.05  # of a program's energy: families that the median error counts


def attributed(program: Program) -> Attribution:
    """What the estimator makes of a program: it is given what is stated, never what is hidden."""
    sensor = program.sensor
    samples = PowerSamples(
        program.sample_s,
        program.sample_w,
        sensor.window_ms / 1e3,
        sensor.lag_ms / 1e3,
        sensor.window_margin_ms / 1e3,
        sensor.lag_margin_ms / 1e3,
        sensor.noise_share,
        clock_mhz=1500.0 * program.clock,
        temperature_c=program.temperature_c,
    )
    activity = Activity.of(program.names, program.kinds, program.family, program.begin_s, program.end_s)
    return attribute(activity, samples, limit_w=program.limit_w, idle_w=program.idle_w)


@dataclass
class Tally:
    """What is counted over programs."""

    programs: int = 0
    covered: list[bool] = field(default_factory=list)  # items, groups and gaps
    covered_large: list[bool] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)  # of large families that stand alone
    halves: list[float] = field(default_factory=list)
    grouped: list[float] = field(default_factory=list)  # share of a program's energy
    wrong: int = 0  # families that vary independently, and are in a group
    totals: list[float] = field(default_factory=list)
    totals_covered: list[bool] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, program: Program) -> None:
        begun = time.process_time()
        result = attributed(program)
        self.seconds += time.process_time() - begun
        self.programs += 1
        truth, total, free = program.family_joules, program.total_joules, program.independent()
        in_groups = 0.0
        for item in result.items:
            true_j = truth[list(item.families)].sum() + program.gap_joules * item.gaps
            holds = item.joules.low <= true_j <= item.joules.high
            self.covered.append(holds)
            if true_j > LARGE * total:
                self.covered_large.append(holds)
            if len(item.families) + item.gaps > 1:
                in_groups += true_j
                self.wrong += sum(free[family] for family in item.families)
            elif not item.gaps and true_j > LARGE * total:
                self.errors.append(abs(item.joules.value / true_j - 1.0))
                self.halves.append(item.joules.half / true_j)
        self.grouped.append(in_groups / total)
        self.totals.append(abs(result.total.value / total - 1.0))
        self.totals_covered.append(result.total.low <= total <= result.total.high)

    def line(self, name: str) -> str:
        errors = np.asarray(self.errors or [np.nan])
        return (
            f"{name:10s} {self.programs:4d} {len(self.covered):6d} {100 * np.mean(self.covered):7.1f} "
            f"{100 * np.mean(self.covered_large or [np.nan]):7.1f} {len(self.errors):6d} "
            f"{100 * np.median(errors):7.2f} {100 * np.quantile(errors, 0.95):7.2f} "
            f"{100 * np.median(self.halves or [np.nan]):7.2f} {100 * np.mean(self.grouped):8.1f} {self.wrong:6d} "
            f"{100 * np.median(self.totals):7.2f} {100 * np.max(self.totals):7.2f} "
            f"{100 * np.mean(self.totals_covered):7.1f} {self.seconds / self.programs:6.2f}"
        )


HEAD = (
    "programs   runs  items  held %  large%  alone  error%    95 %  half %  grouped%  wrong  total%   most%  held %"
    "   s CPU"
)


def main(count: int, only: str = "") -> None:
    """Print the table."""
    whole, by_kind, by_twin = Tally(), defaultdict(Tally), defaultdict(Tally)
    for seed in range(count):
        program = random_program(seed)
        if only and only not in (program.kind, program.twin):
            continue


        single = Tally()
        single.add(program)
        for tally in (whole, by_kind[program.kind], by_twin[program.twin]):
            _merge(tally, single)
    print(HEAD)
    for name, tally in [*by_kind.items(), *sorted(by_twin.items()), ("all", whole)]:
        print(tally.line(name))
    if only:
        return
    for kind in ATTACKS:
        tally = Tally()
        for seed in range(18):
            tally.add(random_program(1000 + seed, kind=kind))
        print(tally.line(kind))


def _merge(into: Tally, other: Tally) -> None:
    for name, value in vars(other).items():
        setattr(into, name, getattr(into, name) + value)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200, *sys.argv[2:3])
