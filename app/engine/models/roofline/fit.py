"""Fits an energy roofline to measured speeds and powers, and decides whether they determine it.

Ordinary least squares on E/W or E/Q [Holtmann2024, eqs. 6, 7] is led by the points at the ends of an axis that spans
decades: a throttled board with a baseline of -2625 W still scores R2 = 0.99997. Here the relative residuals of power
are minimised, P = (W/T) eps_flop + (Q/T) eps_mem + pi_0, all three at least zero; R2 and errors are of power. Eqs. 6
and 7 are fitted beside it for comparison.

Where the points at the peak clock do not determine the energies, those at lower clocks, which a limit held back or
which were locked, are evidence too: `clocks` fits them with the voltage of their clocks.

The flop kernel is not fitted: its operands stay in registers and hardly change, so its flops cost less (12 % on an
H200) than those of the roofline kernel, with operands from memory. It is reported with the other kernels on their own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from ..arrays import Floats, Mask
from .clocks import CONSTANT, MEM, at_clocks, fit_clocks
from .energy_roofline import FIXED, PJ, ClockLaw, EnergyRoofline, board_named

PEAK_SHARE: Final = 0.995  # of the highest clock: points there count
MOST_CONDITION: Final = 100.0
MOST_STANDARD_ERROR: Final = 0.25
LEAST_POINTS: Final = 6
_MOST_ERROR: Final = 0.06  # of power, of a fit over clocks: beyond it the board does not follow the law


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
    set_mhz: Floats = field(default_factory=lambda: np.array(math.nan))  # the clock that was locked, NaN if none was
    caches: Mapping[str, Floats] = field(default_factory=dict)  # B/s of each on-chip memory whose traffic is known

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
        caches: Mapping[str, Floats] | None = None,
        **known: Floats,
    ) -> RooflinePoints:
        """Collect points of which the clocks, the threads or the error of power may not be known.

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
        caches : mapping of str to array, shape (n,), or None, optional
            Traffic with each cache or shared memory, B/s; None where none is known.
        **known : array, shape (n,)
            Those of `clock_mhz`, `set_mhz`, `threads` and `power_error_w` that are known; the others become NaN.

        Returns
        -------
        RooflinePoints
            The points, in the given order.
        """
        limited = np.zeros(len(power_w), dtype=bool) if limited is None else limited
        names = ("clock_mhz", "set_mhz", "threads", "power_error_w")
        unknown = dict.fromkeys(names, np.full(len(power_w), np.nan))
        return cls(
            gpu, precision, flops, bytes_per_s, power_w, limited=limited, caches=caches or {}, **(unknown | known)
        )

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

    def clock(self) -> Floats:
        """Observed clock over the highest; 1 where none is known."""
        known = self.clock_mhz > 0
        highest = self.clock_mhz[known].max(initial=0.0) or 1.0
        return np.where(known, self.clock_mhz / highest, 1.0)

    def held(self) -> Mask:
        """Points that a limit held back, or whose clock was below the one that was set, else below the highest."""
        wanted = np.fmin(self.set_mhz, np.fmax.reduce(self.clock_mhz, initial=0.0))
        return self.limited | (self.clock_mhz < PEAK_SHARE * wanted)

    def common_error(self, some: Mask) -> float:
        """Standard error of power that points share and their scatter does not show, relative: of half their intervals.

        Parameters
        ----------
        some : array of bool, shape (n,)
            The points that count.

        Returns
        -------
        float
            0 where no error of power is known.
        """
        share = (self.power_error_w / self.power_w)[some & np.isfinite(self.power_error_w)]
        return float(np.median(share)) / 2 if len(share) else 0.0

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
    caches_pj_per_b: tuple[float, ...] = ()

    @property
    def figures(self) -> Floats:
        """All of them, in this order."""
        return np.array([self.eps_flop_pj, self.eps_mem_pj_per_b, self.pi_0_w, *self.caches_pj_per_b])

    def widened(self, share: float) -> Estimate:
        """The estimate with a relative error that all points share, such as the sensor's gain.

        Parameters
        ----------
        share : float
            The standard error of power, of 1.

        Returns
        -------
        Estimate
            With standard errors that hold it too.
        """
        return replace(self, standard_errors=tuple(np.hypot(self.standard_errors, share * self.figures).tolist()))


@dataclass(frozen=True, slots=True)
class RooflineFit:
    """The fit of a board and precision. The model has the figures of `relative`; they count where `identifiable`."""

    gpu: str
    precision: str
    points: int  # that were fitted: those at the peak clock, or of all clocks
    throttled: int  # below the peak clock or at a limit
    held: int  # of the fitted ones, that a limit held
    over_clocks: bool  # points of all clocks were fitted, since those at the peak clock do not suffice
    clock_mhz: float  # the peak clock, at which the energies are stated; NaN if unknown
    law: ClockLaw  # what a lower clock takes off them; `FIXED` where that is not known
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
    caches: Mapping[str, tuple[float, float]]  # of each on-chip memory: energy of a byte, pJ, and its standard error
    identifiable: bool
    reasons: tuple[str, ...]  # why not, and what was left out

    @property
    def model(self) -> EnergyRoofline:
        """The lines of the fitted figures."""
        energies = self.relative
        flop, mem = energies.eps_flop_pj, energies.eps_mem_pj_per_b
        return EnergyRoofline(flop, mem, energies.pi_0_w, self.peak_flops, self.bandwidth, self.law)


def fit_roofline(points: RooflinePoints) -> RooflineFit:
    """Fit the points with the most threads: those at the peak clock, and where they do not suffice those of all clocks.

    Parameters
    ----------
    points : RooflinePoints
        Speeds, traffic and power of the microbenchmarks, arrays of shape (n,).

    Returns
    -------
    RooflineFit
        Energies in pJ and W with their quality. An on-chip memory whose energy the points do not tell is left out, with
        the reason.

    Raises
    ------
    ValueError
        Where fewer than six points at the peak clock are left, or none has work or traffic, and those at lower clocks
        do not help; it says why.
    """
    fitted = points.full() & ~points.of_kind("flop")
    points = replace(points, caches={name: of for name, of in points.caches.items() if of[fitted].any()})
    try:
        fit = _fit(points)
    except ValueError:
        if not points.caches:
            raise
        without = fit_roofline(replace(points, caches={}))
        why = f"the energies of {' and '.join(points.caches)} are not identifiable: they count with the others"
        return replace(without, reasons=(*without.reasons, why))
    errors = {name: error / figure if figure > 0 else math.inf for name, (figure, error) in fit.caches.items()}
    if errors and (max(errors.values()) > MOST_STANDARD_ERROR or not fit.identifiable):
        worst = max(errors, key=errors.__getitem__)
        told = f"known only to {errors[worst]:.0%}" if math.isfinite(errors[worst]) else "comes out as zero"
        without = fit_roofline(
            replace(points, caches={name: of for name, of in points.caches.items() if name != worst})
        )
        why = f"the energy of {worst} is not identifiable ({told}): it counts with the other energies"
        return replace(without, reasons=(*without.reasons, why))
    return fit


def _fit(points: RooflinePoints) -> RooflineFit:
    full = points.full()
    fitted = full & ~points.of_kind("flop")
    kept = fitted & points.at_peak()
    rates = (points.flops * PJ, points.bytes_per_s * PJ, np.ones(len(points)))
    design = np.column_stack([*rates, *(rate * PJ for rate in points.caches.values())])
    reasons, rows, law, estimate = _too_few(design[kept]), kept, FIXED, None
    if not reasons:
        estimate, condition = _relative(design[kept], points.power_w[kept])
        reasons = _reasons(estimate, condition, tuple(points.caches))
    clocks = _over_clocks(points, design, fitted)
    if not isinstance(clocks, str):
        law = clocks[1]
        if reasons:
            (estimate, law), rows, reasons = clocks, fitted, []
    elif reasons and clocks:
        reasons = [*reasons, clocks]
    if estimate is None:
        raise ValueError("; ".join(reasons))
    over_clocks = rows is fitted
    estimate = estimate.widened(points.common_error(rows))
    stated = at_clocks(design, points.clock(), law) if over_clocks else design
    condition = _condition(stated[rows] / points.power_w[rows, None])
    error = np.abs(stated @ estimate.figures / points.power_w - 1)
    with_throttled, _ = _relative(design[fitted], points.power_w[fitted])
    throttled, held = int((~points.at_peak() & full).sum()), int((rows & points.held()).sum())
    notes = [f"{throttled} points below the peak clock or at a limit are left out"] if throttled else []
    if over_clocks:
        low, high = points.clock_mhz[rows].min(), points.clock_mhz[rows].max()
        below = "a limit held" if points.limited.any() else "below it are"  # a file may not state limits
        notes = [
            f"the energies are those of {high:.0f} MHz, by {int(rows.sum())} points from {low:.0f} MHz on and the "
            f"voltage that falls with the clock; {below} {held} of them"
        ]
    return RooflineFit(
        gpu=points.gpu,
        precision=points.precision,
        points=int(rows.sum()),
        throttled=throttled,
        held=held,
        over_clocks=over_clocks,
        clock_mhz=float(np.fmax.reduce(points.clock_mhz)),
        law=law,
        relative=estimate,
        per_flop=_normalised(design[kept, :3], points.power_w[kept], 0),
        per_byte=_normalised(design[kept, :3], points.power_w[kept], 1),
        peak_flops=float((points.flops / (points.clock() if over_clocks else 1.0))[full].max()),
        bandwidth=float(points.bytes_per_s[full].max()),
        highest=_highest(points),
        r2=_r2(stated[rows], points.power_w[rows], estimate),
        r2_with_throttled=_r2(design[fitted], points.power_w[fitted], with_throttled),
        mean_relative_error=float(error[rows].mean()),
        max_relative_error=float(error[rows].max()),
        max_relative_error_all=float(error[full].max()),
        alone=_alone(points, points.at_peak() & full),
        condition_number=condition,
        caches=dict(
            zip(points.caches, zip(estimate.caches_pj_per_b, estimate.standard_errors[3:], strict=True), strict=True)
        ),
        identifiable=not reasons,
        reasons=(*reasons, *notes),
    )


def _too_few(design: Floats) -> list[str]:
    """What the points at the peak clock lack."""
    if len(design) < LEAST_POINTS:
        return [f"{len(design)} points at the peak clock; {LEAST_POINTS} are needed"]
    return [] if (design[:, :2].max(axis=0) > 0).all() else ["points with work and points with traffic are needed"]


def _over_clocks(points: RooflinePoints, design: Floats, fitted: Mask) -> tuple[Estimate, ClockLaw] | str:
    """The energies at the highest clock by points of all clocks; or why they are not known, empty if all is at one."""
    lower, free = fitted & ~points.at_peak(), fitted & ~points.held()
    if not lower.any():
        return ""
    if not (points.clock_mhz[fitted] > 0).all():
        return "the clocks of the points at the limit are not known"
    if fitted.sum() < LEAST_POINTS + 2 or not (design[fitted, :2].max(axis=0) > 0).all():
        return f"{int(fitted.sum())} points of all clocks, some with work and some with traffic; 8 are needed"
    power_w, clock = points.power_w, points.clock()
    apart = _condition((design[free] / power_w[free, None])[:, [MEM, CONSTANT]]) if free.sum() > 1 else math.inf
    if apart > MOST_CONDITION:  # else they would hang on the voltage, of which little is known
        return "eps_mem and pi_0 are not told apart by the points that no limit held, whose traffic is the same or none"
    found = fit_clocks(design[fitted], power_w[fitted], clock[fitted], points.held()[fitted])
    if found is None:
        return "no voltage that falls with the clock explains the powers below the peak clock"
    estimate, stated = _estimate(found.figures, found.standard_errors), at_clocks(design, clock, found.law)[fitted]
    reasons = _reasons(estimate, _condition(stated / power_w[fitted, None]), tuple(points.caches))
    error = float(np.abs(stated @ estimate.figures / power_w[fitted] - 1).max())
    if error > _MOST_ERROR:
        reasons.append(f"a voltage that falls with the clock misses power by {error:.0%}, {_MOST_ERROR:.0%} at most")
    return f"over all clocks {'; '.join(reasons)}" if reasons else (estimate, found.law)


def _condition(weighted: Floats) -> float:
    """Of a design whose columns are scaled to unit norm."""
    norms = np.linalg.norm(weighted, axis=0)
    return float(np.linalg.cond(weighted / norms)) if norms.all() else math.inf


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
    coefficients = nnls(scaled, np.ones(len(power_w)))[0]
    errors = _standard_errors(scaled, np.ones(len(power_w)) - scaled @ coefficients)
    return _estimate(coefficients / scale, errors / scale), _condition(weighted)


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
    flop, mem, base, *caches = figures.tolist()
    return Estimate(flop, mem, base, tuple(errors.tolist()), tuple(caches))


def _reasons(estimate: Estimate, condition: float, caches: tuple[str, ...]) -> list[str]:
    reasons = []
    if condition > MOST_CONDITION:
        reasons.append(
            f"the points do not separate work, traffic and time: condition number {condition:.0f}, "
            f"{MOST_CONDITION:.0f} at most"
        )
    named = ("eps_flop", "eps_mem", "pi_0", *caches)
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
