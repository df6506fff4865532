"""What the window costs: start-up, frames, processor share. By hand: python tests/benchmarks/window.py [frames] [CACHE]

Prints a table of figures beside their targets, and the machine's load before and after. On a busy machine the wall
clock counts the others' work too: what is in ms or s of processor is that of Qt's thread, at the start of the program.
`QT_QPA_PLATFORM` decides where it is drawn; offscreen by default. Never part of the test suite: wall-clock time does
not gate anything.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
Row = tuple[str, str, str]

# Every panel of a workspace in sight: its docks as windows of their own, strip and Inspector beside it.
_SPREAD = """
def spread(window, workspace):
    places = window.workspaces
    places.show_workspace(workspace)
    places.set_strip(True)
    places.set_inspector(True)
    for place, dock in enumerate(places.current.docks.by_name.values()):
        dock.setFloating(True)
        dock.resize(520, 420)
        dock.move(60 + 520 * (place % 6), 60 + 420 * (place // 6))
        dock.show()
"""

_OPEN = (
    _SPREAD
    + """
import resource, sys, time
started = float(sys.argv[1])
import app.cli
from PySide6.QtCore import QTimer
from app.views.shell import app as views
from app.views.shared.watched_boards import watched_gpu
gpu = watched_gpu("simulated:a100")
qt = views.application()
program = views.Program(gpu)
program.window.workspaces.show_workspace("watch")
traces = program.window.traces
def up():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    print(time.time() - started, usage.ru_utime + usage.ru_stime, flush=True)
    if sys.argv[2] == "quit":
        QTimer.singleShot(0, qt.quit)
traces.first_frame.connect(up)
if len(sys.argv) > 4:
    program.window.panels_loaded.connect(lambda: spread(program.window, sys.argv[4]))
length = float(sys.argv[3])
traces.set_length(length)
used = []
def take():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    used.append((time.monotonic(), usage.ru_utime + usage.ru_stime))
    if len(used) == 2:
        print((used[1][1] - used[0][1]) / (used[1][0] - used[0][0]), flush=True)
        qt.quit()
if sys.argv[2] != "quit":
    QTimer.singleShot(6000, take)
    QTimer.singleShot(26000, take)
qt.exec()
program.close()
"""
)


_REPLAY = (
    _SPREAD
    + """
import sys, time
from pathlib import Path
import app.cli
from PySide6.QtCore import QTimer
from app.engine.session import events
from app.views.shell import app as views
from app.views.shared.watched_boards import watched_gpu
gpu = watched_gpu("simulated:a100")
qt = views.application()
program = views.Program(gpu)
begun = 0.0
def opened():
    if len(sys.argv) > 2:
        spread(program.window, sys.argv[2])
    QTimer.singleShot(3000, begin)
def begin():
    global begun
    begun = time.perf_counter()
    program.window.open_specification(Path(sys.argv[1]), start=True)
def changed(event):
    if event.progress.state == "done":
        print(time.perf_counter() - begun, flush=True)
        qt.quit()
program.window.panels_loaded.connect(opened)
program.window.bridge.subscribe(events.SessionChanged, changed)
qt.exec()
program.close()
"""
)


def replay(cache: str, *options: str) -> Row:
    """How long a replay takes in the window. Its turns of Qt's thread are in `longest_turns.py`."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", _REPLAY, cache, *options],
            env={**os.environ, "PYTHONPATH": str(ROOT), "WATTRIDGE_DATA": folder},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    how = f", all of {options[0].title()} in sight" if options else ""
    seconds = float(done.stdout.split()[0])
    return f"replay of the cache by brute force, in the window{how}", f"{seconds:.2f} s", "2 s for 5120 entries"


_HOURS = """
import os, sys
from pathlib import Path
import app.cli
from app.sensors.clock import VirtualClock
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin
from app.views.shell import app as views
gpu = SimulatedGpu(load_twin("h200"), clock=VirtualClock())
qt = views.application()
program = views.Program(gpu)
program.window.workspaces.show_workspace("watch")
board = program.window.board
board.sampler.stop()
board.sampler.join()
program.window.monitor.view.set_length(8 * 3600.0)
last_ns = gpu.clock.now_ns()
for hour in range(17):
    for second in range(3600):
        for _ in range(50):
            gpu.clock.wait(0.02)
            board.trace.append(gpu.read())
        samples = gpu.power_samples(last_ns)
        board.trace.append_power_samples(samples)
        last_ns = samples[-1].time_ns if samples else last_ns
        if second % 30 == 0:
            qt.processEvents()
    if hour + 1 in (1, 8, 12, 17):
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        print(pages * os.sysconf("SC_PAGE_SIZE") / 1e6, flush=True)
program.close()
"""


def memory() -> list[Row]:
    """Resident memory of the whole window, fed by a simulated H200 at 50 Hz with its power samples."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", _HOURS],
            env={**os.environ, "PYTHONPATH": str(ROOT), "WATTRIDGE_DATA": folder},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    figures = done.stdout.split()
    return [
        (f"window's memory after {hours} simulated hours at 50 Hz", f"{float(figure):.0f} MB", "300 MB, flat")
        for hours, figure in zip((1, 8, 12, 17), figures, strict=True)
    ]


def open_window(until: str, length_s: float = 60.0, *options: str, data: str = "") -> list[float]:
    """Open the window in a process of its own; seconds to the first trace, those of processor, and share of a core."""
    with tempfile.TemporaryDirectory() as own:
        folder = data or own
        done = subprocess.run(
            [sys.executable, "-c", _OPEN, repr(time.time()), until, str(length_s), *options],
            env={**os.environ, "PYTHONPATH": str(ROOT), "WATTRIDGE_DATA": folder},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    return [float(line) for line in done.stdout.split()]


def start_up() -> Row:
    """Where it was closed in Watch before: the very first window shows Home, and loads its panels first."""
    with tempfile.TemporaryDirectory() as data:
        open_window("quit", data=data)
        wall, own = zip(*(open_window("quit", data=data)[:2] for _ in range(7)), strict=True)
    figure = f"{statistics.median(wall):.2f} s, worst {max(wall):.2f} ({statistics.median(own):.2f} s of processor)"
    return "window up with the first trace drawn, from process start", figure, "0.5 s"


def share(length_s: float, name: str, *options: str) -> Row:
    used = open_window("stay", length_s, *options)[2]
    name += " shown" + (f", all of {options[0].title()} in sight" if options else "")
    return f"window on a simulated A100, 50 Hz, {name}", f"{100 * used:.1f} % of a core", "15 %"


def frames(recorded_s: float, shown_s: float, name: str) -> list[Row]:
    """Whole frames: traces copied out of the trace, everything painted, for a window that was moved by a column."""
    from fixtures.fakes import FakeGpu, filled_trace, working

    from app.views.shell.app import application
    from app.views.watch.monitor_panel import MonitorPanel
    from app.views.watch.readout import Readout

    application()
    gpu = FakeGpu(working)
    trace = filled_trace(gpu, recorded_s)
    readout = Readout(gpu.channels)
    panel = MonitorPanel(gpu, trace, readout)
    panel.resize(1280, 900)
    panel.view.set_length(shown_s)
    panel.show()
    readout.show()
    lines = sum(len(shown.lines) for shown in panel.view.lanes)
    times, own = [], []
    for _ in range(300):
        trace.append(gpu.read())
        values = trace.at(trace.last_ns)
        begun, begun_own = time.perf_counter(), time.thread_time()
        panel.view.redraw()
        panel.view.refresh(values)
        panel.view.repaint()
        times.append((time.perf_counter() - begun) * 1e3)
        own.append((time.thread_time() - begun_own) * 1e3)
        time.sleep(0.005)
    panel.shutdown()
    panel.close()
    readout.close()
    what = f"frame, {lines} traces, {name}, 1280x900"
    return [
        (f"{what}, median", _wall_and_own(statistics.median, times, own), "8 ms"),
        (f"{what}, 99th percentile", _wall_and_own(_percentile_99, times, own), "16 ms"),
    ]


def _percentile_99(times: list[float]) -> float:
    return statistics.quantiles(times, n=100)[98]


def _wall_and_own(figure: Callable[[list[float]], float], wall: list[float], own: list[float]) -> str:
    """On a busy machine the wall clock counts the others' work too."""
    return f"{figure(wall):.1f} ms ({figure(own):.1f} of processor)"


def main() -> None:
    before = os.getloadavg()[0]
    caches = [word for word in sys.argv[1:] if word != "frames"]
    rows = [
        *frames(600, 600, "10 min of 50 Hz"),
        *frames(8 * 3600, 600, "10 min of 8 h"),
        *frames(8 * 3600, 8 * 3600, "8 h"),
    ]
    if "frames" not in sys.argv[1:]:
        rows += [start_up(), share(60.0, "1 min"), share(600.0, "10 min"), share(10.0, "10 s")]
        rows += [*(share(60.0, "1 min", each) for each in ("watch", "tune", "understand")), *memory()]
    for cache in caches:
        rows += [replay(cache), replay(cache, "tune")]
    after = os.getloadavg()[0]
    print(f"load of the machine, {os.cpu_count()} cores: {before:.1f} before, {after:.1f} after, this included")
    width = max(len(row[0]) for row in rows)
    for what, figure, target in rows:
        print(f"{what.ljust(width)}  {figure.rjust(42)}  (target {target})")


if __name__ == "__main__":
    main()
