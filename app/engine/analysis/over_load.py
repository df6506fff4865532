"""What a session over a load says: the least energy at each load, its clocks, and whether capping or locking is better.

The load is a parameter that says what is asked of a service: a rate of requests, or how many are asked at once. At each
of its values the choice is the least energy per unit of work among what keeps the session's limits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

import numpy as np

from ...base.records import figure
from ..formats.names import DEVICE_SETTINGS
from ..metering.limit_effect import LimitEffect
from ..models.arrays import Floats, Indices, Mask
from ..models.fit.frequency import FrequencyFit, fit_points
from ..models.fit.points import CLOCK_SETTINGS, LIMIT_SETTINGS
from ..models.series import limit_effects, series_of_table
from ..results.measurement import Value
from ..results.settings import OWN_STATE, PROFILE, SETTINGS, UNTOUCHED, in_words
from ..space.result_table import ResultTable
from .choosers import against
from .costs import Costs, costs_of
from .own_state import at_level, baseline_words, nothing_held, own_levels
from .tradeoff import Load, Tradeoff, Yearly, tradeoff

# How parameters that are a load are called; the first that a table has is its load.
LOADS: Final = ("rate_per_s", "request_rate", "rate", "concurrency", "max_concurrency", "clients", "users", "load")
_OF_A_SERVICE: Final = ("output_tokens_per_s", "requests_per_s")
Settings = tuple[tuple[str, Value], ...]  # of a board, in order of application; 'untouched' is a value


@dataclass(frozen=True, slots=True)
class AtLoad:
    """The measurements at one load. Indices are into the table; None if there is none."""

    IN_JSON: ClassVar = {
        "energy_change": "energy_change",
        "saved_kwh_per_year": "saved_kwh",
        "locking_against_capping": "energy_locking_against_capping",
    }

    load: Value | None  # None: the session has no load
    measured: int
    feasible: int  # of them, within the limits
    best: int | None  # the least energy within the limits
    settings: Settings = field(metadata=figure(key=None))  # of the best
    default: int | None  # the board's own clocks and limit, for the rest as the best, within the limits or not
    locked: (
        int | None
    )  # the least energy within the limits with a clock below the board's own, its power limit untouched
    capped: int | None  # the same with a power limit below the board's own, its clocks untouched
    gain: Tradeoff | None = field(metadata=figure(key=None))  # of the best against the default
    yearly: Yearly | None = field(metadata=figure(key=None))  # of that gain, at the load of a year
    locking_against_capping: Tradeoff | None = field(metadata=figure(key=None))
    limits: tuple[LimitEffect, ...]  # the effect of each power limit, ascending; empty where it is not known

    @property
    def energy_change(self) -> float | None:
        """Of the best against the default, a share."""
        return None if self.gain is None else self.gain.energy_change

    @property
    def saved_kwh(self) -> float | None:
        """In a year."""
        return None if self.yearly is None else self.yearly.saved_kwh

    @property
    def energy_locking_against_capping(self) -> float | None:
        """The change of energy, a share."""
        return None if self.locking_against_capping is None else self.locking_against_capping.energy_change


@dataclass(frozen=True, slots=True)
class SettingsCurve:
    """One setting of the board over the load, ascending by load: arrays of shape (n,)."""

    IN_JSON: ClassVar = {"settings": "by_name"}

    settings: Settings = field(metadata=figure(key=None))
    load: Floats
    rate: Floats  # work a second: output tokens, of a service
    efficiency: Floats  # work per joule
    front: Mask  # points that no setting beats in both, over all loads

    @property
    def by_name(self) -> Mapping[str, Value]:
        """The values of its settings."""
        return dict(self.settings)


@dataclass(frozen=True, slots=True)
class ModelAtLoad:
    """The frequency model of the points at one load, and what else was held."""

    IN_JSON: ClassVar = ("identifiable", "recommended_clock_mhz", "reasons")

    held: str  # 'concurrency=4, memory_clock_mhz=7001'
    fit: FrequencyFit = field(metadata=figure(key=None))

    @property
    def identifiable(self) -> bool:
        """Whether the points determine the model."""
        return self.fit.identifiable

    @property
    def recommended_clock_mhz(self) -> float | None:
        """None if it is not identifiable."""
        return self.fit.recommended_clock_mhz

    @property
    def reasons(self) -> Sequence[str]:
        """How far it can be trusted."""
        return self.fit.reasons


@dataclass(frozen=True, slots=True)
class OverLoad:
    """What a session says over its load."""

    IN_JSON: ClassVar = {"same_setting_at_every_load": "same_setting", "baseline": "baseline"}

    name: str = field(metadata=figure(key="load", nullable=True))  # of the load; empty if it has none
    settings: tuple[str, ...] = field(metadata=figure(key=None))  # device settings among the parameters
    own: Mapping[str, Value]  # the level of each that stands for the board's own state
    levels: tuple[AtLoad, ...]  # ascending
    curves: tuple[SettingsCurve, ...]

    @property
    def baseline(self) -> str:
        """What the gains are against."""
        return baseline_words(self.own)

    @property
    def same_setting(self) -> bool | None:
        """Whether one setting is the best at every load; None if no curve shows it."""
        return not self.changes if self.curves else None

    @property
    def changes(self) -> bool:
        """The best setting is not the same at every load."""
        return len({level.settings for level in self.levels if level.best is not None}) > 1


def load_of(table: ResultTable) -> str:
    """Find the parameter that is a load.

    Parameters
    ----------
    table : ResultTable
        The measurements.

    Returns
    -------
    str
        Its name; empty if none is a load, or if it has one value only.
    """
    values = {p.name: p.values for p in table.space.parameters if not p.device_setting}
    candidates = (name for name in LOADS if len(values.get(name, ())) > 1)
    return next((name for name in candidates if all(_is_number(value) for value in values[name])), "")


def over_load(table: ResultTable, feasible: Mask | None = None, load: Load | None = None) -> OverLoad | None:
    """Compute the least energy at each load from the measurements so far.

    Parameters
    ----------
    table : ResultTable
        The measurements, n of them.
    feasible : array of bool, shape (n,), or None, optional
        Which measurements keep the session's limits; all of them where None.
    load : Load or None, optional
        Load of a year; the default of `Load` where None.

    Returns
    -------
    OverLoad or None
        None if the session has no load and is of no service.
    """
    table = table.so_far()
    settings = tuple(sorted((p.name for p in table.space.parameters if p.device_setting), key=_order))
    name = load_of(table)
    if not name and not any(element in table.value_names for element in _OF_A_SERVICE):
        return None
    costs = costs_of(table)
    allowed = np.isfinite(costs.energy_j)
    within = allowed & feasible if feasible is not None else allowed
    levels_of = own_levels(table, allowed)
    board_values = {setting: levels_of[setting] for setting in settings if setting in levels_of}
    loads = table.values(name)[: len(table)] if name else np.zeros(len(table))
    values = np.unique(loads[allowed])
    levels = [
        _at_load(table, costs, board_values, (value if name else None), allowed & (loads == value), within, load)
        for value in values.tolist()
    ]
    return OverLoad(
        name, settings, board_values, tuple(levels), _curves(table, costs, settings, loads, within) if name else ()
    )


def models_over_load(table: ResultTable, *, gpu: str = "", simulated: bool = False) -> tuple[ModelAtLoad, ...]:
    """Fit the frequency model at each load and memory clock of which several graphics clocks were measured.

    Parameters
    ----------
    table : ResultTable
        The measurements.
    gpu : str, optional
        Name of the board.
    simulated : bool, optional
        Whether the board is simulated.

    Returns
    -------
    tuple of ModelAtLoad
        Each fit has a flag whether it is identifiable, and the reasons. Empty without a graphics clock among the
        parameters.
    """
    if not any(name in table.space.names for name in CLOCK_SETTINGS):
        return ()
    return tuple(
        ModelAtLoad(points.series, fit_points(points))
        for points in series_of_table(table, gpu=gpu, simulated=simulated)
        if points.clocks > 1
    )


def settings_at(load: OverLoad, table: ResultTable, index: int) -> str:
    """Describe the board's settings of a measurement.

    Parameters
    ----------
    load : OverLoad
        The analysis, with the settings that stand for the board's own.
    table : ResultTable
        The measurements.
    index : int
        The index of the measurement.

    Returns
    -------
    str
        The settings in words; "the board's own state" where it has them all.
    """
    configuration = table.measurement(index).configuration
    changed = {
        DEVICE_SETTINGS.get(name, name): value if isinstance(value, str) else float(value)
        for name in load.settings
        if (value := configuration[name]) != load.own.get(name)
    }
    own = OWN_STATE if UNTOUCHED in load.own.values() else "the highest measured"
    return in_words(changed) if changed else own


# --- inside -----------------------------------------------------------------------------------------------------------


def _at_load(
    table: ResultTable,
    costs: Costs,
    board_values: Mapping[str, Value],
    value: float | None,
    here: Mask,
    within: Mask,
    load: Load | None,
) -> AtLoad:
    best = _least(costs.energy_j, here & within)
    own = _all([at_level(table, name, level, len(here)) for name, level in board_values.items()], len(here))
    default = _like(table, np.flatnonzero(here & own), best, board_values, costs)
    # locking and capping are compared with what holds nothing back, whether untouched or at the highest value
    open_ = {name: nothing_held(table, name, len(here)) for name in board_values}
    clocks = _all([mask for name, mask in open_.items() if name not in (*LIMIT_SETTINGS, PROFILE)], len(here))
    limits = _all([mask for name, mask in open_.items() if name in LIMIT_SETTINGS], len(here))
    plain = _all([mask for name, mask in open_.items() if name == PROFILE], len(here))
    locked = _least(costs.energy_j, here & within & plain & limits & ~clocks)
    capped = _least(costs.energy_j, here & within & plain & clocks & ~limits)
    gain, yearly = against(costs, default, best, load) if board_values and default != best else (None, None)
    locking = None
    if locked is not None and capped is not None:
        t, e = costs.time_s, costs.energy_j
        locking = tradeoff(float(t[capped]), float(e[capped]), to_time_s=float(t[locked]), to_energy_j=float(e[locked]))
    feasible = int((here & within).sum())
    chosen = () if best is None else _settings(table, best, tuple(board_values))
    effects = limit_effects(table, np.flatnonzero(here))
    return AtLoad(
        value, int(here.sum()), feasible, best, chosen, default, locked, capped, gain, yearly, locking, effects
    )


def _settings(table: ResultTable, index: int, names: tuple[str, ...]) -> Settings:
    """The settings of a measurement, under this program's names."""
    configuration = table.measurement(index).configuration
    values = (value if isinstance(value := configuration[name], str) else float(value) for name in names)
    return tuple(zip((DEVICE_SETTINGS.get(name, name) for name in names), values, strict=True))


