"""Kernel Tuner's cache files: every configuration of a tuning run, as JSON, plain or gzipped, closed or still open.

A value keeps its name in the file (`TFLOPS/J`, `ps_energy`). Besides, what the file tells of time, energy, power, clock
and temperature is given under this program's names with their units (`time_s`, `energy_j`, `power_w`,
`observed_clock_mhz`, `temperature_c`), so that sessions, replays and fits read alike.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from app.engine.formats.files import read_text
from app.engine.measurement import Measurement, State, Value
from app.engine.objectives import Goal
from app.engine.results import ResultTable
from app.engine.space.build import space_of_table
from app.engine.space.search_space import SearchSpace
from app.errors import InputError

# Kernel Tuner's names of device settings, and ours.
DEVICE_SETTINGS = {
    "nvml_gr_clock": "graphics_clock_mhz",
    "nvml_mem_clock": "memory_clock_mhz",
    "nvml_pwr_limit": "power_limit_w",
}
_MAXIMUM_PARAMETERS = 100
_MAXIMUM_CARTESIAN = 2**62  # the space names its rows by a key of 64 bits

# What the tuner itself spent, in ms: the cost of a measurement, not a property of the kernel.
_COST_MS = ("compile_time", "verification_time", "benchmark_time")
_BOOKKEEPING = {*_COST_MS, "strategy_time", "framework_time", "timestamp"}

_MARK = re.compile(r"[A-Za-z]*(?:Failed|Invalid|Error|Timeout)[A-Za-z]*Config")
_STATE_WORDS = (
    ("compil", State.COMPILE),
    ("invalid", State.CONSTRAINTS),
    ("constraint", State.CONSTRAINTS),
    ("restriction", State.CONSTRAINTS),
    ("timeout", State.TIMEOUT),
    ("correct", State.CORRECTNESS),
    ("verif", State.CORRECTNESS),
)
_FAILED_TIME_MS = 1e20  # how the oldest caches mark a failure


@dataclass(frozen=True, slots=True)
class Cache:
    """A cache as a search space with one measurement per row."""

    path: Path
    device: str
    kernel: str
    problem_size: str
    objective: str  # name of the value that the run was tuned for
    units: Mapping[str, str]  # unit of a value where its name does not tell
    _space: SearchSpace
    _measurements: tuple[Measurement, ...]

    def __len__(self) -> int:
        return len(self._measurements)

    def space(self) -> SearchSpace:
        """The configurations of the file as a search space: row i is `measurements()[i]`."""
        return self._space

    def measurements(self) -> tuple[Measurement, ...]:
        """One measurement per row of `space()`, in its order."""
        return self._measurements

    def table(self) -> ResultTable:
        """All entries as columns and states."""
        table = ResultTable(self._space)
        table.extend(self._measurements)
        return table

    @property
    def value_names(self) -> tuple[str, ...]:
        """Names of all values in the file, in the order in which they first appear."""
        return tuple(dict.fromkeys(name for m in self._measurements for name in m.values))

    @property
    def goal(self) -> Goal:
        """The objective with its direction: less time, energy or power is better, more of anything else."""
        name = self.objective.lower()
        rate = "/" in name or name.endswith("ops")
        smaller = not rate and any(word in name for word in ("time", "energy", "power", "watt", "edp", "runtime"))
        return Goal(self.objective, maximise=not smaller)


def read_cache(path: Path | str) -> Cache:
    """Read a cache file. Raises InputError naming the file, the place and the remedy where it is not one."""
    path = Path(path)
    where = str(path)
    text = read_text(path)
    document = _parse(text, where)
    if "\\ud" in text.lower():
        _refuse_half_characters(document, where)
    if not isinstance(document, dict) or not isinstance(document.get("cache"), dict):
        raise InputError("this is not a Kernel Tuner cache: no 'cache' with entries", where, "pass a cache file")
    keys = document.get("tune_params_keys")
    if not isinstance(keys, list) or not keys or not all(isinstance(k, str) for k in keys):
        raise InputError(
            "'tune_params_keys' is not a list of names", where, "pass a cache file as Kernel Tuner wrote it"
        )
    if len(set(keys)) != len(keys) or len(keys) > _MAXIMUM_PARAMETERS:
        raise InputError("'tune_params_keys' names a parameter twice, or too many", where, "check the file's header")
    own = document.get("wattridge")
    own = own if isinstance(own, dict) else {}
    entries = document["cache"]
    if not entries:
        raise InputError("the cache holds no entry", where, "let the tuning run measure something first")

    rows: dict[tuple[Value, ...], tuple[str, dict[str, Any]]] = {}
    for key, entry in entries.items():
        rows[_configuration(keys, key, entry, where)] = (key, entry)  # of two entries for one configuration the later
    names = _own_names(keys, own)
    space, order = _build_space(keys, names, document.get("tune_params"), list(rows), where)
    kept = _names_kept(own)
    configurations = list(rows)
    measurements = []
    for row, index in enumerate(order):
        configuration = dict(zip(names, configurations[index], strict=True))
        _, entry = rows[configurations[index]]
        measurements.append(_measurement(row, configuration, entry, set(keys), kept))
    objective = document.get("objective")
    return Cache(
        path=path,
        device=_text(document.get("device_name")) or "unknown device",
        kernel=_text(document.get("kernel_name")) or path.name.split(".")[0],
        problem_size=_problem_size(document.get("problem_size")),
        objective=objective if isinstance(objective, str) and objective else "time",
        units=_units(dict.fromkeys(name for m in measurements for name in m.values)),
        _space=space,
        _measurements=tuple(measurements),
    )


def _refuse_half_characters(document: Any, where: str) -> None:
    """JSON can spell half a character; no file and no screen can show it."""
    try:
        json.dumps(document, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise InputError("a text holds half a character (a lone surrogate)", where, "remove it") from None


# --- parsing --------------------------------------------------------------------------------------------------------


def _parse(text: str, where: str) -> Any:
    """JSON, also of a file that a running or ended tuner left open after its last entry."""
    text = text.rstrip()
    left_open = text.endswith((",", "{"))
    try:
        return _load(text.removesuffix(",") + "}}" if left_open else text)
    except json.JSONDecodeError as error:
        if not left_open and text.endswith("}"):
            try:
                return _load(text + "}}")
            except json.JSONDecodeError:
                pass  # the first message names the place
        what = f"line {error.lineno}, column {error.colno}: {error.msg}"
        raise InputError(f"not valid JSON: {what}", where, "the file is cut off or damaged; fetch it anew") from None
    except RecursionError:
        raise InputError("not a cache: nested too deeply", where, "pass a file as Kernel Tuner wrote it") from None
    except ValueError as error:  # a number of thousands of digits
        raise InputError(f"not a cache: {error}", where, "pass a file as Kernel Tuner wrote it") from None


def _load(text: str) -> Any:
    """As json.loads, but entry by entry: one call over megabytes would keep every other thread waiting, Qt's too."""
    try:
        members, end = _object(text, 0, inside=("cache",))
        if _after_space(text, end) == len(text):
            return members
    except (ValueError, IndexError):
        pass
    return json.loads(text)  # not of the usual shape, or damaged: this one knows how to say where


