"""A window on the stand-in's board 0 that switches control on and runs a specification's session, until it is killed.

python window_session.py SPECIFICATION
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import program


def main(specification: Path) -> int:
    program.install()
    from PySide6.QtCore import QTimer

    from app.views.shared.watched_boards import watched_gpu
    from app.views.shell.app import Program, application

    qt = application()
    window = Program(watched_gpu("0")).window
    timer = QTimer()

    def go_on() -> None:
        """Switch control on as soon as the panels are there, then start the session."""
        switch, tune = window.control_switch, window.panels.get("tune")
        if "control" in window.panels and not switch.allowed:
            switch.switch()
        elif tune is not None and switch.allowed:
            timer.stop()
            tune.open(specification, start=True)

    timer.timeout.connect(go_on)
    timer.start(50)
    return qt.exec()


if __name__ == "__main__":
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    sys.exit(main(Path(sys.argv[1])))
