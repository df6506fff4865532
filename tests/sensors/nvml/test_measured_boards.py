"""Measuring a real board, through a stand-in for pynvml: which readings count, and boards named in several ways."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from fixtures.fake_pynvml import NOT_SUPPORTED, Board, FakePynvml

from app import measure
from app.engine.metering import watching
from app.engine.metering.watching import watch
from app.sensors.nvml.gpu import NvmlGpu
from app.sensors.nvml.library import NvmlLibrary


def open_board(*boards: Board, index: int = 0) -> NvmlGpu:
    return NvmlGpu(index, library=NvmlLibrary(FakePynvml(*boards)), voltage=None)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def short_linger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "LINGER_S", 0.1)


@pytest.fixture
def polled() -> Iterator[NvmlGpu]:
    """A board without a driver's buffer that draws 83 W, always."""
    gpu = open_board(Board(failing={"nvmlDeviceGetSamples": NOT_SUPPORTED}))
    yield gpu
    gpu.close()


def test_a_steady_polled_board_is_reported_at_every_refresh(polled: NvmlGpu) -> None:
    """Its readings never change, and still there is a value for every refresh, not one in all."""
    with measure(gpu=polled) as m:
        time.sleep(1.0)
    assert not m.unknown
    assert (m.mean_power_w, m.peak_power_w) == pytest.approx((83.0, 83.0))
    assert m.energy_j == pytest.approx(83.0 * m.time_s)
    assert 0.5 <= len(m.power_w) * 0.1 / m.time_s <= 1.1  # a busy machine sleeps longer than asked
    assert m.source == "nvml"
    assert "polled" in m.power_source


def test_one_board_named_in_two_ways_is_opened_for_both_and_closed_after_both() -> None:
    opened: list[NvmlGpu] = []

    def opener(name: str | None) -> NvmlGpu:
        opened.append(open_board(Board()))
        return opened[-1]

    by_index, by_uuid = watch("0", opener), watch("GPU-1111", opener)
    assert by_index is by_uuid
    by_index.release()
    time.sleep(0.3)
    assert not by_uuid.ended
    by_uuid.release()
    assert by_uuid.wait_until(lambda: by_uuid.ended, 3.0)
    assert by_uuid.trace.last_ns > 0
