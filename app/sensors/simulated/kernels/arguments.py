"""Reads a kernel's parameters and constants by name, forgiving about which of several usual names is there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ....base.errors import InputError
from ...gpu import Precision

_PRECISIONS: Final[Mapping[str, tuple[Precision, int]]] = {
    "fp16": ("fp16", 2),
    "half": ("fp16", 2),
    "float16": ("fp16", 2),
    "fp32": ("fp32", 4),
    "float": ("fp32", 4),
    "float32": ("fp32", 4),
    "fp64": ("fp64", 8),
    "double": ("fp64", 8),
    "float64": ("fp64", 8),
    "fp16_tensor": ("fp16_tensor", 2),
    "bf16_tensor": ("fp16_tensor", 2),  # costs the same, as far as the boards' figures go
}


class Arguments:
    """Parameters over constants."""

    def __init__(self, values: Mapping[str, object]) -> None:
        self._values = values

    def whole(self, default: int, *names: str, least: int = 1, most: int = 2**40) -> int:
        """The first of these names that has a value: a whole number from `least` to `most`."""
        for name in names:
            if name in self._values:
                value = self._values[name]
                if isinstance(value, (int, float)) and not isinstance(value, bool) and least <= value <= most:
                    whole = int(value)
                    if whole == value:
                        return whole
                raise InputError(
                    f"'{name}' is {value!r}", "kernel profile", f"it must be a whole number from {least} to {most}"
                )
        return default

    def word(self, name: str, default: str) -> str:
        """A value that is a word."""
        return str(self._values.get(name, default))

    def with_values(self, values: Mapping[str, object]) -> Arguments:
        """The same with other values."""
        return Arguments({**self._values, **values})

    def size(self, default: int, most: int = 2**40) -> int:
        """The problem's size, under its usual names."""
        return self.whole(default, "n", "N", "size", most=most)

    def block(self, x: int, y: int) -> tuple[int, int]:
        """The threads of a two-dimensional block."""
        return self.whole(x, "block_size_x", most=4096), self.whole(y, "block_size_y", most=4096)

    def tile(self) -> tuple[int, int]:
        """The outputs of a thread in two dimensions."""
        return self.whole(1, "tile_size_x", most=256), self.whole(1, "tile_size_y", most=256)

    def shared(self, default: bool) -> bool:
        """Whether the kernel uses shared memory."""
        return self.switch(default, "use_shared_memory", "use_shmem", "use_shared")

    def switch(self, default: bool, *names: str) -> bool:
        """The first of these names that has a value: 0 or false is off."""
        for name in names:
            if name in self._values:
                return bool(self._values[name])
        return default

    def precision(self) -> tuple[Precision, int]:
        """Precision and bytes per number, from 'precision' or the C type 'real'; fp32 by default."""
        given = self._values.get("precision", self._values.get("real", "fp32"))
        text = str(given).strip().lower()
        if text not in _PRECISIONS:
            raise InputError(f"precision '{text}' is not known", "kernel profile", f"known: {', '.join(_PRECISIONS)}")
        return _PRECISIONS[text]
