"""What each column of a table is: by its unit, what its name means, its values, and the physics between columns.

A heading is evidence, never proof: what contradicts it is kept beside the role, and a column that may be one of two
things is asked about. Everything that reads a table of another tool takes its roles from here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import product
from typing import Final

import numpy as np
import numpy.typing as npt

from ..results.description import Listing
from ..space.repeats import is_repeat

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
SET: Final = (Role.PARAMETER, Role.GRAPHICS_CLOCK, Role.MEMORY_CLOCK, Role.POWER_LIMIT, Role.CLOCK_OFFSET)
MEASURED: Final = tuple(Role)[len(SET) : tuple(Role).index(Role.WORK)]
SETTING_OF: Final = {
    Role.GRAPHICS_CLOCK: "graphics_clock_mhz",
    Role.MEMORY_CLOCK: "memory_clock_mhz",
    Role.POWER_LIMIT: "power_limit_w",
}

_UNITS: Final[Mapping[str, tuple[str, float]]] = {  # -> the quantity, and the factor to s, J, W, MHz, mV or °C
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), ("time", 1.0)),
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds"), ("time", 0.001)),
    **dict.fromkeys(("us", "µs", "usec", "microseconds"), ("time", 1e-06)),
    **dict.fromkeys(("ns", "nsec", "nanoseconds"), ("time", 1e-09)),
    **dict.fromkeys(("min", "minutes"), ("time", 60.0)),
    **dict.fromkeys(("h", "hours"), ("time", 3600.0)),
    **dict.fromkeys(("j", "joule", "joules"), ("energy", 1.0)),
    **dict.fromkeys(("mj", "millijoules"), ("energy", 1e-3)),
    **dict.fromkeys(("uj", "µj", "microjoules"), ("energy", 1e-6)),
    **dict.fromkeys(("nj", "nanojoules"), ("energy", 1e-9)),
    **dict.fromkeys(("pj", "picojoules"), ("energy", 1e-12)),
    "kj": ("energy", 1e3), "wh": ("energy", 3600.0), "mwh": ("energy", 3.6), "kwh": ("energy", 3.6e6),
    **dict.fromkeys(("w", "watt", "watts"), ("power", 1.0)),
    **dict.fromkeys(("mw", "milliwatts"), ("power", 1e-3)),
    "kw": ("power", 1e3),
    "mhz": ("clock", 1.0), "ghz": ("clock", 1e3), "khz": ("clock", 1e-3), "hz": ("clock", 1e-6),
    **dict.fromkeys(("v", "volt", "volts"), ("voltage", 1e3)), "mv": ("voltage", 1.0),
    **dict.fromkeys(("c", "°c", "celsius", "degc"), ("temperature", 1.0)),
    **dict.fromkeys(("%", "percent", "pct"), ("share", 1.0)),
    **dict.fromkeys(("mib", "mb", "gib", "gb", "bytes", "kib", "kb"), ("size", 1.0)),
}  # fmt: skip
BASE_UNIT: Final = {"time": "s", "energy": "J", "power": "W", "clock": "MHz", "voltage": "mV", "temperature": "°C"}
_UNIT_OF: Final = {
    **dict.fromkeys((Role.POWER, Role.POWER_LIMIT), "W"),
    **dict.fromkeys((Role.TIME, Role.LATENCY), "s"),
    **dict.fromkeys((Role.GRAPHICS_CLOCK, Role.MEMORY_CLOCK, Role.OBSERVED_CLOCK, Role.CLOCK_OFFSET), "MHz"),
    Role.ENERGY: "J",
    Role.TEMPERATURE: "°C",
    Role.VOLTAGE: "mV",
}
_BRACKETED: Final = re.compile(r"\s*[\[(<{]([^\[\]()<>{}]{1,14})[\])>}]\s*$")
_COMPOUND: Final = re.compile(  # 'totalpower', 'powercap', 'memfreq'
    r"(?<=[a-z])(power|energy|clock|freq(?:uency)?|limit|cap|temp(?:erature)?|throughput)(?=[^a-z]|$)"
    r"|(?:(?<=^)|(?<=[^a-z]))(power|energy|gpu|core|mem|memory|clock|nvml)"
    r"(?=(?:draw|cap|limit|usage|freq|clock|clk|power|temp|time|energy|util)(?:[^a-z]|$))",
    re.IGNORECASE,
)
_WORD: Final = re.compile(r"[A-Z]+(?![a-zµ])|[A-Z]?[a-zµ]+|[0-9]+|%|°C")

_LIMIT: Final = frozenset(("limit", "limits", "cap", "capped", "pl", "tdp", "budget", "ceiling", "powercap", "plimit"))
_REQUESTED: Final = (
    *("applied", "locked", "lock", "set", "requested", "request", "target", "application", "applications"),
    *("desired", "nominal", "forced", "fixed", "app", "setting", "config", "configured"),
)
_REQUESTED_NAMES: Final = frozenset(("nvml_gr_clock", "nvml_mem_clock", "nvml_pwr_limit"))
_OBSERVED: Final = frozenset(
    ("avg", "average", "mean", "median", "observed", "actual", "effective", "measured", "current", "drawn", "real")
)
_WHOLE_RUN: Final = frozenset(
    ("real", "wall", "elapsed", "kernel", "runtime", "execution", "exec", "launch", "duration")
)
_PARTS_OF_A_RUN: Final = frozenset(
    ("user", "system", "sys", "init", "initialization", "allocation", "deallocation", "copy", "load", "loading", "eval")
)
_ONE_OF_MANY: Final = frozenset(("launch", "iter", "iteration", "kernel", "call", "inf", "inference", "step"))
_ALL_OF_IT: Final = frozenset(("output", "decode", "generation", "gen", "predicted", "agg", "aggregate", "total", "tg"))
_PART_OF_IT: Final = frozenset(
    ("input", "prompt", "prefill", "request", "requests", "session", "user", "peak", "pp", "req", "single")
)
_EXTREME: Final = frozenset(("peak", "max", "maximum", "min", "minimum", "boost", "base", "p99", "p95", "p90", "p50"))
_SPREAD: Final = frozenset(
    ("std", "stdev", "stddev", "sd", "var", "variance", "ci", "sem", "err", "low", "high", "uncertainty", "cv", "delta")
)
_SPREAD_PARTS: Final = re.compile(r"std|error|dev(iation)?\b|confidence|interval")
_ELSEWHERE: Final = frozenset(("cpu", "host", "video", "vid", "dram", "ram", "soc", "system", "pkg", "package", "node"))
_OVERHEAD: Final = frozenset(("compile", "compilation", "verification", "benchmark", "framework", "strategy", "setup"))
_IDLE: Final = frozenset(("idle", "static", "baseline"))
_LATENCY: Final = frozenset(("latency", "ttft", "tpot", "itl", "e2e", "e2el", "ttfb", "ttst"))
_SERVICE: Final = frozenset(("concurrency", "ttft", "tpot", "itl", "request", "requests", "token", "tokens", "prompt"))
_TIME: Final = frozenset(
    ("time", "times", "runtime", "duration", "elapsed", "walltime", "seconds", "makespan", "exectime")
)
_ENERGY: Final = frozenset(("energy", "joules", "joule", "energies"))
_POWER: Final = frozenset(("power", "watt", "watts", "draw", "drawn", "pwr", "wattage"))
_CLOCK: Final = re.compile(r"clo?c?k|freq|mhz|ghz")
_MEMORY: Final = frozenset(("mem", "memory", "mclk", "vram", "memfreq", "memclk", "ram"))
_PER: Final = re.compile(r"(?:\bper\b|/)")
_RATE: Final = re.compile(
    r"(?:(?:^|[ _])(?:[kmgtpe]?flops|[kmgt]?ops|tps|fps|qps|rps|rpm|ips|hashrate|hash rate|speed|iops)$)"
    r"|^(?:avg|mean|median) ts$|(?:^|[ _])t/s|throughput|bandwidth|goodput|flop/s|flops|[gmt]i?b/s|perf(?:ormance)?\b"
    r"|(?:^|hash|frame|token|data|bit|flop|processing)[ _]?rate$"
)
_PER_SECOND: Final = re.compile(
    r"\b(?:tok|token|req|request|img|image|sample|inf|iter|it|frame|step|query)s?[ _](?:s|sec)$|"
    r"(?:per[ _]?|/ ?)(?:s|sec|second|seconds|ms)$|per ?s(?:ec(?:ond)?)?\b"
)
_PER_ENERGY: Final = re.compile(r"(?:per[ _]?|/ ?)(?:w|watts?|j|joules?|kwh|wh)$|efficien|(?:^|[ _])eff(?:$|[ _])")
_ENERGY_PER: Final = re.compile(
    r"^(?:.*[ _])?(?:[munpk]?j|joules?|[mk]?wh|energy)(?:[ _]?(?:per|/)[ _]?)(?!s$|sec|second)\w+"
)
_SERVED_IN: Final = re.compile(r"time to \w+ (output )?token|inter token|time per output|to first token|token latency")
_PRODUCT: Final = frozenset(("edp", "ed2p", "edyp", "eddp"))
_STAMP: Final = re.compile(
    r"time ?stamp|date|^(ts|epoch|unix( time)?)$|created|_at$|^(start|end|begin|finish|stop) ?time$"
)
_BOARD: Final = frozenset(
    ("gpu", "gpu name", "gpuname", "device", "device name", "board", "card", "accelerator", "gpu model", "hardware")
)
KERNEL_NAMES: Final = frozenset(
    (
        *("kernel", "kernel name", "kernel id", "kid", "benchmark", "bench", "app", "app name", "application"),
        *("application name", "workload", "program", "name", "exp", "experiment", "model", "model name", "network"),
        *(
            "argno",
            "arg no",
            "arg",
            "dnn",
            "suite",
            "task",
            "dataset",
            "data set",
            "model id",
            "experiment name",
            "algorithm name",
        ),
    )
)
_WORK: Final = frozenset(  # how much of it there is
    (
        *("problem size", "size", "n", "m", "k", "resolution", "input shape", "shape", "matrix size", "elements"),
        *("shape m", "shape n", "shape k", "num elements", "array size", "input size", "length", "seq len", "context"),
        *("seqlen", "sequence length", "context length", "size bytes", "parameter count", "num params"),
    )
)
_CHOSEN: Final = frozenset(
    (
        *("batch", "bs", "concurrency", "block", "tile", "threads", "grid", "unroll", "precision", "dtype", "quant"),
        *(
            "streams",
            "seqs",
            "workers",
            "tp",
            "pp",
            "dp",
            "world",
            "parallelism",
            "variant",
            "policy",
            "mode",
            "layers",
        ),
    )
)
_OF_SETTINGS: Final = re.compile(r"(.*\.)?(param(eter)?s?|config(uration)?|settings?|parallelization|args)\.")
_AMOUNTS: Final = re.compile(  # what was done is counted, and not chosen
    r"(total |num |n )?(generated |output |prompt |input )*(tokens|docs|items|requests|samples|images|queries|problems)"
    r"( total| ok| failed| prompt| generated| generados)?|completed|failed|errors|http code|status code"
)
_CLOCK_NAMES: Final = re.compile(r"(gpu |sm |gr )?(core ?f?|dvfs|sm|graphics|gfx|mem ?f?|memory|core frequency)")
_PARTIAL: Final = frozenset(
    ("dyn", "dynamic", "core", "static", "norm", "cpu", "soc", "ram", "mem", "memory", "ddr", "net")
)
_RELATIVE: Final = frozenset(
    ("norm", "normalized", "normalised", "relative", "rel", "speedup", "ratio", "saving", "savings")
)
_STATE: Final = frozenset(
    ("phase", "stage", "state", "status", "error", "valid", "ok", "success", "failed", "invalid", "correct", "result")
)
_COUNTED: Final = re.compile(r"(\b(uuid|sha)\b|^(hash|row|index|idx|id|no|unnamed.*|column 1|nr|timestamp.*)$)")
_LETTERS: Final = {"f": "clock", "p": "power", "t": "time", "e": "energy"}
_CLOCKS_MHZ: Final = (100.0, 12_000.0)  # of a clock of a board
_LEAST_LIMIT_W: Final = 10.0
_FITS: Final = 0.03  # relative: a product agrees with a column
_OFF: Final = 0.10  # relative: it contradicts it
_STATISTICS: Final = _OBSERVED | _EXTREME | _SPREAD
_MOST_TIMES: Final = 2  # of different names, beyond which it is asked which counts
_MOST_STEPS: Final = 12  # different whole numbers in steps of different sizes, beyond which they were counted
_LOOKED_AT: Final = 20_000  # rows by which columns are told apart
_FEWEST: Final = 3  # rows in which a relation must hold


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
    parted = _COMPOUND.sub(lambda found: f" {found[0]} ", heading.replace("Hz", "hz").replace("hz", "hz "))
    return [word.lower() for word in _WORD.findall(parted)]


def unit_of(heading: str) -> tuple[str, float]:
    """The quantity that the unit in a heading measures, and the factor to its base unit.

    Megajoule and millijoule, megawatt and milliwatt are often written alike; the small ones are meant.

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
    if bracketed and bracketed[1].strip().lower() in _UNITS:
        return _UNITS[bracketed[1].strip().lower()]
    words = words_of(_BRACKETED.sub("", heading) if bracketed else heading)
    if len(words) > 1 or (words and len(words[0]) > 1):
        for word in reversed(words):
            if word in _UNITS and word not in ("min", "h"):  # 'min' is a minimum, and 'h' a height
                return _UNITS[word]
    return "", 1.0


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
    return heading.lower() in _REQUESTED_NAMES or bool(frozenset(words_of(heading)) & set(_REQUESTED))


