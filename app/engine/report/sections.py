"""The sections of a report on the session itself: what was asked, of which board, and how to do it again.

The sections of a report on what was found, one function each; a section without content is empty.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from ... import __version__
from ...base.errors import InputError
from ...base.formatting import number
from ...sensors.event_reasons import LIMITING
from ...sensors.event_reasons import names as reason_names
from ..analysis import charts
from ..analysis.charts import Analysed
from ..analysis.choosers import against, fastest
from ..analysis.costs import values_of
from ..analysis.describe_analysis import (
    describe_choices,
    describe_comparison,
    describe_correlations,
    describe_counters,
    describe_difficulty,
    describe_drift,
    describe_effects,
    describe_failures,
    describe_plane,
    describe_split,
    why_none,
)
from ..analysis.describe_over_load import describe_models_over_load, describe_over_load
from ..analysis.over_load import models_over_load
from ..analysis.peak_share import peak_share
from ..formats.names import heading, unit_of
from ..metering.characterisation.describe_sources import describe_characterisation
from ..models.describe_fits import describe_fit
from ..models.roofline.describe_sweeps import describe_sweep
from ..results.chart import Chart
from ..results.measurement import Measurement, spreads
from ..session.describe_session import describe_search, source_in_words
from ..session.references import references_of
from ..space.within_limits import feasible
from ..strategies.energy_log import EnergyLog
from . import plots
from .content import ReportContent
from .html import described, element, esc, facts, figure, paragraph, section, table, titled
from .reproduce import analyse_command, export_command, report_command, run_command
from .svg import drawn


def question(content: ReportContent) -> str:
    """What was asked: the space, the objective, the search."""
    plan, run = content.plan, content.table
    goal = plan.objective.goal
    asked = f"Which configuration of {plan.title} has the {'largest' if goal.maximise else 'smallest'} {goal.name}"
    body = paragraph(f"{asked} on {plan.gpu}?", class_="lead")
    body += described(replace(describe_search(plan, run), remarks=()))
    parameters = [
        [p.name, "device setting" if p.device_setting else "parameter", len(p.values), _listed(p.values)]
        for p in plan.space.parameters
    ]
    body += table(("name", "kind", "values", "which"), parameters, "The space")
    body += table(
        ("restriction", "combinations removed"),
        list(plan.space.removed_by.items()),
        "Restrictions, as they were applied",
    )
    return section("The question", body, *(paragraph(note) for note in plan.space.notes))


def device(content: ReportContent) -> str:
    """The board, and what its sensors are."""
    plan, sensors = content.plan, content.sensors
    meters = sorted({m.power_source for m in _measurements(content) if m.power_source})
    body = facts(
        {
            "Board": plan.gpu,
            "Driver": plan.driver,
            "Figures": source_in_words(plan.source),
            "Power": ", ".join(meters[:5]) or "not known",
        }
    )
    if sensors is not None:
        body += described(describe_characterisation(sensors, plan.gpu))
    body += titled(describe_drift(content.analysis))
    return section("Device and sensors", body)


def reproduce(content: ReportContent) -> str:
    """How to come to the same figures."""
    plan, record = content.plan, content.record
    origin = plan.origin
    lines, why_not = [], ""
    try:
        lines.append(run_command(replace(plan, resume=None)).shell())
    except InputError as error:
        why_not = f"No command gives the session again: {error}"
    if record is not None:
        lines.append(analyse_command(record, record.id).shell())
        if content.chosen is not None:
            chosen = record, record.id, content.table, content.chosen
            lines += [export_command(*chosen).shell(), report_command(*chosen).shell()]
    body = paragraph(why_not) if why_not else ""
    body += element("pre", esc("\n".join(lines))) if lines else ""
    body += facts(
        {
            "Session": f"{record.id}, {record.state.value}" if record else "",
            "Begun": _time(record.created_s) if record else "",
            "Took": f"{record.elapsed_s:.1f} s" if record else "",
            "Measured by": f"Wattridge {record.version}" if record else "",
            "Reported by": f"Wattridge {__version__}, {_time(datetime.now(UTC).timestamp())}",
            "Options": ", ".join(f"{name} = {value}" for name, value in plan.strategy_options.items()),
            "Compiled by": origin.get("compiler", ""),
            "SHA-256 of the file": origin.get("sha256", ""),
        }
    )
    if content.specification:
        inside = element("summary", "The specification") + element("pre", (_whole(content.specification)))
        body += element("details", inside, open="")
    return section("How to reproduce it", body)


# --- inside -----------------------------------------------------------------------------------------------------------


def _measurements(content: ReportContent) -> list[Measurement]:
    return [content.table.measurement(index) for index in range(len(content.table))]


def _listed(values: Sequence[object]) -> str:
    shown = [str(value) for value in values[:16]]
    return ", ".join(shown) + (f", … {values[-1]}" if len(values) > 16 else "")


def _whole(text: str) -> str:
    """A long text escaped line by line, so that none of it is cut."""
    return "\n".join(esc(line) for line in text.splitlines())


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


_MOST_ROWS = 200  # of the results, best first
_MOST_COLUMNS = 10


def answer(content: ReportContent, letters: dict[int, str]) -> str:
    """The chosen configuration, why, and what it costs and gains."""
    if content.chosen is None:
        return section("The answer", paragraph(f"{why_none(content.analysis)}.", class_="lead"))
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
    for item in references_of(content.plan):
        if words := item.standing(chosen):
            body += paragraph(f"Against {item.label} ({item.words}): {words}. {item.label}: {item.note}.")
    share = peak_share(content.plan, chosen)
    if share is not None:
        body += paragraph(f"It reaches {share.words}.")
    limiting = reason_names(int(chosen.event_reasons) & int(LIMITING))
    if limiting:
        body += paragraph(
            f"While it was measured a limit acted: {', '.join(limiting)}. Its figures belong to that clock."
        )
    body += table(("figure", "value", "95 % interval", "unit"), _figures(content, chosen), "Everything measured of it")
    body += titled(describe_choices(content.analysis, letters))
    return section("The answer", body)


def front(content: ReportContent, letters: dict[int, str]) -> str:
    """The cloud with its front and its convex hull."""
    plane = content.analysis.plane
    if plane is None or plane.quadrants is None:
        return ""
    references = references_of(content.plan)
    picture = plots.front_chart(content.analysis, letters, dict(content.units), references)
    body = figure(picture, "Letters are the choices above; the cross goes through the best of each figure.")
    body += titled(describe_plane(content.analysis, letters, _MOST_ROWS))
    return section("Speed against energy", body)


def over_load(content: ReportContent) -> str:
    """The best setting at each load of a service, the front over the loads, and the frequency model of each."""
    found, table_ = content.analysis.over_load, content.table
    if found is None:
        return ""
    body = titled(describe_over_load(found, table_, content.analysis.costs))
    body += _chart(charts.load_curves(Analysed(content.analysis, content.plan)))
    plan = content.plan
    models = models_over_load(table_, gpu=plan.gpu, simulated=plan.source == "simulated")
    return section("Over the load", body, titled(describe_models_over_load(models)))


def causes(content: ReportContent) -> str:
    """What speed and efficiency go with."""
    session, body = Analysed(content.analysis, content.plan), ""
    for effects in content.analysis.effects:
        body += _chart(charts.importance_bars(session, effects.goal.name)) + titled(describe_effects(effects))
    body += _chart(charts.correlation_bars(session)) + titled(describe_correlations(content.analysis))
    if content.analysis.counted is not None:
        body += _chart(charts.correlation_bars(session, charts.COUNTERS_ALONE))
        body += _chart(charts.counter_gain(session)) + titled(describe_counters(content.analysis))
    return section("What matters", body, titled(describe_split(content.analysis)))


def search(content: ReportContent) -> str:
    """How the search went, and how hard it is."""
    session = Analysed(content.analysis, content.plan)
    made = [charts.best_curve(session), charts.hypervolume_curve(session), charts.difficulty_curves(session)]
    if EnergyLog.of_origin(content.plan.origin) is not None:
        made = [charts.k_over_rounds(session), charts.predicted_energies(session), *made]
    return section("The search", *map(_chart, made), titled(describe_difficulty(content.analysis)))


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
    if content.comparison is None:
        return ""
    return section("Beside other sessions", titled([describe_comparison(content.comparison, content.units)]))


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
    return section("Failures", titled(describe_failures(content.analysis)))


def results(content: ReportContent) -> str:
    """The best configurations."""
    run, goal = content.table, content.plan.objective.goal
    values = values_of(run, goal.name)
    values[~feasible(run, content.plan.objective.limits)] = math.nan
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


def _chart(made: Chart | str) -> str:
    """A chart with its caption; nothing if there is only a reason why it cannot be drawn."""
    picture = drawn(made) if isinstance(made, Chart) else ""
    return figure(picture, made.caption) if isinstance(made, Chart) and picture else ""


def _figures(content: ReportContent, chosen: Measurement) -> list[Sequence[object]]:
    rows: list[Sequence[object]] = []
    for name, value in chosen.values.items():
        interval = chosen.intervals.get(name)
        ends = f"{number(interval[0])} to {number(interval[1])}" if interval else ""
        rows.append((name, float(value), ends, unit_of(name, content.units)))
    if math.isfinite(chosen.observed_clock_mhz) and "observed_clock_mhz" not in chosen.values:
        rows.append(("observed clock", chosen.observed_clock_mhz, "", "MHz"))
    return rows
