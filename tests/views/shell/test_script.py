"""A script beside the window: `wattridge kernel-tuner --window`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from app import tune_kernel
from app.base.errors import WattridgeError
from app.scripting.surroundings import Surroundings, running_with
from app.views.shell.script import Run, ScriptRun

SOURCE = "__global__ void vector_add(float *c, const float *a, const float *b, int n) {}"


def tuned(**more: Any) -> Any:
    x, n = np.zeros(10, np.float32), np.int32(1_000_000)
    given = {"block_size_x": [128, 256, 512]}
    return tune_kernel("vector_add", SOURCE, int(n), [x, x, x, n], given, profile="vector_add", quiet=True, **more)


@pytest.fixture
def script(open_program: Callable[..., Any]) -> Any:
    """`script(body)` runs a body beside a window; the window and the run."""
    runs: list[ScriptRun] = []

    def start(body: Callable[[], None]) -> tuple[Any, ScriptRun]:
        program = open_program()

        def with_window(run: Run) -> None:
            with running_with(Surroundings(gpu="simulated:a100", run=run)):
                body()

        runs.append(ScriptRun(program.window.bridge, with_window))
        runs[-1].start()
        return program, runs[-1]

    yield start
    for each in runs:
        each.close()


def test_the_window_runs_and_shows_a_scripts_sessions_and_the_script_gets_its_results(script: Any, qtbot: Any) -> None:
    found: list[Any] = []
    program, _ = script(lambda: found.extend([tuned(), tuned(metrics={"doubled": lambda p: 2 * p["time"]})]))
    qtbot.waitUntil(lambda: len(found) == 2, timeout=30_000)
    (first, first_environment), (second, second_environment) = found
    assert len(first) == len(second) == 3
    assert second[0]["doubled"] == 2 * second[0]["time"]
    assert second_environment["session"] == first_environment["session"] + 1
    qtbot.waitUntil(lambda: program.window.result.session == second_environment["session"], timeout=5_000)


def test_what_is_refused_is_refused_to_the_script(script: Any, qtbot: Any) -> None:
    found: list[str] = []

    def body() -> None:
        try:
            tuned(strategy="nonsense")
        except WattridgeError as error:
            found.append(str(error))

    script(body)
    qtbot.waitUntil(lambda: bool(found), timeout=10_000)
    assert "nonsense" in found[0]


def test_closing_the_window_ends_a_script_that_waits(script: Any, qtbot: Any) -> None:
    ended: list[str] = []
    measured, go = threading.Event(), threading.Event()

    def held(_: object) -> float:
        measured.set()
        go.wait(20.0)
        return 1.0

    def body() -> None:
        try:
            tuned(metrics={"held": held})
        except KeyboardInterrupt:
            ended.append("stopped")

    _, run = script(body)
    qtbot.waitUntil(measured.is_set, timeout=20_000)
    run.close()
    go.set()
    assert ended == ["stopped"]
