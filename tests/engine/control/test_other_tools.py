"""What another tool sets between two of our sessions is what the second one finds, and puts back."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import pytest
from boards import StandIn
from fixtures.helper_process import Process, killed_whole, until_back
from hypothesis import example, given
from hypothesis import strategies as st
from test_keeper import HOLDER, UUID, Driver

from app.engine.control.helper.keeper import Keeper
from app.engine.control.helper.nvml_board import NvmlBoard
from app.engine.control.helper.record import Records

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the helper is for Linux")
Boards = Callable[..., StandIn]
Helper = Callable[..., Process]

UNLOCKED = (0, 0)
MANUAL = 3


def do(process: Process, verb: str, **fields: Any) -> dict[str, Any]:
    """The state after a request that must succeed."""
    reply = process.ask(verb, **fields)
    assert "error" not in reply, reply
    return dict(reply["state"])


def confirmed(stand_in: StandIn, helper: Helper, **settings: Any) -> None:
    """A session that sets and confirms, and ends."""
    process = helper(stand_in)
    do(process, "set", settings=settings)
    do(process, "confirm")
    assert process.end() == 0


def session(stand_in: StandIn, helper: Helper, **settings: Any) -> None:
    """A session that sets, and ends."""
    process = helper(stand_in)
    do(process, "set", settings=settings)
    assert process.end() == 0


def restored(stand_in: StandIn, helper: Helper) -> None:
    """As `wattridge restore`."""
    process = helper(stand_in)
    do(process, "reset", to="prior")
    assert process.end() == 0


def records(stand_in: StandIn) -> list[dict[str, Any]]:
    folder = stand_in.folder / "root" / "records"
    return [json.loads(path.read_text()) for path in folder.glob("*.json")]


# Of each setting that a board reports: the board, what we confirm, what another tool sets then, what a session sets.
REPORTED = {
    "power limit": ("h200", {"power_limit_w": 400}, {"limit": 500_000}, {"power_limit_w": 300}),
    "workload power profile": (
        "b200",
        {"workload_power_profile": 1},
        {"requested": 1 << 2},
        {"workload_power_profile": 3},
    ),
    "application clocks": (
        "old",
        {"graphics_clock_mhz": [450, 450]},
        {"application": (2600, 576)},
        {"graphics_clock_mhz": [366, 366]},
    ),
    "power limit of AMD": ("mi210", {"power_limit_w": 200}, {"limit": 250_000}, {"power_limit_w": 150}),
    "clock lock of AMD": (
        "mi210",
        {"graphics_clock_mhz": [900, 1000]},
        {"lock": (600, 1400), "level": MANUAL},
        {"graphics_clock_mhz": [700, 800]},
    ),
    "clock lock of AMD, taken off": (
        "mi210",
        {"graphics_clock_mhz": [900, 1000]},
        {"level": 0, "lock": UNLOCKED},
        {"graphics_clock_mhz": [700, 800]},
    ),
}


def by_another_tool(stand_in: StandIn, changes: dict[str, Any]) -> None:
    board = stand_in.boards[0]
    for name, value in changes.items():
        setattr(board, name, type(board.lock)(*value) if isinstance(value, tuple) else value)


@pytest.fixture(params=REPORTED)
def case(request: pytest.FixtureRequest, boards: Boards) -> tuple[StandIn, dict[str, Any], dict[str, Any], Any]:
    kind, ours, theirs, ours_then = REPORTED[request.param]
    return boards(kind), ours, theirs, ours_then


def test_what_another_tool_set_after_our_confirmation_is_there_again_after_a_session(case: Any, helper: Helper) -> None:
    stand_in, ours, theirs, then = case
    confirmed(stand_in, helper, **ours)
    by_another_tool(stand_in, theirs)
    found = stand_in.settings()
    for _ in range(2):
        session(stand_in, helper, **then)
        assert stand_in.settings() == found
    restored(stand_in, helper)
    assert {**found, "persistence": 0, "level": 0} == {**stand_in.settings(), "persistence": 0, "level": 0}
    assert records(stand_in) == []


def test_what_another_tool_set_after_our_confirmation_is_left_by_a_restore(case: Any, helper: Helper) -> None:
    stand_in, ours, theirs, _ = case
    before = stand_in.settings()
    confirmed(stand_in, helper, **ours)
    by_another_tool(stand_in, theirs)
    restored(stand_in, helper)
    assert stand_in.settings() == {**before, **theirs}
    assert records(stand_in) == []


def test_what_another_tool_set_between_two_sessions_is_there_again_after_the_second(case: Any, helper: Helper) -> None:
    stand_in, _, theirs, then = case
    session(stand_in, helper, **then)
    by_another_tool(stand_in, theirs)
    found = stand_in.settings()
    session(stand_in, helper, **then)
    assert stand_in.settings() == found


def test_what_another_tool_set_before_a_session_that_was_killed_is_there_again_after_the_next_start(
    case: Any, helper: Helper
) -> None:
    stand_in, ours, theirs, then = case
    confirmed(stand_in, helper, **ours)
    by_another_tool(stand_in, theirs)
    found = stand_in.settings()
    process = helper(stand_in)
    do(process, "set", settings=then)
    killed_whole(process)
    process.gone()
    assert stand_in.settings() != found
    again = helper(stand_in)
    assert again.hello["state"]["left_over"]
    do(again, "reset", to="start")
    assert stand_in.settings() == found
    assert again.end() == 0


def test_a_confirmation_after_another_tool_s_change_is_undone_to_that(case: Any, helper: Helper) -> None:
    stand_in, ours, theirs, then = case
    confirmed(stand_in, helper, **ours)
    by_another_tool(stand_in, theirs)
    found = stand_in.settings()
    confirmed(stand_in, helper, **then)
    restored(stand_in, helper)
    assert {**stand_in.settings(), "persistence": 0} == {**found, "persistence": 0}


def test_our_own_confirmations_one_after_the_other_are_undone_to_what_was_before_the_first(
    case: Any, helper: Helper
) -> None:
    stand_in, ours, _, then = case
    before = stand_in.settings()
    confirmed(stand_in, helper, **ours)
    confirmed(stand_in, helper, **then)
    restored(stand_in, helper)
    assert stand_in.settings() == before
    assert records(stand_in) == []


def test_what_is_set_during_a_session_is_read_when_the_session_first_sets_it(boards: Boards, helper: Helper) -> None:
    stand_in = boards("h200")
    process = helper(stand_in)
    do(process, "set", settings={"graphics_clock_mhz": [1200, 1200]})
    by_another_tool(stand_in, {"limit": 500_000})  # the session has not set it so far
    do(process, "set", settings={"power_limit_w": 300})
    assert process.end() == 0
    assert stand_in.settings()["limit"] == 500_000


def test_what_was_put_back_during_a_session_is_not_put_back_again(boards: Boards, helper: Helper) -> None:
    stand_in = boards("h200")
    process = helper(stand_in)
    do(process, "set", settings={"graphics_clock_mhz": [1200, 1200], "power_limit_w": 300})
    do(process, "reset", settings=["power_limit_w"])
    by_another_tool(stand_in, {"limit": 500_000})
    killed_whole(process)
    process.gone()
    do(helper(stand_in), "reset", to="start")
    assert stand_in.settings()["limit"] == 500_000
    assert stand_in.settings()["lock"] == UNLOCKED


@pytest.mark.parametrize("killed", [False, True])
def test_a_lock_that_another_tool_took_off_is_not_set_again_by_a_session_over_limits(
    killed: bool, boards: Boards, helper: Helper
) -> None:
    stand_in = boards("h200")
    confirmed(stand_in, helper, graphics_clock_mhz=[1200, 1200])
    by_another_tool(stand_in, {"lock": UNLOCKED})
    found = stand_in.settings()
    process = helper(stand_in)
    do(process, "set", settings={"power_limit_w": 300})
    if killed:
        killed_whole(process)
        process.gone()
        do(helper(stand_in), "reset", to="start")
    else:
        assert process.end() == 0
    assert stand_in.settings() == found


def test_a_guardian_puts_back_only_what_its_session_set(boards: Boards, helper: Helper) -> None:
    stand_in = boards("h200")
    confirmed(stand_in, helper, graphics_clock_mhz=[1200, 1200], power_limit_w=400)
    by_another_tool(stand_in, {"lock": UNLOCKED, "limit": 500_000})
    found = stand_in.settings()
    process = helper(stand_in)
    do(process, "set", settings={"power_limit_w": 300})
    os.kill(process.serving, 9)
    until_back(stand_in, found)
    assert process.gone() == 1
    assert stand_in.settings() == found


def test_a_lock_that_nobody_can_read_goes_back_to_the_one_that_was_confirmed(boards: Boards, helper: Helper) -> None:
    """NVML reports no lock: what we confirmed is all that is known of it."""
    stand_in = boards("h200")
    confirmed(stand_in, helper, graphics_clock_mhz=[1200, 1200])
    session(stand_in, helper, graphics_clock_mhz=[900, 900])
    assert stand_in.settings()["lock"] == (1200, 1200)


def test_a_limit_that_the_board_never_obeyed_is_not_taken_for_another_tool_s(boards: Boards, helper: Helper) -> None:
    stand_in = boards("h200")
    before = stand_in.settings()
    stand_in.boards[0].clamp = 655_000
    confirmed(stand_in, helper, power_limit_w=690)
    session(stand_in, helper, power_limit_w=300)
    restored(stand_in, helper)
    assert stand_in.settings() == before


def test_a_record_of_an_older_helper_is_put_back_as_a_whole(boards: Boards, helper: Helper) -> None:
    stand_in = boards("h200")
    before = stand_in.settings()
    process = helper(stand_in)
    do(process, "set", settings={"graphics_clock_mhz": [1200, 1200], "power_limit_w": 300})
    killed_whole(process)
    process.gone()
    [path] = process.records.glob("*.json")
    older = json.loads(path.read_text())
    del older["touched"]  # which it did not write
    path.write_text(json.dumps(older))
    again = helper(stand_in)
    assert again.hello["state"]["unreadable"] == ""
    do(again, "reset", to="start")
    assert stand_in.settings() == before
    assert again.end() == 0


def test_what_is_confirmed_is_written_as_older_helpers_read_it(boards: Boards, helper: Helper) -> None:
    stand_in = boards("h200")
    confirmed(stand_in, helper, power_limit_w=400)
    [record] = records(stand_in)
    assert set(record) == {"version", "uuid", "name", "prior", "kept", "open", "holder", "boot", "written_s"}


# --- any order of all that --------------------------------------------------------------------------------------------

LIMITS = st.sampled_from([300, 400, 500, 600])
LOCKS = st.sampled_from([(900, 900), (1200, 1200), (600, 1500)])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("set limit"), LIMITS),
        st.tuples(st.just("set lock"), LOCKS),
        st.tuples(st.just("other limit"), LIMITS),
        st.tuples(st.sampled_from(["reset limit", "reset lock", "confirm", "end", "killed", "restore"]), st.none()),
    ),
    max_size=14,
)
NAMES = {"limit": "power_limit_w", "lock": "graphics_clock_mhz"}


class Expected:
    """What the board should have: of each setting what it goes back to, and what was confirmed."""

    def __init__(self, limit: int) -> None:
        self.now: dict[str, Any] = {"limit": limit, "lock": None}
        self.touched: dict[str, Any] = {}  # -> what was there when this session first set it
        self.kept: dict[str, Any] = {}  # -> what was confirmed
        self.origin: dict[str, Any] = {}  # -> what was there before that

    def set(self, name: str, value: Any) -> None:
        if name not in self.touched:
            if name == "lock":  # which cannot be read: what was confirmed is all that is known
                self.touched[name] = self.kept.get(name)
            else:
                self.touched[name] = self.now[name]
            if self.kept.get(name) != self.touched[name]:
                self.kept.pop(name, None)
            if name not in self.kept:
                self.origin[name] = self.touched[name]
        self.now[name] = value

    def back(self, *names: str) -> None:
        for name in names or tuple(self.touched):
            if name in self.touched:
                self.now[name] = self.touched.pop(name)

    def confirm(self) -> None:
        self.kept.update({name: self.now[name] for name in self.touched})
        self.touched.clear()

    def restore(self) -> None:
        for name, kept in self.kept.items():
            if name in self.touched or self.now[name] == kept:
                self.now[name] = self.origin[name]
        self.back(*(name for name in tuple(self.touched) if name not in self.kept))
        self.touched.clear()
        self.kept.clear()


@given(steps=STEPS)
@example(steps=[("set limit", 400), ("confirm", None), ("end", None), ("other limit", 500), ("set limit", 300)])
def test_whatever_happens_in_whatever_order_only_what_a_session_set_goes_back(
    steps: list[tuple[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    driver = Driver()
    driver.persistence = 1
    expected = Expected(650)
    with Records(str(tmp_path_factory.mktemp("folder") / "records"), make=True) as folder:
        keeper = Keeper(NvmlBoard(driver, UUID), folder, HOLDER)
        for step, value in [*steps, ("end", None)]:
            verb, _, name = step.partition(" ")
            if verb == "set":
                keeper.set({NAMES[name]: value})
                expected.set(name, value)
            elif verb == "other":
                driver.limit = value * 1000
                expected.now[name] = value
            elif verb == "reset":
                keeper.reset("start", (NAMES[name],))
                expected.back(name)
            elif verb == "restore":
                keeper.reset("prior")
                expected.restore()
            elif verb == "confirm":
                if expected.touched:
                    keeper.confirm()
                    expected.confirm()
            else:
                if verb == "end":
                    keeper.end()
                keeper = Keeper(NvmlBoard(driver, UUID), folder, HOLDER)
                assert keeper.left_over == (verb == "killed" and bool(expected.touched))
                keeper.reset("start")
                expected.back()
            assert {"limit": driver.limit / 1000, "lock": driver.lock} == expected.now
        found = folder.read(UUID)
        assert (found is not None) == bool(expected.kept)
        if found is not None:
            assert (found.open, found.touched, len(found.kept)) == (False, [], len(expected.kept))
