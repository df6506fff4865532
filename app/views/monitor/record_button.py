"""`RecordButton`: begins and ends a recording, and shows how long and how large it is."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from PySide6.QtCore import QLocale, Qt, Slot
from PySide6.QtWidgets import QMenu, QToolButton, QWidget

from ...sensors.gpu import GpuInfo
from ..file_dialogs import save_file
from ..plots import theme
from ..plots.label import plain_tip
from .recorder import KINDS, SUFFIX, Recorder, usual_name


class RecordButton(QToolButton):
    """Its menu asks for a file. `recorder` records `info`'s board."""

    def __init__(self, recorder: Recorder, info: GpuInfo, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._recorder, self._info = recorder, info
        recorder.changed.connect(self._show)
        self.setFont(theme.number_font())
        self.setAutoRaise(True)
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextOnly)
        self.setPopupMode(QToolButton.ToolButtonPopupMode.MenuButtonPopup)
        self.setMenu(QMenu(self))
        self.to_file = self.menu().addAction("Record &to…", self.ask_file)
        longest = self.fontMetrics().horizontalAdvance(_text(8 * 3600.0, 888_800_000))
        self.setFixedWidth(longest + 40)  # its neighbours stay where they are while it counts
        self.clicked.connect(self._toggle)
        theme.notifier().changed.connect(self._show)
        self._show()

    def show_board(self, recorder: Recorder, info: GpuInfo) -> None:
        """Record another board from now on; a recording of the one before continues."""
        self._recorder.changed.disconnect(self._show)
        self._recorder, self._info = recorder, info
        recorder.changed.connect(self._show)
        self._show()

    @Slot()
    def _toggle(self) -> None:
        self._recorder.toggle()

    @Slot()
    def ask_file(self) -> None:
        """Ask for a file, and record to it."""
        save_file(self, "Record", usual_name(self._info, datetime.now()), KINDS, self._start)

    def _start(self, path: Path) -> None:
        named = path if path.name.endswith(SUFFIX) else path.with_name(path.name + SUFFIX)
        self._recorder.start(named)

    @Slot()
    def _show(self) -> None:
        recorder = self._recorder
        recording = recorder.recording
        self.setText(_text(recorder.seconds, recorder.size) if recording else "●  Record")
        self.setAccessibleName("Stop recording" if recording else "Record")
        where = f"Stop recording to {recorder.path}" if recording else "Record every reading to a file that replays"
        self.setToolTip(plain_tip(where))
        self.setStyleSheet(f"color: {theme.colours().vermillion};" if recording else "")
        self.setEnabled(not recorder.busy)
        self.to_file.setEnabled(not recording)


def _text(seconds: float, size: int) -> str:
    hours, minutes = divmod(int(seconds) // 60, 60)
    clock = f"{hours}:{minutes:02d}:{int(seconds) % 60:02d}"
    written = QLocale.c().formattedDataSize(size, 1, QLocale.DataSizeFormat.DataSizeSIFormat)
    return f"■  {clock} · {written}"
