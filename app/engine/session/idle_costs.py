"""What idling costs, described and as JSON: power at each condition, a year of it, and which settings lower it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ...numbers import as_json, number
from ..analysis.tradeoff import HOURS_PER_YEAR, Load
from ..description import Cell, Description, Listing
from ..tuning_methods.idle import BARE, CONTEXT, CONTEXT_NO_BOOST, LOADED, LOADED_NO_BOOST, MEMORY, IdleLook, IdleStudy

_WORTH_W: Final = 1.0  # differences below are not called a saving


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A setting that may lower what idling costs. It is never made here."""

    name: str
    how: str  # the command or line that makes it
    saves_w: float  # as measured here; NaN where it was not
    note: str


def year_of(power_w: float, load: Load) -> dict[str, float | None]:
    """kWh, money and kg of CO2 that a power costs over the idle hours of a year on all boards."""
    kwh = power_w * load.hours_per_year * load.boards / 1000
    return {
        "kwh": kwh,
        "money": None if load.price_per_kwh is None else kwh * load.price_per_kwh,
        "co2_kg": None if load.carbon_g_per_kwh is None else kwh * load.carbon_g_per_kwh / 1000,
    }


def suggestions(study: IdleStudy) -> tuple[Suggestion, ...]:
    """The documented list, with what each saved here where that was measured."""
    return (
        Suggestion(
            "persistence mode",
            "nvidia-smi -pm 1",
            math.nan,
            "keeps the driver loaded between programs; look with it and without",
        ),
        Suggestion(
            "CUDA_DISABLE_PERF_BOOST=1",
            "set it in the environment of the service",
            _difference(study, (LOADED, LOADED_NO_BOOST), (CONTEXT, CONTEXT_NO_BOOST)),
            "contexts then leave the clocks down; work after a pause waits for them",
        ),
        Suggestion(
            "memory clock",
            f"nvidia-smi -lmc {_clock(study)}; nvidia-smi -rmc before work",
            _of_memory(study),
            "slows all that moves data: for hours without work",
        ),
    )


def describe_idle(study: IdleStudy, load: Load) -> Description:
    """The table of looks, the suggestions, and what a year costs."""
    rows: list[list[Cell]] = []
    for look in study.looks:
        if look.why_not:
            rows.append([look.words, None, "", None, None, None, look.why_not])
            continue
        interval = "" if look.interval_w is None else "–".join(number(end) for end in look.interval_w)
        clocks = (look.graphics_clock_mhz, look.memory_clock_mhz)
        year = year_of(look.power_w, load)["kwh"]
        known: list[Cell] = [None if math.isnan(each) else each for each in (*clocks, year or math.nan)]
        rows.append([look.words, look.power_w, interval, *known, "; ".join(look.notes)])
    header = ("condition", "W", "95 %", "graphics MHz", "memory MHz", "kWh a year", "")
    listings = [Listing("", header, rows)]
    suggested = [[each.name, each.how, _saved(each), each.note] for each in suggestions(study)]
    listings.append(Listing("What may lower it; nothing was set", ("setting", "how", "saved here (W)", ""), suggested))
    return Description(f"{study.gpu}, idle", study.power_source, remarks=_remarks(study, load), listings=listings)


def idle_to_json(study: IdleStudy, load: Load) -> dict[str, Any]:
    """Every look with its year, and the suggestions; what is not known is null."""
    looks = [{**dict(as_json(look)), "words": look.words, "year": as_json(_year(look, load))} for look in study.looks]
    return {
        "gpu": study.gpu,
        "source": study.source,
        "power_source": study.power_source,
        "hours_per_year": load.hours_per_year,
        "boards": load.boards,
        "looks": looks,
        "suggestions": as_json(suggestions(study)),
    }


def _year(look: IdleLook, load: Load) -> Mapping[str, float | None]:
    return year_of(look.power_w, load) if math.isfinite(look.power_w) else {"kwh": None, "money": None, "co2_kg": None}


def _remarks(study: IdleStudy, load: Load) -> list[str]:
    bare = study.power_w(BARE)
    said = []
    for condition in (CONTEXT, LOADED):
        more = study.power_w(condition) - bare
        if more > _WORTH_W:
            look = next(each for each in study.looks if each.condition == condition)
            year = year_of(more, load)
            money = "" if year["money"] is None else f", {number(year['money'], 3)} {load.currency}"
            said.append(
                f"{look.words}: {number(more, 3)} W more than bare, {number(year['kwh'] or 0.0, 3)} kWh{money} in "
                f"{load.hours_per_year:.0f} idle hours a year"
            )
    if load.hours_per_year >= HOURS_PER_YEAR:
        said.append("kWh of a year of nothing but idling; with fewer idle hours they are fewer in proportion")
    return said


def _difference(study: IdleStudy, *pairs: tuple[str, str]) -> float:
    """W that the second of a pair draws less than the first, of the first pair that was measured."""
    found = (study.power_w(before) - study.power_w(after) for before, after in pairs)
    return next((each for each in found if not math.isnan(each)), math.nan)


def _memory_looks(study: IdleStudy) -> list[IdleLook]:
    return [each for each in study.looks if each.condition == MEMORY and math.isfinite(each.power_w)]


def _of_memory(study: IdleStudy) -> float:
    looks = _memory_looks(study)
    return study.power_w(BARE) - min(each.power_w for each in looks) if looks else math.nan


def _clock(study: IdleStudy) -> str:
    looks = _memory_looks(study)
    return f"{min(looks, key=lambda each: each.power_w).asked_memory_mhz:g}" if looks else "MHZ"


def _saved(suggestion: Suggestion) -> str:
    if math.isnan(suggestion.saves_w):
        return "not measured"
    return number(suggestion.saves_w, 3) if suggestion.saves_w > _WORTH_W else "nothing"
