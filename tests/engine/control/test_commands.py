"""The whole way without a window: tune over clocks and parameters, apply what was found, see it obeyed, restore."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import program
import pytest
from boards import StandIn
from stand_in_cuda import LOCKED_SPEED

from app.base.errors import PermissionRefused
from app.base.paths import resources
from app.cli import main
from app.engine.control.guard import DeviceGuard
from app.engine.control.helper import record
from app.engine.control.profiles import save_profile
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_resume, plan_specification
from app.engine.store.database import Store
from app.sensors.nvml.gpu import NvmlGpu
from app.sensors.nvml.library import LIBRARY

Boards = Callable[..., StandIn]
SPECIFICATION = """
[kernel]
name = "scale"
source = "scale.cu"
problem_size = ["n"]
grid_divisors = { x = ["block_size_x"] }
arguments = [
    { name = "y", type = "float32", shape = ["n"], output = true },
    { name = "x", type = "float32", shape = ["n"], fill = "random" },
]
verify = { reference = "factor * x", rtol = 1e-6 }
[constants]
n = 1000
factor = 2
[parameters]
block_size_x = [64]
[device_settings]
graphics_clock_mhz = [900, 1800]
power_limit_w = [560, 690]
[objective]
minimise = "energy_j"
[search]
strategy = "brute_force"
"""


@pytest.fixture
def specification(tmp_path: Path) -> Path:
    (tmp_path / "scale.cu").write_text("// what the compiler that is not there reads are the defines\n")
    path = tmp_path / "scale.toml"
    path.write_text(SPECIFICATION)
    return path


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """`run("apply", ...)`: the command in this process, kernels on the stand-in's boards; status, document, errors."""
    from app.engine.metering import meter
    from app.engine.runner.cuda import language

    replaced = (
        (language, "require_cuda"),
        (language, "open_cuda"),
        (language, "look_once"),
        (meter, "WARM_STEP_S"),
    )
    for module, name in replaced:
        monkeypatch.setattr(module, name, getattr(module, name))  # as it is, to be put back
    program.install()

    def command(*words: str) -> tuple[int, Any, str]:
        LIBRARY.close()
        status = main([*words, "--json"])
        output = capsys.readouterr()
        return status, json.loads(output.out), output.err

    return command


def test_tune_apply_obeyed_restore(with_rights: Boards, run: Callable[..., Any], specification: Path) -> None:
    stand_in = with_rights("h200")
    before = stand_in.settings()
    specification.write_text(SPECIFICATION.replace("[64]", "[64, 128]"))
    status, tuned, said = run("tune", str(specification), "--gpu", "0", "--allow-control")
    assert status == 0, said
    assert (tuned["evaluated"], tuned["failed"]) == (10, {})  # two block sizes; two clocks, two limits; untouched
    assert tuned["source"] == "nvml"
    assert "restoring will unlock" in said
    assert stand_in.settings() == before
    clocks = [call.a for call in stand_in.calls() if call.function == "nvmlDeviceSetGpuLockedClocks"]
    assert clocks == [900, 1800]  # each once
    limits = [call.a for call in stand_in.calls() if call.function == "nvmlDeviceSetPowerManagementLimit"]
    assert len(limits) == 4  # two, the other one after the new clock, and the prior one
    chosen = tuned["best"]["configuration"]
    stand_in.work(30.0)
    status, applied, _ = run("apply", "--session", str(tuned["session"]), "--gpu", "0", "--allow-control", "--keep")
    assert "error" not in applied, applied
    assert status == 0
    assert applied["applied"] == {name: chosen[name] for name in ("power_limit_w", "graphics_clock_mhz")}
    assert applied["prior"] == {"power_limit_w": 650.0, "graphics_clock_mhz": None}
    assert applied["obeyed"]
    assert applied["observed"]["graphics_clock_mhz"] == chosen["graphics_clock_mhz"]
    status, [board], said = run("gpus")
    assert board["left_over"]["kept"] == applied["applied"]
    assert "wattridge restore" in said
    status, restored, _ = run("restore")
    assert status == 0
    assert restored["prior"] == applied["prior"]
    assert restored["obeyed"]
    assert stand_in.settings() == before
    status, nothing, said = run("restore")
    assert (status, nothing["prior"], nothing["message"]) == (0, {}, "nothing is left over")


