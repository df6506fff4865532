"""From a specification, a recording or a stored session to a `SessionPlan`: resolved, checked, ready to run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product, zip_longest
from numbers import Integral, Real
from pathlib import Path
from threading import Event
from typing import Any, Final

import numpy as np

from ...base.errors import InputError
from ...base.files import digest_of, is_there
from ...base.installation import how_to_add_package
from ...base.paths import resources
from ...sensors.gpu import Gpu
from ...sensors.limits import DeviceLimits
from ...sensors.select import open_gpu
from ...sensors.unmetered import NO_ENERGY
from ..analysis.finals import KEY as FINALS
from ..control.guard import DeviceGuard
from ..formats.names import their_device
from ..formats.read import read_recording
from ..formats.recording import Recording
from ..formats.table_columns import OPTIONS, TableColumns
from ..metering.condition import Condition
from ..metering.external_meters import BOARD, meters_beside
from ..models.boards_file import base_clock_named
from ..models.roofline.points import PRECISIONS, TENSOR, TENSOR_FROM
from ..models.tuning_methods import AT_BASE_CLOCK, base_clock_of, needs_base_clock
from ..results.measurement import MEASURED, Configuration, Value
from ..results.objectives import Goal, Limit, Objective
from ..results.service_figures import OF_ENERGY
from ..results.state import Purpose
from ..runner.base import setting_names
from ..runner.boards import Boards, InProcess, ReadyPlan, TunedBoards
from ..runner.cuda.triton_maker import triton_version
from ..runner.kernels.reference import Baseline
from ..runner.replay import ReplayRunner
from ..space.build import build_space
from ..space.device_settings import resolve_device_settings
from ..space.expression import parse
from ..space.result_table import DECIDED_ON
from ..space.search_space import SearchSpace, joined, space_of_table
from ..specification.check import returned_value
from ..specification.input_data import data_in_words, note_on_data
from ..specification.model import DEFAULT_STRATEGY, PATIENCE, Specification, programs_of
from ..specification.operator_shapes import ALGORITHM, CUBLASLT, LIBRARY, MAKER, NO_ALGORITHM, TRITON
from ..specification.plan import SearchOptions, SessionPlan
from ..specification.toml_section import PLACE
from ..store.database import Store
from ..store.record import LoadedSession, SessionRecord
from ..strategies import base as strategies
from ..strategies.steered import Staged
from ..workloads.hardware_counters import counter_units
from . import sources
from .gains import choice_of_origin, choice_to_origin
from .load import load_specification
from .on_board import boards_of, limits_on
from .service_boards import as_it_ran, require_boards

_NUMBERS: Final[
    tuple[tuple[str, type, Callable[[Any], float], str], ...]
] = (  # of a plan, as scripts give them: the kind, its plain type, and what is asked for
    ("max_evaluations", Integral, int, "a whole number from 1"),
    ("max_seconds", Real, float, "a positive number"),
    ("patience", Integral, int, "a whole number from 1"),
    ("seed", Integral, int, "a whole number"),
)
_NAMED: Final = ("fp32", "fp64", "fp64_tensor", "fp16_tensor", "bf16_tensor")  # values of a constant `precision`
# NumPy types of arguments -> precision of the arithmetic; float16 may run on tensor cores or not, so it stands for none
_PRECISIONS: Final = {"float32": "fp32", "complex64": "fp32", "float64": "fp64", "complex128": "fp64", "float16": ""}


def plan_replay(path: Path, options: SearchOptions | None = None, *, read: Recording | None = None) -> ReadyPlan:
    """A session that is answered from a recording, passed as `read` if it was read already.

    Brute force unless a strategy is named. Without an objective the first goal of the front is taken, else the
    recording's own. Raises InputError for a bad file, strategy, option or name of a value.
    """
    options = options or SearchOptions()
    recording = read if read is not None else read_recording(path)
    names = recording.value_names
    if not names:
        raise InputError("every configuration in the file failed", str(path), "there is nothing to search for in it")
    objective = objective_over(recording.objective, names, options)
    check_goals((objective.goal, *objective.front, *objective.limits), names, str(path))
    return make_plan(
        recorded(recording),
        options,
        title=recording.kernel,
        gpu=recording.device,
        source="simulated" if recording.simulated else "recorded",
        space=replace(recording.space(), notes=recording.notes),
        objective=objective,
        strategy="brute_force",
        strategy_options=dict(options.strategy_options),
        units=dict(recording.units),
        origin={
            "kind": "replay",
            "file": str(path.resolve()),
            "sha256": digest_of(path),
            "problem_size": recording.problem_size,
            **recording.read_with,
            **({} if recording.is_named else {"kernel": ""}),
        },
    )


_LIMITS: Final = ("max_evaluations", "max_seconds", "patience")


def recorded(recording: Recording) -> Boards:
    """A recording in place of a board."""
    return InProcess(lambda _: ReplayRunner.of(recording))


def make_plan(boards: Boards, options: SearchOptions | None = None, **facts: Any) -> ReadyPlan:
    """The plan of a session, resolved and checked: the one way to make one that is to be run.

    Parameters
    ----------
    boards
        What it is measured on.
    options
        Their strategy, seed and limits win over the facts.
    facts
        The fields of a `SessionPlan` by name.

    Raises
    ------
    InputError
        For an unknown strategy or option, and for a number that is none. Nothing is written then.
    """
    named: dict[str, Any] = {"driver": "", **facts, **(options.given() if options is not None else {})}
    strategy = named["strategy"]
    given = dict(named.get("strategy_options", {}))
    strategies.make_options(strategies.get(strategy), given)
    if strategy == Staged.name and given.get("method") == AT_BASE_CLOCK and not given.get("base_clock_mhz"):
        board = getattr(boards, "gpu", None)
        clock_mhz = base_clock_named(named["gpu"]) if board is None else base_clock_of(board)
        if clock_mhz is None:
            raise needs_base_clock(named["gpu"])
        named["strategy_options"] = {**given, "base_clock_mhz": round(clock_mhz)}
    for name, kind, plain, what in _NUMBERS:
        if (value := named.get(name)) is not None:
            if not isinstance(value, kind) or (name != "seed" and not plain(value) > 0):
                raise InputError(f"{name} is {value!r}", named["title"], f"give {what}")
            named[name] = plain(value)  # of NumPy's types, too
    return ReadyPlan(boards=boards, **named)


def plan_specification(
    spec: Specification,
    gpu: Gpu | TunedBoards,
    options: SearchOptions | None = None,
    *,
    guard: DeviceGuard | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    stop: Event | None = None,
) -> ReadyPlan:
    """A session that measures a specification on a board; the options win over the specification.

    Where a device setting is 'ridge', the board's clocks are swept and fitted first, with `on_progress(done, total)`
    and `stop`. On a real board settings need a `guard` that may set it, and its rights are requested here; settings
    that are not allowed or not supported are left out, and named in the space's notes. Raises InputError for a bad
    specification, and WattridgeError if the board cannot run it or the rights are refused.
    """
    options = options or SearchOptions()
    if options.repeats is not None:
        spec = spec.repeated(options.repeats)
    boards = boards_of(gpu, guard)
    info = boards.gpu.info
    limits, notes = boards.require_runnable(spec)
    strategy_options = dict(options.strategy_options)
    if options.strategy in (None, spec.strategy):  # another strategy has options of its own
        check_search(spec)
        strategy_options = {**spec.strategy_options, **strategy_options}
    objective = _objective_of(spec, options)
    meters = spec.meters if options.meters is None else options.meters
    if not meters and (assigned := meters_beside(info)) is not None:
        meters = assigned.choice
    if info.source == "unmetered" and meters.energy_from == BOARD:
        objective = _objective_without_energy(spec, objective, boards.gpu)
    replaced = {name: tuple(values) for name, values in options.device_settings.items()}
    wanted, refused = boards.allowed_settings({**spec.device_settings, **replaced})
    spec = _with_settings(spec, wanted)
    steered = boards.model_range(on_progress, stop) if "ridge" in wanted.values() else None
    settings, snapped = resolve_device_settings(wanted, boards.gpu, steered)
    together = require_boards(spec, boards.gpu, settings)
    notes = (*notes, *filter(None, (note_on_data(spec) if info.real else "",)))
    if meters.energy_from != BOARD:
        notes = tuple(note for note in notes if note != NO_ENERGY)
    offers, why_no_library = boards.offers(spec)
    space = _space(spec, limits, settings, (*refused, *notes, *snapped), stop)
    boards.require_space(spec, space)
    space = with_offers(space, spec, offers, own=not info.real or has_own_maker(spec))
    chosen_here = {"device_settings": ", ".join(replaced)} if replaced else {}
    chosen_here |= choice_to_origin(meters, info)
    if options.condition is not None:
        chosen_here["chosen_condition"] = options.condition.option
    search = {**spec.search_in(space.size), "strategy_options": strategy_options}
    asked = {**search, **options.given()}
    if asked["strategy"] == DEFAULT_STRATEGY and not any(map(asked.get, _LIMITS)):
        search["patience"] = PATIENCE
    plan = make_plan(
        boards,
        options,
        **search,
        title=spec.name,
        gpu=info.name,
        driver=info.driver,
        source=info.source,
        space=space,
        objective=objective,
        specification=spec,
        condition=options.condition,
        meters=meters,
        pool=boards.options,
        origin={
            "kind": "specification",
            "file": str(spec.path.resolve()),
            "sha256": digest_of(spec.path),
            **sources.to_origin(spec),
            "gpu": info.uuid,
            **their_device(spec.kernel),
            "sim_seed": str(getattr(boards.gpu, "seed", 0)),
            "problem_size": _problem_size(spec),
            "precision": _precision(spec),
            "data": data_in_words(spec),
            "repeats": str(spec.repeats),
            **({"operator": spec.operator.notation} if spec.operator is not None else {}),
            **(Baseline(why_not=why_no_library).to_origin() if why_no_library else {}),
            **together,
            **chosen_here,
        },
    )
    return with_starts(plan, spec)


def has_own_maker(spec: Specification) -> bool:
    """Whether what makes the kernels of a specification's own space is installed, where they are Triton's."""
    return spec.operator is None or spec.operator.usual_maker != TRITON or triton_version() is not None


def with_offers(
    space: SearchSpace, spec: Specification, offers: Sequence[Configuration], *, own: bool = True
) -> SearchSpace:
    """The space of an operator with the rows that other makers have for it, under each of its settings.

    What such a row does not say of a parameter is 0, and `-` of words. Without its `own` rows where what makes their
    kernels is missing. Raises InputError where nobody makes any.
    """
    if not own and not offers:
        remedy = f"{how_to_add_package('nvidia-cublas-cu12')} (or nvidia-cublas), or triton"
        raise InputError("neither cuBLASLt nor Triton is here", str(spec.path), remedy)
    if spec.operator is None or not offers or MAKER in space.names:  # one that names its makers
        return space
    settings = [parameter.name for parameter in space.parameters if parameter.device_setting]
    under = _settings_of(space, settings) if settings else [{}]
    missing: dict[str, Value] = {MAKER: spec.operator.usual_maker, ALGORITHM: NO_ALGORITHM}
    names = (MAKER, ALGORITHM, *space.names)
    rows: list[list[Value]] = []
    for offer, setting in product(offers, under):
        said: dict[str, Value] = {**missing, **offer, **setting}
        rows.append([said.get(name, 0) for name in names])
    by_library = space_of_table(dict.fromkeys(names, ()), rows)
    given = {MAKER: [], ALGORITHM: [], **{parameter.name: list(parameter.values) for parameter in space.parameters}}
    both = joined([by_library, space] if own else [by_library], given, settings, missing)
    notes = space.notes if own else (*space.notes, f"no kernels of Triton: {how_to_add_package('triton')}")
    return replace(both, notes=notes, build_seconds=space.build_seconds)


def _settings_of(space: SearchSpace, settings: Sequence[str]) -> list[dict[str, Value]]:
    codes = np.unique(space.codes[:, [space.names.index(name) for name in settings]], axis=0)
    values = [space.parameters[space.names.index(name)].values for name in settings]
    return [
        {name: listed[code] for name, listed, code in zip(settings, values, row, strict=True)} for row in codes.tolist()
    ]


def with_starts(plan: ReadyPlan, spec: Specification) -> ReadyPlan:
    """The plan of a specification with the rows that its search begins with.

    The session measures the user's first, in full, whatever the strategy. Suggestions are for strategies that fill a
    first sample (`strategies.Background`); one that is not in the space is left out silently. A start that the user
    lists and the space lacks is named among the space's notes. Raises InputError if the budget leaves room for the
    listed starts alone, so that another would be measured in its place.
    """
    space = plan.space
    listed = [_by_usual_maker(start, spec, space) for start in spec.starts]
    missing = [_why_no_start(start, space) for start in listed if not len(space.rows_with(start))]
    if missing and plan.max_evaluations is not None and plan.max_evaluations <= len(spec.starts):
        where = f"{spec.path}: search.start"
        raise InputError(f"{missing[0]}, and no other is to be measured", where, "correct it, or raise max_evaluations")
    notes = (*space.notes, *(f"a start is left out: {why}" for why in missing))
    starts, suggestions = first_rows(spec, space)
    return replace(plan, space=replace(space, notes=notes), starts=starts, suggestions=suggestions)


def first_rows(spec: Specification, space: SearchSpace) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The rows that a search begins with, and those that are suggested to it.

    Where other makers have rows for an operator, what the vendor's library does by itself is a start, too, and the
    others are suggested in turns with our own.
    """
    settings = [parameter.name for parameter in space.parameters if parameter.device_setting]
    by_library, by_others = (
        list({str(each): each for each in (_without(space.configuration(row), settings) for row in rows)}.values())
        for rows in (space.rows_with({MAKER: maker}).tolist() for maker in (LIBRARY, CUBLASLT))
    )
    own, suggested = (
        [_by_usual_maker(each, spec, space) for each in chosen] for chosen in (spec.starts, spec.suggestions)
    )
    in_turns = [each for pair in zip_longest(by_others, suggested) for each in pair if each is not None]
    return start_rows([*own, *by_library], space), start_rows([] if spec.starts else in_turns, space)


