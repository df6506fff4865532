"""Where the program's own resources and the person's data lie."""

from __future__ import annotations

import os
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def resources() -> Path:
    """The folder with twins, kernels, examples and recordings: inside the wheel, or beside `app` in a checkout."""
    installed = _PACKAGE / "resources"
    return installed if installed.is_dir() else _PACKAGE.parent / "resources"


def data_folder() -> Path:
    """The person's data folder (sessions, characterisations), made when missing. `WATTRIDGE_DATA` overrides it."""
    override = os.environ.get("WATTRIDGE_DATA")
    if override:
        folder = Path(override).expanduser()
    else:
        from platformdirs import user_data_path  # imported late: the window's first frame does not need it

        folder = user_data_path("wattridge", appauthor=False)
    folder.mkdir(parents=True, exist_ok=True)
    return folder
