"""What a column of a table is by itself: by its unit, what its name means, and its values.

A heading is evidence, never proof: `roles` judges the columns beside each other.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

import numpy as np
import numpy.typing as npt

from ...base.vocabulary import HEADINGS, PATTERNS, REQUESTED, UNITS, WORDS

Floats = npt.NDArray[np.float64]
Cells = Floats | Sequence[str]  # NaN where a number is missing, '' where a text is


class Role(StrEnum):
    """What a column of a table is."""

    PARAMETER = "parameter"
    GRAPHICS_CLOCK = "graphics clock"
    MEMORY_CLOCK = "memory clock"
    POWER_LIMIT = "power limit"
    CLOCK_OFFSET = "clock offset"

    TIME = "time"
    LATENCY = "latency"
    THROUGHPUT = "throughput"
    POWER = "power"
    ENERGY = "energy"
    WORK_ENERGY = "energy per work"
    EFFICIENCY = "work per energy"
    PRODUCT = "energy-delay product"
    OBSERVED_CLOCK = "observed clock"
    OBSERVED_MEMORY_CLOCK = "observed memory clock"
    TEMPERATURE = "temperature"
    VOLTAGE = "voltage"
    UTILISATION = "utilisation"
    FIGURE = "other figure"

    WORK = "amount of work"
    BOARD = "board"
    KERNEL = "kernel"
    REPEAT = "repeat"
    STAMP = "time stamp"
    STATE = "state"
    UNUSED = "not used"


EACH_ITS_OWN: Final = "another text in each row"
BOARDS_THERE: Final = "names boards, by its cells"
RAN_THERE: Final = "names what ran, by its cells"
CHOSEN_THERE: Final = "a choice by its cells"
COME_AGAIN: Final = "texts that come again"
WORKED_ON: Final = "how much was worked on, by its name"
NUMBERED: Final = "a number of the row"
OF_REPEATS: Final = "tells repeats apart"
COUNTED: Final = "an amount that was counted"
OF_MEMORY: Final = "memory by its name"
CHOICE: Final = "a choice by its name"
SOMEONE_CHOSE: Final = "numbers that someone chose"
SET: Final = (Role.PARAMETER, Role.GRAPHICS_CLOCK, Role.MEMORY_CLOCK, Role.POWER_LIMIT, Role.CLOCK_OFFSET)
MEASURED: Final = tuple(Role)[len(SET) : tuple(Role).index(Role.WORK)]
ANSWERING: Final = MEASURED[: MEASURED.index(Role.OBSERVED_CLOCK)]  # without any of these nothing can be chosen by
SETTING_OF: Final = {
    Role.GRAPHICS_CLOCK: "graphics_clock_mhz",
    Role.MEMORY_CLOCK: "memory_clock_mhz",
    Role.POWER_LIMIT: "power_limit_w",
}

BASE_UNIT: Final = {"time": "s", "energy": "J", "power": "W", "clock": "MHz", "voltage": "mV", "temperature": "°C"}
_BRACKETED: Final = re.compile(r"\s*[\[(<{]([^\[\]()<>{}]{1,14})[\])>}]\s*$")

_LIMIT, _OBSERVED, MEANS, _CHOSEN = (WORDS[kind] for kind in ("limit", "observed", "means", "chosen"))
EXTREME, _SPREAD, _PRODUCT = (WORDS[kind] for kind in ("extreme", "spread", "product"))
TIME_WORDS, _LATENCY, _ENERGY, _POWER = (WORDS[kind] for kind in ("time", "latency", "energy", "power"))
_MEMORY, _ELSEWHERE, _IDLE = (WORDS[kind] for kind in ("memory", "elsewhere", "idle"))
_REQUESTED_NAMES: Final = frozenset(("nvml_gr_clock", "nvml_mem_clock", "nvml_pwr_limit"))
LETTERS: Final = {"f": "clock", "p": "power", "t": "time", "e": "energy"}
_CLOCKS_MHZ: Final = (100.0, 12_000.0)  # of a clock of a board
_LEAST_LIMIT_W: Final = 10.0
STATISTICS: Final = _OBSERVED | EXTREME | _SPREAD
_MOST_VALUES: Final = 40  # different numbers in steps of different sizes, beyond which they were measured
_MOST_EVEN: Final = 400  # different whole numbers in even steps
_FEW: Final = 20  # rows, beyond which texts that seldom come again name no choice
_HOTTEST_C: Final = 200.0  # of a board
_VERDICT: Final = PATTERNS["verdict"].fullmatch
_MOST_STEPS: Final = 12  # different whole numbers in steps of different sizes, beyond which they were counted


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table and its role.

    `scale` is the factor from its numbers to `unit` (s, J, W, MHz, mV or °C, and '' where there is none of these).
    `candidates` are the roles that it may have as well: without an answer, the first of them is a guess.
    """

    heading: str
    role: Role
    unit: str = ""
    scale: float = 1.0
    why: str = ""
    contradicted: str = ""  # by what of the table
    candidates: tuple[Role, ...] = ()
    confirmed: bool = False  # by the physics between columns
    scale_is_guessed: bool = False  # by the size of its numbers: nothing names a unit

    @property
    def words(self) -> frozenset[str]:
        """The words of the heading, in lower case."""
        return frozenset(words_of(self.heading))

    @property
    def reasons(self) -> str:
        """Why it is taken for what it is, what contradicts it, and what it may be as well."""
        doubts = [f"but it is {self.contradicted}"] if self.contradicted else []
        doubts += [f"not certain: {' or '.join(self.candidates)}"] if self.candidates else []
        return "; ".join([self.why or "none of the known quantities", *doubts])


