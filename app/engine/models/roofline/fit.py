"""Fits an energy roofline to measured speeds and powers, and says whether they determine it (DOMAIN 7).

Ordinary least squares on E/W or E/Q (S4 eqs 6 and 7) is led by the points at the ends of an axis that spans decades:
a throttled board with a baseline of -2625 W still scores R2 = 0.99997. Here the relative residuals of power are
minimised, P = (W/T) eps_flop + (Q/T) eps_mem + pi_0, all three at least zero; R2 and errors are of power. Eqs 6 and 7
stand beside it for comparison with S4.

The flop kernel is not fitted: its operands stay in registers and hardly change, so its flops cost less (12 % on an
H200) than those of the roofline kernel, whose operands come from memory. It stands beside, with the others alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from .energy_roofline import PJ, EnergyRoofline

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
PEAK_SHARE: Final = 0.995  # of the highest clock: points there count
MOST_CONDITION: Final = 100.0
MOST_STANDARD_ERROR: Final = 0.25
LEAST_POINTS: Final = 6


@dataclass(frozen=True, slots=True)
class RooflinePoints:
    """Measured points of one board and precision; arrays of shape (n,)."""

    gpu: str
    precision: str
    flops: Floats  # achieved, flop/s
    bytes_per_s: Floats  # achieved, B/s
    power_w: Floats
    clock_mhz: Floats  # observed; NaN where not told
    limited: Bools  # a power or thermal limit acted
    threads: Floats  # resident per multiprocessor, NaN where not told
    power_error_w: Floats  # half of the 95 % interval, NaN where not told
    kind: tuple[str, ...]  # roofline, flop, copy or baseline, of each point

    def __len__(self) -> int:
        return len(self.power_w)

    def at_peak(self) -> Bools:
        """Points at the peak clock that no limit held back."""
        if np.isnan(self.clock_mhz).all():
            return ~self.limited
        return ~self.limited & (self.clock_mhz >= PEAK_SHARE * np.nanmax(self.clock_mhz))

    def full(self) -> Bools:
        """Points with the most threads: fewer of them take less constant power, so they are other rooflines."""
        if np.isnan(self.threads).all():
            return np.ones(len(self), dtype=bool)
        return self.threads >= np.nanmax(self.threads)


@dataclass(frozen=True, slots=True)
class Estimate:
    """The three energies by one estimator, with standard errors."""

    eps_flop_pj: float
    eps_mem_pj_per_b: float
    pi_0_w: float
    standard_errors: tuple[float, float, float]  # in the same units and order


@dataclass(frozen=True, slots=True)
class RooflineFit:
    """What the points tell. Figures of the model are those of `relative`; whether they count, `identifiable` says."""

    gpu: str
    precision: str
    points: int  # at the peak clock, that were fitted
    throttled: int  # that were not
    relative: Estimate
    per_flop: Estimate | None  # S4 eq 6
    per_byte: Estimate | None  # S4 eq 7
    peak_flops: float  # highest achieved
    bandwidth: float
    highest: Mapping[str, tuple[float, float]]  # kernel -> highest speed (flop/s) and traffic (B/s) that it reached
    r2: float  # of power
    r2_with_throttled: float  # of a fit to all points of full occupancy, the throttled ones too (S4 table 4)
    mean_relative_error: float
    max_relative_error: float
    max_relative_error_all: float  # with the throttled points
    condition_number: float
    alone: Mapping[str, float]  # S4 table 5: pi_0_w, eps_flop_pj, eps_mem_pj_per_b by their own kernels, where measured
    identifiable: bool
    reasons: tuple[str, ...]  # why not, and what else a person should know

    @property
    def model(self) -> EnergyRoofline:
        """The lines of the fitted figures."""
        told = self.relative
        return EnergyRoofline(told.eps_flop_pj, told.eps_mem_pj_per_b, told.pi_0_w, self.peak_flops, self.bandwidth)


def fit_roofline(points: RooflinePoints) -> RooflineFit:
    """Fit the points at the peak clock with the most threads.

    Raises ValueError where fewer than six are left, or none has work or traffic.
    """
    fitted = points.full() & np.array([kind != "flop" for kind in points.kind])
    kept = fitted & points.at_peak()
    if kept.sum() < LEAST_POINTS:
        raise ValueError(f"{int(kept.sum())} points at the peak clock; {LEAST_POINTS} are needed")
    design = np.column_stack([points.flops * PJ, points.bytes_per_s * PJ, np.ones(len(points))])
    if not (design[kept, :2].max(axis=0) > 0).all():
        raise ValueError("points with work and points with traffic are needed")
    estimate, condition = _relative(design[kept], points.power_w[kept])
    figures = np.array([estimate.eps_flop_pj, estimate.eps_mem_pj_per_b, estimate.pi_0_w])
    apart = np.abs(design @ figures / points.power_w - 1)
    power_w = points.power_w[kept]
    reasons = _reasons(estimate, condition)
    throttled = int((~points.at_peak() & points.full()).sum())
    notes = [f"{throttled} points below the peak clock or at a limit are left out"] if throttled else []
    return RooflineFit(
        gpu=points.gpu,
        precision=points.precision,
        points=int(kept.sum()),
        throttled=throttled,
        relative=estimate,
        per_flop=_normalised(design[kept], power_w, 0),
        per_byte=_normalised(design[kept], power_w, 1),
        peak_flops=float(points.flops[points.full()].max()),
        bandwidth=float(points.bytes_per_s[points.full()].max()),
        highest=_highest(points),
        r2=_r2(design[kept], power_w, figures),
        r2_with_throttled=_r2_of_all(design[fitted], points.power_w[fitted]),
        mean_relative_error=float(apart[kept].mean()),
        max_relative_error=float(apart[kept].max()),
        max_relative_error_all=float(apart[points.full()].max()),
        alone=_alone(points, points.at_peak() & points.full()),
        condition_number=condition,
        identifiable=not reasons,
        reasons=(*reasons, *notes),
    )


def _r2(design: Floats, power_w: Floats, figures: Floats) -> float:
    """Share of the variance of power that the figures explain; NaN where power does not vary."""
    spread = float(((power_w - power_w.mean()) ** 2).sum())
    return 1 - float(((power_w - design @ figures) ** 2).sum()) / spread if spread else math.nan


def _r2_of_all(design: Floats, power_w: Floats) -> float:
    estimate, _ = _relative(design, power_w)
    return _r2(design, power_w, np.array([estimate.eps_flop_pj, estimate.eps_mem_pj_per_b, estimate.pi_0_w]))


def _highest(points: RooflinePoints) -> dict[str, tuple[float, float]]:
    """Of each kernel with work or traffic, at full occupancy."""
    kinds = np.array(points.kind)
    of = {kind: points.full() & (kinds == kind) for kind in ("flop", "copy", "roofline")}
    return {
        kind: (float(points.flops[some].max()), float(points.bytes_per_s[some].max()))
        for kind, some in of.items()
        if some.any()
    }


def _alone(points: RooflinePoints, kept: Bools) -> dict[str, float]:
    """What the baseline, flop and copy kernels tell by themselves: power, and what is above the baseline's per unit."""
    found: dict[str, float] = {}
    of = {kind: np.array([k == kind for k in points.kind]) & kept for kind in ("baseline", "flop", "copy")}
    if not of["baseline"].any():
        return found
    pi_0_w = found["pi_0_w"] = float(points.power_w[of["baseline"]].mean())
    for kind, speeds, name in (("flop", points.flops, "eps_flop_pj"), ("copy", points.bytes_per_s, "eps_mem_pj_per_b")):
        if of[kind].any():
            found[name] = float(((points.power_w - pi_0_w)[of[kind]] / speeds[of[kind]] / PJ).mean())
    return found


