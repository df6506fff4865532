"""Triton kernels by energy: a hook for `triton.autotune`, and tuning of a kernel over its configurations.

    @triton.autotune(configs, key=["M", "N", "K"], do_bench=wattridge.triton.bench(minimise="energy", within=0.03))
    @triton.jit
    def matmul(...): ...

Triton calls the hook for one configuration after the other and takes the least of what it returns. A limit on the
slowdown is about all of them, so what is returned compares only once all are there. Launches of microseconds are
recorded as a CUDA graph: the device does not idle between them, and what it would draw then is not counted.

Triton keeps choices on disk where it is asked to, under a key that leaves the hook out: a choice that was made by time
would be used here, so one that this hook did not make is refused.

Neither Triton nor PyTorch is needed to import this; both must be there when a kernel is measured.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ..base.errors import InputError, WattridgeError
from ..engine.metering.span import read_span
from ..engine.metering.watching import watch
from ..engine.results.measurement import Value
from ..engine.runner.function import figures_of_calls, find_timer, recorded, repeat_watched, waits_for_host
from ..sensors.gpu import Gpu
from .callables import tune_launches
from .tuned import Tuned

_FIGURES: Final = {"energy": "energy_j", "time": "time_s", "power": "power_w"}
_MARK: Final = 1001.0  # beside what is kept on disk, so that a choice of this hook is known again
_TARGET: Final = 0.01


class Score(list[float]):
    """What the hook returns of one configuration: it compares as a number, by what is best over its whole set.

    The numbers are those that Triton may keep on disk: the cost, the time, how much slower may be, and a mark.
    """

    def __init__(self, group: _Group, cost: float, time_s: float) -> None:
        super().__init__([cost, time_s, group.within, group.mark])
        self._group = group

    def __lt__(self, other: Any) -> bool:
        self._group.decide()
        return self[0] < (other[0] if isinstance(other, list) else float(other))

    def __gt__(self, other: Any) -> bool:
        self._group.decide()
        return self[0] > (other[0] if isinstance(other, list) else float(other))


@dataclass(eq=False)
class _Group:
    """The configurations that Triton compares with one another."""

    within: float  # inf without a limit
    mark: float  # of the figure that is minimised
    scores: list[Score] = field(default_factory=list)
    decided: bool = False

    def decide(self) -> None:
        """Once all are there: those that are too slow cost infinitely much."""
        if self.decided:
            return
        self.decided = True
        fastest = min(score[1] for score in self.scores)
        for score in self.scores:
            if score[1] > (1.0 + self.within) * fastest:
                score[0] = math.inf


class Bench:
    """A hook for `do_bench` of `triton.autotune`. `rows` has the figures of everything that it measured."""

    def __init__(self, minimise: str, within: float | None, gpu: Gpu | str | int | None, target: float) -> None:
        if minimise not in _FIGURES:
            raise InputError(f"'{minimise}' cannot be minimised", "bench", f"one of {', '.join(_FIGURES)}")
        if within is not None and not within >= 0:
            raise InputError(f"it is {within}", "within", "give a share from 0, as 0.03")
        self.minimise = minimise
        self.within = math.inf if within is None else float(within)
        self.rows: list[dict[str, Any]] = []
        self._gpu = gpu
        self._target = target
        self.mark = _MARK + list(_FIGURES).index(minimise)
        self._group = _Group(self.within, self.mark)
        _refuse_kept_choices(self)

    def __call__(self, kernel_call: Callable[[], Any], quantiles: Sequence[float] | None = None, **_: Any) -> Score:
        """The score of one configuration, in Triton's interface.

        Raises what the launch raises (Triton treats lack of resources as a failure), and WattridgeError if the
        energy is asked for and cannot be known.
        """
        tuner, configuration = _asked_by(kernel_call)
        if getattr(tuner, "cache_results", False) and not _listens(self):
            what = "cache_results keeps choices on disk under a key that leaves the hook out"
            raise InputError(what, "triton.autotune", "leave cache_results and TRITON_CACHE_AUTOTUNING out")
        if self._group.decided:
            self._group = _Group(self.within, self.mark)
        kernel_call()  # compiles
        values = self._measured(kernel_call)
        name = _FIGURES[self.minimise]
        if name not in values:
            raise WattridgeError(f"{name} of this kernel is not known: {values['unknown']}", "bench", "minimise time")
        score = Score(self._group, values[name], values["time_s"])
        self._group.scores.append(score)
        self.rows.append({"configuration": configuration, **values})
        return score

    def _measured(self, kernel_call: Callable[[], Any]) -> dict[str, Any]:
        """Figures of one launch; `unknown` says why there is no energy."""
        timer = find_timer()
        watched = watch(self._gpu)
        try:
            call, calls = recorded(kernel_call, timer)
            repeated = repeat_watched(call, timer, watched, self._target)
            assert repeated is not None, "nothing stops it"
            waits = calls == 1 and waits_for_host(kernel_call, timer)
            span = read_span(watched, repeated.start_ns, repeated.end_ns)
        finally:
            watched.release()
        figures, _ = figures_of_calls(repeated.divided(calls), span)
        values: dict[str, Any] = {**figures, "unknown": span.unknown}
        if waits:
            values["unknown"] = "the GPU waits for Python between launches, and they cannot be recorded as a graph"
            values = {key: value for key, value in values.items() if key not in ("energy_j", "power_w")}
        return values


def bench(
    minimise: str = "energy",
    *,
    within: float | None = None,
    gpu: Gpu | str | int | None = None,
    target: float = _TARGET,
) -> Bench:
    """A hook for ``triton.autotune(..., do_bench=...)`` that makes Triton choose by energy, time or power.

    Parameters
    ----------
    minimise : str, optional
        'energy', 'time' or 'power'.
    within : float or None, optional
        Choose among the configurations that are at most by this share slower than the fastest.
    gpu : Gpu, str or int, or None, optional
        The board whose energy counts, by default GPU 0.
    target : float, optional
        Half of the 95 % interval of the mean time, relative to it, at which a measurement may end.

    Returns
    -------
    Bench
        The hook.

    Raises
    ------
    InputError
        For an argument that cannot be used.
    """
    return Bench(minimise, within, gpu, target)


def tune(
    kernel: Any,
    configs: Sequence[Any],
    args: Sequence[Any],
    *,
    grid: Any,
    keywords: Mapping[str, Any] | None = None,
    minimise: str = "energy_j",
    within: float | None = None,
    verify: Callable[[], object] | None = None,
    gpu: Gpu | str | int | None = None,
    target: float = _TARGET,
    quiet: bool = False,
    **search: Any,
) -> Tuned:
    """Launch ``kernel[grid](*args, **keywords, **config.all_kwargs())`` for every configuration, and measure it.

    Parameters
    ----------
    kernel : triton.JITFunction
        The kernel, without an autotuner of its own.
    configs : sequence of triton.Config
        The configurations, at least one.
    args : sequence
        Positional arguments of every launch.
    keywords : mapping or None, optional
        Keyword arguments of every launch.
    grid : tuple or callable
        A tuple, or a function of the meta-parameters.
    minimise : str, optional
        As for `wattridge.tune`.
    within : float or None, optional
        Choose among the configurations that are at most by this share slower than the fastest.
    verify : callable or None, optional
        Called without arguments after a first launch of each configuration; a false result marks it as wrong.
    gpu : Gpu, str or int, or None, optional
        The board whose energy counts, by default GPU 0.
    target : float, optional
        Half of the 95 % interval of the mean time, relative to it, at which a measurement may end.
    quiet : bool, optional
        Print nothing.
    **search
        Further keywords of `wattridge.tune`, as `strategy` and `max_evaluations`.

    Returns
    -------
    Tuned
        The best configuration, the front and the whole table.

    Raises
    ------
    InputError
        As `wattridge.tune`.
    KeyboardInterrupt
        As `wattridge.tune`.
    """
    if hasattr(kernel, "configs") and hasattr(kernel, "fn"):
        what = "it has an autotuner of its own, which would choose before anything is measured here"
        raise InputError(what, "triton.tune", "pass the kernel below it: KERNEL.fn")
    listed = [(config, _named(config)) for config in configs]
    if not listed:
        raise InputError("there are no configurations", "triton.tune", "list at least one triton.Config")
    names = tuple(dict.fromkeys(name for _, values in listed for name in values))
    rows = [tuple(values.get(name, "default") for name in names) for _, values in listed]
    config_of = {row: config for row, (config, _) in zip(rows, listed, strict=True)}

    def launch(**configuration: Value) -> None:
        config = config_of[tuple(configuration[name] for name in names)]
        given = {**(keywords or {}), **config.all_kwargs()}
        if getattr(config, "pre_hook", None) is not None:  # it sees all arguments by their names, as in Triton
            config.pre_hook({**dict(zip(getattr(kernel, "arg_names", ()), args, strict=False)), **given})
        kernel[grid](*args, **given)

    return tune_launches(
        launch,
        names,
        rows,
        name=_name_of(kernel),
        minimise=minimise,
        within=within,
        verify=None if verify is None else lambda _: verify(),
        gpu=gpu,
        target=target,
        quiet=quiet,
        **search,
    )


# --- Triton's side ----------------------------------------------------------------------------------------------------


def _named(config: Any) -> dict[str, Value]:
    """A configuration's values; what is no plain value stands as text."""
    given = config.all_kwargs()
    return {n: value if isinstance(value, bool | int | float | str) else str(value) for n, value in given.items()}


