"""The scatter below the panel: the cloud's picture, picking, markers, and the front that grows with the results."""

from __future__ import annotations

import numpy as np
import pyqtgraph as pg
import pytest
import shiboken6
from fixtures.lab import EFFICIENCY, OBJECTIVE, SPEED, filled, grid_space, measured
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QPointF
from PySide6.QtGui import QImage, QPainter
from PySide6.QtWidgets import QMainWindow
from pytestqt.qtbot import QtBot

from app.engine.results.measurement import Measurement, State
from app.engine.results.objectives import Goal, Limit
from app.engine.results.pareto import front
from app.engine.space.result_table import ResultTable
from app.views.front.points import FrontPoints
from app.views.plots import markers
from app.views.plots.markers import COLOURS, DIM, SHAPES, Coding, colour_scale
from app.views.plots.scatter import PointCloud
from app.views.shared import theme


@pytest.fixture
def cloud(qtbot: QtBot) -> PointCloud:
    plot = pg.PlotWidget()
    qtbot.addWidget(plot)
    plot.resize(420, 300)
    plot.getViewBox().setRange(xRange=(0, 10), yRange=(0, 10), padding=0)
    made = PointCloud(plot.getViewBox(), theme.LIGHT)
    made.plot = plot  # type: ignore[attr-defined]  # kept alive with the cloud
    plot.show()
    qtbot.waitExposed(plot)
    return made


def picture(cloud: PointCloud) -> QImage:
    grabbed: QImage = cloud.plot.grab().toImage()  # type: ignore[attr-defined]
    return grabbed


