"""The real window on one board, offscreen: watch a load, tune the example, look at it. By hand:

python tests/benchmarks/window_on_board.py FOLDER [--gpu 0] [--configurations 60]

Reads and never sets. Prints the longest turns of Qt's thread and the share of a core, of turns above 50 ms what Qt's
thread did where it worked longest, and what all threads did in the one that took longest, with what keeps Python's lock
(the start of a process, a search for garbage, a look) and how long a thread that looks on waited for it; and leaves
pictures of the workspaces in FOLDER, light and dark. Pictures are taken between the spans that are timed; what waited
meanwhile is done before the next begins.
"""

from __future__ import annotations

import argparse
import compileall
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ["WATTRIDGE_READ_ONLY"] = "1"
sys.path[:0] = [str(ROOT)]

from PySide6.QtCore import QEventLoop, QTimer  # noqa: E402
from turns import Turns  # noqa: E402

from app.base.paths import resources  # noqa: E402
from app.engine.results.state import SessionState  # noqa: E402
from app.engine.session import events  # noqa: E402
from app.views.shared import theme  # noqa: E402
from app.views.shared.watched_boards import watched_gpu  # noqa: E402
from app.views.shell.app import Program, application  # noqa: E402

# A board that works hard, rests, moves data, rests: for as many seconds as it is told.
_LOAD = """
import sys, time
import cupy
a, b = (cupy.random.rand(8192, 8192, dtype=cupy.float32).astype(cupy.float16) for _ in "ab")
x = cupy.zeros(2**28, dtype=cupy.float32)
y = cupy.empty_like(x)
end = time.monotonic() + float(sys.argv[1])
def repeat(work, seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for _ in range(20):
            work()
        cupy.cuda.Device().synchronize()
while time.monotonic() < end:
    repeat(lambda: a @ b, 4)
    time.sleep(2)
    repeat(lambda: cupy.copyto(y, x), 3)
    time.sleep(1)
"""
_WATCHED_S, _PATIENCE_S = 25.0, 240.0
_SETTLE_S = 0.3  # after a picture
Known = Callable[[], object]


