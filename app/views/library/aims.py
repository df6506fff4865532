"""`AIMS`: what Home offers to make efficient; each with a try on a simulated board and the way to the user's own."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ...base.formatting import duration
from ...base.paths import example_profile, resources
from ...sensors.select import DEFAULT_TWIN

if TYPE_CHECKING:
    from ...sensors.gpu import Gpu


@dataclass(frozen=True, slots=True)
class Aim:
    """Something to be made efficient."""

    text: str  # with its mnemonic
    what: str  # is tried
    example: str  # the specification that is tried, in `resources/examples`; none: the profile that comes along
    own: str  # on the button for the user's own
    action: str  # of the window, which that button triggers
    twin: str = ""  # the simulated board that it needs

    @property
    def path(self) -> Path:
        kept = None if self.example else example_profile()
        return kept or resources() / "examples" / self.example


AIMS: Final = (
    Aim("A &kernel", "Find the best variant of a matrix product", "gemm.toml", "Your kernel …", "new_specification"),
    Aim("A&n operator", "Find the best kernel for one matrix product", "mm.toml", "Your operator …", "new_operator"),
    Aim(
        "A &program", "See where the joules of a training on a real GPU went", "", "Your program …", "workspace_program"
    ),
    Aim(
        "A served &model",
        "Try a language model with 1 to 8 clients at four clocks",
        "quick/served_model.toml",
        "Your server …",
        "new_service",
        twin="rtx5090",
    ),
    Aim(
        "A &board",
        "Try one kernel at eight clocks and three power limits",
        "quick/board.toml",
        "Your board …",
        "workspace_control",
    ),
)
SAVINGS: Final = Aim(
    "What can I s&ave?",
    "Try what needs no rights, each in turns with the untouched state",
    "",
    "",
    "savings",
)
Place = tuple[str, str]  # selector and name of the simulated board on which an aim is tried
_SIMULATED, _SCHEME = " (simulated)", "simulated:"
_FEW_S = 10.0  # below that this computer's own work counts


def places_of(gpu: Gpu, selectors: Sequence[tuple[str, str]]) -> dict[str, Place]:
    """By example: the shown board if it is simulated and has what is needed, else the simulated board of its name."""
    info = gpu.info
    names = {selector: label.removesuffix(_SIMULATED) for selector, label in selectors if label.endswith(_SIMULATED)}
    usual = next((each for each in names.items() if each[1] == info.name), None)
    if info.source == "simulated":
        usual = info.uuid, info.name
    elif usual is None:
        usual = f"{_SCHEME}{DEFAULT_TWIN}", names.get(f"{_SCHEME}{DEFAULT_TWIN}", DEFAULT_TWIN)
    places: dict[str, Place] = {}
    for aim in AIMS:
        needed = f"{_SCHEME}{aim.twin}"
        there = not aim.twin or usual[0].partition("#")[0] == needed
        places[aim.example] = usual if there else (needed, names.get(needed, aim.twin))
    return places


@cache
def _times() -> Mapping[str, Any]:
    """By example and simulated board: seconds on its clock, as `tests/benchmarks/example_times.py` measured them."""
    return tomllib.loads((resources() / "example_times.toml").read_text(encoding="utf-8"))


def expected_s(aim: Aim, board: str) -> float:
    """The seconds on the clock of the simulated board of that name; NaN if they are not known."""
    return float(_times().get(aim.example, {}).get(board, math.nan))


def words_of(aim: Aim, places: Mapping[str, Place], speed: float) -> str:
    """What is tried, where if that is another board than for the first aim, and the time at that speed of the board."""
    place, usual = (places.get(each.example) for each in (aim, AIMS[0]))
    taken_s = math.nan if place is None else expected_s(aim, place[1])
    on = f" on the simulated {place[1]}" if place is not None and place != usual else ""
    if math.isnan(taken_s):
        return f"{aim.what}{on}."
    wall_s = taken_s / speed
    about = "some seconds" if wall_s < _FEW_S else f"about {duration(round(wall_s)).replace('.0 s', ' s')}"
    return f"{aim.what}{on}: {about}."