def _by_usual_maker(start: Configuration, spec: Specification, space: SearchSpace) -> Configuration:
    """A start that names no maker is the kernel's own: rows of other makers may have the same tile."""
    if spec.operator is None:
        return start
    named = {MAKER: spec.operator.usual_maker, **start}
    alone = MAKER not in space.names and named[MAKER] == spec.operator.usual_maker
    return _without(named, (MAKER, ALGORITHM)) if alone else named


def _without(configuration: Configuration, names: Collection[str]) -> Configuration:
    return {name: value for name, value in configuration.items() if name not in names}


def start_rows(configurations: Iterable[Configuration], space: SearchSpace) -> tuple[int, ...]:
    """A row for each configuration that the space has.

    Of parameters that it leaves open the last valid values are taken: of clocks, the highest.
    """
    matches = map(space.rows_with, configurations)
    return tuple(dict.fromkeys(int(rows[-1]) for rows in matches if len(rows)))


def _why_no_start(missing: Configuration, space: SearchSpace) -> str:
    """Why the space has no such configuration: a value that none takes, else that together they are not valid."""
    for name, value in missing.items():
        if not len(space.rows_with({name: value})):
            return f"no configuration has {name} = {value} here"
    return f"{', '.join(f'{name} = {value}' for name, value in missing.items())} is not valid here"