def test_what_another_tool_has_set_since_it_was_kept_is_named_and_stays(
    with_rights: Boards, run: Callable[..., Any], specification: Path
) -> None:
    stand_in = with_rights("h200")
    _, _, said = run("apply", "--gpu", "0", "--power-limit", "400", "--allow-control", "--keep")
    assert "until a restart of the machine, or: wattridge restore" in said
    assert "the same command with --out FOLDER" in said
    _, _, said = run("gpus")
    assert "set and confirmed (power limit 400 W, 650 before)" in said
    stand_in.boards[0].limit = 500_000
    theirs = stand_in.settings()
    named = "power limit 500 W, set elsewhere since 400 W was kept: it stays"
    assert named in run("gpus")[2]
    status, tuned, said = run("tune", str(specification), "--gpu", "0", "--allow-control")
    assert (status, tuned["evaluated"]) == (0, 5), said
    assert stand_in.settings() == theirs
    assert "left_over" not in said
    run("apply", "--gpu", "0", "--power-limit", "400", "--allow-control", "--keep")
    stand_in.boards[0].limit = 500_000
    status, _, said = run("restore")
    assert (status, named in said) == (0, True)
    assert stand_in.settings() == theirs


def test_a_session_over_a_clock_that_another_tool_locked_needs_the_users_word(
    with_rights: Boards, run: Callable[..., Any], specification: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.engine.control.outside.LOOK_S", 0.3)
    stand_in = with_rights("h200")
    board = stand_in.boards[0]
    board.lock[0] = board.lock[1] = board.from_mhz = board.to_mhz = 1200
    before = stand_in.settings()
    status, document, _ = run("tune", str(specification), "--gpu", "0", "--allow-control")
    assert (status, stand_in.settings()) == (1, before)
    assert "stands at 1200 MHz as if another tool had locked it" in document["error"]["what"]
    assert "--over-locks" in document["error"]["remedy"]
    with Store() as store:
        assert store.sessions() == []
    status, tuned, said = run("tune", str(specification), "--gpu", "0", "--allow-control", "--over-locks")
    assert (status, tuned["failed"]) == (0, {}), said
    assert stand_in.settings() == {**before, "lock": (0, 0)}


def test_after_a_restart_of_the_machine_nothing_is_left_over(with_rights: Boards, run: Callable[..., Any]) -> None:
    stand_in = with_rights("h200")
    run("apply", "--gpu", "0", "--power-limit", "400", "--clock", "1200", "--allow-control", "--keep")
    [path] = Path(record.FOLDER).glob(f"{stand_in.uuids[0]}.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), "boot": "another"}))
    board = stand_in.boards[0]
    board.limit, board.lock[0], board.lock[1] = board.limit_default, 0, 0
    found = stand_in.settings()
    _, [described], said = run("gpus")
    assert described["left_over"] is None
    assert "badly" not in said
    assert "before" not in said
    status, restored, _ = run("restore")
    assert (status, restored["message"]) == (0, "nothing is left over")
    status, _, said = run("apply", "--gpu", "0", "--clock", "900", "--allow-control", "--countdown", "0.1")
    assert status == 0
    assert "left over" not in said
    assert stand_in.settings() == found
    assert not path.exists()


@pytest.mark.parametrize("out", [False, True])
def test_settings_found_on_another_model_are_not_set(
    with_rights: Boards, run: Callable[..., Any], tmp_path: Path, out: bool
) -> None:
    """A simulated board of the same name is another model too."""
    stand_in = with_rights("h200")
    before = stand_in.settings()
    gemm = str(resources() / "examples" / "gemm.toml")
    _, tuned, said = run("tune", gemm, "--gpu", "simulated:h200", "--speed", "inf", "--max-evaluations", "2")
    assert "error" not in tuned, said
    more = ("--out", str(tmp_path / "out")) if out else ("--allow-control", "--keep")
    status, refused, _ = run("apply", "--session", str(tuned["session"]), "--gpu", "0", *more)
    assert status == 2
    assert "found on NVIDIA H200 (simulated)" in refused["error"]["what"]
    assert "graphics clock" in refused["error"]["remedy"]
    assert stand_in.settings() == before
    assert not (tmp_path / "out").exists()
    status, applied, _ = run("apply", "--session", str(tuned["session"]), "--gpu", "simulated:h200", "--keep")
    assert (status, applied["gpu"], applied["source"]) == (0, "NVIDIA H200", "simulated")


def test_without_allow_control_no_setter_is_reached(
    with_rights: Boards, run: Callable[..., Any], specification: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in = with_rights("h200")
    status, refused, _ = run("apply", "--gpu", "0", "--clock", "1200")
    assert status == 1
    assert "--allow-control" in refused["error"]["remedy"]
    monkeypatch.setenv("WATTRIDGE_READ_ONLY", "1")
    status, refused, _ = run("apply", "--gpu", "0", "--clock", "1200", "--allow-control")
    assert status == 1
    assert "WATTRIDGE_READ_ONLY=1" in refused["error"]["what"]
    status, tuned, said = run("tune", str(specification), "--gpu", "0", "--allow-control")
    assert (status, tuned["evaluated"]) == (0, 1)
    assert "stay as they are: WATTRIDGE_READ_ONLY=1" in said
    assert stand_in.calls() == []


def planned(specification: Path, gpu: NvmlGpu, *, allow_control: bool) -> tuple[set[str], str]:
    """The device settings that a session would vary, and what is said of the others."""
    guard = DeviceGuard(gpu, allow_control=allow_control)
    try:
        space = plan_specification(load_specification(specification), gpu, guard=guard).space
    finally:
        guard.close()
    return {p.name for p in space.parameters if p.device_setting}, " ".join(space.notes)


@pytest.mark.usefixtures("run")
def test_what_a_session_may_set_is_known_before_it_starts(
    with_rights: Boards, opened: Callable[..., NvmlGpu], specification: Path
) -> None:
    stand_in = with_rights("h200", "h200", "mig")
    stand_in.boards[1].has_limit = 0
    both = {"graphics_clock_mhz", "power_limit_w"}
    assert planned(specification, opened(0), allow_control=True)[0] == both
    settings, said = planned(specification, opened(0), allow_control=False)
    assert settings == set()
    assert "stay as they are: control is off" in said
    settings, said = planned(specification, opened(1), allow_control=True)
    assert settings == {"graphics_clock_mhz"}
    assert "power_limit_w stays as it is: this board does not let its power limit be set" in said
    specification.write_text(SPECIFICATION.replace("[560, 690]", "[300, 390]").replace("1800]", "1350]"))
    settings, said = planned(specification, opened(2), allow_control=True)
    assert settings == {"power_limit_w"}
    assert "graphics_clock_mhz stays as it is: the board is partitioned (MIG)" in said
    assert stand_in.calls() == []


@pytest.mark.usefixtures("run")
def test_a_session_over_clocks_is_not_gone_on_with_where_they_may_not_be_set(
    with_rights: Boards, opened: Callable[..., NvmlGpu], specification: Path
) -> None:
    with_rights("h200")
    gpu = opened()
    guard = DeviceGuard(gpu, allow_control=True)
    with Store() as store:
        session = store.create_session(plan_specification(load_specification(specification), gpu, guard=guard))
        guard.close()
        with pytest.raises(PermissionRefused, match="only looked at"):
            plan_resume(store, session, gpu=gpu)
        assert plan_resume(store, session, gpu=gpu, guard=guard).space.size == 5
    guard.close()


def test_unless_confirmed_everything_returns(with_rights: Boards, run: Callable[..., Any]) -> None:
    stand_in = with_rights("h200")
    before = stand_in.settings()
    words = ("--gpu", "0", "--clock", "900:1201", "--power-limit", "500", "--allow-control", "--countdown", "0.2")
    status, applied, said = run("apply", *words)
    assert (status, applied["kept"]) == (0, False)
    assert applied["applied"] == {"power_limit_w": 500, "graphics_clock_mhz": 1200}
    assert "lies between two supported clocks" in applied["message"]
    assert "as it was before" in said
    assert stand_in.settings() == before


def test_a_limit_that_the_running_load_cannot_reach_is_said(with_rights: Boards, run: Callable[..., Any]) -> None:
    stand_in = with_rights("h200")
    words = ("apply", "--gpu", "0", "--allow-control", "--countdown", "0.1", "--power-limit")
    _, idle, said = run(*words, "500")
    assert idle["limit_effect"] is None
    assert "without effect" not in said
    stand_in.boards[0].load_mw = 300_000
    stand_in.work(30.0)
    _, applied, said = run(*words, "500")
    assert "As the board runs now, a power limit of 500 W is without effect on this load" in said
    effect = applied["limit_effect"]
    assert (effect["limit_w"], effect["without_effect"], effect["binds"]) == (500.0, True, False)
    assert effect["peak_w"] == pytest.approx(83 + 300 * (1920 / 1980) ** 3, rel=0.01)
    _, held, said = run(*words, "250")
    assert held["limit_effect"]["binds"]
    assert "without effect" not in said


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("--clock", "2500"), "2500 MHz is outside"),
        (("--power-limit", "5000"), "5000 W is outside"),
        ((), "nothing to set"),
        (("--clock", "900:600"), "LOW:HIGH"),
        (("--clock", "nan"), "positive number"),
    ],
)
def test_what_makes_no_sense_is_an_input_error(
    words: tuple[str, ...], what: str, with_rights: Boards, run: Callable[..., Any]
) -> None:
    stand_in = with_rights("h200")
    status, refused, _ = run("apply", "--gpu", "0", "--allow-control", *words)
    assert status == 2
    assert what in refused["error"]["what"]
    assert stand_in.calls() == []


