"""The cells of a table, whatever holds it: CSV, JSON, JSON lines, Parquet, SQLite, or a folder of files."""

from __future__ import annotations

import csv
import functools
import io
import itertools
import json
import math
import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np

from ...base.errors import InputError
from ...base.files import open_input, read_text, text_lines
from ...base.installation import how_to_add_package
from ...base.json_rows import flattened, rows_in
from ...base.plugins import call, plugins
from ...base.text import json_or_none
from ...base.vocabulary import HEADINGS, PATTERNS, UNITS, WORDS
from ..results.measurement import Value
from .columns import UNKNOWN, Columns, parse_columns, without_scatter
from .entries import as_number
from .headings import ANSWERING, BASE_UNIT, COUNTED, SET, Cells, Role, by_itself, words_of
from .kinds import first_character, is_json_lines
from .recording import MAXIMUM_ENTRIES
from .wide import arranged

Cell = Value | None

DATABASES: Final = (".sqlite", ".sqlite3", ".db")
_LARGEST_FILE: Final = 2**20  # bytes of one point of a folder
_NO_OBJECTS: Final = "no list of JSON objects is in it"
_ONE_OBJECT: Final = "every line, file of a folder or member of a list must be one JSON object of plain values"
_FLAGS: Final = {"true": True, "false": False}
_MOST_COLUMNS: Final = 1000
_PIECES: Final = re.compile(r"([A-Za-z]*)[-_=.]?(\d+(?:\.\d+)?)")
_WITH_UNIT: Final = re.compile(r"([+-]?\d+\.?\d*|[+-]?\.\d+) ?([^\d\s()]\S*)(?: \([^()]*\))?")
_SAID_UNIT: Final = re.compile(r"(\w+) (?:is |are )?in (\w+)")
_POWER_OF_TEN: Final = re.compile(r"(.*[\[(]) *(?:[x×*·] ?)?(?:10 ?(?:\^|\*\*) ?|1e)([+-]?\d{1,2}) +([A-Za-zµ]+[\])])")
_SCALED: Final = (
    "is taken times the power of ten in its heading: it is not certain, some write there by what it was multiplied"
)
_SIDES: Final = "CPU and GPU are read as doing the same work: it is not certain, both times may be parts of one run"
_DURATION: Final = re.compile(r"(?:(\d+)-)?(\d+):(\d\d):(\d\d(?:\.\d+)?)")  # days, hours, minutes and seconds
_PANEL: Final = re.compile(  # of results, as a benchmark prints it
    r"(?:^=+ ?[^=\n]*\w[^=\n]*=+\n|^=+\n= PERFORMANCE OVERVIEW *\n=+\n)(.+?)(?:^=+$|\Z)", re.MULTILINE | re.DOTALL
)
_SETTING: Final = re.compile(r"(?:(?<!\S)--([A-Za-z][\w-]*)[ =]|(\w+)=)((?!-)[\w.+-]*\w)")  # '--batch 8', 'batch=8'
_PRINTED: Final = re.compile(r"^ *([^:\n]*\w[^:\n]*):[ \t]+(\S+)[ \t]*$", re.MULTILINE)
_PAIR: Final = re.compile(  # a name, a value, and its unit
    r"([A-Za-z_][\w./]*)\s*(?:=\s*|:\s*(?=[-+.\d]))([^\s,;|=]+)"
    r"(?:[ \t]*\[?([A-Za-zµ%][A-Za-zµ%/]*)\]?(?=[,;|\s]|$)(?!\s*=))?"
)
_AMOUNT: Final = re.compile(  # perhaps a name, a number, and its unit
    r"(?:(?P<name>[A-Za-z]\w*)\s*[:=]\s*)?"
    r"(?P<amount>(?<![\w.])\(?(?P<number>[-+]?\d[\d,]*\.?\d*(?:[eE][-+]?\d+)?)\)?"
    r"[ \t]*(?P<unit>[A-Za-zµ][A-Za-zµ/]*)(?!\w))"
)
_DATED: Final = re.compile(r"\W?\d{1,4}[-/.:]\d\d[-/.:]\d\d")
_NAMES: Final = re.compile(r"[A-Za-z]{3,}|\s|\dx\d")
_NUMBER_BEHIND: Final = re.compile(r"(?<!\w)([A-Za-z_]+)[ =:]*(\d+\.?\d*)(?!\S*\w)")  # a word: 'size 1024'
_RULE: Final = re.compile(r"\|?[-:| ]*-[-:| ]*")  # below the header of a table in Markdown
_OF_UNITS: Final = ("unit", "units")
_MEANS: Final = ("value", "mean", "avg", "average", "median")  # the plainest first
_FEWEST_PAIRS: Final = 3  # lines
_TABLES: Final = (".csv", ".tsv", ".psv")
NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


