"""`tune_kernel` and `run_kernel` with the signature and the meaning of Kernel Tuner 1.5's.

What cannot be honoured is refused in one line and never ignored: `PARAMETERS` says of each parameter what happens.
`tune_kernel` runs a session; `run_kernel` launches a kernel once, in a process of its own.
"""

from __future__ import annotations

import inspect
import logging
import math
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import numpy as np

from .. import __version__
from ..base.errors import InputError, WattridgeError
from ..base.processes import say
from ..base.text import one_line, shortened
from ..engine.analysis.failures import most_frequent
from ..engine.children.scratch import scratch_folder
from ..engine.formats.entries import COST_MS
from ..engine.formats.growing_cache import GrowingCache
from ..engine.formats.names import DEVICE_SETTINGS
from ..engine.formats.own import About
from ..engine.results.measurement import Configuration, State
from ..engine.results.objectives import Goal, Objective
from ..engine.results.state import Purpose
from ..engine.runner.boards import ReadyPlan
from ..engine.runner.kernels.loaded import LoadedKernels
from ..engine.runner.kernels.process import KernelFailed
from ..engine.runner.languages import open_device, require_device
from ..engine.session.events import Event, FiguresRestated, MeasurementsAdded, SessionStarted
from ..engine.session.live_session import SessionResult
from ..engine.session.summary import front_indices
from ..engine.space.result_table import ResultTable
from ..engine.specification.model import DEVICE_COMPILERS
from ..engine.specification.plan import SessionPlan
from ..engine.workloads.source_kernel import KernelRefused
from ..sensors.gpu import Gpu
from ..sensors.select import HOST, OPENCL, open_gpu
from .described_kernel import DescribedKernel, ScriptedKernel, describe_kernel
from .kernel_planning import NOT_ISOLATED, Wanted, plan_from_cache, plan_on_board, require_language
from .observers import BenchmarkObserver, MeterObserver, OutputObserver, RegisterObserver
from .restrictions import read_restrictions
from .script_side import ScriptOfKernel, read_verify
from .sources import KernelSource, read_source
from .strategies import TABLE, read_strategy
from .surroundings import run_session_of_script, surroundings
from .tuned import Figures, Result, configuration_text, read_metrics, read_objective

_MOST: Final = 200  # characters of the reason
_ARCHITECTURE: Final = re.compile(r"gpu.arch|sm_\d|compute_\d", re.IGNORECASE)
_REMEDIES: Final = {
    State.COMPILE: "check the source and compiler_options",
    State.CORRECTNESS: "check answer, atol and verify",
    State.TIMEOUT: "make the problem smaller",
    State.CONSTRAINTS: "check tune_params, problem_size and the grid's divisors",
}
_NO_SUCH_BOARD: Final = "leave -arch out of compiler_options, or name an architecture that this compiler knows"


def why_none_worked(table: ResultTable) -> str:
    """Why no configuration worked, by the failure that most of them share.

    Parameters
    ----------
    table : ResultTable
        The measurements.

    Returns
    -------
    str
        One line with the remedy; empty if one worked, nothing was measured, or no failure has a message.
    """
    failed = sum(table.failures().values())
    if not failed or failed < len(table) or (commonest := most_frequent(table)) is None:
        return ""
    state, message, count = commonest
    remedy = _REMEDIES.get(State(state), "look at 'error' in the results")
    if state == State.COMPILE and _ARCHITECTURE.search(message):
        remedy = _NO_SUCH_BOARD
    of_all = "all" if count == failed else str(count)
    return f"none of {failed} configurations worked; {of_all} failed by {state}: {shortened(message, _MOST)} ({remedy})"


PARAMETERS: Final[Mapping[str, str]] = TABLE["parameters"]  # what becomes of each parameter of `tune_kernel`
_UNSUPPORTED: Final = {  # what must stay at its default, and what to do
    "platform": "leave it out: it is for OpenCL",
    "tegra_gr_clock": "leave it out: clocks of a Jetson are not set here",
    "texmem_args": "read through __ldg or pass a pointer: CUDA 12 has no texture references",
}
_PARALLEL: Final = "parallel: kernels are compiled in parallel, and this board measures them one at a time"
_LOG: Final = logging.getLogger("wattridge")
_TIMEOUT_S: Final = 60.0  # of one launch: a script's kernel may be a long one


