"""A fitted frequency model in words: its parameters with their errors, what they rest on, and what they do not tell."""

from __future__ import annotations

import html
from collections.abc import Sequence

import numpy as np

from ...engine.models.caps import CapFit, CapsAgainstClocks
from ...engine.models.frequency import FrequencyFit
from ...engine.tuning_methods.clock_fits import ClockFit
from ..plots import theme
from ..plots.quantities import format_number

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


def fit_as_html(shown: ClockFit) -> str:
    """A fit, and the power limits beside it, as rich text for people."""
    parts = []
    if shown.fit is not None:
        parts += [_table(_figures(shown.fit)), _choices(shown.fit), _memory_clocks(shown.fit)]
    if shown.caps is not None:
        parts.append(_limits(shown.caps))
    if shown.comparison is not None:
        parts.append(_comparison(shown.comparison))
    muted = theme.colours().muted
    notes = "".join(f"<li>{html.escape(reason)}</li>" for reason in shown.reasons)
    return (
        f"<p><b>{html.escape(shown.gpu)}</b><br>"
        f"<span style='color:{muted}'>fitted to: {html.escape(shown.origin)}</span></p>"
        + "".join(parts)
        + (f"<p style='color:{muted}'>Notes</p><ul style='margin-left:-20px'>{notes}</ul>" if notes else "")
    )


def _figures(fit: FrequencyFit) -> list[str]:
    rows = [_row("<b>Recommended clock</b>", _clock(fit.recommended_clock_mhz))]
    if fit.expected_loss is not None:
        rows.append(_row("Expected there", f"{100 * fit.expected_loss:.1f} % above the unknown best"))
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
    if fit.voltage_ridge_mhz is not None:
        rows.append(_row("τ by voltage", _with_interval(fit.voltage_ridge_mhz, fit.voltage_ridge_interval_mhz)))
    if fit.leakage_w_per_c is not None and fit.reference_c is not None:
        rows.append(_row("Leakage", f"{fit.leakage_w_per_c:.2g} W/°C; the curve is at {fit.reference_c:.0f} °C"))
    if fit.fixed_time_share:
        rows.append(_row("Fixed time", f"{100 * fit.fixed_time_share:.0f} % at the highest clock"))
    if fit.r2 is not None and fit.rmse_w is not None:
        rows.append(_row("R²", f"{fit.r2:.5f}"))
        rows.append(_row("RMSE", f"{format_number(fit.rmse_w)} W"))
    used = int(fit.used.sum())
    left_out = "" if used == fit.points else f", {fit.points - used} left out"
    rows.append(_row("Points", f"{used} used{left_out}"))
    return rows


def _choices(fit: FrequencyFit) -> str:
    rows = [(each.wish, f"{each.clock_mhz:.0f}", _change(each.energy), _change(each.time)) for each in fit.choices]
    return _listing("Other wishes, against the fastest clock", ("", "MHz", "energy", "time"), rows)


def _memory_clocks(fit: FrequencyFit) -> str:
    rows = [
        (
            f"{each.memory_clock_mhz:.0f}",
            f"{each.recommended_clock_mhz:.0f}",
            _change(each.energy),
            _change(each.time),
        )
        for each in fit.memory_clocks
    ]
    heads = ("memory MHz", "graphics MHz", "energy", "time")
    return _listing("Memory clocks, against the best and the fastest", heads, rows)


def _limits(caps: CapFit) -> str:
    rows = [
        _row("<b>Best power limit</b>", f"{caps.best_limit_w:.0f} W"),
        _row("Energy there", f"{-100 * caps.saving:+.1f} %"),
        _row("Speed there", f"{-100 * caps.slower:+.1f} %"),
        _row("Within 5 % of full speed", f"{caps.best_within_5_percent_w:.0f} W"),
        _row("Drawn without a limit", f"{caps.free_power_w:.0f} W"),
    ]
    if caps.kept is not None:
        rows.append(_row("Power over its limit", f"{100 * caps.kept:.0f} % where it binds"))
    return "<p><b>Power limits</b></p>" + _table(rows)


def _comparison(told: CapsAgainstClocks) -> str:
    rows = [
        (name, f"{side.setting:.0f} {unit}", _change(side.energy), _change(side.speed))
        for name, side, unit in (("locked clock", told.clocks, "MHz"), ("power limit", told.caps, "W"))
    ]
    words = f"<p>{html.escape(told.words)}</p>"
    return _listing("Clocks against power limits", ("", "best at", "energy", "speed"), rows) + words


def legend_as_html(fit: FrequencyFit, *, alone: bool = True) -> str:
    """What is drawn how, in the plot's colours and shapes; `alone`: no other fit is drawn behind it."""
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
    """... of the voltage, or why none is drawn."""
    colours = theme.colours()
    if fit is None or not fit.ridge_bracketed:
        return "Without a bracketed ridge power tells no voltage curve."
    entries = [(colours.blue, "━━", "voltage as power tells it, 1 below the ridge")]
    if len(fit.voltage_mv) and np.isfinite(fit.voltage_mv).any():
        entries.append((colours.orange, "●", "measured by the board, scaled to it (mV on the right)"))
    else:
        entries.append((colours.muted, "○", "this board, or this file, tells no voltage"))
    return _legend(entries)


def caps_legend(shown: ClockFit) -> str:
    """... of the power limits, or how to get them."""
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


def _table(rows: Sequence[str]) -> str:
    return f"<table cellspacing='0' cellpadding='2'>{''.join(rows)}</table>"


def _listing(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A small table with a title; nothing where it has no row."""
    if not rows:
        return ""
    muted = theme.colours().muted
    head = "".join(f"<td align='{_side(at)}' style='color:{muted}'>{each}&nbsp;</td>" for at, each in enumerate(heads))
    lines = "".join(
        "<tr>" + "".join(f"<td align='{_side(at)}'>{each}&nbsp;</td>" for at, each in enumerate(row)) + "</tr>"
        for row in rows
    )
    return f"<p><b>{title}</b></p><table cellspacing='0' cellpadding='2'><tr>{head}</tr>{lines}</table>"


def _side(column: int) -> str:
    return "right" if column else "left"


def _change(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.1f} %"


def _with_interval(clock_mhz: float, interval_mhz: tuple[float, float] | None) -> str:
    return f"{clock_mhz:.0f} MHz" + (f" ({interval_mhz[0]:.0f}–{interval_mhz[1]:.0f})" if interval_mhz else "")


def _row(name: str, value: str) -> str:
    return f"<tr><td>{name}&nbsp;&nbsp;</td><td>{value}</td></tr>"


def _clock(clock_mhz: float | None) -> str:
    return _NOT_TOLD if clock_mhz is None else f"{clock_mhz:.0f} MHz"


def _optimum(fit: FrequencyFit) -> str:
    if fit.optimum_mhz is None:
        return _NOT_TOLD
    if not fit.optimum_bracketed:
        return f"{fit.optimum_mhz:.0f} MHz, the edge of what was measured: not bracketed"
    return _with_interval(fit.optimum_mhz, fit.optimum_interval_mhz)


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
