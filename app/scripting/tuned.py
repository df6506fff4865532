"""`Tuned`: the result of tuning a callable, for a script, a prompt or a notebook.

`Figures` gives results as dicts with the names that Kernel Tuner's scripts use: times in milliseconds, metrics.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from ..base.errors import InputError, WattridgeError
from ..base.formatting import number
from ..engine.formats.entries import COST_MS
from ..engine.formats.kernel_tuner import time_of
from ..engine.formats.names import THEIR_SETTINGS
from ..engine.report.plots import small_front
from ..engine.results.evidence import unpack
from ..engine.results.measurement import Measurement, State, Value, source_figures
from ..engine.results.objectives import Goal, Objective
from ..engine.session.describe_session import source_in_words
from ..engine.session.summary import best_of, by_goal, front_indices
from ..engine.space.expression import Expression, parse
from ..engine.space.result_table import ResultTable
from ..engine.specification.plan import SessionPlan
from .observers import NVML_OBSERVABLES, PMT_METERS
from .shown import Shown


@dataclass(frozen=True, repr=False, eq=False)
class Tuned(Shown):
    """The measured configurations of one session, the best of them and the front."""

    plan: SessionPlan
    measured: ResultTable
    session: int | None = None  # its number in the Library; None: it comes from a file
    within: float | None = None  # the best is one that is at most this share slower than the fastest

    @property
    def best(self) -> dict[str, Value]:
        """The best configuration by the objective. Raises WattridgeError if none worked."""
        return dict(self.best_measurement.configuration)

    @property
    def best_values(self) -> dict[str, float]:
        """The figures of the best configuration."""
        return dict(self.best_measurement.values)

    @property
    def best_measurement(self) -> Measurement:
        """The best configuration with everything that is known of it."""
        ranked = by_goal(self.measured, self.plan.objective.goal, self.plan.objective.limits)
        if self.within is None and (best := best_of(self.plan, self.measured)) is not None:
            return self.measured.measurement(best)
        if self.within is not None:
            times = self.measured.values("time_s")
            fastest = min((times[index] for index in ranked), default=0.0)
            ranked = [index for index in ranked if times[index] <= (1 + self.within) * fastest]
        if not ranked:
            raise WattridgeError("no configuration worked", self.plan.title, "look at the errors in table()")
        return self.measured.measurement(ranked[0])

    @property
    def front(self) -> list[dict[str, Any]]:
        """The configurations on the front of the objectives, with their figures; empty with one objective."""
        objective = self.plan.objective
        indices = front_indices(self.measured, objective.front, objective.limits)
        return [self._row(self.measured.measurement(index)) for index in indices]

    @property
    def source(self) -> str:
        """Where the figures come from, in words."""
        return source_in_words(self.plan.source)

    def rows(self) -> list[dict[str, Any]]:
        """Every configuration with its figures, in the order of measurement; failed ones have `error`."""
        return [self._row(self.measured.measurement(index)) for index in range(len(self.measured))]

    def pictures(self) -> Iterator[str]:
        """Yield the front over both objectives, where there are two."""
        if front := small_front(self.measured, self.plan.objective, self.plan.units):
            yield front

    def __repr__(self) -> str:
        plan = self.plan
        ranked = by_goal(self.measured, plan.objective.goal, plan.objective.limits)
        if not ranked:
            return f"<{plan.title} on {plan.board}: none of {len(self.measured)} configurations worked>"
        goal = plan.objective.goal.name
        best = f"{self.session or '-'}, best {configuration_text(self.best)}: {goal} {number(self.best_values[goal])}"
        return f"<{plan.title} on {plan.board}, {len(self.measured)} configurations, session {best}>"

    def _row(self, measurement: Measurement) -> dict[str, Any]:
        row = {**measurement.configuration, **measurement.values}
        return (
            row
            if measurement.state is State.OK
            else {**row, "state": measurement.state.value, "error": measurement.error}
        )


def configuration_text(configuration: Mapping[str, Value]) -> str:
    """A configuration in one line.

    Parameters
    ----------
    configuration : mapping
        Values of the parameters.

    Returns
    -------
    str
        The parameters with their values, separated by commas.
    """
    return ", ".join(f"{name}={value}" for name, value in configuration.items())


Result = dict[str, Any]
_OURS = {"time": "time_s", **NVML_OBSERVABLES, "num_regs": "registers_per_thread", "tegra_temp": "temperature_c"}
for _name, _kind in {"ps": "powersensor3", "tegra": "ina", **PMT_METERS}.items():
    _power, _energy = source_figures(_kind.partition(":")[0]) if _kind else ("power_w", "energy_j")
    _OURS |= {f"{_name}_power": _power, f"{_name}_energy": _energy}
_RATE: Final = re.compile(r"[kMGTPE]?(FLOP|OP|B|bit)S?/(s|W|J)|[kMGTPE]?(FLOPS|OPS|B|bit)/(s|W|J)")
_LESS: Final = ("time", "energy", "cost", "loss", *("nvml_energy", "nvml_power"))


class ErrorConfig(str):
    """How a configuration failed, as Kernel Tuner's results have it under `__error__`: the name of its class."""