def roles_of(cells: Mapping[str, Cells], given: Mapping[str, Role] | None = None) -> tuple[Column, ...]:
    """The role of each column of a table.

    Parameters
    ----------
    cells : mapping of array, shape (n,), or sequence of str
        The columns by heading: numbers, NaN where one is missing, or texts.
    given : mapping of Role, optional
        Roles that the user names, by heading.

    Returns
    -------
    tuple of Column
        In the table's order.
    """
    given, whole = given or {}, cells
    cells = {heading: values[:_LOOKED_AT] for heading, values in whole.items()}
    columns = [_by_itself(heading, values) for heading, values in cells.items()]
    columns = [_as_named(column, given[column.heading]) if column.heading in given else column for column in columns]
    columns = list(_set_or_observed(_latencies(columns, given), cells, given))
    columns = list(_parameters(_of_the_work(columns, cells, given), cells, given, whole))
    return tuple(_by_physics(columns, cells))


def _as_named(column: Column, role: Role) -> Column:
    """With the role that the user names; its unit is to be found where the heading has none of that quantity."""
    unit = _UNIT_OF.get(role, "")
    scale = column.scale if unit == column.unit else math.nan if unit else 1.0
    return Column(column.heading, role, unit, scale, "as named")


def listing_of(columns: Sequence[Column]) -> Listing:
    """List what each column of a table is taken for, and why, for the user to object.

    Parameters
    ----------
    columns : sequence of Column
        The table's.

    Returns
    -------
    Listing
        A row for each column that is used, and one that counts the others.
    """
    rows: list[Sequence[str]] = []
    for column in columns:
        if column.role is not Role.UNUSED:
            rows.append((column.heading, column.role.value, column.unit, column.reasons))
    unused = len(columns) - len(rows)
    rows += [(f"{unused} others", Role.UNUSED.value, "", "--roles HEADING=ROLE uses one")] if unused else []
    return Listing("", ("column", "is", "unit", "because"), rows)


