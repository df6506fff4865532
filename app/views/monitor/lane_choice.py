"""`LaneChoice`: which lanes are shown, in which order, and on which scale; kept as text."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .lanes import AT_FIRST, Lane, ShownLane

Range = tuple[float, float]
_MOST = 100  # lanes: the text may have been edited by hand


@dataclass(frozen=True, slots=True)
class LaneChoice:
    """Lanes by their titles. One that `order` does not name comes last; one that was never switched is as at first."""

    order: tuple[str, ...] = ()
    switched: Mapping[str, bool] = field(default_factory=dict)  # shown or hidden by the user
    scales: Mapping[str, Range] = field(default_factory=dict)  # fixed ones, by `scale_name`

    def shows(self, title: str) -> bool:
        """Whether a lane is shown."""
        return self.switched.get(title, title in AT_FIRST)

    def scale(self, lane: Lane) -> Range | None:
        """The ends of a fixed axis; None where it follows the values."""
        return self.scales.get(scale_name(lane))

    def in_order(self, lanes: Sequence[ShownLane]) -> tuple[ShownLane, ...]:
        """Every lane, hidden ones too."""
        place = {title: number for number, title in enumerate(self.order)}
        return tuple(sorted(lanes, key=lambda shown: place.get(shown.lane.title, _MOST)))

    def arrange(self, lanes: Sequence[ShownLane]) -> tuple[ShownLane, ...]:
        """The lanes that are shown, in order."""
        return tuple(shown for shown in self.in_order(lanes) if self.shows(shown.lane.title))

    def switch(self, title: str, shown: bool) -> LaneChoice:
        """Show or hide a lane."""
        return replace(self, switched={**self.switched, title: shown})

    def reorder(self, titles: Sequence[str]) -> LaneChoice:
        """Put the lanes in that order."""
        return replace(self, order=tuple(titles))

    def fix(self, lane: Lane, ends: Range | None) -> LaneChoice:
        """Fix a lane's axis; None: it follows the values again. Ends that are no range change nothing."""
        others = {name: kept for name, kept in self.scales.items() if name != scale_name(lane)}
        if ends is not None and not _is_range(ends):
            return self
        return replace(self, scales={**others, scale_name(lane): ends} if ends is not None else others)

    def text(self) -> str:
        """What is kept."""
        return json.dumps({"order": self.order, "switched": dict(self.switched), "scales": dict(self.scales)})

    @staticmethod
    def of(text: str) -> LaneChoice:
        """The choice that was kept; where the text is none, everything is as at first."""
        try:
            kept: Any = json.loads(text)
            order = [str(title) for title in kept["order"]][:_MOST]
            switched = {str(title): bool(shown) for title, shown in kept["switched"].items()}
            scales = {str(name): (float(low), float(high)) for name, (low, high) in kept["scales"].items()}
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return LaneChoice()
        return LaneChoice(tuple(order), switched, {name: ends for name, ends in scales.items() if _is_range(ends)})


def scale_name(lane: Lane) -> str:
    """The lane of a measured and of an estimated voltage are one, their scales are two."""
    return f"{lane.title}, {lane.unit}"


def _is_range(ends: Range) -> bool:
    return all(math.isfinite(end) and abs(end) < 1e9 for end in ends) and ends[0] < ends[1]
