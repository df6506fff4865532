"""Model-steered search (S1 6.5.4): only the graphics clocks near the most efficient one, by any other strategy.

A short clock sweep of one good configuration comes first; the frequency model fitted to it tells the clocks.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ..models.frequency import MINIMUM_CLOCKS, FrequencyFit
from ..models.point_fits import fit_points
from ..models.points import CLOCK_SETTINGS, LIMIT_SETTINGS, Points
from ..space.search_space import SearchSpace
from . import base as strategies
from .base import Evaluations, Outcome, Search, strategy
from .moves import check_least, check_share

Floats = npt.NDArray[np.float64]
_LOWEST_SHARE = 0.4  # of the highest clock: no ridge measured yet lies below it
_CONTRADICTION = 0.02  # of the objective: if it is that much better elsewhere, it does not follow the energy
_ATTEMPTS = 4  # samples without a configuration that works


def _others() -> tuple[str, ...]:
    return tuple(name for name in strategies.names() if name != Steered.name)


@strategy
class Steered:
    """Sweeps the clocks of one good configuration, then searches only those near the model's most efficient one.

    Where nothing tells power or clock, or the model says nothing, it says so and searches the whole space.
    """

    name: ClassVar[str] = "steered"
    label: ClassVar[str] = "Model-steered clocks"

    @dataclass(frozen=True)
    class Options:
        base: str = field(
            default="auto", metadata={"help": "the strategy that searches these clocks", "choices": _others}
        )
        within: float = field(default=0.1, metadata={"help": "clocks that far from the most efficient one, as a share"})
        clocks: int = field(default=8, metadata={"help": f"clocks of the sweep, at least {MINIMUM_CLOCKS}"})
        first_samples: int = field(
            default=16, metadata={"help": "random configurations at the highest clock; the best is swept"}
        )

        def __post_init__(self) -> None:
            if strategies.get(self.base).name == Steered.name:
                raise ValueError("base must be another strategy")
            check_share("within", self.within)
            check_least("clocks", self.clocks, MINIMUM_CLOCKS)
            check_least("first_samples", self.first_samples, 1)

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: Options) -> Search:
        known, chosen = Evaluations(space), strategies.get(options.base)
        rows, remark = yield from self._steer(space, known, rng, options)
        if rows is None:
            rows, remark = np.arange(space.size), f"Not steered: {remark}. By {chosen.label}."
        else:
            remark = f"{remark}, {len(rows)} of {space.size} configurations, by {chosen.label}."
        yield from _within(rows, chosen, space, known, rng, batch, remark)

    def _steer(
        self, space: SearchSpace, known: Evaluations, rng: np.random.Generator, options: Options
    ) -> Generator[list[int], Sequence[Outcome], tuple[npt.NDArray[np.int64] | None, str]]:
        """The rows to search, or None, and what was found out."""
        setting = next((name for name in CLOCK_SETTINGS if name in space.names), None)
        if setting is None:
            return None, f"the space has no {CLOCK_SETTINGS[0]}"
        clock_mhz = space.column(setting).astype(np.float64)
        if len(np.unique(clock_mhz)) < MINIMUM_CLOCKS:
            return None, f"{setting} has {len(np.unique(clock_mhz))} values, the model needs {MINIMUM_CLOCKS}"
        good = yield from self._good_row(np.flatnonzero(clock_mhz == clock_mhz.max()), known, rng, options)
        if good is None:
            return None, "no configuration worked at the highest clock"
        sweep = _sweep_rows(space, setting, clock_mhz, good, options.clocks)
        yield from known.ask(sweep, f"Sweeping the clocks of {_words(space, good, setting)}.")
        fit = _fit(space, clock_mhz, [known.outcome(row) for row in sweep])
        if isinstance(fit, str):
            return None, fit
        optimum = fit.optimum_mhz
        if optimum is None:
            return None, f"the frequency model is not identifiable ({'; '.join(fit.reasons)})"
        near = np.abs(clock_mhz - optimum) <= options.within * optimum
        if not near.any():  # clocks far apart: those next to it
            near = np.abs(clock_mhz - optimum) == np.abs(clock_mhz - optimum).min()
        here, elsewhere = (min((known.cost(r) for r in sweep if near[r] == side), default=math.inf) for side in (1, 0))
        if math.isfinite(elsewhere) and here - elsewhere > _CONTRADICTION * abs(elsewhere):
            return None, f"the objective is better at other clocks than near {optimum:.0f} MHz, where energy is lowest"
        clocks = np.unique(clock_mhz[near])
        bracketed = "" if fit.optimum_bracketed else ", the end of the sweep"
        span = f"{clocks[0]:g}–{clocks[-1]:g}" if len(clocks) > 1 else f"{clocks[0]:g}"
        return np.flatnonzero(near), f"Most efficient near {optimum:.0f} MHz{bracketed}: only {span} MHz is searched"

    def _good_row(
        self, fastest: npt.NDArray[np.int64], known: Evaluations, rng: np.random.Generator, options: Options
    ) -> Generator[list[int], Sequence[Outcome], int | None]:
        """The best of a sample of rows, drawn anew a few times where none works."""
        order = rng.permutation(fastest)
        for start in range(0, min(len(order), _ATTEMPTS * options.first_samples), options.first_samples):
            sample = order[start : start + options.first_samples].tolist()
            costs = yield from known.ask(sample)
            if math.isfinite(min(costs)):
                return int(sample[int(np.argmin(costs))])
        return None


def _sweep_rows(space: SearchSpace, setting: str, clock_mhz: Floats, row: int, count: int) -> list[int]:
    """Rows that differ from one only in the clock: about `count`, evenly spread over the clocks, the row's own too."""
    axis = space.names.index(setting)
    others = [j for j in range(len(space.names)) if j != axis]
    alike = np.flatnonzero((space.codes[:, others] == space.codes[row, others]).all(axis=1))
    alike = alike[np.argsort(clock_mhz[alike], kind="stable")]
    wanted = np.linspace(max(clock_mhz[alike[0]], _LOWEST_SHARE * clock_mhz.max()), clock_mhz[row], count)
    nearest = np.abs(clock_mhz[alike][None, :] - wanted[:, None]).argmin(axis=1)
    return [int(each) for each in alike[np.unique(nearest)]]


