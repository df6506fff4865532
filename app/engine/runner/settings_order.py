"""In which order to measure rows, so that a service is started, and a board's settings change, as seldom as can be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..board_settings import SETTINGS
from ..control.guard import DeviceGuard
from ..control.several import SeveralBoards
from ..measurement import Configuration, Value
from ..space.search_space import SearchSpace


def setting_names(space: SearchSpace) -> tuple[str, ...]:
    """The device settings among a space's parameters."""
    return tuple(parameter.name for parameter in space.parameters if parameter.device_setting)


def settings_of(space: SearchSpace, configuration: Configuration) -> dict[str, float]:
    """The device settings that a configuration asks for."""
    return {name: float(configuration[name]) for name in setting_names(space)}


def by_setting(
    rows: Sequence[int],
    space: SearchSpace,
    guard: DeviceGuard | SeveralBoards,
    started_with: Mapping[str, Value | None] | None = None,
) -> list[int]:
    """The rows, those of one device setting together, beginning with the setting in force.

    From each setting to the next as little changes as can be, and the graphics clock least often. `started_with` has
    the arguments that a service runs with, None before its start: rows of the same arguments come one after another,
    first those that it has.
    """
    started = dict(started_with or {})
    groups: dict[tuple[tuple[Value | None, ...], tuple[tuple[str, float], ...]], list[int]] = {}
    for row in rows:
        configuration = space.configuration(row)
        wanted = settings_of(space, configuration)
        arguments = tuple(configuration.get(name) for name in started)
        groups.setdefault((arguments, tuple(wanted.items())), []).append(int(row))
    in_force: dict[str, float | None] = guard.applied
    running: tuple[Value | None, ...] = tuple(started.values())
    ordered: list[int] = []
    while groups:
        nearest = min(groups, key=lambda group: (group[0] != running, _change(in_force, dict(group[1]))))
        ordered += groups.pop(nearest)
        running, in_force = nearest[0], dict(nearest[1])
    return ordered


def _change(
    before: Mapping[str, float | None], after: Mapping[str, float]
) -> tuple[tuple[bool, ...], tuple[float, ...]]:
    """What changes from one setting to another, the slowest first; among equals the lower values come first."""
    changes = tuple(name in after and before.get(name) != after[name] for name in reversed(SETTINGS))
    return changes, tuple(after.values())
