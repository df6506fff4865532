"""Kernel Tuner's cache files: every configuration of a tuning run, as JSON, plain or gzipped, closed or still open.

A value keeps its name in the file (`TFLOPS/J`, `ps_energy`). Time, energy, power, clock and temperature are also given
under this program's names with their units (`time_s`, `energy_j`, `power_w`, `observed_clock_mhz`, `temperature_c`), so
that sessions, replays and fits read alike. A session is written so that the field's other tools read it, and this
program reads it back whole.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ...base.errors import InputError
from ...base.files import write_text
from ..results.measurement import Measurement, State, Value
from ..space.result_table import ResultTable
from ..space.search_space import SearchSpace
from .entries import COST_MS, OWN, EntryReader, text_of
from .names import THEIR_SETTINGS
from .own import About, OwnHeader, goal_names, own_entry, own_header, plain_lists
from .recording import MAXIMUM_PARAMETERS, Facts, Recording, RecordingBuilder

_MARKS = {State.COMPILE: "CompilationFailedConfig", State.CONSTRAINTS: "InvalidConfig"}


class CacheHeader:
    """The header of a cache, before its entries. Raises InputError if that is not enough."""

    def __init__(self, document: Mapping[str, Any], where: str) -> None:
        keys = document.get("tune_params_keys")
        if not isinstance(keys, list) or not keys or not all(isinstance(key, str) for key in keys):
            raise InputError(
                "'tune_params_keys' is not a list of names", where, "pass a cache file as Kernel Tuner wrote it"
            )
        if len(set(keys)) != len(keys) or len(keys) > MAXIMUM_PARAMETERS:
            raise InputError("'tune_params_keys' names a parameter twice, or too many", where, "check the header")
        if OWN in keys:
            raise InputError(f"a parameter is named '{OWN}'", where, "rename it")
        header = OwnHeader(document)
        self.keys: tuple[str, ...] = tuple(keys)
        self.names = header.names(keys)
        self.listed = plain_lists(self.keys, self.names, document.get("tune_params"))
        self.objective = header.objective(document.get("objective"))
        self.device = header.text("device") or text_of(document.get("device_name"))
        self.kernel = text_of(document.get("kernel_name"))
        self.problem_size = _problem_size(document.get("problem_size"))
        self.units = header.units
        self.kept = header.kept

    def is_same_run(self, other: CacheHeader) -> bool:
        """Whether the other is of the same run, as far as headers show."""
        mine, its = ((h.keys, h.names, h.device, h.kernel, h.problem_size, h.objective) for h in (self, other))
        return mine == its


class CacheEntries:
    """The entries of a cache."""

    kind = "entry"
    header_key = "tune_params_keys"

    def __init__(self, path: Path, document: Mapping[str, Any]) -> None:
        self.header = CacheHeader(document, str(path))
        self._reader = EntryReader(self.header.keys, kept=self.header.kept, objective=self.header.objective.goal.name)
        self._builder = RecordingBuilder(path, self.header.names, self.header.listed)

    def add(self, entry: object) -> None:
        """Read one entry. Raises BadEntry, and InputError for too many."""
        configuration = self._reader.configuration(entry)
        self.keep(configuration, self._reader.facts(entry))  # type: ignore[arg-type]  # an object: just checked

    def keep(self, configuration: tuple[Value, ...], facts: Facts) -> None:
        """Keep what was read of an entry."""
        self._builder.add(configuration, facts)

    def finish(self) -> Recording:
        """The recording. Raises InputError."""
        header = self.header
        return self._builder.finish(
            device=header.device,
            kernel=header.kernel,
            problem_size=header.problem_size,
            objective=header.objective,
            units=header.units,
            is_ours=header.kept is not None,
        )


def _problem_size(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(str(v)[:40] for v in value[:8])
    return str(value)[:80] if isinstance(value, int | float | str) else ""


# --- writing -------------------------------------------------------------------------------------------------------


def write_cache(table: ResultTable, path: Path, about: About, *, overwrite: bool = False) -> Path:
    """Write every measurement of the table, failures too; returns the path.

    Device settings get Kernel Tuner's names. Values keep theirs; `time` in ms is added where only `time_s` is there.
    What Kernel Tuner has no place for is under a key of our own, which it ignores. Raises as `write_text` does.
    """
    names = their_names(table.space.names, str(path))
    header = {**cache_header(table.space, about, names), OWN: own_header(table, about, device=about.device)}
    measured = map(table.measurement, range(len(table)))
    entries = ((entry_key(m), cache_entry(m, about, names, table.value_names)) for m in measured)
    return write_text(path, cache_pieces(header, entries), overwrite=overwrite)


def their_names(names: Sequence[str], where: str) -> list[str]:
    """The parameters as Kernel Tuner calls them. Raises InputError for a name that the file needs itself."""
    if OWN in names:
        raise InputError(f"a parameter is named '{OWN}'", where, "rename it")
    return [THEIR_SETTINGS[n] if n in THEIR_SETTINGS and THEIR_SETTINGS[n] not in names else n for n in names]


def time_of(seconds: float) -> str:
    """A time stamp as the field's files have it."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(sep=" ")