def _fit(space: SearchSpace, clock_mhz: Floats, swept: Sequence[Outcome]) -> FrequencyFit | str:
    """The frequency model of the sweep, or why there is none."""
    worked = [outcome for outcome in swept if math.isfinite(_power_w(outcome))]
    if len(worked) < MINIMUM_CLOCKS:
        if any(outcome.values for outcome in swept) and not worked:
            return "the measurements hold no power_w"
        return f"power was measured at {len(worked)} clocks, the model needs {MINIMUM_CLOCKS}"
    time_s = np.array([outcome.values.get("time_s", math.nan) for outcome in worked])
    limit = next((space.configuration(worked[0].row)[name] for name in LIMIT_SETTINGS if name in space.names), None)
    return fit_points(
        Points(
            clock_mhz=np.array([_clock_mhz(outcome, clock_mhz) for outcome in worked]),
            power_w=np.array([_power_w(outcome) for outcome in worked]),
            rate=1.0 / time_s if (time_s > 0).all() else None,
            limited=None,
            limit_w=float(limit) if isinstance(limit, int | float) else None,
            supported_mhz=tuple(np.unique(clock_mhz).tolist()),
            gpu="",
            series="sweep",
        )
    )


def _power_w(outcome: Outcome) -> float:
    values = outcome.values
    if "power_w" in values:
        return values["power_w"]
    time_s = values.get("time_s", math.nan)
    return values.get("energy_j", math.nan) / time_s if time_s > 0 else math.nan


def _clock_mhz(outcome: Outcome, clock_mhz: Floats) -> float:
    """The observed clock, else the requested one."""
    observed = outcome.values.get("observed_clock_mhz", math.nan)
    return observed if math.isfinite(observed) else float(clock_mhz[outcome.row])


def _words(space: SearchSpace, row: int, setting: str) -> str:
    told = space.configuration(row).items()
    return ", ".join(f"{name}={value}" for name, value in told if name != setting) or "the board"


def _within(
    rows: npt.NDArray[np.int64],
    chosen: strategies.Strategy,
    space: SearchSpace,
    known: Evaluations,
    rng: np.random.Generator,
    batch: int,
    remark: str,
) -> Search:
    """Another strategy over some rows (ascending). What is known already is answered without measuring."""
    part = space if len(rows) == space.size else space.subset(rows)
    search = chosen.search(part, rng, batch, chosen.Options())
    try:
        asked = next(search)
        while True:
            if isinstance(asked, strategies.Remarked):
                remark = f"{remark} {asked.remark}".strip()
            theirs = [int(rows[row]) for row in asked]
            fresh = any(row not in known for row in theirs)
            yield from known.ask(theirs, remark)
            remark = "" if fresh else remark  # said with the next that is measured
            outcomes = [known.outcome(row) for row in theirs]
            asked = search.send([dataclasses.replace(o, row=r) for o, r in zip(outcomes, asked, strict=True)])
    except StopIteration:
        return
    finally:
        search.close()
