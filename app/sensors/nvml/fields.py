"""NVML's field values by number: those that a board answers, its counters of throttled time among them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from .channels import union_number

LIMITS: Final = (("current", 190), ("requested", 192))  # NVML_FI_DEV_POWER_*_LIMIT, mW
# NVML_FI_DEV_CLOCKS_EVENT_REASON_*, and after them NVML_FI_DEV_PERF_POLICY_* from 74 on, with all of temperature; ns
_SLOWDOWNS: Final = (("thermal", 269), ("hardware_thermal", 270), ("power_brake", 271))
_POLICIES: Final = ("power", "thermal", "sync_boost", "board_limit", "low_utilisation", "reliability")
# The first driver with 269 to 271: those of 575.51 to 580.65 have power smoothing there, and the three at 251 to 253,
# where all others have power smoothing (nvml.h of each)
_NUMBERED_SINCE: Final = (580, 82)


def throttle_fields(driver: str) -> Iterable[tuple[str, int]]:
    """The fields of a driver by reason, the better ones first."""
    numbered = tuple(map(int, re.findall(r"\d+", driver)[:2])) >= _NUMBERED_SINCE
    return (*(_SLOWDOWNS if numbered else ()), *((name, 74 + policy) for policy, name in enumerate(_POLICIES)))


def answered_fields(ask: Callable[..., Any], wanted: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Of each name the first field that a board answers; `ask` calls an NVML function on it, None where that fails."""
    fields: dict[str, int] = {}
    for name, number in wanted:
        if name not in fields and (answer := ask("nvmlDeviceGetFieldValues", [number])) and not answer[0].nvmlReturn:
            fields[name] = number
    return fields


def read_fields(ask: Callable[..., Any], fields: Mapping[str, int]) -> dict[str, int]:
    """What they hold now; one that fails is left out. Raises SensorError."""
    answers = ask("nvmlDeviceGetFieldValues", list(fields.values())) if fields else ()
    named = zip(fields, answers, strict=True)
    return {name: round(union_number(item.valueType, item.value)) for name, item in named if item.nvmlReturn == 0}
