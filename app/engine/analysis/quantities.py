"""Named figures as they are shown: label, unit, and factor from the stored to the shown number.

`usual_goals` gives the two figures over which a session's front is drawn until the user chooses others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ...base.formatting import MINUS, name_and_unit, number
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
        """A stored value as shown, without its unit; a dash if it is unknown."""
        return format_number(value * self.factor)

    def text(self, value: float) -> str:
        """A stored value as shown, with its unit: '80.44 TFLOPS', '12.3 ms'."""
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
    **{
        name: f"{short}, {name.split('_')[1].replace('p', '', 1)}{'' if 'mean' in name else ' %'}"
        for latency, short in (("ttft", "First token"), ("tpot", "Per output token"), ("e2e", "Whole answer"))
        for name in latency_figures(latency)
    },
}


def quantity(name: str, *, units: Mapping[str, str] | None = None, parameter: bool = False) -> Quantity:
    """How `name` is shown. A kernel's `parameter` keeps its name: 'tile_s' is no time. `units` come from the plan."""
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
    """How each parameter and device setting of the plan's space is shown."""
    return {p.name: quantity(p.name, units=plan.units, parameter=not p.device_setting) for p in plan.space.parameters}


def is_speed(name: str) -> bool:
    """A time or a rate of work."""
    return role_of(name) in (Role.TIME, Role.SPEED)


def is_efficiency(name: str) -> bool:
    """Energy, or work per joule or watt."""
    return role_of(name) in (Role.ENERGY, Role.EFFICIENCY)


def format_number(value: float) -> str:
    """`numbers.number` with a true minus sign."""
    return number(float(value)).replace("-", MINUS)


def parameter_text(value: Value) -> str:
    """A parameter's value as shown: text and whole numbers as they are, other numbers to four digits."""
    return format_number(value) if isinstance(value, float) and not value.is_integer() else str(value)


def configuration_text(measurement: Measurement) -> str:
    """A configuration in one line: 'block_size_x=32, tile=4'."""
    return ", ".join(f"{name}={parameter_text(value)}" for name, value in measurement.configuration.items())


def _label_is_unit(label: str) -> bool:
    return any(mark in label for mark in ("/", "FLOPS", "FLOP", "OPS"))


def usual_goals(objective: Objective, names: Sequence[str]) -> tuple[Goal, Goal]:
    """The front of the objective, where it is about the goal; else a speed and an efficiency; else any two.

    `names` are the figures there are, at least one.
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
