"""A slow disk does not hold up the window that saves its settings."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.views.shared.settings import Settings, SettingsSaver

# Writing through to the disk takes until somebody has made a file, and says when nobody did.
SLOW_DISK = """
#include <fcntl.h>
#include <unistd.h>
int fdatasync(int file) {
    for (int step = 0; step < 1000; ++step) {
        if (access(FLAG, F_OK) == 0) return 0;
        usleep(10000);
    }
    close(open(FLAG ".alone", O_CREAT | O_WRONLY, 0600));
    return 0;
}
"""
# Qt's thread makes it once the new file is being written.
SAVING = """
import sys
from pathlib import Path
from PySide6.QtCore import QCoreApplication, QTimer
from app.views.shared.settings import Settings
from app.views.shared.settings import SettingsSaver

qt = QCoreApplication([])
flag, settings = Path(sys.argv[1]), Settings()
saver = SettingsSaver(settings.path)
settings.save_beside(saver)
settings.theme = "dark"
settings.theme

def look():
    if "dark" in Path(settings.path).read_text():
        qt.quit()
    elif len(list(Path(settings.path).parent.glob("window.ini.*"))):
        assert Settings().theme == "dark"  # whoever asks meanwhile does not wait either
        flag.touch()

timer = QTimer(interval=20)
timer.timeout.connect(look)
timer.start()
qt.exec()
settings.save_beside(None)
saver.close()
"""


@pytest.fixture
def saver(qtbot: QtBot, own_data_folder: Path) -> Iterator[SettingsSaver]:
    """Of the settings, as in the program."""
    settings = Settings()
    saver = SettingsSaver(settings.path)
    settings.save_beside(saver)
    yield saver
    settings.save_beside(None)
    saver.close()


@pytest.mark.skipif(sys.platform != "linux" or shutil.which("cc") is None, reason="needs cc, and LD_PRELOAD")
def test_the_window_goes_on_while_the_disk_is_slow(tmp_path: Path, own_data_folder: Path) -> None:
    library, flag = tmp_path / "disk.so", tmp_path / "flag"
    command = ["cc", "-shared", "-fPIC", "-x", "c", "-o", str(library), "-"]
    subprocess.run(command, input=SLOW_DISK.replace("FLAG", f'"{flag}"'), text=True, check=True)
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", SAVING, str(flag)],
        env={**os.environ, "LD_PRELOAD": str(library), "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert flag.exists()
    assert not flag.with_name("flag.alone").exists(), "nothing else ran while it was written"


def test_each_change_is_written_without_being_asked_for(qtbot: QtBot, saver: SettingsSaver) -> None:
    def is_written(words: str) -> bool:
        return words in Path(saver.path).read_text(encoding="utf-8")

    Settings().theme = "dark"
    assert Settings().theme == "dark", "at once for whoever asks"
    qtbot.waitUntil(lambda: is_written("theme=dark"), timeout=20_000)
    Settings().theme = "light"
    qtbot.waitUntil(lambda: is_written("theme=light"), timeout=20_000)
    Settings().reset()
    qtbot.waitUntil(lambda: not is_written("theme"), timeout=20_000)


def test_what_was_changed_last_is_written_at_the_end(saver: SettingsSaver) -> None:
    Settings().theme = "dark"
    saver.close()
    Settings().sync()
    assert "theme=dark" in Path(saver.path).read_text(encoding="utf-8")
