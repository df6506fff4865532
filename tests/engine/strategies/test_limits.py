"""Limits: which configurations keep them, and that nothing chooses one that does not: best, front, choosers, search."""

from __future__ import annotations

import json
import math
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import app.engine.strategies  # noqa: F401  (registers them)
from app.base.errors import InputError
from app.engine.analysis.describe_analysis import describe_choices
from app.engine.analysis.session_analysis import analyse
from app.engine.results.measurement import Measurement, State
from app.engine.results.objectives import Goal, Limit, Objective, parse_bound, parse_limit
from app.engine.session.describe_session import describe_session
from app.engine.session.planning import plan_replay
from app.engine.session.run import run_session
from app.engine.session.stored import best_of
from app.engine.session.summary import session_summary
from app.engine.space.build import build_space
from app.engine.space.result_table import ResultTable
from app.engine.space.within_limits import broken, broken_in_words, feasible, nearest, unsure_in_words
from app.engine.specification.check import specification_of
from app.engine.specification.document import document_of
from app.engine.specification.plan import SearchOptions
from app.engine.store.database import Store
from app.engine.strategies import base
from app.sensors.limits import limits_of

NUMBERS = st.floats(-1e12, 1e12).filter(lambda number: number == 0 or abs(number) > 1e-9)
BOUNDS = st.builds(Limit, st.sampled_from(["ttft_p95_s", "GFLOP/s", "x y"]), st.booleans(), NUMBERS)


@given(BOUNDS, NUMBERS)
def test_a_limit_is_broken_where_its_excess_is_positive(limit: Limit, value: float) -> None:
    assert limit.holds(value) == (limit.excess(value) <= 0)
    assert limit.holds(value) == (value <= limit.bound if limit.most else value >= limit.bound)
    assert not limit.holds(math.nan)


@given(st.lists(BOUNDS, max_size=3), st.booleans())
def test_an_objective_with_limits_is_read_back_as_it_was_written(limits: list[Limit], maximise: bool) -> None:
    front = (Goal("a", True), Goal("b", False))
    objective = Objective(Goal("a", maximise), front, tuple(limits))
    assert Objective.of_list(json.loads(json.dumps(objective.to_list()))) == objective


@pytest.mark.parametrize("text", ["0.5", "< 0.5", "<= much", "<= 1e999", "== 3", "<= 1; import os", ""])
def test_what_is_no_limit_is_one_line(text: str) -> None:
    with pytest.raises(InputError, match="is not a limit"):
        parse_bound("ttft_p95_s", text, "limits.ttft_p95_s")


def test_limits_of_the_command_line() -> None:
    assert parse_limit("ttft_p95_s<=0.5") == Limit("ttft_p95_s", True, 0.5)
    assert parse_limit("tokens/s >= 500") == Limit("tokens/s", False, 500.0)


def test_limits_of_a_specification(tmp_path: Path) -> None:
    document = {
        "parameters": {"n": [1, 2]},
        "command": {"run": "true", "values": {"latency": "([0-9.]+)"}},
        "objective": {"minimise": "energy_j"},
        "limits": {"latency": ["<= 0.5", ">= 0.1"], "power_w": "<= 300"},
    }
    spec = specification_of(document, tmp_path / "spec.toml")
    assert [str(limit) for limit in spec.limits] == ["latency <= 0.5", "latency >= 0.1", "power_w <= 300"]
    assert specification_of(document_of(spec, tmp_path), tmp_path / "spec.toml").limits == spec.limits
    with pytest.raises(InputError, match="latencyy"):
        specification_of({**document, "limits": {"latencyy": "<= 1"}}, tmp_path / "spec.toml")


# --- a table of measurements ------------------------------------------------------------------------------------------

SPACE = build_space({"x": list(range(20)), "y": list(range(20))}, [], {}, limits_of((8, 0)), {})
X, Y = SPACE.column("x").astype(float), SPACE.column("y").astype(float)
TIME_S = 1.0 + 0.05 * (19 - X)
ENERGY_J = 100.0 + (X - 4) ** 2 + 0.5 * (Y - 12) ** 2
LATENCY_S = 0.2 * np.exp((12 - X) / 6) + 0.01 * Y


