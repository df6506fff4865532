"""Any table of measurements as a recording: CSV, Parquet, JSON lines, or a folder with one JSON file per point.

Which columns are parameters and which are figures is guessed from the header, or said by the user (`TableColumns`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NoReturn

from ...base.errors import InputError
from ...base.files import open_input, read_text, text_chunks, text_lines
from ...base.installation import how_to_add_package
from ...base.text import json_or_none
from ..results.measurement import State, Value
from ..results.objectives import Goal, Objective, likely_goal
from ..space.search_space import MIXED_KERNELS
from ..space.values import is_value
from .columns import Columns, parse_columns
from .entries import as_number, is_figure
from .kinds import first_character, is_json_lines
from .names import DEVICE_SETTINGS, SETTING_NAMES
from .recording import MAXIMUM_ENTRIES, MAXIMUM_PARAMETERS, Facts, Recording, RecordingBuilder

Cell = Value | None

REPEAT: Final = "repeat"  # the parameter that counts rows of one configuration
_LARGEST_FILE: Final = 2**20  # bytes of one point of a folder
_MOST_COLUMNS: Final = 1000
_DEEPEST: Final = 8
_DEVICES: Final = frozenset(("gpu", "gpu_name", "device", "device_name", "board"))
KERNELS: Final = frozenset(("kernel", "kernel_name"))
_NOT_CHOSEN: Final = re.compile(r"time_?stamp|date|hash|uuid|^(ts|row|index|id|unnamed.*)$", re.IGNORECASE)
_MEASURED: Final = re.compile(
    r"energy|joule|power|watt|runtime|elapsed|latency|duration|throughput|bandwidth|flop|temperature|(^|_)time"
    r"|_per_(s(ec|econd)?|w(att)?|j(oule)?)$|/s$|/j$|/w$|(^|[_ ])(tps|fps|qps|rps)$|efficien",
    re.IGNORECASE,
)
_IN_UNIT: Final = re.compile(r"[_ ([](s|ms|us|ns|j|mj|kj|wh|w|mw)[)\]]?$", re.IGNORECASE)
_REQUESTED: Final = re.compile(r"limit|(^|[^a-z])cap([^a-z]|$)|target|requested|locked", re.IGNORECASE)
_CLOCK: Final = re.compile(r"clock|freq|mhz|ghz", re.IGNORECASE)
_OBSERVED: Final = re.compile(
    r"avg|average|mean|median|observed|actual|effective|measured|peak|core_freq|sm_cl(oc)?k", re.IGNORECASE
)
_RATE: Final = re.compile(r"(.+?)(?:_per_s(?:ec|econd)?|/s(?:ec)?)", re.IGNORECASE)
RATE_AS_WORD: Final = re.compile(r"(.*[_ ])?(tps|fps|qps|rps)", re.IGNORECASE)
_PER: Final = tuple(
    (re.compile(rf"_per_{unit}$", re.IGNORECASE), written)
    for unit, written in (("s(ec|econd)?", "/s"), ("j(oule)?", "/J"), ("w(att)?", "/W"))
)
_KNOWN: Final = {  # what we call it -> the name without its unit, and the factor of each unit
    "time_s": (
        re.compile(r"(.*[_ .])?(run_?time|time|duration|elapsed|latency)"),
        {"s": 1.0, "sec": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9},
    ),
    "energy_j": (re.compile(r"(.*[_ .])?energy"), {"j": 1.0, "mj": 1e-3, "kj": 1e3, "wh": 3600.0}),
    "power_w": (re.compile(r"(.*[_ .])?(power|draw|drawn|actual|measured)"), {"w": 1.0, "mw": 1e-3, "kw": 1e3}),
}
_UNIT: Final = re.compile(r"(.*?)[_ ]*[\[(]?([a-z]+)[\])]?$", re.IGNORECASE)
_PIECES: Final = re.compile(r"([A-Za-z]*)[-_=.]?(\d+(?:\.\d+)?)")


@dataclass(frozen=True, slots=True)
class TableColumns:
    """Which columns are parameters and which are figures: name here -> heading. None: to be guessed."""

    parameters: Mapping[str, str] | None = None
    figures: Mapping[str, str] | None = None

    @classmethod
    def parse(cls, parameters: str | None, figures: str | None) -> TableColumns | None:
        """From 'a,b' or 'NAME=HEADING,...' as options have it; None if nothing is said. Raises InputError."""
        if not parameters and not figures:
            return None
        return cls(_named(parameters, "--parameters"), _named(figures, "--figures"))

    @property
    def options(self) -> dict[str, str]:
        """What `parse` reads these from, by the option's name; empty if a heading cannot be written so."""
        given = {"parameters": self.parameters, "figures": self.figures}
        if any(set(",=") & {*name, *heading} for named in given.values() for name, heading in (named or {}).items()):
            return {}
        return {
            option: ",".join(name if name == heading else f"{name}={heading}" for name, heading in named.items())
            for option, named in given.items()
            if named
        }


