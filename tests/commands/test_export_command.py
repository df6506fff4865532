"""`wattridge export`: a rule chooses, as in the window, and the receipt names it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fixtures.lab import OBJECTIVE, filled, grid_space, plan_for

from app.cli import main
from app.engine.analysis.choosers import choices
from app.engine.analysis.costs import costs_of
from app.engine.results.state import SessionState
from app.engine.store.database import Store
from app.views.inspector.chooser_bar import WAYS


@pytest.fixture
def stored(own_data_folder: Path) -> int:
    """A session in the data folder."""
    table = filled(grid_space(10))
    with Store() as store:
        session = store.create_session(plan_for(table.space, OBJECTIVE))
        store.append(session, [table.measurement(i) for i in range(len(table))])
        store.finish(session, SessionState.DONE)
    return session


def exported(folder: Path, *options: str) -> dict[str, object]:
    assert main(["export", "--kind", "json", "--out", str(folder), *options]) == 0
    receipt: dict[str, object] = json.loads((folder / "receipt.json").read_text())
    return receipt


def test_a_rule_chooses_and_stands_in_the_receipt(stored: int, tmp_path: Path) -> None:
    table = filled(grid_space(10))
    for choice in choices(costs_of(table)):
        receipt = exported(tmp_path / choice.name, "--choose", choice.name)
        assert choice.index is not None
        assert (receipt["measurement"], receipt["rule"]) == (choice.index + 1, choice.rule)
    assert exported(tmp_path / "named", "--choose", "at_most_slower", "--slower", "20")["rule"] == "at most 20 % slower"


def test_rules_are_called_as_in_the_window() -> None:
    of_window = {way.name: way.short for way in WAYS}
    without_number = ("fastest", "least_energy", "least_edp", "least_ed2p", "knee")
    rules = {choice.name: choice.rule for choice in choices(costs_of(filled(grid_space(10))))}
    assert {name: rules[name] for name in without_number} == {name: of_window[name] for name in without_number}
    assert set(rules) <= set(of_window)


def test_an_unknown_rule_is_one_line_that_lists_them(
    stored: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", "--choose", "cheapest", "--out", str(tmp_path / "out")]) == 2
    assert "one of fastest, least_energy" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