@dataclass(frozen=True, slots=True)
class Table:
    """Cells by column, all of the same length; None if a cell is empty."""

    path: Path
    columns: Mapping[str, Sequence[Cell]]
    notes: tuple[str, ...] = ()  # on what was left out or joined
    roles: Mapping[str, Role] = field(default_factory=dict)  # that its format states, by heading
    _read: dict[str, Cells] = field(default_factory=dict, repr=False, compare=False)
    judged: list[Any] = field(default_factory=list, init=False, repr=False, compare=False)  # of `column_roles`, last

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def having(self, columns: Mapping[str, Sequence[Cell]], *notes: str) -> Table:
        """Hold other columns, with more notes; what is known of a heading stays known."""
        if (
            not notes
            and columns.keys() == self.columns.keys()
            and all(columns[n] is c for n, c in self.columns.items())
        ):
            return self
        roles = {heading: role for heading, role in self.roles.items() if heading in columns}
        read = {name: cells for name, cells in self._read.items() if columns.get(name) is self.columns[name]}
        return Table(self.path, columns, (*self.notes, *notes), roles, read)

    def of_rows(self, rows: Iterable[int], note: str) -> Table:
        """Hold only these rows, in the table's order, with a note on the others."""
        kept = sorted(rows)
        return self.having({name: [cells[row] for row in kept] for name, cells in self.columns.items()}, note)

    def is_numeric(self, name: str) -> bool:
        """Whether a column holds numbers only, and at least one."""
        return isinstance(self.cells(name), np.ndarray)

    def cells(self, name: str) -> Cells:
        """A column as numbers, NaN where one is missing, or as texts."""
        if name not in self._read:
            column = self.columns[name]
            numeric = {*map(type, column)} - {type(None)} in ({int}, {float}, {int, float})
            texts = ["" if cell is None else str(cell) for cell in column if not numeric]
            self._read[name] = np.array([*map(as_number, column)]) if numeric else texts
        return self._read[name]


def read_cells(path: Path) -> Table:
    """The cells of a table, by its kind. Raises InputError."""
    if path.is_dir():
        return _of_folder(path)
    if is_of_plugin(path):
        return _of_objects(path, "row", call("formats", path.suffix[1:].lower(), path))
    if path.suffix.lower() in (".parquet", ".pq"):
        return _of_parquet(path)
    if path.suffix.lower() in DATABASES:
        return _of_database(path)
    if is_json_lines(path):
        return _of_objects(path, "line", _lines(path))
    if first_character(path) in ("[", "{"):
        document = json_or_none(read_text(path))
        return _of_objects(path, "object", _of_tuner(document) or rows_in(document) or _refuse(path, _NO_OBJECTS))
    text = read_text(path)
    known = _of_metrics(text, path)
    if path.suffix.lower() not in _TABLES:  # of which cells may hold anything
        readers = (_of_markdown, _of_printed, _of_ollama, _of_pairs, _of_amounts)
        known = known or next(filter(None, (read(text, path) for read in readers)), None)
    return known or _with_units_of_remarks(_of_arranged(parse_columns(text, str(path)), path), text)


def _with_units_of_remarks(table: Table, text: str) -> Table:
    """The table with the units that lines with # say, '# time in us, energy in mJ', in columns of their own."""
    remarks = " ".join(re.findall(r"^#.*", text, re.MULTILINE))
    said = ((name, unit) for name, unit in _SAID_UNIT.findall(remarks) if name in table.columns)
    units = {f"units.{name}": [unit] * len(table) for name, unit in said if unit.lower() in UNITS}
    return table.having({**table.columns, **units})


