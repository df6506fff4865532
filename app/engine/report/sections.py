"""The sections of a report on the session itself: what was asked, of which board, and how to do it again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from ... import __version__
from ...errors import InputError
from ..analysis.description import describe_drift
from ..measurement import Measurement
from ..metering.characterisation.description import describe_characterisation
from ..session.description import describe_search, source_in_words
from .content import ReportContent
from .html import described, element, esc, facts, paragraph, section, table, titled
from .reproduce import analyse_command, export_command, report_command, run_command


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
