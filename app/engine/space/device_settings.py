"""Clocks and caps as dimensions of a space: what a specification asks for, resolved against the board."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from ...base.errors import InputError
from ...sensors.gpu import Gpu
from ...sensors.power_profiles import NO_PROFILE
from ..results.measurement import Value
from ..results.settings import (
    PROFILE,
    UNTOUCHED,
    nearest_supported,
    profile_number,
    supported_profiles,
    upper,
    why_not_set,
)

SettingValues = tuple[Value, ...] | Literal["supported", "ridge"] | int


POWER_LIMIT_STEPS = 10  # how many limits 'supported' stands for, as boards take any between their ends


def resolve_device_settings(
    wanted: Mapping[str, SettingValues], gpu: Gpu, model_range_mhz: tuple[float, float] | None = None
) -> tuple[dict[str, tuple[Value, ...]], tuple[str, ...]]:
    """The values of each device setting on this board, ascending, and notes for the user.

    Listed values stay in their order, 'untouched' after them; profiles become their numbers, and a clock between two
    supported ones becomes the nearest, with a note.
    `{ points = n }` spreads n values evenly over what the board supports, both ends included; 'ridge' takes the
    supported clocks within `model_range_mhz`. Raises InputError for a value outside what the board supports, for a
    setting it does not report, and where no clock lies in the range.
    """
    notes: list[str] = []
    resolved: dict[str, tuple[Value, ...]] = {}
    for name, values in wanted.items():
        listed = isinstance(values, tuple) and UNTOUCHED in values
        given = tuple(v for v in values if v != UNTOUCHED) if isinstance(values, tuple) else values
        resolved[name] = _resolved(name, given, gpu, model_range_mhz, notes) if given else ()
        resolved[name] += (UNTOUCHED,) if listed else ()
    return resolved, tuple(notes)


def _resolved(
    name: str, values: SettingValues, gpu: Gpu, model_range_mhz: tuple[float, float] | None, notes: list[str]
) -> tuple[Value, ...]:
    where = f"device_settings.{name}"
    if name == "power_limit_w":
        return _power_limits(values, gpu, where)
    if name == PROFILE:
        return _profiles(values, gpu, where, notes)
    supported = gpu.graphics_clocks_mhz() if name == "graphics_clock_mhz" else gpu.memory_clocks_mhz()
    if not supported:
        raise InputError(f"{gpu.info.label} does not report its clocks", where, "remove this setting")
    if values == "supported":
        return tuple(supported)
    if values == "ridge":
        return _near_ridge(supported, model_range_mhz, where)
    if isinstance(values, int):
        return _spread(supported, values)
    clocks: list[Value] = []
    for value in values:
        try:
            clock, note = nearest_supported(gpu, name, float(value))
        except InputError as outside:
            raise InputError(outside.what, where, outside.remedy) from None
        clocks.append(round(upper(clock)))
        notes += [note] if note else []
    return tuple(dict.fromkeys(clocks))


def _spread(supported: Sequence[int], points: int) -> tuple[Value, ...]:
    """`points` of the supported clocks, evenly spread, both ends included."""
    places = np.rint(np.linspace(0, len(supported) - 1, min(points, len(supported)))).astype(int)
    return tuple(supported[place] for place in places.tolist())


def _near_ridge(supported: Sequence[int], model_range_mhz: tuple[float, float] | None, where: str) -> tuple[Value, ...]:
    if model_range_mhz is None:
        raise InputError("'ridge' needs a fitted frequency model", where, "fit the model first, or list the clocks")
    low, high = model_range_mhz
    near = tuple(clock for clock in supported if low <= clock <= high)
    if not near:
        raise InputError(f"no supported clock lies in {low:.0f}..{high:.0f} MHz", where, "list the clocks instead")
    return near


def _profiles(values: SettingValues, gpu: Gpu, where: str, notes: list[str]) -> tuple[Value, ...]:
    """The numbers of workload power profiles, and a note that names them."""
    profiles = {NO_PROFILE: "none", **supported_profiles(gpu)}
    if why := why_not_set(gpu, PROFILE):
        raise InputError(f"{gpu.info.label}: {why}", where, "remove this setting")
    try:
        numbers = [profile_number(gpu, value) for value in (profiles if isinstance(values, str | int) else values)]
    except InputError as unknown:
        raise InputError(unknown.what, where, unknown.remedy) from None
    notes.append("workload power profiles: " + ", ".join(f"{number} is {profiles[number]}" for number in numbers))
    return tuple(dict.fromkeys(numbers))


def _power_limits(values: SettingValues, gpu: Gpu, where: str) -> tuple[Value, ...]:
    limit = gpu.info.power_limit
    low, high = limit.minimum_w, limit.maximum_w
    if low is None or high is None:
        raise InputError(f"{gpu.info.label} does not report its power limits", where, "remove this setting")
    if values == "supported" or isinstance(values, int):
        points = POWER_LIMIT_STEPS if values == "supported" else int(values)
        return tuple(dict.fromkeys(np.rint(np.linspace(low, high, points)).tolist()))
    if values == "ridge":
        raise InputError("'ridge' is for the graphics clock", where, "list the limits in W")
    for value in values:
        if not low <= float(value) <= high:
            raise InputError(f"{value} W is outside what {gpu.info.label} takes", where, f"from {low:g} to {high:g} W")
    return tuple(values)
