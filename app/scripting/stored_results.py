"""Files that Kernel Tuner's scripts write of their results."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from .. import __version__
from ..engine.formats.c_header import c_value, comment_text, identifier
from ..engine.formats.own import About
from ..engine.formats.t4 import write_t4
from ..errors import InputError
from ..files import read_text, write_text
from .figures import read_objective
from .kernel_tuner import Results

_VERSION: Final = "1.0"
_MOST_BYTES: Final = 1 << 26


def store_output_file(
    output_filename: str | Path, results: Sequence[Mapping[str, Any]], tune_params: Any = None, objective: str = "time"
) -> None:
    """Write results of `tune_kernel` in the format T4; the suffix .json is added where it is missing."""
    if not isinstance(results, Results):
        raise InputError("these are no results of tune_kernel", "store_output_file", "pass what it returned, as it is")
    plan = results.plan
    about = About(plan.gpu, plan.title, plan.objective, plan.source, plan.origin.get("problem_size", ""), plan.units)
    write_t4(results.table, _json_path(output_filename), about, overwrite=True)


def store_metadata_file(metadata_filename: str | Path, target: str = "nvidia") -> None:
    """Write where the tuning took place."""
    metadata = {
        "operating_system": platform.platform(),
        "python": platform.python_version(),
        "wattridge": __version__,
        "timestamp": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    write_text(_json_path(metadata_filename), json.dumps(metadata, indent=2) + "\n", overwrite=True)


def store_results(
    results_filename: str | Path,
    kernel_name: str,
    kernel_string: Any,
    tune_params: Mapping[str, Any],
    problem_size: Any,
    results: Sequence[Mapping[str, Any]],
    env: Mapping[str, Any],
    top: float = 3,
    objective: str | None = None,
    objective_higher_is_better: bool | None = None,
) -> None:
    """Write the best `top` per cent of the results, for this board and problem size beside what the file holds.

    Raises InputError where the file is of another kernel or where no result has the objective.
    """
    name = objective or "time"
    goal = read_objective(name, objective_higher_is_better, None, (name,)).goal
    worked = [each for each in results if "__error__" not in each and isinstance(each.get(name), int | float)]
    if not worked:
        raise InputError(f"no result has a {name}", "store_results", "look at the errors in the results")
    worked.sort(key=lambda each: float(each[name]), reverse=goal.maximise)
    path = Path(results_filename)
    board, size = _word(env["device_name"]), _size(problem_size)
    kept = [] if not path.is_file() else _results_of(path, kernel_name, tune_params, name)
    entries = [each for each in kept if (each.get("device_name"), each.get("problem_size")) != (board, size)]
    for each in worked[: max(1, int(len(worked) * top / 100))]:
        parameters = {key: each[key] for key in tune_params}
        place = {"device_name": board, "problem_size": size}
        entries.append({**place, "tunable_parameters": parameters, name: each[name]})
    document = {
        "version_number": _VERSION,
        "kernel_name": kernel_name,
        "kernel_string": str(kernel_string) if isinstance(kernel_string, str | Path) else "",
        "tunable_parameters": list(tune_params),
        "objective": name,
        "objective_higher_is_better": goal.maximise,
        "data": entries,
    }
    write_text(path, json.dumps(document, indent=2) + "\n", overwrite=True)


def create_device_targets(
    header_filename: str | Path,
    results_filename: str | Path,
    objective: str | None = None,
    objective_higher_is_better: bool | None = None,
) -> None:
    """Write a C header with the best parameters for each board of a file by `store_results`.

    `TARGET_GPU` and the board's name select a board; without, the parameters are those of the best entry of all.
    """
    document = _document(Path(results_filename))
    name = objective or document["objective"]
    direction = objective_higher_is_better
    if direction is None:
        direction = document["objective_higher_is_better"]
    boards: dict[str, list[Mapping[str, Any]]] = {}
    for each in document["data"]:
        boards.setdefault(str(each["device_name"]), []).append(each)
    best = {board: _best(entries, name, bool(direction)) for board, entries in boards.items()}
    kernel = comment_text(document["kernel_name"])
    lines = [f"/* {kernel}: parameters by board, chosen for {name}; written by Wattridge {__version__} */"]
    lines += ["#pragma once", "#ifndef kernel_tuner /* a tuner defines its own */"]
    word = "#if"
    for board, entry in best.items():
        lines += [f"{word} defined(TARGET_{_word(board)})", *_defines(entry)]
        word = "#elif"
    usual = _defines(_best(list(best.values()), name, bool(direction)))
    lines += ["#else", *usual, "#endif", "#endif /* kernel_tuner */"]
    write_text(Path(header_filename), "\n".join(lines) + "\n", overwrite=True)


# --- inside -----------------------------------------------------------------------------------------------------------


def _json_path(name: str | Path) -> Path:
    path = Path(name)
    return path if path.suffix == ".json" else path.with_name(f"{path.name}.json")


def _word(board: object) -> str:
    """A board's name as these files have it."""
    return re.sub(r"[^A-Za-z0-9_]", "_", str(board))


def _size(given: Any) -> str:
    several = given if isinstance(given, tuple | list) else (given,)
    return "x".join(str(each) for each in several)


def _document(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(read_text(path, _MOST_BYTES))
    except (ValueError, RecursionError):
        document = None
    known = isinstance(document, dict) and document.get("version_number") == _VERSION
    if not known or not isinstance(document.get("data"), list):
        raise InputError("it is no file of stored results", str(path), "name one that store_results wrote")
    document.setdefault("objective_higher_is_better", False)
    return dict(document)


def _results_of(path: Path, kernel: str, parameters: Mapping[str, Any], objective: str) -> list[dict[str, Any]]:
    document = _document(path)
    here = (kernel, list(parameters), objective)
    if (document.get("kernel_name"), document.get("tunable_parameters"), document.get("objective")) != here:
        what = f"it holds results of {document.get('kernel_name')} for {document.get('objective')}"
        raise InputError(what, str(path), "name another file")
    return list(document["data"])


def _best(entries: Sequence[Mapping[str, Any]], name: str, maximise: bool) -> Mapping[str, Any]:
    return (max if maximise else min)(entries, key=lambda each: float(each[name]))


def _defines(entry: Mapping[str, Any]) -> list[str]:
    return [f"#define {identifier(name)} {c_value(value)}" for name, value in entry["tunable_parameters"].items()]