def tune_kernel(  # noqa: D417  (the others are in PARAMETERS)
    kernel_name: str,
    kernel_source: Any,
    problem_size: Any,
    arguments: Sequence[Any],
    tune_params: Mapping[str, Sequence[Any]],
    grid_div_x: Any = None,
    grid_div_y: Any = None,
    grid_div_z: Any = None,
    restrictions: Any = None,
    answer: Sequence[Any] | None = None,
    atol: float = 1e-6,
    verify: Callable[..., object] | None = None,
    verbose: bool = False,
    lang: str | None = None,
    device: int = 0,
    platform: int = 0,
    smem_args: Mapping[str, Any] | None = None,
    cmem_args: Mapping[str, Any] | None = None,
    texmem_args: Mapping[str, Any] | None = None,
    compiler: str | None = None,
    compiler_options: Sequence[str] | None = None,
    defines: Mapping[str, Any] | None = None,
    log: int | None = None,
    iterations: int = 7,
    block_size_names: Sequence[str] | None = None,
    quiet: bool = False,
    strategy: str | None = None,
    strategy_options: Mapping[str, Any] | None = None,
    cache: str | Path | None = None,
    metrics: Mapping[str, Any] | None = None,
    simulation_mode: bool | None = None,
    parallel: bool | int | None = None,
    observers: Sequence[Any] | None = None,
    objective: str | Sequence[str] | None = None,
    objective_higher_is_better: bool | Sequence[bool] | None = None,
    objectives: Mapping[str, bool] | None = None,
    seed: int | None = None,
    *,
    gpu: Gpu | str | None = None,
    profile: str = "",
) -> tuple[list[Result], Result]:
    """Tune a kernel in CUDA or OpenCL, or a function in C or Fortran.

    The parameters are Kernel Tuner's, and `PARAMETERS` says what happens to each; two are added. The session is in the
    store, and energy is measured with the time: results have `energy_j` and `power_w` too.

    Parameters
    ----------
    gpu : Gpu or str or None, optional
        In place of `device`: what `--gpu` names, or an open board.
    profile : str, optional
        How a simulated board costs the kernel.

    Returns
    -------
    results : list of dict
        One for each configuration, with times in ms.
    environment : dict
        Of the session.

    Raises
    ------
    InputError
        For what cannot be used or honoured.
    WattridgeError
        If the session fails.
    KeyboardInterrupt
        If the user stops it. What the script's own functions raise is passed on.
    """
    began = time.perf_counter()
    source = read_source(kernel_source, lang, compiler)
    if not simulation_mode:
        require_language(source.language)
    _refuse(texmem_args=texmem_args, platform=0 if source.language == "OpenCL" else platform)
    _refuse(tegra_gr_clock=tune_params.get("tegra_gr_clock"))
    _begin_log(kernel_name, log)
    watched = _Observers(
        observers, {"device": device, "platform": platform, "compiler": compiler, "lang": _lang(source, lang)}
    )
    tune_params, same = _distinct(tune_params)
    figures = Figures(read_metrics(metrics), watched.observed, scales=watched.scales)
    wanted = Wanted(
        restrictions=read_restrictions(restrictions, tuple(tune_params)),
        objective=read_objective(objective, objective_higher_is_better, objectives, tuple(figures.metrics)),
        search=read_strategy(strategy, strategy_options, len(tune_params), objective or tuple(objectives or ("time",))),
        start=_start(strategy_options, tune_params),
        figures=figures,
        seed=0 if seed is None else int(seed),
        energy=surroundings().energy,
        meters=surroundings().meters.with_more(watched.meters),
        counters=watched.counters,
    )
    if verify is not None and answer is None:
        raise InputError("verify has no answer to compare with", "answer", "give answer too, None for inputs")
    if not (isinstance(iterations, int | np.integer) and iterations >= 1):
        raise InputError(f"iterations is {iterations!r}", "iterations", "give a whole number from 1")
    check = read_verify(verify, float(atol))
    if "num_regs" in watched.observed and source.language != "CUDA" and not simulation_mode:
        what = f"the registers of a kernel in {source.language} are not known"
        raise InputError(what, "RegisterObserver", "leave the observer out")
    file = GrowingCache(Path(cache)) if cache else None

    def side(kernel: DescribedKernel, board: Gpu) -> ScriptOfKernel:
        seen = SimpleNamespace(name=board.info.name, num_regs=0, env={"uuid": board.info.uuid}, max_threads=1024)
        for item in watched.own:
            item.register_device(seen)
        return ScriptOfKernel(
            kernel.parts,
            kernel.names,
            answer,
            check,
            watched.own,
            int(iterations),
            _TIMEOUT_S,
            seen,
            figures.more,
            window_s=watched.window_s,
        )

    with ExitStack() as stack:
        usual = usual_board(source, device, platform)
        board = None if simulation_mode else stack.enter_context(board_of(gpu, usual))
        runs = board is not None and board.info.real
        kernel = describe_kernel(
            stack.enter_context(_scratch()) if runs else None,
            kernel_name,
            source,
            problem_size,
            arguments,
            tune_params,
            grid_div=(grid_div_x, grid_div_y, grid_div_z),
            answer=answer,
            atol=atol,
            compare=check is None and not any(isinstance(value, OutputObserver) for value in watched.own),
            smem_args=smem_args,
            cmem_args=cmem_args,
            compiler_options=compiler_options,
            block_size_names=block_size_names,
            defines=defines,
            profile=profile or surroundings().profile,
            timeout_s=_TIMEOUT_S,
        )
        if board is None:
            if file is None:
                raise InputError("simulation_mode has no cache", "cache", "name the file to answer from")
            plan = plan_from_cache(kernel, wanted, file)
        else:
            guard = stack.enter_context(closing(surroundings().guard(board)))
            plan = plan_on_board(kernel, wanted, board, guard, side, file)
        notes = (*same, *watched.notes, *([_PARALLEL] if parallel else []))
        plan = replace(plan, space=replace(plan.space, notes=(*plan.space.notes, *notes)))
        result = _run(plan, figures, None if simulation_mode else file, quiet=quiet, verbose=verbose)
    results, environment = _results(result, figures, wanted.objective)
    _add_totals(results, environment, began)
    return results, environment


