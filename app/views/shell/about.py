"""`AboutWindow`: versions, the board's facts, where the log lies, and all of it to be copied.

What support needs to know: versions, board, sensors, screen, the log's end. Nothing that identifies a board or a
user: no UUID, no serial number, no home folder.
"""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Sequence
from html import escape

import PySide6
from PySide6.QtCore import QUrl, Signal, Slot, qVersion
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog, QTextBrowser, QWidget

from ... import __version__
from ...base.text import nameless
from ...sensors.gpu import Gpu, PowerLimit
from ...sensors.throttling import throttled_s, throttled_words
from ..shared.widgets import button, hbox, vbox
from .log import last_lines, open_log_folder

_PACKAGES = ("numpy", "scipy", "pyqtgraph", "nvidia-ml-py", "cuda-bindings", "pycuda")
_LOG_LINES = 40


def versions() -> list[tuple[str, str]]:
    """(what, version) of the program and its dependencies."""
    results = [("Wattridge", __version__), ("Python", platform.python_version()), ("Qt", str(qVersion()))]
    results.append(("PySide6", PySide6.__version__))
    for package in _PACKAGES:
        try:
            results.append((package, importlib.metadata.version(package)))
        except importlib.metadata.PackageNotFoundError:
            results.append((package, "not installed"))
    results.append(("System", f"{platform.system()} {platform.release()} {platform.machine()}"))
    return results


def board_facts(gpu: Gpu) -> list[tuple[str, str]]:
    """(what, value with unit) of a board, those that are known."""
    info = gpu.info
    capability = info.compute_capability
    facts = [
        ("Board", info.label),
        ("Driver", info.driver),
        ("Compute capability", f"{capability[0]}.{capability[1]}" if capability else ""),
        ("Multiprocessors", str(info.multiprocessors or "")),
        ("Memory", f"{info.memory_mib:.0f} MiB" if info.memory_mib else ""),
        ("Power limit", _limit_text(info.power_limit)),
        ("Clocks", throttled_words(throttled_s(gpu))),
        ("Power source", info.power_source),
    ]
    return [(what, value) for what, value in facts if value]


def diagnostics(gpu: Gpu) -> str:
    """Everything as plain text, to be pasted into a report."""
    available = [c.name for c in gpu.channels if c.available]
    missing = [f"{c.name}: {c.unavailable}" for c in gpu.channels if not c.available]
    screens = [f"{s.size().width()}x{s.size().height()} at {s.devicePixelRatio():g}" for s in QGuiApplication.screens()]
    parts = [
        *(f"{what}: {value}" for what, value in (*versions(), *board_facts(gpu))),
        f"Screens: {', '.join(screens)} ({QGuiApplication.platformName()})",
        f"Channels: {', '.join(available)}",
        *(f"Not available: {line}" for line in missing),
        "",
        "Log:",
        *last_lines(_LOG_LINES),
    ]
    uuid = "" if gpu.info.uuid.startswith("simulated:") else gpu.info.uuid
    return nameless("\n".join(parts), uuid)


def copy_diagnostics(gpu: Gpu) -> None:
    """Put the diagnostics on the clipboard."""
    QGuiApplication.clipboard().setText(diagnostics(gpu))


def _limit_text(limit: PowerLimit) -> str:
    if limit.current_w is None:
        return ""
    bounds = (limit.minimum_w, limit.maximum_w)
    between = f" ({bounds[0]:.0f} to {bounds[1]:.0f} W)" if bounds[0] is not None and bounds[1] is not None else ""
    return f"{limit.current_w:.0f} W{between}" + (f"; {limit.from_outside}" if limit.from_outside else "")


LICENCES = "installing.md#licences"  # of the user guide


class AboutWindow(QDialog):
    """Stays beside the main window."""

    page_asked = Signal(str)  # a page of the user guide

    def __init__(self, gpu: Gpu, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("About")
        self.text = QTextBrowser()
        self.text.setAccessibleName("About this program and this board")
        self.text.setOpenLinks(False)
        self.text.anchorClicked.connect(self._ask_for_page)
        tip = "All of this, the sensors' channels and the end of the log; no UUID and no serial number"
        self.copy = button("&Copy diagnostics", tip, self.copy_diagnostics)
        folder = button("&Log folder", "Open the folder in which the log lies", open_log_folder)
        vbox(self.text, hbox(self.copy, folder, 1, button("Close", clicked=self.close)), of=self)
        self.resize(520, 520)
        self.show_board(gpu)

    def show_board(self, gpu: Gpu) -> None:
        """Another board is shown."""
        self._gpu = gpu
        self.text.setHtml(
            "<h3>Wattridge</h3><p>Shows what a GPU draws while it works, and finds where it does the most work per "
            "joule. Apache-2.0. Qt and PySide6 are used under the LGPL, version 3, as shared libraries that you may "
            f"replace. <a href='{LICENCES}'>All licences</a></p>"
            + (_table(board_facts(gpu)) + "<hr>" + _table(versions()))
        )

    @Slot()
    def copy_diagnostics(self) -> None:
        """Put the diagnostics on the clipboard."""
        copy_diagnostics(self._gpu)
        self.copy.setText("Copied")

    @Slot(QUrl)
    def _ask_for_page(self, link: QUrl) -> None:
        self.page_asked.emit(link.toString())


def _table(facts: Sequence[tuple[str, str]]) -> str:
    rows = "".join(
        f"<tr><td style='padding-right:14px'>{escape(what)}</td><td>{escape(value)}</td></tr>" for what, value in facts
    )
    return f"<table>{rows}</table>"
