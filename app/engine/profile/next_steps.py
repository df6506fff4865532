"""What to do next about the large items of a profile: steps that exist, and only where the data show the reason."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

from ...base.errors import InputError
from ...base.formatting import number, percent
from ..models.roofline.energy_roofline import board_named
from ..specification.operator_shapes import Operator
from .families import Family
from .program_profile import FamilyEnergy, GapEnergy, GroupEnergy, NextStep
from .program_trace import OperatorCall

_LARGE: Final = 0.05  # of the energy, from which on an item counts
_OF_GROUP: Final = 0.2  # of a group's time, from which on one of its families does
_MANY_GAPS: Final = 0.1  # of the time of the span in short gaps, from which on launches limit it
_MEMORY_BOUND: Final = 0.6  # of the published bandwidth: what a stream reaches of it is 0.8 to 0.95
_BEYOND_CACHES: Final = 128 * 2**20  # bytes that no second-level cache holds
_TYPES: Final = {
    "float": ("fp32", 4), "c10::Half": ("fp16", 2), "c10::BFloat16": ("bf16", 2), "double": ("fp64", 8),
    "half": ("fp16", 2), "bfloat16": ("bf16", 2), "torch.float32": ("fp32", 4), "torch.float16": ("fp16", 2),
    "torch.bfloat16": ("bf16", 2), "int": ("", 4), "long int": ("", 8), "long": ("", 8), "bool": ("", 1),
}  # fmt: skip
_PRODUCTS: Final = ("aten::mm", "aten::bmm", "aten::addmm", "aten::baddbmm", "aten::matmul", "aten::linear")
_CONVOLUTIONS: Final = re.compile(r"aten::(cudnn_convolution|miopen_convolution|_?convolution|conv2d)\w*")
_BACKWARD: Final = re.compile(r"backward|transpose|bwd|dgrad|wgrad")
_TRITON: Final = re.compile(r"triton_\w+|\w+_\d+d(?:\d+d?e?c?)*")  # Inductor's names; and 2.x adds what it specialised
_INTEGERS: Final = re.compile(r"-?\d{1,9}")


def next_steps(
    families: Sequence[Family],
    energies: Sequence[FamilyEnergy],
    groups: Sequence[GroupEnergy],
    gaps: GapEnergy,
    duration_s: float,
    gpu: str,
    moved_bytes: Sequence[float],
) -> tuple[NextStep, ...]:
    """List the steps that exist for the large items, those of most energy first.

    `energies` has the energy of each of `families`, `moved_bytes` what the trace itself says that each moved in all.
    """
    steps = [
        step
        for family, energy, moved in zip(families, energies, moved_bytes, strict=True)
        if (share := _share(energy, groups)) >= _LARGE
        for step in _of_family(family, energy, share, gpu, moved)
    ]
    if gaps.short_s >= _MANY_GAPS * duration_s:
        joules, share = (
            ("", 0.0) if gaps.group else (f" and {number(gaps.short_j)} J", gaps.share * gaps.short_s / gaps.time_s)
        )
        part = percent(gaps.short_s / duration_s)
        why = f"{gaps.short_count:,} gaps of less than 0.1 ms take {part} of the time{joules}"
        graphs = "launch-bound: capture the launches as CUDA graphs, which need no host between them"
        steps.append(NextStep("short gaps", share, graphs, why, 'torch.compile(model, mode="reduce-overhead")'))
    return tuple(sorted(steps, key=lambda step: -step.share))


def operator_of(call: OperatorCall) -> Operator | None:
    """The operator to tune that a framework's call is; None of one that is none, or whose shape is not known."""
    dims = [item for item in call.dims if item]
    kinds = [kind for kind, item in zip(call.types, call.dims, strict=False) if item]
    if len(dims) < 2 or len(kinds) < 2:
        return None
    precision = _TYPES.get(kinds[-1], ("", 0))[0]
    with suppress(InputError):  # of a shape that this program's operators do not have
        if call.name in _PRODUCTS:
            return _product(call.name, dims, precision)
        if _CONVOLUTIONS.fullmatch(call.name) and not _BACKWARD.search(call.name):
            return _convolution(call, dims, precision)
    return None


# --- inside -----------------------------------------------------------------------------------------------------------


