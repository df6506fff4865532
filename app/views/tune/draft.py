"""`Draft`: a session that could be started, its space built. Made off Qt's thread; free of Qt."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...base.errors import InputError, LockedOutside, WattridgeError
from ...base.formatting import counted, duration
from ...engine.results.measurement import MEASURED
from ...engine.results.state import Purpose
from ...engine.runner.boards import ReadyPlan
from ...engine.specification.plan import SearchOptions

if TYPE_CHECKING:
    from ...engine.control.guard import DeviceGuard
    from ...engine.space.result_table import ResultTable
    from ...engine.store.database import Store
    from ...engine.store.record import SessionRecord
    from ...sensors.gpu import Gpu

Range = tuple[float, float]
_OVER_LOCKS: Final = "this board all the same, and leave it unlocked"


def no_guard() -> None:
    """Nothing sets what the boards of a pool do from here: their workers may, or not."""


@dataclass(frozen=True, slots=True)
class Target:
    """What a session is set up to run on: one board, or several as one. Its functions are called off Qt's thread."""

    name: str  # tells it apart from others
    gpu: Callable[[], Gpu]  # raises WattridgeError if it is not there any more
    guard: Callable[[], DeviceGuard | None] = no_guard
    clocks_mhz: Range | None = None  # that it is steered to


@dataclass(frozen=True, slots=True)
class Draft:
    """What was opened, and the plan that it gives."""

    path: Path
    plan: ReadyPlan
    figures: tuple[str, ...]  # what an objective may name
    clocks_mhz: Range | None = None  # steered to these graphics clocks; None if it is not
    taken_over: Path | None = None  # a recording whose measurements count
    follow: ReadyPlan | None = None  # a recording that a tuner still writes can be followed instead
    recorded: ResultTable | None = None  # all that a complete recording holds
    stored: SessionRecord | None = None  # the session that was opened; it can be continued, or started again
    refused: tuple[str, str] | None = None  # why nothing can be run, and the remedy: it can only be looked at

    @property
    def replay(self) -> bool:
        """Answered from a recording: the GPU in the window takes no part."""
        return self.plan.purpose is Purpose.REPLAY

    def why_used_up(self, evaluations: float, seconds: float) -> str:
        """Why the stored session cannot go on within these limits (0: none); '' where it can."""
        if self.stored is None:
            return ""
        size = self.plan.space.size
        done, spent_s = self.stored.evaluated, self.stored.elapsed_s
        if done >= size:
            return f"Its whole space is measured: {counted(size, 'configuration')}"
        if done >= min(evaluations or size, size):
            return f"It has measured {counted(done, 'configuration')}: allow it more evaluations"
        if seconds and spent_s >= seconds:
            return f"It has taken {duration(spent_s)}: allow it more time"
        return ""


@dataclass(frozen=True, slots=True)
class RunsElsewhere:
    """A specification that the shown board cannot run, and a device of this computer that can.

    Without a selector it is the shown board, once the user agrees to lose a lock that another tool seems to hold.
    """

    selector: str
    device: str  # in words
    what: str  # why not here


def prepared_file(
    path: Path, target: Target, stop: threading.Event, taken_over: Path | None = None
) -> Draft | RunsElsewhere:
    """`draft_of_file`, or the device that runs what this board cannot. A recording needs no board."""
    if _is_recording(path):
        return _draft_of_recording(path, stop)
    gpu = target.gpu()
    try:
        return draft_of_file(path, gpu, target.clocks_mhz, stop, taken_over, target.guard())
    except LockedOutside as locked:
        return RunsElsewhere("", _OVER_LOCKS, locked.what)
    except InputError:
        elsewhere = runs_elsewhere(path, gpu)
        if elsewhere is None:
            raise
        return elsewhere


