"""A picture of every view, light and dark, from a laptop's to a 4K screen. By hand:

python tests/benchmarks/screenshots.py FOLDER [CACHE]
python tests/benchmarks/screenshots.py --kept

The second takes those that README and guide show, into resources/screenshots, and needs ImageMagick; those of a real
board, `*-h200-*`, are of window_on_board.py. Offscreen, on the simulated A100, each size in a process of its own, the
largest with scales of 1 and 2. A session is tuned first (CACHE, else the GEMM example), a model fitted, a roofline left
to what is stored.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from app.engine.session import events

ROOT = Path(__file__).resolve().parents[2]
# name -> (width, height in the window's own pixels, scale)
SIZES = {
    "1280x720": (1280, 720, 1.0),
    "1366x768": (1366, 768, 1.0),
    "1920x1080": (1920, 1080, 1.0),
    "3840x2160": (1920, 1080, 2.0),
    "3840x2160-at-100": (3840, 2160, 1.0),
}
_SPEED = 10.0
_KEPT_SIZE, _KEPT_FOLDER = "1600x1000", ROOT / "resources" / "screenshots"
_KEPT = {  # panel -> theme
    "home": "light",
    "front": "dark",
    "analysis": "dark",
    "model": "light",
    "roofline": "dark",
    "compare": "light",
    "control": "dark",
    "sessions": "light",
    "program": "dark",
    "boards": "dark",
}


def take(folder: Path, size: str, specification: Path) -> None:
    """Open the window at one size, and picture each panel in its workspace in both themes; or only what is kept."""
    from PySide6.QtCore import Qt
    from PySide6.QtWidgets import QApplication

    from app.base.paths import example_profile, resources
    from app.engine.results.state import SessionState
    from app.views.shared import theme
    from app.views.shared.watched_boards import watched_gpu
    from app.views.shell.app import Program, application
    from app.views.shell.panels import PANELS

    kept = size == _KEPT_SIZE
    width, height = (1600, 1000) if kept else SIZES[size][:2]
    qt = application()
    print(size, qt.primaryScreen().size().toTuple(), qt.primaryScreen().devicePixelRatio(), flush=True)
    QApplication.setAttribute(Qt.ApplicationAttribute.AA_DontUseNativeDialogs)
    program = Program(watched_gpu("simulated:a100", speed=_SPEED), speed=_SPEED, others=("simulated:h200",))
    window: Any = program.window
    window.resize(width, height)
    window.activateWindow()

    def wait(known: Callable[[], bool], patience_s: float) -> None:
        end = time.monotonic() + patience_s
        while not known() and time.monotonic() < end:
            qt.processEvents()
            time.sleep(0.005)

    def rest(seconds: float) -> None:
        wait(lambda: False, seconds)

    def picture(name: str) -> None:
        for mode in ("light", "dark"):
            if kept and _KEPT[name] != mode:
                continue
            theme.set_mode(mode)
            rest(0.4)
            path = folder / (f"{name}-{mode}.png" if kept else f"{name}-{mode}-{size}.png")
            window.grab().save(str(path))

    for hint in ("front", "sessions"):
        window.settings.note_said(f"hint_{hint}")  # no picture has the lines of a first time
    there: list[bool] = []
    window.panels_loaded.connect(lambda: there.append(True))
    wait(lambda: bool(there), 60)
    panels = list(_KEPT) if kept else [spec.name for spec in PANELS if spec.workspace]
    if not kept:
        for name in panels:  # before there is anything: what to do first
            window.workspaces.bring(name)
            rest(0.3)
            theme.set_mode("light")
            rest(0.2)
            window.grab().save(str(folder / f"empty-{name}-light-{size}.png"))
    ended: list[SessionState] = []
    window.bridge.subscribe(events.SessionChanged, lambda event: ended.append(event.progress.state))
    window.open_specification(specification, start=True)
    wait(lambda: SessionState.DONE in ended, 120)
    fitted: list[object] = []
    window.bridge.subscribe(events.FitFinished, fitted.append)
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
    window.open_program(example_profile())
    wait(lambda: window.panels["program"].opened is not None, 20)
    window.panels["roofline"].open(recordings / "h200-roofline-fp32.json.gz")
    window.monitor.view.set_length(600.0)
    rest(1.0)
    window.notices.dismiss()
    table = window.result.table
    if table is not None and len(table):
        window.result.select(int(table.values("energy_j").argmin()))
    for name in panels:
        window.workspaces.bring(name)
        rest(0.5)
        if name == "program":
            show_program(window.panels[name])
        wait(lambda: not window.panels["control"].model.looking, 20)
        picture(name)
    if kept:
        program.close()
        return
    for name in ("settings", "about", "shortcuts", "sensors"):
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


def show_program(panel: Any) -> None:
    """A tenth of a second, and a family that is chosen."""
    panel.timeline.show_window(5_000_000_000, 5_100_000_000)
    panel.table.table.selectRow(1)


def make_small(path: Path) -> None:
    """192 colours are enough for a picture of a window; by ImageMagick."""
    small = ["+dither", "-colors", "192", "-strip", "-define", "png:compression-level=9"]
    subprocess.run(["convert", str(path), *small, f"PNG8:{path}"], check=True)


def main() -> int:
    if len(sys.argv) < 2:
        print(__doc__)
        return 2
    kept = sys.argv[1] == "--kept"
    folder = _KEPT_FOLDER if kept else Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    if len(sys.argv) == 4:  # in the process that it starts
        sys.path.insert(0, str(ROOT))
        take(folder, sys.argv[3], Path(sys.argv[2]))
        return 0
    specification = Path(sys.argv[2]) if len(sys.argv) > 2 else ROOT / "resources" / "examples" / "gemm.toml"
    for size, (width, height, scale) in ({_KEPT_SIZE: (1600, 1000, 1.0)} if kept else SIZES).items():
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
        if kept:
            make_small(path)
        print(path.name, path.stat().st_size // 1000, "kB")
    if not kept:
        return 0
    pages = [ROOT / "README.md", *(ROOT / "resources" / "guide").glob("*.md")]
    shown = {name for page in pages for name in re.findall(r"screenshots/([\w-]+)\.png", page.read_text())}
    old = sorted(shown - {f"{name}-{mode}" for name, mode in _KEPT.items()})
    print("not taken here:", ", ".join(old))
    return int(any("-h200-" not in name for name in old))


if __name__ == "__main__":
    raise SystemExit(main())
