"""`Activity`: what ran on a board and when, as activity records or a trace give it.

Where slices overlap, their time is divided: n kernels that run at once have 1/n of that moment each, since they share
the multiprocessors. Copies and sets divide among themselves in the same way. Beside a kernel they take no time from
it: engines of their own move the data, and what they draw comes on top.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]

KINDS: Final = ("kernel", "copy", "set")


@dataclass(frozen=True, slots=True)
class Activity:
    """The slices of a program on one board, each of a family: all launches of a kernel, say, or all copies of a kind.

    Raises ValueError where the parts do not fit together; `Activity.of` sorts and casts first.

    Attributes
    ----------
    names : tuple of str
        The name of each family, each once.
    kinds : tuple of str
        The kind of each family: one of `KINDS`.
    family : array of int32, shape (n,)
        The family of each slice, as a place in `names`.
    begin_s, end_s : array of float64, shape (n,)
        Begin and end of each slice, s on the clock of the power samples, ascending by begin. They may overlap.
    """

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    family: Ints
    begin_s: Floats
    end_s: Floats

    def __post_init__(self) -> None:
        if len(self.kinds) != len(self.names):
            raise ValueError(f"{len(self.names)} names of families, but {len(self.kinds)} kinds")
        if unknown := sorted(set(self.kinds) - set(KINDS)):
            raise ValueError(f"kind {unknown[0]!r} of a family is none of {', '.join(KINDS)}")
        if len(set(self.names)) != len(self.names):
            twice = next(name for name, count in Counter(self.names).items() if count > 1)
            raise ValueError(f"two families are called {twice!r}")
        if self.family.dtype != np.int32 or self.begin_s.dtype != np.float64 or self.end_s.dtype != np.float64:
            raise ValueError("families are int32, times float64")
        if self.family.ndim != 1 or not self.family.shape == self.begin_s.shape == self.end_s.shape:
            raise ValueError("families, begins and ends are not arrays of one length")
        if len(self.family) and not 0 <= int(self.family.min()) <= int(self.family.max()) < len(self.names):
            raise ValueError("the family of a slice has no name")
        if not (np.isfinite(self.begin_s).all() and np.isfinite(self.end_s).all()):
            raise ValueError("a slice begins or ends at no finite time")
        if (self.end_s < self.begin_s).any():
            raise ValueError("a slice ends before it begins")
        if (self.begin_s[1:] < self.begin_s[:-1]).any():
            raise ValueError("slices are not sorted by their begin")

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        kinds: Sequence[str],
        family: npt.ArrayLike,
        begin_s: npt.ArrayLike,
        end_s: npt.ArrayLike,
    ) -> Activity:
        """Make an activity of slices in any order.

        Parameters
        ----------
        names, kinds : sequence of str
            Name and kind of each family.
        family : array_like of int, shape (n,)
            The family of each slice.
        begin_s, end_s : array_like of float, shape (n,)
            Begin and end of each slice, s on the clock of the power samples.

        Returns
        -------
        Activity
            The slices sorted by begin.

        Raises
        ------
        ValueError
            Where the parts do not fit together.
        """
        begin = np.asarray(begin_s, dtype=np.float64)
        if not begin.shape == np.shape(family) == np.shape(end_s):
            raise ValueError("families, begins and ends are not arrays of one length")
        order = np.argsort(begin, kind="stable")
        sorted_family, sorted_end = (np.asarray(values)[order] for values in (family, end_s))
        return cls(
            tuple(names), tuple(kinds), sorted_family.astype(np.int32), begin[order], sorted_end.astype(np.float64)
        )

    def __len__(self) -> int:
        return len(self.family)

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        """The number of slices of each family, shape (families,)."""
        return np.bincount(self.family, minlength=len(self.names)).astype(np.int64)
