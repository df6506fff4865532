"""The specification of an operator as a file of the program's own, for what is planned and resumed by its file."""

from __future__ import annotations

from pathlib import Path

from ...files import write_text
from ...paths import private_folder
from .shapes import AXES, Operator


def specification_text(operator: Operator) -> str:
    """A specification that says the operator and nothing else."""
    precision = "" if operator.precision == "fp32" else f'precision = "{operator.precision}"\n'
    shape = ", ".join(map(str, operator.shape))
    return (
        f"# Written by Wattridge: {operator.notation}. What else a specification says may be added.\n"
        f'[operator]\nkind = "{operator.kind}"\nshape = [{shape}]  # {", ".join(AXES[operator.kind])}\n{precision}'
    )


def kept_specification(operator: Operator) -> Path:
    """Where it is kept, written if it is not there yet; one that the user has changed stays. Raises WattridgeError."""
    path = private_folder("operators") / f"{operator.name}.toml"
    if not path.is_file():
        write_text(path, specification_text(operator))
    return path
