"""`tune`: any callable over its own parameters."""

from __future__ import annotations

import subprocess
import sys
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fixtures.cuda_bench import POWER_W, SteadySensors
from fixtures.stand_in_torch import Device, stand_in

from app import tunable, tune
from app.base.errors import InputError, WattridgeError
from app.cli import main
from app.engine.runner.function import BATCH_S, call_repeatedly, find_timer
from app.engine.store.database import Store
from app.sensors.unmetered import NO_ENERGY


class Clock:
    """Time that passes only in `works`: what the machine is busy with changes nothing that is measured."""

    words = "a clock of the test's own"
    now_s = 0.0

    def mark(self) -> float:
        return self.now_s

    def wait(self, mark: float) -> None:
        pass

    def seconds(self, first: float, last: float) -> float:
        return last - first


CLOCK = Clock()


def works(seconds: float) -> None:
    """Takes as long as it is told."""
    CLOCK.now_s += seconds


@pytest.fixture(autouse=True)
def own_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.engine.runner.function.find_timer", lambda *_: CLOCK)


def test_the_best_is_found_and_the_session_is_in_the_store() -> None:
    result = tune(works, {"seconds": [0.02, 0.005, 0.01]}, strategy="brute_force", target=0.5, quiet=True)
    assert result.best == {"seconds": 0.005}
    assert result.best_values["time_s"] == pytest.approx(0.005)
    assert [row["seconds"] for row in result.rows()] == [0.02, 0.005, 0.01]
    assert "not known" in result.source
    assert "seconds=0.005" in repr(result)
    assert result.front == []
    with Store() as store:
        loaded = store.load(result.session)
    assert loaded.record.title == "works"
    assert loaded.record.source == "unmetered"
    assert loaded.record.origin["kind"] == "script"
    assert any("energy is not known" in note for note in loaded.space.notes)


def test_the_values_of_a_parameter_may_be_a_function_of_other_parameters() -> None:
    tried: list[tuple[int, int]] = []

    def tiled(block: int, tile: int) -> None:
        tried.append((block, tile))

    parameters: dict[str, Any] = {"block": [32, 64], "tile": lambda block: range(1, 128 // block + 1)}
    result = tune(tiled, parameters, strategy="brute_force", target=0.5, quiet=True)
    assert set(tried) == {(32, 1), (32, 2), (32, 3), (32, 4), (64, 1), (64, 2)}
    assert len(result.rows()) == 6
    with pytest.raises(InputError, match="unknown name 'blocks'"):
        tune(tiled, {"block": [32], "tile": lambda blocks: [blocks]}, quiet=True)


def test_a_script_session_is_not_resumed_without_its_script(capsys: pytest.CaptureFixture[str]) -> None:
    result = tune(works, {"seconds": [0.01]}, target=0.5, quiet=True)
    assert main(["tune", "--resume", str(result.session)]) == 2
    assert "run the script again" in capsys.readouterr().err


def test_on_a_device_that_reports_no_energy_only_time_can_be_the_objective(capsys: pytest.CaptureFixture[str]) -> None:
    result = tune(works, {"seconds": [0.001]}, gpu="host", target=0.5)
    assert NO_ENERGY in capsys.readouterr().err
    assert set(result.best_values) == {"time_s"}
    with pytest.raises(InputError, match=NO_ENERGY):
        tune(works, {"seconds": [0.001]}, gpu="host", minimise="energy_j", quiet=True)


def test_energy_is_the_boards_over_the_calls_and_time_against_energy_is_a_front() -> None:
    result = tune(
        works, {"seconds": [0.004, 0.008]}, strategy="brute_force", gpu=SteadySensors(), target=0.5, quiet=True
    )
    for row in result.rows():
        assert row["time_s"] == pytest.approx(row["seconds"])
        assert row["energy_j"] == pytest.approx(POWER_W * row["seconds"], rel=0.02)
    assert result.best == {"seconds": 0.004}
    assert [row["seconds"] for row in result.front] == [0.004]
    page = result._repr_html_()
    assert page.count("<svg") == 1
    assert "Pareto front" in page


def test_a_simulated_board_says_that_a_function_draws_nothing_there(capsys: pytest.CaptureFixture[str]) -> None:
    result = tune(works, {"seconds": [0.001]}, gpu="simulated:h200", target=0.5)
    assert "draws nothing on a simulated board" in capsys.readouterr().err
    assert "SIMULATED" in result.source
    assert result.rows()[0]["energy_j"] > 0


def test_a_call_that_raises_or_is_wrong_costs_its_configuration() -> None:
    def half(value: int) -> float:
        if value == 3:
            raise ValueError("not three")
        return value / 2

    result = tune(half, {"value": [1, 2, 3]}, verify=lambda found: found == 1, strategy="brute_force", quiet=True)
    rows = {row["value"]: row for row in result.rows()}
    assert rows[1]["state"] == "correctness"
    assert "error" not in rows[2]
    assert rows[3]["error"] == "ValueError: not three"
    assert result.best == {"value": 2}
    nothing = tune(half, {"value": [3]}, quiet=True)
    assert "none of 1 configurations worked" in repr(nothing)
    with pytest.raises(WattridgeError, match="no configuration worked"):
        _ = nothing.best


def test_limits_and_a_limit_on_slowdown_choose_among_all() -> None:
    parameters = {"seconds": [0.004, 0.006, 0.02]}
    options: dict[str, Any] = {"strategy": "brute_force", "target": 0.5, "quiet": True}
    slowest_first = {**options, "metrics": {"waste": lambda row: -row["seconds"]}, "minimise": "waste"}
    assert tune(works, parameters, **slowest_first).best == {"seconds": 0.02}
    limited = tune(works, parameters, limits={"time_s": "<= 0.012"}, **slowest_first)
    assert limited.best == {"seconds": 0.006}
    assert limited.rows()[2]["state"] == "constraints"
    assert "limit is: time_s <= 0.012" in limited.rows()[2]["error"]
    assert tune(works, parameters, within=1.5, **slowest_first).best == {"seconds": 0.006}


def test_a_table_is_a_data_frame_where_pandas_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    result = tune(works, {"seconds": [0.001]}, target=0.5, quiet=True)
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert result.table() == result.rows()
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=lambda rows: ("frame", rows)))
    assert result.table() == ("frame", result.rows())


