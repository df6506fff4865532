"""Calls of AMD SMI for reading: the library, found where ROCm puts it, loaded on first use; errors are typed."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

from ..gpu import GpuLost, NoDriver, NoPermission, NotSupported, SensorError
from . import binding
from .binding import AmdSmi, AmdSmiError


def library_places(name: str) -> Iterator[str]:
    """Where a library may lie, in the order in which AMD's own packages look for it."""
    root = os.environ.get("ROCM_HOME") or os.environ.get("ROCM_PATH")
    if root:
        yield os.path.join(root, "lib", name)
    yield name
    yield f"/opt/rocm/lib/{name}"


_REMEDY: Final = "install ROCm's amd-smi-lib; in a container, pass in /dev/kfd and /dev/dri"

# amdsmi_status_t -> our type and what the user reads
_ERRORS: Final[dict[int, tuple[type[SensorError], str]]] = {
    binding.INVALID: (NotSupported, "AMD SMI does not know this query"),
    binding.NOT_SUPPORTED: (NotSupported, "this board does not report it"),
    binding.NOT_IMPLEMENTED: (NotSupported, "this version of AMD SMI lacks the function"),
    binding.NO_DATA: (NotSupported, "the driver has no data"),
    binding.TIMEOUT: (SensorError, "the driver did not answer in time"),
    binding.BUSY: (SensorError, "the board is busy with another query"),
    binding.NO_PERMISSION: (NoPermission, "the driver refuses this to the present user"),
    binding.IO: (GpuLost, "the GPU does not answer"),
    binding.NOT_FOUND: (GpuLost, "the GPU is no longer there"),
    binding.NO_SLOT: (GpuLost, "the GPU is no longer there"),
    binding.NOT_INITIALISED: (NoDriver, "AMD SMI is not initialised"),
    binding.NO_DRIVER: (NoDriver, "the amdgpu driver is not loaded"),
}
T = TypeVar("T")


def places() -> Iterator[str]:
    """Where the library may lie."""
    return library_places("libamd_smi.so")


class AmdLibrary:
    """AMD SMI, loaded once. `generation` counts initialisations: handles of an earlier one are dead."""

    def __init__(self) -> None:
        self._smi: AmdSmi | None = None
        self._lock = threading.RLock()
        self.generation = 0

    def open(self) -> AmdSmi:
        """Load and initialise it, once. Raises NoDriver."""
        with self._lock:
            if self._smi is None:
                self._smi = self._load()
                self.generation += 1
            return self._smi

    def reopen(self, generation: int) -> AmdSmi:
        """Initialise it again, unless another thread did so since `generation`. Raises NoDriver."""
        with self._lock:
            if generation == self.generation:
                self.close()
            return self.open()

    def close(self) -> None:
        """Shut it down; the next call loads it again. Safe to call twice."""
        with self._lock:
            smi, self._smi = self._smi, None
            if smi is not None:
                try:
                    smi.close()
                except AmdSmiError:
                    return

    def ask(self, question: Callable[[AmdSmi], T]) -> T:
        """An answer of the library. Raises NotSupported, NoPermission, GpuLost, NoDriver or SensorError."""
        try:
            return question(self.open())
        except AmdSmiError as error:
            raise self.error(error) from error

    @staticmethod
    def error(error: AmdSmiError) -> SensorError:
        """The typed error of an amdsmi_status_t."""
        kind, words = _ERRORS.get(error.code, (SensorError, f"it failed with AMD SMI error {error.code}"))
        return kind(f"{words} ({error.function})")

    @staticmethod
    def _load() -> AmdSmi:
        reason = ""
        for path in places():
            try:
                return AmdSmi(path)
            except OSError as error:
                reason = reason or str(error)
            except AmdSmiError as error:
                raise NoDriver(f"no AMD driver answers ({error})", remedy=_REMEDY) from error
        raise NoDriver(f"AMD SMI is not here ({reason})", remedy=_REMEDY)


LIBRARY = AmdLibrary()
