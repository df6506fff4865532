"""A specification's [operator]: the kernel, space and goals that follow from a kind and a shape, and what the
specification says of its own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ...errors import InputError
from ..operators.documents import document_of_operator
from ..operators.shapes import AXES, KINDS, Operator
from .toml_section import Section

KEYS: Final = ("kind", "shape", "precision", "repeats", "timeout_s")


def with_operator(document: Mapping[str, Any], path: Path) -> tuple[Mapping[str, Any], Operator | None]:
    """The document with what its operator stands for, and the operator; as it is where it has none.

    The document's own parameters replace the operator's of the same name; its restrictions and metrics come after the
    operator's; its objective, and what it says of the search, replace the operator's. Raises InputError.
    """
    if "operator" not in document:
        return document, None
    root = Section(document, str(path))
    for key in ("kernel", "command"):
        if key in root:
            raise InputError(f"both an operator and a {key}", str(path), f"keep one of [operator] and [{key}]")
    section = root.table("operator", KEYS)
    operator = _operator(section)
    made = document_of_operator(operator)
    more = {key: section.raw(key) for key in ("repeats", "timeout_s") if key in section}
    own = root.table("parameters")
    for name in own:
        if name not in made["parameters"]:
            known = ", ".join(made["parameters"])
            raise InputError(f"{operator.kind} has no parameter '{name}'", own.where, f"known: {known}")
    constants = root.table("constants")
    for name in constants:
        if name in made["constants"]:
            raise InputError(f"'{name}' follows from the operator's shape", constants.where, "leave it out")
    metrics = root.table("metrics").as_mapping()
    merged = {
        **{key: value for key, value in document.items() if key != "operator"},
        "kernel": {**made["kernel"], **more},
        "constants": {**made["constants"], **constants.as_mapping()},
        "parameters": {**made["parameters"], **own.as_mapping()},
        "restrictions": [*made["restrictions"], *root.texts("restrictions")],
        "metrics": {**made["metrics"], **metrics},
        "objective": document.get("objective", made["objective"]),
        "search": {**made["search"], **root.table("search").as_mapping()},
    }
    return merged, operator


def _operator(section: Section) -> Operator:
    kind = section.text("kind")
    if kind not in KINDS:
        raise section.wrong("kind", f"one of {', '.join(KINDS)}")
    shape = section.items("shape")
    if not all(isinstance(size, int) and not isinstance(size, bool) for size in shape):
        raise section.wrong("shape", f"a list of whole numbers ({', '.join(AXES[kind])})")
    try:
        return Operator(kind, tuple(int(size) for size in shape), section.text("precision", "fp32"))
    except InputError as error:
        raise InputError(error.what, section.where, error.remedy) from None
