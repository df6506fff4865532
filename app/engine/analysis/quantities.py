"""Named figures as they are shown: label, unit, and factor from the stored to the shown number.

`usual_goals` gives the two figures over which a session's front is drawn until the user chooses others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ...base.formatting import MINUS, name_and_unit, number
from ...sensors.throttling import HELD_BACK, words_of
from ..formats.names import DEVICE_SETTINGS, unit_of
from ..results.measurement import Measurement, Value
from ..results.objectives import Goal, Objective, likely_goal
from ..results.service_figures import latency_figures
from ..specification.plan import SessionPlan
from .iso_lines import Role, role_of


@dataclass(frozen=True, slots=True)
class Quantity:
    """One figure as it is shown."""

    name: str  # as in the table, the specification or the cache
    label: str
    unit: str  # empty if the name says it all ("GFLOPS/W") or it has none
    factor: float = 1.0  # shown = stored * factor

    @property
    def title(self) -> str:
        """The label with its unit, for axes and column heads."""
        return f"{self.label} ({self.unit})" if self.unit else self.label

    def number(self, value: float) -> str:
        """Format a stored value as shown, without its unit.

        Parameters
        ----------
        value : float
            The stored value, not yet multiplied by `factor`.

        Returns
        -------
        str
            A dash if the value is NaN or infinite.
        """
        return format_number(value * self.factor)

    def text(self, value: float) -> str:
        """Format a stored value as shown, with its unit: '80.44 TFLOPS', '12.3 ms'.

        Parameters
        ----------
        value : float
            The stored value, not yet multiplied by `factor`.

        Returns
        -------
        str
            The number and the unit; a dash in place of the number if the value is NaN or infinite.
        """
        unit = self.unit or (self.label if _label_is_unit(self.label) else "")
        return f"{self.number(value)} {unit}".strip()


_LABELS: Final = {
    "energy_raw_j": "Energy as drawn",
    "power_raw_w": "Power as drawn",
    "board_number": "Board",
    "recent_power_1s_w": "Recent power, 1 s",
    "recent_power_30s_w": "Recent power, 30 s",
    "requests": "Requests",
    "errors": "Errors",
    "error_share": "Share of errors",
    "idle_share": "Idle share",
    **{f"throttled_{reason}_share": f"Share held back: {words_of(reason)}" for reason in HELD_BACK},
    **{
        name: f"{short}, {name.split('_')[1].replace('p', '', 1)}{'' if 'mean' in name else ' %'}"
        for latency, short in (("ttft", "First token"), ("tpot", "Per output token"), ("e2e", "Whole answer"))
        for name in latency_figures(latency)
    },
}


def quantity(name: str, *, units: Mapping[str, str] | None = None, parameter: bool = False) -> Quantity:
    """Return how a figure or parameter is shown.

    Parameters
    ----------
    name : str
        Name of the figure or parameter.
    units : mapping of str to str or None, optional
        Units by name, of names that do not end in one, as a plan has them; None if there are none.
    parameter : bool, optional
        Whether it is a kernel's parameter, which keeps its name: 'tile_s' is no time.

    Returns
    -------
    Quantity
        Times that are stored in s are shown in ms.
    """
    if parameter:
        return Quantity(name, name, "")
    unit = unit_of(name, {})
    if unit and unit != name:  # the name ends in its unit; times are shown in ms
        own = name_and_unit(DEVICE_SETTINGS.get(name, name))[0].replace("_", " ").capitalize()
        label = _LABELS.get(name, own)
        return Quantity(name, label, "ms", 1e3) if unit == "s" else Quantity(name, label, unit)
    unit = (units or {}).get(name, "")
    return Quantity(name, _LABELS.get(name, name), "" if unit == name else unit)


def quantities_of(plan: SessionPlan) -> dict[str, Quantity]:
    """Return how each parameter and device setting of a plan's space is shown.

    Parameters
    ----------
    plan : SessionPlan
        The plan, with its space and units.

    Returns
    -------
    dict of str to Quantity
        By the name of the parameter, in the order of the space.
    """
    return {p.name: quantity(p.name, units=plan.units, parameter=not p.device_setting) for p in plan.space.parameters}


def is_speed(name: str) -> bool:
    """Tell whether a figure is a time or a rate of work.

    Parameters
    ----------
    name : str
        Name of the figure.

    Returns
    -------
    bool
        True for a time or a speed by `role_of`.
    """
    return role_of(name) in (Role.TIME, Role.SPEED)


def is_efficiency(name: str) -> bool:
    """Tell whether a figure is an energy, or work per joule or watt.

    Parameters
    ----------
    name : str
        Name of the figure.

    Returns
    -------
    bool
        True for an energy or an efficiency by `role_of`.
    """
    return role_of(name) in (Role.ENERGY, Role.EFFICIENCY)


def format_number(value: float) -> str:
    """Format a number as `formatting.number` does, with a true minus sign.

    Parameters
    ----------
    value : float
        The number.

    Returns
    -------
    str
        A dash if the number is NaN or infinite.
    """
    return number(float(value)).replace("-", MINUS)


def parameter_text(value: Value) -> str:
    """Format a parameter's value: text and whole numbers as they are, other numbers to four digits.

    Parameters
    ----------
    value : int, float, str or bool
        The value.

    Returns
    -------
    str
        The value as shown, without a unit.
    """
    return format_number(value) if isinstance(value, float) and not value.is_integer() else str(value)


def configuration_text(measurement: Measurement) -> str:
    """Format a configuration in one line: 'block_size_x=32, tile=4'.

    Parameters
    ----------
    measurement : Measurement
        The measurement of the configuration.

    Returns
    -------
    str
        Each parameter with its value, separated by commas.
    """
    return ", ".join(f"{name}={parameter_text(value)}" for name, value in measurement.configuration.items())


def _label_is_unit(label: str) -> bool:
    return any(mark in label for mark in ("/", "FLOPS", "FLOP", "OPS"))


def usual_goals(objective: Objective, names: Sequence[str]) -> tuple[Goal, Goal]:
    """Choose the two goals over which a front is drawn until the user chooses others.

    The front of the objective, where it is about the goal; else a speed and an efficiency; else any two.

    Parameters
    ----------
    objective : Objective
        The objective of the session.
    names : sequence of str
        The figures there are, at least one.

    Returns
    -------
    tuple of Goal
        The goals along x and y; the same figure twice if there is only one.
    """
    front, goal = objective.front, objective.goal
    metrics_first = sorted(names, key=lambda name: name.endswith(("_s", "_j")))
    rates = [name for name in metrics_first if role_of(name) is Role.SPEED]
    speed = next((name for name in (*rates, *metrics_first) if is_speed(name)), names[0])
    about_goal = goal.name in {item.name for item in front[:2]} or not is_efficiency(goal.name)
    if len(front) >= 2 and (about_goal or goal.name not in names):
        return front[0], front[1]
    if len(front) >= 2:  # time and energy stand in for what is looked for: show that itself
        return likely_goal(speed), goal
    others = [name for name in metrics_first if name != speed] or [speed]
    efficiency = next((name for name in others if is_efficiency(name)), others[0])
    return likely_goal(speed), likely_goal(efficiency)