def run_kernel(  # noqa: D417  (as of tune_kernel)
    kernel_name: str,
    kernel_source: Any,
    problem_size: Any,
    arguments: Sequence[Any],
    params: Mapping[str, Any],
    grid_div_x: Any = None,
    grid_div_y: Any = None,
    grid_div_z: Any = None,
    lang: str | None = None,
    device: int = 0,
    platform: int = 0,
    smem_args: Mapping[str, Any] | None = None,
    cmem_args: Mapping[str, Any] | None = None,
    texmem_args: Mapping[str, Any] | None = None,
    compiler: str | None = None,
    compiler_options: Sequence[str] | None = None,
    defines: Mapping[str, Any] | None = None,
    block_size_names: Sequence[str] | None = None,
    quiet: bool = False,
    log: int | None = None,
    *,
    gpu: Gpu | str | None = None,
) -> list[Any]:
    """Launch a kernel, or call a function, once.

    Parameters
    ----------
    params : mapping of str to value
        The configuration.
    gpu : Gpu or str or None, optional
        In place of `device`. All others are those of `tune_kernel`.

    Returns
    -------
    list
        The arguments as they are afterwards, in their order.

    Raises
    ------
    InputError
        For what cannot be used.
    WattridgeError
        If the kernel fails.
    """

    source = read_source(kernel_source, lang, compiler)
    require_language(source.language)
    _refuse(texmem_args=texmem_args, platform=0 if source.language == "OpenCL" else platform)
    _begin_log(kernel_name, log)
    with ExitStack() as stack:
        folder = stack.enter_context(_scratch())
        kernel = describe_kernel(
            folder,
            kernel_name,
            source,
            problem_size,
            arguments,
            {name: [value] for name, value in params.items()},
            grid_div=(grid_div_x, grid_div_y, grid_div_z),
            smem_args=smem_args,
            cmem_args=cmem_args,
            compiler_options=compiler_options,
            block_size_names=block_size_names,
            defines=defines,
            timeout_s=_TIMEOUT_S,
        )
        board = stack.enter_context(board_of(gpu, usual_board(source, device, platform)))
        return _run_once(kernel, board, folder, dict(params), quiet=quiet)


# --- inside -----------------------------------------------------------------------------------------------------------