def _of_arranged(columns: Columns, path: Path) -> Table:
    """A table, its wide columns as rows, with a note where only the name of the file says what its cells are."""
    long = _by_quantity(arranged(columns, path.stem))
    note = f"no heading says what its cells are: the name of the file says '{path.stem[:80]}'"
    named = (note,) * (path.stem in long.cells.keys() - columns.cells.keys())
    scaled = (f"'{name}' {_SCALED}" for name in columns.cells if _POWER_OF_TEN.fullmatch(name))
    sides = {each.lower() for each in long.cells.get("implementation", ())} >= {"cpu", "gpu"}
    sides &= "implementation" not in columns.cells and not re.search("speed[-_ ]?up", " ".join(columns.cells), re.I)
    return replace(of_text(long, path), notes=(*named, *scaled, *(_SIDES,) * sides))


def _by_quantity(columns: Columns) -> Columns:
    """A row for each quantity of a run, 'kJ, 12.5' and 'minutes, 3.1', as one for each run."""
    texts = columns.cells
    named = [name for name in texts if name.lower() in HEADINGS["quantity"] and len({*texts[name]}) > 1]
    name = min(named, key=lambda each: each.lower() in _OF_UNITS, default="")
    units = next((texts[each] for each in named if each != name and each.lower() in _OF_UNITS), None)
    headings = _headings_by_kind(texts.get(name, ()), units)
    figures = [n for n in texts if any("." in cell and NUMBER.fullmatch(cell) for cell in texts[n])]
    said = _that_counts([n for n in figures if columns.is_numeric(n)])
    if not said or not _are_quantities(headings):
        return columns
    labels = [n for n in texts if n not in (*figures, *named)]
    own = [*itertools.filterfalse(lambda n: _follows(texts[n], texts[name]), labels)]
    several = len({*zip(*map(texts.__getitem__, own), strict=True)}) < len(columns)  # figures of a run
    labels = own if several else labels
    runs: dict[tuple[str, ...], dict[str, str]] = {}
    for row, kind in enumerate(texts[name]):
        run, number = runs.setdefault(tuple(texts[label][row] for label in labels), {}), texts[said][row]
        run[headings[kind]] = f"{number} {units[row]}" if units and headings[kind] == kind else number  # of several
    if len(runs) < 2 or sum(map(len, runs.values())) < len(columns):  # or one comes twice
        return columns
    return Columns(columns.where, _in_columns(runs, labels, headings.values()), 1)


def _are_quantities(headings: Mapping[str, str]) -> bool:
    """Tell whether one of the headings of kinds is known, and they are not several units of one quantity."""
    of_one = len({UNITS.get(kind.lower(), (kind,))[0] for kind in headings}) == 1
    return not of_one and any(by_itself(heading, np.ones(2)).role in ANSWERING for heading in headings.values())


def _in_columns(
    runs: Mapping[tuple[str, ...], Mapping[str, str]], labels: Sequence[str], headings: Iterable[str]
) -> dict[str, list[str]]:
    """Runs by their labels as columns; a cell that a run does not have is empty."""
    cells = dict(zip(labels, map(list, zip(*runs, strict=True)), strict=True))
    return cells | {h: [run.get(h, "") for run in runs.values()] for h in dict.fromkeys(headings)}


def _headings_by_kind(names: Sequence[str], units: Sequence[str] | None) -> dict[str, str]:
    """The heading of each quantity, with its unit where a column has them and it comes in a single one."""
    kinds = dict.fromkeys(zip(names, units or names, strict=True))
    several = Counter(kind for kind, _ in kinds)
    return {
        kind: _heading_of(kind) if units is None else kind if several[kind] > 1 else f"{kind} ({unit})"
        for kind, unit in kinds
    }


def _that_counts(numbers: Sequence[str]) -> str:
    """The heading of a mean or a value among several of numbers, or the only one; '' where that is not clear."""
    means = [heading for word in _MEANS for heading in numbers if word in words_of(heading)]
    return (*means, *numbers)[0] if means or len(numbers) == 1 else ""


def _heading_of(kind: str) -> str:
    """'energy (kJ)' for 'kJ'; what says itself what it is stays as it is."""
    return f"{UNITS[kind.lower()][0]} ({kind})" if kind.lower() in UNITS else kind


def _follows(cells: Sequence[str], kinds: Sequence[str]) -> bool:
    """Tell whether cells differ with the quantity alone, such as its unit."""
    return len({*cells}) > 1 and len({*zip(kinds, cells, strict=True)}) == len({*kinds})


def is_of_plugin(path: Path) -> bool:
    """Tell whether another package reads files of that suffix."""
    return path.suffix[1:].lower() in plugins("formats")


