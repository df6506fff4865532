"""T4, the field's format of tuning results: JSON with one result per configuration, plain or gzipped; and its kin.

Kernel Tuner and the benchmark hub write `times.compilation`, the schema and KTT `times.compilation_time`: both are
read. A session is written so that it reads back whole. Two other forms (JSON) are read as T4:

- The list of results that Kernel Tuner's `tune_kernel` returns, alone or with its environment. Each result is one flat
  object without a header, the parameters first and then the figures: the keys before the first figure are parameters.
  A list of T4 results is read as well.
- The results that the Kernel Tuning Toolkit, KTT, writes by itself.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...base.errors import InputError
from ...base.files import write_text
from ...base.vocabulary import UNITS
from ..results.measurement import Measurement, State
from ..results.objectives import Objective, likely_goal
from ..space.result_table import ResultTable
from ..space.values import is_value
from .entries import BOOKKEEPING, OWN, BadEntry, EntryReader, as_number, is_figure, mapping_of, text_of
from .kernel_tuner import their_names, time_of, with_entries
from .names import unit_of
from .own import About, OwnHeader, goal_names, own_entry, own_header
from .recording import MAXIMUM_ENTRIES, MAXIMUM_PARAMETERS, Recording, RecordingBuilder

SCHEMA_VERSION = "1.0.0"

_SPENT = {"compilation": "compile_time", "compilation_time": "compile_time", "validation": "verification_time"}
_CORRECT = "correct"
_TIMES = {  # of a result, and what Kernel Tuner's results call them
    "compilation": "compile_time",
    "benchmark": "benchmark_time",
    "framework": "framework_time",
    "search_algorithm": "strategy_time",
    "validation": "verification_time",
    "runtimes": "times",
}


class T4Entries:
    """The results of a T4 file."""

    kind = "result"
    header_key = "metadata"  # which has the unit of times

    def __init__(self, path: Path, document: Mapping[str, Any]) -> None:
        self._path = path
        self._document = document  # may still grow
        self._own = OwnHeader(document)
        self._unit_ms = ms_of(mapping_of(document.get("metadata")).get("timeunit")) or 1.0
        self._units = dict(self._own.units)
        self._keys: tuple[str, ...] = ()
        self._objective = self._own.objective("time")
        self._reader: EntryReader | None = None
        self._builder: RecordingBuilder | None = None

    def add(self, entry: object) -> None:
        """Read one result. Raises BadEntry, and InputError for too many."""
        if not isinstance(entry, dict) or not isinstance(entry.get("configuration"), dict):
            raise BadEntry("no 'configuration'")
        if self._reader is None or self._builder is None:
            self._reader, self._builder = self._begin(entry)
        configuration = self._reader.configuration(entry["configuration"])
        if len(entry["configuration"]) != len(self._keys):
            raise BadEntry("its 'configuration' has other parameters than the first")
        self._builder.add(configuration, self._reader.facts(self._flat(entry)))

    def finish(self) -> Recording:
        """The recording. Raises InputError."""
        metadata = mapping_of(self._document.get("metadata"))
        session = {key: self._own.text(key) or text_of(metadata.get(key)) for key in ("device", "kernel")}
        return (self._builder or RecordingBuilder(self._path, ("none",))).finish(
            **session,
            problem_size=self._own.text("problem_size"),
            objective=self._objective,
            units=self._units,
            is_ours=self._own.kept is not None,
        )

    def _begin(self, first: Mapping[str, Any]) -> tuple[EntryReader, RecordingBuilder]:
        """The first result has the parameters and the objective."""
        where = str(self._path)
        self._keys = tuple(first["configuration"])
        if not 0 < len(self._keys) <= MAXIMUM_PARAMETERS:
            raise InputError(f"a configuration of {len(self._keys)} parameters", where, f"1 to {MAXIMUM_PARAMETERS}")
        names = self._own.names(self._keys)
        self._objective = self._own.objective(first.get("objectives"))
        reader = EntryReader(self._keys, kept=self._own.kept, objective=self._objective.goal.name)
        return reader, RecordingBuilder(self._path, names, self._own.lists("parameter_values", names))

    def _flat(self, result: Mapping[str, Any]) -> dict[str, Any]:
        """A result as a cache's entry: its values by name, what was spent on it, its failure."""
        flat: dict[str, Any] = {}
        measurements = result.get("measurements", [])
        if not isinstance(measurements, list):
            raise BadEntry("its 'measurements' are no list")
        for measured in measurements:
            if not isinstance(measured, dict) or not isinstance(measured.get("name"), str):
                raise BadEntry("a measurement without a name")
            self._put(flat, measured["name"], measured.get("value"), measured.get("unit"))
        if isinstance(result.get(OWN), dict):  # which has all the rest
            return flat | {OWN: result[OWN]}
        flat |= self._spent(mapping_of(result.get("times")))
        flat["timestamp"] = result.get("timestamp")
        invalidity = result.get("invalidity", _CORRECT)
        if invalidity != _CORRECT:
            flat["__error__"] = invalidity if isinstance(invalidity, str) else "failed"
        elif as_number(result.get("correctness", 1)) == 0:
            flat["__error__"] = State.CORRECTNESS.value
        return flat

    def _put(self, flat: dict[str, Any], name: str, value: object, unit: object) -> None:
        flat[name] = value
        factor = ms_of(unit)
        if self._own.kept is not None:
            return
        if name == "time":
            flat[name] = as_number(value) * (factor or self._unit_ms) if isinstance(value, int | float) else value
        elif isinstance(unit, str) and unit and len(self._units) < 1000:
            self._units.setdefault(name, unit[:40])
            if factor is not None and name == self._objective.goal.name and isinstance(value, int | float):
                flat.setdefault("time", as_number(value) * factor)

    def _spent(self, times: Mapping[str, Any]) -> dict[str, float]:
        """What the tuner spent, in ms under Kernel Tuner's names."""
        spent = {kept: as_number(times[name]) * self._unit_ms for name, kept in _SPENT.items() if name in times}
        benchmark = as_number(times.get("benchmark"))
        runtimes = times.get("runtimes")
        if benchmark != benchmark and isinstance(runtimes, list):
            benchmark = sum(time for time in map(as_number, runtimes) if time == time)
        return spent | {"benchmark_time": benchmark * self._unit_ms}


