"""How the lines of a log are laid out, by its beginning: those of the known tools, and plain tables of readings.

What a column of a log holds, by its heading: a time, a board, or a channel and the unit it is written in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ....base.vocabulary import BOARDS, CHANNELS, LOG_PATTERNS, LOG_ROLES, UNITS
from .cells import stamp_reader

_BRACKETED: Final = re.compile(r"\s*[\[(]([^\[\]()]*)[\])]\s*$")
_NUMBERED: Final = re.compile(r"\b(?:gpu|device|card)[ _]?(\d{1,3})\b")


@dataclass(frozen=True, slots=True)
class Heading:
    """One column. `role` is time, day, board, name, driver, phase, channel or '' for what is not read."""

    text: str
    role: str
    channel: str = ""
    scale: float | None = None  # to the channel's unit, of times to s; None if the heading names no unit
    board: str = (
        ""  # the number of the board in the heading, where a row holds several: 'GPU1'; or what tells boards apart
    )


def heading(text: str, unit: str = "") -> Heading:
    """What a heading says; `unit` is that of a second line, as dmon writes it."""
    text = " ".join(text.split())
    bracketed = _BRACKETED.search(text)
    lower = (_BRACKETED.sub("", text) if bracketed and _is_unit(bracketed[1]) else text).lower()
    unit = (unit or (bracketed[1] if bracketed and _is_unit(bracketed[1]) else "")).strip().lower()
    words = re.sub(r"[^a-z0-9%µ]+", " ", lower).strip()
    if words in ("date", "time", "day") and not unit:
        return Heading(text, "day" if words != "time" else "time")
    if LOG_PATTERNS["time"].fullmatch(words):
        quantity, scale = UNITS.get(unit or words.rpartition(" ")[2], ("", None))
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
    numbered = _NUMBERED.search(words)
    board = numbered[1] if numbered else ""
    if numbered:
        words = _NUMBERED.sub(" ", words)
        words = " ".join(words.split()) or "power"
    if lower == "power.draw":  # of nvidia-smi; LACT's 'Power Draw' is another one
        return Heading(text, "channel", "power_average_w", scale_of(unit), board)
    return _channel_of(text, words, unit, board)


def _channel_of(text: str, words: str, unit: str, board: str) -> Heading:
    """The channel that a heading names; '' where it names none."""
    for channel, pattern in CHANNELS.items():
        if pattern.fullmatch(words):
            return Heading(text, "channel", channel, scale_of(unit), board)
    if LOG_PATTERNS["other_power"].fullmatch(words) and unit not in ("%", "s", "ms"):
        return Heading(text, "channel", "power_instant_w", scale_of(unit), board)
    if unit in ("w", "watt", "watts") and LOG_PATTERNS["node"].fullmatch(words):
        return Heading(text, "channel", "power_instant_w", scale_of(unit), words)
    return Heading(text, "")


def scale_of(unit: str) -> float | None:
    """The factor from a unit to that of its channel; None for an unknown one."""
    return UNITS.get(unit.strip().lower(), ("", None))[1]


def _is_unit(text: str) -> bool:
    lower = text.strip().lower()
    return lower in UNITS or lower in ("", "rpm", "mb/s", "% tdp", "℃")


_BY_UNIT: Final = {  # the channels that cells of a unit hold, in the order in which nvidia-smi is usually asked
    "W": ("power_average_w", "power_limit_w"),
    "%": ("utilisation_percent", "memory_utilisation_percent"),
    "MiB": ("memory_used_mib",),
    "MHz": ("sm_clock_mhz", "memory_clock_mhz"),
}
_RAILS: Final = ("VDD_IN", "POM_5V_IN")  # of the whole board, as tegrastats names them
_OF_A_SECOND: Final = ("power.draw", *_RAILS)  # what tools log once a second by default
_DELIMITERS: Final = ",;\t"
_DCGM_WATTS: Final = ("POWER", "POWINST", "PMLMT", "EPLMT")
_AS_POINTS: Final = bytes.maketrans(b",", b".")


@dataclass(frozen=True, slots=True)
class Layout:
    """Lines of `cells` cells, and what is in those that are read."""

    tool: str  # what wrote the log, where that is known
    delimiter: str | None  # None: spaces
    cells: int
    columns: dict[int, Heading]  # by the place of the cell
    header: bytes = b""  # the line that names the columns; it may come again
    skipped: int = 0  # lines before the first one that may hold a reading
    translation: bytes | None = None  # of the bytes of every line
    step_s: float | None = None  # between readings, as far as the tool's default says, where no column holds the time

    def places(self, role: str) -> list[int]:
        """The places of the columns of a role; stamps before how long it has been."""
        found = [place for place, column in self.columns.items() if column.role == role]
        return sorted(found, key=lambda at: role == "time" and "stamp" not in self.columns[at].text.lower())

    @property
    def timed(self) -> bool:
        """A column holds the times."""
        return bool(self.places("time"))

    @property
    def powers(self) -> list[int]:
        """The places of the columns of power or of a counter of energy."""
        wanted = ("power_instant_w", "power_average_w", "energy_j")
        return [place for place in self.places("channel") if self.columns[place].channel in wanted]


def find_layout(beginning: str) -> Layout | None:
    """The layout of a log that begins so; None if it is none that is known: no power in it, or no header."""
    lines = beginning.replace("\r", "").lstrip("\n\ufeff ").split("\n")
    for find in (_dmon, _dcgm, _with_header, _without_header, _two_columns):
        result = find(lines)
        if result is not None and result.powers:
            return result
    return None


def _dmon(lines: list[str]) -> Layout | None:
    """`nvidia-smi dmon`: '# gpu pwr ...' and a line of units below, or the same with commas."""
    first = lines[0]
    words = [word.strip() for word in first.lstrip("# ").replace(",", " ").split()]
    if not first.startswith("#") or "gpu" not in [word.lower() for word in words[:3]] or len(words) < 2:
        return None
    units = lines[1].lstrip("# ").replace(",", " ").split() if len(lines) > 1 and lines[1].startswith("#") else []
    units = units if len(units) == len(words) else [""] * len(words)
    columns = dict(enumerate(_dmon_heading(*item) for item in zip(words, units, strict=True)))
    return Layout("nvidia-smi dmon", "," if "," in first else None, len(words), columns, step_s=1.0)


def _dmon_heading(word: str, unit: str) -> Heading:
    lower = word.lower()
    if lower in ("date", "time"):
        return Heading(word, "day" if lower == "date" else "time")
    return heading(word, unit)


def _dcgm(lines: list[str]) -> Layout | None:
    """`dcgmi dmon`: '#Entity POWER TOTEC', a line of units, and rows that begin with 'GPU 0'."""
    if not re.match(r"#\s?Entity\b", lines[0]):
        return None
    words = lines[0].lstrip("# ").split()[1:]
    columns = {1: Heading("Entity", "board", board="index")}
    units = {"TOTEC": "mJ"}  # the line of units has holes, where a field has none
    for place, word in enumerate(words, 2):
        columns[place] = heading(word, units.get(word, "W" if word in _DCGM_WATTS else ""))
    return Layout("dcgmi dmon", None, len(words) + 2, columns, header=b"ID", step_s=1.0)


def _with_header(lines: list[str]) -> Layout | None:
    """A line of names, separated by commas, semicolons, tabs or spaces."""
    header_line = next(
        (at for at, line in enumerate(lines) if line.strip() and not line.startswith(("#", "sep="))), None
    )
    if header_line is None:
        return None
    if (
        header_line
        and lines[header_line - 1].startswith("#")
        and _is_number(re.split(r"[,;\t ]+", lines[header_line].strip())[0])
    ):
        header_line -= 1  # '# time power' above the first reading
    line = lines[header_line].lstrip("# ")
    delimiter = max(_DELIMITERS, key=line.count)
    separated = delimiter in line
    names = [name.strip().strip('"') for name in (line.split(delimiter) if separated else line.split())]
    columns = _columns(names)
    following = "".join(lines[header_line + 1 : header_line + 2])
    first = following.split(delimiter) if separated and '"' not in following else []
    beyond = len(first) if _fits(columns, first) else 0  # cells behind those that have a heading
    commas = separated and delimiter != "," and any("," in value for value in lines[header_line + 1 : header_line + 3])
    return Layout(
        _tool(names),
        delimiter if separated else None,
        max(len(names), beyond),
        columns,
        header=lines[header_line].strip().encode(),
        skipped=header_line + 1,
        translation=_AS_POINTS if commas else None,
        step_s=1.0 if any(name.startswith(_OF_A_SECOND) for name in names) else None,
    )


def _columns(names: Sequence[str]) -> dict[int, Heading]:
    """What is read of a row: the powers of numbered boards, and not those of the host beside them."""
    found = {place: named for place, name in enumerate(names) if (named := heading(name)).role}
    if not any(named.role == "time" for named in found.values()):  # a column 'date' that holds the time as well
        found = {at: Heading(each.text, "time") if each.role == "day" else each for at, each in found.items()}
    powers = {at: each for at, each in found.items() if each.channel.startswith("power_")}
    numbered = any(each.board for each in powers.values())
    return {at: each for at, each in found.items() if each.board or not numbered or at not in powers}


def _fits(columns: Mapping[int, Heading], cells: Sequence[str]) -> bool:
    """Whether the first cells of a row are what their headings name: they are not of the columns beside them."""
    named = [(column, cells[at].strip().split(" ")[0]) for at, column in columns.items() if at < len(cells)]
    return all(column.role != "channel" or _is_number(cell) for column, cell in named)


def _without_header(lines: list[str]) -> Layout | None:
    """A stamp and cells with units, as nvidia-smi writes them without a header: the units say what they are."""
    cells = [cell.strip() for cell in lines[0].split(",")]
    if len(cells) < 3 or stamp_reader(cells[0].encode(), None) is None or _is_number(cells[0]):
        return None
    columns, left = {0: Heading("timestamp", "time")}, dict(_BY_UNIT)
    for place, cell in enumerate(cells[1:], 1):
        unit = cell.rpartition(" ")[2]
        if unit in left and _is_number(cell.rpartition(" ")[0]):
            channel, *more = left.pop(unit)
            columns[place] = Heading(unit, "channel", channel, scale_of(unit))
            left |= {unit: tuple(more)} if more else {}
    return Layout("nvidia-smi", ",", len(cells), columns)


def _two_columns(lines: list[str]) -> Layout | None:
    """Time stamp and watts without a header."""
    delimiter = max(_DELIMITERS, key=lines[0].count)
    separated = delimiter in lines[0]
    cells = [cell.strip() for cell in (lines[0].split(delimiter) if separated else lines[0].split())]
    if len(cells) != 2 or stamp_reader(cells[0].encode(), None) is None or not _is_number(cells[1].split(" ")[0]):
        return None
    columns = {0: Heading("time", "time"), 1: Heading("power", "channel", "power_instant_w")}
    return Layout("", delimiter if separated else None, 2, columns)


def _tool(names: list[str]) -> str:
    if any(name.startswith(("power.draw", "clocks.", "temperature.gpu", "utilization.gpu")) for name in names):
        return "nvidia-smi"
    if names[0].startswith(_RAILS):
        return "tegrastats"
    if names == ["Time", "Watts"]:
        return "SPEC PTDaemon (MLPerf)"
    if "timestamp" in names and any(name in names for name in ("Power Draw", "Power Draw (Avg)", "Power Cap")):
        return "LACT"
    if names[:2] == ["Time", "Power"] or names[1:2] == ["GPU0 power draw (W)"]:
        return "Zeus"
    return "GPU-Z" if "Board Power Draw [W]" in names else ""


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