_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()


def _object(text: str, at: int, inside: tuple[str, ...] = ()) -> tuple[dict[str, Any], int]:
    """The members of an object and where it ends; those named `inside` are objects taken apart alike.

    Raises ValueError or IndexError for anything but an object.
    """
    members: dict[str, Any] = {}
    at = _after_space(text, at)
    if text[at] != "{":
        raise ValueError
    at = _after_space(text, at + 1)
    if text[at] == "}":
        return members, at + 1
    while True:
        name, at = _DECODER.raw_decode(text, at)
        at = _after_space(text, at)
        if not isinstance(name, str) or text[at] != ":":
            raise ValueError
        at = _after_space(text, at + 1)
        members[name], at = _object(text, at) if name in inside and text[at] == "{" else _DECODER.raw_decode(text, at)
        at = _after_space(text, at)
        if text[at] == "}":
            return members, at + 1
        if text[at] != ",":
            raise ValueError
        at = _after_space(text, at + 1)


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _configuration(keys: list[str], key: str, entry: object, where: str) -> tuple[Value, ...]:
    """The values of the parameters in one entry, in the header's order."""
    if not isinstance(entry, dict):
        raise InputError(f"entry {key[:80]!r} is not an object", where, "check the entry")
    values: list[Value] = []
    for name in keys:
        value = entry.get(name)
        if not isinstance(value, int | float | str) or (isinstance(value, float) and not math.isfinite(value)):
            raise InputError(
                f"entry {key[:80]!r}: parameter {name[:80]!r} is {'missing' if value is None else 'not a plain value'}",
                where,
                "every entry needs a number, text or true/false for each of 'tune_params_keys'",
            )
        values.append(value)
    return tuple(values)