def own_goals(spec: Specification) -> tuple[Goal | None, tuple[Goal, ...]]:
    """The goal and the front of a specification where the user chooses none; no goal where it names none."""
    objective = spec.objective
    front = objective.front if objective else ()
    return objective.goal if objective else None, front or _default_front(_figures(spec))


def plan_roofline(
    gpu: Gpu, precision: str, guard: DeviceGuard | None = None, clocks_mhz: Sequence[float] = ()
) -> ReadyPlan:
    """The session that sweeps intensity and occupancy on a board, at its own clock or at each of some locked ones.

    Raises InputError for an unknown precision, and where clocks are not to be set.
    """
    if precision not in PRECISIONS + TENSOR:
        raise InputError(f"no roofline in '{precision}'", "roofline", f"one of {', '.join(PRECISIONS + TENSOR)}")
    capability = gpu.info.compute_capability
    if precision in TENSOR and capability is not None and capability < TENSOR_FROM:
        what = f"compute capability {'.'.join(map(str, capability))} is too low for {precision}"
        remedy = f"choose {' or '.join(PRECISIONS)}; tensor cores are swept from compute capability 8.0 on"
        raise InputError(what, gpu.info.name, remedy)
    specification = load_specification(resources() / "rooflines" / f"{precision}.toml")
    options = SearchOptions(device_settings={"graphics_clock_mhz": tuple(clocks_mhz)} if clocks_mhz else {})
    plan = plan_specification(replace(specification, device_settings={}), gpu, options, guard=guard)
    locked = locked_clocks(plan)
    if clocks_mhz and not locked:
        what = next(note for note in plan.space.notes if "graphics_clock_mhz" in note)
        raise InputError(what, "--clock", "leave it out, or where the right is lacking allow it with --allow-control")
    at = f" at {', '.join(locked)} MHz" if locked else ""
    title = plan.title + at  # so that it never stands for the board's roofline at its own clock
    return replace(plan, title=title, origin={**plan.origin, "purpose": Purpose.ROOFLINE.value})


