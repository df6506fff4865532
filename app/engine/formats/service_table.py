"""Results of benchmarks of a server as one table, with the power of their boards by logs of the same time.

A row is a run. `time_s` and `energy_j` are of one output token, as of a service that is measured here. What is said of
power, and of boards, stands in the notes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Final

from ...base.errors import InputError
from ...base.files import is_there
from ...base.formatting import counted
from ...sensors.recorded.gpu import is_own, read_any
from ...sensors.recorded.logs.read import Log, is_log
from ..metering.recorded_energy import recorded_energy
from ..results.service_figures import OF_ENERGY, OF_RESULTS
from .cells import Cell, Table
from .headings import Role
from .service_results import ServedRun, is_served, served_runs

_FILES: Final = re.compile(r".*\.(jsonl?|csv|log|txt|wrec)(\.gz)?")
_MOST_FILES: Final = 1000  # of a folder
_LOG: Final = re.compile(r"(.*?)(?:#(\d+(?:,\d+)*))?(?:@([+-]\d+(?:\.\d+)?)h)?")  # a file, boards, hours to add
_EDGE_S: Final = 2.0  # that a log may begin later or end earlier: stamps are of whole seconds
_LATEST_S: Final = 1e11  # since the epoch
_HOURS: Final = [half / 2 for half in range(-28, 29)]  # by which clocks of other time zones differ
_APART: Final = 1.5  # ratio of powers, beyond which boards may not be of one service
_SAME: Final = 0.22  # of the logarithm of tokens per request, within which the work is the same
_GAP: Final = 0.1  # share of a run without readings, from which on it is said
_ALWAYS: Final = ("run", "request_rate", "concurrency", "batch", "tensor_parallelism", "precision")
_ROLES: Final = {
    **dict.fromkeys((*_ALWAYS, "pipeline_parallelism", "data_parallelism"), Role.PARAMETER),
    **dict.fromkeys(("duration_s", "requests", "errors", "boards", *OF_RESULTS[1:], *OF_ENERGY), Role.FIGURE),
}
Logged = tuple[Log, bool]  # a log, and whether the user says how its clock is set


def read_service(path: Path, beside: Sequence[str] = ()) -> Table | None:
    """Read results of a benchmark of a server, and what their boards drew.

    Parameters
    ----------
    path : Path
        A result, a folder with results and logs of power, or a log.
    beside : sequence of str, optional
        More of them. `LOG#0,2` names boards of a log, `LOG@+2h` adds two hours to its times.

    Returns
    -------
    Table or None
        None if `path` is no such result, and nothing is beside it.

    Raises
    ------
    InputError
        If a file cannot be read or is none of these, or if logs that are named cover no run.
    """
    if not beside and not path.is_dir() and not is_served(path):
        return None
    runs: list[ServedRun] = []
    logs: list[Logged] = []
    for text in (str(path), *beside):
        found = None if is_there(Path(text)) else _LOG.fullmatch(text)
        name, chosen, hours = found.groups() if found is not None else (text, None, None)
        for file in _files(Path(name)):
            served = served_runs(file)
            runs += served
            if not served and (is_own(file) or is_log(file)):
                logs.append((_chosen(read_any(file), chosen, float(hours or 0)), hours is not None))
            elif beside and not served and not Path(name).is_dir():
                what = "no result of a known benchmark of a server, nor a log of power"
                raise InputError(what, str(file), "leave it out")
    runs = list({(*run.tokens, round(run.figures["duration_s"], 6), _asked_for(run)): run for run in runs}.values())
    if not runs and beside:
        raise InputError("no result of a known benchmark of a server is among the files", str(path), "name one")
    return _table(path, runs, logs, asked=bool(beside)) if runs else None


def _asked_for(run: ServedRun) -> tuple[Cell, ...]:
    """The load of a run: where another one was asked for, it is no other copy of the same result."""
    return tuple(run.settings.get(name) for name in ("request_rate", "concurrency"))


def _files(path: Path) -> list[Path]:
    """A file, or those of a folder that has results."""
    found = sorted(islice((file for file in path.rglob("*.*") if _FILES.fullmatch(file.name)), _MOST_FILES))
    return (found if any(map(is_served, found)) else []) if path.is_dir() else [path]


def _chosen(log: Log, boards: str | None, hours: float) -> Log:
    """A log with the boards that are named, and the hours added to its times. Raises InputError."""
    named = boards.split(",") if boards else [board.title.rpartition("#")[2] for board in log.boards]
    kept = [board for board in log.boards if board.title.rpartition("#")[2] in named]
    if len(kept) < len(named):
        raise InputError(f"the log has no such boards: {boards}", str(log.path), ", ".join(b.title for b in log.boards))
    return replace(log, boards=tuple(replace(board, began_s=board.began_s + 3600 * hours) for board in kept))


def _table(path: Path, runs: Sequence[ServedRun], logs: Sequence[Logged], *, asked: bool) -> Table:
    rows, notes = [], list[str]()
    refused: list[InputError] = []
    for run, work in zip(runs, _works(runs), strict=True):
        watts = run.watts
        notes += [*run.said, *([f"{counted(run.boards, 'board')} by the parallelism"] if run.boards else [])]
        try:
            watts = watts or _watts(run, logs, notes)
            of = "the file, by" if run.is_of_all else f"{counted(len(watts), 'board')}:"
            notes.append(f"power is that of {of} {', '.join(watts)}")
        except InputError as error:
            refused.append(error)
            notes.append(f"no power: {error.what} ({error.remedy})")
        rows.append(_row(run, work, watts))
    if asked and logs and len(refused) == len(runs):
        raise refused[0]
    tools = ", ".join(dict.fromkeys(run.tool for run in runs))
    first = f"{counted(len(runs), 'run')} of a service by {tools}; time_s and energy_j are of one output token"
    alike: dict[str, list[str]] = {}  # but for numbers
    for line in notes:
        alike.setdefault(re.sub(r"[-+:.\d]+", "", line), []).append(line)
    said = ((line, 1 + len(more)) for line, *more in alike.values())
    lines = [line if count == len(runs) else f"{line} ({count} of {len(runs)} runs)" for line, count in said]
    cells = _cells(rows, {name for run in runs for name in run.settings} or {"run"})
    roles = {n: _ROLES.get(n, Role.LATENCY) for n in cells if n in _ROLES or n.startswith("e2e")}
    return Table(path, cells, (first, *lines), roles)


def _cells(rows: Sequence[Mapping[str, Cell]], settings: set[str]) -> dict[str, list[Cell]]:
    """The columns; what was set and is the same in all rows is left out unless it is asked for."""
    names = [name for name in dict.fromkeys(name for row in rows for name in row) if name != "run" or name in settings]
    cells = {name: [row.get(name, "not said" if name in settings else None) for row in rows] for name in names}
    return {n: c for n, c in cells.items() if n not in settings or n in _ALWAYS or len(set(c)) > 1}


def _row(run: ServedRun, work: str, watts: Mapping[str, float]) -> dict[str, Cell]:
    """The cells of a run by column."""
    row: dict[str, Cell] = {"run": run.path.stem, **run.settings, "kernel": work}
    rate, total = run.figures["output_tokens_per_s"], run.figures.get("total_tokens_per_s", math.nan)
    if not rate > 0:
        return {**row, "error": "no request was answered"}
    boards = (0 if run.is_of_all else len(watts)) or run.boards or math.nan
    power_w = math.fsum(watts.values()) or math.nan
    drawn = {"power_w": power_w, "energy_j": power_w / rate, "energy_per_token_j": power_w / rate}
    drawn |= {"energy_per_total_token_j": power_w / total, "run_energy_j": power_w * run.figures["duration_s"]}
    known = {**run.figures, "boards": boards, "time_s": 1 / rate, **drawn}
    return {**row, **{name: value for name, value in known.items() if math.isfinite(value)}}


def _works(runs: Sequence[ServedRun]) -> Iterator[str]:
    """What each run worked on: its model, whatever its number format, and how long prompts and answers were."""
    known: list[tuple[str, float, float]] = []
    for run in runs:
        requests = run.figures.get("requests") or math.nan
        given, out = (math.log(n / requests) if n / requests > 0 else math.nan for n in run.tokens)
        alike = (w for w in known if w[0] == run.model and not (abs(w[1] - given) > _SAME or abs(w[2] - out) > _SAME))
        known.append(work := next(alike, (run.model, given, out)))
        yield f"{work[0]}, {math.exp(work[1]):.0f} tokens in, {math.exp(work[2]):.0f} out"


# --- power of the same time -------------------------------------------------------------------------------------------


def _watts(run: ServedRun, logs: Sequence[Logged], said: list[str]) -> dict[str, float]:
    """The mean power over the run of the boards that its parallelism needs. Raises InputError where it is not known."""
    watts: dict[str, float] = {}
    fitting = _fitting(run, logs)
    for board in (board for log in fitting for board in log.boards):
        energy = recorded_energy(board, (run.start_s - board.began_s, run.end_s - board.began_s))
        main = energy.trapezoid or energy.counter
        if main is not None:
            watts[board.title] = main.mean_power_w
            if main.gap_s > _GAP * run.figures["duration_s"]:
                said.append(f"{board.title} has gaps of {main.gap_s:.3g} s in a run, in which its power is a guess")
    listed = ", ".join(f"{name} {watt:.0f} W" for name, watt in watts.items()) or "none"
    remedy = "name the boards of the service: --power-log LOG#0,1"
    if len(watts) != (run.boards or max(len(watts), 1)) or (len(fitting) > 1 and not run.boards):
        what = f"it ran on {counted(run.boards, 'board')}" if run.boards else "it is not clear on which boards it ran"
        raise InputError(f"{what}, and logged were {listed}", str(run.path), remedy)
    if not run.boards and max(watts.values()) > _APART * min(watts.values()):
        said.append(f"all boards of the log count, though they draw {listed}: {remedy}")
    return watts


def _fitting(run: ServedRun, logs: Sequence[Logged]) -> list[Log]:
    """The logs that cover a run. Raises InputError if there is none, or if another time zone would fit as well."""
    if not logs:
        raise InputError("no log of the same time is given", str(run.path), "--power-log LOG")
    if not 0 < run.start_s <= run.end_s < _LATEST_S:
        raise InputError(f"{run.tool} does not write when the run was", str(run.path), "no log can be matched with it")
    fitting = [(log, sure) for log, sure in logs if _covers(log, run)]
    for log, sure in fitting or logs:
        first = log.boards[0]
        fits = [f"{log.path.name}@{hours:+g}h" for hours in _HOURS if not sure and _covers(log, run, hours)]
        if not fitting or (first.zoned != run.zoned and len(fits) > 1):
            last_s = first.began_s + int(first.time_ns[-1]) / 1e9
            dated = _times(first.began_s, last_s, first.zoned) if 0 < last_s < _LATEST_S else "without a date"
            what = f"its run is {_times(run.start_s, run.end_s, run.zoned)}, and {log.path.name} {dated}"
            what += ", and only one of them names a time zone" if fitting else ""
            remedy = f"it would fit as {' or '.join(fits[:3])}" if fits else "log the power of the same time"
            raise InputError(what, str(run.path), remedy)
    return [log for log, _ in fitting]


def _covers(log: Log, run: ServedRun, hours: float = 0.0) -> bool:
    first_s = log.boards[0].began_s + 3600 * hours
    return first_s <= run.start_s + _EDGE_S and run.end_s <= first_s + log.boards[0].time_ns[-1] / 1e9 + _EDGE_S


def _times(start_s: float, end_s: float, zoned: bool) -> str:
    start, end = (datetime.fromtimestamp(time_s, UTC if zoned else None) for time_s in (start_s, end_s))
    return f"from {start:%Y-%m-%d %H:%M:%S} to {end:%Y-%m-%d %H:%M:%S}{' UTC' * zoned}"
