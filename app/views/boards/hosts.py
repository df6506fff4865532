"""`Hosts`: asks for another machine, and watches its boards through the user's own ssh."""

from __future__ import annotations

import threading

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QInputDialog, QWidget

from ...base.errors import WattridgeError
from ...sensors.gpu import LIVE
from ...sensors.remote.address import Address, parse_address
from ...sensors.remote.run_there import RemoteBoard, boards_there
from ..shared.settings import Settings
from ..shared.tasks import TaskQueue
from ..shared.watched_boards import WatchedBoards


class Hosts(QObject):
    """Nothing is connected to before the user has named it and pressed Connect."""

    def __init__(self, boards: WatchedBoards, tasks: TaskQueue, parent: QWidget) -> None:
        super().__init__(parent)
        self._boards, self._tasks, self._parent = boards, tasks, parent
        self._settings = Settings()
        self.offered: list[RemoteBoard] = []  # boards of machines that answered
        self.dialog: QInputDialog | None = None
        self._give_up = threading.Event()

    def shutdown(self) -> None:
        """Wait for no machine any longer."""
        self._give_up.set()

    @Slot()
    def ask(self) -> None:
        """Ask which machine; those that answered before are offered."""
        self._forget_dialog()
        dialog = QInputDialog(self._parent)
        dialog.setWindowTitle("Boards of another machine")
        dialog.setLabelText(
            "[user@]host, as your ssh knows it. Wattridge has to be installed there;\n"
            "your keys and your ssh configuration are used, and no port is opened."
        )
        dialog.setComboBoxEditable(True)
        dialog.setComboBoxItems(["", *self._settings.hosts] if self._settings.hosts else [""])
        dialog.setOkButtonText("Connect")
        dialog.textValueSelected.connect(self.connect_to)
        dialog.finished.connect(self._forget_dialog)
        self.dialog = dialog
        dialog.open()

    @Slot()
    def _forget_dialog(self, *_: object) -> None:
        dialog, self.dialog = self.dialog, None
        if dialog is not None:
            dialog.deleteLater()

    @Slot(str)
    def connect_to(self, text: str) -> None:
        """Watch the real boards of a machine; of one without, its simulated boards can be added."""
        if not text.strip():
            return
        try:
            address = parse_address(text)
        except WattridgeError as error:
            self._boards.failed.emit(error.what, error.remedy)
            return
        self._tasks.run(lambda: _listed(address, self._give_up), lambda found: self._listed(address, found))

    def _listed(self, address: Address, found: list[RemoteBoard] | WattridgeError) -> None:
        if isinstance(found, WattridgeError):
            self._boards.failed.emit(f"{found.where}: {found.what}", found.remedy)
            return
        self._settings.add_host(address.machine)
        known = {board.selector for board in found}
        self.offered = [*found, *(board for board in self.offered if board.selector not in known)]
        real = [board for board in found if board.source in LIVE]
        for board in real or found[:1]:
            self._boards.watch(board.selector)


def _listed(address: Address, give_up: threading.Event) -> list[RemoteBoard] | WattridgeError:
    """On the queue's thread."""
    try:
        return boards_there(address, give_up)
    except WattridgeError as error:
        return error