# --- a column by itself -----------------------------------------------------------------------------------------------


def _by_itself(heading: str, values: Cells) -> Column:
    """By unit, name and values alone."""
    last = heading.rpartition(".")[2] if re.search(r"[A-Za-z]", heading.rpartition(".")[2]) else heading
    words = words_of(heading)
    lower = " ".join(words)
    plain = re.sub(r"[^a-z0-9%/µ]+", " ", _BRACKETED.sub("", heading).lower()).strip()
    if not isinstance(values, np.ndarray):
        return _of_text(heading, lower, values)
    finite = values[np.isfinite(values)]
    if plain in _WORK and bool((finite == np.round(finite)).all()):
        return Column(heading, Role.WORK, why="how much was worked on, by its name")
    if plain in KERNEL_NAMES and plain != "name":
        return Column(heading, Role.KERNEL, why="numbers what ran")
    if is_repeat(heading, [int(v) if v.is_integer() else v for v in values[np.isfinite(values)].tolist()]):
        return Column(heading, Role.REPEAT, why="counts repeats")
    if _STAMP.search(plain) and "per" not in words and _is_stamp(finite):
        return Column(heading, Role.STAMP, why="a time stamp by its name")
    if _COUNTED.search(plain):
        return Column(heading, Role.UNUSED, why="a number of the row")
    quantity, scale = unit_of(heading)
    kinds = frozenset(words)
    rated = _rated(heading, last, plain, kinds)
    if rated is not None:
        return rated
    if kinds & _SPREAD or _SPREAD_PARTS.search(plain):
        return Column(heading, Role.UNUSED, why="how far another column scatters")
    if _AMOUNTS.fullmatch(plain) and not quantity:
        return Column(heading, Role.FIGURE, why="an amount that was counted")
    if kinds & _RELATIVE:
        return Column(heading, Role.FIGURE, why="relative to something by its name")
    chosen = kinds & _CHOSEN and (not kinds & (_EXTREME | {"best", "avg"}) or kinds & {"concurrency", "seqs"})
    if (
        not quantity
        and (chosen or _OF_SETTINGS.match(heading))
        and bool((finite == np.round(finite)).all() or not chosen)
    ):
        return Column(heading, Role.PARAMETER, why="a choice by its name")
    if not quantity:
        quantity = _quantity_by_words(kinds, lower)
        if not quantity and _CLOCK_NAMES.fullmatch(lower) and (_are_clocks(finite) or finite.min(initial=0) < -1):
            quantity = "clock"
        scale = math.nan if quantity else 1.0  # to be found by physics, else 1
    return _of_quantity(heading, kinds, quantity, scale, values)


