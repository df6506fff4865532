"""A stand-in for the module pynvml, put in at the choke point: boards with and without each ability, lost, refused.

It keeps NVML's own shapes: structures with a return code per field, mW and mJ, wall-clock microseconds, error codes.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections import defaultdict
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND, LIBRARY_NOT_FOUND, FUNCTION_NOT_FOUND, LOST = 3, 4, 6, 12, 13, 15
UNINITIALISED, INVALID_ARGUMENT = 1, 2


class NVMLError(Exception):
    def __init__(self, value: int) -> None:
        super().__init__(value)
        self.value = value


class _Value(ctypes.Union):
    _fields_ = (("dVal", ctypes.c_double), ("uiVal", ctypes.c_uint), ("ullVal", ctypes.c_ulonglong))


@dataclass
class Board:
    """What one board reports. `failing` maps a function's name (or a (field, scope)) to an error code."""

    name: str = "NVIDIA H200"
    uuid: str = "GPU-11111111-2222-3333-4444-555555555555"
    power_mw: int = 83_000
    graphics_mhz: int = 345
    reasons: int = 0x1
    failing: dict[Any, int] = field(default_factory=dict)
    samples: list[tuple[int, int]] = field(default_factory=list)  # (wall clock in us, mW)
    calls: dict[str, int] = field(default_factory=dict)
    asked_by: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))  # function -> threads
    delays_s: dict[str, float] = field(default_factory=dict)
    cores: int = 16896
    capability: tuple[int, int] = (9, 0)
    pci: str = "00000000:01:00.0"


