"""`Health`: how far the measurements of a session can be relied on, as four shares, each with a threshold."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Final

from ...base.formatting import percent
from ...base.records import figure

# Below it one configuration in ten takes part in no comparison by the objective: the best may be among them.
LEAST_OBJECTIVE: Final = 0.9
# Below it, in one window in ten too few samples were seen to know how far its power can be off.
LEAST_COVERAGE: Final = 0.9
# A window ends once its mean power is known within ±1 %: a board that changed by twice that moves the ranking.
MOST_DRIFT: Final = 0.02
# 95 %, of short windows of one load. Boards whose power wanders stay within 2.5 %: at twice that, something interferes.
MOST_SCATTER: Final = 0.05


@dataclass(frozen=True, slots=True)
class Health:
    """The health of a session so far. What is not known is NaN, and turns nothing amber."""

    IN_JSON: ClassVar = ("healthy", "remarks")

    objective: str = ""  # name of the figure that the session is about
    objective_share: float = field(
        default=math.nan, metadata=figure(meaning="of the configurations that worked, those that have the objective")
    )
    coverage: float = field(
        default=math.nan,
        metadata=figure(meaning="of the time windows, those with enough power samples for an interval"),
    )
    drift: float = field(default=math.nan, metadata=figure(meaning="of a fixed load over the session, relative"))
    repeatability: float = field(
        default=math.nan, metadata=figure(meaning="of power within the session, 95 %, relative")
    )
    missing: str = ""  # how many lack the objective, and why, where most do: there is no result then

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is amber, in words; empty of a healthy session."""
        return tuple(words for _, words in self._amber())

    @property
    def healthy(self) -> bool:
        """Whether nothing is amber."""
        return not self.remarks

    @property
    def known(self) -> bool:
        """Whether anything is known of it yet."""
        return any(map(math.isfinite, (self.objective_share, self.coverage, self.drift, self.repeatability)))

    @property
    def words(self) -> str:
        """A few words: 'healthy', or what is amber."""
        return "; ".join(self.remarks) or ("healthy" if self.known else "not known yet")

    @property
    def short(self) -> str:
        """What is amber, two words each."""
        return ", ".join(short for short, _ in self._amber())

    @property
    def details(self) -> str:
        """Every share with its threshold."""
        rows = (
            (f"{self.objective} is known in", self.objective_share, f"at least {percent(LEAST_OBJECTIVE)}"),
            ("Windows with enough power samples", self.coverage, f"at least {percent(LEAST_COVERAGE)}"),
            ("Drift of a fixed load", self.drift, f"at most ±{percent(MOST_DRIFT)}"),
            ("Repeatability of power", self.repeatability, f"at most ±{percent(MOST_SCATTER)}"),
        )
        return "\n".join(
            f"{what}: {percent(share) if math.isfinite(share) else 'not known'} ({bound})"
            for what, share, bound in rows
        )

    def _amber(self) -> Iterator[tuple[str, str]]:
        """In two words, and in a few."""
        if self.missing or self.objective_share < LEAST_OBJECTIVE:
            yield (
                "objective missing",
                self.missing or f"{self.objective} is known in only {percent(self.objective_share)}",
            )
        if self.coverage < LEAST_COVERAGE:
            yield "few samples", f"too few power samples in {percent(1.0 - self.coverage)} of the windows"
        if abs(self.drift) > MOST_DRIFT:
            yield "drift", f"the board drifted by {percent(self.drift)}"
        if self.repeatability > MOST_SCATTER:
            yield "scatter", f"power repeats within ±{percent(self.repeatability)} only"
