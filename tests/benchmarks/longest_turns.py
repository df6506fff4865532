"""The longest turn of Qt's thread, by its processor time, in what a user does first.

By hand: python tests/benchmarks/longest_turns.py [CACHE] [--repeats 3] [--where]

Each repeat is a process of its own, with a session of GEMM in its history, on a simulated A100 at ten times its speed.
CACHE is a Kernel Tuner cache, best of 5,120 entries or more: without one nothing is replayed. Prints a table, and with
`--where` what the turns above 30 ms did. The machine's load is printed beside it: the same work takes more processor
time where others use the same caches.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
sys.path[:0] = [str(ROOT)]

_SPEED, _SHOWN_ABOVE_MS = 10.0, 30.0
_MOST_S = 120.0  # for anything to happen
_NEXT_DOCK_MS = 300


class Use:
    """One window and what is done in it; each step prints its longest turn."""

    def __init__(self) -> None:
        from PySide6.QtCore import QTimer
        from turns import Turns

        from app.engine.session import events
        from app.views.shared.watched_boards import watched_gpu
        from app.views.shell.app import Program, application

        self._timer, self._open = QTimer, events.Open
        self.qt = application()
        gpu = watched_gpu("simulated:a100", speed=_SPEED)
        self.turns = Turns(look=True)
        self.program = Program(gpu, speed=_SPEED)
        self.window: Any = self.program.window
        self.window.resize(1600, 1000)
        self.heard: list[object] = []
        bridge = self.window.bridge
        self.window.panels_loaded.connect(lambda: self.heard.append("loaded"))
        bridge.subscribe(events.SessionChanged, lambda event: self.heard.append(str(event.progress.state)))
        bridge.subscribe(events.SessionStarted, lambda _event: self.heard.append("started"))

    def step(self, name: str, do: Callable[[], object], until: str = "", rest_s: float = 1.0) -> None:
        """Do it in a turn of its own, wait for what is heard of it, and a while longer."""
        self.heard.clear()
        self.turns.begin()
        self._timer.singleShot(0, do)
        self._wait(lambda: not until or until in self.heard)
        self._wait(lambda: False, rest_s)
        self._print(name)

    def _wait(self, known: Callable[[], bool], most_s: float = _MOST_S) -> None:
        poll, end = self._timer(interval=50), time.monotonic() + most_s
        poll.timeout.connect(lambda: self.qt.exit() if known() or time.monotonic() > end else None)
        poll.start()
        self.qt.exec()
        poll.stop()

    def _print(self, name: str) -> None:
        longest = self.turns.longest_own_ms()
        print(f"{name}\t{longest}", flush=True)
        if longest > _SHOWN_ABOVE_MS:
            for place in self.turns.where():
                print(f"\t{name}: {place}", flush=True)

    def all_afloat(self) -> None:
        """Each dock of Tune a window of its own, one after another."""

        def make_afloat(place: int, dock: Any) -> None:
            dock.setFloating(True)
            dock.resize(520, 420)
            dock.move(60 + 520 * place, 60)
            dock.show()

        for place, dock in enumerate(self.window.workspaces.by_name["tune"].docks.by_name.values()):
            self._timer.singleShot(_NEXT_DOCK_MS * place, lambda place=place, dock=dock: make_afloat(place, dock))

    def run(self, cache: Path | None) -> None:
        window = self.window
        show = window.workspaces.show_workspace
        self._wait(lambda: "loaded" in self.heard)
        self._wait(lambda: False, 1.0)
        self._print("the window opens")
        self.step("Watch, before there is a result", lambda: show("watch"), rest_s=3.0)
        self.step("a first session of GEMM, started in Watch", window.tune_example, "done", 2.0)
        for again in ("the first time", "again"):
            for name in window.workspaces.by_name:
                self.step(f"{name.title()}, {again}", lambda name=name: show(name))
        show("tune")
        self.step("a stored session is opened", lambda: window.open_session(1), "started", 2.0)
        self.step("a second session of GEMM", window.tune_example, "done", 2.0)
        if cache is not None:
            replay = lambda: window.open_specification(cache, start=True)  # noqa: E731
            self.step("a replay", replay, "done", 2.0)
            self.step("all of Tune becomes windows", self.all_afloat, rest_s=3.0)
            self.step("a replay, all of Tune in windows", replay, "done", 2.0)
        self.step("a session of GEMM, all of Tune in windows", window.tune_example, "done", 2.0)
        self.program.close()


def repeats(cache: Path | None, count: int) -> tuple[dict[str, list[float]], list[str]]:
    """Milliseconds of each repeat by step, and what long turns did."""
    found: dict[str, list[float]] = {}
    where: list[str] = []
    for _ in range(count):
        with tempfile.TemporaryDirectory() as folder:
            environment = {
                **os.environ,
                "PYTHONPATH": os.pathsep.join(
                    [str(ROOT), str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
                ),
                "WATTRIDGE_DATA": folder,
            }
            tune = [sys.executable, "-m", "app", "tune", str(ROOT / "resources" / "examples" / "gemm.toml")]
            subprocess.run(
                [*tune, "--gpu", "simulated:a100", "--json"], env=environment, check=True, capture_output=True, cwd=ROOT
            )
            used = subprocess.run(
                [sys.executable, __file__, "--use", *([str(cache)] if cache else [])],
                env=environment,
                check=True,
                stdout=subprocess.PIPE,
                text=True,
            )
        for line in used.stdout.splitlines():
            name, _, rest = line.partition("\t")
            if name:
                found.setdefault(name, []).append(float(rest))
            else:
                where.append(rest)
    return found, where


def main() -> int:
    words = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    words.add_argument("cache", type=Path, nargs="?")
    words.add_argument("--repeats", type=int, default=3)
    words.add_argument("--where", action="store_true", help="what long turns did")
    words.add_argument("--use", action="store_true", help=argparse.SUPPRESS)  # in the process that it starts
    arguments = words.parse_args()
    cache = arguments.cache.resolve() if arguments.cache else None
    if arguments.use:
        Use().run(cache)
        return 0
    before = os.getloadavg()[0]
    found, where = repeats(cache, arguments.repeats)
    print(f"load of the machine, {os.cpu_count()} cores: {before:.1f} before, {os.getloadavg()[0]:.1f} after")
    for name, each in found.items():
        print(f"{name:45} {'  '.join(f'{ms:4.0f}' for ms in each)}  ms of processor")
    if arguments.where:
        print("\n".join(where))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
