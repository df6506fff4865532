"""The plan that Tune makes of a specification is the one that `wattridge tune FILE` makes, key by key."""

from __future__ import annotations

import dataclasses
import threading
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from app.base.errors import WattridgeError
from app.base.paths import resources
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_specification
from app.engine.specification.check import _SEARCH_KEYS, _SECTIONS
from app.engine.specification.plan import SessionPlan
from app.sensors.gpu import Gpu
from app.sensors.select import open_gpu
from app.views.tune.draft import draft_of_file
from app.views.tune.session_form import SessionForm

EXAMPLES = sorted((resources() / "examples").rglob("*.toml"))
MADE = ("boards",)  # what is open, which the window does not look at

EVERY_KEY = """
restrictions = ["block_size_x * block_size_y <= 512"]
[kernel]
name = "sgemm"
source = "sgemm.cu"
problem_size = ["n", "n"]
arguments = []
profile = "gemm"
repeats = 3
timeout_s = 7.5
[constants]
n = 2048
[parameters]
block_size_x = [16, 32]
block_size_y = [8, 16]
tile_size_x = [4]
tile_size_y = [4]
[device_settings]
graphics_clock_mhz = [810, 1005, 1410]
[metrics]
"GFLOP/s" = "2 * n**3 / time_s / 1e9"
"GFLOPS/W" = "2 * n**3 / energy_j / 1e9"
[objective]
maximise = "GFLOPS/W"
front = ["max:GFLOP/s", "max:GFLOPS/W"]
[limits]
time_s = "<= 0.5"
power_w = ["<= 300", ">= 50"]
[search]
strategy = "genetic_algorithm"
max_evaluations = 100
max_fraction = 0.5
max_seconds = 0.3
patience = 4000000000
seed = 40000000000000001
start = [{ block_size_x = 32 }]
[search.options]
mutation_chance = 0.0000000000000012
population_size = 6
[metering]
meters = ["simulated"]
energy_from = "board"
correct_gain = true
"""
NOT_OF_A_KERNEL = {"operator", "command", "service", "environment"}  # in place of it, or of those that are


@pytest.fixture(scope="module")
def gpu() -> Any:
    made = open_gpu("simulated:a100", speed=float("inf"))
    yield made
    made.close()


def facts(plan: SessionPlan) -> dict[str, Any]:
    """All that a plan says, by field; of the space its rows and notes."""
    space = plan.space
    rows = [space.configuration(row) for row in range(0, space.size, max(1, space.size // 50))]
    fields = {field.name: getattr(plan, field.name) for field in dataclasses.fields(plan) if field.name not in MADE}
    return {**fields, "space": (space.size, rows, space.notes)}


def outcome(plan: Callable[[], SessionPlan]) -> dict[str, Any] | str:
    """The facts of a plan, or why this board runs none."""
    try:
        return facts(plan())
    except WattridgeError as error:
        return str(error)


def set_up(form: SessionForm, path: Path, gpu: Gpu) -> SessionPlan:
    form.show_draft(draft_of_file(path, gpu, None, threading.Event()))
    return form.plan()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_is_planned_as_on_the_command_line(qtbot: QtBot, gpu: Gpu, path: Path) -> None:
    form = SessionForm()
    qtbot.addWidget(form)
    assert outcome(lambda: set_up(form, path, gpu)) == outcome(
        lambda: plan_specification(load_specification(path), gpu)
    )


def test_nothing_that_a_specification_can_say_is_lost_or_rounded(qtbot: QtBot, gpu: Gpu, tmp_path: Path) -> None:
    path = tmp_path / "every_key.toml"
    path.write_text(EVERY_KEY)
    (tmp_path / "sgemm.cu").write_text("")
    document = tomllib.loads(EVERY_KEY)
    assert set(document) | NOT_OF_A_KERNEL == set(_SECTIONS), "a section is new: add it above"
    assert set(document["search"]) == set(_SEARCH_KEYS), "a key of [search] is new: add it above"
    form = SessionForm()
    qtbot.addWidget(form)
    plan = set_up(form, path, gpu)
    assert facts(plan) == facts(plan_specification(load_specification(path), gpu))
    assert [str(limit) for limit in plan.objective.limits] == ["time_s <= 0.5", "power_w <= 300", "power_w >= 50"]
    assert (plan.max_seconds, plan.seed, plan.strategy_options["mutation_chance"]) == (0.3, 40000000000000001, 1.2e-15)
    assert (form.seconds.text(), form.patience.value()) == ("0.3 s", 4e9), "the form shows what the plan has"


def test_what_is_changed_in_the_form_replaces_that_and_nothing_else(qtbot: QtBot, gpu: Gpu, tmp_path: Path) -> None:
    path = tmp_path / "every_key.toml"
    path.write_text(EVERY_KEY)
    (tmp_path / "sgemm.cu").write_text("")
    form = SessionForm()
    qtbot.addWidget(form)
    own = set_up(form, path, gpu)
    form.patience.setValue(7)
    form.options.editors["population_size"].setValue(8)  # type: ignore[attr-defined]
    options = {**own.strategy_options, "population_size": 8}
    assert facts(form.plan()) == {**facts(own), "patience": 7, "strategy_options": options}
    form.seconds.setValue(0)
    form.strategy.setCurrentIndex(form.strategy.findData("brute_force"))
    changed = {"patience": 7, "max_seconds": None, "strategy": "brute_force", "strategy_options": {}}
    assert facts(form.plan()) == {**facts(own), **changed}
