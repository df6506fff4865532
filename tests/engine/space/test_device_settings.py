"""Clocks and caps of a specification, resolved against a board."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from app.base.errors import InputError
from app.engine.results.measurement import Value
from app.engine.space.device_settings import SettingValues, resolve_device_settings
from app.sensors.clock import VirtualClock
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin


@pytest.fixture
def gpu() -> Iterator[SimulatedGpu]:
    board = SimulatedGpu(load_twin("a100"), clock=VirtualClock())
    yield board
    board.close()


def resolved(
    wanted: dict[str, SettingValues], gpu: SimulatedGpu, model_range_mhz: tuple[float, float] | None = None
) -> dict[str, tuple[Value, ...]]:
    """The values alone, where there is nothing to say of them."""
    values, said = resolve_device_settings(wanted, gpu, model_range_mhz)
    assert said == ()
    return values


def test_points_are_spread_over_the_supported_clocks_with_both_ends(gpu: SimulatedGpu) -> None:
    supported = list(gpu.graphics_clocks_mhz())
    clocks = resolved({"graphics_clock_mhz": 7}, gpu)["graphics_clock_mhz"]
    assert len(clocks) == 7
    assert (clocks[0], clocks[-1]) == (supported[0], supported[-1])
    assert set(clocks) <= set(supported)
    steps = [float(b) - float(a) for a, b in itertools.pairwise(clocks)]
    assert max(steps) - min(steps) <= 2 * (supported[1] - supported[0])
    assert resolved({"graphics_clock_mhz": 1000}, gpu)["graphics_clock_mhz"] == tuple(supported)


def test_supported_and_listed_clocks(gpu: SimulatedGpu) -> None:
    supported = tuple(gpu.graphics_clocks_mhz())
    assert resolved({"graphics_clock_mhz": "supported"}, gpu) == {"graphics_clock_mhz": supported}
    listed = (supported[5], supported[2])
    assert resolved({"graphics_clock_mhz": listed}, gpu) == {"graphics_clock_mhz": listed}
    with pytest.raises(InputError, match=r"device_settings.graphics_clock_mhz: .* outside what"):
        resolved({"graphics_clock_mhz": (supported[-1] + 100,)}, gpu)


def test_a_listed_untouched_comes_last_and_needs_nothing_of_the_board(gpu: SimulatedGpu) -> None:
    supported = tuple(gpu.graphics_clocks_mhz())
    wanted: dict[str, SettingValues] = {"graphics_clock_mhz": ("untouched", supported[5], supported[2])}
    assert resolved(wanted, gpu) == {"graphics_clock_mhz": (supported[5], supported[2], "untouched")}
    assert resolved({"power_limit_w": ("untouched",)}, gpu) == {"power_limit_w": ("untouched",)}
    with pytest.raises(InputError, match="outside what"):
        resolved({"graphics_clock_mhz": ("untouched", supported[-1] + 100)}, gpu)


def test_a_clock_between_two_supported_ones_becomes_the_nearest_and_is_said(gpu: SimulatedGpu) -> None:
    low, high = gpu.graphics_clocks_mhz()[4:6]
    values, said = resolve_device_settings({"graphics_clock_mhz": (high - 1, high, low + 1)}, gpu)
    assert values == {"graphics_clock_mhz": (high, low)}  # each once
    assert said == (
        f"{high - 1} MHz lies between two supported clocks: {high} MHz is used",
        f"{low + 1} MHz lies between two supported clocks: {low} MHz is used",
    )


def test_ridge_takes_the_supported_clocks_near_it(gpu: SimulatedGpu) -> None:
    clocks = resolved({"graphics_clock_mhz": "ridge"}, gpu, (900.0, 1100.0))["graphics_clock_mhz"]
    assert clocks == tuple(clock for clock in gpu.graphics_clocks_mhz() if 900 <= clock <= 1100)
    with pytest.raises(InputError, match="fit the model first"):
        resolved({"graphics_clock_mhz": "ridge"}, gpu)
    with pytest.raises(InputError, match="no supported clock"):
        resolved({"graphics_clock_mhz": "ridge"}, gpu, (1.0, 2.0))


def test_power_limits_stay_within_what_the_board_takes(gpu: SimulatedGpu) -> None:
    limit = gpu.info.power_limit
    assert limit.minimum_w is not None
    assert limit.maximum_w is not None
    limits = resolved({"power_limit_w": 3}, gpu)["power_limit_w"]
    assert (limits[0], limits[-1]) == (limit.minimum_w, limit.maximum_w)
    assert len(resolved({"power_limit_w": "supported"}, gpu)["power_limit_w"]) == 10
    with pytest.raises(InputError, match="outside"):
        resolved({"power_limit_w": (limit.maximum_w + 1,)}, gpu)
