"""`tune_kernel` and `run_kernel` with the signature and the meaning of Kernel Tuner 1.5's.

What cannot be honoured is refused in one line and never ignored: `PARAMETERS` says of each parameter what happens.
`tune_kernel` runs a session; `run_kernel` launches a kernel once, in a process of its own.
"""

from __future__ import annotations

import inspect
import logging
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

from ..base.errors import InputError, WattridgeError
from ..base.processes import LOG, say
from ..base.text import one_line
from ..engine.children.scratch import scratch_folder
from ..engine.formats.growing_cache import GrowingCache
from ..engine.formats.names import DEVICE_SETTINGS
from ..engine.formats.own import About
from ..engine.results.measurement import Configuration
from ..engine.results.objectives import Goal, Objective
from ..engine.runner.boards import ReadyPlan
from ..engine.runner.kernels.loaded import LoadedKernels
from ..engine.runner.kernels.process import KernelFailed
from ..engine.runner.languages import open_device, require_device
from ..engine.session.events import Event, FiguresRestated, MeasurementsAdded, SessionStarted
from ..engine.session.live_session import SessionResult
from ..engine.space.result_table import ResultTable
from ..engine.specification.model import DEVICE_COMPILERS
from ..engine.specification.plan import SessionPlan
from ..engine.workloads.source_kernel import KernelRefused
from ..sensors.gpu import Gpu
from ..sensors.select import HOST, OPENCL, open_gpu
from .described_kernel import DescribedKernel, ScriptedKernel, describe_kernel
from .kernel_planning import Wanted, plan_from_cache, plan_on_board, require_language
from .observers import BenchmarkObserver, MeterObserver, OutputObserver, RegisterObserver
from .restrictions import read_restrictions
from .script_results import add_totals, script_results, why_none_worked
from .script_side import ScriptOfKernel, read_verify
from .sources import KernelSource, read_source
from .strategies import TABLE, read_strategy
from .surroundings import run_session_of_script, surroundings
from .tuned import Figures, Result, configuration_text, read_metrics, read_objective

PARAMETERS: Final[Mapping[str, str]] = TABLE["parameters"]  # what becomes of each parameter of `tune_kernel`
_UNSUPPORTED: Final = {  # what must stay at its default, and what to do
    "platform": "leave it out: it is for OpenCL",
    "tegra_gr_clock": "leave it out: clocks of a Jetson are not set here",
    "texmem_args": "read through __ldg or pass a pointer: CUDA 12 has no texture references",
}
_PARALLEL: Final = "parallel: kernels are compiled in parallel, and this board measures them one at a time"
_TIMEOUT_S: Final = 60.0  # of one launch: a script's kernel may be a long one


def tune_kernel(
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
    kernel_name : str
        The function's name in the source.
    kernel_source : str, path, list of these, or callable
        Source, file, several files, or a function of the configuration that returns the source.
    problem_size : int, str, callable, or a tuple of these
        Work in each direction, before it is divided into blocks.
    arguments : list of array or scalar
        NumPy arrays and scalars, in the kernel's order; arrays are in memory of the device during a launch.
    tune_params : dict of str to sequence
        The values of each parameter, which are defined as macros.
    grid_div_x, grid_div_y, grid_div_z : list of str, or callable, optional
        What the problem size is divided by; by default the block size in x.
    restrictions : list of str, or callable, optional
        Which configurations are valid.
    answer : list of array or None, optional
        Expected contents of `arguments` after a launch, None for those that are not compared.
    atol : float, optional
        Largest absolute difference from `answer`.
    verify : callable, optional
        Compares instead: ``verify(answer, result, atol=atol)``.
    verbose, quiet : bool, optional
        Print why configurations failed; print nothing.
    lang : str, optional
        ``"CUDA"``, ``"OpenCL"``, ``"C"`` or ``"Fortran"``; found in the source where it is not said.
    device, platform : int, optional
        Number of the GPU; of OpenCL's device and platform.
    smem_args, cmem_args : dict, optional
        Dynamic shared memory in bytes (``{"size": 1024}``), and contents of constant memory; CUDA only.
    texmem_args, parallel : optional
        The first is refused, the second changes nothing.
    compiler : str, optional
        Of C and Fortran.
    compiler_options : list of str, optional
        For the compiler.
    defines : dict, optional
        Further macros, in place of those of the parameters.
    log : int, optional
        A level of `logging`: a log file is written beside the script.
    iterations : int, optional
        How many single launches are timed for ``times``.
    block_size_names : list of str, optional
        The parameters that are block sizes, by default ``block_size_x``, ``_y`` and ``_z``.
    strategy : str or Strategy, optional
        How to search; every configuration by default.
    strategy_options : dict, optional
        Of the strategy, with ``max_fevals`` and ``time_limit`` in s.
    cache : path, optional
        A cache in Kernel Tuner's format, which is read and continued.
    metrics : dict, optional
        Figures by name: text over parameters and figures, or functions of a result.
    simulation_mode : bool, optional
        Answer the search from the cache alone.
    observers : list, optional
        Such as ``NVMLObserver``; see `wattridge.observers`.
    objective : str or list of str, optional
        ``"time"`` in ms by default; several become a front.
    objective_higher_is_better : bool or list of bool, optional
        Whether more of it is better, where the name does not say so.
    objectives : dict of str to bool, optional
        In place of both.
    seed : int, optional
        Of the search's random numbers.
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

    Examples
    --------
    >>> import numpy, wattridge
    >>> source = "__global__ void add(float *c, float *a, float *b, int n) { /* ... */ }"
    >>> c, a, b = numpy.zeros((3, 100_000), numpy.float32)
    >>> results, environment = wattridge.tune_kernel(
    ...     "add", source, c.size, [c, a, b, numpy.int32(c.size)], {"block_size_x": [64, 128, 256]},
    ...     gpu="simulated:a100", profile="vector_add", quiet=True,
    ... )
    >>> environment["source"], len(results)
    ('simulated', 3)
    >>> results[0]["time"] > 0 and results[0]["energy_j"] > 0  # ms, J
    True
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
    results, environment = script_results(result, figures, wanted.objective)
    add_totals(results, environment, began)
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

    Examples
    --------
    >>> import numpy, wattridge
    >>> source = "void twice(float *x, int n) { for (int i = 0; i < n; i++) x[i] *= FACTOR; }"
    >>> x, n = numpy.ones(3, numpy.float32), numpy.int32(3)
    >>> wattridge.run_kernel("twice", source, 3, [x, n], {"FACTOR": 2}, lang="C", gpu="host")[0]
    array([2., 2., 2.], dtype=float32)
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
            LOG.info(
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