def _of_metrics(text: str, path: Path) -> Table | None:
    """A table with a row for each metric, as AIPerf writes it for a run and Nsight Compute for kernels; else None."""
    if re.match(r"metric,(avg|value)\b", text, re.IGNORECASE):
        return _of_objects(path, "run", [dict(_metrics(text))])
    start = text.find('"ID","Process ID"')
    if start < 0 or '"Metric Value"' not in text:
        return None
    launches: dict[str, dict[str, object]] = {}
    for row in csv.DictReader(io.StringIO(text[start:])):
        named = {name: row[name] for name in ("Block Size", "Grid Size") if row.get(name)}
        launch = launches.setdefault(row["ID"], {"kernel": row.get("Kernel Name"), **named})
        heading = f"{row.get('Metric Name')} ({row.get('Metric Unit')})"
        value = (row.get("Metric Value") or "").replace(",", "")
        launch[heading] = float(value) if NUMBER.fullmatch(value) else value
    return _of_objects(path, "launch", launches.values())


def _of_markdown(text: str, path: Path) -> Table | None:
    """The tables between lines of text that have one header, by the titles above; None without one."""
    tables: dict[tuple[str, ...], list[tuple[str, list[str]]]] = {}
    above, title, header, barred = dict[int, str](), "", tuple[str, ...](), False
    if re.search(r"\|[ *]*\d+\.\d+[ *]*\|", text):  # then a comma parts thousands
        text = re.sub(r"(?<=[|*\s])\d{1,3}(?:,\d{3})+(?=[\s*|])", lambda number: number[0].replace(",", ""), text)
    lines = [line.strip() for line in text.splitlines()]
    for line, below in itertools.pairwise([*lines, ""]):
        plain = re.sub(r"\*\*|`", "", line).strip("|")
        cells = [cell.strip().partition(" ± ")[0] for cell in plain.split("|")]
        ruled = "|" in line and "|" in below and _RULE.fullmatch(below) is not None
        barred = line.startswith("|") or ruled or (barred and "|" in line)  # bars at both ends may be left out
        within = barred and len(cells) > 1 and any(cells) and not _RULE.fullmatch(line)
        if within and (not header or ruled):
            header, title = tuple(cells), "\n".join(above.values()) or f"table {len(tables) + 1}"
        elif within and len(cells) == len(header) == len({*header}):
            tables.setdefault(header, []).append((title, cells))
        elif re.match(r"[#=*]+.*\w", line):
            level = len(line) - len(line.lstrip("#"))
            above = {at: heading for at, heading in above.items() if at < level} | {level: line.strip("#=*: ")}
    read = (
        dict(_titles(rows)) | dict(zip(names, zip(*(cells for _, cells in rows), strict=True), strict=True))
        for names, rows in tables.items()
    )
    return _first_that_answers([Columns(str(path), each, 1) for each in read], path)


