"""The published ways to tune for energy side by side, from a stored session, a recording, or measurements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..measurement import Measurement
from ..space.result_table import ResultTable
from ..strategies.methods import METHODS, Methods, compare_methods
from .steering import steer_by_measurements

if TYPE_CHECKING:
    from ..store.database import Store


def methods_of_store(
    store: Store, session: int, *, base_mhz: float | None = None, methods: Sequence[str] = tuple(METHODS)
) -> Methods:
    """Of a stored session. Raises InputError where it did not measure what the methods ask for."""
    loaded = store.load(session)
    record = loaded.record
    return methods_of_table(
        loaded.table, gpu=record.gpu, title=record.title, source=record.source, base_mhz=base_mhz, methods=methods
    )


def methods_of_recording(
    path: Path, *, base_mhz: float | None = None, methods: Sequence[str] = tuple(METHODS)
) -> Methods:
    """Of a recording, whatever its format. Raises InputError as `methods_of_store` does."""
    from ..formats.read import read_recording

    recording = read_recording(path)
    return methods_of_table(
        recording.table(),
        gpu=recording.device,
        title=recording.kernel or path.name,
        source="simulated" if recording.simulated else "recorded",
        base_mhz=base_mhz,
        methods=methods,
    )


def methods_of_table(
    table: ResultTable,
    *,
    gpu: str,
    title: str,
    source: str,
    base_mhz: float | None = None,
    methods: Sequence[str] = tuple(METHODS),
) -> Methods:
    """Of measurements; the model of the clocks is fitted to some of them, as if those alone had been measured."""
    measured = measured_rows(table)
    return compare_methods(
        table.space,
        measured,
        gpu=gpu,
        title=title,
        source=source,
        steering=steer_by_measurements(table.space, measured) if "model_steered" in methods else None,
        base_mhz=base_mhz,
        methods=methods,
    )


def measured_rows(table: ResultTable) -> Mapping[int, Measurement]:
    """The measurements by their row of the space."""
    return {each.row: each for each in (table.measurement(index) for index in range(len(table)))}