def words_of(heading: str) -> list[str]:
    """The words of a heading in lower case.

    Parameters
    ----------
    heading : str
        Such as 'clock_target_mhz', 'avgClock (MHz)' or 'result.power.mean'.

    Returns
    -------
    list of str
        In their order, units among them.
    """
    spelt = heading.replace("Hz", "hz").replace("hz", "hz ").replace("MWh", "megawatthours")  # 'mwh' is the small one
    parted = PATTERNS["compound"].sub(lambda found: f" {re.sub('[-_ ]', '', found[0].lower())} ", spelt)
    return [word.lower() for word in PATTERNS["word"].findall(parted)]


def unit_of(heading: str) -> tuple[str, float]:
    """The quantity that the unit in a heading measures, and the factor to its base unit.

    Megajoule and millijoule, megawatt and milliwatt are often written alike; the small ones are meant. 'MWh' is mega.

    Parameters
    ----------
    heading : str
        Such as 'power (W)', 'time_ms' or 'clock_mhz_locked'.

    Returns
    -------
    quantity : str
        'time', 'energy', 'power', 'clock', 'voltage', 'temperature', 'share' or 'size'; '' without a unit.
    scale : float
        The factor to s, J, W, MHz, mV or degrees Celsius.
    """
    bracketed = _BRACKETED.search(heading)
    unit = re.sub(r"[\s·⋅*-]", "", bracketed[1].replace("MWh", "megawatthours").lower()) if bracketed else ""  # 'W·h'
    if unit in UNITS:
        return UNITS[unit]
    words = words_of(_BRACKETED.sub("", heading) if bracketed else heading)
    if words[1:] and words[-1] in ("h", "ps") and {*words} & (TIME_WORDS | {"wall"}):
        return UNITS[words[-1]]
    if len(words) > 1 or (words and len(words[0]) > 1):
        units = UNITS.keys() - {"min", "h", "ps"}  # 'min' is a minimum, 'h' a height, and 'ps' a number of servers
        for word in reversed(words):
            if word in units and (word[1:] or word == "%" or _is_a_unit(heading, words)):
                return UNITS[word]
    return UNITS["%"] if "%" in heading else ("", 1.0)


def _is_a_unit(heading: str, words: Sequence[str]) -> bool:
    """Tell whether the letter at the end of a heading is a unit, as in 'time_s' and 'energyJ', and not in 'L40S'."""
    letter = re.search(
        r"(?:(?<=[\s_.·])[A-Za-z]|(?<=[a-z])[WJ])(?=\W*$|_(?:avg|mean|min|max|median|std|p\d+)$)", heading
    )
    named = {*words} & (TIME_WORDS | _LATENCY | _ENERGY | _POWER | {"wall", "t"})
    return letter is not None and (letter[0] not in "SCVH" or bool(named))


def is_request(heading: str) -> bool:
    """Whether a heading says that what it names was asked for: 'clock_target_mhz', 'nvml_gr_clock'.

    Parameters
    ----------
    heading : str
        The heading.

    Returns
    -------
    bool
        True for a request.
    """
    return heading.lower() in _REQUESTED_NAMES or bool(frozenset(words_of(heading)) & set(REQUESTED))


