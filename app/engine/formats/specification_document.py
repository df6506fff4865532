"""A specification as the document it could have been read from: the inverse of `specification_checks`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..objectives import Objective
from ..specification.model import ARRAY_FILES, ArgumentSpec, CommandSpec, KernelSpec, Specification, VerifySpec


def document_of(spec: Specification, folder: Path) -> dict[str, Any]:
    """The document of a specification that lies in `folder`; what is as by default is left out."""
    document: dict[str, Any] = {
        "restrictions": list(spec.restrictions),
        "kernel": _kernel(spec.kernel, folder) if spec.kernel else None,
        "command": _command(spec.command) if spec.command else None,
        "constants": dict(spec.constants),
        "parameters": {name: _listed(given) for name, given in spec.parameters.items()},
        "device_settings": {name: _setting(wanted) for name, wanted in spec.device_settings.items()},
        "metrics": dict(spec.metrics),
        "objective": _objective(spec.objective) if spec.objective else None,
        "search": _said(
            {
                "strategy": spec.strategy,
                "options": dict(spec.strategy_options),
                "max_evaluations": spec.max_evaluations,
                "max_fraction": spec.max_fraction,
                "max_seconds": spec.max_seconds,
                "patience": spec.patience,
                "seed": spec.seed or None,
            }
        ),
    }
    return _said(document)


def relative(path: Path, folder: Path) -> str:
    """A path as a file in `folder` names it."""
    try:
        return Path(os.path.relpath(path, folder.resolve())).as_posix()
    except ValueError:  # another drive
        return path.as_posix()


def _kernel(kernel: KernelSpec, folder: Path) -> dict[str, Any]:
    return _said(
        {
            "name": kernel.name,
            "source": [relative(source, folder) for source in kernel.sources],
            "problem_size": list(kernel.problem_size),
            "grid_divisors": {axis: list(texts) for axis, texts in kernel.grid_divisors.items()},
            "arguments": [_argument(argument, folder) for argument in kernel.arguments],
            "verify": _verify(kernel.verify) if kernel.verify else None,
            "profile": kernel.profile,
            "compiler_options": list(kernel.compiler_options),
            "include": [relative(include, folder) for include in kernel.include],
            "shared_memory": kernel.shared_memory,
            "block_size_names": list(kernel.block_size_names),
            "template": kernel.template,
            "timeout_s": kernel.timeout_s,
            "repeats": kernel.repeats if kernel.repeats > 1 else None,
            "instructions": dict(kernel.instructions),
            "language": kernel.language,
        }
    )


def _argument(argument: ArgumentSpec, folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = {"name": argument.name, "type": argument.type}
    if argument.value is not None:
        document["value"] = argument.value
    else:
        is_file = argument.fill.endswith(ARRAY_FILES)
        document["shape"] = list(argument.shape)
        document["fill"] = relative(Path(argument.fill), folder) if is_file else argument.fill
        document["output"] = argument.output
    if argument.memory != "global":
        document["memory"] = argument.memory
    if argument.seed is not None:
        document["seed"] = argument.seed
    return document


def _verify(verify: VerifySpec) -> dict[str, Any]:
    reference: str | dict[str, str] = dict(verify.references) if verify.references else verify.reference
    return {"reference": reference, "rtol": verify.rtol, "atol": verify.atol}


def _command(command: CommandSpec) -> dict[str, Any]:
    return {
        "run": command.run,
        "values": dict(command.values),
        "repeats": command.repeats,
        "timeout_s": command.timeout_s,
    }


def _objective(objective: Objective) -> dict[str, Any]:
    key = "maximise" if objective.goal.maximise else "minimise"
    return _said({key: objective.goal.name, "front": [str(goal) for goal in objective.front]})


def _listed(given: object) -> object:
    return list(given) if isinstance(given, tuple) else given


def _setting(wanted: object) -> object:
    return {"points": wanted} if isinstance(wanted, int) else _listed(wanted)


def _said(document: Mapping[str, Any]) -> dict[str, Any]:
    """Without what says nothing."""
    return {key: value for key, value in document.items() if value not in (None, "", [], {})}