def _like(
    table: ResultTable, among: Indices, best: int | None, board_values: Mapping[str, Value], costs: Costs
) -> int | None:
    """Of these the one whose other parameters are the best's, of several the least energy; None if none is."""
    if best is not None:
        wanted = {k: v for k, v in table.measurement(best).configuration.items() if k not in board_values}
        same = [i for i in among.tolist() if wanted.items() <= table.measurement(i).configuration.items()]
        among = np.array(same, dtype=np.int64)
    return int(among[np.argmin(costs.energy_j[among])]) if len(among) else None


def _curves(
    table: ResultTable, costs: Costs, settings: tuple[str, ...], loads: Floats, within: Mask
) -> tuple[SettingsCurve, ...]:
    """One curve per setting of the board: at each load its least energy within the limits."""
    rate, efficiency = 1 / costs.time_s, 1 / costs.energy_j
    best: dict[Settings, dict[float, int]] = {}
    for index in np.flatnonzero(within).tolist():
        kept = best.setdefault(_settings(table, index, settings), {})
        before = kept.get(float(loads[index]))
        if before is None or costs.energy_j[index] < costs.energy_j[before]:
            kept[float(loads[index])] = index
    chosen = {index for kept in best.values() for index in kept.values()}
    front = {i for i in chosen if not any(_beats(rate, efficiency, other, i) for other in chosen)}
    results = []
    for key, kept in sorted(best.items(), key=lambda item: [(v == UNTOUCHED, v) for _, v in item[0]]):
        rows = [kept[value] for value in sorted(kept)]
        results.append(
            SettingsCurve(
                key,
                np.array(sorted(kept)),
                rate[rows],
                efficiency[rows],
                np.array([row in front for row in rows]),
            )
        )
    return tuple(results)


def _beats(rate: Floats, efficiency: Floats, one: int, other: int) -> bool:
    """At least as good in both, and better in one."""
    no_worse = rate[one] >= rate[other] and efficiency[one] >= efficiency[other]
    return bool(no_worse and (rate[one] > rate[other] or efficiency[one] > efficiency[other]))


def _least(energy: Floats, allowed: Mask) -> int | None:
    rows = np.flatnonzero(allowed)
    return int(rows[np.argmin(energy[rows])]) if len(rows) else None


def _all(masks: list[Mask], length: int) -> Mask:
    return np.logical_and.reduce(masks) if masks else np.ones(length, dtype=np.bool_)


def _order(name: str) -> int:
    setting = DEVICE_SETTINGS.get(name, name)
    return SETTINGS.index(setting) if setting in SETTINGS else len(SETTINGS)


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
