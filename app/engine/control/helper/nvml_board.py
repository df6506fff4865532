"""One board through NVML: the only calls that change one of NVIDIA's."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from typing import Any

from .board import TOLERANCE_MW, Board
from .grammar import NO_PROFILE, Failed

GRAPHICS, MEMORY = 0, 2  # nvmlClockType_t
_MOST_PROFILES = 255
_CLOCKS_S = 5.0  # the lists of supported clocks hang on some boards

# nvmlReturn -> (kind, words). Codes as in nvml.h, which never renumbers them.
_ERRORS = {
    2: ("refused", "the driver refuses this value"),
    3: ("not_supported", "this board does not support it"),
    4: ("no_permission", "the driver refuses it to this user"),
    10: ("driver", "the driver did not answer in time"),
    13: ("not_supported", "this driver lacks the function"),
    15: ("lost", "the GPU is lost"),
    16: ("lost", "the GPU needs a reset"),
    25: ("not_supported", "this driver knows another version of the function"),
    28: ("lost", "the GPU is no longer there"),
}


class NvmlBoard(Board):
    """`nvml` is the module pynvml, or what stands in for it. Raises Failed wherever the driver does not do as asked."""

    def __init__(self, nvml: Any, uuid: str, alive: Callable[[], None] = lambda: None) -> None:
        """`alive` is called whenever the driver has answered."""
        super().__init__()
        self._nvml = nvml
        self._alive = alive
        self._call("nvmlInit")
        self.uuid = uuid
        self._handle = self._call("nvmlDeviceGetHandleByUUID", uuid)
        self.name = _text(self._ask("nvmlDeviceGetName"))
        self._clocks: dict[Any, tuple[int, ...]] = {}

    # --- looking ------------------------------------------------------------------------------------------------------

    def read(self, knob: str) -> Any:
        """What a knob is set to now. A lock has no getter: None, which stands for 'not locked'."""
        if knob == "power_limit_mw":
            return int(self._ask("nvmlDeviceGetPowerManagementLimit"))
        if knob == "persistence_mode":
            return int(self._ask("nvmlDeviceGetPersistenceMode"))
        if knob == "application_clocks_mhz":
            return [int(self._ask("nvmlDeviceGetApplicationsClock", kind)) for kind in (MEMORY, GRAPHICS)]
        if knob == "workload_power_profiles":
            return self._profiles("requestedProfilesMask")
        return None

    def memory_clocks_mhz(self) -> tuple[int, ...]:
        """Supported memory clocks, ascending; empty if unknown."""
        return self._listed("nvmlDeviceGetSupportedMemoryClocks")

    def graphics_clocks_mhz(self, memory_mhz: int | None = None) -> tuple[int, ...]:
        """Supported graphics clocks at a memory clock (None: the present one), ascending; empty if unknown."""
        known = self.memory_clocks_mhz()
        if not known:
            return ()
        if memory_mhz is None:
            try:
                present = int(self._ask("nvmlDeviceGetClockInfo", MEMORY))
            except Failed:
                present = known[-1]
            memory_mhz = min(known, key=lambda clock: abs(clock - present))
        return self._listed("nvmlDeviceGetSupportedGraphicsClocks", memory_mhz)

    def limits_mw(self) -> tuple[int, int]:
        """The least and the most that the power limit may be."""
        low, high = self._ask("nvmlDeviceGetPowerManagementLimitConstraints")
        return int(low), int(high)

    def require_clocks(self, settings: dict[str, Any], memory_mhz: int | None) -> None:
        """Raise Failed for clocks that are none of the driver's lists."""
        if "memory_clock_mhz" in settings:
            memory_mhz = settings["memory_clock_mhz"]
            if memory_mhz not in self.memory_clocks_mhz():
                raise Failed("refused", f"{memory_mhz} MHz is none of its memory clocks")
        for end in settings.get("graphics_clock_mhz", ()):
            if end not in self.graphics_clocks_mhz(memory_mhz):
                raise Failed("refused", f"{end} MHz is none of its graphics clocks")

    def require_profile(self, number: int) -> None:
        """Raise Failed for one that is none of the driver's."""
        known = self._profiles("perfProfilesMask")
        if number not in (NO_PROFILE, *known):
            named = ", ".join(map(str, known)) or "none"
            raise Failed("refused", f"{number} is none of its workload power profiles, which are {named}")

    # --- setting: nothing else in this project calls these functions --------------------------------------------------

    def put(self, knob: str, value: Any) -> None:
        """Set a knob; None unlocks."""
        if knob == "power_limit_mw":
            self.require_limit(value)
            self._ask("nvmlDeviceSetPowerManagementLimit", value)
        elif knob == "persistence_mode":
            self._ask("nvmlDeviceSetPersistenceMode", value)
        elif knob == "application_clocks_mhz":
            self._ask("nvmlDeviceSetApplicationsClocks", value[0], value[1])
        elif knob == "workload_power_profiles":
            self._request(set(value))
        elif knob == "locked_graphics_mhz":
            if value is None:
                self._ask("nvmlDeviceResetGpuLockedClocks")
            else:
                self._ask("nvmlDeviceSetGpuLockedClocks", value[0], value[1])
        elif value is None:
            self._ask("nvmlDeviceResetMemoryLockedClocks")
        else:
            self._ask("nvmlDeviceSetMemoryLockedClocks", value[0], value[1])

    def put_default(self, knob: str) -> None:
        """Unlock a clock, or set the default power limit or application clocks. Raises Failed."""
        if knob == "power_limit_mw":
            self.put(knob, int(self._ask("nvmlDeviceGetPowerManagementDefaultLimit")))
        elif knob == "application_clocks_mhz":
            self._ask("nvmlDeviceResetApplicationsClocks")
        else:
            self.put(knob, [] if knob == "workload_power_profiles" else None)

    def is_at(self, knob: str, value: Any) -> bool:
        """Whether a knob reads back as it was set; one that cannot be read cannot be caught."""
        if knob.startswith("locked_"):
            return True
        now = self.read(knob)
        return abs(now - value) <= TOLERANCE_MW if knob == "power_limit_mw" else bool(now == value)

    def _request(self, wanted: set[int]) -> None:
        """Have these profiles requested, and no others: the driver adds to its list, and takes from it."""
        now = set(self._profiles("requestedProfilesMask"))
        for verb, numbers in (("Clear", now - wanted), ("Set", wanted - now)):
            if numbers:
                asked = self._structure("RequestedProfiles")
                for number in numbers:
                    asked.requestedProfilesMask.mask[number // 32] |= 1 << number % 32
                self._ask(f"nvmlDeviceWorkloadPowerProfile{verb}RequestedProfiles", ctypes.byref(asked))

    # --- inside -------------------------------------------------------------------------------------------------------

    def _profiles(self, mask: str) -> list[int]:
        """The numbers in a mask of the profiles that are now."""
        now = self._structure("CurrentProfiles")
        self._ask("nvmlDeviceWorkloadPowerProfileGetCurrentProfiles", ctypes.byref(now))
        words = getattr(now, mask).mask
        return [number for number in range(_MOST_PROFILES) if words[number // 32] >> number % 32 & 1]

    def _structure(self, name: str) -> Any:
        made = getattr(self._nvml, f"c_nvmlWorkloadPowerProfile{name}_v1_t", None)
        if made is None:
            raise Failed("not_supported", "the nvidia-ml-py beside the helper knows no workload power profiles")
        return made()

    def _ask(self, function: str, *arguments: Any) -> Any:
        return self._call(function, self._handle, *arguments)

    def _call(self, function: str, *arguments: Any) -> Any:
        try:
            return getattr(self._nvml, function)(*arguments)
        except self._nvml.NVMLError as error:
            kind, words = _ERRORS.get(error.value, ("driver", f"NVML error {error.value}"))
            raise Failed(kind, f"{words} ({function})") from None
        finally:
            self._alive()

    def _listed(self, function: str, *arguments: Any) -> tuple[int, ...]:
        key = (function, *arguments)
        if key not in self._clocks:
            answers: list[tuple[int, ...]] = []

            def ask() -> None:
                try:
                    answers.append(tuple(sorted({int(clock) for clock in self._ask(function, *arguments)})))
                except Failed:
                    answers.append(())

            thread = threading.Thread(target=ask, daemon=True)
            thread.start()
            until = time.monotonic() + _CLOCKS_S
            while thread.is_alive() and time.monotonic() < until:
                thread.join(0.5)
                self._alive()  # this wait is bounded
            self._clocks[key] = answers[0] if answers else ()
        return self._clocks[key]


def _text(answer: Any) -> str:
    return answer.decode("utf-8", "replace") if isinstance(answer, bytes) else str(answer)
