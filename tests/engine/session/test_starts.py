"""What a search begins with is measured first, in full and once, whatever the strategy; what cannot be is said."""

from __future__ import annotations

import json
import math
import threading
from pathlib import Path
from typing import Any

import pytest
from fixtures.engine_fakes import FakeRunner, FakeTimer, Listener, grid, plan, run

import app.engine.strategies  # noqa: F401  (registers them)
from app.base.errors import InputError
from app.base.paths import resources
from app.cli import main
from app.engine.results.measurement import Depth
from app.engine.results.objectives import Goal, Objective
from app.engine.results.state import SessionState
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_resume, plan_specification
from app.engine.session.run import run_session
from app.engine.specification.plan import SearchOptions, SessionPlan
from app.engine.store.database import Store
from app.engine.strategies import base
from app.sensors.select import open_gpu

# tests elsewhere register strategies of their own
SHIPPED = [name for name in base.names() if type(base.get(name)).__module__.startswith("app.")]
SPACE = grid(10, 6)
STARTS = (47, 5, 3)  # the last of which fails
LEAST_ENERGY = Objective(Goal("energy_j", maximise=False))


@pytest.mark.parametrize("name", SHIPPED)
def test_every_strategy_begins_with_them(name: str) -> None:
    """They count as evaluations, and a strategy that proposes one of them later gets the known figures."""
    runner = FakeRunner(SPACE)
    result = run(plan(SPACE, runner, strategy=name, starts=STARTS, max_evaluations=12))
    assert tuple(runner.measured[:3]) == STARTS
    assert len(runner.measured) == len(set(runner.measured)) == result.progress.evaluated == 12
    small = grid(3, 3)
    runner = FakeRunner(small)
    result = run(plan(small, runner, strategy=name, starts=(8, 3)))
    assert sorted(runner.measured) == list(range(9)), "each once, and none is left out"
    assert runner.measured[:2] == [8, 3]
    assert result.state is SessionState.DONE


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("objective", [LEAST_ENERGY, Objective(Goal("time_s", False))], ids=str)
def test_with_a_budget_of_one_the_first_of_them_is_all_that_is_measured(name: str, objective: Objective) -> None:
    """Nothing is timed beside it either: this is how one configuration is measured."""
    for starts in (STARTS[:1], STARTS):
        runner = FakeTimer(SPACE)
        result = run(plan(SPACE, runner, strategy=name, objective=objective, starts=starts, max_evaluations=1))
        assert (runner.measured, runner.only_timed) == ([47], [])
        assert (result.state, result.reason) == (SessionState.DONE, "the budget is used up")
        assert [result.table.measurement(0).row, result.table.measurement(0).depth] == [47, Depth.ENERGY]


def test_without_them_a_search_goes_as_it_did() -> None:
    first, again = FakeRunner(SPACE), FakeRunner(SPACE)
    run(plan(SPACE, first, strategy="random_sample", max_evaluations=20))
    run(plan(SPACE, again, strategy="random_sample", starts=(first.measured[0],), max_evaluations=20))
    assert again.measured == first.measured


# --- from a specification ---------------------------------------------------------------------------------------------


def written(folder: Path, search: str, name: str = "copy") -> Path:
    """An example with what it says of the search replaced."""
    text = (resources() / "examples" / f"{name}.toml").read_text()
    before, _, _ = text.partition("[search]")
    path = folder / f"{name}.toml"
    path.write_text(f"{before.replace('../kernels', str(resources() / 'kernels'))}\n[search]\n{search}\n")
    return path


def planned(path: Path, **options: Any) -> SessionPlan:
    gpu = open_gpu("simulated:a100", speed=math.inf)
    return plan_specification(load_specification(path), gpu, SearchOptions(**options))


def test_one_that_is_not_valid_is_named_and_left_out(tmp_path: Path) -> None:
    size, other = sorted(planned(written(tmp_path, "")).space.parameters[0].values)[:2]
    name = planned(tmp_path / "copy.toml").space.names[0]
    starts = f"start = [{{ {name} = 7 }}, {{ {name} = {size} }}, {{ {name} = {other} }}]"
    plan = planned(written(tmp_path, starts), max_evaluations=4)
    assert [plan.space.configuration(row)[name] for row in plan.starts] == [size, other]
    assert plan.space.notes[-1] == f"a start is left out: no configuration has {name} = 7 here"


@pytest.mark.parametrize("strategy", ["random_sample", "auto", "energy_aware"])
def test_where_no_other_is_to_be_measured_one_that_is_not_valid_is_refused(strategy: str, tmp_path: Path) -> None:
    name = planned(written(tmp_path, "")).space.names[0]
    path = written(tmp_path, f'strategy = "{strategy}"\nmax_evaluations = 1\nstart = [{{ {name} = 7 }}]')
    with pytest.raises(InputError) as caught:
        planned(path)
    assert f"no configuration has {name} = 7 here, and no other is to be measured" in str(caught.value)
    planned(path, max_evaluations=2)


@pytest.mark.parametrize("strategy", ["random_sample", "auto", "energy_aware", "genetic_algorithm"])
def test_one_given_configuration_is_measured_and_exported(
    strategy: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a user does it who wants the source of exactly this configuration."""
    wanted = planned(written(tmp_path, "", "sgemm")).space.configuration(777)
    start = ", ".join(f"{name} = {json.dumps(value)}" for name, value in wanted.items())
    path = written(tmp_path, f'strategy = "{strategy}"\nmax_evaluations = 1\nstart = [{{ {start} }}]', "sgemm")
    words = ["tune", str(path), "--gpu", "simulated:a100", "--speed", "inf", "--out", str(tmp_path), "--json"]
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)["evaluated"] == 1
    exported = json.loads((tmp_path / "sgemm.json").read_text())
    assert exported["configuration"] == wanted


@pytest.mark.parametrize("text", ["mm:1,512,512,512", "mm:8,1024,1024,1024:fp16"])
def test_what_an_operator_suggests_is_not_asked_for(text: str, tmp_path: Path) -> None:
    """A random sample of an operator is one, but for what the vendor's library does by itself.

    `auto` draws a part of its first sample from what is suggested.
    """
    kind, shape, *precision = text.split(":")
    path = tmp_path / "operator.toml"
    said = f'precision = "{precision[0]}"' if precision else ""
    path.write_text(f'[operator]\nkind = "{kind}"\nshape = [{shape}]\n{said}\n')
    plan = planned(path)
    assert len(plan.suggestions) >= 10
    assert [plan.space.configuration(row)["maker"] for row in plan.starts] == ["library"]


def test_a_session_that_is_resumed_begins_as_it_did(tmp_path: Path) -> None:
    path = tmp_path / "operator.toml"
    path.write_text('[operator]\nkind = "mm"\nshape = [1, 512, 512, 512]\n')
    for search in ("", "[search]\nstart = [{ block_m = 64 }, { block_m = 32 }]\n"):
        path.write_text(f'[operator]\nkind = "mm"\nshape = [1, 512, 512, 512]\n{search}')
        with Store() as store:
            made = planned(path, max_evaluations=3)
            session = run_session(made, store, Listener(), threading.Event()).session
            again = plan_resume(store, session, gpu=open_gpu("simulated:a100", speed=math.inf))
        assert (again.starts, again.suggestions) == (made.starts, made.suggestions)
        makers = [again.space.configuration(row)["maker"] for row in again.starts]
        assert makers == [*["wattridge"] * (2 if search else 0), "library"]
        assert bool(again.suggestions) == (not search)
