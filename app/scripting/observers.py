"""Observers of kernels, with the methods that Kernel Tuner's have: what a script watches while its kernels run.

An observer that a script defines has functions of its own, so its kernels are launched in the script's process, and a
kernel that faults takes it along. `NVMLObserver` and `RegisterObserver` only name what is measured in any case, and
`PowerSensorObserver`, `PMTObserver` and `TegraObserver` the meters that are read beside the board.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from ..base.errors import InputError
from ..sensors.meters.ina import KIND, SYSFS, rails
from ..sensors.nvml.devfreq import ZONES, integrated_gpu, thermal_zone

# What NVMLObserver can be asked for, and what a measurement here calls it.
NVML_OBSERVABLES: Final[Mapping[str, str]] = {
    "nvml_power": "power_w",
    "nvml_energy": "energy_j",
    "core_freq": "observed_clock_mhz",
    "mem_freq": "observed_memory_clock_mhz",
    "temperature": "temperature_c",
    "gr_voltage": "core_voltage_mv",
    "power_readings": "power_w",  # single ones, beside their mean
}
PMT_METERS: Final[Mapping[str, str]] = {  # by PMT's names, as `--meter` has them; '' for the board's sensor
    "powersensor2": "powersensor2",
    "powersensor3": "powersensor3",
    "rapl": "rapl",
    "likwid": "pmt:likwid",
    "nvidia": "",
    "rocm": "",
}

TEGRA_OBSERVABLES: Final = ("core_freq", "tegra_temp", "tegra_power", "tegra_energy")
_CONTINUOUS_S: Final = 1.0


class BenchmarkObserver(ABC):
    """Watches every launch that is timed. `get_results` is asked once per configuration, after the last launch."""

    dev: Any = None  # the device: name, num_regs of the present kernel, env
    watches_launches: bool = True  # so that they take place in the script's process

    def register_device(self, dev: Any) -> None:
        """Called once, before the first configuration.

        Parameters
        ----------
        dev : object
            The device, with `name`, `num_regs` of the present kernel and `env`.
        """
        self.dev = dev

    def register_configuration(self, params: Mapping[str, Any]) -> None:  # noqa: B027
        """Called before each configuration.

        Parameters
        ----------
        params : mapping
            Its parameters, by Kernel Tuner's names.
        """

    def before_start(self) -> None:  # noqa: B027  (an observer defines what it needs)
        """Called before each launch."""

    def after_start(self) -> None:  # noqa: B027
        """Called once the launch is queued."""

    def during(self) -> None:  # noqa: B027
        """Called again and again while the kernel runs."""

    def after_finish(self) -> None:  # noqa: B027
        """Called once the kernel has ended."""

    @abstractmethod
    def get_results(self) -> Mapping[str, Any]:
        """What was observed, by name. Numbers can be objectives and parts of metrics."""


class IterationObserver(BenchmarkObserver):
    """Watches every timed launch, as its base does."""


class PrologueObserver(BenchmarkObserver):
    """Watches one launch of its own, before those that are timed."""


class ContinuousObserver(BenchmarkObserver):
    """Watches launches of its own, one after the other for `continuous_duration` seconds, after those that are timed.

    `results` holds what those gave, by then.
    """

    results: Mapping[str, Any] | None = None
    continuous_duration: float = 1.0


class OutputObserver(BenchmarkObserver):
    """Is shown what each kernel has written."""

    @abstractmethod
    def process_output(self, answer: Sequence[Any] | None, output: Sequence[Any]) -> None:
        """Called before the launches that are timed.

        Parameters
        ----------
        answer : sequence or None
            The answer of the script; None if it gives none.
        output : sequence
            What a first launch has written, one entry for each argument; None for one that is no output.
        """


class MeterObserver(BenchmarkObserver):
    """Names figures of the board or of meters beside it, which are read as `--meter` reads them."""

    selectors: tuple[str, ...] = ()
    counters: tuple[str, ...] = ()
    observables: tuple[str, ...] = ()
    scales: Mapping[str, float] = MappingProxyType({})  # of those whose unit is a smaller one than ours
    device: Any = None
    window_s: float = 0.0  # of each measurement, at least

    def get_results(self) -> Mapping[str, Any]:
        """Nothing by itself: a measurement has the figures."""
        return {}


def _require_known(names: Iterable[str], known: Collection[str], who: str) -> None:
    for name in names:
        if name not in known:
            raise InputError(f"'{name}' cannot be observed", who, f"known: {', '.join(known)}")


class NVMLObserver(MeterObserver):
    """Names what is reported of the board; it is measured here by the board's power source, and never set."""

    def __init__(
        self,
        observables: Sequence[str],
        device: int | None = None,
        save_all: bool = False,
        nvidia_smi_fallback: str | None = None,
        use_locked_clocks: bool = False,
        continuous_duration: float = _CONTINUOUS_S,
    ) -> None:
        """Raises InputError for an observable that is not known, and for what is not done here.

        Each energy measurement is at least `continuous_duration` seconds long, where that is more than the default.
        The board that is measured is the one that runs the kernel, which is said where `device` is another; clocks are
        locked wherever the board allows it, whatever `use_locked_clocks` says.
        """
        if not 0 < continuous_duration < math.inf:
            raise InputError(f"continuous_duration is {continuous_duration!r}", "NVMLObserver", "give seconds, as 1.0")
        _require_known(observables, NVML_OBSERVABLES, "NVMLObserver")
        if save_all:
            raise InputError("save_all keeps single readings, which are not kept here", "NVMLObserver", "leave it out")
        if nvidia_smi_fallback:
            remedy = "leave it out: clocks and limits are set with --allow-control, by the helper"
            raise InputError("nvidia_smi_fallback would set the board by sudo", "NVMLObserver", remedy)
        self.observables, self.device = tuple(observables), device
        self.window_s = float(continuous_duration) if continuous_duration > _CONTINUOUS_S else 0.0