def ms_of(unit: object) -> float | None:
    """How many ms one of a unit of time is; None if it is none."""
    quantity, scale = UNITS.get(unit.strip().lower(), ("", 0.0)) if isinstance(unit, str) else ("", 0.0)
    return 1e3 * scale if quantity == "time" else None


# --- writing -------------------------------------------------------------------------------------------------------


def write_t4(
    table: ResultTable,
    path: Path,
    about: About,
    *,
    overwrite: bool = False,
    objective: str = "",
    rows: Mapping[int, Mapping[str, Any]] | None = None,
) -> Path:
    """Write every measurement of the table, failures too; returns the path. Raises as `write_text` does.

    Values keep their names; `time` in ms is added where only `time_s` is there, as the field's tools want it.
    `objective` is named in place of the session's; `rows` say what was spent on each row, in ms, and its single times.
    """
    names = their_names(table.space.names, str(path))
    return write_text(path, t4_pieces(table, about, names, objective, rows or {}), overwrite=overwrite)


def t4_pieces(
    table: ResultTable, about: About, names: list[str], objective: str, rows: Mapping[int, Mapping[str, Any]]
) -> Iterator[str]:
    """The text of the file that `write_t4` writes, piece by piece; `names` are the parameters' by their names."""
    listed = {p.name: list(p.values) for p in table.space.parameters}
    more = {"device": about.device, "kernel": about.kernel, "problem_size": about.problem_size}
    header = {
        "schema_version": SCHEMA_VERSION,
        # where no more is known, what a configuration cost as a whole is under times.benchmark
        "metadata": {"timeunit": "milliseconds", "device": about.device, "kernel": about.kernel},
        OWN: own_header(table, about, parameter_values=listed, **more),
    }
    goals = [objective] if objective else goal_names(about)
    has_time = "time" in table.value_names
    measured = map(table.measurement, range(len(table)))
    results = (_result(m, about, names, goals, rows.get(m.row, {}), has_time=has_time) for m in measured)
    return with_entries(header, "results", "[]", map(json.dumps, results))


