"""`boards`, `fit`, `roofline`, `open_session`, `analyse` and `export`: what the commands of the same names do.

Each returns a result with `rows()`, `table()` and, in a notebook, its pictures. Boards are named as by `--gpu`,
sessions and files as on the command line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, fields
from itertools import islice
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from ..base.errors import InputError
from ..base.formatting import counted, number
from ..base.processes import ProgressBar, say
from ..engine.analysis.answers import Answer, answers, models_of
from ..engine.analysis.charts import CHARTS, Analysed
from ..engine.analysis.choosers import Preferences
from ..engine.analysis.describe_analysis import describe_analysis
from ..engine.analysis.session_analysis import Analysis
from ..engine.analysis.session_analysis import analyse as analyse_table
from ..engine.control.guard import DeviceGuard
from ..engine.formats.table_columns import TableColumns
from ..engine.metering.recorded_energy import RecordedEnergy, describe_energy, recorded_energy
from ..engine.models.fit.caps import CapFit
from ..engine.models.fit.frequency import FrequencyFit
from ..engine.models.roofline.describe_sweeps import describe_sweep
from ..engine.models.roofline.points import Sweep
from ..engine.report.export_named import ExportedFiles, Wish, export_named
from ..engine.report.plots import front_chart, lettered, model_chart, roofline_chart
from ..engine.report.svg import drawn, standalone
from ..engine.results.chart import Chart
from ..engine.results.description import Description
from ..engine.session.fits import LoadFits, fits_of_board, fits_of_source
from ..engine.session.named import log_named
from ..engine.session.named import open_session as open_named
from ..engine.session.opened import Opened
from ..sensors.gpu import Gpu, GpuInfo
from ..sensors.recorded.gpu import read_any
from ..sensors.recorded.recording import Recording
from ..sensors.select import list_gpus, open_gpu
from .rooflines import measured_sweeps, sweeps_named
from .shown import Shown
from .surroundings import surroundings
from .tuned import Tuned

Source = str | int | PathLike[str] | Tuned | None
Board = Gpu | str | int
_OF_FILES = ("clock", "power", "time", "rate", "series", "transpose")


@dataclass(frozen=True, slots=True)
class BoardHere:
    """A board that answers, and the clocks that it can be set to, in MHz."""

    info: GpuInfo
    graphics_clocks_mhz: tuple[float, ...]
    memory_clocks_mhz: tuple[float, ...]


@dataclass(frozen=True, repr=False)
class Boards(Shown, Sequence[BoardHere]):
    """The boards of this machine, or the simulated ones where no driver answers."""

    here: tuple[BoardHere, ...]

    def __getitem__(self, index: Any) -> Any:
        return self.here[index]

    def __len__(self) -> int:
        return len(self.here)

    def rows(self) -> list[dict[str, Any]]:
        """Return index, UUID, name, source, driver, power limit in W and range of graphics clocks in MHz of each."""
        return [
            {
                **{name: getattr(board.info, name) for name in ("index", "uuid", "name", "source", "driver")},
                "power_limit_w": board.info.power_limit.current_w,
                "least_graphics_clock_mhz": min(board.graphics_clocks_mhz, default=None),
                "largest_graphics_clock_mhz": max(board.graphics_clocks_mhz, default=None),
                "power_source": board.info.power_source,
            }
            for board in self.here
        ]

    def __repr__(self) -> str:
        return f"<{counted(len(self), 'board')}: {', '.join(board.info.label for board in self)}>"


def boards() -> Boards:
    """List the boards that answer; none is woken, and nothing is set.

    Returns
    -------
    Boards
        A sequence of `BoardHere`. Where no driver answers it holds the simulated boards, whose source says so.

    Raises
    ------
    SensorError
        If boards are there, and none of them opens.

    Examples
    --------
    >>> import wattridge
    >>> for board in wattridge.boards():
    ...     clocks = board.graphics_clocks_mhz  # in MHz
    ...     assert board.info.name and len(clocks) != 1
    """
    here = []
    for gpu in list_gpus():
        with closing(gpu):
            here.append(BoardHere(gpu.info, tuple(gpu.graphics_clocks_mhz()), tuple(gpu.memory_clocks_mhz())))
    return Boards(tuple(here))


@dataclass(frozen=True, repr=False)
class Fitted(Shown):
    """The frequency model of a load, or its power caps; `clocks` and `caps` hold every figure of them."""

    clocks: FrequencyFit | None
    caps: CapFit | None
    fits: LoadFits = field(compare=False)

    @property
    def ridge_mhz(self) -> float | None:
        """The graphics clock above which the core voltage rises, MHz; None if it is not identifiable."""
        return None if self.clocks is None else self.clocks.ridge_mhz

    @property
    def recommended_clock_mhz(self) -> float | None:
        """The clock of the least energy among those that were measured or can be set, MHz; None if not identifiable."""
        return None if self.clocks is None else self.clocks.recommended_clock_mhz

    def rows(self) -> list[dict[str, Any]]:
        """Return the points of the frequency model: clock in MHz, power in W, and whether the fit used it."""
        if self.clocks is None:
            return []
        columns = self.clocks.clock_mhz.tolist(), self.clocks.power_w.tolist(), self.clocks.used.tolist()
        return [dict(zip(("clock_mhz", "power_w", "used"), row, strict=True)) for row in zip(*columns, strict=True)]

    def pictures(self) -> Iterator[str]:
        """Yield power over clock."""
        if self.clocks is not None and (picture := model_chart(self.clocks)):
            yield standalone(picture)

    def _described(self) -> Sequence[Description]:
        return self.fits.descriptions

    def __repr__(self) -> str:
        title = ", ".join(f"{each.title}: {each.origin}".rstrip(": ") for each in self._described())
        return f"<{title}; recommended clock {number(self.recommended_clock_mhz)} MHz>"


def fit(
    source: Source = None,
    *,
    gpu: Board | None = None,
    points: int = 10,
    uniform: bool = False,
    memory_clocks: bool = False,
    caps: bool = False,
    quiet: bool = False,
    **columns: Any,
) -> Fitted:
    """Fit the frequency model, or power caps, to a file, a stored session, or a sweep of a board's clocks.

    Parameters
    ----------
    source : str, path, int or Tuned, optional
        A CSV of clocks and powers, a log of `nvidia-smi`, a cache, T4 results, or a session by its number.
    gpu : Gpu, str, int or None, optional
        Instead of a source, the board to sweep under full load. A script has no rights to a real board's clocks: run
        ``wattridge fit --gpu 0 --allow-control``, and pass the session or file here.
    points : int, optional
        The most clocks to measure.
    uniform : bool, optional
        Whether the clocks are evenly spread; else each is the one that adds most.
    memory_clocks : bool, optional
        Whether to sweep at each memory clock.
    caps : bool, optional
        Power limits: of a source instead of the clocks, of a board too.
    quiet : bool, optional
        Show no progress.
    **columns
        Of a file: ``clock``, ``power``, ``time`` and ``rate`` name its columns, ``series`` is ``KEY=VALUE``, and
        ``transpose=True`` says that each row is an application and each column a clock.

    Returns
    -------
    Fitted
        Ridge and recommended clock in MHz; `clocks` and `caps` are the fits with every parameter and interval.

    Raises
    ------
    InputError
        If there are not exactly one of source and board, or the source holds no sweep.
    PermissionRefused
        For a real board, whose clocks a script may not set.

    Examples
    --------
    >>> import wattridge
    >>> model = wattridge.fit(gpu="simulated:a100", points=6, quiet=True)
    >>> 210 <= model.recommended_clock_mhz <= 1410
    True
    >>> sorted(model.rows()[0])
    ['clock_mhz', 'power_w', 'used']
    """
    if (source is None) == (gpu is None):
        raise InputError("one source is needed", "fit", "pass a file or session, or a board as gpu=")
    if gpu is None:
        fits = fits_of_source(_named(source) or "", caps=caps, **_only(columns, _OF_FILES, "fit"))
    else:
        bar = ProgressBar(quiet=quiet)
        with _guarded(gpu) as (board, guard):
            options: dict[str, Any] = {"uniform": uniform, "memory_clocks": memory_clocks, "caps": caps}
            fits = fits_of_board(board, guard, points=points, **options, on_progress=bar.of_step)
    return Fitted(fits.clocks, fits.caps, fits)


@dataclass(frozen=True, repr=False)
class Rooflines(Shown):
    """Energy rooflines, one for each board and precision."""

    sweeps: tuple[Sweep, ...]

    def rows(self) -> list[dict[str, Any]]:
        """Return of each its board, precision, source and figures; None where the points do not determine them.

        Energies are in pJ per flop and per byte, the constant power in W, speeds in flop/s and B/s, balances in flop/B.
        """
        names = ("eps_flop_pj", "eps_mem_pj_per_b", "pi_0_w", "peak_flops", "bandwidth", "time_balance")
        return [
            {"gpu": sweep.points.gpu, "precision": sweep.points.precision, "source": sweep.source}
            | {name: None if sweep.model is None else float(getattr(sweep.model, name)) for name in names}
            for sweep in self.sweeps
        ]

    def pictures(self) -> Iterator[str]:
        """Yield work per energy over intensity, for each roofline that was measured."""
        yield from (standalone(roofline_chart(each, None)) for each in self.sweeps if each.fit and each.model)

    def _described(self) -> Sequence[Description]:
        return [describe_sweep(sweep) for sweep in self.sweeps]

    def __repr__(self) -> str:
        return f"<{counted(len(self.sweeps), 'roofline')}: {'; '.join(sweep.label for sweep in self.sweeps)}>"


def roofline(
    source: Source = None,
    *,
    gpu: Board | None = None,
    precisions: Sequence[str] = (),
    clocks_mhz: Sequence[float] = (),
    quiet: bool = False,
) -> Rooflines:
    """Tell what a flop, a byte and a second cost on a board, measured, from a file or session, or on file.

    Parameters
    ----------
    source : str, path, int or Tuned, optional
        A recorded sweep, a CSV, or a session by its number. Without it, and without `gpu`: every roofline on file,
        the recorded and published ones of the program among them.
    gpu : Gpu, str, int or None, optional
        The board on which the microbenchmarks are measured.
    precisions : sequence of str, optional
        ``fp32``, ``fp64``, ``fp16_tensor``, ``bf16_tensor``; by default the first two.
    clocks_mhz : sequence of float, optional
        Graphics clocks to lock one by one, in MHz.
    quiet : bool, optional
        Show no progress.

    Returns
    -------
    Rooflines
        With a row for each board and precision.

    Raises
    ------
    InputError
        If both a source and a board are given, or the source holds no roofline.

    Examples
    --------
    >>> import wattridge
    >>> (row,) = wattridge.roofline("h200-roofline-fp32").rows()
    >>> row["gpu"], row["source"]
    ('NVIDIA H200', 'recorded')
    >>> row["pi_0_w"] > 0 and row["eps_flop_pj"] > 0
    True
    """
    if source is not None and gpu is not None:
        raise InputError("one source is enough", "roofline", "pass a file or session, or a board as gpu=")
    if gpu is None:
        return Rooflines(tuple(sweeps_named(_named(source))))
    with _guarded(gpu) as (board, guard):
        return Rooflines(tuple(measured_sweeps(board, guard, precisions, clocks_mhz, quiet=quiet)))


def open_session(source: Source = None, *, within: float | None = None, **columns: str | None) -> Tuned:
    """Open a session that was measured before.

    Parameters
    ----------
    source : str, path, int or Tuned, optional
        A session by its number, a Kernel Tuner cache, T4 results, a table of another tool, or a recording that comes
        along; by default the newest session.
    within : float or None, optional
        The best is one that is at most this share slower than the fastest.
    **columns
        Of another tool's table: ``parameters``, ``figures`` and ``roles``, written as on the command line.

    Returns
    -------
    Tuned
        The best configuration, the front and the whole table, as `tune` returns them.

    Raises
    ------
    InputError
        If there is no such session, or the file holds none.

    Examples
    --------
    >>> import wattridge
    >>> session = wattridge.open_session("h200-sgemm-session")
    >>> session.source
    'replayed from a recording'
    >>> session.best_values["time_s"] > 0
    True
    """
    opened = _opened(source, columns)
    return Tuned(opened.plan, opened.table, opened.record.id if opened.record else None, within)


@dataclass(frozen=True, repr=False)
class SessionAnalysis(Shown):
    """What a session shows. `analysis` holds every finding, `answers` the findings in sentences."""

    analysis: Analysis
    answers: tuple[Answer, ...]
    opened: Opened = field(compare=False)

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each rule of choosing: its name, the configuration that it chooses, and its figures."""
        rows = []
        for choice in self.analysis.choices:
            found = self.analysis.table.measurement(choice.index) if choice.index is not None else None
            figures = {} if found is None else {**found.configuration, **found.values}
            rows.append({"rule": choice.name, "label": choice.label, **figures})
        return rows

    def pictures(self) -> Iterator[str]:
        """Yield the front with the choices as letters, then the first charts of the analysis that can be drawn."""
        analysis, plan = self.analysis, self.opened.plan
        if front := front_chart(analysis, lettered(analysis.choices, analysis.best), dict(plan.units)):
            yield standalone(front)
        session = Analysed(analysis, plan)
        made = (
            entry.draw(session, *(which(session)[0][0] for which in entry.choices))
            for entry in CHARTS
            if all(which(session) for which in entry.choices)
        )
        yield from islice((standalone(drawn(chart)) for chart in made if isinstance(chart, Chart)), 3)

    def _described(self) -> Sequence[Description]:
        said = [f"{answer.sentence} ({answer.confidence})" for answer in self.answers]
        return [Description("Answers", remarks=said), *describe_analysis(self.analysis)]

    def __repr__(self) -> str:
        plan = self.opened.plan
        first = self.answers[0].sentence if self.answers else "nothing can be said yet"
        return f"<{self.opened.name}, {plan.title}: {plan.gpu} ({plan.source}). {first}>"


