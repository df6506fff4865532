"""A cache that another program writes, followed as it grows."""

from __future__ import annotations

import copy
import gzip
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures.formats_samples import CACHE, T4, closed_cache, open_cache
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.base.errors import InputError, WattridgeError
from app.engine.formats.growing_cache import CacheFollower
from app.engine.formats.read import read_recording
from app.engine.results.measurement import State
from app.engine.results.objectives import Goal
from app.engine.results.state import SessionState
from app.engine.session import follow as following
from app.engine.session.events import EngineFault, Event, MeasurementsAdded, SessionRemark, SessionStarted
from app.engine.session.follow import follow_session, is_growing, plan_follow
from app.engine.session.live_session import SessionResult
from app.engine.session.planning import plan_resume
from app.engine.session.run import run_session
from app.engine.specification.plan import SearchOptions
from app.engine.store.database import Store

ALL = len(CACHE["cache"])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "live.json"


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "LOOK_S", 0.005)


# --- looking at the file ----------------------------------------------------------------------------------------------


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(cuts=st.lists(st.integers(0, 4000), max_size=12), closed=st.booleans())
def test_wherever_a_look_cuts_the_file_every_entry_is_seen_once(file: Path, cuts: list[int], closed: bool) -> None:
    text = closed_cache(CACHE, ALL) if closed else open_cache(CACHE, ALL)
    follower, seen = CacheFollower(file), []
    for cut in [*sorted(cuts), len(text)]:
        file.write_text(text[:cut])
        seen += follower.look().entries
    whole = list(read_recording(file).in_file_order())
    assert [entry.configuration for entry in seen] == [tuple(m.configuration.values()) for m in whole]
    assert [entry.facts.state for entry in seen] == [m.state for m in whole]
    assert follower.closed is closed


def test_only_what_is_new_is_read(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    follower = CacheFollower(file)
    fed: list[int] = []
    file.write_text(open_cache(CACHE, 6))
    follower.look()
    feed = follower._scan.stream.feed
    monkeypatch.setattr(follower._scan.stream, "feed", lambda text: (fed.append(len(text)), feed(text))[1])
    assert follower.look().entries == []
    file.write_text(open_cache(CACHE, 7))
    assert len(follower.look().entries) == 1
    assert fed[0] == 0
    assert fed[1] == len(open_cache(CACHE, 7)) - len(open_cache(CACHE, 6))


def test_a_missing_file_is_waited_for(file: Path) -> None:
    follower = CacheFollower(file)
    assert follower.look() == ([], False, False)
    file.write_text(open_cache(CACHE, 2))
    assert len(follower.look().entries) == 2


@pytest.mark.parametrize("replace", [True, False])
def test_a_file_that_begins_again_is_noticed(file: Path, replace: bool) -> None:
    """Replaced by another file, or cut short and written again, longer than before."""
    file.write_text(open_cache(CACHE, 3))
    follower = CacheFollower(file)
    follower.look()
    other = copy.deepcopy(CACHE) | {"kernel_name": "another_kernel_altogether"}
    if replace:
        (file.parent / "new").write_text(open_cache(other, 8))
        (file.parent / "new").replace(file)
    else:
        file.write_text(open_cache(other, 8))
    look = follower.look()
    assert look.restarted
    assert len(look.entries) == 8
    assert follower.header is not None
    assert follower.header.kernel == "another_kernel_altogether"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (gzip.compress(b"{}", mtime=0), "compressed"),
        (json.dumps(T4).encode(), "only a Kernel Tuner cache"),
        (b"{}", "no Kernel Tuner cache"),
        (b"clock,power\n1,2\n", "line 1, column 1"),
        (b'{"cache": {"a": {}}}', "tune_params_keys"),
        (b'{"tune_params_keys": ["a"], "cache": {"1": {"a": 1},\n"2": {"b": 1},', "line 2, entry '2': parameter 'a'"),
        (b'{"tune_params_keys": ["a"], "cache": {"1": {"a" 1},', "line 1, column 49"),
        (b"\xff\xfe", "not UTF-8"),
    ],
)
def test_what_cannot_be_followed_is_one_line(file: Path, content: bytes, said: str) -> None:
    file.write_bytes(content)
    with pytest.raises(InputError, match=said) as caught:
        CacheFollower(file).look()
    assert str(file) in caught.value.where
    assert caught.value.remedy


