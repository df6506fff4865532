"""Any table of measurements as a recording: CSV, Parquet, JSON, JSON lines, or a folder with one JSON file per point.

What each column is follows from `roles`, or is said by the user (`TableColumns`).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from ...base.errors import InputError, WattridgeError
from ...base.files import text_chunks
from ...base.formatting import number as figure
from ...base.vocabulary import PATTERNS, WORDS
from ..metering.gain import fit_gain
from ..results.measurement import State, Value
from ..results.objectives import Goal, Objective, likely_goal
from ..results.service_figures import OF_RESULTS, SERVICE_FIGURES
from ..space.search_space import MIXED_KERNELS
from .cells import Table, of_text, read_cells
from .columns import parse_columns
from .entries import NO_VALUE, as_number
from .figures import COUNTABLE, COUNTED_ALIKE, TOKENS
from .headings import (
    ANSWERING,
    COME_AGAIN,
    COUNTED,
    EACH_ITS_OWN,
    MEASURED,
    SET,
    SETTING_OF,
    SOMEONE_CHOSE,
    Column,
    Role,
    over,
)
from .known_tables import as_its_tool_says
from .prepared_table import prepared
from .recording import MAXIMUM_PARAMETERS, Facts, Recording, RecordingBuilder
from .remembered_roles import remembered
from .roles import NONE_IN_SOME
from .service_table import read_service
from .sheet import NAMED, beside_main, main_column
from .table_columns import (
    APART,
    KERNELS,
    UNCERTAIN,
    TableColumns,
    column_roles,
    numbers_of,
    questions,
    there,
    varies,
)

REPEAT: Final = "repeat"  # the parameter that counts rows of one configuration
_PER: Final = tuple(
    (re.compile(rf"_per_{unit}$", re.IGNORECASE), written)
    for unit, written in (("s(ec|econd)?", "/s"), ("j(oule)?", "/J"), ("w(att)?", "/W"))
)
_OURS: Final = {  # our names of what a role measures
    Role.TIME: "time_s",
    Role.ENERGY: "energy_j",
    Role.POWER: "power_w",
    Role.OBSERVED_CLOCK: "observed_clock_mhz",
    Role.TEMPERATURE: "temperature_c",
    Role.WORK_ENERGY: "energy_per_work_j",
}
_Ours = dict[str, tuple[str, float]]  # our name of a figure -> its name in the table, and the factor to our unit
_GOOD: Final = ("", "0", "0.0", "false", "none", "no", "ok")  # cells of a column of errors, where there was none
_BAD: Final = ("0", "0.0", "no")  # cells of a column that says what went well
_NONE: Final = "none"
_SAME_WORK: Final = {Role.THROUGHPUT: 1.2, Role.ENERGY: 1.05}  # largest to least work, within which it is the same
_REPEATS_DIFFER: Final = 1.4  # largest to least, of most configurations: beyond what repeats scatter by
_MOST_NAMED: Final = 6  # columns that may be what was measured
_FEWEST_OF_METER: Final = 10  # rows
_LEAST_W, _MOST_W = 0.2, 20_000.0  # of the boards of a machine
_OVER: Final = 1.25  # of the power limit, beyond what boards overshoot by
_CONTRADICTED: Final = 0.1  # share by which energy may differ from power times time


def read_table(path: Path, columns: TableColumns | None = None) -> Recording:
    """A table as a recording. Raises InputError if it is none, or where it is not clear which columns are what."""
    table = table_of(path, columns)
    columns = TableColumns.parse(**remembered(path, table.columns)) if columns is None else columns
    table = prepared(table, columns)
    found = column_roles(table, columns)
    return recording_of(table, guess(table, columns, found), found)


def table_of(path: Path, columns: TableColumns | None = None) -> Table:
    """The cells of a table, or of results of a benchmark of a server with what is beside them. Raises InputError."""
    served = read_service(path, () if columns is None else columns.beside)
    return as_its_tool_says(read_cells(path)) if served is None else served


def is_clock_sweep(path: Path) -> bool:
    """Whether a text table holds powers at the values of one clock and nothing else that was chosen.

    Raises InputError if the file cannot be read.
    """
    beginning = next(text_chunks(path), "")
    try:
        table = of_text(parse_columns(beginning[: beginning.rfind("\n") + 1], str(path)), path)
        found = column_roles(table)
    except InputError:
        return False
    chosen = [column.role for column in found if column.role in SET and len(set(table.columns[column.heading])) > 1]
    clocks = chosen == [Role.GRAPHICS_CLOCK] or (not chosen and main_column(found, Role.OBSERVED_CLOCK) is not None)
    return clocks and main_column(found, Role.POWER) is not None


def guess(table: Table, requested: TableColumns | None = None, found: Sequence[Column] | None = None) -> TableColumns:
    """The columns of parameters and figures: as said, and the others by their roles. Raises InputError."""
    requested = requested or TableColumns()
    found = column_roles(table, requested) if found is None else found
    parameters, figures = _parameters_of(table, requested, found), _figures_of(table, requested, found)
    known = requested.figures or requested.roles or any(column.role in ANSWERING for column in found)
    what, remedy = "", f"name them: --parameters A,B --figures C,D. {there(table)}"
    if figures and not known:
        what = "no column is a time, an energy, a power or a speed that is known"
        remedy = f"name one: --figures time_s=COLUMN,energy_j=COLUMN. {there(table)}"
    elif not parameters or not figures:
        what = "it is not clear which columns are " + ("parameters" if not parameters else "figures")
    if what:
        raise InputError(what + _may_be_measured(table, found), str(table.path), remedy)
    return replace(requested, parameters=parameters, figures=figures)


def _may_be_measured(table: Table, found: Sequence[Column]) -> str:
    """The few columns of numbers without a known name, one of which is what was measured; '' where they are many."""
    unknown = [c.heading for c in found if c.role in (Role.FIGURE, Role.PARAMETER) and c.why in ("", SOMEONE_CHOSE)]
    left = [h for h in unknown if table.is_numeric(h) and varies(table, h)]
    left = [h for h in left if any(as_number(cell) % 1 for cell in table.columns[h] if cell is not None)] or left
    if not 0 < len(left) <= _MOST_NAMED:
        return ""
    names = " or ".join(f"'{heading[:60]}'" for heading in left)
    return f"; {names} may be a throughput, a time, a power or an energy (--roles '{left[0][:60]}=throughput')"


def _parameters_of(table: Table, requested: TableColumns, found: Sequence[Column]) -> dict[str, str]:
    """Name here -> heading, in the order in which the user names them."""
    headings, result = requested.headings, dict[str, str]()
    for column in found:
        heading = headings.get(column.heading, column.heading)
        tells = column.role in APART and requested.parameters is None
        if column.role in (*SET, Role.REPEAT) or (tells and varies(table, heading)):
            result[_parameter_name(column, result, requested)] = heading
    if not result and requested.parameters is None and len(table) > 1:  # runs without a setting: by their names
        names = [column.heading for column in found if column.why == EACH_ITS_OWN]
        return dict(zip(names[:1], names[:1], strict=True))
    if len(result) > MAXIMUM_PARAMETERS and len(table) == 1:  # everything that a program was started with
        known = {column.heading for column in found if column.why not in (SOMEONE_CHOSE, COME_AGAIN)}
        result = {name: heading for name, heading in result.items() if heading in known}
    return {name: result[name] for name in (*(requested.parameters or ()), *result) if name in result}


def _figures_of(table: Table, requested: TableColumns, found: Sequence[Column]) -> dict[str, str]:
    """Name here -> heading; the speed that counts first, unless the user names them."""
    headings = requested.headings
    result = {
        column.heading if column.heading in headings else _called(column): headings.get(column.heading, column.heading)
        for column in found
        if column.role in MEASURED and table.is_numeric(headings.get(column.heading, column.heading))
    }
    beside = _beside_speed(found, Role.EFFICIENCY)
    main = (main_column(found, Role.THROUGHPUT), beside if beside is not main_column(found, Role.EFFICIENCY) else None)
    first = [_called(column) for column in main if column is not None and requested.figures is None]
    return {name: result[name] for name in (*first, *result) if name in result}


def _stages(column: Column) -> set[str]:
    """The stages of the work that a heading names; those that generate are one, and those that read a prompt."""
    alike = {word: kind for kind in ("all_of_it", "part_of_it") for word in WORDS[kind]}
    return {alike.get(word, word) for word in column.words & WORDS["stages"]}


def _beside_speed(found: Sequence[Column], role: Role) -> Column | None:
    """The column of a role that counts and is of no other stage of the work than the speed: prefill, decode."""
    speed = main_column(found, Role.THROUGHPUT)
    of_speed = _stages(speed) if speed is not None else set()
    alike = (c for c in found if not of_speed or not _stages(c) or of_speed & _stages(c))
    return main_column(alike, role)


def _parameter_name(column: Column, taken: Mapping[str, str], requested: TableColumns) -> str:
    """Our name of a setting of the board and of a kernel, where the user gives the column none."""
    if (
        column.heading in KERNELS
        and column.role is Role.PARAMETER
        and column.heading not in (requested.parameters or {})
    ):
        return f"{column.heading} (chosen)"  # its rows can be compared
    ours = "kernel" if column.role is Role.KERNEL else SETTING_OF.get(column.role, "")
    if not ours or column.scale != 1.0 or ours in taken or column.heading in (requested.parameters or {}):
        return column.heading
    return ours


def _remarks(table: Table, columns: TableColumns, found: Sequence[Column], kept: int) -> Iterator[str]:
    """What of a table is left out or mixed, where `kept` of its rows are read."""
    parameters, figures = columns.parameters or {}, columns.figures or {}
    if kept < len(table):
        yield f"{len(table) - kept} of {len(table)} rows have no number in any figure and are left out"
    first = min(list(table.columns).index(column) for column in figures.values())
    unused = [c.heading for c in found if c.role is Role.UNUSED and c.why == "empty in some rows"]
    for name, column in list(table.columns.items())[:first]:
        empty = list(column).count(None)
        if 0 < empty < len(table) and name in unused:
            yield f"{name} is empty in {empty} of {len(table)} rows: it is not read as a parameter"
    for name in filter(KERNELS.__contains__, parameters):
        several = ", ".join(dict.fromkeys(map(str, table.columns[parameters[name]])))
        yield f"{MIXED_KERNELS}{several[:200]}): a best or a mean over all of them compares different work"


def _unlike_repeats(
    table: Table, found: Sequence[Column], configurations: Sequence[tuple[Value, ...]]
) -> Iterator[str]:
    """A question where rows of one configuration differ by more than repeats do: what may have been varied as well."""
    mains = (main_column(found, role) for role in (Role.THROUGHPUT, Role.TIME, Role.ENERGY))
    main = next((column for column in mains if column is not None and column.heading in table.columns), None)
    if main is None or not any(column.role in SET for column in found):  # runs of one thing
        return
    values, rows = numbers_of(table, main), dict[tuple[Value, ...], list[int]]()
    for row, configuration in enumerate(configurations):
        if values[row] > 0:
            rows.setdefault(configuration, []).append(row)
    several = [each for each in rows.values() if len(each) > 1]
    ratio = float(np.median([values[each].max() / values[each].min() for each in several])) if several else 1.0
    if ratio <= _REPEATS_DIFFER:
        return
    others = [column for column in found if column.why == EACH_ITS_OWN and column.heading in table.columns]
    telling = (c for c in others if all(len({table.columns[c.heading][row] for row in each}) > 1 for each in several))
    asked = [replace(column, candidates=(Role.UNUSED, Role.PARAMETER)) for column in telling][:1]
    what = f"rows of one configuration differ by {100 * (ratio - 1):.0f} % in {main.heading}"
    yield f"{what}: {next(questions(asked), 'no column says why')}"


def recording_of(table: Table, columns: TableColumns, found: Sequence[Column] | None = None) -> Recording:
    """The recording of a table whose columns are known. Raises InputError naming the row that cannot be read."""
    found = column_roles(table, columns) if found is None else found
    parameters = columns.parameters or {}
    if len(parameters) > MAXIMUM_PARAMETERS:
        where = str(table.path)
        raise InputError(f"{len(parameters)} parameters", where, f"at most {MAXIMUM_PARAMETERS} are read")
    without = {column.heading for column in found if column.why == NONE_IN_SOME}
    configurations = _configurations(table, parameters, {*columns.roles, *without})
    counts = _repeats(configurations)
    repeat = REPEAT if REPEAT not in parameters else f"{REPEAT} of a row"
    builder = RecordingBuilder(table.path, (*parameters, *((repeat,) if counts is not None else ())))
    cells, ours = _figures(table, columns, found)
    failures = _failures(table, found)
    checked = any(column.confirmed for column in found)
    rates = {_called(column): _per_joule(_called(column)) for column in found if column.role is Role.THROUGHPUT}
    contradicted = 0
    for row, configuration in enumerate(configurations):
        values = {name: column[row] for name, column in cells.items() if math.isfinite(column[row])}
        if not (values or failures[row]):
            continue
        if not any(values.values()):
            failures[row] = failures[row] or "all of its figures are 0: it was not measured"
        contradicted += _add_known(values, ours, rates, checked)
        state = State.RUNTIME if failures[row] else State.OK
        facts = Facts(state, {} if failures[row] else values, intervals={}, error=failures[row], source="recorded")
        builder.add(configuration if counts is None else (*configuration, counts[row]), facts)
    device, kernel = (_constant(table, found, role) for role in (Role.BOARD, Role.KERNEL))
    notes = [*_notes(table, columns, found, contradicted), *_together(found, cells), *_meters_beside(table, found)]
    notes += [*_remarks(table, columns, found, len(builder)), *_implausible(cells, ours)]
    notes += _unlike_repeats(table, found, configurations if counts is not None else ())
    recording = builder.finish(device=device, kernel=kernel, notes=notes)
    objective, named = _objective(recording, found), bool(kernel or not device)
    options = {**columns.options, **({"power_log": "\n".join(columns.beside)} if columns.beside else {})}
    return replace(recording, objective=objective, read_with=options, is_named=named, columns=tuple(found))


def _constant(table: Table, found: Sequence[Column], role: Role) -> str:
    """The one text in all rows of a column of a role; '' where there is none."""
    cells = (set(table.columns.get(column.heading, ())) for column in reversed(found) if column.role is role)
    return next((str(*each) for each in cells if len(each) == 1), "")


def _figures(table: Table, columns: TableColumns, found: Sequence[Column]) -> tuple[dict[str, list[float]], _Ours]:
    """The figures by name, and ours among them; times and energies of different work are not ours."""
    cells = {name: [as_number(cell) for cell in table.columns[of]] for name, of in (columns.figures or {}).items()}
    main = {ours: main_column(found, role) for role, ours in _OURS.items()}
    main["energy_per_work_j"] = _beside_speed(found, Role.WORK_ENERGY)
    ours = {name: (_called(column), column.scale) for name, column in main.items() if column is not None}
    if _of_a_step(found) is not None:
        ours.pop("time_s", None)
    if _is_known_less(table, main["time_s"], main_column(found, Role.THROUGHPUT)):
        cells = {f"{name} (of some)" if name == "time_s" else name: values for name, values in cells.items()}
        ours.pop("time_s", None)
    if _same_work(found, table):
        return cells, ours
    known = {name: np.array(cells[of]) * scale for name, (of, scale) in ours.items()}
    if {"time_s", "energy_j"} <= known.keys():
        power = over(known["energy_j"], known["time_s"])
        if "power_w" not in ours:
            cells["power_w"] = power.tolist()
        if "energy_per_work_j" in ours and main_column(found, Role.THROUGHPUT) is None:
            cells["work/s"] = over(power, known["energy_per_work_j"]).tolist()
    cells = {f"{name} (of all)" if name in ("time_s", "energy_j") else name: c for name, c in cells.items()}
    return cells, {name: of for name, of in ours.items() if name not in ("time_s", "energy_j")}


def _of_a_step(found: Sequence[Column]) -> tuple[Column, Column] | None:
    """The time of a step and the energy of the whole run, of which no power follows; None where they are of one."""
    time, energy = main_column(found, Role.TIME), main_column(found, Role.ENERGY)
    if time is None or energy is None or time.confirmed or "total" not in energy.words - time.words:
        return None
    return (time, energy) if time.words & {"step", "iter", "iteration", "epoch"} else None


def _is_known_less(table: Table, time: Column | None, rate: Column | None) -> bool:
    """Tell whether some rows have a speed and no time, by which they could not be compared."""
    if time is None or rate is None or not {time.heading, rate.heading} <= table.columns.keys():
        return False
    known, of_rate = (int(np.isfinite(numbers_of(table, column)).sum()) for column in (time, rate))
    return known < of_rate


def _notes(table: Table, columns: TableColumns, found: Sequence[Column], contradicted: int) -> Iterator[str]:
    """Notes on how the table was read: contradictions, assumptions, and what is not certain."""
    parameters, figures = (", ".join(named or ()) for named in (columns.parameters, columns.figures))
    yield f"a table of another tool, read with parameters: {parameters}; figures: {figures}"
    yield from (f"{column.heading} is {column.contradicted}" for column in found if column.contradicted)
    main = (main_column(found, role) for role in (Role.TIME, Role.ENERGY, Role.POWER))
    guessed = [column for column in main if column is not None and not column.confirmed and column.scale_is_guessed]
    yield from (f"{c.heading} names no unit: its numbers are read as {c.unit}" for c in guessed)
    if (unlike := _of_a_step(found)) is not None:
        yield "no power follows of '{1.heading}' over '{0.heading}': one is of the whole run".format(*unlike)
    if contradicted:
        yield f"the power of {contradicted} rows is not their energy over their time, and is not used"
    yield from _over_the_limit(table, found)
    answered = any(column.heading in KERNELS and column.why == NAMED for column in found)
    yield from (note for note in table.notes if not answered or UNCERTAIN not in note)
    yield from questions(found)


def _implausible(cells: Mapping[str, Sequence[float]], ours: _Ours) -> Iterator[str]:
    """A power, that of energy over time where none is there, which no boards draw: they are not of the same work."""
    (energy, joules), (time, seconds), (power, _) = (ours.get(n, ("", 1.0)) for n in ("energy_j", "time_s", "power_w"))
    if power or not energy or not time:
        return
    watts = over(np.array(cells[energy]) * joules, np.array(cells[time]) * seconds)
    middle = float(np.median(watts[np.isfinite(watts)], axis=0)) if np.isfinite(watts).any() else 0.0
    if middle and not _LEAST_W < middle < _MOST_W:
        ratio = f"'{energy}' over '{time}' is {figure(middle)} W"
        yield f"{ratio}: that both are of the same work and in these units is not certain"


def _over_the_limit(table: Table, found: Sequence[Column]) -> Iterator[str]:
    """What is drawn beyond the power limit that is said to hold."""
    limit, power = (main_column(found, role) for role in (Role.POWER_LIMIT, Role.POWER))
    if limit is None or power is None or not {limit.heading, power.heading} <= table.columns.keys():
        return
    under, drawn = numbers_of(table, limit), numbers_of(table, power)
    beyond = np.flatnonzero((under > 0) & (drawn > _OVER * under))
    if len(beyond):
        row = int(beyond[np.argmax(drawn[beyond] / under[beyond])])
        most = f"{drawn[row]:.0f} W under {under[row]:.0f} W"
        yield f"{len(beyond)} rows draw more than their limit, row {row + 1} {most}"


def _together(found: Sequence[Column], cells: Mapping[str, Sequence[float]]) -> Iterator[str]:
    """The energy of all rows together, where they have no setting or say when they were."""
    if any(column.role in SET for column in found) and not any(column.role is Role.STAMP for column in found):
        return
    for column in found:
        if column.role is Role.ENERGY and (values := cells.get(_called(column))) is not None:
            energies = [value for value in values if math.isfinite(value)]
            total, steps = figure(math.fsum(energies) * column.scale), np.diff(energies)
            note = f"all {len(energies)} rows together: {total} J by {column.heading}"
            if len(steps) >= _FEWEST_OF_METER and (steps >= 0).all() and steps.any():
                rise = figure(float(steps.sum()) * column.scale)
                note = f"{column.heading} never falls: all rows together have {rise} J if it is a meter that counts up"
                note += f", and {total} J if each has its own; {UNCERTAIN}"
            yield note


def _meters_beside(table: Table, found: Sequence[Column]) -> Iterator[str]:
    """Gain and offset of the power or energy that counts against each other meter's, or why they are not known."""
    for role, unit in ((Role.POWER, "W"), (Role.ENERGY, "J")):
        columns = [column for column in beside_main(found, role) if column.heading in table.columns]
        for column in columns[1:]:
            try:
                gain = fit_gain(column.heading, numbers_of(table, columns[0]), numbers_of(table, column))
                yield gain.sentence(columns[0].heading, unit)
            except WattridgeError as error:
                yield f"{columns[0].heading} against {column.heading}: {error.what}"


