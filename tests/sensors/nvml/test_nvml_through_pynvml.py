"""The real pynvml over a stand-in for the driver's library: argument and structure shapes are those of NVML itself."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterator
from typing import Any

import pynvml
import pytest
from fixtures.gpu_conformance import GpuConformance, value

from app.sensors.gpu import GpuLost
from app.sensors.nvml.gpu import NvmlGpu, boards
from app.sensors.nvml.library import NvmlLibrary

OK, INVALID, NOT_SUPPORTED, INSUFFICIENT_SIZE, LOST = 0, 2, 3, 7, 15


class Driver:
    """libnvidia-ml as far as we call it. What is not here is a symbol that this driver lacks."""

    def __init__(self) -> None:
        self.lost = False

    def nvmlInitWithFlags(self, flags: int) -> int:
        return OK

    def nvmlShutdown(self) -> int:
        return OK

    def nvmlDeviceGetCount_v2(self, count: Any) -> int:
        count._obj.value = 1
        return OK

    def nvmlDeviceGetHandleByIndex_v2(self, index: Any, handle: Any) -> int:
        return OK if index.value == 0 else INVALID

    def nvmlDeviceGetHandleByUUID(self, uuid: Any, handle: Any) -> int:
        return LOST if self.lost else OK if uuid.value == b"GPU-abc" else INVALID

    def nvmlDeviceGetUUID(self, handle: Any, text: Any, size: Any) -> int:
        text.value = b"GPU-abc"
        return OK

    def nvmlDeviceGetName(self, handle: Any, text: Any, size: Any) -> int:
        text.value = b"NVIDIA H200"
        return OK

    def nvmlSystemGetDriverVersion(self, text: Any, size: Any) -> int:
        text.value = b"580.95.05"
        return OK

    def nvmlDeviceGetCudaComputeCapability(self, handle: Any, major: Any, minor: Any) -> int:
        major._obj.value, minor._obj.value = 9, 0
        return OK

    def nvmlDeviceGetNumGpuCores(self, handle: Any, cores: Any) -> int:
        cores._obj.value = 16896
        return OK

    def nvmlDeviceGetFieldValues(self, handle: Any, count: Any, values: Any) -> int:
        if self.lost:
            return LOST
        reported = {(186, 0): 512_345, (185, 0): 511_000, (185, 2): 71_000, (82, 0): 55}
        for i in range(count.value):
            entry = values._obj[i]
            entry.nvmlReturn = OK if (entry.fieldId, entry.scopeId) in reported else NOT_SUPPORTED
            entry.valueType = pynvml.NVML_VALUE_TYPE_UNSIGNED_INT
            entry.value.uiVal = reported.get((entry.fieldId, entry.scopeId), 0)
        return OK

    def nvmlDeviceGetSamples(self, handle: Any, kind: Any, since: Any, value_type: Any, count: Any, out: Any) -> int:
        assert kind.value == pynvml.NVML_TOTAL_POWER_SAMPLES
        value_type._obj.value = pynvml.NVML_VALUE_TYPE_UNSIGNED_INT
        if out is None:
            count._obj.value = 120  # the driver reports the buffer's size first, not how many are new
            return OK
        now_us = time.time_ns() // 1000 // 20_000 * 20_000
        stamps = [s for s in range(now_us - 118 * 20_000, now_us + 1, 20_000) if s > since.value]
        for entry, stamp in zip(out, stamps, strict=False):
            entry.timeStamp, entry.sampleValue.uiVal = stamp, 500_000
        count._obj.value = len(stamps)
        return OK if stamps else pynvml.NVML_ERROR_NOT_FOUND

    def nvmlDeviceGetTemperature(self, handle: Any, sensor: Any, out: Any) -> int:
        out._obj.value = 61
        return OK

    def nvmlDeviceGetUtilizationRates(self, handle: Any, out: Any) -> int:
        out._obj.gpu, out._obj.memory = 100, 37
        return OK

    def nvmlDeviceGetMemoryInfo(self, handle: Any, out: Any) -> int:
        out._obj.total, out._obj.used = 141 * 2**30, 2 * 2**30
        return OK

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: Any, out: Any) -> int:
        out._obj.value = time.monotonic_ns() // 2000
        return OK

    def nvmlDeviceGetPowerManagementLimitConstraints(self, handle: Any, low: Any, high: Any) -> int:
        low._obj.value, high._obj.value = 200_000, 700_000
        return OK

    def nvmlDeviceGetSupportedMemoryClocks(self, handle: Any, count: Any, out: Any) -> int:
        return _listed((3201, 2201), count, out)

    def nvmlDeviceGetSupportedGraphicsClocks(self, handle: Any, memory: Any, count: Any, out: Any) -> int:
        return _listed(tuple(range(1980, 344, -15)), count, out) if memory.value in (3201, 2201) else INVALID

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle: Any, out: Any) -> int:
        out._obj.value = 0x4
        return OK


def _number(reported: Callable[[Any], int]) -> Callable[..., int]:
    """A function of the library that returns one number: its arguments end in a reference to it."""

    def function(self: Driver, handle: Any, *arguments: Any) -> int:
        arguments[-1]._obj.value = reported(arguments[0])
        return OK

    return function


for name, reported in {
    "nvmlDeviceGetClockInfo": lambda kind: (1755, 1755, 3201, 1500)[kind.value],
    "nvmlDeviceGetApplicationsClock": lambda kind: (1980, 1980, 3201)[kind.value],
    "nvmlDeviceGetPerformanceState": lambda _: 0,
    "nvmlDeviceGetEnforcedPowerLimit": lambda _: 700_000,
    "nvmlDeviceGetPowerManagementDefaultLimit": lambda _: 700_000,
    "nvmlDeviceGetPcieThroughput": lambda counter: (2_000, 1_000)[counter.value],
}.items():
    setattr(Driver, name, _number(reported))


def _listed(clocks: tuple[int, ...], count: Any, out: Any) -> int:
    if out is None:
        count._obj.value = len(clocks)
        return INSUFFICIENT_SIZE
    for place, clock in enumerate(clocks):
        out[place] = ctypes.c_uint(clock)
    return OK


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    driver = Driver()
    monkeypatch.setattr(pynvml, "nvmlLib", driver)
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
    return driver


class TestThroughPynvml(GpuConformance):
    @pytest.fixture
    def gpu(self, driver: Driver) -> Iterator[NvmlGpu]:
        gpu = NvmlGpu(0, library=NvmlLibrary(), voltage=None)
        yield gpu
        gpu.close()

    def test_every_figure_arrives_in_its_unit(self, gpu: NvmlGpu) -> None:
        reading = gpu.read()
        reported = {c.name: v for c, v in zip(gpu.channels, reading.values, strict=True) if c.available}
        assert reported.pop("energy_j") > 0
        assert reported == pytest.approx(
            {
                "power_instant_w": 512.345,
                "power_average_w": 511.0,
                "memory_power_w": 71.0,
                "power_limit_w": 700.0,
                "graphics_clock_mhz": 1755,
                "sm_clock_mhz": 1755,
                "memory_clock_mhz": 3201,
                "video_clock_mhz": 1500,
                "requested_graphics_clock_mhz": 1980,
                "requested_memory_clock_mhz": 3201,
                "temperature_c": 61,
                "memory_temperature_c": 55,
                "utilisation_percent": 100,
                "memory_utilisation_percent": 37,
                "memory_used_mib": 2048,
                "performance_state": 0,
                "pcie_rx_mb_per_s": 1.0,
                "pcie_tx_mb_per_s": 2.0,
                "event_reasons": 4,
            }
        )
        assert len(gpu.power_samples(0)) >= 119
        assert gpu.graphics_clocks_mhz()[0] == 345
        assert gpu.info.driver == "580.95.05"
        assert gpu.info.multiprocessors == 132
        missing = {c.name for c in gpu.channels if not c.available}
        assert missing == {"core_voltage_mv", "fan_percent", "junction_temperature_c", "module_power_w"}

    def test_a_lost_board_is_lost_and_found_again(self, gpu: NvmlGpu, driver: Driver) -> None:
        driver.lost = True
        for _ in range(2):
            with pytest.raises(GpuLost):
                gpu.read()
        driver.lost = False
        assert value(gpu, gpu.read(), "power_instant_w") == pytest.approx(512.345)


def test_boards_are_listed_as_text(driver: Driver) -> None:
    assert boards(NvmlLibrary()) == [(0, "GPU-abc", "NVIDIA H200")]
