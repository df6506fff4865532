"""The cost of analysing the GEMM space of [Schoonhoven2024] at 7 clocks: python tests/benchmarks/analyse.py [FOLDER]

Tunes the GEMM example with more parameters, at least 17,472 configurations at 7 clocks, whole on a simulated A100 (some
minutes; kept in FOLDER and used again), then prints what loading and analysing it take, by part, in processor seconds:
the wall clock of a shared machine tells less. Never part of the test suite: wall-clock time does not gate anything.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
ROWS = 17_472 * 7
T = TypeVar("T")


def specification() -> str:
    """The example with what it lacks of [Schoonhoven2024]'s kernel: depth and width of the tiles' loads, unrolling."""
    text = (ROOT / "resources" / "examples" / "gemm.toml").read_text()
    changes = {
        "../kernels": str(ROOT / "resources" / "kernels"),
        "block_size_x = [16, 32, 64]": "block_size_x = [8, 16, 32, 64]",
        "tile_size_y = [1, 2, 4, 8]": "tile_size_y = [1, 2, 4, 8]\ntile_size_k = [8, 16, 32]\n"
        "vector_width = [1, 2, 4]\n"
        "unroll = [1, 2, 4, 8, 16]\nuse_shared_memory = [0, 1]",
        "4 * block_size_x * (": "4 * tile_size_k * (",
        "restrictions = [": 'restrictions = [\n    "unroll <= tile_size_k", "vector_width <= tile_size_x",',
    }
    for before, after in changes.items():
        assert before in text, before
        text = text.replace(before, after)
    return text


def tuned(folder: Path) -> None:
    """A session over the whole space in the folder's store, unless it is there already."""
    if (folder / "wattridge.sqlite").exists():
        return
    (folder / "gemm.toml").write_text(specification())
    words = [str(folder / "gemm.toml"), "--gpu", "simulated:a100", "--strategy", "brute_force"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "WATTRIDGE_DATA": str(folder)}
    subprocess.run(
        [sys.executable, "-m", "app", "tune", *words, "--max-evaluations", "1000000"], env=environment, check=True
    )


def timed(what: str, action: Callable[[], T], figures: list[tuple[str, float]]) -> T:
    begun = time.process_time()
    result = action()
    figures.append((what, time.process_time() - begun))
    return result


def main() -> None:
    kept = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    with tempfile.TemporaryDirectory() as temporary:
        folder = kept or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        tuned(folder)
        os.environ["WATTRIDGE_DATA"] = str(folder)
        measure(folder)


def measure(folder: Path) -> None:
    from app.engine.analysis import plane as planes
    from app.engine.analysis import session_analysis as parts
    from app.engine.analysis.analysis_document import document_of
    from app.engine.session.named import open_session

    figures: list[tuple[str, float]] = []
    opened = timed("load the session", lambda: open_session(None), figures)
    table, objective = opened.table, opened.objective
    assert len(table) >= ROWS, f"{len(table)} configurations are fewer than {ROWS}"
    found = timed("analyse it, centrality included", lambda: parts.analyse(table, objective), figures)
    timed("as a document", lambda: document_of(found), figures)
    costs = parts.costs_of(table)
    goals = planes.goals_of(table, objective)
    assert goals is not None
    observed = parts.observed_in(table)
    speed, efficiency = 1 / costs.time_s, 1 / costs.energy_j
    timed("  front, hull, quadrants, hypervolume", lambda: planes.plane_of(table, goals), figures)
    timed("  choosers", lambda: parts.choices(costs), figures)
    timed(f"  correlations of {len(observed)}", lambda: parts.correlations(observed, speed, efficiency), figures)
    timed("  difficulty of time and energy", lambda: parts.difficulties(table, costs, objective.goal), figures)
    begun = os.times()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "WATTRIDGE_DATA": str(folder)}
    subprocess.run(
        [sys.executable, "-m", "app", "analyse", "--json"], env=environment, stdout=subprocess.DEVNULL, check=True
    )
    ended = os.times()
    spent = ended.children_user + ended.children_system - begun.children_user - begun.children_system
    figures.append(("wattridge analyse --json, whole process", spent))
    width = max(len(what) for what, _ in figures)
    print(f"{len(table)} configurations, {len(found.difficulty['energy'].minima)} local minima of energy")
    for what, seconds in figures:
        target = "  (target 5 s)" if "analyse" in what else ""
        print(f"{what.ljust(width)}  {seconds:6.2f} s{target}")
    print(f"wall clock of the last one: {ended.elapsed - begun.elapsed:.1f} s; load average {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