def _name_of(kernel: Any) -> str:
    function = getattr(kernel, "fn", kernel)
    return str(getattr(function, "__name__", type(kernel).__name__))


def _asked_by(kernel_call: Callable[[], Any]) -> tuple[Any, str]:
    """The tuner and the configuration that a call is of, as far as the call shows them."""
    code, cells = getattr(kernel_call, "__code__", None), getattr(kernel_call, "__closure__", None) or ()
    held: dict[str, Any] = {}
    for name, cell in zip(getattr(code, "co_freevars", ()), cells, strict=False):
        try:
            held[name] = cell.cell_contents
        except ValueError:  # empty
            continue
    return held.get("self"), str(held.get("config", ""))


def _refuse_kept_choices(hook: Bench) -> None:
    """Listen to Triton's choices, and reject one that was read from disk and not made by this hook."""
    autotuning = _autotuning()
    if autotuning is None:
        return
    before = autotuning.listener
    if isinstance(before, _Listener):
        before.hooks.append(hook)
    else:
        autotuning.listener = _Listener([hook], before)


def _listens(hook: Bench) -> bool:
    listener = getattr(_autotuning(), "listener", None)
    return isinstance(listener, _Listener) and hook in listener.hooks


def _autotuning() -> Any:
    """Triton's settings of autotuning, where it has been imported and offers to be listened to."""
    triton = sys.modules.get("triton")
    autotuning = getattr(getattr(triton, "knobs", None), "autotuning", None)
    return autotuning if hasattr(autotuning, "listener") else None


