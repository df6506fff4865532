"""The Debian package replaced, interrupted and removed while settings of a board are in force, on a bare system.

By hand, as root: `python tests/benchmarks/upgrades.py OLD.deb NEW.deb WORK bookworm`, with an older version of the
package. Needs what `packages.py` needs. The board is the stand-in for NVML, whose limit is 650 W before.

Prints each command with its time and status, then what the driver of the board holds, and the board's record.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from packages import CLEAN, System, lend_board, limit, processes_in, row, system

OLD, NEW = "/tmp/old.deb", "/tmp/new.deb"
RECORDS = "var/lib/wattridge"
HELPER = "usr/lib/wattridge"
BOOT = "/usr/lib/wattridge/wattridge-control --restore"  # ExecStart of wattridge-restore.service
_LONG_S = 300.0


class Board:
    """What is expected of it after each step; a step that leaves it otherwise ends the trial."""

    def __init__(self, there: System) -> None:
        self._there = there

    def is_at(self, watts: int, *, recorded: bool) -> None:
        found = limit(self._there)
        records = sorted(path.name for path in (self._there.root / RECORDS).glob("*.json"))
        row("  the board, and its record", 0, 0, f"{found}, {'recorded' if records else 'no record'}")
        assert (found, bool(records)) == (f"{watts} W", recorded), (found, records)


def install(there: System, package: str) -> None:
    """Without questions; an older version too."""
    status, said = there.run(f"apt-get install -y -q --allow-downgrades {package}")
    assert status == 0, said


def keep(there: System, watts: int) -> None:
    """Set and keep, until `wattridge restore`."""
    status, said = there.run(f"wattridge apply --gpu 0 --power-limit {watts} --keep --allow-control")
    assert status == 0, said


def put_back(there: System) -> None:
    """By hand."""
    status, said = there.run("wattridge restore")
    assert status == 0, said


def next_boot(there: System, folder: Path) -> int:
    """What the unit does when the machine starts, which has another number then; its status."""
    number, place = folder / "boot_id", there.root / "proc/sys/kernel/random/boot_id"
    number.write_text("00000000-0000-4000-8000-000000000000\n", encoding="ascii")
    subprocess.run(["mount", "--bind", str(number), str(place)], check=True)
    try:
        return there.run(BOOT)[0]
    finally:
        subprocess.run(["umount", str(place)], check=True)


def session(there: System, watts: int) -> subprocess.Popen[bytes]:
    """A program that holds the board for minutes; returns once the board is set."""
    words = ["wattridge", "apply", "--gpu", "0", "--power-limit", str(watts), "--countdown", "600", "--allow-control"]
    process = subprocess.Popen(
        ["chroot", str(there.root), *words],
        env={**CLEAN, "HOME": "/root"},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until(lambda: limit(there) == f"{watts} W")
    row(f"# {' '.join(words)}, which goes on", 0, 0, limit(there))
    return process


def until(holds: object) -> None:
    """Raises TimeoutError."""
    assert callable(holds)
    end = time.monotonic() + _LONG_S
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.05)


def interrupted(there: System) -> None:
    """dpkg is killed while it unpacks the new version over the old one."""
    words = ["chroot", str(there.root), "dpkg", "-i", NEW]
    begun = time.monotonic()
    process = subprocess.Popen(
        words, env=CLEAN, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    until(lambda: process.poll() is not None or any((there.root / HELPER).rglob("*.dpkg-new")))
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    unpacked = len(list((there.root / "usr/lib").rglob("*.dpkg-new")))
    row(f"# dpkg -i {NEW}, killed", time.monotonic() - begun, process.returncode, f"{unpacked} files half in place")
    assert unpacked > 0


def trial(there: System, folder: Path) -> None:
    """Every step, with what is asked of the board after it."""
    lend_board(there, folder)
    board = Board(there)
    print("-- a kept setting, through an upgrade and back", flush=True)
    install(there, OLD)
    keep(there, 500)
    board.is_at(500, recorded=True)
    install(there, NEW)
    board.is_at(500, recorded=True)
    put_back(there)
    board.is_at(650, recorded=False)

    print("-- a session that sets the board, through an upgrade; the unit at boot after a power cut", flush=True)
    install(there, OLD)
    running = session(there, 450)
    install(there, NEW)
    board.is_at(450, recorded=True)
    running.terminate()
    running.wait()
    until(lambda: limit(there) == "650 W")
    board.is_at(650, recorded=False)
    running = session(there, 450)
    end_without_warning(there, running)
    board.is_at(450, recorded=True)
    assert next_boot(there, folder) == 0
    board.is_at(650, recorded=False)

    print("-- dpkg killed in the middle of an upgrade, with a kept setting", flush=True)
    install(there, OLD)
    keep(there, 500)
    interrupted(there)
    board.is_at(500, recorded=True)
    refused = next_boot(there, folder) != 0  # the helper may not be whole; then it starts nothing and keeps the record
    board.is_at(500 if refused else 650, recorded=refused)
    status, said = there.run(f"dpkg -i {NEW} && dpkg --audit")
    assert status == 0, said
    assert next_boot(there, folder) == 0
    board.is_at(650, recorded=False)

    print("-- removal while a session sets the board", flush=True)
    running = session(there, 450)
    status, said = there.run("apt-get remove -y -q wattridge")
    assert status != 0, "the package went while its helper held a board"
    print("".join(f"{'':16}{line}\n" for line in said.splitlines() if line.startswith("wattridge:")), end="")
    board.is_at(450, recorded=True)
    running.terminate()
    running.wait()
    until(lambda: limit(there) == "650 W")
    status, said = there.run("apt-get purge -y -q wattridge")
    assert status == 0, said
    board.is_at(650, recorded=False)


def end_without_warning(there: System, running: subprocess.Popen[bytes]) -> None:
    """As a power cut does: the session and its helper end at once, and nobody puts anything back."""
    ours = processes_in(there.root)
    for number in ours:
        os.kill(number, signal.SIGSTOP)  # none may see another go
    for number in ours:
        os.kill(number, signal.SIGKILL)
    running.wait()
    row(f"  a power cut: {len(ours)} processes end at once", 0, 0, "")


def main(old: str, new: str, work: str, *suites: str) -> None:
    """All releases."""
    assert os.geteuid() == 0, "chroot and mount need root"
    for suite in suites:
        with tempfile.TemporaryDirectory() as folder, system(Path(work).resolve(), suite) as there:
            shutil.copy(old, there.root / OLD[1:])
            shutil.copy(new, there.root / NEW[1:])
            versions = [
                subprocess.check_output(["dpkg-deb", "-f", each, "Version"], text=True).strip() for each in (old, new)
            ]
            print(f"== {suite}: {' and '.join(versions)}", flush=True)
            trial(there, Path(folder))


if __name__ == "__main__":
    main(*sys.argv[1:])