def _share(energy: FamilyEnergy, groups: Sequence[GroupEnergy]) -> float:
    """Of the energy, as far as it is known: of a family in a group, that of the group's by its time, if it is large."""
    if energy.group is None:
        return energy.share
    group = next(each for each in groups if each.number == energy.group)
    part = energy.time_s / group.time_s if group.time_s > 0 else 0.0
    return group.share * part if part >= _OF_GROUP else 0.0


def _of_family(family: Family, energy: FamilyEnergy, share: float, gpu: str, moved_bytes: float) -> Iterator[NextStep]:
    call = family.call
    operator = operator_of(call) if call is not None else None
    if call is not None and operator is not None:
        why = f"{call.name} with the shapes {', '.join(map(str, call.dims[-2:]))}"
        step = "an operator of known shape: tune it for energy, and compare"
        yield NextStep(family.name, share, step, why, f"wattridge tune {operator.notation}")
    if _TRITON.fullmatch(family.full_name) or (call is not None and call.backend == "triton"):
        inductor = family.full_name.startswith("triton_")
        why = "its name is one that PyTorch's Inductor gives" if inductor else "the trace says that Triton compiled it"
        step = "a Triton kernel: let its autotuner choose by energy"
        yield NextStep(family.name, share, step, why, "do_bench=wattridge.triton.bench(minimise='energy')")
    rate, of_peak = _moved(family, energy, gpu, moved_bytes)
    if of_peak >= _MEMORY_BOUND and operator is None:
        why = f"it moves at least {number(rate / 1e9, 3)} GB/s, {percent(of_peak)} of the published peak"
        step = "memory-bound: a lower clock costs no time here, down to where the bandwidth falls"
        yield NextStep(family.name, share, step, why, "wattridge fit --gpu 0")


def _product(name: str, dims: Sequence[tuple[int, ...]], precision: str) -> Operator | None:
    first, second = dims[-2:]
    if name == "aten::linear":
        first, second = dims[:2]
        second = second[::-1]
    if precision == "" or len(first) < 2 or len(second) not in (2, len(first)) or first[-1] != second[-2]:
        return None
    if len(second) == 2:  # the other axes are rows of one product
        shape = 1, math.prod(first[:-1]), second[-1], first[-1]
    elif first[:-2] == second[:-2]:
        shape = math.prod(first[:-2]), first[-2], second[-1], first[-1]
    else:
        return None
    return Operator("mm", shape, precision)


def _convolution(call: OperatorCall, dims: Sequence[tuple[int, ...]], precision: str) -> Operator | None:
    images, weights = dims[:2]
    given = [tuple(map(int, _INTEGERS.findall(text))) for text in call.inputs]
    pairs = [values for values in given if len(values) == 2]
    if len(images) != 4 or len(weights) != 4 or weights[2] != weights[3] or images[1] != weights[1] or precision == "":
        return None
    if len(pairs) < 3 or any(first != second for first, second in pairs[:3]):
        return None
    by_cudnn = "cudnn" in call.name or "miopen" in call.name  # padding, stride, dilation; else stride comes first
    pad, stride = (pairs[0][0], pairs[1][0]) if by_cudnn else (pairs[1][0], pairs[0][0])
    if pairs[2][0] != 1:
        return None
    batch, channels, height, width = images
    return Operator("conv2d", (batch, height, width, channels, weights[0], weights[2], stride, pad), precision)


def _moved(family: Family, energy: FamilyEnergy, gpu: str, moved_bytes: float) -> tuple[float, float]:
    """Bytes that a family moves at least, per s and as a share of the published bandwidth; 0 if that is not known.

    They are what a copy within the board moves, or the inputs of an operator, which are read once at least.
    """
    published, call = board_named(gpu), family.call
    if published is None or not energy.time_s > 0:
        return 0.0, 0.0
    byte = 0.0
    if family.kind == "copy" and "DtoD" in family.full_name:
        byte = 2 * moved_bytes  # read and written
    elif family.kind == "set":
        byte = moved_bytes
    elif call is not None:
        each = [(math.prod(dims), kind) for dims, kind in zip(call.dims, call.types, strict=False) if dims]
        size = sum(count * _TYPES.get(kind, ("", 0))[1] for count, kind in each)
        byte = energy.count * float(size) if size > _BEYOND_CACHES else 0.0
    rate = byte / energy.time_s
    return rate, rate / (published.bandwidth_gb_s * 1e9)
