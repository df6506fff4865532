"""Units and words of headings, for whatever reads a table or a log: `resources/headings.toml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Any, Final

from .paths import resources

_TABLE: Final[Mapping[str, Any]] = tomllib.loads((resources() / "headings.toml").read_text("utf-8"))


def _listed(text: str) -> frozenset[str]:
    return frozenset(" ".join(heading.split()) for heading in text.split(","))


UNITS: Final[Mapping[str, tuple[str, float]]] = {  # -> the quantity, and the factor to s, J, W, MHz, mV, °C, % or MiB
    unit: (quantity, float(factor))
    for quantity, by_factor in _TABLE["units"].items()
    for factor, units in by_factor.items()
    for unit in units.split()
}
WORDS: Final[Mapping[str, frozenset[str]]] = {kind: frozenset(t.split()) for kind, t in _TABLE["words"].items()}
REQUESTED: Final = tuple(_TABLE["words"]["requested"].split())  # the plainest first
HEADINGS: Final[Mapping[str, frozenset[str]]] = {kind: _listed(text) for kind, text in _TABLE["headings"].items()}
PATTERNS: Final = {name: re.compile(text) for name, text in _TABLE["patterns"].items()}
LOG_ROLES: Final = {name: role for role, text in _TABLE["log"]["roles"].items() for name in _listed(text)}
LOG_PATTERNS: Final = {name: re.compile(text) for name, text in _TABLE["log"].items() if isinstance(text, str)}
CHANNELS: Final = {name: re.compile(text) for name, text in _TABLE["log"]["channels"].items()}  # the first that fits
LOG_TOOLS: Final = {tool: re.compile(text, re.MULTILINE) for tool, text in _TABLE["log"]["tools"].items()}
LOG_UNITS: Final[Mapping[str, str]] = _TABLE["log"]["units"]  # of a tool's headings that name none
LOG_NOTES: Final[Mapping[str, str]] = _TABLE["log"]["notes"]
BOARDS: Final = {name: kind for kind, text in _TABLE["log"]["boards"].items() for name in _listed(text)}