def by_itself(heading: str, values: Cells) -> Column:
    """Judge a column by its unit, name and values alone.

    Parameters
    ----------
    heading : str
        Its heading.
    values : array, shape (n,), or sequence of str
        Its numbers, or texts.

    Returns
    -------
    Column
        Its scale is NaN where a quantity has no unit.
    """
    last = heading.rpartition(".")[2] if re.search(r"[A-Za-z]", heading.rpartition(".")[2]) else heading
    words = words_of(heading)
    lower = " ".join(words)
    plain = re.sub(r"[^a-z0-9%/µ]+", " ", _BRACKETED.sub("", heading).lower()).strip()
    if not isinstance(values, np.ndarray):
        return _of_text(heading, lower, values)
    finite, kinds = values[np.isfinite(values)], frozenset(words)
    over_unit = _over_its_unit(last)
    quantity, scale = over_unit or unit_of(heading)
    kinds |= {quantity} if over_unit else set()
    if heading.strip() in ("J", "W") and (heading == "J" or bool((finite % 1).any())):  # 'W' may be a width
        quantity, scale = UNITS[heading.strip().lower()]
    if each := PATTERNS["time_of_each"].search(heading):
        unit = each[1].lower()
        return Column(heading, Role.TIME, "s", _IN_S.get(unit) or UNITS[unit][1], "the time of each by its unit")
    if each := PATTERNS["energy_a_second"].search(heading.lower().rstrip("])")):
        return _of_quantity(heading, kinds, "power", (scale if quantity == "energy" else 1.0) / _IN_S[each[1]], finite)
    known = _that_tells(heading, plain, kinds, finite)
    known = known or (None if over_unit else _rated(heading, last, plain, kinds, finite))
    known = known or _beside_figures(heading, plain, kinds, finite, quantity)
    if known is not None:
        return known
    if not quantity:
        quantity = _quantity_by_words(kinds, lower)
        chosen = _are_clocks(finite) or (finite.min(initial=0) < -1 and _are_whole(finite))
        quantity = quantity or ("clock" if chosen and PATTERNS["clock_names"].fullmatch(lower) else "")
        scale = math.nan if quantity else 1.0  # to be found by physics, else 1
    return _of_quantity(heading, kinds, quantity, scale, finite)


def _over_its_unit(heading: str) -> tuple[str, float] | None:
    """The unit of 'power/W' or 'P_GPU / W', a quantity over its unit; None of a quotient such as 'GFLOPS/W'."""
    over, _, unit = heading.rpartition("/")
    known = UNITS.get(unit.strip().lower())
    if known is None or not over or heading.lower() in ("t/s", "t/h"):  # tokens, tonnes
        return None
    letter = re.fullmatch(r"([a-z])(_\w+)?", over.strip(" $").lower())
    named = LETTERS.get(letter[1]) if letter else _quantity_by_words(frozenset(words_of(over)), "")
    return known if named == known[0] or PATTERNS["over_its_unit"].search(heading) else None


def _by_rules(heading: str, *rules: tuple[object, Role, str]) -> Column | None:
    """Judge by the first rule that holds: its condition, the role, and why."""
    return next((Column(heading, role, why=why) for holds, role, why in rules if holds), None)


def _that_tells(heading: str, plain: str, kinds: frozenset[str], finite: Floats) -> Column | None:
    """A column of numbers that tells rows apart by its name: work, kernels, repeats, stamps and rows."""
    from ..space.repeats import is_repeat  # not before the first window is shown

    numbers = [int(value) if value.is_integer() else value for value in finite.tolist()]
    return _by_rules(
        heading,
        (_is_work(plain, heading, finite) and _are_whole(finite), Role.WORK, WORKED_ON),
        (plain in HEADINGS["kernel"] and plain != "name", Role.KERNEL, "numbers what ran"),
        (kinds & _SIMULATED and _are_levels(finite) and not unit_of(heading)[0], Role.PARAMETER, CHOICE),
        (is_repeat(heading, numbers), Role.REPEAT, "counts repeats"),
        (plain in HEADINGS["seed"], Role.UNUSED, OF_REPEATS),
        (plain == "rank" and sorted(numbers) == [*range(1, len(numbers) + 1)], Role.UNUSED, NUMBERED),
        (plain == "epoch" and _are_whole(finite) and finite.max(initial=0) < len(finite) + 2, Role.UNUSED, NUMBERED),
        (kinds & WORDS["went_well"] and {*numbers} == {0, 1}, Role.STATE, _WENT),
        (PATTERNS["exit"].search(heading.lower()) and 0 in numbers and _are_whole(finite), Role.STATE, _WENT),
        ("per" not in kinds and PATTERNS["stamp"].search(plain) and _is_stamp(finite), Role.STAMP, _STAMPED),
        (kinds & TIME_WORDS and _rises_evenly(finite), Role.STAMP, "rises evenly, as the times of readings do"),
        (kinds & TIME_WORDS and finite.min(initial=math.inf) > _SINCE_EPOCH_S, Role.STAMP, "seconds since 1970"),
        (PATTERNS["counted"].search(plain), Role.UNUSED, NUMBERED),
    )


