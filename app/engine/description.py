"""A result described once, figure by figure: the terminal, the report and the window render the same description."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..numbers import UNKNOWN, number

Cell = str | float | None


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a result: what it is, its value, its unit, and what qualifies it.

    `label` is plain text in the words and symbols of the field. `value` is a number, text where the figure is one
    ("sharp"), or None where it is not known; then `note` says why. `error` is the standard error, in the same unit.
    """

    label: str
    value: float | str | None
    unit: str = ""
    note: str = ""
    error: float | None = None
    digits: int = 4
    important: bool = False  # among the figures to read first

    @property
    def text(self) -> str:
        """The value with its error, unit and note: '1035 ± 12 MHz, not bracketed'."""
        if self.value is None:
            return self.note or UNKNOWN
        shown = self.value if isinstance(self.value, str) else number(self.value, self.digits)
        if self.error is not None and math.isfinite(self.error):
            shown += f" ± {number(self.error, 2)}"
        shown = f"{shown} {self.unit}".rstrip()
        return f"{shown}, {self.note}" if self.note else shown


@dataclass(frozen=True, slots=True)
class Listing:
    """A table of a result: `header` names the columns, with units; numbers stay numbers."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]


@dataclass(frozen=True, slots=True)
class Description:
    """A result: whose it is, its figures, its tables, and remarks on how far it can be trusted."""

    title: str
    origin: str = ""  # what it was measured on or read from; says so where it is simulated, modelled or replayed
    figures: Sequence[Figure] = ()
    listings: Sequence[Listing] = ()
    remarks: Sequence[str] = ()


def side_by_side(descriptions: Sequence[Description], title: str = "") -> Listing:
    """Descriptions as the columns of one table: a row per label, in the order in which labels first appear."""
    labels = list(dict.fromkeys(figure.label for each in descriptions for figure in each.figures))
    columns = [{figure.label: figure.text for figure in each.figures} for each in descriptions]
    rows = [[label, *(column.get(label, UNKNOWN) for column in columns)] for label in labels]
    return Listing(title, ["", *(each.title for each in descriptions)], rows)
