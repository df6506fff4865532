"""Counters of throttled time in NVML's field values, which every driver has that this program meets, since 384."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from ..gpu import GpuLost, SensorError
from .channels import union_number

Ask = Callable[..., Any]  # an NVML function by name, of one board

# NVML_FI_DEV_CLOCKS_EVENT_REASON_*, and after them NVML_FI_DEV_PERF_POLICY_*, whose temperature is all in one
_SLOWDOWNS: Final = (("thermal", 269), ("hardware_thermal", 270), ("power_brake", 271))
_POLICIES: Final = (
    *(("power", 74), ("thermal", 75), ("sync_boost", 76)),
    *(("board_limit", 77), ("low_utilisation", 78), ("reliability", 79)),
)
# The first driver with 269 to 271: those of 575.51 to 580.65 have power smoothing there, and the three at 251 to 253,
# where all others have power smoothing (nvml.h of each)
_NUMBERED_SINCE: Final = (580, 82)


def throttle_fields(ask: Ask, driver: str) -> dict[str, int]:
    """The fields that a board answers, by reason; each is asked once. Raises GpuLost."""
    numbered = tuple(map(int, re.findall(r"\d+", driver)[:2])) >= _NUMBERED_SINCE
    fields: dict[str, int] = {}
    for name, number in (*(_SLOWDOWNS if numbered else ()), *_POLICIES):
        try:
            if name not in fields and ask("nvmlDeviceGetFieldValues", [number])[0].nvmlReturn == 0:
                fields[name] = number
        except GpuLost:
            raise
        except SensorError:
            continue
    return fields


def read_throttled_ns(ask: Ask, fields: Mapping[str, int]) -> dict[str, int]:
    """By reason, ns since the driver was loaded; one that fails is left out. Raises SensorError."""
    answers = ask("nvmlDeviceGetFieldValues", list(fields.values())) if fields else ()
    named = zip(fields, answers, strict=True)
    return {name: round(union_number(item.valueType, item.value)) for name, item in named if item.nvmlReturn == 0}
