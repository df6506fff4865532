"""CUDA's driver by NVIDIA's cuda-bindings. Imported in the runner process only.

cuda-core, which stands on them, replaces little of this: `resources/decisions/0011-cuda-bindings-not-cuda-core.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

from cuda.bindings import driver as cuda

from ..kernels.backend import DeviceFault
from .device import DeviceBackend
from .driver import Driver

_TAKEN_AS_ENUMERATIONS: Final[dict[str, Callable[..., tuple[Any, ...]]]] = {
    "DeviceGetDevResource": lambda device: cuda.cuDeviceGetDevResource(
        device, cuda.CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM
    ),
    "FuncGetAttribute": lambda which, function: cuda.cuFuncGetAttribute(cuda.CUfunction_attribute(which), function),
    "FuncSetAttribute": lambda function, which, value: cuda.cuFuncSetAttribute(
        function, cuda.CUfunction_attribute(which), value
    ),
    "StreamBeginCapture": lambda stream, mode: cuda.cuStreamBeginCapture(stream, cuda.CUstreamCaptureMode(mode)),
}

_DEFAULT_STREAM: Final = 1  # CU_GREEN_CTX_DEFAULT_STREAM, which must be asked for
_NON_BLOCKING: Final = 1  # CU_STREAM_NON_BLOCKING, likewise


def open_backend(device: str) -> DeviceBackend:
    """A context on the device of that number (among those that CUDA shows), or of that UUID. Raises DeviceFault."""
    return DeviceBackend(BindingsDriver(device))


class BindingsDriver(Driver):
    """Implements `Driver`. The context is the device's primary one, as the libraries of CUDA's runtime use."""

    def __init__(self, device: str) -> None:
        self._parts: dict[int, tuple[Any, int, Any]] = {}  # by the SMs asked for: a queue, the SMs it has, its context
        super().__init__(device)

    def open(self, device: str) -> Any:
        self.call("Init", 0)
        handle = self._device_of(device)
        self.call("CtxSetCurrent", self.call("DevicePrimaryCtxRetain", handle))
        return handle

    def close(self) -> None:
        self.call("DevicePrimaryCtxRelease", self.device)

    @staticmethod
    @cache
    def function(name: str) -> Callable[..., tuple[Any, ...]]:
        return _TAKEN_AS_ENUMERATIONS.get(name) or getattr(cuda, f"cu{name}")

    def launches(self, function: Any, sizes: Sequence[int], places: int) -> Callable[[int], None]:
        call, arguments = cuda.cuLaunchKernel, (function, *sizes, self.queue, places, 0)

        def queue(times: int) -> None:
            for _ in range(times):
                (status,) = call(*arguments)
                if status:
                    raise self.fault("LaunchKernel", status)

        return queue

    def partition(self, count: int) -> tuple[Any, int]:
        """By a green context, whose stream its SMs run; the driver rounds their number up."""
        every = self.attribute("MULTIPROCESSOR_COUNT") or 0
        if count >= every:
            return self.whole, every
        if count not in self._parts:
            group = self._split(count)
            described = self.call("DevResourceGenerateDesc", [group], 1)
            context = self.call("GreenCtxCreate", described, self.device, _DEFAULT_STREAM)
            queue = self.call("GreenCtxStreamCreate", context, _NON_BLOCKING, 0)
            self._parts[count] = queue, int(group.sm.smCount), context
        return self._parts[count][:2]

    @property
    def granularity(self) -> tuple[int, int] | None:
        """As the driver splits: the group that holds one SM, and the next larger one."""
        try:
            least = int(self._split(1).sm.smCount)
            return least, int(self._split(least + 1).sm.smCount) - least
        except DeviceFault:
            return None

    def _split(self, count: int) -> Any:
        """A group of at least so many SMs. Raises DeviceFault if there can be none."""
        if not hasattr(cuda, "cuDevSmResourceSplitByCount"):
            raise DeviceFault("a part of the SMs needs cuda-bindings 12.4 or newer")
        whole = self.call("DeviceGetDevResource", self.device)
        groups, made, _ = self.call("DevSmResourceSplitByCount", 1, whole, 0, count)
        if not made:
            raise DeviceFault(f"the driver makes no part of {count} SMs")
        return groups[0]

    def attribute(self, name: str) -> int | None:
        which = getattr(cuda.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}", None)
        return None if which is None else int(self.call("DeviceGetAttribute", which, self.device))

    def _device_of(self, text: str) -> Any:
        """The device of a number or of a UUID as `nvidia-smi -L` has it."""
        if text.isdigit():
            return self.call("DeviceGet", int(text))
        wanted = text.removeprefix("GPU-").replace("-", "").lower()
        for number in range(self.call("DeviceGetCount")):
            device = self.call("DeviceGet", number)
            if bytes(self.call("DeviceGetUuid", device).bytes)[:16].hex() == wanted:
                return device
        raise DeviceFault(f"CUDA shows no device {text} here", fatal=True)
