"""The charts that the analysis does not describe: clouds with marks, fits with bands, traces.

`small_front` draws a session's cloud and front for notebooks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..analysis.choosers import Choice
from ..analysis.costs import values_of
from ..analysis.iso_lines import Product, iso_lines, role_of
from ..analysis.session_analysis import Analysis
from ..formats.names import heading
from ..models.fit.frequency import FrequencyFit
from ..models.roofline.points import PlacedKernel, Sweep
from ..results.objectives import Objective
from ..results.settings import UNTOUCHED
from ..session.references import Kind, Reference
from ..session.summary import front_indices
from ..space.result_table import ResultTable
from ..space.search_space import Rows
from .svg import CLASSES, Axis, Drawing, standalone

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def lettered(choices: Sequence[Choice], chosen: int | None) -> dict[int, str]:
    """A letter for each configuration that is chosen; choices of the same one share it."""
    wanted = [index for index in [chosen, *(choice.index for choice in choices)] if index is not None]
    return dict(zip(dict.fromkeys(wanted), _LETTERS, strict=False))


def front_chart(
    analysis: Analysis, letters: dict[int, str], units: dict[str, str], references: Sequence[Reference] = ()
) -> str:
    """The cloud over both goals by clock, its front and hull, the lines that cut it, equal energy and E t; and what
    stands beside the configurations."""
    plane = analysis.plane
    if plane is None or not len(plane.front):
        return ""
    x, y = plane.values[:, 0], plane.values[:, 1]
    names = [goal.name for goal in plane.goals]
    finite = np.isfinite(x) & np.isfinite(y)  # what was only timed has no place
    beside = [
        (reference, reference.values.get(names[0], np.nan), reference.values.get(names[1], np.nan))
        for reference in references
    ]
    drawing = Drawing(
        Axis.over(heading(names[0], units), x[finite], [at for _, at, _ in beside]),
        Axis.over(heading(names[1], units), y[finite], [at for _, _, at in beside]),
        f"{names[1]} over {names[0]}",
    )
    for words, class_, rows in _coloured(analysis.table):
        drawing.dots(x[rows], y[rows], class_, words)
    hull = np.append(plane.hull, plane.hull[:1])
    drawing.line(x[hull], y[hull], "hull", "convex hull")
    cut = plane.quadrants
    if cut is not None:
        drawing.rule(x=cut.x_line, words="through the best of each figure")
        drawing.rule(y=cut.y_line)
        x_role, y_role = role_of(names[0]), role_of(names[1])
        if x_role is not None and y_role is not None:
            edp = iso_lines(
                Product.EDP,
                x_role,
                y_role,
                through=(float(x[cut.best_y]), float(y[cut.best_y])),
                x_span=(drawing.x.low, drawing.x.high),
                y_span=(drawing.y.low, drawing.y.high),
            )
            for line in edp:
                drawing.line(line.x, line.y, "iso", "equal energy-delay product" if line is edp[0] else "")
    drawing.line(x[plane.front], y[plane.front], "front", "Pareto front")
    for reference, at_x, at_y in beside:
        shape, class_ = ("triangle", "b2") if reference.kind is Kind.FLOOR else ("diamond", "b5")
        drawing.sign(at_x, at_y, shape, class_, reference.label)
    for index, letter in letters.items():
        drawing.mark(float(x[index]), float(y[index]), letter)
    return drawing.text


def _coloured(table: ResultTable) -> list[tuple[str, str, Rows]]:
    """Measurements by the first device setting that varies, in at most seven colours from low to high."""
    rows = table.rows()[: len(table)]
    for parameter in table.space.parameters:
        if not parameter.device_setting or len(parameter.values) < 2:
            continue
        values = values_of(table, parameter.name)
        finite = np.unique(values[np.isfinite(values)])
        if len(finite) < 2:
            continue
        colours = CLASSES - (UNTOUCHED in parameter.values)  # the last is that of the untouched board
        groups = np.array_split(finite, min(colours, len(finite)))
        colour = np.linspace(0, colours - 1, len(groups)).round().astype(int)
        groups_of_rows = []
        for group, which in zip(groups, colour.tolist(), strict=True):
            ends = f"{group[0]:g}" if len(group) == 1 else f"{group[0]:g} to {group[-1]:g}"
            groups_of_rows.append((f"{parameter.name} {ends}", f"c{which}", np.flatnonzero(np.isin(values, group))))
        if UNTOUCHED in parameter.values:
            groups_of_rows.append((f"{parameter.name} {UNTOUCHED}", f"c{colours}", np.flatnonzero(np.isnan(values))))
        return groups_of_rows
    return [("measurements", "c1", np.arange(len(rows)))]


def model_chart(fit: FrequencyFit) -> str:
    """Power over clock: points, the fitted curve with its band, ridge and optimum."""
    if not len(fit.clock_mhz):
        return ""
    clock = np.linspace(float(fit.clock_mhz.min()), float(fit.clock_mhz.max()), 160)
    drawing = Drawing(
        Axis.over("graphics clock (MHz)", fit.clock_mhz),
        Axis.over("power (W)", fit.power_w, from_zero=True),
        f"Power over clock, {fit.gpu}",
    )
    if len(fit.band_mhz) and fit.band_w.ndim == 2:
        drawing.band(fit.band_mhz, fit.band_w[0], fit.band_w[1], "b0", "95 % band")
    drawing.dots(fit.clock_mhz[fit.used], fit.power_w[fit.used], "c1", "measured", size=6)
    drawing.dots(fit.clock_mhz[~fit.used], fit.power_w[~fit.used], "c5", "left out: a limit acted", size=6)
    if fit.curve is not None:
        drawing.line(clock, fit.power(clock), "b0", "model")
    if fit.ridge_mhz is not None:
        drawing.rule(x=fit.ridge_mhz, words=f"ridge, {fit.ridge_mhz:.0f} MHz")
    if fit.optimum_mhz is not None:
        drawing.rule(x=fit.optimum_mhz, class_="front", words=f"least {fit.minimised}, {fit.optimum_mhz:.0f} MHz")
    return drawing.text


def roofline_chart(sweep: Sweep, kernel: PlacedKernel | None) -> str:
    """Work per energy over intensity: the archline, the points, the kernel."""
    model = sweep.model
    if model is None:
        return ""
    intensity, power = sweep.intensity(), sweep.points.power_w
    shown = np.isfinite(intensity) & (intensity > 0) & sweep.points.full()
    span = intensity[shown] if shown.any() else np.array([0.25, 128.0])
    grid = np.geomspace(float(span.min()), float(span.max()), 160)
    efficiency = sweep.points.flops / power / 1e9
    drawing = Drawing(
        Axis.over("intensity (flop/B)", span, log=True),
        Axis.over("GFLOP/J", efficiency[shown], model.archline(grid) / 1e9, log=True),
        f"Energy roofline, {sweep.label}",
    )
    drawing.dots(intensity[shown], efficiency[shown], "c1", "microbenchmarks", size=6)
    drawing.line(grid, model.archline(grid) / 1e9, "b0", "archline")
    if sweep.limit_w is not None and (model.powerline(grid) > sweep.limit_w).any():
        words = f"within {sweep.limit_w:.0f} W"
        drawing.line(grid, model.capped(grid, sweep.limit_w)[1] / 1e9, "front", words)
    drawing.rule(x=model.effective_energy_balance, words=f"energy balance, {model.effective_energy_balance:.3g} flop/B")
    if kernel is not None and kernel.energy_j:
        drawing.mark(kernel.intensity, kernel.work_flop / kernel.energy_j / 1e9, "K")
    return drawing.text


def trace_chart(table: ResultTable, name: str, label: str) -> str:
    """One figure of every measurement over the time at which it was taken."""
    length = len(table)
    values = values_of(table, name)
    when = np.array([table.measurement(index).timestamp_s for index in range(length)])
    finite = np.isfinite(values) & np.isfinite(when)
    if finite.sum() < 2 or np.ptp(when[finite]) <= 0:
        return ""
    passed = when - np.nanmin(when[finite])
    unit, factor = ("s", 1.0) if np.nanmax(passed[finite]) < 300 else ("minutes", 60.0)
    passed /= factor
    drawing = Drawing(Axis.over(unit, passed[finite]), Axis.over(label, values[finite]), f"{label} over the session")
    drawing.dots(passed[finite], values[finite], "c1", size=3)
    return drawing.text


def small_front(table: ResultTable, objective: Objective, units: Mapping[str, str]) -> str:
    """A picture of its own; empty if there are not two goals, or nothing worked."""
    goals = objective.front
    indices = front_indices(table, goals, objective.limits)
    if len(goals) < 2 or not indices:
        return ""
    names = [goal.name for goal in goals[:2]]
    x, y = (np.asarray(table.values(name), np.float64) for name in names)
    across, up = (heading(name, units) for name in names)
    drawing = Drawing(Axis.over(across, x), Axis.over(up, y), f"{names[1]} over {names[0]}")
    drawing.dots(x, y, "c1", "configurations", size=5.0)
    order = sorted(indices, key=lambda at: float(x[at]))
    drawing.line(x[order], y[order], "front", "Pareto front")
    return standalone(drawing.text)
