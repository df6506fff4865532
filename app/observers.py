"""Observers of kernels, as Kernel Tuner's: the public name of `scripting.observers`."""

from .scripting.observers import (
    BenchmarkObserver,
    ContinuousObserver,
    IterationObserver,
    NCUObserver,
    NVMLObserver,
    OutputObserver,
    PMTObserver,
    PowerSensorObserver,
    PrologueObserver,
    RegisterObserver,
    TegraObserver,
)

__all__ = [
    "BenchmarkObserver",
    "ContinuousObserver",
    "IterationObserver",
    "NCUObserver",
    "NVMLObserver",
    "OutputObserver",
    "PMTObserver",
    "PowerSensorObserver",
    "PrologueObserver",
    "RegisterObserver",
    "TegraObserver",
]
