"""What `wattridge check --commits` has found over the commits of a repository: chains of comparisons, change points.

Each comparison is of two commits in turns on one board, so nothing of one session is compared with another's: the
joules of a commit are those of the first, times the ratios in between, as long as each begins where one before ended.
A commit is a change point where the interval of its own comparison, which holds with 1 - `ERROR`, leaves out 0: of 100
comparisons without a change at most one is expected to be marked. Along a chain the ends add up. A correction for the
number of commits would hide what the comparisons found: they end as soon as they know.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import numpy as np

from ...base.board_files import BoardFiles
from ...base.formatting import number
from ...base.records import Count, DateTime, as_json, from_json
from ..analysis.in_turns import ERROR, interval_of
from ..models.arrays import Floats
from ..results.chart import Chart, Series
from ..results.description import Description, Listing
from .check import Checked

_MOST: Final = 500  # comparisons of a benchmark that are kept, the newest
_FILES: Final = BoardFiles("checks", (1,), most_bytes=1 << 24)


@dataclass(frozen=True, slots=True)
class Compared:
    """One comparison of two commits, as it is kept."""

    a: str  # the commit
    b: str
    when: DateTime
    units: Floats  # log ratios of joules, shape (n,)
    energy_j: float  # of one unit of B's work, the median of its blocks


@dataclass(frozen=True, slots=True)
class Benchmark:
    """What was compared in a repository on boards of one name, the oldest first."""

    repository: str
    what: str
    gpu: str  # with its source where that is no board
    unit: str
    compared: tuple[Compared, ...]


@dataclass(frozen=True, slots=True)
class KeptHistory:
    """The file of a benchmark's comparisons, as a list shows it."""

    path: Path
    created_s: float
    benchmark: Benchmark


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit of a benchmark's history. Changes are relative: 0.02 is 2 % more."""

    commit: str
    when: DateTime
    against: str
    change: tuple[float, float]  # of its joules against that commit
    since_first: tuple[float, float]  # against the first commit of its chain
    energy_j: float  # of one unit of work, as that session measured it
    change_point: bool


@dataclass(frozen=True, slots=True)
class History:
    """A benchmark's commits; the interval of each comparison holds with 1 - `error`."""

    what: str
    gpu: str
    unit: str
    error: float
    change_points: Count
    commits: tuple[Commit, ...]


def keep(checked: Checked, repository: str, what: str, commits: tuple[str, str]) -> None:
    """Add a comparison to what is kept of its benchmark. Raises WattridgeError if nothing can be written."""
    path = _path(repository, what, checked.board)
    of_b = [block.energy_j for block in checked.blocks if block.side == "B" and block.energy_j > 0]
    energy_j = float(np.median(of_b)) if of_b else math.nan
    one = Compared(
        *commits,
        datetime.fromtimestamp(checked.when_s, UTC).isoformat(timespec="seconds"),
        checked.result.units,
        energy_j,
    )
    before = _FILES.read(path, lambda document: from_json(Benchmark, document))
    kept = (*(() if before is None else before.compared), one)[-_MOST:]
    _FILES.keep(path, as_json(Benchmark(repository, what, checked.board, checked.unit, kept)))


def histories(repository: str, what: str | None = None) -> list[History]:
    """The history of each benchmark of a repository, or of one. Damaged files count as none."""
    known = _FILES.all(lambda document: from_json(Benchmark, document))
    return [history_of(one) for one in known if one.repository == repository and what in (None, one.what)]


def kept_histories() -> list[KeptHistory]:
    """Every benchmark of every repository. Damaged files count as none."""
    found = []
    for one in _FILES.all(lambda document: from_json(Benchmark, document)):
        path = _path(one.repository, one.what, one.gpu)
        with suppress(OSError):
            found.append(KeptHistory(path, path.stat().st_mtime, one))
    return found


def history_of(benchmark: Benchmark) -> History:
    """Find the change points of a benchmark, and its joules along the chain of its comparisons."""
    reached: dict[str, tuple[float, float]] = {}  # log ratio of a commit to the first of its chain
    commits = []
    for one in benchmark.compared:
        low, high = interval_of(one.units, ERROR)
        before = reached.setdefault(one.a, (0.0, 0.0))
        reached[one.b] = before[0] + low, before[1] + high
        change, since_first = _relative((low, high)), _relative(reached[one.b])
        commits.append(Commit(one.b, one.when, one.a, change, since_first, one.energy_j, not low <= 0 <= high))
    found = sum(commit.change_point for commit in commits)
    return History(benchmark.what, benchmark.gpu, benchmark.unit, ERROR, found, tuple(commits))


def describe_history(history: History) -> Description:
    """For the terminal and the page."""
    header = ("commit", "when", "against", "change", "since the first", f"J per {history.unit}", "")
    rows = [
        (
            commit.commit[:12],
            commit.when[:16].replace("T", " "),
            commit.against[:12],
            _ends(commit.change),
            _ends(commit.since_first),
            commit.energy_j,
            "change point" if commit.change_point else "",
        )
        for commit in history.commits
    ]
    return Description(history.what, history.gpu, (), [Listing("", header, rows)], [_method(history)])


def history_chart(history: History) -> Chart:
    """Joules along the commits, with their band."""
    place = np.arange(1, len(history.commits) + 1, dtype=np.float64)
    ends = 100 * np.array([commit.since_first for commit in history.commits]).reshape(-1, 2)
    ends[~np.isfinite(ends)] = np.nan
    marked = np.array([commit.change_point for commit in history.commits], dtype=bool)
    middle = ends.mean(axis=1)
    return Chart(
        "commit, in the order of the table",
        "joules against the first (%)",
        (
            Series("joules", "blue", middle, place, points=True),
            Series("at least", "orange", ends[:, 0], place, dashed=True),
            Series("at most", "orange", ends[:, 1], place, dashed=True),
            Series("change point", "vermillion", middle[marked], place[marked], line=False, points=True),
        ),
        f"Joules of {history.what}, commit by commit; {_method(history)}.",
    )


# --- inside -----------------------------------------------------------------------------------------------------------


def _path(repository: str, what: str, gpu: str) -> Path:
    return _FILES.path(what, f"{repository}\n{what}\n{gpu}")


def _relative(ends: tuple[float, float]) -> tuple[float, float]:
    return math.expm1(ends[0]), math.expm1(ends[1])


def _ends(ends: Sequence[float]) -> str:
    if not all(map(math.isfinite, ends)):
        return "not known"
    return " to ".join(f"{number(round(100 * end, 2), 3)}" for end in ends) + " %"


def _method(history: History) -> str:
    return (
        "change points are commits whose own comparison in turns leaves out 0; each interval holds with"
        f" {number(100 * (1 - history.error), 3)} %, and along a chain of commits their ends add up"
    )
