"""What a board's history does to its power: on an H200, and on boards whose answer is known."""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, median

import numpy as np
import pytest
from fixtures.cuda_bench import SteadySensors
from hypothesis import given
from hypothesis import strategies as st

from app.base.errors import InputError
from app.base.paths import data_folder
from app.engine.metering.condition import Condition, PowerHistory, drawn_lately_w
from app.engine.metering.thermal import PRIOR, PRIOR_SD, BoardHeat, Look, ThermalModel, keep_heat, known_heat

RECORDED = Path(__file__).parent / "data" / "thermal_history_h200.csv"  # its README says how it was recorded
SAMPLED = 0.003  # of a window of 0.34 s, relative: scatter of the driver's samples


@dataclass
class Seen:
    """A window of the recording."""

    kernel: str
    history: str
    run: str
    from_s: float
    power_w: float
    condition: Condition

    @property
    def look(self) -> Look:
        return Look(self.kernel, self.power_w, SAMPLED, self.condition)


def recorded() -> list[Seen]:
    """Windows of 0.2 to 0.5 s of 24 kernels, below the power limit, after idling, after heavy work, in sessions."""
    with RECORDED.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["limited"] == "0" and float(row["power_w"]) < 690]
    names = ("gpu_c", "memory_c", "fast_w", "slow_w")
    return [
        Seen(
            row["kernel"],
            row["history"],
            row["run"],
            float(row["from_s"]),
            float(row["power_w"]),
            Condition(*(float(row[name]) for name in names)),
        )
        for row in rows
    ]


def mean_of(windows: list[Seen]) -> tuple[float, Condition]:
    """Mean power and condition of a run."""
    parts = [(w.condition.gpu_c, w.condition.memory_c, w.condition.fast_w, w.condition.slow_w) for w in windows]
    return fmean(w.power_w for w in windows), Condition(*(fmean(each) for each in zip(*parts, strict=True)))


def references(seen: list[Seen]) -> dict[str, tuple[str, float, Condition]]:
    """Runs alone, seconds long: 3 s after they began from idle, and right after heavy work."""
    runs = defaultdict(list)
    for window in seen:
        if window.history == "hot" or (window.history == "idle" and window.from_s >= 2.9):
            runs[window.run].append(window)
    return {run: (windows[0].kernel, *mean_of(windows)) for run, windows in runs.items()}


def test_sessions_state_what_a_kernel_draws_alone_from_idle_and_hot() -> None:
    seen = recorded()
    errors, raw_errors, covered, halves = [], [], [], []
    for session in ("s1", "s2", "s3", "s4"):
        # what a session shows of itself and another one did, and nothing of the references
        model = ThermalModel().learn(w.look for w in seen if w.history in {session, "s2b"})
        short = {w.kernel: w for w in seen if w.history == session}
        for kernel, power_w, condition in references(seen).values():
            if kernel in short:
                window = short[kernel]
                stated_w, sd = model.stated(window.power_w, window.condition, condition)
                half = math.hypot(1.96 * SAMPLED, model.uncertainty(sd, 1.96 * SAMPLED))
                errors.append(abs(stated_w / power_w - 1))
                raw_errors.append(abs(window.power_w / power_w - 1))
                covered.append(errors[-1] <= half)
                halves.append(half)
    assert len(errors) >= 80
    assert median(errors) < 0.006
    assert median(errors) < median(raw_errors)
    assert np.quantile(errors, 0.95) < 0.016
    assert np.quantile(errors, 0.95) < np.quantile(raw_errors, 0.95)
    assert fmean(covered) >= 0.9
    assert median(halves) <= 0.0185, "another process adds to what differs within one"


def drawn_w(alone_w: float, coefficients: np.ndarray, at: Condition) -> float:
    """What a kernel draws at a condition, by the equation of the model."""
    power_w = alone_w
    for _ in range(20):
        shares = (min(2.0, at.fast_w / power_w - 1), min(2.0, at.slow_w / power_w - 1))
        power_w = alone_w * math.exp(coefficients @ np.array([at.gpu_c - 50, at.memory_c - 50, *shares]))
    return power_w


def board(rng: np.random.Generator, coefficients: np.ndarray, wander: float, kernels: int, times: int) -> list[Look]:
    """Windows of a board with those coefficients."""
    looks = []
    for kernel in range(kernels):
        alone_w = rng.uniform(250, 600)
        for _ in range(times):
            condition = Condition(rng.uniform(40, 65), rng.uniform(42, 60), rng.uniform(80, 700), rng.uniform(80, 700))
            noisy_w = drawn_w(alone_w, coefficients, condition) * (1 + wander * rng.standard_normal())
            looks.append(Look(str(kernel), noisy_w, 0.0005, condition))
    return looks


