"""`wattridge export`: what was measured, and the chosen configuration, in other formats."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..input_files import is_there
from ..paths import data_folder
from .sources import chosen_index
from .terminal import print_json, show


def export_arguments(parser: ArgumentParser) -> None:
    """Declare the options of `wattridge export`."""
    parser.add_argument(
        "source",
        nargs="?",
        metavar="SESSION|FILE",
        help="a session's number (default: the newest), a cache, T4 results, a CSV file, or a specification",
    )
    parser.add_argument("--configuration", metavar="NAME=VALUE,...", help="the configuration (default: the best)")
    kinds = ("json", "header", "script", "csv", "cache", "t4", "t1")
    parser.add_argument("--kind", action="append", choices=kinds, help="only these files")
    parser.add_argument("--gpu", metavar="GPU", help="the board that sets the limits in a specification's T1")
    parser.add_argument("--out", metavar="FOLDER", help="where to write (default: the data folder)")


def export(arguments: Namespace) -> int:
    """Write a stored session, a recording or a specification in other formats."""
    source = arguments.source
    if source is not None and not (source.isdecimal() and not is_there(source)):
        document = _export_file(Path(source), arguments)
    else:
        document = _export_stored(int(source) if source is not None else None, arguments)
    if arguments.json:
        print_json(document)
    else:
        show(*document["files"])
    return 0


def _export_stored(number: int | None, arguments: Namespace) -> dict[str, Any]:
    from ..engine.report.export import export_session
    from ..engine.session.planning import plan_of
    from ..engine.store.database import Store

    with Store() as store:
        known = store.sessions()
        if not known:
            raise InputError("no session is stored", "export", "run `wattridge tune` or `wattridge demo` first")
        session = number if number is not None else known[0].id
        loaded = store.load(session)
    plan = plan_of(loaded)
    index = chosen_index(arguments.configuration, loaded.table)
    folder = Path(arguments.out) if arguments.out else data_folder() / "exports" / f"session-{session}"
    files = export_session(plan, loaded.table, session, index, folder, arguments.kind)
    return {"session": session, "files": [str(file) for file in files]}


def _export_file(path: Path, arguments: Namespace) -> dict[str, Any]:
    from ..engine.formats.read import read_recording
    from ..engine.formats.t1 import is_specification
    from ..engine.report.export import export_session, export_specification
    from ..engine.session.load import load_specification
    from ..engine.session.planning import plan_replay
    from ..sensors.select import open_gpu

    folder = Path(arguments.out) if arguments.out else data_folder() / "exports" / path.name.split(".")[0]
    if not is_specification(path):
        recording = read_recording(path)
        plan, table = plan_replay(path, read=recording), recording.table()
        index = chosen_index(arguments.configuration, table)
        files = export_session(plan, table, None, index, folder, arguments.kind)
        return {"session": None, "files": [str(file) for file in files]}
    if set(arguments.kind or ["t1"]) != {"t1"}:
        raise InputError("a specification holds no measurements", str(path), "export it as --kind t1")
    gpu = open_gpu(arguments.gpu) if arguments.gpu is not None else None
    try:
        return {"session": None, "files": [str(export_specification(load_specification(path), folder, gpu))]}
    finally:
        if gpu is not None:
            gpu.close()
