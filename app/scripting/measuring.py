"""`from wattridge import measure`: what a GPU draws and does while a block of code runs.

    with measure(gpu=0) as m:
        run_kernels()
        synchronize()  # launches return at once: wait for them inside the block
    print(m.time_s, m.energy_j, m.mean_power_w, m.power_w, m.clock_mhz)

Any number of blocks may run at once, in several threads, on several GPUs, one inside another: each GPU is read by one
thread for all of them. Leaving a block costs nothing; asking for its figures waits until the sensors have reported
them, 0.1 s on a board whose driver keeps a buffer of power samples.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from ..base.errors import InputError, WattridgeError
from ..engine.metering.span import Span, read_span
from ..engine.metering.watching import Watch, mark_all, watch
from ..sensors.gpu import Gpu

Floats = npt.NDArray[np.float64]
Board = Gpu | str | int | None


def measure(gpu: Board | Sequence[Board] = None) -> Measuring:
    """Measure the block of a `with` statement on one GPU, or several.

    Parameters
    ----------
    gpu : int, str, Gpu, or a sequence of these, or None, optional
        An index, a UUID, ``simulated:NAME``, ``recorded:FILE`` or an open board. None is GPU 0, or the simulated A100,
        with a warning, if no NVIDIA driver answers.

    Returns
    -------
    Measuring
        Its figures are those of the block, in s, J and W.

    Raises
    ------
    InputError
        On entering, if there is no such GPU.
    SensorError
        On entering, if the GPU cannot be opened.

    Examples
    --------
    >>> import time, wattridge
    >>> with wattridge.measure(gpu="simulated:a100") as block:
    ...     time.sleep(0.3)
    >>> block.source
    'simulated'
    >>> block.time_s >= 0.3 and 10 < block.mean_power_w < 100  # it idles
    True
    """
    several = isinstance(gpu, Sequence) and not isinstance(gpu, str)
    return Measuring(tuple(gpu) if several else (gpu,))  # type: ignore[arg-type]


class Measuring:
    """One measured block. Its figures are there once the block has ended; before that they raise WattridgeError.

    A figure that cannot be known is NaN and `unknown` says why: energy is never guessed for a block that is shorter
    than the sensor can resolve. `source` says so where a GPU is simulated or recorded.
    """

    def __init__(self, boards: Sequence[Board]) -> None:
        if not boards:
            raise InputError("no GPU to measure", "measure", "name one, or leave gpu out for GPU 0")
        self._asked = tuple(boards)
        self._watches: list[Watch] = []
        self._begun_ns: list[int] = []
        self._ended_ns: list[int] = []
        self._spans: tuple[Span, ...] | None = None

    def __enter__(self) -> Measuring:
        if self._watches:
            raise WattridgeError("this block has been measured already", "measure", "call measure() once per block")
        try:
            for board in self._asked:
                self._watches.append(watch(board))
        except BaseException:
            self._release()
            self._watches.clear()
            raise
        if any(board is None and not w.gpu.info.live for board, w in zip(self._asked, self._watches, strict=True)):
            warnings.warn("this measures a simulated GPU: name another by gpu=", stacklevel=2)
        mark_all(self._watches)
        self._begun_ns = [w.gpu.clock.now_ns() for w in self._watches]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended_ns = [w.gpu.clock.now_ns() for w in self._watches]
        mark_all(self._watches)
        self._release()

    def _release(self) -> None:
        for item in self._watches:
            item.release()

    # --- the figures ------------------------------------------------------------------------------------------------

    @property
    def boards(self) -> tuple[Span, ...]:
        """The figures of each GPU, in the order asked for."""
        if self._spans is None:
            if not self._ended_ns:
                raise WattridgeError("the block has not ended yet", "measure", "look at the figures after the block")
            stretches = zip(self._watches, self._begun_ns, self._ended_ns, strict=True)
            self._spans = tuple(read_span(*stretch) for stretch in stretches)
            self._watches.clear()  # the trace may go
        return self._spans

    @property
    def gpu(self) -> str:
        """The names of the GPUs."""
        return ", ".join(span.gpu for span in self.boards)

    @property
    def source(self) -> str:
        """nvml, simulated or recorded; several where GPUs differ."""
        return ", ".join(dict.fromkeys(span.source for span in self.boards))

    @property
    def time_s(self) -> float:
        """How long the block took."""
        return self.boards[0].time_s

    @property
    def energy_j(self) -> float:
        """What all the GPUs drew meanwhile, idle power included."""
        return sum(span.energy_j for span in self.boards)

    @property
    def energy_at_condition_j(self) -> float:
        """What the same would have drawn at the GPU's stated condition; NaN before a session has fixed one."""
        return sum(span.energy_at_condition_j for span in self.boards)

    @property
    def mean_power_w(self) -> float:
        """Of all the GPUs together."""
        return sum(span.mean_power_w for span in self.boards)

    @property
    def peak_power_w(self) -> float:
        """The largest power reported, a mean over the sensor's own averaging; of several GPUs, of their sum."""
        if len(self.boards) == 1:
            return self.boards[0].peak_power_w
        return math.nan if self.unknown else float(self.power_w.max())

    @property
    def times_s(self) -> Floats:
        """Seconds from the block's start at which there is a power, shape (n,); those of the first GPU."""
        return self.boards[0].times_s

    @property
    def power_w(self) -> Floats:
        """Power at `times_s`, shape (n,); of several GPUs the sum."""
        powers = [_at(self.times_s, span.times_s, span.power_w) for span in self.boards]
        total: Floats = np.sum(np.asarray(powers, np.float64), axis=0)
        return total

    @property
    def clock_mhz(self) -> Floats:
        """Observed graphics clock at `times_s`: shape (n,), or (GPUs, n) where there are several."""
        clocks = [_at(self.times_s, span.times_s, span.clocks_mhz) for span in self.boards]
        return clocks[0] if len(clocks) == 1 else np.asarray(clocks)

    @property
    def event_reasons(self) -> Mapping[str, float]:
        """For how many seconds each clock event reason was set on any of the GPUs, the longest of them."""
        longest: dict[str, float] = {}
        for span in self.boards:
            for name, seconds in span.event_reasons_s.items():
                longest[name] = max(longest.get(name, 0.0), seconds)
        return longest

    @property
    def power_source(self) -> str:
        """Which readings the power comes from."""
        return ", ".join(dict.fromkeys(span.power_source for span in self.boards))

    @property
    def unknown(self) -> str:
        """Why the energy is not known; empty if it is."""
        several = len(self.boards) > 1
        return "; ".join(f"{s.gpu}: {s.unknown}" if several else s.unknown for s in self.boards if s.unknown)

    def __repr__(self) -> str:
        if not self._ended_ns:
            return "<measure: under way>" if self._begun_ns else "<measure: not begun>"
        figures = self.unknown or f"{self.energy_j:.4g} J, {self.mean_power_w:.4g} W"
        return f"<measure: {self.gpu} ({self.source}), {self.time_s:.4g} s, {figures}>"


def _at(times_s: Floats, known_s: Floats, values: npt.NDArray[Any]) -> Floats:
    """Values known at some times, at other ones: the nearest."""
    if known_s is times_s or not len(times_s):
        return np.asarray(values[: len(times_s)], np.float64)
    if not len(known_s):
        return np.full(len(times_s), math.nan)
    middles = (known_s[1:] + known_s[:-1]) / 2
    return np.asarray(values[np.searchsorted(middles, times_s)], np.float64)
