"""For how long a limit held the clock back, in a session and in whatever is made of it."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from fixtures.engine_fakes import Listener
from fixtures.simulated import board

from app.cli import main
from app.engine.formats.read import read_recording
from app.engine.metering.window import Window
from app.engine.report.export import export_session
from app.engine.runner.measurement_figures import figures_of
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_specification
from app.engine.session.run import run_session
from app.engine.specification.plan import SearchOptions
from app.engine.store.database import Store
from app.sensors.event_reasons import EventReason
from app.views.inspector.facts import facts_as_html

SPECIFICATION = """
[kernel]
name = "sgemm"
source = "sgemm.cu"
problem_size = ["n", "n"]
profile = "gemm"
[constants]
n = 4096
[parameters]
block_size_x = [32]
block_size_y = [8]
tile_size_x = [4]
tile_size_y = [4]
[device_settings]
power_limit_w = [150, 250]
graphics_clock_mhz = [1275]
[objective]
minimise = "energy_j"
"""
POWER, THERMAL = "throttled_power_share", "throttled_thermal_share"


@pytest.fixture
def specification(tmp_path: Path) -> Path:
    (tmp_path / "sgemm.cu").write_text("// simulated")
    path = tmp_path / "gemm.toml"
    path.write_text(SPECIFICATION)
    return path


def test_a_session_states_them_and_so_do_its_exports_its_report_and_the_inspector(
    specification: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = plan_specification(load_specification(specification), board("a100"), SearchOptions(strategy="brute_force"))
    with Store() as store:
        session = run_session(plan, store, Listener(), threading.Event()).session
        table = store.load(session).table
    measured = [table.measurement(number) for number in range(len(table))]
    by_limit = {m.configuration["power_limit_w"]: m for m in measured if m.configuration["graphics_clock_mhz"] == 1275}
    held, free = by_limit[150], by_limit[250]
    assert 0.1 < held.values[POWER] <= 1.0
    assert held.event_reasons & EventReason.POWER_CAP
    assert free.values[POWER] == free.values[THERMAL] == held.values[THERMAL] == 0.0
    index = next(i for i in range(len(table)) if table.measurement(i).values == held.values)
    document, *tables, _receipt = export_session(plan, table, session, index, tmp_path / "out", ["json", "csv", "t4"])
    figure = json.loads(document.read_text())["values"][POWER]
    assert figure["value"] == held.values[POWER]
    assert figure["source"] == "simulated, measured by the board"
    for path in tables:
        assert held.values[POWER] in read_recording(path).table().values(POWER), path.name
    assert "Share held back: power cap" in facts_as_html(held, plan, program=False)
    assert main(["report", str(session), "--out", str(tmp_path / "report.html")]) == 0
    assert f"{POWER}</td>" in (tmp_path / "report.html").read_text()


def test_a_reason_that_acted_in_one_of_several_repeats_is_shared_among_them(specification: Path) -> None:
    spec = load_specification(specification)
    windows = [
        Window(1.0, (0, 1), "simulated", power_w=100.0, throttled=shares)
        for shares in ({"power": 0.4, "power_brake": 0.2}, {"power": 0.2, "power_brake": 0.0})
    ]
    values, _ = figures_of(spec, {}, windows)
    assert values[POWER] == pytest.approx(0.3)
    assert values["throttled_power_brake_share"] == pytest.approx(0.1)
    assert not {name for name in values if name.startswith(("min_throttled", "std_throttled"))}
