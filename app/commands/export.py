"""`wattridge export`: what was measured, and the chosen configuration, in other formats."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from contextlib import closing, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.errors import InputError
from ..base.paths import data_folder
from ..engine.specification.examples import is_specification, specification_path
from .analyse import preferences_of
from .arguments import add_force, add_preferences, add_table, columns_of, existing_of, session_number
from .sources import chosen_index, newest_session, recording_path
from .terminal import print_json, say, show

if TYPE_CHECKING:
    from ..engine.results.objectives import Objective
    from ..engine.space.result_table import ResultTable


def export_arguments(parser: ArgumentParser) -> None:
    """Declare the options of `wattridge export`."""
    parser.add_argument(
        "source",
        nargs="?",
        metavar="SESSION|FILE",
        help="a session's number (default: the newest), a cache, T4 results, a CSV file, or a specification",
    )
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--configuration", metavar="NAME=VALUE,...", help="the configuration (default: the best)")
    chosen.add_argument("--choose", metavar="RULE", help="a rule that chooses it: fastest, least_energy, knee, ...")
    add_preferences(parser)
    kinds = ("json", "header", "source", "code", "python", "script", "csv", "cache", "t4", "t1")
    parser.add_argument("--kind", action="append", choices=kinds, help="only these files")
    parser.add_argument("--gpu", metavar="GPU", help="the board that sets the limits in a specification's T1")
    parser.add_argument("--out", metavar="FOLDER", help="where to write (default: a new folder in the data folder)")
    add_force(parser)
    add_table(parser)


def export(arguments: Namespace) -> int:
    """Write a stored session, a recording or a specification in other formats."""
    source = arguments.source
    number = None if source is None else session_number(source)
    if source is None or number is not None:
        document = _export_stored(number, arguments)
    else:
        path = specification_path(source) if is_specification(source) else recording_path(source)
        document = _export_file(path, arguments)
    if arguments.json:
        print_json(document)
    else:
        show(*document["files"])
        for remark in document["remarks"]:
            say(remark)
    return 0


def _export_stored(number: int | None, arguments: Namespace) -> dict[str, Any]:
    from ..engine.report.export import export_session
    from ..engine.session.planning import plan_of
    from ..engine.store.database import Store

    with Store() as store:
        session = newest_session(store, "export") if number is None else number
        loaded = store.load(session)
    plan = plan_of(loaded)
    index, rule = _chosen(plan.objective, loaded.table, arguments)
    remarks = [loaded.space.notes[-1]] if loaded.left_out else []
    folder, existing, state = _folder(arguments), existing_of(arguments), loaded.record.state
    how: dict[str, Any] = {"existing": existing, "state": state, "rule": rule}
    files = export_session(plan, loaded.table, session, index, folder, arguments.kind, remarks.append, **how)
    return _document(session, files, remarks)


def _export_file(path: Path, arguments: Namespace) -> dict[str, Any]:
    from ..engine.formats.read import read_recording
    from ..engine.formats.t1 import is_specification as describes
    from ..engine.report.export import export_session, export_specification
    from ..engine.session.load import load_specification
    from ..engine.session.planning import plan_replay
    from ..sensors.select import open_gpu

    folder = _folder(arguments)
    if not describes(path):
        recording = read_recording(path, columns_of(arguments))
        plan, table = plan_replay(path, read=recording), recording.table()
        index, rule = _chosen(plan.objective, table, arguments)
        how: dict[str, Any] = {"existing": existing_of(arguments), "rule": rule}
        files = export_session(plan, table, None, index, folder, arguments.kind, **how)
        return _document(None, files, recording.notes)
    if set(arguments.kind or ["t1"]) != {"t1"}:
        raise InputError("a specification holds no measurements", str(path), "export it as --kind t1")
    with nullcontext() if arguments.gpu is None else closing(open_gpu(arguments.gpu)) as gpu:
        files = [export_specification(load_specification(path), folder, gpu, existing=existing_of(arguments))]
        return {"session": None, "files": [str(file) for file in files], "remarks": [], "receipt": None}


def _chosen(objective: Objective, table: ResultTable, arguments: Namespace) -> tuple[int | None, str | None]:
    """Index and rule of what is exported: a configuration that is named, or by a rule; (None, None): the best."""
    if arguments.choose is None:
        return chosen_index(arguments.configuration, table), None
    from ..engine.analysis.choosers import choices, chosen_by
    from ..engine.analysis.costs import costs_of, within_limits
    from ..engine.space.within_limits import feasible

    costs = within_limits(costs_of(table), feasible(table, objective.limits))
    choice = chosen_by(arguments.choose, choices(costs, preferences_of(arguments)))
    return choice.index, choice.rule


def _folder(arguments: Namespace) -> Path:
    return Path(arguments.out) if arguments.out else data_folder() / "exports"


def _document(session: int | None, files: Sequence[Path], remarks: Sequence[str]) -> dict[str, Any]:
    receipt = json.loads(files[-1].read_text(encoding="utf-8"))
    return {"session": session, "files": [str(file) for file in files], "remarks": [*remarks], "receipt": receipt}
