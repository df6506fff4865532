"""Observers of kernels, with the methods that Kernel Tuner's have: what a script watches while its kernels run.

An observer that a script defines has functions of its own, so its kernels are launched in the script's process, and a
kernel that faults takes it along. `NVMLObserver` and `RegisterObserver` only name what is measured in any case.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ..base.errors import InputError

# What NVMLObserver can be asked for, and what a measurement here calls it.
NVML_OBSERVABLES: Final[Mapping[str, str]] = {
    "nvml_power": "power_w",
    "nvml_energy": "energy_j",
    "core_freq": "observed_clock_mhz",
    "mem_freq": "observed_memory_clock_mhz",
    "temperature": "temperature_c",
    "gr_voltage": "core_voltage_mv",
}

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


class NVMLObserver(BenchmarkObserver):
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
            remedy = "give seconds, as 1.0"
            raise InputError(f"continuous_duration is {continuous_duration!r}", "NVMLObserver", remedy)
        for name in observables:
            if name not in NVML_OBSERVABLES:
                raise InputError(
                    f"'{name}' cannot be observed", "NVMLObserver", f"known: {', '.join(NVML_OBSERVABLES)}"
                )
        if save_all:
            remedy = "leave it out: figures come with their intervals"
            raise InputError("save_all keeps single readings, and they are not kept here", "NVMLObserver", remedy)
        if nvidia_smi_fallback:
            remedy = "leave it out: clocks and limits are set with --allow-control, by the helper"
            raise InputError("nvidia_smi_fallback would set the board by sudo", "NVMLObserver", remedy)
        self.observables, self.device = tuple(observables), device
        self.window_s = float(continuous_duration) if continuous_duration > _CONTINUOUS_S else 0.0

    def get_results(self) -> Mapping[str, Any]:
        """Nothing by itself: a measurement has the figures."""
        return {}


class RegisterObserver(BenchmarkObserver):
    """Reports the registers of each kernel's threads, as `num_regs`."""

    def get_results(self) -> Mapping[str, Any]:
        """Nothing by itself: a measurement has the figure."""
        return {}


DECLARED: Final = (NVMLObserver, RegisterObserver)  # they run no code of the script's


class _NotHere(BenchmarkObserver):
    """An observer of a meter that is read in another way here. Making one raises InputError."""

    remedy = "leave it out"

    def __init__(self, *_: Any, **__: Any) -> None:
        raise InputError(f"{type(self).__name__} is not available here", "observers", self.remedy)

    def get_results(self) -> Mapping[str, Any]:
        return {}


class PowerSensorObserver(_NotHere):
    """PowerSensor2 and 3."""


class PMTObserver(_NotHere):
    """The Power Measurement Toolkit."""


class NCUObserver(_NotHere):
    """Nsight Compute's counters."""

    remedy = "profile the chosen configuration with ncu: counters and energy are not measured in the same launches"


class TegraObserver(_NotHere):
    """Boards of the Tegra family."""
