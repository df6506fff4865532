"""The arms that an energy-aware search is compared in: the same strategy, seed and first candidates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

# What each gives the strategy `energy_aware`. Only what is measured, and what parents are chosen by, differs.
ARMS: Final[Mapping[str, Mapping[str, Any]]] = {
    "k search": {},
    "everything measured": {"least_k": 1},
    "latency only": {"aim": "time"},
}