def _called(column: Column) -> str:
    """The name here of a figure: that of a speed says that it is one."""
    name = _figure_name(column.heading)
    known = PATTERNS["named_rate"].search(name.lower())
    return f"{name} [1/s]" if column.role is Role.THROUGHPUT and not known else name


def _failures(table: Table, found: Sequence[Column]) -> list[str]:
    """Why each row failed, as a column of states says; '' for those that did not."""
    reasons = [""] * len(table)
    for column in (column for column in found if column.role is Role.STATE):
        named_bad = any(PATTERNS[kind].search(column.heading.lower()) for kind in ("exit", "failing"))
        well = column.words & WORDS["went_well"]  # else 0 may be a status without an error
        for row, cell in enumerate(table.columns[column.heading]):
            text = "" if cell is None else str(cell).strip()
            bad = text.lower() not in _GOOD if named_bad else PATTERNS["bad"].search(text) or (well and text in _BAD)
            reasons[row] = reasons[row] or (f"{column.heading}: {text}"[:200] or NO_VALUE if bad else "")
    return reasons


def _figure_name(column: str) -> str:
    """'tokens_per_s' is called tokens/s here, where the end of a name is its unit; figures of a service are not."""
    if column in (*SERVICE_FIGURES, *OF_RESULTS):
        return column
    for pattern, written in _PER:
        column = pattern.sub(written, column)
    return column


