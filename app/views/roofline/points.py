"""Where the measured points of a sweep stand on the three plots, and each of them in words; free of Qt."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from ...engine.tuning_methods.roofline_sweeps import PlacedKernel, Sweep
from ...numbers import number

Floats = npt.NDArray[np.float64]
STRIP = 0.16  # half the width of the margins where flop and copy kernels stand, decades


def places_of(sweep: Sweep, at: int, low: float, high: float) -> tuple[Floats, Floats]:
    """log10 of intensity and of speed, work per energy or power (`at` 0 to 2); margins for what has no intensity."""
    points = sweep.points
    with np.errstate(divide="ignore", invalid="ignore"):
        x = np.log10(sweep.intensity())
        y = np.log10((points.flops, points.flops / points.power_w, points.power_w)[at])
    kinds = np.array(points.kind)
    return np.where(kinds == "flop", right_margin(high), np.where(kinds == "copy", left_margin(low), x)), y


def point_words(sweep: Sweep, index: int) -> str:
    """One measured point in words."""
    points, intensity = sweep.points, float(sweep.intensity()[index])
    lines = [sweep.label, f"{points.kind[index]} kernel"]
    if math.isfinite(intensity) and intensity > 0:
        lines[1] += f", {number(intensity)} flop/B"
    if points.flops[index] > 0:
        speed = points.flops[index]
        lines.append(f"{number(speed / 1e12)} TFLOP/s, {number(speed / points.power_w[index] / 1e9)} GFLOP/J")
    if points.bytes_per_s[index] > 0:
        lines.append(f"{number(points.bytes_per_s[index] / 1e9)} GB/s")
    error = points.power_error_w[index]
    spread = f" ± {error:.2g}" if math.isfinite(error) else ""
    clock = points.clock_mhz[index]
    lines.append(f"{points.power_w[index]:.1f}{spread} W" + (f" at {clock:.0f} MHz" if math.isfinite(clock) else ""))
    if math.isfinite(points.threads[index]):
        lines.append(f"{points.threads[index]:.0f} threads per multiprocessor")
    if not points.at_peak()[index]:
        lines.append("below the peak clock or at a limit: not fitted")
    elif not points.full()[index]:
        lines.append("fewer threads than the most: not fitted")
    return "\n".join(lines)


def measured_values(kernel: PlacedKernel) -> tuple[float | None, float | None, float | None]:
    """Speed (flop/s), work per energy (flop/J) and power (W) of a kernel as measured."""
    speed = kernel.work_flop / kernel.time_s if kernel.time_s else None
    return speed, kernel.work_flop / kernel.energy_j if kernel.energy_j else None, kernel.power_w


def left_margin(low: float) -> float:
    """log10 of the intensity at which kernels without work stand."""
    return math.log10(low) - 1.3 * STRIP


def right_margin(high: float) -> float:
    """... and those without traffic."""
    return math.log10(high) + 1.3 * STRIP