class FakePynvml:
    """As the module: functions by name, constants none. `missing` are names that this version of pynvml lacks."""

    NVMLError = NVMLError

    def __init__(self, *boards: Board, missing: tuple[str, ...] = (), driver: bool = True) -> None:
        self.boards = boards
        self.driver = driver
        self.initialised = 0
        self._missing = missing

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("nvml") and name in object.__getattribute__(self, "_missing"):
            raise AttributeError(name)
        return object.__getattribute__(self, name)

    def nvmlInit(self) -> None:
        if not self.driver:
            raise NVMLError(LIBRARY_NOT_FOUND)
        self.initialised += 1

    def nvmlShutdown(self) -> None:
        self.initialised = 0

    def nvmlSystemGetDriverVersion(self) -> str:
        return "580.95.05"

    def nvmlDeviceGetCount(self) -> int:
        return len(self.boards)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Board:
        if index >= len(self.boards):
            raise NVMLError(INVALID_ARGUMENT)
        return self._asked(self.boards[index], "nvmlDeviceGetHandleByIndex")

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> Board:
        return next(self._asked(b, "nvmlDeviceGetHandleByUUID") for b in self.boards if b.uuid == uuid)

    def _asked(self, board: Board, function: str) -> Board:
        if not self.initialised:
            raise NVMLError(UNINITIALISED)
        board.calls[function] = board.calls.get(function, 0) + 1
        board.asked_by[function].add(threading.current_thread().name)
        if function in board.delays_s:
            time.sleep(board.delays_s[function])
        code = board.failing.get("everything", board.failing.get(function, 0))
        if code:
            raise NVMLError(code)
        return board

    def nvmlDeviceGetName(self, board: Board) -> str:
        return self._asked(board, "nvmlDeviceGetName").name

    def nvmlDeviceGetPciInfo(self, board: Board) -> SimpleNamespace:
        return SimpleNamespace(busId=self._asked(board, "nvmlDeviceGetPciInfo").pci)

    def nvmlDeviceGetUUID(self, board: Board) -> str:
        return self._asked(board, "nvmlDeviceGetUUID").uuid

    def nvmlDeviceGetCudaComputeCapability(self, board: Board) -> tuple[int, int]:
        return self._asked(board, "nvmlDeviceGetCudaComputeCapability").capability

    def nvmlDeviceGetNumGpuCores(self, board: Board) -> int:
        return self._asked(board, "nvmlDeviceGetNumGpuCores").cores

    def nvmlDeviceGetAttributes(self, board: Board) -> Any:
        self._asked(board, "nvmlDeviceGetAttributes")
        raise NVMLError(NOT_SUPPORTED)  # as a board that is not partitioned

    def nvmlDeviceGetFieldValues(self, board: Board, fields: list[Any]) -> list[Any]:
        self._asked(board, "nvmlDeviceGetFieldValues")
        out = []
        for wanted in fields:
            number, scope = wanted if isinstance(wanted, tuple) else (wanted, 0)
            milli = {(186, 0): board.power_mw, (185, 0): board.power_mw + 500, (185, 2): 21_000, (82, 0): 44}
            code = board.failing.get((number, scope), 0 if (number, scope) in milli else NOT_SUPPORTED)
            value = _Value()
            value.uiVal = 0 if code else milli[number, scope]
            out.append(SimpleNamespace(fieldId=number, scopeId=scope, valueType=1, nvmlReturn=code, value=value))
        return out

    def nvmlDeviceGetSamples(self, board: Board, kind: int, since_us: int) -> tuple[int, list[Any]]:
        self._asked(board, "nvmlDeviceGetSamples")
        found = []
        for stamp_us, milliwatt in board.samples:
            if stamp_us > since_us:
                value = _Value()
                value.uiVal = milliwatt
                found.append(SimpleNamespace(timeStamp=stamp_us, sampleValue=value))
        if not found:
            raise NVMLError(NOT_FOUND)
        return 1, found

    def nvmlDeviceGetPowerUsage(self, board: Board) -> int:
        return self._asked(board, "nvmlDeviceGetPowerUsage").power_mw + 100

    def nvmlDeviceGetClockInfo(self, board: Board, kind: int) -> int:
        self._asked(board, "nvmlDeviceGetClockInfo")
        return (board.graphics_mhz, board.graphics_mhz, 3201, 1500)[kind]

    def nvmlDeviceGetApplicationsClock(self, board: Board, kind: int) -> int:
        self._asked(board, "nvmlDeviceGetApplicationsClock")
        return (1980, 1980, 3201)[kind]

    def nvmlDeviceGetCurrentClocksEventReasons(self, board: Board) -> int:
        return self._asked(board, "nvmlDeviceGetCurrentClocksEventReasons").reasons

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, board: Board) -> int:
        return self._asked(board, "nvmlDeviceGetCurrentClocksThrottleReasons").reasons

    def nvmlDeviceGetUtilizationRates(self, board: Board) -> Any:
        self._asked(board, "nvmlDeviceGetUtilizationRates")
        return SimpleNamespace(gpu=97, memory=41)

    def nvmlDeviceGetPerformanceState(self, board: Board) -> int:
        self._asked(board, "nvmlDeviceGetPerformanceState")
        return 0

    def nvmlDeviceGetTemperatureV(self, board: Board, sensor: int) -> int:
        self._asked(board, "nvmlDeviceGetTemperatureV")
        return 38

    def nvmlDeviceGetTemperature(self, board: Board, sensor: int) -> int:
        self._asked(board, "nvmlDeviceGetTemperature")
        return 38

    def nvmlDeviceGetEnforcedPowerLimit(self, board: Board) -> int:
        self._asked(board, "nvmlDeviceGetEnforcedPowerLimit")
        return 700_000

    def nvmlDeviceGetPowerManagementLimit(self, board: Board) -> int:
        self._asked(board, "nvmlDeviceGetPowerManagementLimit")
        return 700_000

    def nvmlDeviceGetPowerManagementDefaultLimit(self, board: Board) -> int:
        self._asked(board, "nvmlDeviceGetPowerManagementDefaultLimit")
        return 700_000

    def nvmlDeviceGetPowerManagementLimitConstraints(self, board: Board) -> list[int]:
        self._asked(board, "nvmlDeviceGetPowerManagementLimitConstraints")
        return [200_000, 700_000]

    def nvmlDeviceGetTotalEnergyConsumption(self, board: Board) -> int:
        self._asked(board, "nvmlDeviceGetTotalEnergyConsumption")
        return 123_456_789_000 + board.calls["nvmlDeviceGetTotalEnergyConsumption"]

    def nvmlDeviceGetMemoryInfo(self, board: Board) -> Any:
        self._asked(board, "nvmlDeviceGetMemoryInfo")
        return SimpleNamespace(total=141 * 2**30, used=3 * 2**30, free=138 * 2**30)

    def nvmlDeviceGetFanSpeed(self, board: Board) -> int:
        self._asked(board, "nvmlDeviceGetFanSpeed")
        return 30

    def nvmlDeviceGetPcieThroughput(self, board: Board, counter: int) -> int:
        self._asked(board, "nvmlDeviceGetPcieThroughput")
        return (2500, 1500)[counter]

    def nvmlDeviceGetSupportedMemoryClocks(self, board: Board) -> list[int]:
        self._asked(board, "nvmlDeviceGetSupportedMemoryClocks")
        return [3201, 2201]

    def nvmlDeviceGetSupportedGraphicsClocks(self, board: Board, memory_mhz: int) -> list[int]:
        self._asked(board, "nvmlDeviceGetSupportedGraphicsClocks")
        return list(range(1980, 344, -15))


def sampled_board(**more: Any) -> Board:
    """A board whose driver keeps a second of 20 ms samples that end now."""
    now_us = time.time_ns() // 1000
    return Board(samples=[(now_us - 20_000 * back, 90_000 + back) for back in range(50, 0, -1)], **more)