def _are_levels(finite: Floats) -> bool:
    """Tell whether whole numbers of few levels come again and again, as those that a simulator was given."""
    return len(finite) >= _MANY_ROWS and 3 * len(np.unique(finite)) <= len(finite) and looks_chosen(finite)


def _beside_figures(heading: str, plain: str, kinds: frozenset[str], finite: Floats, quantity: str) -> Column | None:
    """A column that is no figure of the work by its name: scatter, amounts, ratios and choices."""
    named = kinds & (_CHOSEN - TIME_WORDS) and (
        not kinds & (EXTREME | MEANS | {"best"}) or kinds & {"concurrency", "seqs"}
    )
    chosen = bool(named) and not (kinds & _LIMIT and kinds & _POWER)
    settled = (
        (_are_whole(finite) and len(finite) < _MOST_VALUES) or looks_chosen(finite)
        if chosen
        else PATTERNS["of_settings"].match(heading)
    )
    plain_percentile = not (quantity or _quantity_by_words(kinds, "")) and PATTERNS["percentile"].search(plain)
    return _by_rules(
        heading,
        (kinds & _SPREAD or PATTERNS["spread"].search(plain), Role.UNUSED, "how far another column scatters"),
        (not quantity and PATTERNS["amounts"].fullmatch(plain), Role.FIGURE, COUNTED),
        (kinds & WORDS["relative"], Role.FIGURE, "relative to something by its name"),
        (kinds & WORDS["quality"], Role.FIGURE, "how good what came out is, by its name"),
        (quantity == "size" and kinds & (_MEMORY | WORDS["model"]) and not named, Role.FIGURE, OF_MEMORY),
        (plain_percentile, Role.FIGURE, "a percentile by its name"),
        (not quantity and kinds & _VERSIONS, Role.PARAMETER, CHOICE),
        (not quantity and settled, Role.PARAMETER, CHOICE),
    )


def _is_work(plain: str, heading: str, finite: Floats) -> bool:
    words = " ".join(words_of(heading))
    things = PATTERNS["number_of"].fullmatch(words)
    counted = things is not None and {things[1], f"{things[1]}s"}.isdisjoint(_CHOSEN | HEADINGS["no_work"])
    asked_for = any(bool((finite % step == 0).all()) for step in (8, 10)) or finite.max(initial=0) <= _FEW_THINGS
    return (counted and asked_for) or plain in HEADINGS["work"] or bool(PATTERNS["worked_on"].fullmatch(words))


def _are_whole(finite: Floats) -> bool:
    return bool((finite == np.round(finite)).all())


def _is_stamp(finite: Floats) -> bool:
    """Whether numbers rise as times do, or are as large as seconds since 1970."""
    return len(finite) > 0 and bool(finite.min() > 1e8 or (len(finite) > 1 and np.mean(np.diff(finite) >= 0) > 0.9))


def _rises_evenly(finite: Floats) -> bool:
    """Tell whether numbers are those of a clock, read again and again; it may start again with each of a few runs."""
    steps = np.diff(finite)
    again = np.flatnonzero(steps <= 0)
    if len(steps) - len(again) < _FEWEST_STEPS * (len(again) + 1) or (finite[again + 1] > 2 * steps.max()).any():
        return False
    steps = np.delete(steps, again)
    return bool(steps.std() < _EVEN * steps.mean())


def _are_clocks(finite: Floats) -> bool:
    """Whether numbers may be clocks in MHz that someone chose: whole, few, and of a board."""
    within = len(finite) > 0 and _CLOCKS_MHZ[0] <= finite.min() and finite.max() <= _CLOCKS_MHZ[1]
    return bool(within) and looks_chosen(finite) and len(np.unique(finite)) < len(finite)


