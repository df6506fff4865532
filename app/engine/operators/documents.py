"""An operator as the document of a specification: kernel, parameters, restrictions, metrics and goals.

Nothing in it depends on the board: ranges and restrictions name the device's limits, so that a space fits any.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ...errors import InputError
from ...paths import resources
from .shapes import PRECISIONS, Operator
from .spaces import space_of_mm

Document = dict[str, Any]
_METRICS: Final = {
    "GFLOP/s": "{flop} / time_s / 1e9",
    "GFLOPS/W": "{flop} / energy_j / 1e9",
    "GB/s": "{byte} / time_s / 1e9",
}


def document_of_operator(operator: Operator) -> Document:
    """What a specification of this operator holds where it says nothing else.

    Metrics: GFLOP/s and GFLOPS/W of the operator's own work, and GB/s of the bytes that it must move at least. The
    goal is the energy of one launch; the front is time against energy.
    """
    if operator.kind not in _KINDS:
        raise InputError(f"there is no kernel of {operator.kind} yet", operator.notation, f"take {', '.join(_KINDS)}")
    made = _KINDS[operator.kind](operator)
    metrics = {name: text.format(flop=operator.work_flop, byte=operator.least_byte) for name, text in _METRICS.items()}
    objective = {"minimise": "energy_j", "front": ["time_s", "energy_j"]}
    search = {"strategy": "auto", "max_evaluations": 250}
    return {**made, "metrics": metrics, "objective": objective, "search": search}


def _mm(operator: Operator) -> Document:
    size, (number, _) = operator.sizes, PRECISIONS[operator.precision]
    space = space_of_mm(operator)
    operands = [
        {"name": "a", "type": number, "shape": ["BATCH", "M", "K"], "fill": "random"},
        {"name": "b", "type": number, "shape": ["BATCH", "K", "N"], "fill": "random"},
    ]
    return {
        "constants": {"BATCH": size["batch"], "M": size["M"], "N": size["N"], "K": size["K"], **space.constants},
        "parameters": space.parameters,
        "restrictions": space.restrictions,
        "kernel": {
            "name": "mm",
            "source": str(resources() / "kernels" / "operators" / "mm.cu"),
            "problem_size": space.problem_size,
            "block_size_names": space.block,
            "shared_memory": space.shared_memory,
            "arguments": [
                {"name": "c", "type": "float32", "shape": ["BATCH", "M", "N"], "fill": "zeros", "output": True},
                *operands,
                *space.scratch,
            ],
            "verify": {"reference": "a @ b", "rtol": 1e-3},
            "profile": "mm",
        },
    }


_KINDS: Final[Mapping[str, Callable[[Operator], Document]]] = {"mm": _mm}