class Look:
    """One window, and what is noted of it."""

    def __init__(self, folder: Path, selector: str) -> None:
        self.folder = folder
        self.qt = application()
        gpu = watched_gpu(selector)
        self.turns = Turns(look=True)
        self.program = Program(gpu, speed=1.0)
        self.made_ms = self.turns.longest_ms(), self.turns.longest_own_ms()
        self.window: Any = self.program.window
        self.window.resize(1600, 1000)

    def wait(self, known: Known, patience_s: float) -> None:
        """Let the event loop run, as in the program."""
        loop, poll, end = QEventLoop(), QTimer(interval=50), time.monotonic() + patience_s
        poll.timeout.connect(lambda: loop.quit() if known() or time.monotonic() > end else None)
        poll.start()
        loop.exec()
        poll.stop()

    def rest(self, seconds: float) -> None:
        self.wait(lambda: False, seconds)

    def timed(self, what: str, known: Known, patience_s: float) -> None:
        """Wait, and print what that cost."""
        processor_s, begun = time.process_time(), time.perf_counter()
        self.turns.begin()
        self.wait(known, patience_s)
        longest_ms, own_ms, seconds = self.turns.longest_ms(), self.turns.longest_own_ms(), time.perf_counter() - begun
        share = 100.0 * (time.process_time() - processor_s) / seconds
        print(f"{what:45} {seconds:6.1f} s {longest_ms:8.0f} ms {own_ms:8.0f} ms {share:8.1f} %", flush=True)
        if longest_ms > 50.0:
            for place in self.turns.where():
                print(f"    {place}", flush=True)
            for place in self.turns.beside():
                print(f"    in the longest turn, {place}", flush=True)
            for what in self.turns.held():
                print(f"    in the longest turn, {what}", flush=True)

    def show(self, workspace: str, panel: str | None = None) -> None:
        """Go there; the longest turn is of what then happens."""
        self.window.workspaces.show_workspace(workspace)
        if panel is not None:
            self.window.workspaces.bring(panel)

    def picture(self, name: str) -> None:
        for mode in ("light", "dark"):
            theme.set_mode(mode)
            self.rest(0.6)
            self.window.grab().save(str(self.folder / f"{name}-{mode}.png"))
        self.rest(_SETTLE_S)

    def run(self, configurations: int) -> None:
        """All of it, to the end."""
        there: list[bool] = []
        self.window.panels_loaded.connect(lambda: there.append(True))
        print(f"{'':45} {'took':>8} {'longest turn':>11} {'processor':>11} {'of a core':>10}", flush=True)
        wall_ms, own_ms = self.made_ms
        print(f"{'the window is made':45} {wall_ms / 1e3:6.1f} s {wall_ms:8.0f} ms {own_ms:8.0f} ms", flush=True)
        self.timed("its panels are loaded", lambda: there, 60)
        self.rest(1.0)
        self.picture("home")
        self.watch()
        self.tune(configurations)
        for workspace, panel in (
            ("understand", "analysis"),
            ("understand", "model"),
            ("understand", "roofline"),
            ("control", None),
            ("library", None),
        ):
            QTimer.singleShot(0, lambda w=workspace, p=panel: self.show(w, p))
            self.timed(f"{panel or workspace} comes to sight", lambda: False, 2.0)
            self.picture(panel or workspace)
        self.program.close()

    def watch(self) -> None:
        load = subprocess.Popen([sys.executable, "-c", _LOAD, str(_WATCHED_S + 15.0)], stderr=subprocess.DEVNULL)
        self.window.monitor.view.set_length(60.0)
        self.show("watch")
        self.rest(8.0)
        busy = load.poll() is None
        self.timed("Watch, 1 min shown" + ("" if busy else ", no load: no CuPy here"), lambda: False, _WATCHED_S)
        self.picture("watch")
        load.terminate()
        load.wait(20)

    def tune(self, configurations: int) -> None:
        ended: list[SessionState] = []
        added: list[int] = []
        self.window.bridge.subscribe(
            events.SessionChanged,
            lambda event: ended.append(event.progress.state) if not event.progress.state.alive else None,
        )
        self.window.bridge.subscribe(events.StartFailed, lambda event: ended.append(SessionState.FAILED))
        self.window.bridge.subscribe(events.MeasurementsAdded, lambda event: added.append(event.progress.evaluated))
        with tempfile.TemporaryDirectory() as name:
            text = (resources() / "examples" / "gemm.toml").read_text()
            text = text.replace("max_evaluations = 250", f"max_evaluations = {configurations}")
            specification = Path(name) / "gemm.toml"
            specification.write_text(text.replace("../kernels", str(resources() / "kernels")))
            QTimer.singleShot(0, lambda: self.window.open_specification(specification, start=True))
            self.timed("Tune until half is measured", lambda: ended or (added and added[-1] > configurations // 2), 240)
            self.picture("tuning")
            self.timed("Tune to its end", lambda: ended, _PATIENCE_S)
        print(f"the session: {ended[0] if ended else 'still runs'}, {added[-1] if added else 0} measured", flush=True)
        table = self.window.result.table
        if table is not None and len(table):
            self.window.result.select(int(table.values("energy_j").argmin()))
        self.rest(1.0)
        self.picture("tune")


def compiled_now() -> int:
    """Modules whose bytecode is not kept."""
    cached = (getattr(module, "__cached__", None) for module in list(sys.modules.values()))
    return sum(1 for place in cached if place and not Path(place).exists())


def main() -> int:
    words = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    words.add_argument("folder", type=Path)
    words.add_argument("--gpu", default="0")
    words.add_argument("--configurations", type=int, default=60)
    arguments = words.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    compileall.compile_dir(ROOT / "app", quiet=1)  # as in an installation: it takes Python's lock for milliseconds each
    with tempfile.TemporaryDirectory() as data:
        os.environ["WATTRIDGE_DATA"] = data
        Look(arguments.folder, arguments.gpu).run(arguments.configurations)
    print(f"modules of other packages that had to be compiled: {compiled_now()}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
