"""A specification as the document it could have been read from: the inverse of `check`. Defaults are left out."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any, Final

from ..metering.external_meters import BOARD, MeterChoice
from ..results.objectives import Limit
from .model import ARRAY_FILES, ArgumentSpec, Specification
from .operator_kernels import document_of_operator
from .toml_section import KEYS

_SAME: Final = ("restrictions", "environment", "kernel", "command", "service", "constants", "parameters", "metrics")
_SEARCH: Final = ("strategy", "max_evaluations", "max_fraction", "max_seconds", "patience", "seed")


def document_of(spec: Specification, folder: Path) -> dict[str, Any]:
    """The document of a specification that lies in `folder`."""
    given = _fields(spec, folder)
    document: dict[str, Any] = {key: given[key] for key in _SAME if key in given}
    document["device_settings"] = {
        name: {"points": wanted} if isinstance(wanted, int) else wanted
        for name, wanted in given.get("device_settings", {}).items()
    }
    if spec.objective:
        goal = spec.objective.goal
        document["objective"] = {"maximise" if goal.maximise else "minimise": goal.name}
        if spec.objective.front:
            document["objective"]["front"] = [str(goal) for goal in spec.objective.front]
    if spec.limits:
        document["limits"] = _bounds(spec.limits)
    document["search"] = {key: given[key] for key in _SEARCH if key in given}
    if spec.starts:
        document["search"]["start"] = given["starts"]
    if spec.strategy_options:
        document["search"]["options"] = given["strategy_options"]
    if spec.meters:
        document["metering"] = _metering(spec.meters)
    return _as_operator(spec, document)


def _bounds(limits: Sequence[Limit]) -> dict[str, Any]:
    """By figure its bound, or its bounds, as text."""
    bounds: dict[str, list[str]] = {}
    for limit in limits:
        bounds.setdefault(limit.name, []).append(f"{'<=' if limit.most else '>='} {limit.bound!r}")
    return {name: bound if len(bound) > 1 else bound[0] for name, bound in bounds.items()}


def _metering(choice: MeterChoice) -> dict[str, Any]:
    document: dict[str, Any] = {"meters": list(choice.selectors)} if choice.selectors else {}
    document |= {"energy_from": choice.energy_from} if choice.energy_from != BOARD else {}
    return document | ({"correct_gain": True} if choice.corrected else {})


def _as_operator(spec: Specification, document: dict[str, Any]) -> dict[str, Any]:
    """With [operator] in place of all that follows from it; as it is without one."""
    if spec.operator is None or spec.kernel is None:
        return document
    made = document_of_operator(spec.operator)
    section: dict[str, Any] = {
        "kind": spec.operator.kind,
        "shape": list(spec.operator.shape),
        "precision": spec.operator.precision,
        "layout": spec.operator.layout,
        "epilogue": spec.operator.epilogue,
        "repeats": spec.kernel.repeats,
        "timeout_s": spec.kernel.timeout_s,
    }
    kept = {
        "constants": {name: value for name, value in spec.constants.items() if name not in made["constants"]},
        "restrictions": list(spec.restrictions[len(made["restrictions"]) :]),
    }
    left_out = ("kernel", *kept)
    return {"operator": section, **{key: value for key, value in document.items() if key not in left_out}, **kept}


def relative(path: Path, folder: Path) -> str:
    """A path as a file in `folder` names it."""
    try:
        return Path(os.path.relpath(path, folder.resolve())).as_posix()
    except ValueError:  # another drive
        return path.as_posix()


def _fields(item: Any, folder: Path) -> dict[str, Any]:
    """The fields of a dataclass that are neither empty nor as by default."""
    document: dict[str, Any] = {}
    for field in fields(item):
        value = getattr(item, field.name)
        default = field.default_factory() if field.default_factory is not MISSING else field.default
        if value != default and value not in (None, "", (), {}):
            document[KEYS.get(field.name, field.name)] = _plain(value, folder)
    return document


def _plain(value: Any, folder: Path) -> Any:
    if isinstance(value, Path):
        return relative(value, folder)
    if isinstance(value, Mapping):
        return {key: _plain(item, folder) for key, item in value.items()}
    if isinstance(value, tuple):
        return [_plain(item, folder) for item in value]
    if isinstance(value, ArgumentSpec) and value.value is None:
        file = {"fill": relative(Path(value.fill), folder)} if value.fill.endswith(ARRAY_FILES) else {}
        return {**_fields(value, folder), "shape": list(value.shape), **file}
    return _fields(value, folder) if is_dataclass(value) else value