def test_a_configuration_that_is_not_obeyed_says_so(
    with_rights: Boards, run: Callable[..., Any], specification: Path
) -> None:
    stand_in = with_rights("h200")
    stand_in.boards[0].obeys, stand_in.boards[0].clamp = 0, 655_000
    specification.write_text(SPECIFICATION.replace("[560, 690]", "[645, 690]"))  # above what it draws
    status, tuned, _ = run("tune", str(specification), "--gpu", "0", "--allow-control", "--max-evaluations", "4")
    assert status == 0
    with Store() as store:
        table = store.load(tuned["session"]).table
    messages = {
        (m.configuration["graphics_clock_mhz"], m.configuration["power_limit_w"]): m.message
        for m in (table.measurement(at) for at in range(len(table)))
    }
    assert all("not obeyed: the clock runs at" in messages[900, limit_w] for limit_w in (645, 690))
    assert "the power limit is 655 W instead of 690" in messages[900, 690]
    assert "power limit" not in messages[900, 645]


def test_what_a_board_does_not_let_be_set_is_refused_with_the_reason(
    with_rights: Boards, run: Callable[..., Any]
) -> None:
    with_rights("h200", "laptop", "mig")
    _, [h200, laptop, mig], said = run("gpus")
    assert h200["cannot_set"].keys() == {"workload_power_profile"}  # as most boards
    assert laptop["cannot_set"].keys() == {"workload_power_profile", "power_limit_w", "memory_clock_mhz"}
    assert "does not let its power limit be set" in laptop["cannot_set"]["power_limit_w"]
    assert "Ampere" in laptop["cannot_set"]["memory_clock_mhz"]
    assert mig["cannot_set"].keys() == {"workload_power_profile", "memory_clock_mhz", "graphics_clock_mhz"}
    assert "NVIDIA RTX 2060 Laptop: the power limit cannot be set: this board does not let" in said


