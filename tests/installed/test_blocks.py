"""Every block of the README and the guide, as a reader would copy it: in an empty folder, with the installed program.

What a reader has (a program of their own, a sweep, a kernel) is put there first. Simulated boards run as fast as can be
computed and searches are short; else the commands are those of the page. What cannot run is listed with the reason.
"""

from __future__ import annotations

import ast
import builtins
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_wattridge import installed

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "nvml"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "resources" / "guide").glob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
NOT_RUN = {
    r"ssh:|--on |^ssh ": "needs another machine",
    r"tls://|pool scheduler|^srun|^kubectl|^#SBATCH|^#!|^export ": "needs a cluster",
    r"helper\b|apply (--gpu 0|--session)|restore$": "changes this machine with root's rights",
    r"(tune|savings) .*--gpu 0|check .*--inputs|kernel-tuner tune_\w+\.py": "needs boards that run CUDA",
    r"amd:": "needs a board of AMD's",
    r"--openmetrics": "serves until it is stopped",
    r"^wattridge mark": "needs a recording that runs",
    r"profile --trace|profile .*-- |wprofile": "needs a program or a trace of the reader's own",
    r"^wattridge check .*(--commits|\.py)|^wattridge verify|^python verify_|^pytest ": "needs the reader's own tests",
    r"^python3 -m venv|^\. \.venv|^pip install|^wattridge demo$": "is how the program under test was installed",
    r"^python softmax|train\.py|\./job|power\.csv": "is run by tests/test_first_runs.py, which brings what it needs",
    r"^n?v?cc ": "is for the user's own compiler and CUDA",
}
HAVE = {
    "run_kernels",
    "attention",
    "q",
    "k",
    "v",
    "configs",
    "new",
    "old",
    "x",
    "model",
    "batch",
    "batches",
}  # names that stand for the reader's own
SWEEP = "clock_mhz,power_limit_w,power_w,time_s,energy_j\n" + "".join(
    f"{f},400,{(p := 60 + 0.08 * f * max(1.0, 1 + 0.0009 * (f - 1000)) ** 2):.2f},{(t := 1500 / f):.5f},{p * t:.3f}\n"
    for f in range(300, 1500, 120)
)
SCRIPT = """
import numpy as np
from kernel_tuner import tune_kernel

source = "__global__ void convolution(float *c, const float *a) { c[blockIdx.x * block_size_x + threadIdx.x] = a[0]; }"
data = np.zeros(1 << 20, np.float32)
tune_kernel("convolution", source, data.size, [data, data], {"block_size_x": [32, 64, 128]}, lang="CUDA")
"""

STANDS_FOR_TORCH = """
from types import SimpleNamespace

import numpy as np

cuda = SimpleNamespace(is_available=lambda: False, is_initialized=lambda: False)


def randn(*shape, device):
    return np.ones(shape, np.float32)


def addmm(x, y, z):
    return x + y @ z
"""

pytestmark = pytest.mark.skipif(not installed() and not os.environ.get("CI"), reason="wattridge is not installed")


def lines(text: str) -> Iterator[str]:
    """The lines of the blocks without a language, comments left out."""
    for language, block in BLOCK.findall(text):
        if language in ("", "sh"):
            yield from (line.partition("  #")[0].strip() for line in block.splitlines())


class Reader:
    """Someone with an empty folder, the installed program, and what the pages take for granted."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder / "here"
        self.folder.mkdir()
        clean = {name: text for name, text in os.environ.items() if not name.startswith(("PYTHON", "WATTRIDGE"))}
        own = {"HOME": str(folder), "XDG_DATA_HOME": str(folder / "share"), "QT_QPA_PLATFORM": "offscreen"}
        self.environment = {**clean, **own, "WATTRIDGE_DATA": str(folder / "data"), **environment}
        self.program = str(Path(sys.executable).with_name("wattridge"))

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words, cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=280,
        )  # fmt: skip

    def bring(self, resources: Path) -> None:
        program = self.folder / "my_program"
        program.write_text("#!/bin/sh\nsleep 0.3\n")
        program.chmod(0o755)
        (self.folder / "sweep.csv").write_text(SWEEP)
        (self.folder / "tune_convolution.py").write_text(SCRIPT)
        for name in ("transpose.cu", "n_body.cu"):
            shutil.copy(resources / "kernels" / name, self.folder)


@pytest.fixture(scope="module")
def boards(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment in which GPU 0 is a board of the stand-in for the driver's library; empty without a compiler."""
    from boards import StandIn, compiler

    if compiler() is None:
        yield {}
        return
    stand_in = StandIn(tmp_path_factory.mktemp("boards"), ["h200"])
    yield {"LD_LIBRARY_PATH": str(stand_in.folder)}
    stand_in.close()


@pytest.fixture
def reader(tmp_path: Path, boards: dict[str, str]) -> Reader:
    found = Reader(tmp_path, boards)
    code = "from wattridge.base.paths import resources; print(resources())"
    found.bring(Path(found.run(sys.executable, "-P", "-c", code).stdout.strip()))
    return found


