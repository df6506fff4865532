"""`export_named`: a stored session, a recording or a specification, as the user names it, in other formats."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...base.errors import InputError
from ...base.paths import data_folder
from ...sensors.select import open_gpu
from ..analysis.choosers import Preferences, choices, chosen_by
from ..analysis.costs import costs_of, within_limits
from ..formats.read import read_recording
from ..formats.t1 import is_specification as describes
from ..session.load import load_specification
from ..session.named import (
    chosen_index,
    is_specification,
    newest_session,
    recording_path,
    session_number,
    specification_path,
)
from ..session.planning import plan_of, plan_replay
from ..space.within_limits import feasible
from ..store.database import Store
from .export import Existing, export_session, export_specification

if TYPE_CHECKING:
    from ..formats.table_columns import TableColumns
    from ..results.state import SessionState
    from ..space.result_table import ResultTable
    from ..specification.plan import SessionPlan


@dataclass(frozen=True, slots=True)
class ExportedFiles:
    """What was written."""

    session: int | None  # its number; None: it came from a file
    files: Sequence[Path]
    remarks: Sequence[str] = ()
    receipt: Mapping[str, Any] | None = None  # what was chosen, and how; None: of a specification


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to be written, and where."""

    kinds: Sequence[str] | None = None  # of `KINDS`; None: all that there can be
    folder: Path | None = None  # None: that of exports in the data folder
    existing: Existing = "new"
    configuration: str | None = None  # NAME=VALUE,...; None: the best, or what the rule chooses
    rule: str | None = None
    preferences: Preferences | None = None
    columns: TableColumns | None = None  # of another tool's table
    gpu: str | None = None  # its limits go into a specification's T1


def export_named(source: str | None, wish: Wish) -> ExportedFiles:
    """Write a session by its number (None: the newest), a recording or a specification by its file or name.

    Raises InputError for what there is not, and WattridgeError where nothing worked or nothing can be written.
    """
    number = None if source is None else session_number(source)
    if source is None or number is not None:
        with Store() as store:
            session = newest_session(store, "export") if number is None else number
            loaded = store.load(session)
        remarks = loaded.space.notes[-1:] if loaded.left_out else ()
        return _written(plan_of(loaded), loaded.table, session, wish, remarks, loaded.record.state)
    path = specification_path(source) if is_specification(source) else recording_path(source)
    if not describes(path):
        recording = read_recording(path, wish.columns)
        return _written(plan_replay(path, read=recording), recording.table(), None, wish, recording.notes)
    if set(wish.kinds or ["t1"]) != {"t1"}:
        raise InputError("a specification holds no measurements", str(path), "export it as --kind t1")
    with nullcontext() if wish.gpu is None else closing(open_gpu(wish.gpu)) as gpu:
        file = export_specification(load_specification(path), _folder(wish), gpu, existing=wish.existing)
    return ExportedFiles(None, [file])


def _folder(wish: Wish) -> Path:
    return wish.folder or data_folder() / "exports"


def _written(
    plan: SessionPlan,
    table: ResultTable,
    session: int | None,
    wish: Wish,
    remarks: Sequence[str],
    state: SessionState | None = None,
) -> ExportedFiles:
    said = [*remarks]
    if wish.rule is None:
        index, rule = chosen_index(wish.configuration, table), None
    else:
        costs = within_limits(costs_of(table), feasible(table, plan.objective.limits))
        choice = chosen_by(wish.rule, choices(costs, wish.preferences))
        index, rule = choice.index, choice.rule
    how: dict[str, Any] = {"existing": wish.existing, "state": state, "rule": rule}
    files = export_session(plan, table, session, index, _folder(wish), wish.kinds, said.append, **how)
    receipt = json.loads(files[-1].read_text(encoding="utf-8"))
    return ExportedFiles(session, files, said, receipt)
