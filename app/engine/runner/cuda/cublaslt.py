"""cuBLASLt by its C functions: the algorithms that the library has for a product, and launching one of them.

The library's heuristic lists algorithms by what it expects of them; what it takes by itself is the first. Others differ
from a listed one in one of its settings, as far as the library's own check allows. An algorithm is known by its nine
settings, which are the library's numbers and mean the same for each release that has them.

The library has matrices column by column: of c = a b it computes the transpose, b' a'.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import zip_longest
from typing import Any, Final, NamedTuple, Self

from ...specification.operator_shapes import Operator
from .toolkit import load_first

WORKSPACE: Final = 64 << 20  # bytes
LISTED: Final = 32  # algorithms that the heuristic is asked for
MOST: Final = 200  # with those that differ from them in one setting
TYPES: Final = {"fp32": 0, "fp16": 2, "bf16": 14}  # cudaDataType
_COMPUTE_32F, _R_32F = 68, 0
_TRANSA, _TRANSB, _EPILOGUE, _BIAS = 3, 4, 7, 8  # of a description
_BATCH, _APART = 5, 6  # of a layout
_WORKSPACE: Final = 1  # of a preference
EPILOGUES: Final = {"": 1, "bias": 4, "gelu": 32, "bias+gelu": 36}
_TILES, _STAGES, _CUSTOM_MOST, _SPLITS, _SWIZZLES = 6, 13, 7, 0, 2  # capabilities of an algorithm
_CLUSTERS: Final = range(2, 20)  # 1x1x1 and those after it
_SPLIT: Final = (1, 2, 3, 4, 6, 8, 12, 16)


@lru_cache(maxsize=1)
def cublaslt() -> ctypes.CDLL | None:
    """The library, or None if there is none."""
    return load_first("cublasLt", ("13", "12", "11"), "cublasLtMatmulAlgoGetHeuristic")


def _tile_shapes() -> dict[int, tuple[int, int]]:
    """Tiles by the numbers of cublasLtMatmulTile_t: a first list, then what two regular ones have beyond, and four."""
    first = (
        *((8, 8), (8, 16), (16, 8), (8, 32), (16, 16), (32, 8), (8, 64), (16, 32), (32, 16), (64, 8), (32, 32)),
        *((32, 64), (64, 32), (32, 128), (64, 64), (128, 32), (64, 128), (128, 64), (64, 256), (128, 128)),
        *((256, 64), (64, 512), (128, 256), (256, 128), (512, 64), (64, 96), (96, 64), (96, 128), (128, 160)),
        *((160, 128), (192, 128), (128, 192), (128, 96), (32, 256), (256, 32)),
    )
    by_8, by_64 = range(8, 769, 8), range(64, 769, 64)
    then = ((high, wide) for high in by_8 for wide in by_64 if high * wide <= 3 * 2**14)
    last = ((high, wide) for high in by_64 for wide in by_8 if high * wide <= 2**16)
    shapes = dict.fromkeys((*first, *then, *last, (256, 512), (256, 1024), (512, 512), (512, 1024)))
    return dict(enumerate(shapes, start=1))


_TILE_SHAPES: Final = _tile_shapes()


class Algorithm(NamedTuple):
    """The settings of an algorithm, in the order and with the numbers of cublasLtMatmulAlgoConfigAttributes_t."""

    id: int
    tile: int = 0
    split_k: int = 1
    reduction: int = 0
    swizzle: int = 0
    custom: int = 0
    stages: int = 0
    inner: int = 0
    cluster: int = 0

    @property
    def word(self) -> str:
        """As a configuration names it: 66.20.1.0.0.0.0.0.3."""
        return ".".join(map(str, self))

    @property
    def tile_shape(self) -> tuple[int, int]:
        """Columns and rows of c that a block computes; 0 where the number of its tile is not known."""
        return _TILE_SHAPES.get(self.tile, (0, 0))

    def from_tile(self, tile: int) -> float:
        """Return the distance of the tile of another number from its own, in doublings of the sides together."""
        shapes = self.tile_shape, _TILE_SHAPES.get(tile, (0, 0))
        if not all(map(all, shapes)):
            return math.inf
        return sum(abs(math.log2(theirs / own)) for own, theirs in zip(*shapes, strict=True))

    @property
    def stage_depth(self) -> int:
        """Numbers along the depth in a step; 0 where it is not said."""
        depths = (*(16,) * 6, *(32,) * 6, *(64,) * 6, *(128,) * 6, 32, 8, 16, 8, 0, 0, 8, 8, 16, 32, 64, 128, 256)
        return depths[self.stages - 1] if 0 < self.stages <= len(depths) else 0

    @property
    def stage_count(self) -> int:
        """Buffers for steps; 0 where the library chooses."""
        counts = (*(1, 2, 3, 4, 5, 6) * 4, 10, 4, 10, 5, 0, 0, 3)
        return counts[self.stages - 1] if 0 < self.stages <= len(counts) else 0

    @classmethod
    def of_word(cls, word: str) -> Self:
        """The reverse of `word`. Raises ValueError."""
        numbers = [int(part) for part in word.split(".")]
        if len(numbers) != len(cls._fields):
            raise ValueError(f"'{word}' is no algorithm of cuBLASLt")
        return cls(*numbers)


_WIDTHS: Final = {"inner": ctypes.c_uint16, "cluster": ctypes.c_uint16}  # the others have 32 bits


class _Opaque(ctypes.Structure):
    """cublasLtMatmulAlgo_t"""

    _fields_ = (("data", ctypes.c_uint64 * 8),)


class _Found(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t"""

    _fields_ = (
        ("algorithm", _Opaque),
        ("workspace", ctypes.c_size_t),
        ("state", ctypes.c_int),
        ("waves", ctypes.c_float),
        ("reserved", ctypes.c_int * 4),
    )


