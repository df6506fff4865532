"""Sessions that search power limits which their load cannot reach, on simulated boards whose power is known."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
from fixtures.engine_fakes import Listener
from fixtures.simulated import board

from app.base.records import as_json
from app.engine.analysis.describe_analysis import describe_over_load
from app.engine.analysis.session_analysis import analyse
from app.engine.models.series import caps_of_table, limit_effects
from app.engine.results.objectives import Goal, Objective
from app.engine.session.describe_session import describe_search
from app.engine.session.events import SessionRemark
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_specification
from app.engine.session.run import run_session
from app.engine.session.summary import session_summary
from app.engine.space.result_table import ResultTable
from app.engine.specification.plan import SessionPlan
from app.engine.store.database import Store

COPY = """
[kernel]
name = "copy"
source = "copy.cu"
problem_size = ["n"]
profile = "copy"
[constants]
n = {n}
[parameters]
block_size_x = [64, 128]
elements_per_thread = [1, 2]
[device_settings]
power_limit_w = {limits}
[objective]
minimise = "energy_j"
[search]
strategy = "brute_force"
"""
SERVICE = """
[service]
start = "serve --port {free_port}"
url = "http://127.0.0.1:{free_port}"
least_s = 5
most_s = 8
[service.client]
concurrency = "concurrency"
prompt_tokens = 128
output_tokens = 256
[parameters]
concurrency = [1, 8]
[device_settings]
power_limit_w = [400, 500, 600]
[objective]
minimise = "energy_j"
[search]
strategy = "brute_force"
"""


def tuned(folder: Path, text: str, name: str) -> tuple[SessionPlan, ResultTable, list[str]]:
    """Run a session; its plan, its table and its remarks."""
    (folder / "copy.cu").write_text("// costed by its profile\n")
    (folder / "spec.toml").write_text(text)
    listener = Listener()
    with Store(folder / "store.db") as store:
        plan = plan_specification(load_specification(folder / "spec.toml"), board(name))
        result = run_session(plan, store, listener, threading.Event())
        stored = store.load(result.session).table
    assert np.array_equal(stored.values("peak_power_w"), result.table.values("peak_power_w"), equal_nan=True)
    return result.plan, result.table, [event.text for event in listener.of(SessionRemark)]


def test_limits_that_no_configuration_reaches_are_remarked_on_and_in_every_description(tmp_path: Path) -> None:
    plan, table, remarks = tuned(tmp_path, COPY.format(n=1 << 18, limits=[200, 400, 500, 700]), "h200")
    peak = table.values("peak_power_w").max()
    assert 200 < peak < 240, "launches of a small copy leave an H200 idle for much of the time"
    [remark] = remarks
    words = "a power limit of 200 W binds; 400 W, 500 W or 700 W is without effect on this load"
    assert words in remark
    assert f"peak at {peak:.0f} W" in remark
    assert any(words in line for line in describe_search(plan, table).remarks)
    document = as_json(session_summary(table, plan))["power_limits"]
    assert [(one["limit_w"], one["binds"], one["without_effect"]) for one in document] == [
        (200.0, True, False),
        (400.0, False, True),
        (500.0, False, True),
        (700.0, False, True),
    ]
    for fit in caps_of_table(table, "NVIDIA H200", simulated=True):
        assert fit.without_effect_from_w == 400.0
        assert any("without effect" in reason for reason in fit.reasons)


def test_limits_that_bind_are_not_said_to_be_without_effect(tmp_path: Path) -> None:
    _, table, remarks = tuned(tmp_path, COPY.format(n=1 << 27, limits=[200, 400, 500, 620]), "h200")
    assert table.values("peak_power_w").max() > 0.95 * 620, "the memory is busy all the time"
    assert remarks == []
    effects = limit_effects(table)
    assert [effect.binds for effect in effects] == [True, True, True, False]
    assert not any(effect.without_effect for effect in effects)


def test_a_configuration_that_was_always_throttled_leaves_higher_limits_open(tmp_path: Path) -> None:
    _, table, _ = tuned(tmp_path, COPY.format(n=1 << 18, limits=[200, 400, 700]), "h200")
    block, limit = table.values("block_size_x"), table.values("power_limit_w")
    of_64 = limit_effects(table, np.flatnonzero(block == 64))
    assert [(e.binds, e.without_effect) for e in of_64] == [(True, False), (False, True), (False, True)]
    those_of_128_held = limit_effects(table, np.flatnonzero((block == 64) | (limit == 200)))
    assert [(e.binds, e.without_effect) for e in those_of_128_held] == [(True, False), (False, False), (False, False)]


def test_without_peaks_nothing_is_claimed(tmp_path: Path) -> None:
    plan, table, _ = tuned(tmp_path, COPY.format(n=1 << 18, limits=[200, 700]), "h200")
    older = ResultTable(table.space)  # of a session before this program kept them
    for measured in map(table.measurement, range(len(table))):
        older.append(replace(measured, values={"time_s": measured.values["time_s"], "power_w": 210.0}))
    assert limit_effects(older) == ()
    assert not any("power limit of" in line for line in describe_search(plan, older).remarks)


def test_peaks_are_no_figures_that_configurations_are_analysed_by(tmp_path: Path) -> None:
    _, table, _ = tuned(tmp_path, COPY.format(n=1 << 18, limits=[200, 700]), "h200")
    analysis = analyse(table, Objective(Goal("energy_j", maximise=False)))
    names = {one.name for one in analysis.correlations}
    assert "power_w" in names
    assert not names & {"peak_power_w", "throttled_power_share"}


def test_which_limits_bind_is_said_for_each_load_of_a_service(tmp_path: Path) -> None:
    """Prompts of one client draw up to 600 W for a moment; the mean of 474 W would say that 600 W is not reached."""
    _, table, _ = tuned(tmp_path, SERVICE, "rtx5090")
    analysis = analyse(table, Objective(Goal("energy_j", maximise=False)))
    assert analysis.over_load is not None
    one, eight = analysis.over_load.levels
    alone = table.values("concurrency") == 1
    assert table.values("power_w")[alone].max() < 0.95 * 600
    assert [(e.limit_w, e.binds, e.without_effect) for e in one.limits] == [
        (400.0, True, False),
        (500.0, True, False),
        (600.0, False, False),
    ]
    assert all(effect.binds for effect in eight.limits)
    [described] = describe_over_load(analysis.over_load, table, analysis.costs)
    assert "at concurrency 1: a power limit of 400 W or 500 W binds" in described.remarks
    assert "at concurrency 8: a power limit of 400 W, 500 W or 600 W binds" in described.remarks
    levels = as_json(analysis.over_load)["levels"]
    assert [limit["binds"] for limit in levels[1]["limits"]] == [True, True, True]
