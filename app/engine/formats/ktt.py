"""The results of the Kernel Tuning Toolkit, KTT, as it writes them itself (JSON): read as T4 results."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .entries import BadEntry, as_number
from .recording import Recording
from .t4 import T4Entries

_STATES = {
    "Ok": "correct",
    "ComputationFailed": "runtime",
    "ValidationFailed": "correctness",
    "CompilationFailed": "compile",
    "DeviceLimitsExceeded": "constraints",
}


class KttEntries:
    """The results of a KTT file."""

    kind = "result"
    header_key = "Metadata"  # which has the unit of times

    def __init__(self, path: Path, document: Mapping[str, Any]) -> None:
        given = document.get("Metadata")
        metadata: Mapping[str, Any] = given if isinstance(given, dict) else {}
        self._metadata = {"timeunit": metadata.get("TimeUnit"), "device": metadata.get("Device")}
        self._results = T4Entries(path, {"metadata": self._metadata})

    def add(self, entry: object) -> None:
        """Read one result. Raises BadEntry, and InputError for too many."""
        if not isinstance(entry, dict):
            raise BadEntry("not an object")
        self._metadata.setdefault("kernel", entry.get("KernelName"))
        self._results.add(_as_t4(entry))

    def finish(self) -> Recording:
        """The recording. Raises InputError."""
        return self._results.finish()


def _as_t4(result: Mapping[str, Any]) -> dict[str, Any]:
    """A result of KTT as one of T4. Raises BadEntry."""
    configuration = _named(result.get("Configuration"), "'Configuration'")
    figures: dict[str, Any] = {}
    computations = result.get("ComputationResults")
    if isinstance(computations, list) and len(computations) == 1 and isinstance(computations[0], dict):
        profile = computations[0].get("ProfilingData")
        if isinstance(profile, dict):
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
