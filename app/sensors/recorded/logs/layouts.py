"""How the lines of a log are laid out, by its beginning: those of the known tools, and plain tables of readings.

What a column of a log holds, by its heading: a time, a board, or a channel and the unit it is written in.
"""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

import numpy as np

from ....base.text import float_or_none
from ....base.vocabulary import (
    BOARDS,
    CHANNELS,
    HEADINGS,
    LOG_NOTES,
    LOG_PATTERNS,
    LOG_ROLES,
    LOG_TOOLS,
    LOG_UNITS,
    PATTERNS,
    UNITS,
    WORDS,
)
from ...channel import CHANNELS as KNOWN
from .cells import Block, is_clock, stamps_of

_BRACKETED: Final = re.compile(r"\s*[\[(]([^\[\]()]*)[\])]\s*$")
_NUMBERED: Final = re.compile(r"\b(?:gpus?|devices?|cards?|accel|[nthx]pu)[ _]?(\d{1,3})\b")
_TENTHS: Final = re.compile(r"[x×*]? ?(0\.0*1|10+) ?([mk]?(?:wh?|j))")  # of units: '0.1 W', 'x10 W'
_DURATION: Final = re.compile(r"\d+(ms|s|sec|m|min|h)")  # over which a power is averaged


@dataclass(frozen=True, slots=True)
class Heading:
    """One column. `role` is time, day, unit, board, name, driver, phase, part, channel or '' for what is not read."""

    text: str
    role: str
    channel: str = ""
    scale: float | None = None  # to the channel's unit, of times to s; None if the heading names no unit
    board: str = ""  # its number in the heading, where a row holds several: 'GPU1'; or what tells boards apart
    doubt: int = 0  # of a power: 1 says by the words of the heading that it is a board's, 2 none, RAIL a part
    usual: float | None = None  # the scale of numbers whose unit nothing names, where it is known


def heading(text: str, unit: str = "") -> Heading:
    """What a heading says; `unit` is that of a second line, as dmon writes it."""
    text = " ".join(text.split())
    lower = re.sub(r"\b(kilo|milli|mega) (?=watt)", r"\1", text.lower())
    if (bracketed := _BRACKETED.search(lower)) and _is_unit(bracketed[1].strip()):
        lower, unit = lower[: bracketed.start()], unit or bracketed[1]
    unit = unit.strip().lower()
    words = re.sub(r"([^\w%]|_)+", " ", lower).strip()
    if words in ("date", "time", "day") and not unit:
        return Heading(text, "day" if words != "time" else "time")
    quantity, scale = UNITS.get(unit or words.rpartition(" ")[2], ("", None))
    if (LOG_PATTERNS["time"].fullmatch(words) or text == "_runtime") and quantity != "temperature":  # 'T [°C]'
        return Heading(text, "time", scale=scale if quantity == "time" else None)
    if words in BOARDS:
        return Heading(text, "board", board=BOARDS[words])
    if words in LOG_ROLES or LOG_PATTERNS["reason"].match(words):
        return Heading(text, LOG_ROLES.get(words, ""))
    if not unit and words in ("w", "mw", "kw"):  # a unit alone
        unit, words = words, "power"
    *others, last = words.split() or [""]
    if others and last in UNITS and not unit:
        unit, words = last, " ".join(others)
    if lower == "power.draw":  # of nvidia-smi; LACT's 'Power Draw' is another one
        words = "power draw average"
    return _channel_of(text, words, unit)


def _channel_of(text: str, words: str, unit: str) -> Heading:
    """The channel that a heading names; '' where it names none."""
    rail = LOG_PATTERNS["rail"].fullmatch(words)
    if rail and "power" in words.split():
        own, doubt = (text[slice(*rail.span("rail"))], RAIL) if rail["rail"] != "tot" else ("", 2)
        role = "" if rail["mean"] else "channel"
        return Heading(text, role, "power_instant_w", scale_of(unit), own, doubt, 1e-3)
    numbered = _NUMBERED.search(words)
    board = numbered[1] if numbered else ""
    if numbered:
        words = " ".join(_NUMBERED.sub(" ", words).split()) or "power"
    for channel, pattern in CHANNELS.items():
        if pattern.fullmatch(words) and may_be_in(unit, channel):
            return Heading(text, "channel", channel, scale_of(unit), board)
    if LOG_PATTERNS["whole_energy"].fullmatch(words) and may_be_in(unit, "energy_j"):
        return Heading(text, "channel", "energy_j", scale_of(unit), board, 2)
    if LOG_PATTERNS["other_power"].fullmatch(words) and may_be_in(unit, "power_instant_w"):
        doubt = 1 if board or LOG_PATTERNS["of_a_board"].match(words) else 2
        return Heading(text, "channel", "power_instant_w", scale_of(unit), board, doubt)
    if (node := LOG_PATTERNS["node"].fullmatch(words)) and UNITS.get(unit, ("",))[0] == "power":
        return Heading(text, "channel", "power_instant_w", scale_of(unit), node["board"] or "")
    return Heading(text, "")


