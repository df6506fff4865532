"""`NvmlGpu`: a real NVIDIA board through NVML, read only. Nothing in this module sets anything."""

from __future__ import annotations

from app.sensors.nvml_library import LIBRARY, NvmlLibrary


def boards(library: NvmlLibrary = LIBRARY) -> list[tuple[int, str, str]]:
    """(index, UUID, name) of every board the driver shows. Raises NoDriver and SensorError."""
    found = []
    for index in range(library.call("nvmlDeviceGetCount")):
        handle = library.call("nvmlDeviceGetHandleByIndex", index)
        found.append((index, library.call("nvmlDeviceGetUUID", handle), library.call("nvmlDeviceGetName", handle)))
    return found
