"""Every exported receipt says what the chip showed. By hand, with the system's Python, which has AT-SPI's bindings:

    python3 tests/benchmarks/choice_receipts.py [EXPORTS] [SEED] -- .venv/bin/python -m app demo

It starts that command in an X server and a session bus of its own, waits for the example to end, and then chooses by
keyboard and mouse as a user does: along the front, in the table, by the rules of the Inspector's menu, by clicks in
the plot, and by Undo. After each choice it reads the chip from the screen, through AT-SPI, presses Export, and reads
the receipt from the files of the new folder: `receipt.json`, and what each file of text says of itself. It imports
nothing of ours. Exit status 1 where measurement, rule or rank differ, or nothing was exported.

Needs Xvfb, openbox, xdotool, dbus-run-session, at-spi2-core and gir1.2-atspi-2.0.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

_INSIDE = "CHOICE_RECEIPTS_FOLDER"  # the folder of a run, inside its session bus
_PATIENCE_S = 300.0
_CLICKS = 40  # at most, before one hits a point
_CHIP = re.compile(r"^Choice: Measurement (\d+) · (.+?) · ((?:no )?rank (?:\d+ )?of \d+)")
_IN_A_FILE = re.compile(r"measurement (\d+),.*?chosen (?:for )?([^,]+), ((?:no )?rank (?:\d+ )?of \d+)")
Choice = tuple[int, str, str]


def begin(arguments: list[str]) -> int:
    """The X server, the window manager and the bus; then this script once more, inside of them."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        for part in ("home", "run", "data"):
            (folder / part).mkdir(mode=0o700)
        reading, writing = os.pipe()
        server = subprocess.Popen(
            ["Xvfb", "-displayfd", str(writing), "-screen", "0", "1600x1000x24"],
            pass_fds=(writing,),
            stderr=subprocess.DEVNULL,
        )
        os.close(writing)
        display = os.read(reading, 16).decode().strip()
        surroundings = os.environ | {
            "DISPLAY": f":{display}",
            "HOME": str(folder / "home"),
            "XDG_RUNTIME_DIR": str(folder / "run"),
            "XDG_CONFIG_HOME": str(folder / "home"),
            "WATTRIDGE_DATA": str(folder / "data"),
            "QT_LINUX_ACCESSIBILITY_ALWAYS_ON": "1",
            "QT_QPA_PLATFORM": "xcb",
            _INSIDE: name,
        }
        manager = subprocess.Popen(["openbox"], env=surroundings, stderr=subprocess.DEVNULL)
        try:
            command = ["dbus-run-session", "--", sys.executable, __file__, *arguments]
            return subprocess.run(command, env=surroundings, check=False).returncode
        finally:
            for started in (manager, server):
                started.terminate()
                started.wait()


class Screen:
    """The window as a screen reader has it, and a keyboard and a mouse."""

    def __init__(self) -> None:
        import gi  # type: ignore[import-not-found,unused-ignore]  # of the system's Python

        gi.require_version("Atspi", "2.0")
        from gi.repository import Atspi  # type: ignore[import-not-found,unused-ignore]

        self._atspi = Atspi
        Atspi.init()

    def all(self) -> Iterator[Any]:
        """Everything in sight, from the top down."""
        desktop = self._atspi.get_desktop(0)
        waiting = [desktop.get_child_at_index(n) for n in range(desktop.get_child_count())]
        while waiting:
            each = waiting.pop()
            if each is None:
                continue
            yield each
            try:
                if each.get_role_name() not in ("table", "tree", "tree table", "list"):
                    waiting += [each.get_child_at_index(n) for n in reversed(range(each.get_child_count()))]
            except Exception:  # noqa: BLE001  (it went meanwhile)
                continue

    def find(self, role: str, name: str) -> Any:
        """What is in sight with that role and a name that matches; None if there is nothing."""
        for each in self.all():
            try:
                if each.get_role_name() != role or not re.search(name, each.get_name() or ""):
                    continue
                states = each.get_state_set()
                if role == "application" or states.contains(self._atspi.StateType.SHOWING):
                    return each
            except Exception:  # noqa: BLE001  (it went meanwhile)
                continue
        return None

    def wait(self, role: str, name: str) -> Any:
        """What appears with that role and name."""
        return wait_for(lambda: self.find(role, name), f"{role} {name!r}")

    def focus(self, role: str, name: str) -> None:
        """Give it the focus."""
        self.wait(role, name).get_component_iface().grab_focus()
        time.sleep(0.2)

    def click(self, role: str, name: str, across: float, down: float) -> None:
        """Click on something, at these parts of its width and height."""
        area = self.wait(role, name).get_component_iface().get_extents(self._atspi.CoordType.SCREEN)
        x, y = area.x + across * area.width, area.y + down * area.height
        xdotool("mousemove", str(round(x)), str(round(y)), "click", "1")

    def chip(self) -> Choice | None:
        """What the chip shows; None while it does not yet show a rank."""
        chip = self.find("push button", "^Choice: ")
        shown = _CHIP.search(chip.get_name()) if chip is not None else None
        return (int(shown[1]), shown[2], shown[3]) if shown else None

    def settled_chip(self) -> Choice:
        """What it shows once that stays."""

        def same() -> Choice | None:
            before = self.chip()
            time.sleep(0.7)
            return before if before is not None and before == self.chip() else None

        return wait_for(same, "a chip that stays")


