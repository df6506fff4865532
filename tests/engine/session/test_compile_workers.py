"""Machines of a pool that only compile: they help, and whatever they do otherwise costs nothing but their help."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from compile_sides import Bench, TestMaker
from engine_fakes import grid
from fake_cuda import image_of
from fake_pool import FakePool
from pool_sides import BUNDLE
from virtual_cuda import VirtualBoard

from app.engine.measurement import Measurement, State
from app.engine.runner.kernels.given_images import GivenImage, GivenImages
from app.engine.runner.kernels.image_maker import Compiled
from app.engine.runner.kernels.image_target import ImageTarget
from app.engine.runner.pool.bundle import bundle_of
from app.engine.runner.pool.compile_help import CompileHelp
from app.engine.runner.pool.compilers import PoolCompiler, image_document, parse_compile_request
from app.engine.runner.pool.messages import AHEAD, SessionWork, answer_line
from app.engine.runner.pool.pool import Said
from app.engine.runner.pool.runner import PoolRunner
from app.engine.session.pool.compile_work import CompileWork
from app.sensors.device_limits import limits_of

ROWS = 6
LAUNCHES = f"launch_ms = {list(range(1, ROWS + 1))}"


def held(rows: int) -> int:
    """How many of so many rows the only board of a pool has at first: a share of those left in each request."""
    left = rows
    for _ in range(AHEAD):
        left -= -(-left // AHEAD)
    return rows - left


class OnceGiven:
    """The board's own compiler waits, at its first row, until so many images were sent to the board."""

    def __init__(self, images: int) -> None:
        self.images = images
        self.pool: FakePool | None = None

    def __call__(self, _defines: dict[str, str]) -> None:
        until = time.monotonic() + 60
        while self.pool is None or len(self.pool.told) < self.images:
            assert time.monotonic() < until, "no image came"
            time.sleep(0.005)


class Altered:
    """A machine that compiles, of which some answers are others than its own."""

    def __init__(self, side: CompileWork, alter: Callable[[int, dict[str, Any]], dict[str, Any]]) -> None:
        """`alter` gets the number of the image, from 1, and the answer that has it."""
        self.compiler, self.key = side.compiler, side.key
        self._side, self._alter, self._images = side, alter, 0
        self.take_image, self.end_until = side.take_image, side.end_until

    def answer(self, line: bytes, say: Callable[[bytes], None]) -> bytes:
        from app.sensors.remote.fields import parse_line

        answered = parse_line(self._side.answer(line, say), 1 << 23)
        if "image" not in answered.get("answer", {}):
            return answer_line(answered["number"], answered["answer"])
        self._images += 1
        return answer_line(answered["number"], self._alter(self._images, answered["answer"]))


@contextmanager
def running(
    bench: Bench, *sides: Any, waits: OnceGiven | None = None
) -> Iterator[tuple[PoolRunner, FakePool, list[str]]]:
    said: list[str] = []
    pool = FakePool(bench.board, *sides)
    if waits is not None:
        waits.pool = pool
    runner = PoolRunner(
        pool, bench.board.board.model, "nvml", bench.space, bundle_of(bench.spec), on_remark=said.append
    )
    try:
        yield runner, pool, said
    finally:
        runner.close()
        pool.close()
        for side in (bench.board, *sides):
            getattr(side, "_side", side).close()


def measured(runner: PoolRunner, bench: Bench) -> dict[int, Measurement]:
    found = list(runner.measure(range(bench.space.size), threading.Event()))
    assert len(found) == bench.space.size
    return {each.row: each for each in found}


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, virtual_board: VirtualBoard) -> Callable[..., Bench]:
    def make(parameters: str = LAUNCHES, own: TestMaker | None = None) -> Bench:
        return Bench(tmp_path, monkeypatch, virtual_board, parameters, own or TestMaker())

    return make


def test_what_another_machine_compiled_is_launched_and_the_first_of_it_is_compared(bench: Callable[..., Bench]) -> None:
    waits = OnceGiven(held(ROWS))
    here = bench(own=TestMaker(before=waits))
    theirs = TestMaker()
    with running(here, here.compiler(theirs), waits=waits) as (runner, _, said):
        found = measured(runner, here)
    assert {row: each.state for row, each in found.items()} == dict.fromkeys(range(ROWS), State.OK)
    for row, each in found.items():
        assert each.values["time_s"] == pytest.approx((row + 1) * 1e-3, rel=1e-3), "each by its own image"
    assert len(theirs.made) == ROWS
    assert len(here.own.made) == 1, "all others were given"
    assert said == []


