"""Every write of the folder of records fails once, or from then on: the board is never set without a record."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from test_keeper import HOLDER, UUID, Driver

from app.engine.control.helper import record
from app.engine.control.helper.grammar import Failed
from app.engine.control.helper.keeper import Keeper
from app.engine.control.helper.nvml_board import NvmlBoard
from app.engine.control.helper.record import Records

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the helper is for Linux")
WRITES = ("makedirs", "unlink", "open", "write", "fsync", "replace", "rename")  # calls that change the folder
ERRORS = {"ENOSPC": errno.ENOSPC, "EIO": errno.EIO, "EFBIG": errno.EFBIG, "EROFS": errno.EROFS}
KNOB = {"limit": "power_limit_mw", "lock": "locked_graphics_mhz", "persistence": "persistence_mode"}


class FaultyOs:
    """The module os as `record` sees it, with a fault at one of its writes, before or after it took effect."""

    def __init__(self) -> None:
        self.made: list[str] = []  # the writes so far
        self.fault: tuple[int, int, bool, bool] | None = None  # at which write, errno, from then on, after its effect

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        return self._wrapped(name, real) if name in WRITES else real

    def _wrapped(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            if name == "open" and not arguments[1] & os.O_CREAT:
                return real(*arguments, **named)  # for reading
            at, self.made = len(self.made), [*self.made, name]
            if self.fault is None:
                return real(*arguments, **named)
            first, code, lasting, afterwards = self.fault
            if at != first and not (lasting and at > first):
                return real(*arguments, **named)
            if afterwards:
                returned = real(*arguments, **named)
                if name == "open":
                    os.close(returned)
            raise OSError(code, os.strerror(code))

        return call

    @contextmanager
    def healthy(self) -> Iterator[None]:
        """Without the fault."""
        fault, made, self.fault = self.fault, self.made, None
        try:
            yield
        finally:
            self.fault, self.made = fault, made


class WatchedDriver(Driver):
    """A board that is only ever changed from its base where the record on disk says so."""

    def __init__(self, folder: Path, disk: FaultyOs) -> None:
        super().__init__()
        self.folder, self.disk, self.original = folder, disk, self.settings

    def _set(self, *call: Any) -> None:
        super()._set(*call)
        name, value = call[0], call[1]
        before = {"limit": self.original[0], "lock": self.original[2], "persistence": self.original[4]}[name]
        if value == before:
            return  # it is put back
        with self.disk.healthy(), Records(str(self.folder), make=False) as records:
            found = records.read(UUID)
        assert found is not None, f"{call} without a record"
        assert found.unreadable == ""
        assert found.prior[KNOB[name]] == before
        assert found.open or (list(value) if name == "lock" else value) == found.kept.get(KNOB[name])


def scenario(driver: WatchedDriver, folder: Path, *, verbs: list[str]) -> None:
    """A helper's life: two settings, confirmed, a third one, put back, and another that is left to its end."""
    attempts: list[tuple[str, Callable[[Keeper], None]]] = [
        ("set", lambda keeper: keeper.set({"power_limit_w": 300})),
        ("set", lambda keeper: keeper.set({"graphics_clock_mhz": (1200, 1200)})),
        ("confirm", lambda keeper: keeper.confirm()),
        ("set", lambda keeper: keeper.set({"graphics_clock_mhz": (900, 900)})),
        ("reset", lambda keeper: keeper.reset("start")),
        ("set", lambda keeper: keeper.set({"power_limit_w": 400})),
        ("end", lambda keeper: keeper.end()),
    ]
    with Records(str(folder), make=True) as records:
        keeper = Keeper(NvmlBoard(driver, UUID), records, HOLDER)
        base = driver.settings
        for verb, attempt in attempts:
            before, failed = driver.settings, None
            try:
                attempt(keeper)
            except Failed as error:
                failed = error
            if failed is None:
                base = driver.settings if verb == "confirm" else base
                continue
            verbs.append(verb)
            if failed.kind == "refused":
                assert "nothing is set that could be confirmed" in str(failed)
                continue
            assert failed.kind == "record"
            if verb == "set":
                assert driver.settings == before, "a setting that is not recorded was made"
            else:
                assert driver.settings == base, "what was not confirmed was not put back"
        assert driver.settings == base


