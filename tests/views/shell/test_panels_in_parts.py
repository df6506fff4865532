"""Panels are made in several turns of Qt's loop, so that none of them takes long, whatever the machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyqtgraph as pg
import pytest
import shiboken6
from fixtures.fakes import FakeGpu, filled_trace, working
from fixtures.lab import Lab
from PySide6.QtWidgets import QLabel, QWidget
from pytestqt.qtbot import QtBot

from app.engine.store.database import Store
from app.views.shared import theme
from app.views.shared.context import Context
from app.views.shared.panel import PanelInParts, Part
from app.views.shared.turns import InParts
from app.views.shell.loading import Panels
from app.views.shell.panels import PANELS

Load = Callable[..., Panels]
# As they come up; Boards draws its small traces itself, and wants boards that are watched.
PLOTS = {
    "front": 1,
    "control": 1,
    "convergence": 1,
    "analysis": 1,
    "model": 1,
    "roofline": 3,
    "compare": 1,
    "inspector": 2,
}
NAMES = [spec.name for spec in PANELS if spec.panel and spec.name != "boards"]


class TwoParts(Part, InParts):
    """A label, then another."""

    fails = False

    def __init__(self, context: Context, parent: QWidget | None = None, *, at_once: bool = True) -> None:
        super().__init__(parent)
        self.ended = False
        self.begin(at_once)

    def make(self) -> Iterator[None]:
        self.first = QLabel("first", self)
        yield
        if self.fails:
            raise ValueError("on purpose")
        self.second = QLabel("second", self)

    def shutdown(self) -> None:
        self.ended = self.second is not None


@pytest.fixture
def load(qtbot: QtBot) -> Iterator[Load]:
    """Panels that can be asked for, in a context without an engine; ended when the test is."""
    gpu, window, loaded = FakeGpu(working), QWidget(), []
    with Store() as store:
        lab = Lab(gpu, store, filled_trace(gpu, 1.0))

        def load_them(**makers: Any) -> Panels:
            panels = Panels(window)
            panels.load(makers, lab.context)
            loaded.append(panels)
            return panels

        yield load_them
        for panels in loaded:
            panels.shutdown()
            for _, panel in panels.items():
                panel.setParent(window)
        shiboken6.delete(window)


@pytest.fixture
def plots(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A word for every plot that is made from now on: the plots themselves go with what holds them."""
    made: list[str] = []
    make = pg.PlotItem.__init__

    def noted(self: pg.PlotItem, *args: Any, **options: Any) -> None:
        made.append("plot")
        make(self, *args, **options)

    monkeypatch.setattr(pg.PlotItem, "__init__", noted)
    return made


@pytest.mark.parametrize("name", NAMES)
def test_no_panel_makes_more_than_one_plot_in_a_turn(load: Load, plots: list[str], name: str) -> None:
    panels = load(**{spec.name: spec.load() for spec in PANELS if spec.name == name})
    in_each_turn = []
    while not panels.has(name):
        before = len(plots)
        panels.make_part(name)
        in_each_turn.append(len(plots) - before)
    assert max(in_each_turn) <= 1
    assert sum(in_each_turn) == PLOTS.get(name, 0)
    if isinstance(panels[name], InParts):  # the others are made in less than a frame
        assert in_each_turn[-1] == 0, "it is shown in a later turn than that of its last plot"


def test_a_panel_is_there_once_it_is_whole(load: Load, qtbot: QtBot) -> None:
    panels = load(some=TwoParts)
    there: list[str] = []
    panels.made.connect(there.append)
    while not there:
        assert "some" in panels
        assert not panels.has("some")
        panels.make_part("some")
    assert there == ["some"]
    assert panels["some"].second.text() == "second"
    panels.make_part("some")
    assert there == ["some"], "once"


def test_one_that_is_asked_for_meanwhile_is_made_whole(load: Load) -> None:
    panels = load(some=TwoParts)
    panels.make_part("some")
    panels.make_part("some")
    assert not panels.has("some")
    assert panels["some"].second.text() == "second"
    assert panels.has("some")


def test_by_itself_a_panel_is_whole_at_once(qtbot: QtBot) -> None:
    panel = TwoParts(Lab().context)
    qtbot.addWidget(panel)
    assert panel.is_whole
    assert panel.second.text() == "second"


def test_one_that_cannot_be_made_is_not_asked_for_again(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TwoParts, "fails", True)
    panels = load(some=TwoParts)
    panels.make_part("some")
    panels.make_part("some")
    with pytest.raises(ValueError, match="on purpose"):
        panels.make_part("some")
    assert "some" not in panels
    assert len(panels) == 0


def test_a_window_that_closes_meanwhile_ends_what_the_panel_began(load: Load) -> None:
    panels = load(some=TwoParts)
    panels.make_part("some")
    panels.make_part("some")
    panels.shutdown()
    panel = dict(panels.items())["some"]
    assert panel.ended  # type: ignore[attr-defined]
    assert panel.parentWidget() is panels.parent(), "which deletes it before the engine ends"


@pytest.mark.parametrize("name", PLOTS)
def test_no_grid_has_lines_at_small_ticks(load: Load, name: str) -> None:
    panels = load(**{spec.name: spec.load() for spec in PANELS if spec.name == name})
    axes = [
        item
        for view in panels[name].findChildren(pg.GraphicsView)
        for item in view.scene().items()
        if isinstance(item, pg.AxisItem) and item.orientation in ("left", "bottom") and item.grid is not False
    ]
    assert axes or name in ("analysis", "compare"), "which have a grid with a chart"
    for axis in axes:
        assert len(axis.tickValues(0.0, 2.0, 400.0)) == 1


def test_colours_reach_a_panel_once_it_is_whole_and_no_more_when_it_is_gone(load: Load) -> None:
    class Coloured(PanelInParts):
        def make(self) -> Iterator[None]:
            yield

        def recolour(self) -> None:
            heard.append("colours")

    heard: list[str] = []
    panel = Coloured(Lab().context, at_once=False)
    theme.notifier().changed.emit()
    assert heard == []
    panel.finish()
    theme.notifier().changed.emit()
    assert heard == ["colours"]
    shiboken6.delete(panel)
    theme.notifier().changed.emit()
    assert heard == ["colours"]
