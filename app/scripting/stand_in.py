"""A stand-in for the module `kernel_tuner` while a script runs that imports it.

The names that scripts use are here; any other is refused in one line when it is accessed. `PythonKernel`, of
`kernelbuilder`, is one configuration of a kernel as a Python function.

`kernel_tuner.energy.energy` models power over the graphics clock, and finds the clock from which the voltage rises. It
has Kernel Tuner's form of the model [Schoonhoven2024, eqs. 6.2 and 6.3], with x the clock above the lowest one in MHz,
and power relative to the least:

    P(x) = min(P_max, 1 + 0.001 c x v(x)^2),   v(x) = 1 + 0.001 s max(0, x - ridge)

Power is measured by the sweep of `wattridge fit`. The form leaves out that what the board draws at the lowest
clock rises with the voltage, too: fitted alone it bends too early (1018 MHz for a TITAN RTX of 1155). So the ridge of a
board is that of Wattridge's own model of the same sweep (`engine/models/fit/frequency.py`), with the rest fitted to it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import wraps
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..base.errors import InputError, WattridgeError
from ..base.processes import say
from ..engine.models.fit.points import Points
from ..sensors.gpu import Gpu
from . import accuracy, cached, kernel_tuner, measuring, observers, own_strategies, stored_results, tuned
from .described_kernel import write_back
from .kernel_tuner import board_of, run_kernel
from .searchspace import Searchspace
from .strategies import STRATEGIES
from .surroundings import surroundings

Floats = npt.NDArray[np.float64]
Parameters = tuple[float, float, float, float]  # ridge, s, c, P_max
Scales = tuple[float, float]  # the lowest clock in MHz, the least power in W
Fitted = tuple[float, Parameters, Scales]  # the ridge in MHz first
_MOST_SCALE = 20.0  # of s and c
_HELD_MHZ = 1e-3  # how far a ridge that is known may move


def get_frequency_power_relation_fp32(
    device: int,
    n_samples: int = 10,
    nvidia_smi_fallback: str | None = None,
    use_locked_clocks: bool = False,
    cache: str | None = None,
    simulation_mode: bool | None = None,
) -> tuple[Floats, Floats]:
    """Measure the power of a full load at about `n_samples` locked clocks.

    Parameters
    ----------
    device : int
        The board.
    n_samples : int, optional
        How many clocks, about.
    nvidia_smi_fallback, cache : str or None, optional
        Kernel Tuner's.
    use_locked_clocks : bool, optional
        No effect: clocks are locked wherever the board allows it.
    simulation_mode : bool or None, optional
        Kernel Tuner's.

    Returns
    -------
    clocks : array, shape (clocks,)
        As observed, in MHz.
    power : array, shape (clocks,)
        In W.

    Raises
    ------
    InputError
        For what is not supported.
    WattridgeError
        If clocks cannot be set here.
    """
    _refuse(nvidia_smi_fallback=nvidia_smi_fallback, cache=cache, simulation_mode=simulation_mode)
    with board_of(None, device) as board:
        points = _relation(board, n_samples)
    return points.clock_mhz, points.power_w


def estimated_voltage(clocks: npt.ArrayLike, clock_threshold: float, voltage_scale: float) -> Floats:
    """Relative voltage at clocks above the lowest one.

    Parameters
    ----------
    clocks : array_like, shape (n,)
        In MHz above the lowest one.
    clock_threshold : float
        Where the voltage begins to rise, in the same unit.
    voltage_scale : float
        Slope above it, per GHz.

    Returns
    -------
    array, shape (n,)
        Dimensionless.
    """
    above = np.maximum(0.0, np.asarray(clocks, dtype=np.float64) - clock_threshold)
    return np.asarray(1.0 + 1e-3 * voltage_scale * above)


def estimated_power(
    clocks: npt.ArrayLike, clock_threshold: float, voltage_scale: float, clock_scale: float, power_max: float
) -> Floats:
    """Relative power at clocks above the lowest one.

    Parameters
    ----------
    clocks : array_like, shape (n,)
        In MHz above the lowest one.
    clock_threshold, voltage_scale : float
        As of `estimated_voltage`.
    clock_scale : float
        Relative power per GHz and squared relative voltage.
    power_max : float
        The highest, relative to the least.

    Returns
    -------
    array, shape (n,)
        Relative to the least power.
    """
    voltage = estimated_voltage(clocks, clock_threshold, voltage_scale)
    free = 1.0 + 1e-3 * clock_scale * np.asarray(clocks, dtype=np.float64) * voltage**2
    return np.asarray(np.minimum(power_max, free))


def fit_power_frequency_model(freqs: npt.ArrayLike, nvml_power: npt.ArrayLike) -> Fitted:
    """Fit the model of `estimated_power` by least squares, started from several ridges.

    Parameters
    ----------
    freqs : array_like, shape (n,)
        Clocks in MHz, at least five.
    nvml_power : array_like, shape (n,)
        Power in W.

    Returns
    -------
    Fitted
        The ridge in MHz, the parameters, and the clock and power to which they are relative.

    Raises
    ------
    InputError
        For fewer than five clocks.
    """
    return _fitted(freqs, nvml_power)


def _fitted(freqs: npt.ArrayLike, nvml_power: npt.ArrayLike, ridge_mhz: float | None = None) -> Fitted:
    """The same, of a ridge that is known or of the one that fits best."""
    from scipy.optimize import least_squares

    clocks, power = np.asarray(freqs, dtype=np.float64), np.asarray(nvml_power, dtype=np.float64)
    if len(np.unique(clocks)) < 5:
        raise InputError(f"{len(np.unique(clocks))} clocks", "kernel_tuner.energy", "measure five or more: n_samples")
    lowest_mhz, least_w = float(clocks.min()), float(power.min())
    x, y = clocks - lowest_mhz, power / least_w
    slope, most = 1e3 * float((y.max() - 1.0) / x.max()), float(y.max())
    bounds = ([0.0, 0.0, 0.0, 0.9 * most], [x.max(), _MOST_SCALE, _MOST_SCALE, 1.1 * most])
    ridges = [share * x.max() for share in (0.25, 0.5, 0.75)]
    if ridge_mhz is not None:
        ridges = [ridge_mhz - lowest_mhz]
        bounds[0][0], bounds[1][0] = ridges[0] - _HELD_MHZ, ridges[0] + _HELD_MHZ

    def off(parameters: Floats) -> Floats:
        return estimated_power(x, *parameters.tolist()) - y

    starts = [(value, 1.0, min(slope, _MOST_SCALE), most) for value in ridges]
    fits = [least_squares(off, start, bounds=bounds) for start in starts]
    ridge, voltage_scale, clock_scale, power_max = min(fits, key=lambda result: float(result.cost)).x.tolist()
    return ridge + lowest_mhz, (ridge, voltage_scale, clock_scale, power_max), (lowest_mhz, least_w)


def create_power_frequency_model(
    device: int = 0,
    n_samples: int = 10,
    verbose: bool = False,
    nvidia_smi_fallback: str | None = None,
    use_locked_clocks: bool = False,
    cache: str | None = None,
    simulation_mode: bool | None = None,
) -> tuple[int, Floats, Floats, Parameters, Scales]:
    """Measure and fit power over clock. Clocks are restored.

    Parameters
    ----------
    device, n_samples : int, optional
        The board, and about how many clocks.
    verbose : bool, optional
        Kernel Tuner's.
    nvidia_smi_fallback, cache : str or None, optional
        As of `get_frequency_power_relation_fp32`.
    use_locked_clocks : bool, optional
        As there.
    simulation_mode : bool or None, optional
        As there.

    Returns
    -------
    ridge : int
        The settable clock nearest to the ridge, in MHz.
    clocks, power : array, shape (n,)
        As measured, in MHz and W.
    parameters, scales : tuple
        Of `estimated_power`, and what clocks and power are relative to.

    Raises
    ------
    InputError
        As `get_frequency_power_relation_fp32` and `fit_power_frequency_model`.
    WattridgeError
        As these.
    """
    from ..engine.models.fit.frequency import fit_points

    _refuse(nvidia_smi_fallback=nvidia_smi_fallback, cache=cache, simulation_mode=simulation_mode)
    with board_of(None, device) as board:
        label, settable = board.info.label, np.asarray(board.graphics_clocks_mhz())
        points = _relation(board, n_samples)
    clocks, power, fit = points.clock_mhz, points.power_w, fit_points(points)
    ridge_mhz = fit.voltage_ridge_mhz if fit.voltage_ridge_mhz is not None else fit.ridge_mhz
    ridge, parameters, scales = _fitted(clocks, power, ridge_mhz)
    nearest = int(settable[np.argmin(np.abs(settable - ridge))])
    if verbose:
        for clock, value in zip(clocks, power, strict=True):
            say(f"{label}: {value:.1f} W at {clock:.0f} MHz")
        say(f"{label}: ridge {ridge:.0f} MHz, nearest settable clock {nearest} MHz")
    return nearest, clocks, power, parameters, scales


def get_frequency_range_around_ridge(
    ridge_frequency: float,
    all_frequencies: npt.ArrayLike,
    freq_range: Any,
    number_of_freqs: Any,
    verbose: bool = False,
) -> list[float]:
    """Choose clocks around the ridge.

    Parameters
    ----------
    ridge_frequency : float
        In MHz.
    all_frequencies : array_like, shape (n,)
        Settable clocks in MHz.
    freq_range : float
        In per cent of the ridge, to either side.
    number_of_freqs : int
        How many points are spread evenly in that range.
    verbose : bool, optional
        Print the choice.

    Returns
    -------
    list of float
        The settable clocks nearest to these points, in MHz.
    """
    share, clocks = int(freq_range) / 100.0, np.asarray(all_frequencies)
    wanted = np.linspace((1 - share) * ridge_frequency, (1 + share) * ridge_frequency, int(number_of_freqs))
    chosen: list[float] = np.unique([clocks[np.argmin(np.abs(clocks - value))] for value in wanted]).tolist()
    if verbose:
        say(f"clocks to tune: {', '.join(f'{item:g}' for item in chosen)} MHz")
    return chosen


# --- inside -----------------------------------------------------------------------------------------------------------


def _relation(board: Gpu, n_samples: int) -> Points:
    """Observed clocks in MHz and power in W of a board."""
    from ..engine.models.sweep import sweep_clocks

    with closing(surroundings().guard(board)) as guard:
        return sweep_clocks(board, guard, points=n_samples).points


def _refuse(**given: object) -> None:
    """Raise InputError if any of these unsupported options is used."""
    for name, value in given.items():
        if value:
            raise InputError(f"{name} is not supported", "kernel_tuner.energy", f"leave {name} out")


class PythonKernel:
    """A kernel to be called with its arguments. Each call compiles what is not kept, and launches in a new process."""

    def __init__(
        self,
        kernel_name: str,
        kernel_string: Any,
        problem_size: Any,
        arguments: Sequence[Any],
        params: Mapping[str, Any] | None = None,
        inputs: Sequence[bool] | None = None,
        outputs: Sequence[bool] | None = None,
        device: int = 0,
        platform: int = 0,
        block_size_names: Sequence[str] | None = None,
        grid_div_x: Any = None,
        grid_div_y: Any = None,
        grid_div_z: Any = None,
        verbose: bool = True,
        lang: str | None = None,
        results_file: str | None = None,
    ) -> None:
        """`params` win over those that `store_results` wrote to `results_file` for this board and problem.

        `inputs` are the arguments that a call brings, by default all; the others stay as the call before left them.

        `outputs` are those that it returns, by default all arrays. One of CuPy, PyCUDA, Numba or PyTorch is not
        returned, but holds after a call what the kernel has written. Raises InputError.
        """
        for name, given in (("inputs", inputs), ("outputs", outputs)):
            if given is not None and len(given) != len(arguments):
                what = f"it has {len(given)} entries, and there are {len(arguments)} arguments"
                raise InputError(what, name, "give one for each")
        if results_file is not None:
            results = stored_results.TuneResults(results_file)
            with board_of(None, device) as board:
                params = {**results.get_best_config(board.info.name, problem_size), **(params or {})}
        self.params = dict(params or {})
        self._inputs = list(inputs or [True] * len(arguments))
        self._outputs = list(outputs or [True] * len(arguments))
        self._held = list(arguments)
        self._kernel = (kernel_name, kernel_string, problem_size)
        self._options = {
            "device": device,
            "platform": platform,
            "block_size_names": block_size_names,
            "grid_div_x": grid_div_x,
            "grid_div_y": grid_div_y,
            "grid_div_z": grid_div_z,
            "lang": lang,
            "quiet": True,
        }

    def run_kernel(self, args: Sequence[Any]) -> list[Any]:
        """Launch the kernel once.

        Parameters
        ----------
        args : sequence
            All arguments of the kernel, in order.

        Returns
        -------
        list
            The outputs, always as a list. An array of CuPy, PyCUDA, Numba or PyTorch is not among them: it is written
            to.

        Raises
        ------
        InputError
            If the number of arguments is another one, and as `run_kernel` of a script does.
        WattridgeError
            As `run_kernel` of a script does.
        """
        if len(args) != len(self._held):
            what = f"it is called with {len(args)} arguments instead of {len(self._held)}"
            raise InputError(what, self._kernel[0], "give all of them")
        given = [
            arg if brought or not isinstance(held, np.ndarray) else held
            for arg, held, brought in zip(args, self._held, self._inputs, strict=True)
        ]
        name, source, size = self._kernel
        self._held = run_kernel(name, source, size, given, self.params, **self._options)
        returned = []
        for index, (arg, written, wanted) in enumerate(zip(args, self._held, self._outputs, strict=True)):
            if not wanted or not isinstance(written, np.ndarray):
                continue
            if isinstance(arg, np.ndarray) or not write_back(arg, written, f"arguments[{index}]"):
                returned.append(written)
        return returned

    def __call__(self, *args: Any) -> list[Any]:
        """As `run_kernel` with these arguments."""
        return self.run_kernel(args)


VERSION: Final = "1.5.0"  # whose signatures these are
_NAME: Final = "kernel_tuner"
_WATT: Final = 5  # between two power limits
_OBSERVERS: Final = {
    name: item for name, item in vars(observers).items() if name.endswith("Observer") and name != "MeterObserver"
}


def get_nvml_gr_clocks(device: int, n: int | None = None, quiet: bool = False) -> dict[str, list[int]]:
    """The graphics clocks of a board as a parameter. Nothing is set.

    Parameters
    ----------
    device : int
        The board.
    n : int or None, optional
        Most clocks, spread evenly over the list; None for all.
    quiet : bool, optional
        No effect.

    Returns
    -------
    dict
        'nvml_gr_clock' with clocks in MHz, the highest first.
    """
    clocks = _board_clocks(device, "graphics_clocks_mhz")
    places = np.ceil(np.linspace(0, len(clocks) - 1, n or len(clocks))).astype(int)
    return {"nvml_gr_clock": clocks if n is None or n > len(clocks) else [clocks[place] for place in places]}


def get_nvml_mem_clocks(device: int, n: int | None = None, quiet: bool = False) -> dict[str, list[int]]:
    """The memory clocks of a board as a parameter. Nothing is set.

    Parameters
    ----------
    device : int
        The board.
    n : int or None, optional
        About how many clocks, each so many-th of the list; None for all.
    quiet : bool, optional
        No effect.

    Returns
    -------
    dict
        'nvml_mem_clock' with clocks in MHz, the highest first.
    """
    clocks = _board_clocks(device, "memory_clocks_mhz")
    return {"nvml_mem_clock": clocks[:: len(clocks) // n] if n and len(clocks) > n else clocks}


def get_nvml_pwr_limits(device: int, n: int | None = None, quiet: bool = False) -> dict[str, list[int]]:
    """Power limits of a board as a parameter, multiples of 5 W. Nothing is set.

    Parameters
    ----------
    device : int
        The board.
    n : int or None, optional
        Most limits, spread evenly over the range; None for all.
    quiet : bool, optional
        No effect.

    Returns
    -------
    dict
        'nvml_pwr_limit' with limits in W, ascending.

    Raises
    ------
    InputError
        If the board does not report the range of its power limit.
    """
    with kernel_tuner.board_of(None, device) as board:
        limit = board.info.power_limit
    if limit.minimum_w is None or limit.maximum_w is None:
        raise InputError("the board does not report the range of its power limit", board.info.label, "list limits")
    count = int((limit.maximum_w - limit.minimum_w) / _WATT) + 1 if n is None else n
    limits = np.unique(_WATT * np.round(np.linspace(limit.minimum_w, limit.maximum_w, count) / _WATT))
    return {"nvml_pwr_limit": [int(value) for value in limits]}


def get_idle_power(device: int, n: int = 5, sleep_s: float = 0.1) -> float:
    """The mean power of a board on which nothing of the script's runs.

    Parameters
    ----------
    device : int
        The board.
    n : int, optional
        How many times `sleep_s` it is watched for.
    sleep_s : float, optional
        In s.

    Returns
    -------
    float
        In W.

    Raises
    ------
    SensorError
        If the board cannot be opened.
    WattridgeError
        If it reports no power.
    """
    with measuring.measure(surroundings().gpu or str(device)) as block:
        time.sleep(n * sleep_s)
    if block.unknown:
        raise WattridgeError(block.unknown, "get_idle_power", "see: wattridge gpus")
    return float(block.mean_power_w)


def get_config_string(
    params: Mapping[str, Any], keys: Sequence[str] | None = None, units: Mapping[str, str] | None = None
) -> str:
    """A configuration in one line, numbers to three places.

    Parameters
    ----------
    params : mapping
        Values by name.
    keys : sequence of str or None, optional
        Names to show; None for all.
    units : mapping of str or None, optional
        Unit that follows each value, by name; None for none.

    Returns
    -------
    str
        'name=value', separated by commas.
    """

    def text(value: Any, name: str) -> str:
        unit = "" if isinstance(value, tuned.ErrorConfig) else (units or {}).get(name, "")
        return f"{value:.3f}{unit}" if isinstance(value, float) else f"{value}{unit}"

    return ", ".join(f"{name}={text(value, name)}" for name, value in params.items() if not keys or name in keys)


def get_best_config(
    results: Sequence[Mapping[str, Any]], objective: str, objective_higher_is_better: bool = False
) -> Mapping[str, Any]:
    """The best of the results that worked.

    Parameters
    ----------
    results : sequence of mapping
        Results of `tune_kernel`.
    objective : str
        The figure that decides.
    objective_higher_is_better : bool, optional
        Whether the highest is the best.

    Returns
    -------
    mapping
        One of the results.

    Raises
    ------
    InputError
        If no result that worked has the figure.
    """
    worked = [result for result in results if "__error__" not in result and objective in result]
    if not worked:
        raise InputError(f"no result has a {objective}", "get_best_config", "look at the errors in the results")
    return (max if objective_higher_is_better else min)(worked, key=lambda result: result[objective])


class BadInput(InputError, ValueError, NotImplementedError):
    """What a script gave wrongly, as Kernel Tuner's scripts catch it."""