def writes_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The writes of that life without a fault."""
    disk = FaultyOs()
    monkeypatch.setattr(record, "os", disk)
    verbs: list[str] = []
    scenario(WatchedDriver(tmp_path / "records", disk), tmp_path / "records", verbs=verbs)
    assert verbs == []
    return disk.made


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "from then on"])
@pytest.mark.parametrize("error", ERRORS)
def test_a_fault_at_any_write_leaves_the_board_recorded_or_as_it_was(
    error: str, lasting: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes = writes_of(tmp_path / "without", monkeypatch)
    assert set(writes) == set(WRITES) - {"rename"}  # which only sets an unreadable record aside
    assert len(writes) > 30
    for at in range(len(writes)):
        for afterwards in (False, True):
            folder = tmp_path / f"{at} {afterwards}" / "records"
            disk = FaultyOs()
            monkeypatch.setattr(record, "os", disk)
            driver = WatchedDriver(folder, disk)
            original = driver.settings
            disk.fault = (at, ERRORS[error], lasting, afterwards)
            failed: list[str] = []
            try:
                scenario(driver, folder, verbs=failed)
            except record.RecordError:
                assert driver.made == []  # no folder, no helper
            assert len(disk.made) > at
            disk.fault = None
            if driver.settings != original:  # confirmed
                with Records(str(folder), make=True) as records:
                    Keeper(NvmlBoard(driver, UUID), records, HOLDER).reset("prior")
            assert driver.settings == original


@pytest.mark.parametrize("error", ERRORS)
def test_a_helper_killed_after_a_fault_at_any_write_leaves_a_board_that_the_next_one_puts_back(
    error: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(Exception):
        pass

    class Mortal(WatchedDriver):
        left = 0

        def _set(self, *call: Any) -> None:
            if self.left == 0:
                raise Killed
            self.left -= 1
            super()._set(*call)

    writes = len(writes_of(tmp_path / "without", monkeypatch))
    for at in range(0, writes, 3):
        for lives in range(8):
            folder = tmp_path / f"{at} {lives}" / "records"
            disk = FaultyOs()
            monkeypatch.setattr(record, "os", disk)
            driver = Mortal(folder, disk)
            original, driver.left = driver.settings, lives
            disk.fault = (at, ERRORS[error], False, False)
            with suppress(Killed, record.RecordError):
                scenario(driver, folder, verbs=[])
            disk.fault, driver.left = None, -1
            with Records(str(folder), make=True) as records:
                Keeper(NvmlBoard(driver, UUID), records, HOLDER).reset("prior")
                assert records.read(UUID) is None
            assert driver.settings == original


def test_a_failed_confirmation_says_so_and_puts_the_confirmed_settings_of_before_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = FaultyOs()
    monkeypatch.setattr(record, "os", disk)
    driver = WatchedDriver(tmp_path / "records", disk)
    with Records(str(tmp_path / "records"), make=True) as records:
        keeper = Keeper(NvmlBoard(driver, UUID), records, HOLDER)
        keeper.set({"graphics_clock_mhz": (1200, 1200)})
        keeper.confirm()
        kept = driver.settings
        keeper.set({"graphics_clock_mhz": (900, 900), "power_limit_w": 300})
        disk.fault = (len(disk.made), errno.ENOSPC, True, False)
        with pytest.raises(Failed, match=r"not confirmed: .*No space left on device; the board is as it was before"):
            keeper.confirm()
        assert driver.settings == kept
        with pytest.raises(Failed, match=r"not set, for what was before is not recorded: .*No space left"):
            keeper.set({"power_limit_w": 300})
        with pytest.raises(Failed, match="not set"):  # the second attempt is not let through either
            keeper.set({"power_limit_w": 300})
        assert driver.settings == kept
        disk.fault = None
        keeper.end()
        found = records.read(UUID)
        assert found is not None
        assert not found.open
        assert found.kept["locked_graphics_mhz"] == [1200, 1200]
        keeper.reset("prior", ("power_limit_w",))
        assert driver.settings == kept  # only the lock was confirmed, and it keeps its record
        assert records.read(UUID) is not None
        keeper.reset("prior", ("graphics_clock_mhz",))
        assert driver.lock is None


def unreadable(records: Records, folder: Path, text: str) -> None:
    (folder / f"{UUID}.json").write_text(text)
    found = records.read(UUID)
    assert found is not None
    assert found.unreadable


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": 1}', '{"not": "ours"}', "x" * 10_000])
def test_a_board_with_an_unreadable_record_is_not_set_but_can_be_unlocked(text: str, tmp_path: Path) -> None:
    folder = tmp_path / "records"
    driver = Driver()
    driver.limit, driver.lock, driver.memory_lock, driver.application = 400_000, (900, 1200), (2201, 2201), (2201, 900)
    before = driver.settings
    with Records(str(folder), make=True) as records:
        unreadable(records, folder, text)
        keeper = Keeper(NvmlBoard(driver, UUID), records, HOLDER)
        assert keeper.left_over
        assert f"{UUID}.json" in keeper.state()["unreadable"]
        for attempt in (
            lambda: keeper.set({"power_limit_w": 300}),
            lambda: keeper.reset("start"),
            lambda: keeper.reset("prior"),
        ):
            with pytest.raises(Failed) as failed:
                attempt()
            assert failed.value.kind == "unreadable"
        keeper.end()
        assert driver.settings == before
        assert (folder / f"{UUID}.json").read_text() == text
        with pytest.raises(Failed, match="as a whole"):
            keeper.reset("defaults", ("power_limit_w",))
        keeper.reset("defaults")
        assert driver.settings == (700_000, (3201, 1980), None, None, 0)
        assert records.read(UUID) is None
        assert (folder / f"{UUID}.unreadable").read_text() == text  # for whoever wants to know
        keeper.set({"power_limit_w": 300})
        keeper.end()
        assert driver.limit == 700_000
        with pytest.raises(Failed, match="record cannot be read"):
            keeper.reset("defaults")


def test_what_an_unreadable_record_does_hold_is_put_back(tmp_path: Path) -> None:
    folder = tmp_path / "records"
    driver = Driver()
    with Records(str(folder), make=True) as records:
        Keeper(NvmlBoard(driver, UUID), records, HOLDER).set({"power_limit_w": 300, "graphics_clock_mhz": (900, 1200)})
        path = folder / f"{UUID}.json"
        text = path.read_text().replace('"version": 1', '"version": 2').replace('"locked_graphics_mhz"', '"tomorrow"')
        unreadable(records, folder, text)
        keeper = Keeper(NvmlBoard(driver, UUID), records, HOLDER)
        with pytest.raises(Failed, match="version 2, 'tomorrow' in 'prior'") as failed:
            keeper.reset("prior")
        assert failed.value.kind == "unreadable"
        assert (driver.limit, driver.lock) == (650_000, (900, 1200))
        keeper.reset("defaults")
        assert (driver.limit, driver.lock) == (650_000, None)  # what was known is not the default


@pytest.mark.parametrize("error", ERRORS)
def test_an_unreadable_record_that_cannot_be_set_aside_stays(
    error: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = FaultyOs()
    monkeypatch.setattr(record, "os", disk)
    folder, driver = tmp_path / "records", Driver()
    driver.lock = (900, 900)
    with Records(str(folder), make=True) as records:
        unreadable(records, folder, "{")
        keeper = Keeper(NvmlBoard(driver, UUID), records, HOLDER)
        disk.fault = (len(disk.made), ERRORS[error], True, False)
        with pytest.raises(Failed, match="the board is at its defaults, but the record stays"):
            keeper.reset("defaults")
        assert driver.lock is None
        disk.fault = None
        unreadable(records, folder, "{")
