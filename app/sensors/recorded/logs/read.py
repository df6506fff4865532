"""Reading a log of power that another tool wrote: one `Recording` per board, as if it had been recorded here."""

from __future__ import annotations

import csv
import io
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from ....base.errors import InputError
from ....base.files import byte_chunks, title_of
from ....base.formatting import counted
from ....base.text import float_or_none
from ....base.vocabulary import HEADINGS, LOG_NOTES, LOG_PATTERNS, PATTERNS
from ...channel import CHANNELS
from ...gpu import PowerLimit
from ..header import Mark, recorded_info
from ..recording import Recording
from . import cells, readings
from .cells import Block, Dates, Floats, Nanoseconds
from .layouts import DRAWN, POWERS, RAIL, Heading, Layout, find_layout, may_be_in, scale_of
from .printed import beginning_of, chunks_of, utf8

Columns = dict[str, dict[str, Floats]]  # by the board in the heading, and by channel

_LONGEST_LINE: Final = 2**16
_MOST_READINGS: Final = 10_000_000  # of all boards
_MOST_MARKS: Final = 10_000  # changes of the phase
_MOST_UNREADABLE: Final = 0.02  # of the lines
_MOST_BEHIND: Final = 20  # of them after the last reading, which count for none
_SINCE_EPOCH_NS: Final = 10**18  # September 2001: no duration
_LEAST_W: Final = 0.5  # which no board draws less than while it works
_PLAUSIBLE_W: Final = 3000.0  # whole numbers beyond it, without a unit, are mW
_LONG_STEP_NS: Final = 10_000_000_000  # between readings, which few loggers wait for
_IN_BETWEEN: Final = 30.0  # of a unit and its thousandth
_MEGA: Final = re.compile("(?<![A-Za-z])M(W|J|W[hH])(?![A-Za-z])")  # where 'm' may be meant
_DIFFERENT: Final = 0.2  # of the logarithm, beyond which a claim is contradicted
_MOSTLY: Final = 0.9  # of the times since a beginning: it begins again with each step of a job
_FEWEST_FALLS: Final = 3
_OFTEN: Final = 0.2  # of the steps, in which no counter falls
_RUNS: Final = re.compile(r"^.*\bemissions\b.*\n", re.IGNORECASE)  # CodeCarbon: a row for each finished run
_THOUSANDS: Final = re.compile(r"(?<=\d)[ \xa0\u202f'’](?=\d{3}(?!\d))")  # marks that are no decimal signs
_WITH_MARKS: Final = re.compile(r"[+-]?\d+([ ,\xa0\u202f'’]\d+)+(\.\d+)?( ?[^\W\d]\S*| ?%)?")  # in a number
_TIMES_REMEDY: Final = "log it too (--query-gpu=timestamp,power.draw; dmon -o DT), or name a step with --interval"
_REMEDY: Final = (
    "a log needs a header that names a power in W, as that of nvidia-smi --query-gpu=timestamp,power.draw --format=csv"
)


@dataclass(frozen=True, slots=True)
class Log:
    """A log, read: what each board did."""

    path: Path
    tool: str  # what wrote it; '' if that is not known
    boards: tuple[Recording, ...]
    notes: tuple[str, ...]  # what the user should know of the file
    assumed_step_s: float | None = None  # between readings, where the log does not hold their times


def is_log(path: Path) -> bool:
    """Whether the file looks like a log of power over time. Raises InputError if it cannot be read."""
    text = beginning_of(next(chunks_of(path)))
    layout = find_layout(text)
    if layout is None or _RUNS.match(text) or path.suffix.lower() == ".md":  # a document
        return False
    places = layout.places("time")
    of_work = LOG_PATTERNS["of_work"].search(layout.header.decode("utf-8", "replace")) is not None
    if not places:
        return not of_work and _is_of_power(path, layout)
    *_, below = (text[: text.rfind("\n") + 1] or text).split("\n", layout.skipped)
    block = _block(below.encode(), layout)
    stamps, *others = [cells.over_midnight(cells.stamps_of(block, at, layout.columns[at].scale)) for at in places]
    if others and not layout.tool and not all(cells.rises(each, _MOSTLY) and np.ptp(each) for each in others):
        return False  # how long something took, beside when: a table of measurements
    if of_work and not layout.tool and len(stamps) > 1 and float(np.median(np.diff(stamps))) >= _LONG_STEP_NS:
        return False  # runs one after the other, and when each was
    if layout.places("day") or "stamp" in layout.columns[places[0]].text.lower() or layout.tool:
        return True
    if len(stamps) and int(stamps[0]) > _SINCE_EPOCH_NS:
        return True
    if readings.runs(stamps) is not None:
        return True
    return len(stamps) >= readings.FEWEST_OF_LOG and cells.rises(stamps) and bool(stamps[-1] > stamps[0])


