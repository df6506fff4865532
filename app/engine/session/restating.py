"""A stored session stated for another thermal condition, by the model of the board that is kept with it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ...base.errors import InputError
from ...base.files import digest_of, is_input
from ..metering.condition import Condition
from ..results.measurement import THERMAL_CORRECTION, Measurement, State
from ..runner.kernels.reference import Baseline
from ..runner.stating import Statement
from ..space.result_table import ResultTable
from ..specification.model import Specification
from ..specification.plan import SessionPlan
from ..store.database import Store
from .load import load_specification
from .planning import plan_of


def restated(store: Store, session: int, condition: Condition) -> tuple[SessionPlan, ResultTable]:
    """The session's plan and measurements as they would have been stated for that condition. Nothing is stored.

    Raises InputError where the session was not measured on a board, or its specification is gone: the metrics are
    computed again.
    """
    loaded = store.load(session)
    plan = plan_of(loaded)
    stated = Statement.of_origin(plan.origin)
    if stated is None:
        what = f"session {session} keeps no thermal model: it was replayed, runs a program, or did not come to its end"
        raise InputError(what, str(store.path), "its figures are as they were drawn")
    path = Path(plan.origin.get("file", ""))
    if not is_input(path) or digest_of(path) != plan.origin.get("sha256"):
        raise InputError("the specification has changed or is gone", str(path), "put it back as it was")
    specification = load_specification(path)
    wanted = replace(stated, condition=condition)
    table = ResultTable(plan.space)
    table.extend(wanted.state(loaded.table.measurement(at), specification) for at in range(len(loaded.table)))
    return replace(plan, origin={**plan.origin, **wanted.to_origin(), **_library(plan, wanted, specification)}), table


def _library(plan: SessionPlan, wanted: Statement, specification: Specification) -> dict[str, str]:
    """What the session keeps of the vendor's library, stated as its own figures are. Raises InputError."""
    kept = Baseline.of_origin(plan.origin)
    if (
        kept is None or kept.values.get(THERMAL_CORRECTION, 1.0) == 1.0
    ):  # not known, or at a limit, where nothing is corrected
        return {}
    measured = Measurement(-1, {}, State.OK, kept.values, kept.intervals)
    stated = wanted.state(measured, specification)
    return replace(kept, values=stated.values, intervals=stated.intervals).to_origin()
