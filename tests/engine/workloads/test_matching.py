"""A specification's regular expressions find what they describe, and cannot hang a session."""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.engine.control.guard import DeviceGuard
from app.engine.results.measurement import State
from app.engine.runner.command import CommandRunner
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_specification
from app.engine.workloads.command import TooSlow, last_matches
from app.sensors.clock import ScaledClock
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin

ENDLESS = "(a+)+$"
BAIT = "a" * 40 + "b"


def test_the_last_match_counts_and_a_pattern_without_one_says_so() -> None:
    found = last_matches({"x": r"x = (\d+)", "y": r"y = (\d+)"}, "x = 1\nx = 22\n")
    assert found == {"x": "22", "y": None}


@settings(max_examples=8, deadline=None)
@given(text=st.text(st.sampled_from("ab1 \n=\x00é\u2028😀"), max_size=60))
def test_it_finds_what_re_finds_here(text: str) -> None:
    patterns = {"number": "([0-9]+)", "line": "^(a.*)$", "odd": "(é|😀)"}
    expected = {
        name: ([None, *(match[1] for match in re.finditer(pattern, text, re.MULTILINE))])[-1]
        for name, pattern in patterns.items()
    }
    assert last_matches(patterns, text) == expected


def test_a_pattern_that_would_run_for_years_is_ended_and_named() -> None:
    begun = time.monotonic()
    with pytest.raises(TooSlow, match="bad: the pattern takes longer than 1 s") as error:
        last_matches({"good": "(b)", "bad": ENDLESS}, BAIT, limit_s=1.0)
    assert error.value.name == "bad"
    assert time.monotonic() - begun < 30


def test_stop_ends_the_search_long_before_its_limit() -> None:
    stop = threading.Event()
    threading.Timer(0.3, stop.set).start()
    begun = time.monotonic()
    assert last_matches({"bad": ENDLESS}, BAIT, stop=stop, limit_s=600.0) is None
    assert time.monotonic() - begun < 60


def test_nothing_of_the_working_directory_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("re", "json", "app"):
        (tmp_path / f"{name}.py").write_text("open('imported', 'w'); raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert last_matches({"x": "(a)"}, "a") == {"x": "a"}
    assert "imported" not in os.listdir(tmp_path)


def test_in_a_session_such_a_configuration_has_failed_and_the_next_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.engine.metering.watching.LINGER_S", 0.1)
    monkeypatch.setattr("app.engine.workloads.command.LIMIT_S", 1.0)
    (tmp_path / "bench.py").write_text(f"import sys; print({BAIT!r} if sys.argv[1] == '1' else 'aaa')")
    path = tmp_path / "bench.toml"
    path.write_text(
        f"[command]\nrun = \"'{sys.executable}' bench.py {{size}}\"\n[command.values]\nlength = '(?:a+)+(x)$'\n"
        "[parameters]\nsize = [1, 2]\n[objective]\nminimise = 'time_s'\n"
    )
    spec = load_specification(path)
    gpu = SimulatedGpu(load_twin("h200"), clock=ScaledClock(4.0))
    space = plan_specification(spec, gpu).space
    runner = CommandRunner(gpu, spec, space, DeviceGuard(gpu))
    try:
        slow, other = runner.measure([0, 1], threading.Event())
    finally:
        runner.close()
        gpu.close()
    assert slow.state is State.TIMEOUT
    assert "length: the pattern takes longer than 1 s" in slow.error + slow.message
    assert other.state is State.CORRECTNESS  # 'aaa' is not a number: it was searched
