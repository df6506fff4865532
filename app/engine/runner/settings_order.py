"""In which order to measure rows, so that a board's settings change as seldom as can be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..board_settings import SETTINGS
from ..control.guard import DeviceGuard
from ..measurement import Configuration
from ..space.search_space import SearchSpace


def setting_names(space: SearchSpace) -> tuple[str, ...]:
    """The device settings among a space's parameters."""
    return tuple(parameter.name for parameter in space.parameters if parameter.device_setting)


def settings_of(space: SearchSpace, configuration: Configuration) -> dict[str, float]:
    """The device settings that a configuration asks for."""
    return {name: float(configuration[name]) for name in setting_names(space)}


def by_setting(rows: Sequence[int], space: SearchSpace, guard: DeviceGuard) -> list[int]:
    """The rows, those of one device setting together, beginning with the setting in force.

    From each setting to the next as little changes as can be, and the graphics clock least often.
    """
    groups: dict[tuple[tuple[str, float], ...], list[int]] = {}
    for row in rows:
        wanted = settings_of(space, space.configuration(row))
        groups.setdefault(tuple(wanted.items()), []).append(int(row))
    in_force: dict[str, float | None] = guard.applied
    ordered: list[int] = []
    while groups:
        nearest = min(groups, key=lambda setting: _change(in_force, dict(setting)))
        ordered += groups.pop(nearest)
        in_force = dict(nearest)
    return ordered


def _change(
    before: Mapping[str, float | None], after: Mapping[str, float]
) -> tuple[tuple[bool, ...], tuple[float, ...]]:
    """What changes from one setting to another, the slowest first; among equals the lower values come first."""
    changes = tuple(name in after and before.get(name) != after[name] for name in reversed(SETTINGS))
    return changes, tuple(after.values())
