"""A screen with a window manager, and a user with eyes and hands before it. Needs Xvfb, openbox and xdotool."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DISPLAY = ":87"


class Missed(Exception):
    """Something was not seen in time, or not where it can be pressed."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One thing in sight; its place in the screen's pixels."""

    name: str
    role: str
    place: tuple[int, int, int, int]
    enabled: bool
    focused: bool

    @property
    def middle(self) -> tuple[int, int]:
        left, top, width, height = self.place
        return left + width // 2, top + height // 2


@contextlib.contextmanager
def screen(width: int, height: int) -> Iterator[None]:
    """Xvfb with openbox."""
    described = f"{width}x{height}x24"
    server = subprocess.Popen(["Xvfb", DISPLAY, "-screen", "0", described], stderr=subprocess.DEVNULL)
    time.sleep(1.0)
    manager = subprocess.Popen(
        ["openbox"], env={**os.environ, "DISPLAY": DISPLAY}, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    time.sleep(0.7)
    try:
        yield
    finally:
        for helper in (manager, server):
            helper.terminate()
            helper.wait(10)


@dataclass
class User:
    """Starts the program, looks at it, presses; every press is counted."""

    folder: Path  # home and data
    size: tuple[int, int]  # of the screen
    scale: float = 1.0
    pictures: Path | None = None
    clicks: int = 0
    keys: int = 0
    program: subprocess.Popen[str] | None = None
    taken: int = field(default=0, repr=False)

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "DISPLAY": DISPLAY,
            "QT_QPA_PLATFORM": "xcb",
            "QT_SCALE_FACTOR": f"{self.scale:g}",
            "WATTRIDGE_DATA": str(self.folder / "data"),
            "PYTHONPATH": str(ROOT),
            "HOME": str(self.folder),
        }

    @contextlib.contextmanager
    def start(self, *arguments: str) -> Iterator[None]:
        """The program with these arguments, until it is closed; it is ended where it still runs."""
        self.program = subprocess.Popen(
            [sys.executable, str(ROOT / "tests" / "benchmarks" / "eyes.py"), *arguments],
            env=self.environment,
            cwd=self.folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(self.folder / "errors.txt").open("a"),
            text=True,
        )
        try:
            yield
        finally:
            if self.program.poll() is None:
                self.program.terminate()
                self.program.wait(20)

    # --- eyes ---------------------------------------------------------------------------------------------------------

    def look(self) -> list[Seen]:
        """Everything in sight."""
        assert self.program is not None
        assert self.program.stdin is not None
        assert self.program.stdout is not None
        if self.program.poll() is not None:
            raise Missed(f"the program has ended: {(self.folder / 'errors.txt').read_text()[-300:]}")
        self.program.stdin.write("\n")
        self.program.stdin.flush()
        found: list[dict[str, Any]] = json.loads(self.program.stdout.readline() or "[]")
        return [Seen(**{**each, "place": tuple(each["place"])}) for each in found]

    def see(self, words: str, *, role: str = "", patience_s: float = 60.0, enabled: bool = True) -> Seen:
        """What has these words in its name, wholly on the screen, once it can be pressed and stands still."""
        found: list[Seen] = []
        before: list[Seen] = []

        def there() -> object:
            before[:] = found
            found[:] = [
                each
                for each in self.look()
                if words in each.name and role in each.role and self.on_screen(each) and each.enabled >= enabled
            ]
            return found and found == before

        self.until(f"'{words}'", there, patience_s)
        return min(found, key=lambda each: len(each.name))

    def sees(self, words: str) -> bool:
        return any(words in each.name and self.on_screen(each) for each in self.look())

    def on_screen(self, seen: Seen) -> bool:
        left, top, width, height = seen.place
        across = 0 <= left < left + width <= self.size[0]
        return across and 0 <= top < top + height <= self.size[1]

    def focus(self) -> Seen | None:
        """What has the focus; the innermost."""
        return next((each for each in reversed(self.look()) if each.focused), None)

    def until(self, what: str, known: Callable[[], object], patience_s: float = 60.0) -> None:
        end = time.monotonic() + patience_s
        while not known():
            if time.monotonic() > end:
                self.picture("missed")
                raise Missed(f"not seen within {patience_s:.0f} s: {what}")
            time.sleep(0.1)

    def picture(self, what: str) -> None:
        if self.pictures is not None:
            self.taken += 1
            path = self.pictures / f"{self.taken:02}-{what.replace(' ', '-')}.png"
            subprocess.run(["import", "-window", "root", str(path)], env=self.environment, check=False, timeout=30)

    # --- hands --------------------------------------------------------------------------------------------------------

    def hands(self, *words: str) -> str:
        return subprocess.run(
            ["xdotool", *words], env=self.environment, check=True, capture_output=True, text=True, timeout=30
        ).stdout

    def click(self, seen: Seen) -> None:
        self.hands("mousemove", *map(str, seen.middle), "sleep", "0.1", "click", "1")
        self.clicks += 1
        time.sleep(0.3)

    def key(self, *keys: str) -> None:
        for key in keys:
            self.hands("key", "--clearmodifiers", key)
            self.keys += 1
            time.sleep(0.12)

    def tab_to(self, words: str, most: int = 80) -> None:
        """By Tab alone; each press counts."""
        for _ in range(most):
            seen = self.focus()
            if seen is not None and words in seen.name and seen.enabled:
                return
            self.key("Tab")
        self.picture("missed")
        raise Missed(f"not reached by {most} Tabs: '{words}'")

    def type(self, text: str) -> None:
        self.hands("type", "--delay", "15", text)