def _build_space(
    keys: list[str], names: list[str], listed: object, configurations: list[tuple[Value, ...]], where: str
) -> tuple[SearchSpace, list[int]]:
    """The space of the entries, and the entries' indices in its order of rows."""
    values: dict[str, list[Value]] = {}
    for key, name in zip(keys, names, strict=True):
        given = listed.get(key) if isinstance(listed, dict) else None
        values[name] = [v for v in given if isinstance(v, int | float | str)] if isinstance(given, list) else []
    space = space_of_table(values, configurations)
    if space.cartesian >= _MAXIMUM_CARTESIAN:
        raise InputError("the parameters span more than 2^62 combinations", where, "check 'tune_params'")
    settings = {*DEVICE_SETTINGS, *DEVICE_SETTINGS.values()}
    parameters = tuple(replace(p, device_setting=p.name in settings) for p in space.parameters)
    codes = np.empty((len(configurations), len(parameters)), dtype=np.int64)
    for at, parameter in enumerate(parameters):
        code = {value: index for index, value in enumerate(parameter.values)}
        codes[:, at] = [code[configuration[at]] for configuration in configurations]
    return replace(space, parameters=parameters), np.lexsort(codes.T[::-1]).tolist()


# --- one entry ------------------------------------------------------------------------------------------------------


def _measurement(
    row: int, configuration: dict[str, Value], entry: dict[str, Any], parameters: set[str], kept: set[str] | None
) -> Measurement:
    state, error = _state(entry)
    values: dict[str, float] = {}
    for name, value in entry.items():
        if name in parameters or (name in _BOOKKEEPING and (kept is None or name not in kept)):
            continue
        if isinstance(value, int | float) and (kept is None or name in kept):
            number = _number(value)
            if not math.isnan(number):
                values[name] = number
    if kept is None:
        _add_own_names(values)
    if state is not State.OK:
        values = values if kept is not None else {}
    elif not values:
        state, error = State.RUNTIME, "the file holds no value for it"
    own = entry.get("wattridge")
    own = own if isinstance(own, dict) else {}
    return Measurement(
        row=row,
        configuration=configuration,
        state=_own_state(own, state),
        values=values,
        intervals=_intervals(own.get("intervals")),
        error=_text(own.get("error")) or error,
        message=_text(own.get("message")),
        window_ns=_window(own.get("window_ns")),
        observed_clock_mhz=_number((own or values).get("observed_clock_mhz")),
        event_reasons=_count(own.get("event_reasons")),
        power_source=_text(own.get("power_source")) or _power_source(values),
        source=_text(own.get("source")) or "recorded",
        timestamp_s=_number(own["timestamp_s"]) if "timestamp_s" in own else _timestamp(entry.get("timestamp")),
        cost_s=_number(own["cost_s"]) if "cost_s" in own else _cost_s(entry),
    )


def _state(entry: Mapping[str, Any]) -> tuple[State, str]:
    """Failures are marked by a word or an object with '__error__' under any value; the oldest by a time of 1e20 ms."""
    for name, value in entry.items():
        if name == "wattridge":
            continue
        mark = value.get("__error__") if isinstance(value, dict) else value
        is_error = isinstance(value, dict) and "__error__" in value
        if is_error or name == "__error__" or (isinstance(mark, str) and _MARK.fullmatch(mark)):
            text = _text(mark) or "failed"
            return _state_of_mark(text), text
    time_ms = entry.get("time")
    if isinstance(time_ms, int | float) and _number(time_ms) >= _FAILED_TIME_MS:
        return State.RUNTIME, "marked as failed by its time"
    return State.OK, ""


def _state_of_mark(mark: str) -> State:
    lower = mark.lower()
    return next((state for word, state in _STATE_WORDS if word in lower), State.RUNTIME)


