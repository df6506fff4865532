"""The one place where NVML is called: loaded on first use, from any thread, every failure a typed error.

NVML itself is thread-safe, so calls are not held up by one another: some take 20 ms. Only loading is locked.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from types import ModuleType
from typing import Any

from ...base.installation import how_to_add_package
from ..gpu import GpuLost, NoDriver, NoPermission, NotSupported, SensorError

_REMEDY = "see what is wrong: wattridge doctor"
_IN_A_CONTAINER = "in a container, start it with the GPU passed in, as with --gpus all"


class NothingThere(NotSupported):
    """The driver has nothing of this kind just now."""


class NvmlLibrary:
    """NVML through pynvml. `module` stands in for pynvml in tests; the real one is imported on first use.

    `generation` counts initialisations: handles of an earlier one are dead.
    """

    def __init__(self, module: ModuleType | None = None) -> None:
        self._stand_in = module
        self._module: Any = None
        self._lock = threading.RLock()
        self._ready = False
        self.generation = 0

    def open(self) -> None:
        """Load and initialise the library, once. Raises NoDriver."""
        with self._lock:
            if self._ready:
                return
            self._module = self._stand_in or _pynvml()
            try:
                self._module.nvmlInit()
            except self._module.NVMLError as error:
                _, reason = _ERRORS.get(error.value, (NoDriver, str(error)))
                remedy = _REMEDIES.get(error.value, _REMEDY)
                raise NoDriver(f"no NVIDIA driver answers ({reason})", remedy=remedy) from error
            self._ready = True
            self.generation += 1

    def reopen(self, generation: int) -> None:
        """Initialise the library again, after a GPU or its driver went away. Raises NoDriver.

        Nothing happens where another thread did so since `generation`.
        """
        with self._lock:
            if generation == self.generation:
                self.close()
            self.open()

    def close(self) -> None:
        """Shut the library down; the next call loads it again. Safe to call twice."""
        with self._lock:
            if self._ready:
                self._ready = False
                with suppress(self._module.NVMLError):  # the driver may be gone
                    self._module.nvmlShutdown()

    def call(self, function: str, *arguments: Any) -> Any:
        """Call one NVML function by name. Raises NotSupported, NoPermission, GpuLost, NoDriver or SensorError."""
        if not self._ready:
            self.open()
        entry = getattr(self._module, function, None)
        if entry is None:
            raise NotSupported(f"this nvidia-ml-py has no {function}")
        try:
            return entry(*arguments)
        except self._module.NVMLError as error:
            raise self.error(error.value, function) from error

    def structure(self, name: str) -> Any:
        """A new structure of nvidia-ml-py's, with its version filled in. Raises NotSupported."""
        if not self._ready:
            self.open()
        made = getattr(self._module, name, None)
        if made is None:
            raise NotSupported(f"this nvidia-ml-py has no {name}")
        return made()

    def error(self, code: int, what: str) -> SensorError:
        """The typed error of an nvmlReturn code."""
        names = _ERRORS.get(code)
        if names is None:
            return SensorError(f"{what} failed with NVML error {code}")
        kind, words = names
        return kind(f"{words} ({what})")


# nvmlReturn code -> our type and what the user reads. Codes as in nvml.h, which never renumbers them.
_ERRORS: dict[int, tuple[type[SensorError], str]] = {
    1: (NoDriver, "NVML is not initialised"),
    2: (NotSupported, "the driver does not know this query"),  # an older driver's answer to a newer argument
    3: (NotSupported, "this board does not report it"),
    4: (NoPermission, "the driver refuses this to the present user"),
    6: (NothingThere, "the driver has nothing of this kind"),
    9: (NoDriver, "the NVIDIA driver is not loaded"),
    10: (SensorError, "the driver did not answer in time"),
    12: (NoDriver, "the driver's library libnvidia-ml is not there"),
    13: (NotSupported, "this driver lacks the function"),
    15: (GpuLost, "the GPU is lost"),
    16: (GpuLost, "the GPU needs a reset"),
    18: (NoDriver, "the driver and its library are of different versions"),
    21: (NothingThere, "the driver has no data"),
    25: (NotSupported, "the driver does not know this version of the query"),
    26: (NotSupported, "this driver no longer reports it"),
    28: (GpuLost, "the GPU is no longer there"),
}

# nvmlReturn code of loading and initialising -> the remedy
_REMEDIES: dict[int, str] = {
    4: "join the group that owns /dev/nvidiactl, or have its administrator open it to you",
    9: f"load it: sudo modprobe nvidia; else install NVIDIA's driver for this kernel and reboot; {_IN_A_CONTAINER}",
    12: f"install NVIDIA's driver, or load it if it is elsewhere: LD_LIBRARY_PATH; {_IN_A_CONTAINER}",
    18: "reboot, so that the kernel loads the module of the library's version; a container only needs a restart",
}


def _pynvml() -> Any:
    """pynvml, imported late: neither the window's first frame nor a simulated GPU needs it. Raises NoDriver."""
    try:
        import pynvml
    except ImportError as error:
        raise NoDriver("nvidia-ml-py is not installed", remedy=how_to_add_package("nvidia-ml-py")) from error
    return pynvml


LIBRARY = NvmlLibrary()
