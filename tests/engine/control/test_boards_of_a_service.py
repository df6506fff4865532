"""Boards that serve together: their joules add up, they are set alike, and all of them are put back."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from boards import NO_PERMISSION, StandIn

from app.base.errors import WattridgeError
from app.cli import main
from app.engine.control.guard import DeviceGuard, SeveralBoards
from app.engine.control.left_over import left_over
from app.engine.session.load import load_specification
from app.engine.session.service_boards import as_it_ran, boards_of_service
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin

Boards = Callable[..., StandIn]
SERVER = Path(__file__).parents[1] / "service_stand_in.py"


def written(folder: Path) -> Path:
    path = folder / "service.toml"
    path.write_text(f"""
[service]
start = "{sys.executable} -I -S {SERVER} {{free_port}}"
url = "http://127.0.0.1:{{free_port}}"
ready = "ready to serve"
least_s = 0.4
most_s = 0.8
precision = 0.5
client = {{ concurrency = "2", prompt_tokens = 5, output_tokens = 4 }}
[device_settings]
graphics_clock_mhz = [1200]
workload_power_profile = ["max_q"]
[objective]
minimise = "energy_per_token_j"
[search]
strategy = "brute_force"
""")
    return path


def test_a_service_on_two_boards_is_measured_set_and_put_back_as_one(
    with_rights: Boards, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stand_in = with_rights("b200", "b200")
    stand_in.boards[1].limit, stand_in.boards[1].requested = 700_000, 0  # another state before
    before = [stand_in.settings(at) for at in (0, 1)]
    path = written(tmp_path)
    assert main(["tune", str(path), "--gpu", "0,1", "--allow-control", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert [each["uuid"] for each in said["service_boards"]] == stand_in.uuids
    values = said["best"]["values"]
    assert values["power_w"] == pytest.approx(2 * 140, rel=0.05)
    shown = values["power_w"] / values["output_tokens_per_s"]  # of means that are taken in two ways
    assert values["energy_per_token_j"] == pytest.approx(shown, rel=0.02)
    set_on = {(call.function, call.board) for call in stand_in.calls() if call.a}
    for function in ("nvmlDeviceSetGpuLockedClocks", "nvmlDeviceWorkloadPowerProfileSetRequestedProfiles"):
        assert {(function, 0), (function, 1)} <= set_on
    assert [stand_in.settings(at) for at in (0, 1)] == before
    assert [left_over(uuid) for uuid in stand_in.uuids] == [None, None]
    origin = {"service_boards": json.dumps(said["service_boards"])}
    resumed = as_it_ran(load_specification(path), origin).service
    assert resumed is not None
    assert resumed.boards == ("1",)
    assert boards_of_service({}) == []


def test_where_one_board_refuses_the_other_is_put_back_too(
    with_rights: Boards, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stand_in = with_rights("b200", "b200")
    before = [stand_in.settings(at) for at in (0, 1)]
    stand_in.fault("nvmlDeviceSetGpuLockedClocks", NO_PERMISSION, board=1)
    assert main(["tune", str(written(tmp_path)), "--gpu", "0,1", "--allow-control", "--json"]) == 1
    assert "the driver refuses it to this user" in capsys.readouterr().out
    assert any(call.board == 0 and call.a == 1200 for call in stand_in.calls())
    assert [stand_in.settings(at) for at in (0, 1)] == before


class Stuck(DeviceGuard):
    def restore(self) -> None:
        super().restore()
        raise WattridgeError("it does not answer")


def test_one_that_cannot_be_put_back_does_not_keep_the_others_from_it() -> None:
    gpus = [SimulatedGpu(load_twin("a100")), SimulatedGpu(load_twin("h200"))]
    first, second = Stuck(gpus[0]), DeviceGuard(gpus[1])
    together = SeveralBoards(first, [second])
    assert together.apply(graphics_clock_mhz=1200.0)
    assert not together.apply(graphics_clock_mhz=1200.0)
    assert together.applied == {"graphics_clock_mhz": 1200.0}
    second.apply(graphics_clock_mhz=900.0)
    assert together.applied == {}
    assert together.settling_s == 0.0
    with pytest.raises(WattridgeError, match="does not answer"):
        together.restore()
    assert second.in_force == {}