def _result(
    m: Measurement, about: About, names: list[str], goals: list[str], spent: Mapping[str, Any], *, has_time: bool
) -> dict[str, Any]:
    values = {name: value for name, value in m.values.items() if math.isfinite(value)}
    measured = [{"name": n, "value": v, "unit": unit_of(n, about.units)} for n, v in values.items()]
    ok = m.state is State.OK
    time_ms = values.get("time", values.get("time_s", math.nan) * 1e3)
    if ok and not has_time and math.isfinite(time_ms):
        measured.append({"name": "time", "value": time_ms, "unit": "ms"})
    stamp = {"timestamp": time_of(m.timestamp_s)} if math.isfinite(m.timestamp_s) else {}
    return {
        **stamp,
        "configuration": dict(zip(names, m.configuration.values(), strict=True)),
        "times": {
            **dict.fromkeys(_TIMES, 0.0),
            "benchmark": m.cost_s * 1e3 if math.isfinite(m.cost_s) else 0.0,
            "runtimes": [time_ms] if ok and math.isfinite(time_ms) else [],
            **{name: spent[theirs] for name, theirs in _TIMES.items() if theirs in spent},
        },
        "invalidity": "correct" if ok else m.state.value,
        "correctness": 0 if m.state is State.CORRECTNESS else 1,
        "measurements": measured,
        "objectives": goals,
        OWN: own_entry(m),
    }


_REMEDY = "pass the list that Kernel Tuner's tune_kernel returns, or its cache file"


class ListEntries:
    """A list of results."""

    kind = "result"
    header_key = ""

    def __init__(self, path: Path, document: Mapping[str, Any]) -> None:
        self._path = path
        self._results: list[dict[str, Any]] = []
        self._environment: dict[str, Any] = {}
        self._pair = False  # a list of the results and their environment
        self._t4: T4Entries | None = None

    def add(self, entry: object) -> None:
        """Read one result, or all of them as one list. Raises BadEntry, and InputError for too many."""
        if isinstance(entry, list) and not self._results and not self._pair:
            self._pair = True
            for item in entry:
                self._add(item)
        elif self._pair and isinstance(entry, dict):
            self._environment |= entry
        else:
            self._add(entry)

    def finish(self) -> Recording:
        """The recording. Raises InputError if it is not clear what is a parameter."""
        if self._t4 is not None:
            return self._t4.finish()
        where = str(self._path)
        if not self._results:
            raise InputError("the list holds no result", where, "let the tuning run measure something first")
        keys = _parameters(self._results, where)
        reader, builder = EntryReader(keys), RecordingBuilder(self._path, keys)
        for number, result in enumerate(self._results, 1):
            try:
                builder.add(reader.configuration(result), reader.facts(result))
            except BadEntry as error:
                raise InputError(f"result {number}: {error}", where, "correct or remove it") from None
        repeated = len(self._results) - len(builder)
        notes = (f"{repeated} results repeat a configuration: of those the last one counts",) if repeated else ()
        return builder.finish(
            device=text_of(self._environment.get("device_name")),
            objective=Objective(likely_goal(_goal(self._results, keys))),
            notes=notes,
        )

    def _add(self, entry: object) -> None:
        if not isinstance(entry, dict):
            raise BadEntry("not an object")
        if self._t4 is None and not self._results and isinstance(entry.get("configuration"), dict):
            self._t4 = T4Entries(self._path, self._environment)
        if self._t4 is not None:
            self._t4.add(entry)
            return
        if len(self._results) >= MAXIMUM_ENTRIES:
            raise InputError(f"more than {MAXIMUM_ENTRIES} results", str(self._path), "split the file")
        self._results.append({name: value for name, value in entry.items() if not isinstance(value, list)})


