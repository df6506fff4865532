"""Where CUDA may lie on this machine: toolkits by the environment or in their usual place, and what pip installed."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

_NAMED: Final = ("CUDA_HOME", "CUDA_PATH", "CUDA_ROOT")


def toolkits() -> list[Path]:
    """Folders that hold `bin` and `include`, or would: those that the environment names first."""
    folders = [Path(os.environ[name]) for name in _NAMED if os.environ.get(name)]
    return folders if sys.platform == "win32" else [*folders, Path("/usr/local/cuda")]


def pip_folders() -> list[Path]:
    """Folders of NVIDIA's packages: one for each component up to CUDA 12, one for all of them since."""
    return [folder for path in sys.path for folder in sorted(Path(path or ".").glob("nvidia/*")) if folder.is_dir()]