_SINCE_EPOCH_S: Final = 1e9
_CYCLES: Final = frozenset(("cycle", "cycles", "ticks"))
_VERSIONS: Final = frozenset(("version", "build", "release", "driver"))
_SIMULATED: Final = frozenset(("latency", "bandwidth"))  # of a machine that is not there
_MANY_ROWS: Final = 9
_ASKED_FOR: Final = frozenset(("offered", "target", "requested", "desired"))
_FEW_THINGS: Final = 100  # that someone may have asked for, though their number is not round
_FEWEST_STEPS: Final = 20
_EVEN: Final = 0.02  # standard deviation of the steps over their mean: less than that of what takes longer each time
_LONGEST_NAME: Final = 80  # characters; longer cells are texts
_MOST_OF: Final = 0.6  # the different cells of a column
_WENT: Final = "says how it went"
_STAMPED: Final = "a time stamp by its name"
_EFFICIENT: Final = "work per energy by its unit or name"
_IN_S: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_ROUND_RATES: Final = (Role.PARAMETER, "round numbers of requests per second: asked for")
_OTHER: Final = (Role.UNUSED, "")
_BY_BEGINNING: Final = ("temperature", "voltage", "share")


def _rated(heading: str, last: str, plain: str, kinds: frozenset[str], finite: Floats) -> Column | None:
    """A column of work per time or energy, of energy per work, or of energy times time; None for any other."""
    bracketed = _BRACKETED.search(heading)
    parts = (bracketed[1] if bracketed else "", last, plain)
    texts = [re.sub(r"[_ ]+", " ", text.lower()) for text in parts if text]
    if kinds & _SPREAD and not kinds & _PRODUCT and "delay product" not in plain:
        return None
    per = next((text for text in texts if PATTERNS["energy_per"].search(text)), "")
    known = _by_rules(
        heading,
        (kinds & _PRODUCT or "delay product" in plain, Role.PRODUCT, "energy times time by its name"),
        (PATTERNS["change"].search(plain), Role.FIGURE, "a change of a figure by its name"),
        (PATTERNS["of_one_user"].search(heading.lower()), Role.FIGURE, "what each of several users sees, by its name"),
        (PATTERNS["no_work"].search(heading.lower()), Role.FIGURE, "of something else than the work, by its name"),
        ("coefficient" not in kinds and any(map(PATTERNS["per_energy"].search, texts)), Role.EFFICIENCY, _EFFICIENT),
        (per, Role.WORK_ENERGY, "energy per work by its unit"),
        (
            kinds & {"rps", "qps"} and not kinds & (_OBSERVED | {"throughput"}) and _are_asked_for(finite),
            *_ROUND_RATES,
        ),
        (not _is_speed(kinds, plain, texts), *_OTHER),
        (
            kinds & _ASKED_FOR and not kinds & _OBSERVED and looks_chosen(finite),
            Role.PARAMETER,
            "asked for by its name",
        ),
        (True, Role.THROUGHPUT, "work per time by its unit or name"),
    )
    if known is None or not known.why:
        return None
    energies = (UNITS[word][1] for word in words_of(heading) if UNITS.get(word, ("",))[0] == "energy")
    return replace(known, scale=next(energies, 1.0)) if known.role is Role.WORK_ENERGY else known


def _are_asked_for(finite: Floats) -> bool:
    """Tell whether rates are as someone asks for them: whole, and round, in even steps, powers, or the same again."""
    rates = np.unique(finite)
    even = len(rates) > 2 and len(np.unique(np.diff(rates))) == 1
    are_round = all(PATTERNS["round"].fullmatch(f"{rate:.0f}") for rate in rates.tolist())
    powers = len(rates) > 2 and is_geometric(rates)
    return len(finite) > 1 and _are_whole(finite) and (even or are_round or powers or _come_again(finite))


def _come_again(finite: Floats) -> bool:
    """Tell whether each number comes twice on average."""
    return 2 * len(np.unique(finite)) <= len(finite)


def _is_speed(kinds: frozenset[str], plain: str, texts: Sequence[str]) -> bool:
    """Tell whether it is work per time; 'flops' may be an amount, or a share of the peak."""
    amount = kinds & {"total", "num", "percentage", "percent", "pct"} or re.search(r"flops? per (?!s)", plain)
    counted = ("flops" in plain or "ops" in kinds) and amount and not re.search(r"ops? ?(/|per) ?s|ops s", plain)
    worked = any(PATTERNS["per_second"].search(text) or PATTERNS["rate"].search(text) for text in texts)
    taken = re.search(r"(^| )(time|latency|duration|runtime) per ", re.sub(r"[^a-z]+", " ", plain))
    return worked and not (counted or taken or kinds & _LIMIT or {"request", "rate"} <= kinds)