class InvalidConfig(ErrorConfig):
    """One that the device or the launch does not allow."""


class CompilationFailedConfig(ErrorConfig):
    """One that does not compile."""


class RuntimeFailedConfig(ErrorConfig):
    """One that fails when it runs, or whose outputs are wrong."""


_KINDS: Final = {State.COMPILE: CompilationFailedConfig, State.CONSTRAINTS: InvalidConfig}
FAILURES: Final = {  # by the words of a cache
    kind.__name__: kind for kind in (ErrorConfig, InvalidConfig, CompilationFailedConfig, RuntimeFailedConfig)
}


@dataclass(slots=True)
class Figures:
    """Completes measurements by a script's metrics, and writes them as a script expects them."""

    metrics: Mapping[str, Expression | Callable[[Result], Any]]
    observed: Sequence[str] = ()  # what observers are asked for, beside the time
    more: dict[int, Result] = field(default_factory=dict)  # by row, what is no figure of a measurement
    scales: Mapping[str, float] = field(default_factory=dict)  # of what is observed in a unit of its own
    ran: bool = True  # here and now: what is not known to have been spent on a row was not spent

    @property
    def names_in_metrics(self) -> frozenset[str]:
        """The figures that metrics given as text need; those of functions cannot be determined."""
        texts = (metric for metric in self.metrics.values() if isinstance(metric, Expression))
        return frozenset(name for text in texts for name in text.names)

    def complete(self, measurement: Measurement) -> Measurement:
        """Complete a measurement by the script's metrics. What a metric's function raises goes to the script.

        Parameters
        ----------
        measurement : Measurement
            A measurement. One that failed, or was only timed, is returned as it is: its figures may be unknown.

        Returns
        -------
        Measurement
            With the metrics among its values.

        Raises
        ------
        InputError
            If a metric gives no number.
        """
        if measurement.state is not State.OK or not measurement.final:  # of what was only timed they may be unknown
            return measurement
        if "power_readings" in self.observed and measurement.evidence:
            seen = unpack(measurement.evidence)
            readings = np.stack([seen.times_s, seen.power_w], axis=1).tolist()
            self.more.setdefault(measurement.row, {})["power_readings"] = readings
        result = self.result(measurement)
        figures = {name: result[name] for name in self.metrics}
        numbers = {name: float(value) for name, value in figures.items()}
        return replace(measurement, values={**measurement.values, **numbers})

    def spent(self, measurement: Measurement) -> Result:
        """Time that was spent on a configuration, by Kernel Tuner's names.

        Parameters
        ----------
        measurement : Measurement
            The configuration.

        Returns
        -------
        dict of float
            What the compiler, the check of the outputs and the rest of the measurement took, in ms; what is not known
            is missing.
        """
        result: Result = dict.fromkeys(COST_MS[:2], 0.0) if self.ran else {}
        result |= {name: ms for name, ms in self.more.get(measurement.row, {}).items() if name in COST_MS}
        if math.isfinite(measurement.cost_s):
            result.setdefault(COST_MS[2], max(0.0, measurement.cost_s * 1e3 - result.get(COST_MS[1], 0.0)))
        return result

    def result(self, measurement: Measurement) -> Result:
        """A configuration with all that is known of it, as Kernel Tuner's results have it.

        Parameters
        ----------
        measurement : Measurement
            The configuration.

        Returns
        -------
        dict
            Parameters, figures and metrics by name; of one that failed `__error__` and `error` in place of the metrics.

        Raises
        ------
        InputError
            If a metric gives no number.
        """
        parameters = {THEIR_SETTINGS.get(n, n): value for n, value in measurement.configuration.items()}
        result = {**parameters, **measurement.values, **self._named(measurement), **self.more.get(measurement.row, {})}
        result |= self.spent(measurement)
        if math.isfinite(measurement.timestamp_s):
            result.setdefault("timestamp", time_of(measurement.timestamp_s))
        if measurement.state is not State.OK:
            kind = _KINDS.get(measurement.state, RuntimeFailedConfig)
            return result | {"__error__": kind(kind.__name__), "error": measurement.error}
        for name, metric in self.metrics.items():
            result[name] = _number(name, metric.number(result) if isinstance(metric, Expression) else metric(result))
        return result

    def _named(self, measurement: Measurement) -> Result:
        """The time, and what was asked for, by Kernel Tuner's names."""
        wanted = ("time", *self.observed)
        known = (name for name in wanted if _OURS[name] in measurement.values and name != "power_readings")
        scales = {"time": 1e3, **self.scales}
        return {name: measurement.values[_OURS[name]] * scales.get(name, 1.0) for name in known}


