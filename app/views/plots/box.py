"""`Box`: the inside of every plot. While it has no size, its transform stays one that can be inverted."""

from __future__ import annotations

from typing import Any

import pyqtgraph as pg


class Box(pg.ViewBox):  # type: ignore[misc]  # pyqtgraph has no types
    """A `ViewBox` that is not scaled to nothing before it is laid out, or when a splitter closes it.

    Labels and lines invert the transform whenever it changes. For a singular one pyqtgraph 0.14 forms a pseudo-inverse
    and sets the shape of an array, which NumPy 2.5 deprecates.
    """

    def __init__(self, *, enableMenu: bool = False) -> None:
        super().__init__(enableMenu=enableMenu)

    def updateMatrix(self, changed: Any = None) -> None:
        """pyqtgraph's hook."""
        if not self.rect().isEmpty():
            super().updateMatrix(changed)