class Product:
    """A matrix product of one shape, layout and precision. What the library refuses raises OSError."""

    def __init__(self, library: ctypes.CDLL, operator: Operator) -> None:
        self._library = library
        self._number = TYPES[operator.precision]
        self._epilogue = operator.epilogue
        if operator.epilogue not in EPILOGUES:
            raise OSError(f"cuBLASLt has no epilogue '{operator.epilogue}'")
        self._handle = self._made("cublasLtCreate")
        self._description = self._made("cublasLtMatmulDescCreate", _COMPUTE_32F, _R_32F)
        batch, rows, columns, depth = operator.product
        left, right = operator.transposed
        for attribute, transposed in ((_TRANSA, right), (_TRANSB, left)):
            self._describe(attribute, ctypes.c_int32(transposed))
        self._describe(_EPILOGUE, ctypes.c_int32(EPILOGUES[operator.epilogue]))
        self._b = self._layout(*((depth, columns) if right else (columns, depth)), batch)
        self._a = self._layout(*((rows, depth) if left else (depth, rows)), batch)
        self._c = self._layout(columns, rows, batch)

    @property
    def version(self) -> str:
        self._library.cublasLtGetVersion.restype = ctypes.c_size_t
        major, rest = divmod(int(self._library.cublasLtGetVersion()), 10000)
        return f"cuBLASLt {major}.{rest // 100}.{rest % 100}"

    def listed(self) -> list[Algorithm]:
        """The heuristic's list, what the library takes by itself first."""
        preference = self._made("cublasLtMatmulPreferenceCreate")
        self._set("cublasLtMatmulPreferenceSetAttribute", preference, _WORKSPACE, ctypes.c_size_t(WORKSPACE))
        found, count = (_Found * LISTED)(), ctypes.c_int()
        shapes = (self._description, self._b, self._a, self._c, self._c)
        try:
            self._call("cublasLtMatmulAlgoGetHeuristic", self._handle, *shapes, preference, LISTED, found, _at(count))
        finally:
            self._library.cublasLtMatmulPreferenceDestroy(preference)
        return list(dict.fromkeys(_settings(self._library, each.algorithm) for each in found[: count.value]))

    def offered(self, most: int = MOST) -> list[Algorithm]:
        """The heuristic's list, and then those that differ from one of it in one setting and pass the check."""
        listed = self.listed()
        offered = dict.fromkeys(listed)
        nearby = [self._nearby(algorithm) for algorithm in listed]
        while nearby and len(offered) < most:  # of each in turn, so that the first ones have no more than others
            for others in list(nearby):
                other = next((each for each in others if each not in offered and self.allows(each)), None)
                if other is None:
                    nearby.remove(others)
                elif len(offered) < most:
                    offered[other] = None
        return list(offered)

    def allows(self, algorithm: Algorithm) -> bool:
        """Whether the library has it for this product, within the workspace."""
        with suppress(OSError):
            return int(self._checked(algorithm).workspace) <= WORKSPACE
        return False

    def launcher(self, algorithm: Algorithm, addresses: Sequence[int], workspace: int, stream: int) -> Any:
        """A function that queues it on device addresses: c, a, b and, where the epilogue has one, the bias."""
        found = self._checked(algorithm)
        c, a, b, *bias = (ctypes.c_void_p(address) for address in addresses)
        if "bias" in self._epilogue:
            self._describe(_BIAS, bias[0])
        one, zero = ctypes.c_float(1.0), ctypes.c_float(0.0)
        words = (
            *(self._handle, self._description, _at(one), b, self._b, a, self._a, _at(zero), c, self._c, c, self._c),
            *(_at(found.algorithm), ctypes.c_void_p(workspace), ctypes.c_size_t(WORKSPACE), ctypes.c_void_p(stream)),
        )
        kept = found, one, zero  # what the words point to

        def queue(kept: Any = kept) -> None:
            self._call("cublasLtMatmul", *words)

        return queue

    def close(self) -> None:
        for layout in (self._a, self._b, self._c):
            self._library.cublasLtMatrixLayoutDestroy(layout)
        self._library.cublasLtMatmulDescDestroy(self._description)
        self._library.cublasLtDestroy(self._handle)

    # --- inside -----------------------------------------------------------------------------------------------------

    def _checked(self, algorithm: Algorithm) -> _Found:
        """The algorithm as the library has it. Raises OSError where this release or board has none."""
        made, found = _Opaque(), _Found()
        types = (_COMPUTE_32F, _R_32F, *(self._number,) * 4)
        self._call("cublasLtMatmulAlgoInit", self._handle, *types, algorithm.id, _at(made))
        for place, (name, value) in enumerate(zip(Algorithm._fields[1:], algorithm[1:], strict=True), start=1):
            kind = _WIDTHS.get(name, ctypes.c_uint32)
            self._set("cublasLtMatmulAlgoConfigSetAttribute", _at(made), place, kind(value))
        shapes = (self._description, self._b, self._a, self._c, self._c)
        self._call("cublasLtMatmulAlgoCheck", self._handle, *shapes, _at(made), _at(found))
        found.algorithm = made
        return found

    def _nearby(self, algorithm: Algorithm) -> Iterator[Algorithm]:
        """Those that differ in one setting, each setting in turn: tiles are hundreds, and the nearest come first."""
        made = _Opaque()
        types = (_COMPUTE_32F, _R_32F, *(self._number,) * 4)
        self._call("cublasLtMatmulAlgoInit", self._handle, *types, algorithm.id, _at(made))
        settings: dict[str, Sequence[int]] = {
            "custom": range(1 + next(iter(self._capabilities(made, _CUSTOM_MOST)), 0)),
            "cluster": _CLUSTERS if algorithm.cluster else (),
            "tile": sorted(self._capabilities(made, _TILES), key=algorithm.from_tile),
            "swizzle": range(1 + next(iter(self._capabilities(made, _SWIZZLES)), 0)),
            "stages": self._capabilities(made, _STAGES),
        }
        others = [[algorithm._replace(**{name: value}) for value in values] for name, values in settings.items()]
        if any(self._capabilities(made, _SPLITS)):
            others.append([algorithm._replace(split_k=n, reduction=2 if n > 1 else 0) for n in _SPLIT])
        for together in zip_longest(*others):
            yield from (other for other in together if other is not None)

    def _capabilities(self, algorithm: _Opaque, which: int) -> list[int]:
        values, written = (ctypes.c_uint32 * 1024)(), ctypes.c_size_t()
        size = ctypes.c_size_t(ctypes.sizeof(values) if which in (_TILES, _STAGES) else 4)
        status = self._library.cublasLtMatmulAlgoCapGetAttribute(_at(algorithm), which, values, size, _at(written))
        return [] if status else list(values[: written.value // 4])

    def _layout(self, rows: int, columns: int, batch: int) -> ctypes.c_void_p:
        extents = (ctypes.c_uint64(rows), ctypes.c_uint64(columns), ctypes.c_int64(rows))
        made = self._made("cublasLtMatrixLayoutCreate", self._number, *extents)
        self._set("cublasLtMatrixLayoutSetAttribute", made, _BATCH, ctypes.c_int32(batch))
        self._set("cublasLtMatrixLayoutSetAttribute", made, _APART, ctypes.c_int64(rows * columns))
        return made

    def _describe(self, attribute: int, value: Any) -> None:
        self._set("cublasLtMatmulDescSetAttribute", self._description, attribute, value)

    def _set(self, function: str, of: Any, attribute: int, value: Any) -> None:
        self._call(function, of, attribute, _at(value), ctypes.c_size_t(ctypes.sizeof(value)))

    def _made(self, function: str, *arguments: Any) -> ctypes.c_void_p:
        made = ctypes.c_void_p()
        self._call(function, _at(made), *arguments)
        return made

    def _call(self, function: str, *arguments: Any) -> None:
        status = getattr(self._library, function)(*arguments)
        if status:
            raise OSError(f"{function} failed with status {status}")


def _settings(library: ctypes.CDLL, algorithm: _Opaque) -> Algorithm:
    """Of an algorithm that the library made; what this release does not know is 0."""
    values = []
    for place, name in enumerate(Algorithm._fields):
        value, written = _WIDTHS.get(name, ctypes.c_uint32)(), ctypes.c_size_t()
        size = ctypes.c_size_t(ctypes.sizeof(value))
        library.cublasLtMatmulAlgoConfigGetAttribute(_at(algorithm), place, _at(value), size, _at(written))
        values.append(int(value.value))
    return Algorithm(*values)


_at = ctypes.byref