def _objective(recording: Recording, found: Sequence[Column]) -> Objective:
    """Time and energy of the same work, else a speed and an efficiency, else the first figure."""
    names = recording.value_names
    least = Goal("energy_j", False)
    if {"time_s", "energy_j"} <= set(names):
        return Objective(least, (Goal("time_s", False), least))
    per_work, said = _beside_speed(found, Role.WORK_ENERGY), _beside_speed(found, Role.EFFICIENCY)
    of_work = Goal(_called(per_work), False) if per_work is not None and _called(per_work) in names else None
    first = main_column(found, Role.THROUGHPUT)
    speeds = sorted((c for c in found if c.role is Role.THROUGHPUT), key=lambda column: column is not first)
    rates = [rate for rate in map(_called, speeds) if rate in names]
    for speed in rates:
        stated = _called(said) if said is not None and _per_joule(speed) not in names else _per_joule(speed)
        per_joule = of_work or Goal(stated, True)
        if per_joule.name in names:
            return Objective(per_joule, (Goal(speed, True), per_joule))
    if "time_s" in names:
        return (
            Objective(likely_goal("time_s"))
            if of_work is None
            else Objective(of_work, (Goal("time_s", False), of_work))
        )
    if rates and first is not None and rates[0] == _called(first):
        return Objective(Goal(rates[0], True))
    answering = (name for column in found if column.role in ANSWERING and (name := _called(column)) in names)
    return Objective(likely_goal(next(answering, names[0] if names else "time")))


