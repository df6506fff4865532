"""`Sweep`: the roofline points of one board and precision with their fit, from sessions, files and publications.

Kernels of known work and traffic are placed on it (`PlacedKernel`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from ....base.errors import InputError
from ....base.files import read_text
from ....base.paths import resources
from ....sensors.event_reasons import LIMITING
from ....sensors.gpu import LIVE
from ...formats.columns import Columns, parse_columns
from ...formats.kinds import gpu_benches_columns, is_gpu_benches, other_kind
from ...formats.read import is_recording, read_recording
from ...results.measurement import Measurement, State, speed_of
from ...space.result_table import STATES, ResultTable
from ..arrays import Floats, Rows
from .energy_roofline import EnergyRoofline, published_boards
from .fit import RooflineFit, RooflinePoints, fit_roofline

if TYPE_CHECKING:
    from ....sensors.gpu import GpuInfo
    from ...store.database import Store
    from ...store.record import SessionRecord

PRECISIONS: Final = ("fp32", "fp64")  # swept by default
TENSOR: Final = ("fp16_tensor", "bf16_tensor")
TENSOR_FROM: Final = (8, 0)  # least compute capability with the kernel's tensor core instruction
_WORD_BYTE: Final = {"fp32": 4, "fp64": 8, "fp16_tensor": 2, "bf16_tensor": 2}
KERNEL: Final = "roofline_"  # and the precision: the name of a sweep's kernel
_UNKNOWN: Final = (math.nan, math.nan)
_RATE, _TRAFFIC_FIGURE = "GFLOP/s", "GB/s"
_MAXIMUM_BYTES: Final = 32 << 20
_COLUMNS: Final = {  # of a CSV: each figure and its headings
    "rate": ("gflops", "gflop/s", "gflop_s"),
    "traffic": ("gbs", "gb/s", "gb_s"),
    "power": ("power_w", "power"),
    "clock": ("mhz", "clock_mhz", "observed_clock_mhz"),
}
_CACHES: Final = {  # on-chip memories whose traffic is known, where a file or a metric of a session has it
    "L2": ("l2 gb/s", "l2_gb_s", "l2_gbs"),
    "shared memory": ("shared gb/s", "shared_gb_s", "shared_gbs"),
}
_DEVICE: Final = ("gpu", "device", "device_name", "dev")


def precision_of(kernel: str) -> str:
    """The precision of a sweep's kernel by the kernel's name.

    Parameters
    ----------
    kernel : str
        Name of the kernel, such as 'roofline_fp64', or title of a sweep, such as 'roofline_fp64 at 1290 MHz'.

    Returns
    -------
    str
        'fp32' where the name holds no precision.
    """
    return kernel.removeprefix(KERNEL).partition(" ")[0] if kernel.startswith(KERNEL) else "fp32"


def _clocks(title: str) -> str:
    """' at 1290 MHz' where a sweep locked the clock; it is not the board's roofline at its own clock."""
    return title[len(KERNEL + precision_of(title)) :] if title.startswith(KERNEL) else ""


def word_byte(precision: str) -> int:
    """Bytes of one number of a precision.

    Parameters
    ----------
    precision : str
        Such as 'fp64' or 'fp16_tensor'.

    Returns
    -------
    int
        Bytes; 4 for an unknown precision.
    """
    return _WORD_BYTE.get(precision, 4)


def precision_words(precision: str) -> str:
    """A precision as it is usually written: 'FP16 tensor'.

    Parameters
    ----------
    precision : str
        Such as 'fp16_tensor'.

    Returns
    -------
    str
        For labels.
    """
    kind, _, unit = precision.partition("_")
    return f"{kind.upper()} {unit}".rstrip()


def points_of_table(table: ResultTable, gpu: str, precision: str) -> RooflinePoints:
    """The measured points of a sweep's session.

    Parameters
    ----------
    table : ResultTable
        The measurements. Configurations that failed are left out.
    gpu : str
        Name of the board.
    precision : str
        Precision of the sweep.

    Returns
    -------
    RooflinePoints
        Speed in flop/s, traffic in B/s and power in W. The power's error is half of its 95 % interval, NaN if unknown.

    Raises
    ------
    InputError
        If speed, traffic or power is not among the values.
    """
    missing = [name for name in (_RATE, _TRAFFIC_FIGURE, "power_w") if name not in table.value_names]
    if missing:
        raise InputError(
            f"there is no {' and no '.join(missing)} among the values",
            gpu,
            "a roofline needs the work, the traffic and the power of each point: wattridge roofline --gpu G",
        )
    ok = [index for index in range(len(table)) if STATES[table.states()[index]].value == "ok"]
    measured = [table.measurement(place) for place in ok]
    low, high = np.array([m.intervals.get("power_w", _UNKNOWN) for m in measured]).reshape(-1, 2).T
    return RooflinePoints.of(
        gpu,
        precision,
        flops=table.values(_RATE)[ok] * 1e9,
        bytes_per_s=table.values(_TRAFFIC_FIGURE)[ok] * 1e9,
        power_w=table.values("power_w")[ok],
        limited=np.array([bool(m.event_reasons & LIMITING) for m in measured], dtype=bool),
        clock_mhz=np.array([m.observed_clock_mhz for m in measured]),
        set_mhz=np.array([_set_mhz(m) for m in measured]),
        caches=_caches(table.value_names, lambda name: table.values(name)[ok] * 1e9),
        threads=table.values("threads_per_multiprocessor")[ok],
        power_error_w=(high - low) / 2,
    )


