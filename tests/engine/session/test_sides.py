"""What is measured in turns, as it is named, and opened with a change: variables, SMs, a board's settings."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from app.base.errors import WattridgeError
from app.engine.control.guard import DeviceGuard
from app.engine.session.sides import UNTOUCHED, Change, Held, Opening, opened, target_of
from app.sensors.select import open_gpu


@pytest.fixture
def opening(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Opening]:
    monkeypatch.setattr("app.engine.metering.watching.LINGER_S", 0.2)
    monkeypatch.setattr("app.engine.session.contenders._least_s", lambda watch, least_s: 0.05)
    monkeypatch.chdir(tmp_path)
    with ExitStack() as stack:
        gpu = stack.enter_context(closing(open_gpu("simulated:h200")))
        yield Opening(gpu, threading.Event(), stack, lambda _: None)


def test_a_change_is_said_in_words_and_two_make_one() -> None:
    sms, variable = Change(sms=64), Change(environment=(("A", "1"),))
    clock = Change(settings=(("graphics_clock_mhz", 1200.0),))
    assert UNTOUCHED.words == "untouched"
    assert (sms | variable | clock).words == "64 SMs, A=1, graphics clock 1200 MHz"


def test_a_script_is_run_by_this_python_and_a_program_has_the_variables_of_the_change(
    opening: Opening, tmp_path: Path
) -> None:
    (tmp_path / "say.py").write_text("import os\nopen('said', 'a').write(os.environ.get('DEPTH', 'none') + '\\n')\n")
    side = target_of("say.py")
    assert (side.kind, side.takes_real_time) == ("command", True)
    workload = opened(side, opening)
    assert workload(UNTOUCHED).block(opening.stop) is not None
    assert workload(Change(environment=(("DEPTH", "3"),))).block(opening.stop) is not None
    assert set((tmp_path / "said").read_text().split()) == {"none", "3"}


def test_a_function_without_torch_has_no_part_of_the_sms(opening: Opening, tmp_path: Path) -> None:
    (tmp_path / "sums.py").write_text("def total():\n    return sum(range(1000))\n")
    workload = opened(target_of("sums.py:total"), opening)
    assert workload(UNTOUCHED).block(opening.stop) is not None
    with pytest.raises(WattridgeError, match="its file imports no torch"):
        workload(Change(sms=8)).block(opening.stop)


def test_the_data_of_a_function_need_the_function_that_makes_its_arguments(opening: Opening, tmp_path: Path) -> None:
    from app.engine.session.sides import on_data

    (tmp_path / "sums.py").write_text("def total():\n    return sum(range(1000))\n")
    with pytest.raises(WattridgeError, match="--inputs FUNCTION,zeros,random"):
        opened(on_data(target_of("sums.py:total"), "zeros"), opening)(UNTOUCHED).block(opening.stop)


def test_a_board_has_the_settings_of_a_change_in_its_blocks_alone(opening: Opening) -> None:
    with closing(DeviceGuard(opening.gpu)) as guard:
        plain = opened(target_of("sleep 0.01"), opening)(UNTOUCHED)
        free, held = Held(plain, guard, {}), Held(plain, guard, {"graphics_clock_mhz": 990.0})
        assert held.unit == "run"
        for contender, in_force in (
            (held, {"graphics_clock_mhz": 990.0}),
            (free, {}),
            (held, {"graphics_clock_mhz": 990.0}),
        ):
            assert contender.block(opening.stop) is not None
            assert guard.in_force == in_force
        guard.restore()
        assert guard.in_force == {}


def test_the_parts_of_the_sms_are_rows_of_one_space_and_untouched_is_all_of_them(opening: Opening) -> None:
    name = "copy:block_size_x=256,items_per_thread=4,vector_width=4,loop_unroll_factor=1"
    part = Change(sms=16)
    workload = opened(target_of(name), opening, [part])
    slow, whole = (workload(change).block(opening.stop) for change in (part, UNTOUCHED))
    assert slow is not None
    assert whole is not None
    assert slow.time_s > 1.5 * whole.time_s