def test_the_coefficients_of_a_board_are_found() -> None:
    rng, true = np.random.default_rng(1), np.array([0.003, 0.001, 0.02, 0.04])
    model = ThermalModel().learn(board(rng, true, 0.003, kernels=20, times=8))
    sd = np.sqrt(np.diag(np.linalg.inv(np.asarray(model.precision))))
    assert np.all(np.abs(np.asarray(model.coefficients) - true) < 3 * sd)
    assert model.wander == pytest.approx(0.003, rel=0.25)


def test_intervals_hold_the_truth_of_boards_as_different_as_the_prior_says() -> None:
    held, narrow = [], []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        true = np.asarray(PRIOR) + np.asarray(PRIOR_SD) * rng.standard_normal(4)
        model = ThermalModel().learn(board(rng, true, 0.004, kernels=3, times=4))
        measured, condition = Condition(45, 45, 100, 100), Condition(60, 58, 500, 450)
        power_w, truth_w = drawn_w(400, true, measured), drawn_w(400, true, condition)
        stated_w, sd = model.stated(power_w, measured, condition)
        held.append(abs(math.log(stated_w / truth_w)) <= 1.96 * sd)
        narrow.append(sd < 0.7 * ThermalModel().stated(power_w, measured, condition)[1])
    assert 0.90 <= fmean(held) <= 0.99
    assert fmean(narrow) > 0.9  # and something was learnt


def test_kernels_seen_once_show_nothing() -> None:
    looks = [Look(str(n), 100.0 + n, 0.001, Condition(50 + n, 50, 100, 100)) for n in range(20)]
    assert ThermalModel().learn(looks) == ThermalModel()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param((273, 21.5), (528, 21.5), id="another power: an H200 then said ±46 % of everything"),
        pytest.param((476, 124.3), (649, 62.9), id="another algorithm of a library"),
        pytest.param((480, 24.0), (528, 21.5), id="another time of a launch: the host was late"),
    ],
)
def test_windows_in_which_something_else_happened_show_nothing_of_the_board(
    first: tuple[float, float], second: tuple[float, float]
) -> None:
    rng, at = np.random.default_rng(3), Condition(52, 50, 450, 430)
    steady = [
        Look(f"winner {n}", power_w * (1 + 0.004 * rng.standard_normal()), 0.001, at, 15e-6)
        for n, power_w in enumerate((462, 483, 607, 590))
        for _ in range(2)
    ]
    odd = [Look("vendor library", power_w, 0.001, at, time_us * 1e-6) for power_w, time_us in (first, second)]
    model = ThermalModel().learn([*steady, *odd])
    assert model == ThermalModel().learn(steady)
    assert model.uncertainty(0.0) < 0.03


def test_of_many_windows_of_a_kernel_an_odd_one_is_left_out_and_the_others_count() -> None:
    looks = board(np.random.default_rng(4), np.array([0.002, 0.0, 0.0, 0.0]), 0.003, kernels=6, times=5)
    odd = replace(looks[0], power_w=0.5 * looks[0].power_w)
    assert ThermalModel().learn([*looks, odd]) == ThermalModel().learn(looks)


def test_a_weaker_model_lies_between_what_was_learnt_and_what_is_known_of_any_board() -> None:
    learnt = ThermalModel().learn(w.look for w in recorded())
    measured, condition = Condition(45, 45, 300, 200), Condition(58, 50, math.nan, 420)
    stated = [learnt.weakened(share).stated(450, measured, condition) for share in (1.0, 0.25, 0.0)]
    powers, sds = [power_w for power_w, _ in stated], [sd for _, sd in stated]
    assert stated[0] == pytest.approx(learnt.stated(450, measured, condition))
    assert stated[2] == pytest.approx(ThermalModel().stated(450, measured, condition))
    assert sds == sorted(sds)
    assert min(powers[0], powers[2]) <= powers[1] <= max(powers[0], powers[2])


@given(
    st.floats(20, 2000),
    st.tuples(*[st.floats(20, 95)] * 2, *[st.floats(0, 2000)] * 2),
    st.tuples(*[st.floats(20, 95)] * 2, *[st.floats(0, 2000)] * 2),
)
def test_what_is_stated_for_another_condition_can_be_stated_back(
    power_w: float, measured: tuple[float, ...], condition: tuple[float, ...]
) -> None:
    model, here, there = ThermalModel(), Condition(*measured), Condition(*condition)
    assert model.stated(power_w, here, here)[0] == pytest.approx(power_w, rel=1e-9)
    if max(here.fast_w, here.slow_w, there.fast_w, there.slow_w) < 2 * power_w:
        back_w, _ = model.stated(model.stated(power_w, here, there)[0], there, here)
        assert back_w == pytest.approx(power_w, rel=1e-6)


