"""`SettingsSaver`: what the window remembers is written off Qt's thread, without the interpreter's lock."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, QEvent, QObject, QSettings, QThread, QTimer, Slot

_SOON_MS = 1000  # whoever reads a setting while the file is written waits for that: most reads follow a change at once


class SettingsSaver(QObject):
    """Writes a file of settings some time after a change of any `QSettings` of this process that is on the same file.

    Qt writes twice through to the disk each time, a lock and the file, and waits for as long as the disk takes. The
    thread runs no Python: PySide's `sync` would keep the interpreter's lock meanwhile.
    """

    def __init__(self, path: str, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.path = path
        self._thread = QThread()
        self._file = QSettings(path, QSettings.Format.IniFormat)
        self._file.moveToThread(self._thread)
        self._timer = QTimer(self, singleShot=True, interval=_SOON_MS)
        self._timer.timeout.connect(self._save)
        self._thread.start()

    @Slot()
    def save_soon(self) -> None:
        """Something was changed."""
        if not self._timer.isActive():
            self._timer.start()

    @Slot()
    def _save(self) -> None:
        QCoreApplication.postEvent(self._file, QEvent(QEvent.Type.UpdateRequest))  # as Qt asks itself to save

    def close(self) -> None:
        """End the thread. What was changed last is written by whoever closes: `Settings.sync`."""
        self._timer.stop()
        self._thread.quit()
        self._thread.wait()
