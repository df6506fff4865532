"""What an administrator could save by a lower clock, where the user may set nothing: an estimate, or why there is none.

A user without rights sees one state of the board: the clock at which it runs a load by itself, and the power it draws
there. One point determines no frequency model, so what is said comes from elsewhere: from a clock sweep of a board of
the same model by somebody with rights, else from what published sweeps of other models have in common
(`resources/administrator.toml`). The clock of the least energy is a share of that *natural* clock rather than of the
highest one that the board supports, at which a load at the power limit never runs: `tests/benchmarks/administrator.txt`
holds the error of both, board by board, each without its own data. What a lower power limit would save cannot be said
in this way: the same share of the power saves a fifth on some boards and costs energy on others.
"""

from __future__ import annotations

import functools
import math
import shlex
import statistics
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from ...base.errors import InputError
from ...base.formatting import number
from ...base.paths import resources
from ..results.measurement import Measurement, State
from .boards_file import figure_named, folded
from .clock_fits import fits_of_file
from .fit.frequency import FrequencyFit
from .fit.predict import Expected, Predictor

_FILE: Final = "administrator.toml"
_PLAIN: Final = ("share", "least_power_share", "other_load", "lowest_share", "time_error")
_STEP_MHZ: Final = 15  # of the clocks of most boards; the driver takes the nearest that it supports
_LOWER: Final = 0.97  # of the natural clock: what is not lower than this is that clock

_SAVES: Final = 0.99  # of the energy: what saves less than this is not worth a request


@dataclass(frozen=True, slots=True)
class Coefficients:
    """What the published sweeps have in common; shares of the natural clock, energies per work over that there."""

    boards: tuple[str, ...]  # models of the sweeps
    energy: Expected
    share: float
    least_power_share: float  # of the limit: loads that draw less are of another kind
    other_load: float  # 95 % half-width of the logarithm, from one load of a board to another
    lowest_share: float
    time_error: float  # 95 % half-width, over the time at the natural clock, where the share of memory is known


@functools.cache
def published() -> Coefficients:
    """Read the coefficients that come with the program.

    Returns
    -------
    Coefficients
        Those of `resources/administrator.toml`, which names the sweeps and their licences.
    """
    table = tomllib.loads((resources() / _FILE).read_text("utf-8"))
    low, middle, high = table["energy"]
    boards = tuple(dict.fromkeys(source["board"] for source in table["source"]))
    return Coefficients(boards, Expected(middle, low, high), *(float(table[name]) for name in _PLAIN))


@dataclass(frozen=True, slots=True)
class CannotSay:
    """Why nothing can be said of a lower clock."""

    reason: str

    @property
    def paragraph(self) -> str:
        """The reason as a sentence."""
        return f"What a lower clock would save here cannot be said: {self.reason}."


