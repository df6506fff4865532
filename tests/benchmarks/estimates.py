"""How well the time of a session is estimated: python tests/benchmarks/estimates.py [SPEED [EXAMPLE...]]

Every example that its simulated board runs, at SPEED (10) times real time: the range that is stated before the start,
what is left by the session's own estimate at a tenth of its time, and the truth on the wall. Fails where a range does
not hold it, or where the whole by the estimate is off by more than a third. On a board: --gpu SELECTOR.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from argparse import ArgumentParser
from contextlib import closing
from pathlib import Path

from app.base.errors import WattridgeError
from app.base.paths import resources
from app.engine.session.events import Event, MeasurementsAdded, Preparing
from app.engine.session.expected_time import expected_time, pace_of
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_specification
from app.engine.session.run import run_session
from app.engine.specification.plan import SearchOptions
from app.engine.store.database import Store
from app.sensors.select import open_gpu

A_TENTH, A_THIRD = 0.1, 1 / 3


def measure(path: Path, selector: str, speed: float, strategy: str | None, store: Store) -> bool:
    """Print a line of the table; whether both estimates held."""
    with closing(open_gpu(selector, seed=0, speed=speed)) as gpu:
        plan = plan_specification(load_specification(path), gpu, SearchOptions(strategy=strategy))
        began = time.monotonic()
        pace = pace_of(plan, store)
        took = time.monotonic() - began
        stated = None if pace is None else expected_time(pace, plan)
        seen: list[tuple[float, float]] = []  # seconds since the start, and the whole by the estimate then

        def note(event: Event) -> None:
            if isinstance(event, MeasurementsAdded | Preparing):
                since_s = time.monotonic() - started
                left_s = event.progress.eta_s if isinstance(event, MeasurementsAdded) else None
                seen.append((since_s, float("nan") if left_s is None else since_s + left_s))

        started = time.monotonic()
        result = run_session(plan, store, note, threading.Event())
        truth_s = time.monotonic() - started
    after = [(at / truth_s, whole / truth_s) for at, whole in seen if at >= A_TENTH * truth_s] or [(1.0, 1.0)]
    off = [abs(share - 1) for _, share in after]
    holds = stated is not None and stated.low_s <= truth_s <= stated.high_s
    good = all(each <= A_THIRD for each in off)
    words = "none" if stated is None else f"{stated.low_s:.1f}-{stated.high_s:.1f}"
    print(
        f"{path.stem:<22} {plan.strategy:<22} {result.progress.evaluated:>5} {result.progress.timed:>5} {took:>6.2f} "
        f"{words:>14} {after[0][1] * truth_s:>8.1f} {max(off, default=0.0):>7.2f} {truth_s:>7.1f}  "
        f"{'holds' if holds else 'MISSES'}, {'within a third' if good else 'OFF'}",
        flush=True,
    )
    return holds and good


def main() -> int:
    parser = ArgumentParser()
    parser.add_argument("speed", nargs="?", type=float, default=10.0)
    parser.add_argument("examples", nargs="*")
    parser.add_argument("--gpu", default="simulated:a100")
    parser.add_argument("--strategy")
    asked = parser.parse_args()
    folder = resources() / "examples"
    paths = [*sorted(folder.glob("*.toml")), *sorted((folder / "services").glob("rtx5090*.toml"))]
    print(
        f"{'example':<22} {'strategy':<22} {'full':>5} {'timed':>5} {'ask s':>6} {'range s':>14} "
        f"{'at 10 %':>8} {'worst':>7} {'truth s':>7}"
    )
    failed = 0
    with tempfile.TemporaryDirectory() as data, Store(Path(data) / "sessions.db") as store:
        for path in paths:
            if asked.examples and path.stem not in asked.examples:
                continue
            selector = "simulated:rtx5090" if path.parent != folder else asked.gpu
            try:
                speed = asked.speed if "simulated" in selector else 1.0
                failed += not measure(path, selector, speed, asked.strategy, store)
            except WattridgeError as error:
                print(f"{path.stem:<22} does not run there: {error.what}", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
