"""One board through AMD SMI: the only calls that change one of AMD's.

A lock is a range of graphics clocks with the performance level "manual"; without one the level is "auto", and setting
it undoes a range. A board at any other level is not set: what that level had chosen could not be put back.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from ....sensors.amd import binding
from ....sensors.amd.binding import AUTO, GRAPHICS_CLOCK, MANUAL, AmdSmi, AmdSmiError
from .__main__ import unsafe_link
from .board import TOLERANCE_MW, Board
from .grammar import Failed

PREFIX = "AMD-"  # of a UUID
_PLACES = ("libamd_smi.so", "/opt/rocm/lib/libamd_smi.so")  # as root's linker finds it, else where ROCM lies
_WITHOUT = {
    "locked_memory_mhz": "memory clocks of AMD boards are not set",
    "application_clocks_mhz": "AMD boards have no application clocks",
    "persistence_mode": "AMD boards have no persistence mode",
    "workload_power_profiles": "workload power profiles are of NVIDIA's boards",
}
_ERRORS = {
    binding.INVALID: ("refused", "the driver refuses this value"),
    binding.OUT_OF_BOUNDS: ("refused", "the driver refuses this value"),
    binding.NOT_SUPPORTED: ("not_supported", "this board does not support it"),
    binding.NOT_IMPLEMENTED: ("not_supported", "this version of AMD SMI lacks the function"),
    binding.NO_PERMISSION: ("no_permission", "the driver refuses it to this user"),
    binding.TIMEOUT: ("driver", "the driver did not answer in time"),
    binding.BUSY: ("driver", "the board is busy"),
    binding.IO: ("lost", "the GPU does not answer"),
    binding.NOT_FOUND: ("lost", "the GPU is no longer there"),
    binding.NO_SLOT: ("lost", "the GPU is no longer there"),
}


class AmdBoard(Board):
    """Raises Failed wherever the driver does not do as asked."""

    def __init__(self, smi: AmdSmi, uuid: str, alive: Callable[[], None] = lambda: None) -> None:
        """`alive` is called whenever the driver has answered."""
        super().__init__(_WITHOUT)
        self._smi = smi
        self._alive = alive
        self.uuid = uuid
        fits = [board for board in self._ask(smi.boards) if self._uuid_of(board) == uuid]
        if len(fits) != 1:
            raise Failed("lost" if not fits else "refused", f"{len(fits)} boards have this UUID: one is needed")
        self._board = fits[0]
        self.name = self._ask(smi.name, self._board)

    def read(self, knob: str) -> Any:
        """What a knob is set to now; None of the lock stands for 'not locked'."""
        if knob == "power_limit_mw":
            return self._ask(self._smi.power_cap_uw, self._board)[0] // 1000
        if knob != "locked_graphics_mhz":
            raise Failed("not_supported", _WITHOUT[knob])
        level = self._ask(self._smi.level, self._board)
        if level == AUTO:
            return None
        if level != MANUAL:
            what = f"its performance level is {level}, neither auto (0) nor manual (3), and could not be put back"
            raise Failed("refused", f"{what}: amd-smi set --perf-level AUTO")
        return list(self._ask(self._smi.graphics_ranges_mhz, self._board)[:2])

    def limits_mw(self) -> tuple[int, int]:
        """The least and the most that the power limit may be."""
        _, _, least, most = self._ask(self._smi.power_cap_uw, self._board)
        return -(-least // 1000), most // 1000

    def require_clocks(self, settings: dict[str, Any], memory_mhz: int | None) -> None:
        """Raise Failed for a graphics clock outside the driver's range; any whole MHz within it is taken."""
        if "memory_clock_mhz" in settings:
            raise Failed("not_supported", _WITHOUT["locked_memory_mhz"])
        if "graphics_clock_mhz" in settings:
            low, high = self._limits_mhz()
            for end in settings["graphics_clock_mhz"]:
                if not low <= end <= high:
                    raise Failed("refused", f"{end} MHz is outside {low} to {high} MHz")

    def require_profile(self, number: int) -> None:
        """Raise Failed: there are none."""
        raise Failed("not_supported", _WITHOUT["workload_power_profiles"])

    # --- setting: nothing else in this project calls these functions --------------------------------------------------

    def put(self, knob: str, value: Any) -> None:
        """Set a knob; None unlocks."""
        if knob == "power_limit_mw":
            self.require_limit(value)
            self._call("amdsmi_set_power_cap", ctypes.c_uint32(0), ctypes.c_uint64(value * 1000))
        elif knob != "locked_graphics_mhz":
            raise Failed("not_supported", _WITHOUT[knob])
        elif value is None:
            self._call("amdsmi_set_gpu_perf_level", ctypes.c_uint32(AUTO))
        else:
            low, high = (ctypes.c_uint64(end) for end in self._range(value))
            self._call("amdsmi_set_gpu_clk_range", low, high, ctypes.c_uint32(GRAPHICS_CLOCK))

    def put_default(self, knob: str) -> None:
        """Unlock the clock, or set the default power limit. Raises Failed."""
        if knob == "power_limit_mw":
            self.put(knob, self._ask(self._smi.power_cap_uw, self._board)[1] // 1000)
        else:
            self.put(knob, None)

    def is_at(self, knob: str, value: Any) -> bool:
        """Whether a knob reads back as it was set."""
        now = self.read(knob)
        if knob == "power_limit_mw":
            return bool(abs(now - value) <= TOLERANCE_MW)
        return bool(now == (None if value is None else self._range(value)))

    # --- inside -------------------------------------------------------------------------------------------------------

    def _limits_mhz(self) -> tuple[int, int]:
        _, _, low, high = self._ask(self._smi.graphics_ranges_mhz, self._board)
        return low, high

    def _range(self, ends: Any) -> list[int]:
        """A range as the driver takes it: its least must lie below its most."""
        low, high = ends
        if low < high:
            return [low, high]
        return [low - 1, high] if low > self._limits_mhz()[0] else [low, high + 1]

    def _uuid_of(self, board: ctypes.c_void_p) -> str:
        try:
            return PREFIX + str(self._ask(self._smi.uuid, board))
        except Failed:
            return ""

    def _call(self, function: str, *arguments: Any) -> None:
        self._ask(self._smi.call, function, self._board, *arguments)

    def _ask(self, question: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return question(*arguments)
        except AmdSmiError as error:
            kind, words = _ERRORS.get(error.code, ("driver", f"AMD SMI error {error.code}"))
            raise Failed(kind, f"{words} ({error.function})") from None
        finally:
            self._alive()


def load() -> AmdSmi:
    """AMD SMI from a file that only root can change. Raises Failed."""
    why = ""
    for path in _PLACES:
        if path.startswith("/") and (fault := unsafe_link(path)):
            why = why or fault
            continue
        try:
            return AmdSmi(path)
        except OSError as error:
            why = str(error)
        except AmdSmiError as error:
            raise Failed("driver", f"no AMD driver answers: {error}") from None
    raise Failed("driver", f"AMD SMI (libamd_smi.so) is not here: {why}")
