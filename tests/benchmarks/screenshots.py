"""A picture of every view, light and dark, on a laptop's and on a 4K screen. By hand:

python tests/benchmarks/screenshots.py FOLDER [CACHE]

Offscreen, on the simulated A100, each size in a process of its own: 1366x768, and 3840x2160 with scales of 1 and 2. A
session is tuned first (CACHE, else the GEMM example), a model fitted, a roofline left to what is stored.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
# name -> (width, height in the window's own pixels, scale)
SIZES = {"1366x768": (1366, 768, 1.0), "3840x2160": (1920, 1080, 2.0), "3840x2160-at-100": (3840, 2160, 1.0)}
_SPEED = 10.0


def take(folder: Path, size: str, specification: Path) -> None:
    """Open the window at one size, and picture each dock in both themes."""
    from PySide6.QtCore import Qt
    from PySide6.QtWidgets import QApplication

    from app.engine.session_state import SessionState
    from app.paths import resources
    from app.views.plots import theme
    from app.views.shell.app import Program, application
    from app.views.watched_board import watched_gpu

    width, height, _ = SIZES[size]
    qt = application()
    print(size, qt.primaryScreen().size().toTuple(), qt.primaryScreen().devicePixelRatio(), flush=True)
    QApplication.setAttribute(Qt.ApplicationAttribute.AA_DontUseNativeDialogs)
    program = Program(watched_gpu("simulated:a100", speed=_SPEED), speed=_SPEED, others=("simulated:h200",))
    window: Any = program.window
    window.resize(width, height)

    def wait(known: Callable[[], bool], patience_s: float) -> None:
        end = time.monotonic() + patience_s
        while not known() and time.monotonic() < end:
            qt.processEvents()
            time.sleep(0.005)

    def rest(seconds: float) -> None:
        wait(lambda: False, seconds)

    def picture(name: str) -> None:
        for mode in ("light", "dark"):
            theme.set_mode(mode)
            rest(0.4)
            window.grab().save(str(folder / f"{name}-{mode}-{size}.png"))

    wait(lambda: len(window.panels) == len(window.docks) - 1, 60)
    for name in window.docks:  # before there is anything: what to do first
        window.dock_area.bring(name)
        rest(0.1)
        theme.set_mode("light")
        rest(0.2)
        window.grab().save(str(folder / f"empty-{name}-light-{size}.png"))
    window.actions_by_name["tour"].trigger()
    picture("tour")
    window.tour.end()
    ended: list[SessionState] = []
    window.bridge.session_changed.connect(lambda event: ended.append(event.progress.state))
    window.open_specification(specification, start=True)
    wait(lambda: SessionState.DONE in ended, 120)
    fitted: list[object] = []
    window.bridge.fit_finished.connect(fitted.append)
    window.panels["model"].fit_sweep()
    wait(lambda: bool(fitted), 60)
    sessions, recordings = window.panels["sessions"], resources() / "recordings"
    sessions.import_files([recordings / "h200-sgemm-session.json.gz"])  # a real board's
    wait(lambda: sessions.model.total == 2, 20)
    rest(0.5)
    sessions.open_asked.emit(1)
    wait(lambda: window.result.session == 1, 20)
    wait(lambda: not sessions.busy, 5)
    sessions.table.clearSelection()
    sessions.choose({1})
    sessions.label.name.setText("the demonstration")
    sessions.label.tags.setText("simulated, first look")
    sessions.label.write()
    window.panels["compare"].look_again()
    rest(0.5)
    ticks = window.panels["compare"].list
    for place in range(ticks.count()):
        ticks.item(place).setCheckState(Qt.CheckState.Checked)
    window.panels["roofline"].open(recordings / "h200-roofline-fp32.json.gz")
    window.monitor.view.set_length(600.0)
    rest(1.0)
    table = window.result.table
    if table is not None and len(table):
        window.result.select(int(table.values(table.value_names[0]).argmin()))
    for name in window.docks:
        window.dock_area.bring(name)
        rest(0.3)
        picture(name)
    for name in ("settings", "about", "shortcuts", "sensors", "scores"):
        window.actions_by_name[name].trigger()
        shown = next(w for key, w in window.side_windows.by_name.items() if key in (name, "help") and w.isVisible())
        for mode in ("light", "dark"):
            theme.set_mode(mode)
            rest(0.3)
            shown.grab().save(str(folder / f"window-{name}-{mode}-{size}.png"))
        shown.close()
    window.actions_by_name["palette"].trigger()
    picture("palette")
    program.close()


def main() -> int:
    if len(sys.argv) < 2:
        print(__doc__)
        return 2
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    if len(sys.argv) == 4 and sys.argv[3] in SIZES:  # in the process that it starts
        sys.path.insert(0, str(ROOT))
        take(folder, sys.argv[3], Path(sys.argv[2]))
        return 0
    specification = Path(sys.argv[2]) if len(sys.argv) > 2 else ROOT / "resources" / "examples" / "gemm.toml"
    for size, (width, height, scale) in SIZES.items():
        with tempfile.TemporaryDirectory() as data:
            screen = {"name": size, "x": 0, "y": 0, "logicalDpi": 96, "logicalBaseDpi": 96, "dpr": 1}
            screen |= {"width": round(width * scale), "height": round(height * scale)}
            described = Path(data) / "screens.json"
            described.write_text(json.dumps({"screens": [screen]}))
            environment = {
                **os.environ,
                "QT_QPA_PLATFORM": f"offscreen:configfile={described}",
                "QT_SCALE_FACTOR": f"{scale:g}",
                "WATTRIDGE_DATA": data,
                "PYTHONPATH": str(ROOT),
            }
            subprocess.run(
                [sys.executable, __file__, str(folder), str(specification), size], env=environment, check=True
            )
    for path in sorted(folder.glob("*.png")):
        print(path.name, path.stat().st_size // 1000, "kB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
