"""The rails of a Jetson: which there are, which is the total, and that no total is called more than it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fixtures import jetson_trees
from fixtures.jetson_trees import AGX_ORIN, AGX_ORIN_W, IIO, THOR, XAVIER_NX, Tree, lay
from fixtures.meter_conformance import MeterConformance

from app.base.errors import InputError
from app.sensors.gpu import SensorError
from app.sensors.meters import ina, select
from app.sensors.meters.ina import Ina, rails
from app.sensors.meters.meter import MeterLost, PowerMeter


class TestInputRail(MeterConformance):
    watts, off_w = 10.0, 0.01

    @pytest.fixture
    def meter(self, tmp_path: Path) -> PowerMeter:
        return Ina(sysfs=lay(tmp_path, XAVIER_NX))


class TestSumOfRails(MeterConformance):
    watts, off_w = sum(AGX_ORIN_W.values()), 0.01

    @pytest.fixture
    def meter(self, tmp_path: Path) -> PowerMeter:
        return Ina(sysfs=lay(tmp_path, AGX_ORIN))


def powers(meter: PowerMeter) -> dict[str, float]:
    _, power_w = meter.read()
    return {channel.name: watts for channel, watts in zip(meter.channels, power_w[0].tolist(), strict=True)}


@pytest.mark.parametrize(
    ("tree", "watts"),
    [
        (AGX_ORIN, AGX_ORIN_W),
        (XAVIER_NX, {"VDD_CPU_GPU_CV": 5.0, "VDD_IN": 10.0}),
        (IIO, {"VDD_IN": 4.321, "VDD_CPU_GPU": 1.2, "VDD_SOC": 0.9}),
        (THOR, {"VIN": 49.5}),
    ],
)
def test_each_rail_is_read_once_by_the_name_that_the_board_gives_it(
    tree: Tree, watts: dict[str, float], tmp_path: Path
) -> None:
    found = {rail.name: rail.watts() for rail in rails(lay(tmp_path, tree))}
    assert found == pytest.approx(watts)


def test_the_rail_in_front_of_the_module_is_the_total_and_the_others_stand_beside_it(tmp_path: Path) -> None:
    meter = Ina(sysfs=lay(tmp_path, IIO))
    assert powers(meter) == pytest.approx({"ina_w": 4.321, "ina_vdd_cpu_gpu_w": 1.2, "ina_vdd_soc_w": 0.9})
    assert meter.info.scope == "node"
    assert "all of the module" in meter.info.label


def test_where_no_rail_stands_in_front_their_sum_is_not_called_the_module(tmp_path: Path) -> None:
    meter = Ina(sysfs=lay(tmp_path, AGX_ORIN))
    assert powers(meter)["ina_w"] == pytest.approx(13.230474)
    assert meter.info.label == "sum of 4 rails, not the module"
    assert meter.info.scope == "host"
    assert meter.info.averaging_s == 0.02


def test_the_gpus_rail_is_not_the_program(tmp_path: Path) -> None:
    meter = Ina("VDD_GPU_SOC", lay(tmp_path, AGX_ORIN))
    assert powers(meter)["ina_w"] == pytest.approx(5.20131)
    assert list(powers(meter))[1:] == ["ina_vdd_cpu_cv_w", "ina_vin_sys_5v0_w", "ina_vddq_vdd2_1v8ao_w"]
    assert "all it feeds, not a program's share" in meter.info.label
    assert meter.info.scope != "board"


def test_an_unknown_rail_is_refused_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no rail 'VDD_MEM' .* sum, VIN"):
        Ina("VDD_MEM", lay(tmp_path, THOR))
    with pytest.raises(InputError, match="no monitor of a supply rail answers"):
        Ina(sysfs=tmp_path / "nothing")


def test_a_rail_that_is_switched_off_is_not_known_and_neither_is_a_sum_with_it(tmp_path: Path) -> None:
    meter = Ina(sysfs=lay(tmp_path, AGX_ORIN))
    (tmp_path / "class/hwmon/hwmon4/in2_input").unlink()
    found = powers(meter)
    assert np.isnan([found["ina_vddq_vdd2_1v8ao_w"], found["ina_w"]]).all()
    assert found["ina_vdd_gpu_soc_w"] == pytest.approx(5.20131)


def test_monitors_that_are_gone_are_lost_and_come_back(tmp_path: Path) -> None:
    meter = Ina(sysfs=lay(tmp_path, THOR))
    power = tmp_path / "class/hwmon/hwmon2/power1_input"
    power.write_text("no number\n")
    with pytest.raises(MeterLost):
        meter.read()
    with pytest.raises(SensorError, match="do not answer"):
        meter.reopen()
    power.write_text("50000000\n")
    meter.reopen()
    assert powers(meter) == pytest.approx({"ina_w": 50.0})


def test_what_is_here_is_listed_with_what_each_total_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = rails(lay(tmp_path, jetson_trees.XAVIER_NX))
    monkeypatch.setattr(ina, "rails", lambda: found)
    listed = {each.selector: each.label for each in select.find_meters() if each.selector.startswith("ina")}
    assert list(listed) == ["ina:VDD_IN", "ina:VDD_CPU_GPU_CV", "ina:sum"]
    assert "not the module" in listed["ina:sum"]
