"""`wattridge.tune`: any callable over its own keyword arguments, for time, energy or a figure of the user's.

    result = wattridge.tune(attention, {"block": [32, 64, 128]}, arguments=(q, k, v), minimise="energy_j")
    result.best          # {"block": 64}

The function is called in this process, again and again until its time is known; the board's power source says what
was drawn meanwhile. Calls that return before the device is done are timed by events of PyTorch or CuPy where the
function uses them, else after `synchronise()`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from numbers import Real
from typing import Any, Final, Generic, ParamSpec, TypeVar

from ..base.configuration import setting
from ..base.errors import InputError
from ..base.processes import say
from ..engine.metering.watching import Watch, watch
from ..engine.results.measurement import MEASURED, Value
from ..engine.results.objectives import Goal, Objective, likely_goal
from ..engine.runner.boards import InProcess
from ..engine.runner.command import not_its_own
from ..engine.runner.completed import CompletedRunner
from ..engine.runner.function import UNMETERED, FunctionRunner, FunctionWork
from ..engine.session.planning import make_plan
from ..engine.space.build import build_space
from ..engine.space.expression import parse
from ..engine.space.search_space import SearchSpace, space_of_table
from ..engine.specification.plan import SearchOptions
from ..engine.strategies import base as strategies
from ..sensors.gpu import Gpu, GpuInfo, NoDriver
from ..sensors.limits import limits_of
from ..sensors.unmetered import this_processor
from .own_strategies import named_strategy
from .restrictions import filtered, read_restrictions
from .surroundings import run_session_of_script, script_path, surroundings
from .tuned import Figures, Tuned, read_metrics

P = ParamSpec("P")
R = TypeVar("R")
_TARGET: Final = 0.01  # half of the 95 % interval of the mean time
_NAMES: Final = (*MEASURED, "busy_share")
_NO_DRIVER: Final = "no NVIDIA driver answers here: time is measured, and energy is not known"


def tune(
    function: Callable[..., Any],
    parameters: Mapping[str, Sequence[Any] | str | Callable[..., Any]],
    *,
    arguments: Sequence[Any] = (),
    keywords: Mapping[str, Any] | None = None,
    minimise: str | None = None,
    maximise: str | None = None,
    front: Sequence[str] | None = None,
    limits: Mapping[str, str] | None = None,
    within: float | None = None,
    restrictions: Any = None,
    metrics: Mapping[str, Any] | None = None,
    strategy: str | type[strategies.Strategy] = "auto",
    strategy_options: Mapping[str, Any] | None = None,
    max_evaluations: int | None = None,
    max_seconds: float | None = None,
    patience: int | None = None,
    seed: int = 0,
    verify: Callable[[Any], object] | None = None,
    synchronise: Callable[[], object] | None = None,
    target: float = _TARGET,
    gpu: Gpu | str | int | None = None,
    name: str | None = None,
    quiet: bool = False,
) -> Tuned:
    """Measure ``function(*arguments, **keywords, **configuration)`` for configurations of the parameters.

    A configuration whose call raises is a failed one.

    Parameters
    ----------
    function : callable
        What is measured.
    parameters : mapping of str to sequence, str or callable
        Of each keyword argument of `function` its values: a list, one value, a range as text over other parameters, or
        a function of other parameters, by the names of its arguments, that returns or yields them.
    arguments : sequence, optional
        Further positional arguments of every call.
    keywords : mapping or None, optional
        Further keyword arguments of every call.
    minimise, maximise : str or None, optional
        The figure to optimise: ``time_s``, ``energy_j``, ``power_w``, a metric, or a parameter.
    front : sequence of str or None, optional
        Figures of the Pareto front.
    limits : mapping of str to str or None, optional
        Bounds that hold for the choice, as ``{"time_s": "<= 0.002"}``.
    within : float or None, optional
        Choose among the configurations that are at most by this share slower than the fastest, once all are measured.
    restrictions : str, callable, or a list of these, or None, optional
        Which configurations are valid.
    metrics : mapping of str to str or callable or None, optional
        Further figures: text over parameters and figures, or a function of a dict of them.
    strategy : str or type, optional
        How to search, as `wattridge strategies` lists them, or a `wattridge.strategies.Strategy` of your own.
    strategy_options : mapping or None, optional
        Options of the strategy, as listed there too.
    max_evaluations : int or None, optional
        How many measurements end the search.
    max_seconds : float or None, optional
        How many seconds end it.
    patience : int or None, optional
        How many measurements without an improvement end it.
    seed : int, optional
        Of the search's random numbers.
    verify : callable or None, optional
        Called with what the first call of each configuration returns; a false result marks it as wrong.
    synchronise : callable or None, optional
        Waits until the device has finished; by default that of the library in use.
    target : float, optional
        Half of the 95 % interval of the mean time, relative to it, at which a measurement may end.
    gpu : Gpu, str or int, or None, optional
        The board whose energy counts, by default GPU 0; without a board there is time only.
    name : str or None, optional
        Of the session in the store, by default the function's.
    quiet : bool, optional
        Print nothing.

    Returns
    -------
    Tuned
        The best configuration, the front and the whole table.

    Raises
    ------
    InputError
        For an argument that cannot be used, and for an objective of energy if no energy is known.
    KeyboardInterrupt
        If the user stops it; what was measured by then is in the store.

    Examples
    --------
    >>> import wattridge
    >>> def total(step):
    ...     return sum(range(0, 20_000, step))
    >>> result = wattridge.tune(total, {"step": [1, 1000]}, minimise="time_s", gpu="host", quiet=True)
    >>> result.best
    {'step': 1000}
    >>> len(result.rows())
    2
    """
    if not callable(function):
        raise InputError(f"it is of type {type(function).__name__}", "tune", "pass a function, then its parameters")
    if not (isinstance(target, Real) and 0 < target < 1):
        raise InputError(f"it is {target!r}", "target", "give a share between 0 and 1, as 0.01")
    if within is not None and not (isinstance(within, Real) and within >= 0):
        raise InputError(f"it is {within!r}", "within", "give a share from 0, as 0.03")
    figures = Figures(read_metrics(metrics))
    space = _space(parameters, restrictions)
    _check_call(function, arguments, {**dict.fromkeys(parameters), **dict(keywords or {})})
    options = dict(strategy_options or {})
    strategy = strategy if isinstance(strategy, str) else named_strategy(strategy, options)
    strategies.make_options(strategies.get(strategy), options)
    keeps = _limits(limits, tuple(figures.metrics))
    return _tuned(
        FunctionWork(function, tuple(arguments), dict(keywords or {}), verify, synchronise, False, keeps),
        space,
        figures,
        (minimise, maximise, front),
        SearchOptions(
            strategy=strategy,
            strategy_options=options,
            max_evaluations=max_evaluations,
            max_seconds=max_seconds,
            patience=patience,
            seed=seed,
        ),
        within=within,
        target=target,
        gpu=gpu,
        name=name or str(getattr(function, "__name__", type(function).__name__)),
        quiet=quiet,
    )


def tune_launches(
    launch: Callable[..., Any],
    names: Sequence[str],
    rows: Sequence[Sequence[Value]],
    *,
    name: str,
    minimise: str,
    within: float | None,
    verify: Callable[[Any], object] | None,
    gpu: Gpu | str | int | None,
    target: float,
    quiet: bool,
    **search: Any,
) -> Tuned:
    """Measure a function that does nothing but launch kernels, for exactly these configurations.

    Launches of microseconds are recorded, so that no gap between them is counted.

    Parameters
    ----------
    launch : callable
        Called with the parameters as keyword arguments.
    names : sequence of str
        Names of the parameters.
    rows : sequence of sequence
        The configurations, their values in the order of `names`.
    name : str
        Name of the session in the store.
    minimise : str
        The figure to minimise.
    within : float or None
        Choose among the configurations that are at most by this share slower than the fastest; None for any.
    verify : callable or None
        Called with what the first call of each configuration returns; a false result marks it as wrong. None for no
        check.
    gpu : Gpu, str, int or None
        The board whose energy counts; None for GPU 0.
    target : float
        Half of the 95 % interval of the mean time, relative to it, at which a measurement may end.
    quiet : bool
        Print nothing.
    **search
        Further options of the search, as `strategy`, `max_evaluations` and `seed`; by default every configuration is
        measured.

    Returns
    -------
    Tuned
        The best configuration, the front and the whole table.

    Raises
    ------
    InputError
        For an option that is not known, and as `tune` does.
    KeyboardInterrupt
        If the user stops it; what was measured by then is in the store.
    """
    known = {field.name for field in fields(SearchOptions)} - {"objective", "front", "repeats", "condition"}
    for value in search:
        if value not in known:
            raise InputError(f"'{value}' is not known", "tune", f"one of {', '.join(sorted(known))}")
    space = space_of_table(dict.fromkeys(names, ()), rows)
    work = FunctionWork(launch, verify=verify, launches_only=True)
    options = SearchOptions(**{"strategy": "brute_force", "seed": 0, **search})
    strategies.make_options(strategies.get(str(options.strategy)), dict(options.strategy_options))
    goals = (minimise, None, None)
    return _tuned(
        work, space, Figures({}), goals, options, within=within, target=target, gpu=gpu, name=name, quiet=quiet
    )


def _tuned(
    work: FunctionWork,
    space: SearchSpace,
    figures: Figures,
    goals: tuple[str | None, str | None, Sequence[str] | None],
    options: SearchOptions,
    *,
    within: float | None,
    target: float,
    gpu: Gpu | str | int | None,
    name: str,
    quiet: bool,
) -> Tuned:
    """The session of a function over a space; `goals` are what to minimise, what to maximise, and the front."""
    with _watched(gpu) as (info, watched):
        named = gpu is not None or surroundings().gpu is not None
        note = not_its_own(info.source, "a function") if watched is not None or named else _NO_DRIVER
        objective = _objective(*goals, tuple(figures.metrics), unknown="" if watched is not None else note)
        notes = [note] if note else []
        if not quiet:
            for note in notes:
                say(note)
        plan = make_plan(
            InProcess(
                lambda _: CompletedRunner(FunctionRunner(work, space, _again(watched), target), figures.complete)
            ),
            options,
            title=name,
            gpu=info.name,
            driver=info.driver,
            source=info.source,
            space=replace(space, notes=(*space.notes, *notes)),
            objective=objective,
            strategy="auto",
            strategy_options=dict(options.strategy_options),
            origin={"kind": "script", "file": str(script_path()), "isolated": "False"},
        )
        done = run_session_of_script(plan, lambda _event: None, quiet)
        return Tuned(done.plan, done.table, done.session, within)


class TunedFunction(Generic[P, R]):
    """A function with parameters to be tuned; until it is, it is called with its own defaults."""

    def __init__(self, function: Callable[P, R], parameters: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self._function, self._parameters, self._options = function, parameters, options
        self.result: Tuned | None = None

    def tune(self, *arguments: Any, **keywords: Any) -> Tuned:
        """Tune it for these arguments; later calls use the best configuration. Raises as `tune` does."""
        options = {**self._options, "arguments": arguments, "keywords": keywords}
        self.result = tune(self._function, self._parameters, **options)
        return self.result

    def __call__(self, *arguments: P.args, **keywords: P.kwargs) -> R:
        chosen = {} if self.result is None else {**self.result.best}
        given: Any = {**chosen, **keywords}
        return self._function(*arguments, **given)


def tunable(
    parameters: Mapping[str, Sequence[Any] | str | Callable[..., Any]], **options: Any
) -> Callable[[Callable[P, R]], TunedFunction[P, R]]:
    """Decorate a function that is tuned by ``function.tune(x)``, and then called with its best configuration.

    Parameters
    ----------
    parameters : mapping of str to sequence, str or callable
        As for `tune`: ``@tunable({"block": [32, 64]}, minimise="energy_j")``.
    **options
        Those of `tune`.

    Returns
    -------
    callable
        The decorator; what it returns is called as the function.

    Examples
    --------
    >>> import wattridge
    >>> @wattridge.tunable({"step": [1, 1000]}, minimise="time_s", gpu="host", quiet=True)
    ... def total(n, step=1):
    ...     return sum(range(0, n, step))
    >>> total.tune(20_000).best
    {'step': 1000}
    >>> total(2000)  # with the best step from now on
    1000
    """
    return lambda function: TunedFunction(function, parameters, options)


# --- inside -----------------------------------------------------------------------------------------------------------


def _space(parameters: Mapping[str, Any], restrictions: Any) -> SearchSpace:
    if not isinstance(parameters, Mapping):
        raise InputError(f"they are of type {type(parameters).__name__}", "parameters", "pass a dict of lists")
    listed: dict[str, Any] = {}
    for name, given in parameters.items():
        if not isinstance(name, str):
            raise InputError(f"the name {name!r} is of type {type(name).__name__}", "parameters", "name them by text")
        if callable(given):
            listed[name] = given
            continue
        if not isinstance(given, str | bool | Real | Iterable):
            what = f"it is of type {type(given).__name__}"
            raise InputError(what, f"parameters[{name!r}]", "give a list of values, or a range as text")
        listed[name] = given if isinstance(given, str) else tuple(given) if isinstance(given, Iterable) else (given,)
    for name, values in listed.items():
        for value in () if isinstance(values, str) or callable(values) else values:
            if not isinstance(value, bool | int | float | str):
                what = f"the value {value!r} is of type {type(value).__name__}"
                raise InputError(what, f"parameters[{name!r}]", "list numbers, flags or text")
    restricted = read_restrictions(restrictions, tuple(listed))
    where = str(script_path())
    space = build_space(listed, restricted.texts, {}, limits_of((8, 0)), block_size_names=(), where=where)
    for label, accepts in restricted.functions.items():
        space = filtered(space, accepts, label, where)
    return space


def _check_call(function: Callable[..., Any], arguments: Sequence[Any], keywords: Mapping[str, Any]) -> None:
    """Raise InputError if the function cannot be called in this way, as far as its signature is known."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a builtin
        return
    try:
        signature.bind(*arguments, **keywords)
    except TypeError as error:
        name = getattr(function, "__name__", type(function).__name__)
        raise InputError(f"{name}{signature}: {error}", "tune", f"it is called with {', '.join(keywords)}") from None


