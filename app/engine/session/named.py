"""What the user names: a session by its number or file, and a configuration by its values."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...base.errors import InputError, WattridgeError
from ...base.files import is_input, is_there
from ...base.paths import resources
from ...base.plugins import call, plugins
from ..results.description import Listing
from ..space.repeats import fold
from ..specification.operator_kernels import kept_specification
from ..specification.operator_shapes import is_operator, parse_operator
from .opened import Opened, stored_session

SPECIFICATION: Final = (
    "the specification, TOML or T1 (JSON), an example's name, or an operator such as mm:1,512,512,512"
)

if TYPE_CHECKING:
    from ..formats.table_columns import TableColumns
    from ..space.result_table import ResultTable
    from ..store.database import Store


def session_number(text: str) -> int | None:
    """The number of a stored session; None for the name of a file."""
    return int(text) if text.isdecimal() and not is_there(text) else None


def open_session(
    source: str | None,
    columns: TableColumns | None = None,
    on_columns: Callable[[Listing], None] = lambda _listing: None,
) -> Opened:
    """A stored session by its number (None: the newest), or a recording by its file, whose `columns` may be said.

    What the columns of another tool's table were read as is passed to `on_columns`. Raises InputError if there is
    neither.
    """
    with _collector_at_rest():
        number = None if source is None else session_number(source)
        if (source is None or number is not None) and columns is not None and columns.beside:
            raise InputError(
                "logs of power belong to results in files", "--power-log", "name the results, not a session"
            )
        if source is None or number is not None:
            return _stored(number)
        return _recorded(recording_path(source), columns, on_columns)


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
    kept = [f"recordings/{text}.json.gz", f"recordings/{text}.csv.gz", f"profiles/{text}.wprofile"]
    shipped = (resources() / name for name in kept)
    return next((item for item in shipped if item.is_file()), path)


def log_named(source: str | None) -> Path | None:
    """The log or recording over time that the user names; None for anything else."""
    from ...sensors.recorded.gpu import is_own
    from ...sensors.recorded.logs.read import is_log

    path = None if source is None else recording_path(source)
    if path is None or not is_input(path):
        return None
    return path if is_own(path) or is_log(path) else None


def specification_path(text: str) -> Path:
    """A file, an example by its name, or the specification of an operator, which is kept in the data folder.

    Raises InputError for an operator that makes no sense and for a name that nothing has, and WattridgeError where
    nothing can be written.
    """
    path = Path(text)
    if is_there(path):
        return path
    if is_operator(text):
        return kept_specification(parse_operator(text))
    if text in plugins("workloads"):
        return Path(call("workloads", text))
    paths = examples()
    if text not in paths and path.name == text and not path.suffix:
        raise InputError("there is neither a file nor an example of that name", text, "see `wattridge examples`")
    return paths.get(text, path)


def is_specification(text: str) -> bool:
    """Whether it names a specification: a file in TOML, an example or an operator."""
    return Path(text).suffix.lower() == ".toml" or is_operator(text) or text in examples()


def examples() -> dict[str, Path]:
    """The specifications and scripts that come with the program, by their file without its suffix, and plug-ins'."""
    files = sorted((resources() / "examples").rglob("*"))
    found = {path.stem: path for path in files if path.suffix in (".toml", ".py")}
    for name in plugins("workloads"):
        with suppress(WattridgeError):  # the others are not concerned
            found[name] = Path(call("workloads", name))
    return found


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
    from ..store.database import Store

    with Store() as store:
        return stored_session(store, newest_session(store, "sessions") if number is None else number)


def _recorded(path: Path, columns: TableColumns | None, on_columns: Callable[[Listing], None]) -> Opened:
    from ..formats.read import read_recording
    from ..formats.roles import listing_of
    from ..results.objectives import Objective
    from .planning import plan_replay

    recording = read_recording(path, columns)
    if recording.columns:
        on_columns(listing_of(recording.columns))
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