def draft_of_file(
    path: Path,
    gpu: Gpu,
    clocks_mhz: Range | None,
    stop: threading.Event,
    taken_over: Path | None = None,
    guard: DeviceGuard | None = None,
) -> Draft:
    """Read a specification (TOML, T1) or a recording (cache, T4 results, CSV) and build its space.

    `clocks_mhz` keeps a specification to the supported graphics clocks within that range; a recording has its own.
    A real board's clocks and caps are part of the space where `guard` may set them.
    `taken_over` is a recording whose measurements count as evaluated. Raises InputError or WattridgeError with the one
    line to show.
    """
    from ...engine.formats.read import read_recording
    from ...engine.session import planning  # imported late: a window that only watches needs none of it
    from ...engine.session.load import load_specification

    if _is_recording(path):
        return _draft_of_recording(path, stop)
    spec = load_specification(path)
    clocks = {} if clocks_mhz is None else {"graphics_clock_mhz": clocks_within(gpu, clocks_mhz)}
    plan = planning.plan_specification(spec, gpu, SearchOptions(device_settings=clocks), guard=guard, stop=stop)
    if taken_over is not None:
        from ...engine.session.follow import with_recording

        plan = with_recording(plan, spec, read_recording(taken_over))
    return Draft(path, plan, (*spec.metrics, *MEASURED), clocks_mhz, taken_over)


def runs_elsewhere(path: Path, gpu: Gpu) -> RunsElsewhere | None:
    """Where a kernel runs whose language is none of this board's; None if that is not what is wrong with a file.

    Raises InputError if the file cannot be read.
    """
    from ...engine.runner.languages import usual_device
    from ...engine.session.load import load_specification
    from ...engine.session.on_board import OneBoard
    from ...sensors.opencl.devices import opencl_installed
    from ...sensors.select import HOST, OPENCL

    spec = load_specification(path) if path.suffix == ".toml" else None
    if spec is None or spec.kernel is None or spec.refused or gpu.info.source == "unmetered":
        return None
    selector = usual_device(spec.kernel, real_boards=gpu.info.live)
    if selector is None or (selector == OPENCL and not opencl_installed()):
        return None
    try:
        OneBoard(gpu).require_runnable(spec)
    except InputError:
        device = "this computer's processor" if selector == HOST else "OpenCL's first device"
        return RunsElsewhere(selector, device, f"{gpu.info.label} does not run kernels in {spec.kernel.language}")
    return None


def _is_recording(path: Path) -> bool:
    """Whether a file is no specification. Raises InputError if there is none."""
    from ...engine.formats.t1 import is_specification

    if not path.is_file():
        raise InputError("there is no such file", str(path), "check the path")
    return not is_specification(path)


def _draft_of_recording(path: Path, stop: threading.Event) -> Draft:
    """A recording, read whole; one still written is waited for until a configuration in it succeeded."""
    from ...engine.formats.read import read_recording
    from ...engine.session import planning
    from ...engine.session.follow import is_growing, plan_follow

    follow = plan_follow(path, stop) if is_growing(path) else None
    recording = read_recording(path)
    plan = planning.plan_replay(path, read=recording)
    recorded = recording.table() if follow is None else None
    return Draft(path, plan, recording.value_names, follow=follow, recorded=recorded)


def draft_of_session(store: Store, session: int, target: Target) -> Draft | RunsElsewhere:
    """A stored session, to be continued or started again; `refused` says why where neither is possible.

    Raises InputError if there is no such session, or where it measured a roofline.
    """
    from ...engine.session import planning

    record = store.session(session)
    if record.purpose is Purpose.ROOFLINE:
        raise InputError("it measured a board's roofline, and no kernel", f"session {session}", "resume it in Library")
    replay = record.purpose is Purpose.REPLAY
    loaded, refused = store.load(session), None
    try:
        gpu, guard = (None, None) if replay else (target.gpu(), target.guard())
        plan = planning.plan_resume(store, session, gpu=gpu, guard=guard)
    except LockedOutside as locked:
        return RunsElsewhere("", _OVER_LOCKS, locked.what)
    except WattridgeError as error:
        plan, refused = planning.plan_of(loaded), (f"{error.where}: {error.what}", error.remedy)
    names = dict.fromkeys((*loaded.table.value_names, *(goal.name for goal in plan.objective.front)))
    path = Path(record.origin.get("file", record.title))
    return Draft(path, plan, tuple(names), stored=record, refused=refused)


def clocks_within(gpu: Gpu, clocks_mhz: Range) -> tuple[int, ...]:
    """The supported graphics clocks within a range. Raises InputError if there are none."""
    low, high = clocks_mhz
    result = tuple(clock for clock in gpu.graphics_clocks_mhz() if low <= clock <= high)
    if not result:
        raise InputError(
            f"no supported graphics clock lies within {low:.0f}–{high:.0f} MHz", gpu.info.label, "fit the model again"
        )
    return result
