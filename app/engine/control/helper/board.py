"""`Board`: a board of any vendor, with its settings and the only way to change them.

`NvmlBoard` and `AmdBoard` call the drivers; what they have in common is here.
"""

from __future__ import annotations

from typing import Any

from .grammar import Failed
from .record import KNOBS_OF

TOLERANCE_MW = 1000


class Board:
    """Raises Failed wherever the driver does not do as asked. Clocks in MHz, power limits in mW."""

    uuid: str
    name: str

    def __init__(self, without: dict[str, str] | None = None) -> None:
        """`without`: knobs that no such board has, with the reason."""
        self._without = dict(without or {})

    # --- different for each vendor -----------------------------------------------------------------------------------

    def read(self, knob: str) -> Any:
        """The present value of a knob; None of a lock stands for 'not locked'."""
        raise NotImplementedError

    def put(self, knob: str, value: Any) -> None:
        """Set a knob; None unlocks."""
        raise NotImplementedError

    def put_default(self, knob: str) -> None:
        """Unlock a clock, or set the default power limit or application clocks."""
        raise NotImplementedError

    def is_at(self, knob: str, value: Any) -> bool:
        """Whether a knob reads back as it was set; one that cannot be read cannot be caught."""
        raise NotImplementedError

    def limits_mw(self) -> tuple[int, int]:
        """The least and the most that the power limit may be."""
        raise NotImplementedError

    def require_clocks(self, settings: dict[str, Any], memory_mhz: int | None) -> None:
        """Raise Failed for clocks that this board does not support; `memory_mhz` is the memory clock set already."""
        raise NotImplementedError

    def require_profile(self, number: int) -> None:
        """Raise Failed for a workload power profile that this board does not have."""
        raise NotImplementedError

    # --- the same for all ---------------------------------------------------------------------------------------------

    def read_or_none(self, knob: str) -> Any:
        """As `read`, None if the board does not report it."""
        try:
            return self.read(knob)
        except Failed:
            return None

    def knobs(self, name: str) -> tuple[str, ...]:
        """The knobs that may make a setting, the first to be tried first. Raises Failed with the reason for none."""
        left = [knob for knob in KNOBS_OF[name] if knob not in self._without]
        if "application_clocks_mhz" in left and not self.read_or_none("application_clocks_mhz"):
            left.remove("application_clocks_mhz")
        if not left:
            raise Failed("not_supported", self._without[KNOBS_OF[name][0]])
        return tuple(left)

    def lacks(self, knob: str, why: Failed) -> None:
        """Note that this board does not have a knob, as the driver refused it."""
        self._without[knob] = str(why)

    def check(self, settings: dict[str, Any], memory_mhz: int | None) -> None:
        """Raise Failed for values that this board does not support; `memory_mhz` is the memory clock set already."""
        if "power_limit_w" in settings:
            self.require_limit(round(settings["power_limit_w"] * 1000))
        if "workload_power_profile" in settings:
            self.require_profile(settings["workload_power_profile"])
        self.require_clocks(settings, memory_mhz)

    def require_limit(self, limit_mw: int) -> None:
        """Raise Failed for a power limit outside the board's range."""
        low, high = self.limits_mw()
        if not low <= limit_mw <= high:
            raise Failed("refused", f"{limit_mw / 1e3:g} W is outside {low / 1e3:g} to {high / 1e3:g} W")