def _quantity_by_words(kinds: frozenset[str], lower: str) -> str:
    if kinds & _ENERGY:
        return "energy"
    if kinds & (_POWER | _LIMIT - {"budget"}) and not kinds & TIME_WORDS:  # evaluations have a budget, too
        return "power" if kinds & _POWER or len(kinds) <= 2 else ""
    if kinds & (_LATENCY | TIME_WORDS):
        return "time"
    found = (quantity for quantity in ("clock", *_BY_BEGINNING) if PATTERNS[quantity].search(lower))
    return next(found, LETTERS.get(lower, ""))


def _of_quantity(heading: str, kinds: frozenset[str], quantity: str, scale: float, finite: Floats) -> Column:
    """A column of numbers of a known quantity, or of none."""
    known = "by its unit" if not math.isnan(scale) else "by its name"
    elsewhere = bool(kinds & _ELSEWHERE) and "gpu" not in kinds
    width = quantity in ("power", "time") and not kinds & (_LIMIT | EXTREME) and _unit_is_of_a_width(kinds, finite)
    if quantity == "temperature" and finite.max(initial=0) > _HOTTEST_C:
        role, why = Role.PARAMETER if looks_chosen(finite) else Role.FIGURE, ""  # 'stride_c'
    elif width:
        role, why = Role.PARAMETER, "whole numbers that come again: chosen"
    elif quantity == "clock":
        role, why = _of_clock(kinds, finite, elsewhere=elsewhere)
        why = why or f"a clock {known}"
    elif quantity == "power":
        role, why = _of_power(kinds, finite, known, elsewhere=elsewhere)
    elif quantity == "energy":
        other = elsewhere or kinds & (_IDLE | _MEMORY)
        role, why = Role.FIGURE if other else Role.ENERGY, f"an energy {known}" + ", not the board's" * bool(other)
    elif quantity == "time":
        role, why = _of_time(kinds, f"{heading.lower()} {' '.join(words_of(heading))}", known, finite)
    elif quantity in ("temperature", "voltage"):
        role, why = Role(quantity), f"a {quantity} {known}"
    elif quantity == "share":
        limit = kinds & (_LIMIT - {"tdp"})  # of which a share may be drawn
        role, why = (Role.PARAMETER, "a limit as a share") if limit else (Role.UTILISATION, f"a share {known}")
    else:
        seen = kinds & (MEANS | {"best"})
        role, why = Role.PARAMETER if looks_chosen(finite) and not seen else Role.FIGURE, ""
    if role is Role.PARAMETER:
        return Column(heading, role, why=why)
    return Column(heading, role, BASE_UNIT.get(quantity, ""), scale, why)


def _of_power(kinds: frozenset[str], finite: Floats, known: str, *, elsewhere: bool) -> tuple[Role, str]:
    """The role of a power by itself, and why."""
    if (elsewhere or kinds & (_IDLE | _MEMORY)) and "gpu" not in kinds:
        set_ = kinds & _LIMIT and looks_chosen(finite)
        return (Role.PARAMETER, CHOICE) if set_ else (Role.FIGURE, f"a power {known}, not the board's")
    if kinds & _LIMIT or (kinds & set(REQUESTED) and not kinds & _OBSERVED):
        plausible = "unit" in known or finite.max(initial=0) > _LEAST_LIMIT_W
        return (Role.POWER_LIMIT, "a limit by its name") if plausible else (Role.PARAMETER, CHOICE)
    extreme = "the extreme of a power, which is no mean"
    return (Role.FIGURE, extreme) if kinds & EXTREME else (Role.POWER, f"a power {known}")


def _of_time(kinds: frozenset[str], words: str, known: str, finite: Floats) -> tuple[Role, str]:
    """The role of a time by itself, and why."""
    if PATTERNS["of_many"].search(words):
        return Role.FIGURE, "time of several at once, by its name"
    if kinds & HEADINGS["beside"] and finite.min(initial=0) < 0:
        return Role.FIGURE, "a difference: some are negative"
    if PATTERNS["served_in"].search(words):
        return Role.LATENCY, "a latency of a service by its name"
    if kinds & _CYCLES:
        return Role.FIGURE, "a number of cycles, and no time"
    if kinds & WORDS["overhead"]:
        return Role.UNUSED, "time that the tuner spent"
    if kinds & WORDS["pauses"] and looks_chosen(finite):
        return Role.PARAMETER, "a pause that was chosen"
    return (Role.LATENCY, "a latency by its name") if kinds & _LATENCY else (Role.TIME, f"a time {known}")