def _is_of_power(path: Path, layout: Layout) -> bool:
    """Tell whether readings without times have headings, a known tool, or at least a file whose name says power."""
    named = layout.header or layout.tool or LOG_PATTERNS["file_of_power"].search(path.stem)
    return layout.step_s is not None and bool(named)


def is_dmon(path: Path) -> bool:
    """Whether the file is the output of a dmon, NVIDIA's or DCGM's, which is no table. Raises InputError."""
    return (layout := find_layout(beginning_of(next(chunks_of(path))))) is not None and layout.tool.endswith("dmon")


def read_log(path: Path, interval_s: float | None = None) -> Log:
    """Read a log; `interval_s` is the time between readings of one board where the log does not hold it.

    Raises InputError naming file, line and remedy for what is no log.
    """
    chunks = chunks_of(path)
    first = next(chunks)
    layout = find_layout(beginning_of(first))
    if layout is None:
        raise InputError("this is no log of power that is known", str(path), _REMEDY)
    if not layout.places("time") and layout.step_s is None and interval_s is None:
        raise InputError("the log does not hold the times of its readings", str(path), _TIMES_REMEDY)
    reader = _Reader(path, layout, Dates())
    reader.take_all(chain((first,), chunks))
    if reader.dates.contradicted:  # what came first did not say which
        reader = _Reader(path, layout, Dates(month_first=True))
        reader.take_all(chunks_of(path))
    log = reader.finish(interval_s)
    beginning = beginning_of(next(utf8(byte_chunks(path))))
    return replace(log, notes=(*log.notes, *_contradicted(beginning, log), *_unit_in_doubt(log, layout)))


def _contradicted(text: str, log: Log) -> Iterator[str]:
    """What the file says of its readings in words and numbers, and its stamps and readings contradict."""
    for claim in LOG_PATTERNS["claim"].finditer(text):
        said, scale = float(claim["number"]), scale_of(claim["unit"] or "")
        if "interval" in claim["what"].lower():
            steps_ns = np.diff(log.boards[0].time_ns)
            there = float(np.median(steps_ns)) / 1e9 if log.assumed_step_s is None else math.nan
            scales, words = [1.0, 1e-3], "s between readings"
        else:
            there = sum(map(_joules, log.boards))
            scales, words = [1.0, 1e3, 3600.0, 3.6e6], "J by the trapezoid"
        tried = scales if scale is None else [scale]
        if there > 0 and said > 0 and all(abs(math.log(said * each / there)) > _DIFFERENT for each in tried):
            unit = claim["unit"] or "no unit"
            yield f"'{claim['what'].strip()}' says {said:g} ({unit}), but there are {there:.4g} {words}"


def _unit_in_doubt(log: Log, layout: Layout) -> Iterator[str]:
    """Times since a beginning that name no unit, which may be ms where many of them pass between two readings."""
    board, named = log.boards[0], next((layout.columns[at] for at in layout.places("time")), None)
    if named is None or named.scale is not None or not board.zoned or not math.isnan(board.began_s):
        return
    long = float(np.median(np.diff(board.time_ns))) >= _LONG_STEP_NS and not (board.time_ns % 1_000_000_000).any()
    doubt = f", which is not certain: of ms they last {board.time_ns[-1] / 1e12:.4g} s" if long else ""
    yield f"'{named.text}' names no unit; its numbers are read as s{doubt}"


def _joules(board: Recording) -> float:
    """The energy of a board, by the trapezoid between its known readings of power."""
    return readings.trapezoid_j(readings.power_of(board.by_name), board.time_ns)


class _Unread(NamedTuple):
    """A line that could not be read."""

    number: int
    said: bool  # it is words, or ends where its block does
    stamp_alone: bool  # nothing stands behind its first cell


