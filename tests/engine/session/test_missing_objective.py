"""A session in which most configurations lack the objective's figure says so first, and is not done."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from fixtures.engine_fakes import FakeRunner, Listener, grid, measurement_of, plan

from app.base.errors import InputError
from app.cli import main
from app.engine.results.measurement import Depth, Measurement
from app.engine.results.objectives import Goal, Objective, parse_front
from app.engine.results.state import SessionState
from app.engine.session.describe_session import describe_session
from app.engine.session.live_session import SessionResult
from app.engine.session.run import run_session
from app.engine.store.database import Store

SPACE = grid(5, 4)
OBJECTIVE = Objective(Goal("energy_j", False), (Goal("time_s", False), Goal("energy_j", False)))


class Sparse(FakeRunner):
    """Of so many configurations the energy is known; of the others it says why it is not."""

    def __init__(self, known: int) -> None:
        super().__init__(SPACE)
        self.known = known

    def answer(self, row: int, depth: Depth) -> Measurement:
        whole = measurement_of(SPACE, row)
        if row < self.known or not whole.values:
            return whole
        time_alone = {"time_s": whole.values["time_s"]}
        return replace(whole, values=time_alone, message="after 9 s; energy is not known: no power was reported")


def run(known: int) -> SessionResult:
    with Store() as store:
        wanted = plan(SPACE, Sparse(known), objective=OBJECTIVE)
        return run_session(wanted, store, Listener(), threading.Event())


@pytest.mark.parametrize("known", [0, 1, 8])
def test_it_is_not_done_and_says_so_first(
    known: int, own_data_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = run(known)
    worked = sum(bool(measurement_of(SPACE, row).values) for row in range(SPACE.size))
    missing = worked - sum(bool(measurement_of(SPACE, row).values) for row in range(known))
    words = (
        f"energy_j is missing in {missing} of {worked} configurations that worked: "
        "most often: energy is not known: no power was reported"
    )
    reason = f"{words} (the strategy is done)"
    assert (result.state, result.reason) == (SessionState.FAILED, reason)
    first = describe_session(result.plan, result.table).figures[0]
    assert first.value == words
    assert not any(
        figure.unknown == "no configuration worked" for figure in describe_session(result.plan, result.table).figures
    )
    assert main(["sessions", "1", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["state"], document["reason"]) == ("failed", reason)
    assert main(["sessions", "1"]) == 0
    assert words in capsys.readouterr().out.splitlines()[1]
    assert main(["report", "1", "--out", str(own_data_folder / "report.html")]) == 0
    assert "energy_j is missing in" in (own_data_folder / "report.html").read_text()


def test_it_is_done_where_most_have_it(own_data_folder: Path) -> None:
    result = run(12)
    assert result.state is SessionState.DONE
    assert not any("is missing in" in str(each.value) for each in describe_session(result.plan, result.table).figures)


def test_a_front_of_a_figure_against_itself_is_refused() -> None:
    with pytest.raises(InputError, match="names a goal twice"):
        parse_front("min:time_s,max:time_s")