def _of_clock(kinds: frozenset[str], finite: Floats, *, elsewhere: bool) -> tuple[Role, str]:
    """The role of a clock by itself, and why where its unit does not say it."""
    if finite.min(initial=0) < -1 or kinds & {"offset", "oc"}:  # 0 or -1 stands for what was not set
        return Role.CLOCK_OFFSET, "an offset by its name, or as it is negative"
    if elsewhere and looks_chosen(finite) and not kinds & (EXTREME | _OBSERVED):
        return Role.PARAMETER, "a clock beside the board's that was chosen"
    if elsewhere or kinds & (EXTREME | {"idx", "index"}):
        return Role.UNUSED, "no clock that the board ran at"
    fractions = len(finite) > 0 and float(np.mean(finite != np.round(finite))) > 0.2
    seen = bool(kinds & _OBSERVED) or {"core", "freq"} <= kinds
    seen |= fractions and 2 * len(np.unique(finite)) > len(finite) and not kinds & {"ghz"}
    if kinds & (_MEMORY | {"memf"}):
        return Role.OBSERVED_MEMORY_CLOCK if seen else Role.MEMORY_CLOCK, "a clock of the memory by its name"
    observed = seen and not kinds & set(REQUESTED)
    return (Role.OBSERVED_CLOCK, "a clock that was observed, by its name") if observed else (Role.GRAPHICS_CLOCK, "")


def _of_text(heading: str, lower: str, values: Sequence[str]) -> Column:
    present = [value for value in values if value]
    plain, kinds = re.sub(r"[^a-z0-9]+", " ", heading.lower()).strip(), frozenset(words_of(heading))
    names = _CHOSEN - {"variant"} if len(set(present)) < len(values) else _CHOSEN
    ran = {plain, lower} & HEADINGS["kernel"] or _names_stage_or_request(plain, kinds, present)
    alone = len(set(present)) == len(values) or (2 * len(set(present)) > len(values) > _FEW)
    counted = PATTERNS["counted"].search(plain) or (len(present) > 2 and alone)
    own = _own_parts(present) if heading == "key" else present  # of JSON: what all keys say tells none apart
    ran_there = any(_cells_are(kind, own) for kind in ("models", "programs", "datasets"))
    by_heading = bool(kinds & WORDS["chosen_in_texts"]) and not counted
    unset, numbers = any(map(PATTERNS["unset"].search, present)), sum(map(str.isdecimal, present))
    known = _by_rules(
        heading,
        (PATTERNS["stamp"].search(plain), Role.STAMP, _STAMPED),
        (plain in HEADINGS["board"], Role.BOARD, "names the board"),
        (_is_work(plain, heading, np.empty(0)) and not ran, Role.WORK, WORKED_ON),
        (unset and 2 * numbers > len(present), Role.PARAMETER, CHOSEN_THERE),
        (
            ran and (_name_choices(present) or _differ_in_implementation(present)),
            Role.PARAMETER,
            "names implementations of one thing",
        ),
        (ran, Role.KERNEL, "names what ran"),
        (plain in HEADINGS["state"] or (present and all(map(_VERDICT, present))), Role.STATE, _WENT),
        (kinds & WORDS["model"] and kinds & {"file", "filename", "path"}, Role.KERNEL, "names what ran"),
        (present and all(map(PATTERNS["file"].fullmatch, present)), Role.UNUSED, "names files"),
        (kinds & WORDS["went_well"] and _cells_are("switch", present), Role.STATE, _WENT),
        (kinds & WORDS["judged"] and len(set(present)) <= 2, Role.UNUSED, _WENT),
        (kinds & WORDS["came_out"], Role.UNUSED, "says what came out"),
        (kinds & (names | {"config", "configuration", "setup", "method", "clock"}), Role.PARAMETER, CHOICE),
        (_differ_in_implementation(present), Role.PARAMETER, CHOSEN_THERE),
        (_cells_are("boards", present), Role.BOARD, BOARDS_THERE),
        (ran_there and not by_heading, Role.KERNEL, RAN_THERE),
        (by_heading and not ran_there, Role.PARAMETER, CHOICE),
        (not kinds & WORDS["material"] and _name_choices(present), Role.PARAMETER, CHOSEN_THERE),
        (_cells_are("switch", present), Role.PARAMETER, CHOSEN_THERE),
        (counted, Role.UNUSED, EACH_ITS_OWN),
    )
    return known or Column(heading, Role.PARAMETER, why=COME_AGAIN)


