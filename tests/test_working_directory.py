"""Nothing is imported from the working directory, by the program or by any process that it starts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
NAMES = ("numpy", "pynvml", "platformdirs", "random", "struct", "sitecustomize")  # of ours, of others, of Python's own
MARK = "import os, sys; open(os.path.join({folder!r}, 'mark-{name}'), 'a').write(repr(sys.argv) + '\\n')\n"

# As a console script is: its own folder comes first, the working directory is not in the path.
SCRIPT = """
import os, sys
sys.path[1:1] = [{root!r}, {fakes!r}]
{code}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A working directory that holds modules, each of which leaves a mark when it is imported."""
    made = tmp_path / "kernels"
    made.mkdir()
    for name in (*NAMES, "app"):
        (made / f"{name}.py").write_text(MARK.format(folder=str(tmp_path), name=name))
    return made


def run_in(folder: Path, code: str, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script that lies elsewhere; no module of the working directory may be imported by any process."""
    script = folder.parent / "bin" / "script.py"
    script.parent.mkdir(exist_ok=True)
    script.write_text(SCRIPT.format(root=str(ROOT), fakes=str(ROOT / "tests" / "engine"), code=code))
    clean = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [sys.executable, str(script), *words],
        cwd=folder,
        env={**clean, "QT_QPA_PLATFORM": "offscreen", **environment},
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert marks(folder) == {}
    return done


def marks(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.parent.glob("mark-*")}


def test_the_modules_leave_a_mark(folder: Path) -> None:
    """Otherwise the other tests would show nothing."""
    for name in (*NAMES, "app"):
        subprocess.run([sys.executable, "-S", "-c", f"import {name}"], cwd=folder, check=True)
    assert set(marks(folder)) == {f"mark-{name}" for name in (*NAMES, "app")}


# Whoever imports Wattridge from a notebook, or has set PYTHONPATH carelessly, has the working directory in the path.
CARELESS = """
sys.path.insert(0, os.getcwd())
sys.path.insert(0, "")
sys.path.append(".")
"""
RUNNER = """
from app.engine.runner.kernels.process import RunnerProcess, RunnerProcesses
import numpy
{careless}
processes = RunnerProcesses(lambda: RunnerProcess("fake_cuda", "0", {{}}), lambda process: None)
processes.keep_spare()
for _ in range(2):
    print(processes.current.request({{"do": "describe"}})["name"])
    processes.replace()
processes.close()
"""
NVRTC = """
from app.engine.runner.cuda.toolchain import cuda_compiler
from app.engine.runner.cuda.toolchain import Toolchain
from app.engine.runner.kernels.process import KernelFailed
from app.engine.workloads.source_kernel import Build
from pathlib import Path
compiler = cuda_compiler((9, 0), toolchain=Toolchain(nvrtc="any"), folder=Path("../cubins"))
{careless}
try:
    compiler.compile(Build("no kernel", (), (), ()))
except KernelFailed as error:
    print(error.what)
compiler.close()
"""


@pytest.mark.parametrize("careless", ["", CARELESS])
def test_runner_processes_and_spare_ones(folder: Path, careless: str) -> None:
    done = run_in(folder, RUNNER.format(careless=careless))
    assert done.stdout.split() == ["fake", "fake"], done.stderr


@pytest.mark.parametrize("careless", ["", CARELESS])
def test_the_compiler_in_a_process_of_its_own(folder: Path, careless: str) -> None:
    """It starts, and says that the text does not compile, or that there is no library here."""
    done = run_in(folder, NVRTC.format(careless=careless))
    assert "NVRTC is not here" in done.stdout or "kernel.cu" in done.stdout, done.stdout + done.stderr


def test_processes_that_share_a_comparison_of_strategies(folder: Path) -> None:
    entries = {
        f"{x},{y}": {"block_size_x": x, "block_size_y": y, "time": 1.0 + (x * 7 + y * 3) % 13}
        for x, y in product((32, 64, 128, 256), (1, 2, 4, 8))
    }
    parameters = {"block_size_x": [32, 64, 128, 256], "block_size_y": [1, 2, 4, 8]}
    cache = {"device_name": "B", "kernel_name": "k", "problem_size": [1, 1], "tune_params_keys": list(parameters)}
    file = folder.parent / "cache.json"
    file.write_text(json.dumps({**cache, "tune_params": parameters, "objective": "time", "cache": entries}))
    code = "from app.cli import main\nif __name__ == '__main__':\n    raise SystemExit(main())"
    words = ("score", str(file), "--strategy", "random_sample", "--repeats", "4", "--jobs", "2", "--json")
    done = run_in(folder, code, *words)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["repeats"] == 4


@pytest.mark.parametrize(
    "words",
    [
        ("monitor", "--gpu", "simulated:a100", "--duration", "1", "--speed", "inf"),
        ("measure", "--gpu", "simulated:a100", "--", "true"),
        ("demo", "--no-window", "--max-evaluations", "5"),
        ("gpus",),
    ],
)
def test_the_command_itself_and_what_it_starts(folder: Path, words: tuple[str, ...]) -> None:
    code = "from app.cli import main\nraise SystemExit(main())"
    done = run_in(folder, code, *words, XDG_DATA_HOME=str(folder.parent / "data"))
    assert done.returncode == 0, done.stderr


def test_the_window(folder: Path) -> None:
    code = """
from PySide6.QtCore import QTimer
from app.views.shell import app
begin = app.Program.__init__
def begin_and_quit(self, *given, **named):
    begin(self, *given, **named)
    QTimer.singleShot(1500, app.QApplication.instance().quit)
app.Program.__init__ = begin_and_quit
raise SystemExit(app.run("simulated:a100"))
"""
    done = run_in(folder, code, XDG_DATA_HOME=str(folder.parent / "data"))
    assert done.returncode == 0, done.stderr


def test_the_control_helper(folder: Path) -> None:
    code = """
import subprocess
from app.engine.control.client import helper_command
print(subprocess.run(helper_command("no board", "GPU 0"), capture_output=True, text=True).stdout)
"""
    done = run_in(folder, code, WATTRIDGE_UNSAFE_HELPER_FROM_CHECKOUT="1")
    assert "error" in json.loads(done.stdout), done.stderr


def test_python_m_where_the_package_is_installed_elsewhere(folder: Path) -> None:
    """-m itself finds an `app.py` of the working directory first; everything else is ours."""
    (folder / "app.py").unlink()
    clean = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
    (folder / "sitecustomize.py").unlink()
    for name in ("random", "struct"):
        (folder / f"{name}.py").unlink()  # Python itself looks for them before it runs us
    done = subprocess.run(
        [sys.executable, "-m", "app", "monitor", "--gpu", "simulated:a100", "--duration", "1", "--speed", "inf"],
        cwd=folder,
        env={**clean, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert marks(folder) == {}
