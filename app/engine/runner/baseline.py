"""What the vendor's library takes for a session's operator: a reference beside its results, never one of them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ...errors import InputError
from ...numbers import finite_or_none

_KEY: Final = "vendor_library"  # of a session's origin


@dataclass(frozen=True, slots=True)
class Baseline:
    """Measured by the session's own meter, on the same operands; or why it was not."""

    library: str = ""  # its name and version
    values: Mapping[str, float] = field(default_factory=dict)  # as a measurement has them: time_s, energy_j, power_w...
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # 95 %
    why_not: str = ""

    def to_json(self) -> dict[str, Any]:
        """JSON-ready; figures that are not known are null."""
        return {
            "library": self.library or None,
            "values": {name: finite_or_none(value) for name, value in self.values.items()},
            "intervals_95": {name: list(ends) for name, ends in self.intervals.items()},
            "why_not": self.why_not or None,
        }

    def to_origin(self) -> dict[str, str]:
        """As a session keeps it."""
        return {_KEY: json.dumps(self.to_json())}

    @classmethod
    def of_origin(cls, origin: Mapping[str, str]) -> Baseline | None:
        """What a session keeps; None where it has none. Raises InputError where damaged."""
        if _KEY not in origin:
            return None
        try:
            kept = json.loads(origin[_KEY])
            values = {str(name): _number(value) for name, value in kept["values"].items()}
            intervals = {str(name): (float(low), float(high)) for name, (low, high) in kept["intervals_95"].items()}
            library, why_not = kept["library"] or "", kept["why_not"] or ""
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            what = "what the session keeps of the vendor's library is damaged"
            raise InputError(what, _KEY, "measure it again") from None
        return cls(str(library), values, intervals, str(why_not))


def _number(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) else math.nan
