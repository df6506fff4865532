"""Where ROCm's libraries may lie."""

from __future__ import annotations

import os
from collections.abc import Iterator


def library_places(name: str) -> Iterator[str]:
    """Where a library may lie, in the order in which AMD's own packages look for it."""
    root = os.environ.get("ROCM_HOME") or os.environ.get("ROCM_PATH")
    if root:
        yield os.path.join(root, "lib", name)
    yield name
    yield f"/opt/rocm/lib/{name}"