def test_images_of_expected_rows_are_there_when_they_are_asked_for(bench: Callable[..., Bench]) -> None:
    waits = OnceGiven(2)
    here = bench(own=TestMaker(before=waits))
    theirs = TestMaker()
    with running(here, here.compiler(theirs), waits=waits) as (runner, pool, _):
        runner.expect([4, 5])
        assert [each.row for each in runner.measure([0, 1], threading.Event())] == [0, 1]
        until = time.monotonic() + 60
        while len(theirs.made) < 4 and time.monotonic() < until:
            runner._hear(0.01)
        waits.images = 4
        before = len(here.own.made)
        assert {each.row for each in runner.measure([4, 5], threading.Event())} == {4, 5}
        assert len(pool.told) >= 4
        assert len(here.own.made) <= before + 1
    assert len(theirs.made) == 4, "each once"


def test_what_is_no_image_ends_the_help_of_its_machine_alone(bench: Callable[..., Bench]) -> None:
    here = bench()
    lies = Altered(here.compiler(TestMaker()), lambda _number, answer: {**answer, "sha256": "0" * 64})
    with running(here, lies) as (runner, pool, said):
        found = measured(runner, here)
        until = time.monotonic() + 60
        while not said and time.monotonic() < until:
            runner._hear(0.01)
    assert {each.state for each in found.values()} == {State.OK}
    assert len(here.own.made) == ROWS
    assert pool.told == []
    (line,) = said
    assert line.startswith("the compile worker on node1 makes no images for this session: ")
    assert "an image that is another one than it says" in line


def test_images_that_differ_from_what_is_compiled_here_are_not_used(bench: Callable[..., Bench]) -> None:
    def other(_number: int, answer: dict[str, Any]) -> dict[str, Any]:
        return image_document(answer["key"], b"\x7fELF of other headers", "")

    waits = OnceGiven(1)
    here = bench(own=TestMaker(before=waits))
    with running(here, Altered(here.compiler(TestMaker()), other), waits=waits) as (runner, _, said):
        found = measured(runner, here)
    assert {each.state for each in found.values()} == {State.OK}
    assert len(here.own.made) == ROWS
    (line,) = said
    assert line.startswith("images made on node1 are not used by ")
    assert "differs from what is compiled beside the board" in line


def test_a_failure_with_an_image_from_elsewhere_is_believed_where_our_own_is_the_same(
    bench: Callable[..., Bench],
) -> None:
    """A machine that turns bad after its first image costs rows their time, and no row its result."""

    def garbage_later(number: int, answer: dict[str, Any]) -> dict[str, Any]:
        return answer if number == 1 else image_document(answer["key"], b"\x7fELF, garbage", "")

    faults = ["none", "overwrites", *(f"none{at}" for at in range(4))]
    waits = OnceGiven(held(len(faults)))
    here = bench(f"fault = {faults}", own=TestMaker(before=waits))
    with running(here, Altered(here.compiler(TestMaker()), garbage_later), waits=waits) as (runner, _, said):
        bad = {str(m.configuration["fault"]): m.state for m in measured(runner, here).values()}
    expected = dict.fromkeys(faults, State.OK) | {"overwrites": State.CORRECTNESS}
    assert bad == expected
    assert len(here.own.made) == len(faults)
    assert len(said) == 1


def test_a_kernel_that_fails_fails_the_same_with_an_image_from_elsewhere(bench: Callable[..., Bench]) -> None:
    faults = ["none", "overwrites", "broken", "out_of_memory"]
    waits = OnceGiven(held(len(faults)) - 1)  # what does not compile there is compiled here
    here = bench(f"fault = {faults}", own=TestMaker(before=waits))
    with running(here, here.compiler(TestMaker()), waits=waits) as (runner, _, said):
        found = {str(m.configuration["fault"]): m for m in measured(runner, here).values()}
    assert found["none"].state is State.OK
    assert found["overwrites"].state is State.CORRECTNESS
    assert found["broken"].state is State.COMPILE
    assert "expected a" in found["broken"].error
    assert found["out_of_memory"].state is State.RUNTIME
    assert said == []


def test_another_compiler_makes_no_images(bench: Callable[..., Bench]) -> None:
    here = bench()
    theirs = TestMaker("fake 2 for (9, 0)")
    with running(here, here.compiler(theirs)) as (runner, pool, said):
        assert {each.state for each in measured(runner, here).values()} == {State.OK}
    assert theirs.made == []
    assert pool.told == []
    (line,) = said
    assert "it has fake 2 for (9, 0), and the boards have fake 1 for (9, 0)" in line


