"""Helion kernels by energy: the public name of `scripting.helion`."""

from .scripting.helion import Autotuner, Tuning, autotuner

__all__ = ["Autotuner", "Tuning", "autotuner"]
