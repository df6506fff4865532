"""One measurement described: its configuration, what the compiler made of it, and every figure; rich text, free of Qt's
widgets."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable

from ...base.formatting import duration
from ...engine.analysis.peak_share import AT_LIMIT, peak_share
from ...engine.analysis.quantities import format_number, parameter_text, quantities_of, quantity
from ...engine.results.measurement import SPREADS, THERMAL_CORRECTION, Measurement, State, scattered, spreads
from ...engine.runner.stating import UNCERTAINTY
from ...engine.session.describe_session import describe_statement
from ...engine.session.gains import describe_gain
from ...engine.specification.operator_shapes import parameters_had
from ...engine.specification.plan import SessionPlan
from ...sensors.event_reasons import names as reason_names
from ..shared import theme

Rows = list[tuple[str, str]]

# Figures of a compiled kernel, by name among a measurement's values.
COMPILED = {
    "registers_per_thread": "Registers per thread",
    "shared_memory_byte": "Shared memory",
    "local_memory_byte": "Spills",
    "occupancy": "Theoretical occupancy",
}
_SHOWN_ELSEWHERE = {
    *COMPILED,
    "settled",
    "observed_clock_mhz",
    THERMAL_CORRECTION,
    UNCERTAINTY,
}


def title_as_html(measurement: Measurement, index: int) -> str:
    """Which measurement, how it ended, whether it is simulated or replayed."""
    colours = theme.colours()
    good = measurement.state is State.OK
    words = "ok" if good else f"failed: {measurement.state.value}"
    state = f"<span style='color:{colours.green if good else colours.vermillion}'><b>{words}</b></span>"
    provenance = {"simulated": "simulated", "recorded": "replayed"}.get(measurement.source, "")
    return " · ".join(filter(None, (f"<b>Measurement {index + 1}</b>", state, provenance)))


def facts_as_html(measurement: Measurement, plan: SessionPlan, *, program: bool) -> str:
    """Everything but the message and the trace. `program`: a command, so nothing is compiled."""
    parameters, settings = _configured(measurement, plan)
    measured = "Measured (95 % interval)" if measurement.intervals else "Measured"
    sections = [
        ("Parameters", parameters),
        ("Device settings", settings or [("none set", "")]),
        (measured, _measured(measurement, plan)),
        ("Repeats: range, deviation", _scatter(measurement, plan)),
        ("Stated", _stated(measurement, plan)),
        ("How", _circumstances(measurement)),
    ]
    if not program:
        sections.append(("Compiled kernel", _compiled(measurement)))
    return _sections(sections)


def why_not_compiled(measurement: Measurement) -> str:
    """Why nothing is known of the compiled kernel."""
    if measurement.source == "simulated":
        return "a simulated board costs a kernel by its profile and compiles nothing"
    if measurement.source == "recorded":
        return "replayed, and the recording does not include it"
    if measurement.state is State.COMPILE:
        return "it did not compile"
    if measurement.state is State.CONSTRAINTS:
        return "it was refused before it ran"
    return "the runner did not report it"


def _configured(measurement: Measurement, plan: SessionPlan) -> tuple[Rows, Rows]:
    shown = quantities_of(plan)
    of_device = {p.name for p in plan.space.parameters if p.device_setting}
    parameters: Rows = []
    settings: Rows = []
    for name, value in parameters_had(measurement.configuration).items():
        described = shown.get(name) or quantity(name, parameter=True)
        text = f"{parameter_text(value)} {described.unit}".strip()
        (settings if name in of_device else parameters).append((described.label, text))
    return parameters, settings


def _compiled(measurement: Measurement) -> Rows:
    values = measurement.values
    finite = {name: values[name] for name in COMPILED if not math.isnan(values.get(name, math.nan))}
    if not finite:
        return [("Registers, shared memory, spills, occupancy", f"not known: {why_not_compiled(measurement)}")]
    return [(label, _compiled_text(name, finite.get(name))) for name, label in COMPILED.items()]


def _compiled_text(name: str, value: float | None) -> str:
    if value is None:
        return "not known: the recording does not include it"
    if name == "shared_memory_byte":
        return f"{format_number(value)} B per block"
    if name == "local_memory_byte":
        return f"{format_number(value)} B per thread (or local arrays)" if value else "none"
    if name == "occupancy":
        return f"{100 * value:.0f} %"
    return format_number(value)


def _measured(measurement: Measurement, plan: SessionPlan) -> Rows:
    rows: Rows = []
    elsewhere = _SHOWN_ELSEWHERE | spreads(measurement.values)
    for name, value in measurement.values.items():
        if name in elsewhere:
            continue
        described = quantity(name, units=plan.units)
        bounds = measurement.intervals.get(name)
        spread = f" ({described.number(bounds[0])}–{described.number(bounds[1])})" if bounds else ""
        rows.append((described.label, f"{described.number(value)} {described.unit}".strip() + spread))
    share = peak_share(plan, measurement)
    if share is not None:
        if max(share.speed, share.efficiency or 0.0) > 1:
            return [*rows, ("Against the published peak", share.words)]
        if share.efficiency is not None:
            rows.append((f"Of {AT_LIMIT}", f"{100 * share.efficiency:.1f} %"))
        rows.append((f"Of the peak speed, {share.precision}", f"{100 * share.speed:.1f} %"))
    return rows or [("nothing", "")]


def _stated(measurement: Measurement, plan: SessionPlan) -> Rows:
    """The thermal condition of energy and power, and how far they hold; nothing if they are as they were drawn."""
    if THERMAL_CORRECTION not in measurement.values:
        return []
    described = (*describe_statement(plan), *describe_gain(plan.origin))
    figures = [
        (description.label, f"{description.value or 'not known'}, {description.note or description.unknown}")
        for description in described
    ]
    factor, off = measurement.values[THERMAL_CORRECTION], measurement.values[UNCERTAINTY]
    return [*figures, ("Corrected by", f"{100 * (factor - 1):+.2f} %, ± {100 * off:.1f} %")]


def _scatter(measurement: Measurement, plan: SessionPlan) -> Rows:
    """How the repeats of a configuration scatter; nothing if it was measured once."""
    rows: Rows = []
    for name in scattered(measurement.values):
        described = quantity(name, units=plan.units)
        least, most, deviation = (described.number(measurement.values[f"{kind}_{name}"]) for kind in SPREADS)
        rows.append((described.label, f"{least}–{most}, {deviation} {described.unit}".strip()))
    return rows


def _circumstances(measurement: Measurement) -> Rows:
    rows: Rows = []
    clock = measurement.observed_clock_mhz
    if not math.isnan(clock):
        rows.append(("Observed clock", f"{format_number(clock)} MHz"))
    if measurement.window_ns is not None:
        start_ns, end_ns = measurement.window_ns
        reasons = ", ".join(reason_names(measurement.event_reasons)) or "none"
        settled = "" if measurement.values.get("settled", 1.0) else "; not settled"
        rows.append(("Clock events", reasons + settled))
        rows.append(("Window", duration((end_ns - start_ns) / 1e9)))
    if measurement.board:
        rows.append(("Board", measurement.board))
    if measurement.power_source:
        rows.append(("Power from", measurement.power_source))
    if measurement.cost_s:
        rows.append(("Took in all", duration(measurement.cost_s)))
    return rows


def _sections(sections: Iterable[tuple[str, Rows]]) -> str:
    muted = theme.colours().muted
    parts = []
    for title, rows in sections:
        if not rows:
            continue
        cells = "".join(_row(name, text, muted) for name, text in rows)
        parts.append(
            f"<p style='margin:6px 0 1px 0; color:{muted}'><b>{title}</b></p>"
            f"<table width='100%' cellspacing='0' cellpadding='1'>{cells}</table>"
        )
    return "".join(parts)


def _row(name: str, text: str, muted: str) -> str:
    if text.startswith("not known") and "," in name:  # a sentence, not a figure
        return f"<tr><td>{html.escape(name)}: <span style='color:{muted}'>{html.escape(text)}</span></td></tr>"
    return f"<tr><td>{html.escape(name)}</td><td align='right'>{html.escape(text)}</td></tr>"
