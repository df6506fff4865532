"""The configuration's panel shows what the selected one reaches of the board's theoretical peak."""

from __future__ import annotations

from app.base.paths import resources
from app.engine.results.measurement import Measurement, State
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_specification
from app.sensors.clock import VirtualClock
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin
from app.views.inspector.facts import facts_as_html


def test_the_facts_of_a_configuration_tell_its_shares_of_the_peak() -> None:
    """[Anzt2015, table II]: 904 GFLOP/s at 4.49 GFLOPS/W of 1430 and 6.08."""
    gpu = SimulatedGpu(load_twin("k20x"), clock=VirtualClock())
    plan = plan_specification(load_specification(resources() / "examples" / "dgemm.toml"), gpu)
    values = {"GFLOP/s": 904.0, "power_w": 904 / 4.49}
    shown = facts_as_html(Measurement(0, {}, State.OK, values), plan, program=False)
    assert "Of peak speed over the power limit" in shown
    assert "73.8 %" in shown
    assert "Of the peak speed, fp64" in shown
    assert "63.2 %" in shown


def test_a_figure_above_the_reference_is_no_share() -> None:
    gpu = SimulatedGpu(load_twin("k20x"), clock=VirtualClock())
    plan = plan_specification(load_specification(resources() / "examples" / "dgemm.toml"), gpu)
    values = {"GFLOP/s": 904.0, "power_w": 904 / 7.15}
    shown = facts_as_html(Measurement(0, {}, State.OK, values), plan, program=False)
    assert "117." not in shown
    assert "1.18 times peak speed over the power limit" in shown
