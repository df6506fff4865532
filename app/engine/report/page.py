"""The report as one HTML file: no script, nothing fetched, light or dark as the reader's system is.

Each section is a function of the content, and one without content is left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from ... import __version__
from ...base.errors import InputError
from ...base.files import write_text
from ...base.formatting import number
from ...sensors.event_reasons import LIMITING
from ...sensors.event_reasons import names as reason_names
from ..analysis import charts
from ..analysis.answers import FRONT, MODEL, ROOFLINE, year_bars
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
    describe_models_over_load,
    describe_over_load,
    describe_plane,
    describe_split,
    why_none,
)
from ..analysis.over_load import models_over_load
from ..analysis.own_state import own_state
from ..analysis.peak_share import peak_share
from ..formats.names import heading, unit_of
from ..metering.characterisation.sensor_figures import describe_characterisation
from ..models.describe_fits import describe_fit
from ..models.roofline.describe_sweeps import describe_sweep
from ..profile.describe_profile import describe_profile
from ..profile.program_profile import ProgramProfile
from ..results.chart import Chart
from ..results.measurement import Measurement, spreads
from ..session.describe_session import describe_search, describe_standing, source_in_words, turns_of
from ..session.references import references_of
from ..space.within_limits import feasible
from ..strategies.energy_log import EnergyLog
from . import plots
from .content import ReportContent
from .export import refuse_foreign
from .html import described, element, esc, facts, figure, paragraph, section, table, titled
from .reproduce import analyse_command, export_command, report_command, run_command
from .svg import COLOURS, FIGURES, drawn

_MARK = '<meta name="generator" content="Wattridge">'
_STYLE = """
:root{color-scheme:light dark;--paper:#fff;--ink:#1c2126;--soft:#5b6670;--grid:#e3e7ea;--line:#c3cad0;--panel:#f5f7f8;
COLOURS}
@media screen and (prefers-color-scheme:dark){:root{--paper:#14181b;--ink:#e6eaed;--soft:#9aa6b0;--grid:#262d33;
--line:#3b454d;
--panel:#1b2126;--b0:#56b4e9;--b1:#f09145;--b2:#2fc79a;--b3:#e6a5c9;--b4:#0a84c6;--b5:#f0c24a;--front:#ff6fa5;--hull:#d9b64a;
--c0:#7d8df0;--c1:#6fb0f0;--c2:#6fd0dd;--c3:#a9cf74;--c4:#f0c95a;--c5:#ff9d57;--c6:#ff6b6b}}
*{box-sizing:border-box}body{margin:0 auto;max-width:64rem;padding:1.5rem;background:var(--paper);color:var(--ink);
font:1rem/1.5 system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif}
h1{font-size:1.7rem;line-height:1.25;margin:.2rem 0}h2{font-size:1.25rem;margin:2.2rem 0 .6rem;
border-bottom:1px solid var(--line);padding-bottom:.2rem}
h3{font-size:1rem;margin:1.2rem 0 .3rem}
p{margin:.5rem 0;overflow-wrap:anywhere}.lead{font-size:1.08rem}.soft{color:var(--soft)}
.badge{display:inline-block;padding:.1rem .6rem;border:1px solid var(--b1);color:var(--b1);border-radius:1rem;
font-weight:600}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1rem;margin:.6rem 0}dt{color:var(--soft)}
dd{margin:0;overflow-wrap:anywhere}
.scroll{overflow-x:auto;margin:.8rem 0}table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums}
caption{text-align:left;color:var(--soft);padding-bottom:.3rem}th{text-align:left;border-bottom:1px solid var(--line)}
th,td{padding:.22rem .6rem;white-space:nowrap}td.n{text-align:right}tbody tr:nth-child(even){background:var(--panel)}
figure{margin:1rem 0}figcaption{color:var(--soft);font-size:.9rem}svg{width:100%;height:auto;display:block}
pre{background:var(--panel);padding:.8rem;overflow-x:auto;font-size:.85rem}summary{cursor:pointer}
""".replace("COLOURS", COLOURS)
# On paper nothing scrolls: long lines wrap, and sections with a wide table are printed across the page.
_PRINT = """
@page{margin:14mm}@page wide{size:landscape}section:has(.wide){page:wide}
@media print{:root{color-scheme:light;font-size:9.5pt}body{max-width:none;padding:0;line-height:1.35}
h2{margin-top:1.2rem}h2,h3,caption,thead{break-after:avoid}figure,tr,dt,dd{break-inside:avoid}p,pre{orphans:3;widows:3}
figure{width:74%;margin:.6rem 0}svg{max-height:170mm}
.scroll,pre{overflow:visible}pre{white-space:pre-wrap;overflow-wrap:anywhere}
table{font-size:.8rem}th,td{padding:.1rem .4rem;white-space:normal;overflow-wrap:anywhere}td.n{white-space:nowrap}}
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"  # should a name get past the escaping, it still runs nothing


