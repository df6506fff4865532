"""Which two figures a session's front is drawn over until the user chooses others."""

from __future__ import annotations

from collections.abc import Sequence

from ..objectives import Goal, Objective, likely_goal
from .iso_lines import Role, role_of
from .quantities import is_efficiency, is_speed


def usual_goals(objective: Objective, names: Sequence[str]) -> tuple[Goal, Goal]:
    """The front of the objective, where it is about the goal; else a speed and an efficiency; else any two.

    `names` are the figures there are, at least one.
    """
    front, goal = objective.front, objective.goal
    metrics_first = sorted(names, key=lambda name: name.endswith(("_s", "_j")))
    rates = [name for name in metrics_first if role_of(name) is Role.SPEED]
    speed = next((name for name in (*rates, *metrics_first) if is_speed(name)), names[0])
    about_goal = goal.name in {each.name for each in front[:2]} or not is_efficiency(goal.name)
    if len(front) >= 2 and (about_goal or goal.name not in names):
        return front[0], front[1]
    if len(front) >= 2:  # time and energy stand in for what is looked for: show that itself
        return likely_goal(speed), goal
    others = [name for name in metrics_first if name != speed] or [speed]
    efficiency = next((name for name in others if is_efficiency(name)), others[0])
    return likely_goal(speed), likely_goal(efficiency)
