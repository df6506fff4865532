"""References that an operator's configurations are compared with: the vendor's library and the roofline's floor."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TypeVar

from ...base.formatting import number
from ..analysis.quantities import quantity
from ..analysis.tradeoff import tradeoff
from ..models.roofline.operator_floor import OperatorFloor, floor_on
from ..results.measurement import Measurement
from ..runner.kernels.reference import Baseline
from ..specification.operator_shapes import parse_operator
from ..specification.plan import SessionPlan
from ..store.database import Store

Plan = TypeVar("Plan", bound=SessionPlan)


class Kind(Enum):
    """The kinds of references."""

    LIBRARY = "library"
    FLOOR = "floor"


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference, with figures named as those of a measurement."""

    kind: Kind
    label: str
    values: Mapping[str, float]
    note: str  # where the figures are from
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # 95 %

    @property
    def words(self) -> str:
        """Its time and energy: '0.0553 ms, 0.0329 J'."""
        finite = [name for name in ("time_s", "energy_j") if math.isfinite(self.values.get(name, math.nan))]
        return ", ".join(quantity(name).text(self.values[name]) for name in finite)

    def standing(self, measurement: Measurement) -> str:
        """How a configuration compares with it, in words; empty if its time or energy is not known."""
        time_s, energy_j = (self.values.get(name, math.nan) for name in ("time_s", "energy_j"))
        to_time_s, to_energy_j = (measurement.values.get(name) for name in ("time_s", "energy_j"))
        if to_time_s is None or to_energy_j is None or not (time_s > 0 and energy_j > 0):
            return ""
        if self.kind is Kind.FLOOR:
            more, longer = number(to_energy_j / energy_j, 3), number(to_time_s / time_s, 3)
            return f"{more} times its energy in {longer} times its time"
        return tradeoff(time_s, energy_j, to_time_s=to_time_s, to_energy_j=to_energy_j).words


def references_of(plan: SessionPlan) -> tuple[Reference, ...]:
    """The references of a session whose figures are known; none where it does not measure an operator."""
    references = []
    library, floor = Baseline.of_origin(plan.origin), OperatorFloor.of_origin(plan.origin)
    if library is not None and not library.why_not:
        note = "measured on the same operands by the same meter"
        if plan.source == "simulated":
            note = "a model, as all of a simulated board"
        references.append(Reference(Kind.LIBRARY, library.library, library.values, note, library.intervals))
    if floor is not None and not floor.why_not:
        note = f"calculated from its work and least traffic, bound by the {floor.bound_by}; by {floor.roofline}"
        references.append(Reference(Kind.FLOOR, "Roofline floor", floor.values, note))
    return tuple(references)


def with_floor(plan: Plan, store: Store) -> Plan:
    """The plan with the floor of its operator, where it is an operator's and has none that is known."""
    kept = OperatorFloor.of_origin(plan.origin)
    if "operator" not in plan.origin or (kept is not None and not kept.why_not):
        return plan
    floor = floor_on(parse_operator(plan.origin["operator"]), plan, store)
    return replace(plan, origin={**plan.origin, **floor.to_origin()})
