"""Rows that are only timed follow each other closely: the next is loaded while the board warms up for this one."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from fake_cuda import FakeBackend, FakeKernel, compile_source
from fixtures.cuda_bench import Bench
from fixtures.virtual_cuda import ProcessOfNone, VirtualBoard

from app.engine.results.measurement import Measurement, State
from app.engine.runner.cuda.driver import GRAPHED
from app.engine.runner.kernels.backend import DeviceFault
from app.engine.runner.kernels.compiler import Build, Compiled, Compiler

LOADING_S = 0.004
KERNELS = "launch_ms = [1]\ndraws_w = [150, 250, 350, 450]"


class Diary:
    """What is done on the board, on its clock: (what, from, until, whether it worked then)."""

    def __init__(self, board: VirtualBoard, monkeypatch: pytest.MonkeyPatch) -> None:
        self.done: list[tuple[str, int, int, bool]] = []
        self.timed: list[tuple[int, int]] = []
        self.began_ns = 0
        clock, diary = board.clock, self

        class Noting(ProcessOfNone):
            def request(self, message: dict[str, Any], blocks: Sequence[bytes] = (), **how: object) -> dict[str, Any]:
                reply = super().request(message, blocks, **how)
                if message["do"] == "few":
                    diary.timed.append((reply["start_ns"], reply["end_ns"]))
                return reply

        for name in ("upload", "write", "copy", "difference", "load"):
            monkeypatch.setattr(FakeBackend, name, self._noted(name, getattr(FakeBackend, name), clock))
        monkeypatch.setattr("app.engine.runner.kernels.gpu.RunnerProcess", lambda *_: Noting(board))

    def _noted(self, name: str, do: Any, clock: Any) -> Any:
        def noted(backend: FakeBackend, *given: Any) -> Any:
            began_ns, works = clock.now_ns(), backend.busy_until_ns > clock.now_ns()
            if name == "load":
                clock.wait(LOADING_S)
            self.done.append((name, began_ns, clock.now_ns(), works))
            return do(backend, *given)

        return noted


@pytest.fixture
def diary(virtual_board: VirtualBoard, monkeypatch: pytest.MonkeyPatch) -> Diary:
    return Diary(virtual_board, monkeypatch)


@pytest.fixture
def compiled(bench: type[Bench], virtual_board: VirtualBoard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A bench whose kernels are compiled at once, in this process."""

    def at_once(_: Compiler, build: Build) -> Future[Compiled]:
        source, image, future = tmp_path / "one.cu", tmp_path / "one.image", Future[Compiled]()
        source.write_text(build.text)
        assert compile_source(["-o", str(image), str(source)]) == 0
        future.set_result(Compiled(image.read_bytes(), ""))
        return future

    monkeypatch.setattr(Compiler, "submit", at_once)
    return bench(KERNELS, sensors=virtual_board)


def timed(one: Bench) -> dict[object, Measurement]:
    return {m.configuration["draws_w"]: m for m in one.runner.time(range(one.space.size), threading.Event())}


def test_the_next_kernel_is_loaded_while_the_board_warms_up_and_never_while_it_is_timed(
    diary: Diary, compiled: Bench, virtual_board: VirtualBoard
) -> None:
    timed(compiled)  # the arguments are on the board
    diary.done.clear()
    diary.timed.clear()
    began_ns = virtual_board.clock.now_ns()
    found = timed(compiled)
    row_s = (virtual_board.clock.now_ns() - began_ns) / 1e9 / len(found)
    assert all(m.values["time_s"] == pytest.approx(1e-3) for m in found.values())
    assert [works for what, _, _, works in diary.done if what == "load"] == [False, True, True, True], "each once"
    assert row_s < 0.018, "5 ms to warm up, 10 ms of launches, one to check the outputs; 4 ms of loading beside them"
    assert len(diary.timed) == len(found)
    assert {name for name, *_ in diary.done} >= {"load", "copy", "difference"}
    for start_ns, end_ns in diary.timed:
        assert end_ns - start_ns == pytest.approx(10e6, rel=0.01)
        assert not [what for what, from_ns, until_ns, _ in diary.done if from_ns < end_ns and until_ns > start_ns]


def test_a_long_kernel_is_launched_once_to_check_it_and_once_to_time_it(
    bench: type[Bench], virtual_board: VirtualBoard, compiled: Bench
) -> None:
    one = bench("launch_ms = [40]\ndraws_w = [150, 250, 350, 450]", sensors=virtual_board)
    timed(one)
    began_ns = virtual_board.clock.now_ns()
    found = timed(one)
    row_s = (virtual_board.clock.now_ns() - began_ns) / 1e9 / len(found)
    assert all(m.values["time_s"] == pytest.approx(0.04) for m in found.values())
    assert 0.08 <= row_s < 0.09


def test_a_short_kernel_is_timed_by_what_the_device_takes_and_not_by_what_the_host_does(
    bench: type[Bench], virtual_board: VirtualBoard, compiled: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A launch takes the host longer than the device, unless many are recorded, which takes it a millisecond once."""
    launch, recorded = FakeKernel.launch, set[int]()

    def slowly(kernel: FakeKernel, times: int) -> None:
        many = times >= 2 * GRAPHED
        virtual_board.clock.wait(0.001 if many and id(kernel) not in recorded else 50e-6 + (not many) * 12e-6 * times)
        recorded.update([id(kernel)] * many)
        launch(kernel, times)

    one = bench("launch_ms = [0.006]\ndraws_w = [150, 250, 350, 450]", sensors=virtual_board)
    monkeypatch.setattr(FakeKernel, "launch", slowly)
    found = timed(one)
    assert [m.values["time_s"] for m in found.values()] == pytest.approx([6e-6] * 4, rel=0.1)


def test_a_kernel_that_fails_while_it_is_loaded_ahead_costs_only_itself(
    diary: Diary, compiled: Bench, virtual_board: VirtualBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    load, begun, fatal = FakeBackend.load, list[bool](), False

    def refusing(backend: FakeBackend, image: bytes, *given: Any) -> Any:
        if b'"draws_w": "350"' in image:
            begun.append(backend.busy_until_ns > virtual_board.clock.now_ns())
            raise DeviceFault("cuModuleLoadData failed: out of luck", fatal=fatal)
        return load(backend, image, *given)

    monkeypatch.setattr(FakeBackend, "load", refusing)
    for fatal in (False, True):
        begun.clear()
        found = timed(compiled)
        assert begun == [True, False], "ahead, and once more when its turn had come"
        assert [found[power_w].state for power_w in (150, 250, 450)] == [State.OK] * 3
        assert all(found[power_w].values["time_s"] == pytest.approx(1e-3) for power_w in (150, 250, 450))
        assert found[350].state is State.RUNTIME
        assert "out of luck" in found[350].error
        assert compiled.runner.replaced == (2 if fatal else 0)