def locked_clocks(plan: SessionPlan) -> list[str]:
    """The clocks, MHz, to which a session locks its board."""
    values = [value for each in plan.space.parameters if each.name == "graphics_clock_mhz" for value in each.values]
    return [f"{value:g}" for value in values if not isinstance(value, str)]


def space_of(spec: Specification, gpu: Gpu | None = None, stop: Event | None = None) -> SearchSpace:
    """The space of a specification, to look at: on a board, else with the limits of compute capability 8.0.

    Device settings that need a board or its model are left out, and named in the space's notes. Raises
    InputError as `build_space` does, and WattridgeError soon after `stop` is set.
    """
    kept, notes = {}, []
    for name, values in spec.device_settings.items():
        if values == "ridge":
            notes.append(f"{name} is left out: it needs a fitted model")
        elif gpu is None and not isinstance(values, tuple):
            notes.append(f"{name} is left out: it needs a GPU")
        else:
            kept[name] = values
    if gpu is None:
        listed = {name: values for name, values in kept.items() if isinstance(values, tuple)}
        notes.insert(0, "no GPU was named: the limits are those of compute capability 8.0")
        return _space(spec, limits_on(None), listed, tuple(notes), stop)
    settings, snapped = resolve_device_settings(kept, gpu)
    return _space(spec, limits_on(gpu), settings, (*notes, *snapped), stop)


