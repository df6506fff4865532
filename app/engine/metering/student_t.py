"""Student's t: how much wider a 95 % interval is where the spread itself is known from few values."""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=256)
def student_t(degrees: int) -> float:
    """The 97.5 % quantile with so many degrees of freedom, at least 1."""
    from scipy.special import stdtrit  # imported late: the window opens without it

    return float(stdtrit(degrees, 0.975))
