"""`Draft`: a session that could be started, its space built. Made off Qt's thread; free of Qt."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from app.engine.session import SessionPlan
from app.errors import InputError
from app.paths import resources

if TYPE_CHECKING:
    from app.engine.store import Store
    from app.sensors.gpu import Gpu

Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Draft:
    """What was opened, and the plan that it gives."""

    path: Path
    plan: SessionPlan
    figures: tuple[str, ...]  # what an objective may name
    clocks_mhz: Range | None = None  # steered to these graphics clocks; None where it is not

    @property
    def replay(self) -> bool:
        """Answered from a recorded cache: the GPU in the window takes no part."""
        return self.path.suffix.lower() != ".toml"


def draft_of_file(path: Path, gpu: Gpu, clocks_mhz: Range | None, stop: threading.Event) -> Draft:
    """Read a specification (.toml) or a Kernel Tuner cache (.json, .json.gz) and build its space.

    `clocks_mhz` keeps a specification to the supported graphics clocks within that range; a cache has its own clocks.
    Raises InputError or WattridgeError with the one line to show.
    """
    from app.engine import planning  # imported late: a window that only watches needs none of it

    if not path.is_file():
        raise InputError("there is no such file", str(path), "check the path")
    if path.suffix.lower() != ".toml":
        from app.engine.formats.kernel_tuner import read_cache

        return Draft(path, planning.plan_replay(path), read_cache(path).value_names)
    from app.engine.specification import load_specification

    spec = load_specification(path)
    settings = None if clocks_mhz is None else {"graphics_clock_mhz": clocks_within(gpu, clocks_mhz)}
    plan = planning.plan_specification(spec, gpu, device_settings=settings, stop=stop)
    return Draft(path, plan, (*spec.metrics, *planning.MEASURED), clocks_mhz)


def draft_of_session(store: Store, session: int, gpu: Gpu) -> Draft:
    """A stored session, to be gone on with. Raises InputError where it cannot be."""
    from app.engine import planning

    record = store.session(session)
    replay = record.origin.get("kind") == "replay"
    plan = planning.plan_resume(store, session, gpu=None if replay else gpu)
    names = dict.fromkeys((plan.objective.goal.name, *(goal.name for goal in plan.objective.front)))
    return Draft(Path(record.origin.get("file", record.title)), plan, tuple(names))


def clocks_within(gpu: Gpu, clocks_mhz: Range) -> tuple[int, ...]:
    """The supported graphics clocks within a range. Raises InputError where there are none."""
    low, high = clocks_mhz
    found = tuple(clock for clock in gpu.graphics_clocks_mhz() if low <= clock <= high)
    if not found:
        raise InputError(
            f"no supported graphics clock lies within {low:.0f}–{high:.0f} MHz", gpu.info.label, "fit the model anew"
        )
    return found


def examples() -> tuple[Path, ...]:
    """The specifications that come with the program."""
    return tuple(sorted((resources() / "examples").glob("*.toml")))
