"""Whatever figures a file holds, analysis and report come to an end: bounded, valid JSON, well-formed pictures."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import product
from xml.etree import ElementTree

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.base.errors import InputError
from app.base.records import as_json
from app.engine.analysis.analysis_document import document_of
from app.engine.analysis.charts import CHARTS, Analysed
from app.engine.analysis.compare import Compared, compare_sessions
from app.engine.analysis.describe_analysis import describe_analysis, describe_comparison
from app.engine.analysis.session_analysis import analyse
from app.engine.report.content import gather
from app.engine.report.page import report_html
from app.engine.report.svg import drawn
from app.engine.results.chart import Chart
from app.engine.results.measurement import Measurement, State
from app.engine.results.objectives import Goal, Objective
from app.engine.space.result_table import ResultTable
from app.engine.space.search_space import space_of_table
from app.engine.specification.plan import SessionPlan
from app.engine.store.database import Store

NAMES = ("time_s", "energy_j", "power_w", "GFLOP/s", "GFLOPS/W", "reference_time_s", "word")
figures = st.sampled_from([0.0, 1.0, 1.0 + 1e-15, 2.0, -3.0, 1e-308, 1e308, 1e-9, math.inf, -math.inf, math.nan])
outcomes = st.dictionaries(st.sampled_from(NAMES), st.one_of(figures, st.floats()), max_size=len(NAMES))
goals = st.builds(Goal, st.sampled_from((*NAMES, "clock", "missing")), st.booleans())


def table_of(rows: list[tuple[State, dict[str, float]]]) -> ResultTable:
    values = [(clock, word, n) for clock in (100, 200) for word in ("a", "b", "c") for n in range(5)]
    space = space_of_table({"clock": [100, 200], "word": ["a", "b", "c"], "n": list(range(5))}, values)
    table = ResultTable(space)
    for row, (state, measured) in enumerate(rows):
        table.append(Measurement(row, space.configuration(row), state, measured, timestamp_s=1e9 + row))
    return table


sessions = st.lists(st.tuples(st.sampled_from([State.OK] * 4 + [State.RUNTIME]), outcomes), max_size=30).map(table_of)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store(tmp_path_factory.mktemp("store") / "s.sqlite") as opened:
        yield opened


@settings(
    max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None
)
@given(sessions, goals, st.lists(goals, min_size=2, max_size=2, unique_by=lambda goal: goal.name))
def test_any_session_is_analysed_and_reported(store: Store, table: ResultTable, goal: Goal, front: list[Goal]) -> None:
    objective = Objective(goal, tuple(front))

    plan = SessionPlan(
        title="kernel",
        gpu="board",
        driver="",
        source="recorded",
        space=table.space,
        objective=objective,
        strategy="brute_force",
    )
    content = gather(plan, analyse(table, objective), store)
    json.dumps(as_json(document_of(content.analysis)), allow_nan=False)
    described = describe_analysis(content.analysis)
    assert all(each.title and all(listing.rows for listing in each.listings) for each in described)
    session = Analysed(content.analysis, plan)
    for chart in CHARTS:
        for chosen in product(*(choices(session) or [("", "")] for choices in chart.choices)):
            made = chart.draw(session, *(data for data, _ in chosen))
            assert made if isinstance(made, str) else made.x_title and made.caption
            if isinstance(made, Chart) and (picture := drawn(made)):
                ElementTree.fromstring(picture)
    text = report_html(content)
    assert len(text) < 400_000
    for svg in re.findall(r"<svg.*?</svg>", text, re.S):
        ElementTree.fromstring(svg)
        assert not re.search(r'="[^"]*\b(nan|inf)\b', svg)


@settings(max_examples=40, deadline=None)
@given(sessions, sessions)
def test_any_two_sessions_are_compared_or_refused(one: ResultTable, other: ResultTable) -> None:
    with suppress(InputError):  # nothing worked, or no figure is common
        found = compare_sessions([Compared("1", "a", "nvml", one), Compared("2", "b", "nvml", other)])
        json.dumps(as_json(found), allow_nan=False)
        assert len(describe_comparison(found).listings[0].rows) == 2
