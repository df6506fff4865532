"""`Context`: what every panel of the window is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .current_result import CurrentResult
from .threads.bridge import EngineBridge

if TYPE_CHECKING:
    from ..engine.control.guard import DeviceGuard
    from ..engine.store.database import Store
    from ..sensors.gpu import Gpu
    from ..sensors.sampler import Sampler
    from ..sensors.trace import Trace


@dataclass(frozen=True, slots=True)
class Context:
    """One GPU, its trace, the engine behind the bridge and the result that is shown. Panels are `Panel(context)`.

    Panels own what they connect; the window deletes them before it closes the bridge and the GPU. A panel reports what
    went wrong with `context.bridge.report(what, remedy)`. Colours come from `plots.theme.colours()`; a panel that
    paints connects to `plots.theme.notifier().changed`. A panel that runs threads or timers of its own ends them in a
    method `shutdown()`, which the window calls if there is one. The tuning panel also has
    `open(path: Path, *, start: bool = False)`, called when the program is given a specification or runs the demo.
    """

    bridge: EngineBridge
    gpu: Gpu
    trace: Trace
    sampler: Sampler
    store: Store
    result: CurrentResult  # what every view shows and every export writes
    others: tuple[str, ...] = ()  # selectors of boards to be watched at a glance beside this one
    guard: DeviceGuard | None = None  # the one door to the GPU's settings; its own thread is the engine's