class _Reader:
    """Takes a log block by block."""

    def __init__(self, path: Path, layout: Layout, dates: Dates) -> None:
        self._path, self._layout, self.dates = path, layout, dates
        self._places = layout.places("channel") + layout.places("phase")[:1]
        self._parts: defaultdict[str | int, list[npt.NDArray[Any]]] = defaultdict(list)  # of columns, by block
        self._phases: dict[str, int] = {}  # name -> number
        self._names: dict[str, str] = {}  # of the boards by what tells them apart, in the order of their numbers
        self._others: set[int] = set()  # the numbers of those that are no boards
        self._units: dict[int, str] = {}  # in the cells
        self._unit_open = False  # of a counter of energy
        self._line = layout.skipped
        self._unread: list[_Unread] = []
        self._readings = 0
        self._last = 0  # the line of the last reading
        self._numbered = False  # times are numbers, not dates
        self._notes = list(layout.notes)
        self._drawn = ""  # by boards of which no energy follows

    def take_all(self, chunks: Iterator[bytes]) -> None:
        """Read whole lines, some megabytes at a time, from the first that may hold a reading."""
        rest, skip = b"", self._layout.skipped
        for chunk in chain(chunks, (b"\n",)):
            block, newline, rest = (rest + chunk).rpartition(b"\n")
            if not newline and len(rest) > _LONGEST_LINE:
                self._refuse("a line is longer than 64 KiB", _REMEDY)
            *above, block = (block + newline).split(b"\n", skip)
            skip -= len(above)
            if block:
                self._take(_block(block, self._layout))

    def _take(self, block: Block) -> None:
        layout = self._layout
        self._leave_out(block, block.odd.tolist())
        self._readings += len(block)
        if self._readings > _MOST_READINGS:
            self._refuse(f"there are more than {_MOST_READINGS:,} readings", "split the log")
        if len(block) and layout.places("time"):
            times = self._stamps(block)
            timed = cells.is_time(times)
            self._leave_out(block, block.numbers[~timed].tolist())
            block.keep(timed)
            self._parts["time"].append(times[timed])
        if len(block):
            self._last = self._line + int(block.numbers[-1]) + 1
            self._parts["board"].append(self._board_of(block))
            for place in self._places:
                read = self._phase_of if layout.columns[place].role == "phase" else self._floats
                self._parts[place].append(read(block, place))
        self._line += block.lines

    def _leave_out(self, block: Block, places: list[int]) -> None:
        delimiter = (self._layout.delimiter or " ").encode()
        cut = block.lines - 1 if block.lines - 1 in block.odd else None
        for at in places:
            line = block.line(at)
            said = at == cut or not line[:1].isdigit()
            self._unread.append(_Unread(self._line + at + 1, said, line.find(delimiter) == len(line) - 1))

    def _stamps(self, block: Block) -> Nanoseconds:
        place, *_ = self._layout.places("time")
        stamps = cells.stamps_of(block, place, self._layout.columns[place].scale, self.dates)
        if not len(stamps):
            what = f"{self._where(block, 0)}: '{_shown(block.text(0, place))}' is no time"
            self._refuse(what, "seconds, or a date and time such as 2026/04/19 17:05:55.470")
        self._numbered = _number(block.text(0, place)) is not None and not self.dates.packed
        day = self._layout.places("day")
        if day and int(stamps.max(initial=0)) < cells.DAY_NS:
            stamps = stamps + self.dates.read(block.data, block.starts[:, day[0]])[0]
        return stamps

    def _floats(self, block: Block, place: int) -> Floats:
        named = self._layout.columns[place]
        if place not in self._units and (unit := block.unit(place)):
            self._units[place] = unit
        if named.channel == "performance_state":
            block.starts[:, place] += block.data[block.starts[:, place]] == ord("P")
        usual = scale_of(self._units.get(place, ""))
        values, others = block.floats(place)
        for row in others:
            cell = block.text(row, place)
            value = _number(cell)
            if value is None:
                what = f"{self._where(block, row)}, column '{named.text[:40]}': '{_shown(cell)}' is not a number"
                self._refuse(what, "correct or remove the line")
            own = scale_of((*cell.split(), "", "")[1])  # '2.5 W' below '500 mW'
            values[row] = value if own is None or usual is None else value * own / usual
        return self._in_units_beside(block, place, values) if named.channel in DRAWN else values

    def _in_units_beside(self, block: Block, place: int, values: Floats) -> Floats:
        """A power or an energy in the units that a column of its own says, row by row, as in those of the first row."""
        for at in self._layout.places("unit")[:1]:
            rows, which = block.distinct(at)
            units = [block.text(row, at).strip('"') for row in rows]
            scales = np.array([scale_of(unit) or math.nan for unit in units])
            if unknown := [_shown(unit) for unit in units if scale_of(unit) is None]:
                self._notes.append(f"the unit '{unknown[0]}' is not known: it is not certain what the powers are")
            elif all(may_be_in(unit.lower(), self._layout.columns[place].channel) for unit in units):
                first = self._units.setdefault(place, units[0])
                return np.asarray(values * scales[which] / (scale_of(first) or 1.0))
        return values

    def _where(self, block: Block, row: int) -> str:
        return f"line {self._line + int(block.numbers[row]) + 1}"

    def _board_of(self, block: Block) -> readings.Numbers:
        """The number of the board of each row."""
        layout = self._layout
        names = layout.places("name")[:1]
        places = layout.boards or names or [at for at in layout.places("part") if self._are_parts(block, at)][:1]
        rows, which = block.distinct(*places)
        keys = [" ".join(block.text(row, at) for at in places) for row in rows]
        for row, key in zip(rows, keys, strict=True):
            self._names.setdefault(key, "".join(block.text(row, at).strip('"') for at in names))
        if len(self._names) > readings.MOST_BOARDS:
            self._refuse(f"more than {readings.MOST_BOARDS} boards", "log the boards into files of their own")
        known = list(self._names)
        return np.array([known.index(key) for key in keys], np.uint8)[which]

    def _are_parts(self, block: Block, place: int) -> bool:
        """Tell whether a column of a table in long form says of which part of a machine each reading is."""
        texts = (block.text(row, place) for row in block.distinct(place)[0])
        return all(LOG_PATTERNS["no_board"].search(text) or re.match("[di]?gpu", text, re.IGNORECASE) for text in texts)

    def _phase_of(self, block: Block, place: int) -> Floats:
        """The number of the phase of each row."""
        rows, which = block.distinct(place)
        names = (block.text(row, place).strip('"')[:100] for row in rows)
        return np.array([self._phases.setdefault(name, len(self._phases)) for name in names], np.float64)[which]

    def _marks(self, phases: Floats, times: Nanoseconds) -> tuple[Mark, ...]:
        """Where another phase begins, each under its name; those without a name are none."""
        places = np.flatnonzero(np.diff(phases, prepend=-1))[:_MOST_MARKS]
        names = list(self._phases)
        found = zip((times[places] - times[0]).tolist(), phases[places].astype(int).tolist(), strict=True)
        return tuple(Mark(time_ns, names[number]) for time_ns, number in found if names[number])

    def _note_left_out(self) -> None:
        """Add a note where there are unreadable lines. Raises InputError where they are too many."""
        within = [each for each in self._unread if not (each.said and each.number > self._last)]
        behind = len(self._unread) - len(within)  # what the tool says at its end, or half a line
        left_out = self._unread if behind > 1 else within
        odd = [each.number for each in (left_out if behind > _MOST_BEHIND else within) if not each.stamp_alone]
        if len(odd) > _MOST_UNREADABLE * max(self._readings, 1):
            what = f"line {min(odd)} is not laid out as the others ({len(odd)} such lines)"
            self._refuse(what, "correct or remove them")
        if left_out:
            self._notes.append(f"{len(left_out)} lines could not be read and are left out")

    def finish(self, interval_s: float | None) -> Log:
        """The boards. Raises InputError if there are fewer than two readings."""
        layout = self._layout
        if self.dates.contradicted:
            self._refuse("its dates may begin with the day or with the month", "write them as 2026-04-19")
        self._note_left_out()
        if layout.tool in LOG_NOTES:
            self._notes.append(LOG_NOTES[layout.tool])
        step_s = None
        if not layout.places("time"):
            step_s = interval_s or layout.step_s or 1.0
            known = layout.tool not in ("", "nvidia-smi")  # which has no step of its own
            usual = f"as {layout.tool} does by default" if known else "which is not certain (--interval)"
            because = "as --interval says" if interval_s else usual
            self._notes.append(LOG_NOTES["step"].format(step_s, because))
        columns = self._by_average(self._columns())
        times, board = cells.over_midnight(self._whole("time", np.int64)), self._whole("board", np.uint8)
        if len(times) >= readings.FEWEST_OF_LOG and times[0] > times[-1] and (np.diff(times) <= 0).all():
            self._notes.append("the newest reading comes first: they are read from the last one on")
            times, board = times[::-1], board[::-1]
            columns = {own: {name: values[::-1] for name, values in each.items()} for own, each in columns.items()}
        if len(self._names) == 1 and not any(columns) and (of_runs := readings.runs(times)) is not None:
            board = self._of_runs(of_runs, columns[""].get("phase"))
        named = any(layout.columns[at].board != "host" for at in layout.places("board"))
        named &= not any(PATTERNS["boards"].search(key) for key in self._names)
        if len(self._names) == 1 and not named and not any(columns):
            board = self._in_their_order(times, board, readings.power_of(columns[""], DRAWN))
        self._others = self._no_boards()
        boards = tuple(self._boards(times, board, columns, step_s))
        if not boards:
            self._refuse(f"{self._drawn}no energy follows of fewer than two readings", "let the tool run for a while")
        return Log(self._path, layout.tool, boards, tuple(dict.fromkeys(self._notes)), step_s)

    def _whole(self, name: str | int, kind: type[np.generic]) -> npt.NDArray[Any]:
        """A column in one piece; its parts are let go."""
        return np.concatenate((np.empty(0, kind), *self._parts.pop(name, ())))

    def _by_average(self, columns: Columns) -> Columns:
        """The columns, a power as an instantaneous one where the boards have no other; a note where that is open."""
        averages = (each for each in self._layout.columns.values() if each.channel == "power_average_w")
        power = next((each for each in averages if not re.search("av", each.text, re.IGNORECASE)), None)
        both = any("power_instant_w" in values for values in columns.values())
        if power is None or both or not all(map(LOG_PATTERNS["instant"].search, self._names.values())):
            self._notes += [LOG_NOTES["average"].format(power.text)] if power is not None else []
            return columns
        renamed = {"power_average_w": "power_instant_w"}
        return {own: {renamed.get(name, name): v for name, v in values.items()} for own, values in columns.items()}

    def _no_boards(self) -> set[int]:
        """The numbers of what is logged beside boards that have numbers: processors, and the sum of all."""
        keys = list(self._names)
        others = {at for at, key in enumerate(keys) if LOG_PATTERNS["no_board"].search(key)}
        boards = [key for at, key in enumerate(keys) if at not in others]
        if not others or not boards or not all(re.fullmatch(r"\D{0,12}\d{1,2}|(?i:gpu)", key) for key in boards):
            return set()
        what = "are no boards, and are" if len(others) > 1 else "is no board, and is"
        self._notes.append(f"{', '.join(keys[at] for at in sorted(others))} {what} left out")
        return others

    def _of_runs(self, runs: readings.Numbers, phases: Floats | None) -> readings.Numbers:
        """The numbers of the runs, each by the name of its phase where it has one of its own."""
        begins = np.unique(runs, return_index=True)[1]
        names = [f"run {number + 1}" for number in range(len(begins))]
        if phases is not None and len({*phases[begins].tolist()}) == len(begins) == len(self._phases):
            names = [[*self._phases][int(phase)] for phase in phases[begins]]
        self._names = {name: name for name in names}
        self._notes.append(LOG_NOTES["runs"].format(counted(len(begins) - 1, "time")))
        return runs

    def _in_their_order(self, times: Nanoseconds, board: readings.Numbers, power: Floats) -> readings.Numbers:
        """The numbers of several boards that nothing names, where as many readings come together each time."""
        count, each_second = cells.together(times, power), cells.of_each_second(times)
        if count == 1 and each_second > 1:
            self._notes.append(LOG_NOTES["alike"].format(each_second))
        if count > 1:
            (name,) = self._names.values()
            self._names = {str(number): name for number in range(count)}
            self._notes.append(LOG_NOTES["together" if len(times) else "in_turn"].format(count))
            board = (np.arange(len(board)) % count).astype(np.uint8)
        return board

    def _columns(self) -> Columns:
        """The values by the board in the heading, and by channel. Raises InputError where no power was read."""
        columns: Columns = {}
        first: dict[tuple[str, str], str] = {}  # heading, by board and channel
        for place in self._places:
            named = self._layout.columns[place]
            values = self._whole(place, np.float64)
            self._notes += [LOG_NOTES["rails"]] if named.doubt == RAIL else []
            of_board, name = columns.setdefault(named.board, {}), named.channel or named.role
            if name not in of_board:
                of_board[name] = self._in_unit(named, place, values)
                first[named.board, name] = named.text
            elif name in DRAWN:
                other = first[named.board, name]
                self._notes.append(LOG_NOTES["left_out"].format(named.text, other))
        powers = [values[name] for values in columns.values() for name in DRAWN if name in values]
        if any(map(len, powers)) and not any(np.isfinite(values).any() for values in powers):
            self._refuse("no reading of power is in it", "log the power of the board")
        return columns

    def _in_unit(self, named: Heading, place: int, values: Floats) -> Floats:
        in_cells = scale_of(self._units.get(place, ""))
        scale = named.scale if in_cells is None else in_cells  # the cells say it themselves
        self._unit_open |= scale is None and named.channel == "energy_j"
        finite = values[np.isfinite(values)]
        least = finite.min(initial=math.inf) if named.channel == "energy_j" else 0.0  # a meter may begin anywhere
        beyond = named.channel.startswith("power") and len(finite) > 0 and float(np.median(finite)) > _PLAUSIBLE_W
        if scale is None:
            small = 1e-6 if beyond and float(np.median(finite)) > 1e3 * _PLAUSIBLE_W else 1e-3
            scale = named.usual or (small if beyond else 1.0)
            if named.usual and (finite % 1.0).any():
                self._refuse(f"'{named.text[:40]}' names no unit", "write it as [W] or [mW] behind the heading")
            if scale != 1.0:
                unit = "µW" if scale == 1e-6 else "mW"
                self._notes.append(f"'{named.text}' names no unit; its numbers are read as {unit}")
        elif scale == 1.0 and beyond and re.search("gpu|board|card", named.text, re.IGNORECASE):
            scale = 1e-3
            middle = float(np.median(finite))
            self._notes.append(f"'{named.text}' says W, but no board draws {middle:.0f} W: its numbers are read as mW")
        elif scale in (1e-3, 3.6) and finite.max(initial=0.0) < 1.0 + least and _MEGA.search(named.text):
            scale *= 1e9
            self._notes.append(LOG_NOTES["mega"].format(named.text))
        if scale != 1.0:
            values *= scale
        most_w = float(finite.max(initial=0.0)) * scale
        if named.channel.startswith("power") and scale < 1.0 and 0.0 < most_w < _LEAST_W:
            self._notes.append(f"'{named.text}' says mW: {most_w:.2g} W at most is less than boards draw at rest")
        return values

    def _forward(self, time_ns: Nanoseconds) -> npt.NDArray[np.bool_]:
        """Which readings are newer than all before them. Raises InputError where most are not."""
        newest = np.maximum.accumulate(time_ns)
        forward = np.diff(newest, prepend=newest[:1] - 1) > 0
        late, count = int((~forward).sum()), len(time_ns)
        if late > count // 2 and count > 2:
            self._refuse("time does not go forward", "one log for each run, or a column that tells the boards apart")
        if late:
            self._notes.append(f"{late} readings are not newer than the one before and are left out")
        return forward

    def _boards(
        self, times: Nanoseconds, board: readings.Numbers, columns: Columns, step_s: float | None
    ) -> Iterator[Recording]:
        """The boards that drew something, at two times or more."""
        numbers = set(np.unique(board).tolist())
        for number in sorted(numbers - self._others):
            rows = np.flatnonzero(board == number) if len(numbers) > 1 else slice(None)
            for own, values in columns.items():
                of_board = {name: column[rows] for name, column in (columns.get("", {}) | values).items()}
                if self._draws(of_board, own):
                    after_ns = times[rows] if step_s is None else np.arange(len(board[rows])) * round(step_s * 1e9)
                    made = self._recording(number, own, readings.spread(after_ns, self._notes), of_board, step_s)
                    if made is not None:
                        yield made

    def _recording(
        self, number: int, own: str, time_ns: Nanoseconds, of_board: Mapping[str, Floats], step_s: float | None
    ) -> Recording | None:
        """One board's, None if it has fewer than two readings of power."""
        key, called = list(self._names.items())[number]
        numbered = re.fullmatch(r"(?:gpu[ _-]?)?(\d{1,3})", key, re.IGNORECASE)
        index = own or (numbered[1] if numbered else str(number))
        self._drawn += _drawn(index, of_board)
        if len(time_ns) > 1 and not np.ptp(time_ns):
            self._refuse(f"{self._drawn}no energy follows of readings at one and the same time", "log the time of each")
        forward = self._forward(time_ns)
        so_far = readings.is_mean_so_far(of_board, time_ns)
        self._notes += [LOG_NOTES["so_far"]] if so_far else []
        time_ns = time_ns[forward]
        named = [name for name in CHANNELS if name in of_board and not (so_far and name in POWERS)]
        table = self._table(named, of_board, forward, time_ns)
        if len(time_ns) < 2 or not np.isfinite(readings.power_of(dict(zip(named, table.T, strict=True)), DRAWN)).any():
            return None
        tool = self._layout.tool or "another tool"
        limits = of_board.get("power_limit_w", np.empty(0))
        current = limits[np.isfinite(limits)]
        several = len(self._names) - len(self._others) > 1 or bool(own)
        title = title_of(self._path)
        if step_s not in (None, self._layout.step_s):  # with another step it is another recording
            title = f"{title}@{step_s:g}"
        return Recording(
            f"{title}#{index}" if several else title,
            recorded_info(
                called or ("GPU" if not several else f"GPU {index}" if index.isdigit() else index),
                PowerLimit(None, None, None, float(current[-1]) if len(current) else None),
                f"the log of {tool}",
            ),
            f"a log of {tool}" if self._layout.tool else "a log",
            graphics_clocks_mhz=(),
            memory_clocks_mhz=(),
            channels=tuple(CHANNELS[name] for name in named),
            began_s=self._began_s(int(time_ns[0])),
            zoned=self._numbered,
            marks=self._marks(of_board["phase"][forward], time_ns) if "phase" in of_board else (),
            time_ns=time_ns - time_ns[0],
            values=table,
        )

    def _table(
        self, named: list[str], of_board: Mapping[str, Floats], forward: npt.NDArray[np.bool_], time_ns: Nanoseconds
    ) -> Floats:
        """A column for each channel, without what no board reads."""
        table = np.empty((len(time_ns), len(named)), order="F")  # most is read by column
        columns = dict(zip(named, table.T, strict=True))
        for name, values in columns.items():
            values[:] = of_board[name][forward]
            readings.leave_out_impossible(name, values, self._notes)
        if "energy_j" in columns:
            self._count(columns["energy_j"], readings.power_of(columns), time_ns)
        return table

    def _count(self, counter: Floats, power: Floats, time_ns: Nanoseconds) -> None:
        """Make a counter in J of readings of energy: what falls often, or adds up to the power, is of each interval."""
        steps, drawn = np.diff(counter[np.isfinite(counter)]), readings.trapezoid_j(power, time_ns)
        again, summed = int((steps < 0).sum()), np.nancumsum(counter)
        of_each = again >= max(_FEWEST_FALLS, math.ceil(_OFTEN * np.count_nonzero(steps)))
        if self._unit_open:
            self._in_joules(summed if of_each else counter, power, time_ns)
        elif drawn > 0 and not readings.near(np.maximum(steps, 0).sum(), drawn, 1.0):
            of_each |= readings.near(summed[-1] - summed[0], drawn, _DIFFERENT)
        if of_each:
            counter[:] = summed
            self._notes.append(LOG_NOTES["of_each"])
        elif again:
            self._notes.append(LOG_NOTES["again"].format(counted(again, "time")))

    def _in_joules(self, counter: Floats, power: Floats, time_ns: Nanoseconds) -> None:
        """Scale a counter without a unit that is NVML's, in mJ: more than the power beside it, or any board, draws."""
        known, drawn = np.isfinite(counter), power[np.isfinite(power)]
        most_w = _IN_BETWEEN * float(drawn.mean()) if len(drawn) else _PLAUSIBLE_W
        seconds = np.ptp(time_ns[known]) / 1e9 if known.any() else 0.0
        if seconds and np.ptp(counter[known]) / seconds > most_w:
            counter *= 1e-3
            self._notes.append("the counter of energy names no unit; its numbers are read as mJ")

    def _draws(self, of_board: Mapping[str, Floats], own: str) -> bool:
        """Tell whether a board's power or energy was read, and not 0 throughout beside others."""
        powers = [of_board[name] for name in DRAWN if name in of_board]
        if powers and own and not any(np.any(values != 0.0) for values in powers):
            self._notes.append(f"'{own}' reads 0 throughout, and is left out")
            return False
        return bool(powers)

    def _began_s(self, first_ns: int) -> float:
        """Since the epoch; a date without a zone is of this one. NaN where the log does not hold the day."""
        if first_ns < _SINCE_EPOCH_NS:
            return math.nan
        local = datetime.fromtimestamp(first_ns / 1e9, UTC).replace(tzinfo=None)
        return first_ns / 1e9 if self._numbered else local.timestamp()

    def _refuse(self, what: str, remedy: str) -> NoReturn:
        raise InputError(what, str(self._path), remedy)


