"""Observers of kernels, as Kernel Tuner's: the public name of `scripting.observers`."""

from .scripting.observers import BenchmarkObserver as BenchmarkObserver
from .scripting.observers import ContinuousObserver as ContinuousObserver
from .scripting.observers import IterationObserver as IterationObserver
from .scripting.observers import NCUObserver as NCUObserver
from .scripting.observers import NVMLObserver as NVMLObserver
from .scripting.observers import OutputObserver as OutputObserver
from .scripting.observers import PMTObserver as PMTObserver
from .scripting.observers import PowerSensorObserver as PowerSensorObserver
from .scripting.observers import PrologueObserver as PrologueObserver
from .scripting.observers import RegisterObserver as RegisterObserver
from .scripting.observers import TegraObserver as TegraObserver