def with_entries(header: Mapping[str, Any], name: str, brackets: str, entries: Iterable[str]) -> Iterator[str]:
    """The text of a JSON file, piece by piece: the header, and below it the member `name` with an entry a line."""
    yield f'{json.dumps(header, indent=0)[:-2]},\n"{name}": {brackets[0]}'  # without the newline and the last brace
    for index, entry in enumerate(entries):
        yield f"{',' if index else ''}\n{entry}"
    yield f"{brackets[1]}\n}}\n"


def cache_pieces(header: Mapping[str, Any], entries: Iterable[tuple[str, Mapping[str, Any]]]) -> Iterator[str]:
    """The text of a cache, piece by piece."""
    return with_entries(header, "cache", "{}", (f"{json.dumps(key)}: {json.dumps(entry)}" for key, entry in entries))


def cache_header(space: SearchSpace, about: About, names: list[str]) -> dict[str, Any]:
    """What Kernel Tuner expects above the entries; `names` are the parameters as it calls them."""
    goals = goal_names(about)
    return {
        "device_name": about.device if about.known_as is None else about.known_as,
        "kernel_name": about.kernel,
        "problem_size": _sizes(about.problem_size),
        "tune_params_keys": names,
        "tune_params": {n: list(p.values) for n, p in zip(names, space.parameters, strict=True)},
        "objective": goals[0] if len(goals) == 1 else goals,
        **({} if about.known_as is None else {OWN: {"device": about.device}}),
    }


def _sizes(text: str) -> int | str | list[int | str]:
    """Kernel Tuner reads it from every cache, and compares it with the one it is given; an empty list: not known."""
    sizes = [int(value) if re.fullmatch(r"0|[1-9][0-9]{0,17}", value) else value for value in text.split(", ") if value]
    return sizes[0] if len(sizes) == 1 else sizes


def entry_key(measurement: Measurement) -> str:
    """The key of a configuration among the entries."""
    return ",".join(str(value) for value in measurement.configuration.values())


def cache_entry(m: Measurement, about: About, names: Sequence[str], value_names: Sequence[str]) -> dict[str, Any]:
    """One configuration and what was measured of it.

    Where a parameter has the name of a value, the parameter stays.
    """
    entry: dict[str, Any] = {name: value for name, value in m.values.items() if math.isfinite(value)}
    if m.state is not State.OK:
        entry.setdefault("__error__", _MARKS.get(m.state, "RuntimeFailedConfig"))
    elif "time_s" in entry and "time" not in value_names:
        entry["time"] = entry["time_s"] * 1e3
    if math.isfinite(m.cost_s):  # which is known as a whole
        spent = dict(zip(COST_MS, (0.0, 0.0, m.cost_s * 1e3), strict=True))
        entry |= {name: ms for name, ms in spent.items() if name not in value_names}
    if math.isfinite(m.timestamp_s):
        entry.setdefault("timestamp", time_of(m.timestamp_s))
    parameters = dict(zip(names, m.configuration.values(), strict=True))
    figures = {name: value for name, value in entry.items() if name not in names}
    return parameters | figures | {OWN: json.dumps(own_entry(m))}  # a text: T4 has no objects
