"""Settings of a board by name: their words and units, and the nearest values that a board supports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from ...base.errors import InputError
from ...sensors.channel import CHANNELS
from ...sensors.gpu import Gpu, NotSupported
from ...sensors.power_profiles import MOST_PROFILES, NO_PROFILE, HasPowerProfiles

Range = tuple[float, float]  # of clocks: the board chooses within it
Setting = float | Range
BoardSettings = Mapping[str, Setting]  # what is wished of a board, from a panel or a command to its control

PROFILE: Final = "workload_power_profile"
UNTOUCHED: Final = "untouched"  # the level at which a session has set nothing, or has put back what it set
OWN_STATE: Final = "the board's own state"  # with every setting untouched
HIGHEST_CLOCK: Final = f"the highest measured clock, which may not be {OWN_STATE}"

# In order of application: a profile may move the limits, and the supported graphics clocks depend on the memory clock.
WORDS: Final[Mapping[str, str]] = {
    PROFILE: "workload power profile",
    "power_limit_w": "power limit",
    "memory_clock_mhz": "memory clock",
    "graphics_clock_mhz": "graphics clock",
}
SETTINGS: Final = tuple(WORDS)
_LARGEST: Final = 1e6  # MHz or W
_LOCKED_SINCE: Final = {"graphics_clock_mhz": (7, 0), "memory_clock_mhz": (8, 0)}  # compute capability


def upper(value: Setting) -> float:
    """The value, or the upper end of a range."""
    return value[1] if isinstance(value, tuple) else value


def lower(value: Setting) -> float:
    """The value, or the lower end of a range."""
    return value[0] if isinstance(value, tuple) else value


def unit(name: str) -> str:
    """The unit of a setting, W or MHz, as each of these is a channel too; empty for a profile."""
    return "" if name == PROFILE else CHANNELS[name].unit


def shown(value: Setting) -> str:
    """A value without its unit."""
    return f"{value[0]:g}–{value[1]:g}" if isinstance(value, tuple) else f"{value:g}"


def in_words(settings: Mapping[str, Setting | str]) -> str:
    """'power limit 300 W, graphics clock 1200 MHz'."""
    return ", ".join(f"{WORDS[name]} {with_unit(name, value)}" for name, value in settings.items())


def with_unit(name: str, value: Setting | str) -> str:
    """'300 W', '900–1200 MHz', 'untouched'; of a profile its number, or 'none'."""
    if isinstance(value, str):
        return value
    if name == PROFILE:
        return "none" if upper(value) == NO_PROFILE else shown(value)
    return f"{shown(value)} {unit(name)}"


def is_setting(name: str, value: float) -> bool:
    """Whether a number can be one end of a setting at all; what a board supports is for the board to say."""
    if name == PROFILE:
        return float(value).is_integer() and NO_PROFILE <= value < MOST_PROFILES
    return 0 < value < _LARGEST


def why_not_set(gpu: Gpu, name: str) -> str | None:
    """Why a board does not support a setting; None if it does, as far as that is known without trying."""
    if gpu.info.source == "recorded":
        return "a recording cannot be set"
    says = getattr(gpu, "why_not_set", None)
    if says is not None and (why := says(name)):
        return str(why)
    if name == PROFILE:
        return None if supported_profiles(gpu) else "this board has no workload power profiles"
    if name == "power_limit_w":
        limit = gpu.info.power_limit
        return "this board reports no power limits" if None in (limit.minimum_w, limit.maximum_w) else None
    return None if supported_clocks(gpu, name) else "this board does not report its clocks"


def supported_clocks(gpu: Gpu, name: str) -> Sequence[int]:
    """Supported clocks in MHz of memory_clock_mhz or graphics_clock_mhz, ascending; empty if unknown."""
    return gpu.memory_clocks_mhz() if name == "memory_clock_mhz" else gpu.graphics_clocks_mhz()


def supported_profiles(gpu: Gpu) -> dict[int, str]:
    """The workload power profiles of a board, number -> name; empty if it has none."""
    try:
        profiles = gpu.power_profiles().supported if isinstance(gpu, HasPowerProfiles) else {}
    except NotSupported:
        return {}
    return {number: profile.name for number, profile in profiles.items()}


def requested_profiles(gpu: Gpu) -> str:
    """The names of the workload power profiles that are requested of a board now; empty if that is not known."""
    try:
        profiles = gpu.power_profiles() if isinstance(gpu, HasPowerProfiles) else None
    except NotSupported:
        profiles = None
    if profiles is None or profiles.requested is None:
        return ""
    return (
        ", ".join(profiles.supported[number].name for number in profiles.requested if number in profiles.supported)
        or "none"
    )


def profile_number(gpu: Gpu, given: float | str) -> int:
    """The number of a workload power profile that is given by number or by name; 'none' is one.

    Raises NotSupported if the board has none, InputError if it has not that one.
    """
    label, where = gpu.info.label, WORDS[PROFILE]
    if why := why_not_set(gpu, PROFILE):
        raise NotSupported(f"{label} cannot set it: {why}", where, "leave this setting out")
    profiles = {NO_PROFILE: "none", **supported_profiles(gpu)}
    if isinstance(given, str) and not given.lstrip("-").isdecimal():
        plain = given.strip().lower().replace("-", "_").replace(" ", "_")
        numbers = [number for number, name in profiles.items() if name == plain]
    else:
        numbers = [number for number in profiles if number == float(given)]
    if not numbers:
        choices = ", ".join(f"{name} ({number})" for number, name in profiles.items())
        raise InputError(f"{label} has no profile {given}", where, f"one of {choices}")
    return numbers[0]


def has_locks(gpu: Gpu, name: str) -> bool:
    """Whether boards of this generation lock that clock; older ones have application clocks, if anything."""
    least = _LOCKED_SINCE[name]
    return (gpu.info.compute_capability or least) >= least


def step_mhz(gpu: Gpu) -> float:
    """Between two supported graphics clocks; 1 if unknown."""
    return float(min((b - a for a, b in pairwise(gpu.graphics_clocks_mhz())), default=1))


def nearest_supported(gpu: Gpu, name: str, value: Setting) -> tuple[Setting, str]:
    """The value that a board supports next to this one, and a message where it is another.

    Raises InputError if the value is outside the board's range, NotSupported if it reports no clocks.
    """
    if name == "power_limit_w":
        return _limit(gpu, upper(value)), ""
    if name == PROFILE:
        return float(profile_number(gpu, upper(value))), ""
    clocks = supported_clocks(gpu, name)
    if not clocks:
        raise NotSupported(f"{gpu.info.label} does not report its clocks", WORDS[name], "leave this setting out")
    low, high = (_nearest(gpu, name, end, clocks) for end in (lower(value), upper(value)))
    settled: Setting = (low, high) if low != high else low
    if (low, high) == (lower(value), upper(value)):
        return settled, ""
    return settled, f"{shown(value)} MHz lies between two supported clocks: {shown(settled)} MHz is used"


def _limit(gpu: Gpu, watt: float) -> float:
    limit, label = gpu.info.power_limit, gpu.info.label
    low, high = limit.minimum_w, limit.maximum_w
    if low is not None and high is not None and not low <= watt <= high:
        where = WORDS["power_limit_w"]
        raise InputError(f"{watt:g} W is outside what {label} supports", where, f"{low:g} to {high:g} W")
    return watt


def _nearest(gpu: Gpu, name: str, mhz: float, clocks: Sequence[int]) -> float:
    step = step_mhz(gpu)
    if not clocks[0] - step < mhz < clocks[-1] + step:
        where = f"{clocks[0]} to {clocks[-1]} MHz"
        raise InputError(f"{mhz:g} MHz is outside what {gpu.info.label} supports", WORDS[name], where)
    return float(min(clocks, key=lambda clock: abs(clock - mhz)))


def setting_of(name: str, knobs: Mapping[str, Any]) -> float | None:
    """A setting's value among knobs as the helper reports them; a lock goes before application clocks.

    None of a clock stands for 'not locked', of a profile for several at once.
    """
    if name == PROFILE:
        requested = knobs.get("workload_power_profiles")
        if not requested:
            return None if requested is None else float(NO_PROFILE)
        return float(requested[0]) if len(requested) == 1 else None
    if name == "power_limit_w":
        return watts(knobs.get("power_limit_mw"))
    lock = knobs.get("locked_graphics_mhz" if name == "graphics_clock_mhz" else "locked_memory_mhz")
    clocks = knobs.get("application_clocks_mhz")
    if lock:
        return float(lock[1])
    return None if not clocks else float(clocks[1 if name == "graphics_clock_mhz" else 0])


def watts(milliwatt: Any) -> float | None:
    """W of mW; None stays None."""
    return None if milliwatt is None else float(milliwatt) / 1000