@dataclass(frozen=True, slots=True)
class Table:
    """Cells by column, all of the same length; None if a cell is empty."""

    path: Path
    columns: Mapping[str, Sequence[Cell]]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def is_numeric(self, name: str) -> bool:
        """Whether a column holds numbers only, and at least one."""
        present = [cell for cell in self.columns[name] if cell is not None]
        return bool(present) and all(isinstance(cell, int | float) and not isinstance(cell, bool) for cell in present)

    def is_complete(self, name: str) -> bool:
        """Whether every row has a value of a column."""
        return all(cell is not None for cell in self.columns[name])


def read_table(path: Path, columns: TableColumns | None = None) -> Recording:
    """A table as a recording. Raises InputError if it is none, or where it is not clear which columns are what."""
    table = read_cells(path)
    return recording_of(table, guess(table, columns))


def is_clock_sweep(path: Path) -> bool:
    """Whether a text table holds powers at the values of one clock and nothing else that was chosen.

    Raises InputError if the file cannot be read.
    """
    beginning = next(text_chunks(path), "")
    try:
        table = _of_text(parse_columns(beginning[: beginning.rfind("\n") + 1], str(path)), path)
        chosen = guess(table)
    except InputError:
        return False
    (parameter, *others) = chosen.parameters or ("",)
    return (
        not others and bool(_CLOCK.search(parameter)) and any("power" in name.lower() for name in chosen.figures or ())
    )


def read_cells(path: Path) -> Table:
    """The cells of a table, by its kind. Raises InputError."""
    if path.is_dir():
        return _of_folder(path)
    if path.suffix.lower() in (".parquet", ".pq"):
        return _of_parquet(path)
    if is_json_lines(path):
        return _of_objects(path, _lines(path))
    if first_character(path) == "[":
        return _of_objects(path, _members(path))
    return _of_text(parse_columns(read_text(path), str(path)), path)


def _guessed_parameters(
    table: Table, free: Sequence[str], measured: Sequence[str], figures: Iterable[str]
) -> dict[str, str]:
    """The columns that were chosen rather than measured: those before the first figure, if there are such."""
    place = {name: number for number, name in enumerate(table.columns)}
    chosen = [name for name in free if name not in measured and _is_chosen(name, table)]
    first = min((place[name] for name in (*measured, *figures)), default=0)
    before = [name for name in chosen if place[name] < first]
    return {name: name for name in before or chosen}


def guess(table: Table, requested: TableColumns | None = None) -> TableColumns:
    """The columns of parameters and figures: as said, and the others from the header. Raises InputError."""
    requested = requested or TableColumns()
    for option, named in (("--parameters", requested.parameters), ("--figures", requested.figures)):
        for column in (named or {}).values():
            if column not in table.columns:
                raise InputError(f"no column '{column[:60]}'", f"{table.path}, {option}", _there(table))
    taken = {*(requested.parameters or {}).values(), *(requested.figures or {}).values()}
    free = [name for name in table.columns if name not in taken]
    measured = [name for name in free if table.is_numeric(name) and _is_measured(name, table.columns[name])]
    if requested.parameters is not None:
        parameters = dict(requested.parameters)
    else:
        parameters = _guessed_parameters(table, free, measured, (requested.figures or {}).values())
    if requested.figures is not None:
        figures = dict(requested.figures)
    else:
        others = measured or [name for name in free if table.is_numeric(name)]
        figures = {_figure_name(name): name for name in others if name not in parameters.values()}
    if not parameters or not figures:
        what = "it is not clear which columns are " + ("parameters" if not parameters else "figures")
        remedy = f"name them: --parameters A,B --figures C,D. {_there(table)}"
        raise InputError(what, str(table.path), remedy)
    return TableColumns(parameters, figures)


