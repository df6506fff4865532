"""`SearchSpace`: the table of valid configurations. A row number is a configuration's name everywhere.

The rows near other rows, and the rows nearest to points, in one sorted table.

A search space as text and bytes: its parameters as JSON, its codes compressed.
"""

from __future__ import annotations

import json
import math
import time
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from ...base.errors import InputError
from ..results.measurement import Configuration, Value
from ..results.settings import UNTOUCHED
from .arithmetic import Column, column_of
from .keys import KeyIndex, smallest_dtype

Rows = npt.NDArray[np.int64]
Reals = npt.NDArray[np.floating]
Neighbourhood = Literal["hamming", "adjacent", "strictly_adjacent"]
MIXED_KERNELS = "different kernels ("  # how the note on a table of several kernels begins
_CANDIDATES = 2**20  # looked up at once
_DRAWS = 30  # samples of which the most even is taken
_JITTER = 1e-4  # of a code, so that ties are broken by chance
_FIRST = 8  # blocks searched before others are ruled out
_SORTED = 256  # blocks put in order at first


class Neighbours:
    """Rows near rows: candidates are looked up by their keys.

    `values` has each axis's values by code; words keep the user's order.
    """

    def __init__(self, codes: npt.NDArray[np.unsignedinteger], index: KeyIndex, values: Sequence[Column]) -> None:
        self._codes = codes
        self._index = index
        self._sizes = [len(column) for column in values]
        self._every_axis = np.repeat(np.arange(len(values), dtype=np.int64), self._sizes)
        self._every_code = np.concatenate([np.arange(size, dtype=np.int64) for size in self._sizes])
        self._below, self._above = _steps(values)
        self._start = np.cumsum([0, *self._sizes[:-1]], dtype=np.int64)  # of each axis, in the arrays above

    def of_rows(self, rows: Rows, kind: Neighbourhood) -> tuple[Rows, Rows]:
        """(at, near): near[k] is a neighbour of rows[at[k]]; `at` ascends."""
        find = {"hamming": self._hamming, "adjacent": self._adjacent, "strictly_adjacent": self._strictly_adjacent}
        candidates = {
            "hamming": len(self._every_code),
            "adjacent": 2 * len(self._sizes),
            "strictly_adjacent": 3 ** min(len(self._sizes), 20),
        }
        step = max(1, _CANDIDATES // candidates[kind])
        parts = [find[kind](rows[start : start + step], start) for start in range(0, len(rows), step)]
        if not parts:
            return rows[:0], rows[:0]
        return np.concatenate([at for at, _ in parts]), np.concatenate([near for _, near in parts])

    def _hamming(self, rows: Rows, start: int) -> tuple[Rows, Rows]:
        codes = self._codes[rows].astype(np.int64)
        code = np.where(codes[:, self._every_axis] == self._every_code, -1, self._every_code)
        return self._changed(rows, codes, self._every_axis, code, start)

    def _adjacent(self, rows: Rows, start: int) -> tuple[Rows, Rows]:
        codes = self._codes[rows].astype(np.int64)
        place = codes + self._start
        code = np.stack([self._below[place], self._above[place]], axis=2).reshape(len(rows), -1)
        return self._changed(rows, codes, np.repeat(np.arange(len(self._sizes)), 2), code, start)

    def _changed(self, rows: Rows, own: Rows, axis: Rows, code: Rows, start: int) -> tuple[Rows, Rows]:
        changed = self._index.find_changed(rows, own, axis, code)
        origins, column = np.nonzero(changed >= 0)
        return origins + start, changed[origins, column]

    def _strictly_adjacent(self, rows: Rows, start: int) -> tuple[Rows, Rows]:
        """Down the tree of codes, axis by axis: only beginnings that some row has are followed."""
        origins, prefix = np.arange(len(rows)), np.zeros(len(rows), dtype=np.int64)
        for axis, first in enumerate(self._start.tolist()):
            own = self._codes[rows[origins], axis].astype(np.int64)
            code = np.stack([self._below[first + own], own, self._above[first + own]], axis=1)
            which, choice = np.nonzero(code >= 0)
            prefix, exists = self._index.extend(prefix[which], axis, code[which, choice])
            origins, prefix = origins[which[exists]], prefix[exists]
        other = prefix != rows[origins]
        return origins[other] + start, prefix[other]


def _steps(values: Sequence[Column]) -> tuple[Rows, Rows]:
    """For each code of each axis, axis after axis: the codes one step below and above in value order, or -1."""
    below: list[Rows] = []
    above: list[Rows] = []
    for column in values:
        order = np.argsort(column, kind="stable") if column.dtype.kind in "bif" else np.arange(len(column))
        down, up = np.full(len(column), -1, dtype=np.int64), np.full(len(column), -1, dtype=np.int64)
        down[order[1:]], up[order[:-1]] = order[:-1], order[1:]
        below.append(down)
        above.append(up)
    return np.concatenate(below), np.concatenate(above)


class NearestRows:
    """The valid rows nearest to points. The distance is Euclidean over the axes' codes, each scaled to 0..1.

    As the table is sorted, rows close to each other in it have much in common: for each block of them, the least and
    the greatest code on every axis are kept. For a point, the blocks that may hold its nearest row are searched, the
    most promising first. That is exact, needs next to no memory, and is as fast as a k-d tree over the whole table.
    """

    def __init__(self, codes: npt.NDArray[np.unsignedinteger], index: KeyIndex, sizes: Sequence[int]) -> None:
        self._codes = codes
        self._index = index
        self._last = np.asarray(sizes, dtype=np.int64) - 1
        self._axes = [axis for axis, size in enumerate(sizes) if size > 1]
        self._length = max(8, math.isqrt(len(codes)) // 16)  # rows of a block
        starts = np.arange(0, len(codes), self._length)
        self._low = np.ascontiguousarray(np.minimum.reduceat(codes, starts, axis=0).T)
        self._high = np.ascontiguousarray(np.maximum.reduceat(codes, starts, axis=0).T)

    def find(self, points: Reals, rng: np.random.Generator | None = None) -> Rows:
        """The nearest row to each point in code space, shape (m, axes) -> (m,); ties by `rng`, else always the same."""
        places = np.array(points, dtype=np.float64)
        if rng is not None:
            places += rng.uniform(-_JITTER, _JITTER, places.shape)
        rounded = np.clip(np.rint(places), 0, self._last).astype(np.int64)
        rows = self._index.find(rounded)
        for index in np.flatnonzero(rows < 0).tolist():
            rows[index] = self._nearest(places[index], rounded[index])
        return rows

    def _nearest(self, place: Reals, rounded: Rows) -> int:
        """The nearest row to one point that is not a row itself when it is rounded."""
        distances = [self._distances(place, axis) for axis in self._axes]
        bound = np.zeros(self._low.shape[1], dtype=np.float32)
        for axis, distance in zip(self._axes, distances, strict=True):
            bound += distance[np.clip(rounded[axis], self._low[axis], self._high[axis])]
        best, row = math.inf, -1
        searched = np.zeros(len(bound), dtype=np.bool_)
        promising = np.argpartition(bound, _SORTED)[:_SORTED] if len(bound) > _SORTED else np.arange(len(bound))
        while len(promising):
            order = promising[np.argsort(bound[promising])]
            start, count = 0, _FIRST
            while start < len(order) and bound[order[start]] < best:
                blocks = order[start : start + count]
                rows = (blocks[:, None] * self._length + np.arange(self._length)).ravel()
                rows = rows[rows < len(self._codes)]
                codes = self._codes[rows]
                total = np.zeros(len(rows), dtype=np.float32)
                for axis, distance in zip(self._axes, distances, strict=True):
                    total += distance[codes[:, axis]]
                nearest = int(total.argmin())
                if total[nearest] < best:
                    best, row = float(total[nearest]), int(rows[nearest])
                searched[blocks] = True
                start, count = start + count, min(2 * count, 1024)
            promising = np.flatnonzero((bound < best) & ~searched)
        return row

    def _distances(self, place: Reals, axis: int) -> npt.NDArray[np.float32]:
        """The squared distance of each code of an axis to the point along it."""
        steps = (np.arange(self._last[axis] + 1) - place[axis]) / self._last[axis]
        squared: npt.NDArray[np.float32] = np.square(steps).astype(np.float32)
        return squared


__all__ = [
    "MIXED_KERNELS",
    "Neighbourhood",
    "Parameter",
    "PruningStep",
    "Rows",
    "SearchSpace",
    "compacted",
    "joined",
    "pruning_steps",
    "space_and_order",
    "space_of_table",
]
_ROUNDS = 8  # of points that a Latin hypercube draws


@dataclass(frozen=True, slots=True)
class Parameter:
    """One tunable parameter or device setting and every value it takes in the space, in the user's order."""

    name: str
    values: tuple[Value, ...]
    device_setting: bool = False  # a clock or a cap instead of a #define

    @property
    def numbers(self) -> npt.NDArray[np.float64] | None:
        """The values as numbers, shape (n,), NaN for an untouched setting; None if one is another word."""
        kept = [math.nan if value == UNTOUCHED and self.device_setting else value for value in self.values]
        return None if any(isinstance(value, str) for value in kept) else np.array(kept, dtype=np.float64)


@dataclass(frozen=True)
class SearchSpace:
    """Valid configurations as small integer codes, shape (size, parameters), sorted lexicographically by code."""

    parameters: tuple[Parameter, ...]
    codes: npt.NDArray[np.unsignedinteger]
    cartesian: int  # ranges expanded, no restriction
    removed_by: Mapping[str, int] = field(default_factory=dict)  # restriction -> rows it removed, in the order applied
    build_seconds: float = 0.0
    notes: tuple[str, ...] = ()  # assumptions that the user should know, such as an assumed compute capability

    @property
    def size(self) -> int:
        return int(self.codes.shape[0])

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(p.name for p in self.parameters)

    @cached_property
    def axis_sizes(self) -> tuple[int, ...]:
        """How many values each parameter takes."""
        return tuple(len(p.values) for p in self.parameters)

    def __len__(self) -> int:
        return self.size

    def configuration(self, row: int) -> dict[str, Value]:
        """The configuration of a row, parameters in the user's order."""
        return {p.name: p.values[code] for p, code in zip(self.parameters, self.codes[row].tolist(), strict=True)}

    def configurations(self, rows: Sequence[int] | Rows) -> list[dict[str, Value]]:
        """The configurations of many rows."""
        codes = self.codes[np.asarray(rows, dtype=np.int64)]
        columns = [
            [p.values[code] for code in column.tolist()] for p, column in zip(self.parameters, codes.T, strict=True)
        ]
        return [dict(zip(self.names, values, strict=True)) for values in zip(*columns, strict=True)]

    def column(self, name: str, rows: Rows | slice = slice(None)) -> npt.NDArray[np.generic]:
        """The values of one parameter over all rows, shape (size,), or over some."""
        index = self.names.index(name)
        return np.asarray(self._columns_of_values[index][self.codes[rows, index]])

    def numbers(self, name: str, rows: Rows | slice = slice(None)) -> npt.NDArray[np.float64]:
        """The values as numbers, in the shape of `column`: NaN for an untouched setting, of words the places listed."""
        axis = self.names.index(name)
        numbers = self.parameters[axis].numbers
        codes = self.codes[rows, axis]
        return codes.astype(np.float64) if numbers is None else numbers[codes]

    def row_of(self, configuration: Configuration) -> int | None:
        """The row of a configuration, None if it is not in the space. O(log n)."""
        codes: list[int] = []
        for parameter, code_of in zip(self.parameters, self._code_of_value, strict=True):
            code = code_of.get(configuration.get(parameter.name))
            if code is None:
                return None
            codes.append(code)
        row = int(self._index.find(np.asarray([codes], dtype=np.int64))[0])
        return row if row >= 0 else None

    def rows_with(self, values: Configuration) -> Rows:
        """The rows in which these parameters have these values, ascending; none where one never takes its value."""
        left = np.ones(self.size, dtype=bool)
        for name, value in values.items():
            axis = self.names.index(name) if name in self.names else None
            code = None if axis is None else self._code_of_value[axis].get(value)
            if code is None:
                return np.empty(0, dtype=np.int64)
            left &= self.codes[:, axis] == code
        return np.flatnonzero(left)

    def rows_of_codes(self, codes: npt.NDArray[np.integer]) -> Rows:
        """Rows of many code vectors, shape (m, parameters) -> (m,); -1 where not in the space. Vectorised."""
        return self._index.find(np.asarray(codes, dtype=np.int64))

    def neighbours(self, row: int, kind: Neighbourhood = "hamming") -> Rows:
        """The neighbours of one row: see `neighbours_of`."""
        return self._neighbours.of_rows(np.array([row], dtype=np.int64), kind)[1]

    def neighbours_of(self, rows: Sequence[int] | Rows, kind: Neighbourhood = "hamming") -> tuple[Rows, Rows]:
        """The neighbours of many rows: (at, near), where row near[k] is a neighbour of rows[at[k]]; `at` ascends.

        Valid rows that differ in one parameter ('hamming'); by one step in value order, over the values that parameter
        takes in the space, in one ('adjacent'); by at most one such step in any number of them ('strictly_adjacent').
        """
        return self._neighbours.of_rows(np.asarray(rows, dtype=np.int64), kind)

    def sample_latin_hypercube(self, rng: np.random.Generator, count: int) -> Rows:
        """`count` different rows (all where the space is smaller) that spread over the values of every parameter.

        Every axis is cut into `count` strata, each of which holds one point, as if all values were equally likely; the
        points are snapped to the nearest valid rows. Points that snap to a row that is already drawn are drawn again as
        a hypercube of their own; what is missing after some rounds is drawn uniformly, as are shares above a quarter.
        """
        if count * 4 > self.size:
            return rng.permutation(self.size)[:count]
        chosen: dict[int, None] = {}
        for _ in range(_ROUNDS):
            missing = count - len(chosen)
            if not missing:
                break
            strata = np.stack([rng.permutation(missing) for _ in self.axis_sizes], axis=1)
            share = (strata + rng.random(strata.shape)) / missing
            points = share * np.asarray(self.axis_sizes) - 0.5  # code c owns the interval c - 0.5 to c + 0.5
            chosen |= dict.fromkeys(self.nearest_rows(points, rng).tolist())
        while len(chosen) < count:
            chosen |= dict.fromkeys(rng.integers(self.size, size=count - len(chosen)).tolist())
        return rng.permutation(np.fromiter(chosen, dtype=np.int64))

    def sample_evenly(self, rng: np.random.Generator, count: int) -> Rows:
        """`count` different rows (all where the space is smaller) that spread over the values as all rows do.

        Where restrictions leave some values few rows, a Latin hypercube takes these too often, and a search may begin
        worse than by chance (`tests/benchmarks/scores_elsewhere.txt`). Here any row is about equally likely: of some
        uniform samples it is the one whose ranks along the axes are the nearest to equidistant ones, by the sum of
        squares. Where all combinations of values are valid it is a Latin hypercube.

        Parameters
        ----------
        rng : numpy.random.Generator
            Draws the rows.
        count : int
            How many rows to draw.

        Returns
        -------
        array of int, shape (min(count, size),)
            In random order.
        """
        if count * 4 > self.size or self.size == math.prod(self.axis_sizes):
            return self.sample_latin_hypercube(rng, count)
        draws = np.stack([rng.choice(self.size, count, replace=False) for _ in range(_DRAWS)])
        codes, uneven = self.codes[draws], np.zeros(_DRAWS)
        equidistant = (np.arange(count) + 0.5) / count
        for axis, ranks in enumerate(self._ranks):
            uneven += ((np.sort(ranks[codes[:, :, axis]], axis=1) - equidistant) ** 2).sum(axis=1)
        most_even: Rows = draws[np.argmin(uneven)]
        return most_even

    def nearest_rows(self, points: npt.NDArray[np.floating], rng: np.random.Generator | None = None) -> Rows:
        """The valid rows nearest to points in code space, shape (m, parameters) -> (m,).

        Each axis is scaled to 0..1. Ties fall to chance by `rng`, without it always to the same row.
        """
        return self._nearest.find(points, rng)

    def subset(self, rows: Sequence[int] | Rows) -> SearchSpace:
        """The space reduced to those rows, in the same order of rows. Values that no row takes any more are dropped."""
        kept = self.codes[np.unique(np.asarray(rows, dtype=np.int64))]
        parameters, codes = compacted(self.parameters, kept)
        return replace(self, parameters=parameters, codes=codes, removed_by={})

    # --- kept once asked for ----------------------------------------------------------------------------------------

    @cached_property
    def _index(self) -> KeyIndex:
        return KeyIndex(self.codes, self.axis_sizes)

    @cached_property
    def _ranks(self) -> list[npt.NDArray[np.float64]]:
        """For each axis and code the mean rank of its rows in order of the codes, from 0 to 1."""
        shares = [
            np.bincount(column, minlength=n) / self.size
            for column, n in zip(self.codes.T, self.axis_sizes, strict=True)
        ]
        return [np.cumsum(share) - share / 2 for share in shares]

    @cached_property
    def _columns_of_values(self) -> list[npt.NDArray[np.generic]]:
        return [column_of(p.values) for p in self.parameters]

    @cached_property
    def _ordered_columns(self) -> list[npt.NDArray[np.generic]]:
        """The values by which they are in order: numbers where they are, those of an untouched setting last."""
        of_values = zip(self.parameters, self._columns_of_values, strict=True)
        return [p.numbers if UNTOUCHED in p.values and p.numbers is not None else column for p, column in of_values]

    @cached_property
    def _code_of_value(self) -> list[dict[Value | None, int]]:
        return [{value: code for code, value in enumerate(p.values)} for p in self.parameters]

    @cached_property
    def _nearest(self) -> NearestRows:
        return NearestRows(self.codes, self._index, self.axis_sizes)

    @cached_property
    def _neighbours(self) -> Neighbours:
        return Neighbours(self.codes, self._index, self._ordered_columns)


def compacted(
    parameters: tuple[Parameter, ...], codes: npt.NDArray[np.unsignedinteger]
) -> tuple[tuple[Parameter, ...], npt.NDArray[np.unsignedinteger]]:
    """Drop the values that no row takes; the order of values and rows stays."""
    kept: list[Parameter] = []
    codes = codes.copy()
    for j, parameter in enumerate(parameters):
        used = np.bincount(codes[:, j], minlength=len(parameter.values)) > 0
        if not used.all():
            codes[:, j] = (np.cumsum(used) - 1)[codes[:, j]]
        kept.append(replace(parameter, values=tuple(v for v, u in zip(parameter.values, used, strict=True) if u)))
    return tuple(kept), codes.astype(smallest_dtype([len(p.values) for p in kept]), copy=False)


def joined(
    parts: Sequence[SearchSpace],
    given: Mapping[str, object],
    settings: Collection[str],
    missing: Mapping[str, Value] | None = None,
) -> SearchSpace:
    """One space of several; values in the order in which given.

    A parameter that a part lacks has the value that `missing` names for it, else a setting is untouched.
    """
    absent = {name: (missing or {}).get(name, UNTOUCHED) for name in given}
    listed: dict[str, dict[Value, int]] = {}
    for name, order in given.items():
        taken = dict.fromkeys(v for part in parts for p in part.parameters if p.name == name for v in p.values)
        first = [value for value in order if value in taken] if isinstance(order, list | tuple) else []
        unset = [absent[name]] if any(name not in part.names for part in parts) else []
        listed[name] = {value: code for code, value in enumerate(dict.fromkeys([*first, *taken, *unset]))}
    tables = []
    for part in parts:
        columns = []
        for name, code_of in listed.items():
            if name in part.names:
                axis = part.names.index(name)
                codes = np.array([code_of[value] for value in part.parameters[axis].values], dtype=np.uint32)
                columns.append(codes[part.codes[:, axis]])
            else:
                columns.append(np.full(part.size, code_of[absent[name]], dtype=np.uint32))
        tables.append(np.column_stack(columns))
    table = np.concatenate(tables)
    described = tuple(Parameter(name, tuple(code_of), name in settings) for name, code_of in listed.items())
    removed: dict[str, int] = {}
    for part in parts:
        for text, count in part.removed_by.items():
            removed[text] = removed.get(text, 0) + count
    codes = table[np.lexsort(table.T[::-1])].astype(smallest_dtype([len(p.values) for p in described]))
    return SearchSpace(described, codes, sum(part.cartesian for part in parts), removed)


def space_of_table(parameters: Mapping[str, Sequence[Value]], rows: Sequence[Sequence[Value]]) -> SearchSpace:
    """The space of exactly these rows (values in the order of `parameters`); a row given twice counts once."""
    return space_and_order(parameters, rows)[0]


def space_and_order(
    parameters: Mapping[str, Sequence[Value]], rows: Sequence[Sequence[Value]]
) -> tuple[SearchSpace, npt.NDArray[np.int64]]:
    """The space of exactly these rows, as `space_of_table`, and the index in `rows` of each row of the space."""
    start = time.perf_counter()
    if not rows:
        raise InputError("the table has no rows", "parameters", "it needs at least one configuration")
    described: list[Parameter] = []
    codes = np.empty((len(rows), len(parameters)), dtype=np.uint32)
    for axis, ((name, listed), column) in enumerate(zip(parameters.items(), zip(*rows, strict=True), strict=True)):
        values = tuple(dict.fromkeys([*listed, *column]))
        place = {value: code for code, value in enumerate(values)}
        codes[:, axis] = [place[value] for value in column]
        described.append(Parameter(name, values))
    order = np.lexsort(codes.T[::-1]).astype(np.int64)
    table = codes[order]
    first = np.concatenate([[True], (table[1:] != table[:-1]).any(axis=1)])
    reduced, packed = compacted(tuple(described), table[first])
    cartesian = math.prod(len(parameter.values) for parameter in described)
    return SearchSpace(reduced, packed, cartesian, build_seconds=time.perf_counter() - start), order[first]


@dataclass(frozen=True, slots=True)
class PruningStep:
    """One restriction, and how many combinations there were before and after it."""

    restriction: str
    before: int
    after: int

    @property
    def removed(self) -> int:
        return self.before - self.after

    @property
    def share(self) -> float:
        """The share of what there was before that it removed, 0..1."""
        return self.removed / self.before if self.before else 0.0


def pruning_steps(space: SearchSpace) -> tuple[PruningStep, ...]:
    """From all combinations to the valid ones; empty if that is unknown, as for the space of a recording."""
    steps: list[PruningStep] = []
    left = space.cartesian
    for restriction, removed in space.removed_by.items():
        steps.append(PruningStep(restriction, left, left - removed))
        left -= removed
    return tuple(steps)


def space_to_row(space: SearchSpace) -> tuple[str, bytes]:
    """The parameters as JSON and the codes as compressed bytes (sorted small integers: about a bit each)."""
    described = {
        "parameters": [[p.name, list(p.values), p.device_setting] for p in space.parameters],
        "dtype": space.codes.dtype.str,
        "shape": list(space.codes.shape),
        "cartesian": space.cartesian,
        "removed_by": dict(space.removed_by),
        "build_seconds": space.build_seconds,
        "notes": list(space.notes),
    }
    return json.dumps(described), zlib.compress(np.ascontiguousarray(space.codes).tobytes(), 1)


def space_from_row(text: str, packed: bytes) -> SearchSpace:
    described = json.loads(text)
    codes = np.frombuffer(zlib.decompress(packed), dtype=np.dtype(described["dtype"])).reshape(described["shape"])
    return SearchSpace(
        parameters=tuple(Parameter(name, tuple(values), setting) for name, values, setting in described["parameters"]),
        codes=codes,
        cartesian=described["cartesian"],
        removed_by=described["removed_by"],
        build_seconds=described["build_seconds"],
        notes=tuple(described["notes"]),
    )
