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
import app.views.front.panel
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
from app.views.watched_board import watched_gpu
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
_LATER = {"scipy", "pyqtgraph", "xgboost", "distributed", "asyncio", "multiprocessing", "app.engine.expressions"}
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
