"""A new user's way to an exported file in a real window, at every size: python tests/benchmarks/first_run.py [FOLDER]

Needs Xvfb, openbox and xdotool. From the first start to the files of the best configuration: in `wattridge demo`, and
from Home. By mouse, by shortcuts, and by Tab, Return and Space alone. What is pressed is found as a user would, by its
name and place on the screen; what is covered or off the screen is not pressed. Clicks and keys are counted, and too
many fail. Then a specification is opened by its dialog, run, exported and reported by hand, and again without a window:
both must leave the same files. Prints a table; FOLDER keeps pictures.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from desktop import Missed, Seen, User, screen

SIZES = ((1280, 720, 1.0), (1366, 768, 1.0), (1920, 1080, 1.0), (3840, 2160, 1.0), (3840, 2160, 2.0))
KINDS = ["json", "header", "source", "script", "csv", "cache", "t4", "t1"]
MOST_CLICKS = {"demo": 1, "Home": 2}
MOST_KEYS = {"shortcuts": 6, "Tab": 60}
_NEXT_KEY_S = 0.5
_SPEED = "100"  # of the simulated board: the way is the same at real time
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


# --- the shortest ways ------------------------------------------------------------------------------------------------


def reach(user: User, start: str, by: str) -> None:
    """From the first start to the exported files."""
    demo = start == "demo"
    with user.start(*(["demo"] if demo else ["--gpu", "simulated:a100"]), "--speed", _SPEED):
        if not demo:
            user.see("A kernel", role="Button")
            user.picture("first start")
            _press(user, "A kernel", by, shortcut="alt+k")
        running = "How far what runs is"
        user.until("that something runs", lambda: user.sees(running), 30)
        _focus_is_in_sight(user)
        user.until("the session's end", lambda: not user.sees(running), 60)
        time.sleep(0.5)
        user.picture("ended")
        _press(user, "Export", by, shortcut="ctrl+shift+e")
        exports = user.folder / "data" / "exports"
        user.until("the exported files", lambda: len(list(exports.glob("sgemm-a100-1-*/*"))) == len(KINDS) + 1, 60)
        user.until("where they went", lambda: user.sees("Exported"), 30)
        user.picture("exported")
        _focus_is_in_sight(user)


def _press(user: User, name: str, by: str, *, shortcut: str) -> Seen:
    seen = user.see(name, role="Button")
    if by == "mouse":
        user.click(seen)
    elif by == "shortcuts":
        user.key(shortcut)
    else:
        user.tab_to(name, MOST_KEYS["Tab"])
        user.key("space")
    return seen


def _focus_is_in_sight(user: User) -> None:
    """A keyboard's next key must go somewhere that can be seen, half a second after the one before."""
    until = time.monotonic() + _NEXT_KEY_S
    while (seen := user.focus()) is None or not user.on_screen(seen):
        if time.monotonic() > until:
            raise Missed(f"the focus is not in sight: {seen}")
        time.sleep(0.05)


def table(pictures: Path | None) -> list[str]:
    """Every size, start and way; what is amiss."""
    amiss = []
    print(f"{'screen':>17}  {'from':<5} {'by':<10} {'clicks':>6} {'keys':>5} {'s':>6}")
    for width, height, scale in SIZES:
        size = f"{width}x{height}" + (f" at {scale:g}" if scale != 1.0 else "")
        for start in ("demo", "Home"):
            for by in ("mouse", "shortcuts", "Tab"):
                kept = pictures / f"{size}-{start}-{by}".replace(" ", "-") if pictures is not None else None
                if kept is not None:
                    kept.mkdir(parents=True, exist_ok=True)
                with tempfile.TemporaryDirectory() as name, screen(width, height):
                    user = User(Path(name), (width, height), scale, kept)
                    begun, why = time.monotonic(), ""
                    try:
                        reach(user, start, by)
                    except Missed as missed:
                        why = str(missed)
                    if user.clicks > MOST_CLICKS[start] or user.keys > MOST_KEYS.get(by, 0):
                        why = why or "too many"
                    seconds = time.monotonic() - begun
                    row = f"{size:>17}  {start:<5} {by:<10} {user.clicks:>6} {user.keys:>5} {seconds:6.1f}  {why}"
                    print(row.rstrip(), flush=True)
                    if why:
                        amiss.append(f"{size}, {start}, {by}: {why}")
    return amiss


