"""The session that sweeps intensity and occupancy on a board."""

from __future__ import annotations

import dataclasses

from ...errors import InputError
from ...paths import resources
from ...sensors.gpu import Gpu
from ..control.guard import DeviceGuard
from ..tuning_methods.roofline_points import PRECISIONS, TENSOR, TENSOR_FROM
from .load import load_specification
from .plan import SessionPlan
from .planning import plan_specification


def plan_roofline(gpu: Gpu, precision: str, guard: DeviceGuard | None = None) -> SessionPlan:
    """The session that sweeps intensity and occupancy. Raises InputError for a precision that is not there."""
    known = PRECISIONS + TENSOR
    if precision not in known:
        raise InputError(f"no roofline in '{precision}'", "roofline", f"one of {', '.join(known)}")
    capability = gpu.info.compute_capability
    if precision in TENSOR and capability is not None and capability < TENSOR_FROM:
        told = ".".join(map(str, capability))
        remedy = f"choose {' or '.join(PRECISIONS)}; tensor cores are swept from compute capability 8.0 on"
        raise InputError(f"compute capability {told} is too low for {precision}", gpu.info.name, remedy)
    specification = load_specification(resources() / "rooflines" / f"{precision}.toml")
    return plan_specification(dataclasses.replace(specification, device_settings={}), gpu, guard=guard)
