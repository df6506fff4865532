"""The results of the Kernel Tuning Toolkit, KTT, as it writes them itself (JSON)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import InputError
from .entries import BadEntry, EntryReader, as_number
from .own import text_of
from .recording import MAXIMUM_PARAMETERS, Recording, RecordingBuilder
from .t4 import ms_of

_STATES = {
    "ComputationFailed": "runtime",
    "ValidationFailed": "correctness",
    "CompilationFailed": "compile",
    "DeviceLimitsExceeded": "constraints",
}


class KttEntries:
    """KTT's results on their way into a recording."""

    kind = "result"

    def __init__(self, path: Path, document: Mapping[str, Any]) -> None:
        metadata = document.get("Metadata")
        self._path = path
        self._metadata: Mapping[str, Any] = metadata if isinstance(metadata, dict) else {}
        self._unit_ms = ms_of(self._metadata.get("TimeUnit")) or 1.0
        self._kernel = ""
        self._keys: tuple[str, ...] = ()
        self._reader: EntryReader | None = None
        self._builder: RecordingBuilder | None = None

    @staticmethod
    def can_begin(document: Mapping[str, Any]) -> bool:
        """Whether enough of the header is known: the unit of times stands in the metadata."""
        return "Metadata" in document

    def take(self, entry: object) -> None:
        """Take one result in. Raises BadEntry, and InputError for too many."""
        if not isinstance(entry, dict):
            raise BadEntry("not an object")
        configuration = _named(entry.get("Configuration"), "'Configuration'")
        if self._reader is None or self._builder is None:
            self._keys = tuple(configuration)
            if not 0 < len(self._keys) <= MAXIMUM_PARAMETERS:
                what = f"a configuration of {len(self._keys)} parameters"
                raise InputError(what, str(self._path), f"1 to {MAXIMUM_PARAMETERS}")
            self._reader = EntryReader(self._keys)
            self._builder = RecordingBuilder(self._path, self._keys)
            self._kernel = text_of(entry.get("KernelName"))
        if len(configuration) != len(self._keys):
            raise BadEntry("its 'Configuration' has other parameters than the first")
        self._builder.add(self._reader.configuration(configuration), self._reader.facts(self._flat(entry)))

    def finish(self, document: Mapping[str, Any], notes: Sequence[str], *, still_open: bool) -> Recording:
        """The recording. Raises InputError."""
        return (self._builder or RecordingBuilder(self._path, ("none",))).finish(
            device=text_of(self._metadata.get("Device")), kernel=self._kernel, notes=notes, still_open=still_open
        )

    def _flat(self, result: Mapping[str, Any]) -> dict[str, Any]:
        """A result as a cache's entry."""
        flat: dict[str, Any] = {}
        computations = result.get("ComputationResults")
        if isinstance(computations, list) and len(computations) == 1 and isinstance(computations[0], dict):
            profile = computations[0].get("ProfilingData")
            if isinstance(profile, dict):
                flat |= _named(profile.get("Counters", []), "'Counters'")
        flat["time"] = as_number(result.get("TotalDuration")) * self._unit_ms
        spent = as_number(result.get("TotalOverhead")) + as_number(result.get("TotalDuration"))
        flat["benchmark_time"] = spent * self._unit_ms
        status = result.get("Status")
        if status != "Ok":
            flat["__error__"] = _STATES.get(status, status) if isinstance(status, str) else "failed"
        return flat


def _named(items: object, what: str) -> dict[str, Any]:
    """A list of {Name, Value} as a dictionary. Raises BadEntry."""
    if not isinstance(items, list) or not all(isinstance(i, dict) and isinstance(i.get("Name"), str) for i in items):
        raise BadEntry(f"{what} is no list of names and values")
    return {item["Name"]: item.get("Value") for item in items}
