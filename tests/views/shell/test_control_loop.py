"""The whole way in the window, on a board that is not there: tune, choose, apply, see it obeyed, keep, put back."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

for folder in ("nvml", "engine"):
    sys.path.insert(0, str(Path(__file__).parents[2] / folder))

import program  # noqa: E402
from boards import StandIn  # noqa: E402
from fixtures.stand_in_fixtures import boards, boards_settle_soon, sudo, with_rights  # noqa: E402, F401

from app.engine.control.guard import DeviceGuard  # noqa: E402
from app.engine.control.helper import record  # noqa: E402
from app.engine.control.left_over import left_over  # noqa: E402
from app.engine.results.state import SessionState  # noqa: E402
from app.views.shared.watched_boards import watched_gpu  # noqa: E402
from app.views.shell.app import Program, application  # noqa: E402
from app.views.shell.window import MainWindow  # noqa: E402

SPECIFICATION = """
[kernel]
name = "scale"
source = "scale.cu"
problem_size = ["n"]
grid_divisors = { x = ["block_size_x"] }
arguments = [
    { name = "y", type = "float32", shape = ["n"], output = true },
    { name = "x", type = "float32", shape = ["n"], fill = "random" },
]
[constants]
n = 1000
[parameters]
block_size_x = [64, 128]
[device_settings]
graphics_clock_mhz = [900, 1800]
[objective]
minimise = "energy_j"
[search]
strategy = "brute_force"
"""


@pytest.fixture
def open_window(
    qtbot: QtBot,
    with_rights: Callable[..., StandIn],  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Callable[[], tuple[StandIn, MainWindow]]]:
    from app.engine.metering import meter
    from app.engine.runner.cuda import language

    replaced = (
        (language, "require_cuda"),
        (language, "open_cuda"),
        (language, "look_once"),
        (meter, "WARM_STEP_S"),
    )
    for module, name in replaced:
        monkeypatch.setattr(module, name, getattr(module, name))  # as it is, to be put back
    program.install()
    application()
    programs: list[Program] = []
    stand_ins: list[StandIn] = []

    def open_it() -> tuple[StandIn, MainWindow]:
        if not stand_ins:
            stand_ins.append(with_rights("h200"))
        programs.append(Program(watched_gpu("0")))
        window = programs[-1].window
        qtbot.waitUntil(lambda: set(window.panels) >= {"tune", "control"}, timeout=20_000)
        return stand_ins[0], window

    yield open_it
    for each in programs:
        each.close()


def switch_on(qtbot: QtBot, window: MainWindow) -> None:
    switch = window.control_switch
    assert not switch.allowed
    switch.switch()
    qtbot.waitUntil(lambda: switch.allowed, timeout=20_000)


def test_tune_choose_apply_obeyed_keep_put_back(
    qtbot: QtBot, open_window: Callable[[], tuple[StandIn, MainWindow]], tmp_path: Path
) -> None:
    stand_in, window = open_window()
    before = stand_in.settings()
    (tmp_path / "scale.cu").write_text("//\n")
    path = tmp_path / "scale.toml"
    path.write_text(SPECIFICATION)
    tune, inspector = window.panels["tune"], window.panels["inspector"]
    tune.open(path)
    qtbot.waitUntil(lambda: tune.draft is not None, timeout=20_000)
    assert tune.draft.plan.space.size == 2  # read-only: its clock is no dimension
    switch_on(qtbot, window)
    qtbot.waitUntil(lambda: tune.draft is not None and tune.draft.plan.space.size == 6, timeout=20_000)
    tune.start_session()
    qtbot.waitUntil(lambda: tune.state is SessionState.DONE, timeout=60_000)
    qtbot.waitUntil(lambda: stand_in.settings() == before, timeout=20_000)
    assert [c.a for c in stand_in.calls() if c.function == "nvmlDeviceSetGpuLockedClocks"] == [900, 1800]  # each once
    stand_in.work(60.0)
    window.workspaces.bring("front", "inspector")  # the Control panel has a countdown of its own
    table = window.result.table
    best = min(range(len(table)), key=lambda index: table.measurement(index).values["energy_j"])
    window.result.select(best)
    clock = table.measurement(best).configuration["graphics_clock_mhz"]
    inspector.answer.apply.click()
    qtbot.waitUntil(lambda: not window.confirm_bar.isHidden(), timeout=20_000)
    line = window.confirm_bar.lines[window.board.uuid]
    assert f"Graphics clock {clock} MHz. It returns in" in line.text.text()
    assert stand_in.settings()["lock"] == (clock, clock)
    line.keep.click()
    qtbot.waitUntil(lambda: window.confirm_bar.isHidden(), timeout=20_000)
    assert stand_in.settings()["lock"] == (clock, clock)
    window.panels["control"].restore.click()
    qtbot.waitUntil(lambda: stand_in.settings() == before, timeout=20_000)
    log = window.panels["control"].log
    qtbot.waitUntil(lambda: log.by_hand.rows()[-1][1:3] == ("everything", "as before"), timeout=20_000)
    applied = next(row for row in log.by_hand.rows() if row[2] == f"{clock} MHz")
    assert applied[3] == f"{clock} MHz", "observed"
    assert sum(row[4].startswith("session, ") for row in log.by_sessions.rows()) >= 3


def test_a_session_that_is_stopped_or_whose_window_is_closed_leaves_nothing(
    qtbot: QtBot, open_window: Callable[[], tuple[StandIn, MainWindow]], tmp_path: Path
) -> None:
    stand_in, window = open_window()
    before = stand_in.settings()
    (tmp_path / "scale.cu").write_text("//\n")
    path = tmp_path / "scale.toml"
    path.write_text(SPECIFICATION)
    tune = window.panels["tune"]
    switch_on(qtbot, window)
    tune.open(path, start=True)
    qtbot.waitUntil(lambda: stand_in.settings()["lock"] == (900, 900), timeout=20_000)
    tune.stop.click()
    qtbot.waitUntil(lambda: tune.state is SessionState.STOPPED, timeout=20_000)
    qtbot.waitUntil(lambda: stand_in.settings() == before, timeout=20_000)
    tune.open(path, start=True)
    qtbot.waitUntil(lambda: stand_in.settings()["lock"] == (900, 900), timeout=20_000)
    window.close()
    assert window.quit_bar.isVisible(), "a window in which something runs asks"
    window.quit_bar.end.click()
    qtbot.waitUntil(lambda: not window.isVisible(), timeout=20_000)
    assert stand_in.settings() == before
    assert left_over(stand_in.uuids[0]) is None


def test_closing_the_window_puts_back_and_the_next_one_is_read_only(
    qtbot: QtBot, open_window: Callable[[], tuple[StandIn, MainWindow]]
) -> None:
    stand_in, window = open_window()
    before = stand_in.settings()
    switch_on(qtbot, window)
    control = window.panels["control"]
    qtbot.waitUntil(lambda: control.rows is not None, timeout=20_000)
    control.rows.boxes["power_limit_w"].setChecked(True)
    control.rows.limit.setValue(300)
    control.apply.click()
    qtbot.waitUntil(lambda: stand_in.settings()["limit"] == 300_000, timeout=20_000)
    window.close()
    assert stand_in.settings() == before
    _, again = open_window()
    assert not again.control_switch.allowed


def test_what_a_crash_left_is_offered_back_in_one_click(
    qtbot: QtBot, open_window: Callable[[], tuple[StandIn, MainWindow]]
) -> None:
    stand_in, window = open_window()
    before = stand_in.settings()
    guard = DeviceGuard(window.board.gpu, allow_control=True)
    guard.apply(power_limit_w=300.0)
    helper = guard.holder
    assert helper is not None
    [serving] = (int(pid) for pid in Path(f"/proc/{helper}/task/{helper}/children").read_text().split())
    os.kill(serving, signal.SIGSTOP)  # so that it does not put the board back in the moment that it outlives the other
    for pid in (helper, serving):
        os.kill(pid, signal.SIGKILL)
    guard.close()  # no helper runs any more

    def no_process_holds_it() -> bool:
        found = left_over(stand_in.uuids[0])
        return found is not None and found.unfinished and found.held_by is None

    qtbot.waitUntil(no_process_holds_it, timeout=10_000)
    window.close()
    _, next_window = open_window()
    qtbot.waitUntil(lambda: "ended badly" in next_window.banner.text, timeout=20_000)
    assert "power limit 300 W, 650 before" in next_window.banner.text
    next_window.banner.offered.click()
    qtbot.waitUntil(lambda: stand_in.settings() == before, timeout=20_000)
    qtbot.waitUntil(lambda: left_over(stand_in.uuids[0]) is None, timeout=20_000)  # struck off once it is back


def test_a_record_that_cannot_be_read_is_named_and_the_board_unlocked_in_one_click(
    qtbot: QtBot, open_window: Callable[[], tuple[StandIn, MainWindow]]
) -> None:
    stand_in, window = open_window()
    window.close()
    board = stand_in.boards[0]
    board.lock[0] = board.lock[1] = 900
    board.limit = 300_000
    path = Path(record.FOLDER, f"{stand_in.uuids[0]}.json")
    path.parent.mkdir(exist_ok=True)
    path.write_text('{"version": 7}')
    _, next_window = open_window()
    qtbot.waitUntil(lambda: "its settings before are not known" in next_window.banner.text, timeout=20_000)
    assert "version 7" in next_window.banner.text
    assert next_window.banner.offered.text() == "Unlock, default limit"
    next_window.banner.offered.click()
    qtbot.waitUntil(lambda: stand_in.settings()["lock"] == (0, 0), timeout=20_000)
    qtbot.waitUntil(lambda: left_over(stand_in.uuids[0]) is None, timeout=20_000)
    assert stand_in.settings()["limit"] == stand_in.boards[0].limit_default