def _drawn(index: str, of_board: Mapping[str, Floats]) -> str:
    """Say the readings and watts of a board of which no energy follows, as the beginning of a sentence."""
    power = readings.power_of(of_board)
    known = power[np.isfinite(power)]
    if not len(known):
        return ""
    watts = f"{known[0]:.4g} W" if len(known) == 1 else f"{known.mean():.4g} W in the mean, {known.max():.4g} W at most"
    return f"GPU {index}: {counted(len(known), 'reading')}, {watts}; "


def _number(cell: str) -> float | None:
    """What is not plain digits: exponents, hexadecimal masks, and the many words for what is not known."""
    words = cell.strip('" ').lower()
    if not words or words in HEADINGS["unknown"] or words[:1] == "[" or LOG_PATTERNS["no_reading"].fullmatch(words):
        return math.nan
    if re.fullmatch("0x[0-9a-f]{1,16}", words):
        return float(int(words, 16))
    value = float_or_none(_THOUSANDS.sub("", words).partition(" ")[0])
    return value if value is not None and abs(value) < 1e15 else None


def _shown(cell: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in cell[:40])


# --- lines ------------------------------------------------------------------------------------------------------------


def _block(text: bytes, layout: Layout) -> Block:
    """Lines in cells, those between spaces with one between two of them; a header that comes again is a remark."""
    if layout.delimiter is None:
        text = b"\n".join(b" ".join(line.split()) for line in text.split(b"\n"))
    elif b'"' in text:
        in_mw = any(each.channel in POWERS and each.scale == 1e-3 for each in layout.columns.values())
        text = _without_quotes(text, layout.delimiter, in_mw)
    if layout.header:
        text = b"\n" + text
        while b"\n " in text:
            text = text.replace(b"\n ", b"\n")
        text = text.replace(b"\n" + layout.header[:8], b"\n#")[1:]
    if layout.translation is not None:
        text = text.translate(layout.translation)
    return Block(text, layout.delimiter or " ", layout.cells)


