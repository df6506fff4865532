"""What a report contains, gathered: the session, its analysis, the choice, the model and the sensors."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ...base.errors import WattridgeError
from ...base.files import digest_of, read_text
from ..analysis.answers import Answer, answers, models_of
from ..analysis.choosers import chosen_by
from ..analysis.compare import Comparison
from ..analysis.costs import values_of
from ..analysis.session_analysis import Analysis
from ..analysis.tradeoff import Load
from ..metering.characterisation.sensor_figures import Characterisation
from ..metering.characterisation.store import latest_characterisation
from ..models.fit.frequency import FrequencyFit
from ..models.fit_documents import latest_fit
from ..models.roofline.points import PlacedKernel, Sweep, kernel_of, sweeps_on_file
from ..session.references import with_floor
from ..session.summary import best_of, library_index
from ..space.result_table import ResultTable
from ..space.within_limits import feasible
from ..specification.plan import SessionPlan
from ..store.record import SessionRecord

if TYPE_CHECKING:
    from ..store.database import Store

_LONGEST_SPECIFICATION = 200_000  # bytes of a file that is shown whole


@dataclass(frozen=True, slots=True)
class ReportContent:
    """The parts of a report; a part that does not exist is None or empty."""

    plan: SessionPlan
    analysis: Analysis
    chosen: int | None  # index of the configuration that was chosen
    why: str
    load: Load = field(default_factory=Load)
    record: SessionRecord | None = None
    fit: FrequencyFit | None = None
    fit_source: str = ""
    sensors: Characterisation | None = None
    rooflines: tuple[Sweep, ...] = ()
    kernel: PlacedKernel | None = None
    comparison: Comparison | None = None  # with other sessions
    answers: tuple[Answer, ...] = ()
    specification: str = ""  # the text that was tuned, where it still is as it was

    @property
    def table(self) -> ResultTable:
        return self.analysis.table

    @property
    def units(self) -> Mapping[str, str]:
        return self.plan.units


def gather(
    plan: SessionPlan,
    analysis: Analysis,
    store: Store,
    *,
    record: SessionRecord | None = None,
    chosen: int | None = None,
    rule: str = "",
    chooser: str | None = None,
    load: Load | None = None,
    comparison: Comparison | None = None,
    of_model: FrequencyFit | None = None,
) -> ReportContent:
    """What there is to report of an analysed session, and what else is kept of its board.

    The choice is `chosen`, by hand or by the `rule` that is named, else what the `chooser` picks, else the best by the
    objective. Raises InputError for an unknown chooser, or one that finds nothing.
    """
    plan = with_floor(plan, store)
    index, why = _choice(analysis, chosen, chooser, rule)
    if chosen is None and chooser is None and (kept := _kept_library(plan, analysis)) is not None:
        index, why = kept, "what the vendor's library does by itself: nothing takes less energy for certain"
    simulated = plan.source == "simulated"  # a simulated board has the name of a real one
    uuid = plan.origin.get("gpu", "")  # none where it was measured elsewhere
    models = models_of(analysis.table, plan, store, of_model)
    own = models.clocks
    fit = latest_fit(store, plan.gpu, simulated=simulated, uuid=uuid)
    if own is not None and own.fit is not None and own.fit.identifiable:
        fit = own.fit, own.origin
    of_board = [sweep for sweep in sweeps_on_file(store) if sweep.points.gpu == plan.gpu]
    sweeps = tuple(sweep for sweep in of_board if (sweep.source == "simulated") == simulated)
    kernel = kernel_of(analysis.table.measurement(index), plan.title, plan.gpu) if index is not None else None
    return ReportContent(
        plan=plan,
        analysis=analysis,
        chosen=index,
        why=why,
        load=load or Load(),
        record=record,
        fit=fit[0] if fit else None,
        fit_source=fit[1] if fit else "",
        sensors=latest_characterisation(plan.gpu, plan.driver, uuid),
        rooflines=sweeps,
        kernel=kernel,
        comparison=comparison,
        answers=tuple(answers(analysis, plan, models, load)),
        specification=_specification(plan),
    )


def _choice(analysis: Analysis, chosen: int | None, chooser: str | None, rule: str) -> tuple[int | None, str]:
    """The configuration, and why in words."""
    if chosen is not None:
        return chosen, f"chosen by the rule '{rule}'" if rule else "chosen by hand"
    if chooser is not None:
        picked = chosen_by(chooser, analysis.choices)
        return picked.index, picked.label
    goal = analysis.objective.goal
    table = analysis.table.so_far()
    values = np.where(feasible(table, analysis.objective.limits), values_of(table, goal.name), np.nan)
    index = analysis.best
    words = "largest" if goal.maximise else "smallest"
    worked = int(np.isfinite(values).sum())
    which = "keep the limits" if analysis.objective.limits else "worked"
    return index, f"the {words} {goal.name} of {worked} configurations that {which}" if index is not None else ""


def _kept_library(plan: SessionPlan, analysis: Analysis) -> int | None:
    """The index of what the vendor's library does by itself, where that is the answer."""
    library = library_index(analysis.table, plan.space)
    best = best_of(replace(plan, objective=analysis.objective), analysis.table)
    return best if library is not None and best == library else None


def _specification(plan: SessionPlan) -> str:
    """The text of the specification, where its file is there as it was and short enough to be shown."""
    path = Path(plan.origin.get("file", ""))
    if plan.origin.get("kind") != "specification" or path.suffix.lower() not in (".toml", ".json"):
        return ""
    with suppress(WattridgeError, OSError, ValueError):
        if digest_of(path) == plan.origin.get("sha256") and path.stat().st_size <= _LONGEST_SPECIFICATION:
            return read_text(path)
    return ""
