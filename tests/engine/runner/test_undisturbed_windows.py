"""Nothing of ours runs on the board while a kernel is measured, and what disturbs a window all the same is found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from fake_cuda import FakeBackend, FakeKernel
from fixtures.cuda_bench import Bench
from fixtures.virtual_cuda import ProcessOfNone, VirtualBoard

from app.engine.metering import meter as metering
from app.engine.results.measurement import Measurement, State
from app.engine.runner.kernels.reference import DRIFT_LOAD

Factor = Callable[[str, int, int], float]  # kernel's `draws_w`, ns since it was first launched, times it was begun


@pytest.fixture(autouse=True)
def short_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metering, "WARM_STEP_S", 0.02)


@pytest.fixture
def slowed(monkeypatch: pytest.MonkeyPatch, virtual_board: VirtualBoard) -> Callable[[Factor], None]:
    """Launches of a kernel take so many times as long as they should."""

    def slow_by(factor: Factor) -> None:
        launch, queue, first_ns, begun = FakeKernel.launch, FakeBackend.queue, {}, {}
        in_launch: list[float] = []

        def launch_slowed(kernel: Any, times: int) -> None:
            draws, now_ns = kernel._defines.get("draws_w", ""), virtual_board.clock.now_ns()
            if times > 1 or draws in first_ns:  # the check before is one launch
                first_ns.setdefault(draws, now_ns)
                begun[draws] = begun.get(draws, 0) + (kernel._backend.busy_until_ns <= now_ns)
                in_launch.append(factor(draws, now_ns - first_ns[draws], begun[draws]))
            launch(kernel, times)
            in_launch.clear()

        def queue_slowed(backend: Any, seconds: float, power_w: float) -> None:
            queue(backend, seconds * (in_launch[0] if in_launch else 1.0), power_w)

        monkeypatch.setattr(FakeKernel, "launch", launch_slowed)
        monkeypatch.setattr(FakeBackend, "queue", queue_slowed)

    return slow_by


def by_power(measured: Sequence[Measurement]) -> dict[object, Measurement]:
    return {m.configuration["draws_w"]: m for m in measured}


KERNELS = "launch_ms = [2]\ndraws_w = [150, 300, 450, 600]"


def test_a_window_that_was_disturbed_from_end_to_end_is_measured_again(
    bench: type[Bench], virtual_board: VirtualBoard, slowed: Callable[[Factor], None]
) -> None:
    order: list[str] = []  # as they were compiled: the first is never the last, after which no window lies

    def first_is_disturbed(draws: str, since_ns: int, _: int) -> float:
        order.extend([draws] if draws and draws not in order else [])
        return 1.04 if draws and draws == order[0] and since_ns < 350_000_000 else 1.0

    slowed(first_is_disturbed)
    measured = by_power(bench(KERNELS, sensors=virtual_board).rows())
    assert len(measured) == 4
    for power_w, m in measured.items():
        assert m.values["time_s"] == pytest.approx(2e-3, rel=2e-3), power_w
        assert m.values["energy_j"] == pytest.approx(float(str(power_w)) * 2e-3, rel=5e-3)
        assert "second look" not in m.message


def test_a_time_that_differs_at_every_look_is_said(
    bench: type[Bench], virtual_board: VirtualBoard, slowed: Callable[[Factor], None]
) -> None:
    slowed(lambda draws, _, begun: 1.0 + 0.03 * begun if draws == "300" else 1.0)
    measured = by_power(bench(KERNELS, sensors=virtual_board).rows())
    assert "a second look at the time per launch differed by" in measured[300].message
    assert not any(m.message for power_w, m in measured.items() if power_w != 300)


def test_a_second_look_by_less_than_the_interval_is_nothing_to_speak_of(
    bench: type[Bench], virtual_board: VirtualBoard, slowed: Callable[[Factor], None]
) -> None:
    slowed(lambda draws, since_ns, _: 1.006 if since_ns < 350_000_000 else 1.0)
    measured = bench(KERNELS, sensors=virtual_board).rows()
    assert not any(m.message for m in measured)
    assert all(m.values["time_s"] == pytest.approx(2e-3 * 1.006, rel=2e-3) for m in measured)


def test_nothing_of_ours_runs_while_a_kernel_is_measured(
    bench: type[Bench], virtual_board: VirtualBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A context takes 0.3 s to make, and a kernel that is lost costs a process: the spare is made between windows."""
    clock = virtual_board.clock
    ours: list[tuple[str, int, int]] = []  # what, from, until
    windows: list[tuple[str, int, int]] = []  # of the reference kernel

    class SlowToStart(ProcessOfNone):
        def __init__(self, board: VirtualBoard) -> None:
            super().__init__(board)
            self.stands_ns = clock.now_ns() + 300_000_000
            self.began = "", 0
            ours.append(("a context", clock.now_ns(), self.stands_ns))

        def ready(self) -> None:
            clock.wait((self.stands_ns - clock.now_ns()) / 1e9)
            super().ready()

        def request(self, message: dict[str, Any], blocks: Sequence[bytes] = (), **how: object) -> dict[str, Any]:
            before_ns = clock.now_ns()
            reply = super().request(message, blocks, **how)
            if message["do"] == "begin":
                self.began = message["id"], before_ns
            elif message["do"] == "end" and self.began[0] == DRIFT_LOAD.name:
                windows.append((*self.began, clock.now_ns()))
            return reply

    for name in ("upload", "write", "copy", "difference", "load"):
        done = getattr(FakeBackend, name)

        def noted(backend: Any, *given: Any, _done: Any = done, _name: str = name) -> Any:
            ours.append((_name, clock.now_ns(), clock.now_ns()))
            return _done(backend, *given)

        monkeypatch.setattr(FakeBackend, name, noted)
    monkeypatch.setattr("app.engine.runner.kernels.gpu.RunnerProcess", lambda *_: SlowToStart(virtual_board))
    measured = bench(
        'draws_w = [150, 300]\nfault = ["none", "illegal_address", "spills"]', sensors=virtual_board
    ).rows()
    worked = [m for m in measured if m.state is State.OK]
    assert len(worked) == 4
    assert len([what for what, *_ in ours if what == "a context"]) >= 3, "two were lost, the last perhaps at the end"
    measuring = [(str(m.configuration), *m.window_ns) for m in worked if m.window_ns is not None]
    assert len(measuring) == 4
    assert windows
    for kernel, opened_ns, ended_ns in [*measuring, *windows]:
        during = [(what, begun, until) for what, begun, until in ours if begun < ended_ns and until > opened_ns]
        assert not during, kernel
