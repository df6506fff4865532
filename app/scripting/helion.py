"""Helion kernels by energy: an `autotuner_fn` that measures configurations through the engine.

    @helion.kernel(autotuner_fn=wattridge.helion.autotuner(minimise="energy_j", within=0.03))
    def add(x, y): ...

Helion asks it once for a kernel and the shapes of its arguments, and runs the configuration that it returns from then
on. What it searches are configurations that are given, or the default one and others that Helion's own generator draws.
Each is compiled by Helion and called in this process, its result is compared with the default configuration's, and time
and energy are measured as for any function; the session is in the store, with its table and front.

Neither Helion nor PyTorch is needed to import this; both must be there when a kernel is tuned.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Final

from ..base.errors import InputError
from ..engine.results.measurement import Value
from ..sensors.gpu import Gpu
from .callables import tune_launches
from .tuned import Tuned

CANDIDATES: Final = 100
TOLERANCE: Final = 1e-2  # relative and absolute, as Helion's own where its settings say nothing else
_TARGET: Final = 0.01


class Autotuner:
    """What Helion asks for the configuration of one kernel and the shapes of its arguments."""

    def __init__(self, tuning: Tuning, kernel: Any, args: Sequence[Any]) -> None:
        self._tuning = tuning
        self._kernel = kernel
        self._args = tuple(args)

    def autotune(self, *, skip_cache: bool = False) -> Any:
        """Measure the candidates and return the best configuration.

        Parameters
        ----------
        skip_cache : bool, optional
            No effect: nothing is kept on disk but the session, so there is no cache to be skipped.

        Returns
        -------
        helion.Config
            The best configuration.

        Raises
        ------
        InputError
            For an argument of `autotuner` that cannot be used.
        WattridgeError
            If no configuration works.
        KeyboardInterrupt
            If the user stops it.
        """
        tuning = self._tuning
        candidates = dict(tuning.candidates(self._kernel))
        names = tuple(dict.fromkeys(name for config in candidates.values() for name in config))
        rows = {tuple(_plain(config.get(name, "default")) for name in names): c for c, config in candidates.items()}

        def launch(**configuration: Value) -> Any:
            config = rows[tuple(configuration[name] for name in names)]
            return self._kernel.compile_config(config, allow_print=False)(*self._args)

        result = tune_launches(
            launch,
            names,
            list(rows),
            name=_name_of(self._kernel),
            verify=tuning.verify or _same_as(self._kernel, self._args),
            **tuning.options,
        )
        tuning.results.append(result)
        return rows[tuple(result.best[name] for name in names)]


class Tuning:
    """An `autotuner_fn` of Helion's. `results` has what was measured, a result for each kernel and its shapes."""

    def __init__(
        self, configs: Sequence[Any] | None, candidates: int, verify: Callable[[Any], object] | None, options: Any
    ) -> None:
        if candidates < 1:
            raise InputError(f"it is {candidates}", "candidates", "give a whole number from 1")
        self.results: list[Tuned] = []
        self.verify = verify
        self.options: Mapping[str, Any] = options
        self._configs = configs
        self._count = candidates

    def __call__(self, kernel: Any, args: Sequence[Any], **_: Any) -> Autotuner:
        """As Helion calls it, with a bound kernel; what it says of its own searches has no meaning here."""
        return Autotuner(self, kernel, args)

    def candidates(self, kernel: Any) -> list[tuple[Any, Mapping[str, Any]]]:
        """The configurations to be measured: those that were given, else those that Helion's generator draws.

        Parameters
        ----------
        kernel : object
            Helion's bound kernel.

        Returns
        -------
        list of (helion.Config, mapping)
            Each once, as Helion's and as a dict.

        Raises
        ------
        InputError
            If configurations were given, and there are none.
        """
        if self._configs is not None:
            listed = list(self._configs)
            if not listed:
                raise InputError("there are no configurations", "configs", "list at least one helion.Config")
        else:
            settings = kernel.settings
            generation = kernel.config_spec.create_config_generation(
                overrides=getattr(settings, "autotune_config_overrides", None) or None
            )
            listed = generation.random_population(self._count)
        return [(config, dict(config)) for config in dict.fromkeys(listed)]


def autotuner(
    minimise: str = "energy_j",
    *,
    within: float | None = None,
    configs: Sequence[Any] | None = None,
    candidates: int = CANDIDATES,
    verify: Callable[[Any], object] | None = None,
    gpu: Gpu | str | int | None = None,
    target: float = _TARGET,
    quiet: bool = False,
    **search: Any,
) -> Tuning:
    """An `autotuner_fn` for ``helion.kernel``, which chooses by energy, time or power.

    Parameters
    ----------
    minimise : str, optional
        As for `wattridge.tune`.
    within : float or None, optional
        Choose among the configurations that are at most by this share slower than the fastest.
    configs : sequence of helion.Config or None, optional
        Without them `candidates` are drawn by Helion, its default configuration among them.
    candidates : int, optional
        How many are drawn.
    verify : callable or None, optional
        Called with what the first call of each configuration returns. Without it that must be close to what the default
        configuration, or the kernel's `autotune_baseline_fn`, returns.
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
    Tuning
        To be passed to Helion.

    Raises
    ------
    InputError
        For an argument that cannot be used.
    """
    if within is not None and not within >= 0:
        raise InputError(f"it is {within}", "within", "give a share from 0, as 0.03")
    options = {"minimise": minimise, "within": within, "gpu": gpu, "target": target, "quiet": quiet, **search}
    return Tuning(configs, candidates, verify, options)


# --- Helion's side ----------------------------------------------------------------------------------------------------


def _plain(value: Any) -> Value:
    """A value of a configuration; what is no plain value, as a list of block sizes, stands as text."""
    return value if isinstance(value, bool | int | float | str) else str(value)


def _name_of(kernel: Any) -> str:
    inner = getattr(kernel, "kernel", kernel)
    return str(getattr(inner, "name", "") or getattr(getattr(inner, "fn", inner), "__name__", "helion kernel"))


def _same_as(kernel: Any, args: Sequence[Any]) -> Callable[[Any], object]:
    """Whether a result is close to that of the kernel's baseline, found when it is first asked."""
    settings = kernel.settings
    expected: list[Any] = []

    def close(returned: Any) -> bool:
        if not expected:
            baseline = getattr(settings, "autotune_baseline_fn", None)
            if baseline is None:
                baseline = kernel.compile_config(kernel.config_spec.default_config(), allow_print=False)
            expected.append(baseline(*args))
        tolerances = {
            name: TOLERANCE if (given := getattr(settings, f"autotune_baseline_{name}", None)) is None else given
            for name in ("rtol", "atol")
        }
        import_module("torch").testing.assert_close(returned, expected[0], **tolerances)
        return True

    return close
