"""The installed package, run from elsewhere, finds what it ships."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest


def test_the_installed_command_finds_its_resources_from_another_directory(tmp_path: Path) -> None:
    try:
        metadata.distribution("wattridge")
    except metadata.PackageNotFoundError:
        pytest.skip("wattridge is not installed in this environment")
    code = (
        "import app, json, sys; from app.paths import resources; from app.sensors.simulated.twin import twin_names;"
        "print(json.dumps([app.__file__, str(resources()), list(twin_names()),"
        "sorted(p.name for p in (resources() / 'examples').iterdir())]))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60
    )
    package, folder, twins, examples = json.loads(done.stdout)
    assert Path(folder).is_dir()
    assert {"a100", "a4000", "a6000", "titan_rtx", "v100", "k20x", "h200"} <= set(twins)
    assert "gemm.toml" in examples
    if "site-packages" in package:
        assert Path(folder).parent == Path(package).parent
