"""Fits an energy roofline to measured speeds and powers, and decides whether they determine it.

Ordinary least squares on E/W or E/Q [Holtmann2024, eqs. 6, 7] is led by the points at the ends of an axis that spans
decades: a throttled board with a baseline of -2625 W still scores R2 = 0.99997. Here the relative residuals of power
are minimised, P = (W/T) eps_flop + (Q/T) eps_mem + pi_0, all three at least zero; R2 and errors are of power. Eqs. 6
and 7 are fitted beside it for comparison.

The flop kernel is not fitted: its operands stay in registers and hardly change, so its flops cost less (12 % on an
H200) than those of the roofline kernel, with operands from memory. It is reported with the other kernels on their own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from ..arrays import Floats, Mask
from .energy_roofline import PJ, EnergyRoofline, board_named

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
    clock_mhz: Floats  # observed, NaN if unknown
    limited: Mask  # a power or thermal limit acted
    threads: Floats  # resident per multiprocessor, NaN if unknown
    power_error_w: Floats  # half of the 95 % interval, NaN if unknown

    @classmethod
    def of(
        cls,
        gpu: str,
        precision: str,
        flops: Floats,
        bytes_per_s: Floats,
        power_w: Floats,
        *,
        limited: Mask | None = None,
        **known: Floats,
    ) -> RooflinePoints:
        """Collect points of which the clock, the threads or the error of power may not be known.

        Parameters
        ----------
        gpu : str
            Name of the board.
        precision : str
            Precision of the work, such as 'fp32'.
        flops : array, shape (n,)
            Achieved speed, flop/s.
        bytes_per_s : array, shape (n,)
            Achieved traffic, B/s.
        power_w : array, shape (n,)
            Power, W.
        limited : array of bool, shape (n,), or None, optional
            At which points a power or thermal limit acted; None for nowhere.
        **known : array, shape (n,)
            Those of `clock_mhz`, `threads` and `power_error_w` that are known; the others become NaN.

        Returns
        -------
        RooflinePoints
            The points, in the given order.
        """
        limited = np.zeros(len(power_w), dtype=bool) if limited is None else limited
        unknown = dict.fromkeys(("clock_mhz", "threads", "power_error_w"), np.full(len(power_w), np.nan))
        return cls(gpu, precision, flops, bytes_per_s, power_w, limited=limited, **(unknown | known))

    @property
    def kind(self) -> tuple[str, ...]:
        """Roofline, flop, copy or baseline, of each point: by whether it has work and traffic."""
        kinds = np.array([["baseline", "copy"], ["flop", "roofline"]])
        return tuple(kinds[(self.flops > 0).astype(int), (self.bytes_per_s > 0).astype(int)].tolist())

    def of_kind(self, kind: str) -> Mask:
        """Select the points of one kind of kernel.

        Parameters
        ----------
        kind : str
            'roofline', 'flop', 'copy' or 'baseline', as in `kind`.

        Returns
        -------
        array of bool, shape (n,)
            Which points are of that kind.
        """
        return np.asarray(np.array(self.kind, dtype=object) == kind)

    def __len__(self) -> int:
        return len(self.power_w)

    def at_peak(self) -> Mask:
        """Points at the peak clock that no limit held back."""
        if np.isnan(self.clock_mhz).all():
            return ~self.limited
        return ~self.limited & (self.clock_mhz >= PEAK_SHARE * np.nanmax(self.clock_mhz))

    def full(self) -> Mask:
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
    standard_errors: tuple[float, ...]  # in the same units and order

    @property
    def figures(self) -> Floats:
        """The three, in this order."""
        return np.array([self.eps_flop_pj, self.eps_mem_pj_per_b, self.pi_0_w])


@dataclass(frozen=True, slots=True)
class RooflineFit:
    """The fit of a board and precision. The model has the figures of `relative`; they count where `identifiable`."""

    gpu: str
    precision: str
    points: int  # at the peak clock, that were fitted
    throttled: int  # that were not
    relative: Estimate
    per_flop: Estimate | None  # [Holtmann2024, eq. 6]
    per_byte: Estimate | None  # [Holtmann2024, eq. 7]
    peak_flops: float  # highest achieved
    bandwidth: float
    highest: Mapping[str, tuple[float, float]]  # kernel -> highest speed (flop/s) and traffic (B/s) that it reached
    r2: float  # of power
    r2_with_throttled: float  # of a fit to all points of full occupancy, throttled ones too [Holtmann2024, table 4]
    mean_relative_error: float
    max_relative_error: float
    max_relative_error_all: float  # with the throttled points
    condition_number: float
    alone: Mapping[str, float]  # pi_0_w, eps_flop_pj, eps_mem_pj_per_b by their own kernels [Holtmann2024, table 5]
    identifiable: bool
    reasons: tuple[str, ...]  # why not, and what was left out

    @property
    def model(self) -> EnergyRoofline:
        """The lines of the fitted figures."""
        energies = self.relative
        flop, mem = energies.eps_flop_pj, energies.eps_mem_pj_per_b
        return EnergyRoofline(flop, mem, energies.pi_0_w, self.peak_flops, self.bandwidth)


def fit_roofline(points: RooflinePoints) -> RooflineFit:
    """Fit the points at the peak clock with the most threads.

    Parameters
    ----------
    points : RooflinePoints
        Speeds, traffic and power of the microbenchmarks, arrays of shape (n,).

    Returns
    -------
    RooflineFit
        Energies in pJ and W with their quality.

    Raises
    ------
    ValueError
        Where fewer than six points are left, or none has work or traffic.
    """
    full = points.full()
    fitted = full & ~points.of_kind("flop")
    kept = fitted & points.at_peak()
    if kept.sum() < LEAST_POINTS:
        raise ValueError(f"{int(kept.sum())} points at the peak clock; {LEAST_POINTS} are needed")
    design = np.column_stack([points.flops * PJ, points.bytes_per_s * PJ, np.ones(len(points))])
    if not (design[kept, :2].max(axis=0) > 0).all():
        raise ValueError("points with work and points with traffic are needed")
    estimate, condition = _relative(design[kept], points.power_w[kept])
    error = np.abs(design @ estimate.figures / points.power_w - 1)
    power_w, with_throttled_w = points.power_w[kept], points.power_w[fitted]
    with_throttled, _ = _relative(design[fitted], with_throttled_w)
    reasons = _reasons(estimate, condition)
    throttled = int((~points.at_peak() & full).sum())
    notes = [f"{throttled} points below the peak clock or at a limit are left out"] if throttled else []
    return RooflineFit(
        gpu=points.gpu,
        precision=points.precision,
        points=int(kept.sum()),
        throttled=throttled,
        relative=estimate,
        per_flop=_normalised(design[kept], power_w, 0),
        per_byte=_normalised(design[kept], power_w, 1),
        peak_flops=float(points.flops[full].max()),
        bandwidth=float(points.bytes_per_s[full].max()),
        highest=_highest(points),
        r2=_r2(design[kept], power_w, estimate),
        r2_with_throttled=_r2(design[fitted], with_throttled_w, with_throttled),
        mean_relative_error=float(error[kept].mean()),
        max_relative_error=float(error[kept].max()),
        max_relative_error_all=float(error[full].max()),
        alone=_alone(points, points.at_peak() & full),
        condition_number=condition,
        identifiable=not reasons,
        reasons=(*reasons, *notes),
    )


def _r2(design: Floats, power_w: Floats, estimate: Estimate) -> float:
    """Share of the variance of power that an estimate explains; NaN where power does not vary."""
    spread = float(((power_w - power_w.mean()) ** 2).sum())
    return 1 - float(((power_w - design @ estimate.figures) ** 2).sum()) / spread if spread else math.nan


def _highest(points: RooflinePoints) -> dict[str, tuple[float, float]]:
    """Of each kernel with work or traffic, at full occupancy."""
    of = {kind: points.full() & points.of_kind(kind) for kind in ("flop", "copy", "roofline")}
    return {
        kind: (float(points.flops[some].max()), float(points.bytes_per_s[some].max()))
        for kind, some in of.items()
        if some.any()
    }


def _alone(points: RooflinePoints, kept: Mask) -> dict[str, float]:
    """The energies by the baseline, flop and copy kernels: power, and what is above the baseline's per unit."""
    result: dict[str, float] = {}
    of = {kind: points.of_kind(kind) & kept for kind in ("baseline", "flop", "copy")}
    if not of["baseline"].any():
        return result
    pi_0_w = result["pi_0_w"] = float(points.power_w[of["baseline"]].mean())
    for kind, speeds, name in (("flop", points.flops, "eps_flop_pj"), ("copy", points.bytes_per_s, "eps_mem_pj_per_b")):
        if of[kind].any():
            result[name] = float(((points.power_w - pi_0_w)[of[kind]] / speeds[of[kind]] / PJ).mean())
    return result


