"""What the window's imports leave behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_AFTER = """
import linecache
import app.views.shell.app
import scipy.optimize
import app.views.front.front_panel
print(sum(path.endswith("optimize/_optimize.py") or "front" in path for path in linecache.cache))
"""


def test_the_sources_of_imported_modules_do_not_stay_in_memory() -> None:
    """PySide's import function reads them: 45 MB."""
    done = subprocess.run([sys.executable, "-c", _AFTER], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0"]


_LOADING = """
import sys, threading
from app.views.shell import window as shell
from app.views.shell.app import Program, application
from app.views.shared.watched_boards import watched_gpu
from PySide6 import QtCore, QtGui, QtWidgets

def missing():
    return sum(name not in vars(module) for module in (QtCore, QtGui, QtWidgets) for name in dir(module))

load, at_load = shell.load_panels, []
def watched(services):
    at_load.append((missing(), threading.current_thread() is threading.main_thread()))
    return load(services)
shell.load_panels = watched
qt = application()
program = Program(watched_gpu("simulated:a100"))
print(missing())
print(*sys.modules)
program.window.panels_loaded.connect(qt.quit)
qt.exec()
program.close()
print(*at_load)
"""


# What sessions, settings and plots need, and the window's first picture does not.
_LATER = {"scipy", "pyqtgraph", "distributed", "asyncio", "multiprocessing", "app.engine.expressions"}
_LATER |= {"app.engine.session.plan", "app.engine.store", "app.engine.space", "app.engine.control", "app.engine.runner"}


def test_little_is_imported_before_the_window_and_all_types_of_qt_before_the_panels(own_data_folder: Path) -> None:
    """Two threads that ask PySide for one type for the first time, at the same moment, end the program."""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", _LOADING],
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen", "PYSIDE6_OPTION_LAZY": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    opened, imported, loading = done.stdout.splitlines()
    assert "app.views.shell.window" in imported.split()
    assert not _LATER.intersection(imported.split())
    assert int(opened) > 100, "otherwise there is nothing to make"
    assert loading == "(0, False)"


_OPEN = """
import sys, threading
from PySide6.QtCore import QTimer
from app.views.shell.app import Program, application
from app.views.shared.watched_boards import watched_gpu

class Noted:
    def find_spec(self, name, path, target=None):
        if threading.current_thread() is threading.main_thread():
            print(name)

qt = application()
program = Program(watched_gpu("simulated:a100", speed=50.0))
window = program.window
waiting = [*window.workspaces.by_name, "watch"]
loaded = []
window.panels_loaded.connect(lambda: loaded.append(True))

def go_on():
    if not loaded or not all(window.panels.has(spec.name) for spec in window.workspaces.current.panels):
        return
    if waiting:
        window.workspaces.show_workspace(waiting.pop(0))
    elif (trace := window.board.trace).appended > 500:
        trace.view(trace.first_ns, trace.last_ns, 20, (trace.power_name,))  # as a trace of more readings than points
        window.monitor.view.repaint()
        qt.quit()

timer = QTimer(interval=20)
timer.timeout.connect(go_on)
timer.start()
sys.meta_path.insert(0, Noted())
qt.exec()
sys.meta_path.pop(0)
program.close()
"""


def test_nothing_is_imported_on_the_thread_of_qt_once_the_window_is_up(own_data_folder: Path) -> None:
    """A module takes longer than a turn of Qt's loop has; a panel's come with it, on a thread."""
    done = subprocess.run(
        [sys.executable, "-c", _OPEN],
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []
