"""Stands for the module `kernel_tuner` while a script runs that imports it.

What scripts use of it is here under its name; anything else is refused in one line when it is asked for.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final

import numpy as np

from .. import observers
from ..errors import InputError
from . import accuracy, figures, kernel_tuner, power_frequency, stored_results
from .python_kernel import PythonKernel
from .strategies import STRATEGIES

VERSION: Final = "1.5.0"  # whose signatures these are
_NAME: Final = "kernel_tuner"
_WATT: Final = 5  # between two power limits
_FAILURES: Final = ("ErrorConfig", "InvalidConfig", "CompilationFailedConfig", "RuntimeFailedConfig")
_OBSERVERS: Final = {
    name: getattr(observers, name)
    for name in (
        *("BenchmarkObserver", "IterationObserver", "ContinuousObserver", "OutputObserver", "PrologueObserver"),
        *("NVMLObserver", "RegisterObserver", "PowerSensorObserver", "PMTObserver", "NCUObserver", "TegraObserver"),
    )
}


def get_nvml_gr_clocks(device: int, n: int | None = None, quiet: bool = False) -> dict[str, list[int]]:
    """The graphics clocks of a board as a parameter, the highest first, at most `n` of them. Nothing is set."""
    clocks = _board_clocks(device, "graphics_clocks_mhz")
    places = np.ceil(np.linspace(0, len(clocks) - 1, n or len(clocks))).astype(int)
    return {"nvml_gr_clock": clocks if n is None or n > len(clocks) else [clocks[at] for at in places]}


def get_nvml_mem_clocks(device: int, n: int | None = None, quiet: bool = False) -> dict[str, list[int]]:
    """The memory clocks of a board as a parameter, the highest first, each so many-th for about `n`. Nothing is set."""
    clocks = _board_clocks(device, "memory_clocks_mhz")
    return {"nvml_mem_clock": clocks[:: len(clocks) // n] if n and len(clocks) > n else clocks}


def get_nvml_pwr_limits(device: int, n: int | None = None, quiet: bool = False) -> dict[str, list[int]]:
    """Power limits of a board as a parameter, multiples of 5 W: all, or at most `n` of them. Nothing is set."""
    with kernel_tuner.board_of(None, device) as board:
        limit = board.info.power_limit
    if limit.minimum_w is None or limit.maximum_w is None:
        raise InputError("the board does not report the range of its power limit", board.info.label, "list limits")
    count = int((limit.maximum_w - limit.minimum_w) / _WATT) + 1 if n is None else n
    limits = np.unique(_WATT * np.round(np.linspace(limit.minimum_w, limit.maximum_w, count) / _WATT))
    return {"nvml_pwr_limit": [int(each) for each in limits]}


def get_config_string(
    params: Mapping[str, Any], keys: Sequence[str] | None = None, units: Mapping[str, str] | None = None
) -> str:
    """A configuration in one line, numbers to three places."""

    def said(value: Any, name: str) -> str:
        unit = "" if isinstance(value, figures.ErrorConfig) else (units or {}).get(name, "")
        return f"{value:.3f}{unit}" if isinstance(value, float) else f"{value}{unit}"

    return ", ".join(f"{name}={said(value, name)}" for name, value in params.items() if not keys or name in keys)


def get_best_config(
    results: Sequence[Mapping[str, Any]], objective: str, objective_higher_is_better: bool = False
) -> Mapping[str, Any]:
    """The best of the results that worked. Raises InputError where none did."""
    worked = [each for each in results if "__error__" not in each and objective in each]
    if not worked:
        raise InputError(f"no result has a {objective}", "get_best_config", "look at the errors in the results")
    return (max if objective_higher_is_better else min)(worked, key=lambda each: each[objective])


# What each module offers.
_MODULES: Final[Mapping[str, Mapping[str, Any]]] = {
    _NAME: {
        "__version__": VERSION,
        "tune_kernel": kernel_tuner.tune_kernel,
        "run_kernel": kernel_tuner.run_kernel,
        "store_results": stored_results.store_results,
        "create_device_targets": stored_results.create_device_targets,
    },
    "interface": {"tune_kernel": kernel_tuner.tune_kernel, "run_kernel": kernel_tuner.run_kernel},
    "observers": _OBSERVERS,
    "observers.observer": {name: each for name, each in _OBSERVERS.items() if name.endswith("Observer")},
    "observers.nvml": {
        "NVMLObserver": observers.NVMLObserver,
        "get_nvml_gr_clocks": get_nvml_gr_clocks,
        "get_nvml_mem_clocks": get_nvml_mem_clocks,
        "get_nvml_pwr_limits": get_nvml_pwr_limits,
    },
    "observers.register": {"RegisterObserver": observers.RegisterObserver},
    "observers.powersensor": {"PowerSensorObserver": observers.PowerSensorObserver},
    "observers.pmt": {"PMTObserver": observers.PMTObserver},
    "observers.ncu": {"NCUObserver": observers.NCUObserver},
    "observers.tegra": {"TegraObserver": observers.TegraObserver},
    "nvml": {
        "NVMLObserver": observers.NVMLObserver,
        "get_nvml_gr_clocks": get_nvml_gr_clocks,
        "get_nvml_mem_clocks": get_nvml_mem_clocks,
        "get_nvml_pwr_limits": get_nvml_pwr_limits,
    },
    "integration": {
        "store_results": stored_results.store_results,
        "create_device_targets": stored_results.create_device_targets,
    },
    "file_utils": {
        "store_output_file": stored_results.store_output_file,
        "store_metadata_file": stored_results.store_metadata_file,
    },
    "util": {
        "get_config_string": get_config_string,
        "get_best_config": get_best_config,
        **{name: getattr(figures, name) for name in _FAILURES},
    },
    "accuracy": {
        "Tunable": accuracy.Tunable,
        "TunablePrecision": accuracy.TunablePrecision,
        "AccuracyObserver": accuracy.AccuracyObserver,
    },
    "kernelbuilder": {"PythonKernel": PythonKernel},
    "energy": {},
    "energy.energy": {
        name: getattr(power_frequency, name)
        for name in (
            *("create_power_frequency_model", "get_frequency_power_relation_fp32", "fit_power_frequency_model"),
            *("estimated_voltage", "estimated_power", "get_frequency_range_around_ridge"),
        )
    },
    "strategies": {name: name for name in (*STRATEGIES, "minimize")},
    "utils": {},
}


@contextmanager
def standing_for_kernel_tuner() -> Iterator[None]:
    """Within it, `import kernel_tuner` gives this, whether the real one is installed or not."""
    before = {name: sys.modules.pop(name) for name in list(sys.modules) if _is_ours(name)}
    finder = _Finder()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if _is_ours(name)]:
            del sys.modules[name]
        sys.modules.update(before)


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
