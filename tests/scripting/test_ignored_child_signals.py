"""A script may ignore SIGCHLD, by which the status of every program is lost: no failure becomes a measurement."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="there is no such signal")

PROGRAMS = """
import json, signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
from app.engine.workloads.subprocesses import answer_of, run_process
failed = run_process(["sh", "-c", "exit 3"])
print(json.dumps([failed.exit_status != 0, failed.how, answer_of(["echo", "1.0"])]))
"""
SCRIPT = """
import json, signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
import numpy as np
from app import tune_kernel
source = '''
float add(float *c, int n) {
#if fault == 1
    does not compile
#elif fault == 2
    *(volatile float *)16 = 1.0f;
#endif
    for (int i = 0; i < n; i++) c[i] = 1.0f;
    return 1.0f;
}'''
arguments = [np.zeros(1000, np.float32), np.int32(1000)]
results, _ = tune_kernel("add", source, 1000, arguments, {"fault": [0, 1, 2]}, lang="C", quiet=True)
print(json.dumps({each["fault"]: [each.get("__error__", ""), each.get("error", "")] for each in results}))
"""


def output_of(script: str) -> object:
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_program_whose_status_is_lost_counts_as_failed_and_what_it_printed_is_known() -> None:
    how = "this program ignores SIGCHLD, so how it ended is not known"
    assert output_of(PROGRAMS) == [True, how, "1.0\n"]


@pytest.mark.skipif(shutil.which("c++") is None, reason="there is no C++ compiler")
def test_tune_kernel_keeps_failures_apart_and_says_why_the_reason_is_not_known() -> None:
    found = output_of(SCRIPT)
    assert isinstance(found, dict)
    assert found["0"] == ["", ""]
    assert found["1"][0] == "CompilationFailedConfig"
    assert found["2"][0] == "RuntimeFailedConfig"
    assert "ignores SIGCHLD" in found["2"][1]
