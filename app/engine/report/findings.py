"""The sections of a report on what was found, one function each; one that has nothing to tell is empty."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...sensors.event_reasons import LIMITING
from ...sensors.event_reasons import names as reason_names
from ..analysis.choosers import against, fastest
from ..analysis.costs import values_of
from ..analysis.peak_share import peak_share
from ..formats.names import heading, unit_of
from ..measurement import Measurement, spreads
from ..models.roofline.fit import RooflineFit
from ..tuning_methods.roofline_points import shares_of_peak, word_byte
from . import plots
from .content import ReportContent, time_and_energy
from .html import facts, figure, number, paragraph, percent, section, table

_MOST_ROWS = 200  # of the results, best first
_MOST_COLUMNS = 10


def answer(content: ReportContent, letters: dict[int, str]) -> str:
    """The chosen configuration, why, and what it costs and gains."""
    if content.chosen is None:
        return section("The answer", paragraph("No configuration worked.", class_="lead"))
    chosen = content.table.measurement(content.chosen)
    costs = content.analysis.costs
    change, year = against(costs, fastest(costs.time_s, costs.energy_j), content.chosen, content.load)
    lead = f"{', '.join(f'{n} = {v}' for n, v in chosen.configuration.items())}: {content.why}."
    told = paragraph(lead, class_="lead")
    if change is not None:
        told += paragraph(f"Against the fastest: {change.words}.")
    if year is not None and abs(year.saved_kwh) >= 0.005:
        told += paragraph(
            f"The same work over a year ({content.load.hours_per_year:.0f} h on "
            f"{content.load.boards} board{'s' if content.load.boards > 1 else ''}): {year.words}."
        )
    share = peak_share(content.plan, chosen)
    if share is not None:
        told += paragraph(f"It reaches {share.words}.")
    limiting = reason_names(int(chosen.event_reasons) & int(LIMITING))
    if limiting:
        told += paragraph(
            f"While it was measured a limit acted: {', '.join(limiting)}. Its figures belong to that clock."
        )
    told += table(("figure", "value", "95 % interval", "unit"), _figures(content, chosen), "Everything measured of it")
    rows: list[Sequence[object]] = []
    for choice in content.analysis.choices:
        if choice.index is None:
            continue
        time_ms, energy_j, power_w = time_and_energy(content.analysis, choice.index)
        words = choice.against_fastest.words if choice.against_fastest and choice.name != "fastest" else ""
        rows.append((letters.get(choice.index, ""), choice.label, time_ms, energy_j, power_w, words))
    told += table(("", "choice", "ms", "J", "W", "against the fastest"), rows, "Other ways to choose")
    return section("The answer", told)


def front(content: ReportContent, letters: dict[int, str]) -> str:
    """The cloud with its front and its convex hull."""
    plane = content.analysis.plane
    if plane is None or plane.quadrants is None:
        return ""
    (x, y), cut = plane.goals, plane.quadrants
    picture = plots.front_chart(content.analysis, letters, dict(content.units))
    told = figure(picture, "Letters are the choices above; the cross goes through the best of each figure.")
    told += paragraph(
        f"{len(plane.front)} of {cut.total} configurations are on the front; its hypervolume is "
        f"{number(plane.hypervolume, 5)} with the reference ({', '.join(number(float(r)) for r in plane.reference)})."
    )
    told += paragraph(
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
        told += table(header, rows, caption)
    return section("Speed against energy", told)


def causes(content: ReportContent) -> str:
    """What speed and efficiency go with."""
    analysis = content.analysis
    told = ""
    for effects in analysis.effects:
        picture = plots.importance_bars(effects)
        pairs = [f"{' and '.join(pair.names)} ({percent(pair.share)})" for pair in effects.interactions[:3]]
        together = f" Together beyond one by one: {', '.join(pairs)}." if pairs else ""
        wanted = f"{'more' if effects.goal.maximise else 'less'} {effects.goal.name}"
        caption = f"Parameters for {wanted}: share of the variance over all, and of what tells the best tenth apart."
        told += figure(picture, caption + together) if picture else ""
    picture = plots.correlation_bars(analysis.correlations)
    if picture:
        told += figure(picture, "Correlation of everything observed with speed and efficiency; ★ differs between them.")
    return section("What matters", told, _split_table(content))


def _split_table(content: ReportContent) -> str:
    """What matters differently for speed and efficiency: both halves of the cloud (S2 figure 9)."""
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
    told = ""
    for curve, label in (
        (analysis.best_so_far, f"best {goal.name}"),
        (analysis.hypervolume_so_far, "hypervolume of the front"),
    ):
        picture = plots.convergence_chart(curve, label) if len(curve) else ""
        told += figure(picture, f"The {label} after each evaluation.") if picture else ""
    picture = plots.difficulty_chart(analysis.difficulty)
    if picture:
        minima = ", ".join(f"{len(one.minima)} of {name}" for name, one in analysis.difficulty.items())
        part = ""
        if analysis.coverage < 1:
            part = (
                f" Only {percent(analysis.coverage)} was measured: that lacks neighbours, and looks harder than it is."
            )
        told += figure(
            picture, f"Share of local searches for the least that end within p of the optimum; minima: {minima}.{part}"
        )
    return section("The search", told)


def model(content: ReportContent) -> str:
    """The frequency model and the roofline of the board, where they are known."""
    told, fit = "", content.fit
    if fit is not None:
        picture = plots.model_chart(fit)
        told += figure(picture, f"P(f) = min(P_max, P_idle + α f v(f)²), {content.fit_source}.") if picture else ""
        told += facts(
            {
                "Idle power": _with_unit(fit.p_idle_w, "W"),
                "Ridge": _with_unit(fit.ridge_mhz, "MHz") + ("" if fit.ridge_bracketed else ", not bracketed"),
                "Clock of least energy": _with_unit(fit.optimum_mhz, "MHz")
                + ("" if fit.optimum_bracketed else ", not bracketed"),
                "Recommended clock": _with_unit(fit.recommended_clock_mhz, "MHz"),
                "Fit": f"R² {number(fit.r2 if fit.r2 is not None else math.nan, 5)}, "
                f"RMSE {number(fit.rmse_w if fit.rmse_w is not None else math.nan, 3)} W",
                "Remarks": "; ".join(fit.reasons),
            }
        )
    for sweep in content.rooflines:
        picture = plots.roofline_chart(sweep, content.kernel)
        if picture and sweep.model is not None:
            kernel = " K is this kernel." if content.kernel is not None and content.kernel.energy_j else ""
            told += figure(picture, f"Work per energy over intensity, {sweep.label}, {sweep.origin}.{kernel}")
            told += facts(
                {
                    "Energy of a flop": f"{number(sweep.model.eps_flop_pj, 3)} pJ",
                    "Energy of a byte": f"{number(sweep.model.eps_mem_pj_per_b, 3)} pJ",
                    "Energy of a word": f"{number(sweep.model.eps_mop_pj(word_byte(sweep.points.precision)), 3)} pJ",
                    "Constant power": f"{number(sweep.model.pi_0_w, 3)} W",
                    "Power of the flops at peak speed": f"{number(sweep.model.pi_flop_w, 3)} W",
                    "Power of the traffic at full bandwidth": f"{number(sweep.model.pi_mem_w, 3)} W",
                    **_of_the_fit(sweep.fit),
                }
            )
        else:
            told += paragraph(f"{sweep.label}: no roofline. {'; '.join(sweep.reasons)}")
    return section("Model of the board", told)


def _of_the_fit(fit: RooflineFit | None) -> dict[str, str]:
    """How well a roofline explains the measured power, and what the microbenchmarks reached of the theoretical peak."""
    if fit is None:
        return {}
    words = {
        "flop": "Flop kernel, of the theoretical peak",
        "copy": "Copy kernel, of the theoretical bandwidth",
        "roofline_flop": "Roofline kernel, of the theoretical peak",
        "roofline_mem": "Roofline kernel, of the theoretical bandwidth",
    }
    return {
        "R² of power": f"{number(fit.r2, 5)}; with throttled points {number(fit.r2_with_throttled, 5)}",
        **{words[name]: percent(share) for name, share in shares_of_peak(fit).items()},
    }


def comparison(content: ReportContent) -> str:
    """The session beside others: what tuning for energy gains on each, and on average (S1 table 6.2)."""
    found = content.comparison
    if found is None:
        return ""
    rows: list[Sequence[object]] = [
        (
            side.gpu + (" (simulated)" if side.source == "simulated" else ""),
            side.name,
            side.fastest.efficiency,
            side.frugal.efficiency,
            _gained(side.efficiency_change),
            side.fastest.speed,
            side.frugal.speed,
            _gained(side.speed_change),
            side.frugal.clock_mhz,
        )
        for side in found.sides
    ]
    efficiency, speed = found.efficiency_name, found.speed_name
    header = ("board", "session", efficiency, "after", "gained", speed, "after", "gained", "MHz after")
    told = table(header, rows, "From the fastest configuration to the one of least energy")
    told += paragraph(
        f"Mean ± standard deviation over {found.over}: efficiency {found.mean_efficiency_change.words}, "
        f"speed {found.mean_speed_change.words}."
    )
    return section("Beside other sessions", told)


def traces(content: ReportContent) -> str:
    """What the board did while the session went on."""
    told = ""
    for series in content.traces:
        picture = plots.series_chart(series.time_s, series.values, series.label)
        told += figure(picture, f"{series.label} as it was sampled.") if picture else ""
    for name, words in (
        ("power_w", "mean power (W)"),
        ("observed_clock_mhz", "graphics clock (MHz)"),
        ("temperature_c", "temperature (°C)"),
    ):
        picture = plots.trace_chart(content.table, name, words) if name in content.table.value_names else ""
        told += figure(picture, f"The {words} of each configuration, when it was measured.") if picture else ""
    return section("Over the session", told)


def failures(content: ReportContent) -> str:
    """What failed and where."""
    told = ""
    for one in content.analysis.failures:
        told += paragraph(f"{one.count} ({percent(one.share)}) failed: {one.kind}.")
        told += table(("message", "times"), one.messages)
        rows = [
            [f"{w.parameter} = {w.value}", w.failed, w.measured, percent(w.share), percent(w.elsewhere)]
            for w in one.concentrated
        ]
        told += table(("where", "failed", "measured", "share", "elsewhere"), rows, "Values that concentrate failures")
    return section("Failures", told)


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


def _gained(share: float) -> str:
    return f"{100 * share:+.1f} %" if math.isfinite(share) else "–"


def _with_unit(value: float | None, unit: str) -> str:
    return "not identifiable" if value is None else f"{number(value)} {unit}"
