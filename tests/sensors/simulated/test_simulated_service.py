"""Requests to the service of a simulated board: counts and times that must hold whatever its figures are."""

from __future__ import annotations

import numpy as np
import pytest

from app.sensors.clock import ScaledClock, VirtualClock
from app.sensors.gpu import NotSupported, SensorError
from app.sensors.service import Requests, Served, ServesLoad, ServiceLoad
from app.sensors.simulated import laws, serving_laws
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.profiles import full_load
from app.sensors.simulated.serving_laws import Serving
from app.sensors.simulated.twin import load_twin

TWIN = load_twin("rtx5090")


@pytest.fixture
def gpu() -> SimulatedGpu:
    board = SimulatedGpu(TWIN, seed=1, clock=VirtualClock())
    board.start_service({})
    return board


def drawn(gpu: SimulatedGpu, load: ServiceLoad, seconds: float) -> tuple[Served, float]:
    """What was served in so long, and the mean power of it."""
    energy_j, pieces = 0.0, []
    for _ in range(round(seconds / 5)):
        before_j = gpu.drawn_j(gpu.clock.now_ns())
        served = gpu.serve(load, 5.0)
        energy_j += gpu.drawn_j(served.end_ns) - before_j
        pieces.append(served)
    tokens, idle_s = sum(piece.output_tokens for piece in pieces), sum(piece.idle_s for piece in pieces)
    requests = Requests.joined([piece.requests for piece in pieces])
    return Served(pieces[0].start_ns, pieces[-1].end_ns, requests, idle_s, tokens), energy_j / seconds


def test_the_board_implements_the_seam_and_says_what_is_assumed(gpu: SimulatedGpu) -> None:
    assert isinstance(gpu, ServesLoad)
    for word in ("latency", "load", "cap", "assumed"):
        assert word in gpu.service_assumptions


def test_so_many_at_once_give_the_tokens_and_draw_the_power_of_the_steady_state(gpu: SimulatedGpu) -> None:
    load = ServiceLoad(concurrency=6, input_tokens=1, output_tokens=4000)
    gpu.serve(load, 5.0)
    served, power_w = drawn(gpu, load, 20.0)
    point, steady_w, _ = laws.settled_under_limits(TWIN, Serving(6), 3090, 14001, 600, serving_laws.under_service)
    assert served.output_tokens / 20.0 == pytest.approx(6 / point.launch_s, rel=0.01)
    assert power_w == pytest.approx(steady_w, rel=0.01)
    assert served.idle_s == 0.0


def test_a_lone_request_takes_its_prompt_and_its_steps(gpu: SimulatedGpu) -> None:
    gpu.lock_graphics_clock(1500)  # reading a prompt at the highest clock would meet the power limit
    load = ServiceLoad(concurrency=1, input_tokens=500, output_tokens=101)
    served, _ = drawn(gpu, load, 20.0)
    requests = served.requests
    settled = slice(2, None)  # the clock rises at first
    first_s = (requests.first_ns - requests.due_ns)[settled] / 1e9
    rest_s = (requests.ended_ns - requests.first_ns)[settled] / 1e9
    assert first_s == pytest.approx(500 / serving_laws.prefill_rate(TWIN, 1500), rel=1e-3)
    assert rest_s == pytest.approx(100 * serving_laws.step_s(TWIN, 1, 1500, 14001), rel=1e-3)


def test_clients_begin_one_after_another_over_the_ramp(gpu: SimulatedGpu) -> None:
    load = ServiceLoad(concurrency=4, input_tokens=16, output_tokens=4000, ramp_s=2.0)
    began_ns = gpu.clock.now_ns()
    due_ns = np.concatenate([gpu.serve(load, 1.0).requests.due_ns for _ in range(400)]) - began_ns
    first = np.sort(due_ns)[:4]
    assert first / 1e9 == pytest.approx([0.0, 0.5, 1.0, 1.5], abs=1e-3)
    at_once = ServiceLoad(concurrency=4, input_tokens=16, output_tokens=4000)
    began_ns = gpu.clock.now_ns()
    due_ns = np.concatenate([gpu.serve(at_once, 1.0).requests.due_ns for _ in range(400)]) - began_ns
    assert np.sort(due_ns)[:4] / 1e9 == pytest.approx([0.0] * 4, abs=1e-3)


def test_requests_at_a_rate_arrive_as_poisson_has_them_and_all_are_accounted_for(gpu: SimulatedGpu) -> None:
    load = ServiceLoad(rate_per_s=5.0, input_tokens=64, output_tokens=32)
    served, _ = drawn(gpu, load, 200.0)
    gaps_s = np.diff(np.sort(served.requests.due_ns)) / 1e9
    assert len(gaps_s) == pytest.approx(1000, abs=130)  # four standard deviations
    assert gaps_s.mean() == pytest.approx(0.2, rel=0.15)
    assert gaps_s.std() == pytest.approx(gaps_s.mean(), rel=0.15)
    under_way = 16  # at most, beside those that ended
    assert served.output_tokens == pytest.approx(served.requests.output_tokens.sum(), abs=32 * under_way)
    assert (served.requests.due_ns <= served.requests.first_ns).all()
    assert (served.requests.first_ns < served.requests.ended_ns).all()
    assert (np.diff(served.requests.ended_ns) >= 0).all()