def _is_stamp(finite: Floats) -> bool:
    """Whether numbers rise as times do, or are as large as seconds since 1970."""
    return len(finite) > 0 and bool(finite.min() > 1e8 or (len(finite) > 1 and np.mean(np.diff(finite) >= 0) > 0.9))


def _are_clocks(finite: Floats) -> bool:
    """Whether numbers may be clocks in MHz that someone chose: whole, few, and of a board."""
    low, high = _CLOCKS_MHZ
    within = len(finite) > 0 and bool((finite >= low).all() and (finite <= high).all())
    return within and _looks_chosen(finite) and len(np.unique(finite)) < len(finite)


def _rated(heading: str, last: str, plain: str, kinds: frozenset[str]) -> Column | None:
    """A column of work per time or energy, of energy per work, or of energy times time; None for any other."""
    inner = (
        re.sub(r"[_ ]+", " ", (_BRACKETED.search(heading) or ("", ""))[1].lower()) if _BRACKETED.search(heading) else ""
    )
    texts = [text for text in (inner, re.sub(r"[_ ]+", " ", last.lower()), plain) if text]
    if kinds & _PRODUCT or "delay product" in plain:
        return Column(heading, Role.PRODUCT, why="energy times time by its name")
    if kinds & _SPREAD:
        return None
    unit = last.rpartition("/")[2].strip().lower()
    if unit in _UNITS and _quantity_by_words(frozenset(words_of(last.rpartition("/")[0])), "") == _UNITS[unit][0]:
        return None  # 'time/ms', 'power/W': a quantity over its unit
    for text in texts:
        if _PER_ENERGY.search(text) and not kinds & {"coefficient"}:
            return Column(heading, Role.EFFICIENCY, why="work per energy by its unit or name")
    for text in texts:
        if _ENERGY_PER.search(text):
            return Column(heading, Role.WORK_ENERGY, "", _scale_per(text), "energy per work by its unit")
    if any(_PER_SECOND.search(text) or _RATE.search(text) for text in texts) and not kinds & (
        _LIMIT | {"request"} - {"rate"}
    ):
        if kinds & {"request"} and kinds & {"rate"} and "throughput" not in kinds:
            return Column(heading, Role.PARAMETER, why="a rate of requests that was asked for")
        return Column(heading, Role.THROUGHPUT, why="work per time by its unit or name")
    return None


def _scale_per(text: str) -> float:
    """The factor to J of what a heading gives per work."""
    return next((_UNITS[word][1] for word in words_of(text) if word in _UNITS and _UNITS[word][0] == "energy"), 1.0)