class _Listener:
    """Triton's listener; the previously installed one is called as well."""

    def __init__(self, hooks: list[Bench], before: Callable[..., None] | None) -> None:
        self.hooks = hooks
        self._before = before

    def __call__(self, **event: Any) -> None:
        if event.get("cache_hit"):
            self._check(event, _tuner_above())
        if self._before is not None:
            self._before(**event)

    def _check(self, event: Mapping[str, Any], tuner: Any) -> None:
        hook = getattr(tuner, "do_bench", None)
        if not isinstance(hook, Bench):
            return
        kept = list((event.get("configs_timings") or {}).values())
        if len(kept) > 1 and not all(_is_of(hook, entry) for entry in kept):
            cache = getattr(tuner, "cache", None)
            if isinstance(cache, dict):
                cache.pop(event.get("key"), None)
            what = "the choice was read from Triton's disk cache, and this hook did not make it: it may be by time"
            raise InputError(what, "triton.autotune", "leave cache_results and TRITON_CACHE_AUTOTUNING out")


def _is_of(hook: Bench, kept: Any) -> bool:
    """Whether numbers from disk are a score with the same limit, or of a configuration that failed."""
    if all(entry == math.inf for entry in kept):
        return True
    return len(kept) == 4 and kept[3] == hook.mark and kept[2] == hook.within


def _tuner_above() -> Any:
    """The tuner that called the listener, found on the stack: Triton does not pass it."""
    frame = sys._getframe(2)
    return frame.f_locals.get("self")