def values_at(row: int) -> dict[str, float]:
    return {"time_s": TIME_S[row], "energy_j": ENERGY_J[row], "latency_s": LATENCY_S[row]}


def filled() -> ResultTable:
    table = ResultTable(SPACE)
    table.extend(
        Measurement(row, SPACE.configuration(row), State.RUNTIME if row % 7 == 3 else State.OK, values_at(row))
        for row in range(SPACE.size)
    )
    return table


WORKS = np.arange(SPACE.size) % 7 != 3


def objective(*limits: Limit) -> Objective:
    return Objective(Goal("energy_j", False), (Goal("time_s", False), Goal("energy_j", False)), limits)


AT_MOST = Limit("latency_s", True, 0.4)


def test_no_choice_breaks_a_limit_and_each_is_the_best_of_those_that_keep_it() -> None:
    table, wanted = filled(), objective(AT_MOST)
    keeps = WORKS & (LATENCY_S <= 0.4)
    assert 0 < keeps.sum() < WORKS.sum()
    np.testing.assert_array_equal(feasible(table, wanted.limits), keeps)
    np.testing.assert_array_equal(broken(table, wanted.limits), WORKS & ~keeps)
    found = analyse(table, wanted)
    chosen = {choice.name: choice.index for choice in found.choices}
    assert ENERGY_J[chosen["least_energy"]] == ENERGY_J[keeps].min() > ENERGY_J[WORKS].min(), "the limit binds"
    assert all(keeps[index] for index in chosen.values() if index is not None)
    assert found.plane is not None
    assert all(keeps[found.plane.front])
    assert best_of(table, wanted.goal, wanted.limits) == chosen["least_energy"]
    beaten = [
        any(TIME_S[o] <= TIME_S[i] and ENERGY_J[o] < ENERGY_J[i] for o in np.flatnonzero(keeps))
        for i in found.plane.front
    ]
    assert not any(beaten)


def test_where_nothing_keeps_the_limits_the_nearest_is_named() -> None:
    table = filled()
    impossible = (Limit("latency_s", True, 0.01), Limit("energy_j", True, 150.0))
    index = nearest(table, impossible)
    assert index is not None
    by_hand = np.maximum(LATENCY_S / 0.01 - 1, ENERGY_J / 150 - 1)
    assert by_hand[index] == by_hand[WORKS].min()
    assert broken_in_words(impossible, values_at(index)).startswith("latency_s is ")
    assert nearest(table, (AT_MOST,)) is None, "some keep that one"
    found = analyse(table, objective(*impossible))
    assert all(choice.index is None for choice in found.choices)
    assert found.nearest == index
    (said,) = describe_choices(found)
    where = ", ".join(f"{name} {value}" for name, value in table.measurement(index).configuration.items())
    assert said.title.startswith(
        "No configuration keeps the limits: latency_s <= 0.01; energy_j <= 150. The nearest is"
    )
    assert f"is {where}: {broken_in_words(impossible, values_at(index))}" in said.title
    assert f"({100 * by_hand[index]:.1f} % off)" in said.title


@pytest.mark.parametrize(
    ("limit", "unsure"),
    [
        (Limit("power_w", True, 114.0), True),  # measured below it, but it may be above
        (Limit("power_w", True, 120.0), False),
        (Limit("power_w", True, 110.0), False),  # it breaks that one, which is said otherwise
        (Limit("power_w", False, 112.0), True),
        (Limit("energy_j", True, 1.0), False),  # without an interval nothing is known of it
    ],
)
def test_a_limit_within_the_interval_of_what_keeps_it_is_said(limit: Limit, unsure: bool) -> None:
    values, intervals = {"power_w": 113.0, "energy_j": 1.0}, {"power_w": (111.0, 115.0)}
    measured = Measurement(0, {}, State.OK, values, intervals=intervals)
    assert bool(unsure_in_words((limit,), measured)) == unsure