def _quantity_by_words(kinds: frozenset[str], lower: str) -> str:
    if kinds & _ENERGY:
        return "energy"
    if kinds & (_POWER | _LIMIT) and not kinds & _TIME:
        return "power" if kinds & _POWER or len(kinds) <= 2 else ""
    if kinds & _LATENCY or kinds & _TIME:
        return "time"
    if _CLOCK.search(lower):
        return "clock"
    if any(word.startswith("temp") for word in kinds):
        return "temperature"
    if any(word.startswith(("volt", "vcore")) for word in kinds):
        return "voltage"
    if any(word.startswith(("util", "occupancy", "usage", "busy")) for word in kinds):
        return "share"
    return _LETTERS.get(lower, "")


def _of_quantity(heading: str, kinds: frozenset[str], quantity: str, scale: float, values: Floats) -> Column:
    """A column of numbers of a known quantity, or of none."""
    unit = BASE_UNIT.get(quantity, "")
    known = "by its unit" if not math.isnan(scale) else "by its name"
    elsewhere = bool(kinds & _ELSEWHERE) and "gpu" not in kinds
    finite = values[np.isfinite(values)]

    def column(role: Role, why: str, *candidates: Role) -> Column:
        return Column(heading, role, unit, scale, why, candidates=candidates)

    if quantity == "clock":
        role, why = _of_clock(kinds, finite, elsewhere=elsewhere)
        return column(role, why or f"a clock {known}")
    if quantity == "power":
        if (elsewhere or kinds & (_IDLE | _MEMORY)) and "gpu" not in kinds:
            return column(Role.FIGURE, f"a power {known}, not the board's")
        if kinds & _LIMIT or (kinds & set(_REQUESTED) and not kinds & _OBSERVED):
            plausible = not math.isnan(scale) or (len(finite) > 0 and float(finite.max()) > _LEAST_LIMIT_W)
            return column(Role.POWER_LIMIT, "a limit by its name") if plausible else Column(heading, Role.PARAMETER)
        if kinds & _EXTREME:
            return column(Role.FIGURE, "the extreme of a power, which is no mean")
        if _unit_is_of_a_width(kinds, finite):
            return Column(heading, Role.PARAMETER, why="whole numbers that come again: chosen")
        return column(Role.POWER, f"a power {known}")
    if quantity == "energy":
        if elsewhere or kinds & _IDLE or kinds & _MEMORY:
            return column(Role.FIGURE, f"an energy {known}, not the board's")
        return column(Role.ENERGY, f"an energy {known}")
    if quantity == "time":
        if _SERVED_IN.search(" ".join(words_of(heading))):
            return column(Role.LATENCY, "a latency of a service by its name")
        if kinds & _OVERHEAD:
            return column(Role.UNUSED, "time that the tuner spent")
        if kinds & _LATENCY:
            return column(Role.LATENCY, "a latency by its name")
        if _unit_is_of_a_width(kinds, finite):
            return Column(heading, Role.PARAMETER, why="whole numbers that come again: chosen")
        return column(Role.TIME, f"a time {known}")
    if quantity in ("temperature", "voltage"):
        return column(Role.TEMPERATURE if quantity == "temperature" else Role.VOLTAGE, f"a {quantity} {known}")
    if quantity == "share" and kinds & _LIMIT:
        return Column(heading, Role.PARAMETER, why="a limit as a share")
    if quantity == "share":
        return column(Role.UTILISATION, f"a share {known}")
    return Column(heading, Role.PARAMETER if _looks_chosen(finite) else Role.FIGURE)


def _of_clock(kinds: frozenset[str], finite: Floats, *, elsewhere: bool) -> tuple[Role, str]:
    """The role of a clock by itself, and why where its unit does not say it."""
    if len(finite) and finite.min() < -1:  # 0 or -1 stands for what was not set
        return Role.CLOCK_OFFSET, "a clock that is negative is an offset"
    if "offset" in kinds or "oc" in kinds:
        return Role.CLOCK_OFFSET, "an offset by its name"
    if elsewhere and _looks_chosen(finite) and not kinds & (_EXTREME | _OBSERVED):
        return Role.PARAMETER, "a clock beside the board's that was chosen"
    if elsewhere or kinds & (_EXTREME | {"idx", "index"}):
        return Role.UNUSED, "no clock that the board ran at"
    fractions = len(finite) > 0 and float(np.mean(finite != np.round(finite))) > 0.2
    seen = bool(kinds & _OBSERVED) or {"core", "freq"} <= kinds
    seen |= fractions and 2 * len(np.unique(finite)) > len(finite) and not kinds & {"ghz"}
    if kinds & (_MEMORY | {"memf"}):
        return Role.OBSERVED_MEMORY_CLOCK if seen else Role.MEMORY_CLOCK, "a clock of the memory by its name"
    if seen and not kinds & set(_REQUESTED):
        return Role.OBSERVED_CLOCK, "a clock that was observed, by its name"
    return Role.GRAPHICS_CLOCK, ""


