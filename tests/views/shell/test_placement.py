"""Where the window lies: within its screen at first, and from start to start as it was left, on each screen."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QRect, QSize

from app.views.shell.placement import first_geometry, screens_name

ROOT = Path(__file__).resolve().parents[3]
Starts = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def starts(own_data_folder: Path) -> Starts:
    """`starts(screen, count, *wishes)`: the window as it was at each start; see `starts.py`."""

    def run(screen: str, count: int, *wishes: str) -> list[dict[str, Any]]:
        done = subprocess.run(
            [
                sys.executable,
                "-X",
                "faulthandler",
                str(Path(__file__).with_name("starts.py")),
                screen,
                str(count),
                *wishes,
            ],
            env={**os.environ, "PYTHONPATH": str(ROOT), "WATTRIDGE_DATA": str(own_data_folder)},
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        seen = json.loads(done.stdout)
        assert len(seen) == count
        return seen  # type: ignore[no-any-return]

    return run


@pytest.mark.parametrize("screen", [(1280, 720), (1366, 768), (1920, 1080), (2560, 1440), (3840, 2160), (1024, 600)])
def test_the_first_window_lies_within_its_screen_with_room_for_its_frame(screen: tuple[int, int]) -> None:
    available = QRect(0, 28, screen[0], screen[1] - 28)  # less the desktop's bar
    geometry = first_geometry(available)
    assert available.adjusted(8, 40, -8, -8).contains(geometry)
    assert geometry.width() >= min(1840, screen[0] - 16)


def test_screens_have_a_name_that_does_not_depend_on_their_order() -> None:
    small, large = QSize(1366, 768), QSize(1920, 1080)
    assert screens_name([small]) == "1366x768"
    assert screens_name([small, large]) == screens_name([large, small])
    assert len({screens_name(sizes) for sizes in ([small], [large], [small, large], [large, large])}) == 4


@pytest.mark.parametrize("screen", ["1280x720", "1366x768", "1920x1080", "3840x2160"])
def test_every_workspace_fits_the_screen_and_leaves_its_centre_room(starts: Starts, screen: str) -> None:
    (first,) = starts(screen, 1)
    assert first["first"] == "watch"
    for name, seen in first["workspaces"].items():
        assert seen["on_screen"], name
        assert seen["window"] == first["workspaces"]["watch"]["window"], "no panel makes it larger"
        assert seen["centre"][2] >= 400, name
        assert seen["centre"][3] >= 380, name
        assert seen["scrolled"] == [], "from side to side"
    watch, tune = first["workspaces"]["watch"], first["workspaces"]["tune"]
    assert (watch["inspector"], watch["strip"]) == (0, 0)
    assert tune["inspector"] >= 290
    beside = sum({left: width for left, _, width, _ in tune["docks"].values()}.values())
    assert tune["centre"][2] >= 1.6 * beside, "the front is the largest of what is in sight"
    assert 100 <= tune["strip"] <= 300, "the traces are always seen with the points"


@pytest.mark.parametrize(
    ("screen", "wishes", "in_sight", "times"),
    [
        ("1280x720", (), 1, 2),
        ("1366x768", ("maximised", "dragged"), 1, 5),  # the monitor's edge once moved by 48 px at each start
        ("1680x1050", ("maximised", "closed"), 1, 2),
        ("1920x1080", ("dragged", "closed", "tune"), 1, 2),
        ("3840x2160", ("maximised",), 2, 2),
        ("1366x768+2560x1440", ("moved",), 2, 2),
    ],
)
def test_starts_leave_everything_where_it_was(
    starts: Starts, screen: str, wishes: tuple[str, ...], in_sight: int, times: int
) -> None:
    first, *others = starts(screen, times, *wishes)
    watch = first["workspaces"]["watch"]
    assert first["first"] == ("tune" if "tune" in wishes else "watch")
    assert watch["maximised"] == ("maximised" in wishes)
    assert watch["closed"] == (["boards"] if "closed" in wishes else [])
    assert len(watch["docks"]) == in_sight
    for each in others:
        assert each == first


def test_each_screen_has_its_own_layout(starts: Starts) -> None:
    (small,) = starts("1280x720", 1)
    assert len(small["workspaces"]["watch"]["docks"]) == 1
    (usual,) = starts("1920x1080", 1)
    assert len(usual["workspaces"]["watch"]["docks"]) == 2, "nothing of the smaller one"
    (changed,) = starts("1920x1080", 1, "dragged", "closed")
    before, after = usual["workspaces"], changed["workspaces"]
    assert after["watch"]["centre"][2] == before["watch"]["centre"][2] + 75
    assert after["tune"]["inspector"] == before["tune"]["inspector"] + 30
    assert after["tune"]["strip"] == before["tune"]["strip"] + 30
    assert starts("1280x720", 1) == [small]
    assert starts("1920x1080", 1) == [changed]
    assert starts("1920x1080+1280x720", 1)[0]["workspaces"]["watch"]["closed"] == [], "nor with a second screen"
