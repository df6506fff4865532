"""The report as one HTML file: no script, nothing fetched, light or dark as the reader's system is."""

from __future__ import annotations

from pathlib import Path

from ...base.errors import InputError
from ...base.files import write_text
from . import sections
from . import sections as findings
from .content import ReportContent
from .export import refuse_foreign
from .html import element, esc, paragraph
from .plots import lettered

_MARK = '<meta name="generator" content="Wattridge">'
# Colours for colour-blind eyes too (after Okabe and Ito); c0 to c6 go from low to high clocks.
_STYLE = """
:root{color-scheme:light dark;--paper:#fff;--ink:#1c2126;--soft:#5b6670;--grid:#e3e7ea;--line:#c3cad0;--panel:#f5f7f8;
--b0:#0072b2;--b1:#d55e00;--b2:#009e73;--b3:#cc79a7;--b4:#56b4e9;--b5:#e69f00;--front:#c2185b;--hull:#8a6d00;
--c0:#3b4cc0;--c1:#3f7fd0;--c2:#4aa5b5;--c3:#7a9b4a;--c4:#c99b1d;--c5:#dd6b20;--c6:#b40426}
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
"""
_FIGURES = """
svg text{fill:var(--soft);font:12px system-ui,"DejaVu Sans",sans-serif}
.tick{text-anchor:middle}.tick.left{text-anchor:end}
.tick.start{text-anchor:start}svg .small{font-size:9px}svg .label{text-anchor:middle;fill:var(--ink)}
.grid{stroke:var(--grid);fill:none}.frame rect{fill:none;stroke:var(--line)}.axis{stroke:var(--line)}
.dots{stroke-linecap:round;fill:none;stroke:var(--c1);stroke-opacity:.75}.line{fill:none;stroke:var(--b0);stroke-width:2}
.rule{stroke:var(--soft);stroke-dasharray:5 4;stroke-width:1.3}
.iso{stroke:var(--soft);stroke-width:1;stroke-dasharray:1 4}
.hull{stroke:var(--hull);stroke-width:1.3;stroke-dasharray:8 3}.front{stroke:var(--front)}
.b0{stroke:var(--b0)}.b1{stroke:var(--b1)}.b2{stroke:var(--b2)}.b3{stroke:var(--b3)}.b4{stroke:var(--b4)}
.b5{stroke:var(--b5)}
.band{fill:var(--b0);fill-opacity:.25;stroke:none}.bar{stroke:none}.bar.b0{fill:var(--b0)}.bar.b1{fill:var(--b1)}.bar.b2{fill:var(--b2)}
.c0{stroke:var(--c0)}.c1{stroke:var(--c1)}.c2{stroke:var(--c2)}.c3{stroke:var(--c3)}.c4{stroke:var(--c4)}
.c5{stroke:var(--c5)}.c6{stroke:var(--c6)}
.sign{fill:var(--paper);stroke-width:3}
.mark circle{fill:var(--paper);stroke:var(--ink);stroke-width:1.4}
.mark text{text-anchor:middle;fill:var(--ink);font-weight:700;font-size:11px}
"""
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
    letters = lettered(content.analysis.choices, content.chosen)
    title = f"{plan.title} on {plan.gpu}"
    name = content.record.shown_name if content.record is not None else ""
    badge = {"simulated": "simulated", "recorded": "from a recording"}.get(plan.source, "")
    head = element(
        "head",
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<meta http-equiv="Content-Security-Policy" content="{esc(_POLICY)}">',
        _MARK,
        element("title", esc(title)),
        element("style", _STYLE, _FIGURES, _PRINT),
    )
    header = element(
        "header",
        element("h1", esc(title)),
        element("span", esc(badge), class_="badge") if badge else "",
        paragraph(name, class_="soft") if name and name != plan.title else "",
    )
    body = element(
        "body",
        header,
        element(
            "main",
            sections.question(content),
            findings.answer(content, letters),
            findings.over_load(content),
            findings.front(content, letters),
            findings.causes(content),
            findings.search(content),
            findings.model(content),
            findings.comparison(content),
            findings.traces(content),
            sections.device(content),
            findings.failures(content),
            findings.results(content),
            sections.reproduce(content),
        ),
    )
    return f'<!DOCTYPE html>\n<html lang="en">{head}{body}</html>\n'


def write_report(content: ReportContent, path: Path) -> Path:
    """Write the file whole or not at all, in place of an older report. Raises WattridgeError.

    A file that is no report of this program is not overwritten.
    """
    if path.suffix.lower() == ".pdf":
        raise InputError("a report is an HTML file", str(path), "write .html, and print it to PDF from a browser")
    refuse_foreign(path, (_MARK,), "choose another name, or move the file")
    return write_text(path, report_html(content), overwrite=True)
