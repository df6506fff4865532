"""Measurements of a file that count as evaluated in a session of a specification."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

from ...errors import InputError
from ..formats.names import DEVICE_SETTINGS
from ..formats.recording import Recording
from ..measurement import Measurement, State, Value
from ..specification.model import Specification, evaluate_metrics
from .plan import SessionPlan


class TakenOver(NamedTuple):
    """What of a file counts in a session, and what to say of it."""

    measurements: tuple[Measurement, ...]
    note: str


def with_recording(plan: SessionPlan, spec: Specification, recording: Recording) -> SessionPlan:
    """The plan with what the file holds of its space. Raises InputError where the file is of another board."""
    where = str(recording.path)
    device = recording.device if recording.device != "unknown device" else ""
    if device and device.casefold() != plan.gpu.casefold():
        raise InputError(f"it was measured on another board, {device}", where, f"pass a file of {plan.gpu}")
    taken = take_over(recording, plan, spec)
    if any(m.source == "simulated" for m in taken.measurements) and plan.source == "nvml":
        raise InputError("it was measured on a simulated board", where, "pass a file of the real one")
    space = replace(plan.space, notes=(*plan.space.notes, taken.note))
    origin = {**plan.origin, "taken_over": str(recording.path.resolve())}
    return replace(plan, space=space, known=taken.measurements, origin=origin)


def take_over(recording: Recording, plan: SessionPlan, spec: Specification) -> TakenOver:
    """The measurements of configurations in the plan's space that have a value of its objective."""
    found: dict[int, Measurement] = {}
    outside = untold = 0
    for measurement in recording.in_file_order():
        configuration = _configuration(measurement, plan, spec)
        row = plan.space.row_of(configuration) if configuration is not None else None
        if row is None:
            outside += 1
            continue
        values = dict(measurement.values)
        if measurement.state is State.OK:
            values = evaluate_metrics(spec, plan.space.configuration(row), values) | values
            if plan.objective.goal.cost(values) == math.inf:
                untold += 1
                continue
        found[row] = replace(measurement, row=row, configuration=plan.space.configuration(row), values=values)
    told = [f"{len(found)} of {len(recording)} measurements taken over from {recording.path.name}"]
    told += [f"{outside} are of no configuration in this space"] if outside else []
    told += [f"{untold} do not tell {plan.objective.goal.name}"] if untold else []
    return TakenOver(tuple(found.values()), "; ".join(told))


def _configuration(measurement: Measurement, plan: SessionPlan, spec: Specification) -> dict[str, Value] | None:
    """The configuration in the space's own names; None where it lies outside whatever its values are.

    What the file has as a parameter may be a constant here, and what has one value here may not be told there.
    """
    told = {DEVICE_SETTINGS.get(name, name): value for name, value in measurement.configuration.items()}
    configuration: dict[str, Value] = {}
    for parameter in plan.space.parameters:
        if parameter.name in told:
            configuration[parameter.name] = told.pop(parameter.name)
        elif len(parameter.values) == 1:
            configuration[parameter.name] = parameter.values[0]
        else:
            return None
    return configuration if all(spec.constants.get(name) == value for name, value in told.items()) else None
