"""A new user's whole way in a real window, by mouse and keyboard: python tests/benchmarks/first_run.py [FOLDER]

Needs Xvfb, openbox and xdotool. From the first start: the tour, a specification opened by its dialog, the session
started, traces dragged and zoomed, a point chosen along the front by key, the configuration exported, the report
written, the window closed. The same session then runs without a window, and both must have left the same files with
the same configurations. Prints a table; FOLDER keeps a picture of each step.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DISPLAY = ":87"
KINDS = ["json", "header", "script", "csv", "cache", "t4", "t1"]
SPECIFICATION = """
[kernel]
name = "sgemm"
source = "sgemm.cu"
problem_size = ["n", "n"]
arguments = []
profile = "gemm"
[constants]
n = 2048
[parameters]
block_size_x = [16, 32]
block_size_y = [8, 16]
tile_size_x = [4]
tile_size_y = [4]
[device_settings]
graphics_clock_mhz = [810, 1005, 1410]
[metrics]
"GFLOP/s" = "2 * n**3 / time_s / 1e9"
"GFLOPS/W" = "2 * n**3 / energy_j / 1e9"
[objective]
maximise = "GFLOPS/W"
front = ["GFLOP/s", "GFLOPS/W"]
[search]
strategy = "brute_force"
"""


class User:
    """Hands and eyes. Times are those that each step took to show its effect."""

    def __init__(self, folder: Path, pictures: Path | None) -> None:
        self.folder, self.pictures = folder, pictures
        self.environment = {
            **os.environ,
            "DISPLAY": DISPLAY,
            "QT_QPA_PLATFORM": "xcb",
            "WATTRIDGE_DATA": str(folder / "data"),
            "PYTHONPATH": str(ROOT),
            "HOME": str(folder),
        }
        self.steps: list[tuple[str, float]] = []

    def hands(self, *words: str) -> str:
        return subprocess.run(
            ["xdotool", *words], env=self.environment, check=True, capture_output=True, text=True, timeout=30
        ).stdout

    def key(self, *keys: str) -> None:
        for key in keys:
            self.hands("key", "--clearmodifiers", key)
            time.sleep(0.15)

    def until(self, what: str, seen: Callable[[], bool], patience_s: float = 60.0) -> None:
        begun = time.monotonic()
        while not seen():
            if time.monotonic() - begun > patience_s:
                self.picture("missed")
                raise SystemExit(f"not seen within {patience_s:.0f} s: {what}")
            time.sleep(0.1)
        self.steps.append((what, time.monotonic() - begun))
        self.picture(what)

    def picture(self, what: str) -> None:
        if self.pictures is not None:
            path = self.pictures / f"{len(self.steps):02}-{what.replace(' ', '-')}.png"
            subprocess.run(["import", "-window", "root", str(path)], env=self.environment, check=False, timeout=30)

    def titled(self, name: str) -> bool:
        found = subprocess.run(
            ["xdotool", "search", "--onlyvisible", "--name", name],
            env=self.environment,
            capture_output=True,
            check=False,
        )
        return bool(found.stdout.strip())

    def wattridge(self, *words: str, data: str = "data") -> str:
        environment = {**self.environment, "WATTRIDGE_DATA": str(self.folder / data)}
        return subprocess.run(
            [sys.executable, "-m", "app", *words],
            env=environment,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            timeout=300,
            cwd=self.folder,
        ).stdout

    def sessions(self) -> list[dict[str, object]]:
        return list(json.loads(self.wattridge("sessions", "--json")))


def walk(user: User) -> int:
    """The way through the window; the program's exit status."""
    path = user.folder / "gemm.toml"
    program = subprocess.Popen(
        [sys.executable, "-m", "app", "--gpu", "simulated:a100", "--speed", "10"],
        env=user.environment,
        cwd=user.folder,
    )
    try:
        user.until("the window is up", lambda: user.titled("A100"))
        log = user.folder / "data" / "window.ini"
        user.until("its panels are there", lambda: (user.folder / "data" / "wattridge.sqlite").exists())
        time.sleep(4.0)
        user.key(*("Right",) * 5, "Escape")  # through the tour
        user.key("ctrl+o")
        user.until("the dialog asks for a file", lambda: user.titled("Open a specification"))
        user.hands("type", "--delay", "15", str(path))
        user.key("Return")
        time.sleep(2.0)
        user.key("ctrl+Return")
        user.until("the session runs to its end", lambda: [s["state"] for s in user.sessions()] == ["done"], 120)
        time.sleep(1.0)
        user.key("ctrl+t")
        time.sleep(1.0)
        user.hands("mousemove", "400", "300", "mousedown", "1", "mousemove", "600", "320", "mouseup", "1")
        user.hands("click", "4")  # the wheel: zoom
        user.picture("traces are marked")
        user.key("F7", "Home", "Right")  # along the front
        time.sleep(1.0)
        user.picture("a point is chosen")
        user.key("ctrl+shift+e")
        exports = user.folder / "data" / "exports" / "session-1"
        user.until("the configuration is exported", lambda: len(list(exports.glob("*"))) == len(KINDS))
        user.key("ctrl+r")
        user.until("the dialog asks where the report goes", lambda: user.titled("Report"))
        user.key("ctrl+a")
        user.hands("type", "--delay", "15", str(user.folder / "report.html"))
        user.key("Return")
        user.until("the report is written", lambda: (user.folder / "report.html").exists())
        time.sleep(1.0)
        user.key("ctrl+q")
        user.until("the window is closed", lambda: program.poll() is not None and log.exists(), 30)
        return int(program.wait())
    finally:
        if program.poll() is None:
            program.terminate()
            program.wait(20)