def test_memory_does_not_grow_with_the_file(file: Path) -> None:
    follower = CacheFollower(file)
    entry = json.dumps(next(iter(CACHE["cache"].values())) | {"times": [1.25] * 400})
    with file.open("w") as out:
        out.write(open_cache(CACHE, 1))
        for n in range(400):
            out.write(f'\n"{n}": {entry},')
            if n % 20 == 0:
                out.flush()
                while follower.look().more:
                    pass
                assert len(follower._scan.stream._text) < 300_000


def test_a_growing_cache_is_distinguished_from_a_closed_one(file: Path) -> None:
    for text, growing in (
        (open_cache(CACHE, 3), True),
        (open_cache(CACHE, 0), True),
        (open_cache(CACHE, 3)[:-40], True),
        (closed_cache(CACHE, 3), False),
        ("clock,power\n", False),
    ):
        file.write_text(text)
        assert is_growing(file) is growing


# --- as a session -----------------------------------------------------------------------------------------------------


class Following:
    """A session that follows `file` on a thread of its own, its events kept."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.events: list[Event] = []
        self.stop = threading.Event()
        self.store = Store(file.parent / "s.sqlite")
        self.result: SessionResult | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        plan = plan_follow(self.file, self.stop)

        def work() -> None:
            self.result = follow_session(plan, self.store, self.events.append, self.stop)

        self._thread = threading.Thread(target=work, daemon=True)
        self._thread.start()

    def wait(self, until: Callable[[], bool]) -> None:
        end = time.monotonic() + 20
        while not until():
            assert time.monotonic() < end, "it did not come"
            time.sleep(0.002)

    def seen(self) -> int:
        return max((event.length for event in self.events if isinstance(event, MeasurementsAdded)), default=0)

    def end(self) -> SessionResult:
        assert self._thread is not None
        self._thread.join(20)
        assert self.result is not None
        return self.result


@pytest.fixture
def session(file: Path) -> Iterator[Following]:
    made = Following(file)
    yield made
    made.stop.set()
    made.store.close()


def test_the_session_fills_and_is_kept_when_the_file_is_closed(session: Following) -> None:
    session.file.write_text(open_cache(CACHE, 3))
    session.start()
    session.wait(lambda: session.seen() == 3)
    assert session.store.sessions() == [], "it has no number yet"
    session.file.write_text(open_cache(CACHE, 7)[:-30])
    session.wait(lambda: session.seen() == 6)
    session.file.write_text(closed_cache(CACHE, ALL))
    result = session.end()
    assert (result.state, result.reason) == (SessionState.DONE, "the file is closed")
    assert len(result.table) == ALL
    stored = session.store.load(result.session)
    whole = read_recording(session.file)
    order = [m.configuration for m in whole.in_file_order()]
    assert [stored.table.measurement(i).configuration for i in range(ALL)] == order
    assert [stored.table.measurement(i).row for i in range(ALL)] == [stored.space.row_of(c) for c in order]
    assert stored.space.codes.tolist() == whole.space().codes.tolist()
    assert stored.table.failures() == {"compile": 4}
    best = result.progress.best_index
    assert best is not None
    assert result.table.measurement(best).values["time"] == min(
        m.values["time"] for m in whole.measurements() if m.state is State.OK
    )


@pytest.mark.parametrize("simulated", [0, 4])
def test_a_cache_of_simulated_rows_is_not_called_recorded(session: Following, simulated: int) -> None:
    """From the first row on, or from one that comes later."""
    cache = copy.deepcopy(CACHE)
    for entry in list(cache["cache"].values())[simulated:]:
        entry["wattridge"] = {"source": "simulated"}
    session.file.write_text(open_cache(cache, 3))
    session.start()
    session.wait(lambda: session.seen() == 3)
    started = [event.plan.source for event in session.events if isinstance(event, SessionStarted)]
    assert started == ["recorded" if simulated else "simulated"]
    session.file.write_text(closed_cache(cache, ALL))
    result = session.end()
    assert session.store.load(result.session).record.source == result.plan.source == "simulated"


def test_while_it_grows_the_table_can_be_looked_at(session: Following) -> None:
    session.file.write_text(open_cache(CACHE, 5))
    session.start()
    session.wait(lambda: session.seen() == 5)
    started = next(event for event in session.events if isinstance(event, SessionStarted))
    table = started.table
    assert table.values("block_size_x").tolist() == [32, 32, 32, 32, 64]
    assert table.values("mode").tolist() == [0, 1, 0, 1, 0]
    assert [table.space.configuration(row) for row in table.rows().tolist()] == [
        table.measurement(index).configuration for index in range(5)
    ]
    added = next(event for event in session.events if isinstance(event, MeasurementsAdded))
    assert added.progress.budget == 0, "how many there will be is unknown"
    assert added.progress.eta_s is None


def test_a_person_ends_it_and_what_was_read_is_kept(session: Following) -> None:
    session.file.write_text(open_cache(CACHE, 4))
    session.start()
    session.wait(lambda: session.seen() == 4)
    session.stop.set()
    result = session.end()
    assert (result.state, result.reason) == (SessionState.STOPPED, "the file was still open")
    assert len(session.store.load(result.session).table) == 4


def test_a_followed_session_can_be_looked_at_and_resumed(session: Following) -> None:
    session.file.write_text(closed_cache(CACHE, ALL))
    session.start()
    number = session.end().session
    plan = plan_resume(session.store, number)
    again = run_session(plan, session.store, lambda event: None, threading.Event())
    assert (again.session, len(again.table)) == (number, ALL)


def test_kernel_tuner_opens_a_closed_file_again_and_adds_to_it(session: Following) -> None:
    """It writes the whole file again without its last brackets: what is known is not reported twice."""
    session.file.write_text(open_cache(CACHE, 4))
    session.start()
    session.wait(lambda: session.seen() == 4)
    session.file.write_text("")
    time.sleep(0.05)
    session.file.write_text(open_cache(CACHE, 6))
    session.wait(lambda: session.seen() == 6)
    session.file.write_text(closed_cache(CACHE, 6))
    assert len(session.end().table) == 6
    assert len(session.store.sessions()) == 1
    assert not any(isinstance(event, SessionRemark) for event in session.events)


@pytest.mark.parametrize("same_header", [True, False])
def test_a_file_of_another_run_ends_the_session_and_begins_the_next(session: Following, same_header: bool) -> None:
    session.file.write_text(open_cache(CACHE, 4))
    session.start()
    session.wait(lambda: session.seen() == 4)
    other = copy.deepcopy(CACHE)
    for entry in other["cache"].values():
        entry["GFLOP/s"] = 1.5
    if not same_header:
        other |= {"device_name": "NVIDIA A100", "objective": "GFLOP/s"}
    session.file.write_text(closed_cache(other, 6))
    result = session.end()
    assert [record.evaluated for record in session.store.sessions()] == [6, 4]
    assert len(result.table) == 6
    assert result.plan.gpu == ("NVIDIA RTX A4000" if same_header else "NVIDIA A100")
    assert any("replaced" in event.text for event in session.events if isinstance(event, SessionRemark))


def test_a_damaged_entry_ends_it_with_the_line(session: Following) -> None:
    session.file.write_text(open_cache(CACHE, 3))
    session.start()
    session.wait(lambda: session.seen() == 3)
    with session.file.open("a") as out:
        out.write('\n"x": {"time" 3},')
    result = session.end()
    assert result.state is SessionState.FAILED
    faults = [event for event in session.events if isinstance(event, EngineFault)]
    assert "column 14" in faults[0].what
    assert len(session.store.load(result.session).table) == 3, "what was read is kept"


def test_values_that_the_header_did_not_list_are_read(session: Following) -> None:
    document = copy.deepcopy(CACHE)
    document["tune_params"]["block_size_x"] = [32]
    session.file.write_text(closed_cache(document, ALL))
    session.start()
    result = session.end()
    assert result.plan.space.parameters[0].values == (32, 64, 128)


def test_the_plan_waits_for_the_first_success_and_checks_the_goal(file: Path) -> None:
    stop = threading.Event()
    failed: dict[str, Any] = copy.deepcopy(CACHE)
    failed["cache"] = dict(list(CACHE["cache"].items())[-2:]) | CACHE["cache"]  # the failed ones first
    threads = [threading.Timer(0.05, lambda: file.write_text(open_cache(failed, 2)))]
    threads.append(threading.Timer(0.15, lambda: file.write_text(open_cache(failed, 5))))
    for thread in threads:
        thread.start()
    plan = plan_follow(file, stop)
    assert (plan.gpu, str(plan.objective), len(plan.objective.front)) == ("NVIDIA RTX A4000", "min:time", 2)
    with pytest.raises(InputError, match="there is no value 'speed'"):
        plan_follow(file, stop, SearchOptions(objective=Goal("speed", True)))
    stop.set()
    file.write_text(open_cache(CACHE, 0))
    with pytest.raises(WattridgeError, match="stopped while waiting"):
        plan_follow(file, stop)
