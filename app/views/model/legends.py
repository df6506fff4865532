"""What is drawn how in the plots of the model's panel, in the plots' colours and shapes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...engine.models.frequency import FrequencyFit
from ...engine.tuning_methods.clock_fits import ClockFit
from ..plots import theme


def power_legend(fit: FrequencyFit, *, alone: bool = True) -> str:
    """Of power and energy; `alone`: no other fit is drawn behind it."""
    colours = theme.colours()
    measured = "measured on a simulated board" if fit.simulated else "measured"
    points, line, energy = (colours.orange, colours.blue, colours.green) if alone else (colours.text,) * 3
    entries = [(points, "●", measured)] if fit.used.any() else []
    if not fit.used.all():
        entries.append((colours.grey, "✖", "left out of the fit"))
    if fit.identifiable:
        entries += [(line, "━━", "model P(f) and its 95 % band"), (energy, "╍╍", "energy per work (right axis)")]
    if fit.identifiable and len(fit.rate):
        entries.append((energy, "◇", "the same as measured"))
    if fit.optimum_bracketed:
        entries.append((colours.vermillion, "░░", "optimum, 95 %"))
    if fit.range_mhz is not None:
        entries.append((colours.green, "░░", "±10 % of it"))
    return _legend(entries)


def voltage_legend(fit: FrequencyFit | None) -> str:
    """Of the voltage, or why none is drawn."""
    colours = theme.colours()
    if fit is None or not fit.ridge_bracketed:
        return "The voltage curve follows from power only where the ridge is bracketed."
    entries = [(colours.blue, "━━", "voltage estimated from power, 1 below the ridge")]
    if len(fit.voltage_mv) and np.isfinite(fit.voltage_mv).any():
        entries.append((colours.orange, "●", "measured by the board, scaled to it (mV on the right)"))
    else:
        entries.append((colours.muted, "○", "this board, or this file, reports no voltage"))
    return _legend(entries)


def caps_legend(shown: ClockFit) -> str:
    """Of the power limits, or how to measure them."""
    colours = theme.colours()
    if shown.caps is None:
        return "No power limits were measured: tick 'Power limits too' beside 'Fit a clock sweep'."
    entries = [(colours.vermillion, "●", "under a power limit"), (colours.muted, "┈┈", "power equal to the limit")]
    if shown.comparison is not None:
        entries.append((colours.blue, "○", "with a locked clock"))
    return _legend(entries)


def _legend(entries: Sequence[tuple[str, str, str]]) -> str:
    return " &nbsp; ".join(
        f"<span style='color:{colour}'>{mark}</span>&nbsp;{text.replace(' ', '&nbsp;')}"
        for colour, mark, text in entries
    )
