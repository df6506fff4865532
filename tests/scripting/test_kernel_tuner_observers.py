"""Kernel Tuner's own observers: figures of the board and of meters beside it, by their names."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import fake_ncu
import numpy as np
import pytest
from fixtures.jetson_board import jetson as jetson_board
from fixtures.jetson_trees import HEAT, ORIN_CLOCKS, THOR, XAVIER_NX, Tree, lay
from fixtures.virtual_cuda import VirtualBoard
from hypothesis import given
from hypothesis import strategies as st

from app import InputError, WattridgeError, tune_kernel
from app.cli import main
from app.engine.metering.external_meters import MeterChoice
from app.engine.store.database import Store
from app.observers import NCUObserver, NVMLObserver, PMTObserver, PowerSensorObserver, TegraObserver
from app.scripting.searchspace import Searchspace
from app.scripting.stand_in import standing_for_kernel_tuner
from app.scripting.surroundings import Surroundings, running_with
from app.sensors.meters import ina, select
from app.sensors.nvml.gpu import NvmlGpu

SOURCE = "__global__ void vector_add(float *c, const float *a, const float *b, int n) {}"
N = np.int32(1_000_000)
X = np.zeros(1000, np.float32)


def tuned(*observers: Any, **more: Any) -> list[dict[str, Any]]:
    usual = {"gpu": "simulated:a100", "profile": "vector_add", "quiet": True, "observers": observers, **more}
    results, _ = tune_kernel("vector_add", SOURCE, int(N), [X, X, X, N], {"block_size_x": [64, 128]}, **usual)
    return results


@pytest.fixture
def meters(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every meter is the simulated one; the selectors that were opened."""
    opened: list[str] = []

    def open_meter(selector: str, gpu: Any) -> Any:
        opened.append(selector)
        meter = select.simulated.SimulatedMeter.beside(gpu, "")
        meter.info = type(meter.info)(**{**_fields(meter.info), "kind": selector.partition(":")[0]})
        return meter

    monkeypatch.setattr("app.engine.metering.external_meters.open_meter", open_meter)
    return opened


def _fields(info: Any) -> dict[str, Any]:
    return {name: getattr(info, name) for name in info.__dataclass_fields__}


def test_a_power_sensor_is_read_beside_the_board(meters: list[str]) -> None:
    results = tuned(PowerSensorObserver(["ps_energy", "ps_power"], device="/dev/ttyACM3"), objective="ps_energy",
                    objective_higher_is_better=False)  # fmt: skip
    assert meters == ["powersensor3:/dev/ttyACM3"]
    for each in results:
        assert each["ps_energy"] == pytest.approx(each["ps_power"] * each["time_s"], rel=1e-3)
        assert each["ps_power"] == pytest.approx(each["power_w"], rel=0.05)


@pytest.mark.parametrize("form", ["rapl", ["rapl", ("powersensor2", "/dev/x")], {"rapl": None}])
def test_meters_of_pmt_have_their_names(meters: list[str], form: Any) -> None:
    results = tuned(PMTObserver(form))
    assert {name.partition(":")[0] for name in meters} == {"rapl"} | (
        {"powersensor2"} if "rapl" != form != {"rapl": None} else set()
    )
    assert all(each["rapl_energy"] > 0 for each in results)
    assert all(each["rapl_power"] > 0 for each in results)


def test_the_boards_own_sensor_is_pmts_nvidia() -> None:
    for each in tuned(PMTObserver("nvidia", use_continuous_observer=True, continuous_duration=2)):
        assert (each["nvidia_energy"], each["nvidia_power"]) == (each["energy_j"], each["power_w"])


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (lambda: PowerSensorObserver(["ps_volts"]), "ps_volts"),
        (lambda: PMTObserver("xilinx"), "xilinx"),
        (lambda: NCUObserver(), "--query-metrics"),
        (lambda: NCUObserver(["x --force"]), "--query-metrics"),
        (lambda: NVMLObserver(["nvml_power"], nvidia_smi_fallback="nvidia-smi"), "sudo"),
        (lambda: NVMLObserver(["nvml_power"], continuous_duration=0), "continuous_duration"),
        (lambda: tuned(PowerSensorObserver(device="/dev/nowhere")), "real time"),
        (lambda: tune_kernel("k", SOURCE, 1, [X], {"tegra_gr_clock": [114750000]}, quiet=True), "tegra_gr_clock"),
    ],
)
def test_what_is_missing_is_said_in_one_line(make: Any, names: str) -> None:
    with pytest.raises(InputError) as refused:
        make()
    assert names in str(refused.value)
    assert "\n" not in str(refused.value)