def _remarks(table: Table, columns: TableColumns, kept: int) -> Iterator[str]:
    """What of a table is left out or mixed, where `kept` of its rows are read."""
    parameters, figures = columns.parameters or {}, columns.figures or {}
    if kept < len(table):
        yield f"{len(table) - kept} of {len(table)} rows have no number in any figure and are left out"
    first = min(list(table.columns).index(column) for column in figures.values())
    for name, column in list(table.columns.items())[:first]:
        empty = list(column).count(None)
        if 0 < empty < len(table) and not _NOT_CHOSEN.search(name):
            yield f"{name} is empty in {empty} of {len(table)} rows: it is not read as a parameter"
    for name in filter(KERNELS.__contains__, parameters):
        several = ", ".join(dict.fromkeys(map(str, table.columns[parameters[name]])))
        yield f"{MIXED_KERNELS}{several[:200]}): a best or a mean over all of them compares different work"


def recording_of(table: Table, columns: TableColumns) -> Recording:
    """The recording of a table whose columns are known. Raises InputError naming the row that cannot be read."""
    parameters, figures = columns.parameters or {}, columns.figures or {}
    where = str(table.path)
    if len(parameters) > MAXIMUM_PARAMETERS:
        raise InputError(f"{len(parameters)} parameters", where, f"at most {MAXIMUM_PARAMETERS} are read")
    configurations = _configurations(table, parameters)
    counts = _repeats(configurations)
    names = (*parameters, *((REPEAT,) if counts is not None else ()))
    builder = RecordingBuilder(table.path, names)
    cells = {name: [as_number(cell) for cell in table.columns[column]] for name, column in figures.items()}
    for row, configuration in enumerate(configurations):
        values = {name: column[row] for name, column in cells.items() if math.isfinite(column[row])}
        if not values:
            continue
        _add_known(values)
        facts = Facts(State.OK, values, intervals={}, error="", source="recorded")
        builder.add(configuration if counts is None else (*configuration, counts[row]), facts)
    same = {name.lower(): str(cells[0]) for name, cells in table.columns.items() if len(set(cells)) == 1}
    device, kernel = (next((v for n, v in same.items() if n in known), "") for known in (_DEVICES, KERNELS))
    notes = [f"a table of another tool, read with parameters: {', '.join(parameters)}; figures: {', '.join(figures)}"]
    notes += _remarks(table, columns, len(builder))
    recording = builder.finish(device=device, kernel=kernel, notes=notes)
    objective = _objective(recording.value_names)
    return replace(recording, objective=objective, read_with=columns.options, is_named=bool(kernel or not device))


# --- guessing ---------------------------------------------------------------------------------------------------------


def _is_measured(name: str, cells: Sequence[Cell]) -> bool:
    if name in SETTING_NAMES or name in DEVICE_SETTINGS:
        return False
    if _CLOCK.search(name):
        return bool(_OBSERVED.search(name))
    chosen = all(isinstance(cell, int) for cell in cells) and 2 * len(set(cells)) <= len(cells)  # tile_w: a width
    named = _MEASURED.search(name.strip()) or (_IN_UNIT.search(name.strip()) and not chosen)
    return is_figure(name, cells) or bool(named and not _REQUESTED.search(name))


def _is_chosen(name: str, table: Table) -> bool:
    """Whether a column may be a parameter: known in every row, and no stamp or number of the row."""
    cells = table.columns[name]
    if _NOT_CHOSEN.search(name) or not table.is_complete(name):
        return False
    is_constant_device = name.lower() in _DEVICES | KERNELS and len(set(cells)) == 1
    is_text_of_its_own = len(cells) > 2 and len(set(cells)) == len(cells) and all(isinstance(c, str) for c in cells)
    return not (is_constant_device or is_text_of_its_own)


def _figure_name(column: str) -> str:
    """'tokens_per_s' is called tokens/s here, where the end of a name is its unit."""
    for pattern, written in _PER:
        column = pattern.sub(written, column)
    return column


