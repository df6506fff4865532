"""The installed package `wattridge`, run from a folder of the user's that holds modules of the same names as ours.

Nothing here imports the checkout: everything goes through the installed command, or through scripts that import
`wattridge`. Where it is not installed these tests are skipped, but with CI set they fail.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

SHADOWS = ("app", "numpy", "pynvml", "wattridge")
COMMANDS = (
    "gpus",
    "monitor --gpu simulated:a100 --duration 1 --speed inf --out trace.csv",
    "measure --gpu simulated:a100 --repeats 2 -- true",
    "characterise --gpu simulated:a100 --speed inf",
    "tune {resources}/examples/gemm.toml --gpu simulated:a4000 --max-evaluations 5",
    "tune program.toml --gpu simulated:a100 --speed inf",
    "replay h200-sgemm-session --max-evaluations 20 --strategy random_sample",
    "space {resources}/examples/gemm.toml",
    "sessions",
    "analyse 1",
    "compare 1 1",
    "report 1 --out report.html",
    "export 1 --out exported",
    "fit --gpu simulated:a100 --speed inf",
    "compare-methods small.toml --gpu simulated:a100 --speed inf --clocks 2",
    "roofline {resources}/recordings/h200-roofline-fp32.json.gz",
    "score {resources}/recordings/h200-sgemm-session.json.gz --strategy random_sample --repeats 2 --jobs 2",
    "strategies auto",
    "twin a100 --truth",
    "apply --gpu simulated:a100 --clock 900 --keep",
    "restore",
    "demo --no-window --max-evaluations 5",
)
PROGRAM = """
[command]
run = "/bin/echo Result: {n} GFLOP/s"
values = { gflops = 'Result: ([0-9.]+) GFLOP/s' }
[parameters]
n = [1, 2]
[objective]
maximise = "gflops"
"""


def installed() -> bool:
    try:
        files = metadata.files("wattridge") or []
    except metadata.PackageNotFoundError:
        return False
    return any(str(file) == "wattridge/__init__.py" for file in files)


pytestmark = pytest.mark.skipif(not installed() and not os.environ.get("CI"), reason="wattridge is not installed")


class Place:
    """A working directory whose modules must never be imported, and scripts that lie elsewhere."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.elsewhere = folder / "kernels", folder / "bin"
        self.folder.mkdir()
        self.elsewhere.mkdir()
        for name in SHADOWS:
            (self.folder / f"{name}.py").write_text(f"raise SystemExit('{name} of the working directory')\n")
        (self.folder / "program.toml").write_text(PROGRAM)
        clean = {name: text for name, text in os.environ.items() if not name.startswith(("PYTHON", "WATTRIDGE"))}
        self.environment = {**clean, "WATTRIDGE_DATA": str(folder / "data"), "QT_QPA_PLATFORM": "offscreen"}

    def run(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words,
            cwd=self.folder,
            env={**self.environment, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=240,
        )

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.run(str(Path(sys.executable).with_name("wattridge")), *words)

    def script(self, code: str, **environment: str) -> str:
        """Run a script; what it prints."""
        path = self.elsewhere / "script.py"
        path.write_text(code)
        done = self.run(sys.executable, str(path), **environment)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(tmp_path_factory.mktemp("installed"))


@pytest.fixture(scope="module")
def resources(place: Place) -> str:
    found = place.script("from wattridge.base.paths import resources\nprint(resources())").strip()
    (place.folder / "small.toml").write_text(_small(Path(found)), encoding="utf-8")
    return found


def _small(resources: Path) -> str:
    """An example with one size of block, two of tiles and three clocks: what takes long is how many there are."""
    text = (resources / "examples" / "gemm.toml").read_text(encoding="utf-8")
    for name, values in (("block_size_[xy]", "[16]"), ("tile_size_x", "[2, 4]"), ("tile_size_y", "[2]")):
        text = re.sub(rf"^({name}) = .*$", rf"\1 = {values}", text, flags=re.MULTILINE)
    text = text.replace("points = 7", "points = 3")
    return text.replace('"../kernels/gemm.cu"', json.dumps(str(resources / "kernels" / "gemm.cu")))


def test_one_package_is_installed_with_all_that_it_ships(resources: str) -> None:
    names = {str(file).split("/")[0] for file in metadata.files("wattridge") or []}
    assert {name for name in names if not name.startswith("..") and ".dist-info" not in name} == {"wattridge"}
    assert Path(resources).parent.name == "wattridge"
    shipped = {path.name for path in Path(resources).rglob("*") if path.is_file()}
    assert {"a100.toml", "a6000.toml", "gemm.toml", "gemm.cu", "boards.toml", "index.md", "policy.conf"} <= shipped
    assert (Path(resources).parent / "py.typed").is_file()


@pytest.fixture(scope="module")
def first_session(place: Place) -> None:
    done = place.command("demo", "--no-window", "--max-evaluations", "10")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.split()[0])
