"""The share of a board's theoretical peak that a measurement reaches: of speed, and of efficiency at the limit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Final

from ...base.formatting import percent
from ...base.records import figure
from ..models.roofline.energy_roofline import board_named
from ..results.measurement import Measurement, State, speed_of
from ..specification.plan import SessionPlan

AT_LIMIT: Final = "peak speed over the power limit"


def share_words(share: float, whole: str, exceeded: str) -> str:
    """Describe a share of something that is published.

    Parameters
    ----------
    share : float
        The share, 0.88 for 88 %.
    whole : str
        What it is of, 'the peak speed'.
    exceeded : str
        What is to be said of the whole where the share is above 1.

    Returns
    -------
    str
        '88.0 % of the peak speed', or '1.18 times the peak speed, ' and `exceeded`.
    """
    return f"{percent(share)} of {whole}" if share <= 1 else f"{share:.2f} times {whole}, {exceeded}"


@dataclass(frozen=True, slots=True)
class PeakShare:
    """Shares of the theoretical peak of one precision: 0..1 where that is a peak, and more where it is exceeded."""

    IN_JSON: ClassVar = {"theoretical_peak_gflops_per_w": "peak_gflops_per_w", "words": "words"}

    precision: str
    peak_gflops: float = field(metadata=figure(key="theoretical_peak_gflops"))
    tdp_w: float
    speed: float
    efficiency: float | None  # None if the energy was not measured
    source: str  # of peak and power limit

    @property
    def peak_gflops_per_w(self) -> float:
        """Theoretical peak efficiency, peak speed over the power limit [Anzt2015, section 4]."""
        return self.peak_gflops / self.tdp_w

    @property
    def words(self) -> str:
        """'88.2 % of peak speed over the power limit, 60.6 % of the peak speed (fp64: ...)'.

        A share above 1 is none: what it was taken of is then no peak, which is said in its place.
        """
        shares = [share_words(self.speed, "the peak speed", "which does not hold for what was measured")]
        if self.efficiency is not None:
            shares.insert(
                0, share_words(self.efficiency, AT_LIMIT, "which is no peak of the efficiency at lower clocks")
            )
        peak = f"{self.peak_gflops:.0f} GFLOP/s / {self.tdp_w:.0f} W = {self.peak_gflops_per_w:.2f} GFLOPS/W"
        return f"{', '.join(shares)} ({self.precision}: {peak} at the power limit; {self.source})"


def peak_share(plan: SessionPlan, measurement: Measurement) -> PeakShare | None:
    """Compute the shares of the theoretical peak of the plan's board that a measurement reaches.

    Parameters
    ----------
    plan : SessionPlan
        The plan of the session, which names the board and the precision.
    measurement : Measurement
        The measurement, with a speed among its values; without a power in W the share of the efficiency is None.

    Returns
    -------
    PeakShare or None
        None if the specification gives no speed or precision, nothing is published for the board in that precision, or
        the measurement failed.
    """
    board = board_named(plan.gpu)
    precision = plan.origin.get("precision", "")
    speed = speed_of(measurement.values)
    if board is None or measurement.state is not State.OK or precision not in board.gflops or not speed > 0:
        return None
    peak, power_w = board.gflops[precision], measurement.values.get("power_w", 0.0)
    return PeakShare(
        precision=precision,
        peak_gflops=peak,
        tdp_w=board.tdp_w,
        speed=speed / 1e9 / peak,
        efficiency=speed / 1e9 / power_w / (peak / board.tdp_w) if power_w > 0 else None,
        source=board.source,
    )
