"""A result described once, figure by figure: the terminal, the report and the window render the same description."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from ...base.formatting import UNKNOWN, number
from ...base.records import stated

Cell = str | float | None
NOT_IDENTIFIABLE: Final = "not identifiable"
NOT_BRACKETED: Final = "not bracketed"
_SYMBOL = re.compile(r"(?<![^\W_])([^\W\d_])_(\w+)")  # 'P_idle'


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a result: what it is, its value, its unit, and what qualifies it.

    `label` is plain text in the words and symbols of the field, `P_idle`. `value` is a number, text if the figure
    is one ("sharp"), or None if it is not known; `unknown` then stands in its place. `error` is the standard error
    and `interval` holds the ends of the 95 % interval, both in the same unit. `meaning` explains the figure in a few
    words; `details` say more, where there is room.
    """

    label: str
    value: float | str | None
    unit: str = ""
    note: str = ""
    error: float | None = None
    interval: tuple[float, float] | None = None
    digits: int = 4
    meaning: str = ""
    details: str = ""
    unknown: str = UNKNOWN
    important: bool = False  # among the figures to read first

    @property
    def heading(self) -> str:
        """The label with its unit: 'ridge τ (MHz)'."""
        return f"{self.label} ({self.unit})" if self.unit else self.label

    @property
    def cell(self) -> str:
        """The value with its error, interval and note, below a heading that has the unit: '1035 ± 12'."""
        return self._text("")

    @property
    def text(self) -> str:
        """The value with its error, unit, interval and note: '1035 ± 12 MHz, not bracketed'."""
        return self._text(self.unit)

    def _text(self, unit: str) -> str:
        if self.value is None:
            return self.unknown
        shown = self.value if isinstance(self.value, str) else number(self.value, self.digits)
        if self.error is not None and math.isfinite(self.error):
            shown += f" ± {number(self.error, 2)}"
        shown = f"{shown} {unit}".rstrip()
        if self.interval is not None:
            shown += f" ({number(self.interval[0])}–{number(self.interval[1])})"
        return f"{shown}, {self.note}" if self.note else shown


def figures_of(record: Any, unknown: str = UNKNOWN, **labels: str) -> dict[str, Figure]:
    """Return the figures of a record, by field: those with a label whose value is not None.

    `labels` stand for those of the fields. A field that holds a value with its interval gives a figure with both.
    """
    figures = {}
    for name, known in stated(record.__class__).items():
        value, interval = getattr(record, name), None
        if not known.label or value is None:
            continue
        if known.flat:
            value, interval = value.value, value.interval
        if not isinstance(value, str):
            value = known.scale * value
        figures[name] = Figure(
            labels.get(name, known.label),
            value,
            known.unit,
            interval=interval,
            digits=known.digits,
            meaning=known.meaning,
            unknown=unknown,
        )
    return figures


@dataclass(frozen=True, slots=True)
class Listing:
    """A table of a result: `header` names the columns, with units; numbers stay numbers."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]


@dataclass(frozen=True, slots=True)
class Description:
    """A result: its name, its figures, its tables, and remarks on how far it can be trusted."""

    title: str
    origin: str = ""  # what it was measured on or read from; says so where it is simulated, modelled or replayed
    figures: Sequence[Figure] = ()
    listings: Sequence[Listing] = ()
    remarks: Sequence[str] = ()


def aligned(descriptions: Sequence[Description]) -> list[list[Figure]]:
    """A row per figure, in the order in which figures first appear, and in it the figure of each description.

    Where a description lacks it, an unknown one with the same label, unit and meaning stands in its place.
    """
    first: dict[str, Figure] = {}
    for figure in (figure for description in descriptions for figure in description.figures):
        first.setdefault(figure.heading, figure)
    columns = [{figure.heading: figure for figure in description.figures} for description in descriptions]
    return [
        [column.get(heading, Figure(like.label, None, like.unit, meaning=like.meaning)) for column in columns]
        for heading, like in first.items()
    ]


def side_by_side(descriptions: Sequence[Description], title: str = "") -> Listing:
    """Descriptions as the columns of one table; where some figure has a meaning, the last column holds them."""
    figures = aligned(descriptions)
    header = ["", *(description.title for description in descriptions)]
    rows = [[row[0].heading, *(figure.cell for figure in row)] for row in figures]
    if any(row[0].meaning for row in figures):
        header.append("")
        rows = [[*row, of[0].meaning] for row, of in zip(rows, figures, strict=True)]
    return Listing(title, header, rows)


def label_as_html(label: str) -> str:
    """A label as HTML, what follows a symbol's underscore lowered: P_idle becomes P<sub>idle</sub>."""
    return _SYMBOL.sub(r"\1<sub>\2</sub>", html.escape(label))
