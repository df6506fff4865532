"""The longest turn of Qt's loop in the workspace Program with a million slices: opening, zooming, panning, choosing.

`PYTHONPATH=. .venv/bin/python tests/benchmarks/program_window.py [SLICES] [--size 1840x1000]` prints the table that
program_window.txt keeps. The profile is made by this script: a minute, 40 families, 3 streams, 1,200 ranges. A turn is
one pass of Qt's event loop in the whole window, its wall time and its processor time; offscreen, or on a display where
QT_QPA_PLATFORM=xcb. The machine's load is printed beside it.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

_FRAMES = 300


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("slices", nargs="?", type=int, default=1_000_000)
    parser.add_argument("--size", default="1840x1000")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as data:
        os.environ["WATTRIDGE_DATA"] = data
        measured(arguments.slices, *map(int, arguments.size.split("x")), Path(data) / "made.wprofile")
    return 0


def measured(slices: int, width: int, height: int, path: Path) -> None:
    """Open the window, and use the workspace."""
    from fixtures.profiles import made_profile
    from PySide6.QtCore import QPoint, QPointF, Qt
    from PySide6.QtGui import QWheelEvent
    from PySide6.QtTest import QTest

    from app.engine.profile.kept_profile import save_profile
    from app.views.shared.watched_boards import watched_gpu
    from app.views.shell.app import Program, application

    save_profile(path, *made_profile(slices))
    print(f"{slices:,} slices, file of {path.stat().st_size / 1e6:.1f} MB, window of {width}x{height}")
    sys.setswitchinterval(5e-5)
    qt = application()
    program = Program(watched_gpu("simulated:a100"))
    window: Any = program.window
    window.resize(width, height)
    loaded: list[bool] = []
    window.panels_loaded.connect(lambda: loaded.append(True))

    def turns(known: Callable[[], bool], most_s: float = 60.0) -> Iterator[tuple[float, float]]:
        end = time.monotonic() + most_s
        while not known() and time.monotonic() < end:
            wall, used = time.perf_counter(), time.thread_time()
            qt.processEvents()
            yield time.perf_counter() - wall, time.thread_time() - used
            time.sleep(0.001)

    def report(name: str, taken: list[tuple[float, float]], began: float) -> None:
        wall, used = (1e3 * max(column) for column in zip(*taken, strict=True))
        load = os.getloadavg()[0]
        print(f"{name:34} {time.perf_counter() - began:7.2f} s {wall:9.1f} ms {used:9.1f} ms {load:8.1f}", flush=True)

    def step(name: str, acts: list[Callable[[], object]], known: Callable[[], bool] = lambda: True) -> None:
        """Each act in a turn of its own, with its painting."""
        began, taken = time.perf_counter(), []
        for act in acts:
            wall, used = time.perf_counter(), time.thread_time()
            act()
            taken.append((time.perf_counter() - wall, time.thread_time() - used))
            taken += turns(lambda: False, 0.012)
        taken += turns(known)
        taken += turns(lambda: False, 0.3)
        report(name, taken, began)

    list(turns(lambda: bool(loaded)))
    print(f"{'':34} {'in all':>9} {'longest':>12} {'of processor':>12} {'load':>8}")
    window.workspaces.show_workspace("program")
    list(turns(lambda: window.panels.has("program"), 20))
    panel = window.panels["program"]
    step("opening", [lambda: window.file_opener.open(path)], lambda: panel.opened is not None and not panel.busy)
    timeline = panel.timeline
    place = QPointF(timeline.width() * 0.6, timeline.height() * 0.5)

    def wheel(turned: int) -> Callable[[], object]:
        at = timeline.mapToGlobal(place)
        none, no = Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier
        event = (place, at, QPoint(), QPoint(0, turned), none, no, Qt.ScrollPhase.NoScrollPhase, False)
        return lambda: qt.sendEvent(timeline, QWheelEvent(*event))

    step(f"zooming in, {_FRAMES // 2} frames", [wheel(60)] * (_FRAMES // 2))
    print(f"{'':34} now {(timeline.bounds[1] - timeline.bounds[0]) / 1e3:.1f} µs are shown")
    step(f"zooming out, {_FRAMES // 2} frames", [wheel(-60)] * (_FRAMES // 2))
    end = timeline.end_ns
    for share, name in ((0.5, "half"), (0.01, "a hundredth"), (1e-5, "a hundred-thousandth")):
        length = int(share * end)
        starts = [int(frame / _FRAMES * (end - length)) for frame in range(_FRAMES)]
        moves: list[Callable[[], object]] = [partial(timeline.show_window, at, at + length) for at in starts]
        step(f"panning by {name}, {_FRAMES} frames", moves)
    timeline.show_whole()
    step("choosing 20 families", [(lambda row=row: panel.table.table.selectRow(row)) for row in range(20)])
    step(
        "20 slices by key",
        [lambda: QTest.keyClick(timeline, Qt.Key.Key_Right, Qt.KeyboardModifier.ControlModifier)] * 20,
    )
    step("marking a span", [lambda: timeline.set_span((end // 4, end // 2))], lambda: not panel.busy)
    moves = [QPoint(100 + 4 * frame, timeline.height() // 3) for frame in range(100)]
    step("the mouse over it", [(lambda at=at: QTest.mouseMove(timeline, at)) for at in moves])
    program.close()


if __name__ == "__main__":
    raise SystemExit(main())