def plan_of(loaded: LoadedSession) -> ReadyPlan:
    """A stored session as it was planned, to look at and export: neither its file nor its board need be there.

    Running it raises WattridgeError; `plan_resume` is for that.
    """
    record = loaded.record
    units = {**counter_units(loaded.table.value_names), **record.units}
    return ReadyPlan(**{**record.facts(), "units": units}, space=loaded.space, resume=record.id)


def plan_resume(
    store: Store,
    session: int,
    options: SearchOptions | None = None,
    *,
    gpu: Gpu | TunedBoards | None = None,
    guard: DeviceGuard | None = None,
) -> ReadyPlan:
    """A stored session, to be continued under the same id; of the options the limits replace the stored ones.

    A specification is measured on `gpu`, else on the board it was measured on, which is opened again. Raises InputError
    where the session, its file or its board is gone, or where the file is not what it was.
    """
    loaded = store.load(session)
    record = loaded.record
    if loaded.left_out:
        what = f"{loaded.left_out} stored measurements of session {session} are damaged"
        raise InputError(what, str(store.path), "it can be analysed and exported, but not resumed")
    path = file_of(record)
    facts: dict[str, Any] = {**plan_of(loaded).facts(), "resume": record.id}
    if options is not None:
        facts |= options.given("max_evaluations", "max_seconds", "patience")
    decided = (DECIDED_ON, FINALS)  # it is open again
    origin = {name: text for name, text in record.origin.items() if name not in decided}
    if record.origin.get("kind") == "replay":
        recording = read_recording(path, TableColumns.parse(*(origin.get(name, "") for name in OPTIONS)))
        return make_plan(recorded(recording), **{**facts, "space": recording.space(), "origin": origin})
    if gpu is None:
        gpu = open_gpu(record.origin.get("gpu"), seed=int(record.origin.get("sim_seed", "0")))
    boards = boards_of(gpu, guard)
    uuid = boards.gpu.info.uuid
    require_board(record, boards.gpu)
    space, spec = loaded.space, as_it_ran(measured_specification(loaded), origin)
    boards.require_settings(setting_names(space))
    boards.require_runnable(spec)
    notes = tuple(line for line in programs_of(spec) if line not in space.notes)
    others = {loaded.table.measurement(index).board for index in range(len(loaded.table))} - {"", uuid}
    if others and boards.options is None:
        named = ", ".join(sorted(others))
        notes = (*notes, f"partly measured on {named}, not on {uuid}: boards of one model differ")
    space = replace(space, notes=(*space.notes, *notes))
    boards.require_space(spec, space)
    stated = origin.get("condition", origin.get("chosen_condition"))
    facts |= {
        "space": space,
        "origin": {**origin, "gpu": uuid},  # another one of the same name
        "specification": spec,
        "condition": None if stated is None else Condition.parse(stated, f"session {session}"),
        "meters": choice_of_origin(origin),
        "pool": boards.options,
    }
    facts["starts"], facts["suggestions"] = first_rows(spec, space)  # the same search goes the same way
    return make_plan(boards, **facts)


