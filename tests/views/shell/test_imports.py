"""What the window's imports leave behind."""

from __future__ import annotations

import subprocess
import sys

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
