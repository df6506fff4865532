"""`ClockModel`: the frequency model that Control predicts from: of the result that is shown, else the board's last one.

`PredictionBox`: what the model predicts of the settings that are chosen, or what a first model takes.
"""

from __future__ import annotations

import html
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtWidgets import QWidget

from ...base.errors import WattridgeError
from ...engine.models.clock_fits import fit_of_table
from ...engine.models.fit.frequency import FrequencyFit
from ...engine.models.fit.predict import Expected, Outcome, Predictor
from ...engine.models.fit_documents import latest_fit
from ...engine.results.settings import PROFILE, Setting, upper
from ...engine.results.state import Purpose
from ...engine.session import events
from ..shared.context import Context
from ..shared.label import PlainLabel
from ..shared.tasks import LatestTask
from ..shared.widgets import button, hbox, vbox

CLOCKS, SECONDS = 8, 40.0  # of a first model: 27 to 45 s of the board's time on the simulated boards
_LINES = 6  # of room


@dataclass(frozen=True, slots=True)
class Known:
    """A fit, what it was fitted to in words, and its curves where it is identifiable."""

    fit: FrequencyFit
    source: str
    predictor: Predictor | None


class ClockModel(QObject):
    """Looked for when the panel is in sight, off Qt's thread."""

    changed = Signal()

    def __init__(self, context: Context, parent: QObject) -> None:
        super().__init__(parent)
        self._context = context
        self._of_result = False  # a stored session is shown; one that ended here has kept its fit as the board's last
        self._stale = True
        self.known: Known | None = None
        self._reader = LatestTask(self, self._found, context.bridge.report)
        self._reader.failed.connect(self._not_found)
        context.bridge.subscribe(events.SessionStarted, self._session_started)
        context.bridge.subscribe(events.SessionChanged, self._session_changed)
        context.bridge.subscribe(events.FitFinished, self._fit_finished)

    def look(self) -> None:
        """Look for it, if anything has changed since."""
        if not self._stale:
            return
        self._stale = False
        context, info, result = self._context, self._context.gpu.info, self._context.result
        table, plan = result.table, result.plan
        of_board = plan is not None and plan.purpose is Purpose.TUNING and plan.origin.get("gpu") == info.uuid
        shown = (table, plan) if self._of_result and of_board and table is not None and len(table) else None

        def job(_stop: object) -> Known | None:
            found: tuple[FrequencyFit, str] | None = None
            if shown is not None and shown[1] is not None:
                with suppress(WattridgeError):
                    found = fit_of_table(shown[0], shown[1].title, shown[1].gpu, shown[1].source)
            if found is None or not found[0].identifiable:
                simulated = info.source == "simulated"
                found = latest_fit(context.store, info.name, simulated=simulated, uuid=info.uuid) or found
            return None if found is None else Known(*found, Predictor.of(found[0]))

        self._reader.run(job)

    @property
    def looking(self) -> bool:
        """Whether the newest look is still under way."""
        return self._reader.busy

    def drop(self) -> None:
        """Another board is shown."""
        self._reader.cancel()
        self._stale, self.known = True, None
        self.changed.emit()

    @Slot(object)
    def _found(self, known: Known | None) -> None:
        self.known = known
        self.changed.emit()

    @Slot(str, str)
    def _not_found(self, *_: str) -> None:
        self.changed.emit()

    @Slot(object)
    def _session_started(self, event: events.SessionStarted) -> None:
        self._of_result = not event.running

    @Slot(object)
    def _session_changed(self, event: events.SessionChanged) -> None:
        if not event.progress.state.alive:
            self._outdated()

    @Slot(object)
    def _fit_finished(self, _event: events.FitFinished) -> None:
        self._of_result = False
        self._outdated()

    def _outdated(self) -> None:
        self._stale = True
        self.changed.emit()


class PredictionBox(QWidget):
    """Words, and a button for a first model."""

    def __init__(self, context: Context, model: ClockModel, after: QWidget) -> None:
        """`after` gets the focus of the button, which goes away once it is pressed."""
        super().__init__()
        self._context, self._model, self._after = context, model, after
        self.words = PlainLabel(wrap=True)
        self.words.setTextFormat(Qt.TextFormat.RichText)
        self.words.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.words.setAccessibleName("Prediction")
        self.button = button("", "Run a fully loading kernel at 8 clocks; a running session waits", self.measure)
        self.setMinimumHeight(_LINES * self.fontMetrics().lineSpacing())
        vbox(self.words, hbox(self.button, 1), 1, of=self, margins=0)

    @Slot()
    def measure(self) -> None:
        """Sweep the clocks under full load, and fit."""
        self._after.setFocus()
        self.button.setEnabled(False)
        self._context.bridge.submit(events.Fit(board=self._context.gpu.info.uuid, points=CLOCKS))

    def show_prediction(self, settings: Mapping[str, Setting], now: Now, *, allowed: bool, wrong: str) -> None:
        """Show what these settings would change; `wrong` is why one of them cannot be."""
        known, live = self._model.known, self._context.gpu.info.live
        progress = self._context.bridge.activity.fit
        without = (known is None or known.predictor is None) and not self._model.looking
        needs_control = live and not allowed
        speed = 1.0 if self._context.boards.current.real else self._context.boards.speed
        self.button.setText(f"Measure {CLOCKS} clocks ({max(1.0, SECONDS / speed):.0f} s)")
        recorded = self._context.gpu.info.source == "recorded"
        self.button.setVisible(without and progress is None and not needs_control and not recorded)
        self.button.setEnabled(True)
        if progress is not None:
            text = f"Measuring clocks: {progress.done} of {progress.total or CLOCKS} …"
        elif wrong:
            text = html.escape(f"No prediction: {wrong}.")
        elif known is None or known.predictor is None:
            none = "Looking for a model …" if self._model.looking else "No model yet."
            text = none if known is None else f"No model: {html.escape(_reason(known.fit))}."
            if recorded:
                text = f"{text} A recording has no board to measure."
            elif needs_control:
                text = f"{text} To measure {CLOCKS} clocks ({SECONDS:.0f} s), switch control on."
        else:
            text = predicted(known.predictor, settings, now)
        if text != self.words.text():
            self.words.setText(text)


