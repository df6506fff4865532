"""`SeveralBoards`: the guards of boards that serve together, which are set and put back together."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...errors import WattridgeError
from ..board_settings import Setting
from .guard import DeviceGuard


class SeveralBoards:
    """What a runner asks of a guard, of all boards at once. The first guard is its owner's; the others end with it."""

    def __init__(self, first: DeviceGuard, others: Sequence[DeviceGuard]) -> None:
        self._others = tuple(others)
        self._guards = (first, *self._others)

    @property
    def applied(self) -> dict[str, float | None]:
        """The settings that are in force on every board alike."""
        first, *others = (guard.applied for guard in self._guards)
        return {name: value for name, value in first.items() if all(each.get(name) == value for each in others)}

    @property
    def settling_s(self) -> float:
        """How long until the sensors of the last of them show what was set."""
        return max(guard.settling_s for guard in self._guards)

    def open(self) -> None:
        """Get ready to set all of them, so that what is refused is refused at the beginning. Raises WattridgeError."""
        for guard in self._guards:
            guard.open()

    def apply(self, **settings: Setting) -> bool:
        """Make the same settings on every board; whether any was made. Raises as `DeviceGuard.apply`.

        What was made on the boards before one that refuses stays until `restore`.
        """
        made = [guard.make(settings) for guard in self._guards]
        return any(made)

    def unmet(self) -> str:
        """As of `DeviceGuard`, with the board that reads back something else."""
        found = ((guard.gpu.info.label, guard.unmet()) for guard in self._guards)
        return "; ".join(f"{label}: {words}" for label, words in found if words)

    def restore(self) -> None:
        """Put every board back, whatever becomes of the others, and end their helpers. Raises the first error."""
        _each([*(guard.restore for guard in self._guards), *(guard.close for guard in self._others)])


def _each(steps: Sequence[Callable[[], None]]) -> None:
    """Take every step; the first error is raised after the last."""
    errors: list[WattridgeError] = []
    for step in steps:
        try:
            step()
        except WattridgeError as error:
            errors.append(error)
    if errors:
        raise errors[0]