def _relative(design: Floats, power_w: Floats) -> tuple[Estimate, float]:
    """Least squares of relative residuals, non-negative; and the condition number of the scaled design."""
    from scipy.optimize import nnls  # imported late: the window opens without it

    weighted = design / power_w[:, None]
    scale = np.linalg.norm(weighted, axis=0)
    scaled = weighted / scale
    condition = float(np.linalg.cond(scaled))
    found = nnls(scaled, np.ones(len(power_w)))[0]
    errors = _standard_errors(scaled, np.ones(len(power_w)) - scaled @ found)
    return _estimate(found / scale, errors / scale), condition


def _normalised(design: Floats, power_w: Floats, by: int) -> Estimate | None:
    """Ordinary least squares of E/W (by 0) or E/Q (by 1), as S4 does; None where too few points have any of it."""
    some = design[:, by] > 0
    if some.sum() < LEAST_POINTS:
        return None
    per = design[some] / design[some, by][:, None]
    scale = np.linalg.norm(per, axis=0)
    target = power_w[some] / design[some, by]
    found = np.linalg.lstsq(per / scale, target, rcond=None)[0]
    errors = _standard_errors(per / scale, target - per / scale @ found)
    return _estimate(found / scale, errors / scale)


def _standard_errors(design: Floats, residual: Floats) -> Floats:
    degrees = max(1, len(residual) - design.shape[1])
    return np.asarray(np.sqrt(np.diag(np.linalg.pinv(design.T @ design)) * float((residual**2).sum()) / degrees))


def _estimate(figures: Floats, errors: Floats) -> Estimate:
    flop, mem, base = (float(x) for x in figures)
    return Estimate(flop, mem, base, (float(errors[0]), float(errors[1]), float(errors[2])))


def _reasons(estimate: Estimate, condition: float) -> list[str]:
    reasons = []
    if condition > MOST_CONDITION:
        reasons.append(
            f"the points do not tell work, traffic and time apart: condition number {condition:.0f}, "
            f"{MOST_CONDITION:.0f} at most"
        )
    named = ("eps_flop", "eps_mem", "pi_0")
    figures = (estimate.eps_flop_pj, estimate.eps_mem_pj_per_b, estimate.pi_0_w)
    for name, figure, error in zip(named, figures, estimate.standard_errors, strict=True):
        if figure <= 0:
            reasons.append(f"{name} comes out as zero")
        elif error > MOST_STANDARD_ERROR * figure:
            reasons.append(
                f"{name} is known only to {error / figure:.0%} (standard error), {MOST_STANDARD_ERROR:.0%} at most"
            )
    return reasons
