"""Settings as options of nvidia-smi, for the scripts and units that people take away."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeGuard

from ...sensors.gpu import Gpu
from ..board_settings import SETTINGS, Setting, has_locks, lower, supported_clocks, upper
from ..measurement import Value

APPLICATION_CLOCKS: Final = "application_clocks_mhz"  # (memory, graphics), of boards that cannot lock theirs

# setting -> (what people call it, how it is set, how it is put back: of the power limit, to the default)
_OPTIONS: Final = {
    "power_limit_w": ("power limit {0} W", "-pl {2}", "-pl"),
    "memory_clock_mhz": ("memory clock {0} MHz", "-lmc {1},{2}", "-rmc"),
    "graphics_clock_mhz": ("graphics clock {0} MHz", "-lgc {1},{2}", "-rgc"),
    APPLICATION_CLOCKS: ("application clocks {1} (memory) and {2} MHz", "-ac {1},{2}", "-rac"),
}


@dataclass(frozen=True, slots=True)
class SmiOption:
    """One setting. `back` lacks the default limit, which has to follow where `to_default` says so."""

    words: str
    put: str
    back: str
    to_default: bool


def smi_option(name: str, value: Value | Setting) -> SmiOption | None:
    """A setting under this program's name (MHz, W); None for what is none."""
    if name not in _OPTIONS or not _is_setting(value):
        return None
    words, put, back = _OPTIONS[name]
    limit = name == "power_limit_w"
    ends = [f"{end:g}" if limit else f"{round(end)}" for end in (lower(value), upper(value))]
    shown = "–".join(dict.fromkeys(ends))
    return SmiOption(words.format(shown, *ends), put.format(shown, *ends), back, limit)


def settings_for_smi(gpu: Gpu, settings: Mapping[str, Setting]) -> dict[str, Setting]:
    """Settings in order of application; clocks that this board cannot lock become its application clocks.

    Those are set as a pair: the highest clock stands for the one that is not named.
    """
    made = {name: settings[name] for name in SETTINGS if name in settings}
    unlocked = [name for name in made if name.endswith("_mhz") and not has_locks(gpu, name)]
    if unlocked:
        memory, graphics = (
            upper(made[name]) if name in made else float(max(supported_clocks(gpu, name)))
            for name in ("memory_clock_mhz", "graphics_clock_mhz")
        )
        made = {name: value for name, value in made.items() if name not in unlocked}
        made[APPLICATION_CLOCKS] = (memory, graphics)
    return made


def in_comment(text: str) -> str:
    """Text that cannot leave its comment."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def _is_setting(value: Value | Setting) -> TypeGuard[Setting]:
    ends = value if isinstance(value, tuple) else (value,)
    return all(isinstance(end, int | float) and not isinstance(end, bool) and end > 0 for end in ends)