def _without_quotes(block: bytes, delimiter: str, in_mw: bool) -> bytes:
    """Cells in quotes without them, without the separators inside, and their numbers as Python writes them."""
    try:
        rows = list(csv.reader(io.StringIO(block.decode("utf-8", "replace")), delimiter=delimiter))
    except csv.Error:
        return block
    columns = [_in_plain_digits(cells, in_mw) for cells in zip_longest(*rows, fillvalue="")]
    across = zip(*columns, strict=True)
    cells = ((cell.replace(delimiter, " ").replace("\n", " ") for cell in row) for row in across)
    lines = (delimiter.join(list(row)[: len(read)]) for row, read in zip(cells, rows, strict=True))
    return "".join(line + "\n" for line in lines).encode()


def _in_plain_digits(cells: Sequence[str], in_mw: bool) -> Sequence[str]:
    """A column without marks between thousands, and with decimal points: what a comma is follows of all its numbers.

    It stands between thousands where a point or a further comma follows, and where 3 digits follow each comma, but
    none stands in other numbers. In mW, decimals are not as many.
    """
    written = {cell for cell in cells if _WITH_MARKS.fullmatch(cell.strip())}
    if not written:
        return cells
    plain = {cell: _THOUSANDS.sub("", cell.strip()) for cell in written}
    commas = [number for number in plain.values() if "," in number]
    grouped = any(re.match(r"[+-]?\d+,\d{3}[.,]", number) for number in commas)
    if not grouped and all(re.match(r"[+-]?[1-9]\d{0,2},\d{3}(?!\d)", number) for number in commas):
        grouped = in_mw or any(re.match(r"[+-]?\d{1,3}(\D.*)?$", cell.strip()) for cell in {*cells} - {*commas})
    mark = "" if grouped else "."
    return [plain[cell].replace(",", mark) if cell in plain else cell for cell in cells]