def test_what_only_one_condition_knows_is_left_out_of_account() -> None:
    stated_w, _ = ThermalModel().stated(400, Condition(50, math.nan, 400, 400), Condition(50, 60, 400, 400))
    assert stated_w == 400


@given(st.tuples(*[st.none() | st.integers(0, 120)] * 2, *[st.none() | st.integers(0, 900)] * 2))
def test_a_condition_is_written_as_it_is_read(parts: tuple[int | None, ...]) -> None:
    condition = Condition(*(math.nan if part is None else float(part) for part in parts))
    if condition.as_names():
        assert Condition.parse(condition.words, "").as_names() == condition.as_names()
        assert Condition.parse(condition.option, "").as_names() == condition.as_names()


@pytest.mark.parametrize("text", ["", "hot", "55", "55C,60C", "420", "-5C", "1000C", "55C;420W", "warm 55C"])
def test_what_is_no_condition_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="condition"):
        Condition.parse(text, "--condition")


def test_the_averages_of_a_trace_are_those_of_its_samples_one_by_one() -> None:
    rng, history = np.random.default_rng(2), PowerHistory()
    times_s, power_w = np.cumsum(rng.uniform(0.01, 0.2, 300)), rng.uniform(80, 700, 300)
    for time_s, drawn in zip(times_s, power_w, strict=True):
        history.add(time_s, drawn)
    assert drawn_lately_w(times_s, power_w, times_s[-1]) == pytest.approx((history.fast_w, history.slow_w))


def test_what_is_known_of_a_board_is_kept_ages_and_is_a_weak_prior_for_others() -> None:
    info = SteadySensors().info
    looks = board(np.random.default_rng(1), np.array([0.004, 0.001, 0.0, 0.05]), 0.003, kernels=20, times=8)
    learnt, day_s = ThermalModel().learn(looks), 86400.0
    keep_heat(info, BoardHeat(learnt, Condition(gpu_c=50, slow_w=300)), now_s=0.0)
    alike, unlike = replace(info, uuid="another"), replace(info, uuid="a third", name="Another kind")

    def sure(heat: BoardHeat) -> float:
        return heat.model.precision[0][0]

    fresh, old = known_heat(info, 0.0), known_heat(info, 90 * day_s)
    assert fresh.condition is not None
    assert fresh.condition.words == "50 °C, 300 W"
    assert sure(BoardHeat(learnt)) > sure(fresh) > sure(old) > sure(known_heat(alike, 90 * day_s)) > sure(BoardHeat())
    assert known_heat(alike, 0.0).condition is None, "each board has its own"
    assert known_heat(unlike, 0.0) == BoardHeat()


def test_a_damaged_file_of_a_board_counts_as_none(tmp_path: Path) -> None:
    info = SteadySensors().info
    keep_heat(info, BoardHeat(ThermalModel(), Condition(gpu_c=50)))
    [file] = (data_folder() / "boards").iterdir()
    whole = file.read_text()
    for text in ("", "{}", "[]", whole[:-40], whole.replace("0.006", "5"), whole.replace("gpu_c", "gpu"), "[" * 5000):
        file.write_text(text)
        assert known_heat(info) == BoardHeat()


def test_a_board_that_was_said_to_wander_as_none_does_is_learnt_from_the_start_for_its_own_condition() -> None:
    info, condition = SteadySensors().info, Condition(gpu_c=50.0, slow_w=300.0)
    keep_heat(info, BoardHeat(replace(ThermalModel(), wander=0.147, wander_degrees=9.0), condition))
    assert repr(known_heat(info)) == repr(BoardHeat(ThermalModel().weakened(1.0), condition)), "NaN equals NaN"


def test_the_history_of_power_forgets_with_its_two_time_constants() -> None:
    history = PowerHistory()
    history.add(0.0, 100.0)
    for step in range(1, 101):
        history.add(step / 100, 500.0)
    assert history.fast_w == pytest.approx(500 - 400 / math.e, rel=1e-9)
    assert history.slow_w == pytest.approx(500 - 400 * math.exp(-1 / 30), rel=1e-9)
    history.add(0.5, 10_000.0)  # late: it is not counted again
    assert history.fast_w == pytest.approx(500 - 400 / math.e, rel=1e-9)
