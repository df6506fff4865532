"""`AddToQueue`: the button that puts what is set up into the queue, as it is or in several variants."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import Slot
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu, QToolButton, QWidget

from ...errors import WattridgeError
from ..context import Context

if TYPE_CHECKING:
    from ...engine.session.plan import SessionPlan
    from .draft import Draft
    from .variants_window import VariantsWindow

_TIP = "Run it as it is set up, once nothing else runs; the arrow offers several strategies, seeds and boards"


class AddToQueue(QToolButton):
    """`draft()` is what is open, and `set_up()` the plan as it was chosen, which raises WattridgeError."""

    def __init__(
        self,
        context: Context,
        draft: Callable[[], Draft | None],
        set_up: Callable[[], SessionPlan],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._context, self._draft, self._set_up = context, draft, set_up
        self.variants: VariantsWindow | None = None  # once it was asked for
        self.setText("Add to &queue")
        self.setToolTip(_TIP)
        self.setPopupMode(QToolButton.ToolButtonPopupMode.MenuButtonPopup)
        menu = QMenu(self)
        self.as_set_up = QAction("As it is &set up", self)  # made here: the wrapper of one that a menu makes may go
        self.several = QAction("Several strategies, seeds or &boards …", self)
        self.as_set_up.triggered.connect(self.add)
        self.several.triggered.connect(self.show_variants)
        menu.addActions([self.as_set_up, self.several])
        menu.aboutToShow.connect(self._offer)
        self.setMenu(menu)
        self.clicked.connect(self.add)

    def shutdown(self) -> None:
        """Wait for what is being planned."""
        if self.variants is not None:
            self.variants.shutdown()

    @Slot()
    def add(self) -> None:
        """Add one run, as it is set up."""
        try:
            self._context.bridge.queue.add([self._set_up()])
        except WattridgeError as error:
            self._context.bridge.report(error.what, error.remedy)

    @Slot()
    def show_variants(self) -> None:
        """Open the window in which strategies, seeds and boards are chosen."""
        from .variants_window import VariantsWindow  # imported late: few sessions need it

        draft = self._draft()
        if draft is None:
            return
        if self.variants is None:
            self.variants = VariantsWindow(self._context, self._draft, self._set_up, self)
        try:
            self.variants.show_draft(draft, self._set_up())
        except WattridgeError as error:
            self._context.bridge.report(error.what, error.remedy)
            return
        self.variants.show()
        self.variants.raise_()

    @Slot()
    def _offer(self) -> None:
        draft = self._draft()
        self.several.setEnabled(draft is not None and draft.plan.resume is None)
