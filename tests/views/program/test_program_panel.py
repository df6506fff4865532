"""The workspace Program: what is chosen in one view is chosen in all, with the joules of the file; zoom; comparison."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fixtures.lab import Lab
from fixtures.profiles import POWER, TRACE, made_profile, small_profile
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.base.formatting import number
from app.engine.profile.kept_profile import keep_profile, kept_profiles, open_profile, save_profile
from app.engine.profile.program_profile import FamilyEnergy, GroupEnergy
from app.views.program.program_panel import ProgramPanel
from app.views.program.slice_lanes import lanes_of
from app.views.program.timeline import ProgramTimeline

LIMIT_MS = 60_000


@pytest.fixture
def panel(qtbot: QtBot, lab: Lab) -> Iterator[ProgramPanel]:
    made = ProgramPanel(lab.context)
    qtbot.addWidget(made)
    made.resize(1200, 800)
    made.show()
    yield made
    made.shutdown()


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return save_profile(tmp_path / "small.wprofile", *small_profile())


def opened(panel: ProgramPanel, qtbot: QtBot, path: Path) -> ProgramTimeline:
    panel.open(path)
    qtbot.waitUntil(lambda: panel.opened is not None and panel.opened.path == path, timeout=LIMIT_MS)
    assert panel.timeline is not None
    qtbot.waitUntil(lambda: not panel.busy, timeout=LIMIT_MS)
    return panel.timeline


def said(panel: ProgramPanel) -> str:
    return panel.words.toPlainText()


def rows(panel: ProgramPanel) -> list[str]:
    model = panel.table.table.model()
    return [model.index(row, 0).data() for row in range(model.rowCount())]


def test_a_family_selected_in_the_table_has_the_joules_of_the_file_in_every_view(
    panel: ProgramPanel, qtbot: QtBot, kept: Path
) -> None:
    opened(panel, qtbot, kept)
    profile, attributed = open_profile(kept)
    alone = [each for each in profile.families if each.group is None]
    assert len(alone) >= 3
    for family in alone[:3]:
        panel.table.table.selectRow(rows(panel).index(family.name))
        low, high = family.energy_j_interval or (math.nan, math.nan)
        joules = f"{number(family.energy_j)} J ({number(low)}–{number(high)})"
        qtbot.waitUntil(lambda joules=joules: joules in said(panel), timeout=LIMIT_MS)
        assert panel.icicle is not None
        node = max(
            (each for each in nodes(panel.icicle._root) if each.stack[-1:] == (family.name,)), key=lambda n: n.joules
        )
        panel.icicle.go(node)
        qtbot.waitUntil(lambda joules=joules: joules in said(panel), timeout=LIMIT_MS)
        place = [each.name for each in attributed.families].index(family.name)
        assert panel.timeline is not None
        (lane,) = (each for each in panel.timeline._slices if not each.ranges and place in each.key)
        panel.timeline.choose((lane, int(np.flatnonzero(lane.key == place)[0])))
        row = int(lane.rows[np.flatnonzero(lane.key == place)[0]])
        assert number(float(attributed.energy_j[row])) in said(panel)
        assert family.name in said(panel)


def nodes(root: object) -> Iterator[object]:
    yield root
    for each in root.inner:  # type: ignore[attr-defined]
        yield from nodes(each)


def test_of_a_group_only_its_joules_are_known(panel: ProgramPanel, qtbot: QtBot, kept: Path) -> None:
    opened(panel, qtbot, kept)
    assert panel.opened is not None
    profile = panel.opened.profile
    grouped = [each for each in profile.families if each.group is not None]
    assert grouped
    panel.table.table.selectRow(rows(panel).index(grouped[0].name))
    (group,) = (each for each in profile.groups if each.number == grouped[0].group)
    assert f"only the joules of group {group.number} are known" in said(panel)
    assert f"{number(group.energy_j)} J" in said(panel)


def test_ranges_and_their_children_are_chosen_and_lit(panel: ProgramPanel, qtbot: QtBot, kept: Path) -> None:
    timeline = opened(panel, qtbot, kept)
    assert panel.opened is not None
    profile = panel.opened.profile
    lane = next(each for each in timeline._slices if each.ranges)
    timeline.choose((lane, 0))
    name = timeline._attributed.trace.paths[int(lane.key[0])]
    part = next(each for each in profile.ranges if each.path == name)
    assert f"{number(part.energy_j)} J" in said(panel)
    assert panel.table.which.currentText() == "ranges"


def test_the_table_is_searched_and_sorted(panel: ProgramPanel, qtbot: QtBot, kept: Path) -> None:
    opened(panel, qtbot, kept)
    assert panel.opened is not None
    profile = panel.opened.profile
    energies = {each.label: each.energy_j for each in (*profile.families, *profile.groups, profile.gaps)}
    known = [energies[name] for name in rows(panel) if math.isfinite(energies.get(name, math.nan))]
    assert known == sorted(known, reverse=True)
    panel.table.search.setText("elementwise")
    assert rows(panel)
    assert all("elementwise" in name for name in rows(panel))
    panel.table.search.clear()
    model = panel.table.table.model()
    model.sort(5, Qt.SortOrder.DescendingOrder)
    counts = [float(model.index(row, 5).data()) for row in range(model.rowCount()) if model.index(row, 5).data() != "–"]
    assert counts == sorted(counts, reverse=True)


def test_a_marked_span_has_its_joules(panel: ProgramPanel, qtbot: QtBot, kept: Path) -> None:
    timeline = opened(panel, qtbot, kept)
    y, half = timeline.height() // 2, (timeline._layout().left + timeline._layout().right) // 2
    QTest.mousePress(timeline, Qt.MouseButton.LeftButton, pos=QPoint(timeline._layout().left + 5, y))
    QTest.mouseMove(timeline, QPoint(half, y))
    QTest.mouseRelease(timeline, Qt.MouseButton.LeftButton, pos=QPoint(half, y))
    qtbot.waitUntil(lambda: not panel.busy and "what took them" in said(panel), timeout=LIMIT_MS)
    assert "95 %" in said(panel)
    QTest.keyClick(timeline, Qt.Key.Key_Escape)
    assert timeline.span is None
    assert "board busy" in said(panel)


def test_keys_zoom_to_a_microsecond_and_back_and_choose_slices(panel: ProgramPanel, qtbot: QtBot, kept: Path) -> None:
    timeline = opened(panel, qtbot, kept)
    timeline.setFocus()
    whole = timeline.bounds
    for _ in range(40):
        QTest.keyClick(timeline, Qt.Key.Key_Plus)
    start, end = timeline.bounds
    assert end - start == pytest.approx(1000, abs=1)
    QTest.keyClick(timeline, Qt.Key.Key_Down)
    assert timeline.chosen is not None
    lane, at = timeline.chosen
    QTest.keyClick(timeline, Qt.Key.Key_Right, Qt.KeyboardModifier.ControlModifier)
    assert timeline.chosen == (lane, at + 1)
    QTest.keyClick(timeline, Qt.Key.Key_Return)
    start, end = timeline.bounds
    assert start <= lane.begin[at + 1] < end
    for _ in range(60):
        QTest.keyClick(timeline, Qt.Key.Key_Minus)
    assert timeline.bounds == pytest.approx(whole, abs=2)


def test_a_click_chooses_the_slice_there(panel: ProgramPanel, qtbot: QtBot, kept: Path) -> None:
    timeline = opened(panel, qtbot, kept)
    lane = next(each for each in timeline._slices if not each.ranges)
    longest = int(np.argmax(lane.end - lane.begin))
    length = int(lane.end[longest] - lane.begin[longest])
    timeline.show_window(int(lane.begin[longest]) - length, int(lane.end[longest]) + length)
    box = timeline._layout().lanes[timeline._slices.index(lane)].plot
    QTest.mouseClick(timeline, Qt.MouseButton.LeftButton, pos=box.center())
    assert timeline.chosen == (lane, longest)
    assert "launched in" in said(panel)


@pytest.mark.parametrize(
    "window", [(0, 60_000_000_000), (10_000_000_000, 10_100_000_000), (30_000_000_000, 30_000_100_000)]
)
def test_columns_hold_the_time_that_each_family_takes(window: tuple[int, int]) -> None:
    """Against every slice counted one by one."""
    _, attributed = made_profile(20_000)
    for lane in lanes_of(attributed):
        start, end = window
        number_of = 50
        top, share = lane.columns(start, end, number_of)
        edges = np.linspace(start, end, number_of + 1).astype(np.int64)
        for column in range(number_of):
            inside = np.minimum(lane.end, edges[column + 1]) - np.maximum(lane.begin, edges[column])
            took = np.bincount(lane.key, np.clip(inside, 0, None))
            assert share[column] == pytest.approx(took.sum() / (edges[column + 1] - edges[column]), abs=1e-6)
            assert took[top[column]] == took.max()


def test_another_profile_stands_beside_it(panel: ProgramPanel, qtbot: QtBot, kept: Path, tmp_path: Path) -> None:
    other = save_profile(tmp_path / "made.wprofile", *made_profile(2000))
    opened(panel, qtbot, kept)
    panel.compare_with(other)
    qtbot.waitUntil(lambda: panel.tabs.currentWidget() is panel.compared, timeout=LIMIT_MS)
    assert "difference" in said(panel)
    assert panel.compared.table.model().rowCount() > 3
    panel.compare_with(kept)
    qtbot.waitUntil(lambda: not panel.busy, timeout=LIMIT_MS)
    assert panel.tabs.count() == 3


def test_kept_profiles_are_offered_for_comparison(panel: ProgramPanel, qtbot: QtBot, kept: Path) -> None:
    keep_profile(*made_profile(2000))
    opened(panel, qtbot, kept)
    texts = [panel.others.itemText(place) for place in range(panel.others.count())]
    assert any(text.startswith("made, ") for text in texts)


def test_a_trace_asks_for_its_power_and_becomes_a_profile(panel: ProgramPanel, qtbot: QtBot) -> None:
    panel.open(TRACE)
    assert panel.power.isVisible()
    assert "Choose the power" in panel.message.text()
    panel.open_power(POWER)
    qtbot.waitUntil(lambda: panel.opened is not None, timeout=LIMIT_MS)
    (item,) = kept_profiles()
    assert panel.opened is not None
    assert panel.opened.path == item.path
    assert not panel.power.isVisible()


def test_a_damaged_file_is_one_line_and_nothing_is_lost(
    panel: ProgramPanel, qtbot: QtBot, kept: Path, tmp_path: Path
) -> None:
    opened(panel, qtbot, kept)
    damaged = tmp_path / "damaged.wprofile"
    damaged.write_bytes(kept.read_bytes()[:5000])
    panel.open(damaged)
    qtbot.waitUntil(lambda: "no profile" in panel.message.text(), timeout=LIMIT_MS)
    assert panel.opened is not None
    assert panel.opened.path == kept


def test_next_steps_are_copied(panel: ProgramPanel, qtbot: QtBot, kept: Path) -> None:
    opened(panel, qtbot, kept)
    assert panel.opened is not None
    steps = panel.opened.profile.next_steps
    assert len(panel._steps.rows) == len(steps)
    row = panel._rows[0]
    row.copy.click()
    assert QGuiApplication.clipboard().text() == "wattridge profile -- python train.py"


def test_every_part_of_the_profile_can_be_chosen(panel: ProgramPanel, qtbot: QtBot, kept: Path) -> None:
    opened(panel, qtbot, kept)
    for which in range(panel.table.which.count()):
        panel.table.which.setCurrentIndex(which)
        for row in range(panel.table.table.model().rowCount()):
            panel.table.table.selectRow(row)
            assert panel._parts[which][panel.table._models[which].place(row)].label[:20] in said(panel).replace(
                "\n", " "
            )
    assert panel.icicle is not None
    for node in nodes(panel.icicle._root):
        panel.icicle.go(node)  # type: ignore[arg-type]
        assert said(panel)
    kinds = {type(part) for part in panel._parts[0]}
    assert {FamilyEnergy, GroupEnergy} <= kinds


def test_a_program_without_ranges_without_samples_and_of_one_slice_is_shown(
    panel: ProgramPanel, qtbot: QtBot, tmp_path: Path
) -> None:
    profile, attributed = made_profile(3, families=2, streams=1)
    columns = ("kind", "name", "operator", "stream", "start_ns", "duration_ns", "moved_bytes", "instance")
    one = {name: getattr(attributed.trace, name)[:1] for name in columns}
    ranges = {name: getattr(attributed.trace, name)[:0] for name in ("range_path", "range_parent", "range_start_ns")}
    lasts = attributed.trace.range_duration_ns[:0]
    trace = replace(
        attributed.trace, **{**one, "instance": one["instance"] * 0 - 1}, **ranges, range_duration_ns=lasts, paths=()
    )
    none = np.empty(0)
    small = replace(
        attributed, trace=trace, family=attributed.family[:1], energy_j=attributed.energy_j[:1],
        power_w=attributed.power_w[:1], sample_s=none, sample_w=none, sample_mhz=none,
    )  # fmt: skip
    timeline = opened(panel, qtbot, save_profile(tmp_path / "one.wprofile", profile, small))
    timeline.grab()
    QTest.keyClick(timeline, Qt.Key.Key_Down)
    assert timeline.chosen is not None
    assert "launched in" in said(panel)
    assert panel.table.which.count() == 1
