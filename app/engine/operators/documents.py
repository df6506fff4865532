"""An operator as the document of a specification: kernel, parameters, restrictions, metrics and goals.

Nothing in it depends on the board: ranges and restrictions name the device's limits, so that a space fits any.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ...paths import resources
from ..expressions.expression import parse
from .shapes import PRECISIONS, Operator
from .spaces import KernelSpace, row_space, tile_space

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
    made = _KINDS[operator.kind](operator)
    metrics = _metrics(operator)
    objective = {"minimise": "energy_j", "front": ["time_s", "energy_j"]}
    search = {"strategy": "auto", "max_evaluations": 250}
    return {**made, "metrics": metrics, "objective": objective, "search": search}


def metrics_of(operator: Operator, time_s: float, energy_j: float) -> dict[str, float]:
    """The metrics of `document_of_operator` for a time and an energy per launch."""
    measured = {"time_s": time_s, "energy_j": energy_j}
    return {name: float(parse(text, name).evaluate(measured)) for name, text in _metrics(operator).items()}


def _metrics(operator: Operator) -> dict[str, str]:
    return {name: text.format(flop=operator.work_flop, byte=operator.least_byte) for name, text in _METRICS.items()}


def _mm(operator: Operator) -> Document:
    size = operator.sizes
    sizes = {"BATCH": size["batch"], "M": size["M"], "N": size["N"], "K": size["K"]}
    output = ("c", ["BATCH", "M", "N"])
    operands = [("a", ["BATCH", "M", "K"]), ("b", ["BATCH", "K", "N"])]
    return _document(operator, tile_space(operator), sizes, output, operands, "a @ b")


def _mv(operator: Operator) -> Document:
    size = operator.sizes
    sizes = {"BATCH": size["batch"], "N": size["N"], "K": size["K"]}
    output = ("y", ["BATCH", "N", "1"])
    operands = [("w", ["BATCH", "N", "K"]), ("x", ["BATCH", "K", "1"])]
    return _document(operator, row_space(operator), sizes, output, operands, "w @ x")


def _conv2d(operator: Operator) -> Document:
    sizes = {name.upper(): size for name, size in operator.sizes.items()}
    high, wide = map(str, operator.output_extents)
    output = ("y", ["BATCH", high, wide, "COUT"])
    operands = [("x", ["BATCH", "H", "W", "CIN"]), ("w", ["KERNEL", "KERNEL", "CIN", "COUT"])]
    return _document(operator, tile_space(operator), sizes, output, operands, "conv2d(x, w, STRIDE, PAD)")


def _document(
    operator: Operator,
    space: KernelSpace,
    sizes: dict[str, int],
    output: tuple[str, list[str]],
    operands: list[tuple[str, list[str]]],
    reference: str,
) -> Document:
    number, _ = PRECISIONS[operator.precision]
    written = {"name": output[0], "type": "float32", "shape": output[1], "fill": "zeros", "output": True}
    read = [{"name": name, "type": number, "shape": shape, "fill": "random"} for name, shape in operands]
    return {
        "constants": {**sizes, **space.constants},
        "parameters": space.parameters,
        "restrictions": space.restrictions,
        "kernel": {
            "name": operator.kind,
            "compiler_options": ["-std=c++17"],  # older compilers take C++14 by default
            "source": str(resources() / "kernels" / "operators" / f"{operator.kind}.cu"),
            "problem_size": space.problem_size,
            "block_size_names": space.block,
            "shared_memory": space.shared_memory,
            "arguments": [written, *read, *space.scratch],
            "verify": {"reference": reference, "rtol": 1e-3},
            "profile": operator.kind,
        },
    }


_KINDS: Final[Mapping[str, Callable[[Operator], Document]]] = {"mm": _mm, "mv": _mv, "conv2d": _conv2d}