def scale_of(unit: str) -> float | None:
    """The factor from a unit to that of its channel; None for an unknown one."""
    unit = unit.strip().lower()
    times = _TENTHS.fullmatch(unit)
    return float(times[1]) * UNITS[times[2]][1] if times else UNITS.get(unit, ("", None))[1]


def may_be_in(unit: str, channel: str) -> bool:
    """Whether a channel's values may be in that unit: a power in % of a limit is none, nor a fan in turns a minute."""
    own, unit = KNOWN[channel].unit.lower(), _TENTHS.sub(r"\2", unit)
    return unit in ("", own) or UNITS.get(unit, ("", 0.0))[0] == UNITS.get(own, ("none", 0.0))[0]


def _is_unit(lower: str) -> bool:
    return scale_of(lower) is not None or lower in ("", "rpm", "mb/s") or lower.startswith("%")


_LOOKED_AT: Final = 50  # lines, for how many cells there are
_BY_UNIT: Final = {  # the channels that cells of a unit hold, in the order in which nvidia-smi is usually asked
    "W": ("power_average_w", "power_limit_w"),
    "%": ("utilisation_percent", "memory_utilisation_percent"),
    "MiB": ("memory_used_mib",),
    "MHz": ("sm_clock_mhz", "memory_clock_mhz"),
    "C": ("temperature_c", "memory_temperature_c"),
}
POWERS: Final = ("power_instant_w", "power_average_w")
DRAWN: Final = (*POWERS, "energy_j")  # either is what a board draws
_OF_ALL: Final = "HWiNFO"  # logs all of a machine: what is not said to be the GPU's is not
RAIL: Final = 3  # how doubtful it is that the power of a rail is that of its board
_RAILS: Final = ("VDD_IN", "POM_5V_IN")  # of the whole board, as tegrastats names them
_OF_A_SECOND: Final = ("power.draw", *_RAILS)  # what tools log once a second by default
DELIMITERS: Final = ";,\t"  # in 'a, W; b, W' the first one
_SMI_STAMP: Final = re.compile(r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{3}")  # which nvidia-smi alone writes so
_TURNS_IN: Final = 200  # lines, of which the texts of boards take turns
_MOST_ABOVE: Final = 20  # lines on the machine, above the headings
_DCGM_UNITS: Final = {"POWER": "W", "POWINST": "W", "PMLMT": "W", "EPLMT": "W", "TOTEC": "mJ"}
_TWO_DECIMALS: Final = "those with two decimals, as nvidia-smi writes them,"
_WORDS: Final = re.compile(r"\w")  # in a line that is no rule
_AS_POINTS: Final = bytes.maketrans(b",", b".")


@dataclass(frozen=True, slots=True)
class Layout:
    """Lines of `cells` cells, and what is in those that are read."""

    tool: str  # what wrote the log, where that is known
    delimiter: str | None  # None: any number of spaces
    cells: int
    columns: dict[int, Heading]  # by the place of the cell
    header: bytes = b""  # the line that names the columns; it may come again
    skipped: int = 0  # lines before the first one that may hold a reading
    translation: bytes | None = None  # of the bytes of every line
    step_s: float | None = None  # between readings, as far as the tool's default says, where no column holds the time
    notes: tuple[str, ...] = ()  # on the columns

    def places(self, role: str) -> list[int]:
        """The places of the columns of a role; stamps before how long it has been."""
        found = [place for place, column in self.columns.items() if column.role == role]
        return sorted(found, key=lambda at: role == "time" and "stamp" not in self.columns[at].text.lower())

    @property
    def powers(self) -> list[int]:
        """The places of the columns of power or of a counter of energy."""
        return [place for place in self.places("channel") if self.columns[place].channel in DRAWN]

    @property
    def boards(self) -> list[int]:
        """The places of what tells boards apart: the best one, and before it the host, whose boards have numbers."""
        kinds = {place: self.columns[place].board for place in self.places("board")}
        hosts = [place for place, kind in kinds.items() if kind == "host"]
        others = sorted(kinds.keys() - hosts, key=lambda place: (kinds[place], -place))  # uuid, index, bus
        return hosts[:1] + others[-1:]


def find_layout(beginning: str) -> Layout | None:
    """The layout of a log that begins so; None if it is none that is known: no power in it, or no header."""
    lines = beginning.replace("\r", "").lstrip("\n\ufeff ").split("\n")
    if lines[0][:1] in ("{", "["):
        return None
    lines[:_MOST_ABOVE] = _names_in_one(lines[: _MOST_ABOVE + 2])[:_MOST_ABOVE]
    finders = (_dmon, _dcgm, _with_header, _below_others, _without_header)
    return next((found for find in finders if (found := find(lines)) is not None and found.powers), None)


def _dmon(lines: list[str]) -> Layout | None:
    """`nvidia-smi dmon`: '# gpu pwr ...' and a line of units below, or the same with commas."""
    first = lines[0]
    words = first.lstrip("# ").replace(",", " ").split()
    if not first.startswith("#") or "gpu" not in [word.lower() for word in words[:3]] or len(words) < 2:
        return None
    row = next((line for line in lines if not line.startswith("#")), "").replace(",", " ").split()
    if row and len(row) < len(words):
        return None  # a title
    units = lines[1].lstrip("# ").replace(",", " ").split() if len(lines) > 1 and lines[1].startswith("#") else []
    units = units if len(units) == len(words) else [""] * len(words)
    units = [unit if scale_of(unit) else "" for unit in units]  # none is 'YYYYMMDD'
    columns = dict(enumerate(map(heading, words, units)))
    return Layout("nvidia-smi dmon", "," if "," in first else None, len(words), columns, step_s=1.0)


def _dcgm(lines: list[str]) -> Layout | None:
    """`dcgmi dmon`: '#Entity POWER TOTEC', a line of units, and rows that begin with 'GPU 0'."""
    if not re.match(r"#\s?Entity\b", lines[0]):
        return None
    words = ["", *lines[0].lstrip("# ").split()]
    units = [_DCGM_UNITS.get(word, "") for word in words]  # the line of units has holes, where a field has none
    columns = dict(enumerate(map(heading, words, units)))
    return Layout("dcgmi dmon", None, len(words), columns, header=b"ID", step_s=1.0)


def _with_header(lines: list[str]) -> Layout | None:
    """A line of names, separated by commas, semicolons, tabs or spaces."""
    named = (at for at, line in enumerate(lines) if not re.match(r"\s*$|#|sep=", line))
    if (header_line := next(named, None)) is None:
        return None
    first = re.split(r"[,;\t ]+", lines[header_line].strip())[0]
    if header_line and lines[header_line - 1].startswith("#") and _is_number(first):
        header_line -= 1  # '# time power' above the first reading
    line = lines[header_line].lstrip("# ")
    delimiter = _delimiter_of(line)
    read = next(csv.reader([line], delimiter=delimiter, skipinitialspace=True)) if delimiter else line.split()
    names = [name.strip().strip('"') for name in read]
    above = "\n".join((*lines[:header_line], ",".join(names)))
    tool = next((tool for tool, known in LOG_TOOLS.items() if known.search(above)), "")
    remarks = "\n".join(each for each in lines[:header_line] if each.startswith("#"))
    columns, said = _columns([_with_unit(name, remarks) for name in names], tool)
    below = lines[header_line + 1 :]
    columns |= _clock(columns, names, _rows(below, delimiter, len(names)))
    width = _width(below, delimiter, columns, len(names))
    commas = delimiter not in (None, ",") and any("," in value for value in below[:2])
    layout = Layout(
        tool,
        delimiter,
        width,
        {at: column for at, column in columns.items() if at < width},
        header=(lines[header_line].strip().replace('"', "") if delimiter else " ".join(names)).encode(),
        skipped=header_line + 1 + _is_rule(below[:1]),
        translation=_AS_POINTS if commas else None,
        step_s=1.0 if any(name.startswith(_OF_A_SECOND) for name in names) else None,
        notes=() if tool else tuple(said),
    )
    return _told_apart(layout, names, below)


def _is_rule(below: Sequence[str]) -> bool:
    """Tell whether a line below the names is '-----'."""
    return any(line.strip() and not _WORDS.search(line) for line in below)


def _with_unit(name: str, remarks: str) -> str:
    """A heading with its unit where a remark above the table names it: '# time [min], power in kW'."""
    found = re.search(rf"\b{re.escape(name)} ?(?:\[|\(|in )([^\s\]),;]+)", remarks, re.IGNORECASE) if name else None
    return f"{name} [{found[1]}]" if found and found[1].lower() in UNITS and heading(name).scale is None else name


def _told_apart(layout: Layout, names: Sequence[str], below: Sequence[str]) -> Layout:
    """Where no known column tells boards apart, as another that does: one whose texts take turns, row by row."""
    across = [*zip(*_rows(below, layout.delimiter, len(names)), strict=False)]
    known = layout.places("board") + layout.places("name")
    if not across or not layout.powers or any(len({*across[at]}) > 1 for at in known):
        return layout
    drawn, times = (across[at[0]] if at else () for at in (layout.powers, layout.places("time")))
    spoken_for = layout.columns.keys() - {*layout.places("phase"), *layout.places("part")}
    for at, name in enumerate(names):
        named = name.lower().replace("_", " ") in HEADINGS["kernel"] | HEADINGS["state"] or at in layout.columns
        if at not in spoken_for and _take_turns(across[at], drawn, times, may_differ=not named):
            board = Heading(name, "board", board="uuid")
            notes = (*layout.notes, LOG_NOTES["turns"].format(name))
            return replace(layout, columns={**layout.columns, at: board}, notes=notes)
    return layout


def _rows(below: Sequence[str], delimiter: str | None, least: int) -> list[list[str]]:
    """The cells of the first lines, of those that have at least so many."""
    lines = [line for line in below[:_TURNS_IN] if line.strip() and not line.startswith("#")]
    read = csv.reader(lines, delimiter=delimiter, skipinitialspace=True) if delimiter else map(str.split, lines)
    return [row for row in read if len(row) >= least]


def _clock(columns: Mapping[int, Heading], names: Sequence[str], rows: list[list[str]]) -> dict[int, Heading]:
    """The first column in a unit of time that rises evenly from near 0 on, as no run times do; none beside a time."""
    timed = any(each.role == "time" for each in columns.values())
    for at, name in enumerate(() if timed else names):
        quantity, scale = UNITS.get((re.findall(r"[^\W_]+", name.lower()) or [""])[-1], ("", None))
        read = [float_or_none(row[at].replace(",", ".")) for row in rows] if quantity == "time" else []
        times = np.array(read, np.float64)  # NaN where there is none
        if np.isfinite(times).all() and is_clock(np.diff(times), times[:1]):
            return {at: Heading(name, "time", scale=scale)}
    return {}


def _take_turns(cells: Sequence[str], drawn: Sequence[str], times: Sequence[str], may_differ: bool) -> bool:
    """Tell whether a few texts come again in their order, those of a turn at one time; words and 0, 1, .. `may_differ`.

    But not where most powers of a turn are the same: these are of one board.
    """
    turn = cells.index(cells[0], 1) if cells[0] in cells[1:] else 0
    if not 1 < turn <= len(cells) // 3 or len({*cells[:turn]}) < turn or cells[turn:] != cells[:-turn]:
        return False
    numbers = sorted(float(number) for each in cells[:turn] if _is_number(number := each.strip().split(" ")[0]))
    counted = not numbers or numbers == [*range(int(numbers[0] > 0), len(numbers) + int(numbers[0] > 0))]
    begins = range(0, len(cells), turn)
    differ = sum(len({*drawn[at : at + turn]}) > 1 for at in begins) > len(begins) // 2
    return differ and ((counted and may_differ) or all(len({*times[at : at + turn]}) == 1 for at in begins))


def _names_in_one(lines: list[str]) -> list[str]:
    """Names of several words, two spaces apart above rows of as many cells, in one word each; others as they are."""
    for at, line in enumerate(lines):
        names = re.split(r"\s{2,}", line.strip())
        below = next(filter(_WORDS.search, lines[at + 1 :]), "")
        if len(line.split()) > len(names) == len(below.split()) and _is_number(below.split()[-1]):
            lines[at] = " ".join("_".join(name.split()) for name in names)
    return lines


def _below_others(lines: list[str]) -> Layout | None:
    """A line of names below a few lines on the machine, which may be a table of their own: of another width."""
    for above in range(1, min(_MOST_ABOVE, len(lines) - 1)):
        below = next(filter(_WORDS.search, lines[above + 1 :]), "")
        one, other = (max(map(line.count, DELIMITERS)) or len(line.split()) - 1 for line in (lines[above], below))
        layout = _with_header(lines[above:]) if one and one == other else None
        if layout is not None and layout.powers and layout.places("time"):
            return replace(layout, skipped=layout.skipped + above)
    return None


def _columns(names: Sequence[str], tool: str) -> tuple[dict[int, Heading], list[str]]:
    """What is read of a row, and what is to be said of powers beside one another."""
    names = [base if (base := re.sub(r"\.\d+$", "", name)) in names else name for name in names]  # pandas: 'power.1'
    units = [LOG_UNITS.get(f"{tool} {name}") for name in names]
    found = _found([f"{name} [{unit}]" if unit else name for name, unit in zip(names, units, strict=True)])
    unread = _unread(found, 1 if tool == _OF_ALL else RAIL)
    powers = {at: names[at] for at, each in found.items() if each.channel in POWERS}
    read, left_out = ([name for at, name in powers.items() if (at in unread) is out] for out in (False, True))
    columns = _of_boards(names, {at: each for at, each in found.items() if at not in unread}, tool)
    apart = dict(_side_by_side(columns))
    said = [LOG_NOTES["beside"].format(_listed(read), _listed(left_out))] if read and left_out else []
    said += [LOG_NOTES["apart"].format(_listed(names[at] for at in apart))] if apart else []
    return columns | apart, said


def _of_boards(names: Sequence[str], found: Mapping[int, Heading], tool: str) -> dict[int, Heading]:
    """What is read beside powers, of a machine what is the GPU's.

    A heading that comes as often as that of the power is of a board each time.
    """
    powers = [at for at, each in found.items() if each.channel in POWERS]
    read = [names[at] for at in powers]
    gpus = read and all("gpu" in name.lower() for name in read) and any("cpu" in name.lower() for name in names)
    times = 0 if tool == "nvidia-smi" else max(map(names.count, read), default=0)
    columns = {}
    for at, each in found.items():
        others = (gpus or tool == _OF_ALL) and at not in powers and "gpu" not in names[at].lower()
        other = others or (times and names.count(names[at]) != times)
        if each.role == "channel" and other:
            continue
        board = str(names[:at].count(names[at])) if each.role == "channel" and times > 1 else each.board
        columns[at] = replace(each, board=board)
    return columns


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _side_by_side(columns: Mapping[int, Heading]) -> Iterator[tuple[int, Heading]]:
    """Yield the powers whose headings differ in nothing but a number, a letter or the name of a board.

    Each is of a board of its own, by what differs, and by the word before a number: 'outlet 1'.
    """
    words = {at: re.findall(r"[^\W_]+", each.text.lower()) for at, each in columns.items() if each.channel in DRAWN}
    alike: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
    for at, each in words.items():
        if columns[at].doubt != RAIL:
            alike[columns[at].channel, *map(_kind_of, each)].append(at)
    for places in alike.values():
        different = [at for at, each in enumerate(zip(*(words[at] for at in places), strict=True)) if len({*each}) > 1]
        if not different or len({columns[at].board for at in places}) == len(places):
            continue
        for at in places:
            own = [words[at][place] for place in different]
            before = words[at][different[0] - 1] if different[0] and own[0].isdigit() else ""
            if before and before not in WORDS["power"] | WORDS["observed"] | UNITS.keys():
                own = [before, *own]
            rest = heading(" ".join(word for place, word in enumerate(words[at]) if place not in different))
            scale = columns[at].scale or rest.scale  # 'power_mw_0'
            yield at, replace(columns[at], board=" ".join(own), scale=scale)


def _kind_of(word: str) -> str:
    """A word of a heading without what may tell boards apart; '5s' is what a power is averaged over."""
    if PATTERNS["boards"].search(word):
        return "#"
    return word if _DURATION.fullmatch(word) or word in WORDS["extreme"] else re.sub(r"\d+|^[a-z]$", "#", word)


def _found(names: Sequence[str]) -> dict[int, Heading]:
    """The headings that say something, by their places."""
    found = {place: named for place, name in enumerate(names) if (named := heading(name)).role}
    powers = " ".join(each.text.lower() for each in found.values() if each.channel in POWERS)
    if not powers or "gpu" in powers:  # a total may be of more
        found = {at: each for at, each in found.items() if each.channel != "energy_j" or not each.doubt}
    if not any(named.role == "time" for named in found.values()):  # a column 'date' that holds the time as well
        found = {at: Heading(each.text, "time") if each.role == "day" else each for at, each in found.items()}
    return found


def _unread(found: Mapping[int, Heading], most: int) -> set[int]:
    """The places of powers and limits where others are more surely of boards; none is in more doubt than `most`."""
    powers = {at: each for at, each in found.items() if each.channel in (*POWERS, "power_limit_w")}
    least = min((each.doubt for each in powers.values() if each.channel in POWERS), default=0)
    surest = {at: each for at, each in powers.items() if each.channel in POWERS and each.doubt == least}
    boards = {each.board for each in surest.values()} - {""}
    of_all = {at: each for at, each in found.items() if each.channel in ("energy_j", "memory_power_w")}
    bare = powers | of_all if len(boards) > 1 else powers if boards else {}
    unread = {at for at, each in powers.items() if each.doubt > min(least, most)}
    unread |= {at for at, each in bare.items() if not each.board}
    for kind, doubt in (("total", 1), ("machine", 2)) if not boards and least < RAIL else ():
        whole = {at for at, each in surest.items() if LOG_PATTERNS[kind].search(each.text.replace("_", " "))}
        if whole and least >= doubt:
            return unread | surest.keys() - whole
    return unread


def _width(below: Sequence[str], delimiter: str | None, columns: Mapping[int, Heading], named: int) -> int:
    """Count the cells of a row: some may have no heading, and the last headings no cells."""
    rows = [row.split(delimiter) for row in below[:_LOOKED_AT] if delimiter and row and '"' not in row]
    first = len(rows[0]) if rows and _fits(columns, rows[0]) else named
    return named if first < named <= max(map(len, rows)) else first


def _fits(columns: Mapping[int, Heading], cells: Sequence[str]) -> bool:
    """Whether the first cells of a row are what their headings name: they are not of the columns beside them."""
    named = [(column, cells[at].strip().split(" ")[0]) for at, column in columns.items() if at < len(cells)]
    return all(column.role != "channel" or _is_number(cell) for column, cell in named)


def _without_header(lines: list[str]) -> Layout | None:
    """A stamp and watts, or cells with units, as nvidia-smi writes them without a header: they say what they are."""
    lines = [line for line in lines if line.strip() and not line.startswith("#")] or [""]
    delimiter = _delimiter_of(lines[0])
    first, *cells = [cell.strip() for cell in lines[0].split(delimiter)] or [""]
    stamps = stamps_of(Block(first.encode(), "\0", 1), 0, None)
    if not len(stamps) or _is_number(first):
        rows = [line.split(delimiter) for line in lines[:_LOOKED_AT]]
        bare = _bare(rows, delimiter)
        if bare is not None or not len(stamps) or len(cells) != 1 or not _rise(row[0] for row in rows if row):
            return bare
    return _with_stamps(lines, delimiter, first, cells) if cells else None


def _with_stamps(lines: Sequence[str], delimiter: str | None, first: str, cells: list[str]) -> Layout:
    """A stamp in each line, and behind it a single power or what units and decimals say."""
    of_stamps = scale_of(first.rpartition(" ")[2]) if _is_number(first.partition(" ")[0]) else None
    columns = {0: Heading("timestamp" if cells[1:] else "time", "time", scale=of_stamps), **_by_units(cells)}
    notes = (LOG_NOTES["bare"].format("the second of each line"),) if _is_number(first) else ()
    if len(columns) == 1 and delimiter is not None:
        columns |= _without_units([line.split(delimiter) for line in lines[:_MOST_ABOVE]])
        notes = () if _SMI_STAMP.fullmatch(first) else (LOG_NOTES["bare"].format(_TWO_DECIMALS),)
    _limit_by_rows(columns, [line.split(delimiter) for line in lines if line.count(delimiter or " ") == len(cells)])
    tool = "nvidia-smi" if _SMI_STAMP.fullmatch(first) and cells[1:] else ""
    return Layout(tool, delimiter, len(cells) + 1, columns, notes=notes)


def _bare(rows: Sequence[Sequence[str]], delimiter: str | None) -> Layout | None:
    """Numbers alone, as nvidia-smi writes them without a header or stamps: one with two decimals, the others whole."""
    columns = {at - 1: each for at, each in _without_units([["", *row] for row in rows]).items()}
    others = [cell.strip() for row in rows for at, cell in enumerate(row) if at not in columns]
    falls = any(float(later[at]) < float(row[at]) for at in columns for row, later in pairwise(rows))  # no time does
    if len(rows) < _MOST_ABOVE or not falls or not all(map(str.isdigit, others)) or len({*map(len, rows)}) > 1:
        return None
    return Layout("", delimiter, len(rows[0]), columns, step_s=1.0, notes=(LOG_NOTES["bare"].format(_TWO_DECIMALS),))


def _rise(cells: Iterable[str]) -> bool:
    """Tell whether each number is more than the one before, as times are."""
    numbers = [float_or_none(cell) for cell in cells]
    return all(one is not None and other is not None and one < other for one, other in pairwise(numbers))


def _by_units(cells: list[str]) -> dict[int, Heading]:
    """The channels of the cells behind a stamp by their units; a single one is the power."""
    if len(cells) == 1:
        power = Heading("power", "channel", "power_instant_w")
        number, *unit = cells[0].split(" ")  # and no ',118 INFO' of a stamp
        return {1: power} if _is_number(number) and (not unit or may_be_in(unit[0].lower(), "power_instant_w")) else {}
    columns, left = {}, {unit: list(channels) for unit, channels in _BY_UNIT.items()}
    for place, cell in enumerate(cells, 1):
        number, _, written = cell.rpartition(" ")
        channels = left.get("W" if written == "mW" else written)
        if channels and _is_number(number):
            columns[place] = Heading(written, "channel", channels.pop(0), scale_of(written))
    return columns


def _limit_by_rows(columns: dict[int, Heading], rows: list[list[str]]) -> None:
    """Of two columns in W, read the first as the limit where it alone never changes."""
    watts = [at for at, each in columns.items() if each.channel in _BY_UNIT["W"]]
    if len(watts) == 2 and [len({row[at] for row in rows}) > 1 for at in watts] == [False, True]:
        for at, channel in zip(watts, _BY_UNIT["W"][::-1], strict=True):
            columns[at] = replace(columns[at], channel=channel)


def _without_units(rows: list[list[str]]) -> dict[int, Heading]:
    """The power and the board in rows of nvidia-smi, of which it writes powers alone with two decimals."""
    across = [[cell.strip() for cell in cells] for cells in zip(*rows, strict=False)]
    powers = [at for at, cells in enumerate(across) if all(re.fullmatch(r"\d+\.\d\d", cell) for cell in cells)]
    powers = [at for at in powers if len({*across[at]}) > 1] or powers  # a limit does not change
    if len(powers) != 1:
        return {}
    numbered = len(across) > 2 and across[1][0].isdigit() and not across[2][0][:1].isdigit()
    index = {1: Heading("index", "board", board="index")} if numbered else {}
    return {**index, powers[0]: Heading("power.draw", "channel", "power_average_w", 1.0)}


def _delimiter_of(line: str) -> str | None:
    """Find what stands most often in a line; None where cells have spaces between them."""
    delimiter = max(DELIMITERS, key=line.count)
    return delimiter if delimiter in line else None


def _is_number(text: str) -> bool:
    return float_or_none(text) is not None
