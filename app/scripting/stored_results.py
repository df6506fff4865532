"""Files that Kernel Tuner's scripts write of their results."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np

from .. import __version__
from ..base.errors import InputError
from ..base.files import read_text, write_text
from ..base.text import json_or_none
from ..engine.formats.c_header import c_value, comment_text, identifier
from ..engine.formats.kernel_tuner import their_names
from ..engine.formats.own import About
from ..engine.formats.t4 import SCHEMA_VERSION, t4_pieces
from ..sensors.unmetered import this_processor
from .script_results import Results
from .sources import read_source
from .tuned import read_objective

_VERSION: Final = "1.0"
_MOST_BYTES: Final = 1 << 26


def store_output_file(
    output_filename: str | Path, results: Sequence[Mapping[str, Any]], tune_params: Any = None, objective: str = "time"
) -> None:
    """Write results of `tune_kernel` in the format T4.

    Parameters
    ----------
    output_filename : str or Path
        The suffix .json is added if it is missing.
    results : sequence of mapping
        All that `tune_kernel` returned.
    tune_params : mapping or None, optional
        Not needed: the results have them.
    objective : str, optional
        The figure that is marked as the objective.

    Raises
    ------
    InputError
        If the results are not as `tune_kernel` returned them.
    """
    path = _json_path(output_filename)
    write_text(path, json.dumps(results_document(results, objective), indent=0) + "\n", overwrite=True)


def results_document(results: Sequence[Mapping[str, Any]], objective: str = "time") -> dict[str, Any]:
    """Results of `tune_kernel` as T4 has them.

    Parameters
    ----------
    results : sequence of mapping
        All that `tune_kernel` returned.
    objective : str, optional
        The figure that is marked as the objective.

    Returns
    -------
    dict
        The document.

    Raises
    ------
    InputError
        If the results are not as `tune_kernel` returned them.
    """
    if not isinstance(results, Results) or len(results) != len(results.by_row):
        raise InputError("these are no results of tune_kernel", "store_output_file", "pass what it returned, as it is")
    plan = results.plan
    about = About(plan.gpu, plan.title, plan.objective, plan.source, plan.origin.get("problem_size", ""), plan.units)
    names = their_names(results.table.space.names, "store_output_file")
    return dict(json.loads("".join(t4_pieces(results.table, about, names, objective, results.by_row))))


def store_metadata_file(metadata_filename: str | Path) -> None:
    """Write where the tuning took place, in the format T4.

    Parameters
    ----------
    metadata_filename : str or Path
        The file, overwritten if it is there. The suffix .json is added if it is missing.

    Raises
    ------
    InputError
        If that names no file.
    WattridgeError
        If the folder refuses it.
    """
    write_text(_json_path(metadata_filename), json.dumps(metadata_document(), indent=2) + "\n", overwrite=True)


def metadata_document() -> dict[str, Any]:
    """Where the tuning took place, as T4 has it."""
    metadata = {
        "operating_system": platform.system(),
        "hardware": {
            "hardware_description": [{"processor": this_processor().info.name, "system": platform.platform()}]
        },
        "environment": {
            "device_query": {},  # `device` in the output file says which it was
            "requirements": [f"wattridge=={__version__}", f"numpy=={np.__version__}"],
        },
        "python": platform.python_version(),
        "timestamp": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    return {"metadata": metadata, "schema_version": SCHEMA_VERSION}


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
    """Write the results within `top` per cent of the best, for this board and problem size.

    Entries of the file for other boards and problem sizes stay.

    Parameters
    ----------
    results_filename : str or Path
        The file to write, which may have entries already.
    kernel_name : str
        The kernel.
    kernel_string : object
        Its source.
    tune_params : mapping
        The values of each parameter.
    problem_size : int, tuple or str
        The problem size that the results are for.
    results : sequence of mapping
        All that `tune_kernel` returned.
    env : mapping
        The environment that `tune_kernel` returned.
    top : float, optional
        In per cent of the best.
    objective : str or None, optional
        The figure of the results that counts; their time by default.
    objective_higher_is_better : bool or None, optional
        Whether more of it is better; None where that is known by its name.

    Raises
    ------
    InputError
        If the file is of another kernel, and if there is no such result.
    """
    name = objective or "time"
    maximise = read_objective(name, objective_higher_is_better, None, (name,)).goal.maximise
    worked = [result for result in results if "__error__" not in result and isinstance(result.get(name), int | float)]
    if not worked:
        raise InputError(f"no result has a {name}", "store_results", "look at the errors in the results")
    figures = [float(element[name]) for element in worked]
    bound = max(figures) * (1 - top / 100) if maximise else min(figures) * (1 + top / 100)
    chosen = [
        result
        for result, figure in zip(worked, figures, strict=True)
        if (figure > bound if maximise else figure < bound)
    ]
    if not chosen:
        raise InputError(f"no {name} is within {top:g} % of the best", "store_results", "give a larger top")
    path = Path(results_filename)
    board, size = _word(env["device_name"]), _size(problem_size)
    kept = [] if not path.is_file() else _results_of(path, kernel_name, tune_params, name)
    entries = [entry for entry in kept if (entry.get("device_name"), entry.get("problem_size")) != (board, size)]
    for item in chosen:
        parameters = {key: item[key] for key in tune_params}
        place = {"device_name": board, "problem_size": size}
        entries.append({**place, "tunable_parameters": parameters, name: item[name]})
    document = {
        "version_number": _VERSION,
        "kernel_name": kernel_name,
        "kernel_string": _text(kernel_string),
        "tunable_parameters": list(tune_params),
        "objective": name,
        "objective_higher_is_better": maximise,
        "data": entries,
    }
    write_text(path, json.dumps(document, indent=2) + "\n", overwrite=True)


def create_device_targets(
    header_filename: str | Path,
    results_filename: str | Path,
    objective: str | None = None,
    objective_higher_is_better: bool | None = None,
) -> None:
    """Write a C header with parameters for each board of a file by `store_results`, good for all its problem sizes.

    They are those that most problem sizes have among their best, and of several such those with the least, or the most,
    in sum. `TARGET_` and the board's name select a board; without, they are chosen so from the entries of all boards.

    Parameters
    ----------
    header_filename, results_filename : str or Path
        The header to write, and the file to read.
    objective : str or None, optional
        The file's, or None.
    objective_higher_is_better : bool or None, optional
        As for the file's, or None.

    Raises
    ------
    InputError
        If another objective is named than the file's.
    """
    document = _document(Path(results_filename))
    name, maximise = str(document["objective"]), bool(document["objective_higher_is_better"])
    other = objective_higher_is_better is not None and bool(objective_higher_is_better) is not maximise
    if other or objective not in (None, name):
        what = f"its results were chosen for {'more' if maximise else 'less'} {name}"
        raise InputError(what, str(results_filename), "leave the objective out, or store results for another one")
    boards: dict[str, list[Mapping[str, Any]]] = {}
    for item in document["data"]:
        boards.setdefault(_word(item["device_name"]), []).append(item)
    kernel = comment_text(document["kernel_name"])
    lines = [f"/* {kernel}: parameters by board, chosen for {name}; written by Wattridge {__version__} */"]
    lines += ["#pragma once", "#ifndef kernel_tuner /* a tuner defines its own */"]
    for board, entries in boards.items():
        lines += [f"#ifdef TARGET_{board}", *_defines(_common(entries, name, maximise))]
        lines.append("#else" if len(boards) > list(boards).index(board) + 1 else "#else /* default configuration */")
    lines += [*_defines(_common(document["data"], name, maximise)), *["#endif"] * len(boards)]
    lines.append("#endif /* kernel_tuner */")
    write_text(Path(header_filename), "\n".join(lines) + "\n", overwrite=True)


class TuneResults:
    """Results that `store_results` wrote, for choosing parameters by board and problem size."""

    def __init__(self, results_filename: str | Path) -> None:
        """Raises InputError if it is no such file."""
        self.meta = _document(Path(results_filename))
        self.data: list[dict[str, Any]] = self.meta.pop("data")
        self.objective = str(self.meta["objective"])
        self.objective_higher_is_better = bool(self.meta["objective_higher_is_better"])

    def get_best_config(self, gpu_name: str = "default", problem_size: Any = None) -> dict[str, Any]:
        """The parameters to use on a board for a problem.

        Parameters
        ----------
        gpu_name : str, optional
            The board.
        problem_size : int, tuple, str or None, optional
            The problem.

        Returns
        -------
        dict
            The best for both; where there is none, those that `create_device_targets` would choose, for the board if it
            is there.
        """
        sign = -1.0 if self.objective_higher_is_better else 1.0
        there = [entry for entry in self.data if entry["device_name"] == _word(gpu_name)]
        same = [entry for entry in there if entry["problem_size"] == _size(problem_size)]
        if same:
            best: Mapping[str, Any] = min(same, key=lambda entry: sign * float(entry[self.objective]))
        else:
            best = _common(there or self.data, self.objective, self.objective_higher_is_better)
        return dict(best["tunable_parameters"])


# --- inside -----------------------------------------------------------------------------------------------------------


def _json_path(name: str | Path) -> Path:
    path = Path(name)
    if not path.name:
        raise InputError(f"'{name}' is no file", "kernel_tuner.file_utils", "name one")
    return path if path.suffix == ".json" else path.with_name(f"{path.name}.json")


def _word(board: object) -> str:
    """A board's name as these files have it."""
    return re.sub(r"[^A-Za-z0-9]+", "_", str(board).strip())


