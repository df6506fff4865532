"""Names from files and devices are shown as they are: no label, tip or axis of the window takes them for HTML."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel

from app.base.paths import resources
from app.sensors.clock import ScaledClock
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin
from app.views.shared.label import PlainLabel, axis_title, plain_tip

NAME = "<img src=x><b>bold</b>"
VIEWS = Path(__file__).resolve().parents[3] / "app" / "views"


def test_no_label_of_the_window_guesses_whether_its_text_is_html(
    qtbot: Any, open_program: Callable[..., Any], tmp_path: Path
) -> None:
    twin = (resources() / "twins" / "a100.toml").read_text(encoding="utf-8")
    path = tmp_path / "odd.toml"
    path.write_text(re.sub(r'^name = ".*"', f'name = "{NAME}"', twin, count=1, flags=re.MULTILINE), encoding="utf-8")
    gpu = SimulatedGpu(load_twin(str(path)), clock=ScaledClock(1.0))
    assert gpu.info.name == NAME
    window = open_program(gpu).window
    with qtbot.waitSignal(window.panels_loaded, timeout=20_000):
        window.panels_loaded.emit() if window.panels.has("tune") else None
    labels = window.findChildren(QLabel)
    ours = [label for label in labels if isinstance(label, PlainLabel)]
    assert len(ours) > 30
    assert not [label.text() for label in ours if label.textFormat() == Qt.TextFormat.AutoText]
    raw = [label for label in labels if label.textFormat() == Qt.TextFormat.RichText and NAME in label.text()]
    assert not raw
    assert window.badge.chooser.currentText() == NAME, "the name is there, letter by letter"


def test_every_label_is_made_by_the_one_class_that_sees_to_it() -> None:
    for path in VIEWS.rglob("*.py"):
        if path.name != "label.py":
            assert not re.search(r"\bQLabel\(", path.read_text(encoding="utf-8")), path


def test_tips_and_titles_that_look_like_html_are_shown_as_written(qtbot: Any) -> None:
    assert plain_tip("plain\nlines") == "plain\nlines"
    assert "<img" not in plain_tip(NAME)
    assert "<b>" not in axis_title(NAME)
    label = PlainLabel(NAME)
    qtbot.addWidget(label)
    assert label.textFormat() == Qt.TextFormat.PlainText
    assert label.text() == NAME


def test_what_the_window_remembers_is_for_the_user_alone(own_data_folder: Path) -> None:
    from app.views.shared.settings import Settings
    from app.views.shell.log import Log

    before = os.umask(0)
    try:
        settings = Settings()
        settings.theme = "dark"
        settings.sync()
        Log(print).close()
    finally:
        os.umask(before)
    assert Settings().theme == "dark"
    for path in (own_data_folder, *own_data_folder.rglob("*")):
        assert path.stat().st_mode & 0o077 == 0, path
    assert (own_data_folder / "logs" / "wattridge.log").is_file()
