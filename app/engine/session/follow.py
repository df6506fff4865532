"""Measurements of another program: a cache that grows is shown as a session, and a file counts as evaluated in one."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from ...base.errors import InputError, WattridgeError
from ...base.files import digest_of, open_input, title_of
from ...sensors.gpu import LIVE
from ..formats.growing_cache import CacheFollower, Entry
from ..formats.kernel_tuner import CacheHeader
from ..formats.names import DEVICE_SETTINGS, SETTING_NAMES, units_of
from ..formats.recording import Facts, Recording, RecordingBuilder, possible
from ..results.measurement import Measurement, State, Value
from ..results.state import SessionState
from ..runner.boards import Boards, ReadyPlan
from ..space.result_table import ResultTable
from ..space.search_space import Parameter, SearchSpace
from ..specification.model import Specification, evaluate_metrics
from ..specification.plan import SearchOptions, SessionPlan
from ..store.database import Store
from .events import EngineFault, Event, MeasurementsAdded, SessionRemark, SessionStarted
from .live_session import Attend, LiveSession, SessionResult
from .planning import check_goals, make_plan, objective_over

LOOK_S: Final = 0.2  # between two looks at a file that does not grow


def plan_follow(path: Path, stop: threading.Event, options: SearchOptions | None = None) -> ReadyPlan:
    """A session that shows a growing cache. Waits, also for the file itself, until a configuration in it succeeded.

    Of the options the objective and the front count. Raises InputError for a file that cannot be followed or holds no
    value of that name, WattridgeError where `stop` was set meanwhile.
    """
    options = options or SearchOptions()
    follower, names, simulated = CacheFollower(path), dict[str, None](), False
    while not names:
        look = follower.look()
        simulated = simulated or _simulated(look.entries)
        names = dict.fromkeys(name for entry in look.entries for name in entry.facts.values)
        if follower.header is not None and follower.closed:
            break
        if not names and not look.more and stop.wait(LOOK_S):
            raise WattridgeError("stopped while waiting for the first configuration that succeeds", str(path))
    assert follower.header is not None
    if names:
        chosen = (*((options.objective,) if options.objective else ()), *(options.front or ()))
        check_goals(chosen, tuple(names), str(path))
    return _plan(path, follower.header, tuple(names), options, simulated=simulated)


def _simulated(entries: Iterable[Entry]) -> bool:
    """Whether one of them comes from a simulated board."""
    return any(entry.facts.source == "simulated" for entry in entries)


def _plan(
    path: Path, header: CacheHeader, names: Sequence[str], options: SearchOptions, *, simulated: bool
) -> ReadyPlan:
    """The plan of a run with this header; `names` are the values of its entries."""
    return make_plan(
        Boards(),
        title=header.kernel or title_of(path),
        gpu=header.device or "unknown device",
        source="simulated" if simulated else "recorded",
        space=_Rows(header).space(),
        objective=objective_over(header.objective, names, options),
        strategy="brute_force",
        units=units_of(names, header.units),
        origin={"kind": "replay", "file": str(path.resolve()), "problem_size": header.problem_size},
        follow=path,
    )


def is_growing(path: Path) -> bool:
    """Whether the file looks like a cache whose last bracket is not there yet. Raises InputError."""
    try:
        with open_input(path) as file:
            begun = file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
            file.seek(max(0, file.seek(0, 2) - 64))
            ended = file.read().rstrip()[-1:]
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", str(path), "check the path and its rights") from None
    return begun == b"{" and ended != b"}"


def follow_session(
    plan: SessionPlan,
    store: Store,
    on_event: Callable[[Event], None],
    stop: threading.Event,
    attend: Attend | None = None,
) -> SessionResult:
    """Follow the plan's file until its tuner closes it, or `stop`. Every event is sent from this thread.

    Measurements are reported as they appear; the session gets its number, and is on disk, when it ends. A file that is
    replaced by that of another run ends the session, and the next one begins.
    """
    assert plan.follow is not None
    follower = CacheFollower(plan.follow)
    run = FollowRun(plan, store, on_event)
    waiting: list[Entry] = []
    while True:
        try:
            state, reason, waiting = run.follow(follower, waiting, stop, attend)
        except WattridgeError as error:
            on_event(EngineFault.of(error))
            return run.end(SessionState.FAILED, str(error))
        if state is not None:
            return run.end(state, reason)
        on_event(SessionRemark(run.session, f"{plan.follow.name} was replaced: another run is followed now"))
        run.end(SessionState.DONE, reason)
        assert follower.header is not None
        names = dict.fromkeys(name for entry in waiting for name in entry.facts.values)
        measurable = all(goal.name in names for goal in (plan.objective.goal, *plan.objective.front))
        kept = (
            SearchOptions(objective=plan.objective.goal, front=plan.objective.front) if measurable else SearchOptions()
        )
        next_plan = _plan(plan.follow, follower.header, tuple(names), kept, simulated=_simulated(waiting))
        run = FollowRun(next_plan, store, on_event)


class FollowRun(LiveSession):
    """One run of a tuner as far as it is in the file; its session has number 0 until its end."""

    def __init__(self, plan: SessionPlan, store: Store, on_event: Callable[[Event], None]) -> None:
        super().__init__(plan, on_event, 0, ResultTable(plan.space))
        self._store = store
        self._header: CacheHeader | None = None
        self._rows: _Rows | None = None
        self._builder: RecordingBuilder | None = None

    # --- while it grows ---------------------------------------------------------------------------------------------

    def follow(
        self, follower: CacheFollower, waiting: list[Entry], stop: threading.Event, attend: Attend | None
    ) -> tuple[SessionState | None, str, list[Entry]]:
        """Read entries, beginning with those that wait, until the file is closed or the user stops.

        Returns how that ended and why; no state, and the entries that wait, where the file is now that of another run.
        """
        again = False
        entries, more = waiting, True
        while True:
            other = self._others(entries, again, follower)
            if other is not None:
                return None, "the file was replaced", other
            if entries:
                self._add(entries, follower)
            if follower.closed:
                return SessionState.DONE, "the file is closed", []
            if not more:
                stop.wait(LOOK_S)
            if stop.is_set() and (attend is None or not attend(self)):
                return SessionState.STOPPED, "the file was still open", []
            look = follower.look()
            entries, more, again = look.entries, look.more, again or look.restarted

    def _others(self, entries: list[Entry], again: bool, follower: CacheFollower) -> list[Entry] | None:
        """The entries of another run, where the file begins again with other content."""
        if not again or self._header is None or not entries:
            return None
        same = follower.header is not None and follower.header.is_same_run(self._header)
        assert self._rows is not None
        assert self._builder is not None
        for entry in entries:
            row = self._rows.row_of(entry.configuration)
            if not same or (row is not None and _differ(self._builder.facts(row), possible(entry.facts)[0])):
                return entries
        return None

    def _add(self, entries: Sequence[Entry], follower: CacheFollower) -> None:
        if self._rows is None or self._builder is None:
            assert follower.header is not None
            self._header = follower.header
            self._rows = _Rows(self._header)
            self._builder = RecordingBuilder(follower.path, self._header.names, self._header.listed)
        fresh = []
        for configuration, facts in entries:
            if self._rows.row_of(configuration) is None:  # a file that begins again holds what is known already
                kept = self._builder.add(configuration, facts)
                fresh.append((self._rows.add(configuration), kept))
        first = not len(self.table)
        self.table.space = space = self._rows.space()  # before the rows that need it
        for row, facts in fresh:
            measurement = facts.of(row, space.configuration(row))
            cost = self.plan.objective.goal.cost(measurement.values) if facts.state is State.OK else math.inf
            self._note_cost(cost, len(self.table))
            self.table.append(measurement)
        self._clock.mark(len(self.table))
        newly_simulated = self.plan.source != "simulated" and _simulated(entries)
        if newly_simulated:
            self.plan = replace(self.plan, source="simulated")
        if fresh and (first or newly_simulated):
            self.plan = replace(self.plan, space=space)
            self._on_event(SessionStarted(self.session, self.plan, self.table))
        if fresh:
            self._on_event(MeasurementsAdded(self.session, len(self.table), self._progress()))

    # --- at the end -------------------------------------------------------------------------------------------------

    def _write_end(self, reason: str) -> None:
        """Keep the entries as a session like any other."""
        try:
            if self._builder is not None:
                self._keep(self._builder.finish(), reason)
        finally:
            self._on_event(MeasurementsAdded(self.session, len(self.table), self._progress()))

    def _keep(self, recording: Recording, reason: str) -> None:
        assert self.plan.follow is not None
        table = recording.table()
        origin = dict(self.plan.origin)
        with suppress(OSError):  # the file is gone: the session stays
            origin["sha256"] = digest_of(self.plan.follow)
        plan = replace(self.plan, space=recording.space(), origin=origin, follow=None)
        session = self._store.create_session(plan)
        elapsed_s = self._clock.elapsed_s
        self._store.append(session, [table.measurement(index) for index in range(len(table))], elapsed_s)
        self._store.finish(session, self._state, reason, elapsed_s)
        self.session, self.plan, self.table = session, plan, table
        self._on_event(SessionStarted(session, plan, table))

    def _budget(self) -> int:
        return 0 if self._state in (SessionState.RUNNING, SessionState.PAUSED) else len(self.table)


class _Rows:
    """The configurations so far, in the order in which they appeared, which is the order of their rows for now."""

    def __init__(self, header: CacheHeader) -> None:
        self._names = header.names
        self._values: list[dict[Value, int]] = [  # value -> code
            {value: code for code, value in enumerate(dict.fromkeys(header.listed[name]))} for name in header.names
        ]
        self._cartesian = math.prod(max(1, len(values)) for values in self._values)
        self._row_of: dict[tuple[Value, ...], int] = {}
        self._codes = np.empty((1024, len(self._names)), dtype=np.uint32)

    def row_of(self, configuration: tuple[Value, ...]) -> int | None:
        """The row of a configuration that appeared already."""
        return self._row_of.get(configuration)

    def add(self, configuration: tuple[Value, ...]) -> int:
        """A configuration's row: the next one."""
        row = len(self._row_of)
        if row == len(self._codes):
            self._codes = np.concatenate([self._codes, np.empty_like(self._codes)])
        for axis, value in enumerate(configuration):
            codes = self._values[axis]
            self._codes[row, axis] = codes.setdefault(value, len(codes))
        self._row_of[configuration] = row
        return row

    def space(self) -> SearchSpace:
        """The table by now. Its rows are not sorted: it can be shown, but not searched."""
        parameters = tuple(
            Parameter(name, tuple(values), device_setting=name in SETTING_NAMES)
            for name, values in zip(self._names, self._values, strict=True)
        )
        return SearchSpace(parameters, self._codes[: len(self._row_of)], self._cartesian)


def _differ(one: Facts, other: Facts) -> bool:
    """Whether these are two measurements; facts that may be unknown (NaN) are not compared."""
    return (one.state, one.values, one.error) != (other.state, other.values, other.error)


def with_recording(plan: ReadyPlan, spec: Specification, recording: Recording) -> ReadyPlan:
    """The plan with the file's measurements of its space. Raises InputError if the file is of another board."""
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
    by_row: dict[int, Measurement] = {}
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
        by_row[row] = replace(measurement, row=row, configuration=plan.space.configuration(row), values=values)
    notes = [f"{len(by_row)} of {len(recording)} measurements taken over from {recording.path.name}"]
    notes += [f"{outside} are of no configuration in this space"] if outside else []
    notes += [f"{without} have no {plan.objective.goal.name}"] if without else []
    return tuple(by_row.values()), "; ".join(notes)


def _configuration(measurement: Measurement, plan: SessionPlan, spec: Specification) -> dict[str, Value] | None:
    """The configuration in the space's own names; None if it lies outside whatever its values are.

    A parameter of the file may be a constant here, and one with a single value here may be missing there.
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