def _names_stage_or_request(plain: str, kinds: frozenset[str], cells: Sequence[str]) -> bool:
    named = "id" in kinds and kinds & (WORDS["asked"] | WORDS["material"]) - {"id"} and cells
    stage = plain in ("phase", "stage") and "warm" not in "".join(cells).lower()
    return stage or bool(named and all(map(PATTERNS["words"].fullmatch, cells)))


def _own_parts(cells: Sequence[str]) -> list[str]:
    """Cells of words between signs without the words that all of them have."""
    words = [re.split("[^A-Za-z0-9.]+", cell) for cell in cells]
    shared = frozenset.intersection(*map(frozenset, words)) if words else frozenset()
    return ["_".join(word for word in each if word not in shared) for each in words]


def _cells_are(kind: str, cells: Sequence[str]) -> bool:
    """Tell whether most of the different cells are such names."""
    distinct = list(dict.fromkeys(cells))[:_MOST_VALUES]
    named = sum(len(cell) <= _LONGEST_NAME and bool(PATTERNS[kind].search(cell)) for cell in distinct)
    return len(distinct) > 1 and named > _MOST_OF * len(distinct)


def _differ_in_implementation(cells: Sequence[str]) -> bool:
    """Tell whether cells name implementations of one thing, 'flash_attention' and 'naive_attention'."""
    names = [frozenset(words_of(cell)) for cell in list(dict.fromkeys(cells))[:_MOST_VALUES]]
    known = WORDS["implementation"]
    return len(names) > 1 and all(each & known for each in names) and len({each - known for each in names}) == 1


def _name_choices(cells: Sequence[str]) -> bool:
    """Tell whether one is a library or a plain implementation, and nothing that it does; or all are number formats."""
    known = WORDS["implementation"]
    names = ({*re.findall(r"[a-z]+", cell.lower())} for cell in cells)
    plain = any(words & known and words <= known | {"kernel", "v", "version"} for words in names)
    return plain or (bool(cells) and all(map(PATTERNS["number_format"].fullmatch, cells)))


def _unit_is_of_a_width(kinds: frozenset[str], finite: Floats) -> bool:
    """'tile_w' is a width: whole numbers that come again, and no word of a quantity beside the letter."""
    named = kinds & (_POWER | TIME_WORDS | {"wall", "gpu"} | _ELSEWHERE | _ENERGY | _OBSERVED | _LIMIT)
    letter = kinds & {"w", "s", "j", "h", "v", "c"} and not named
    return bool(letter) and len(finite) > 0 and _are_whole(finite) and _come_again(finite)


def looks_chosen(finite: Floats) -> bool:
    """Tell whether numbers look like those that someone chose: whole ones, or few that come again.

    Parameters
    ----------
    finite : array, shape (n,)
        Numbers, none missing.

    Returns
    -------
    bool
        True for such numbers.
    """
    if not len(finite):
        return False
    distinct = np.unique(finite)
    uneven = len(np.unique(np.diff(distinct))) > len(distinct) / 2 and not is_geometric(distinct)
    if 2 * len(distinct) <= len(finite):
        return len(distinct) <= _MOST_VALUES or (not uneven and _are_whole(finite) and len(distinct) <= _MOST_EVEN)
    counted = (len(distinct) > _MOST_STEPS and uneven) or len(distinct) > _MOST_EVEN
    return _are_whole(finite) and len(distinct) > 1 and not counted


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def over(one: Floats, other: Floats) -> Floats:
    """Divide numbers row by row.

    Parameters
    ----------
    one, other : array, shape (n,)
        What is divided, and by what.

    Returns
    -------
    array, shape (n,)
        NaN or infinite where it is 0 or missing by which a number is divided.
    """
    return one / other


def is_geometric(distinct: Floats) -> bool:
    """Tell whether numbers are powers of something, as sizes are.

    Parameters
    ----------
    distinct : array, shape (n,)
        Different numbers, ascending.

    Returns
    -------
    bool
        True for such numbers.
    """
    ratios = over(distinct[1:], distinct[:-1])
    known = ratios[np.isfinite(ratios)]
    return len(known) > 0 and float(np.ptp(known)) < 0.01