def test_the_settings_as_files_set_nothing(with_rights: Boards, run: Callable[..., Any], tmp_path: Path) -> None:
    stand_in = with_rights("h200")
    words = ("--gpu", "0", "--clock", "1200", "--power-limit", "500", "--out", str(tmp_path / "out"))
    status, output, _ = run("apply", *words)
    assert status == 0
    script, unit = (Path(file) for file in output["files"])
    assert subprocess.run(["/bin/sh", "-n", str(script)]).returncode == 0
    assert "-lgc 1200,1200" in script.read_text()
    text = unit.read_text()
    assert f"ExecStart=/usr/bin/nvidia-smi -i {stand_in.uuids[0]} -lgc 1200,1200" in text
    assert f"ExecStop=/usr/bin/nvidia-smi -i {stand_in.uuids[0]} -pl 700" in text
    assert stand_in.calls() == []


def test_a_profile_that_was_kept_in_the_window_is_applied_by_its_name(
    with_rights: Boards, run: Callable[..., Any]
) -> None:
    stand_in = with_rights("h200")
    save_profile("NVIDIA H200", "night", {"graphics_clock_mhz": (900.0, 1200.0), "power_limit_w": 300.0})
    apply = ("apply", "--gpu", "0", "--allow-control", "--keep", "--profile")
    status, applied, said = run(*apply, "night", "--power-limit", "400")
    assert status == 0, said
    assert applied["applied"] == {"graphics_clock_mhz": 1200, "power_limit_w": 400}  # what is named goes before
    assert stand_in.settings()["lock"] == (900, 1200)
    run("restore")
    status, refused, _ = run(*apply, "noon")
    assert status == 2
    assert "night" in refused["error"]["remedy"]