def _caches(headings: Iterable[str], read: Callable[[str], Floats]) -> dict[str, Floats]:
    """B/s of each on-chip memory that moved any, by the headings that are there."""
    found = {
        cache: read(name) for name in headings for cache, names in _CACHES.items() if name.strip().lower() in names
    }
    return {cache: traffic for cache, traffic in found.items() if np.isfinite(traffic).all() and traffic.any()}


def _set_mhz(measured: Measurement) -> float:
    clock = measured.configuration.get("graphics_clock_mhz")
    return float(clock) if isinstance(clock, (int, float)) else math.nan


def read_points(path: Path) -> list[RooflinePoints]:
    """Read roofline points from a file.

    Parameters
    ----------
    path : Path
        A recorded sweep, a CSV of GFLOP/s, GB/s and W, or the text that gpu-benches prints.

    Returns
    -------
    list of RooflinePoints
        One entry per board. Points of a CSV or of gpu-benches count as fp32.

    Raises
    ------
    InputError
        If the file is none of these, lacks a column, or has a point without speed, traffic or power.
    """
    if is_recording(path):
        recording = read_recording(path)
        return [points_of_table(recording.table(), recording.device, precision_of(recording.kernel))]
    columns = _columns_of(path)
    by_name: dict[str, str] = {}
    for name in columns.cells:
        by_name.setdefault(name.strip().lower(), name)
    column = {what: next((by_name[n] for n in names if n in by_name), None) for what, names in _COLUMNS.items()}
    for what in ("rate", "traffic", "power"):
        if column[what] is None:
            raise InputError(f"no column with the {what}", str(path), f"name one of {', '.join(_COLUMNS[what])}")
    devices = [by_name[name] for name in _DEVICE if name in by_name]
    groups: dict[str, list[int]] = {}
    for index in range(len(columns)):
        groups.setdefault(" ".join(_short(columns.cells[name][index]) for name in devices), []).append(index)
    has_names = any(name != "dev" for name in devices)  # 'dev' is only a number: which board of the file it is
    return [
        _of_rows(
            name if has_names else f"{path.stem.partition('.')[0]} {name}".strip(), columns, np.array(rows), column
        )
        for name, rows in groups.items()
    ]


def _columns_of(path: Path) -> Columns:
    """The table in a CSV, or in the text that gpu-benches prints. Raises InputError."""
    text = read_text(path, _MAXIMUM_BYTES)
    if is_gpu_benches(text):
        return Columns(str(path), gpu_benches_columns(text, str(path)), 1)
    kind = other_kind(path)
    if kind is not None:
        raise kind
    return parse_columns(text, str(path))


def fit_points(points: RooflinePoints) -> RooflineFit:
    """Fit a roofline as `fit_roofline` does, with an error for users.

    Parameters
    ----------
    points : RooflinePoints
        Speeds, traffic and power of the microbenchmarks, arrays of shape (n,).

    Returns
    -------
    RooflineFit
        Energies in pJ and W with their quality.

    Raises
    ------
    InputError
        If the points are too few, or none has work or traffic; it names the remedy.
    """
    try:
        return fit_roofline(points)
    except ValueError as error:
        remedy = "measure more intensities"
        if not points.at_peak().all():
            remedy = (
                "a limit holds the board below its peak clock: measure at a lower, locked clock (--clock), or raise "
                "the limit"
            )
        raise InputError(str(error), f"{points.gpu}, {points.precision}", remedy) from None


def _short(text: str) -> str:
    """A device's name or number: '3.0' is 3."""
    name = text.strip()
    return name.removesuffix(".0") if name.replace(".", "", 1).isdigit() else name