def _objective(
    minimise: str | None, maximise: str | None, front: Sequence[str] | None, metrics: Sequence[str], *, unknown: str
) -> Objective:
    """`unknown` says why energy is not known, where it is not. Raises InputError."""
    if minimise is not None and maximise is not None:
        raise InputError("both are given", "minimise and maximise", "give one, and the others as front")
    named = minimise or maximise or ("time_s" if unknown else "energy_j")
    goal = Goal(named, maximise=maximise is not None)
    goals = tuple(likely_goal(value) for value in front or ())
    if not goals:
        goals = () if unknown else tuple(Goal(element, maximise=False) for element in ("time_s", "energy_j"))
    for item in (goal, *goals):
        if item.name not in (*_NAMES, *metrics):
            names = ", ".join((*_NAMES[:3], *metrics))
            raise InputError(f"there is no figure '{item.name}'", "objective", f"known: {names}")
        if unknown and item.name in ("energy_j", "power_w"):
            raise InputError(unknown, "objective", "minimise time_s, or name a board by gpu=")
    return Objective(goal, goals)


def _limits(given: Mapping[str, str] | None, metrics: Sequence[str]) -> Callable[[Mapping[str, Any]], str]:
    """Which limit figures do not keep, in words. Raises InputError for a limit that cannot be read."""
    tests = {}
    for name, text in (given or {}).items():
        if name in metrics or name not in _NAMES:
            raise InputError(f"there is no measured figure '{name}'", "limits", f"one of {', '.join(_NAMES[:3])}")
        tests[name] = parse(f"{name} {text}", f"limits[{name!r}]")
        tests[name].check_names(_NAMES)

    def broken(figures: Mapping[str, Any]) -> str:
        for name, test in tests.items():
            computable = all(value in figures for value in test.names)
            if not computable or not bool(test.evaluate(figures)):
                return f"{name} is {figures.get(name, 'not known')}, and the limit is: {test.text}"
        return ""

    return broken


@contextmanager
def _watched(gpu: Gpu | str | int | None) -> Iterator[tuple[GpuInfo, Watch | None]]:
    """The board, and its watch meanwhile; no watch where it reports nothing.

    Where none is named and no driver answers, it is this computer's processor.
    """
    named = (surroundings().gpu or setting("WATTRIDGE_GPU") or None) if gpu is None else gpu
    if named is None:
        from ..sensors.nvml.gpu import boards

        try:
            uuids = boards()
        except NoDriver:
            uuids = []
        if not uuids:
            yield this_processor().info, None
            return
    watched = watch(named)
    try:
        info = watched.gpu.info
        yield info, None if info.source == UNMETERED else watched
    finally:
        watched.release()


def _again(watched: Watch | None) -> Watch | None:
    """The same board for the runner, which gives it back by itself."""
    return None if watched is None else watch(watched.gpu)