def test_each_configuration_has_the_counters_that_ncu_would_give_on_a_simulated_board() -> None:
    names = [f"dram__bytes{kind}.sum" for kind in ("", "_read", "_write")]
    per_s = {"GB/s": lambda p: p["dram__bytes.sum"] / 1e9 / (p["time"] / 1e3)}
    for each in tuned(NCUObserver(names[:1]), metrics=per_s):
        assert each["dram__bytes.sum"] == pytest.approx(12e6)  # three arrays of a million floats
        assert each["GB/s"] == pytest.approx(each["dram__bytes.sum"] / each["time_s"] / 1e9)
    with pytest.raises(WattridgeError, match=r"have no sm__heat.sum .there are gpu__time_duration.sum"):
        tuned(NCUObserver(["dram__bytes.sum", "sm__heat.sum"]))
    sizes = {"block_size_x": [16], "block_size_y": [16], "tile_size_x": [1, 2], "tile_size_y": [1], "n": [1024]}
    results, environment = tune_kernel(
        "gemm", SOURCE, (1024, 1024), [X, X, X], sizes, gpu="simulated:a100", profile="gemm", quiet=True,
        observers=[NCUObserver(names)], objective="dram__bytes.sum", objective_higher_is_better=False,
    )  # fmt: skip
    assert len(results) == 2
    assert all(each[names[0]] == pytest.approx(each[names[1]] + each[names[2]]) for each in results)
    assert environment["best_config"][names[0]] == min(each[names[0]] for each in results)


