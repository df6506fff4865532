"""`wattridge` as an ordinary user whose real sudo starts the real helper, over boards that are not there.

    unshare --mount python real_sudo.py SCENARIO FOLDER

Runs as root in a mount name space of its own: the stand-in library lies where the driver's would, sudo lets `nobody`
run anything, records are on a disk of 32 kB. Prints one JSON object; exit status 77 where this cannot be set up.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from boards import StandIn

RECORDS = Path("/var/lib/wattridge")
NOT_HERE = 77
_USER = Path(__file__).with_name("as_nobody.py")


class Scene:
    """The user, and a board whose settings before are not the default."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        libraries = Path("/usr/lib", sysconfig.get_config_var("MULTIARCH") or "")
        upper = folder / "layer"
        upper.mkdir()
        _mount("-t", "tmpfs", "layer", str(upper))
        for name in ("u", "w"):
            (upper / name).mkdir()
        layers = f"lowerdir={libraries},upperdir={upper}/u,workdir={upper}/w"
        _mount("-t", "overlay", "-o", layers, "libraries", str(libraries))
        for path in (RECORDS, Path("/run/wattridge")):
            path.mkdir(exist_ok=True)
            _mount("-t", "tmpfs", "-o", "mode=755,size=32k", "records", str(path))
        sudoers = folder / "sudoers"
        sudoers.write_text("root ALL=(ALL) ALL\nnobody ALL=(root) NOPASSWD: ALL\n")
        sudoers.chmod(0o440)
        _mount("--bind", str(sudoers), "/etc/sudoers")
        (folder / "data").mkdir()
        (folder / "data").chmod(0o777)
        self.stand_in = StandIn(libraries, ("h200",))
        self.before = self.stand_in.settings()

    def command(self, *words: str) -> tuple[int, str]:
        """A command of the user, without a terminal: its status and all that it says."""
        done = subprocess.run(
            [sys.executable, str(_USER), *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=self._environment(),
        )
        return done.returncode, done.stdout + done.stderr

    def apply(self, at_the_question: Callable[[], None]) -> tuple[int, str]:
        """`wattridge apply` on a terminal; Enter after `at_the_question`."""
        try:
            master, slave = os.openpty()
        except OSError:  # a chroot without /dev/pts
            sys.exit(NOT_HERE)
        said = self.folder / "said"
        words = ("--clock", "1200", "--power-limit", "400", "--allow-control", "--countdown", "60")
        with said.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, str(_USER), "apply", "--gpu", "0", *words],
                stdin=slave,
                stdout=output,
                stderr=output,
                env=self._environment(),
            )
        _until(lambda: "Keep these settings?" in said.read_text() or process.poll() is not None, 60.0)
        if process.poll() is None:
            assert self.stand_in.settings() == {**self.before, "lock": (1200, 1200), "limit": 400_000}
            at_the_question()
            os.write(master, b"\n")
        status = process.wait(90)
        for end in (master, slave):
            os.close(end)
        return status, said.read_text()

    def is_back(self) -> bool:
        return self.stand_in.settings() == self.before

    def serving(self) -> int:
        """The helper's process that talks to the driver."""
        for path in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                words = path.joinpath("cmdline").read_bytes().split(b"\0")
                children = path.joinpath("task", path.name, "children").read_text().split()
                if self.stand_in.uuids[0].encode() in words and b"sudo" not in words[0] and children:
                    return int(children[0])
        raise AssertionError("there is no helper")

    def _environment(self) -> dict[str, str]:
        return {
            "WATTRIDGE_UNSAFE_HELPER_FROM_CHECKOUT": "1",
            "PATH": "/usr/bin:/bin",
            "WATTRIDGE_DATA": str(self.folder / "data"),
            "LANG": "C.UTF-8",
        }


def fill() -> None:
    with suppress(OSError):  # until no byte is left
        for number in range(1000):
            (RECORDS / f"filler {number}").write_bytes(b"x" * 4096)


def forbid() -> None:
    _mount("-o", "remount,ro", str(RECORDS))


def run(scenario: str, scene: Scene) -> dict[str, Any]:
    """What the user sees, and what becomes of the board."""
    back_s: float | None = None

    def hang(how: Callable[[], None]) -> None:
        nonlocal back_s
        how()
        began = time.monotonic()
        if _until(scene.is_back, 15.0):
            back_s = time.monotonic() - began

    if scenario == "full before":
        fill()
        status, said = scene.apply(lambda: None)
    elif scenario == "full at Enter":
        status, said = scene.apply(fill)
    elif scenario == "read-only at Enter":
        status, said = scene.apply(forbid)
    elif scenario == "stopped":
        status, said = scene.apply(lambda: hang(lambda: os.kill(scene.serving(), signal.SIGSTOP)))
    elif scenario == "hung":
        fault = "nvmlDeviceGetPersistenceMode"  # which only the helper reads
        status, said = scene.apply(lambda: hang(lambda: scene.stand_in.fault(fault, delay_s=3600.0, times=1)))
    elif scenario == "truncated":
        status, said = scene.apply(lambda: None)
        assert status == 0, said
        [path] = RECORDS.glob("*.json")
        path.write_bytes(path.read_bytes()[:100])
        statuses = [scene.command(*words)[0] for words in (("gpus",), ("restore",), ("restore", "--defaults"))]
        status, said = scene.command("restore")
        return {"statuses": statuses, "status": status, "said": said, **_ends(scene)}
    else:
        raise AssertionError(scenario)
    calls = len(scene.stand_in.calls())
    return {"status": status, "said": said, "back_s": back_s, "calls": calls, **_ends(scene)}


def _ends(scene: Scene) -> dict[str, Any]:
    records = sorted(path.name.partition(".")[2] for path in RECORDS.glob("GPU-*"))
    return {"back": scene.is_back(), "lock": scene.stand_in.settings()["lock"], "records": records}


def _until(happened: Callable[[], bool], patience_s: float) -> bool:
    until = time.monotonic() + patience_s
    while not happened():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def _mount(*words: str) -> None:
    if subprocess.run(["mount", *words], stderr=subprocess.DEVNULL).returncode != 0:
        sys.exit(NOT_HERE)


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], Scene(Path(sys.argv[2])))))
