"""Energy rooflines as `roofline --json` prints them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final, NotRequired, TypedDict

from ....base.formatting import finite_or_none
from ....base.records import Count, Source
from .energy_roofline import FIXED, EnergyRoofline, board_named
from .fit import Estimate, RooflineFit, shares_of_peak
from .points import Sweep, word_byte

_ENERGIES: Final = (  # figures of a model that are in its document, where they are known
    *("eps_flop_pj", "eps_mem_pj_per_b", "pi_0_w", "pi_flop_w", "pi_mem_w"),
    *("energy_balance", "effective_energy_balance", "eta_flop"),
)
_OF_FIT: Final = (  # figures of a fit, likewise
    *("r2", "r2_with_throttled", "mean_relative_error", "max_relative_error", "condition_number"),
    *("identifiable", "points", "throttled", "held", "over_clocks"),
)


class Expected(TypedDict):
    """What the model predicts of a kernel."""

    time_s: float
    energy_j: float
    power_w: float


class OfLimit(TypedDict):
    """What the limit leaves, and the points that it held."""

    limit_w: float | None
    limit_seen: bool
    headroom_w: float | None
    points: list[dict[str, Any]]


class OfPrecision(TypedDict):
    """The energy roofline of one precision."""

    eps_flop_pj: float
    eps_mem_pj_per_b: float
    pi_0_w: float
    energy_balance: float
    effective_energy_balance: float
    eta_flop: float
    peak_gflops: float
    bandwidth_gb_s: float
    time_balance: float
    r2: float
    max_relative_error: float
    condition_number: float
    identifiable: bool
    points: Count
    throttled: Count
    reasons: list[str]
    held: NotRequired[Count]
    over_clocks: NotRequired[bool]
    clock_mhz: NotRequired[float | None]
    clock_law: NotRequired[Mapping[str, float] | None]
    caches_pj_per_b: NotRequired[Mapping[str, float]]
    limit: NotRequired[OfLimit]
    predicted: NotRequired[Expected | None]
    measured: NotRequired[Mapping[str, Any]]
    citation: NotRequired[str]
    tdp_w: NotRequired[float | None]


class RooflineDocument(TypedDict):
    """The energy rooflines of a board, as `roofline --json` prints them."""

    gpu: str
    source: Source
    precisions: Mapping[str, OfPrecision]


def to_json(fit: RooflineFit) -> dict[str, Any]:
    """The fit of one precision, as `roofline --json` prints it.

    Parameters
    ----------
    fit : RooflineFit
        The fit.

    Returns
    -------
    dict
        Figures by name. One that the points do not determine is None, null in JSON.
    """
    board = board_named(fit.gpu)
    return {
        **model_to_json(fit.model, fit.precision, identifiable=fit.identifiable),
        **{name: getattr(fit, name) for name in _OF_FIT},
        "standard_errors": list(fit.relative.standard_errors) if fit.identifiable else None,
        "max_relative_error_with_throttled": fit.max_relative_error_all,
        "theoretical_peak_gflops": board.gflops.get(fit.precision) if board else None,
        "theoretical_bandwidth_gb_s": board.bandwidth_gb_s if board else None,
        "share_of_peak": shares_of_peak(fit) or None,
        "least_squares_per_flop": _estimate(fit.per_flop),
        "least_squares_per_byte": _estimate(fit.per_byte),
        "alone": dict(fit.alone),
        "clock_mhz": finite_or_none(fit.clock_mhz),
        "clock_law": None if fit.law == FIXED else asdict(fit.law),
        "caches_pj_per_b": {name: value for name, (value, _) in fit.caches.items()} if fit.identifiable else {},
        "reasons": list(fit.reasons),
    }


def limit_to_json(sweep: Sweep) -> OfLimit:
    """The limit of a sweep and the points that it held.

    Parameters
    ----------
    sweep : Sweep
        The sweep.

    Returns
    -------
    OfLimit
        Points of full occupancy by intensity, their figures by name with units in the names.
    """
    points, model = sweep.points, sweep.model
    columns = {
        "intensity_flop_per_b": sweep.intensity(),
        "gflops": points.flops / 1e9,
        "bandwidth_gb_s": points.bytes_per_s / 1e9,
        "power_w": points.power_w,
        "clock_mhz": points.clock_mhz,
    }
    return {
        "limit_w": sweep.limit_w,
        "limit_seen": sweep.limit_seen,
        "headroom_w": sweep.limit_w - model.pi_0_w if sweep.limit_w is not None and model is not None else None,
        "points": [
            {"kernel": points.kind[at], **{name: finite_or_none(float(of[at])) for name, of in columns.items()}}
            for at in sweep.held()
        ],
    }


def published_to_json(model: EnergyRoofline, precision: str) -> dict[str, Any]:
    """A published roofline with the keys of `to_json`.

    Parameters
    ----------
    model : EnergyRoofline
        The published roofline.
    precision : str
        Its precision.

    Returns
    -------
    dict
        Figures by name. What needs measured points is None, null in JSON.
    """
    return {
        **model_to_json(model, precision),
        **dict.fromkeys((*_OF_FIT, "standard_errors", "max_relative_error_with_throttled", "share_of_peak")),
        "least_squares_per_flop": None,
        "least_squares_per_byte": None,
        "theoretical_peak_gflops": model.peak_flops / 1e9,
        "theoretical_bandwidth_gb_s": model.bandwidth / 1e9,
        "identifiable": True,
        "points": 0,
        "throttled": 0,
        "held": 0,
        "over_clocks": False,
        "clock_mhz": None,
        "clock_law": None,
        "caches_pj_per_b": {},
        "alone": {},
    }


def model_to_json(model: EnergyRoofline, precision: str, *, identifiable: bool = True) -> dict[str, float | None]:
    """What follows from the five figures of a roofline, units in the names.

    Parameters
    ----------
    model : EnergyRoofline
        The roofline.
    precision : str
        Its precision, which decides the bytes of a word.
    identifiable : bool, optional
        Whether the energies are known.

    Returns
    -------
    dict of float or None
        Figures by name. Energies are None if they are not known, or if the value is infinite.
    """
    word = word_byte(precision)
    return {
        **{name: finite_or_none(getattr(model, name)) if identifiable else None for name in _ENERGIES},
        "eps_mop_pj_per_word": finite_or_none(model.eps_mop_pj(word)) if identifiable else None,
        "word_byte": word,
        "peak_gflops": model.peak_flops / 1e9,
        "bandwidth_gb_s": model.bandwidth / 1e9,
        "time_balance": model.time_balance,
    }


def _estimate(estimate: Estimate | None) -> dict[str, float] | None:
    if estimate is None:
        return None
    return {name: getattr(estimate, name) for name in ("eps_flop_pj", "eps_mem_pj_per_b", "pi_0_w")}
