"""Every way in and out of a bare system, tried there: a chroot that holds Debian's essential packages and apt.

By hand, as root: `python tests/benchmarks/packages.py DIST WORK bookworm trixie`. DIST holds the Debian package and the
folder `wattridge`, and the AppImage where there is one. Needs mmdebstrap, a C compiler, Xvfb, xwd and xwininfo. A board
is the stand-in for NVML. WORK/SUITE.tar is a system that was made before, as of another distribution.

Prints a table: each command, how long it took, and what was seen; at last the files that are left.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "nvml"))

from boards import StandIn
from starts_of_the_program import COLOURS, colours, screen

USER = "tester"
HOME = f"/home/{USER}"
LIBRARIES = "usr/lib/x86_64-linux-gnu"
RULE = (
    f'polkit.addRule(function(a, s) {{ if (a.id == "org.wattridge.control" && s.user == "{USER}") return "yes"; }});\n'
)
NOT_OURS = ("var/cache", "var/lib/apt", "var/lib/dpkg", "var/log", "tmp", "proc", "sys", "dev", "run/dbus")
CLEAN = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}


class System:
    """A bare system in a folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def run(self, command: str, *, user: str = "root", told: bool = True, **environment: str) -> tuple[int, str]:
        """Run a command of the shell there; its status and what it prints. It is a row of the table where `told`."""
        home = HOME if user == USER else "/root"
        words = ["chroot", f"--userspec={user}:{user}", str(self.root), "sh", "-c", f"cd {home}; {command}"]
        begun = time.monotonic()
        done = subprocess.run(
            words,
            env={**CLEAN, "HOME": home, "USER": user, "DEBIAN_FRONTEND": "noninteractive", **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=1200,
        )
        if told:
            row(f"{'#' if user == 'root' else '$'} {command}", time.monotonic() - begun, done.returncode, done.stdout)
        return done.returncode, done.stdout

    def files(self) -> set[str]:
        """All there is, but what the package manager and the kernel keep."""
        found = set()
        for parent, folders, files in os.walk(self.root):
            inside = os.path.relpath(parent, self.root)
            folders[:] = [name for name in folders if os.path.normpath(f"{inside}/{name}") not in NOT_OURS]
            found |= {os.path.normpath(f"{inside}/{name}") for name in (*files, *folders)}
        return found


def row(command: str, seconds: float, status: int, output: str) -> None:
    """One line of the table, and what was said where it failed."""
    last = next((line for line in reversed(output.strip().splitlines()) if line.strip()), "")
    print(f"{seconds:7.1f} s  {status:3d}  {command}\n{'':16}{last.strip()[:150]}", flush=True)


@contextmanager
def system(work: Path, suite: str) -> Iterator[System]:
    """A new one of a release, with an ordinary user."""
    archive, root = work / f"{suite}.tar", work / f"{suite}-root"
    if not archive.is_file():
        subprocess.run(["mmdebstrap", "--variant=apt", suite, str(archive)], check=True)
    assert f" {root}/" not in Path("/proc/self/mounts").read_text(encoding="utf-8"), "unmount what an earlier run left"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    subprocess.run(["tar", "xf", str(archive), "-C", str(root)], check=True)
    mounts = [
        ("proc", "proc", ["-t", "proc"]),
        ("devpts", "dev/pts", ["-t", "devpts", "-o", "newinstance,ptmxmode=0666"]),
        ("/tmp/.X11-unix", "tmp/.X11-unix", ["--bind"]),
    ]
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    try:
        for source, where, how in mounts:
            (root / where).mkdir(parents=True, exist_ok=True)
            subprocess.run(["mount", *how, source, str(root / where)], check=True)
        (root / "dev/ptmx").unlink(missing_ok=True)
        (root / "dev/ptmx").symlink_to("pts/ptmx")
        made = System(root)
        made.run("apt-get update -q", told=False)
        with (root / "etc/passwd").open("a") as users, (root / "etc/group").open("a") as groups:
            users.write(f"{USER}:x:1000:1000::{HOME}:/bin/sh\n")
            groups.write(f"{USER}:x:1000:\n")
        (root / HOME[1:]).mkdir()
        os.chown(root / HOME[1:], 1000, 1000)
        yield made
    finally:
        end_all_in(root)
        for _, where, _ in reversed(mounts):
            subprocess.run(["umount", "--lazy", str(root / where)], check=False)


def end_all_in(root: Path) -> None:
    """End what still runs there: its message bus, polkit."""
    for number in processes_in(root):
        with suppress(OSError):
            os.kill(number, signal.SIGTERM)


def processes_in(root: Path) -> list[int]:
    """The processes whose root is that of the system."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if os.readlink(process / "root") == str(root):
                found.append(int(process.name))
    return found


def window(there: System, program: str) -> None:
    """The window under X, as the user, from outside; and offscreen."""
    there.run(f"QT_QPA_PLATFORM=offscreen timeout --preserve-status 8 {program}; echo status $?", user=USER)
    with screen() as display:
        words = ["chroot", f"--userspec={USER}:{USER}", str(there.root), *shlex.split(program)]
        begun, seen = time.monotonic(), 0
        process = subprocess.Popen(
            words,
            env={**CLEAN, "HOME": HOME, "DISPLAY": display},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        while seen < COLOURS and process.poll() is None and time.monotonic() - begun < 60:
            seen = colours(display)
        waited = time.monotonic() - begun
        time.sleep(4)
        picture = there.root.with_suffix(".png")
        subprocess.run(["import", "-display", display, "-window", "root", str(picture)], check=False)
        os.killpg(process.pid, signal.SIGTERM)  # an AppImage that unpacked itself waits for the program
        said = process.communicate()[0].decode(errors="replace")
        row(f"$ {program}, under Xvfb: {seen} colours, see {picture.name}", waited, process.returncode, said)


def lend_board(there: System, folder: Path) -> str:
    """An H200 of the stand-in's; its UUID."""
    stand_in = StandIn(folder, ["h200"])
    for name, mode in ((stand_in.library.name, 0o644), ("boards.bin", 0o666)):
        target = there.root / LIBRARIES / name
        shutil.copy(folder / name, target)
        target.chmod(mode)
    stand_in.close()
    return str(stand_in.uuids[0])


def take_board_back(there: System) -> None:
    """The driver of it is gone again."""
    for name in ("libnvidia-ml.so.1", "boards.bin"):
        (there.root / LIBRARIES / name).unlink()


def helper_by_polkit(there: System, folder: Path) -> None:
    """An ordinary user sets the stand-in's board through pkexec; nothing is set without polkit's consent."""
    board = lend_board(there, folder)
    there.run("mkdir -p /run/dbus; dbus-daemon --system --fork", told=False)
    polkit = "/usr/lib/polkit-1/polkitd --no-debug"
    there.run(f"({polkit} >/dev/null 2>&1 &) ; sleep 2", told=False)
    launcher = "/usr/lib/wattridge/wattridge-control"
    said = there.run(f"echo '{{}}' | pkexec --disable-internal-agent {launcher} {board} 2>&1", user=USER)[1]
    assert "ready" not in said
    (there.root / "etc/polkit-1/rules.d/10-tester.rules").write_text(RULE, encoding="utf-8")
    time.sleep(3)
    there.run("wattridge apply --gpu 0 --power-limit 500 --keep --allow-control </dev/null", user=USER)
    keep = "wattridge apply --gpu 0 --power-limit 500 --keep --allow-control"
    there.run(f'script -qec "{keep}" /dev/null', user=USER)
    row("  the board's power limit then", 0, 0, limit(there))


def limit(there: System) -> str:
    """The power limit of the stand-in's board, as its driver holds it."""
    from boards import attached

    state, mapped = attached(there.root / LIBRARIES)
    try:
        return f"{state.boards[0].limit / 1000:g} W"
    finally:
        del state
        mapped.close()


def debian(there: System, package: Path, folder: Path, of_others: set[str]) -> None:
    """In, used, and out."""
    before = there.files()
    shutil.copy(package, there.root / "tmp")
    there.run(f"apt-get install -y -q /tmp/{package.name}")
    there.run("wattridge --version", user=USER)
    there.run("wattridge demo --no-window --max-evaluations 20 --json | tail -c 80", user=USER)
    there.run("wattridge helper", user=USER)
    there.run("wattridge helper install")
    there.run("bash -c '. /usr/share/bash-completion/completions/wattridge; complete -p wattridge'", user=USER)
    window(there, "wattridge")
    helper_by_polkit(there, folder)
    there.run("apt-get remove -y -q wattridge")
    row("  the board's power limit then", 0, 0, limit(there))
    there.run("apt-get purge -y -q wattridge")
    there.run("apt-get autoremove --purge -y -q")
    take_board_back(there)
    (there.root / "etc/polkit-1/rules.d/10-tester.rules").unlink(missing_ok=True)
    left(there, before, of_others)


def anywhere(there: System, source: Path, folder: Path) -> None:
    """The folder, unpacked by the user; the stand-in's board is watched, and set by nobody."""
    before = there.files()
    lend_board(there, folder)
    shutil.copytree(source, there.root / "home" / USER / "wattridge", symlinks=True)
    there.run(f"chown -R {USER}:{USER} {HOME}/wattridge", told=False)
    program = f"{HOME}/wattridge/wattridge"
    there.run(f"{program} --version", user=USER)
    there.run(f"{program} demo --no-window --max-evaluations 20 --json | tail -c 80", user=USER)
    setting = f"{program} apply --gpu 0 --power-limit 500 --keep --allow-control"
    there.run(setting, user=USER)
    there.run(setting)
    row("  the board's power limit then", 0, 0, limit(there))
    window(there, program)
    there.run(f"{program} install-desktop && {program} install-desktop --remove", user=USER)
    there.run(f"rm -rf {HOME}/wattridge", user=USER)
    take_board_back(there)
    left(there, before, set())


def one_file(there: System, source: Path) -> None:
    """The AppImage, as the user; a chroot has no FUSE, so that it unpacks itself for each run."""
    before = there.files()
    image, how = f"{HOME}/{source.name}", "APPIMAGE_EXTRACT_AND_RUN=1"
    shutil.copy(source, there.root / image[1:])
    os.chown(there.root / image[1:], 1000, 1000)
    there.run(f"{how} {image} --version", user=USER)
    there.run(f"{how} {image} demo --no-window --max-evaluations 20 --json | tail -c 80", user=USER)
    there.run(f"{how} {image} install-desktop; grep -h ^Exec= .local/share/applications/*.desktop", user=USER)
    there.run(f"{how} {image} install-desktop --remove", user=USER)
    window(there, f"env {how} {image}")
    there.run(f"rm {image}", user=USER)
    left(there, before, set())


def left_by_dependencies(work: Path, suite: str, package: Path) -> set[str]:
    """What the packages that ours needs leave when they alone are installed and purged; kept for the next run."""
    kept = work / f"{suite}-dependencies.json"
    if not kept.is_file():
        fields = ("Depends", "Recommends")
        said = [subprocess.check_output(["dpkg-deb", "-f", str(package), field], text=True) for field in fields]
        names = " ".join(each.split()[0] for each in ",".join(said).split(","))
        with system(work, suite) as there:
            before = there.files()
            there.run(f"apt-get install -y -q {names}")
            there.run(f"apt-mark auto {names}; apt-get autoremove --purge -y -q")
            kept.write_text(json.dumps(sorted(there.files() - before)), encoding="utf-8")
    return set(json.loads(kept.read_text(encoding="utf-8")))


def left(there: System, before: set[str], of_others: set[str]) -> None:
    """What was not there before: whose it is."""
    more = sorted(there.files() - before - of_others)
    own = [path for path in more if path.startswith(f"home/{USER}/")]
    others = [path for path in more if path not in own]
    shown = ", ".join(others[:12]) + (f" and {len(others) - 12} more" if len(others) > 12 else "")
    print(f"left: {len(own)} files and folders of the user's own in {HOME}; others: {shown or 'none'}\n", flush=True)


def main(dist: str, work: str, *suites: str) -> None:
    """All releases."""
    assert os.geteuid() == 0, "chroot and mount need root"
    (package,) = Path(dist).resolve().glob("wattridge_*.deb")
    for suite in suites:
        of_others = left_by_dependencies(Path(work).resolve(), suite, package)
        with tempfile.TemporaryDirectory() as stand_in, system(Path(work).resolve(), suite) as there:
            print(f"== {suite}: the folder that runs anywhere", flush=True)
            anywhere(there, Path(dist).resolve() / "wattridge", Path(stand_in))
            for image in Path(dist).resolve().glob("*.AppImage"):
                print(f"== {suite}: {image.name}", flush=True)
                one_file(there, image)
            print(f"== {suite}: {package.name}", flush=True)
            debian(there, package, Path(stand_in), of_others)


if __name__ == "__main__":
    main(*sys.argv[1:])
