"""Parameters that the process takes and no kernel's text: a part of the SMs, a pause between launches, its data.

A specification lists them under [parameters] like any other. Names of environment variables are parameters too, where
its list `environment` says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from ...base.errors import InputError
from .measurement import Configuration, Value

SM_COUNT: Final = "sm_count"
SM_PERCENT: Final = "cuda_sm_percentage"  # Kernel Tuner's name, since its 1.4
PAUSE: Final = "launch_pause_ms"
DATA: Final = "input_data"
OF_LAUNCHES: Final = (SM_COUNT, SM_PERCENT, PAUSE, DATA)
OWN_DATA: Final = "own"  # of DATA: each argument's own fill
UNSET: Final = "unset"  # of an environment variable
MOST_PAUSE_MS: Final = 1000.0
SAME_DATA: Final = "a simulated board draws the same for any data"


def sms_asked(configuration: Mapping[str, Value], multiprocessors: int) -> int:
    """How many SMs a configuration asks for; 0: all of them, and none is counted.

    A percentage is rounded to whole SMs, of which there is at least one. Raises InputError for what cannot be.
    """
    for name, whole in ((SM_COUNT, multiprocessors), (SM_PERCENT, 100)):
        if name in configuration:
            value, counted = configuration[name], name == SM_COUNT
            if isinstance(value, str) or not 0 <= value <= whole or (value != int(value) if counted else not value):
                remedy = f"1 to {multiprocessors}, or 0 for all" if counted else "above 0, at most 100"
                raise InputError(f"{value} cannot be had of {multiprocessors} SMs", name, remedy)
            return int(value) if counted else max(1, round(multiprocessors * value / 100))
    return 0


def pause_asked_s(configuration: Mapping[str, Value]) -> float:
    """The pause after each launch, s. Raises InputError for what cannot be."""
    value = configuration.get(PAUSE, 0)
    if isinstance(value, str) or not 0 <= value <= MOST_PAUSE_MS:
        raise InputError(f"a pause of {value} ms", PAUSE, f"0 to {MOST_PAUSE_MS:g}")
    return value / 1e3


def changed_environment(
    names: Iterable[str], configuration: Configuration, environment: Mapping[str, str]
) -> dict[str, str] | None:
    """An environment with the variables of a configuration; None where it has none of these names."""
    chosen = {name: str(configuration[name]) for name in names if name in configuration}
    kept = {name: text for name, text in environment.items() if name not in chosen}
    return {**kept, **{name: text for name, text in chosen.items() if text != UNSET}} if chosen else None