def _of_text(heading: str, lower: str, values: Sequence[str]) -> Column:
    present = [value for value in values if value]
    plain = re.sub(r"[^a-z0-9]+", " ", heading.lower()).strip()
    if _STAMP.search(plain):
        return Column(heading, Role.STAMP, why="a time stamp by its name")
    if plain in _BOARD:
        return Column(heading, Role.BOARD, why="names the board")
    if plain in KERNEL_NAMES or lower in KERNEL_NAMES:
        return Column(heading, Role.KERNEL, why="names what ran")
    if plain in _WORK:
        return Column(heading, Role.WORK, why="how much was worked on, by its name")
    if plain in ("phase", "stage") and not any("warm" in value.lower() for value in present):
        return Column(heading, Role.KERNEL, why="names what ran")
    if plain in _STATE:
        return Column(heading, Role.STATE, why="says how it went")
    if frozenset(words_of(heading)) & (_CHOSEN | {"config", "configuration", "setup", "method"}) and len(
        present
    ) == len(values):
        return Column(heading, Role.PARAMETER, why="a choice by its name")
    if _COUNTED.search(plain) or (len(present) > 2 and len(set(present)) == len(values)):
        return Column(heading, Role.UNUSED, why=EACH_ITS_OWN)
    if len(present) < len(values):
        return Column(heading, Role.UNUSED, why="empty in some rows")
    return Column(heading, Role.PARAMETER, why="texts that come again")


def _unit_is_of_a_width(kinds: frozenset[str], finite: Floats) -> bool:
    """'tile_w' is a width: whole numbers that come again, and no word of a quantity beside the letter."""
    named = kinds & (_POWER | _TIME | _ENERGY | _OBSERVED | _LIMIT) - {"w", "s", "j"}
    whole = len(finite) > 0 and bool((finite == np.round(finite)).all())
    return (
        bool(kinds & {"w", "s", "j", "h", "v", "c"})
        and not named
        and whole
        and 2 * len(np.unique(finite)) <= len(finite)
    )


def _looks_chosen(finite: Floats) -> bool:
    """Whether numbers look like those that someone chose: whole ones, or few that come again."""
    if not len(finite):
        return False
    distinct = np.unique(finite)
    whole = bool((finite == np.round(finite)).all())
    if 2 * len(distinct) <= len(finite):
        return True
    counted = len(distinct) > _MOST_STEPS and len(np.unique(np.diff(distinct))) > len(distinct) / 2
    return whole and len(distinct) > 1 and not (counted and not _is_geometric(distinct))


def _is_geometric(distinct: Floats) -> bool:
    """Powers of something, as sizes are."""
    ratios = distinct[1:] / np.where(distinct[:-1] == 0, np.nan, distinct[:-1])
    return bool(np.nanmax(ratios) - np.nanmin(ratios) < 0.01)


# --- columns beside each other ----------------------------------------------------------------------------------------


def _set_or_observed(
    columns: Sequence[Column], cells: Mapping[str, Cells], given: Mapping[str, Role]
) -> Iterator[Column]:
    """Of several clocks and powers, which were set and which were seen."""
    free = [column for column in columns if column.heading not in given]
    clocks = [column for column in free if column.role is Role.GRAPHICS_CLOCK]
    seen = [column for column in columns if column.role is Role.OBSERVED_CLOCK]
    limits = [column for column in columns if column.role is Role.POWER_LIMIT]
    powers = [column for column in free if column.role is Role.POWER]
    requested = [column for column in clocks if column.words & set(_REQUESTED)]
    requested.sort(key=lambda c: min(_REQUESTED.index(word) for word in c.words if word in _REQUESTED))
    wanted = [c for c in columns if c.role is Role.GRAPHICS_CLOCK and c.heading in given] or requested
    for column in columns:
        if column in clocks and wanted and seen and column not in wanted:
            yield replace(column, role=Role.UNUSED, why=f"beside '{seen[0].heading}', which was observed")
        elif column in clocks and wanted and column.heading not in {each.heading for each in wanted}:
            yield replace(column, role=Role.OBSERVED_CLOCK, why=f"beside '{wanted[0].heading}', which was requested")
        elif column in clocks and not seen and limits and _follows(column, limits, cells):
            yield replace(column, role=Role.OBSERVED_CLOCK, why=f"follows '{limits[0].heading}': it was observed")
        elif column in clocks and not wanted and column is not clocks[0]:
            yield replace(column, role=Role.UNUSED, why=f"beside '{clocks[0].heading}'")
        elif column in powers and not limits and _is_stepped(cells[column.heading]):
            others = [each for each in powers if each is not column]
            if any(not _is_stepped(cells[each.heading]) for each in others):
                yield replace(column, role=Role.POWER_LIMIT, why="even steps, beside a power that was measured")
            elif not clocks and not seen:
                both = (Role.POWER, Role.POWER_LIMIT)
                yield replace(column, why="a power in even steps, as limits are", candidates=both)
            else:
                yield column
        else:
            yield column


def _latencies(columns: Sequence[Column], given: Mapping[str, Role]) -> list[Column]:
    """Where nothing is served, a latency is the time of the work."""
    if any(column.role is Role.TIME for column in columns):
        return list(columns)
    served = any(column.words & _SERVICE for column in columns)
    return [
        replace(column, role=Role.TIME)
        if column.role is Role.LATENCY and column.heading not in given and (not served or "total" in column.words)
        else column
        for column in columns
    ]


def _of_the_work(columns: Sequence[Column], cells: Mapping[str, Cells], given: Mapping[str, Role]) -> list[Column]:
    """How much was worked on tells rows apart that must not be compared; in a single size it is a constant."""
    tokens = any(c.role is Role.THROUGHPUT and c.words & {"tok", "token", "tokens", "tps"} for c in columns)
    return [
        replace(column, role=Role.PARAMETER)
        if column.role is Role.WORK
        and column.heading not in given
        and (len(set(map(str, cells[column.heading]))) < 2 or (tokens and column.words & {"seq", "seqlen", "context"}))
        else column
        for column in columns
    ]