def test_each_configuration_is_launched_once_under_ncu_which_sets_no_clock(
    virtual_board: VirtualBoard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WATTRIDGE_NCU", str(fake_ncu.install(tmp_path)))  # it fails if the clocks would be locked
    read, other = "dram__bytes_read.sum", "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"

    def counted(*names: str) -> list[dict[str, Any]]:
        return tune_kernel(
            "scale", "// the stand-in compiles it", 1000, [X, X], {"block_size_x": [64, 128]},
            gpu=virtual_board, lang="CUDA", quiet=True, observers=[NCUObserver(list(names))],
            metrics={"twice": lambda p: 2 * p[names[-1]]},
        )[0]  # fmt: skip

    for each, threads in zip(counted(read, other), (1024, 1024), strict=True):
        assert "error" not in each, each
        assert (each[read], each[other], each["twice"]) == (threads, 12.5, 25.0)
        assert each["energy_j"] > 0
    monkeypatch.setenv("FAKE_NCU", "no_rights")
    with pytest.raises(WattridgeError, match="ERR_NVGPUCTRPERM"):
        counted(read)
    monkeypatch.setenv("WATTRIDGE_NCU", str(tmp_path / "nowhere"))
    with pytest.raises(WattridgeError, match="nowhere"):
        counted(read)


@pytest.fixture
def jetson(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fake_cuda: None) -> Iterator[tuple[NvmlGpu, Path]]:
    """A Jetson as NVML and Linux show it, whose kernels run on a device that is not there, and its folder /sys."""
    sysfs = lay(tmp_path, ORIN_CLOCKS, HEAT, XAVIER_NX)
    opened = ina.Ina
    monkeypatch.setattr(ina, "Ina", lambda rail: opened(rail, sysfs))
    gpu = jetson_board(sysfs)
    yield gpu, sysfs
    gpu.close()


def test_a_jetsons_gpu_is_observed_by_its_rail_its_clock_and_its_thermal_zone(jetson: tuple[NvmlGpu, Path]) -> None:
    gpu, sysfs = jetson
    observer = TegraObserver(["core_freq", "tegra_temp", "tegra_power", "tegra_energy"], sysfs=sysfs)
    [result] = tune_kernel(
        "scale", "// compiled by the stand-in", 1000, [X, X], {"block_size_x": [64]},
        gpu=gpu, lang="CUDA", quiet=True, observers=[observer],
    )[0]  # fmt: skip
    assert "error" not in result, result
    assert (result["core_freq"], result["tegra_temp"], result["tegra_power"]) == (905.25e6, 47.5, 5.0)
    assert result["tegra_energy"] == pytest.approx(5.0 * result["time_s"])
    assert "energy_j" not in result  # nothing is called the board's


OBSERVED = ["core_freq", "tegra_temp", "tegra_power"]


@pytest.mark.parametrize(
    ("trees", "arguments", "named", "remedy"),
    [
        ((HEAT, XAVIER_NX), {}, "class/devfreq", "leave it out"),
        ((ORIN_CLOCKS, XAVIER_NX), {}, "class/thermal is of type GPU-therm or gpu-thermal", "leave tegra_temp out"),
        ((ORIN_CLOCKS, HEAT, THOR), {}, "class/hwmon has GPU in its name; there is VIN", "--meter ina"),
        ((ORIN_CLOCKS, HEAT), {}, "there is none", "--meter ina"),
        ((ORIN_CLOCKS, HEAT, XAVIER_NX), {"save_all": True}, "save_all", "leave it out"),
        ((ORIN_CLOCKS, HEAT, XAVIER_NX), {"power_path": "/sys/x"}, "power_path", "leave them out"),
        ((ORIN_CLOCKS, HEAT, XAVIER_NX), {"observables": ["volts"]}, "volts", "tegra_energy"),
    ],
)
def test_what_a_jetson_lacks_is_named_with_the_remedy(
    tmp_path: Path, trees: tuple[Tree, ...], arguments: dict[str, Any], named: str, remedy: str
) -> None:
    with pytest.raises(InputError) as refused:
        TegraObserver(**{"observables": OBSERVED, **arguments}, sysfs=lay(tmp_path, *trees))
    assert named in refused.value.what
    assert remedy in refused.value.remedy
    assert "\n" not in str(refused.value)


def test_a_rail_is_not_taken_for_another_one(jetson: tuple[NvmlGpu, Path]) -> None:
    observer = TegraObserver(["tegra_power"], sysfs=jetson[1])
    with running_with(Surroundings(meters=MeterChoice(("ina:VDD_IN",)))), pytest.raises(InputError, match="VDD_IN"):
        tuned(observer)


def test_power_readings_are_the_samples_of_each_configuration() -> None:
    for each in tuned(NVMLObserver(["power_readings", "nvml_power"])):
        times, watts = np.array(each["power_readings"]).T
        assert (np.diff(times) > 0).all()
        assert watts.mean() == pytest.approx(each["nvml_power"], rel=0.05)
    with running_with(Surroundings(energy=False)):  # as a script is run that asks for nothing else
        assert all(len(each["power_readings"]) > 1 for each in tuned(NVMLObserver(["power_readings"])))


def test_every_configuration_has_its_times_on_a_simulated_board(tmp_path: Path) -> None:
    for each in tuned(iterations=5, cache=tmp_path / "own.json"):
        assert each["times"] == [each["time"]] * 5


SCRIPT = f"""
import numpy as np
from kernel_tuner import tune_kernel
x, n = np.zeros(1000, np.float32), np.int32(1_000_000)
results, _ = tune_kernel("vector_add", {SOURCE!r}, int(n), [x, x, x, n], {{"block_size_x": [64, 128]}}, quiet=True)
print(all(abs(each["power_simulated_w"] / each["power_board_w"] / 0.97 - 1) < 0.02 for each in results))
"""


def test_the_command_takes_meters_as_tune_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.py").write_text(SCRIPT)
    board = ("--gpu", "simulated:a100", "--profile", "vector_add")
    assert main(["kernel-tuner", *board, "--meter", "simulated:0.97", "script.py"]) == 0
    assert capsys.readouterr().out == "True\n"
    with Store() as store:
        origin = store.sessions()[0].origin
    assert "simulated:0.97" in origin["meters"]
    assert main(["kernel-tuner", *board, "--meter", "rapl", "script.py"]) == 2
    assert "a meter measures in real time" in capsys.readouterr().err


def test_the_idle_power_of_a_board_is_that_of_a_while_in_which_nothing_runs() -> None:
    with standing_for_kernel_tuner(), running_with(Surroundings(gpu="simulated:a100")):
        idle = import_module("kernel_tuner.observers.nvml").get_idle_power
        assert 30 < idle(0) < 80


@given(st.permutations([0, 1, 2]), st.booleans())
def test_configurations_are_ordered_by_the_parameter_in_which_they_differ_from_the_first(
    order: list[int], shuffled: bool
) -> None:
    space = Searchspace({"a": [1, 2], "b": [1.5, 2.5], "c": ["x", "y", "z"]}, None, 1024)
    ordered = space.order_param_configs(space.list, order, randomize_in_params=shuffled)
    assert sorted(ordered) == sorted(space.list)
    differs = [[each[place] != ordered[0][place] for place in order].index(True) for each in ordered[1:]]
    assert differs == sorted(differs)
    for wrong in ([0, 1], [0, 1, 2, 2], [0, 1, 3]):
        with pytest.raises(InputError, match="every parameter once"):
            space.order_param_configs(space.list, wrong)