def test_a_figure_that_was_not_measured_keeps_no_limit() -> None:
    assert not feasible(filled(), (Limit("ttft_p95_s", True, 0.5),)).any()
    assert nearest(filled(), (Limit("ttft_p95_s", True, 0.5),)) is None


# --- a search ---------------------------------------------------------------------------------------------------------


def search(name: str, limits: tuple[Limit, ...], evaluations: int, seed: int) -> list[int]:
    """The rows that a strategy asks for."""
    chosen = base.get(name)
    steps = chosen.search(SPACE, np.random.default_rng(seed), 1, chosen.Options())
    rows, asked = next(steps), []
    wanted = Objective(Goal("energy_j", False), (), limits)
    while True:
        asked += rows
        if len(asked) >= evaluations:
            return asked[:evaluations]
        rows = steps.send(
            [
                base.Outcome.of(Measurement(row, SPACE.configuration(row), State.OK, values_at(row)), wanted)
                for row in rows
            ]
        )


def test_auto_finds_the_best_within_a_limit_that_binds() -> None:
    keeps = LATENCY_S <= 0.4
    best = ENERGY_J[keeps].min()
    losses = []
    for seed in range(6):
        rows = np.array(search("auto", (AT_MOST,), 20, seed))
        losses.append(ENERGY_J[rows[keeps[rows]]].min() / best - 1)
    assert np.median(losses) <= 0.01, losses
    assert max(losses) <= 0.05, losses


def test_auto_looks_for_something_within_the_limits_first() -> None:
    rare = (Limit("latency_s", True, 0.1),)
    keeps = LATENCY_S <= 0.1
    assert 0 < keeps.mean() < 0.1
    found = [bool(keeps[search("auto", rare, 25, seed)].any()) for seed in range(4)]
    assert all(found)


# --- a session --------------------------------------------------------------------------------------------------------


def recording(folder: Path) -> Path:
    lines = ["clock_mhz,time_s,energy_j,latency_s"]
    lines += [f"{900 + 100 * index},{2 - 0.1 * index},{50 + index * index},{1.0 - 0.1 * index}" for index in range(8)]
    path = folder / "swept.csv"
    path.write_text("\n".join(lines), "utf-8")
    return path


@pytest.mark.parametrize(("bound", "clock"), [(0.75, 1200), (0.05, None)])
def test_a_session_tells_feasible_from_infeasible(tmp_path: Path, bound: float, clock: int | None) -> None:
    options = SearchOptions(objective=Goal("energy_j", False), limits=(Limit("latency_s", True, bound),))
    plan = plan_replay(recording(tmp_path), options)
    with Store(tmp_path / "store.db") as store:
        result = run_session(plan, store, lambda *a, **k: None, threading.Event())
        loaded = store.load(result.session)
    assert loaded.record.objective.limits == options.limits, "kept with the session"
    document = session_summary(loaded.table, result.plan, session=result.session)
    said = "\n".join(f"{figure}" for figure in describe_session(result.plan, result.table).figures)
    assert document["limits"] == [f"latency_s <= {bound:g}"]
    assert document["infeasible"] == (3 if clock else 8)
    if clock:
        assert document["best"]["configuration"] == {"graphics_clock_mhz": clock}
        assert document["nearest"] is None
        assert min(each["values"]["latency_s"] for each in document["front"]) <= bound
        assert result.progress.best_value == 59
    else:
        assert document["best"] is None
        assert document["front"] == []
        assert document["nearest"]["configuration"] == {"graphics_clock_mhz": 1600}
        assert document["nearest"]["excess"] == pytest.approx(0.3 / 0.05 - 1)
        assert "no configuration keeps the limits" in said


def test_a_limit_of_nothing_that_is_known_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="latencyy"):
        plan_replay(recording(tmp_path), SearchOptions(limits=(Limit("latencyy", True, 1.0),)))
