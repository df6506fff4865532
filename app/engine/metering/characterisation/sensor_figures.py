"""The figures of a board's power sources (refresh, averaging, lag, cost of a read), and the choice of one of them.

The source that gives a mean power in the least time is chosen. `describe_characterisation` puts the figures in words.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final

import numpy as np
import numpy.typing as npt

from ....base.errors import WattridgeError
from ....base.formatting import number
from ....base.records import figure
from ...results.description import Cell, Description, Figure, Listing

Floats = npt.NDArray[np.float64]

SOURCES: Final = ("instant", "average", "counter", "buffer")
CHANNEL_OF: Final[Mapping[str, str]] = {"instant": "power_instant_w", "average": "power_average_w"}  # polled ones
WORDS: Final[Mapping[str, str]] = {
    "instant": "power instant",
    "average": "power average",
    "counter": "energy counter",
    "buffer": "driver buffer",
}
# The parts of a full look, in their order. A session that comes first makes do with the quick one.
PARTS: Final = ("quick look", "steps", "wave", "aftereffect")
SHARP: Final = 0.05  # 95 % margins within this share are sharp
SHARP_MS: Final = 0.5  # or within this
USABLE: Final = 0.5  # of a refresh: more than that, and hardly a value would surely lie in a window


def in_ms(value_ms: float, margin_ms: float | None = None) -> str:
    """Return milliseconds as they are shown, without the unit: '1000', '24.9', '0.05', '24.9 ± 0.1'.

    Parameters
    ----------
    value_ms : float
        The value, ms.
    margin_ms : float or None, optional
        Its margin, ms; None leaves it out.

    Returns
    -------
    str
        The text.
    """
    digits = 0 if abs(value_ms) >= 99.95 else 1 if abs(value_ms) >= 0.995 else 2
    value = f"{round(value_ms, digits) + 0.0:.{digits}f}"  # + 0.0: no minus before a zero
    return value if margin_ms is None else f"{value} ± {margin_ms:.1g}"


def source_words(source: str, refresh_ms: float, window_ms: float | None, *, counted: bool = False) -> str:
    """Describe a source with its refresh and its averaging in one line.

    Parameters
    ----------
    source : str
        Its name in SOURCES.
    refresh_ms : float
        From one value to the next, ms.
    window_ms : float or None
        What a value averages, ms; None for a source that is cumulative.
    counted : bool, optional
        Whether the buffer's samples are differences of the board's energy counter, as of AMD's boards.

    Returns
    -------
    str
        The line.
    """
    if source == "buffer" and counted:
        return f"energy counter (read every {refresh_ms:.0f} ms)"
    if source == "buffer":
        return f"{WORDS[source]} ({refresh_ms:.0f} ms samples)"
    window = "" if window_ms is None else f", mean of {in_ms(window_ms)} ms"
    return f"{WORDS[source]}, polled (new every {in_ms(refresh_ms)} ms{window})"


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a source to steps from rest to load, which the plot of the sensor shows. Arrays of shape (n,)."""

    time_s: Floats  # since the step, ascending; several steps laid over each other
    power_w: Floats
    settled_s: float = 0.0  # when the last reading appeared that was off the final power


@dataclass(frozen=True, slots=True)
class LowPass:
    """A source whose values are no means: a low-pass of first order."""

    constant_ms: float
    lag_ms: float  # what it held so long before the value appeared, or its time stamp


