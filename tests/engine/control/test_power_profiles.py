"""Workload power profiles of newer boards: read, requested through the helper, and put back; refused where none are.

That they are put back however the helper or a connection ends is tested with the clocks: `test_helper.py` and
`test_remote_control.py` set all three on a board that has them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from boards import NOT_SUPPORTED, StandIn
from fixtures.helper_process import Process

from app.base.errors import InputError
from app.cli import main
from app.engine.control.guard import DeviceGuard
from app.engine.control.helper.policy import Policy
from app.engine.control.left_over import left_over
from app.engine.control.profiles import profiles_of, save_profile
from app.engine.formats.nvidia_smi import board_script, clock_unit, service_unit
from app.engine.space.device_settings import resolve_device_settings
from app.engine.specification.check import specification_of
from app.sensors.gpu import NotSupported
from app.sensors.nvml.gpu import NvmlGpu
from app.sensors.power_profiles import profile_name
from app.sensors.select import open_gpu

Boards = Callable[..., StandIn]
Opened = Callable[..., NvmlGpu]
MAX_Q, LLM_INFERENCE, NETWORK, BALANCED = 1, 6, 4, 5  # the stand-in has all of these but NETWORK
BEFORE = 1 << BALANCED  # what another program has requested


def guard_of(gpu: NvmlGpu) -> DeviceGuard:
    return DeviceGuard(gpu, allow_control=True)


def test_a_board_reports_its_profiles_and_which_are_in_force(boards: Boards, opened: Opened) -> None:
    stand_in = boards("b200")
    stand_in.boards[0].requested = 0b100011  # Max-P and Max-Q exclude each other
    found = opened().power_profiles()
    assert [each.name for each in found.supported.values()] == [
        *("max_p", "max_q", "compute", "memory_bound", "balanced", "llm_inference")
    ]
    assert list(found.supported) == [0, 1, 2, 3, 5, 6]
    assert found.supported[0].conflicts == (1,)
    assert found.supported[2].conflicts == ()
    assert found.requested == (0, 1, 5)
    assert found.enforced == (0, 5)
    assert profile_name(200) == "profile_200"


@pytest.mark.parametrize("missing", [(), ("nvmlDeviceWorkloadPowerProfileGetProfilesInfo",)])
def test_a_board_or_a_driver_without_them_is_refused_in_one_line(
    missing: tuple[str, ...], with_rights: Boards, opened: Opened
) -> None:
    stand_in = with_rights("b200" if missing else "h200", missing=missing)
    gpu, before = opened(), stand_in.settings()
    with pytest.raises(NotSupported):
        gpu.power_profiles()
    with guard_of(gpu) as guard, pytest.raises(NotSupported, match="no workload power profiles"):
        guard.apply(workload_power_profile=MAX_Q)
    guard.close()
    with pytest.raises(InputError, match="no workload power profiles"):
        resolve_device_settings({"workload_power_profile": "supported"}, gpu)
    assert stand_in.settings() == before
    assert stand_in.calls() == []


@pytest.mark.parametrize("board", ["simulated:a100", "simulated:rtx5090"])
def test_twins_say_that_they_have_none(board: str) -> None:
    gpu = open_gpu(board)
    with DeviceGuard(gpu) as guard, pytest.raises(NotSupported, match="simulated boards have no workload power"):
        guard.apply(workload_power_profile=MAX_Q)
    with pytest.raises(InputError, match="simulated boards have no workload power profiles"):
        resolve_device_settings({"workload_power_profile": ("max_q",)}, gpu)


def test_one_is_requested_in_place_of_others_and_those_come_back(with_either_right: Boards, opened: Opened) -> None:
    stand_in = with_either_right("b200")
    before = stand_in.settings()
    with guard_of(opened()) as guard:
        guard.apply(workload_power_profile=MAX_Q, power_limit_w=400.0)
        assert stand_in.settings() == {**before, "requested": 1 << MAX_Q, "limit": 400_000}
        assert guard.prior == {"workload_power_profile": BALANCED, "power_limit_w": 950.0}
        seen = guard.watch()
        assert seen.obeyed, seen.message
        assert seen.observed["workload_power_profile"] == MAX_Q
        with guard.nested() as inner:
            inner.apply(workload_power_profile=LLM_INFERENCE)
            assert stand_in.settings()["requested"] == 1 << LLM_INFERENCE
        assert stand_in.settings()["requested"] == 1 << MAX_Q
        guard.apply(workload_power_profile=-1)  # none at all
        assert stand_in.settings()["requested"] == 0
        found = left_over(stand_in.uuids[0])
        assert found is not None
        assert found.prior["workload_power_profile"] == BALANCED
    assert stand_in.settings() == before
    guard.close()
    assert left_over(stand_in.uuids[0]) is None


def test_what_another_program_takes_away_is_seen(with_rights: Boards, opened: Opened) -> None:
    stand_in = with_rights("b200")
    with guard_of(opened()) as guard:
        guard.apply(workload_power_profile=MAX_Q)
        stand_in.boards[0].requested = 0
        assert guard.unmet() == "not obeyed: the workload power profile is none instead of 1"
    assert stand_in.settings()["requested"] == BEFORE
    guard.close()


def test_one_that_is_confirmed_stays_until_everything_is_put_back(with_rights: Boards, opened: Opened) -> None:
    stand_in = with_rights("b200")
    stand_in.boards[0].requested = 0b100100  # two at once
    with guard_of(opened()) as guard:
        guard.apply(workload_power_profile=MAX_Q)
        guard.confirm()
        guard.close()
    assert stand_in.settings()["requested"] == 1 << MAX_Q
    found = left_over(stand_in.uuids[0])
    assert found is not None
    assert found.differences(opened()) == ["workload power profile 1, several before"]
    again = guard_of(opened())
    again.restore_prior()
    again.close()
    assert stand_in.settings()["requested"] == 0b100100


def test_the_helper_requests_none_but_those_of_the_board(boards: Boards, helper: Callable[..., Process]) -> None:
    stand_in = boards("b200")
    process = helper(stand_in)
    for value in (NETWORK, 254, 255, -2, 1.5, "1", True, [1]):
        error = process.ask("set", settings={"workload_power_profile": value})["error"]
        assert error["kind"] == "refused", value
    assert stand_in.calls() == []
    stand_in.fault("nvmlDeviceWorkloadPowerProfileSetRequestedProfiles", NOT_SUPPORTED, times=1)
    reply = process.ask("set", settings={"workload_power_profile": MAX_Q})
    assert reply["error"]["kind"] == "not_supported"
    process.end()
    assert stand_in.settings()["requested"] == BEFORE  # it had been cleared half way


def test_a_guard_names_what_there_is(with_rights: Boards, opened: Opened) -> None:
    with_rights("b200")
    with guard_of(opened()) as guard, pytest.raises(InputError, match="no profile 4") as refused:
        guard.apply(workload_power_profile=NETWORK)
    assert "none (-1), max_p (0)" in refused.value.remedy
    guard.close()


def test_they_are_a_dimension_of_a_space_by_name_or_number(boards: Boards, opened: Opened, tmp_path: Path) -> None:
    boards("b200")
    described = {"parameters": {"x": [1]}, "device_settings": {"workload_power_profile": ["none", "Max-Q", 6]}}
    spec = specification_of(described, tmp_path / "a.toml")
    values, notes = resolve_device_settings(spec.device_settings, opened())
    assert values == {"workload_power_profile": (-1, MAX_Q, LLM_INFERENCE)}
    assert notes == ("workload power profiles: -1 is none, 1 is max_q, 6 is llm_inference",)
    all_of_them, _ = resolve_device_settings({"workload_power_profile": "supported"}, opened())
    assert all_of_them == {"workload_power_profile": (-1, 0, 1, 2, 3, 5, 6)}
    for wrong in ([], [1.5], [255], [True], {"points": 3}):
        document = {"parameters": {"x": [1]}, "device_settings": {"workload_power_profile": wrong}}
        with pytest.raises(InputError, match="workload_power_profile"):
            specification_of(document, tmp_path / "a.toml")
    with pytest.raises(InputError, match="no profile turbo"):
        resolve_device_settings({"workload_power_profile": ("turbo",)}, opened())


def test_a_profile_is_kept_with_other_settings_and_not_written_to_units(boards: Boards, opened: Opened) -> None:
    boards("b200")
    gpu = opened()
    save_profile(gpu.info.name, "quiet", {"workload_power_profile": -1.0, "power_limit_w": 300.0})
    assert profiles_of(gpu.info.name)["quiet"] == {"workload_power_profile": -1.0, "power_limit_w": 300.0}
    settings = {"workload_power_profile": 1.0, "power_limit_w": 300.0}
    for write in (
        lambda: board_script(gpu, settings),
        lambda: clock_unit(gpu, settings),
        lambda: service_unit(gpu, settings, ["server"], "t"),
    ):
        with pytest.raises(NotSupported, match="not written to scripts and units"):
            write()


def test_the_commands_show_and_request_them(
    with_rights: Boards, opened: Opened, capsys: pytest.CaptureFixture[str]
) -> None:
    stand_in = with_rights("b200")
    assert main(["gpus", "--json"]) == 0
    [board] = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in board["workload_power_profiles"] if each["requested"]] == ["balanced"]
    assert main(["gpus", "--verbose"]) == 0
    assert "llm_inference" in capsys.readouterr().out
    words = ["apply", "--gpu", "0", "--workload-power-profile", "Max-Q", "--allow-control", "--countdown", "0.1"]
    assert main([*words, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["applied"] == {"workload_power_profile": MAX_Q}
    assert said["prior"] == {"workload_power_profile": BALANCED}
    assert stand_in.settings()["requested"] == BEFORE
    assert main([*words[:4], "turbo", "--allow-control"]) == 2


def test_a_policy_bounds_them_but_never_forbids_none() -> None:
    policy = Policy(ranges={"workload_power_profile": (1, 3)})
    assert policy.refuses({"workload_power_profile": 6})
    assert not policy.refuses({"workload_power_profile": 2})
    assert not policy.refuses({"workload_power_profile": -1})
    assert Policy(read_only=True).refuses({"workload_power_profile": -1})
