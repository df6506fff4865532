"""Lines of equal energy and of equal energy-delay product in a plot of any two figures of speed, energy or power.

For a fixed work every such figure is a power of its time and energy: a speed is t^-1, an efficiency E^-1, power E/t.
So a product E t^n is constant along a straight line of the logarithms of any two that are no powers of each other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from ...base.vocabulary import PATTERNS
from ..models.arrays import Floats
from ..workloads.hardware_counters import COUNTERS


class Role(Enum):
    """The kind of a figure: the powers of time and of energy in it."""

    TIME = (1, 0)
    SPEED = (-1, 0)
    ENERGY = (0, 1)
    EFFICIENCY = (0, -1)
    POWER = (-1, 1)
    EDP = (1, 1)


class Product(Enum):
    """What is equal along a line: the powers of time and of energy."""

    ENERGY = (0, 1)
    EDP = (1, 1)


@dataclass(frozen=True, slots=True)
class IsoLine:
    """One line: `factor` times the product of the reference point, as points to draw within the span."""

    factor: float
    x: Floats
    y: Floats


_SLACK = 1e-9  # of the logarithms: a line along the edge is within


def role_of(name: str) -> Role | None:
    """Find the role of a figure by its name: time_s, GFLOP/s, TFLOPS/J, energy_j, power_w.

    Parameters
    ----------
    name : str
        Name of the figure.

    Returns
    -------
    Role or None
        None if it is not known, as of a hardware counter: a throughput of caches is no speed of the work.
    """
    lower = name.lower()
    words = lower.replace("_", " ")
    if name in COUNTERS or any(PATTERNS[kind].search(words) for kind in ("change", "of_one_user", "no_work")):
        return None  # a throughput of caches is no speed of the work, nor is a loss of it
    if lower.endswith(("/w", "/j", "/kw", "/mw")):
        return Role.EFFICIENCY
    if "edp" in lower:
        return Role.EDP
    if "energy" in lower or lower.endswith("_j"):
        return Role.ENERGY
    if "power" in lower or lower.endswith("_w") or lower in ("watt", "watts"):
        return None if "limit" in lower or "memory" in lower else Role.POWER
    if PATTERNS["named_rate"].search(lower) and not PATTERNS["energy_per"].search(lower):  # nor is 'pJ/flop' one
        return Role.SPEED
    if "time" in lower or "duration" in lower or "latency" in lower:
        return Role.TIME
    return None


def slope(product: Product, x: Role, y: Role) -> float | None:
    """Compute the exponent k of y = c x^k along which the product is constant.

    With log x = a t + b E and log y = c t + d E (t, E logarithms) the product m t + n E is u log x + w log y, where u =
    (m d - n c) / det and w = (a n - b m) / det; so k = -u / w.

    Parameters
    ----------
    product : Product
        The product of powers of time and energy.
    x, y : Role
        Kinds of the two figures.

    Returns
    -------
    float or None
        inf where x itself is constant; None if the figures do not determine the product.
    """
    (a, b), (c, d), (m, n) = x.value, y.value, product.value
    if a * d - b * c == 0:
        return None
    u, w = m * d - n * c, a * n - b * m
    return -u / w if w else math.inf


def iso_lines(
    product: Product,
    x: Role,
    y: Role,
    *,
    through: tuple[float, float],
    x_span: tuple[float, float],
    y_span: tuple[float, float],
    factors: Sequence[float] = (1.0, 1.25, 1.5, 2.0),
    points: int = 64,
) -> list[IsoLine]:
    """Compute lines of equal product through multiples of a point, clipped to the spans.

    Parameters
    ----------
    product : Product
        The product that is constant along a line.
    x, y : Role
        Kinds of the figures along the axes.
    through : tuple of float
        The reference point, in the units of the axes.
    x_span, y_span : tuple of float
        Lowest and highest figure that is shown.
    factors : sequence of float, optional
        Multiples of the product of `through`, a line for each.
    points : int, optional
        Points of a line, evenly spaced in the logarithm; two suffice on logarithmic axes.

    Returns
    -------
    list of IsoLine
        Lines outside the spans are left out; empty if the two figures do not determine the product, or a number is
        not positive.
    """
    k = slope(product, x, y)
    if k is None or min(*through, x_span[1], y_span[1]) <= 0:
        return []
    way = np.array([0.0, 1.0] if math.isinf(k) else [1.0, k])  # of the line, in the logarithms of x and y
    low = np.log([max(span[0], span[1] * 1e-6) for span in (x_span, y_span)]) - _SLACK
    high = np.log([x_span[1], y_span[1]]) + _SLACK
    lines = []
    for factor in factors:
        start = np.log(_moved(product, x, y, through, factor))
        with np.errstate(divide="ignore", invalid="ignore"):  # an axis along which the line does not move
            enters, leaves = np.sort([(low - start) / way, (high - start) / way], axis=0)
        if enters.max() < leaves.min():
            steps = np.linspace(enters.max(), leaves.min(), points)
            lines.append(IsoLine(factor, *np.exp(start[:, None] + way[:, None] * steps)))
    return lines


def _moved(product: Product, x: Role, y: Role, through: tuple[float, float], factor: float) -> tuple[float, float]:
    """A point whose product is `factor` times that of `through`: as much more energy in the same time."""
    per_energy = factor ** (1 / product.value[1])
    return through[0] * per_energy ** x.value[1], through[1] * per_energy ** y.value[1]
