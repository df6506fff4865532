"""`FamilyColours`: the families that took most joules in the theme's colours, the next ones paler, the others grey."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from PySide6.QtGui import QColor

from ..shared import theme

_NAMES: Final = ("blue", "orange", "green", "purple", "sky", "vermillion")
_PALER, _UNLIT = 0.45, 0.18  # parts of the full colour
_PALEST: Final = 0.25  # where little of a column is busy


class FamilyColours:
    """Colours by place of a family, or of a path of ranges; names are told from one another by words, too."""

    def __init__(self, ranked: Sequence[int]) -> None:
        """`ranked` are the places of the families, those with most joules first."""
        self._rank = {place: rank for rank, place in enumerate(ranked)}

    def of(self, key: int, lit: int | None = None, *, ranges: bool = False) -> QColor:
        """The colour of a family or a path; pale where another one is lit."""
        rank = key if ranges else self._rank.get(key, len(self._rank))
        strength = 1.0 if rank < len(_NAMES) and not ranges else _PALER
        strength = strength if lit is None or lit == key else _UNLIT
        known = key >= 0 and rank < 2 * len(_NAMES)
        name = "grey" if ranges or not known else _NAMES[rank % len(_NAMES)]
        base, full = QColor(theme.colours().base), QColor(getattr(theme.colours(), name))
        parts = zip(_rgb(full), _rgb(base), strict=True)
        return QColor(*(round(b + strength * (f - b)) for f, b in parts))

    def ink(self, key: int, lit: int | None = None, *, ranges: bool = False) -> QColor:
        """The colour of words on it."""
        strong = not ranges and self._rank.get(key, 99) < len(_NAMES) and lit in (None, key)
        return QColor(theme.colours().base if strong else theme.colours().text)

    def row(
        self, keys: npt.NDArray[Any], share: npt.NDArray[np.float64], lit: int | None, *, ranges: bool
    ) -> npt.NDArray[np.uint32]:
        """A row of pixels as 0xffRRGGBB: of each the colour of its key, paled by the share that is busy."""
        distinct, place = np.unique(keys, return_inverse=True)
        table = np.array([_rgb(self.of(int(key), lit, ranges=ranges)) for key in distinct], np.float64)
        base = np.array(_rgb(QColor(theme.colours().base)), np.float64)
        strength = np.where(share > 0, np.maximum(share, _PALEST), 0.0)[:, None]
        mixed = np.rint(base + strength * (table[place] - base)).astype(np.uint32)
        packed: npt.NDArray[np.uint32] = mixed @ np.array([1 << 16, 1 << 8, 1], np.uint32) + np.uint32(0xFF000000)
        return packed


def _rgb(colour: QColor) -> tuple[int, int, int]:
    return colour.red(), colour.green(), colour.blue()