@dataclass(frozen=True, repr=False)
class LogAnalysis(Shown):
    """The energy of a log of power over time, board by board, by every channel that tells it."""

    boards: tuple[tuple[Recording, RecordedEnergy], ...]
    tool: str  # that wrote the log
    notes: tuple[str, ...] = ()

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each board and channel: energy in J, power in W, gaps and steps in s."""
        names = ("channel", "method", "energy_j", "mean_power_w", "peak_power_w", "gap_s")
        return [
            {"board": number, "gpu": recording.info.name, **{name: getattr(source, name) for name in names}}
            | {"step_s": source.sampling.step_s, "refresh_s": source.sampling.refresh_s}
            for number, (recording, energy) in enumerate(self.boards)
            for source in energy.sources
        ]

    def _described(self) -> Sequence[Description]:
        return [describe_energy(energy, recording, self.notes) for recording, energy in self.boards]

    def __repr__(self) -> str:
        total_j = sum(energy.sources[0].energy_j for _, energy in self.boards if energy.sources)
        return f"<log of {self.tool}: {counted(len(self.boards), 'board')}, {number(total_j)} J>"


def analyse(
    source: Source = None,
    *,
    slower: float = 0.05,
    power_w: float | None = None,
    weight: float = 0.5,
    span_s: tuple[float, float] | None = None,
    interval_s: float | None = None,
    **columns: str | None,
) -> SessionAnalysis | LogAnalysis:
    """Tell what a session or a recording shows, or what energy a log of power over time holds.

    Parameters
    ----------
    source : str, path, int or Tuned, optional
        As for `open_session`, or a log: of ``nvidia-smi``, another tool, or a recording of `wattridge monitor`.
    slower : float, optional
        The share for the rule ``at_most_slower``.
    power_w : float or None, optional
        The bound in W of the rule ``at_most_power``.
    weight : float, optional
        The weight of time, 0 to 1, of the rule ``weighted``.
    span_s : tuple of float, or None, optional
        Of a log, beginning and end in s from its beginning.
    interval_s : float or None, optional
        Of a log that does not hold it, the time between two readings in s.
    **columns
        As for `open_session`.

    Returns
    -------
    SessionAnalysis or LogAnalysis
        Of a session a row for each rule of choosing, of a log one for each channel.

    Raises
    ------
    InputError
        As `open_session`, and for a span that is none.

    Examples
    --------
    >>> import wattridge
    >>> found = wattridge.analyse("h200-sgemm-session")
    >>> [row["rule"] for row in found.rows()][:2]
    ['fastest', 'least_energy']
    >>> fastest, frugal = found.rows()[:2]
    >>> frugal["energy_j"] <= fastest["energy_j"]
    True
    """
    if span_s is not None and not 0 <= span_s[0] < span_s[1]:
        raise InputError(f"{span_s} is no span of time", "span_s", "beginning and end in s from the log's beginning")
    log = log_named(_named(source))
    if log is not None:
        read = read_any(log, interval_s)
        energies = tuple((board, recorded_energy(board, span_s)) for board in read.boards)
        return LogAnalysis(energies, read.tool, tuple(read.notes))
    opened = _opened(source, columns)
    analysis = analyse_table(opened.table, opened.objective, preferences=Preferences(slower, power_w, weight))
    found = answers(analysis, opened.plan, models_of(opened.table, opened.plan))
    return SessionAnalysis(analysis, tuple(found), opened)


@dataclass(frozen=True, repr=False)
class Exported(Shown, ExportedFiles):
    """The files that were written; the last is the receipt: what was chosen, of what, by which rule."""

    def rows(self) -> list[dict[str, Any]]:
        """Return path and size in bytes of each file."""
        return [{"path": str(path), "byte": path.stat().st_size} for path in self.files]

    def __repr__(self) -> str:
        return f"<{counted(len(self.files), 'file')} in {self.files[-1].parent}>"


def export(
    source: Source = None,
    folder: str | PathLike[str] | None = None,
    *,
    kinds: Sequence[str] | None = None,
    choose: str | None = None,
    configuration: str | None = None,
    replace: bool = False,
    gpu: str | None = None,
    **columns: str | None,
) -> Exported:
    """Write a session, a recording or a specification in other formats.

    Parameters
    ----------
    source : str, path, int or Tuned, optional
        As for `open_session`, or a specification.
    folder : str, path or None, optional
        Where to write; by default a new folder in the data folder.
    kinds : sequence of str or None, optional
        Of ``json``, ``header``, ``source``, ``code``, ``script``, ``csv``, ``cache``, ``t4`` and ``t1``; by default all
        that there can be.
    choose : str or None, optional
        The rule that chooses the configuration, as ``knee``; by default the best by the objective.
    configuration : str or None, optional
        The configuration instead, as ``"block_size_x=32,block_size_y=4"``.
    replace : bool, optional
        Whether an export that lies in `folder` is replaced; else it is in the way.
    gpu : str or None, optional
        The board whose limits go into a specification's T1.
    **columns
        As for `open_session`.

    Returns
    -------
    Exported
        The paths, remarks on them, and the receipt.

    Raises
    ------
    InputError
        As `open_session`, and for an unknown kind, rule or configuration.
    WattridgeError
        If nothing worked in that session, or an export is in the way.

    Examples
    --------
    >>> import tempfile, wattridge
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = wattridge.export("h200-sgemm-session", folder, kinds=["json", "csv"], choose="least_energy").files
    ...     [path.suffix for path in files]
    ['.json', '.csv', '.json']
    """
    if choose is not None and configuration is not None:
        raise InputError("one choice is enough", "export", "leave out choose or configuration")
    wish = Wish(
        kinds=kinds,
        folder=None if folder is None else Path(folder),
        existing="new" if folder is None else "replace" if replace else "refuse",
        configuration=configuration,
        rule=choose,
        columns=_table_columns(columns),
        gpu=gpu,
    )
    written = export_named(_named(source), wish)
    return Exported(**{each.name: getattr(written, each.name) for each in fields(written)})


# --- inside -----------------------------------------------------------------------------------------------------------


def _named(source: Source) -> str | None:
    """A source as the command line names it."""
    if isinstance(source, Tuned):
        source = source.session or source.plan.origin.get("file")
    return None if source is None else str(source) if isinstance(source, int) else fspath(source)


def _only(given: dict[str, Any], known: Sequence[str], where: str) -> dict[str, Any]:
    """Options, if all of them are known. Raises InputError."""
    for name in given.keys() - set(known):
        raise InputError(f"'{name}' is not known", where, f"one of {', '.join(known)}")
    return given


def _table_columns(given: dict[str, str | None]) -> TableColumns | None:
    said = _only(given, ("parameters", "figures", "roles"), "columns")
    return TableColumns.parse(said.get("parameters"), said.get("figures"), said.get("roles"))


def _opened(source: Source, columns: dict[str, str | None]) -> Opened:
    read = _table_columns(columns)
    return open_named(_named(source), read, lambda found: say("; ".join(" ".join(map(str, row)) for row in found.rows)))


@contextmanager
def _guarded(gpu: Board) -> Iterator[tuple[Gpu, DeviceGuard]]:
    """A board with the guard that scripts have; a simulated one as fast as it can be computed."""
    if isinstance(gpu, str | int):
        simulated = str(gpu).lower().startswith("simulated:")
        with closing(open_gpu(str(gpu), speed=float("inf") if simulated else 1.0)) as board, _guarded(board) as both:
            yield both
        return
    with closing(surroundings().guard(gpu)) as guard:
        yield gpu, guard
