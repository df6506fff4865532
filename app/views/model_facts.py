"""A fitted frequency model in words: its parameters with their errors, what they rest on, and what they do not tell."""

from __future__ import annotations

import html

from app.engine.models.frequency import FrequencyFit
from app.views import theme
from app.views.quantities import format_number

_NOT_TOLD = "not identifiable"
# attribute, as people read it, unit
_PARAMETERS = (
    ("p_idle_w", "P<sub>idle</sub>", "W"),
    ("p_max_w", "P<sub>max</sub>", "W"),
    ("alpha_w_per_mhz", "α", "W/MHz"),
    ("beta_per_mhz", "β", "1/MHz"),
    ("ridge_mhz", "ridge τ", "MHz"),
    ("softness_mhz", "softness w", "MHz"),
)


def fit_as_html(fit: FrequencyFit, source: str) -> str:
    """The fit as rich text for people."""
    rows = [_row("<b>Recommended clock</b>", _clock(fit.recommended_clock_mhz))]
    rows.append(_row("Estimated optimum", _optimum(fit)))
    rows.append(_row("Lowest measured energy", f"at {_clock(fit.best_measured_mhz)}"))
    if fit.range_mhz is not None:
        rows.append(_row("Range ±10 %", f"{fit.range_mhz[0]:.0f}–{fit.range_mhz[1]:.0f} MHz"))
    rows.append(_row("<b>Model</b>", _form(fit)))
    for name, label, unit in _PARAMETERS:
        value = getattr(fit, name)
        if name == "softness_mhz" and value is None:
            continue
        if name == "p_max_w" and value is None and fit.identifiable:
            rows.append(_row(label, "no cap seen"))
            continue
        rows.append(_row(label, _parameter(fit, name, value, unit)))
    if fit.r2 is not None and fit.rmse_w is not None:
        rows.append(_row("R²", f"{fit.r2:.5f}"))
        rows.append(_row("RMSE", f"{format_number(fit.rmse_w)} W"))
    used = int(fit.used.sum())
    left_out = "" if used == fit.points else f", {fit.points - used} left out"
    rows.append(_row("Points", f"{used} used{left_out}"))
    muted = theme.colours().muted
    notes = "".join(f"<li>{html.escape(reason)}</li>" for reason in fit.reasons)
    return (
        f"<p><b>{html.escape(fit.gpu)}</b><br><span style='color:{muted}'>fitted to: {html.escape(source)}</span></p>"
        f"<table cellspacing='0' cellpadding='2'>{''.join(rows)}</table>"
        + (f"<p style='color:{muted}'>Notes</p><ul style='margin-left:-20px'>{notes}</ul>" if notes else "")
    )


def legend_as_html(fit: FrequencyFit) -> str:
    """What is drawn how, in the plot's colours and shapes."""
    colours = theme.colours()
    measured = "measured on a simulated board" if fit.simulated else "measured"
    entries = [(colours.orange, "●", measured)] if fit.used.any() else []
    if not fit.used.all():
        entries.append((colours.grey, "✖", "left out of the fit"))
    if fit.identifiable:
        entries += [
            (colours.blue, "━━", "model P(f)"),
            (colours.green, "╍╍", "model energy per work, lowest = 1 (right axis)"),
        ]
    if fit.range_mhz is not None:
        entries.append((colours.green, "░░", "±10 % of the optimum"))
    return " &nbsp; ".join(
        f"<span style='color:{colour}'>{mark}</span>&nbsp;{text.replace(' ', '&nbsp;')}"
        for colour, mark, text in entries
    )


def _row(name: str, value: str) -> str:
    return f"<tr><td>{name}&nbsp;&nbsp;</td><td>{value}</td></tr>"


def _clock(clock_mhz: float | None) -> str:
    return _NOT_TOLD if clock_mhz is None else f"{clock_mhz:.0f} MHz"


def _optimum(fit: FrequencyFit) -> str:
    if fit.optimum_mhz is None:
        return _NOT_TOLD
    if not fit.optimum_bracketed:
        return f"{fit.optimum_mhz:.0f} MHz, the edge of what was measured: not bracketed"
    interval = fit.optimum_interval_mhz
    return f"{fit.optimum_mhz:.0f} MHz" + (f" ({interval[0]:.0f}–{interval[1]:.0f})" if interval else "")


def _form(fit: FrequencyFit) -> str:
    if not fit.identifiable:
        return _NOT_TOLD
    bend = "a sharp ridge" if fit.form == "sharp" else "a soft ridge"
    return f"P(f) = min(P<sub>max</sub>, P<sub>idle</sub> + α f v(f)²), {bend}"


def _parameter(fit: FrequencyFit, name: str, value: float | None, unit: str) -> str:
    if value is None:
        return _NOT_TOLD
    error = fit.standard_errors.get(name)
    spread = f" ± {error:.2g}" if error is not None else ""
    edge = ", not bracketed" if name == "ridge_mhz" and not fit.ridge_bracketed else ""
    return f"{format_number(value)}{spread} {unit}{edge}"
