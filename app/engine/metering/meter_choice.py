"""`MeterChoice`: what the user asks of meters beside a board, on the command line, in a specification or the window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

BOARD: Final = "board"  # the board's own sensor, as a source of power


@dataclass(frozen=True, slots=True)
class MeterChoice:
    """What the user asks of meters."""

    selectors: tuple[str, ...] = ()  # as `--meter` names them
    energy_from: str = BOARD  # the source that `energy_j` comes from, by its name
    corrected: bool = False  # the known gain of the board's sensor is taken out of its power

    def __bool__(self) -> bool:
        return bool(self.selectors) or self.energy_from != BOARD or self.corrected


NO_METERS: Final = MeterChoice()