def _add_own_names(values: dict[str, float]) -> None:
    """Give what the file tells under this program's names, where it is not there already."""

    def first(names: Iterable[str]) -> float:
        return next((values[name] for name in names if name in values), math.nan)

    time_s = values.get("time_s", values.get("time", math.nan) / 1e3)
    # An external meter first: it sees the launch itself, the driver an average around it.
    energy_j = first(("energy_j", "ps_energy", "nvml_energy", *_ending(values, "_energy"), "energy"))
    power_w = first(("power_w", "ps_power", "nvml_power", *_ending(values, "_power"), "power"))
    own = {
        "time_s": time_s,
        "energy_j": energy_j if not math.isnan(energy_j) else power_w * time_s,
        "power_w": power_w if not math.isnan(power_w) else energy_j / time_s if time_s > 0 else math.nan,
        "observed_clock_mhz": first(("observed_clock_mhz", "core_freq", "pwr_core_freq")),
        "temperature_c": first(("temperature_c", "temperature", "pwr_temperature")),
    }
    values.update({name: value for name, value in own.items() if math.isfinite(value)})


def _ending(values: Mapping[str, float], suffix: str) -> list[str]:
    return [name for name in values if name.endswith(suffix)]


def _power_source(values: Mapping[str, float]) -> str:
    if "ps_energy" in values or "ps_power" in values:
        return "external meter"
    return "driver" if "nvml_energy" in values or "nvml_power" in values else ""


_UNITS = {"time": "ms", "core_freq": "MHz", "mem_freq": "MHz", "temperature": "°C", "energy": "J", "power": "W"}


def _units(names: Iterable[str]) -> dict[str, str]:
    """Units of Kernel Tuner's own observers, whose names do not tell them."""
    units = {}
    for name in names:
        stem = name.removeprefix("pwr_")
        unit = _UNITS.get(stem) or _UNITS.get(stem.rpartition("_")[2] if stem.endswith(("_energy", "_power")) else "")
        if unit:
            units[name] = unit
    return units


def _cost_s(entry: Mapping[str, Any]) -> float:
    spent = [_number(entry.get(name, 0.0)) for name in _COST_MS]
    return math.fsum(ms for ms in spent if math.isfinite(ms) and ms > 0) / 1e3


def _timestamp(value: object) -> float:
    """Wall clock in seconds since the epoch; NaN where the file does not tell it."""
    if not isinstance(value, str):
        return math.nan
    try:
        stamp = datetime.fromisoformat(value[:64])
        return (stamp if stamp.tzinfo else stamp.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError, OSError):
        return math.nan


# --- what this program adds to a file of its own ----------------------------------------------------------------------


def _own_names(keys: list[str], own: Mapping[str, Any]) -> list[str]:
    """The parameters as the session had them, where only names of device settings were changed for the file."""
    told = own.get("parameters")
    if not isinstance(told, list) or len(told) != len(keys):
        return keys
    same = all(
        name == key or (key in DEVICE_SETTINGS and name == DEVICE_SETTINGS[key])
        for key, name in zip(keys, told, strict=True)
    )
    return told if same and len(set(told)) == len(told) else keys


def _names_kept(own: Mapping[str, Any]) -> set[str] | None:
    """The values of a session that this program wrote; None for a foreign file, whose numbers are all values."""
    names = own.get("values")
    return {n for n in names if isinstance(n, str)} if isinstance(names, list) else None


def _own_state(own: Mapping[str, Any], state: State) -> State:
    told = own.get("state")
    return State(told) if isinstance(told, str) and told in set(State) and state is not State.OK else state


def _intervals(value: object) -> dict[str, tuple[float, float]]:
    if not isinstance(value, dict):
        return {}
    pairs = {n: p for n, p in value.items() if isinstance(p, list) and len(p) == 2}
    return {name: (_number(pair[0]), _number(pair[1])) for name, pair in pairs.items()}


def _window(value: object) -> tuple[int, int] | None:
    if isinstance(value, list) and len(value) == 2 and all(isinstance(v, int) for v in value):
        return value[0], value[1]
    return None


def _count(value: object) -> int:
    return value if isinstance(value, int) and 0 <= value < 2**63 else 0


def _number(value: object) -> float:
    """A float; NaN for anything that is not a number or too large for one."""
    if not isinstance(value, int | float):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


def _text(value: object) -> str:
    return value[:2000] if isinstance(value, str) else ""


def _problem_size(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(str(v)[:40] for v in value[:8])
    return str(value)[:80] if isinstance(value, int | float | str) else ""
