"""Energy rooflines and kernels placed on them, described for the terminal, the report and the window."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from ....base.formatting import change, duration, number, percent
from ...results.description import NOT_IDENTIFIABLE, Cell, Description, Figure, Listing
from ..compare_methods import Methods
from .fit import PEAK_SHARE, RooflineFit, shares_of_peak
from .points import PlacedKernel, Sweep, word_byte

_ENERGIES: Final = (  # of an estimate: attribute, label, unit, meaning
    ("eps_flop_pj", "ε_flop", "pJ/flop", "energy of a flop"),
    ("eps_mem_pj_per_b", "ε_mem", "pJ/B", "energy of a byte of traffic"),
    ("pi_0_w", "π_0", "W", "constant power, drawn whatever the kernel does"),
)
_FROM_ENERGIES: Final = (  # attribute, factor, label, unit, meaning
    ("pi_flop_w", 1.0, "π_flop", "W", "power of the flops alone at peak speed"),
    ("pi_mem_w", 1.0, "π_mem", "W", "power of the traffic alone at full bandwidth"),
    ("eta_flop", 100.0, "η_flop", "%", "share of a flop's least energy that is its own"),
    ("energy_balance", 1.0, "B_ε", "flop/B", "energy balance: above it the work takes more energy than the traffic"),
    ("effective_energy_balance", 1.0, "Effective B_ε", "flop/B", "above it most energy is the work's, π_0 included"),
)
_SPEEDS: Final = (
    ("peak_flops", 1e-12, "Peak", "TFLOP/s", "highest speed, by all clocks that of the peak clock; or as published"),
    ("bandwidth", 1e-9, "Bandwidth", "GB/s", "highest measured traffic; of a published line the board's"),
    ("time_balance", 1.0, "B_τ", "flop/B", "time balance: above it the work takes longer than the traffic"),
)
_SHARES: Final = (  # of the theoretical peak [Holtmann2024, table 3]: key, label, meaning
    ("flop", "Of peak, flop kernel", "speed of the flop kernel, of the theoretical peak"),
    ("roofline_flop", "Of peak, roofline kernel", "its highest speed, of the theoretical peak"),
    ("copy", "Of bandwidth, copy kernel", "traffic of the copy kernel, of the theoretical bandwidth"),
    ("roofline_mem", "Of bandwidth, roofline kernel", "its highest traffic, of the theoretical bandwidth"),
)
_OWN_KERNELS: Final = {"eps_flop_pj": "flop", "eps_mem_pj_per_b": "copy", "pi_0_w": "baseline"}


def describe_sweep(sweep: Sweep) -> Description:
    """Describe a roofline, by measured points or as published: its energies, its speeds and the quality of its fit.

    Parameters
    ----------
    sweep : Sweep
        The roofline. Figures that its points do not determine are described as unknown.

    Returns
    -------
    Description
        Titled with the board, the precision and the source, with the figures in the units of their labels.
    """
    figures = [*_of_model(sweep), *_of_limit(sweep), *(_of_fit(sweep.fit) if sweep.fit is not None else ())]
    held = describe_held(sweep)
    return Description(sweep.label, sweep.origin, figures, [held] if held.rows else [], remarks=sweep.reasons)


def describe_held(sweep: Sweep) -> Listing:
    """Tabulate the points of full occupancy that a limit held, by intensity.

    Parameters
    ----------
    sweep : Sweep
        The roofline.

    Returns
    -------
    Listing
        A row for each point; without rows if none was held.
    """
    points = sweep.points
    speeds = (sweep.intensity(), points.flops / 1e12, points.bytes_per_s / 1e9)
    rows: list[list[Cell]] = [
        [points.kind[at], *(float(each[at]) for each in (*speeds, points.power_w, points.clock_mhz))]
        for at in sweep.held()
    ]
    header = ("Kernel", "flop/B", "TFLOP/s", "GB/s", "W", "MHz")
    title = "Held by a limit" if points.limited.any() else "Below the peak clock"  # a file may not state limits
    return Listing(f"{title}, {sweep.label}", header, rows)


def verdict(sweep: Sweep) -> str:
    """Why the energies of a sweep are not known.

    Parameters
    ----------
    sweep : Sweep
        The roofline.

    Returns
    -------
    str
        A phrase of a few words; empty if the energies are known.
    """
    return "" if sweep.model is not None else "no fit" if sweep.fit is None else NOT_IDENTIFIABLE


def describe_kernel(kernel: PlacedKernel, sweeps: Sequence[Sweep]) -> Listing:
    """Tabulate what a kernel is expected to take on each board within its power limit, and what was measured of it.

    Parameters
    ----------
    kernel : PlacedKernel
        The kernel. What was measured of it becomes the last row, if its time is known.
    sweeps : sequence of Sweep
        The boards, one row each. Where the energies of a board are not known, its row gives the reason.

    Returns
    -------
    Listing
        Time in ms, power in W and energy in J.
    """
    rows: list[list[Cell]] = []
    for sweep in sweeps:
        expected = sweep.predict(kernel)
        if expected is None:
            rows.append([sweep.label, *(3 * [verdict(sweep)])])
        else:
            time_s, energy_j, power_w = expected
            rows.append([sweep.label, time_s * 1e3, power_w, energy_j])
    if kernel.time_s is not None:
        board = f" · {kernel.gpu}" if kernel.gpu else ""
        rows.append([f"measured{board}", kernel.time_s * 1e3, kernel.power_w, kernel.energy_j])
    return Listing("The kernel, expected and measured", ("", "Time (ms)", "Power (W)", "Energy (J)"), rows)


def describe_methods(methods: Methods) -> Description:
    """Describe the ways to tune for energy side by side [Schoonhoven2024, section 6.5.1], and what each chooses.

    Parameters
    ----------
    methods : Methods
        The methods that were compared on one board.

    Returns
    -------
    Description
        The configuration that each chose, as a figure, and a table of the methods against race to idle.
    """
    clocks, board = methods.clocks_mhz, f"{methods.gpu}{' (simulated)' if methods.simulated else ''}"
    efficiency, speed = methods.efficiency_name, methods.speed_name
    header = ("method", "MHz", efficiency, "gained", speed, "gained", "energy J", "measured", "took", "fewer")
    rows: list[list[Cell]] = [
        [
            *(result.label, result.clock_mhz, result.efficiency, change(1 + result.efficiency_change)),
            *(result.speed, change(1 + result.speed_change), result.energy_j, result.measurements),
            *(duration(result.seconds), percent(result.reduction)),
        ]
        for result in methods.results
    ]
    chosen = [
        Figure(result.label, ", ".join(f"{name}={value}" for name, value in result.configuration.items()))
        for result in methods.results
    ]
    return Description(
        title=f"{methods.title} on {board}",
        origin=f"{methods.size} configurations at {len(clocks)} clocks, {clocks[0]:.0f}–{clocks[-1]:.0f} MHz",
        figures=chosen,
        listings=[Listing("Against race to idle", header, rows)],
        remarks=methods.notes,
    )


def _of_model(sweep: Sweep) -> Iterator[Figure]:
    """The energies, the speeds and what follows from them; speeds are known without the energies too."""
    known, lines, unknown = sweep.model, (sweep.model if sweep.fit is None else sweep.fit.model), verdict(sweep)
    errors = sweep.fit.relative.standard_errors if sweep.fit is not None else (None, None, None)
    for (name, label, unit, meaning), error in zip(_ENERGIES, errors, strict=True):
        value = None if known is None else float(getattr(known, name))
        details = _least_squares(sweep.fit, name)
        yield Figure(label, value, unit, error=error, meaning=meaning, details=details, unknown=unknown)
    word = None if known is None else known.eps_mop_pj(word_byte(sweep.points.precision))
    yield Figure("ε_mop", word, "pJ/word", meaning="energy of a word: ε_mem times its bytes", unknown=unknown)
    for model, figures in ((known, _FROM_ENERGIES), (lines, _SPEEDS)):
        for name, factor, label, unit, meaning in figures:
            value = None if model is None else factor * float(getattr(model, name))
            yield Figure(label, value, unit, meaning=meaning, unknown=unknown)


def _of_limit(sweep: Sweep) -> Iterator[Figure]:
    """Power that the limit leaves [Choi2014], and the memories on the chip whose traffic is known."""
    fit = sweep.fit
    if sweep.limit_w is not None and sweep.model is not None:
        headroom_w = sweep.limit_w - sweep.model.pi_0_w
        yield Figure("Δπ", headroom_w, "W", meaning="what the limit leaves above π_0 for work and traffic")
    for name, (value, error) in (fit.caches if fit is not None and fit.identifiable else {}).items():
        yield Figure(f"ε_{name}", value, "pJ/B", error=error, meaning=f"energy of a byte of {name}")
    if fit is not None and np.isfinite(fit.clock_mhz):
        yield Figure("Peak clock", fit.clock_mhz, "MHz", meaning="highest observed: the energies are those at it")
    if fit is not None and fit.over_clocks and (lowest := fit.law.lowest) < PEAK_SHARE:
        at = f"{lowest * fit.clock_mhz:.0f} MHz"
        value = fit.relative.eps_flop_pj * float(fit.law.switching(lowest))
        yield Figure("ε_flop, lowest clock", value, "pJ/flop", meaning=f"at {at}, with the voltage that falls to there")
        value = fit.relative.pi_0_w * float(fit.law.constant(lowest))
        yield Figure("π_0, lowest clock", value, "W", meaning=f"at {at}, likewise")


def _of_fit(fit: RooflineFit) -> Iterator[Figure]:
    """How well the model explains the measured power, and other ways to the same figures."""
    shares = shares_of_peak(fit)
    for name, label, meaning in _SHARES:
        if name in shares:
            exceeded = f"{shares[name]:.3f} times what is published, which does not hold here"
            yield Figure(label, percent(shares[name]) if shares[name] <= 1 else exceeded, meaning=meaning)
    yield Figure("R² of power", fit.r2, digits=5, meaning="of the fitted points, not of energy per flop")
    yield Figure("R², throttled points fitted too", fit.r2_with_throttled, digits=5)
    for label, share, meaning in (
        ("Mean error of power", fit.mean_relative_error, "of the fitted points"),
        ("Largest error of power", fit.max_relative_error, "of the fitted points"),
        ("Largest error, all points", fit.max_relative_error_all, "over all points of full occupancy"),
    ):
        yield Figure(label, 100 * share, "%", digits=3, meaning=meaning)
    meaning = "of the weighted design; above 100 the three energies cannot be separated"
    yield Figure("Condition number", fit.condition_number, meaning=meaning)
    yield Figure(
        "Points fitted", fit.points, meaning="of full occupancy, at the peak clock and at no limit, or of all clocks"
    )
    left_out = 0 if fit.over_clocks else fit.throttled
    yield Figure("Points left out", left_out, meaning="below the peak clock or at a limit")
    yield Figure("Points at a limit, fitted", fit.held, meaning="with the voltage that falls with their clocks")
    for name, label, unit, _ in _ENERGIES:
        kernel = _OWN_KERNELS[name]
        meaning = f"from the {kernel} kernel alone: a check of the fit"
        yield Figure(f"{label}, {kernel} kernel", fit.alone.get(name), unit, meaning=meaning)


def _least_squares(fit: RooflineFit | None, name: str) -> str:
    """What ordinary least squares of energy per work or per byte would make of one of the energies."""
    if fit is None:
        return ""
    ways = (("flop [Holtmann2024, eq. 6]", fit.per_flop), ("byte [Holtmann2024, eq. 7]", fit.per_byte))
    return "\n".join(
        f"Ordinary least squares of energy per {way}: {number(float(getattr(estimate, name)))}"
        for way, estimate in ways
        if estimate is not None
    )
