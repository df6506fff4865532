"""Kernels on a board are measured in turns at a session's end, by the runner that measured the session."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

from fixtures.cuda_bench import Bench
from fixtures.engine_fakes import FakeRunner, Listener, made_by, plan
from fixtures.virtual_cuda import VirtualBoard

from app.engine.analysis.finals import Finals
from app.engine.analysis.iso_lines import Role
from app.engine.results.objectives import Goal, Objective
from app.engine.results.state import SessionState
from app.engine.session.load import load_specification
from app.engine.session.run import run_session
from app.engine.store.database import Store

DRAWS_W = [300, 301, *range(330, 390, 2)]


def test_two_kernels_that_one_window_cannot_tell_apart_are_measured_in_turns(
    bench: type[Bench], virtual_board: VirtualBoard, tmp_path: Path
) -> None:
    one = bench(f"draws_w = {DRAWS_W}", sensors=virtual_board)
    [file] = tmp_path.rglob("scale.toml")
    least_energy = Objective(Goal("energy_j", maximise=False))
    made = replace(
        plan(one.space, FakeRunner(one.space), objective=least_energy, specification=load_specification(file)),
        boards=made_by(lambda: one.runner),
    )
    heard = Listener()
    with Store() as store:
        result = run_session(made, store, heard, threading.Event())
        stored = store.load(result.session).table
    assert result.state is SessionState.DONE, result.reason
    finals = Finals.of_origin(stored.origin)
    assert finals is not None
    drawn = [result.table.space.configuration(row)["draws_w"] for row in finals.rows]
    assert {300, 301} <= set(drawn)
    assert max(map(float, drawn)) < 345, "what one window tells apart takes no part"
    beaten = next(each for each in finals.others if {each.row, finals.winner} == {*_rows(result.table, 300, 301)})
    low, high = beaten.of(Role.ENERGY).interval or (1.0, -1.0)
    true = 301 / 300 - 1 if drawn[0] == 300 else 300 / 301 - 1
    assert low <= true <= high
    assert high - low < 0.02


def _rows(table: object, *draws_w: int) -> list[int]:
    space = table.space  # type: ignore[attr-defined]
    return [row for row in range(space.size) if space.configuration(row)["draws_w"] in draws_w]
