"""The sections of a report on what was found, one function each; a section without content is empty."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...numbers import change, number, percent
from ...sensors.event_reasons import LIMITING
from ...sensors.event_reasons import names as reason_names
from ..analysis.choosers import against, fastest
from ..analysis.costs import values_of
from ..analysis.peak_share import peak_share
from ..formats.names import heading, unit_of
from ..measurement import Measurement, spreads
from ..models.description import describe_fit
from ..tuning_methods.description import describe_sweep
from . import plots
from .content import ReportContent, time_and_energy
from .html import described, figure, paragraph, section, table

_MOST_ROWS = 200  # of the results, best first
_MOST_COLUMNS = 10


def answer(content: ReportContent, letters: dict[int, str]) -> str:
    """The chosen configuration, why, and what it costs and gains."""
    if content.chosen is None:
        return section("The answer", paragraph("No configuration worked.", class_="lead"))
    chosen = content.table.measurement(content.chosen)
    costs = content.analysis.costs
    gain, year = against(costs, fastest(costs.time_s, costs.energy_j), content.chosen, content.load)
    lead = f"{', '.join(f'{n} = {v}' for n, v in chosen.configuration.items())}: {content.why}."
    body = paragraph(lead, class_="lead")
    if gain is not None:
        body += paragraph(f"Against the fastest: {gain.words}.")
    if year is not None and abs(year.saved_kwh) >= 0.005:
        body += paragraph(
            f"The same work over a year ({content.load.hours_per_year:.0f} h on "
            f"{content.load.boards} board{'s' if content.load.boards > 1 else ''}): {year.words}."
        )
    share = peak_share(content.plan, chosen)
    if share is not None:
        body += paragraph(f"It reaches {share.words}.")
    limiting = reason_names(int(chosen.event_reasons) & int(LIMITING))
    if limiting:
        body += paragraph(
            f"While it was measured a limit acted: {', '.join(limiting)}. Its figures belong to that clock."
        )
    body += table(("figure", "value", "95 % interval", "unit"), _figures(content, chosen), "Everything measured of it")
    rows: list[Sequence[object]] = []
    for choice in content.analysis.choices:
        if choice.index is None:
            continue
        time_ms, energy_j, power_w = time_and_energy(content.analysis, choice.index)
        words = choice.against_fastest.words if choice.against_fastest and choice.name != "fastest" else ""
        rows.append((letters.get(choice.index, ""), choice.label, time_ms, energy_j, power_w, words))
    body += table(("", "choice", "ms", "J", "W", "against the fastest"), rows, "Other ways to choose")
    return section("The answer", body)


def front(content: ReportContent, letters: dict[int, str]) -> str:
    """The cloud with its front and its convex hull."""
    plane = content.analysis.plane
    if plane is None or plane.quadrants is None:
        return ""
    (x, y), cut = plane.goals, plane.quadrants
    picture = plots.front_chart(content.analysis, letters, dict(content.units))
    body = figure(picture, "Letters are the choices above; the cross goes through the best of each figure.")
    body += paragraph(
        f"{len(plane.front)} of {cut.total} configurations are on the front; its hypervolume is "
        f"{number(plane.hypervolume, 5)} with the reference ({', '.join(number(float(r)) for r in plane.reference)})."
    )
    body += paragraph(
        f"{cut.better_x} ({cut.percent(cut.better_x):.1f} %) are better in {x.name} than the best by {y.name}, "
        f"{cut.better_y} ({cut.percent(cut.better_y):.1f} %) better in {y.name} than the best by {x.name}, "
        f"{cut.both} ({cut.percent(cut.both):.1f} %) both."
    )
    header = ("", x.name, y.name, *content.table.space.names)
    for indices, caption in (
        (plane.front[::-1], "The front"),
        (plane.hull, "The corners of the convex hull, counterclockwise"),
    ):
        rows = [
            [
                letters.get(int(index), ""),
                *(float(plane.values[index, at]) for at in (0, 1)),
                *content.table.measurement(int(index)).configuration.values(),
            ]
            for index in indices[:_MOST_ROWS]
        ]
        body += table(header, rows, caption)
    return section("Speed against energy", body)


def causes(content: ReportContent) -> str:
    """What speed and efficiency go with."""
    analysis = content.analysis
    body = ""
    for effects in analysis.effects:
        picture = plots.importance_bars(effects)
        pairs = [f"{' and '.join(pair.names)} ({percent(pair.share)})" for pair in effects.interactions[:3]]
        together = f" Together beyond one by one: {', '.join(pairs)}." if pairs else ""
        wanted = f"{'more' if effects.goal.maximise else 'less'} {effects.goal.name}"
        caption = f"Parameters for {wanted}: share of the variance over all, and of what distinguishes the best tenth."
        body += figure(picture, caption + together) if picture else ""
    picture = plots.correlation_bars(analysis.correlations)
    if picture:
        body += figure(picture, "Correlation of everything observed with speed and efficiency; ★ differs between them.")
    return section("What matters", body, _split_table(content))


def _split_table(content: ReportContent) -> str:
    """What matters differently for speed and efficiency: both halves of the cloud [Anzt2015, figure 9]."""
    split = {one.name: one for one in content.analysis.splits}
    movers = [one for one in content.analysis.correlations if one.mover and one.name in split]
    rows: list[Sequence[object]] = []
    for mover in sorted(movers, key=lambda one: -abs(one.moves)):
        one = split[mover.name]
        for words, half, other in (("above", one.above, one.below), ("below", one.below, one.above)):
            faster = half.speed / other.speed - 1 if other.speed else math.nan
            thriftier = half.efficiency / other.efficiency - 1 if other.efficiency else math.nan
            rows.append((f"{one.name} {words} {number(one.mean)}", half.count, percent(faster), percent(thriftier)))
    header = ("measurements with", "how many", "speed, over the others", "efficiency, over the others")
    return table(header, rows, "The cloud split at the mean of what matters differently for the two")


def search(content: ReportContent) -> str:
    """How the search went, and how hard it is."""
    analysis, goal = content.analysis, content.plan.objective.goal
    body = ""
    for curve, label in (
        (analysis.best_so_far, f"best {goal.name}"),
        (analysis.hypervolume_so_far, "hypervolume of the front"),
    ):
        picture = plots.convergence_chart(curve, label) if len(curve) else ""
        body += figure(picture, f"The {label} after each evaluation.") if picture else ""
    picture = plots.difficulty_chart(analysis.difficulty)
    if picture:
        minima = ", ".join(f"{len(one.minima)} of {name}" for name, one in analysis.difficulty.items())
        part = ""
        if analysis.coverage < 1:
            part = (
                f" Only {percent(analysis.coverage)} was measured: that lacks neighbours, and looks harder than it is."
            )
        body += figure(
            picture, f"Share of local searches for the least that end within p of the optimum; minima: {minima}.{part}"
        )
    return section("The search", body)


def model(content: ReportContent) -> str:
    """The frequency model and the roofline of the board, where they are known."""
    body, fit = "", content.fit
    if fit is not None:
        picture = plots.model_chart(fit)
        body += figure(picture, f"The frequency model, {content.fit_source}.") if picture else ""
        body += described(describe_fit(fit, content.fit_source))
    for sweep in content.rooflines:
        picture = plots.roofline_chart(sweep, content.kernel)
        if picture:
            kernel = " K is this kernel." if content.kernel is not None and content.kernel.energy_j else ""
            body += figure(picture, f"Work per energy over intensity, {sweep.label}, {sweep.origin}.{kernel}")
            body += described(describe_sweep(sweep))
        else:
            body += paragraph(f"{sweep.label}: no roofline. {'; '.join(sweep.reasons)}")
    return section("Model of the board", body)


def comparison(content: ReportContent) -> str:
    """The session beside others: what tuning for energy gains on each, and on average [Schoonhoven2024, table 6.2]."""
    found = content.comparison
    if found is None:
        return ""
    rows: list[Sequence[object]] = [
        (
            side.gpu + (" (simulated)" if side.source == "simulated" else ""),
            side.name,
            side.fastest.efficiency,
            side.frugal.efficiency,
            change(1 + side.efficiency_change),
            side.fastest.speed,
            side.frugal.speed,
            change(1 + side.speed_change),
            side.frugal.clock_mhz,
        )
        for side in found.sides
    ]
    efficiency, speed = found.efficiency_name, found.speed_name
    header = ("board", "session", efficiency, "after", "gained", speed, "after", "gained", "MHz after")
    body = table(header, rows, "From the fastest configuration to the one of least energy")
    body += paragraph(
        f"Mean ± standard deviation over {found.over}: efficiency {found.mean_efficiency_change.words}, "
        f"speed {found.mean_speed_change.words}."
    )
    return section("Beside other sessions", body)


def traces(content: ReportContent) -> str:
    """What the board did while the session went on."""
    body = ""
    for name, words in (
        ("power_w", "mean power (W)"),
        ("observed_clock_mhz", "graphics clock (MHz)"),
        ("temperature_c", "temperature (°C)"),
    ):
        picture = plots.trace_chart(content.table, name, words) if name in content.table.value_names else ""
        body += figure(picture, f"The {words} of each configuration, when it was measured.") if picture else ""
    return section("Over the session", body)


def failures(content: ReportContent) -> str:
    """What failed and where."""
    body = ""
    for one in content.analysis.failures:
        body += paragraph(f"{one.count} ({percent(one.share)}) failed: {one.kind}.")
        body += table(("message", "times"), one.messages)
        rows = [
            [f"{w.parameter} = {w.value}", w.failed, w.measured, percent(w.share), percent(w.elsewhere)]
            for w in one.concentrated
        ]
        body += table(("where", "failed", "measured", "share", "elsewhere"), rows, "Values that concentrate failures")
    return section("Failures", body)


def results(content: ReportContent) -> str:
    """The best configurations."""
    run, goal = content.table, content.plan.objective.goal
    values = values_of(run, goal.name)
    ranked = (-values if goal.maximise else values).argsort(kind="stable")
    order = [int(index) for index in ranked if math.isfinite(values[index])][:_MOST_ROWS]
    apart = spreads(run.value_names)
    shown = [name for name in run.value_names if not name.startswith("reference_") and name not in apart]
    shown = shown[:_MOST_COLUMNS]
    if goal.name in run.value_names and goal.name not in shown:
        shown.insert(0, goal.name)
    header = (*(heading(name, content.units) for name in shown), *run.space.names)
    rows = []
    for index in order:
        m = run.measurement(index)
        rows.append([*(m.values.get(name, math.nan) for name in shown), *m.configuration.values()])
    caption = f"The best {len(rows)} of {len(run)}" if len(rows) < len(run) else f"All {len(rows)}"
    return section("Results", table(header, rows, caption))


def _figures(content: ReportContent, chosen: Measurement) -> list[Sequence[object]]:
    rows: list[Sequence[object]] = []
    for name, value in chosen.values.items():
        interval = chosen.intervals.get(name)
        ends = f"{number(interval[0])} to {number(interval[1])}" if interval else ""
        rows.append((name, float(value), ends, unit_of(name, content.units)))
    if math.isfinite(chosen.observed_clock_mhz) and "observed_clock_mhz" not in chosen.values:
        rows.append(("observed clock", chosen.observed_clock_mhz, "", "MHz"))
    return rows