def _is_stepped(values: Cells) -> bool:
    """Whether numbers are those of a sweep: multiples of 5 in even steps, as no meter reads them."""
    if not isinstance(values, np.ndarray):
        return False
    distinct = np.unique(values[np.isfinite(values)])
    return len(distinct) >= _FEWEST and bool((distinct % 5 == 0).all()) and len(np.unique(np.diff(distinct))) <= 2


def _follows(column: Column, limits: Sequence[Column], cells: Mapping[str, Cells]) -> bool:
    """Whether a clock has one value under each limit, and another under most: it was not set beside them."""
    limit, clock = (np.asarray(cells[each.heading], np.float64) for each in (limits[0], column))
    distinct = len(np.unique(limit[np.isfinite(limit)]))
    pairs = len({pair for pair in zip(limit.tolist(), clock.tolist(), strict=True) if pair[0] == pair[0]})
    levels = len(np.unique(clock[np.isfinite(clock)]))
    return distinct > 2 and 2 * levels > distinct and pairs < levels * distinct / 2


def _parameters(
    columns: Sequence[Column], cells: Mapping[str, Cells], given: Mapping[str, Role], whole: Mapping[str, Cells]
) -> Iterator[Column]:
    """Which of the columns without a known meaning were chosen: what tells rows apart, from the left.

    One that stands behind what was measured is chosen where those before it leave several rows the same.
    """
    first = next(
        (place for place, column in enumerate(columns) if column.role in MEASURED and column.why), len(columns)
    )
    telling = (*SET, Role.KERNEL, Role.BOARD, Role.WORK, Role.REPEAT)
    there = [
        column
        for place, column in enumerate(columns)
        if column.role in telling and (place < first or column.role is not Role.PARAMETER or column.why)
    ]
    varies = _distinct(there, cells) > 1 or any(column.why == EACH_ITS_OWN for column in columns)
    behind = [
        column
        for column in columns
        if column.role is Role.PARAMETER
        and column not in there
        and column.heading not in given
        and not column.words & (_EXTREME | {"best"})
    ]
    for block in _side_by_side(behind, columns):  # what was chosen stands together
        if _distinct([*there, *block], cells) > _distinct(there, cells):
            there += block
    repeats = any(column.role is Role.REPEAT for column in there)
    for column in columns:
        if column.heading in given or column.role is not Role.PARAMETER:
            yield column
            continue
        others = [*(each for each in there if each is not column), *(c for c in columns if c.role is Role.STATE)]
        if repeats and not column.why and _distinct(others, cells) == _distinct([*others, column], cells):
            yield replace(column, role=Role.FIGURE, why="differs from repeat to repeat")
            continue
        values = whole[column.heading]
        numeric = isinstance(values, np.ndarray)
        complete = bool(np.isfinite(values).all()) if isinstance(values, np.ndarray) else all(values)
        if not complete:
            yield replace(column, role=Role.UNUSED, why="empty in some rows")
        elif column not in there:
            yield replace(column, role=Role.FIGURE if numeric else Role.UNUSED, why="stands behind what was measured")
        elif varies and len(set(whole[column.heading])) == 1:
            yield replace(column, role=Role.UNUSED, why="the same in all rows")
        elif re.fullmatch(r"key( \d+)?", column.heading):  # of JSON: it has no name
            both = (Role.PARAMETER, Role.KERNEL)
            yield replace(column, why="a key without a name", candidates=both)
        else:
            yield column if column.why else replace(column, why="numbers that someone chose")


def _side_by_side(chosen: Sequence[Column], columns: Sequence[Column]) -> Iterator[list[Column]]:
    """These columns in groups of neighbours."""
    block: list[Column] = []
    for column in columns:
        if column in chosen:
            block.append(column)
        elif block:
            yield block
            block = []
    yield block


def _distinct(columns: Sequence[Column], cells: Mapping[str, Cells]) -> int:
    """How many different rows these columns have."""
    return len(set(zip(*(cells[column.heading] for column in columns), strict=True))) if columns else 1


# --- physics ----------------------------------------------------------------------------------------------------------


def _by_physics(columns: Sequence[Column], cells: Mapping[str, Cells]) -> Iterator[Column]:
    """Units that no heading names, by energy = power x time; and what contradicts it.

    The energy of a piece of work, where power and the time of one give it, is the one that counts.
    """
    columns = list(columns)
    power, whole = main_column(columns, Role.POWER), main_column(columns, Role.ENERGY)
    energies = [column for column in columns if column.role is Role.WORK_ENERGY] + (
        [whole] if whole is not None else []
    )
    times = [column for column in columns if column.role in (Role.TIME, Role.LATENCY)]
    for energy in energies if power is not None else ():
        assert power is not None
        fits = [fit for each in times if (fit := _fit(energy, power, each, cells)) is not None]
        best = min(fits, key=lambda fit: fit[0], default=None)
        if best is not None and best[0] < (_FITS if energy is whole else _OFF):
            roles = (Role.ENERGY, Role.POWER, Role.TIME)
            for column, role, scale in zip((energy, power, best[2]), roles, best[1], strict=True):
                why = f"{column.why}; energy is power times time"
                columns[columns.index(column)] = replace(
                    column, role=role, unit=BASE_UNIT[role.value], scale=scale, why=why, confirmed=True
                )
            break
        if best is not None and best[0] > _OFF and energy is whole:
            said = f"not '{power.heading}' times '{best[2].heading}': it differs by {100 * math.expm1(best[0]):.0f} %"
            columns[columns.index(energy)] = replace(energy, contradicted=said)
    columns = _rivals(columns)
    columns = [_as_ratio(column, columns, cells) for column in columns]
    for column in columns:
        if math.isnan(column.scale):
            yield replace(column, scale=_usual_scale(column, cells), scale_is_guessed=True)
        else:
            yield column