def test_what_waits_and_idles_adds_up_to_littles_law(gpu: SimulatedGpu) -> None:
    load = ServiceLoad(rate_per_s=0.4, input_tokens=64, output_tokens=64)
    served, power_w = drawn(gpu, load, 400.0)
    span_s = (served.end_ns - served.start_ns) / 1e9
    edges = np.concatenate([served.requests.due_ns, served.requests.ended_ns])
    steps = np.concatenate([np.ones(len(served.requests)), -np.ones(len(served.requests))])
    order = np.argsort(edges, kind="stable")
    under_way, times_s = np.cumsum(steps[order])[:-1], np.diff(edges[order]) / 1e9
    nothing_s = times_s[under_way == 0].sum()
    assert served.idle_s == pytest.approx(nothing_s, abs=0.05 * span_s)
    assert 0.5 < served.idle_s / span_s < 0.95
    assert 30 < power_w < 300


def test_more_than_there_are_places_wait_for_one(gpu: SimulatedGpu) -> None:
    few = SimulatedGpu(TWIN, seed=1, clock=VirtualClock())
    few.start_service({"max_num_seqs": 4})
    load = ServiceLoad(concurrency=8, input_tokens=16, output_tokens=100)
    all_at_once, _ = drawn(gpu, load, 20.0)
    waiting, _ = drawn(few, load, 20.0)
    assert waiting.output_tokens < all_at_once.output_tokens
    first = [np.median(each.requests.first_ns - each.requests.due_ns) for each in (all_at_once, waiting)]
    assert first[1] > 4 * first[0]


def test_clocks_and_a_limit_in_force_act_on_what_is_served(gpu: SimulatedGpu) -> None:
    load = ServiceLoad(concurrency=6, input_tokens=1, output_tokens=4000)
    gpu.serve(load, 5.0)
    free, free_w = drawn(gpu, load, 5.0)
    gpu.lock_graphics_clock(1635)
    gpu.lock_memory_clock(7001)
    gpu.serve(load, 5.0)
    locked, locked_w = drawn(gpu, load, 5.0)
    gpu.lock_graphics_clock(None)
    gpu.lock_memory_clock(None)
    gpu.set_power_limit(400)
    gpu.serve(load, 10.0)
    capped, capped_w = drawn(gpu, load, 10.0)
    assert capped_w == pytest.approx(400, rel=0.01)
    assert free.output_tokens / 5 > capped.output_tokens / 10 > locked.output_tokens / 5
    assert free_w > capped_w > locked_w
    efficiency = [locked.output_tokens / 5 / locked_w, capped.output_tokens / 10 / capped_w]
    assert efficiency[0] > 1.15 * efficiency[1]


def test_the_same_load_goes_on_and_another_begins_afresh(gpu: SimulatedGpu) -> None:
    load = ServiceLoad(concurrency=2, input_tokens=8, output_tokens=2000)
    assert len(gpu.serve(load, 2.0).requests) == 0  # an answer takes longer
    gpu.clock.wait(100.0)  # between two stretches nothing is asked, and nobody waits
    later = gpu.serve(load, 30.0)
    assert len(later.requests) >= 2
    assert (later.requests.ended_ns - later.requests.due_ns < 30e9).all()
    other = gpu.serve(ServiceLoad(concurrency=3, input_tokens=8, output_tokens=2000), 1.0)
    assert len(other.requests) == 0


def test_a_service_ends_and_the_board_idles_again(gpu: SimulatedGpu) -> None:
    gpu.serve(ServiceLoad(concurrency=4), 2.0)
    gpu.stop_service()
    gpu.stop_service()
    gpu.clock.wait(30.0)
    assert not gpu.busy
    assert gpu.read().values[0] == pytest.approx(30.0, rel=0.05)
    with pytest.raises(SensorError, match="start it first"):
        gpu.serve(ServiceLoad(concurrency=4), 1.0)


def test_what_the_model_does_not_know_is_refused(gpu: SimulatedGpu) -> None:
    with pytest.raises(NotSupported, match="max_num_seqs"):
        gpu.start_service({"tensor_parallel_size": 2})
    with pytest.raises(NotSupported, match="number of sequences"):
        gpu.start_service({"max_num_seqs": "many"})
    with pytest.raises(NotSupported, match="simulated:rtx5090"):
        SimulatedGpu(load_twin("a100"), clock=VirtualClock()).start_service({})
    gpu.start_service({})
    with pytest.raises(SensorError, match="rate above 0"):
        gpu.serve(ServiceLoad(), 1.0)
    kernel = SimulatedGpu(TWIN, clock=VirtualClock())
    kernel.start_service({})
    kernel.begin(full_load())
    with pytest.raises(SensorError, match="runs something already"):
        kernel.serve(ServiceLoad(concurrency=1), 1.0)


def test_on_a_clock_that_runs_by_itself_nothing_is_lost() -> None:
    gpu = SimulatedGpu(TWIN, seed=1, clock=ScaledClock(100.0))
    gpu.start_service({})  # a minute of its clock
    served = gpu.serve(ServiceLoad(concurrency=4, input_tokens=16, output_tokens=50), 20.0)
    assert len(served.requests) > 0
    assert served.output_tokens == pytest.approx(served.requests.output_tokens.sum(), abs=4 * 50)
