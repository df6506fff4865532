"""Sessions that search a setting measure the untouched board, too, and set nothing for its rows."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from fixtures.commands import run as run_command

from app.base.paths import resources
from app.engine.analysis.costs import costs_of
from app.engine.analysis.own_state import own_state
from app.engine.results.measurement import Measurement, Value
from app.engine.results.state import SessionState
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_resume, plan_specification, space_of
from app.engine.session.run import run_session
from app.engine.space.result_table import ResultTable
from app.engine.specification.model import Specification
from app.engine.specification.plan import SearchOptions, SessionPlan
from app.engine.store.database import Store
from app.sensors.clock import VirtualClock
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin

EXAMPLE = load_specification(resources() / "examples" / "gemm.toml")
CLOCK = "graphics_clock_mhz"


def board() -> SimulatedGpu:
    return SimulatedGpu(load_twin("a100"), seed=1, clock=VirtualClock())


def planned(gpu: SimulatedGpu, spec: Specification = EXAMPLE, **options: object) -> SessionPlan:
    return plan_specification(spec, gpu, SearchOptions(strategy="random_sample", seed=3, **options))  # type: ignore[arg-type]


def measured(table: ResultTable) -> list[Measurement]:
    return [table.measurement(index) for index in range(len(table))]


def untouched(configuration: Mapping[str, Value]) -> dict[str, Value]:
    return {**configuration, CLOCK: "untouched"}


def run(plan: SessionPlan) -> tuple[ResultTable, Measurement]:
    """What a session measured, and its best."""
    with Store() as store:
        result = run_session(plan, store, lambda event: None, threading.Event())
    assert result.state is SessionState.DONE, result.reason
    assert result.progress.best_index is not None
    return result.table, result.table.measurement(result.progress.best_index)


@pytest.mark.parametrize("budget", [4, 8])
def test_the_last_evaluation_of_a_budget_is_the_best_on_the_untouched_board(budget: int) -> None:
    table, best = run(planned(board(), max_evaluations=budget))
    assert len(table) == budget
    assert best.configuration[CLOCK] != "untouched"
    assert measured(table)[-1].configuration == untouched(best.configuration)
    state = own_state(table, costs_of(table), table.rows().tolist().index(best.row))
    assert state is not None
    assert state.index == budget - 1
    assert state.gain is not None
    assert state.words.endswith("against the board's own state")


def test_a_budget_too_small_to_keep_one_is_the_strategy_s_alone() -> None:
    few, best = run(planned(board(), max_evaluations=3))
    assert len(few) == 3
    assert untouched(best.configuration) not in [m.configuration for m in measured(few)]


def test_a_session_that_measures_everything_measures_nothing_twice() -> None:
    spec = replace(EXAMPLE, parameters={**EXAMPLE.parameters, "block_size_x": (32,), "block_size_y": (8,)})
    plan = planned(board(), spec, device_settings={CLOCK: (1005, 1215)})
    table, _ = run(replace(plan, strategy="brute_force", max_evaluations=None))
    assert sorted(table.rows().tolist()) == list(range(plan.space.size))
    assert sum(m.configuration[CLOCK] == "untouched" for m in measured(table)) == plan.space.size // 3


def test_a_setting_of_one_value_is_not_searched_and_has_no_untouched_rows() -> None:
    plan = planned(board(), device_settings={CLOCK: (1005,)}, max_evaluations=5)
    assert plan.space.parameters[-1].values == (1005,)
    table, _ = run(plan)
    assert {m.configuration[CLOCK] for m in measured(table)} == {1005}


def test_for_an_untouched_row_nothing_is_set_and_what_was_set_is_put_back() -> None:
    gpu = board()
    gpu.lock_graphics_clock(1110)  # from outside: the state that the session finds
    made: list[int | None] = []
    lock = gpu.lock_graphics_clock
    gpu.lock_graphics_clock = lambda clock: (made.append(clock), lock(clock))[1]  # type: ignore[method-assign]
    table, _ = run(planned(gpu, device_settings={CLOCK: (705, 900)}, max_evaluations=8))
    of_row = {m.configuration[CLOCK]: m.observed_clock_mhz for m in measured(table) if not m.error}
    assert of_row["untouched"] == pytest.approx(1110, abs=1), "as it was found, which is not its highest"
    assert None not in made, "no lock of another is taken off"
    assert made[-1] == 1110


def test_a_session_taken_up_with_a_larger_budget_ends_with_its_best_untouched_again() -> None:
    with Store() as store:
        first = run_session(planned(board(), max_evaluations=6), store, lambda event: None, threading.Event())
        resumed = plan_resume(store, first.session, SearchOptions(max_evaluations=20), gpu=board())
        result = run_session(resumed, store, lambda event: None, threading.Event())
    assert result.progress.evaluated == len(result.table) == 20
    assert result.table.rows()[:6].tolist() == first.table.rows().tolist()
    assert result.progress.best_index is not None
    best = result.table.measurement(result.progress.best_index)
    assert untouched(best.configuration) in [m.configuration for m in measured(result.table)]


def test_a_program_of_which_only_the_clock_is_varied_is_a_session_too(tmp_path: Path) -> None:
    path = tmp_path / "program.toml"
    path.write_text(
        f'[command]\nrun = "true"\n[device_settings]\n{CLOCK} = [900, 1200]\n[objective]\nminimise = "time_s"\n'
    )
    space = space_of(load_specification(path), board())
    assert space.configurations(range(space.size)) == [{CLOCK: clock} for clock in (900, 1200, "untouched")]


SLOW_LOCKS = """
[kernel]
name = "sgemm"
source = "sgemm.cu"
problem_size = ["n", "n"]
profile = "gemm"
[constants]
n = 4096
[parameters]
block_size_x = [32]
block_size_y = [8]
[device_settings]
graphics_clock_mhz = [210, 615]
[objective]
minimise = "time_s"
[search]
strategy = "brute_force"
"""


def test_there_is_nothing_to_apply_of_a_best_that_is_untouched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sgemm.cu").write_text("// costed by its profile\n")
    (tmp_path / "slow.toml").write_text(SLOW_LOCKS)
    words = ("--gpu", "simulated:a100", "--speed", "inf")
    status, tuned = run_command(capsys, "tune", str(tmp_path / "slow.toml"), *words)
    assert (status, tuned["evaluated"], tuned["best"]["configuration"][CLOCK]) == (0, 3, "untouched")
    session = str(tuned["session"])
    status, refused = run_command(capsys, "apply", "--session", session, *words, "--keep")
    assert status == 2
    assert "there is nothing to set" in refused["error"]["what"]
    assert "wattridge restore" in refused["error"]["remedy"]
    status, _ = run_command(capsys, "export", session, "--out", str(tmp_path / "out"), "--kind", "script")
    [script] = (tmp_path / "out").glob("*.sh") if status == 0 else [tmp_path / "none"]
    assert "Left as the board has it: graphics_clock_mhz = untouched" in script.read_text()