def our_name(name: str) -> str:
    """A figure's name in a measurement, by Kernel Tuner's.

    Parameters
    ----------
    name : str
        Kernel Tuner's name, such as 'nvml_power'.

    Returns
    -------
    str
        The name itself if it has no other one here.
    """
    return _OURS.get(name, name)


def read_metrics(given: Any) -> dict[str, Expression | Callable[[Result], Any]]:
    """Read metrics, in their order: each may use those before it.

    Parameters
    ----------
    given : mapping or None
        Of each metric a text over parameters and figures, or a function of a dict of them; None for no metrics.

    Returns
    -------
    dict of Expression or callable
        Metrics by name.

    Raises
    ------
    InputError
        For anything else, and for a text that is no expression.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InputError(f"they are of type {type(given).__name__}", "metrics", "pass a dict of text or functions")
    result: dict[str, Expression | Callable[[Result], Any]] = {}
    for name, metric in given.items():
        if isinstance(metric, str):
            result[str(name)] = parse(metric, f"metrics[{name!r}]")
        elif callable(metric):
            result[str(name)] = metric
        else:
            raise InputError(f"it is of type {type(metric).__name__}", f"metrics[{name!r}]", "write text or a function")
    return result


def read_objective(objective: Any, higher: Any, objectives: Any, metrics: Sequence[str]) -> Objective:
    """What the search works for, by our names.

    Parameters
    ----------
    objective : str, sequence of str, or None
        One objective or several; None for the time.
    higher : bool, sequence of bool, or None
        Whether higher is better, of all or of each; None where it is known by the name.
    objectives : mapping of str to bool, or None
        Instead of the other two: whether higher is better, by objective.
    metrics : sequence of str
        Names of the script's metrics, which keep theirs.

    Returns
    -------
    Objective
        Of several objectives the first, and the front of all.

    Raises
    ------
    InputError
        If the direction of an objective is neither given nor known, or the objectives are given in another form.
    """
    if objectives is not None:
        if not isinstance(objectives, Mapping) or not objectives:
            what = f"it is of type {type(objectives).__name__}"
            raise InputError(what, "objectives", "pass a dict of names and whether higher is better")
        if objective is not None:
            raise InputError("both objective and objectives are given", "objectives", "give one of them")
        objective, higher = list(objectives), list(objectives.values())
    names = ["time"] if objective is None else [objective] if isinstance(objective, str) else list(objective)
    directions = list(higher) if isinstance(higher, Sequence) else [higher] * len(names)
    if len(directions) != len(names):
        what = f"{len(names)} objectives and {len(directions)} directions"
        raise InputError(what, "objective_higher_is_better", "give one for each")
    goals = tuple(_goal(str(name), direction, metrics) for name, direction in zip(names, directions, strict=True))
    return Objective(goals[0], goals if len(goals) > 1 else ())


def _goal(name: str, higher: bool | None, metrics: Sequence[str]) -> Goal:
    if higher is None:
        if name not in _LESS and name != "fitness" and not _RATE.fullmatch(name):
            remedy = f"say objective_higher_is_better=True or False for {name}"
            raise InputError(f"it is not known whether more or less of '{name}' is better", "objective", remedy)
        higher = name not in _LESS
    return Goal(name if name in metrics else our_name(name), bool(higher))


def _number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        what = f"it gave {value!r}"
        raise InputError(what, f"metrics[{name!r}]", "a metric must give a number") from None
