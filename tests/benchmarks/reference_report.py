"""What `reference.py` has measured: its tables, from what it kept. Needs no GPU; a changed model is compared with it.

PYTHONPATH=. python tests/benchmarks/reference_report.py FOLDER [FOLDER ...]
Each FOLDER is one board's. The model of the board is learnt once more from the windows that were kept, session after
session; a folder without windows (of before they were kept) counts with the models of its sessions. Beside each of the
references' errors stand those as drawn. The interval of a share is binomial [Clopper-Pearson], with as many pairs as
independent ones would tell as much, since those of one configuration go together.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from reference import LIMITS, NAMES, configurations, specification_text

from app.engine.metering.condition import Condition
from app.engine.metering.thermal import BoardLearning
from app.engine.metering.window import Window
from app.engine.results.measurement import Measurement
from app.engine.runner.stating import Statement
from app.engine.session.load import load_specification
from app.engine.specification.model import Specification
from app.engine.store.database import Store
from app.sensors.gpu import GpuInfo, PowerLimit

Pair = dict[str, Any]


@dataclass
class Board:
    """What one folder holds."""

    name: str
    specification: Specification
    sessions: list[list[Measurement]]  # as drawn or stated, whichever: both are in them
    statements: list[Statement | None]
    references: list[dict[str, Any]]
    within: list[dict[str, Any]]


def read_board(folder: Path) -> Board:
    """One folder. The data folder is copied: learning writes there."""
    with tempfile.TemporaryDirectory() as place:
        data = Path(place) / "data"
        shutil.copytree(folder / "data", data)
        shutil.rmtree(data / "boards", ignore_errors=True)
        os.environ["WATTRIDGE_DATA"] = str(data)
        written = Path(place) / "sgemm24.toml"
        written.write_text(specification_text(configurations()))
        specification = load_specification(written)
        with Store() as store:
            loaded = [store.load(number) for number in (1, 2, 3)]
        tables = [[each.table.measurement(at) for at in range(len(each.table))] for each in loaded]
        statements = [Statement.of_origin(each.record.origin) for each in loaded]
        record = loaded[0].record
        info = GpuInfo(
            0,
            record.origin.get("gpu", ""),
            record.gpu,
            record.source,
            record.driver,
            PowerLimit(None, None, None, None),
        )
        kept = folder / "windows.json"
        if kept.exists():
            statements = list(_learnt(info, json.loads(kept.read_text())))
    references = [
        each
        for history in ("idle", "hot")
        if (folder / f"{history}.json").exists()
        for each in json.loads((folder / f"{history}.json").read_text())
    ]
    inner = folder / "within.json"
    within = json.loads(inner.read_text()) if inner.exists() else []
    return Board(f"{record.gpu}, {folder.name}", specification, tables, statements, references, within)


def _learnt(info: GpuInfo, windows: Sequence[dict[str, Any]]) -> list[Statement | None]:
    """The model after each session, as the program would have learnt it now."""
    found: list[Statement | None] = []
    for session in (1, 2, 3):
        learning = BoardLearning(info)
        for each in windows:
            if each["session"] == session:
                known = {
                    field.name: each["window"][field.name] for field in fields(Window) if field.name in each["window"]
                }
                window = Window(**{**known, "condition": Condition(**known["condition"])})
                learning.note(each["kernel"], window)
        found.append(Statement(learning.condition, learning.model))
        learning.keep(fix_condition=True)
    return found


def pairs_of(board: Board) -> list[Pair]:
    """Every pair of a session and a reference: the session's figures stated for the reference's own condition."""
    pairs = []
    for number, (table, statement) in enumerate(zip(board.sessions, board.statements, strict=True), 1):
        for reference in (each for each in board.references if not each.get("again")):
            condition = Condition(*(float(reference[name]) for name in ("gpu_c", "memory_c", "fast_w", "slow_w")))
            found = [m for m in table if [m.configuration[name] for name in NAMES] == reference["key"]]
            if statement is None or not found or "energy_j" not in found[0].values:
                continue
            m = replace(statement, condition=condition).state(found[0], board.specification)
            low, high = m.intervals["energy_j"]
            raw_low, raw_high = m.intervals["energy_raw_j"]
            raw_error = m.values["energy_raw_j"] / reference["energy_j"] - 1
            pairs.append(
                {
                    "session": number,
                    "key": reference["key"],
                    "history": reference["history"],
                    "at_cap": bool(reference["limited"]) or bool(m.event_reasons & LIMITS),
                    "raw_error": raw_error,
                    "error": m.values["energy_j"] / reference["energy_j"] - 1,
                    "power_error": m.values["power_w"] / reference["power_w"] - 1,
                    "time_error": m.values["time_s"] / reference["time_s"] - 1,
                    "half_width": (high - low) / 2 / m.values["energy_j"],
                    "covered": low <= reference["energy_j"] <= high,
                    "raw_covered": abs(raw_error) <= (raw_high - raw_low) / 2 / m.values["energy_raw_j"],
                    "correction": m.values["thermal_correction"] - 1,
                    "flagged": "per launch" in m.message,
                }
            )
    return pairs


def share_interval(pairs: Sequence[Pair]) -> tuple[float, float]:
    """95 % of the share covered [Clopper-Pearson], of as many independent pairs as the clusters are worth."""
    from scipy.stats import beta

    groups: dict[tuple[int, ...], list[float]] = {}
    for pair in pairs:
        groups.setdefault(tuple(pair["key"]), []).append(float(pair["covered"]))
    count, share = len(pairs), statistics.fmean(float(pair["covered"]) for pair in pairs)
    if 0 < share < 1:
        apart = sum((sum(group) - share * len(group)) ** 2 for group in groups.values()) / count**2
        design = max(1.0, apart / (share * (1 - share) / count))
        effective = max(float(len(groups)), count / design)
    else:
        effective = float(len(groups))  # nothing tells how far they go together
    hits = share * effective
    low = 0.0 if hits == 0 else float(beta.ppf(0.025, hits, effective - hits + 1))
    high = 1.0 if hits == effective else float(beta.ppf(0.975, hits + 1, effective - hits))
    return low, high


def quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    at = share * (len(ordered) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (at - low) * (ordered[high] - ordered[low])


def report_pairs(pairs: list[Pair]) -> dict[str, Any]:
    """The table of sessions against references."""
    document: dict[str, Any] = {}
    kinds = {"all": pairs}
    for history in ("idle", "hot"):
        kinds[history] = [pair for pair in pairs if pair["history"] == history]
    kinds["below the cap"] = [pair for pair in pairs if not pair["at_cap"]]
    kinds["at the cap"] = [pair for pair in pairs if pair["at_cap"]]
    print(
        "pairs                 n   raw: median 95th %  stated: median 95th % bias %   covered (95 %)       half %"
        "  raw covered"
    )
    for kind, some in kinds.items():
        if not some:
            continue
        raw, stated = [abs(p["raw_error"]) for p in some], [abs(p["error"]) for p in some]
        low, high = share_interval(some)
        row = {
            "pairs": len(some),
            "raw_median": quantile(raw, 0.5),
            "raw_p95": quantile(raw, 0.95),
            "median": quantile(stated, 0.5),
            "p95": quantile(stated, 0.95),
            "bias": statistics.fmean(p["error"] for p in some),
            "coverage": statistics.fmean(p["covered"] for p in some),
            "coverage_95": [low, high],
            "half_width": quantile([p["half_width"] for p in some], 0.5),
            "raw_coverage": statistics.fmean(p["raw_covered"] for p in some),
        }
        document[kind] = row
        print(
            f"{kind:<18}{row['pairs']:>5}{100 * row['raw_median']:>13.2f}{100 * row['raw_p95']:>8.2f}"
            f"{100 * row['median']:>16.2f}{100 * row['p95']:>8.2f}{100 * row['bias']:>8.2f}"
            f"{100 * row['coverage']:>9.0f} % ({100 * low:.0f} to {100 * high:.0f}){100 * row['half_width']:>10.2f}"
            f"{100 * row['raw_coverage']:>8.0f} %"
        )
    off = [p for p in pairs if abs(p["time_error"]) > 0.01]
    document["time_errors_above_1_percent"] = len(off)
    document["of_which_unflagged"] = len([p for p in off if not p["flagged"] and not p["at_cap"]])
    print(f"times off by more than 1 %: {len(off)} pairs, unflagged below the cap: {document['of_which_unflagged']}")
    for p in sorted(pairs, key=lambda p: -abs(p["error"]))[:8]:
        errors = {name: f"{100 * p[name]:+.2f}" for name in ("error", "raw_error", "power_error", "time_error")}
        said = [word for word, so in (("at the cap", p["at_cap"]), ("flagged", p["flagged"])) if so]
        print(
            f"  {'x'.join(map(str, p['key'])):<14}{p['history']:<5} session {p['session']}:"
            f" energy {errors['error']} % (raw {errors['raw_error']}), power {errors['power_error']},"
            f" time {errors['time_error']}, ± {100 * p['half_width']:.2f} {', '.join(said)}"
        )
    return document


def report_parts(board: Board, pairs: Sequence[Pair]) -> dict[str, float]:
    """What the errors are made of, one sigma: what all pairs of a session share, of a reference, and the windows' rest.

    By the mean squares of two crossed factors, of which every pair has one of each [Searle1992, section 4.3]; and by
    how much references differ from themselves, measured again.
    """
    errors: dict[tuple[str, str], dict[int, float]] = {}
    for pair in pairs:
        errors.setdefault((str(pair["key"]), pair["history"]), {})[pair["session"]] = pair["error"]
    sessions = sorted({pair["session"] for pair in pairs})
    table = [[each[at] for at in sessions] for each in errors.values() if len(each) == len(sessions)]
    rows, columns, found = len(table), len(sessions), {}
    if rows > 1 and columns > 1:
        mean = statistics.fmean(error for row in table for error in row)
        of_row = [statistics.fmean(row) for row in table]
        of_column = [statistics.fmean(row[at] for row in table) for at in range(columns)]
        rest = sum(
            (error - of_row[i] - of_column[j] + mean) ** 2 for i, row in enumerate(table) for j, error in enumerate(row)
        ) / ((rows - 1) * (columns - 1))
        found = {
            "session_sd": math.sqrt(max(0.0, statistics.variance(of_column) - rest / rows)),
            "reference_sd": math.sqrt(max(0.0, statistics.variance(of_row) - rest / columns)),
            "window_sd": math.sqrt(rest),
        }
        print(
            f"of which, one sigma: all of a session {100 * found['session_sd']:.2f} %, a reference "
            f"{100 * found['reference_sd']:.2f} %, the rest of a window {100 * found['window_sd']:.2f} %"
        )
    for again in (each for each in board.references if each.get("again")):
        alike = (each for each in board.references if each["key"] == again["key"] and not each.get("again"))
        first = next(each for each in alike if each["history"] == again["history"])
        name = "x".join(map(str, again["key"]))
        power, time = (again[figure] / first[figure] - 1 for figure in ("power_w", "time_s"))
        found[f"{name}_{again['history']}_again"] = power
        print(f"reference {name} {again['history']} again: power {100 * power:+.2f} %, time {100 * time:+.2f} %")
    return found


def report_sessions(board: Board) -> dict[str, Any]:
    """The models, and how much each configuration varies over the sessions at the board's condition."""
    models, seen = [], {}
    first = next((statement for statement in board.statements if statement is not None), None)
    for number, (table, statement) in enumerate(zip(board.sessions, board.statements, strict=True), 1):
        if statement is None or first is None:
            continue
        model = statement.model
        named = ", ".join(f"{each:+.4f}" for each in model.coefficients)
        models.append({"condition": statement.condition.words, "coefficients": model.coefficients})
        models[-1] |= {"repeatability": model.repeatability, "reproducibility": model.uncertainty(0.0)}
        print(
            f"session {number}: {statement.condition.words}; per °C GPU, memory, share 1 s, 30 s: {named}; "
            f"repeatability ±{100 * model.repeatability:.2f} %, reproducibility ±{100 * model.uncertainty(0.0):.2f} %"
        )
        for m in (replace(statement, condition=first.condition).state(m, board.specification) for m in table):
            for name in ("energy_raw_j", "energy_j", "time_s"):
                if name in m.values:
                    seen.setdefault((name, m.row), []).append(m.values[name])
    variation = {}
    for name in ("energy_raw_j", "energy_j", "time_s"):
        each = [statistics.stdev(v) / statistics.fmean(v) for (of, _), v in seen.items() if of == name and len(v) > 1]
        variation[name] = statistics.median(each) if each else math.nan
        print(
            f"CV between sessions, {name}: median {100 * variation[name]:.2f} %, "
            f"95th percentile {100 * quantile(each, 0.95) if each else math.nan:.2f} %"
        )
    return {"models": models, "cv": variation}


