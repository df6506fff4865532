"""The first runs of the guide: each takes at most three commands, and they give the answer that it names."""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fixtures.cuda_bench import SteadySensors
from fixtures.stand_in_torch import Device
from fixtures.stand_in_torch import stand_in as torch_stand_in
from fixtures.stand_in_triton import Config

import app
from app.base.paths import resources
from app.cli import main
from tests.commands.test_profiled_programs import STAND_IN

PAGE = (resources() / "guide" / "first-runs.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))


def commands(user: str) -> list[str]:
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", SECTIONS[user], re.MULTILINE | re.DOTALL)
    return [line for language, block in blocks if not language for line in block.splitlines() if line]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the user's, where `python` is this one."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(line: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What a command of the page prints."""
    words = shlex.split(line)
    assert words[0] == "wattridge"
    assert main(words[1:]) == 0
    return capsys.readouterr().out


def test_each_is_from_nothing_to_an_answer_in_three_commands_at_most() -> None:
    assert len(SECTIONS) == 5
    for user in SECTIONS:
        assert 2 <= len(commands(user)) <= 3
        assert commands(user)[0].startswith("pip install ")


def test_a_triton_developer_gets_the_configuration_of_the_least_energy(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    device = Device()
    torch = torch_stand_in(device)
    torch.randn = torch.empty_like = lambda *_, **__: None

    def launched(num_warps: int) -> None:
        device.launch(0.05 * {1: 4, 2: 2, 4: 1, 8: 3}[num_warps])

    def autotune(configs: list[Config], key: list[str], do_bench: Any) -> Any:
        def tuned(_: Any) -> Any:
            class Tuned:
                def __getitem__(self, _grid: object) -> Any:
                    def call(*_: object, **__: object) -> None:
                        benched = {c: do_bench(lambda c=c: launched(c.num_warps), quantiles=(0.5,)) for c in configs}
                        self.best_config = min(benched, key=benched.__getitem__)

                    return call

            return Tuned()

        return tuned

    language = SimpleNamespace(constexpr=int)
    triton = SimpleNamespace(autotune=autotune, jit=lambda f: f, Config=Config, language=language, __name__="triton")
    names = {"torch": torch, "triton": triton, "triton.language": language}
    names |= {"wattridge": app, "wattridge.triton": app.triton}
    for name, module in names.items():
        monkeypatch.setitem(sys.modules, name, module)
    (script,) = re.findall(r"^```python\n(.*?)^```", SECTIONS["A Triton developer"], re.MULTILINE | re.DOTALL)
    named = script.replace("within=0.03)", "within=0.03, gpu=BOARD, target=0.2)")
    assert named != script
    exec(compile(named, "softmax.py", "exec"), {"BOARD": SteadySensors()})  # noqa: S102
    assert "num_warps: 4" in capsys.readouterr().out


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="programs are watched on Linux")
def test_a_pytorch_user_learns_what_a_step_takes_and_where(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WATTRIDGE_GPU", "simulated:h200")
    (here / "train.py").write_text("import time\ntime.sleep(1)\n", encoding="utf-8")
    _, measured, profiled = commands("A PyTorch user")
    output = run(measured, capsys)
    assert re.search(r"Energy +\d[\d.]* J", output)
    assert "NVIDIA H200 (simulated)" in output
    (here / "train.py").write_text("import sys; sys.argv += ['150', 'ends']\n" + STAND_IN, encoding="utf-8")
    output = run(profiled, capsys)
    assert "gemm" in output
    assert "softmax" in output
    assert "simulated" in output
    assert "`wattridge profile h200-training`" in SECTIONS["A PyTorch user"]
    assert "H200" in run("wattridge profile h200-training", capsys)


def test_on_a_server_without_root_a_job_is_measured_and_doctor_says_what_may_be_done(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WATTRIDGE_GPU", "simulated:a100")
    (here / "job").write_text("#!/bin/sh\nsleep 0.5\n", encoding="utf-8")
    (here / "job").chmod(0o755)
    _, doctor, measured = commands("On a server without root")
    assert "Helper for settings" in run(doctor, capsys)
    assert re.search(r"Energy +\d[\d.]* J \(", run(measured, capsys))  # with its interval


def test_a_workstations_twin_gives_a_configuration_to_take_away(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, tune, export = commands("A workstation with a GeForce board")
    output = run(tune, capsys)
    assert "GeForce RTX 4090" in output
    assert "simulated" in output
    assert "less energy" in output
    run(export, capsys)
    assert {"sgemm.h", "sgemm.json", "sgemm-clocks.sh"} <= {path.name for path in (here / "chosen").iterdir()}


def test_somebody_with_only_a_log_gets_its_energy_and_a_clock(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seconds = (f"2026/01/01 00:{s // 60:02d}:{s % 60:02d}.000, {100 + s % 2}.00 W" for s in range(120))
    (here / "power.csv").write_text("\n".join(("timestamp, power.draw [W]", *seconds)), encoding="utf-8")
    clocks = range(400, 1500, 100)
    points = (f"{clock},{60 + 0.05 * clock * max(1, clock / 900) ** 2:.1f},{1e6 / clock:.1f}" for clock in clocks)
    (here / "sweep.csv").write_text("\n".join(("clock_mhz,power_w,time_ms", *points)), encoding="utf-8")
    _, analyse, fit = commands("Somebody with only a log")
    assert re.search(r"119(60|59|58|61)|11\.9", run(analyse, capsys))  # 119 s at 100.5 W
    output = run(fit, capsys)
    recommended = re.search(r"[Rr]ecommended.*?(\d+) MHz", output)
    assert recommended is not None
    assert int(recommended[1]) in clocks
