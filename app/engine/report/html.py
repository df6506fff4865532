"""Pieces of HTML. Every text goes through `esc`: names in a session are anybody's."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterable, Mapping, Sequence

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff\ud800-\udfff]")
_LONGEST = 2000  # characters of one text
_WIDE = 12  # columns that fit upright on a sheet of paper


def esc(text: object) -> str:
    """A text as HTML and SVG show it, in elements and in attributes; without control characters, bounded."""
    told = _CONTROL.sub("\N{REPLACEMENT CHARACTER}", str(text)[: _LONGEST + 1])
    return html.escape(told[:_LONGEST] + ("…" if len(told) > _LONGEST else ""), quote=True)


def element(tag: str, *inside: str, **attributes: object) -> str:
    """`<tag a="b">inside</tag>`; `inside` is HTML already, attributes are escaped here. `class_` is class."""
    told = "".join(f' {name.rstrip("_").replace("_", "-")}="{esc(value)}"' for name, value in attributes.items())
    return f"<{tag}{told}>{''.join(inside)}</{tag}>"


def paragraph(*texts: str, class_: str = "") -> str:
    """Texts, escaped, as one paragraph."""
    attributes = {"class_": class_} if class_ else {}
    return element("p", esc(" ".join(texts)), **attributes)


def section(title: str, *inside: str) -> str:
    """A section with its heading; nothing where there is nothing inside."""
    told = "".join(inside)
    name = re.sub(r"[^a-z]+", "-", title.lower()).strip("-")
    return element("section", element("h2", esc(title)), told, id=name) if told else ""


def facts(pairs: Mapping[str, object]) -> str:
    """Names and what they are; those that are empty are left out."""
    rows = [
        element("dt", esc(name)) + element("dd", esc(value)) for name, value in pairs.items() if value not in ("", None)
    ]
    return element("dl", *rows) if rows else ""


def table(header: Sequence[str], rows: Iterable[Sequence[object]], caption: str = "") -> str:
    """Numbers to the right with four digits; a cell that is `Raw` is HTML already."""
    body = []
    for row in rows:
        cells = [
            element("td", str(cell) if isinstance(cell, Raw) else esc(_shown(cell)), **_side(cell)) for cell in row
        ]
        body.append(element("tr", *cells))
    if not body:
        return ""
    head = element(
        "thead", element("tr", *(element("th", esc(name).replace("_", "_<wbr>"), scope="col") for name in header))
    )
    told = [element("caption", esc(caption))] if caption else []
    kind = "scroll wide" if len(header) > _WIDE else "scroll"
    return element("div", element("table", *told, head, element("tbody", *body)), class_=kind)


class Raw(str):
    """HTML that was made here."""

    __slots__ = ()


def figure(svg: str, caption: str) -> str:
    """A picture with what it shows in words."""
    return element("figure", svg, element("figcaption", esc(caption)))


def number(value: float, digits: int = 4) -> str:
    """A figure with four significant digits, a dash where it is unknown."""
    if not math.isfinite(value):
        return "–"
    if value == int(value) and abs(value) < 1e7:
        return f"{value:.0f}"
    return f"{value:.0f}" if 10 ** (digits - 1) <= abs(value) < 1e7 else f"{value:.{digits}g}"


def percent(share: float) -> str:
    """'12.3 %', a dash where it is unknown."""
    return f"{100 * share:.1f} %" if math.isfinite(share) else "–"


def _shown(cell: object) -> str:
    return number(float(cell)) if isinstance(cell, int | float) and not isinstance(cell, bool) else str(cell)


def _side(cell: object) -> dict[str, str]:
    return {"class_": "n"} if isinstance(cell, int | float) and not isinstance(cell, bool) else {}