class _Observers:
    """What a script observes: figures that are measured in any case, by name, and observers of its own."""

    def __init__(self, given: Sequence[Any] | None, known: Mapping[str, Any]) -> None:
        """`known` is what functions that make observers are called with."""
        self.own: list[BenchmarkObserver] = []
        self.notes: list[str] = []
        self.window_s = 0.0
        self.meters: tuple[str, ...] = ()
        self.scales: dict[str, float] = {}
        self.counters: tuple[str, ...] = ()
        observed: list[str] = []
        for index, value in enumerate(given or ()):
            observer = _made(value, index, known)
            if isinstance(observer, RegisterObserver):
                observed.append("num_regs")
            elif isinstance(observer, MeterObserver):
                observed += observer.observables
                self.meters += observer.selectors
                self.scales |= observer.scales
                self.counters += observer.counters
                _require_own_name(observer)
                self.window_s = max(self.window_s, observer.window_s)
                if observer.device not in (None, known["device"]):
                    name = type(observer).__name__
                    self.notes.append(f"{name}(device={observer.device!r}): the board of the kernel is measured")
            elif type(observer).__module__.partition(".")[0] == "kernel_tuner":
                remedy = "import it from wattridge.observers, or run the script by: wattridge kernel-tuner"
                raise InputError(f"{type(observer).__name__} is Kernel Tuner's own", f"observers[{index}]", remedy)
            else:
                self.own.append(observer)
        self.observed = tuple(dict.fromkeys(observed))


def _require_own_name(observer: MeterObserver) -> None:
    """Raises InputError for a meter of the same kind as one that is there: figures are named by kinds."""
    for selector, there in product(observer.selectors, surroundings().meters.selectors):
        if selector != there and selector.partition(":")[0] == there.partition(":")[0]:
            raise InputError(f"it reads {selector}, and --meter {there} too", type(observer).__name__, "leave one out")


def _made(given: Any, index: int, known: Mapping[str, Any]) -> Any:
    """An observer as it is; what a class or a function makes of what is known, or of nothing if it takes nothing."""
    made = given
    while callable(made) and not (hasattr(made, "get_results") and not isinstance(made, type)):
        try:
            takes_it = bool(inspect.signature(made).parameters)
        except (TypeError, ValueError):
            takes_it = True
        made = made(dict(known)) if takes_it else made()
    if not hasattr(made, "get_results"):
        what = f"it is of type {type(given).__name__}"
        raise InputError(what, f"observers[{index}]", "pass a BenchmarkObserver, or a function that returns one")
    return made


def _distinct(tune_params: Mapping[str, Sequence[Any]]) -> tuple[dict[str, Sequence[Any]], list[str]]:
    """Parameters without values that equal another of another type, as True does 1, and what was left out."""
    distinct, notes = dict(tune_params), []
    for name, values in tune_params.items():
        kept: dict[Any, Any] = {}
        if not isinstance(values, str) and not callable(values):
            again = [value for value in values if type(kept.setdefault(value, value)) is not type(value)]
            distinct[name] = [value for value in values if not any(value is other for other in again)]
            notes += [f"{name}: {value!r} is the same as {kept[value]!r} here" for value in again]
    return distinct, notes


def _start(options: Mapping[str, Any] | None, tune_params: Mapping[str, Any]) -> Configuration:
    """The configuration to begin with, by our names; empty without one. Raises InputError."""
    given = (options or {}).get("x0")
    if given is None:
        return {}
    if not isinstance(given, Sequence) or len(given) != len(tune_params):
        raise InputError(f"x0 is {given!r}", "strategy_options", f"give a value for each of {', '.join(tune_params)}")
    return {DEVICE_SETTINGS.get(name, name): value for name, value in zip(tune_params, given, strict=True)}


def _lang(source: KernelSource, lang: str | None) -> str:
    """The language as Kernel Tuner calls it."""
    return str(lang).upper() if lang else "C" if source.of_the_host else source.language.upper()


def _begin_log(kernel_name: str, level: int | None) -> None:
    """What is logged goes to a file with the kernel's name and the time, unless the script has set up its own log."""
    if level:
        stem = re.sub(r"[^A-Za-z0-9._-]+", "-", str(kernel_name))
        logging.basicConfig(filename=f"{stem}{datetime.now():%Y%m%d-%H-%M-%S}.log", level=level)


def _refuse(**given: Any) -> None:
    for name, value in given.items():
        if value not in (None, 0, False):
            raise InputError(f"{name}={one_line(repr(value))[:80]} is not supported", name, _UNSUPPORTED[name])


