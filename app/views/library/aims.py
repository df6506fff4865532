"""`AIMS`: what Home offers to make efficient; each with a try on a simulated board and the way to the user's own."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Final

from ...base.errors import WattridgeError
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
    Aim("A &kernel", "Try 250 variants of a matrix product", "gemm.toml", "Your kernel …", "new_specification"),
    Aim("A&n operator", "Try 250 kernels for one matrix product", "mm.toml", "Your operator …", "new_operator"),
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


def expected_s(aim: Aim, selector: str, gpu: Gpu, stop: Event) -> float:
    """How long it takes on the board's clock, where `gpu` is shown; NaN if that is not known. Takes half a second."""
    from ...engine.session.load import load_specification
    from ...engine.session.trial_run import trial_time_s  # imported late: Home is there before
    from ...sensors.simulated.twin import load_twin

    if not aim.example:
        return math.nan
    twin = getattr(gpu, "twin", None) if selector == gpu.info.uuid else load_twin(selector.removeprefix(_SCHEME))
    try:
        taken_s = None if twin is None else trial_time_s(load_specification(aim.path), twin, stop)
    except WattridgeError:
        taken_s = None
    return math.nan if taken_s is None else taken_s


def words_of(aim: Aim, places: Mapping[str, Place], taken_s: float, speed: float) -> str:
    """What is tried, where if that is another board than for the first aim, and the time at that speed of the board."""
    place, usual = (places.get(each.example) for each in (aim, AIMS[0]))
    on = f" on the simulated {place[1]}" if place is not None and place != usual else ""
    if math.isnan(taken_s):
        return f"{aim.what}{on}."
    wall_s = taken_s / speed
    about = "some seconds" if wall_s < _FEW_S else f"about {duration(round(wall_s)).replace('.0 s', ' s')}"
    return f"{aim.what}{on}: {about}."