def report_html(content: ReportContent) -> str:
    """The whole file as text."""
    plan = content.plan
    letters = plots.lettered(content.analysis.choices, content.chosen)
    title = f"{plan.title} on {plan.gpu}"
    name = content.record.shown_name if content.record is not None else ""
    badge = {"simulated": "simulated", "recorded": "from a recording"}.get(plan.source, "")
    sections = "".join(
        (
            _question(content),
            _answer(content, letters),
            _over_load(content),
            _front(content, letters),
            _causes(content),
            _search(content),
            _model(content),
            _comparison(content),
            _traces(content),
            _device(content),
            _failures(content),
            _results(content),
            _reproduce(content),
        )
    )
    shown = name if name != plan.title else ""
    return whole_page(title, badge, shown, _in_short(content, sections), sections)


def profile_html(profile: ProgramProfile) -> str:
    """The file of a program's profile."""
    badge = {"simulated": "simulated", "recorded": "from a recording"}.get(profile.source, "")
    whole = describe_profile(profile)
    tables = (section(listing.title, table(listing.header, listing.rows)) for listing in whole.listings)
    by = facts({"Reported by": f"Wattridge {__version__}, {_time(datetime.now(UTC).timestamp())}"})
    body = section("In short", described(replace(whole, listings=())))
    return whole_page(
        f"Joules of {profile.title} on {profile.gpu}", badge, "", body, *tables, section("How it came about", by)
    )


def whole_page(title: str, badge: str, under: str, *main: str) -> str:
    """A page of its own that any browser shows and prints: its heading, and what `main` holds, HTML already."""
    head = element(
        "head",
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<meta http-equiv="Content-Security-Policy" content="{esc(_POLICY)}">',
        _MARK,
        element("title", esc(title)),
        element("style", _STYLE, FIGURES, _PRINT),
    )
    header = element(
        "header",
        element("h1", esc(title)),
        element("span", esc(badge), class_="badge") if badge else "",
        paragraph(under, class_="soft") if under else "",
    )
    body = element("body", header, element("main", *main))
    return f'<!DOCTYPE html>\n<html lang="en">{head}{body}</html>\n'


def write_report(content: ReportContent | ProgramProfile, path: Path) -> Path:
    """Write the report of a session, or of a program's profile, as `write_page` does."""
    return write_page(profile_html(content) if isinstance(content, ProgramProfile) else report_html(content), path)


def write_page(page: str, path: Path) -> Path:
    """Write a page whole or not at all, in place of an older one. Raises WattridgeError.

    A file that is no page of this program is not overwritten.
    """
    if path.suffix.lower() == ".pdf":
        raise InputError("a report is an HTML file", str(path), "write .html, and print it to PDF from a browser")
    refuse_foreign(path, (_MARK,), "choose another name, or move the file")
    return write_text(path, page, overwrite=True)


_SHOWN_IN: Final = {  # the figure of an answer: its section
    FRONT: "speed-against-energy",
    MODEL: "model-of-the-board",
    ROOFLINE: "model-of-the-board",
    "importance": "what-matters",
    "year": "the-answer",
    "failures": "failures",
}


def _in_short(content: ReportContent, sections: str) -> str:
    """What the session says, each sentence with what it rests on, and a link to its figure where there is one."""
    lines = []
    for answer in content.answers:
        name, text = _SHOWN_IN[answer.figure], esc(answer.sentence)
        text = element("a", text, href=f"#{name}") if f' id="{name}"' in sections else text
        rests_on = element("span", esc(f" ({answer.confidence})"), class_="soft") if answer.confidence else ""
        lines.append(element("li", text, rests_on))
    return section("In short", element("ul", *lines) if lines else "")


def _question(content: ReportContent) -> str:
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


