"""`LoadFits`: the frequency model of a load and its power caps, of a file, a stored session or a sweep of a board."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...base.errors import InputError
from ...base.records import as_json
from ...sensors.gpu import Gpu
from ..control.guard import DeviceGuard
from ..models.clock_fits import caps_of_session, caps_of_sweep, fit_of_session, fit_of_sweep
from ..models.clock_log import Plateau
from ..models.describe_fits import describe_caps, describe_fit, describe_load
from ..models.fit.caps import AllSeries, CapFit, CapsAgainstClocks, compare, most_telling
from ..models.fit.frequency import FrequencyFit, fit_memory_clocks
from ..models.series import read_caps, read_series
from ..results.description import Description
from ..store.database import Store
from .named import recording_path, session_number

Progress = Callable[[int, int, str], None]  # (done, total, what)


@dataclass(frozen=True, slots=True)
class LoadFits:
    """The fits of one load; at least one of `clocks` and `caps` is there."""

    clocks: FrequencyFit | None
    caps: CapFit | None = None
    comparison: CapsAgainstClocks | None = None  # of the two, where both were swept
    origin: str = ""  # of a sweep in words; a file is named by its series
    series: Sequence[CapFit] = ()  # all of a file's, of which `caps` is the most telling
    plateaus: Sequence[Plateau] = ()  # of a log of a sweep
    notes: Sequence[str] = ()

    @property
    def document(self) -> Any:
        """What `wattridge fit --json` prints."""
        if self.comparison is not None:
            return {"clocks": self.clocks, "caps": self.caps, "comparison": self.comparison}
        if self.clocks is None:
            return self.caps
        return as_json(self.clocks) | ({"plateaus": self.plateaus} if self.plateaus else {})

    @property
    def descriptions(self) -> list[Description]:
        """Figure by figure."""
        if self.comparison is not None and self.clocks is not None and self.caps is not None:
            return describe_load(self.clocks, self.caps, self.comparison, self.origin)
        if self.clocks is not None:
            return [describe_fit(self.clocks, self.origin, plateaus=self.plateaus)]
        return [] if self.caps is None else [describe_caps(self.caps, self.series)]


def fits_of_source(
    source: str,
    *,
    caps: bool = False,
    transpose: bool = False,
    clock: str | None = None,
    power: str | None = None,
    time: str | None = None,
    rate: str | None = None,
    series: str | None = None,
) -> LoadFits:
    """Fit what a file or a stored session (by its number) holds: the clocks, else power limits; with `caps` these.

    `clock`, `power`, `time` and `rate` name columns, `series` is KEY=VALUE. Raises InputError if it holds neither.
    """
    columns = {"power": power, "time": time, "rate": rate, "series": series}
    found: list[CapFit] = []
    fitted: FrequencyFit | None = None
    plateaus: Sequence[Plateau] = ()
    notes: Sequence[str] = ()
    try:
        number = session_number(source)
        if number is not None:
            with Store() as store:
                session = store.load(number)
            notes = session.space.notes[-1:] if session.left_out else ()
            found = caps_of_session(session)
            fitted, _ = fit_of_session(session)
        else:
            path = recording_path(source)
            found = [] if transpose else read_caps(path, **columns)
            points = read_series(path, clock=clock, transpose=transpose, **columns)
            fitted = fit_memory_clocks(points)
            plateaus = next(each.plateaus for each in points if each.series == fitted.series)
    except InputError:
        if not found:
            raise
    if found and (fitted is None or caps):
        best = most_telling(found)
        all_series = AllSeries.of(found) if len(found) > 1 else None
        return LoadFits(None, replace(best, all_series=all_series), series=found, notes=notes)
    if caps:
        raise InputError("no series has three power limits", f"{source}, --caps", "leave --caps out")
    return LoadFits(fitted, plateaus=plateaus, notes=notes)


def fits_of_board(
    gpu: Gpu,
    guard: DeviceGuard,
    *,
    points: int = 10,
    uniform: bool = False,
    memory_clocks: bool = False,
    caps: bool = False,
    on_progress: Progress = lambda _done, _total, _what: None,
) -> LoadFits:
    """Sweep a board's clocks under full load, with `caps` its power limits too, and fit. Raises as `fit_of_sweep`."""
    fitted, origin = fit_of_sweep(
        gpu,
        points=points,
        steered=not uniform,
        memory_clocks=memory_clocks,
        on_progress=lambda done, total: on_progress(done, total, "clocks"),
        guard=guard,
    )
    if not caps:
        return LoadFits(fitted, origin=origin)
    limits = caps_of_sweep(
        gpu, points=points, on_progress=lambda done, total: on_progress(done, total, "power limits"), guard=guard
    )
    return LoadFits(fitted, limits, compare(fitted, limits), origin)
