"""A session's cloud and its front as one small picture, with its own colours: for notebooks."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..formats.names import heading
from ..objectives import Objective
from ..session.summary import front_indices
from ..space.result_table import ResultTable
from .html import element
from .svg import Axis, Drawing

# Readable on a light page and on a dark one.
_STYLE = """
.wattridge{max-width:620px}.wattridge svg{width:100%;height:auto;display:block}
.wattridge text{fill:#7a7f87;font:12px system-ui,sans-serif}
.wattridge .tick{text-anchor:middle}.wattridge .tick.left{text-anchor:end}.wattridge .label{text-anchor:middle}
.wattridge .grid{stroke:#8884;fill:none}.wattridge .frame rect{fill:none;stroke:#888}
.wattridge .dots{stroke:#3b82c4;stroke-linecap:round;fill:none;stroke-opacity:.75}
.wattridge .line{stroke:#d9822b;stroke-width:2;fill:none}
"""


def small_front(table: ResultTable, objective: Objective, units: Mapping[str, str]) -> str:
    """HTML with the picture; empty where there are not two goals, or nothing worked."""
    goals = objective.front
    found = front_indices(table, goals, objective.limits)
    if len(goals) < 2 or not found:
        return ""
    names = [goal.name for goal in goals[:2]]
    x, y = (np.asarray(table.values(name), np.float64) for name in names)
    across, up = (heading(name, units) for name in names)
    drawing = Drawing(Axis.over(across, x), Axis.over(up, y), f"{names[1]} over {names[0]}")
    drawing.dots(x, y, "", "configurations", size=5.0)
    order = sorted(found, key=lambda at: float(x[at]))
    drawing.line(x[order], y[order], "", "Pareto front")
    return f'<div class="wattridge">{element("style", _STYLE)}{drawing.text}</div>'
