"""Where the window lies: within its screen at first, and from start to start as it was left, on each screen."""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fixtures.starts import looks
from PySide6.QtCore import QRect, QSize

from app.views.shell.panels import PANELS
from app.views.shell.workspaces import first_geometry, screens_name

Starts = Callable[..., list[dict[str, Any]]]
_CLEAN = multiprocessing.get_context("spawn" if sys.platform == "win32" else "forkserver")
_LOADED = (
    "app.views.shell.app",
    "app.engine.session.engine_thread",
    "app.views.tune.editor_window",
    "app.views.tune.wizard",
)


@pytest.fixture(scope="module", autouse=True)
def loaded_once() -> Iterator[None]:
    """Each process of these tests begins with the program's modules: to import them takes as long as to start it."""
    panels = (f"app.views.{spec.module}" for spec in PANELS if spec.panel)
    _CLEAN.set_forkserver_preload([*_LOADED, *panels])
    yield
    _CLEAN.set_forkserver_preload([])


@pytest.fixture
def starts(own_data_folder: Path) -> Starts:
    """`starts(screens, *wishes)`: the window as it was at each start; see `fixtures/starts.py`."""

    def run(screens: str, *wishes: tuple[str, ...], within: Sequence[str] = ()) -> list[dict[str, Any]]:
        with ProcessPoolExecutor(1, _CLEAN) as processes:
            return processes.submit(looks, own_data_folder, screens, wishes, within).result(timeout=240)

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


def fits(first: dict[str, Any]) -> None:
    """Each workspace of a very first window has its place on the screen, and leaves its centre room."""
    assert first["first"] == "home"
    for name, seen in first["workspaces"].items():
        assert seen["on_screen"], name
        assert seen["window"] == first["workspaces"]["watch"]["window"], "no panel makes it larger"
        assert seen["centre"][2] >= 400, name
        assert seen["centre"][3] >= 380, name
        assert seen["scrolled"] == [], "from side to side"
        assert seen["closed"] == []
    watch, tune = first["workspaces"]["watch"], first["workspaces"]["tune"]
    assert (watch["inspector"], watch["strip"]) == (0, 0)
    assert tune["inspector"] >= 290
    beside = sum({left: width for left, _, width, _ in tune["docks"].values()}.values())
    assert tune["centre"][2] >= 1.6 * beside, "the front is the largest of what is in sight"
    assert 100 <= tune["strip"] <= 300, "the traces are always seen with the points"


@pytest.mark.parametrize(
    ("screen", "in_sight", "wishes"),
    [
        ("1366x768", 1, ("maximised", "dragged")),  # the monitor's edge once moved by 48 px at each start
        ("1680x1050", 1, ("maximised", "closed")),
        ("3840x2160", 2, ("maximised",)),
        ("1366x768+2560x1440", 2, ("moved",)),
    ],
)
def test_the_first_window_fits_and_later_ones_leave_everything_where_it_was(
    starts: Starts, screen: str, in_sight: int, wishes: tuple[str, ...]
) -> None:
    first, left, again = starts(screen, wishes, ())
    fits(first)
    watch = left["workspaces"]["watch"]
    assert left["workspaces"] != first["workspaces"]
    assert watch["maximised"] == ("maximised" in wishes)
    assert watch["closed"] == (["boards"] if "closed" in wishes else [])
    assert len(watch["docks"]) == in_sight
    assert again == {"first": "watch", "workspaces": left["workspaces"]}


def test_each_screen_has_its_own_layout(starts: Starts) -> None:
    small, untouched = starts("1280x720", (), ())
    fits(small)
    assert untouched == small
    assert len(small["workspaces"]["watch"]["docks"]) == 1
    usual, changed = starts("1920x1080", ("dragged", "closed", "tune"))
    assert len(usual["workspaces"]["watch"]["docks"]) == 2, "nothing of the smaller one"
    before, after = usual["workspaces"], changed["workspaces"]
    assert after["watch"]["centre"][2] == before["watch"]["centre"][2] + 75
    assert after["watch"]["closed"] == ["boards"]
    assert len(after["watch"]["docks"]) == 1
    assert after["tune"]["inspector"] == before["tune"]["inspector"] + 30
    assert after["tune"]["strip"] == before["tune"]["strip"] + 30
    kept = {name: after[name] for name in ("watch", "tune")}
    (later,) = starts("1280x720", (), within=tuple(kept))
    assert later["workspaces"] == {name: small["workspaces"][name] for name in kept}
    assert starts("1920x1080", (), within=tuple(kept)) == [{"first": "tune", "workspaces": kept}]
    (two,) = starts("1920x1080+1280x720", (), within=["watch"])
    assert two["workspaces"]["watch"]["closed"] == [], "nor with a second screen"