def _same_work(found: Sequence[Column], table: Table) -> bool:
    """Tell whether the amount of work is the same for each kernel, so that times may be compared.

    It is speed times time, energy over energy per work, or what was counted.
    """
    kernels = np.array([str(cell) for cell in table.columns.get("kernel", [""] * len(table))])
    there = [c for c in found if c.heading in table.columns]
    counts = (c for c in there if c.why == COUNTED and c.words & COUNTABLE - TOKENS and table.is_numeric(c.heading))
    works = [(numbers_of(table, count), COUNTED_ALIKE) for count in counts]
    for roles, power in (((Role.THROUGHPUT, Role.TIME), 1), ((Role.ENERGY, Role.WORK_ENERGY), -1)):
        columns = [c for role in roles if (c := main_column(there, role)) is not None]
        if len(columns) == 2:
            one, other = (numbers_of(table, column) for column in columns)
            works.append((one * other if power > 0 else over(one, other), _SAME_WORK[roles[0]]))
    for work, most in works:
        known = np.isfinite(work) & (work > 0)
        names, which = np.unique(kernels[known], return_inverse=True)
        largest, least = np.zeros(len(names)), np.full(len(names), np.inf)
        np.maximum.at(largest, which, work[known])
        np.minimum.at(least, which, work[known])
        if (largest > most * least).any():
            return False
    return True


