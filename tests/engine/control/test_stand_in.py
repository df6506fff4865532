"""The stand-in for the driver's library is worth testing against: it has what NVML has, and behaves as NVML does."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pynvml
import pytest
from boards import AMD, KINDS, LOST, NO_PERMISSION, StandIn

from app.sensors.event_reasons import EventReason
from app.sensors.gpu import GpuLost
from app.sensors.nvml.gpu import NvmlGpu

Boards = Callable[..., StandIn]
Opened = Callable[..., NvmlGpu]


def test_it_has_no_symbol_that_the_real_library_lacks(boards: Boards) -> None:
    stand_in = boards("h200")
    listed = subprocess.run(["/usr/bin/env", "nm", "-D", "--defined-only", str(stand_in.library)], capture_output=True)
    if listed.returncode != 0:
        pytest.skip("nm is not here to list symbols")
    ours = {line.split()[-1] for line in listed.stdout.decode().splitlines()}
    named = set(re.findall(r'_nvmlGetFunctionPointer\("(\w+)"\)', Path(pynvml.__file__).read_text()))
    assert len(ours) > 30
    assert ours <= named
    assert {"nvmlDeviceSetGpuLockedClocks", "nvmlDeviceResetGpuLockedClocks"} <= ours
    assert not [name for name in ours if "Get" in name and "Lock" in name]


@pytest.mark.parametrize("kind", sorted(kind for kind, told in KINDS.items() if told.get("vendor") != AMD))
def test_every_kind_of_board_answers_the_product(kind: str, boards: Boards, opened: Opened) -> None:
    stand_in = boards(kind)
    gpu = opened()
    assert gpu.info.uuid == stand_in.uuids[0]
    assert gpu.info.name == KINDS[kind]["name"].decode()
    assert gpu.graphics_clocks_mhz()[-1] == KINDS[kind]["graphics_max"]
    limits = stand_in.settings()
    assert limits["limit"] != KINDS[kind]["limit_default"] or kind == "laptop"
    first = gpu.read()
    assert len(first.values) == len(gpu.channels)


def test_clock_and_power_follow_work_lock_and_cap(boards: Boards, opened: Opened) -> None:
    stand_in = boards("h200")
    board, gpu = stand_in.boards[0], opened()
    at = {channel.name: place for place, channel in enumerate(gpu.channels)}

    def now() -> tuple[float, float, EventReason]:
        time.sleep(0.06)
        gpu.read()
        time.sleep(0.03)
        values = gpu.read().values
        reasons = EventReason(int(values[at["event_reasons"]]))
        return values[at["graphics_clock_mhz"]], values[at["power_instant_w"]], reasons

    assert now() == (345, 83, EventReason.IDLE)
    stand_in.work(30.0)
    clock, power, _ = now()
    assert clock == 1920  # the application clock
    assert power == pytest.approx(83 + 600 * (1920 / 1980) ** 3, rel=0.01)
    board.lock[0] = board.lock[1] = 1005
    clock, power, reasons = now()
    assert (clock, reasons) == (1005, EventReason.APPLICATION_CLOCKS)
    assert power == pytest.approx(83 + 600 * (1005 / 1980) ** 3, rel=0.01)
    board.limit = 200_000
    board.lock[0] = board.lock[1] = 1980
    clock, power, reasons = now()
    assert power <= 200
    assert reasons & EventReason.POWER_CAP
    time.sleep(0.2)  # they appear five at a time
    samples = gpu.power_samples(0)
    assert len(samples) > 10
    assert samples[-1].power_w == pytest.approx(power, rel=0.05)


def test_faults_come_when_they_are_asked_for(boards: Boards, opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in = boards("h200", "a100")
    monkeypatch.setenv("STAND_IN_RIGHTS", "1")
    pynvml.nvmlInit()
    one, two = (pynvml.nvmlDeviceGetHandleByIndex(index) for index in (0, 1))
    stand_in.fault("nvmlDeviceSetPowerManagementLimit", 10, board=0, delay_s=0.05, times=1)
    began = time.monotonic()
    with pytest.raises(pynvml.NVMLError) as failed:
        pynvml.nvmlDeviceSetPowerManagementLimit(one, 300_000)
    assert failed.value.value == 10
    assert time.monotonic() - began >= 0.05
    pynvml.nvmlDeviceSetPowerManagementLimit(two, 200_000)
    pynvml.nvmlDeviceSetPowerManagementLimit(one, 300_000)
    assert [call.returned for call in stand_in.calls()] == [10, 0, 0]
    monkeypatch.setenv("STAND_IN_RIGHTS", "0")
    gpu = opened()
    with pytest.raises(pynvml.NVMLError) as failed:
        pynvml.nvmlDeviceSetGpuLockedClocks(one, 900, 900)
    assert failed.value.value == NO_PERMISSION
    stand_in.boards[0].lost = 1
    with pytest.raises(pynvml.NVMLError) as failed:
        pynvml.nvmlDeviceGetPowerUsage(one)
    assert failed.value.value == LOST
    with pytest.raises(GpuLost):
        gpu.read()


def test_symbols_can_be_missing(boards: Boards) -> None:
    boards("h200", missing=("nvmlDeviceSetPersistenceMode",))
    pynvml.nvmlInit()
    with pytest.raises(pynvml.NVMLError) as failed:
        pynvml.nvmlDeviceSetPersistenceMode(pynvml.nvmlDeviceGetHandleByIndex(0), 1)
    assert failed.value.value == pynvml.NVML_ERROR_FUNCTION_NOT_FOUND