def _text(source: Any) -> str:
    """The kernel's text, where it is one or one file of it."""
    if not isinstance(source, str | Path):
        return ""
    text = read_source(source, "CUDA").text  # whatever the language: the text alone counts
    return text if isinstance(text, str) else ""


def _size(given: Any) -> str:
    several = given if isinstance(given, tuple | list) else (given,)
    return "x".join(str(value) for value in several)


def _document(path: Path) -> dict[str, Any]:
    document = json_or_none(read_text(path, _MOST_BYTES))
    is_ours = isinstance(document, dict) and document.get("version_number") == _VERSION
    if not is_ours or not isinstance(document.get("data"), list) or not document["data"]:
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


def _common(entries: Sequence[Mapping[str, Any]], name: str, maximise: bool) -> Mapping[str, Any]:
    """The entry whose parameters most of them have, and of several such the best in sum."""
    same: dict[str, list[Mapping[str, Any]]] = {}
    for entry in entries:
        same.setdefault(json.dumps(entry["tunable_parameters"]), []).append(entry)
    sign = -1.0 if maximise else 1.0
    return min(same.values(), key=lambda all_of: (-len(all_of), sign * sum(float(item[name]) for item in all_of)))[0]


def _defines(entry: Mapping[str, Any]) -> list[str]:
    return [f"#define {identifier(name)} {c_value(value)}" for name, value in entry["tunable_parameters"].items()]