def file_of(record: SessionRecord) -> Path:
    """The file that a session was set up from. Raises InputError if it is gone or has changed."""
    session, path = record.id, Path(record.origin.get("file", ""))
    if record.origin.get("kind") == "script":
        what = "it was run by a Python script, whose functions are not stored"
        remedy = "run the script again; with cache=FILE it goes on where it was"
        raise InputError(what, f"session {session}", remedy)
    if not record.origin.get("file") or not is_there(path):
        raise InputError(f"session {session} was read from a file that is gone", str(path), "put it back to resume")
    if digest_of(path) != record.origin.get("sha256"):
        raise InputError(f"the file has changed since session {session} began", str(path), "start a new session")
    return path


def measured_specification(loaded: LoadedSession) -> Specification:
    """The specification of a session as it was measured. Raises InputError as `file_of` does."""
    record = loaded.record
    spec = _with_settings(load_specification(file_of(record)), setting_names(loaded.space))
    sources.require_as_measured(spec, record.origin, record.id)
    if "repeats" not in record.origin:  # which older sessions do not have: those of the file
        return spec
    return spec.repeated(int(record.origin["repeats"]))


def require_board(record: SessionRecord, gpu: Gpu) -> None:
    """Raise InputError unless it is a board as the session was measured on."""
    if gpu.info.label != record.board:
        what = f"session {record.id} was measured on another board, {record.board}"
        raise InputError(what, gpu.info.label, "open that one")


def objective_over(own: Objective, names: Sequence[str], options: SearchOptions) -> Objective:
    """The objective of a session over a recording with values of these names: the chosen one, else the recording's.

    Where the recording holds no value of its own objective, the time; of its own front, time against energy.
    """
    front = options.front
    goal = options.objective or (front[0] if front else None)
    if goal is None:
        goal = Goal("time_s", maximise=False) if own.goal.name not in names and "time_s" in names else own.goal
    kept = own.front if all(kept_goal.name in names for kept_goal in own.front) else ()
    asked = front is not None or (bool(kept) and own.front_asked)
    front = front if front is not None else kept or _default_front(names)
    limits = options.limits
    if limits is None:
        limits = tuple(limit for limit in own.limits if limit.name in names)
    return Objective(goal, front, limits, asked)


def check_goals(goals: Iterable[Goal | Limit], names: Sequence[str], where: str) -> None:
    """Raise InputError for a goal, or a limit, of none of the named values."""
    for goal in goals:
        if goal.name not in names:
            raise InputError(f"there is no value '{goal.name}'", where, f"known: {', '.join(names)}")


# --- inside -----------------------------------------------------------------------------------------------------------


def _objective_of(spec: Specification, options: SearchOptions) -> Objective:
    """The objective of a session of a specification. Raises InputError without one, or for an unknown name."""
    objective, front = spec.objective, options.front
    goal = options.objective or (objective.goal if objective else None) or (front[0] if front else None)
    if goal is None:
        raise InputError("there is no objective", str(spec.path), "add [objective] maximise = NAME, or name one")
    names = _figures(spec)
    asked = front if front is not None else objective.front if objective else ()
    front = asked or _default_front(names)
    limits = options.limits if options.limits is not None else spec.limits
    check_goals((goal, *front, *limits), names, str(spec.path))
    return Objective(goal, front, limits, bool(asked))