@dataclass(frozen=True, slots=True)
class Advice:
    """A clock to hold a load to, and what that would change against the clock at which it runs by itself."""

    IN_JSON: ClassVar = {"paragraph": "paragraph", "command": "command"}

    gpu: str
    clock_mhz: float
    natural_mhz: float
    energy: Expected  # per work, over that at the natural clock, with 95 %
    time: tuple[float, float]  # per work, over that at the natural clock
    source: str  # what it rests on, in words
    command: str  # for somebody with rights
    undo: str

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the energy per work, over that at the natural clock."""
        return self.energy.low, self.energy.high

    @property
    def certain(self) -> bool:
        """Whether the interval holds nothing but savings."""
        return self.energy.high < 1

    @property
    def change(self) -> str:
        """'23 % less energy (41 % less to 1 % more)'."""
        return f"{_change(self.energy.value)} energy ({_change(self.energy.low)} to {_change(self.energy.high)})"

    @property
    def paragraph(self) -> str:
        """All of it, to be sent to an administrator."""
        doubt = "" if self.certain else "; that it saves energy is likely, not certain"
        least, most = (f"{100 * max(0.0, end - 1):.0f}" for end in self.time)
        longer = f"{f'{least} to {most}' if least != '0' else f'up to {most}'} % more time"
        return (
            f"On {self.gpu} this load runs at {self.natural_mhz:.0f} MHz by itself. Held to {self.clock_mhz:.0f} MHz, "
            f"it would take {self.change} for the same work, and {longer}. This is estimated with 95 % from "
            f"{self.source}{doubt}; it was not measured here. An administrator can try it: {self.command} (undone by "
            f"{self.undo})."
        )


def advice(
    measurements: Sequence[Measurement],
    gpu: str,
    sweep: FrequencyFit | None = None,
    *,
    source: str = "nvml",
    selector: str = "0",
    limit_w: float | None = None,
    memory_share: float | None = None,
    supported_mhz: Sequence[float] = (),
    coefficients: Coefficients | None = None,
) -> Advice | CannotSay:
    """Estimate what a lower clock would save of a load that was measured with no setting made.

    Parameters
    ----------
    measurements : sequence of Measurement
        Of one load, on the board as it is; medians of the observed clock (MHz) and the power (W) count.
    gpu : str
        Name of the board.
    sweep : FrequencyFit or None, optional
        Of a board of the same model, at clocks that were set there, of any load. Where it cannot answer, or where there
        is none, the coefficients do.
    source : str, optional
        Where the measurements are from, as of a session.
    selector : str, optional
        The board in the command: its index or UUID, or the name of a simulated one.
    limit_w : float or None, optional
        The power limit in W; None for that of the data sheet.
    memory_share : float or None, optional
        Share of the time in which device memory is busy, or of its bandwidth that is reached; None if unknown.
    supported_mhz : sequence of float, optional
        Clocks that the board supports, in MHz; empty if unknown.
    coefficients : Coefficients or None, optional
        In place of those that come with the program.

    Returns
    -------
    Advice or CannotSay
        The clock, the energy per work there over that now, and the command; or the reason why there is none.
    """
    known = coefficients if coefficients is not None else published()
    natural_mhz = _median([one.observed_clock_mhz for one in measurements if one.state is State.OK])
    power_w = _median([one.values.get("power_w", math.nan) for one in measurements if one.state is State.OK])
    limit_w = limit_w if limit_w is not None else figure_named(gpu, "tdp_w")
    if natural_mhz is None or power_w is None:
        return CannotSay(f"the {'clock' if natural_mhz is None else 'power'} at which it ran was not observed")
    if limit_w is None:
        return CannotSay(f"the power limit of {gpu} is not known, and with it whether this load is a light one")
    least_w = known.least_power_share * limit_w
    if power_w < least_w:
        drawn = f"it draws {number(power_w, 3)} W of {limit_w:g} W"
        return CannotSay(f"{drawn}, and the sweeps that are known are of loads that draw {least_w:g} W or more")
    found = None if sweep is None else _of_sweep(sweep, natural_mhz, least_w, known)
    if isinstance(found, CannotSay):
        return found
    if not isinstance(found, tuple):
        if source == "amd" or gpu.upper().startswith("AMD"):
            return CannotSay("no board of AMD's is among the published sweeps" + (f"; {found}" if found else ""))
        words = f"clock sweeps of {len(known.boards)} models of boards ({', '.join(known.boards)})"
        found = known.share * natural_mhz, known.energy, f"{words}{f'; {found}' if found else ''}"
    wanted_mhz, energy, rests_on = found
    below = [clock for clock in supported_mhz if clock < _LOWER * natural_mhz]
    clock_mhz = min(below, key=lambda mhz: abs(mhz - wanted_mhz), default=_STEP_MHZ * round(wanted_mhz / _STEP_MHZ))
    command, undo = _commands(source, shlex.quote(selector), clock_mhz)
    label = f"{gpu} ({source})" if source in ("simulated", "recorded") else gpu
    time = _time(natural_mhz / clock_mhz, memory_share, known.time_error)
    return Advice(label, float(clock_mhz), natural_mhz, energy, time, rests_on, command, undo)


def sweep_of_model(path: Path, gpu: str) -> FrequencyFit:
    """Read a clock sweep of a board of the same model, as somebody with rights made it or published it.

    Parameters
    ----------
    path : Path
        A table, a cache or a log, as `wattridge fit` reads it.
    gpu : str
        Name of the board that it has to be of. A file that names no board is taken for one of this model.

    Returns
    -------
    FrequencyFit
        Of the series with the most clocks.

    Raises
    ------
    InputError
        If it cannot be read, holds no sweep of clocks, or is of another model.
    """
    fits = [each.fit for each in fits_of_file(path) if each.fit is not None]
    alike = [fit for fit in fits if not fit.gpu or folded(fit.gpu) == folded(gpu)]
    if not alike:
        what = f"a sweep of {fits[0].gpu}, not of {gpu}" if fits else "no sweep of clocks"
        raise InputError(what, f"--sweep {path}", "name a clock sweep of a board of the same model")
    return max(alike, key=lambda fit: fit.points)


# --- inside -----------------------------------------------------------------------------------------------------------


def _of_sweep(
    sweep: FrequencyFit, natural_mhz: float, least_w: float, known: Coefficients
) -> tuple[float, Expected, str] | CannotSay | str:
    """The clock, the energy and the words by a sweep of the model; that nothing is lower; or why it says nothing."""
    predictor, clock_mhz, label = Predictor.of(sweep), sweep.recommended_clock_mhz, f"the sweep {sweep.series}"
    if predictor is None or clock_mhz is None:
        return f"{label} determines no model"
    now, then = predictor.at(natural_mhz), predictor.at(clock_mhz)
    if now is None or then is None:
        return f"{label} does not reach {natural_mhz:.0f} MHz"
    if predictor.power(now).value < least_w:
        return f"{label} is of a load that draws less than {least_w:g} W"
    if clock_mhz < known.lowest_share * natural_mhz:
        return f"{label} has its optimum at {clock_mhz:.0f} MHz, as loads have that wait for memory"
    change = predictor.change(then, now)
    if change is None:
        return f"{label} has no speed"
    if clock_mhz > _LOWER * natural_mhz or change[1].value > _SAVES:
        why = f"{label} of this model has its optimum at {clock_mhz:.0f} MHz"
        return CannotSay(f"{why}, where no energy is saved against {natural_mhz:.0f} MHz")
    value, low, high = (math.log(end) for end in (change[1].value, change[1].low, change[1].high))
    ends = (value - math.hypot(value - low, known.other_load), value + math.hypot(high - value, known.other_load))
    marked = " (simulated)" if sweep.simulated else ""
    words = f"a clock sweep of a board of this model{marked}, of another load ({sweep.series})"
    return clock_mhz, Expected(*(math.exp(end) for end in (value, *ends))), words


def _time(slower: float, memory_share: float | None, error: float) -> tuple[float, float]:
    """Time per work at a clock lower by that factor: memory is as fast as before, and all else waits for the clock."""
    if memory_share is None:
        return 1.0, slower
    busy = min(1.0, max(0.0, memory_share))
    middle = busy + (1 - busy) * slower
    return middle - error, middle + error


def _commands(source: str, selector: str, clock_mhz: float) -> tuple[str, str]:
    """What sets the clock, and what takes it back."""
    if source in ("simulated", "amd"):
        control = "" if source == "simulated" else " --allow-control --keep"
        return f"wattridge apply --gpu {selector} --clock {clock_mhz:.0f}{control}", "wattridge restore"
    smi = f"sudo nvidia-smi -i {selector}"
    return f"{smi} -lgc 0,{clock_mhz:.0f}", f"{smi} -rgc"


def _median(values: Sequence[float]) -> float | None:
    finite = [value for value in values if math.isfinite(value) and value > 0]
    return statistics.median(finite) if finite else None


def _change(ratio: float) -> str:
    return f"{100 * abs(ratio - 1):.0f} % {'less' if ratio < 1 else 'more'}"
