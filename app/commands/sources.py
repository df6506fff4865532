"""What the user names: a session by its number or file, and a configuration by its values."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..base.errors import InputError
from ..base.files import is_there
from ..base.paths import resources
from ..engine.session.opened import Opened, stored_session
from ..engine.space.repeats import fold
from .arguments import session_number
from .terminal import print_listing

SPECIFICATION: Final = (
    "the specification, TOML or T1 (JSON), an example's name, or an operator such as mm:1,512,512,512"
)

if TYPE_CHECKING:
    from ..engine.formats.any_table import TableColumns
    from ..engine.space.result_table import ResultTable
    from ..engine.store.database import Store


def open_session(source: str | None, columns: TableColumns | None = None) -> Opened:
    """A stored session by its number (None: the newest), or a recording by its file, whose `columns` may be said.

    Raises InputError if there is neither.
    """
    with _collector_at_rest():
        number = None if source is None else session_number(source)
        if (source is None or number is not None) and columns is not None and columns.beside:
            raise InputError(
                "logs of power belong to results in files", "--power-log", "name the results, not a session"
            )
        if source is None or number is not None:
            return _stored(number)
        return _recorded(recording_path(source), columns)


def newest_session(store: Store, where: str) -> int:
    """Its number. Raises InputError, naming the command as `where`, if none is stored."""
    sessions = store.sessions()
    if not sessions:
        raise InputError("no session is stored", where, "run `wattridge tune` or `wattridge demo` first")
    return sessions[0].id


def recording_path(text: str) -> Path:
    """A file, or the name of a recording that comes with the program."""
    path = Path(text)
    if is_there(path) or path.name != text:
        return path
    shipped = (resources() / "recordings" / f"{text}{suffix}" for suffix in (".json.gz", ".csv.gz"))
    return next((item for item in shipped if item.is_file()), path)


@contextmanager
def _collector_at_rest() -> Iterator[None]:
    """Reading makes millions of objects, none of them garbage: looking for it would take a third of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _stored(number: int | None) -> Opened:
    from ..engine.store.database import Store

    with Store() as store:
        return stored_session(store, newest_session(store, "sessions") if number is None else number)


def _recorded(path: Path, columns: TableColumns | None) -> Opened:
    from ..engine.formats.read import read_recording
    from ..engine.formats.roles import listing_of
    from ..engine.results.objectives import Objective
    from ..engine.session.planning import plan_replay

    recording = read_recording(path, columns)
    if recording.columns:
        with redirect_stdout(sys.stderr):
            print_listing(listing_of(recording.columns))
    plan = plan_replay(path, read=recording)
    return Opened.of(
        plan, recording.table(), Objective(plan.objective.goal, recording.objective.front, plan.objective.limits), None
    )


def chosen_index(text: str | None, table: ResultTable) -> int | None:
    """Index of the result that the user names as 'block_size_x=32,...'; None for the best.

    Any subset of the values that singles one result out will do. Raises InputError for others.
    """
    if text is None:
        return None
    wanted = dict(part.split("=", 1) for part in text.split(",") if "=" in part)
    if not wanted or set(wanted) - set(table.space.names):
        raise InputError(
            f"'{text}' names no configuration", "--configuration", f"NAME=VALUE of {', '.join(table.space.names)}"
        )
    matches = [
        index
        for index in range(len(table))
        if all(str(table.measurement(index).configuration[name]) == value for name, value in wanted.items())
    ]
    repeats = fold(table) if len(matches) > 1 else None
    if repeats is not None and len(set(repeats.index_of[matches].tolist())) == 1:
        return matches[0]  # they are repeats of one configuration
    if len(matches) != 1:
        raise InputError(
            f"{len(matches)} measured configurations match '{text}'",
            "--configuration",
            "name as many as single one out",
        )
    return matches[0]