@dataclass(frozen=True, slots=True)
class SourceFigures:
    """The observed figures of one source. Margins are half-widths of 95 % confidence."""

    refresh_ms: float  # a new value this often; for the buffer the spacing of its samples
    window_ms: float | None  # each value is the mean of that long; None for the counter, which is cumulative
    lag_ms: float  # that window ended so long before the value appeared; for the buffer, before its time stamp
    read_us: float  # what one read costs the host
    window_margin_ms: float | None
    lag_margin_ms: float
    noise_percent: float  # scatter of single values under constant load
    settle_ms: float  # after a step from rest to load, until what is read stays within 3 % of the final value
    published_ms: float | None  # buffer only: its samples appear together, this often
    answer: Answer
    low_pass: LowPass | None = None  # where that fits far better than a mean; window and lag are of the nearest mean

    @property
    def margin_ms(self) -> float:
        """The error of the begin or the end of what a value averages, ms; 95 %."""
        return math.hypot(self.lag_margin_ms, self.window_margin_ms or 0.0)

    @property
    def sharp(self) -> bool:
        """Whether window and lag are known so well that their margins need no account."""
        figures = [(self.lag_ms, self.lag_margin_ms)]
        if self.window_ms is not None and self.window_margin_ms is not None:
            figures.append((self.window_ms, self.window_margin_ms))
        return all(margin_ms <= max(SHARP * abs(value_ms), SHARP_MS) for value_ms, margin_ms in figures)

    @property
    def usable(self) -> bool:
        """Whether power can be measured through it: its margins are small beside its refresh."""
        return self.margin_ms <= USABLE * self.refresh_ms

    def expected_share(self, time_s: Floats) -> Floats:
        """Return the answer to a step by these figures.

        A counter's rise from one value to the next is a mean over its refresh.

        Parameters
        ----------
        time_s : array, shape (n,)
            Times after the step, s.

        Returns
        -------
        array, shape (n,)
            The share of the step that is reported by then, 0..1.
        """
        if self.low_pass is not None:
            since_ms = np.maximum(time_s * 1e3 - self.low_pass.lag_ms, 0.0)
            return np.asarray(-np.expm1(-since_ms / self.low_pass.constant_ms))
        window_ms = self.refresh_ms if self.window_ms is None else self.window_ms
        return np.clip((time_s * 1e3 - self.lag_ms) / max(window_ms, 1e-3), 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Aftereffect:
    """How the second before a window colours its mean power (`aftereffect.py`)."""

    share: float  # W of excess per W by which that second drew more
    margin: float  # of the share, 95 %
    wander: float  # of the mean power of short windows under constant load, beyond their noise; relative, one sigma

    @property
    def words(self) -> str:
        return (
            f"a window's power keeps {self.share:.2%} (± {self.margin:.2%}) of the difference to the second before it, "
            f"which is taken out; under constant load windows wander by {self.wander:.2%}, which is in the intervals"
        )


@dataclass(frozen=True, slots=True)
class Characterisation:
    """The power sources of one board under one driver, as far as is known: it is made part by part."""

    IN_JSON: ClassVar = ("settle_ms", "complete")

    uuid: str  # of the board that was looked at; empty if that is not known
    gpu: str
    driver: str
    source: str  # nvml or simulated
    declared: str  # the board's own description of its power source; a characterisation of another one does not count
    # By the names in SOURCES; None if the board lacks it.
    sources: Mapping[str, SourceFigures | None] = field(metadata=figure(keys=SOURCES))
    missing: Mapping[str, str]  # why it lacks it
    chosen: str
    why: str
    measure_ms: float  # window that a measurement through the chosen source needs
    counter_ratio: float | None  # the counter's energy over the integral of the chosen source; None without counter
    load: str
    seconds: float  # on the board's clock
    timestamp_s: float  # Unix time
    notes: tuple[str, ...] = ()
    aftereffect: Aftereffect | None = None  # where the driver's buffer is chosen
    parts: tuple[str, ...] = PARTS  # that are known
    prior: bool = False  # it is of another board of this model, and stands in until this one is looked at

    @property
    def complete(self) -> bool:
        """Whether all parts are known."""
        return set(PARTS) <= set(self.parts)

    @property
    def waves(self) -> int:
        """The number of waves driven so far in a characterisation that is not complete."""
        return sum(part.startswith(f"{PARTS[2]} ") for part in self.parts)

    @property
    def origin(self) -> str:
        """Where the figures come from, as every measurement made with them states it."""
        if self.prior:
            return "as of another GPU of this model"
        return "characterised" if self.complete else "after a quick look"

    @property
    def settle_ms(self) -> float:
        """The settling time of the chosen source, ms."""
        return self.best.settle_ms

    @property
    def best(self) -> SourceFigures:
        """The figures of the chosen source."""
        figures = self.sources[self.chosen]
        assert figures is not None
        return figures

    @property
    def words(self) -> str:
        """The chosen source and its figures in one line."""
        best = self.best
        return f"{source_words(self.chosen, best.refresh_ms, best.window_ms)}, {self.origin}"


MEASURABLE: Final = ("buffer", "instant", "average")  # through these power can be measured
READINGS: Final = 10  # that a window holds at least
SHORTEST_WINDOW_S: Final = 0.2
LONGEST_WINDOW_S: Final = 3.0  # a sensor that scatters more is not known better by a longer look
TARGET: Final = 0.01  # 95 % confidence of the mean power
DISTURBED_PERCENT: Final = 15.0  # scatter of the power under one load: something else draws as well


def choose_source(sources: Mapping[str, SourceFigures | None], where: str) -> tuple[str, float, str]:
    """Choose the source that gives a mean power in the least time.

    Parameters
    ----------
    sources : mapping of str to SourceFigures or None
        The figures by source; None if the board lacks it.
    where : str
        The board, for errors.

    Returns
    -------
    name : str
        The source.
    window_s : float
        The window that it needs, s.
    why : str
        The reason.

    Raises
    ------
    WattridgeError
        Where the board reports no power.
    """
    needs: dict[str, tuple[float, float]] = {}  # seconds in all, of which the window
    for name in MEASURABLE:
        figures = sources[name]
        if figures is None or figures.window_ms is None:
            continue
        values = max(READINGS, (1.96 * figures.noise_percent / 100 / TARGET) ** 2 + 2)
        enough_s = min(LONGEST_WINDOW_S, values * figures.refresh_ms / 1e3)
        window_s = max(SHORTEST_WINDOW_S, enough_s, figures.window_ms / 1e3)
        needs[name] = (window_s + figures.settle_ms / 1e3, window_s)
    if not needs:
        raise WattridgeError("the board reports no power", where, "energy cannot be measured on it")
    ranked = sorted(needs, key=lambda name: needs[name])
    times = ", ".join(f"{needs[name][0]:.2g} s through {WORDS[name]}" for name in ranked)
    return ranked[0], needs[ranked[0]][1], f"least time for a mean power after a change of load: {times}"


def require_undisturbed(figures: SourceFigures | None, where: str) -> None:
    """Require that the power of a look scatters so little that nothing but its own load draws it.

    Parameters
    ----------
    figures : SourceFigures or None
        The figures of the chosen source; None passes.
    where : str
        The board, for errors.

    Raises
    ------
    WattridgeError
        Where the power scatters by more than 15 %: something else runs on the board.
    """
    if figures is not None and figures.noise_percent > DISTURBED_PERCENT:
        scatter = f"the power under one load scattered by {figures.noise_percent:.0f} %"
        raise WattridgeError(f"{scatter}: something else runs on the board", where, "try again when it is free")


_GAIN: Final = "the gain of a board's sensor may be off by up to 5 %; only an external meter can show it"
_HEADER: Final = ("source", "new every ms", "averages ms", "lags ms", "settles ms", "scatter %", "a read costs µs")


def describe_characterisation(characterisation: Characterisation, board: str) -> Description:
    """Describe refresh, averaging and lag of each power source of a board, and the one that it is measured through.

    Parameters
    ----------
    characterisation : Characterisation
        The characterisation.
    board : str
        The board, as the title names it.

    Returns
    -------
    Description
        Its figures, a table of the sources, and remarks.
    """
    rows: list[list[Cell]] = []
    for name, source in characterisation.sources.items():
        if source is not None:
            averages = "cumulative" if source.window_ms is None else in_ms(source.window_ms, source.window_margin_ms)
            lags = in_ms(source.lag_ms, source.lag_margin_ms)
            figures = (in_ms(source.refresh_ms), averages, lags, in_ms(source.settle_ms))
            rows.append([WORDS[name], *figures, number(source.noise_percent, 2), number(source.read_us, 3)])
    figures_of_board = [
        Figure("Measures through", characterisation.words, important=True),
        Figure("Why", characterisation.why or None),
        Figure("In windows of", characterisation.measure_ms / 1e3, "s", digits=2),
    ]
    if characterisation.counter_ratio is not None:
        ratio = (
            f"rises by {100 * characterisation.counter_ratio:.2f} % of the integral of {WORDS[characterisation.chosen]}"
        )
        figures_of_board.append(Figure("Energy counter", ratio))
    buffer = characterisation.sources.get("buffer")
    remarks = [f"{WORDS[name]}: not available, {why}" for name, why in characterisation.missing.items()]
    if buffer is not None and buffer.published_ms is not None:
        remarks.append(f"the buffer's samples appear together, about every {buffer.published_ms:.0f} ms")
    for name, source in characterisation.sources.items():
        if source is not None and source.low_pass is not None:
            constant, lag = in_ms(source.low_pass.constant_ms), in_ms(source.low_pass.lag_ms)
            what = f"{WORDS[name]}: no mean but a low-pass of first order, time constant {constant} ms, lag {lag} ms"
            remarks.append(f"{what}; averaging and lag above are of the mean that comes nearest")
    if characterisation.aftereffect is not None:
        remarks.append(characterisation.aftereffect.words)
    if characterisation.prior:
        remarks.append("this is another GPU of the same model: measurements count with how far GPUs of a kind differ")
    elif not characterisation.complete:
        left = ", ".join(part for part in PARTS if part not in characterisation.parts)
        remarks.append(f"not looked at yet: {left}; wattridge characterise goes on from here")
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(characterisation.timestamp_s))
    simulated = ", simulated" if characterisation.source == "simulated" else ""
    return Description(
        title=f"Power sources of {board}",
        origin=f"driver {characterisation.driver}, {when}, {characterisation.seconds:.0f} s "
        f"under {characterisation.load}{simulated}",
        figures=figures_of_board,
        listings=[Listing("", _HEADER, rows)],
        remarks=[*remarks, _GAIN, *characterisation.notes],
    )
