"""A trace and the power of its time on one clock: by the time of day, by what the data show, or refused in one line."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from app.base.errors import InputError
from app.engine.profile.aligned_power import AlignedPower, align
from app.engine.profile.chrome_trace import read_chrome_trace
from app.engine.profile.program_trace import ProgramTrace
from app.sensors.recorded.gpu import read_any
from tests.fixtures.pytorch_traces import BASE_NS, kernel, write_trace

DATA = Path(__file__).parent / "data"
Stamp = Callable[[float], str]


def epoch(time_s: float) -> str:
    return f"{BASE_NS / 1e9 + time_s:.6f}"


def bursts(folder: Path, seed: int = 1, every_s: float | None = None) -> tuple[ProgramTrace, np.ndarray, np.ndarray]:
    """Kernels for 20 s with pauses of random lengths, or one burst every so often."""
    chance, at, spans = np.random.default_rng(seed), 0.0, []
    while at < 20.0:
        lasts = 0.1 if every_s else chance.uniform(0.05, 0.6)
        spans.append((at, at + lasts))
        at = at + every_s if every_s else at + lasts + chance.uniform(0.05, 0.6)
    trace = write_trace(folder / "trace.json", [kernel("k", 1e6 * a, 1e6 * (b - a)) for a, b in spans])
    begin, end = np.array(spans).T
    return read_chrome_trace(trace), begin, end


def power_of(
    folder: Path, begin: np.ndarray, end: np.ndarray, stamp: Stamp, *, lag_s: float = 0.0, window_s: float = 0.02,
    header: str = "timestamp,power_w", last_s: float = 24.0,
) -> Path:  # fmt: skip
    """Power of 100 W at rest and 400 W busy, as a sensor with that window and lag shows it every 20 ms."""
    edges = np.column_stack((begin, end)).ravel()
    ran = np.column_stack((np.zeros(len(begin)), end - begin)).ravel().cumsum()
    time_s = np.arange(-3.0, last_s, 0.02)
    ends = time_s - lag_s
    busy = (np.interp(ends, edges, ran) - np.interp(ends - window_s, edges, ran)) / window_s
    watts = 100 + 300 * busy + np.random.default_rng(2).normal(0, 2, len(busy))
    path = folder / "power.csv"
    rows = (f"{stamp(at)},{watt:.2f}" for at, watt in zip(time_s.tolist(), watts.tolist(), strict=True))
    path.write_text(header + "\n" + "\n".join(rows) + "\n")
    return path


def aligned(trace: ProgramTrace, power: Path, offset_s: float = 0.0) -> AlignedPower:
    return align(trace, read_any(power).boards, str(power), offset_s)


@pytest.mark.parametrize(("lag_s", "window_s"), [(0.0, 0.02), (0.06, 0.02), (0.03, 0.1), (0.1, 1.0)])
def test_lag_and_window_of_the_sensor_are_seen_in_the_data(tmp_path: Path, lag_s: float, window_s: float) -> None:
    trace, begin, end = bursts(tmp_path)
    found = aligned(trace, power_of(tmp_path, begin, end, epoch, lag_s=lag_s, window_s=window_s)).alignment
    assert (found.how, found.shift_s) == ("the time of day in both files", 0.0)
    assert found.lag.window_s == pytest.approx(window_s, rel=0.01)
    assert found.lag.lag_s == pytest.approx(lag_s, abs=max(2 * found.lag.margin_s, 0.003))
    assert found.lag.margin_s < 0.02
    assert found.lag.correlation > 0.98
    assert "ms" in found.words


def test_a_log_without_a_time_of_day_is_aligned_by_the_only_shift_that_fits(tmp_path: Path) -> None:
    trace, begin, end = bursts(tmp_path)
    found = aligned(trace, power_of(tmp_path, begin, end, lambda at: f"{at + 3:.3f}", last_s=60.0))
    assert "shift" in found.alignment.how
    start_s = found.on_clock(trace, trace.start_ns)
    assert start_s[0] == pytest.approx(3.0, abs=0.03)


def test_a_program_in_step_fits_at_many_shifts_and_is_refused(tmp_path: Path) -> None:
    trace, begin, end = bursts(tmp_path, every_s=3.0)
    power = power_of(tmp_path, begin, end, lambda at: f"{at + 3:.3f}", last_s=60.0)
    repeated = np.concatenate([begin, begin + 21.0])
    power = power_of(tmp_path, repeated, repeated + 0.1, lambda at: f"{at + 3:.3f}", last_s=60.0)
    with pytest.raises(InputError, match="no time of day"):
        aligned(trace, power)
    assert aligned(trace, power, 3.0).alignment.how == "--offset"


def test_power_of_another_time_is_one_line_that_names_both(tmp_path: Path) -> None:
    trace, begin, end = bursts(tmp_path)
    power = power_of(tmp_path, begin, end, lambda at: epoch(at + 7200))
    with pytest.raises(InputError, match=r"the trace is of 2026-11-23 .* no time in common") as caught:
        aligned(trace, power)
    assert "\n" not in str(caught.value)
    assert "--offset" in caught.value.remedy


def test_a_trace_that_is_shorter_than_a_few_samples_is_one_line(tmp_path: Path) -> None:
    _, begin, end = bursts(tmp_path)
    short = read_chrome_trace(write_trace(tmp_path / "short.json", [kernel("k", 1e6, 1e4)]))
    with pytest.raises(InputError, match=r"fewer than 8 samples of power lie within the 0.01 s of the trace"):
        aligned(short, power_of(tmp_path, begin, end, epoch))


def test_power_of_another_board_is_one_line(tmp_path: Path) -> None:
    trace, begin, end = bursts(tmp_path)
    power = power_of(
        tmp_path, begin, end, lambda at: f"{epoch(at)},NVIDIA A100-SXM4-40GB", header="timestamp,name,power_w"
    )
    with pytest.raises(InputError, match="the trace is of NVIDIA H200, the power of NVIDIA A100"):
        aligned(trace, power)


def test_dates_without_a_zone_are_of_the_zone_in_which_they_fit(tmp_path: Path) -> None:
    def local(at: float) -> str:
        return f"{datetime.fromtimestamp(BASE_NS / 1e9 + at + 5.5 * 3600, UTC):%Y/%m/%d %H:%M:%S.%f}"[:-3]

    trace, begin, end = bursts(tmp_path)
    found = aligned(trace, power_of(tmp_path, begin, end, local, header="timestamp, power.draw [W]"))
    assert found.alignment.lag.correlation > 0.98
    assert any("UTC+5:30" in note for note in found.notes)


def test_of_a_log_of_two_boards_the_one_whose_power_follows_is_taken(tmp_path: Path) -> None:
    trace, begin, end = bursts(tmp_path)
    power = power_of(tmp_path, begin, end, epoch)
    rows = power.read_text().splitlines()[1:]
    chance = np.random.default_rng(3)
    both = [f"{row.split(',')[0]},{board},{value}" for row in rows
            for board, value in ((0, f"{chance.uniform(100, 400):.1f}"), (1, row.split(",")[1]))]  # fmt: skip
    power.write_text("timestamp,index,power_w\n" + "\n".join(both) + "\n")
    found = aligned(trace, power)
    assert found.recording.title.endswith("#1")
    assert "follows the trace best" in found.notes[0]


def test_clocks_that_are_apart_are_said(tmp_path: Path) -> None:
    trace, begin, end = bursts(tmp_path)
    found = aligned(trace, power_of(tmp_path, begin, end, epoch, lag_s=0.8))
    assert any("0.8" in note and "--offset" in note for note in found.notes)


def test_power_of_a_part_of_the_trace_is_used(tmp_path: Path) -> None:
    trace, begin, end = bursts(tmp_path)
    found = aligned(trace, power_of(tmp_path, begin, end, epoch, last_s=10.0))
    assert found.alignment.overlap == pytest.approx(0.5, abs=0.05)
    assert any("% of the trace only" in note for note in found.notes)


def test_the_excerpt_of_a_training_is_followed_by_its_power() -> None:
    found = aligned(read_chrome_trace(DATA / "train-trace.json.gz"), DATA / "train-power.csv").alignment
    assert found.lag.correlation > 0.9
    assert abs(found.lag.lag_s) < 0.02