# --- the long way -----------------------------------------------------------------------------------------------------


def walk(user: User) -> list[str]:
    """A specification of one's own through the window, and through the commands; what differs."""
    path = user.folder / "gemm.toml"
    path.write_text(SPECIFICATION)
    (user.folder / "sgemm.cu").write_text("// the simulated board costs it by its profile\n")
    with user.start("--gpu", "simulated:a100", "--speed", "10"):
        user.see("A kernel", role="Button")
        user.key("ctrl+o")
        user.until("the dialog asks for a file", lambda: user.sees("Open a specification"))
        user.type(str(path))
        user.key("Return")
        user.see("Start", role="Button")
        user.key("ctrl+Return")
        user.until("the session runs to its end", lambda: [s["state"] for s in _sessions(user)] == ["done"], 120)
        user.key("ctrl+t")
        traces = user.see("Traces", role="Client")
        left, top, width, height = traces.place
        begin, end = (str(left + part * width // 4) for part in (2, 3))
        across = str(top + height // 2)
        user.hands("mousemove", begin, across, "mousedown", "1", "mousemove", end, across, "mouseup", "1", "click", "4")
        user.picture("traces are marked")
        user.key("F7", "Home", "Right", "Return")  # along the front
        time.sleep(1.0)
        user.picture("a point is chosen")
        user.key("ctrl+shift+e")
        exports = user.folder / "data" / "exports"
        user.until(
            "the configuration is exported", lambda: len(list(exports.glob("sgemm-a100-1-*/*"))) == len(KINDS) + 1
        )
        user.key("ctrl+r")
        user.until("the dialog asks where the report goes", lambda: any(s.name == "Report" for s in user.look()))
        time.sleep(0.5)
        user.key("ctrl+a")
        report = user.folder / "report.html"
        user.type(str(report))
        user.key("Return")
        user.until("the report is written", report.exists)
        time.sleep(1.0)
        user.key("ctrl+q")
        program = user.program
        assert program is not None
        user.until("the window is closed", lambda: program.poll() is not None, 30)
        amiss = [] if program.returncode == 0 else [f"the program ended with status {program.returncode}"]
    return amiss + compare(user)


def compare(user: User) -> list[str]:
    """The same without a window; what differs."""
    kinds = [word for kind in KINDS for word in ("--kind", kind)]
    _command(user, "tune", "gemm.toml", "--gpu", "simulated:a100", "--json", data="headless")
    _command(user, "export", "1", "--out", str(user.folder / "taken"), *kinds, data="headless")
    _command(user, "report", "1", "--out", str(user.folder / "headless.html"), data="headless")
    window, headless = next((user.folder / "data" / "exports").glob("sgemm-a100-1-*")), user.folder / "taken"
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


def _command(user: User, *words: str, data: str = "data") -> str:
    return subprocess.run(
        [sys.executable, "-m", "app", *words],
        env={**user.environment, "WATTRIDGE_DATA": str(user.folder / data)},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=300,
        cwd=user.folder,
    ).stdout


def _sessions(user: User) -> list[dict[str, object]]:
    return list(json.loads(_command(user, "sessions", "--json")))


def _configurations(path: Path) -> set[tuple[str, ...]]:
    with path.open() as file:
        lines = list(csv.DictReader(line for line in file if not line.startswith("#")))
    wanted = [name for name in lines[0] if name.startswith(("block_size", "tile_size", "graphics_clock"))]
    return {tuple(line[name] for name in wanted) for line in lines}


def _tried(way: Callable[[User], list[str]], user: User) -> list[str]:
    try:
        return way(user)
    except Missed as missed:
        return [str(missed)]


def main() -> int:
    pictures = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else None
    amiss = table(pictures)
    with tempfile.TemporaryDirectory() as name, screen(1366, 768):
        found = _tried(walk, User(Path(name), (1366, 768), 1.0, pictures))
    print("\n".join(found) if found else "a specification of one's own: the same files as without a window")
    return 1 if amiss or found else 0


if __name__ == "__main__":
    raise SystemExit(main())