def _relative(design: Floats, power_w: Floats) -> tuple[Estimate, float]:
    """Least squares of relative residuals, non-negative; and the condition number of the scaled design."""
    from scipy.optimize import nnls  # imported late: the window opens without it

    weighted = design / power_w[:, None]
    scale = np.linalg.norm(weighted, axis=0)
    scaled = weighted / scale
    condition = float(np.linalg.cond(scaled))
    coefficients = nnls(scaled, np.ones(len(power_w)))[0]
    errors = _standard_errors(scaled, np.ones(len(power_w)) - scaled @ coefficients)
    return _estimate(coefficients / scale, errors / scale), condition


def _normalised(design: Floats, power_w: Floats, by: int) -> Estimate | None:
    """Ordinary least squares of E/W (by 0) or E/Q (by 1); None where too few points have any of it."""
    some = design[:, by] > 0
    if some.sum() < LEAST_POINTS:
        return None
    per = design[some] / design[some, by][:, None]
    scale = np.linalg.norm(per, axis=0)
    target = power_w[some] / design[some, by]
    coefficients = np.linalg.lstsq(per / scale, target, rcond=None)[0]
    errors = _standard_errors(per / scale, target - per / scale @ coefficients)
    return _estimate(coefficients / scale, errors / scale)


def _standard_errors(design: Floats, residual: Floats) -> Floats:
    degrees = max(1, len(residual) - design.shape[1])
    return np.asarray(np.sqrt(np.diag(np.linalg.pinv(design.T @ design)) * float((residual**2).sum()) / degrees))


