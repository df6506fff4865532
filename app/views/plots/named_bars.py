"""`NamedBars`: bars from the left, one for each name, which they keep for who copies the figures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg
from PySide6.QtGui import QColor


class NamedBars(pg.BarGraphItem):  # type: ignore[misc]  # pyqtgraph has no types
    """`values` along x at `places` along y; an unknown value has no bar."""

    def __init__(
        self,
        label: str,
        names: Sequence[str],
        values: npt.ArrayLike,
        places: npt.ArrayLike,
        thick: float,
        colour: QColor,
    ) -> None:
        self.label, self.names = label, tuple(names)
        self.values, self.places = np.asarray(values, dtype=np.float64), np.asarray(places, dtype=np.float64)
        shown = np.nan_to_num(self.values)
        super().__init__(
            x0=np.minimum(shown, 0), width=np.abs(shown), y=self.places, height=thick, brush=colour, pen=pg.mkPen(None)
        )
