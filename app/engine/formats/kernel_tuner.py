"""Kernel Tuner's cache files: every configuration of a tuning run, as JSON, plain or gzipped, closed or still open.

A value keeps its name in the file (`TFLOPS/J`, `ps_energy`). Besides, what the file tells of time, energy, power, clock
and temperature is given under this program's names with their units (`time_s`, `energy_j`, `power_w`,
`observed_clock_mhz`, `temperature_c`), so that sessions, replays and fits read alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import InputError
from .entries import OWN, EntryReader
from .facts import Facts
from .own import OwnHeader, plain_lists, text_of
from .recording import MAXIMUM_PARAMETERS, Recording, RecordingBuilder


class CacheHeader:
    """What a cache tells before its entries. Raises InputError where that is too little."""

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
        own = OwnHeader(document)
        self.keys: tuple[str, ...] = tuple(keys)
        self.names = own.names(keys)
        self.listed = plain_lists(self.keys, self.names, document.get("tune_params"))
        self.objective = own.objective(document.get("objective"))
        self.device = text_of(document.get("device_name"))
        self.kernel = text_of(document.get("kernel_name"))
        self.problem_size = _problem_size(document.get("problem_size"))
        self.units = own.units
        self._kept = own.kept

    def tells_as(self, other: CacheHeader) -> bool:
        """Whether the other is of the same run, as far as headers tell."""
        mine, its = ((h.keys, h.names, h.device, h.kernel, h.problem_size, h.objective) for h in (self, other))
        return mine == its

    def entry_reader(self) -> EntryReader:
        """What reads the entries below this header."""
        return EntryReader(self.keys, kept=self._kept, objective=self.objective.goal.name)


class CacheEntries:
    """The entries of a cache on their way into a recording."""

    kind = "entry"

    def __init__(self, path: Path, document: Mapping[str, Any]) -> None:
        self._header = CacheHeader(document, str(path))
        self._reader = self._header.entry_reader()
        self._builder = RecordingBuilder(path, self._header.names, self._header.listed)

    @staticmethod
    def can_begin(document: Mapping[str, Any]) -> bool:
        """Whether enough of the header is known."""
        return "tune_params_keys" in document

    def take(self, entry: object) -> None:
        """Take one entry in. Raises BadEntry, and InputError for too many."""
        configuration = self._reader.configuration(entry)
        facts: Facts = self._reader.facts(entry)  # type: ignore[arg-type]  # `configuration` has looked
        self._builder.add(configuration, facts)

    def finish(self, document: Mapping[str, Any], notes: Sequence[str], *, still_open: bool) -> Recording:
        """The recording. Raises InputError."""
        header = self._header
        return self._builder.finish(
            device=header.device,
            kernel=header.kernel,
            problem_size=header.problem_size,
            objective=header.objective,
            units=header.units,
            notes=notes,
            still_open=still_open,
        )


def _problem_size(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(str(v)[:40] for v in value[:8])
    return str(value)[:80] if isinstance(value, int | float | str) else ""
