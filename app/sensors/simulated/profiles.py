"""What a configuration of a built-in kernel asks of a board: work and traffic by formulas of its parameters.

Each profile stands for a kernel in `resources/kernels`. The formulas count what such code executes and moves; they
know the board only through its limits. Parameters that a profile does not know have no effect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ...base.errors import InputError
from ..gpu import Load
from ..limits import DeviceLimits
from .kernels import arithmetic, grids, matrix_product, operators, streaming
from .kernels.arguments import Arguments
from .kernels.residency import LaunchRefused

__all__ = ["PROFILES", "LaunchRefused", "full_load", "load_of"]

_PROFILES: Final[Mapping[str, Callable[[Arguments, DeviceLimits], Load]]] = {
    "gemm": matrix_product.gemm,
    "convolution": grids.convolution,
    "dot": streaming.dot,
    "copy": streaming.copy,
    "blocked_gemm": matrix_product.blocked_gemm,
    "vector_add": streaming.vector_add,
    "reduction": streaming.reduction,
    "transpose": streaming.transpose,
    "stencil": grids.stencil,
    "n_body": arithmetic.n_body,
    "roofline": arithmetic.roofline,
    "mm": operators.mm,
    "mv": operators.mv,
    "conv2d": operators.conv2d,
}
PROFILES: Final = tuple(_PROFILES)


def load_of(
    profile: str, configuration: Mapping[str, object], constants: Mapping[str, object], limits: DeviceLimits
) -> Load:
    """Work and traffic of one launch of that configuration.

    Raises LaunchRefused where a real board would not run it, InputError for an unknown profile or a senseless value.
    """
    try:
        load = _PROFILES[profile]
    except KeyError:
        choices = ", ".join(PROFILES)
        raise InputError(f"no profile is called '{profile}'", "kernel.profile", f"choose one of {choices}") from None
    return load(Arguments({**constants, **configuration}), limits)


def full_load() -> Load:
    """A synthetic kernel that keeps every FP32 unit busy with fused multiply-adds in registers.

    97 % of the peak, as the A100 of the 10-clock measurement reaches (its 64 x 1024 iterations of four fused
    multiply-adds per thread take 196.2 ms at 1410 MHz).
    """
    return Load("full_load", "fp32", work_flop=1e11, traffic_byte=1e6, issue_efficiency=0.97)
