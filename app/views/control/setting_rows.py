"""The rows of the manual controls: a setting's value on the supported steps, what it is now, its range and default.

What is shown and cannot be set has a row too, with the reason.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QGridLayout,
    QLabel,
    QWidget,
)

from ...base.formatting import UNKNOWN
from ...engine.metering.limit_effect import LimitEffect, in_words
from ...engine.results.settings import (
    PROFILE,
    WORDS,
    Setting,
    lower,
    requested_profiles,
    step_mhz,
    supported_profiles,
    upper,
    why_not_set,
)
from ...sensors.gpu import Gpu
from ...sensors.power_profiles import NO_PROFILE
from ..shared import theme
from ..shared.label import PlainLabel, plain_tip
from ..shared.widgets import NumberBox, WholeBox, hbox

_FAN = "The fan is shown only: a process that dies would leave it as it had set it, perhaps too low to cool the board."
_OFFSETS = (
    "Clock offsets are not set: they change the voltage at every clock, and kernels may then compute wrong results "
    "without an error."
)


@dataclass(frozen=True, slots=True)
class Choices:
    """What a board can be set to, asked off Qt's thread: some boards take seconds to answer."""

    graphics_mhz: tuple[int, ...]
    memory_mhz: tuple[int, ...]
    step_mhz: float
    why_not: dict[str, str]  # setting -> why this board does not have it
    profiles: dict[int, str]  # workload power profiles, number -> name
    requested: str  # those of them that are requested now; empty if that is not known


def choices_of(gpu: Gpu) -> Choices:
    """Query the board, which may take seconds."""
    why_not = {name: why for name in WORDS if (why := why_not_set(gpu, name))}
    profiles, requested = ({}, "") if PROFILE in why_not else (supported_profiles(gpu), requested_profiles(gpu))
    clocks = tuple(gpu.graphics_clocks_mhz()), tuple(gpu.memory_clocks_mhz())
    return Choices(*clocks, step_mhz(gpu), why_not, profiles, requested)


class _StaysAsTyped:
    """A field that leaves a number that cannot be as it was typed, in red, until another one takes its place."""

    def __init__(self: Any, *arguments: Any) -> None:
        self._left = ""  # the text that the field was left with, if that cannot be
        super().__init__(*arguments)
        self.lineEdit().textChanged.connect(self.recolour)
        theme.notifier().changed.connect(self.recolour)
        self.editingFinished.connect(self.leave_as_typed)

    @property
    def wrong(self: Any) -> str:
        """Why what is typed cannot be, with the range; empty if it can."""
        text = self.lineEdit().text()
        return "" if self.hasAcceptableInput() else str(self._why_not(text)).rpartition(": ")[0]

    def fixup(self: Any, text: str) -> str:
        """Qt's hook before it shows the value of before again."""
        self._left = text
        return text

    def leave_as_typed(self: Any) -> None:
        """What Qt has replaced stands there again."""
        text, self._left = self._left, ""
        if text:
            self.lineEdit().setText(text)

    def setValue(self: Any, value: Any) -> None:
        """What the program sets takes the place of what cannot be, also where it is the value of before."""
        super().setValue(value)  # type: ignore[misc]
        if not self.hasAcceptableInput():
            self._left = ""
            self.lineEdit().setText(f"{self.prefix()}{self.textFromValue(self.value())}{self.suffix()}")

    def recolour(self: Any) -> None:
        """Red while it cannot be."""
        palette = QPalette()
        if self.wrong:
            palette.setColor(QPalette.ColorRole.Text, QColor(theme.colours().vermillion))
        self.lineEdit().setPalette(palette)


