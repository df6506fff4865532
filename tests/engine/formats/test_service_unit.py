"""A service's systemd unit: the settings hold from its start to its end, and its command is the one that was given."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.base.errors import InputError
from app.base.paths import resources
from app.cli import main
from app.engine.formats.nvidia_smi import SMI, service_unit
from app.sensors.clock import VirtualClock
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin

SETTINGS = {"power_limit_w": 450.0, "memory_clock_mhz": 7001.0, "graphics_clock_mhz": 1635.0}
GPU = SimulatedGpu(load_twin("rtx5090"), clock=VirtualClock())


def lines(unit: str, key: str) -> list[str]:
    return [line.partition("=")[2] for line in unit.splitlines() if line.startswith(f"{key}=")]


def test_every_setting_that_is_made_before_the_start_is_taken_back_after_the_end() -> None:
    unit = service_unit(GPU, SETTINGS, ["/opt/server", "--port", "8000"], "my model")
    made, back = lines(unit, "ExecStartPre"), lines(unit, "ExecStopPost")
    assert [line.split(" -i ")[1].split(" ", 1)[1] for line in made] == ["-pl 450", "-lmc 7001,7001", "-lgc 1635,1635"]
    assert [line.split(" -i ")[1].split(" ", 1)[1] for line in back] == ["-rgc", "-rmc", "-pl 600"]
    assert all(line.startswith(f"+{SMI} -i {GPU.info.uuid} ") for line in made + back)
    assert lines(unit, "ExecStart") == ["/opt/server --port 8000"]
    assert "User" not in [line.partition("=")[0] for line in unit.splitlines()]  # root's rights are those lines' alone


def test_boards_that_serve_together_are_all_set_and_all_taken_back() -> None:
    other = SimulatedGpu(load_twin("h200"), clock=VirtualClock())
    unit = service_unit(GPU, {"graphics_clock_mhz": 1635.0}, ["/opt/server"], "t", [other])
    both = [f"+{SMI} -i {gpu.info.uuid}" for gpu in (GPU, other)]
    assert lines(unit, "ExecStartPre") == [f"{smi} -lgc 1635,1635" for smi in both]
    assert lines(unit, "ExecStopPost") == [f"{smi} -rgc" for smi in both]


@given(st.lists(st.text(st.characters(exclude_categories=("C", "Z")), min_size=1), min_size=1, max_size=4))
def test_a_word_stays_one_word_and_expands_to_nothing(words: list[str]) -> None:
    words = ["/opt/server", *words]
    [line] = lines(service_unit(GPU, SETTINGS, words, "t"), "ExecStart")
    assert "\n" not in line
    undone = line.replace("%%", "%").replace("$$", "$")
    assert not re.search(r"(?<!\$)\$(?!\$)", line)
    assert not re.search(r"(?<!%)(%%)*%(?!%)", line)
    if not any(set(word) & set("'\"\\") for word in words):  # what a shell's rules and systemd's have in common
        assert shlex.split(undone, comments=False) == words


def test_a_command_with_a_control_character_is_refused() -> None:
    with pytest.raises(InputError, match="control character"):
        service_unit(GPU, SETTINGS, ["server", "a\nExecStartPre=+/bin/sh"], "t")


@pytest.mark.parametrize("program", ["+server", "-server", "!server", "@server", ":server", "|server"])
def test_a_program_that_systemd_would_give_more_than_its_name_is_refused(program: str) -> None:
    with pytest.raises(InputError, match="begins with a sign"):
        service_unit(GPU, SETTINGS, [program], "t")


def test_a_title_cannot_leave_its_line() -> None:
    unit = service_unit(GPU, SETTINGS, ["server"], "x\nExecStartPre=+/bin/sh")
    assert not any("/bin/sh" in line for line in lines(unit, "ExecStartPre"))


def test_apply_writes_the_unit_of_a_sessions_service(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (resources() / "examples" / "services" / "rtx5090_clocks.toml").read_text()
    text = re.sub(r"(?m)^concurrency = \[.*", "concurrency = 4", text)
    text = re.sub(r"(?m)^graphics_clock_mhz = .*", "graphics_clock_mhz = [1635, 3090]", text)
    text = re.sub(r"(?m)^memory_clock_mhz = .*", "memory_clock_mhz = 14001", text)
    text = re.sub(r"(?m)^power_limit_w = .*", "power_limit_w = 600", text)
    specification = tmp_path / "model.toml"
    specification.write_text(text)
    assert main(["tune", str(specification), "--gpu", "simulated:rtx5090", "--speed", "inf", "--json"]) == 0
    session = json.loads(capsys.readouterr().out)["session"]
    assert main(["apply", "--session", str(session), "--out", str(tmp_path / "out"), "--json"]) == 0
    files = {Path(file).name for file in json.loads(capsys.readouterr().out)["files"]}
    assert files == {"wattridge-clocks.sh", "wattridge-clocks.service", "model-service.service"}
    unit = (tmp_path / "out" / "model-service.service").read_text()
    [start] = lines(unit, "ExecStart")
    assert start.endswith("serve gemma-31b --port 8000")
    assert any("-lgc 1635,1635" in line for line in lines(unit, "ExecStartPre"))
