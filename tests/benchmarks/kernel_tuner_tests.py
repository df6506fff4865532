"""Kernel Tuner's own public tests with our functions in the place of its own: which pass, and why the others do not.

    pip install kernel_tuner==1.5.0 -e '.[test]'
    pip download kernel_tuner==1.5.0 --no-binary kernel_tuner --no-deps && tar xf kernel_tuner-1.5.0.tar.gz
    PYTHONPATH=. python tests/benchmarks/kernel_tuner_tests.py kernel_tuner-1.5.0

The tests are in the source distribution, not in the wheel. Fourteen of their files call what a script may import: these
run in a copy of the folder, first with Kernel Tuner as it is, then with every name that `wattridge kernel-tuner` offers
put into its modules. The tests' other imports stay Kernel Tuner's. A test counts as one of our functions if it calls at
least one of ours. `--list` prints each test. Nothing that this needs belongs into the repository.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = (
    *("test_accuracy.py", "test_custom_optimizer.py", "test_energy.py", "test_file_utils.py", "test_integration.py"),
    *("test_kernelbuilder.py", "test_nvml_mocked.py", "test_observers.py", "test_runners.py", "test_searchspace.py"),
    *("test_time_budgets.py", "strategies/test_diff_evo.py", "strategies/test_pymoo_strategies.py"),
    "strategies/test_strategies.py",
)
REPORT, OURS = "KERNEL_TUNER_TESTS_REPORT", "KERNEL_TUNER_TESTS_OURS"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the unpacked source distribution")
    parser.add_argument("--python", default=sys.executable, help="one that has Kernel Tuner, and our dependencies")
    parser.add_argument("--only", default="", help="as pytest's -k")
    parser.add_argument("--list", action="store_true", help="print each test, and the whole reason")
    arguments = parser.parse_args()
    theirs, ours = (tests(arguments, ours=which) for which in (False, True))
    print(f"{'file':42s} {'tests':>5s} {'theirs':>7s} {'ours':>5s} {'use ours':>9s} {'skipped':>8s}")
    total: Counter[str] = Counter()
    for file in FILES:
        rows = {name: row for name, row in ours.items() if f"test/{file}::" in name}
        counts = Counter(row["outcome"] for row in rows.values())
        here = Counter(
            tests=len(rows),
            theirs=sum(theirs.get(name, {}).get("outcome") == "passed" for name in rows),
            ours=counts["passed"],
            used=sum(bool(row["calls"]) and row["outcome"] != "skipped" for row in rows.values()),
            skipped=counts["skipped"],
        )
        total += here
        print(line(file, here))
    print(line("all", total))
    reasons: dict[str, list[str]] = defaultdict(list)
    for name, row in ours.items():
        if row["outcome"] == "failed":
            also = "" if theirs.get(name, {}).get("outcome") == "passed" else " (fails there, too)"
            reasons[reason(row["why"], arguments.list)].append(name.rpartition("::")[2] + also)
    for why, names in sorted(reasons.items(), key=lambda item: -len(item[1])):
        print(f"{len(names):3d}  {why}\n     {', '.join(names)}")
    if arguments.list:
        for name, row in ours.items():
            print(f"{row['outcome']:8s} {'ours' if row['calls'] else '':5s} {name}")


def line(name: str, counts: Counter[str]) -> str:
    return (
        f"{name:42s} {counts['tests']:5d} {counts['theirs']:7d} {counts['ours']:5d} "
        f"{counts['used']:9d} {counts['skipped']:8d}"
    )


def reason(why: str, whole: bool) -> str:
    """Failures of one cause in one line: numbers and names are left out."""
    return why if whole else re.sub(r"'[^']*'", "'...'", re.sub(r"-?\d+(\.\d+)?(e-?\d+)?", "N", why))[:150]


def tests(arguments: argparse.Namespace, *, ours: bool) -> dict[str, Any]:
    """What became of each test, by its name."""
    with tempfile.TemporaryDirectory() as place:
        shutil.copytree(arguments.folder / "test", Path(place) / "test")
        report = Path(place) / "report"
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join((str(ROOT), str(Path(__file__).parent))),
            "WATTRIDGE_DATA": str(Path(place) / "data"),
            REPORT: str(report),
            OURS: "1" if ours else "",
        }
        words = ["-m", "pytest", "-q", "-p", Path(__file__).stem, "-o", "addopts=", "-k", arguments.only]
        command = [arguments.python, *words, *(f"test/{file}" for file in FILES)]
        done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
        if not report.is_file():
            sys.exit(done.stdout[-2000:] + done.stderr[-2000:])
        rows = [json.loads(row) for row in report.read_text().splitlines()]
    return {row["name"]: row for row in rows}


# --- inside pytest, of which this file is a plugin --------------------------------------------------------------------

_calls: list[str] = []
_found: dict[str, dict[str, Any]] = {}


def pytest_sessionstart() -> None:
    """Put every name that we offer into Kernel Tuner's modules."""
    if not os.environ.get(OURS):
        return
    from app.scripting import stand_in

    for place, offered in stand_in._MODULES.items():
        try:
            module = importlib.import_module("kernel_tuner" if place == "kernel_tuner" else f"kernel_tuner.{place}")
        except ImportError:
            continue  # of a version before 1.5.0
        for name, item in offered.items():
            if callable(item) and not inspect.ismodule(getattr(module, name, None)):
                setattr(module, name, counted(item, name))


def counted(item: Any, name: str) -> Any:
    """The same, and its calls are counted."""
    if not inspect.isclass(item):

        @functools.wraps(item)
        def call(*args: Any, **kwargs: Any) -> Any:
            _calls.append(name)
            return item(*args, **kwargs)

        return call
    make = item.__init__

    @functools.wraps(make)
    def begin(self: Any, *args: Any, **kwargs: Any) -> None:
        _calls.append(name)
        make(self, *args, **kwargs)

    if "__init__" in vars(item):
        item.__init__ = begin
    return item


def pytest_runtest_setup() -> None:
    _calls.clear()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: Any, call: Any) -> Any:
    report = (yield).get_result()
    row = _found.setdefault(item.nodeid, {"name": item.nodeid, "outcome": "passed", "why": "", "calls": []})
    row["calls"] = sorted({*row["calls"], *_calls})
    if report.outcome != "passed":
        row["outcome"] = report.outcome
        row["why"] = "" if call.excinfo is None else call.excinfo.exconly().strip().splitlines()[0]


def pytest_sessionfinish() -> None:
    if target := os.environ.get(REPORT):
        Path(target).write_text("\n".join(map(json.dumps, _found.values())))


if __name__ == "__main__":
    main()