def _with_value_errors(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except InputError as error:
            raise BadInput(error.what, error.where, error.remedy) from None

    return call


def _named(*items: Any) -> dict[str, Any]:
    return {item.__name__: item for item in items}


_CALLS: Final[tuple[Callable[..., Any], ...]] = (
    kernel_tuner.tune_kernel,
    kernel_tuner.run_kernel,
    cached.tune_cache,
    cached.tune_kernel_T1,
)
_INTERFACE: Final = _named(*map(_with_value_errors, _CALLS))
_STORED: Final = _named(stored_results.store_results, stored_results.create_device_targets)
_NVML: Final = _named(
    observers.NVMLObserver, get_nvml_gr_clocks, get_nvml_mem_clocks, get_nvml_pwr_limits, get_idle_power
)
# What each module offers.
_MODULES: Final[Mapping[str, Mapping[str, Any]]] = {
    _NAME: {"__version__": VERSION, **_INTERFACE, **_STORED},
    "interface": {**_INTERFACE, "strategy_map": {name: name for name in (*STRATEGIES, "minimize")}},
    "observers": _OBSERVERS,
    "observers.observer": _OBSERVERS,
    "observers.nvml": _NVML,
    "observers.register": _named(observers.RegisterObserver),
    "observers.powersensor": _named(observers.PowerSensorObserver),
    "observers.pmt": _named(observers.PMTObserver),
    "observers.ncu": _named(observers.NCUObserver),
    "observers.tegra": _named(observers.TegraObserver),
    "nvml": _NVML,
    "integration": {**_STORED, **_named(stored_results.TuneResults)},
    "searchspace": _named(Searchspace),
    "strategies.common": _named(own_strategies.CostFunc),
    "strategies.wrapper": _named(own_strategies.OptAlg, own_strategies.OptAlgWrapper),
    "file_utils": _named(stored_results.store_output_file, stored_results.store_metadata_file),
    "util": {
        **_named(get_config_string, get_best_config, cached.read_cache, own_strategies.StopCriterionReached),
        **tuned.FAILURES,
    },
    "accuracy": _named(accuracy.Tunable, accuracy.TunablePrecision, accuracy.AccuracyObserver),
    "kernelbuilder": _named(PythonKernel),
    "energy": {},
    "energy.energy": _named(
        *(create_power_frequency_model, get_frequency_power_relation_fp32, fit_power_frequency_model),
        *(estimated_voltage, estimated_power, get_frequency_range_around_ridge),
    ),
    "strategies": {name: name for name in (*STRATEGIES, "minimize")},
    "utils": {},
}


@contextmanager
def standing_for_kernel_tuner() -> Iterator[None]:
    """Within it, `import kernel_tuner` gives this, whether the real one is installed or not."""
    before, found = _taken_out(), list(sys.meta_path)
    stand_in_from_now_on()
    try:
        yield
    finally:
        sys.meta_path[:] = found
        _taken_out()
        sys.modules.update(before)


def stand_in_from_now_on() -> ModuleType:
    """The module that `import kernel_tuner` gives from now on."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        _taken_out()
        sys.meta_path.insert(0, _Finder())
    return import_module(_NAME)


def _taken_out() -> dict[str, ModuleType]:
    return {name: sys.modules.pop(name) for name in list(sys.modules) if _is_ours(name)}


def _is_ours(name: str) -> bool:
    return name == _NAME or name.startswith(f"{_NAME}.")


class _Finder(MetaPathFinder, Loader):
    """Makes each module of the tree when it is imported."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        return ModuleSpec(name, self, is_package=True) if _is_ours(name) else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _StandIn(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        vars(module).update(_MODULES.get(module.__name__.removeprefix(f"{_NAME}."), {}))


class _StandIn(ModuleType):
    """Refuses what it does not have."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if f"{self.__name__}.{name}".removeprefix(f"{_NAME}.") in _MODULES:
            return import_module(f"{self.__name__}.{name}")
        offered = _MODULES.get(self.__name__.removeprefix(f"{_NAME}."), {})
        remedy = f"it has {', '.join(offered)}" if offered else "run the script with Kernel Tuner itself"
        raise InputError(f"{self.__name__}.{name} is not available here", "kernel-tuner", remedy)


def _board_clocks(device: int, what: str) -> list[int]:
    with kernel_tuner.board_of(None, device) as board:
        return sorted(getattr(board, what)(), reverse=True)