def wait_for(known: Callable[[], Any], what: str) -> Any:
    """What the function returns, once that is something."""
    end = time.monotonic() + _PATIENCE_S
    while time.monotonic() < end:
        found = known()
        if found:
            return found
        time.sleep(0.2)
    raise TimeoutError(f"{what} did not appear in {_PATIENCE_S:.0f} s")


def xdotool(*arguments: str) -> None:
    """Press keys, or use the mouse."""
    subprocess.run(["xdotool", *arguments], check=True, stdout=subprocess.DEVNULL)
    time.sleep(0.3)


def keys(*names: str) -> None:
    """Press these, one after another."""
    xdotool("key", "--delay", "60", *names)


class User:
    def __init__(self, screen: Screen, seed: int) -> None:
        self.screen, self.random = screen, random.Random(seed)

    def walk_along_the_front(self) -> None:
        self.screen.focus("filler", "^Scatter of the measurements")
        keys(*["Right"] * self.random.randint(1, 5), "Return")

    def click_in_the_plot(self) -> None:
        """Here and there, until a point is hit."""
        before = self.screen.chip()
        for _ in range(_CLICKS):
            across, down = self.random.uniform(0.2, 0.9), self.random.uniform(0.1, 0.8)
            self.screen.click("filler", "^Scatter of the measurements", across, down)
            if self.screen.chip() != before:
                return

    def choose_by_a_rule(self) -> None:
        self.screen.focus("push button", "^Choose")
        keys("space")
        time.sleep(0.5)  # the menu takes keys once it is in sight
        keys(*["Down"] * self.random.randint(2, 5))
        keys("Return")

    def choose_in_the_table(self) -> None:
        keys("ctrl+k")
        xdotool("type", "--delay", "20", "table")
        keys("Return")
        self.screen.focus("table", "^Results of the session")
        keys(*["Down"] * self.random.randint(1, 6), "Return")

    def undo(self) -> None:
        self.screen.focus("push button", "^Choice: ")
        keys("ctrl+z")

    def export(self, folder: Path) -> Path:
        """Press Export; the folder that appears, once its receipt is whole."""
        before = set(folder.glob("*")) if folder.is_dir() else set()

        def written() -> Path | None:
            for made in set(folder.glob("*")) - before if folder.is_dir() else ():
                receipt = made / "receipt.json"
                if receipt.is_file() and receipt.read_text().endswith("}\n"):
                    return made
            return None

        if self.random.random() < 0.5:
            self.screen.click("push button", "^Export$", 0.3, 0.5)
        else:
            self.screen.focus("push button", "^Export$")
            keys("space")
        found = wait_for(written, "a folder of an export")
        assert isinstance(found, Path)
        return found


def receipts_in(folder: Path) -> Iterator[tuple[str, Choice]]:
    """What `receipt.json`, and each other file that names a measurement, says."""
    document = json.loads((folder / "receipt.json").read_text())
    standing = document["standing"]
    rank = f"rank {standing['rank']} of" if standing["rank"] is not None else "no rank of"
    yield "receipt.json", (document["measurement"], document["rule"], f"{rank} {standing['of']}")
    for path in sorted(folder.iterdir()):
        if path.name == "receipt.json":
            continue
        told = _IN_A_FILE.search(path.read_text(encoding="utf-8", errors="replace"))
        if told:
            yield path.name, (int(told[1]), told[2].strip(), told[3])


def main() -> int:
    arguments = sys.argv[1:]
    if "--" not in arguments or not arguments[arguments.index("--") + 1 :]:
        print(__doc__)
        return 2
    if _INSIDE not in os.environ:
        return begin(arguments)
    at = arguments.index("--")
    count, seed = [*map(int, arguments[:at]), *(20, 1)[len(arguments[:at]) :]]
    program = subprocess.Popen(arguments[at + 1 :], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        return compare(count, seed, Path(os.environ["WATTRIDGE_DATA"]) / "exports")
    finally:
        program.terminate()
        program.wait(20)


def compare(count: int, seed: int, folder: Path) -> int:
    screen = Screen()
    user = User(screen, seed)
    screen.wait("push button", "^Choice: ")
    wait_for(lambda: screen.find("push button", "^Stop$") is None or not _runs(screen), "the end of the example")
    ways = [user.walk_along_the_front, user.choose_by_a_rule, user.choose_in_the_table]
    ways += [user.click_in_the_plot, user.undo]
    differ, files, chosen = 0, 0, set()
    print(f"{'export':>6}  {'how':<22} {'measurement':>11}  {'rule':<22} {'rank':<16} {'files':>5}")
    for number in range(1, count + 1):
        way = ways[(number - 1) % len(ways)]
        way()
        shown = screen.settled_chip()
        chosen.add(shown[0])
        made = user.export(folder)
        after = screen.settled_chip()
        read = list(receipts_in(made))
        wrong = [f"{name}: {told}" for name, told in read if told != shown] + ([f"chip: {after}"] * (after != shown))
        differ += bool(wrong)
        files += len(read)
        print(
            f"{number:>6}  {way.__name__:<22} {shown[0]:>11}  {shown[1]:<22} {shown[2]:<16} {len(read):>5}", flush=True
        )
        for line in wrong:
            print(f"        differs: {line}", flush=True)
    print(
        f"{count} exports of {len(chosen)} measurements, {files} receipts in their files, {differ} exports that differ"
    )
    return 1 if differ or len(chosen) < 3 else 0


def _runs(screen: Screen) -> bool:
    """Whether the chip still changes, or the progress is shown over the window."""
    bar = screen.find("progress bar", "^How far what runs is")
    return bar is not None


if __name__ == "__main__":
    raise SystemExit(main())