def _rivals(columns: Sequence[Column]) -> list[Column]:
    """Of several times that are no statistics of one, which is the time of the work cannot be known."""
    chosen = main_column(columns, Role.TIME)
    stems = {
        " ".join(w for w in words_of(c.heading) if w not in _STATISTICS and w not in _UNITS): c
        for c in columns
        if c.role is Role.TIME
    }
    plain = [stem for stem in stems if not stem or stem in _TIME or len(stem.split()) == 1]
    if chosen is None or chosen.confirmed or len(stems) <= _MOST_TIMES or plain:
        return list(columns)
    both = (Role.TIME, Role.FIGURE)
    return [replace(c, candidates=both) if c is chosen and len(c.why) < 40 else c for c in columns]


def _as_ratio(column: Column, columns: Sequence[Column], cells: Mapping[str, Cells]) -> Column:
    """A column that is a speed over a power is work per energy, whatever its name; the inverse is energy per work."""
    power, rates = main_column(columns, Role.POWER), [c for c in columns if c.role is Role.THROUGHPUT]
    if (
        power is None
        or column.confirmed
        or column.role not in (Role.ENERGY, Role.FIGURE, Role.EFFICIENCY, Role.WORK_ENERGY)
    ):
        return column
    values, watts = (np.asarray(cells[each.heading], np.float64) for each in (column, power))
    for rate in rates:
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.asarray(cells[rate.heading], np.float64) / watts
            both = np.isfinite(values) & np.isfinite(ratio) & (values > 0) & (ratio > 0)
            if both.sum() < _FEWEST or np.unique(values[both]).size < _FEWEST:
                continue
            for role, other in ((Role.EFFICIENCY, ratio), (Role.WORK_ENERGY, 1.0 / ratio)):
                if float(np.quantile(np.abs(values[both] / other[both] - 1.0), 0.9)) < _FITS:
                    sides = (rate, power) if role is Role.EFFICIENCY else (power, rate)
                    why = f"'{sides[0].heading}' over '{sides[1].heading}'"
                    return replace(column, role=role, unit="", scale=1.0, why=why, confirmed=True)
    return column


def _fit(
    energy: Column, power: Column, time: Column, cells: Mapping[str, Cells]
) -> tuple[float, tuple[float, float, float], Column] | None:
    """How far the median of energy / (power x time) is from 1, with the scales that make it least; None: no numbers."""
    values = [np.asarray(cells[column.heading], np.float64) for column in (energy, power, time)]
    good = np.isfinite(values).all(axis=0) & (np.stack(values) > 0).all(axis=0)
    if good.sum() < _FEWEST:
        return None
    ratio = float(np.median(values[0][good] / (values[1][good] * values[2][good])))
    scales = [
        (column.scale,) if not math.isnan(column.scale) else tuned
        for column, tuned in (
            (energy, (1.0, 1e-3, 1e3, 3600.0, 3.6e6)),
            (power, (1.0, 1e-3)),
            (time, (1.0, 1e-3, 1e-6)),
        )
    ]
    return min(
        ((abs(math.log(ratio * e / (p * t))), (e, p, t), time) for e, p, t in product(*scales)), key=lambda fit: fit[0]
    )


def _usual_scale(column: Column, cells: Mapping[str, Cells]) -> float:
    """Of a column without a unit: as its numbers are plausible for a board, else as they are."""
    values = np.asarray(cells[column.heading], np.float64)
    finite = np.abs(values[np.isfinite(values)])
    middle = float(np.median(finite)) if len(finite) else 0.0
    if column.unit == "W" and middle > 3000:
        return 1e-3
    if column.unit == "MHz":
        return 1e-6 if middle > 1e8 else 1e-3 if middle > 1e5 else 1e3 if 0 < middle < 10 else 1.0
    return 1.0


def main_column(columns: Iterable[Column], role: Role) -> Column | None:
    """The column that counts, of those of a role.

    Parameters
    ----------
    columns : iterable of Column
        The table's.
    role : Role
        The role.

    Returns
    -------
    Column or None
        A mean before an extreme, the whole before a part; else the first.
    """

    def rank(column: Column) -> tuple[bool, ...]:
        if column.role is Role.THROUGHPUT:
            named = "/" in column.heading or "per" in column.words
            return bool(column.words & (_EXTREME | _PART_OF_IT)), not column.words & _ALL_OF_IT, not named
        if column.role is Role.TIME:
            partial = bool(column.words & (_EXTREME | _PARTIAL | _PARTS_OF_A_RUN))
            return not column.confirmed, partial, not column.words & _WHOLE_RUN, not column.words & _ONE_OF_MANY
        return (
            not column.confirmed,
            bool(column.words & _EXTREME),
            bool(column.words & _PARTIAL),
            not column.words & {"gpu", "total", "avg"},
        )

    return min((column for column in columns if column.role is role), key=rank, default=None)
