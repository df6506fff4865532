"""`Condition`: how warm a board is, as far as it reports it: two temperatures, and averages of its recent power.

A heat sink, memory and regulators warm more slowly than the die, and no sensor shows them: averages of the power over
what came before stand for them, weighted exponentially with time constants of 1 and 30 s.
"""

from __future__ import annotations

import math
import re
from bisect import insort
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from ...base.errors import InputError

Floats = npt.NDArray[np.float64]
FAST_S: Final = 1.0
SLOW_S: Final = 30.0
_HOTTEST_C: Final = 150.0
_MOST_W: Final = 100_000.0
_PARTS: Final = {  # of a condition as text -> field, unit, and what the user may write before the number
    "gpu_c": ("C", ""),
    "memory_c": ("C", "memory"),
    "fast_w": ("W", "last second"),
    "slow_w": ("W", ""),
}
_PART: Final = re.compile(r"(memory|last second|)\s*(\d+(?:\.\d+)?)\s*°?\s*([CW])", re.IGNORECASE)


class PowerHistory:
    """The two averages of a board's power, updated sample by sample. The first stands for all the time before it."""

    def __init__(self) -> None:
        self._time_s = math.nan
        self.fast_w = math.nan
        self.slow_w = math.nan

    def add(self, time_s: float, power_w: float) -> None:
        """Take in a sample.

        Parameters
        ----------
        time_s : float
            When it ended, s; a sample that is not later than the last does not count.
        power_w : float
            The mean power since the sample before, W; NaN does not count.
        """
        if math.isnan(self._time_s):
            self._time_s, self.fast_w, self.slow_w = time_s, power_w, power_w
        elif time_s > self._time_s and math.isfinite(power_w):
            passed_s, self._time_s = time_s - self._time_s, time_s
            self.fast_w += (power_w - self.fast_w) * -math.expm1(-passed_s / FAST_S)
            self.slow_w += (power_w - self.slow_w) * -math.expm1(-passed_s / SLOW_S)


@dataclass(frozen=True, slots=True)
class Condition:
    """A thermal condition: of a window in which something was measured, or one that figures are stated for."""

    gpu_c: float = math.nan  # not known: left out of account
    memory_c: float = math.nan
    fast_w: float = math.nan  # NaN: as much as the kernel itself draws
    slow_w: float = math.nan

    @classmethod
    def parse(cls, text: str, where: str) -> Condition:
        """Read a condition as `words` writes it: '55C,420W', or in full '55C, memory 50C, 420W, last second 400W'.

        Parameters
        ----------
        text : str
            The condition.
        where : str
            Where it stands, for errors.

        Returns
        -------
        Condition
            The condition; a value that the text does not give is NaN.

        Raises
        ------
        InputError
            For a text that is no condition of a board.
        """
        values: dict[str, float] = {}
        for part in text.split(","):
            matched = _PART.fullmatch(part.strip())
            named = matched and (matched[3].upper(), matched[1].lower())
            field = next((name for name, described in _PARTS.items() if described == named), None)
            if matched is None or field is None or field in values:
                remedy = "a GPU temperature and the mean power of the last half minute, as in 55C,420W"
                raise InputError(f"'{text}' is no thermal condition", where, remedy)
            values[field] = float(matched[2])
        if values.get("gpu_c", 0.0) > _HOTTEST_C or values.get("slow_w", 0.0) > _MOST_W:
            raise InputError(f"'{text}' is no condition of a board", where, "temperatures in °C, powers in W")
        return cls(**values)

    @property
    def words(self) -> str:
        """The condition such as '55 °C, memory 50 °C, 420 W', which `parse` reads."""
        parts = [(value, *_PARTS[name]) for name, value in self.as_names().items()]
        return ", ".join(f"{name} {value:.4g} {'°C' if unit == 'C' else unit}".strip() for value, unit, name in parts)

    @property
    def option(self) -> str:
        """The condition as `--condition` takes it, in ASCII."""
        return self.words.replace(" °C", "C").replace(" W", "W").replace(", ", ",")

    def as_names(self) -> dict[str, float]:
        """Return the known values by the names of their fields."""
        named = zip(_PARTS, astuple(self), strict=True)
        return {name: value for name, value in named if not math.isnan(value)}


def drawn_lately_w(times_s: Floats, power_w: Floats, at_s: float) -> tuple[float, float]:
    """Return the two averages of the power at a time.

    Parameters
    ----------
    times_s : array, shape (n,)
        When each sample ended, s, ascending.
    power_w : array, shape (n,)
        The mean power of each sample, W.
    at_s : float
        The time, s.

    Returns
    -------
    fast_w, slow_w : float
        The averages, W; NaN without any sample before the time.
    """
    valid = (times_s <= at_s) & np.isfinite(power_w)
    times_s, power_w = times_s[valid], power_w[valid]
    if not len(times_s):
        return math.nan, math.nan
    fast_w, slow_w = (_weighted(times_s, power_w, at_s, average_s) for average_s in (FAST_S, SLOW_S))
    return fast_w, slow_w


def _weighted(times_s: Floats, power_w: Floats, at_s: float, average_s: float) -> float:
    since = np.exp((times_s - at_s) / average_s)
    shares = np.diff(since, prepend=0.0)  # the first stands for all the time before it
    return float(shares @ power_w) / float(since[-1])


UNKNOWN: Final = Condition()


class SeenConditions:
    """The conditions of a session's windows so far, and their middle."""

    def __init__(self) -> None:
        self._values: dict[str, list[float]] = {"gpu_c": [], "memory_c": [], "slow_w": []}  # ascending
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, condition: Condition) -> None:
        """Take in the condition of a window.

        Parameters
        ----------
        condition : Condition
            The condition; a value that is NaN, not known, does not count.
        """
        self._count += 1
        for name, ascending in self._values.items():
            value = getattr(condition, name)
            if not math.isnan(value):
                insort(ascending, value)

    @property
    def usual(self) -> Condition:
        """A round condition in their middle, of a kernel that runs for seconds: the fast average is its own."""
        gpu, memory, slow = self._values.values()
        return Condition(_middle(gpu, 1.0), _middle(memory, 1.0), math.nan, _middle(slow, 10.0))


def _middle(ascending: Sequence[float], step: float) -> float:
    """The median, rounded to `step`."""
    if not ascending:
        return math.nan
    half = len(ascending) // 2
    return round((ascending[half] + ascending[~half]) / 2 / step) * step