def hurried(words: list[str]) -> list[str]:
    """The same command where time does not pass and few configurations are looked at."""
    at = words.index("--") if "--" in words else len(words)
    options = words[:at]
    simulated = any(word.startswith(("simulated:", "recorded:")) for word in options)
    if simulated and options[1] not in ("measure", "space") and "--speed" not in options and "--meter" not in options:
        options += ["--speed", "inf"]
    searches = options[1] == "replay" or (options[1] in ("tune", "compare") and "--gpu" in options)
    if searches and "--max-evaluations" not in options:
        options += ["--max-evaluations", "6"]
    if options[1] == "score":
        options += ["--repeats", "2"]
    return options + words[at:]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_of_a_page_runs(page: Path, reader: Reader, boards: dict[str, str]) -> None:
    commands = filter(None, lines(page.read_text(encoding="utf-8")))
    here = [line for line in commands if not any(re.search(pattern, line) for pattern in NOT_RUN)]
    if any(re.search(r"(counters|export) \d", line) for line in here):  # pages that speak of sessions which are there
        first = "tune gemm --gpu simulated:a100 --speed inf --max-evaluations 12"
        assert reader.run(reader.program, *first.split()).returncode == 0
    for line in here:
        line = re.sub(r"(?<=counters )\d+", "1", re.sub(r"\s(?:2?>|\|)\s?.*$", "", line))
        words = shlex.split(line)
        assert words[0] == "wattridge", f"{line}: neither a command of ours, nor listed with a reason"
        if {"0", "host"} & set(words) and not boards:
            continue  # no compiler, hence no stand-in for the driver's library, and nothing to compile with
        if words[1].startswith("--"):
            window_opens(reader, words[1:])
            continue
        done = reader.run(reader.program, *hurried(words)[1:])
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr


def window_opens(reader: Reader, words: list[str]) -> None:
    """Start the window, which stays until it is ended."""
    process = subprocess.Popen(
        [reader.program, *words], cwd=reader.folder, env=reader.environment, stderr=subprocess.PIPE, text=True
    )
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(4)
    process.terminate()
    _, errors = process.communicate(timeout=300)
    assert "Traceback" not in errors
    assert "wattridge: " not in errors.replace("wattridge: stopped", "")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_python_names_what_it_uses(page: Path) -> None:
    """Each block imports or defines every name in it, but for those that stand for the reader's own."""
    for language, block in BLOCK.findall(page.read_text(encoding="utf-8")):
        if language == "python":
            nodes = list(ast.walk(ast.parse(block)))
            known = {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
            for node in nodes:
                if isinstance(node, ast.FunctionDef):
                    known.add(node.name)
                elif isinstance(node, ast.arg):
                    known.add(node.arg)
                elif isinstance(node, ast.Import | ast.ImportFrom):
                    known |= {(name.asname or name.name).partition(".")[0] for name in node.names}
            used = {node.id for node in nodes if isinstance(node, ast.Name)}
            assert used <= known | HAVE | set(dir(builtins)), (page.name, used - known)


@pytest.mark.parametrize(
    "page", [PAGES[0], ROOT / "resources" / "guide" / "first-steps.md"], ids=lambda page: page.stem
)
def test_a_measurement_of_the_page_runs(page: Path, reader: Reader, boards: dict[str, str]) -> None:
    if not boards:
        pytest.skip("the stand-in for the driver's library needs a C compiler")
    blocks = [code for language, code in BLOCK.findall(page.read_text(encoding="utf-8")) if "with measure" in code]
    assert blocks
    for code in blocks:
        (reader.folder / "script.py").write_text(f"import time\n\n\ndef run_kernels(): time.sleep(0.3)\n\n\n{code}")
        done = reader.run(sys.executable, "script.py")
        assert done.returncode == 0, done.stderr
        assert float(done.stdout.split()[1]) > 0, "joules"


def test_the_energy_tests_of_the_page_run(reader: Reader) -> None:
    page = (ROOT / "resources" / "guide" / "energy-test.md").read_text(encoding="utf-8")
    (code,) = (code for language, code in BLOCK.findall(page) if "(energy)" in code)
    (reader.folder / "torch.py").write_text(STANDS_FOR_TORCH)
    (reader.folder / "test_product.py").write_text(code)
    words = (
        "--energy",
        "--energy-gpu",
        "simulated:h200",
        "--energy-evidence",
        "evidence.json",
        "--energy-seconds",
        "8",
    )
    done = reader.run(sys.executable, "-m", "pytest", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "test_product.py::test_product #2  " in done.stdout
    verified = reader.run(reader.program, "verify", "evidence.json")
    assert verified.returncode == 0, verified.stdout
    script = ROOT / "resources" / "ci" / "verify_evidence.py"
    assert reader.run(sys.executable, str(script), "evidence.json").returncode == 0