def _objective(names: Sequence[str]) -> Objective:
    """Time and energy, else a speed and an efficiency, else the first figure."""
    if {"time_s", "energy_j"} <= set(names):
        return Objective(Goal("energy_j", False), (Goal("time_s", False), Goal("energy_j", False)))
    for rate in names:
        efficiency = f"{rate[:-2]}/J" if rate.endswith("/s") else f"{rate}/W"
        if efficiency in names:
            return Objective(Goal(efficiency, True), (Goal(rate, True), Goal(efficiency, True)))
    return Objective(likely_goal(names[0] if names else "time"))


def _there(table: Table) -> str:
    names = list(table.columns)
    return f"There are: {', '.join(name[:40] for name in names[:12])}{', ...' if len(names) > 12 else ''}"


def _named(text: str | None, option: str) -> dict[str, str] | None:
    if not text:
        return None
    named: dict[str, str] = {}
    for part in text.split(","):
        name, _, column = part.partition("=")
        name, column = name.strip(), (column or name).strip()
        if not name or name in named:
            raise InputError(f"'{part[:60]}' names no column, or one twice", option, "A,B or NAME=HEADING,...")
        named[name] = column
    return named


# --- rows -------------------------------------------------------------------------------------------------------------


def _configurations(table: Table, parameters: Mapping[str, str]) -> list[tuple[Value, ...]]:
    rows: list[tuple[Value, ...]] = []
    for number, cells in enumerate(zip(*(table.columns[column] for column in parameters.values()), strict=True), 1):
        if any(cell is None for cell in cells):
            name = list(parameters)[cells.index(None)]
            raise InputError(
                f"row {number} has no value of '{name[:60]}'", str(table.path), "correct or remove the row"
            )
        rows.append(cells)
    return rows


def _repeats(configurations: Sequence[tuple[Value, ...]]) -> list[int] | None:
    """The number of each row among those of its configuration; None if no configuration comes twice."""
    seen: dict[tuple[Value, ...], int] = {}
    counts = []
    for configuration in configurations:
        seen[configuration] = seen.get(configuration, 0) + 1
        counts.append(seen[configuration])
    return counts if max(counts, default=1) > 1 else None


def _add_known(values: dict[str, float]) -> None:
    """Time, energy and power in s, J and W where a name says that it is one, and work per joule of each rate."""
    for ours, (pattern, units) in _KNOWN.items():
        for name in () if ours in values else tuple(values):
            match = _UNIT.fullmatch(name)
            if match and match[2].lower() in units and pattern.fullmatch(match[1].lower()):
                values[ours] = values[name] * units[match[2].lower()]
                break
    time_s, energy_j, power_w = (values.get(name, math.nan) for name in _KNOWN)
    if math.isnan(energy_j) and not math.isnan(power_w * time_s):
        values["energy_j"] = energy_j = power_w * time_s
    if math.isnan(power_w) and energy_j > 0 and time_s > 0:
        values["power_w"] = power_w = energy_j / time_s
    if power_w > 0:
        for name in tuple(values):
            rate = _RATE.fullmatch(name)
            if rate is not None:
                values.setdefault(f"{rate[1]}/J", values[name] / power_w)
            elif RATE_AS_WORD.fullmatch(name):
                values.setdefault(f"{name}/W", values[name] / power_w)


# --- kinds of files ---------------------------------------------------------------------------------------------------


def _of_text(columns: Columns, path: Path) -> Table:
    cells: dict[str, Sequence[Cell]] = {}
    for name, texts in columns.cells.items():
        if columns.is_numeric(name):
            numbers = columns.numbers(name).tolist()
            whole = all(re.fullmatch(r"[+-]?\d{1,18}|", text) for text in texts)
            cells[name] = [None if math.isnan(n) else int(n) if whole else n for n in numbers]
        else:
            cells[name] = [_flag(text) if text else None for text in texts]
    return Table(path, cells)


def _flag(text: str) -> Value:
    lower = text.lower()
    return lower == "true" if lower in ("true", "false") else text


def _lines(path: Path) -> Iterator[tuple[str, object]]:
    for number, line in enumerate(text_lines(path), 1):
        if line.strip():
            point = json_or_none(line)
            if not isinstance(point, dict):
                _refuse(path, f"line {number} is no JSON object")
            yield f"line {number}", point


def _members(path: Path) -> Iterator[tuple[str, object]]:
    points = json_or_none(read_text(path))
    if not isinstance(points, list) or not all(isinstance(point, dict) for point in points):
        _refuse(path, "this is no list of JSON objects")
    return ((f"object {number}", point) for number, point in enumerate(points, 1))


