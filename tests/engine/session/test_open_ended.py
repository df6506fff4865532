"""A search without a limit of its own ends when nothing better is found, and does not say how long it will take."""

from __future__ import annotations

import math
import re
import threading
from pathlib import Path

import pytest

from app.base.paths import resources
from app.engine.results.state import Progress, SessionState
from app.engine.session.events import Event, MeasurementsAdded, SessionChanged
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_specification
from app.engine.session.run import run_session
from app.engine.specification.plan import SearchOptions
from app.engine.store.database import Store
from app.sensors.select import open_gpu


def without_limits(folder: Path, name: str) -> Path:
    """An example of a kernel whose search names neither a strategy nor a limit."""
    text = (resources() / "examples" / f"{name}.toml").read_text(encoding="utf-8")
    text = re.sub(r"\[search\][^\[]*", "", text).replace('"../', f'"{(resources()).as_posix()}/')
    path = folder / f"{name}.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("gemm", "another measurement is expected to gain less than 0.1 %"),
        ("vector_add", "no improvement in 100 evaluations"),
    ],
)
def test_the_default_search_ends_by_itself_and_is_open_ended_until_then(tmp_path: Path, name: str, reason: str) -> None:
    said: list[Progress] = []
    reasons: list[str] = []

    def on_event(event: Event) -> None:
        if isinstance(event, MeasurementsAdded):
            said.append(event.progress)
        elif isinstance(event, SessionChanged):
            reasons.append(event.reason)

    gpu = open_gpu("simulated:h200", speed=math.inf)
    plan = plan_specification(load_specification(without_limits(tmp_path, name)), gpu)
    assert plan.strategy == "auto"
    assert plan.open_ended
    with Store(tmp_path / "sessions.db") as store:
        session = run_session(plan, store, on_event, threading.Event())
    assert session.state is SessionState.DONE
    assert reasons[-1] == reason
    assert 10 < len(session.table) < 1600
    assert {progress.budget for progress in said} == {0}
    assert {progress.eta_s for progress in said} == {None}


@pytest.mark.parametrize(
    ("options", "patience"),
    [
        (SearchOptions(), 100),
        (SearchOptions(max_evaluations=20), None),
        (SearchOptions(max_seconds=5.0), None),
        (SearchOptions(patience=7), 7),
        (SearchOptions(strategy="brute_force"), None),
    ],
)
def test_only_the_default_without_any_limit_is_given_one(
    tmp_path: Path, options: SearchOptions, patience: int | None
) -> None:
    gpu = open_gpu("simulated:h200", speed=math.inf)
    plan = plan_specification(load_specification(without_limits(tmp_path, "gemm")), gpu, options)
    assert plan.patience == patience
    assert plan.open_ended == (patience is not None)