def test_a_decorated_function_is_called_with_the_best_once_it_is_tuned() -> None:
    @tunable({"seconds": [0.01, 0.002]}, target=0.5, strategy="brute_force", quiet=True)
    def waits(word: str, seconds: float = 0.0) -> tuple[str, float]:
        works(seconds)
        return word, seconds

    assert waits("before") == ("before", 0.0)
    assert waits.tune("during").best == {"seconds": 0.002}
    assert waits("after") == ("after", 0.002)
    assert waits("own", seconds=0.001) == ("own", 0.001)
    assert waits.__name__ == "waits"


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({"function": 3}, "tune"),
        ({"parameters": [1]}, "parameters"),
        ({"parameters": {"x": [np.zeros(3)]}}, "parameters['x']"),
        ({"parameters": {}}, "parameters"),
        ({"minimise": "energy_j"}, "energy is not known"),
        ({"minimise": "nonsense"}, "nonsense"),
        ({"minimise": "time_s", "maximise": "time_s"}, "minimise and maximise"),
        ({"front": ["nonsense"]}, "nonsense"),
        ({"limits": {"nonsense": "<= 1"}}, "limits"),
        ({"limits": {"time_s": "<= __import__('os')"}}, "limits"),
        ({"limits": {"time_s": "<= other"}}, "other"),
        ({"metrics": {"m": 3}}, "metrics"),
        ({"strategy": "nonsense"}, "strategy"),
        ({"strategy_options": {"nonsense": 1}}, "nonsense"),
        ({"target": 0}, "target"),
        ({"within": -1}, "within"),
        ({"gpu": "nonsense"}, "nonsense"),
        ({"restrictions": lambda c: False}, "restrictions"),
        ({"max_evaluations": 0}, "max_evaluations"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_what_cannot_be_used_is_refused_in_one_line(given: dict[str, Any], names: str) -> None:
    with pytest.raises(InputError) as refused:
        tune(**{"function": works, "parameters": {"seconds": [0.0]}, "quiet": True, **given})
    assert names in str(refused.value)
    assert "\n" not in str(refused.value)


def test_launches_that_return_at_once_are_timed_by_the_devices_events(monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device()
    monkeypatch.setitem(sys.modules, "torch", stand_in(device))
    timer = find_timer()
    assert "PyTorch" in timer.words
    found = call_repeatedly(lambda: device.launch(0.0005), timer, time.monotonic_ns, least_s=0.05)
    assert found is not None
    assert found.time_s == pytest.approx(0.0005)
    assert found.calls >= 3 * round(BATCH_S / 0.0005)
    assert "synchronise" in find_timer(lambda: None).words
    unwaited = call_repeatedly(lambda: device.launch(0.0), find_timer(lambda: None), time.monotonic_ns, least_s=0.01)
    assert unwaited is not None
    assert unwaited.time_s > 0


def test_the_package_loads_neither_qt_nor_the_engine_until_something_is_asked_for() -> None:
    code = (
        "import sys, app; early = set(sys.modules); from app import tune, tune_kernel, measure; "
        "print([m for m in early if m.startswith('app.')], [m for m in sys.modules if 'PySide' in m or m == 'torch'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] []"
