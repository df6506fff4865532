"""Pieces of HTML. Every text goes through `esc`: names in a session come from files that anyone may have written."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping, Sequence

from ...base.formatting import number
from ..results.description import Description, label_as_html

# what has no shape of its own, or turns the order of the text after it
_HIDDEN = re.compile(r"[\0-\x08\v\f\x0e-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ud800-\udfff\ufffe\uffff]")
_LONGEST = 2000  # characters of one text
_WIDE = 12  # columns that fit upright on a sheet of paper


def esc(text: object) -> str:
    """A text as HTML and SVG show it, in elements and in attributes; without control characters, bounded."""
    plain = _HIDDEN.sub("\N{REPLACEMENT CHARACTER}", str(text)[: _LONGEST + 1])
    return html.escape(plain[:_LONGEST] + ("…" if len(plain) > _LONGEST else ""), quote=True)


def element(tag: str, *inside: str, **attributes: object) -> str:
    """`<tag a="b">inside</tag>`; `inside` is HTML already, attributes are escaped here. `class_` is class."""
    written = "".join(f' {name.rstrip("_").replace("_", "-")}="{esc(value)}"' for name, value in attributes.items())
    return f"<{tag}{written}>{''.join(inside)}</{tag}>"


def paragraph(*texts: str, class_: str = "") -> str:
    """Texts, escaped, as one paragraph."""
    attributes = {"class_": class_} if class_ else {}
    return element("p", esc(" ".join(texts)), **attributes)


def section(title: str, *inside: str) -> str:
    """A section with its heading; nothing if there is nothing inside."""
    content = "".join(inside)
    name = re.sub(r"[^a-z]+", "-", title.lower()).strip("-")
    return element("section", element("h2", esc(title)), content, id=name) if content else ""


def facts(pairs: Mapping[str, object]) -> str:
    """Names and what they are; those that are empty are left out."""
    rows = [
        element("dt", esc(name)) + element("dd", esc(value)) for name, value in pairs.items() if value not in ("", None)
    ]
    return element("dl", *rows) if rows else ""


def described(description: Description) -> str:
    """Its figures with what they mean, its remarks and its tables."""
    rows = []
    for item in description.figures:
        meaning = element("span", esc(item.meaning), class_="soft") if item.meaning else ""
        rows.append(element("dt", label_as_html(item.label)) + element("dd", esc(item.text), " ", meaning))
    remarks = [paragraph(remark, class_="soft") for remark in description.remarks]
    tables = [table(listing.header, listing.rows, listing.title) for listing in description.listings]
    return element("dl", *rows) + "".join((*remarks, *tables)) if rows else "".join((*remarks, *tables))


def titled(descriptions: Iterable[Description]) -> str:
    """Descriptions one below the other, each with its title and origin."""
    return "".join(
        element("h3", esc(description.title))
        + (paragraph(description.origin, class_="soft") if description.origin else "")
        + described(description)
        for description in descriptions
    )


def table(header: Sequence[str], rows: Iterable[Sequence[object]], caption: str = "") -> str:
    """Numbers to the right with four digits; a dash for None."""
    body = []
    for row in rows:
        body.append(element("tr", *map(_cell, row)))
    if not body:
        return ""
    head = element(
        "thead", element("tr", *(element("th", esc(name).replace("_", "_<wbr>"), scope="col") for name in header))
    )
    captions = [element("caption", esc(caption))] if caption else []
    kind = "scroll wide" if len(header) > _WIDE else "scroll"
    return element("div", element("table", *captions, head, element("tbody", *body)), class_=kind)


def figure(svg: str, caption: str) -> str:
    """A picture with what it shows in words."""
    return element("figure", svg, element("figcaption", esc(caption)))


def _cell(cell: object) -> str:
    if cell is None or (isinstance(cell, int | float) and not isinstance(cell, bool)):
        return element("td", esc(number(cell)), class_="n")
    return element("td", esc(cell))