def _objective_without_energy(spec: Specification, objective: Objective, gpu: Gpu) -> Objective:
    """The objective on a device that reports time alone; goals of the front that need more are left out.

    Raises InputError if the objective itself needs more.
    """
    names = {"time_s", *_reported(spec), *spec.parameters, *spec.constants} - set(OF_ENERGY)
    for name, text in spec.metrics.items():
        if names.issuperset(parse(text, f"{spec.path}: metrics.{name}").names):
            names.add(name)
    if objective.goal.name not in names:
        what = f"'{objective.goal.name}' needs energy, power or a clock, and this device reports none"
        raise InputError(what, gpu.info.label, "--minimise time_s, or choose a GPU")
    for limit in objective.limits:
        if limit.name not in names:
            what = f"the limit of '{limit.name}' needs energy, power or a clock, and this device reports none"
            raise InputError(what, gpu.info.label, "leave it out, or choose a GPU")
    front = tuple(goal for goal in objective.front if goal.name in names)
    return replace(objective, front=front if len(front) > 1 else ())


def _figures(spec: Specification) -> tuple[str, ...]:
    """The names that an objective may have."""
    return (*MEASURED, *_reported(spec), *spec.metrics)


def _reported(spec: Specification) -> tuple[str, ...]:
    """The figures that the workload reports by itself."""
    if spec.command is not None:
        return tuple(spec.command.values)
    if spec.service is not None:
        return spec.service.figures
    return returned_value(spec.kernel) if spec.kernel is not None else ()


def _with_settings(spec: Specification, names: Collection[str]) -> Specification:
    """The specification with these device settings alone."""
    kept = {name: values for name, values in spec.device_settings.items() if name in names}
    return replace(spec, device_settings=kept)


def _space(
    spec: Specification,
    limits: DeviceLimits,
    settings: Mapping[str, tuple[Value, ...]],
    notes: tuple[str, ...] = (),
    stop: Event | None = None,
) -> SearchSpace:
    """Of several values of a setting, the untouched board is measured beside them.

    But not where a program is given the setting's value: it has no word for that.
    """
    names = {"block_size_names": spec.kernel.block_size_names} if spec.kernel else {}
    handed_over = PLACE.findall(repr((spec.kernel, spec.command, spec.service)))
    searched = any(len(values) > 1 for values in settings.values()) and settings.keys().isdisjoint(handed_over)
    return build_space(
        spec.parameters,
        spec.restrictions,
        spec.constants,
        limits,
        settings,
        notes=(*spec.notes, *notes),
        where=str(spec.path),
        stop=stop,
        untouched=searched,
        **names,
    )


def _problem_size(spec: Specification) -> str:
    """The kernel's problem size, as caches write it; '' where it depends on parameters."""
    sizes = [parse(text, str(spec.path)) for text in (spec.kernel.problem_size if spec.kernel else ())]
    if not all(name in spec.constants for size in sizes for name in size.names):
        return ""
    return ", ".join(f"{size.number(spec.constants):.0f}" for size in sizes)


def _precision(spec: Specification) -> str:
    """The precision of the kernel: that of a constant, else the one type of its floating-point arrays; else ''."""
    named = spec.constants.get("precision")
    if isinstance(named, str) and named in _NAMED:
        return named
    types = (argument.type for argument in (spec.kernel.arguments if spec.kernel else ()) if argument.shape)
    precisions = {_PRECISIONS[kind] for kind in types if kind in _PRECISIONS}
    return precisions.pop() if len(precisions) == 1 else ""


def check_search(spec: Specification) -> None:
    """Raise InputError, with file and key, where the specification's own strategy or one of its options is unknown."""
    key = "strategy"
    try:
        chosen = strategies.get(spec.strategy)
        key = "options"
        strategies.make_options(chosen, dict(spec.strategy_options))
    except InputError as error:
        raise InputError(error.what, f"{spec.path}: search.{key}", error.remedy) from None


def _default_front(names: Sequence[str]) -> tuple[Goal, ...]:
    """Time against energy, where both are known."""
    both = ("time_s", "energy_j")
    return tuple(Goal(name, maximise=False) for name in both) if set(both) <= set(names) else ()
