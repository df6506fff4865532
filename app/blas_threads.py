"""Linear algebra on one core: the matrices here are small, and threads that wait for each other on a busy machine cost
a frequency fit seven times its processor time, and the compilers their cores.

NumPy and SciPy read the number when they are imported, from the environment; the user's
programs, which this one starts, get the environment as it was.
"""

from __future__ import annotations

import os

_VARIABLE = "OPENBLAS_NUM_THREADS"
_set_here = False


def use_one_core() -> None:
    """To be called before NumPy is imported. A number that the user has set stays."""
    global _set_here
    if _VARIABLE not in os.environ:
        os.environ[_VARIABLE] = "1"
        _set_here = True


def original_environment() -> dict[str, str]:
    """The environment without what was set here."""
    return {name: value for name, value in os.environ.items() if not (_set_here and name == _VARIABLE)}
