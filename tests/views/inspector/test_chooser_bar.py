"""Ways to choose a configuration, which one is current, and what the choice costs and gains."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from fixtures.lab import EFFICIENCY, OBJECTIVE, Lab, filled, filled_session, grid_space, measured, plan_for
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.engine.analysis.choosers import knee, least_energy
from app.engine.analysis.costs import costs_of
from app.engine.results.measurement import State
from app.engine.results.objectives import Goal, Objective
from app.engine.results.settings import HIGHEST_CLOCK
from app.engine.space.result_table import ResultTable
from app.views.inspector.chooser_bar import ChooserBar
from app.views.shared.current_result import EVERYTHING
from app.views.shared.panel import end_all
from app.views.shared.settings import Settings


@pytest.fixture
def bar(lab: Lab, qtbot: QtBot) -> Iterator[ChooserBar]:
    made = ChooserBar(lab.context, Settings())
    qtbot.addWidget(made)
    made.show()
    yield made
    end_all(made)


def test_before_a_session_there_is_nothing_to_choose_from(lab: Lab, bar: ChooserBar) -> None:
    assert not bar.choose_button.isEnabled()
    filled_session(lab)
    assert bar.choose_button.isEnabled()


def test_a_way_to_choose_selects_and_says_what_it_costs_and_gains(lab: Lab, bar: ChooserBar) -> None:
    table = filled_session(lab)
    costs = costs_of(table)
    bar.choose_by("least_energy")
    assert lab.result.index == least_energy(costs.time_s, costs.energy_j)
    assert lab.result.way == "least energy"
    assert bar.words.text().startswith("Against the fastest (measurement ")
    assert "less energy" in bar.words.text()
    assert "more time (intervals unknown)" in bar.words.text()
    assert "kWh" in bar.words.text()
    assert "EUR" in bar.words.text()
    bar.choose_by("knee")
    assert lab.result.index == knee(costs.time_s, costs.energy_j)
    bar.choose_by("fastest")
    assert bar.words.text() == f"This is the fastest. Measured at {HIGHEST_CLOCK}."


def test_an_energy_that_cannot_be_distinguished_saves_nothing_in_a_year(lab: Lab, bar: ChooserBar) -> None:
    space = grid_space()
    for half, saves in ((0.001, True), (0.9, False)):
        table = ResultTable(space)
        for row in range(space.size):
            one = measured(space, row)
            ends = {name: (v * (1 - half), v * (1 + half)) for name in ("energy_j",) if (v := one.values.get(name))}
            table.append(replace(one, intervals=ends))
        lab.session(table, plan_for(table.space, OBJECTIVE))
        bar.choose_by("least_energy")
        assert ("not distinguishable" in bar.words.text()) != saves
        assert ("kWh" in bar.words.text()) == saves


@pytest.mark.parametrize("goal", [EFFICIENCY, Goal("power_w", False)])
def test_the_best_by_the_objective_is_one_of_the_ways(lab: Lab, bar: ChooserBar, goal: Goal) -> None:
    table = filled(grid_space())
    lab.session(table, plan_for(table.space, Objective(goal)))
    bar.choose_by("objective")
    values = table.values(goal.name)
    assert lab.result.way == str(goal)
    assert values[lab.result.index] == (np.nanmax(values) if goal.maximise else np.nanmin(values))


def test_the_best_so_far_is_compared_while_nothing_is_selected(lab: Lab, bar: ChooserBar) -> None:
    table = filled_session(lab)
    lab.grow(table, best=9)
    assert "Against the fastest" in bar.words.text()


def test_the_menu_says_which_way_is_current(lab: Lab, bar: ChooserBar) -> None:
    filled_session(lab)
    ticked = [action.text() for action in bar.menu.actions() if action.isChecked()]
    assert ticked == ["By hand: a point or a row"]
    bar.choose_by("knee")
    assert [action.text() for action in bar.menu.actions() if action.isChecked()] == ["Knee of the front"]
    chosen = lab.result.index
    bar.choose_by("by_hand")
    assert lab.result.index == chosen, "what was chosen stays"
    assert lab.result.way == ""


def test_a_row_that_was_measured_since_the_last_look_is_compared_too(lab: Lab, bar: ChooserBar) -> None:
    """The results' table is ahead: a row of it may be selected before the bar has looked at it."""
    space = grid_space()
    table = filled(space, 8)
    lab.session(table, plan_for(space, OBJECTIVE))
    lab.result.select(3)
    before = bar.words.text()
    table.extend(measured(space, row) for row in range(8, 12))
    lab.result.select(10)
    assert bar.words.text() not in ("", before)


def test_the_choice_follows_a_table_that_grows(lab: Lab, bar: ChooserBar, qtbot: QtBot) -> None:
    space = grid_space()
    table = filled(space, 8)
    lab.session(table, plan_for(space, OBJECTIVE))
    bar.choose_by("fastest")
    first = lab.result.index
    table.extend(measured(space, row) for row in range(8, space.size))
    lab.grow(table)
    qtbot.waitUntil(lambda: lab.result.index != first, timeout=5000)
    assert lab.result.index == int(np.nanargmin(table.values("time_s")))