def compare(user: User) -> list[str]:
    """The same without a window; what differs."""
    kinds = [word for kind in KINDS for word in ("--kind", kind)]
    user.wattridge("tune", "gemm.toml", "--gpu", "simulated:a100", "--json", data="headless")
    user.wattridge("export", "1", "--out", str(user.folder / "taken"), *kinds, data="headless")
    user.wattridge("report", "1", "--out", str(user.folder / "headless.html"), data="headless")
    window, headless = user.folder / "data" / "exports" / "session-1", user.folder / "taken"
    amiss = []
    names = [sorted(path.name for path in folder.iterdir()) for folder in (window, headless)]
    if names[0] != names[1]:
        amiss.append(f"files differ: {names[0]} and {names[1]}")
    measured = [_configurations(next(folder.glob("*-session.csv"))) for folder in (window, headless)]
    if measured[0] != measured[1] or len(measured[0]) != 12:
        amiss.append(f"configurations differ: {len(measured[0])} and {len(measured[1])}")
    reports = [(user.folder / name).read_text() for name in ("report.html", "headless.html")]
    heads = [[part.split("<")[0] for part in text.split("<h2>")[1:]] for text in reports]
    if heads[0] != heads[1]:
        amiss.append(f"reports differ: {heads[0]} and {heads[1]}")
    return amiss


def _configurations(path: Path) -> set[tuple[str, ...]]:
    with path.open() as file:
        lines = list(csv.DictReader(line for line in file if not line.startswith("#")))
    wanted = [name for name in lines[0] if name.startswith(("block_size", "tile_size", "graphics_clock"))]
    return {tuple(line[name] for name in wanted) for line in lines}


def main() -> int:
    pictures = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else None
    if pictures is not None:
        pictures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "gemm.toml").write_text(SPECIFICATION)
        (folder / "sgemm.cu").write_text("// the simulated board costs it by its profile\n")
        user = User(folder, pictures)
        screen = subprocess.Popen(["Xvfb", DISPLAY, "-screen", "0", "1366x768x24"], stderr=subprocess.DEVNULL)
        time.sleep(1.5)
        manager = subprocess.Popen(["openbox"], env=user.environment, stderr=subprocess.DEVNULL)
        time.sleep(1.0)
        try:
            status = walk(user)
            amiss = compare(user)
        finally:
            for helper in (manager, screen):
                helper.terminate()
                helper.wait(10)
    if status != 0:
        amiss.append(f"the program ended with status {status}")
    for what, seconds in user.steps:
        print(f"{what:45} {seconds:6.1f} s")
    print("\n".join(amiss) if amiss else "the same files as without a window")
    return 1 if amiss else 0


if __name__ == "__main__":
    raise SystemExit(main())
