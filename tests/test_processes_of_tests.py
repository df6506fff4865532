"""A process of tests that dies ends the run, with a failure that names the test."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("xdist")


def test_a_process_that_dies_ends_the_run(tmp_path: Path) -> None:
    text = (Path(__file__).parent / "conftest.py").read_text(encoding="utf-8")
    (hook,) = (each for each in ast.parse(text).body if getattr(each, "name", "") == "pytest_testnodedown")
    imports = "from contextlib import suppress\nfrom typing import Any\nimport pytest\n"
    (tmp_path / "conftest.py").write_text(imports + ast.unparse(hook))
    (tmp_path / "test_dies.py").write_text("import os\ndef test_dies():\n    os.kill(os.getpid(), 9)\n")
    (tmp_path / "test_waits.py").write_text("import time\ndef test_waits():\n    time.sleep(3600)\n")
    words = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadfile", "-c", "/dev/null", "--rootdir", "."]
    done = subprocess.run([*words, "."], cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 1
    assert "died in test_dies.py::test_dies" in done.stdout
