"""A measurement in words: its configuration and its figures, as rich text."""

from __future__ import annotations

import html

from ...engine.session.plan import SessionPlan
from ...engine.space.result_table import ResultTable
from ..plots.quantities import quantities_of, quantity
from .value_words import value_text


def measurement_words(table: ResultTable, plan: SessionPlan, index: int) -> str:
    """Every parameter and every figure with its unit and, where known, its confidence interval."""
    measurement = table.measurement(index)
    parameters = quantities_of(plan)
    configured = [(parameters[n].title, value_text(v)) for n, v in measurement.configuration.items() if n in parameters]
    figures = []
    for name, value in measurement.values.items():
        described = quantity(name, units=plan.units)
        bounds = measurement.intervals.get(name)
        spread = f" ({described.number(bounds[0])} … {described.number(bounds[1])})" if bounds else ""
        figures.append((described.title, described.number(value) + spread))
    rows = "".join(_row(*pair) for pair in configured)
    rows += '<tr><td colspan="2"><hr></td></tr>' + "".join(_row(*pair) for pair in figures)
    return f"<b>Measurement {index + 1}</b><table cellspacing='0' cellpadding='1'>{rows}</table>"


def _row(name: str, value: str) -> str:
    return f"<tr><td>{html.escape(name)}&nbsp;&nbsp;</td><td align='right'><b>{html.escape(value)}</b></td></tr>"