@dataclass(frozen=True, slots=True)
class Now:
    """The board as it is; NaN where it is not known."""

    clock_mhz: float = math.nan
    power_w: float = math.nan
    limit_w: float = math.nan
    utilisation_percent: float = math.nan
    free_mhz: float = math.nan  # the clock without another lock than the one in force

    @property
    def limit(self) -> float:
        """In force, W; infinite where it is not known."""
        return math.inf if math.isnan(self.limit_w) else self.limit_w


_ALIKE = 0.15  # relative: a load whose power is as far from the model's is another one
_IDLE = 5.0  # per cent


def predicted(model: Predictor, settings: Mapping[str, Setting], now: Now) -> str:
    """What settings would change of the model's load, as HTML."""
    if PROFILE in settings:
        return "No prediction: the model is of the workload power profile that was in force."
    memory = settings.get("memory_clock_mhz")
    if memory is not None and upper(memory) != model.fit.memory_clock_mhz:
        return "No prediction: the model is of the memory clock that was in force."
    if not {"graphics_clock_mhz", "power_limit_w"} & set(settings):
        return "Drag the clock or the limit in the plot, or type it: its effect is predicted here. Nothing is set yet."
    clock = upper(settings["graphics_clock_mhz"]) if "graphics_clock_mhz" in settings else now.free_mhz
    limit = upper(settings["power_limit_w"]) if "power_limit_w" in settings else now.limit
    outcome = model.at(clock, limit)
    if outcome is None:
        return _not_given(model, clock, limit)
    simulated = " (simulated)" if model.fit.simulated else ""
    power, change = model.power(outcome), model.change(outcome)
    before, other = _present(model, now)
    beside = model.change(outcome, before) if before is not None else None
    untouched = "untouched" if model.fit.untouched_rate else f"{model.range_mhz[1]:.0f} MHz"
    rows = []
    if change is not None:
        rows.append(("", f"against {untouched}", f"against now, {now.clock_mhz:.0f} MHz" if beside is not None else ""))
        for at, name in enumerate(("Time", "Joules")):
            rows.append((f"{name} per work", _percent(change[at]), "" if beside is None else _percent(beside[at])))
    cells = "".join(f"<tr>{''.join(f'<td>{cell}&nbsp;&nbsp; </td>' for cell in row)}</tr>" for row in rows)
    notes = [*_limit_words(outcome, power, clock, limit, "power_limit_w" in settings)]
    notes += ["No speed was measured: only watts are predicted."] if change is None else []
    watts = f"<b>{power.value:.0f} W</b> ({power.low:.0f} to {power.high:.0f}, 95 %)"
    return f"Predicted{simulated}: {watts}<table cellspacing='0'>{cells}</table>{' '.join([*notes, other])}"


def _present(model: Predictor, now: Now) -> tuple[Outcome | None, str]:
    """The state now, if the model's load runs; else a remark on the load that does."""
    present = model.at(now.clock_mhz, now.limit) if math.isfinite(now.clock_mhz) else None
    if present is None or not now.utilisation_percent > _IDLE or math.isnan(now.power_w):
        return None, ""
    expected = model.power(present).value
    if abs(now.power_w / expected - 1) <= _ALIKE:
        return present, ""
    return None, f"What runs now draws {now.power_w:.0f} W, the load of the model {expected:.0f} W at that clock."


def _limit_words(outcome: Outcome, power: Expected, clock: float, limit: float, chosen: bool) -> list[str]:
    if outcome.binds:
        return [f"The limit of {limit:.0f} W holds this load at about {outcome.held_mhz:.0f} MHz."]
    if not chosen:
        return []
    draws = f"this load draws {power.value:.0f} W ({power.low:.0f} to {power.high:.0f}) at {clock:.0f} MHz"
    if outcome.binds is None:
        return [f"A limit of {limit:.0f} W may bind: {draws}."]
    return [f"A limit of {limit:.0f} W cannot bind: {draws}."]


def _not_given(model: Predictor, clock: float, limit: float) -> str:
    low, high = model.range_mhz
    measured = f"the model is of {low:.0f} to {high:.0f} MHz"
    if low <= clock <= high:
        return f"No prediction: a limit of {limit:.0f} W holds this load below the measured clocks; {measured}."
    return f"No prediction at {clock:.0f} MHz: {measured}."


def _percent(ratio: Expected) -> str:
    value, low, high = (f"{100 * (part - 1):+.1f}".replace("-", "−") for part in (ratio.value, ratio.low, ratio.high))
    return f"<b>{value} %</b> ({low} to {high})"


def _reason(fit: FrequencyFit) -> str:
    return fit.reasons[0] if fit.reasons else "the points do not determine it"