def _of_rows(name: str, columns: Columns, rows: Rows, column: dict[str, str | None]) -> RooflinePoints:
    def numbers(what: str) -> Floats:
        heading = column[what]
        return columns.numbers(heading)[rows] if heading is not None else np.full(len(rows), np.nan)

    rate, traffic, power_w = numbers("rate"), numbers("traffic"), numbers("power")
    if not (np.isfinite(rate).all() and np.isfinite(traffic).all() and (power_w > 0).all()):
        raise InputError(f"{name} has a point without speed, traffic or power", columns.where, "leave it out")
    caches = _caches(columns.cells, lambda heading: columns.numbers(heading)[rows] * 1e9)
    speeds = rate * 1e9, traffic * 1e9
    return RooflinePoints.of(name, "fp32", *speeds, power_w, caches=caches, clock_mhz=numbers("clock"))


_TRAFFIC = {"GB/s": 1e9, "TB/s": 1e12}  # -> B/s
_SESSIONS = 20  # past sweeps that are offered


@dataclass(frozen=True, slots=True)
class Sweep:
    """Measured points with their fit, where there is one; or a published roofline, which has no points."""

    points: RooflinePoints
    fit: RooflineFit | None
    why_not: str  # why there is no fit; empty if there is one
    source: str  # nvml, simulated, recorded or published
    origin: str  # where the points are from, in words
    limit_w: float | None = None  # the board's power limit, where it is known
    limit_seen: bool = False  # `limit_w` is the power at which limited points stood, not what was set
    published: EnergyRoofline | None = None  # what others fitted; `origin` cites them
    opened_as: str = ""  # by the command `roofline`: session or file; empty if it shows it without either

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
        """Predict what a kernel takes on this board within the power limit, where that is known.

        Parameters
        ----------
        kernel : PlacedKernel
            The kernel, of known work and traffic.

        Returns
        -------
        time_s, energy_j, power_w : float, or None
            Time in seconds, energy in joules and power in W; None if the energies are not known.
        """
        if self.model is None:
            return None
        return self.model.predict(kernel.work_flop, kernel.traffic_byte, self.limit_w)

    def held(self) -> Rows:
        """The points of full occupancy that a limit held, by intensity."""
        held = np.flatnonzero(self.points.held() & self.points.full())
        return held[np.argsort(self.intensity()[held])]

    def intensity(self) -> Floats:
        """flop/B of each point: infinite for the flop kernel, 0 for the copy, NaN for the baseline."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.points.flops / self.points.bytes_per_s


@dataclass(frozen=True, slots=True)
class PlacedKernel:
    """A kernel of known work and traffic, with what was measured of it if it was."""

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
    """Fit points; those that cannot be fitted are shown all the same, with the reason.

    Parameters
    ----------
    points : RooflinePoints
        The points of one board and precision.
    source : str
        'nvml', 'amd', 'simulated' or 'recorded'.
    origin : str
        Where the points are from, in words.
    limit_w : float or None, optional
        The board's power limit, W; None if unknown: it is then the median power of the limited points.

    Returns
    -------
    Sweep
        Without a fit, and with `why_not`, if the points cannot be fitted.
    """
    seen = limit_w is None and bool(points.limited.any())
    limit_w = float(np.median(points.power_w[points.limited])) if seen else limit_w
    try:
        return Sweep(points, fit_points(points), "", source, origin, limit_w, seen)
    except InputError as few:
        return Sweep(points, None, f"{few.what}: {few.remedy}", source, origin, limit_w, seen)


def sweep_of_session(
    table: ResultTable, *, gpu: str, title: str, source: str, session: int | None, board: GpuInfo | None = None
) -> Sweep:
    """The sweep of a running or past session.

    Parameters
    ----------
    table : ResultTable
        The session's measurements.
    gpu : str
        Name of the board that it measured on.
    title : str
        The session's title, which holds the precision.
    source : str
        The session's source, such as 'nvml' or 'simulated'.
    session : int or None
        Its number; None if it has none, as a recording that is replayed.
    board : GpuInfo or None, optional
        A board that is here: its power limit is known, and counts if it is the board of the session.

    Returns
    -------
    Sweep
        The points with their fit, or with the reason why there is none.

    Raises
    ------
    InputError
        If the session holds no work, traffic or power, or none of its configurations succeeded.
    """
    points = points_of_table(table, gpu, precision_of(title))
    if not len(points):
        raise InputError("no configuration in it succeeded", f"session {session}", "measure first")
    origin = f"session {session}{_clocks(title)}" if session else f"recording of {title}"
    limit_w = limit_of(board) if board is not None and board.name == gpu else None
    return replace(sweep_of_points(points, source, origin, limit_w), opened_as=str(session or ""))


def sweeps_of_file(path: Path) -> list[Sweep]:
    """The sweeps of a recording, a CSV of points, or the text that gpu-benches prints.

    Parameters
    ----------
    path : Path
        The file, as `read_points` takes it.

    Returns
    -------
    list of Sweep
        One entry per board.

    Raises
    ------
    InputError
        As `read_points`.
    """
    source = "simulated" if _simulated(path) else "recorded"
    sweeps = [sweep_of_points(points, source, path.name) for points in read_points(path)]
    return [replace(sweep, opened_as=str(path.resolve())) for sweep in sweeps]


def _simulated(path: Path) -> bool:
    """Whether the file declares its figures simulated."""
    try:
        recording = read_recording(path)
    except InputError:  # a plain CSV of points is no session
        return False
    return len(recording) > 0 and recording.measurement(0).source == "simulated"


def sweeps_of_store(store: Store, session: int, board: GpuInfo | None = None) -> list[Sweep]:
    """The sweep of a stored session.

    Parameters
    ----------
    store : Store
        The stored sessions.
    session : int
        Number of the session.
    board : GpuInfo or None, optional
        A board that is here, as in `sweep_of_session`.

    Returns
    -------
    list of Sweep
        With one entry.

    Raises
    ------
    InputError
        If there is no such session, or it holds no work, traffic or power.
    """
    loaded = store.load(session)
    record = loaded.record
    gpu, title, source = record.gpu, record.title, record.source
    return [sweep_of_session(loaded.table, gpu=gpu, title=title, source=source, session=session, board=board)]


def past_sweeps(store: Store) -> list[tuple[int, str]]:
    """The newest stored sessions that swept the intensity, 20 at most.

    Parameters
    ----------
    store : Store
        The stored sessions.

    Returns
    -------
    list of (int, str)
        Number of the session and a label with precision and board, the newest first.
    """
    results = []
    for record in _sessions(store)[:_SESSIONS]:
        marked = "" if record.source in LIVE else f" ({record.source})"
        swept = precision_words(precision_of(record.title)) + _clocks(record.title)
        results.append((record.id, f"Session {record.id} · {swept} · {record.gpu}{marked}"))
    return results


def sweeps_on_file(store: Store, board: GpuInfo | None = None) -> list[Sweep]:
    """The user's own rooflines: of each board and precision the newest sweep that gives a fit.

    A sweep that cannot be read, or is not enough for a fit, is skipped.

    Parameters
    ----------
    store : Store
        The stored sessions.
    board : GpuInfo or None, optional
        A board that is here, as in `sweep_of_session`.

    Returns
    -------
    list of Sweep
        Sorted by label.
    """
    newest: dict[tuple[str, str, str], Sweep] = {}
    for record in _sessions(store):
        of = record.gpu, record.source, record.title
        if of in newest or _clocks(record.title):
            continue
        try:
            [sweep] = sweeps_of_store(store, record.id, board)
        except InputError:
            continue
        if sweep.model is not None:
            newest[of] = sweep
    return sorted(newest.values(), key=lambda sweep: sweep.label)


def recorded_sweeps(precision: str = "*") -> list[Sweep]:
    """The recorded sweeps of real boards that come with the program.

    Parameters
    ----------
    precision : str, optional
        The precision of those wanted; '*' for all.

    Returns
    -------
    list of Sweep
        In the order of the files' names.
    """
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
    """The power limit that is set on a board.

    Parameters
    ----------
    board : GpuInfo
        The board.

    Returns
    -------
    float or None
        The limit, W; None if the board does not report one.
    """
    limit_w = board.power_limit.current_w
    return float(limit_w) if limit_w is not None and np.isfinite(limit_w) else None


def kernel_of(measurement: Measurement, title: str, gpu: str = "") -> PlacedKernel | None:
    """The kernel of a measured configuration, its work and traffic by its speeds.

    Parameters
    ----------
    measurement : Measurement
        The configuration: its time, a metric of speed and one of traffic.
    title : str
        Name of the kernel.
    gpu : str, optional
        Where it was measured.

    Returns
    -------
    PlacedKernel or None
        None if the configuration failed or its values do not hold both speeds and the time.
    """
    values = measurement.values
    time_s = values.get("time_s", float("nan"))
    speed = speed_of(values)
    traffic = next((values[name] * factor for name, factor in _TRAFFIC.items() if name in values), 0.0)
    if measurement.state is not State.OK or not (speed * time_s > 0 and traffic * time_s > 0):
        return None
    power_w, energy_j = values.get("power_w"), values.get("energy_j")
    return PlacedKernel(speed * time_s, traffic * time_s, title, gpu, time_s, power_w, energy_j)