@contextmanager
def _scratch() -> Iterator[Path]:
    folder = scratch_folder()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def usual_board(source: KernelSource, device: Any, platform: Any) -> str:
    """The device that a script means, as `--gpu` names it.

    Parameters
    ----------
    source : KernelSource
        The kernel's source: its language decides the kind of device.
    device : int
        The script's `device`.
    platform : int
        The script's `platform`, of OpenCL.

    Returns
    -------
    str
        'opencl:PLATFORM.DEVICE' for OpenCL, 'host' for a function of the host unless its compiler is one for devices,
        else the number of the device.
    """
    if source.language == "OpenCL":
        return f"{OPENCL}:{platform}.{device}"
    if source.of_the_host and source.compiler not in DEVICE_COMPILERS:
        return HOST
    return str(device)


@contextmanager
def board_of(gpu: Gpu | str | None, device: Any) -> Iterator[Gpu]:
    """An open board as it is; else one that is named, as fast as it can be computed where it is simulated.

    Parameters
    ----------
    gpu : Gpu, str or None
        An open board, or one by name; None for `device`. The board that the surroundings name, if they name one, wins
        over both names.
    device : int or str
        The device that the script means.

    Yields
    ------
    Gpu
        The board. One that was opened here is closed at the end.
    """
    if gpu is not None and not isinstance(gpu, str | int):
        yield gpu
        return
    around = surroundings()
    named = around.gpu or (str(device) if gpu is None else str(gpu))
    with closing(open_gpu(named, seed=around.sim_seed, speed=float("inf"))) as opened:
        yield opened


def _run(plan: ReadyPlan, figures: Figures, cache: GrowingCache | None, *, quiet: bool, verbose: bool) -> SessionResult:
    """Run the session, extending its cache, and print failures if requested."""
    if not quiet:
        for note in plan.space.notes:
            say(note)
    table: ResultTable | None = None
    seen = 0
    timed: list[int] = []  # places in the table of what was only timed until now
    about = _about(plan)
    taken_over = {item.row for item in plan.known}

    def on_event(event: Event) -> None:
        nonlocal table, seen, timed
        if isinstance(event, SessionStarted | FiguresRestated):
            table = event.table
        if isinstance(event, FiguresRestated):
            seen, timed = 0, []
        if not isinstance(event, MeasurementsAdded | FiguresRestated) or table is None:
            return
        places, timed = [*timed, *range(seen, len(table))], []
        for place in places:
            measurement = table.measurement(place)
            if not measurement.final:
                timed.append(place)
                continue
            if verbose and measurement.error and isinstance(event, MeasurementsAdded):
                say(f"{configuration_text(measurement.configuration)}: {measurement.state}: {measurement.error}")
            _LOG.info(
                "%s: %s %s", configuration_text(measurement.configuration), measurement.state, dict(measurement.values)
            )
            if cache is not None and measurement.row not in taken_over:
                cache.add(measurement, about, figures.more.get(measurement.row, {}) | figures.spent(measurement))
        seen = len(table)
        if cache is not None:
            cache.write(plan.space, about)

    try:
        result = run_session_of_script(plan, on_event, quiet)
    finally:
        if cache is not None:
            cache.write(plan.space, about, at_last=True)
    if not quiet and (words := why_none_worked(result.table)):
        say(words)
    return result


def _about(plan: SessionPlan) -> About:
    """Of the cache: Kernel Tuner knows the time as 'time'."""
    goal = plan.objective.goal
    their = Goal("time", maximise=False) if goal.name == "time_s" else goal
    origin = plan.origin
    size, known_as = origin["problem_size"], origin.get("known_as")
    return About(plan.gpu, plan.title, Objective(their), plan.source, size, plan.units, known_as)


class Results(list[Result]):
    """Results as a list, and the session that they are of."""

    def __init__(self, results: Sequence[Result], rows: Sequence[int], session: SessionResult) -> None:
        super().__init__(results)
        self.plan, self.table = session.plan, session.table
        self.by_row = dict(zip(rows, results, strict=True))


