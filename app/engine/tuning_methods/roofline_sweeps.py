"""`Sweep`: the roofline points of one board and precision with their fit; the ones on file; kernels of known work."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ...errors import InputError
from ...paths import resources
from ...sensors.gpu import LIVE
from ..formats.read import read_recording
from ..measurement import Measurement, State, speed_of
from ..models.arrays import Floats
from ..models.roofline.energy_roofline import EnergyRoofline
from ..models.roofline.fit import RooflineFit, RooflinePoints
from ..models.roofline.published_boards import published_boards
from ..space.result_table import ResultTable
from .roofline_points import KERNEL, fit_points, points_of_table, precision_of, precision_words, read_points

if TYPE_CHECKING:
    from ...sensors.gpu import GpuInfo
    from ..store.database import Store
    from ..store.record import SessionRecord

_TRAFFIC = {"GB/s": 1e9, "TB/s": 1e12}  # -> B/s
_SESSIONS = 20  # past sweeps that are offered


@dataclass(frozen=True, slots=True)
class Sweep:
    """Measured points with their fit, where there is one; or a published roofline, which has no points."""

    points: RooflinePoints
    fit: RooflineFit | None
    why_not: str  # why there is no fit; empty where there is one
    source: str  # nvml, simulated, recorded or published
    origin: str  # where the points are from, in words
    limit_w: float | None = None  # the board's power limit, where it is known
    limit_seen: bool = False  # `limit_w` is the power at which limited points stood, not what was set
    published: EnergyRoofline | None = None  # what others fitted; `origin` cites them
    opened_as: str = ""  # by the command `roofline`: session or file; empty where it shows it without either

    @property
    def key(self) -> tuple[str, str, str]:
        """What makes two sweeps the same: a later one replaces an earlier one."""
        return self.points.gpu, self.points.precision, self.origin

    @property
    def label(self) -> str:
        """Board, precision and where the figures come from: '(simulated)' wherever it is shown."""
        marked = "" if self.source in LIVE else f" ({self.source})"
        return f"{self.points.gpu} · {precision_words(self.points.precision)}{marked}"

    @property
    def model(self) -> EnergyRoofline | None:
        """The lines, where the points determine them."""
        if self.published is not None:
            return self.published
        return self.fit.model if self.fit is not None and self.fit.identifiable else None

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why there is no fit, or what limits it."""
        if self.published is not None:
            return (f"published figures: {self.origin}; nothing was measured here",)
        return (self.why_not,) if self.fit is None else self.fit.reasons

    def predict(self, kernel: PlacedKernel) -> tuple[float, float, float] | None:
        """Time (s), energy (J) and power (W) of a kernel within the power limit; None where energies are unknown."""
        if self.model is None:
            return None
        return self.model.predict(kernel.work_flop, kernel.traffic_byte, self.limit_w)

    def intensity(self) -> Floats:
        """flop/B of each point: infinite for the flop kernel, 0 for the copy, NaN for the baseline."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.points.flops / self.points.bytes_per_s


@dataclass(frozen=True, slots=True)
class PlacedKernel:
    """A kernel of known work and traffic, with what was measured of it where it was."""

    work_flop: float
    traffic_byte: float
    name: str = ""
    gpu: str = ""  # where it was measured
    time_s: float | None = None
    power_w: float | None = None
    energy_j: float | None = None

    @property
    def intensity(self) -> float:
        """flop/B."""
        return self.work_flop / self.traffic_byte


def sweep_of_points(points: RooflinePoints, source: str, origin: str, limit_w: float | None = None) -> Sweep:
    """Fit the points; points that cannot be fitted are shown all the same, with the reason."""
    try:
        return Sweep(points, fit_points(points), "", source, origin, limit_w)
    except InputError as few:
        return Sweep(points, None, f"{few.what}: {few.remedy}", source, origin, limit_w)


def sweep_of_session(
    table: ResultTable, *, gpu: str, title: str, source: str, session: int | None, board: GpuInfo | None = None
) -> Sweep:
    """The sweep of a running or past session. `board` is one that is here: its power limit is known.

    Raises InputError where the session holds no work, traffic or power.
    """
    points = points_of_table(table, gpu, precision_of(title))
    if not len(points):
        raise InputError("no configuration in it succeeded", f"session {session}", "measure first")
    origin = f"session {session}" if session else f"recording of {title}"
    limit_w = limit_of(board) if board is not None and board.name == gpu else None
    return replace(sweep_of_points(points, source, origin, limit_w), opened_as=str(session or ""))


def sweeps_of_file(path: Path) -> list[Sweep]:
    """The sweeps of a cache or CSV, one per board. Raises InputError."""
    source = "simulated" if _simulated(path) else "recorded"
    found = []
    for points in read_points(path):
        limit_w = float(np.median(points.power_w[points.limited])) if points.limited.any() else None
        sweep = sweep_of_points(points, source, path.name, limit_w)
        found.append(replace(sweep, limit_seen=True, opened_as=str(path.resolve())))
    return found


def _simulated(path: Path) -> bool:
    """Whether the file declares its figures simulated."""
    try:
        recording = read_recording(path)
    except InputError:  # a plain CSV of points is no session
        return False
    return len(recording) > 0 and recording.measurement(0).source == "simulated"


def sweeps_of_store(store: Store, session: int, board: GpuInfo | None = None) -> list[Sweep]:
    """The sweep of a stored session. Raises InputError."""
    loaded = store.load(session)
    record = loaded.record
    gpu, title, source = record.gpu, record.title, record.source
    return [sweep_of_session(loaded.table, gpu=gpu, title=title, source=source, session=session, board=board)]


def past_sweeps(store: Store) -> list[tuple[int, str]]:
    """(session, words) of the stored sessions that swept the intensity, the newest first."""
    found = []
    for record in _sessions(store)[:_SESSIONS]:
        marked = "" if record.source in LIVE else f" ({record.source})"
        swept = precision_words(precision_of(record.title))
        found.append((record.id, f"Session {record.id} · {swept} · {record.gpu}{marked}"))
    return found


def sweeps_on_file(store: Store, board: GpuInfo | None = None) -> list[Sweep]:
    """The user's own: of each board and precision the newest sweep that gives a fit. `board`: as `sweep_of_session`.

    One that cannot be read, or is not enough for a fit, is skipped.
    """
    found: dict[tuple[str, str, str], Sweep] = {}
    for record in _sessions(store):
        of = record.gpu, record.source, record.title
        if of in found:
            continue
        try:
            [sweep] = sweeps_of_store(store, record.id, board)
        except InputError:
            continue
        if sweep.model is not None:
            found[of] = sweep
    return sorted(found.values(), key=lambda sweep: sweep.label)


def recorded_sweeps(precision: str = "*") -> list[Sweep]:
    """Those of real boards that come with the program, of one precision or of all."""
    files = sorted((resources() / "recordings").glob(f"*-roofline-{precision}.json.gz"))
    return [sweep for file in files for sweep in sweeps_of_file(file)]


def published_sweeps() -> list[Sweep]:
    """The rooflines that others have fitted: lines without points, each under the name of its board."""
    nothing = np.empty(0)
    return [
        Sweep(
            RooflinePoints.of(board.name, precision, nothing, nothing, nothing),
            fit=None,
            why_not="",
            source="published",
            origin=board.citation,
            limit_w=board.tdp_w,
            published=model,
        )
        for board in published_boards()
        for precision, model in board.rooflines.items()
    ]


def _sessions(store: Store) -> list[SessionRecord]:
    """Those that swept the intensity, the newest first."""
    return [record for record in store.sessions() if record.title.startswith(KERNEL) and record.evaluated]


def limit_of(board: GpuInfo) -> float | None:
    """The power limit that is set, W."""
    limit_w = board.power_limit.current_w
    return float(limit_w) if limit_w is not None and np.isfinite(limit_w) else None


def kernel_of(measurement: Measurement, title: str, gpu: str = "") -> PlacedKernel | None:
    """The work and traffic of a measured configuration by its speeds; None where it does not hold both."""
    values = measurement.values
    time_s = values.get("time_s", float("nan"))
    speed = speed_of(values)
    traffic = next((values[name] * factor for name, factor in _TRAFFIC.items() if name in values), 0.0)
    if measurement.state is not State.OK or not (speed * time_s > 0 and traffic * time_s > 0):
        return None
    power_w, energy_j = values.get("power_w"), values.get("energy_j")
    return PlacedKernel(speed * time_s, traffic * time_s, title, gpu, time_s, power_w, energy_j)
