"""The frequency model and power limits, described for the terminal, the report and the window."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from ...base.formatting import change, finite_or_none
from ..results.description import NOT_BRACKETED, NOT_IDENTIFIABLE, Cell, Description, Figure, Listing
from .clock_log import Plateau
from .fit.caps import CapFit, CapsAgainstClocks, median_saving
from .fit.clock_limits import how_settable
from .fit.frequency import FrequencyFit

_fitted = partial(Figure, unknown=NOT_IDENTIFIABLE)  # what the points may not determine


def describe_fit(fit: FrequencyFit, origin: str = "", plateaus: Sequence[Plateau] = ()) -> Description:
    """Describe a frequency model.

    Parameters
    ----------
    fit : FrequencyFit
        The model.
    origin : str, optional
        Where the points are from; empty for the series.
    plateaus : sequence of Plateau, optional
        Those of a clock log; empty if the points are not from one.

    Returns
    -------
    Description
        Its figures, the plateaus, and the clocks for other goals and at other memory clocks.
    """
    against_fastest: list[list[Cell]] = [
        [choice.wish, choice.clock_mhz, change(choice.energy), change(choice.time)] for choice in fit.choices
    ]
    of_memory: list[list[Cell]] = [
        [clock.memory_clock_mhz, clock.recommended_clock_mhz, change(clock.energy), change(clock.time)]
        for clock in fit.memory_clocks
    ]
    read: list[list[Cell]] = [
        [item.clock_mhz, item.power_w, item.scatter_w, item.readings, item.seconds] for item in plateaus
    ]
    assumed = "" if len(fit.rate) else ", for work in proportion to the clock"
    listings = (
        Listing("Plateaus of the log", ("MHz", "W", "± W", "readings", "s"), read),
        Listing(f"Other goals, against the fastest clock{assumed}", ("", "MHz", "energy", "time"), against_fastest),
        Listing(
            "Memory clocks, against the best and the fastest",
            ("memory MHz", "graphics MHz", "energy", "time"),
            of_memory,
        ),
    )
    return Description(
        title=_title("Frequency model", fit),
        origin=origin or fit.series,
        figures=[*_clocks(fit), *_parameters(fit), *_quality(fit)],
        listings=[listing for listing in listings if listing.rows],
        remarks=fit.reasons,
    )


def describe_caps(caps: CapFit, series: Sequence[CapFit] = ()) -> Description:
    """Describe power limits.

    Parameters
    ----------
    caps : CapFit
        The series to describe.
    series : sequence of CapFit, optional
        All that were measured, of which `caps` is one; figures of all are given where there are several.

    Returns
    -------
    Description
        Its figures, and what was measured under each limit.
    """
    figures = [
        Figure("Best power limit", caps.best_limit_w, "W", meaning="least energy per work", important=True),
        Figure("Energy there", change(1 - caps.saving), meaning="against the highest limit"),
        Figure("Speed there", change(1 - caps.slower), meaning="against the highest limit"),
        Figure("Least energy times time", caps.least_product_limit_w, "W"),
        *(Figure("No effect of the limit", str(each)) for each in caps.unbound),
        Figure("Best limit within 5 % of full speed", caps.best_within_5_percent_w, "W"),
        Figure("Drawn at the highest limit", caps.free_power_w, "W"),
    ]
    if caps.kept is not None:
        figures.append(Figure("Power over its limit", 100 * caps.kept, "%", "where it binds"))
    if len(series) > 1:
        overshoot = max(item.largest_overshoot for item in series)
        median = finite_or_none(100 * median_saving(series))
        figures.append(Figure(f"Median saving of {len(series)} series", median, "%", unknown="too few"))
        figures.append(Figure("Largest power above its limit", 100 * overshoot, "%", "of all series"))
    measured = zip(caps.limit_w.tolist(), caps.power_w.tolist(), caps.rate.tolist(), caps.energy.tolist(), strict=True)
    rows: list[list[Cell]] = [
        [limit, power, 100 * power / limit, change(rate / float(caps.rate[-1])), change(energy)]
        for limit, power, rate, energy in measured
    ]
    return Description(
        title=_title("Power limits", caps),
        origin=f"{caps.series}, {len(caps.limit_w)} points",
        figures=figures,
        listings=[Listing("Under each limit", ("limit W", "power W", "% of limit", "speed", "energy"), rows)],
        remarks=caps.reasons,
    )


def describe_comparison(clocks: CapsAgainstClocks) -> Description:
    """Describe clocks against power limits for the same load.

    Parameters
    ----------
    clocks : CapsAgainstClocks
        The comparison.

    Returns
    -------
    Description
        The best of each, over the board left to itself.
    """
    rows = [
        [name, f"{side.setting:.0f} {unit}", change(side.energy), change(side.speed)]
        for name, side, unit in (("locked clock", clocks.clocks, "MHz"), ("power limit", clocks.caps, "W"))
    ]
    ratio = clocks.power_ratio
    same_clock = Figure("Power at the same observed clock", change(ratio), "", "locked against limited")
    return Description(
        title="Clocks against power limits",
        origin="over the board left to itself",
        figures=[same_clock] if ratio is not None else (),
        listings=[Listing("", ("", "best at", "energy", "speed"), rows)],
        remarks=[clocks.words],
    )


def describe_load(
    fit: FrequencyFit | None, caps: CapFit | None, comparison: CapsAgainstClocks | None, origin: str = ""
) -> list[Description]:
    """Describe what is known of one load.

    Parameters
    ----------
    fit : FrequencyFit or None
        The frequency model.
    caps : CapFit or None
        The power limits.
    comparison : CapsAgainstClocks or None
        The two side by side.
    origin : str, optional
        Where the points of `fit` are from; empty for the series.

    Returns
    -------
    list of Description
        One for each that is not None, in that order.
    """
    descriptions = [describe_fit(fit, origin)] if fit is not None else []
    descriptions += [describe_caps(caps)] if caps is not None else []
    return [*descriptions, *([describe_comparison(comparison)] if comparison is not None else [])]


def _title(what: str, fit: FrequencyFit | CapFit) -> str:
    board = f" of {fit.gpu}" if fit.gpu else ""
    return f"{what}{board}{' (simulated)' if fit.simulated else ''}"


def _clock(
    label: str,
    clock_mhz: float | None,
    *,
    bracketed: bool = True,
    error: float | None = None,
    interval_mhz: tuple[float, float] | None = None,
    meaning: str = "",
    important: bool = False,
) -> Figure:
    """A clock in whole MHz; one that is not bracketed is an edge, without an error and an interval."""
    whole = None if clock_mhz is None else round(clock_mhz)
    note, unknown = "" if bracketed else NOT_BRACKETED, NOT_IDENTIFIABLE
    ends = None if interval_mhz is None or not bracketed else (round(interval_mhz[0]), round(interval_mhz[1]))
    known_error = error if bracketed else None
    return Figure(label, whole, "MHz", note, known_error, ends, meaning=meaning, unknown=unknown, important=important)


def _clocks(fit: FrequencyFit) -> Iterator[Figure]:
    """The clocks to choose from."""
    chosen = fit.recommended_clock_mhz
    meaning = "" if chosen is None else f"{how_settable(chosen)}; least expected {fit.minimised}"
    yield _clock("Recommended clock", fit.recommended_clock_mhz, meaning=meaning, important=True)
    if fit.energy_change is not None:
        yield Figure("Energy there", change(1 + fit.energy_change), note=f"against {fit.baseline}")
    if fit.expected_loss is not None:
        yield Figure("Expected loss there", 100 * fit.expected_loss, "%", "above the unknown best", digits=2)
    interval = fit.optimum_interval_mhz
    yield _clock("Estimated optimum", fit.optimum_mhz, bracketed=fit.optimum_bracketed, interval_mhz=interval)
    yield _clock("Lowest measured energy" if len(fit.rate) else "Lowest power per clock", fit.best_measured_mhz)
    if fit.range_mhz is not None:
        low, high = fit.range_mhz
        yield Figure("Range to search", f"{low:.0f}–{high:.0f}", "MHz", meaning="±10 % of the optimum")


def _parameters(fit: FrequencyFit) -> Iterator[Figure]:
    """The model, and what the points say of its parameters."""
    formula = f"P(f) = min(P_max, P_idle + α f v(f)²), a {'sharp' if fit.form == 'sharp' else 'soft'} ridge"
    yield _fitted("Model", formula if fit.identifiable else None, important=True)
    errors = fit.standard_errors
    yield _fitted("P_idle", fit.p_idle_w, "W", error=errors.get("p_idle_w"))
    cap = "no cap seen" if fit.identifiable else NOT_IDENTIFIABLE
    yield Figure("P_max", fit.p_max_w, "W", error=errors.get("p_max_w"), unknown=cap)
    yield _fitted("α", fit.alpha_w_per_mhz, "W/MHz", error=errors.get("alpha_w_per_mhz"))
    yield _fitted("β", fit.beta_per_mhz, "1/MHz", error=errors.get("beta_per_mhz"))
    measured = fit.voltage_ridge_mhz is not None and fit.ridge_mhz == fit.voltage_ridge_mhz
    interval = fit.voltage_ridge_interval_mhz
    if measured:
        yield _clock("Ridge τ", fit.ridge_mhz, interval_mhz=interval, meaning="of the measured voltage")
    else:
        yield _clock("Ridge τ", fit.ridge_mhz, bracketed=fit.ridge_bracketed, error=errors.get("ridge_mhz"))
    if fit.softness_mhz is not None:
        yield _fitted("Softness w", fit.softness_mhz, "MHz", error=errors.get("softness_mhz"))
    if fit.voltage_ridge_mhz is not None and not measured:
        yield _clock("Ridge τ by voltage", fit.voltage_ridge_mhz, interval_mhz=interval, meaning="the two agree")


def _quality(fit: FrequencyFit) -> Iterator[Figure]:
    """What else the points determine, and how well the model explains them."""
    if fit.leakage_w_per_c is not None and fit.reference_c is not None:
        yield Figure("Leakage", fit.leakage_w_per_c, "W/°C", f"the curve is at {fit.reference_c:.0f} °C", digits=2)
    if fit.fixed_time_share:
        yield Figure("Fixed time", 100 * fit.fixed_time_share, "%", "at the highest clock", digits=2)
    if fit.r2 is not None and fit.rmse_w is not None:
        yield Figure("R²", fit.r2, digits=5)
        yield Figure("RMSE", fit.rmse_w, "W")
    used = int(fit.used.sum())
    yield Figure("Points", f"{used} used", note="" if used == fit.points else f"{fit.points - used} left out")
