"""In which order to measure rows, so that a board's settings change as seldom as can be."""

from __future__ import annotations

from collections.abc import Sequence

from app.engine.control.guard import DeviceGuard
from app.engine.measurement import Configuration
from app.engine.space.search_space import SearchSpace


def setting_names(space: SearchSpace) -> tuple[str, ...]:
    """The device settings among a space's parameters."""
    return tuple(parameter.name for parameter in space.parameters if parameter.device_setting)


def settings_of(space: SearchSpace, configuration: Configuration) -> dict[str, float]:
    """The device settings that a configuration asks for."""
    return {name: float(configuration[name]) for name in setting_names(space)}


def by_setting(rows: Sequence[int], space: SearchSpace, guard: DeviceGuard) -> list[int]:
    """The rows, those of one device setting together, beginning with the setting in force."""

    def order(row: int) -> tuple[bool, tuple[float, ...]]:
        wanted = settings_of(space, space.configuration(row))
        in_force = guard.applied
        return any(in_force.get(name) != value for name, value in wanted.items()), tuple(wanted.values())

    return sorted((int(row) for row in rows), key=order)
