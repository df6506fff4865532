"""`wattridge kernel-tuner SCRIPT.py`: scripts that import `kernel_tuner`, run as they are."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.base.errors import InputError
from app.cli import main
from app.engine.formats.read import read_recording
from app.scripting.stand_in import fit_power_frequency_model
from app.sensors.gpu import Gpu
from app.sensors.select import open_gpu
from app.sensors.simulated.twin import load_twin

SCRIPT = """
import sys
import numpy as np
import kernel_tuner
from kernel_tuner import tune_kernel, store_results, create_device_targets
from kernel_tuner.file_utils import store_output_file, store_metadata_file
from kernel_tuner.observers import BenchmarkObserver
from kernel_tuner.observers.nvml import NVMLObserver, get_nvml_gr_clocks
from kernel_tuner.nvml import NVMLObserver as Older
from kernel_tuner.util import get_best_config, get_config_string

import beside

n = np.int32(1_000_000)
x = np.zeros(1000, np.float32)
source = "__global__ void vector_add(float *c, const float *a, const float *b, int n) {}"
parameters = {"block_size_x": [128, 256, 512]}
results, environment = tune_kernel(
    "vector_add", source, int(n), [x, x, x, n], parameters,
    observers=[NVMLObserver(["nvml_energy"])], metrics={"GFLOPS/W": lambda p: n / 1e9 / p["nvml_energy"]},
    strategy=kernel_tuner.strategies.brute_force, quiet=True,
)
best = get_best_config(results, "time")
store_output_file("output", results, parameters)
store_metadata_file("metadata.json")
for size in (1, 2):
    store_results("stored.json", "vector_add", source, parameters, (size, 7), results, environment, top=1e-3)
create_device_targets("targets.h", "stored.json")
print(__name__, sys.argv[1:], beside.WORD, environment["source"], get_config_string(best, ["block_size_x"]))
print(len(get_nvml_gr_clocks(0, n=5)["nvml_gr_clock"]))
sys.exit(int(sys.argv[1]))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "beside.py").write_text("WORD = 'found'\n")
    return tmp_path


def run(folder: Path, text: str, *words: str, options: tuple[str, ...] = ()) -> int:
    (folder / "script.py").write_text(text)
    return main(["kernel-tuner", *options, str(folder / "script.py"), *words])


def test_a_script_runs_as_it_is_and_its_files_are_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, argv = set(sys.modules), list(sys.argv)
    status = run(folder, SCRIPT, "3", "--json", options=("--gpu", "simulated:a100", "--profile", "vector_add"))
    out, err = capsys.readouterr()
    assert status == 3, err
    assert out.splitlines() == ["__main__ ['3', '--json'] found simulated block_size_x=512", "5"]
    assert read_recording(folder / "output.json").device == "NVIDIA A100-PCIE-40GB"
    assert json.loads((folder / "metadata.json").read_text())["metadata"]["operating_system"]
    stored = json.loads((folder / "stored.json").read_text())
    assert [each["problem_size"] for each in stored["data"]] == ["1x7", "2x7"]
    assert stored["data"][0]["tunable_parameters"] == {"block_size_x": 512}
    targets = (folder / "targets.h").read_text()
    assert "#ifdef TARGET_NVIDIA_A100_PCIE_40GB\n" in targets
    assert "#define block_size_x 512" in targets
    assert sys.argv == argv
    assert not any(name.startswith("kernel_tuner") for name in set(sys.modules) - before)


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("from kernel_tuner.hyper import tune_hyper_params", "kernel_tuner.hyper.tune_hyper_params"),
        ("import kernel_tuner; kernel_tuner.tune_kernel_T2", "kernel_tuner.tune_kernel_T2"),
        (
            "import kernel_tuner; kernel_tuner.tune_kernel_T1('none.json')",
            "none.json",
        ),
        ("from kernel_tuner.observers.ncu import NCUObserver; NCUObserver([])", "NCUObserver"),
        ("from kernel_tuner.observers.nvml import NVMLObserver; NVMLObserver(['power_reading'])", "power_reading"),
        (
            "from kernel_tuner.searchspace import Searchspace; Searchspace({'a': [1]}, [], 1, from_cache={1: 2})",
            "from_cache",
        ),
        ("from kernel_tuner import tune_cache; tune_cache('none.json')", "none.json"),
        ("from kernel_tuner.util import read_cache; read_cache('beside.py')", "beside.py"),
        ("from kernel_tuner.integration import TuneResults; TuneResults('beside.py')", "beside.py"),
        ("from kernel_tuner.observers.nvml import NVMLObserver; NVMLObserver([], save_all=True)", "save_all"),
        (
            "from kernel_tuner.observers.nvml import NVMLObserver; NVMLObserver([], nvidia_smi_fallback='nvidia-smi')",
            "sudo",
        ),
        ("from kernel_tuner.observers.nvml import nvml; nvml(0).pwr_limit = 1", "nvml.nvml"),
    ],
)
def test_what_is_not_here_is_refused_in_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], line: str, names: str
) -> None:
    assert run(folder, line) == 2
    err = capsys.readouterr().err.strip()
    assert names in err
    assert "\n" not in err


