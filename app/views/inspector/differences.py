"""Why is A better? What two or three measurements differ in, as a table and a sentence; free of Qt's widgets.

`PinnedView`: the pinned configurations side by side: only what they differ in.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QIcon, QResizeEvent
from PySide6.QtWidgets import QTableWidget, QWidget

from ...base.formatting import MINUS, change
from ...engine.analysis.quantities import parameter_text, quantities_of, quantity
from ...engine.analysis.tradeoff import percent_words, relative_change, tradeoff
from ...engine.results.description import Description, Figure, aligned
from ...engine.results.measurement import Measurement, spreads
from ...engine.specification.operator_shapes import parameters_had
from ...engine.specification.plan import SessionPlan
from ...sensors.event_reasons import names as reason_names
from ..plots.descriptions import fill_columns, prepare_table
from ..shared import theme
from ..shared.captions import source_words
from ..shared.current_result import PIN_NAMES, CurrentResult
from ..shared.label import PlainLabel
from ..shared.widgets import button, hbox, vbox
from .facts import COMPILED

_FIRST = ("time_s", "energy_j", "power_w")  # of the figures
_ONCE = {"settled", "observed_clock_mhz"}  # shown otherwise


def describe_pinned(
    measurements: Sequence[Measurement], indices: Sequence[int], plan: SessionPlan
) -> list[Description]:
    """Each pinned measurement, with the same figures in the same order: those in which not all agree.

    Figures of B and C carry their change against A. A figure that another one repeats under a second name is left out.
    """
    descriptions = [
        Description(
            f"{name} · #{index + 1}",
            source_words(measurement.source),
            tuple(_figures(measurement, measurements[0] if measurement is not measurements[0] else None, plan)),
        )
        for name, index, measurement in zip(PIN_NAMES, indices, measurements, strict=False)
    ]
    rows = [row for row in aligned(descriptions) if len({figure.value for figure in row}) > 1]
    seen: set[tuple[object, ...]] = set()
    kept = []
    for row in rows:
        numbers = tuple(figure.cell for figure in row)
        if row[0].important and numbers in seen:
            continue
        seen.add(numbers)
        kept.append(row)
    return [
        Description(description.title, description.origin, tuple(row[column] for row in kept))
        for column, description in enumerate(descriptions)
    ]


def in_words(measurements: Sequence[Measurement], plan: SessionPlan) -> str:
    """What B and C cost and gain against A, and in which parameters they differ from it."""
    if len(measurements) < 2:
        return "Pin one or two more configurations to see what they differ in."
    first = measurements[0]
    sentences = []
    for name, other in zip(PIN_NAMES[1:], measurements[1:], strict=False):
        a, b = first.values, other.values
        changed = tradeoff(
            a.get("time_s", math.nan),
            a.get("energy_j", math.nan),
            to_time_s=b.get("time_s", math.nan),
            to_energy_j=b.get("energy_j", math.nan),
        )
        words = changed.words if first.values and other.values else "not known"
        if words == "not known":
            words = _of_goal(first, other, plan) or "no common figure"
        differing = _differing(first, other, plan)
        where = f"; differs in {', '.join(differing)}" if differing else "; the same configuration"
        sentences.append(f"{name} against A: {words}{where}.")
    return " ".join(sentences)


def _of_goal(first: Measurement, other: Measurement, plan: SessionPlan) -> str:
    name = plan.objective.goal.name
    before, after = first.values.get(name, math.nan), other.values.get(name, math.nan)
    if math.isnan(before) or math.isnan(after) or not before:
        return ""
    relative = relative_change(before, after)
    return f"{percent_words(relative)} {'less' if relative < 0 else 'more'} {name}"


def _differing(first: Measurement, other: Measurement, plan: SessionPlan) -> list[str]:
    shown = quantities_of(plan)
    return [
        f"{shown[name].label if name in shown else name} "
        f"({parameter_text(first.configuration[name])} → {parameter_text(value)})"
        for name, value in other.configuration.items()
        if name in first.configuration and first.configuration[name] != value
    ]


def _figures(measurement: Measurement, base: Measurement | None, plan: SessionPlan) -> Iterator[Figure]:
    """Parameters and settings, then figures (those are `important`), then what the compiler and the driver said."""
    shown = quantities_of(plan)
    for name, value in parameters_had(measurement.configuration).items():
        described = shown.get(name) or quantity(name, parameter=True)
        yield Figure(described.label, parameter_text(value), described.unit, meaning="parameter")
    values = measurement.values
    left_out = _ONCE | spreads(values) | set(COMPILED)
    for name in dict.fromkeys((*(n for n in _FIRST if n in values), *values)):
        if name in left_out or math.isnan(values[name]):
            continue
        described = quantity(name, units=plan.units)
        before = base.values.get(name, math.nan) if base is not None else math.nan
        yield _measured(described.label, described.unit, values[name] * described.factor, before * described.factor)
    if not math.isnan(measurement.observed_clock_mhz):
        before = base.observed_clock_mhz if base is not None else math.nan
        yield _measured("Observed clock", "MHz", measurement.observed_clock_mhz, before)
    for name, label in COMPILED.items():
        if not math.isnan(values.get(name, math.nan)):
            factor, unit = (100.0, "%") if name == "occupancy" else (1.0, "B" if name.endswith("_byte") else "")
            yield Figure(label, values[name] * factor, unit, meaning="compiled kernel")
    if measurement.window_ns is not None:
        yield Figure("Clock events", ", ".join(reason_names(measurement.event_reasons)) or "none", meaning="driver")
    yield Figure("State", measurement.state.value)


def _measured(label: str, unit: str, value: float, before: float) -> Figure:
    finite = not math.isnan(before) and before and "temperature" not in label.lower()  # no ratio scale
    note = change(value / before).replace("-", MINUS) if finite else ""
    return Figure(label, value, unit, note, important=True, meaning="measured")


class PinnedView(QWidget):
    """Follows the pins of the result while in sight."""

    def __init__(self, result: CurrentResult, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._result = result
        self.words = PlainLabel(wrap=True, selectable=True)
        self.table = QTableWidget()
        self.table.setTabKeyNavigation(False)
        prepare_table(self.table, "What the pinned configurations differ in")
        self.table.verticalHeader().setTextElideMode(Qt.TextElideMode.ElideRight)
        self.table.verticalHeader().setDefaultSectionSize(self.table.fontMetrics().height() + 6)
        self.clear = button("&Unpin all", "Pin nothing any more", result.unpin_all)
        vbox(self.words, (self.table, 1), hbox(1, self.clear), of=self, margins=2, spacing=2)
        theme.notifier().changed.connect(self.refresh)
        self.refresh()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The figures' names leave room for two columns; the whole name is their tool tip."""
        super().resizeEvent(event)
        self.table.verticalHeader().setMaximumWidth(self.width() // 3)

    @Slot()
    def refresh(self) -> None:
        """Show what is pinned now."""
        table, plan, pins = self._result.table, self._result.plan, self._result.pins
        if table is None or plan is None:
            return
        measurements = [table.measurement(index) for index in pins]
        self.words.setText(in_words(measurements, plan) if pins else "")
        descriptions = describe_pinned(measurements, pins, plan) if len(pins) > 1 else []
        self.table.setVisible(len(pins) > 1)
        fill_columns(self.table, descriptions, [QIcon()] * len(descriptions))
