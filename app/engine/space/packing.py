"""A search space as text and bytes: its parameters as JSON, its codes compressed."""

from __future__ import annotations

import json
import zlib

import numpy as np

from .search_space import Parameter, SearchSpace


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