class ClockBox(_StaysAsTyped, WholeBox):
    """A clock on the supported steps: the arrows go from one to the next, and what is typed becomes the nearest."""

    def __init__(self, clocks_mhz: Sequence[int], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._clocks = sorted(clocks_mhz)
        self.setRange(self._clocks[0], self._clocks[-1])
        self.setSuffix(" MHz")
        self.setKeyboardTracking(False)
        self.editingFinished.connect(self._snap)

    def stepBy(self, steps: int) -> None:
        index = bisect_left(self._clocks, self.value())
        self.setValue(self._clocks[max(0, min(len(self._clocks) - 1, index + steps))])

    def take_typed(self) -> None:
        """What is typed counts, also before the field is left."""
        self.interpretText()
        self.leave_as_typed()
        self._snap()

    @Slot()
    def _snap(self) -> None:
        if not self.wrong:
            self.setValue(min(self._clocks, key=lambda clock: abs(clock - self.value())))


class LimitBox(_StaysAsTyped, NumberBox):
    """A power limit."""


class SettingRows(QObject):
    """A row for each setting in a grid, and the fan's. A value that is typed or stepped ticks its row.

    `settings()` is what is ticked; `changed` says that it is something else now.
    """

    changed = Signal()

    def __init__(self, gpu: Gpu, choices: Choices, grid: QGridLayout, shown_only: QGridLayout) -> None:
        """`shown_only` is for what is shown and cannot be set."""
        super().__init__()
        self._choices = choices
        self._limit = gpu.info.power_limit
        self.boxes: dict[str, QCheckBox] = {}
        self.facts: dict[str, PlainLabel] = {}
        self._beside_limit = ""  # the effect of the limit on what runs
        self.present: dict[str, QLabel] = {}  # by channel
        graphics, memory = choices.graphics_mhz or (0,), choices.memory_mhz or (0,)
        self.low, self.high, self.memory = ClockBox(graphics), ClockBox(graphics), ClockBox(memory)
        self.low.setValue(graphics[0])
        self.high.setValue(graphics[-1])
        self.memory.setValue(memory[-1])
        self.limit = LimitBox()
        self.limit.setDecimals(0)
        self.limit.setSuffix(" W")
        self.limit.setRange(self._limit.minimum_w or 0.0, self._limit.maximum_w or 0.0)
        self.limit.setValue(self._limit.current_w or self._limit.default_w or 0.0)
        self.limit.setSingleStep(5.0)
        self.profile = QComboBox()
        self.profile.addItem("none", NO_PROFILE)
        for number, text in choices.profiles.items():  # by number: messages and the log have that
            self.profile.addItem(f"{text} ({number})", number)
            if text == choices.requested:
                self.profile.setCurrentIndex(self.profile.count() - 1)
        self.profile.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.profile.setMinimumContentsLength(12)
        between = QWidget()
        hbox(self.low, PlainLabel("to"), self.high, 1, of=between, margins=0)
        editors: dict[str, QWidget] = {
            "graphics_clock_mhz": between,
            "power_limit_w": self.limit,
            "memory_clock_mhz": self.memory,
            PROFILE: self.profile,
        }
        for row, (name, editor) in enumerate(editors.items()):
            self._add(grid, 2 * row, name, editor)
        if PROFILE not in choices.why_not:
            self.show_requested(choices.requested)
        self._add_shown_only(shown_only)
        for box, text in ((self.low, "Lowest"), (self.high, "Highest")):
            box.setAccessibleName(f"{text} graphics clock")
            box.valueChanged.connect(self._clock_changed)
        self.memory.setAccessibleName("Memory clock")
        self.limit.setAccessibleName("Power limit")
        self.profile.setAccessibleName("Workload power profile")
        self.profile.activated.connect(lambda _: self._edited(PROFILE))
        for name, boxes in self._editors().items():
            for item in boxes:
                item.valueChanged.connect(lambda _, name=name: self._edited(name))
                item.lineEdit().textEdited.connect(lambda _, name=name: self._edited(name))
                item.lineEdit().textChanged.connect(self._text_changed)

    def _editors(self) -> dict[str, tuple[ClockBox | LimitBox, ...]]:
        return {
            "graphics_clock_mhz": (self.low, self.high),
            "power_limit_w": (self.limit,),
            "memory_clock_mhz": (self.memory,),
        }

    @property
    def in_order(self) -> list[QWidget]:
        """What the user operates, from the top to the bottom."""
        fields: dict[str, tuple[QWidget, ...]] = {**self._editors(), PROFILE: (self.profile,)}
        return [box for name, boxes in fields.items() for box in (self.boxes[name], *boxes)]

    @property
    def wrong(self) -> str:
        """Why what is typed for something that is ticked cannot be; empty if all of it can."""
        every = self._editors().items()
        return next(
            (box.wrong for name, boxes in every for box in boxes if self.boxes[name].isChecked() and box.wrong), ""
        )

    def show_requested(self, names: str) -> None:
        """The workload power profiles that are requested now."""
        now = f"Requested now: {names}; what is" if names else "What is"
        self.facts[PROFILE].setText(f"{now} chosen takes its place")

    def show_effect(self, effect: LimitEffect | None) -> None:
        """Say beside the limit that it is without effect on what runs, where no clock is chosen with it."""
        others = any(box.isChecked() for name, box in self.boxes.items() if name != "power_limit_w")
        shown = effect is not None and effect.without_effect and self.limit.isEnabled() and not others
        self._beside_limit = f". Now, {in_words([effect])}" if effect and shown else ""
        self._show_facts()

    def _show_facts(self) -> None:
        """Range and default of each setting, or what is wrong with what is typed."""
        for name, boxes in self._editors().items():
            wrong = next((box.wrong for box in boxes if box.wrong), "")
            more = self._beside_limit if name == "power_limit_w" else ""
            self.facts[name].setText(wrong or f"{self._facts(name)}{more}")
            self.facts[name].setStyleSheet(f"color: {theme.colours().vermillion};" if wrong else "")

    @property
    def clocks_mhz(self) -> tuple[float, float]:
        """The lowest and the highest graphics clock that can be set."""
        return float(self.high.minimum()), float(self.high.maximum())

    @property
    def limits_w(self) -> tuple[float, float] | None:
        """The range of the power limit; None where it cannot be set."""
        return (self.limit.minimum(), self.limit.maximum()) if self.limit.isEnabled() else None

    def drag(self, name: str, value: float) -> None:
        """Ask for the supported value of a setting, of a clock its upper end, that is nearest."""
        box = self._editors()[name][-1]
        if box.isEnabled():
            box.setValue(
                min(self._choices.graphics_mhz, key=lambda at: abs(at - value)) if box is self.high else round(value)
            )
            self._edited(name)

    def step(self, name: str, steps: int) -> None:
        """Ask for the value that is so many steps on."""
        box = self._editors()[name][-1]
        if box.isEnabled():
            box.stepBy(steps)

    def take_typed(self) -> None:
        """What is typed counts, also before the fields are left."""
        for box in (self.low, self.high, self.memory):
            box.take_typed()
        self.limit.interpretText()
        self.limit.leave_as_typed()

    def settings(self) -> dict[str, Setting]:
        """What is ticked."""
        chosen: dict[str, Setting] = {}
        if self.boxes["power_limit_w"].isChecked():
            chosen["power_limit_w"] = self.limit.value()
        if self.boxes["memory_clock_mhz"].isChecked():
            chosen["memory_clock_mhz"] = float(self.memory.value())
        if self.boxes["graphics_clock_mhz"].isChecked():
            low, high = float(self.low.value()), float(self.high.value())
            chosen["graphics_clock_mhz"] = high if low == high else (low, high)
        if self.boxes[PROFILE].isChecked():
            chosen[PROFILE] = float(self.profile.currentData())
        return chosen

    def choose(self, settings: dict[str, Setting]) -> None:
        """Tick and fill in these, and nothing else; what the board does not have stays as it is."""
        if "graphics_clock_mhz" in settings:
            self.low.setValue(round(lower(settings["graphics_clock_mhz"])))
            self.high.setValue(round(upper(settings["graphics_clock_mhz"])))
        if "memory_clock_mhz" in settings:
            self.memory.setValue(round(upper(settings["memory_clock_mhz"])))
        if "power_limit_w" in settings:
            self.limit.setValue(upper(settings["power_limit_w"]))
        names = {name for name in settings if name in self.boxes and self.boxes[name].isEnabled()}
        if PROFILE in names:
            index = self.profile.findData(round(upper(settings[PROFILE])))
            if index < 0:
                names.remove(PROFILE)
            else:
                self.profile.setCurrentIndex(index)
        for name, box in self.boxes.items():
            box.setChecked(name in names)

    # --- inside -------------------------------------------------------------------------------------------------------

    def _add(self, grid: QGridLayout, row: int, name: str, editor: QWidget) -> None:
        words = WORDS[name]
        box = QCheckBox(f"{words[:1].upper()}{words[1:]}")
        box.toggled.connect(self.changed)
        self.boxes[name] = box
        facts = self.facts[name] = PlainLabel(self._facts(name))
        facts.setObjectName("muted")
        facts.setWordWrap(True)
        if name != PROFILE:  # which is no channel
            self.present[name] = PlainLabel(UNKNOWN)
            grid.addWidget(self.present[name], row, 2)
        why_not = self._choices.why_not.get(name)
        for widget in (box, editor):
            widget.setEnabled(why_not is None)
            widget.setToolTip(plain_tip(why_not or ""))
        grid.addWidget(box, row, 0)
        grid.addWidget(editor, row, 1)
        grid.addWidget(facts, row + 1, 0, 1, 3)

    def _add_shown_only(self, grid: QGridLayout) -> None:
        self.present["fan_percent"] = PlainLabel(UNKNOWN)
        grid.addWidget(PlainLabel("Fan"), 0, 0)
        grid.addWidget(self.present["fan_percent"], 0, 2)
        for place, text in enumerate((_FAN, _OFFSETS), start=1):
            why = PlainLabel(text, wrap=True)
            why.setObjectName("muted")
            grid.addWidget(why, place, 0, 1, 3)

    def _facts(self, name: str) -> str:
        """Range, step and default, or why the board does not have it."""
        why_not = self._choices.why_not.get(name)
        if why_not is not None:
            return f"Cannot be set: {why_not}"
        if name == PROFILE:
            return ""  # until it is known which are requested
        if name == "power_limit_w":
            low, high, default = self._limit.minimum_w, self._limit.maximum_w, self._limit.default_w
            facts = [f"{low:g} to {high:g} W", f"by default {default:g} W" if default else "", self._limit.from_outside]
            return ", ".join(filter(None, facts))
        clocks = self._choices.graphics_mhz if name == "graphics_clock_mhz" else self._choices.memory_mhz
        if name == "memory_clock_mhz":
            return f"{', '.join(str(clock) for clock in clocks[:8])} MHz; by default not locked"
        return f"{clocks[0]} to {clocks[-1]} MHz by {self._choices.step_mhz:g}; by default not locked"

    @Slot()
    def _clock_changed(self) -> None:
        """The ends never cross: the other one goes along."""
        if self.low.value() > self.high.value():
            other = self.low if self.sender() is self.high else self.high
            other.setValue(self.high.value() if other is self.low else self.low.value())

    def _edited(self, name: str) -> None:
        if self.boxes[name].isEnabled():
            self.boxes[name].setChecked(True)
        self.changed.emit()

    @Slot()
    def _text_changed(self) -> None:
        self._show_facts()
        self.changed.emit()
