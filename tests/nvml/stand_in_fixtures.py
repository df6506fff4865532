"""Fixtures: boards that are not there, seen by this process and by the helper, which root or a sudo starts."""

from __future__ import annotations

import ctypes
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import pynvml
import pytest
import rights as stand_in_rights
from boards import AMD_LIBRARY, AS_ROOT, StandIn, compiler

from app.engine.control.client import UNSAFE
from app.engine.control.helper import record
from app.sensors.amd import library as amd_library
from app.sensors.amd.gpu import AmdGpu
from app.sensors.nvml.gpu import NvmlGpu
from app.sensors.nvml.library import LIBRARY, NvmlLibrary

Boards = Callable[..., StandIn]


def not_here(what: str) -> NoReturn:
    """This machine lacks what a test of rights needs: skip it, but fail where it decides whether a change lands."""
    if os.environ.get("CI"):
        pytest.fail(f"CI must run the tests of rights: {what}", pytrace=False)
    pytest.skip(what)


@pytest.fixture
def as_root() -> None:
    """For tests that are root's."""
    if not AS_ROOT:
        not_here("this test runs as root only")


@pytest.fixture(autouse=True)
def boards_settle_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in's do within 20 ms; one that was never characterised is given longer."""
    monkeypatch.setattr("app.engine.control.guard.SETTLE_S", 0.1)


@pytest.fixture
def boards(monkeypatch: pytest.MonkeyPatch) -> Iterator[Boards]:
    """`boards("h200", "old")`: a stand-in with these, loaded here in place of the driver's library."""
    if compiler() is None:
        not_here("the stand-in for the driver's library needs a C compiler")
    monkeypatch.setenv(UNSAFE, "1")  # the helper under test is this checkout's
    made: list[StandIn] = []

    def make(*kinds: str, missing: tuple[str, ...] = ()) -> StandIn:
        folder = Path(tempfile.mkdtemp(prefix="boards-"))
        folder.chmod(0o755)  # for tests that go on as another user
        stand_in = StandIn(folder, kinds, missing=missing)
        monkeypatch.setenv("LD_LIBRARY_PATH", str(folder))
        monkeypatch.setattr(pynvml, "nvmlLib", ctypes.CDLL(str(stand_in.library)))
        monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
        monkeypatch.setattr(amd_library, "places", lambda: iter([str(folder / AMD_LIBRARY)]))
        LIBRARY.close()
        amd_library.LIBRARY.close()
        made.append(stand_in)
        return stand_in

    yield make
    LIBRARY.close()
    amd_library.LIBRARY.close()
    for stand_in in made:
        for uuid in stand_in.uuids:
            files = [Path(record.FOLDER, f"{uuid}.{kind}") for kind in ("json", "unreadable")]
            for path in (*files, Path(record.LOCK_FOLDER, f"{uuid}.lock")):
                with suppress(OSError):
                    path.unlink()
        stand_in.close()
        shutil.rmtree(stand_in.folder, ignore_errors=True)


@pytest.fixture
def sudo(monkeypatch: pytest.MonkeyPatch, boards: Boards) -> Callable[..., Path]:
    """`sudo(stand_in, free=True)`: from now on this process is an ordinary user's, with sudo and pkexec at hand."""

    def put(
        stand_in: StandIn, *, free: bool, granted: bool = False, names: tuple[str, ...] = ("sudo", "pkexec")
    ) -> Path:
        records = stand_in.folder / "root"
        records.mkdir(exist_ok=True)
        programs = stand_in.folder / "programs"
        asked = stand_in_rights.put_programs(
            programs, stand_in.folder, records, free=free, granted=granted, names=names
        )
        monkeypatch.setenv("PATH", str(programs))
        monkeypatch.setenv("STAND_IN_RIGHTS", "0")
        monkeypatch.setattr(record, "FOLDER", f"{records}/records")
        monkeypatch.setattr(record, "LOCK_FOLDER", f"{records}/locks")
        monkeypatch.setattr(os, "geteuid", lambda: 65534)
        return asked

    return put


@pytest.fixture(params=["root", "sudo"])
def with_either_right(request: pytest.FixtureRequest, boards: Boards, sudo: Callable[..., Path]) -> Boards:
    """As `with_rights`, once as root and once by sudo."""

    def make(*kinds: str, missing: tuple[str, ...] = ()) -> StandIn:
        if request.param == "root" and not AS_ROOT:
            not_here("this test runs as root only")
        stand_in = boards(*kinds, missing=missing)
        if request.param == "sudo":
            sudo(stand_in, free=True)
        return stand_in

    return make


@pytest.fixture
def with_rights(boards: Boards, sudo: Callable[..., Path]) -> Boards:
    """As `boards`, in a process that can get the rights: as root, else by a sudo that needs no password."""

    def make(*kinds: str, missing: tuple[str, ...] = ()) -> StandIn:
        stand_in = boards(*kinds, missing=missing)
        if not AS_ROOT:
            sudo(stand_in, free=True)
        return stand_in

    return make


@pytest.fixture
def by_sudo(boards: Boards, sudo: Callable[..., Path]) -> Boards:
    """As `boards`, in a process of an ordinary user whose sudo needs no password."""

    def make(*kinds: str, missing: tuple[str, ...] = ()) -> StandIn:
        stand_in = boards(*kinds, missing=missing)
        sudo(stand_in, free=True)
        return stand_in

    return make


@pytest.fixture
def opened_amd() -> Iterator[Callable[..., AmdGpu]]:
    """`opened_amd(0)`: that board through AMD SMI, closed in the end."""
    gpus: list[AmdGpu] = []

    def open_board(index: int = 0) -> AmdGpu:
        gpus.append(AmdGpu(index))
        return gpus[-1]

    yield open_board
    for gpu in gpus:
        gpu.close()


@pytest.fixture
def opened() -> Iterator[Callable[..., NvmlGpu]]:
    """`opened(0)`: that board through NVML, closed in the end."""
    gpus: list[NvmlGpu] = []

    def open_board(index: int = 0) -> NvmlGpu:
        gpus.append(NvmlGpu(index, library=NvmlLibrary(), voltage=None))
        return gpus[-1]

    yield open_board
    for gpu in gpus:
        gpu.close()