def test_a_fault_of_the_script_is_shown_as_python_shows_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder, "def fails():\n    raise KeyError('mine\\x1b[31m')\nfails()\n") == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert [line.split(", ")[1] for line in lines if line.startswith("  File")] == ["line 3", "line 2"]
    assert lines[-1] == "KeyError: 'mine\\x1b[31m'"


def test_a_script_that_is_not_there_is_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kernel-tuner", "missing.py"]) == 2
    assert "missing.py" in capsys.readouterr().err


def test_nothing_runs_a_script_but_the_command(folder: Path) -> None:
    (folder / "script.py").write_text("import pathlib; pathlib.Path('ran').touch()")
    for words in (["space"], ["tune"], ["replay"], ["analyse"], ["new"]):
        main([*words, str(folder / "script.py")])
    assert not (folder / "ran").exists()
    assert main(["kernel-tuner", str(folder / "script.py")]) == 0
    assert (folder / "ran").exists()


def test_a_public_cache_is_searched_by_a_script_in_simulation_mode(
    folder: Path, shared_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same 8 configurations, and the same best, as Kernel Tuner 1.5.0 gives for this script."""
    with gzip.open(shared_data / "kernel-tuner" / "convolution_milo-A4000.json.gz", "rt") as file:
        (folder / "conv.json").write_text(file.read())
    script = """
import json, pathlib
import numpy as np
from kernel_tuner import tune_kernel
parameters = json.loads(pathlib.Path("conv.json").read_text())["tune_params"]
restrictions = ["tile_size_x == 3", "tile_size_y == 4", "block_size_x == 32", "block_size_y >= 8",
                "use_padding == 0 or (use_shmem == 1 and block_size_x % 32 != 0)"]
results, env = tune_kernel(
    "convolution_kernel", "__global__ void convolution_kernel(float *a) {}", (4096, 4096), [np.zeros(3, np.float32)],
    parameters, restrictions=restrictions, cache="conv.json", simulation_mode=True, quiet=True,
    metrics={"x": lambda p: p["time"] * 2, "y": "x * 2"},
)
best = env["best_config"]
print(len(results), sum("__error__" in each for each in results), best["block_size_y"], best["use_shmem"])
print(best["time"], best["y"], len(best["times"]))
"""
    assert run(folder, script) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["8 1 8 1", "3.0634419843554497 12.253767937421799 32"]


GOING_GREEN = """
import numpy as np
from kernel_tuner.energy import energy
from kernel_tuner.observers.nvml import get_nvml_gr_clocks

ridge, clocks, power, parameters, scales = energy.create_power_frequency_model(device=0, n_samples=12, verbose=True)
settable = np.array(get_nvml_gr_clocks(0, quiet=True)["nvml_gr_clock"])
chosen = energy.get_frequency_range_around_ridge(ridge, settable, 10, 5)
off = scales[1] * energy.estimated_power(clocks - scales[0], *parameters) / power - 1
print(ridge, len(clocks), np.abs(off).max(), *chosen)
"""


def test_a_script_finds_the_ridge_of_a_board_and_clocks_around_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(folder, GOING_GREEN, options=("--gpu", "simulated:a100")) == 0
    out, err = capsys.readouterr()
    ridge, clocks, off, *chosen = map(float, out.split())
    assert ridge == pytest.approx(load_twin("a100").voltage.ridge_mhz, abs=60)
    assert clocks >= 10
    assert off < 0.02
    assert len(chosen) == 5
    assert all(each % 15 == 0 and 0.9 * ridge - 15 <= each <= 1.1 * ridge + 15 for each in chosen)
    lines = err.splitlines()
    named = [line for line in lines if line.startswith("NVIDIA A100-PCIE-40GB (simulated): ")]
    assert len(named) == clocks + 1, "power at each clock, and the ridge"
    assert all(" W at " in line and line.endswith(" MHz") for line in named[:-1])
    assert named[-1].endswith(f"nearest settable clock {ridge:.0f} MHz")


def test_a_model_of_power_opens_the_board_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened: list[str] = []

    def count(named: str, **how: Any) -> Gpu:
        opened.append(named)
        return open_gpu(named, **how)

    monkeypatch.setattr("app.scripting.kernel_tuner.open_gpu", count)
    line = "from kernel_tuner.energy import energy; energy.create_power_frequency_model(n_samples=6)"
    assert run(folder, line, options=("--gpu", "simulated:a100")) == 0, capsys.readouterr().err
    assert opened == ["simulated:a100"]


def test_locked_clocks_are_accepted_and_change_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = []
    for how in ("", "use_locked_clocks=False", "use_locked_clocks=True"):
        text = f"""
from kernel_tuner.energy import energy
from kernel_tuner.observers.nvml import NVMLObserver
NVMLObserver(["nvml_power"], {how})
clocks, power = energy.get_frequency_power_relation_fp32(0, 6, {how})
print(*clocks, *power, energy.create_power_frequency_model(0, 6, {how})[0])
"""
        assert run(folder, text, options=("--gpu", "simulated:a100")) == 0
        out, err = capsys.readouterr()
        assert err == ""
        found.append([float(each) for each in out.split()])
    assert len(found[0]) == 13
    assert found[1] == pytest.approx(found[0], rel=0.01)
    assert found[2] == pytest.approx(found[0], rel=0.01)


@pytest.mark.parametrize("more", ["cache='x.json'", "simulation_mode=True", "nvidia_smi_fallback='nvidia-smi'"])
def test_arguments_of_the_model_of_power_that_are_not_supported_are_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], more: str
) -> None:
    line = f"from kernel_tuner.energy import energy; energy.create_power_frequency_model({more})"
    assert run(folder, line, options=("--gpu", "simulated:a100")) == 2
    assert more.partition("=")[0] in capsys.readouterr().err


def test_the_ridge_of_known_power_is_found() -> None:
    clocks = np.arange(600.0, 1410.0, 60.0)
    truth = 1.0 + 1e-3 * 1.2 * (clocks - 600) * (1 + 1e-3 * 1.5 * np.maximum(0, clocks - 600 - 400)) ** 2
    ridge, parameters, scales = fit_power_frequency_model(clocks.tolist(), (80 * truth).tolist())
    assert ridge == pytest.approx(1000, abs=10)
    assert parameters[1:3] == pytest.approx((1.5, 1.2), rel=0.05)
    assert scales == (600.0, 80.0)
    with pytest.raises(InputError, match="4 clocks"):
        fit_power_frequency_model(clocks[:4].tolist(), truth[:4].tolist())


WINDOWS = """
import numpy as np
from kernel_tuner import tune_kernel
from kernel_tuner.observers.nvml import NVMLObserver
n, x = np.int32(1_000_000), np.zeros(1000, np.float32)
source = "__global__ void vector_add(float *c, const float *a, const float *b, int n) {}"
for seconds in (1, 5):
    results, environment = tune_kernel(
        "vector_add", source, int(n), [x, x, x, n], {"block_size_x": [128]}, quiet=True,
        observers=[NVMLObserver(["nvml_power"], device=2, continuous_duration=seconds)],
    )
    print(results[0]["benchmark_time"])
print(environment["notes"][-1])
"""


def test_energy_is_measured_for_as_long_as_an_observer_asks(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder, WINDOWS, options=("--gpu", "simulated:a100", "--profile", "vector_add")) == 0
    usual, longer, note = capsys.readouterr().out.splitlines()
    assert float(longer) > 5000 > float(usual), "ms on the board's clock"
    assert note == "NVMLObserver(device=2): the board of the kernel is measured"


@pytest.mark.parametrize(("board", "truth_mhz"), [("titan-rtx", 1155), ("a4000", 1298), ("a100", 1028)])
def test_the_ridge_of_a_board_is_where_its_voltage_begins_to_rise(
    folder: Path, capsys: pytest.CaptureFixture[str], board: str, truth_mhz: float
) -> None:
    text = "from kernel_tuner.energy import energy; print(energy.create_power_frequency_model(n_samples=10)[0])"
    assert run(folder, text, options=("--gpu", f"simulated:{board}")) == 0
    assert float(capsys.readouterr().out) == pytest.approx(truth_mhz, abs=15)


def test_clocks_and_limits_come_in_kernel_tuners_order(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = """
from kernel_tuner.observers.nvml import get_nvml_gr_clocks, get_nvml_mem_clocks, get_nvml_pwr_limits
for each in (get_nvml_gr_clocks(0), get_nvml_gr_clocks(0, n=4), get_nvml_mem_clocks(0), get_nvml_pwr_limits(0, n=3)):
    print(*list(each.values())[0])
"""
    assert run(folder, text, options=("--gpu", "simulated:a4000")) == 0
    every, four, memory, limits = (list(map(int, line.split())) for line in capsys.readouterr().out.splitlines())
    assert every == sorted(every, reverse=True)
    assert four == [every[at] for at in np.ceil(np.linspace(0, len(every) - 1, 4)).astype(int)]
    assert memory == sorted(memory, reverse=True)
    assert limits == [100, 120, 140]


C_SCRIPT = """
import numpy as np
from pathlib import Path
from kernel_tuner import tune_kernel
from kernel_tuner.observers.register import RegisterObserver
more = dict(%s)
parameters = more.pop("parameters", {"block_size_x": [1]})
source = 'extern "C" float f(float *x) { return 1; }'
tune_kernel("f", source, 1, [np.zeros(1, np.float32)], parameters, lang="C", quiet=True, **more)
"""


@pytest.mark.parametrize(
    ("more", "names"),
    [
        ("observers=[RegisterObserver()]", "RegisterObserver"),
        ("parameters={'time': [1]}", "'time'"),
        ("parameters={'grid_size_x': [1]}", "'grid_size_x'"),
        ("cache=Path('')", "cache"),
        ("cache='/'", "cache"),
        ("cache='', simulation_mode=True", "cache"),
        ("observers=[lambda given: 3]", "observers[0]"),
    ],
)
def test_what_would_mean_nothing_is_refused_in_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], more: str, names: str
) -> None:
    assert run(folder, C_SCRIPT % more) == 2
    err = capsys.readouterr().err.strip()
    assert names in err
    assert "\n" not in err


def test_results_of_another_direction_make_no_targets(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = """
from kernel_tuner import create_device_targets, store_results
store_results("s.json", "f", "", {"a": [1]}, 1, [{"a": 1, "time": 1.0}], {"device_name": "x"})
create_device_targets("t.h", "s.json", objective="GFLOP/s")
"""
    assert run(folder, text) == 2
    assert "less time" in capsys.readouterr().err
    assert not (folder / "t.h").exists()


T1 = """
import json
from pathlib import Path
from kernel_tuner import tune_kernel_T1
Path("f.cu").write_text("__global__ void vector_add(float *c, float *a, float *b, int n) {}")
usual = {"Type": "float", "MemoryType": "Vector", "FillType": "Random", "Size": "4 * 1000"}
arguments = [{**usual, "Name": name} for name in "cab"]
arguments.append({"Name": "n", "Type": "int32", "MemoryType": "Scalar", "FillValue": 1000000})
kernel = {"Language": "CUDA", "KernelName": "vector_add", "KernelFile": "f.cu", "ProblemSize": 1000000}
kernel |= {"Arguments": arguments, "GridDivX": ["block_size_x"]}
space = {"TuningParameters": [{"Name": "block_size_x", "Type": "int", "Values": "[64, 128, 256]"}]}
space["Conditions"] = [{"Expression": "block_size_x > 64"}]
document = {"ConfigurationSpace": space, "KernelSpecification": kernel, "Search": {"Name": "brute_force"}}
document["Budget"] = [{"Type": "ConfigurationCount", "BudgetValue": 1}]
Path("t1.json").write_text(json.dumps(document))
metadata, results = tune_kernel_T1("t1.json")
print(len(results["results"]), results["results"][0]["configuration"], sorted(metadata))
document["Budget"] = [{"Type": "ConfigurationFraction", "BudgetValue": 0.5}]
Path("t1.json").write_text(json.dumps(document))
tune_kernel_T1("t1.json")
"""


def test_a_problem_in_t1_runs_on_a_board_within_its_budget(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder, T1, options=("--gpu", "simulated:a100", "--profile", "vector_add")) == 2
    out, err = capsys.readouterr()
    assert out == "1 {'block_size_x': 128} ['metadata', 'schema_version']\n"
    assert "its budget is a share of the space" in err
