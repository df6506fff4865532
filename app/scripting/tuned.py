"""`Tuned`: what came of tuning a callable, for a script, a prompt or a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from importlib import import_module
from typing import Any

from ..engine.measurement import Measurement, State, Value
from ..engine.session.description import source_in_words
from ..engine.session.live_session import SessionResult
from ..engine.session.summary import by_goal, front_indices
from ..errors import WattridgeError
from ..numbers import number


class Tuned:
    """The measured configurations of one session, the best of them and the front."""

    def __init__(self, session: SessionResult, within: float | None = None) -> None:
        """`within`: the best is one that is at most this share slower than the fastest."""
        self._plan, self._table = session.plan, session.table
        self.session = session.session  # its number in the Library
        self.within = within

    @property
    def best(self) -> dict[str, Value]:
        """The best configuration by the objective. Raises WattridgeError where none worked."""
        return dict(self.best_measurement.configuration)

    @property
    def best_values(self) -> dict[str, float]:
        """The figures of the best configuration."""
        return dict(self.best_measurement.values)

    @property
    def best_measurement(self) -> Measurement:
        """The best configuration with everything that is known of it."""
        found = by_goal(self._table, self._plan.objective.goal, self._plan.objective.limits)
        if self.within is not None:
            times = self._table.values("time_s")
            fastest = min((times[at] for at in found), default=0.0)
            found = [at for at in found if times[at] <= (1 + self.within) * fastest]
        if not found:
            raise WattridgeError("no configuration worked", self._plan.title, "look at the errors in table()")
        return self._table.measurement(found[0])

    @property
    def front(self) -> list[dict[str, Any]]:
        """The configurations on the front of the objectives, with their figures; empty with one objective."""
        objective = self._plan.objective
        found = front_indices(self._table, objective.front, objective.limits)
        return [self._row(self._table.measurement(at)) for at in found]

    @property
    def source(self) -> str:
        """Where the figures come from, in words."""
        return source_in_words(self._plan.source)

    def rows(self) -> list[dict[str, Any]]:
        """Every configuration with its figures, in the order of measurement; failed ones have `error`."""
        return [self._row(self._table.measurement(at)) for at in range(len(self._table))]

    def table(self) -> Any:
        """The rows as a pandas DataFrame where pandas is installed, else as a list of dicts."""
        try:
            pandas = import_module("pandas")
        except ImportError:
            return self.rows()
        return pandas.DataFrame(self.rows())

    def __repr__(self) -> str:
        plan = self._plan
        found = by_goal(self._table, plan.objective.goal, plan.objective.limits)
        if not found:
            return f"<{plan.title} on {plan.board}: none of {len(self._table)} configurations worked>"
        goal = plan.objective.goal.name
        best = f"{_words(self.best)}: {goal} {number(self.best_values[goal])}"
        return f"<{plan.title} on {plan.board}, {len(self._table)} configurations, session {self.session}, best {best}>"

    def _repr_html_(self) -> str:
        """The front as a picture, and a line; for notebooks."""
        from ..engine.report.small_front import small_front

        words = f"<p><code>{escape(repr(self))}</code><br>{escape(self.source)}</p>"
        picture = small_front(self._table, self._plan.objective, self._plan.units)
        return f"<div>{picture}{words}</div>"

    def _row(self, measurement: Measurement) -> dict[str, Any]:
        row = {**measurement.configuration, **measurement.values}
        return (
            row
            if measurement.state is State.OK
            else {**row, "state": measurement.state.value, "error": measurement.error}
        )


def _words(configuration: Mapping[str, Value]) -> str:
    return ", ".join(f"{name}={value}" for name, value in configuration.items())