def _titles(rows: Sequence[tuple[str, Sequence[str]]]) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield a column of the headings above rows, as far as they differ."""
    levels = [level for level in zip_longest(*(title.split("\n") for title, _ in rows)) if len({*level}) > 1]
    titles = [" ".join(filter(None, parts)) for parts in zip(*levels, strict=True)]
    named = {
        kind: all(PATTERNS[kind].search(each) for each in titles if each) for kind in ("programs", "models", "devices")
    }
    if titles:
        yield "kernel" if named["programs"] or named["models"] else "device" if named["devices"] else "setup", titles


def _first_that_answers(tables: Sequence[Columns], path: Path) -> Table | None:
    """Of tables with other headings the longest of those with a figure that is known, else of all; None of none."""
    read = [of_text(columns, path) for columns in tables]
    known = [t for t in read if {by_itself(name, t.cells(name)).role for name in t.columns} & {*ANSWERING}]
    chosen = max(known or read, key=len, default=None)
    others = len(read) - 1
    note = f"{others} other tables of the file have other headings and are left out"
    return chosen if chosen is None or not others else replace(chosen, notes=(*chosen.notes, note))


def _of_printed(text: str, path: Path) -> Table | None:
    """A table with a row for each panel of results in what was printed, by the settings before it; None without one."""
    panels = [panel for panel in _PANEL.finditer(text) if _PRINTED.search(panel[1])]
    before = [text[end : panel.start()] for end, panel in zip([0, *(p.end() for p in panels)], panels, strict=False)]
    said = [{one or two: value for one, two, value in _SETTING.findall(words)} for words in before]
    names = {name for one in said for name in one} - WORDS["of_a_process"]
    differ = {name for name in names if len({each.get(name) for each in said}) > 1}
    settings = [{name: value for name, value in one.items() if name in differ} for one in said]
    rows = [{**one, **dict(_PRINTED.findall(panel[1]))} for one, panel in zip(settings, panels, strict=True)]
    known = (name for name in differ if all(name in one for one in settings))
    roles = {name: Role.PARAMETER for name in known if by_itself(name, np.ones(2)).why == COUNTED}  # --num-prompts
    return replace(_of_objects(path, "panel", rows), roles=roles) if rows else None


def _of_pairs(text: str, path: Path) -> Table | None:
    """A table with a row for each of the lines 'block=32, time=1.2 ms' among others; None where there are few."""
    lines = [line for line in text.splitlines() if line.strip()]
    found = [[(name, f"{value} {unit}".strip()) for name, value, unit in _PAIR.findall(line)] for line in lines]
    names = Counter(tuple(name for name, _ in pairs) for pairs in found if len(pairs) > 1)
    header, count = max(names.items(), key=lambda each: each[1], default=((), 0))
    if count < _FEWEST_PAIRS or 2 * count < len(lines) or len({*header}) < len(header):
        return None
    rows = [[value for _, value in pairs] for pairs in found if tuple(name for name, _ in pairs) == header]
    return of_text(Columns(str(path), dict(zip(header, zip(*rows, strict=True), strict=True)), 1), path)


def _of_amounts(text: str, path: Path) -> Table | None:
    """A table of the lines 'naive: 1.2 ms, 3.4 TFLOP/s' among others, under the titles above; None where there are few.

    Numbers behind words that all lines have are columns; what else differs is a line's name.
    """
    lines = _lines_of_amounts(without_scatter(text))
    if len(lines) < _FEWEST_PAIRS or 2 * len(lines) < sum(any(map(str.isdigit, line)) for line in text.splitlines()):
        return None
    if len({(amount["name"], amount["unit"]) for amount in lines[0][2]}) < len(lines[0][2]):
        return None  # an interval
    same = [len({amount["name"] for amount in each}) == 1 for each in zip(*(each for *_, each in lines), strict=True)]
    rows = [_named_and_measured(line, [*zip(amounts, same, strict=True)]) for _, line, amounts in lines]
    if len({(title, row["name"]) for (title, *_), row in zip(lines, rows, strict=True)}) < len(rows):
        return None  # what tells lines of one name apart stands elsewhere
    there = [name for name in rows[0] if all(name in row for row in rows) and len({row[name] for row in rows}) > 1]
    above_them = dict(_titles([(title, ()) for title, *_ in lines]))
    return of_text(Columns(str(path), {**above_them, **{name: [row[name] for row in rows] for name in there}}, 1), path)


def _lines_of_amounts(text: str) -> list[tuple[str, str, list[re.Match[str]]]]:
    """Most lines with amounts in the same units, each with the title above it and its amounts."""
    found: dict[tuple[str, ...], list[tuple[str, str, list[re.Match[str]]]]] = {}
    above = ""
    for line in map(str.strip, text.splitlines()):
        amounts = [amount for amount in _AMOUNT.finditer(line) if _says_what_it_is(amount["unit"])]
        if amounts and not _DATED.match(line):  # of a log
            found.setdefault(tuple(amount["unit"] for amount in amounts), []).append((above, line, amounts))
        elif re.match(r"[#=*]+.*\w", line):
            above = line.strip("#=*: ")
    return max(found.values(), key=len, default=[])


def _named_and_measured(line: str, amounts: Sequence[tuple[re.Match[str], bool]]) -> dict[str, str]:
    """The name of a line, numbers behind words in it, and its amounts, under their names where all lines have them."""
    rest = line
    for amount, known in amounts:
        rest = rest.replace(amount[0] if known else amount["amount"], "\t", 1)
    values = {
        f"{(known and amount['name']) or 'measured'} ({amount['unit']})": amount["number"].replace(",", "")
        for amount, known in amounts
    }
    return {"name": re.sub(r"[\s|,:=@]+", " ", rest).strip(" -"), **dict(_NUMBER_BEHIND.findall(rest)), **values}


@functools.lru_cache(maxsize=4096)
def _says_what_it_is(unit: str) -> bool:
    return unit != "ops" and by_itself(f"measured ({unit})", np.array([0.5, 1.5])).role in ANSWERING


def _of_ollama(text: str, path: Path) -> Table | None:
    """A table with a row for each rate that ollama printed, by the model named above it; None without one."""
    rows, model = list[dict[str, object]](), ""
    for named, rate in PATTERNS["ollama"].findall(text):
        model = named or model
        rows += [{"model": model, "tokens_per_s": float(rate)}] if model and rate else []
    return _of_objects(path, "rate", rows) if rows else None


def _metrics(text: str) -> Iterator[tuple[str, object]]:
    """The value or mean of each metric of a run, and high percentiles of its latencies."""
    header: list[str] = []
    for row in csv.reader(io.StringIO(text)):
        if row and row[0].lower() == "metric":
            header = [name.lower() for name in row]
        elif len(row) > 1 and header:
            cells = dict(zip(header, row, strict=False))
            name = f"{row[0]} ({unit})" if (unit := cells.get("unit")) else row[0]
            late = "latency" in row[0].lower() or "time to" in row[0].lower()
            for column in ("avg", "value", *(("p50", "p99") if late else ())):
                if NUMBER.fullmatch(value := cells.get(column, "").replace(",", "")):
                    yield name if column in ("avg", "value") else f"{name} {column}", float(value)
                elif column == "value" and value:
                    yield name, value


def of_text(columns: Columns, path: Path) -> Table:
    """A table of the numbers and texts in these cells; of a row called 'mean' below numbers only a note is left."""
    cells: dict[str, Sequence[Cell]] = {}
    end, rows = _end_of_numbers(columns), len(columns)
    with_units = (_with_units_above(name, texts[:end]) for name, texts in columns.cells.items())
    columns = replace(columns, cells=dict(with_units), _read={})
    failed = {
        name: ["" if cell[:1].isalpha() and PATTERNS["bad"].search(cell) else cell for cell in texts]
        for name, texts in columns.cells.items()
        if any(cell[:1].isalpha() for cell in texts) and columns.is_numeric(name)
    }
    columns = replace(columns, cells={**columns.cells, **failed})  # 'out of memory' in place of a time
    for name, texts in columns.cells.items():
        if columns.is_numeric(name) and not _has_words(name, texts):
            numbers = columns.numbers(name).tolist()
            whole = all(re.fullmatch(r"[+-]?\d{1,18}|", text) for text in texts)
            cells[name] = [None if math.isnan(n) else int(n) if whole else n for n in numbers]
            if math.inf in numbers and all(n.is_integer() for n in numbers if math.isfinite(n)):  # without a bound
                cells[name] = [text or None for text in texts]
        else:
            cells[name] = [_FLAGS.get(text.lower(), text or None) for text in texts]
    return Table(path, cells, (left_out_below(rows - end),) * (end < rows))


def _end_of_numbers(columns: Columns) -> int:
    """Count the rows above those that are called 'mean' or the like in a column of numbers."""
    end = len(columns)
    while end > 1 and any(
        sums_up(texts[end - 1]) and columns.is_numeric(name) for name, texts in columns.cells.items()
    ):
        end -= 1
    return end


def sums_up(cell: str, *, with_extremes: bool = True) -> bool:
    """Tell whether a cell says that its row sums up those above it: 'mean', '**Avg**', and 'best' among extremes."""
    kinds = ("summary", "extreme") if with_extremes else ("summary",)
    return any(PATTERNS[kind].fullmatch(cell.strip("*_ ")) for kind in kinds)


def left_out_below(rows: int) -> str:
    """The note on rows that sum up the others."""
    return f"the last {'row sums' if rows == 1 else f'{rows} rows sum'} up the others and {are(rows)} left out"


def are(count: int) -> str:
    """The verb of so many."""
    return "is" if count == 1 else "are"


def _with_units_above(name: str, cells: Sequence[str]) -> tuple[str, Sequence[str]]:
    """'75.1 W (mean)' in all cells of a column are 75.1, and W stands in its heading; 'kJ' beside 'J' becomes J."""
    if {*words_of(name)} & WORDS["time"] and all(map(_DURATION.fullmatch, cells)):
        return f"{name} (s)", [*map(_seconds, cells)]
    if (scaled := _POWER_OF_TEN.fullmatch(name)) and all(map(NUMBER.fullmatch, cells)):  # 'time (x10^-3 s)'
        return f"{scaled[1]}{scaled[3]}", [f"{float(cell) * 10.0 ** int(scaled[2]):.12g}" for cell in cells]
    cells = _in_one_unit(cells)
    found = [_WITH_UNIT.fullmatch(cell) for cell in cells if cell.lower() not in UNKNOWN]
    units = {each and each[2] for each in found}
    unit = units.pop() or "" if len(units) == 1 else ""
    whole = not any("." in cell for cell in cells)
    if (len(unit) == 1 and unit.islower() and whole) or not (unit.lower() in UNITS or "/" in unit):  # '4c' are cores
        return name, cells
    numbers = [each[1] if (each := _WITH_UNIT.fullmatch(cell)) else "" for cell in cells]
    column = by_itself(name, np.array([as_number(json_or_none(number)) for number in numbers]))
    known = column.role not in (Role.PARAMETER, Role.FIGURE) and not math.isnan(column.scale)
    return name if known else f"{name} ({unit})", numbers


def _in_one_unit(cells: Sequence[str]) -> Sequence[str]:
    """'1.2 kJ' beside '950 J' are 1200 J and 950 J; the cells themselves where they are not in several units of one."""
    if not any(cell[-1:].isalpha() for cell in cells):
        return cells
    found = [_WITH_UNIT.fullmatch(cell) for cell in cells]
    scales = {each[2]: UNITS.get(each[2].lower(), ("", 1.0)) for each in found if each}
    quantities = {quantity for quantity, _ in scales.values()}
    if len(scales) < 2 or len(quantities) > 1 or not quantities <= BASE_UNIT.keys():
        return cells
    (unit,) = map(BASE_UNIT.__getitem__, quantities)
    alike = (f"{float(each[1]) * scales[each[2]][1]:.12g} {unit}" if each else "" for each in found)
    return [one or cell for one, cell in zip(alike, cells, strict=True)]


def _seconds(cell: str) -> str:
    """'1-02:03:04.5' in seconds: days, hours, minutes and seconds."""
    days, hours, minutes, seconds = (float(part or 0) for part in re.findall(_DURATION, cell)[0])
    return f"{((days * 24 + hours) * 60 + minutes) * 60 + seconds:.10g}"


def _has_words(name: str, texts: Sequence[str]) -> bool:
    """Tell whether words among numbers are no cells to correct: one comes again, stamps, or names among choices."""
    written = (text for text in texts if text[:1].isalpha() or text[-1:].isalpha())
    words = [text for text in written if text.lower().lstrip("+-") not in UNKNOWN | {"inf", "infinity"}]
    stamps, chosen = PATTERNS["stamp"].search(name.lower()), WORDS["chosen"] & {*words_of(name)}
    if any(map(_NAMES.search, words)):  # and no slip of a key
        numbers = np.array([as_number(json_or_none(text)) for text in texts])
        if by_itself(name, numbers).role in (*SET, Role.WORK):
            return True
    named = stamps or (chosen and any(re.match(r"[A-Za-z]{3,}[-_ ]", text) for text in texts))
    ran = words and name.lower() in HEADINGS["board"] | HEADINGS["kernel"]
    return len(words) > len(set(words)) or (bool(named or ran) and not all(map(NUMBER.fullmatch, texts)))


def _lines(path: Path) -> Iterator[object]:
    for number, line in enumerate(text_lines(path), 1):
        if line.strip():
            point = json_or_none(line)
            if not isinstance(point, dict):
                _refuse(path, f"line {number} is no JSON object")
            yield from _of_tuner(point) or [point]


def _of_tuner(document: object) -> list[dict[str, Any]]:
    """Rows of what TVM's two tuners or Triton's autotuner write in forms of their own; none of any other object."""
    match document:
        case {"input": [target, work, given, *_], "config": {"entity": list(knobs)}, "result": [times, error, *_]}:
            named = {knob[0]: " ".join(map(str, knob[2:])).strip("[]") for knob in knobs if len(knob) > 2}
            return [{"kernel": f"{work} {json.dumps(given)}", "target": target, **named, **_timed(times, error)}]
        case {"i": [[str(work), *_], [_, list(steps)]], "r": [times, error, *_]}:
            return [{"kernel": work, "schedule": json.dumps(steps), **_timed(times, error)}]
        case {"configs_timings": list(timings)}:
            pairs = [
                each for each in timings if isinstance(each, list) and len(each) == 2 and isinstance(each[0], dict)
            ]
            times = [time[0] if isinstance(time, list) and time else time for _, time in pairs]  # the median first
            return [{**config, "time_ms": time} for (config, _), time in zip(pairs, times, strict=True)]
    return []


def _timed(times: object, error: object) -> dict[str, Any]:
    """The mean of the times in s, or how it failed."""
    if isinstance(times, list) and times and error == 0:
        return {"time_s": math.fsum(map(as_number, times)) / len(times)}
    return {"error": f"error {error}"}


def _of_folder(path: Path) -> Table:
    """One JSON file per point; the numbers in the files' names that differ are parameters too."""
    files, what = sorted(path.glob("*.json")), "this folder holds no JSON files"
    if not files:
        raise InputError(what, str(path), "name a folder with one .json per point, or a file")
    if len(files) > MAXIMUM_ENTRIES:
        raise InputError(f"more than {MAXIMUM_ENTRIES} files", str(path), "split the folder")
    pieces = [_PIECES.findall(file.stem) for file in files]
    alike = len({tuple(word for word, _ in value) for value in pieces}) == 1
    objects: list[object] = []
    for file, piece in zip(files, pieces, strict=True):
        document = json_or_none(read_text(file, _LARGEST_FILE))
        if not isinstance(document, dict):
            _refuse(file, "this is no JSON object: one file must hold one point")
        named: dict[str, object] = {}
        for index, (word, number) in enumerate(piece if alike else ()):
            if len({item[index][1] for item in pieces}) > 1:
                label = word if word and word not in named and word not in document else f"file_{index + 1}"
                named[label] = float(number) if "." in number else int(number)
        objects.append({**named, **document})
    return _of_objects(path, "file", objects)