def test_files_for_a_board_without_locks_set_its_application_clocks(
    with_rights: Boards, run: Callable[..., Any], tmp_path: Path
) -> None:
    with_rights("old")
    words = ("apply", "--gpu", "0", "--clock", "618", "--power-limit", "200", "--out", str(tmp_path))
    script, unit = (Path(file).read_text() for file in run(*words)[1]["files"])
    assert "smi -ac 2600,618" in script
    assert "smi -rac" in script
    assert "-i GPU-" in unit
    assert " -ac 2600,618\n" in unit
    assert " -rac\n" in unit
    assert "-lgc" not in script + unit


@pytest.mark.usefixtures("as_root")
def test_a_session_that_is_killed_leaves_nothing(boards: Boards, specification: Path, tmp_path: Path) -> None:
    stand_in = boards("h200")
    before = stand_in.settings()
    words = [sys.executable, program.__file__, "tune", str(specification), "--gpu", "0", "--allow-control"]
    environment = {**os.environ, **stand_in.environment(), "WATTRIDGE_DATA": str(tmp_path / "data")}
    nothing = subprocess.DEVNULL
    session = subprocess.Popen(words, env=environment, stdin=nothing, stdout=nothing, stderr=nothing)
    deadline = time.monotonic() + 30.0
    while stand_in.settings() == before:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    session.send_signal(signal.SIGKILL)
    session.wait(10)
    deadline = time.monotonic() + 6.0
    while stand_in.settings() != before:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_session_on_a_board_whose_memory_lock_costs_speed_recommends_against_the_lock(
    with_rights: Boards, run: Callable[..., Any], specification: Path, tmp_path: Path
) -> None:
    """The stand-in's RTX 5090 does 343.9 in place of 384.0 of the work with a locked memory clock, whichever it is."""
    stand_in = with_rights("rtx5090")
    before = stand_in.settings()
    clocks_and_limits = "graphics_clock_mhz = [900, 1800]\npower_limit_w = [560, 690]"
    specification.write_text(SPECIFICATION.replace(clocks_and_limits, "memory_clock_mhz = [7001, 14001]"))
    status, tuned, said = run("tune", str(specification), "--gpu", "0", "--allow-control")
    assert status == 0, said
    assert stand_in.settings() == before
    assert {call.a for call in stand_in.calls() if call.function == "nvmlDeviceSetMemoryLockedClocks"} == {7001, 14001}
    assert tuned["evaluated"] == 3  # two locks, and the board as it was found
    assert tuned["best"]["configuration"]["memory_clock_mhz"] == "untouched"
    _, analysed, _ = run("analyse", str(tuned["session"]))
    [lock] = analysed["own_state"]["locks"]
    assert lock["settings"] == {"memory_clock_mhz": 14001}
    assert lock["speed_change"] == pytest.approx(LOCKED_SPEED - 1, abs=0.02)
    assert lock["words"] == "locking the memory clock at 14001 MHz costs 10 % of the speed here: leave it untouched"
    status, refused, _ = run("apply", "--session", str(tuned["session"]), "--gpu", "0", "--allow-control")
    assert status == 2
    assert "there is nothing to set" in refused["error"]["what"]
    _, exported, _ = run("export", str(tuned["session"]), "--out", str(tmp_path / "out"))
    written = "".join(
        Path(file).read_text() for file in exported["files"] if Path(file).suffix in (".h", ".sh", ".json")
    )
    assert "leave it untouched" in written