class RegisterObserver(BenchmarkObserver):
    """Reports the registers of each kernel's threads, as `num_regs`."""

    def get_results(self) -> Mapping[str, Any]:
        """Nothing by itself: a measurement has the figure."""
        return {}


class PowerSensorObserver(MeterObserver):
    """Energy and power by a PowerSensor3 beside the board: `ps_energy` in J and `ps_power` in W."""

    def __init__(self, observables: Sequence[str] | None = None, device: str | None = None) -> None:
        """`device` is its port, which is found where there is one alone. Raises InputError."""
        self.observables = tuple(observables or ("ps_energy",))
        _require_known(self.observables, ("ps_energy", "ps_power"), "PowerSensorObserver")
        self.selectors = (f"powersensor3:{device or ''}",)


class PMTObserver(MeterObserver):
    """Energy and power by each meter that is named, as `NAME_energy` in J and `NAME_power` in W.

    For `nvidia` and `rocm` these are figures of the board's own sensor.
    """

    def __init__(
        self, observable: Any = None, use_continuous_observer: bool = False, continuous_duration: float = _CONTINUOUS_S
    ) -> None:
        """`observable` is a name, a list of names or of pairs with a device, or a dict of these. Raises InputError.

        Energy is always that of a window of many launches, whatever `use_continuous_observer` says.
        """
        pairs = [observable] if isinstance(observable, str | None) else observable
        pairs = pairs.items() if isinstance(pairs, Mapping) else pairs
        named: dict[Any, Any] = dict(pair if isinstance(pair, tuple) else (pair, None) for pair in pairs)
        _require_known(named, PMT_METERS, "PMTObserver")
        chosen = ((PMT_METERS[name], device) for name, device in named.items() if PMT_METERS[name])
        self.selectors = tuple(kind if ":" in kind else f"{kind}:{of or ''}" for kind, of in chosen)
        self.observables = tuple(f"{name}_{what}" for name in named for what in ("energy", "power"))
        self.window_s = float(continuous_duration) if continuous_duration > _CONTINUOUS_S else 0.0


class NCUObserver(MeterObserver):
    """Hardware counters by Nsight Compute, or of a simulated board: one launch of each kernel, between measurements."""

    def __init__(self, metrics: Sequence[str] | None = None, device: int = 0) -> None:
        """`metrics` are Nsight Compute's names; figures are in base units. Raises InputError for what is no name."""
        self.counters, self.device = tuple(metrics or ()), device or None
        if isinstance(metrics, str) or not all(re.fullmatch(r"[a-z0-9_.]+", name) for name in self.counters or [""]):
            raise InputError(f"metrics is {metrics!r}", "NCUObserver", "give a list of names: ncu --query-metrics")


class TegraObserver(MeterObserver):
    """What Linux reports of a Jetson's GPU: `core_freq` in Hz, `tegra_temp` in degrees Celsius.

    `tegra_power` in W and `tegra_energy` in J are of the first rail with GPU in its name, which may feed more.
    """

    scales = MappingProxyType({"core_freq": 1e6})

    def __init__(
        self, observables: Sequence[str], save_all: bool = False, power_path: Any = "", temp_path: Any = "", *,
        sysfs: Path = SYSFS,
    ) -> None:  # fmt: skip
        """Raises InputError for what is not known or not there; clocks are never set. `sysfs` stands for /sys."""
        _require_known(observables, TEGRA_OBSERVABLES, "TegraObserver")
        names, where, wanted = [rail.name for rail in rails(sysfs)], sysfs / "class", set(observables)
        rail = next((name for name in names if "GPU" in name), "")
        powers = wanted & {"tegra_power", "tegra_energy"}
        no_rail = f"no rail in {where / 'hwmon'} has GPU in its name; there is {', '.join(names) or 'none'}"
        no_zone = f"no zone in {where / 'thermal'} is of type {' or '.join(ZONES)}"
        for so, what, remedy in (
            (save_all, "save_all keeps single readings, which are not kept here", "leave it out"),
            (power_path or temp_path, "power_path and temp_path are found here", "leave them out"),
            (not integrated_gpu(sysfs), f"no GPU of a Jetson is in {where / 'devfreq'}", "leave it out"),
            ("tegra_temp" in wanted and not thermal_zone(sysfs), no_zone, "leave tegra_temp out"),
            (powers and not rail, no_rail, "leave tegra_power and tegra_energy out: see --meter ina"),
        ):
            if so:
                raise InputError(what, "TegraObserver", remedy)
        self.observables, self.selectors = tuple(observables), (f"{KIND}:{rail}",) if powers else ()
