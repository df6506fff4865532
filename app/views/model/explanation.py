"""The clocks of a frequency model, explained in a line each: from the curve's minimum to the recommendation."""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...engine.models.frequency import FrequencyFit
from ...engine.models.settable_clocks import how_settable
from ..plots import theme

_UNKNOWN = "not known"


@dataclass(frozen=True, slots=True)
class Line:
    """One figure of the model, and what it means in a sentence."""

    name: str
    value: str
    meaning: str


def explained(fit: FrequencyFit) -> Iterator[Line]:
    """The five figures from which a clock is chosen."""
    yield _minimum(fit)
    yield _ridge(fit)
    yield from _optimum(fit)
    yield _recommendation(fit)


def explained_as_html(fit: FrequencyFit) -> str:
    """The same as a table."""
    muted = theme.colours().muted
    rows = "".join(
        f"<tr><td><b>{line.name}</b>&nbsp;&nbsp;</td>"
        f"<td align='right'>{line.value.replace(' ', '&nbsp;')}&nbsp;&nbsp;</td>"
        f"<td style='color:{muted}'>{html.escape(line.meaning)}</td></tr>"
        for line in explained(fit)
    )
    return f"<table cellspacing='0' cellpadding='0'>{rows}</table>"


def _minimum(fit: FrequencyFit) -> Line:
    name = "Curve minimum"
    if not fit.identifiable:
        return Line(name, _UNKNOWN, "the points do not determine the curve")
    sampled = fit.clock_mhz[fit.used]
    clocks = np.linspace(float(sampled.min()), float(sampled.max()), 401)
    at = int(fit.energy(clocks).argmin())
    edge = ", at an end of the measured clocks: the minimum may lie beyond" if at in (0, len(clocks) - 1) else ""
    return Line(name, _mhz(float(clocks[at])), f"where the fitted curve of energy per work is lowest{edge}")


def _ridge(fit: FrequencyFit) -> Line:
    name = "Ridge"
    if fit.ridge_mhz is None:
        return Line(name, _UNKNOWN, "above it the voltage rises with the clock; the points do not determine it")
    if not fit.ridge_bracketed:
        return Line(name, "not bracketed", f"above it the voltage rises; it lies at or beyond {_mhz(fit.ridge_mhz)}")
    return Line(
        name, _mhz(fit.ridge_mhz), "above it the voltage rises with the clock, and power rises faster than speed"
    )


def _optimum(fit: FrequencyFit) -> Iterator[Line]:
    if fit.optimum_mhz is None:
        yield Line("Optimum", _UNKNOWN, "the clock of least energy per work; the points do not determine it")
        yield Line("Interval", _UNKNOWN, "where the optimum lies with 95 % probability")
    elif not fit.optimum_bracketed or fit.optimum_interval_mhz is None:
        beyond = f"the clock of least energy per work lies at or beyond {_mhz(fit.optimum_mhz)}: measure beyond it"
        yield Line("Optimum", "not bracketed", beyond)
        yield Line("Interval", _UNKNOWN, "where the optimum lies with 95 % probability; it needs clocks on both sides")
    else:
        low, high = fit.optimum_interval_mhz
        every = "the clock of least energy per work, over all curves that explain the points, not the best one alone"
        yield Line("Optimum", _mhz(fit.optimum_mhz), every)
        yield Line("Interval", f"{low:.0f}–{high:.0f} MHz", "where the optimum lies with 95 % probability")


def _recommendation(fit: FrequencyFit) -> Line:
    name = "Recommendation"
    if fit.recommended_clock_mhz is None:
        return Line(name, "none", "the points do not say which clock takes the least energy")
    loss = "" if fit.expected_loss is None else f", {100 * fit.expected_loss:.2g} % above the unknown best"
    meaning = f"{how_settable(fit.recommended_clock_mhz)}; the least energy to expect{loss}"
    return Line(name, _mhz(fit.recommended_clock_mhz), meaning)


def _mhz(clock_mhz: float) -> str:
    return f"{clock_mhz:.0f} MHz"