def _parameters(results: Sequence[Mapping[str, Any]], where: str) -> tuple[str, ...]:
    """The names of the parameters: those before the first figure, or all others where the names were sorted."""
    names = list(results[0])
    figures = [name for name in names if is_figure(name, [result.get(name) for result in results])]
    if not figures:
        raise InputError("a list of objects in which nothing is a time, an energy or a power", where, _REMEDY)
    given = [name for name in names if name not in figures and all(is_value(result.get(name)) for result in results)]
    if names == sorted(names):  # the order is of no help: numbers with fractions count as measured
        given = [name for name in given if not any(isinstance(result[name], float) for result in results)]
    else:
        given = [name for name in given if names.index(name) < names.index(figures[0])]
    if not given:
        raise InputError("a list of objects without a parameter before their figures", where, _REMEDY)
    if len(given) > MAXIMUM_PARAMETERS:
        raise InputError(f"{len(given)} parameters", where, f"at most {MAXIMUM_PARAMETERS} are read")
    return tuple(given)


def _goal(results: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> str:
    """`time` where there is one, else the first figure."""
    names = [name for name in results[0] if name not in keys and name not in BOOKKEEPING]
    return "time" if "time" in names or not names else names[0]


_STATES = {
    "Ok": "correct",
    "ComputationFailed": "runtime",
    "ValidationFailed": "correctness",
    "CompilationFailed": "compile",
    "DeviceLimitsExceeded": "constraints",
}


class KttEntries(T4Entries):
    """The results of a KTT file, read as those of T4."""

    header_key = "Metadata"  # which has the unit of times

    def __init__(self, path: Path, document: Mapping[str, Any]) -> None:
        metadata = mapping_of(document.get("Metadata"))
        self._metadata = {"timeunit": metadata.get("TimeUnit"), "device": metadata.get("Device")}
        super().__init__(path, {"metadata": self._metadata})

    def add(self, entry: object) -> None:
        """Read one result. Raises BadEntry, and InputError for too many."""
        if not isinstance(entry, dict):
            raise BadEntry("not an object")
        self._metadata.setdefault("kernel", entry.get("KernelName"))
        super().add(_as_t4(entry))


def _as_t4(result: Mapping[str, Any]) -> dict[str, Any]:
    """A result of KTT as one of T4. Raises BadEntry."""
    configuration = _named(result.get("Configuration"), "'Configuration'")
    figures: dict[str, Any] = {}
    computations = result.get("ComputationResults")
    if isinstance(computations, list) and len(computations) == 1:
        profile = mapping_of(mapping_of(computations[0]).get("ProfilingData"))
        figures |= _named(profile.get("Counters", []), "'Counters'")
    figures["time"] = result.get("TotalDuration")
    status = result.get("Status")
    return {
        "configuration": configuration,
        "times": {"benchmark": as_number(result.get("TotalOverhead")) + as_number(result.get("TotalDuration"))},
        "invalidity": _STATES.get(status, status) if isinstance(status, str) else "failed",
        "measurements": [{"name": name, "value": value} for name, value in figures.items()],
    }


def _named(items: object, what: str) -> dict[str, Any]:
    """A list of {Name, Value} as a dictionary. Raises BadEntry."""
    if not isinstance(items, list) or not all(isinstance(i, dict) and isinstance(i.get("Name"), str) for i in items):
        raise BadEntry(f"{what} is no list of names and values")
    return {item["Name"]: item.get("Value") for item in items}