def _estimate(figures: Floats, errors: Floats) -> Estimate:
    flop, mem, base = figures.tolist()
    return Estimate(flop, mem, base, tuple(errors.tolist()))


def _reasons(estimate: Estimate, condition: float) -> list[str]:
    reasons = []
    if condition > MOST_CONDITION:
        reasons.append(
            f"the points do not separate work, traffic and time: condition number {condition:.0f}, "
            f"{MOST_CONDITION:.0f} at most"
        )
    named = ("eps_flop", "eps_mem", "pi_0")
    for name, figure, error in zip(named, estimate.figures, estimate.standard_errors, strict=True):
        if figure <= 0:
            reasons.append(f"{name} comes out as zero")
        elif error > MOST_STANDARD_ERROR * figure:
            reasons.append(
                f"{name} is known only to {error / figure:.0%} (standard error), {MOST_STANDARD_ERROR:.0%} at most"
            )
    return reasons


def shares_of_peak(fit: RooflineFit) -> dict[str, float]:
    """Share of the theoretical peak that each microbenchmark reached [Holtmann2024, table 3].

    Parameters
    ----------
    fit : RooflineFit
        The fit, with the highest speed and traffic of each kernel.

    Returns
    -------
    dict of float
        Shares of 1. flop: speed of the flop kernel; copy: traffic of the copy kernel; roofline_flop and roofline_mem:
        both of the roofline kernel. A share is missing if the kernel did not run or its peak is unknown; empty if the
        board's are unknown.
    """
    board = board_named(fit.gpu)
    if board is None:
        return {}
    shares: dict[str, float] = {}
    peak = board.gflops.get(fit.precision)
    for name, kernel, at, most in (
        ("flop", "flop", 0, peak),
        ("copy", "copy", 1, board.bandwidth_gb_s),
        ("roofline_flop", "roofline", 0, peak),
        ("roofline_mem", "roofline", 1, board.bandwidth_gb_s),
    ):
        if kernel in fit.highest and most is not None:
            shares[name] = fit.highest[kernel][at] / 1e9 / most
    return shares
