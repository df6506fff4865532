"""`ApplyButton`: sets the clocks and the power limit of the shown configuration on the window's board."""

from __future__ import annotations

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QPushButton, QWidget

from ...engine.board_settings import WORDS, in_words
from ...engine.measurement import Measurement
from ...engine.session.plan import SessionPlan
from ..context import Context
from ..control.countdown import apply_command
from ..watched_board import WatchedBoard

_OFF = "This window is read-only: switch control on in the header first"


class ApplyButton(QPushButton):
    """In sight where the configuration has settings for this kind of board; of use while they may be made."""

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__("&Apply this configuration", parent)
        self._context = context
        self._settings: dict[str, float] = {}
        self._shown: tuple[Measurement, SessionPlan] | None = None
        self.clicked.connect(self._apply)
        context.bridge.control_changed.connect(self._enable)
        context.boards.board_changed.connect(self._board_changed)
        self.hide()

    def show_for(self, measurement: Measurement, plan: SessionPlan) -> None:
        """Another configuration is shown."""
        self._shown = (measurement, plan)
        gpu = self._context.gpu
        known = {parameter.name for parameter in plan.space.parameters if parameter.device_setting} & set(WORDS)
        fits = plan.gpu == gpu.info.name and gpu.info.source != "recorded"
        chosen = measurement.configuration.items() if fits else ()
        self._settings = {name: float(value) for name, value in chosen if name in known}
        self.setVisible(bool(self._settings))
        self._enable()

    @Slot()
    def _enable(self, *_: object) -> None:
        allowed = self._context.boards.current.allowed
        self.setEnabled(allowed)
        self.setToolTip(f"Set {in_words(self._settings)}" if allowed else _OFF)

    @Slot()
    def _apply(self) -> None:
        self._context.bridge.submit(apply_command(self._context.gpu, self._settings))

    @Slot(object)
    def _board_changed(self, _board: WatchedBoard) -> None:
        if self._shown is not None:
            self.show_for(*self._shown)
