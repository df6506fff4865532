"""The helper as files for root to install: a copy that no ordinary user can change, its policy, and a unit for boot."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Final

from app.engine.formats.files import read_text, write_text
from app.errors import WattridgeError
from app.paths import resources

_PACKAGE: Final = ("app", "engine", "control", "helper")
_EXECUTABLE: Final = ("wattridge-control", "install.sh")
_MOST_BYTES: Final = 4 << 20


def write_installation(folder: Path) -> list[Path]:
    """Write all that `install.sh` there installs; the files. Raises WattridgeError where the folder refuses."""
    texts = {path.name: read_text(path, _MOST_BYTES) for path in sorted((resources() / "control").iterdir())}
    for depth in range(1, len(_PACKAGE)):  # the packages around the helper, empty: it needs nothing of theirs
        texts["/".join((*_PACKAGE[:depth], "__init__.py"))] = ""
    for path in sorted((Path(__file__).resolve().parent / _PACKAGE[-1]).glob("*.py")):
        texts["/".join((*_PACKAGE, path.name))] = read_text(path, _MOST_BYTES)
    texts["pynvml.py"] = read_text(_pynvml(), _MOST_BYTES)
    return [
        write_text(folder / name, text, overwrite=True, executable=name in _EXECUTABLE) for name, text in texts.items()
    ]


def _pynvml() -> Path:
    found = importlib.util.find_spec("pynvml")
    if found is None or found.origin is None:
        raise WattridgeError("nvidia-ml-py is not installed", "pynvml", "pip install nvidia-ml-py")
    return Path(found.origin)