def test_every_command_works_from_a_folder_of_shadows(
    command: str, place: Place, resources: str, first_session: None
) -> None:
    done = place.command(*(word.format(resources=resources) for word in command.split()))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "of the working directory" not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_python_m_wattridge_runs_from_any_folder_without_shadows(place: Place, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "wattridge", "gpus", "--json"],
        cwd=tmp_path,
        env=place.environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)


def test_a_measurement_from_python(place: Place) -> None:
    printed = place.script(
        "from wattridge import measure\n"
        "with measure(gpu='simulated:a100') as m:\n"
        "    sum(range(100_000))\n"
        "print(m.time_s > 0, type(m.energy_j).__name__)\n"
    )
    assert printed.split() == ["True", "float"]


def test_the_runner_process_starts(place: Place) -> None:
    """As far as it goes without a GPU: to its own word on what is missing."""
    printed = place.script(
        "from wattridge.engine.runner.cuda.gpu import LIBRARIES\n"
        "from wattridge.engine.runner.kernels.process import KernelFailed, RunnerProcess\n"
        "from wattridge.base.errors import WattridgeError\n"
        "for library in LIBRARIES:\n"
        "    process = RunnerProcess(library.module, '0', {})\n"
        "    try:\n"
        "        process.ready()\n"
        "        print('ready')\n"
        "    except WattridgeError as error:\n"
        "        print(error)\n"
        "    process.close()\n"
    )
    for line, missing in zip(printed.splitlines(), ("cuda", "pycuda"), strict=True):
        assert line == "ready" or f"No module named '{missing}'" in line or "cuInit failed" in line, line


def test_the_process_of_nvrtc_starts(place: Place) -> None:
    printed = place.script(
        "from wattridge.engine.runner.cuda.toolchain import Toolchain\n"
        "from wattridge.engine.runner.kernels.process import KernelFailed\n"
        "maker = Toolchain(nvrtc='any').maker((9, 0))\n"
        "try:\n"
        "    maker.make('no kernel', ())\n"
        "except KernelFailed as error:\n"
        "    print(error.what)\n"
        "maker.close()\n"
    )
    assert "kernel.cu(1): error" in printed or "NVRTC is not here" in printed


def test_the_control_helper_starts(place: Place) -> None:
    printed = place.script(
        "import subprocess\n"
        "from wattridge.engine.control.client import helper_command\n"
        "print(subprocess.run(helper_command('no board', 'GPU 0'), capture_output=True, text=True).stdout)\n",
        WATTRIDGE_UNSAFE_HELPER_FROM_CHECKOUT="1",
    )
    assert "error" in json.loads(printed)


def test_the_window_starts_and_ends(place: Place) -> None:
    printed = place.script(
        "import sys\n"
        "from PySide6.QtCore import QTimer\n"
        "from wattridge.views.shell import app\n"
        "qt = app.application()\n"
        "timer = QTimer()\n"
        "timer.timeout.connect(qt.quit)\n"
        "timer.start(1500)\n"
        "status = app.run('simulated:a100')\n"
        "print(status, 'app' in sys.modules)\n"
    )
    assert printed.split() == ["0", "False"]
