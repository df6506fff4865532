"""The real helper, and the command, over a real folder of records that is full, read-only, or limited in file size."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from boards import AS_ROOT, StandIn
from environment import need_terminal
from fixtures.helper_process import Process, changed

from app.base.errors import PermissionRefused
from app.engine.control.guard import DeviceGuard
from app.engine.control.helper import record
from app.engine.control.left_over import left_over
from app.sensors.nvml.gpu import NvmlGpu

pytestmark = pytest.mark.skipif(not AS_ROOT, reason="only root can mount a disk")
Boards = Callable[..., StandIn]
_MOUNT, _UMOUNT = (shutil.which(name) or name for name in ("mount", "umount"))


class Disk:
    """A file system of its own for records, which a test fills up or makes read-only."""

    def __init__(self, path: Path, options: str) -> None:
        self.path = path
        path.mkdir(parents=True)
        done = subprocess.run([_MOUNT, "-t", "tmpfs", "-o", f"mode=755,{options}", "records", str(path)])
        if done.returncode != 0:
            pytest.skip("this container may not mount a file system")

    def fill(self) -> None:
        """Take up every byte and every file that is left."""
        for number in range(10_000):
            try:
                with (self.path / f"filler {number}").open("wb") as file:
                    file.write(b"x" * 4096)
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                return
        raise AssertionError("the disk is never full")

    def empty(self) -> None:
        for path in self.path.glob("filler *"):
            path.unlink()

    def forbid(self) -> None:
        subprocess.run([_MOUNT, "-o", "remount,ro", str(self.path)], check=True)

    def allow(self) -> None:
        subprocess.run([_MOUNT, "-o", "remount,rw", str(self.path)], check=True)

    def close(self) -> None:
        subprocess.run([_UMOUNT, "-l", str(self.path)], check=True)


@pytest.fixture
def disk() -> Iterator[Callable[..., Disk]]:
    made: list[Disk] = []

    def mount(path: Path, options: str = "size=32k") -> Disk:
        made.append(Disk(path, options))
        return made[-1]

    yield mount
    for each in made:
        each.close()


@dataclass(frozen=True)
class Fault:
    """A way in which a disk fails, and what the system says of it."""

    kind: str
    begin: Callable[[Disk], None]
    end: Callable[[Disk], None]
    words: str


@pytest.fixture(
    params=[
        Fault("full", Disk.fill, Disk.empty, "No space left on device"),
        Fault("read-only", Disk.forbid, Disk.allow, "Read-only file system"),
    ],
    ids=lambda fault: fault.kind,
)
def fault(request: pytest.FixtureRequest) -> Fault:
    found: Fault = request.param
    return found


@pytest.fixture
def stand_in(boards: Boards) -> StandIn:
    return boards("h200")


@pytest.fixture
def records(stand_in: StandIn, disk: Callable[..., Disk]) -> Disk:
    """The disk that holds the helper's records and nothing else."""
    return disk(stand_in.folder / "root" / "records")


def test_what_cannot_be_recorded_is_never_set(
    fault: Fault, stand_in: StandIn, helper: Callable[..., Process], records: Disk
) -> None:
    process, before = helper(stand_in), stand_in.settings()
    fault.begin(records)
    for _ in range(3):  # neither the first attempt nor a later one
        reply = process.ask("set", settings={"power_limit_w": 300, "graphics_clock_mhz": [1200, 1200]})
        assert reply["error"]["kind"] == "record"
        assert fault.words in reply["error"]["what"]
        assert stand_in.calls() == []
    fault.end(records)
    changed(stand_in, process)
    assert process.end() == 0
    assert stand_in.settings() == before
    assert list(process.records.glob("GPU-*")) == []


@pytest.mark.parametrize("kept", [False, True], ids=["nothing kept", "a lock kept"])
def test_what_cannot_be_confirmed_is_put_back_at_once(
    fault: Fault, kept: bool, stand_in: StandIn, helper: Callable[..., Process], records: Disk
) -> None:
    original = stand_in.settings()
    process = helper(stand_in)
    if kept:
        process.ask("set", settings={"graphics_clock_mhz": [900, 900]})
        process.ask("confirm")
    before = stand_in.settings()
    process.ask("set", settings={"graphics_clock_mhz": [1200, 1200], "power_limit_w": 300})
    fault.begin(records)
    reply = process.ask("confirm")
    assert reply["error"]["kind"] == "record"
    assert "not confirmed" in reply["error"]["what"]
    assert fault.words in reply["error"]["what"]
    assert reply["state"]["applied"] == {}
    assert stand_in.settings() == before
    process.end()
    assert stand_in.settings() == before
    fault.end(records)
    again = helper(stand_in)
    again.ask("reset", to="prior")
    assert stand_in.settings() == original
    assert list(process.records.glob("GPU-*")) == []


def test_a_disk_that_fails_never_keeps_a_board_from_being_put_back(
    fault: Fault, stand_in: StandIn, helper: Callable[..., Process], records: Disk
) -> None:
    process = helper(stand_in)
    before = changed(stand_in, process)
    fault.begin(records)
    reply = process.ask("reset")
    assert stand_in.settings() == before
    if fault.kind == "read-only":  # what is not removed is reported until it is
        assert "the board is as it was before, but its record stays" in reply["error"]["what"]
        assert fault.words in reply["error"]["what"]
        process.end()
        assert list(process.records.glob("GPU-*.json")) != []
        fault.end(records)
        again = helper(stand_in)
        assert again.hello["state"]["left_over"]
        again.ask("reset")
    else:
        assert "error" not in reply  # it takes no room to remove a file
        process.end()
    assert stand_in.settings() == before
    assert list(process.records.glob("GPU-*")) == []