# --- rows -------------------------------------------------------------------------------------------------------------


def _configurations(table: Table, parameters: Mapping[str, str], said: Collection[str]) -> list[tuple[Value, ...]]:
    """The values of each row; what one lacks of what the user calls a parameter is 'none'."""
    cells = {name: table.columns[heading] for name, heading in parameters.items()}
    missing = [(column.index(None), name) for name, column in cells.items() if None in column and name not in said]
    for row, name in sorted(missing)[:1]:
        what = f"row {row + 1} has no value of '{name[:60]}'"
        raise InputError(what, str(table.path), "correct or remove the row")
    return [tuple(_NONE if cell is None else cell for cell in row) for row in zip(*cells.values(), strict=True)]


def _repeats(configurations: Sequence[tuple[Value, ...]]) -> list[int] | None:
    """The number of each row among those of its configuration; None if no configuration comes twice."""
    seen, counts = Counter[tuple[Value, ...]](), list[int]()
    for configuration in configurations:
        seen[configuration] += 1
        counts.append(seen[configuration])
    return counts if max(counts, default=1) > 1 else None


def _per_joule(rate: str) -> str:
    """The name of the work per joule of a speed."""
    work = rate.removesuffix("/s").removesuffix("_per_s")
    return f"{rate}/W" if work == rate else f"{work}/J"