def points(count: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.uniform(1, 9, count), rng.uniform(1, 9, count), rng.integers(0, COLOURS, count).astype(np.uint16)


def test_appended_points_give_the_same_picture_as_points_set_at_once(cloud: PointCloud) -> None:
    x, y, style = points(250)
    cloud.set_points(x, y, style)
    at_once = picture(cloud)
    cloud.set_points(x[:100], y[:100], style[:100])
    picture(cloud)
    for start in range(100, 250, 10):
        cloud.append(x[start : start + 10], y[start : start + 10], style[start : start + 10])
        picture(cloud)
    assert picture(cloud) == at_once


def test_a_marker_is_drawn_when_it_is_first_shown(cloud: PointCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn, draw = [], markers.draw_marker

    def noted(painter: QPainter, shape: str, centre: QPointF, size: float) -> None:
        drawn.append(shape)
        draw(painter, shape, centre, size)

    monkeypatch.setattr(markers, "draw_marker", noted)
    cloud.set_points(np.array([3.0, 4.0]), np.array([3.0, 4.0]), np.array([7, 7], dtype=np.uint16))
    picture(cloud)
    assert drawn == ["circle"]
    cloud.append(np.array([5.0, 6.0]), np.array([5.0, 6.0]), np.array([COLOURS, DIM], dtype=np.uint16))
    picture(cloud)
    assert sorted(drawn) == ["circle", "circle", "square"]


def test_painting_leaves_what_else_the_window_holds_alone(qtbot: QtBot, cloud: PointCloud) -> None:
    window, plot = QMainWindow(), cloud.plot  # type: ignore[attr-defined]
    qtbot.addWidget(window)
    action = window.menuBar().addMenu("Menu").addAction("Entry")
    held = plot.addAction("Held")
    window.setCentralWidget(plot)
    window.show()
    cloud.set_points(*points(250))
    for _ in range(3):
        window.grab()
        plot.grab()
    valid = shiboken6.isValid(action), shiboken6.isValid(held)
    window.takeCentralWidget()
    assert valid == (True, True), "Qt deleted nothing, so Python's side must not think so"


def test_points_are_drawn_where_they_are_and_nowhere_else(cloud: PointCloud) -> None:
    empty = picture(cloud)
    cloud.set_points(np.asarray([5.0]), np.asarray([5.0]), np.zeros(1, dtype=np.uint16))
    view = cloud.view
    centre = view.mapToScene(QPointF(view.width() / 2, view.height() / 2)).toPoint()
    drawn = picture(cloud)
    assert drawn.pixelColor(centre).name() == theme.LIGHT.colour_map[0]
    changed = [
        (x, y) for x in range(drawn.width()) for y in range(drawn.height()) if drawn.pixel(x, y) != empty.pixel(x, y)
    ]
    assert changed
    assert all(abs(x - centre.x()) <= 8 and abs(y - centre.y()) <= 8 for x, y in changed)


def test_points_by_the_ten_thousand_are_drawn_where_they_are_and_cut_off_at_the_edge(cloud: PointCloud) -> None:
    empty = picture(cloud)
    places = np.asarray([(5.0, 5.0), (2.0, 8.0), (0.0, 3.0), (10.0, 10.0), (12.0, 5.0)])  # two at edges, one outside
    x, y = np.tile(places, (8000, 1)).T
    cloud.set_points(x, y, np.zeros(len(x), dtype=np.uint16))
    drawn = picture(cloud)
    view = cloud.view
    expected = theme.LIGHT.colour_map[0]
    half = cloud.marker_size() / 2 + 1.5
    at = [view.mapViewToScene(QPointF(*place)) for place in places[:4]]
    for scene in at[:2]:
        assert drawn.pixelColor(scene.toPoint()).name() == expected
    changed = {
        (u, v) for u in range(drawn.width()) for v in range(drawn.height()) if drawn.pixel(u, v) != empty.pixel(u, v)
    }
    assert all(any(abs(u - s.x()) <= half and abs(v - s.y()) <= half for s in at) for u, v in changed)
    assert any(abs(u - at[2].x()) <= half and abs(v - at[2].y()) <= half for u, v in changed)  # cut off, yet there


@pytest.mark.parametrize("count", [500, 40_000], ids=["drawn", "stamped"])
def test_what_is_dimmed_lies_below_whatever_comes_later(cloud: PointCloud, count: int) -> None:
    style = np.full(count, DIM, dtype=np.uint16)
    style[0] = 0
    cloud.set_points(np.full(count, 5.0), np.full(count, 5.0), style)
    view = cloud.view
    centre = view.mapViewToScene(QPointF(5.0, 5.0)).toPoint()
    assert picture(cloud).pixelColor(centre).name() == theme.LIGHT.colour_map[0]
    cloud.set_styles(np.full(count, DIM, dtype=np.uint16))
    assert picture(cloud).pixelColor(centre).name() != theme.LIGHT.colour_map[0]


def test_no_shape_hides_the_others_where_tens_of_thousands_lie(cloud: PointCloud) -> None:
    rng = np.random.default_rng(5)
    x, y = rng.uniform(0, 10, (2, 60_000))
    shape = rng.integers(0, 4, 60_000)
    style = (shape * COLOURS + shape * 15).astype(np.uint16)
    cloud.set_points(x, y, style)
    drawn = picture(cloud)
    box = cloud.view.sceneBoundingRect().toRect().adjusted(4, 4, -4, -4)
    colours = np.asarray(
        [
            drawn.pixelColor(u, v).getRgb()[:3]
            for u in range(box.left(), box.right(), 3)
            for v in range(box.top(), box.bottom(), 3)
        ]
    )
    scale = np.asarray([colour.getRgb()[:3] for colour in colour_scale(theme.LIGHT)])[[0, 15, 30, 45]]
    distance = np.abs(colours[:, None, :] - scale[None, :, :]).sum(axis=2)  # a little fainter where fewer points lie
    nearest = distance.argmin(axis=1)[distance.min(axis=1) < 100]
    shares = np.bincount(nearest, minlength=4) / len(colours)
    assert shares.min() > 0.15
    assert shares.sum() > 0.9


@pytest.mark.parametrize("count", [2_000, 60_000], ids=["drawn", "stamped"])
def test_the_denser_the_crowd_the_stronger_it_is_drawn(cloud: PointCloud, count: int) -> None:
    """A dense half, a half with a hundredth of the points, and the same whatever came last."""
    rng = np.random.default_rng(3)
    dense = rng.random(count) < 0.99
    x = np.where(dense, rng.uniform(1, 4.5, count), rng.uniform(5.5, 9, count))
    cloud.set_points(x, rng.uniform(1, 9, count), np.zeros(count, dtype=np.uint16))
    assert cloud.faded
    cloud.plot.setBackground("w")  # type: ignore[attr-defined]
    drawn = picture(cloud)
    box = cloud.view.sceneBoundingRect().toRect()

    def darkest(left: float, right: float) -> float:
        columns = range(int(box.left() + left * box.width()), int(box.left() + right * box.width()), 2)
        shades = [drawn.pixelColor(u, v).lightness() for u in columns for v in range(box.top(), box.bottom(), 2)]
        return float(np.percentile([shade for shade in shades if shade < 225], 20))

    assert darkest(0.15, 0.4) < darkest(0.6, 0.85) - 20


def test_points_are_not_faded_where_only_few_are_in_sight(cloud: PointCloud) -> None:
    cloud.plot.setBackground("w")  # type: ignore[attr-defined]
    x, y = np.full(2_000, 50.0), np.full(2_000, 50.0)
    x[7], y[7] = 5.0, 5.0
    cloud.set_points(x, y, np.zeros(2_000, dtype=np.uint16))
    centre = cloud.view.mapViewToScene(QPointF(5.0, 5.0)).toPoint()
    assert picture(cloud).pixelColor(centre).name() == theme.LIGHT.colour_map[0]


def test_what_is_marked_is_not_faded(cloud: PointCloud) -> None:
    x, y, style = points(2_000)
    cloud.set_points(x, y, style)
    assert cloud.faded
    cloud.set_styles(np.where(np.arange(2_000) < 10, style, DIM).astype(np.uint16))
    assert not cloud.faded
    cloud.set_styles(style)
    assert cloud.faded


def test_points_measured_last_do_not_hide_the_others_in_a_crowd(cloud: PointCloud) -> None:
    count = 40_000
    half = np.where(np.arange(count) < count // 2, 0, COLOURS - 1).astype(np.uint16)
    rng = np.random.default_rng(4)
    cloud.set_points(rng.uniform(0, 10, count), rng.uniform(0, 10, count), half)
    drawn = picture(cloud)
    box = cloud.view.sceneBoundingRect().toRect().adjusted(4, 4, -4, -4)
    shades = [
        drawn.pixelColor(u, v).lightness()
        for u in range(box.left(), box.right(), 3)
        for v in range(box.top(), box.bottom(), 3)
    ]
    middle = (max(shades) + min(shades)) / 2
    assert 0.3 < np.mean(np.asarray(shades) < middle) < 0.7


def test_a_view_that_moves_moves_the_points(cloud: PointCloud) -> None:
    x, y, style = points(50)
    cloud.set_points(x, y, style)
    before = picture(cloud)
    cloud.view.setRange(xRange=(0, 20), padding=0)
    assert picture(cloud) != before


def test_the_nearest_point_in_sight_is_picked_and_the_upper_of_two_in_one_place(cloud: PointCloud) -> None:
    x, y, style = points(500)
    x[10], y[10], x[400], y[400] = 5.0, 5.0, 5.0, 5.0
    cloud.set_points(x, y, style)
    view = cloud.view
    middle = QPointF(view.width() / 2, view.height() / 2)
    assert cloud.nearest(middle) == 400
    px, py = x / 10 * view.width(), (1 - y / 10) * view.height()
    for at in (QPointF(37, 80), QPointF(200, 140), QPointF(310, 33)):
        distance = np.hypot(px - at.x(), py - at.y())
        assert cloud.nearest(at, reach=60) == int(np.argmin(distance))


def test_nothing_is_picked_far_from_every_point(cloud: PointCloud) -> None:
    assert cloud.nearest(QPointF(10, 10)) is None
    cloud.set_points(np.asarray([5.0]), np.asarray([5.0]), np.zeros(1, dtype=np.uint16))
    assert cloud.nearest(QPointF(3, 3)) is None


def test_few_values_differ_in_shape_and_colour_many_only_in_colour() -> None:
    few = Coding(np.asarray([1815.0, 1485.0, 1590.0, 1485.0]))
    styles = few.styles(np.asarray([1485.0, 1590.0, 1815.0]))
    assert len({style // COLOURS for style in styles}) == 3
    assert sorted(style % COLOURS for style in styles) == [style % COLOURS for style in styles]
    many = Coding(np.linspace(0, 1, 1000))
    assert {style // COLOURS for style in many.styles(np.linspace(0, 1, 50))} == {SHAPES.index("circle")}


def test_a_value_outside_the_coding_is_noticed_and_an_unknown_one_is_a_cross() -> None:
    coding = Coding(np.asarray([1.0, 2.0]))
    assert coding.covers(np.asarray([1.0, np.nan]))
    assert not coding.covers(np.asarray([1.5]))
    assert coding.styles(np.asarray([np.nan]))[0] // COLOURS == SHAPES.index("cross")
    assert not Coding(np.linspace(0, 1, 100)).covers(np.asarray([1.1]))


def test_a_column_that_nobody_measured_has_a_coding_too() -> None:
    coding = Coding(np.full(4, np.nan))
    assert set(coding.styles(np.full(4, np.nan)) // COLOURS) == {SHAPES.index("cross")}


@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12), st.booleans()), min_size=1, max_size=60),
    st.integers(1, 9),
    st.booleans(),
    st.booleans(),
)
def test_the_front_that_grows_is_the_front_of_all(
    pairs: list[tuple[int, int, bool]], step: int, more_x: bool, more_y: bool
) -> None:
    space = grid_space(40, 40)
    table = ResultTable(space)
    shown = FrontPoints(table, Goal("a", more_x), Goal("b", more_y))
    for row, (a, b, ok) in enumerate(pairs):
        state = State.OK if ok else State.CORRECTNESS
        table.append(Measurement(row, space.configuration(row), state, {"a": float(a), "b": float(b)}))
        if row % step == 0:
            shown.update()
    shown.update()
    good = [(float(a), float(b)) for a, b, ok in pairs if ok]
    values = np.asarray(good).reshape(-1, 2)
    expected = {tuple(values[i]) for i in front(values, [more_x, more_y])} if good else set()
    assert {(shown.x[p], shown.y[p]) for p in shown.front} == expected


def test_the_ends_of_the_front_are_the_best_of_either_figure() -> None:
    shown = FrontPoints(filled(grid_space()), SPEED, EFFICIENCY)
    shown.update()
    assert shown.best_x is not None
    assert shown.best_y is not None
    assert shown.x[shown.best_x] == shown.x.max()
    assert shown.y[shown.best_y] == shown.y.max()


def test_failed_measurements_have_no_point() -> None:
    space = grid_space()
    table = filled(space)
    shown = FrontPoints(table, SPEED, EFFICIENCY)
    shown.update()
    assert len(shown) == len(table) - sum(table.failures().values())
    failed = next(row for row in range(space.size) if measured(space, row).state is not State.OK)
    assert shown.point_of(failed) is None
    assert OBJECTIVE.front == (SPEED, EFFICIENCY)


def test_the_front_is_of_the_points_that_keep_the_limits() -> None:
    space = grid_space()
    table = filled(space)
    free = FrontPoints(table, SPEED, EFFICIENCY)
    free.update()
    fastest = float(free.x[free.front].max())
    limited = FrontPoints(table, SPEED, EFFICIENCY, limits=(Limit(SPEED.name, True, 0.99 * fastest),))
    limited.update()
    assert len(limited) == len(free), "the others are shown, dimmed"
    assert not limited.within.all()
    assert limited.within[limited.front].all()
    assert limited.x[limited.front].max() < fastest
