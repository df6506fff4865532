"""Restrictions that are functions of a script: the space without the configurations that they refuse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ...errors import InputError
from ..measurement import Configuration
from .search_space import SearchSpace, compacted

_AT_ONCE = 4096  # configurations


def filtered(space: SearchSpace, accepts: Callable[[Configuration], object], name: str, where: str) -> SearchSpace:
    """The rows that `accepts`; its calls are in the order of the rows. Raises InputError where none is left.

    `name` is what the restriction is called among those that removed something.
    """
    kept = np.zeros(space.size, dtype=np.bool_)
    for start in range(0, space.size, _AT_ONCE):
        rows = range(start, min(space.size, start + _AT_ONCE))
        kept[rows.start : rows.stop] = [bool(accepts(each)) for each in space.configurations(rows)]
    if not kept.any():
        raise InputError(f"{name} leaves no configuration", where, "look at what it returns")
    parameters, codes = compacted(space.parameters, space.codes[kept])
    removed = {**space.removed_by, name: int(space.size - kept.sum())}
    return replace(space, parameters=parameters, codes=codes, removed_by=removed)
