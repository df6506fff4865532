"""Triton kernels by energy: the public name of `scripting.triton`."""

from .scripting.triton import Bench, Score, bench, tune

__all__ = ["Bench", "Score", "bench", "tune"]
