"""`Shown`: what every result of a call has, for a script, a prompt and a notebook: rows, a table and pictures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

from ..engine.report.html import described, element, paragraph
from ..engine.results.description import Description


class Shown:
    """A result. Classes of results say what its rows, its pictures and its descriptions are."""

    def rows(self) -> list[dict[str, Any]]:
        """Return the result as plain rows; the keys end in the unit."""
        raise NotImplementedError

    def table(self) -> Any:
        """Return the rows as a pandas DataFrame where pandas is installed, else as a list of dicts."""
        try:
            pandas = import_module("pandas")
        except ImportError:
            return self.rows()
        return pandas.DataFrame(self.rows())

    def pictures(self) -> Iterator[str]:
        """Yield charts as SVG, the most telling first; nothing where there is nothing to draw."""
        yield from ()

    def _described(self) -> Sequence[Description]:
        return ()

    def _repr_svg_(self) -> str | None:
        """The first picture, for notebooks."""
        return next(self.pictures(), None)

    def _repr_html_(self) -> str:
        """All pictures, a line, and what is described, for notebooks."""
        words = [described(each) for each in self._described()]
        return element("div", *self.pictures(), paragraph(repr(self)), *words)
