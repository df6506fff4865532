"""Configurations as numbers, for models that learn from them: sizes as they are, their products and ratios, and words
as yes or no.

What matters to a GPU is often a product or ratio of sizes (threads of a block, work of a thread); a tree finds one
sooner where it is a column of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Final

import numpy as np
import numpy.typing as npt

from .search_space import Parameter, Rows, SearchSpace

Floats = npt.NDArray[np.float64]

MOST_PAIRS: Final = 30  # of sizes multiplied and divided, those with the most values first
MOST_WORDS: Final = 16  # of a parameter that get a column; the others share none


class RowNumbers:
    """The rows of a space as numbers. A column that does not vary is left out.

    `names` are those of the columns: `tile` for a number, `layout=row` for a word, `ln a*b` and `ln a/b` for pairs.
    """

    def __init__(self, space: SearchSpace) -> None:
        self._codes = space.codes
        varying = [(at, each) for at, each in enumerate(space.parameters) if len(each.values) > 1]
        self._tables: list[tuple[int, Floats]] = []  # a column of the codes, and the numbers of its values
        self._pairs: list[tuple[int, Floats, int, Floats]] = []  # two columns, and the logarithms of their values
        names: list[str] = []
        for at, parameter in varying:
            for name, numbers in _columns(parameter):
                names.append(name)
                self._tables.append((at, numbers))
        sizes = [(at, parameter.name, logs) for at, parameter in varying if (logs := _logs(parameter)) is not None]
        pairs = sorted(combinations(sizes, 2), key=lambda pair: -len(pair[0][2]) * len(pair[1][2]))
        for (one, one_name, one_logs), (other, other_name, other_logs) in pairs[:MOST_PAIRS]:
            names += [f"ln {one_name}*{other_name}", f"ln {one_name}/{other_name}"]
            self._pairs += [(one, one_logs, other, other_logs), (one, one_logs, other, -other_logs)]
        self.names = tuple(names)

    def of(self, rows: Sequence[int] | Rows) -> Floats:
        """The numbers of rows, shape (rows, names)."""
        codes = self._codes[np.asarray(rows, dtype=np.int64)]
        columns = [numbers[codes[:, at]] for at, numbers in self._tables]
        columns += [a[codes[:, one]] + b[codes[:, other]] for one, a, other, b in self._pairs]
        return np.column_stack(columns) if columns else np.empty((len(codes), 0))


def _columns(parameter: Parameter) -> list[tuple[str, Floats]]:
    """The columns of one parameter, by its values: one of numbers, or one for each word."""
    values = parameter.values
    if not any(isinstance(value, str) for value in values):
        return [(parameter.name, np.array([float(value) for value in values]))]
    words = list(dict.fromkeys(values))[:MOST_WORDS]
    return [(f"{parameter.name}={word}", np.array([float(value == word) for value in values])) for word in words]


def _logs(parameter: Parameter) -> Floats | None:
    """The logarithms of a parameter's values where all of at least three are above 0."""
    values = [value for value in parameter.values if not isinstance(value, str)]
    if len(values) < max(3, len(parameter.values)) or parameter.device_setting or not all(v > 0 for v in values):
        return None
    logs: Floats = np.log(np.array([float(value) for value in values]))
    return logs