def test_a_compile_worker_that_dies_or_hangs_costs_nothing_but_its_help(bench: Callable[..., Bench]) -> None:
    begun, end = threading.Event(), threading.Event()

    def hang(_defines: dict[str, str]) -> None:
        begun.set()
        assert end.wait(60)

    def once_begun(_defines: dict[str, str]) -> None:
        assert begun.wait(60)

    here = bench(own=TestMaker(before=once_begun))
    hanging = here.compiler(TestMaker(before=hang))
    try:
        with running(here, hanging) as (runner, pool, said):
            half = list(runner.measure(range(ROWS // 2), threading.Event()))
            pool.kill(hanging.key)
            rest = list(runner.measure(range(ROWS // 2, ROWS), threading.Event()))
            end.set()
    finally:
        end.set()
    assert [each.state for each in (*half, *rest)] == [State.OK] * ROWS
    assert len(here.own.made) == ROWS
    assert said == []


def test_a_compile_worker_that_was_started_again_is_opened_again(bench: Callable[..., Bench]) -> None:
    waits = OnceGiven(1)
    here = bench(own=TestMaker(before=waits))
    theirs = TestMaker()
    side = here.compiler(theirs)
    with running(here, side, waits=waits) as (runner, pool, said):
        assert len(list(runner.measure([0, 1], threading.Event()))) == 2
        pool.kill(side.key)
        side.close()  # it knows no session any more
        pool.join(side)
        until = time.monotonic() + 60
        runner.expect([4, 5])
        while len(theirs.made) < 4 and time.monotonic() < until:
            runner._hear(0.01)
    assert len(theirs.made) == 4
    assert said == []


# --- which rows -------------------------------------------------------------------------------------------------------


class Recorder:
    """A pool that keeps what it is sent."""

    def __init__(self) -> None:
        self.rows: dict[str, list[int]] = {}
        self.numbers: list[int] = []
        self.told: list[tuple[str, bytes]] = []

    def send(self, board: str, number: int, line: bytes) -> None:
        request = parse_compile_request(line)
        self.numbers.append(number)
        if request.do == "compile":
            self.rows.setdefault(board, []).append(request.row)

    def tell(self, board: str, line: bytes) -> None:
        self.told.append((board, line))

    def cancel(self, number: int) -> None: ...


TARGET = ImageTarget((9, 0), limits_of((9, 0), 132), 0, "fake 1")
SPACE = grid()


@pytest.fixture
def helped() -> tuple[CompileHelp, Recorder]:
    """Boards a and b, and a machine n that makes two images at once, all of them ready."""
    pool, numbers = Recorder(), count(1)
    help_ = CompileHelp(pool, SessionWork("0" * 32, BUNDLE, SPACE), lambda: next(numbers) * 1000, lambda _: None)  # type: ignore[arg-type]
    for board in "ab":
        help_.board(board, TARGET)
    help_.join(PoolCompiler("n", "node1", 2))
    answer(help_, pool.numbers[0], {})
    return help_, pool


def answer(help_: CompileHelp, number: int, found: dict[str, Any]) -> None:
    assert help_.hears(number)
    help_.take(Said(number, "n", answer_line(number, found)))


def made(row: int) -> dict[str, Any]:
    return image_document(f"{row:064x}", b"image", "")


def test_a_board_and_its_helper_begin_at_both_ends_of_what_it_has(helped: tuple[CompileHelp, Recorder]) -> None:
    help_, pool = helped
    help_.want(1, "a", [1, 2, 3, 4], dict.fromkeys([1, 2, 3, 4]))
    help_.want(2, "a", [5, 6], dict.fromkeys([5, 6]))
    help_.begun(1)
    asked = 1
    for row in (1, 4, 3, 2, 5, 6):  # the first is made by both, and compared; what comes next is made in its order
        help_.turn()
        assert pool.rows["n"][asked - 1] == row
        answer(help_, pool.numbers[asked], made(row))
        asked += 1
    assert len(pool.told) == 6


def test_boards_are_helped_in_turns_and_what_is_known_is_not_made(helped: tuple[CompileHelp, Recorder]) -> None:
    help_, pool = helped
    still = dict.fromkeys([1, 2])
    help_.want(1, "a", [1, 2], still)
    help_.want(2, "b", [7, 8], dict.fromkeys([7, 8]))
    del still[1]
    help_.turn()
    assert pool.rows["n"] == [2, 7, 8], "as many as it makes at once, and the next"


def test_rows_that_nobody_waits_for_any_more_are_not_made(helped: tuple[CompileHelp, Recorder]) -> None:
    help_, pool = helped
    waiting = deque([4, 5, 6])
    help_.queue([waiting])
    waiting.popleft()
    help_.expect([8, 9])
    help_.expect([1, 2, 3])
    help_.turn()
    assert pool.rows["n"] == [5, 6, 1], "what waits comes before what may come; what was expected before is forgotten"


def test_rows_that_several_boards_have_are_made_once_and_sent_to_each(helped: tuple[CompileHelp, Recorder]) -> None:
    help_, pool = helped
    for number, board in enumerate("ab", 1):
        help_.want(number, board, [3], dict.fromkeys([3]))
    help_.turn()
    assert pool.rows["n"] == [3]
    answer(help_, pool.numbers[1], made(3))
    assert sorted(board for board, _ in pool.told) == ["a", "b"]
    help_.want(3, "a", [3], dict.fromkeys([3]))
    assert len(pool.told) == 2, "it has that image"


def test_boards_with_another_compiler_are_not_helped(helped: tuple[CompileHelp, Recorder]) -> None:
    help_, pool = helped
    help_.board("c", replace(TARGET, compiler="fake 2"))
    help_.board("d", None)
    for number, board in enumerate("cd"):
        help_.want(number, board, [3], dict.fromkeys([3]))
    help_.turn()
    assert pool.rows == {}


def test_what_a_board_refuses_is_not_sent_to_it_any_more(helped: tuple[CompileHelp, Recorder]) -> None:
    help_, pool = helped
    help_.reported("a", "board a", {"images": {"used": 3, "refused": {"node1": "it differs"}}})
    help_.want(1, "a", [3], dict.fromkeys([3]))
    help_.want(2, "b", [4], dict.fromkeys([4]))
    help_.turn()
    assert pool.rows["n"] == [4]
    assert help_.used == 3


# --- images that were given -------------------------------------------------------------------------------------------


def given(key: str, image: bytes = b"image", maker: str = "node1") -> GivenImage:
    return GivenImage(key, maker, image)


def test_no_image_is_used_before_one_of_its_machine_was_compared_whichever_came_first() -> None:
    images = GivenImages()
    images.give(given("a"))
    assert images.find("a") is None
    images.compare("a", Compiled(b"image", ""))
    images.give(given("b"))
    assert images.find("b") == Compiled(b"image", "", "node1")
    images.compare("c", Compiled(b"image", ""))
    images.give(given("d", maker="node2"))
    assert images.find("d") is None, "nothing is known of that machine"
    images.give(given("c", maker="node2"))
    assert images.find("d") is not None
    assert images.used == 2


def test_a_machine_of_which_one_image_differs_is_refused_with_all_that_it_gave() -> None:
    images = GivenImages()
    images.compare("a", Compiled(b"image", ""))
    images.give(given("a"))
    images.give(given("b"))
    images.give(given("c"))
    images.compare("c", Compiled(b"another", ""))
    assert images.find("b") is None
    assert set(images.refused) == {"node1"}
    images.give(given("a"))
    images.give(given("e"))
    assert images.find("e") is None, "for good"


def test_images_are_kept_within_bounds() -> None:
    images = GivenImages(most_bytes=10)
    images.compare("a", Compiled(b"image", ""))
    for key in "abcd":
        images.give(given(key))
    assert [key for key in "bcd" if images.find(key)] == ["c", "d"]


def test_the_same_files_in_another_folder_have_the_same_key(tmp_path: Path) -> None:
    from app.engine.runner.kernels.compiler import Compiler
    from app.engine.workloads.source_kernel import Build

    keys = set()
    for name, text in (("one", "1"), ("two", "1"), ("three", "2")):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "k.cu").write_text('#include "k.h"\n')
        (folder / "k.h").write_text(text)
        compiler = Compiler(TestMaker(), folder=tmp_path / "images", jobs=1)
        compiler.root = folder
        build = Build(f'#include "{folder / "k.cu"}"\n', (folder / "k.cu",), (folder,), ("-O3",))
        keys.add(compiler.key(build))
        compiler.close()
    assert len(keys) == 2, "what is included counts, and not where it lies"


def test_a_fake_image_is_what_the_fake_compiler_makes() -> None:
    assert image_of({"factor": "2"}) == image_of({"factor": "2"}) != image_of({"factor": "3"})
