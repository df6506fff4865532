"""The template of a plug-in brings what it says, through entry points alone; a broken one concerns nobody else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from app.base.paths import resources

ROOT = Path(__file__).resolve().parents[2]
TEMPLATE = resources() / "plugin"
AS_INSTALLED = (  # the checkout's package under the name that it has once installed
    "import sys, app, app.strategies, app.meters;"
    "sys.modules.update({'wattridge': app, 'wattridge.strategies': app.strategies, 'wattridge.meters': app.meters});"
)


class Installed:
    """The template as if `pip install` had put it into a folder, with other entry points beside its own."""

    def __init__(self, folder: Path, **more: str) -> None:
        project = tomllib.loads((TEMPLATE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        metadata = folder / "wattridge_example-0.1.0.dist-info"
        metadata.mkdir()
        named = f"Name: {project['name']}\nVersion: {project['version']}\n"
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\n{named}", encoding="utf-8")
        lines = []
        for group, entries in project["entry-points"].items():
            also = more.get(group.rpartition(".")[2], "")
            lines += [f"[{group}]", *(f"{name} = {value}" for name, value in entries.items()), also]
        (metadata / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")
        self.folder = folder
        paths = os.pathsep.join((str(folder), str(TEMPLATE), str(ROOT)))
        self.environment = {**os.environ, "PYTHONPATH": paths, "WATTRIDGE_DATA": str(folder / "data")}

    def run(self, *words: str) -> tuple[int, str, str]:
        """Status, output and errors of a command."""
        code = f"{AS_INSTALLED} from app.cli import main; sys.exit(main({list(words)!r}))"
        return self.python(code)

    def python(self, code: str) -> tuple[int, str, str]:
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=self.folder, env=self.environment, capture_output=True, text=True
        )
        return done.returncode, done.stdout, done.stderr


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    return Installed(tmp_path)


def test_its_workload_is_tuned_by_name_with_its_strategy(installed: Installed) -> None:
    words = ("tune", "halve", "--gpu", "simulated:a100", "--speed", "inf", "--strategy", "from_the_end", "--json")
    status, output, errors = installed.run(*words)
    assert status == 0, errors
    document = json.loads(output)
    assert (document["strategy"], document["evaluated"], document["source"]) == ("from_the_end", 4, "simulated")


def test_its_meter_reports_what_it_is_asked_for(installed: Installed) -> None:
    code = (
        f"{AS_INSTALLED} from app.sensors.meters.select import open_meter; from app.sensors.select import open_gpu;"
        "from tests.fixtures.meter_conformance import collect;"
        "meter = open_meter('constant:150', open_gpu('simulated:a100')); print(collect(meter, 0.1).power_w.mean())"
    )
    assert installed.python(code)[1].strip() == "150.0"
    status, _, errors = installed.run(
        "tune", "halve", "--gpu", "simulated:a100", "--speed", "1", "--meter", "constant:much"
    )
    assert status == 2
    assert errors.strip().endswith("--meter constant: 'much' is no power in W (as in constant:150)")


def test_its_files_are_read_wherever_a_table_is(installed: Installed) -> None:
    lines = [f"block = {n}; time (ms) = {9 / n}; energy (J) = {n + 9 / n}" for n in (1, 2, 3, 4)]
    (installed.folder / "runs.points").write_text("\n".join(lines), encoding="utf-8")
    code = f"{AS_INSTALLED} s = app.open_session('runs.points'); print(s.best, len(s.rows()), s.rows()[0]['energy_j'])"
    assert installed.python(code)[1].split("\n")[0] == "{'block': 3.0} 4 10.0"
    (installed.folder / "runs.points").write_text("block = one", encoding="utf-8")
    status, _, errors = installed.run("analyse", "runs.points")
    assert status == 2
    assert "line 1: 'block = one' is not NAME=VALUE" in errors


def test_one_that_fails_is_named_and_the_others_work(tmp_path: Path) -> None:
    (tmp_path / "failing.py").write_text("def read(path):\n    return 1 / 0\n", encoding="utf-8")
    installed = Installed(
        tmp_path, meters="gone = no_such_module:x", formats="bad = failing:read", workloads="lost = failing:no"
    )
    status, _, errors = installed.run("tune", "halve", "--gpu", "simulated:a100", "--speed", "1", "--meter", "gone:1")
    assert (status, errors.count("\n")) == (2, 1)
    assert "plug-in gone: no_such_module:x: ModuleNotFoundError" in errors
    (tmp_path / "x.bad").write_text("1", encoding="utf-8")
    status, _, errors = installed.run("analyse", "x.bad")
    assert (status, errors.count("\n")) == (1, 1)
    assert "plug-in bad: it failed: ZeroDivisionError" in errors
    assert installed.run("space", "halve")[0] == 0
    assert installed.run("space", "gemm")[0] == 0
    status, _, errors = installed.run("space", "lost")
    assert (status, errors.count("\n")) == (2, 1)
    assert "plug-in lost: failing:no: AttributeError" in errors


def test_the_helper_with_roots_rights_loads_none(installed: Installed) -> None:
    code = "from app.engine.control.helper import __main__; import sys;"
    show = "print([name for name in sys.modules if 'plugins' in name or 'wattridge_example' in name])"
    assert installed.python(code + show)[1].strip() == "[]"