def _of_objects(path: Path, kind: str, objects: Iterable[object]) -> Table:
    """Objects of plain values, those within objects by 'outer.inner'; lists are left out. Errors call one a `kind`."""
    cells: dict[str, list[Cell]] = {}
    count = 0
    for count, document in enumerate(objects, 1):
        if count > MAXIMUM_ENTRIES:
            raise InputError(f"more than {MAXIMUM_ENTRIES} rows", str(path), "split the file")
        flat = dict(flattened(document))
        if len(cells.keys() | flat.keys()) > _MOST_COLUMNS:
            what = f"{kind} {count}: more than {_MOST_COLUMNS} columns"
            raise InputError(what, str(path), "leave out what is not needed")
        for name in dict.fromkeys((*cells, *flat)):
            cells.setdefault(name, [None] * (count - 1)).append(flat.get(name))
    if not count:
        raise InputError("the file holds no row", str(path), "add measurements")
    return Table(path, {name: _typed(column) for name, column in cells.items()})


def _typed(column: list[Cell]) -> list[Cell]:
    """Numbers that are written as texts are numbers, and whole numbers among fractions are fractions."""
    texts = [cell for cell in column if isinstance(cell, str)]
    if texts and all(cell is None or isinstance(cell, str) for cell in column) and all(map(NUMBER.fullmatch, texts)):
        whole = all(re.fullmatch(r"[+-]?\d{1,18}", text) for text in texts)
        return [None if cell is None else int(cell) if whole else float(cell) for cell in column]
    if any(isinstance(cell, float) for cell in column):
        return [float(cell) if isinstance(cell, int) and not isinstance(cell, bool) else cell for cell in column]
    return column


def _of_database(path: Path) -> Table:
    """The table with the most rows of an SQLite database, opened to be read only."""
    if not path.is_file():
        raise InputError("no such file", str(path), "check the path")
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as db:
            names = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            quoted = ['"' + name.replace('"', '""') + '"' for name in names]
            counts = {name: db.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in quoted}
            chosen = max(counts, key=lambda name: counts[name], default="")
            if not chosen or counts[chosen] > MAXIMUM_ENTRIES:
                raise InputError("the database holds no table that can be read", str(path), "save the table as CSV")
            read = db.execute(f"SELECT * FROM {chosen}")
            heads = [column[0] for column in read.description]
            rows = [dict(zip(heads, row, strict=True)) for row in read]
    except sqlite3.Error as error:
        raise InputError(f"this is no SQLite database that can be read: {error}", str(path), "save it as CSV") from None
    return _of_objects(path, "row", rows)


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
    return _of_objects(path, "row", rows)


def _refuse(path: Path, what: str) -> NoReturn:
    raise InputError(what, str(path), _ONE_OBJECT)
