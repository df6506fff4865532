"""The unit in which a named figure is stored: from its name, or from what its file says of it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress

from ...numbers import UNITS_OF_ENDINGS, unit_of_name
from .names import DEVICE_SETTINGS

# Names that are their own unit: GFLOP/s, TFLOPS/J, GB/s.
_UNIT_AS_NAME = re.compile(r"[kMGTPE]?(FLOPS?|OPS?|i?B|bit)(/[A-Za-z]+)*|[A-Za-z]+/[A-Za-z]+")
_HAS_UNIT = re.compile(r" \[[^\]\[]*\]$")
# What a heading would be taken for something else by: a unit, the end of an interval, quotes.
_ODD = re.compile(r'^"|\]$|% (?:low|high)\)$|[\x00-\x1f]')


def unit_of(name: str, units: Mapping[str, str]) -> str:
    """'s' for time_s, 'J' for ps_energy where `units` says so, 'GFLOPS/W' for itself; '' where there is none."""
    if name in units:
        return units[name]
    if _UNIT_AS_NAME.fullmatch(name):
        return name
    return unit_of_name(DEVICE_SETTINGS.get(name, name))


def heading(name: str, units: Mapping[str, str]) -> str:
    """The name with its unit in brackets where the name does not tell it: 'ps_energy [J]'.

    A name that would be misread is put in quotes, so that `name_of_heading` gives every name back.
    """
    unit = unit_of(name, units)
    tells = unit == name or name.endswith(tuple(UNITS_OF_ENDINGS))
    written = json.dumps(name, ensure_ascii=False) if _ODD.search(name) else name
    return f"{written} [{unit}]" if unit and not tells and "]" not in unit else written


def name_of_heading(text: str) -> str:
    """The name in a heading."""
    name = text.rpartition(" [")[0] if _HAS_UNIT.search(text) else text
    if name.startswith('"'):
        with suppress(ValueError):
            return str(json.loads(name))
    return name


def unit_of_heading(text: str) -> str:
    """The unit in a heading; empty where it has none."""
    return text.rpartition(" [")[2].removesuffix("]") if _HAS_UNIT.search(text) else ""
