"""The figures of a table beside each other: energy is power times time, and a rate is work over time."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from dataclasses import replace
from itertools import product
from typing import Final

import numpy as np

from ...base.vocabulary import UNITS, WORDS
from .headings import (
    BASE_UNIT,
    COUNTED,
    MEANS,
    MEASURED,
    STATISTICS,
    TIME_WORDS,
    Column,
    Role,
    over,
    words_of,
)
from .sheet import FEWEST, NAMED, SCATTER, UNIT_OF, Sheet, main_column

_RATIOS: Final = (Role.ENERGY, Role.FIGURE, Role.EFFICIENCY, Role.WORK_ENERGY)  # that may be a speed over a power
_SCALES: Final = ((1.0, 1e-3, 1e3, 3600.0, 3.6e6), (1.0, 1e-3), (1.0, 1e-3, 1e-6))  # of energy, power and time
_FITS: Final = 0.03  # relative: a product agrees with a column
_OFF: Final = 0.10  # relative: it contradicts it
_KNOWN: Final = frozenset[str]().union(*(WORDS[kind] for kind in WORDS.keys() - {"implementation", "elsewhere"}))
_MOST_TIMES: Final = 2  # of different names, beyond which it is asked which counts
TOKENS: Final = frozenset(("token", "tokens", "tok"))
COUNTABLE: Final = TOKENS | WORDS["done"] | {"request", "image", "sample", "ops"}
COUNTED_ALIKE: Final = 1.5  # largest to least amount that was counted, of which times can be compared
_PLAUSIBLE_W: Final = 5000.0  # of the boards of one machine, where a power has no unit
_PLAUSIBLE_ALONE_W: Final = 3000.0  # the same, where no energy and time are beside it
_ALL: Final = 100.0  # %
_LEAST_W: Final = 1e-3  # which no board draws less than


def judge_figures(sheet: Sheet) -> None:
    """Judge what was measured by the numbers of other columns: units that no heading names, ratios, what contradicts.

    Parameters
    ----------
    sheet : Sheet
        The table, of which is known what was set.
    """
    sheet.each(_as_filled, _as_minutes, _as_megajoules)
    _by_physics(sheet)
    _limits(sheet)
    for judge in (_before_runs, _of_a_batch, _beside_a_rate, _counters, _without_rest):
        judge(sheet)
    sheet.each(_as_counted, _as_of_one_request, _as_measured)
    for role in (Role.TIME, Role.ENERGY):
        _rivals(sheet, role)
    sheet.each(_as_ratio, _in_usual_unit)


def _by_physics(sheet: Sheet) -> None:
    """Units that no heading names, by energy = power x time; and what contradicts it.

    The energy of a piece of work, where power and the time of one give it, is the one that counts.
    """
    power, whole = main_column(sheet.columns, Role.POWER), main_column(sheet.columns, Role.ENERGY)
    energies = [column for column in sheet.columns if column is whole or column.role is Role.WORK_ENERGY]
    energies.sort(key=lambda column: column is whole)
    times = sheet.of(Role.TIME, Role.LATENCY)
    for energy in energies if power is not None else ():
        assert power is not None
        fits = [fit for each in times if (fit := _fit(energy, power, each, sheet)) is not None]
        best = min(fits, key=lambda fit: fit[0], default=None)
        if best is not None and best[0] < (_FITS if energy is whole else _OFF):
            roles = (Role.ENERGY, Role.POWER, Role.TIME)
            for column, role, scale in zip((energy, power, best[2]), roles, best[1], strict=True):
                why = f"{column.why}; energy is power times time"
                sheet.put(column, role, why, unit=BASE_UNIT[role.value], scale=scale, confirmed=True)
            break
        if best is not None and best[0] > _OFF and energy is whole:
            said = f"not '{power.heading}' times '{best[2].heading}': it differs by {100 * math.expm1(best[0]):.0f} %"
            sheet.put(energy, energy.role, contradicted=said)


def _fit(
    energy: Column, power: Column, time: Column, sheet: Sheet
) -> tuple[float, tuple[float, float, float], Column] | None:
    """The distance of the median of energy / (power x time) from 1, and the scales that make it least; None of none."""
    values = np.stack([sheet.numbers(column) for column in (energy, power, time)])
    joules, watts, seconds = values[:, np.isfinite(values).all(axis=0) & (values > 0).all(axis=0)]
    ratios = joules / (watts * seconds)
    if len(ratios) < 2 or (len(ratios) < FEWEST and np.ptp(np.log(ratios)) > _FITS):
        return None
    ratio, middle = float(np.median(ratios)), float(np.median(watts))
    tried = zip((energy, power, time), _SCALES, strict=True)
    scales = [(column.scale,) if not math.isnan(column.scale) else usual for column, usual in tried]
    fits = ((abs(math.log(ratio * e / (p * t))), (e, p, t), time) for e, p, t in product(*scales))

    def rank(fit: tuple[float, tuple[float, float, float], Column]) -> tuple[float, bool, bool, int]:
        (e, p, _), beyond = fit[1], middle * fit[1][1] > _PLAUSIBLE_W
        of_nvml = math.isnan(energy.scale) and p == 1e-3 != e  # which counts in mJ, too
        return round(fit[0], 6), beyond, of_nvml, sum(scale != 1.0 for scale in fit[1])  # Wh and ms: kWh and s

    return min(fits, key=rank)


def _limits(sheet: Sheet) -> None:
    """A limit without a unit, of at most 100 and below what is drawn in all rows, is none in W: it may be a share."""
    power, energy, time = (main_column(sheet.columns, role) for role in (Role.POWER, Role.ENERGY, Role.TIME))
    if power is not None and not math.isnan(power.scale):
        drawn = power.scale * sheet.numbers(power)
    elif energy is not None and time is not None and not math.isnan(energy.scale / time.scale):
        drawn = over(energy.scale * sheet.numbers(energy), time.scale * sheet.numbers(time))
    else:
        return
    for limit in sheet.open(Role.POWER_LIMIT):
        numbers = sheet.numbers(limit)
        if math.isnan(limit.scale) and numbers.max() <= _ALL and (drawn > (1.0 + _OFF) * numbers).all():
            both = (Role.PARAMETER, Role.POWER_LIMIT)
            sheet.put(limit, Role.PARAMETER, "no limit in W: more is drawn", unit="", scale=1.0, candidates=both)


def _of_a_batch(sheet: Sheet) -> None:
    """Energies of a batch or a step are of different work where the sizes of batches differ."""
    if any("batch" in column.words for column in sheet.varying()) and sheet.of(Role.THROUGHPUT):
        of_batches = (c for c in sheet.of(Role.WORK_ENERGY) if c.words & WORDS["of_a_batch"])
        sheet.change(of_batches, Role.FIGURE, "of a batch or step, whose sizes differ")


def _beside_a_rate(sheet: Sheet) -> None:
    """An energy beside a rate and no time: of the same work, or of the same time in all rows, as a power may show."""
    energy, power = (main_column(sheet.columns, role) for role in (Role.ENERGY, Role.POWER))
    known = sheet.of(Role.TIME, Role.WORK_ENERGY, Role.EFFICIENCY, Role.LATENCY)
    if (
        energy is None
        or known
        or energy.why == NAMED
        or not any(sheet.distinct([c]) > 1 for c in sheet.of(Role.THROUGHPUT))
    ):
        return
    if power is None:
        sheet.put(energy, Role.ENERGY, candidates=(Role.ENERGY, Role.FIGURE))
    elif float(np.ptp(np.log(over(sheet.numbers(energy), sheet.numbers(power))))) < _FITS:
        sheet.put(energy, Role.FIGURE, f"'{power.heading}' over one and the same time, and not of the same work")


def _counters(sheet: Sheet) -> None:
    """An energy that grows from row to row, by a counter or as its time does, may not be what a row took."""
    times = [sheet.numbers(time) for time in sheet.of(Role.TIME) if sheet.rows > FEWEST]
    steps = [np.diff(time) for time in times if np.isfinite(time).all()]
    evenly = any(float(each.min()) > 0 and float(np.ptp(each)) < _FITS * float(each.min()) for each in steps)
    for column in sheet.open(Role.ENERGY):
        grows = sheet.rows > FEWEST and bool((np.diff(sheet.numbers(column)) > 0).all())
        if grows and (evenly or column.words & WORDS["counter"]) and not column.confirmed:
            sheet.put(column, Role.ENERGY, candidates=(Role.ENERGY, Role.FIGURE))


def _without_rest(sheet: Sheet) -> None:
    """A dynamic energy or power beside what the board draws at rest is not all that it takes."""
    at_rest = any(column.words & WORDS["at_rest"] for column in sheet.columns if column.unit in ("J", "W"))
    for column in sheet.open(Role.ENERGY, Role.POWER) if at_rest else ():
        if column.words & WORDS["above_rest"] and main_column(sheet.columns, column.role) is column:
            sheet.put(column, column.role, candidates=(column.role, Role.FIGURE))


def _before_runs(sheet: Sheet) -> None:
    """The time of loading or of a cold start is not that of the work, where another column says how fast that was."""
    before = [c for c in sheet.open(Role.TIME) if c.words & WORDS["before_a_run"] or {"warm", "start"} <= c.words]
    if len(before) < len(sheet.of(Role.TIME, Role.LATENCY, Role.THROUGHPUT)):
        sheet.change(before, Role.FIGURE, "what comes before a run, by its name")
    late = [c for c in sheet.open(Role.TIME) if re.search(r"(?:^|_)p\d\d(?:_|$)", c.heading)]
    sheet.change(late if sheet.of(Role.THROUGHPUT) else (), Role.LATENCY, "a percentile beside a rate")


def _rivals(sheet: Sheet, role: Role) -> None:
    """Of several times or energies that are no statistics of one, which is that of the work cannot be known."""
    chosen = main_column(sheet.columns, role)
    stems = {_stem(column) for column in sheet.of(role)}
    by_speed = {c.role for c in sheet.columns} & {Role.THROUGHPUT, Role.POWER, Role.ENERGY} == {Role.THROUGHPUT}
    alone = not sheet.of(*({Role.THROUGHPUT, Role.LATENCY, Role.ENERGY} - {role}))
    unknown = alone and len(stems) > 1 and all({*stem.split()} - _KNOWN for stem in stems)  # 'deepgemm_us, mine_us'
    if chosen is None or chosen.confirmed or len(chosen.why) >= 40:  # it says more than a name
        return
    of_a_part = len(stems) > 1 and chosen.words & WORDS["stages"] and "total" not in chosen.words
    if unknown or of_a_part or (role is Role.TIME and _are_several(chosen, stems, by_speed)):
        sheet.put(chosen, role, candidates=(role, Role.FIGURE))


def _stem(column: Column) -> str:
    """The words of a heading but for units and statistics, such as percentiles behind or before a name."""
    plain = re.sub(r"[(\[].*|^p\d+_(?=\w+_)|(?<=[a-z])_p\d+(?=_)", "", column.heading)
    return " ".join(word for word in words_of(plain) if word not in STATISTICS and word not in UNITS)


def _are_several(chosen: Column, stems: Collection[str], by_speed: bool) -> bool:
    """Tell whether times are of several things: of two sides, or of many of which none is called plainly and counts."""
    plain = any(not stem or stem in TIME_WORDS or len(stem.split()) == 1 for stem in stems)
    sides = {"cpu", "gpu"} <= {(*stem.split(), "")[0] for stem in stems} and not chosen.words & WORDS["whole_run"]
    return sides or (len(stems) > _MOST_TIMES and not plain and not by_speed)


def _as_filled(column: Column, sheet: Sheet) -> Column:
    """A figure that is 0 in all rows was not measured, where another column has it."""
    same = [c for c in sheet.of(column.role) if c.role in UNIT_OF and c.role in MEASURED and c.why != NAMED]
    empty = column in same and not np.any(sheet.numbers(column)) and any(np.any(sheet.numbers(c)) for c in same)
    return replace(column, role=Role.UNUSED, why="0 in all rows") if empty else column


def _as_minutes(column: Column, sheet: Sheet) -> Column:
    """A time in 'min' is one in minutes, unless another statistic of it stands beside."""
    if column.role is not Role.TIME or not math.isnan(column.scale) or words_of(column.heading)[-1] != "min":
        return column
    alone = [each for each in sheet.of(Role.TIME) if _stem(each) == _stem(column)] == [column]
    return replace(column, scale=60.0, why="a time in minutes by its name") if alone else column


def _as_megajoules(column: Column, sheet: Sheet) -> Column:
    """'MJ' is megajoules where, over the time of the work, millijoules would be less than any board draws."""
    time = main_column(sheet.columns, Role.TIME)
    if column.role is not Role.ENERGY or not re.search("MJ(?![a-z])", column.heading) or time is None:
        return column
    watts = over(sheet.numbers(column), sheet.numbers(time))
    drawn = float(np.median(watts[np.isfinite(watts)])) * column.scale / time.scale
    said = f"read as megajoules: in the small unit it would be {drawn:.2g} W"
    return replace(column, scale=column.scale * 1e9, contradicted=said) if 0 < drawn < _LEAST_W else column


def _as_counted(column: Column, sheet: Sheet) -> Column:
    """A rate beside the amount of it and a time: it is their ratio, or contradicted, as the mean over users is."""
    words, time = column.words & TOKENS, main_column(sheet.columns, Role.TIME)  # of requests some may fail
    if column.role is not Role.THROUGHPUT or time is None or not words:
        return column
    counts = [c for c in sheet.columns if c.why == COUNTED and c.words & words]
    counts = [c for c in counts if c.words & (WORDS["all_of_it"] - {"tg"})]
    done = sheet.numbers(column) * sheet.numbers(time) * _in_usual_unit(time, sheet).scale
    off = {count.heading: np.abs(np.log(over(done, sheet.numbers(count)))) for count in counts}
    known = {heading: each[np.isfinite(each)] for heading, each in off.items()}
    middle = [float(np.median(each)) if len(each) >= FEWEST else math.nan for each in known.values()]
    if any(each < _FITS for each in middle):
        return replace(column, confirmed=True)
    if middle and all(each > math.log(SCATTER) for each in middle):
        return replace(column, contradicted=f"not '{counts[0].heading}' over '{time.heading}'")
    return column


def _as_of_one_request(column: Column, sheet: Sheet) -> Column:
    """A mean rate of tokens that falls while that of requests grows is what each saw, and not what all had together."""
    rates = sheet.of(Role.THROUGHPUT)
    at_once = [each for each in sheet.of(Role.PARAMETER) if each.words & {"concurrency", "concurrent"}]
    of_requests = [each for each in rates if each.words & {"request", "requests", "req", "rps"}]
    requests = next(iter((*of_requests, *at_once)), None)
    means = [each for each in rates if each.words & (TOKENS | {"tps"}) and each.words & MEANS]
    if requests is None or means != [column] or column.contradicted:
        return column
    values = np.array([sheet.numbers(each) for each in (column, requests)])
    tokens, done = values[:, np.isfinite(values).all(axis=0)]
    falls = len(done) >= FEWEST and np.ptp(done) > 0 < np.ptp(tokens) and np.corrcoef(tokens, done)[0, 1] < 0
    said = f"of single requests: it falls as '{requests.heading}' grows"
    both = (Role.THROUGHPUT, Role.FIGURE) if requests in at_once else ()  # nothing else says what all had together
    return replace(column, contradicted=said, candidates=both) if falls else column


def _as_measured(column: Column, sheet: Sheet) -> Column:
    """A speed that is the same in several rows, of each kernel, is what something can do, and was not measured."""
    if column.role is not Role.THROUGHPUT or column.why == NAMED:
        return column
    kernels, rows = sheet.of(Role.KERNEL), len(sheet.cells[column.heading])
    count = sheet.distinct(kernels)
    same = FEWEST * count <= rows and sheet.distinct([*kernels, column]) == count
    return replace(column, role=Role.UNUSED, why="the same in all rows of a kernel") if same else column


def _as_ratio(column: Column, sheet: Sheet) -> Column:
    """A column that is a speed over a power is work per energy, whatever its name; the inverse is energy per work."""
    power = main_column(sheet.columns, Role.POWER)
    if power is None or column.confirmed or column.role not in _RATIOS:
        return column
    values, watts = sheet.numbers(column), sheet.numbers(power)
    for rate in sheet.of(Role.THROUGHPUT):
        ratio = over(sheet.numbers(rate), watts)
        both = np.isfinite(values) & np.isfinite(ratio) & (values > 0) & (ratio > 0)
        few = both.sum() < FEWEST or np.unique(values[both]).size < FEWEST
        for role, sign, (of, by) in ((Role.EFFICIENCY, 1, (rate, power)), (Role.WORK_ENERGY, -1, (power, rate))):
            if not few and float(np.quantile(np.abs(values[both] / ratio[both] ** sign - 1.0), 0.9)) < _FITS:
                why = f"'{of.heading}' over '{by.heading}'"
                return replace(column, role=role, unit="", scale=1.0, why=why, confirmed=True)
    return column


def _in_usual_unit(column: Column, sheet: Sheet) -> Column:
    """A column without a unit: as its numbers are plausible for a board, else as they are."""
    if not math.isnan(column.scale):
        return column
    values = np.abs(sheet.numbers(column))
    finite = values[np.isfinite(values)]
    middle = float(np.median(finite)) if len(finite) else 0.0
    scale = 1.0
    if column.unit == "W" and middle > _PLAUSIBLE_ALONE_W:
        scale = 1e-3
    elif column.unit == "MHz":
        scale = 1e-6 if middle > 1e8 else 1e-3 if middle > 1e5 else 1e3 if 0 < middle < 10 else 1.0
    return replace(column, scale=scale, scale_is_guessed=True)