def _of_folder(path: Path) -> Table:
    """One JSON file per point; the numbers in the files' names that differ are parameters too."""
    files = sorted(path.glob("*.json"))
    if not files:
        raise InputError(
            "this folder holds no JSON files", str(path), "name a folder with one .json per point, or a file"
        )
    if len(files) > MAXIMUM_ENTRIES:
        raise InputError(f"more than {MAXIMUM_ENTRIES} files", str(path), "split the folder")
    pieces = [_PIECES.findall(file.stem) for file in files]
    alike = len({tuple(word for word, _ in value) for value in pieces}) == 1
    objects: list[tuple[str, object]] = []
    for file, piece in zip(files, pieces, strict=True):
        document = json_or_none(read_text(file, _LARGEST_FILE))
        if not isinstance(document, dict):
            _refuse(file, "this is no JSON object: one file must hold one point")
        named: dict[str, object] = {}
        for index, (word, number) in enumerate(piece if alike else ()):
            if len({item[index][1] for item in pieces}) > 1:
                label = word if word and word not in named and word not in document else f"file_{index + 1}"
                named[label] = float(number) if "." in number else int(number)
        objects.append((file.name, {**named, **document}))
    return _of_objects(path, iter(objects))


def _of_objects(path: Path, objects: Iterator[tuple[str, object]]) -> Table:
    """Objects of plain values, those within objects by 'outer.inner'; lists are left out."""
    cells: dict[str, list[Cell]] = {}
    count = 0
    for where, document in objects:
        if count >= MAXIMUM_ENTRIES:
            raise InputError(f"more than {MAXIMUM_ENTRIES} rows", str(path), "split the file")
        flat = dict(_flattened(document, ""))
        if len(cells.keys() | flat.keys()) > _MOST_COLUMNS:
            raise InputError(f"{where}: more than {_MOST_COLUMNS} columns", str(path), "leave out what is not needed")
        for name in flat:
            cells.setdefault(name, [None] * count)
        for name, column in cells.items():
            column.append(flat.get(name))
        count += 1
    if not count:
        raise InputError("the file holds no row", str(path), "add measurements")
    return Table(path, {name: _typed(column) for name, column in cells.items()})


def _typed(column: list[Cell]) -> list[Cell]:
    """Whole numbers among fractions are fractions."""
    if any(isinstance(cell, float) for cell in column):
        return [float(cell) if isinstance(cell, int) and not isinstance(cell, bool) else cell for cell in column]
    return column


def _flattened(document: object, prefix: str, depth: int = 0) -> Iterator[tuple[str, Cell]]:
    if not isinstance(document, dict) or depth > _DEEPEST:
        return
    for key, value in document.items():
        name = f"{prefix}{key}"[:200]
        if isinstance(value, dict):
            yield from _flattened(value, f"{name}.", depth + 1)
        elif value is None or (isinstance(value, float) and not math.isfinite(value)):
            yield name, None
        elif is_value(value):
            yield name, value


def _of_parquet(path: Path) -> Table:
    try:
        import pyarrow.parquet as parquet  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        what = "reading Parquet needs the package pyarrow, which is not installed"
        raise InputError(what, str(path), f"{how_to_add_package('pyarrow')}; or save the table as CSV") from None
    try:
        file: Any = parquet.ParquetFile(open_input(path))
        if file.metadata.num_rows > MAXIMUM_ENTRIES or file.metadata.num_columns > _MOST_COLUMNS:
            raise InputError("the table is too large", str(path), f"at most {MAXIMUM_ENTRIES} rows are read")
        read = file.read().to_pydict()
    except InputError:
        raise
    except Exception as error:  # noqa: BLE001 - pyarrow has errors of its own; whatever it is, the file is not readable
        first = (str(error) or type(error).__name__).splitlines()[0][:200]
        raise InputError(f"this is no Parquet file that can be read: {first}", str(path), "save it as CSV") from None
    rows = ({name: column[index] for name, column in read.items()} for index in range(file.metadata.num_rows))
    return _of_objects(path, ((f"row {place}", row) for place, row in enumerate(rows, 1)))


def _refuse(path: Path, what: str) -> NoReturn:
    raise InputError(
        what, str(path), "every line, file of a folder or member of a list must be one JSON object of plain values"
    )
