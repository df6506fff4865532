"""What a session says over its load, described: the best setting at each load, and what it saves."""

from __future__ import annotations

from collections.abc import Iterator

from ...base.formatting import number
from ..results.description import NOT_IDENTIFIABLE, Cell, Description, Listing
from ..space.result_table import ResultTable
from .costs import Costs
from .over_load import AtLoad, ModelAtLoad, OverLoad, settings_at


def describe_over_load(over_load: OverLoad | None, table: ResultTable, costs: Costs) -> Iterator[Description]:
    """The answer at each load, and remarks on what the comparison rests on; nothing without one."""
    if over_load is None or not over_load.levels:
        return
    header = [over_load.name] if over_load.name else []
    tokens = "output_tokens_per_s" in table.value_names
    figures = ("tokens/s", "J/token") if tokens else ("work/s", "J per work")
    header += ["within limits", "best setting", "others", *figures, "against the board's own"]
    compares = any(level.locking_against_capping is not None for level in over_load.levels)
    header += ["locking against capping"] if compares else []
    rows = [_row(over_load, table, costs, level, compares) for level in over_load.levels]
    title = f"Least energy at each {over_load.name}" if over_load.name else "Least energy"
    yield Description(title, remarks=_remarks(over_load, costs, table), listings=[Listing("", header, rows)])


def describe_models_over_load(models: tuple[ModelAtLoad, ...]) -> Iterator[Description]:
    """The recommended clock of each load by the frequency model, or why there is none."""
    if not models:
        return
    rows: list[list[Cell]] = []
    for model in models:
        fit = model.fit
        clock = NOT_IDENTIFIABLE if fit.recommended_clock_mhz is None else number(fit.recommended_clock_mhz)
        known = fit.identifiable and fit.optimum_interval_mhz is not None
        low_high = "–".join(number(end) for end in fit.optimum_interval_mhz or ()) if known else ""
        rows.append([model.held or "all", clock, low_high, "; ".join(fit.reasons)])
    header = ("held", "recommended clock (MHz)", "95 % interval", "how far it can be trusted")
    yield Description("Frequency model at each load", listings=[Listing("", header, rows)])


def _row(over_load: OverLoad, table: ResultTable, costs: Costs, level: AtLoad, compares: bool) -> list[Cell]:
    first: list[Cell] = [] if level.load is None else [level.load if isinstance(level.load, str) else float(level.load)]
    first.append(f"{level.feasible} of {level.measured}")
    if level.best is None:
        return [*first, "none keeps the limits", "", None, None, "", *([""] if compares else [])]
    others = {
        name: value
        for name, value in table.measurement(level.best).configuration.items()
        if name not in (*over_load.settings, over_load.name)
    }
    saved = level.gain.words if level.gain is not None else _why_no_gain(over_load, level)
    rest = ", ".join(f"{name} = {value}" for name, value in others.items())
    rate, energy = 1 / float(costs.time_s[level.best]), float(costs.energy_j[level.best])
    row: list[Cell] = [*first, settings_at(over_load, table, level.best), rest, rate, energy, saved]
    between = level.locking_against_capping
    return [*row, *([between.words if between is not None else "not measured"] if compares else [])]


def _why_no_gain(over_load: OverLoad, level: AtLoad) -> str:
    if not over_load.own:
        return ""
    return "it is the board's own" if level.default is not None else "the board's own was not measured"


def _remarks(over_load: OverLoad, costs: Costs, table: ResultTable) -> list[str]:
    lines = []
    if over_load.own:
        own = ", ".join(f"{name} = {number(value)}" for name, value in over_load.own.items())
        lines.append(f"the highest that was measured stands for the board's own: {own}")
    if over_load.name and len(over_load.levels) > 1 and over_load.curves:
        same = "is not the same at every load" if over_load.changes else "is the same at every load"
        lines.append(f"the best setting {same}")
    yearly = [(level.load, level.yearly) for level in over_load.levels if level.yearly is not None]
    for load, year in yearly:
        at = f" at {over_load.name} {load:g}" if isinstance(load, int | float) else ""
        if year.saved_kwh > 0:
            lines.append(f"the same work over a year{at}: {year.words} than with the board's own (while it serves)")
    if any(level.locked is not None for level in over_load.levels) and not any(
        level.capped is not None for level in over_load.levels
    ):
        lines.append("no power limit alone was measured: whether capping is better is not known")
    if not costs.energy_known:
        lines.append("energies are known up to a factor: ratios hold, J do not")
    return lines