def test_the_slider_goes_from_least_energy_to_fastest(lab: Lab, bar: ChooserBar) -> None:
    table = filled_session(lab)
    costs = costs_of(table)
    assert not bar.weight.isVisible()
    bar.choose_by("weighted")
    assert bar.weight.isVisible()
    bar.weight.setValue(0)
    assert lab.result.index == least_energy(costs.time_s, costs.energy_j)
    bar.weight.setValue(100)
    assert bar.words.text() == f"This is the fastest. Measured at {HIGHEST_CLOCK}."


def test_limits_are_kept_and_a_limit_that_nothing_meets_is_said(lab: Lab, bar: ChooserBar) -> None:
    table = filled_session(lab)
    bar.choose_by("at_most_slower")
    bar.limit.setValue(10)
    chosen = table.measurement(lab.result.index)
    fastest = min(m.values["time_s"] for m in map(table.measurement, range(len(table))) if m.state is State.OK)
    assert chosen.values["time_s"] <= 1.1 * fastest
    bar.choose_by("at_most_power")
    bar.limit.setValue(200)
    assert table.measurement(lab.result.index).values["power_w"] <= 200
    lab.grow(table, best=9)
    bar.limit.setValue(1)
    assert lab.result.index == -1
    assert "Nothing measured" in bar.words.text()


def test_a_click_elsewhere_ends_the_way_to_choose(lab: Lab, bar: ChooserBar) -> None:
    filled_session(lab)
    bar.choose_by("knee")
    lab.result.select(7)
    assert bar.way.name == "by_hand"
    assert "Against the fastest" in bar.words.text()
    bar.choose_by("knee")
    lab.result.select(lab.result.index)  # a table that follows
    assert bar.way.name == "knee"


def test_an_earlier_choice_is_made_again_in_its_own_way(lab: Lab, bar: ChooserBar) -> None:
    table = filled_session(lab)
    bar.choose_by("at_most_slower")
    bar.limit.setValue(10)
    limited = lab.result.choice
    assert limited.way == "at most 10 % slower"
    bar.choose_by("weighted")
    for weight in range(40, 70):
        bar.weight.setValue(weight)
    assert lab.result.way == "least a t + (1 − a) e, a = 0.69"
    lab.result.select(7)
    lab.result.undo()
    assert (bar.way.name, bar.weight.value()) == ("weighted", 69)
    lab.result.undo()
    assert lab.result.choice == limited, "what the slider passed by on its way is no choice"
    assert (bar.way.name, bar.limit.value()) == ("at_most_slower", 10)
    lab.grow(table)
    bar.refresh()
    assert lab.result.choice == limited, "and it is chosen so in a table that grows"
    lab.result.undo()
    assert (lab.result.index, bar.way.name, lab.result.can_undo) == (-1, "by_hand", False)


def test_choices_are_made_among_what_is_shown(lab: Lab, bar: ChooserBar) -> None:
    table = filled_session(lab)
    bar.choose_by("least_energy")
    best = table.measurement(lab.result.index).configuration
    lab.result.show_only(EVERYTHING.toggled("layout", (("row", "column").index(str(best["layout"])),)))
    assert table.measurement(lab.result.index).configuration["layout"] != best["layout"]
    assert lab.result.way == "least energy, of what is shown"


def test_what_a_year_costs_follows_the_settings_and_is_kept(lab: Lab, bar: ChooserBar, qtbot: QtBot) -> None:
    filled_session(lab)
    bar.choose_by("least_energy")
    bar.load.hours.setValue(1000)
    first = bar.words.text()
    bar.load.price.setValue(1.0)
    bar.load.carbon.setValue(100)
    assert bar.words.text() != first
    assert "1000 h a year" in bar.words.text()
    bar.load.boards.setValue(8)
    assert "1000 h a year on 8 boards" in bar.words.text()
    again = ChooserBar(lab.context, Settings())
    qtbot.addWidget(again)
    assert (again.load.hours.value(), again.load.price.value()) == (1000, 1.0)


def test_prices_that_are_set_elsewhere_are_taken_over(lab: Lab, bar: ChooserBar) -> None:
    filled_session(lab)
    bar.choose_by("least_energy")
    before = bar.words.text()
    Settings().load = replace(Settings().load, price_per_kwh=2.5)
    lab.result.select(lab.result.index - 1)
    bar.choose_by("least_energy")
    assert bar.load.price.value() == 2.5
    assert bar.words.text() != before


def test_a_failed_configuration_has_no_cost_to_compare(lab: Lab, bar: ChooserBar) -> None:
    table = filled_session(lab)
    lab.result.select(next(i for i in range(len(table)) if table.measurement(i).error))
    assert bar.words.text() == "What it costs and gains against the fastest is not known."


def test_every_control_has_a_name_and_can_be_reached_by_tab(lab: Lab, bar: ChooserBar) -> None:
    filled_session(lab)
    for control in (bar.choose_button, bar.per_year, bar.limit, bar.weight):
        assert control.accessibleName() or control.text()
        assert control.focusPolicy() & Qt.FocusPolicy.TabFocus, control
