"""A row of the library has none of the other makers' parameters, and no view shows them as 0."""

from __future__ import annotations

import math
import re
import threading

from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.engine.session.load import load_specification
from app.engine.session.opened import Opened, stored_session
from app.engine.session.planning import plan_specification
from app.engine.session.run import run_session
from app.engine.session.summary import library_index
from app.engine.specification.operator_kernels import kept_specification
from app.engine.specification.operator_shapes import parse_operator
from app.engine.specification.plan import SearchOptions
from app.engine.store.database import Store
from app.sensors.select import open_gpu
from app.views.front.hover_card import measurement_html
from app.views.front.table_panel import ResultsModel
from app.views.inspector.facts import facts_as_html


def opened_session() -> Opened:
    spec = load_specification(kept_specification(parse_operator("mm:1,4096,4096,4096:bf16")))
    options = SearchOptions(strategy="random_sample", max_evaluations=2, seed=2)
    plan = plan_specification(spec, open_gpu("simulated:h200", speed=math.inf), options)
    with Store() as store:
        session = run_session(plan, store, lambda _: None, threading.Event()).session
        return stored_session(store, session)


def test_the_facts_the_card_and_the_table_name_what_the_library_has(qtbot: QtBot) -> None:
    opened = opened_session()
    index = library_index(opened.table, opened.plan.space)
    assert index is not None
    of_library = opened.table.measurement(index)
    others = [name for name, value in of_library.configuration.items() if value in (0, "-")]
    assert "block_m" in others
    assert "maker" not in others
    facts = facts_as_html(of_library, opened.plan, program=False)
    card = measurement_html(opened.table, opened.plan, index)
    assert "library" in facts
    assert "library" in card.replace("&nbsp;", " ")
    assert not [name for name in others if re.search(rf"\b{name}\b", facts + card)]
    model = ResultsModel()
    model.set_session(opened.table, opened.plan)
    headings = [
        model.headerData(column, Qt.Orientation.Horizontal, Qt.ItemDataRole.DisplayRole)
        for column in range(model.columnCount())
    ]
    row = [model.index(index, column).data() for column in range(model.columnCount())]
    shown = dict(zip(headings, row, strict=True))
    assert shown["maker"] == "library"
    assert {shown[name] for name in others if name in shown} == {""}
