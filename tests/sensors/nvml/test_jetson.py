"""A Jetson under JetPack 6 or newer: NVML knows its name and nothing else, and Linux knows its clock.

What NVML refuses there: HazyResearch/intelligence-per-watt#40 (power, energy, limit, temperature, utilisation, memory,
clocks) and anduril/jetpack-nixos#371 (`nvidia-smi` 540.4.0); that its UUID has no `GPU-` before it: pytorch#167304.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from fixtures.commands import run
from fixtures.gpu_conformance import GpuConformance, value
from fixtures.jetson_board import UUID, jetson, jetson_library
from fixtures.jetson_trees import HEAT, NEWER_HEAT, ORIN_CLOCKS, XAVIER_CLOCKS, XAVIER_MHZ, XAVIER_NX, Tree, lay

from app.cli import main
from app.engine.metering.power_source import find_sensor
from app.sensors import select
from app.sensors.meters import ina
from app.sensors.nvml import gpu as nvml_gpu
from app.sensors.nvml.devfreq import integrated_gpu
from app.sensors.nvml.gpu import NvmlGpu


class TestJetson(GpuConformance):
    @pytest.fixture
    def gpu(self, tmp_path: Path) -> Iterator[NvmlGpu]:
        gpu = jetson(lay(tmp_path, ORIN_CLOCKS))
        yield gpu
        gpu.close()

    def test_after_a_second_it_reports_its_power_and_clock_and_no_power_is_zero(self, gpu: NvmlGpu) -> None:
        """It has no power to report."""
        assert 50 < value(gpu, gpu.read(), "graphics_clock_mhz") < 5000


@pytest.mark.parametrize("tree", [ORIN_CLOCKS, XAVIER_CLOCKS])
def test_its_clock_its_clocks_and_its_load_are_those_of_devfreq(tree: Tree, tmp_path: Path) -> None:
    gpu = jetson(lay(tmp_path, tree))
    reading = gpu.read()
    assert value(gpu, reading, "graphics_clock_mhz") == 905.25
    assert value(gpu, reading, "utilisation_percent") == 64.0
    assert gpu.graphics_clocks_mhz() == tuple(round(mhz) for mhz in XAVIER_MHZ)
    gpu.close()


@pytest.mark.parametrize("tree", [HEAT, NEWER_HEAT])
def test_its_temperature_is_that_of_its_thermal_zone(tree: Tree, tmp_path: Path) -> None:
    gpu = jetson(lay(tmp_path, ORIN_CLOCKS, tree))
    assert value(gpu, gpu.read(), "temperature_c") == 47.5
    gpu.close()
    cold = jetson(lay(tmp_path / "without", ORIN_CLOCKS))
    assert math.isnan(value(cold, cold.read(), "temperature_c"))
    cold.close()


def test_nothing_is_called_its_watts_and_the_reason_is_said(tmp_path: Path) -> None:
    gpu = jetson(lay(tmp_path, ORIN_CLOCKS))
    assert gpu.info.power_source.startswith("none: NVML reports no power of this board: ")
    assert gpu.info.power_source.endswith("--meter ina")
    powers = [v for c, v in zip(gpu.channels, gpu.read().values, strict=True) if c.unit in ("W", "J")]
    assert all(map(math.isnan, powers))
    assert find_sensor(gpu, None, buffered=False) is None
    gpu.close()


def test_a_board_that_lacks_a_clock_elsewhere_has_no_devfreq(tmp_path: Path) -> None:
    gpu = jetson(lay(tmp_path, {"class/devfreq/fb000000.gpu/cur_freq": "300000000"}))  # of another maker
    assert math.isnan(value(gpu, gpu.read(), "graphics_clock_mhz"))
    assert gpu.graphics_clocks_mhz() == ()
    assert "--meter" not in gpu.info.power_source
    gpu.close()


@pytest.fixture
def on_a_jetson(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The board that commands find here; its folder /sys."""
    library, sysfs = jetson_library(), lay(tmp_path, ORIN_CLOCKS, XAVIER_NX)
    opened, meter = NvmlGpu, ina.Ina(sysfs=sysfs)
    monkeypatch.setattr(select, "real_boards", lambda: [(0, UUID, "Orin (nvgpu)")])
    board = partial(opened, library=library, sysfs=sysfs)
    monkeypatch.setattr(nvml_gpu, "NvmlGpu", lambda index, **_: board(index, voltage=None))
    monkeypatch.setattr(ina, "Ina", lambda rail: meter)
    return sysfs


def test_it_is_the_first_board_and_listed_with_the_reason_why_it_has_no_power(
    on_a_jetson: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gpu = select.open_gpu(None)
    assert gpu.info.uuid == UUID
    gpu.close()
    _, [listed] = run(capsys, "gpus")
    assert (listed["name"], listed["graphics_clocks_mhz"]["max"]) == ("Orin (nvgpu)", 1377)
    assert "NVML reports no power of this board" in listed["power_source"]


def test_a_program_has_the_energy_of_the_module_and_none_of_the_board(
    on_a_jetson: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.engine.metering.watching.LINGER_S", 0.2)
    program = (sys.executable, "-c", "import time; time.sleep(0.5)")
    assert main(["measure", "--json", "--gpu", UUID, "--meter", "ina", "--", *program]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["energy_j"] is None
    assert found["meters"]["ina"]["mean_power_w"] == pytest.approx(10.0)
    assert "all of the module" in str(found["meters"]["ina"])


def test_a_program_is_tuned_for_the_energy_of_the_module(
    on_a_jetson: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    spec = tmp_path / "rest.toml"
    spec.write_text(
        f"""
[command]
run = "{sys.executable} -c 'import time; time.sleep({{seconds}})'"
[parameters]
seconds = [0.3, 0.6]
[objective]
minimise = "energy_j"
[search]
strategy = "brute_force"
"""
    )
    status, found = run(capsys, "tune", str(spec), "--gpu", UUID, "--meter", "ina", "--energy-from", "ina")
    assert status == 0
    best = found["best"]
    assert best["configuration"]["seconds"] == 0.3
    assert best["values"]["energy_j"] == pytest.approx(10.0 * best["values"]["time_s"])
    assert "power_board_w" not in best["values"]


def test_before_jetpack_6_the_board_is_named_though_no_library_reports_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = integrated_gpu(lay(tmp_path, XAVIER_CLOCKS))
    monkeypatch.setattr("app.commands.watch.integrated_gpu", lambda: found)
    monkeypatch.setattr(select, "real_boards", list)
    monkeypatch.setattr(select, "amd_boards", list)
    assert main(["gpus"]) == 0
    said = capsys.readouterr()
    assert "This is a Jetson" in said.out + said.err
    assert "905 MHz" in said.out + said.err
