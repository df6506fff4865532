"""`Keeper` on a board that a few lines of Python stand in for: what is set, remembered and put back."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from app.engine.control.helper.grammar import Failed
from app.engine.control.helper.keeper import Keeper
from app.engine.control.helper.nvml_board import NvmlBoard
from app.engine.control.helper.record import Records

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the helper is for Linux")
UUID = "GPU-5f0e3c1a-1111-2222-3333-444455556666"
NOT_SUPPORTED, NO_PERMISSION, TIMEOUT, LOST = 3, 4, 10, 15
HOLDER = {"pid": 1, "started": 1, "uid": 0}


class NVMLError(Exception):
    def __init__(self, value: int) -> None:
        super().__init__(value)
        self.value = value


class Driver:
    """As the module pynvml: one board. `failing` maps functions to codes, `made` are the setters that were called."""

    NVMLError = NVMLError

    def __init__(self, *, locks: bool = True, application: tuple[int, int] | None = (3201, 1920)) -> None:
        self.limit, self.application, self.persistence = 650_000, application, 0
        self.lock: tuple[int, int] | None = None
        self.memory_lock: tuple[int, int] | None = None
        self.locks = locks
        self.failing: dict[str, int] = {}
        self.made: list[tuple[Any, ...]] = []

    @property
    def settings(self) -> tuple[Any, ...]:
        return self.limit, self.application, self.lock, self.memory_lock, self.persistence

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("nvml") and (code := object.__getattribute__(self, "failing").get(name)):

            def refuse(*_: Any) -> None:
                raise NVMLError(code)

            return refuse
        return object.__getattribute__(self, name)

    def _set(self, *call: Any) -> None:
        self.made.append(call)

    def nvmlInit(self) -> None:
        pass

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
        return uuid

    def nvmlDeviceGetName(self, handle: str) -> str:
        return "NVIDIA H200"

    def nvmlDeviceGetPowerManagementLimit(self, handle: str) -> int:
        return self.limit

    def nvmlDeviceGetPowerManagementLimitConstraints(self, handle: str) -> list[int]:
        return [200_000, 700_000]

    def nvmlDeviceGetPersistenceMode(self, handle: str) -> int:
        return self.persistence

    def nvmlDeviceGetApplicationsClock(self, handle: str, kind: int) -> int:
        if self.application is None:
            raise NVMLError(NOT_SUPPORTED)
        return self.application[0 if kind == 2 else 1]

    def nvmlDeviceGetClockInfo(self, handle: str, kind: int) -> int:
        return 3201 if kind == 2 else 1980

    def nvmlDeviceGetSupportedMemoryClocks(self, handle: str) -> list[int]:
        return [3201, 2201]

    def nvmlDeviceGetSupportedGraphicsClocks(self, handle: str, memory: int) -> list[int]:
        return list(range(1980, 344, -15))

    def nvmlDeviceGetPowerManagementDefaultLimit(self, handle: str) -> int:
        return 700_000

    def nvmlDeviceResetApplicationsClocks(self, handle: str) -> None:
        self._set("application", None)
        self.application = (3201, 1980)

    def nvmlDeviceSetPowerManagementLimit(self, handle: str, limit: int) -> None:
        self._set("limit", limit)
        self.limit = limit

    def nvmlDeviceSetPersistenceMode(self, handle: str, mode: int) -> None:
        self._set("persistence", mode)
        self.persistence = mode

    def nvmlDeviceSetApplicationsClocks(self, handle: str, memory: int, graphics: int) -> None:
        self._set("application", memory, graphics)
        self.application = (memory, graphics)

    def nvmlDeviceSetGpuLockedClocks(self, handle: str, low: int, high: int) -> None:
        self._lock("lock", (low, high))

    def nvmlDeviceResetGpuLockedClocks(self, handle: str) -> None:
        self._lock("lock", None)

    def nvmlDeviceSetMemoryLockedClocks(self, handle: str, low: int, high: int) -> None:
        self._lock("memory_lock", (low, high))

    def nvmlDeviceResetMemoryLockedClocks(self, handle: str) -> None:
        self._lock("memory_lock", None)

    def _lock(self, which: str, value: tuple[int, int] | None) -> None:
        self._set(which, value)
        if not self.locks:
            raise NVMLError(NOT_SUPPORTED)
        setattr(self, which, value)


@pytest.fixture
def records(tmp_path: Path) -> Iterator[Records]:
    with Records(str(tmp_path / "records"), make=True) as folder:
        yield folder


@pytest.fixture
def keeper(records: Records) -> Callable[[Driver], Keeper]:
    return lambda driver: Keeper(NvmlBoard(driver, UUID), records, HOLDER)


ALL = {"power_limit_w": 300, "memory_clock_mhz": 2201, "graphics_clock_mhz": (900, 1200)}


@pytest.mark.parametrize("locks", [True, False])
def test_all_settings_are_made_remembered_and_put_back(
    locks: bool, keeper: Callable[[Driver], Keeper], records: Records
) -> None:
    driver = Driver(locks=locks)
    before = driver.settings
    one = keeper(driver)
    one.set(ALL)
    found = records.read(UUID)
    assert found is not None
    assert found.open
    assert found.prior["power_limit_mw"] == 650_000
    if locks:
        assert driver.settings == (300_000, before[1], (900, 1200), (2201, 2201), 0)
    else:
        assert driver.settings == (300_000, (2201, 1200), None, None, 0)
    one.end()
    assert driver.settings == before
    assert records.read(UUID) is None


def test_one_of_two_application_clocks_goes_back_alone(keeper: Callable[[Driver], Keeper]) -> None:
    driver = Driver(locks=False)
    one = keeper(driver)
    one.set({"memory_clock_mhz": 2201, "graphics_clock_mhz": (1200, 1200)})
    one.reset("start", ("graphics_clock_mhz",))
    assert driver.application == (2201, 1920)
    one.reset("start", ("memory_clock_mhz",))
    assert driver.application == (3201, 1920)


def test_a_board_with_neither_refuses_and_leaves_no_record(
    keeper: Callable[[Driver], Keeper], records: Records
) -> None:
    driver = Driver(locks=False, application=None)
    one = keeper(driver)
    with pytest.raises(Failed) as failed:
        one.set({"graphics_clock_mhz": (1200, 1200)})
    assert failed.value.kind == "not_supported"
    one.end()
    assert records.read(UUID) is None


@pytest.mark.parametrize(
    "settings",
    [
        {"power_limit_w": 199},
        {"power_limit_w": 701},
        {"memory_clock_mhz": 2200},
        {"graphics_clock_mhz": (1201, 1215)},
        {"graphics_clock_mhz": (345, 1995)},
        {"power_limit_w": 300, "graphics_clock_mhz": (1, 1)},
    ],
)
def test_nothing_outside_the_board_reaches_the_driver(
    settings: dict[str, Any], keeper: Callable[[Driver], Keeper], records: Records
) -> None:
    driver = Driver()
    with pytest.raises(Failed) as failed:
        keeper(driver).set(settings)
    assert failed.value.kind == "refused"
    assert driver.made == []
    assert records.read(UUID) is None


def test_a_left_over_record_wins_over_the_board(keeper: Callable[[Driver], Keeper]) -> None:
    driver = Driver()
    before = driver.settings
    keeper(driver).set(ALL)  # and nobody puts it back
    again = keeper(driver)
    assert again.left_over
    with pytest.raises(Failed):
        again.confirm()
    again.set({"power_limit_w": 400})
    again.end()
    assert driver.settings == before


def test_confirmed_settings_are_the_start_of_the_next(keeper: Callable[[Driver], Keeper]) -> None:
    driver = Driver()
    before = driver.settings
    one = keeper(driver)
    one.set({"graphics_clock_mhz": (1200, 1200)})
    one.confirm()
    one.end()
    kept = (650_000, before[1], (1200, 1200), None, 1)  # persistence, or the driver forgets
    assert driver.settings == kept
    two = keeper(driver)
    two.set({"graphics_clock_mhz": (900, 900), "power_limit_w": 300})
    two.end()
    assert driver.settings == kept
    keeper(driver).reset("prior")
    assert driver.settings == before


@pytest.mark.parametrize("code", [NOT_SUPPORTED, NO_PERMISSION, TIMEOUT, LOST])
def test_what_cannot_be_put_back_stays_recorded(
    code: int, keeper: Callable[[Driver], Keeper], records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.engine.control.helper.keeper._BETWEEN_S", 0.0)
    driver = Driver()
    before = driver.settings
    one = keeper(driver)
    one.set(ALL)
    driver.failing["nvmlDeviceResetGpuLockedClocks"] = code
    with pytest.raises(Failed):
        one.end()
    assert driver.limit == 650_000  # the rest is back
    found = records.read(UUID)
    assert found is not None
    assert found.open
    driver.failing.clear()
    again = keeper(driver)
    again.reset("start")
    assert driver.settings == before
    assert records.read(UUID) is None


def test_a_confirmed_lock_that_the_driver_then_refuses_to_take_back_stays_recorded(
    keeper: Callable[[Driver], Keeper], records: Records
) -> None:
    """A lock cannot be read: that it was made says that the board has it, whatever the driver says later."""
    driver = Driver()
    one = keeper(driver)
    one.set(ALL)
    one.confirm()
    driver.failing["nvmlDeviceResetGpuLockedClocks"] = NOT_SUPPORTED
    with pytest.raises(Failed):
        keeper(driver).reset("prior")
    assert driver.lock is not None
    assert records.read(UUID) is not None


def test_a_second_lock_that_the_driver_refuses_leaves_the_first_to_be_put_back(
    keeper: Callable[[Driver], Keeper], records: Records
) -> None:
    driver = Driver()
    before = driver.settings
    one = keeper(driver)
    one.set({"graphics_clock_mhz": (1200, 1200)})
    driver.failing["nvmlDeviceSetGpuLockedClocks"] = NOT_SUPPORTED
    with pytest.raises(Failed):
        one.set({"graphics_clock_mhz": (900, 900)})
    driver.failing.clear()
    one.reset("start", ("graphics_clock_mhz",))
    assert driver.settings == before
    assert records.read(UUID) is None


def test_a_prior_state_that_cannot_be_kept_forbids_setting(tmp_path: Path, keeper: Callable[[Driver], Keeper]) -> None:
    driver = Driver()
    one = keeper(driver)
    folder = tmp_path / "records"
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()  # as a disk that is gone
    with pytest.raises(Failed) as failed:
        one.set({"power_limit_w": 300})
    assert failed.value.kind == "record"
    assert driver.made == []


def test_a_limit_that_cannot_be_read_is_not_set(keeper: Callable[[Driver], Keeper]) -> None:
    driver = Driver()
    driver.failing["nvmlDeviceGetPowerManagementLimit"] = NOT_SUPPORTED
    with pytest.raises(Failed):
        keeper(driver).set({"power_limit_w": 300})
    assert driver.made == []


def test_a_limit_that_cannot_be_read_keeps_nothing_else_from_going_back(
    keeper: Callable[[Driver], Keeper], records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether another tool has set it since it was confirmed is then not known: it counts as ours."""
    monkeypatch.setattr("app.engine.control.helper.keeper._BETWEEN_S", 0.0)
    driver = Driver()
    before = driver.settings
    one = keeper(driver)
    one.set({"power_limit_w": 300, "graphics_clock_mhz": (900, 900)})
    one.confirm()
    driver.failing["nvmlDeviceGetPowerManagementLimit"] = TIMEOUT
    with pytest.raises(Failed):
        keeper(driver).reset("prior")
    assert driver.lock is None
    assert records.read(UUID) is not None
    driver.failing.clear()
    keeper(driver).reset("prior")
    assert driver.settings == before
    assert records.read(UUID) is None


def test_a_setting_is_put_back_alone_though_the_record_cannot_be_written(
    tmp_path: Path, keeper: Callable[[Driver], Keeper]
) -> None:
    driver = Driver()
    before = driver.settings
    one = keeper(driver)
    one.set({"power_limit_w": 300, "graphics_clock_mhz": (900, 900)})
    folder = tmp_path / "records"
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()  # as a disk that is gone
    with pytest.raises(Failed, match="put back, but still recorded as set"):
        one.reset("start", ("power_limit_w",))
    assert (driver.limit, driver.lock) == (650_000, (900, 900))
    one.end()  # no record is there that could stay
    assert driver.settings == before
