"""Linear algebra runs on one core, and the person's own programs do not notice."""

from __future__ import annotations

import os
import subprocess
import sys

_SHOW = "import os; print(os.environ.get('OPENBLAS_NUM_THREADS'))"
_RUN = f"""
import sys
from app.cli import main
main(["strategies", "--json"])
import os
from app.engine.workloads.subprocesses import run_process
print("here", os.environ["OPENBLAS_NUM_THREADS"], file=sys.stderr)
run_process([sys.executable, "-c", {_SHOW!r}], capture=False, output_to=2)
"""


def told(**environment: str) -> list[str]:
    clean = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    done = subprocess.run(
        [sys.executable, "-c", _RUN], env=clean | environment, capture_output=True, text=True, timeout=60, check=True
    )
    return done.stderr.split()


def test_one_core_here_and_the_persons_environment_for_the_persons_programs() -> None:
    assert told() == ["here", "1", "None"]


def test_a_number_that_the_person_has_set_stays_for_both() -> None:
    assert told(OPENBLAS_NUM_THREADS="3") == ["here", "3", "3"]