def _device(content: ReportContent) -> str:
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


def _reproduce(content: ReportContent) -> str:
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


def _answer(content: ReportContent, letters: dict[int, str]) -> str:
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
    state = own_state(content.table, costs, content.chosen)
    body += "".join(paragraph(sentence) for sentence in (() if state is None else state.sentences))
    if year is not None and abs(year.saved_kwh) >= 0.005:
        body += paragraph(
            f"The same work over a year ({content.load.hours_per_year:.0f} h on "
            f"{content.load.boards} board{'s' if content.load.boards > 1 else ''}): {year.words}."
        )
    plan = replace(content.plan, objective=content.analysis.objective)
    for said in describe_standing(plan, content.table, content.chosen):
        body += paragraph(f"{said.label}: {said.value}" + (f" ({said.note})." if said.note else "."))
    share = peak_share(content.plan, chosen)
    if share is not None:
        body += paragraph(f"It reaches {share.words}.")
    limiting = reason_names(int(chosen.event_reasons) & int(LIMITING))
    if limiting:
        body += paragraph(
            f"While it was measured a limit acted: {', '.join(limiting)}. Its figures belong to that clock."
        )
    body += table(("figure", "value", "95 % interval", "unit"), _figures(content, chosen), "Everything measured of it")
    if (turns := turns_of(content.plan)).rows:
        body += table(turns.header, turns.rows, turns.title)
    body += titled(describe_choices(content.analysis, letters))
    body += _chart(year_bars(content.analysis))
    return section("The answer", body)


def _front(content: ReportContent, letters: dict[int, str]) -> str:
    """The cloud with its front and its convex hull."""
    plane = content.analysis.plane
    if plane is None or plane.quadrants is None:
        return ""
    references = references_of(content.plan)
    picture = plots.front_chart(content.analysis, letters, dict(content.units), references)
    body = figure(picture, "Letters are the choices above; the cross goes through the best of each figure.")
    body += titled(describe_plane(content.analysis, letters, _MOST_ROWS))
    return section("Speed against energy", body)


def _over_load(content: ReportContent) -> str:
    """The best setting at each load of a service, the front over the loads, and the frequency model of each."""
    loads, table_ = content.analysis.over_load, content.table
    if loads is None:
        return ""
    body = titled(describe_over_load(loads, table_, content.analysis.costs))
    body += _chart(charts.load_curves(Analysed(content.analysis, content.plan)))
    plan = content.plan
    models = models_over_load(table_, gpu=plan.gpu, simulated=plan.source == "simulated")
    return section("Over the load", body, titled(describe_models_over_load(models)))


def _causes(content: ReportContent) -> str:
    """What speed and efficiency go with."""
    session, body = Analysed(content.analysis, content.plan), ""
    for effects in content.analysis.effects:
        body += _chart(charts.importance_bars(session, effects.goal.name)) + titled(describe_effects(effects))
    body += _chart(charts.correlation_bars(session)) + titled(describe_correlations(content.analysis))
    if content.analysis.counted is not None:
        body += _chart(charts.correlation_bars(session, charts.COUNTERS_ALONE))
        body += _chart(charts.counter_gain(session)) + titled(describe_counters(content.analysis))
    return section("What matters", body, titled(describe_split(content.analysis)))


def _search(content: ReportContent) -> str:
    """How the search went, and how hard it is."""
    session = Analysed(content.analysis, content.plan)
    made = [charts.best_curve(session), charts.hypervolume_curve(session), charts.difficulty_curves(session)]
    if EnergyLog.of_origin(content.plan.origin) is not None:
        made = [charts.k_over_rounds(session), charts.predicted_energies(session), *made]
    return section("The search", *map(_chart, made), titled(describe_difficulty(content.analysis)))


def _model(content: ReportContent) -> str:
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


def _comparison(content: ReportContent) -> str:
    """The session beside others: what tuning for energy gains on each, and on average [Schoonhoven2024, table 6.2]."""
    if content.comparison is None:
        return ""
    return section("Beside other sessions", titled([describe_comparison(content.comparison, content.units)]))


def _traces(content: ReportContent) -> str:
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


def _failures(content: ReportContent) -> str:
    """What failed and where."""
    return section("Failures", titled(describe_failures(content.analysis)))


def _results(content: ReportContent) -> str:
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
