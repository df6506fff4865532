"""Runs one session for an assistant: the job is its parent's first frame, and it answers with frames what happens.

The specification is read, checked and run here, once: what was checked is what runs. Real boards are read-only
(the environment says so to everything below). Another frame, or the end of the parent, stops the session.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from ...base.conversation import Parent
from ...base.errors import WattridgeError
from ...base.processes import use_one_core
from ...base.records import as_json
from ...engine.control.client import Asking
from ...engine.control.guard import DeviceGuard
from ...engine.results.objectives import Goal, parse_front
from ...engine.results.state import Progress
from ...engine.session.events import EngineFault, Event, MeasurementsAdded, Preparing, SessionRemark, SessionStarted
from ...engine.session.planning import plan_specification
from ...engine.session.run import run_session
from ...engine.specification.plan import SearchOptions
from ...engine.store.database import Store
from ...sensors.select import open_gpu
from .allowed import Folders, check_board, load_allowed

_EVERY_S: Final = 0.2  # between two frames of progress


class _Teller:
    """Sends the session's events to the server."""

    def __init__(self, parent: Parent) -> None:
        self._parent = parent
        self._last = 0.0

    def tell(self, **message: Any) -> None:
        self._parent.send(as_json(message))

    def on_event(self, event: Event) -> None:
        """Forward the events that are part of an assistant's progress."""
        if isinstance(event, SessionStarted):
            space = event.plan.space
            self.tell(started={"session": event.session, "valid": space.size, "notes": list(space.notes)})
        elif isinstance(event, MeasurementsAdded):
            if time.monotonic() - self._last >= _EVERY_S:
                self._last = time.monotonic()
                self.tell(progress=_progress(event.progress))
        elif isinstance(event, Preparing):
            self.tell(preparing={"what": event.what, "done_s": event.done_s, "at_most_s": event.total_s})
        elif isinstance(event, SessionRemark):
            self.tell(remark=event.text)
        elif isinstance(event, EngineFault):
            self.tell(remark=f"{event.what} {event.remedy}".strip())


def main() -> int:
    """Run the job. 0 if there was a session, however it ended."""
    use_one_core()
    parent = Parent()
    teller = _Teller(parent)
    stop = threading.Event()
    frame = parent.inbox.get()
    if frame is None:
        return 1
    job, _ = frame
    threading.Thread(target=_stop_at_next_frame, args=(parent, stop), name="server", daemon=True).start()
    try:
        _run(job, teller, stop)
    except WattridgeError as error:
        teller.tell(refused=error.as_json()["error"])
        return 1
    return 0


def _run(job: Mapping[str, Any], teller: _Teller, stop: threading.Event) -> None:
    folders = Folders([Path(folder) for folder in job["folders"]])
    selector, options = check_board(job["gpu"]), _options(job)
    with (
        closing(open_gpu(selector, seed=job.get("sim_seed", 0), speed=float("inf"))) as gpu,
        closing(DeviceGuard(gpu, allow_control=False, asking=Asking.NEVER, by="an assistant")) as guard,
    ):
        specification = load_allowed(job["specification"], folders, amd=gpu.info.source == "amd")
        plan = plan_specification(specification, gpu, options, guard=guard)
        with Store() as store:
            result = run_session(plan, store, teller.on_event, stop)
    teller.tell(progress=_progress(result.progress))
    teller.tell(ended={"session": result.session, "state": result.state.value, "reason": result.reason})


def _options(job: Mapping[str, Any]) -> SearchOptions:
    goal = Goal(job["maximise"], True) if "maximise" in job else None
    return SearchOptions(
        strategy=job.get("strategy"),
        objective=Goal(job["minimise"], False) if goal is None and "minimise" in job else goal,
        front=parse_front(job["front"]) if "front" in job else None,
        max_evaluations=job["max_evaluations"],
        max_seconds=job["max_seconds"],
        seed=job.get("seed"),
    )


def _progress(progress: Progress) -> dict[str, Any]:
    return {
        "session": progress.session,
        "state": progress.state.value,
        "evaluated": progress.evaluated,
        "timed": progress.timed,
        "failed": progress.failed,
        "budget": progress.budget,
        "elapsed_s": progress.elapsed_s,
        "eta_s": progress.eta_s,
        "best_value": progress.best_value,
    }


def _stop_at_next_frame(parent: Parent, stop: threading.Event) -> None:
    parent.inbox.get()
    stop.set()


if __name__ == "__main__":
    sys.exit(main())
