"""A script's kernels compiled and run for real, in a process of theirs and in the script's.

The driver is a stand-in whose device is the host; on a machine with a GPU, `kernel_tuner_examples.py` in
tests/benchmarks runs Kernel Tuner's own examples.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from host_cuda.build import build, why_not

from app.engine.children.python import python_environment
from app.engine.runner.cuda.gpu import CHOICE, LIBRARIES


def test_kernels_run_are_checked_and_are_isolated_unless_a_script_watches_them(tmp_path: Path) -> None:
    bindings = LIBRARIES[0]
    if not bindings.usable:
        pytest.skip(f"{bindings.name} is not installed: pip install '.[{bindings.extra}]'")
    if missing := why_not():
        pytest.skip(missing)
    environment = python_environment({**build(tmp_path), CHOICE: bindings.name})
    environment["PYTHONPATH"] += f":{tmp_path}:{Path(__file__).parents[1]}"
    script = Path(__file__).with_name("host_cuda_script.py")
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    fine, faulty, wrong = said["errors"]
    assert fine == ""
    assert "illegal memory access" in faulty
    assert wrong.startswith("y: 1 of 1000 values are wrong, the first at 3")
    assert said["times"] == [3]
    assert said["power_w"] == pytest.approx(300.0, abs=2.0)
    assert said["best"] == 0
    assert said["isolated"] is True
    assert said["launches"] == 4
    assert said["watched"] == [False, False]
    assert said["sms"] == [2, 4]  # of the stand-in's four, by Kernel Tuner's name
    assert said["once"]
    assert said["again"]
    assert said["scalars"] == [2.0, 1000]
