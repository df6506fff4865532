"""Measurements of a file that count as evaluated in a session of a specification."""

from __future__ import annotations

import math
from dataclasses import replace

from ...errors import InputError
from ...sensors.gpu import LIVE
from ..formats.names import DEVICE_SETTINGS
from ..formats.recording import Recording
from ..measurement import Measurement, State, Value
from ..specification.model import Specification, evaluate_metrics
from .plan import SessionPlan


def with_recording(plan: SessionPlan, spec: Specification, recording: Recording) -> SessionPlan:
    """The plan with what the file holds of its space. Raises InputError where the file is of another board."""
    where = str(recording.path)
    device = recording.device if recording.device != "unknown device" else ""
    if device and device.casefold() != plan.gpu.casefold():
        raise InputError(f"it was measured on another board, {device}", where, f"pass a file of {plan.gpu}")
    known, note = _known(plan, spec, recording)
    if any(m.source == "simulated" for m in known) and plan.source in LIVE:
        raise InputError("it was measured on a simulated board", where, "pass a file of the real one")
    space = replace(plan.space, notes=(*plan.space.notes, note))
    origin = {**plan.origin, "taken_over": str(recording.path.resolve())}
    return replace(plan, space=space, known=known, origin=origin)


def _known(plan: SessionPlan, spec: Specification, recording: Recording) -> tuple[tuple[Measurement, ...], str]:
    """The measurements of configurations in the plan's space that have a value of its objective, and a note on them."""
    found: dict[int, Measurement] = {}
    outside = without = 0
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
                without += 1
                continue
        found[row] = replace(measurement, row=row, configuration=plan.space.configuration(row), values=values)
    notes = [f"{len(found)} of {len(recording)} measurements taken over from {recording.path.name}"]
    notes += [f"{outside} are of no configuration in this space"] if outside else []
    notes += [f"{without} have no {plan.objective.goal.name}"] if without else []
    return tuple(found.values()), "; ".join(notes)


def _configuration(measurement: Measurement, plan: SessionPlan, spec: Specification) -> dict[str, Value] | None:
    """The configuration in the space's own names; None where it lies outside whatever its values are.

    What the file has as a parameter may be a constant here, and what has one value here may be missing there.
    """
    given = {DEVICE_SETTINGS.get(name, name): value for name, value in measurement.configuration.items()}
    configuration: dict[str, Value] = {}
    for parameter in plan.space.parameters:
        if parameter.name in given:
            configuration[parameter.name] = given.pop(parameter.name)
        elif len(parameter.values) == 1:
            configuration[parameter.name] = parameter.values[0]
        else:
            return None
    return configuration if all(spec.constants.get(name) == value for name, value in given.items()) else None