def test_a_disk_without_room_for_another_file_is_a_full_one(
    stand_in: StandIn, helper: Callable[..., Process], disk: Callable[..., Disk]
) -> None:
    disk(stand_in.folder / "root" / "records", "nr_inodes=1")
    process = helper(stand_in)
    reply = process.ask("set", settings={"power_limit_w": 300})
    assert "No space left on device" in reply["error"]["what"]
    assert stand_in.calls() == []


@pytest.mark.parametrize("limit", [0, 40])
def test_a_limit_on_the_size_of_files_is_a_fault_like_any_other(
    limit: int, stand_in: StandIn, helper: Callable[..., Process]
) -> None:
    process = helper(stand_in)
    before = changed(stand_in, process)
    for pid in (process.waiting, process.serving):  # EFBIG from now on, in the middle of a write where it is 40 bytes
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (limit, limit))
    reply = process.ask("confirm")
    assert "File too large" in reply["error"]["what"]
    assert stand_in.settings() == before
    reply = process.ask("set", settings={"power_limit_w": 400})
    assert "File too large" in reply["error"]["what"]
    assert stand_in.settings() == before
    process.end()
    assert list(process.records.glob("GPU-*")) == []


# --- the command ------------------------------------------------------------------------------------------------------


def test_apply_says_what_is_true_when_enter_comes_too_late_for_the_disk(
    fault: Fault, by_sudo: Boards, opened: Callable[..., NvmlGpu], disk: Callable[..., Disk]
) -> None:
    stand_in = by_sudo("h200")
    before = stand_in.settings()
    records = disk(Path(record.FOLDER))
    own = DeviceGuard(opened(), allow_control=True)
    with closing(own), own as guard:
        guard.apply(graphics_clock_mhz=1200, power_limit_w=300.0)
        fault.begin(records)
        with pytest.raises(PermissionRefused, match="not confirmed") as refused:
            guard.confirm()
        assert fault.words in str(refused.value)
        assert "nothing was set" not in str(refused.value)
        assert guard.applied == {}
        assert stand_in.settings() == before
        fault.end(records)
        guard.apply(power_limit_w=400.0)
        assert guard.prior["power_limit_w"] == 650.0
    assert stand_in.settings() == before
    assert left_over(stand_in.uuids[0]) is None


def test_apply_on_a_full_disk_and_restore_after_it(boards: Boards, disk: Callable[..., Disk], tmp_path: Path) -> None:
    """`wattridge apply`, Enter while the disk is full, as a program of its own on a terminal."""
    need_terminal()
    stand_in = boards("h200")
    before = stand_in.settings()
    records = disk(tmp_path / "records")
    master, slave = os.openpty()
    program = (
        "import sys; from app.engine.control import client; from app.engine.control.helper import record\n"
        f"record.FOLDER = {str(records.path)!r}\n"
        f"words = [{sys.executable!r}, '-I', '-S', '-B', '-c', {_helper(records.path)!r}]\n"
        "client.helper_command = lambda uuid, label: [*words, uuid]\n"
        "from app.cli import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    words = ("apply", "--gpu", "0", "--clock", "1200", "--power-limit", "400", "--allow-control", "--countdown", "60")
    apply = subprocess.Popen(
        [sys.executable, "-c", program, *words],
        stdin=slave,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[3],
        env={**os.environ, **stand_in.environment(), "WATTRIDGE_DATA": str(tmp_path / "data")},
    )
    said: list[str] = []
    asked = threading.Event()

    def listen() -> None:
        assert apply.stderr is not None
        for line in iter(lambda: apply.stderr.read(1), ""):  # type: ignore[union-attr]
            said.append(line)
            if "Keep these settings?" in "".join(said[-60:]):
                asked.set()

    listener = threading.Thread(target=listen)
    listener.start()
    assert asked.wait(60.0), "".join(said)
    assert stand_in.settings() == {**before, "lock": (1200, 1200), "limit": 400_000}
    records.fill()
    os.write(master, b"\n")
    assert apply.wait(60) == 1
    listener.join(10.0)
    apply.communicate()
    for end in (master, slave):
        os.close(end)
    text = "".join(said)
    assert "not confirmed" in text
    assert "No space left on device" in text
    assert "the board is as it was before" in text
    assert "nothing was set" not in text
    assert "Traceback" not in text
    assert stand_in.settings() == before
    assert list(records.path.glob("GPU-*")) == []


def _helper(folder: Path) -> str:
    """The helper's own way in, with its records elsewhere."""
    here = Path(__file__).parents[3]
    import pynvml

    return (
        f"import sys; sys.path[:0] = [{str(here)!r}, {str(Path(pynvml.__file__).parent)!r}]\n"
        "from app.engine.control.helper import holding, record\n"
        f"record.FOLDER = {str(folder)!r}; record.LOCK_FOLDER = {str(folder.parent / 'locks')!r}\n"
        "sys.exit(holding.main(sys.argv[1:]))\n"
    )