def _results(result: SessionResult, figures: Figures, objective: Objective) -> tuple[Results, Result]:
    plan, table = result.plan, result.table
    goal = plan.objective.goal
    name = "time" if goal.name == "time_s" else goal.name
    measured = [m for index in range(len(table)) if (m := table.measurement(index)).final]
    if plan.strategy == "brute_force":  # they come as they are compiled
        measured.sort(key=lambda measurement: measurement.row)
    results = [figures.result(measurement) for measurement in measured]
    rows = [measurement.row for measurement in measured]
    _share_out(result, results, rows)
    worked = [item for item in results if "__error__" not in item and item.get(name) is not None]
    environment: Result = {
        "device_name": plan.gpu,
        "driver": plan.driver,
        "source": plan.source,
        "wattridge": __version__,
        "session": result.session,
        "seconds": result.progress.elapsed_s,
        "isolated": plan.origin.get("isolated", "True") == "True",
        "notes": list(plan.space.notes),
    }
    if plan.purpose is Purpose.REPLAY:
        environment["simulation"] = True
        for item in results:  # of what other programs wrote nothing but that is there
            item.pop("time_s", None)
    if not environment["isolated"]:
        environment["warning"] = NOT_ISOLATED
    if len(objective.front) > 1:
        front = {table.measurement(front_index).row for front_index in front_indices(table, objective.front)}
        best = [value for value, row in zip(results, rows, strict=True) if row in front]
        for optimal in best:
            optimal["optimal"] = True
        environment["best_config"] = best
    elif worked:
        environment["best_config"] = (max if goal.maximise else min)(worked, key=lambda result: result[name])
    return Results(results, rows, result), environment


def _share_out(session: SessionResult, results: Sequence[Result], rows: Sequence[int]) -> None:
    """What the strategy and the rest of the session took, evenly over the results, in ms.

    What other sessions spent on configurations that a cache holds was not spent now.
    """
    plan, progress = session.plan, session.progress
    taken_over = {item.row for item in plan.known}
    for from_cache in (result for result, row in zip(results, rows, strict=True) if row in taken_over):
        from_cache |= dict.fromkeys(COST_MS, 0.0)
    on_this_clock = plan.source not in ("recorded", "simulated")
    spent = math.fsum(element.get(name, 0.0) for element in results for name in COST_MS) if on_this_clock else 0.0
    strategy = progress.strategy_s * 1e3
    rest = max(0.0, progress.elapsed_s * 1e3 - strategy - spent)
    for result in results:
        result |= {"strategy_time": strategy / len(results), "framework_time": rest / len(results)}


def _add_totals(results: Sequence[Result], environment: Result, began: float) -> None:
    """The sums of what was spent, in ms, where it is known of every result; the rest is `overhead_time`."""
    if environment.get("simulation"):
        environment["simulated_time"] = math.fsum(result.get(name, 0.0) for result in results for name in COST_MS)
    names = ("framework_time", "strategy_time", *COST_MS)
    if all(name in result for result in results for name in names):
        totals = {f"total_{name}": math.fsum(result[name] for result in results) for name in names}
        took = (time.perf_counter() - began) * 1e3 + environment.get("simulated_time", 0.0)
        environment |= {**totals, "overhead_time": took - math.fsum(totals.values())}


def _run_once(
    kernel: DescribedKernel, board: Gpu, folder: Path, parameters: Mapping[str, Any], *, quiet: bool
) -> list[Any]:
    """All arguments after one launch: arrays as NumPy arrays, scalars as they were.

    Raises InputError if it cannot run on that board, WattridgeError if it fails.
    """
    if not board.info.real:
        raise InputError(f"a {board.info.source} GPU runs no kernels", board.info.label, "choose a real GPU")
    spec, described = kernel.spec, kernel.spec.kernel
    assert described is not None
    require_device(described, board, spec.name)
    arrays = tuple(
        replace(argument, output=bool(argument.shape) and argument.memory == "global")
        for argument in described.arguments
    )
    described = replace(described, arguments=arrays)
    spec = replace(spec, kernel=described)
    with ExitStack() as stack:
        language = stack.enter_context(closing(open_device(described, board, spec.name, scripted=True)))
        if not quiet:
            say(f"{spec.name} on {board.info.label}")
        scripted = language.kernel(spec, partial(ScriptedKernel, parts=kernel.parts))
        loaded = stack.enter_context(closing(LoadedKernels(language, described.timeout_s, lambda: None)))
        try:
            prepared = scripted.prepare(dict(parameters))
            loaded.load(spec.name, prepared, language.compiler.image(prepared.build))
            loaded.check(spec.name)
        except (KernelFailed, KernelRefused) as failure:
            raise WattridgeError(f"{failure.state}: {failure}", spec.name) from None
        except BaseException:  # a signal's: the launch may still take long
            language.gpu.stop.set()
            raise
        written = loaded.outputs()
    given = {argument.name: argument for argument in described.arguments}
    return [written[n] if n in written else np.dtype(given[n].type).type(given[n].value) for n in kernel.names]
