"""The recipes of services: each is a specification, says where it was run, and the one for a twin runs on it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.base.paths import resources
from app.cli import main
from app.engine.session.load import load_specification
from app.sensors.service import service_trace
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin

FOLDER = resources() / "examples" / "services"
RECIPES = sorted(FOLDER.glob("*.toml"))


def test_there_is_a_recipe_for_each_of_the_usual_servers() -> None:
    assert {path.stem for path in RECIPES} >= {"vllm", "llama_cpp", "sglang", "tgi", "ollama", "plain_http"}
    guide = (resources() / "guide" / "serving.md").read_text()
    assert all(f"`{path.name}`" in guide for path in RECIPES)


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_is_a_service_with_a_goal_and_a_limit_and_says_whether_it_was_run(path: Path) -> None:
    spec = load_specification(path)
    assert spec.service is not None
    assert spec.objective is not None
    assert spec.limits
    head = " ".join(line.lstrip("# ") for line in path.read_text().splitlines() if line.startswith("#"))
    assert "Not run by this project" in head or "Run by this project" in head


def test_the_recipe_of_a_twin_runs_on_it_without_any_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # no server is there
    text = (FOLDER / "rtx5090_clocks.toml").read_text()
    small = tmp_path / "small.toml"
    few = {"concurrency": "[4, 5]", "graphics_clock_mhz": "[1635, 3090]", "memory_clock_mhz": "14001"}
    for name, values in {**few, "power_limit_w": "600"}.items():
        line = next(line for line in reversed(text.splitlines()) if line.startswith(f"{name} ="))
        text = text.replace(f"{line}\n", f"{name} = {values}\n")
    small.write_text(text)
    assert main(["tune", str(small), "--gpu", "simulated:rtx5090", "--speed", "inf", "--json"]) == 0
    tuned = json.loads(capsys.readouterr().out)
    assert tuned["source"] == "simulated"
    seen = service_trace(SimulatedGpu(load_twin("rtx5090")).info)  # what the window would have drawn
    assert seen is not None
    assert seen.appended >= 4 * 10  # a second each, of windows of 10 s at least
    assert tuned["evaluated"] == 6  # at two loads: two clocks, untouched
    assert tuned["best"]["values"]["tpot_p95_s"] <= 0.02
    assert main(["analyse", str(tuned["session"]), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    levels = found["over_load"]["levels"]
    assert [level["measured"] for level in levels] == [3, 3]
    assert all(level["energy_change"] < -0.1 for level in levels)  # locking saves on this board
    assert any("assumed" in note for note in found["notes"])
