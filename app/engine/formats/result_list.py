"""The list of results that Kernel Tuner's `tune_kernel` returns, saved as JSON; alone or with its environment.

Each result is one flat object, the parameters first and then what was measured, without a header: what comes before the
first figure is a parameter. A list of T4 results is read as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..expressions.values import is_value
from ..objectives import Objective, likely_goal
from .entries import BOOKKEEPING, BadEntry, EntryReader, text_of
from .figure_names import is_figure
from .recording import MAXIMUM_ENTRIES, MAXIMUM_PARAMETERS, Recording, RecordingBuilder
from .t4 import T4Entries

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
            for each in entry:
                self._add(each)
        elif self._pair and isinstance(entry, dict):
            self._environment |= entry
        else:
            self._add(entry)

    def finish(self) -> Recording:
        """The recording. Raises InputError where it is not clear what is a parameter."""
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
