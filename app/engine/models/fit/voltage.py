"""`VoltageEstimate`: the core voltage of a board that reports none, over its voltage below the ridge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from ..arrays import Floats

if TYPE_CHECKING:
    from ....sensors.gpu import GpuInfo
    from .frequency import FrequencyFit

UNIT: Final = "V/V₀"  # V₀ is the voltage below the ridge; a fit to power never gives volts
_BEYOND: Final = 1.01  # of the highest fitted clock: further up the curve is not known


@dataclass(frozen=True, slots=True, eq=False)
class VoltageEstimate:
    """v(f) of the frequency model [Schoonhoven2024, eqs. 6.2, 6.3] that was fitted to one board."""

    fit: FrequencyFit
    source: str  # what the model was fitted to, in words

    @classmethod
    def of(cls, fit: FrequencyFit, source: str, board: GpuInfo) -> VoltageEstimate | None:
        """Make the estimate of a fit for a board.

        A simulated board has the name of a real one, and its fits are its own.

        Parameters
        ----------
        fit : FrequencyFit
            The fitted model.
        source : str
            What it was fitted to, in words.
        board : GpuInfo
            The board whose voltage is wanted.

        Returns
        -------
        VoltageEstimate or None
            None if the fit is another board's, or has no ridge to relate voltages to.
        """
        same_board = fit.gpu == board.name and fit.simulated == (board.source == "simulated")
        return cls(fit, source) if same_board and fit.identifiable and fit.ridge_bracketed else None

    def ratio(self, clock_mhz: npt.ArrayLike) -> Floats:
        """The voltage over that below the ridge.

        Parameters
        ----------
        clock_mhz : array_like, any shape
            Graphics clocks in MHz; NaN if unknown.

        Returns
        -------
        array, same shape
            Without a unit. NaN if the clock is unknown or above those that were fitted; below them the voltage is the
            ridge's.
        """
        clock = np.asarray(clock_mhz, dtype=np.float64)
        covered = clock <= _BEYOND * float(self.fit.clock_mhz.max())
        return np.where(covered, self.fit.relative_voltage(clock), np.nan)