def report_within(within: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Repeats within one process against the steady state of each configuration there."""
    document = {}
    steady = {tuple(each["key"]): each for each in within if each["steady"]}
    for kind, at_cap in (("below the cap", False), ("at the cap", True)):
        errors, variation, times = [], [], []
        for key, reference in steady.items():
            mine = [each for each in within if tuple(each["key"]) == key and not each["steady"]]
            if reference["at_cap"] != at_cap or len(mine) < 2:
                continue
            energies = [each["values"]["energy_j"] for each in mine]
            errors += [abs(energy / reference["values"]["energy_j"] - 1) for energy in energies]
            times += [abs(each["values"]["time_s"] / reference["values"]["time_s"] - 1) for each in mine]
            variation.append(statistics.stdev(energies) / statistics.fmean(energies))
        if not errors:
            continue
        row = {"n": len(errors), "median": quantile(errors, 0.5), "p95": quantile(errors, 0.95)}
        row |= {"cv": statistics.median(variation), "time_median": quantile(times, 0.5)}
        document[kind] = row
        print(
            f"within one process, {kind}: {row['n']} repeats, energy off by {100 * row['median']:.2f} % (median), "
            f"{100 * row['p95']:.2f} % (95th percentile), CV {100 * row['cv']:.2f} %; "
            f"time off by {100 * row['time_median']:.2f} %"
        )
    return document


def main() -> None:
    for folder in map(Path, sys.argv[1:]):
        board = read_board(folder)
        print(f"\n{board.name}")
        pairs = pairs_of(board)
        document = {"summary": report_pairs(pairs), "parts": report_parts(board, pairs)}
        document |= {"sessions": report_sessions(board)}
        document |= {"within": report_within(board.within), "pairs": pairs, "references": board.references}
        (folder / "reference.json").write_text(json.dumps(document, indent=1))


if __name__ == "__main__":
    main()