def _add_known(
    values: dict[str, float], ours: Mapping[str, tuple[str, float]], rates: Mapping[str, str], checked: bool
) -> bool:
    """Time, energy and power in s, J and W, and work per joule of each rate.

    Returns whether the row's power contradicts its own energy and time, which those of the table do not (`checked`).
    """
    for name, (theirs, scale) in ours.items():
        if theirs in values:
            values.setdefault(name, values[theirs] * scale)
    time_s, energy_j, power_w = (values.get(name, math.nan) for name in ("time_s", "energy_j", "power_w"))
    known = energy_j > 0 and time_s > 0
    contradicted = checked and known and abs(energy_j / time_s - power_w) > _CONTRADICTED * power_w
    if math.isnan(energy_j) and not math.isnan(power_w * time_s):
        values["energy_j"] = energy_j = power_w * time_s
    if (math.isnan(power_w) or contradicted) and energy_j > 0 and time_s > 0:
        values["power_w"] = power_w = energy_j / time_s
    per_work = values.get("energy_per_work_j", math.nan)
    if per_work > 0:
        values["work/J"] = 1.0 / per_work
    for rate, efficiency in rates.items() if power_w > 0 else ():
        if rate in values:
            values.setdefault(efficiency, values[rate] / power_w)
    return contradicted
