"""What stands beside an operator's configurations: the vendor's library, and the floor by the board's roofline."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from app.base.errors import InputError
from app.base.paths import resources
from app.cli import main
from app.engine.analysis.session_analysis import analyse
from app.engine.formats.read import read_recording
from app.engine.models.roofline.operator_floor import OperatorFloor, floor_of
from app.engine.models.roofline.points import sweeps_on_file
from app.engine.report.content import gather
from app.engine.report.page import report_html
from app.engine.results.measurement import Depth, Measurement, State
from app.engine.runner.kernels.reference import Baseline
from app.engine.session.describe_session import describe_session
from app.engine.session.load import load_specification
from app.engine.session.opened import stored_session
from app.engine.session.planning import plan_replay, plan_specification
from app.engine.session.references import Kind, references_of, with_floor
from app.engine.session.summary import session_summary
from app.engine.space.result_table import ResultTable
from app.engine.specification.operator_kernels import kept_specification
from app.engine.specification.operator_shapes import EXAMPLES, parse_operator
from app.engine.specification.plan import SearchOptions, SessionPlan
from app.engine.store.database import Store
from app.sensors.select import open_gpu

LIBRARY = Baseline("cuBLAS 13.0.1", {"time_s": 1.3e-4, "energy_j": 0.04, "power_w": 307.7})


def plan_on(board: str, text: str) -> SessionPlan:
    spec = load_specification(kept_specification(parse_operator(text)))
    options = SearchOptions(strategy="random_sample", max_evaluations=4)
    return plan_specification(spec, open_gpu(f"simulated:{board}", speed=float("inf")), options)


def test_the_floor_is_the_work_and_the_least_traffic_at_the_energies_that_were_published(tmp_path: Path) -> None:
    operator = EXAMPLES["MM2"]
    plan = replace(plan_on("a100", operator.notation), gpu="NVIDIA A100-SXM4-40GB")
    with Store(tmp_path / "s.db") as store:
        floor = OperatorFloor.of_origin(with_floor(plan, store).origin)
    assert floor is not None
    work, traffic = 2 * 1024**3, 3 * 1024**2 * 4
    time_s = work / 19.49e12  # longer than the traffic's, at 1.56 TB/s
    assert (floor.bound_by, floor.values["time_s"]) == ("work", pytest.approx(time_s, rel=1e-9))
    energy_j = work * 6.21e-12 + traffic * 93.48e-12 + time_s * 98.42  # [Holtmann2024, table 8]
    assert floor.values["energy_j"] == pytest.approx(energy_j, rel=1e-9)
    assert floor.values["GFLOPS/W"] == pytest.approx(work / energy_j / 1e9)
    assert "published" in floor.roofline


def test_a_product_with_a_vector_is_bound_by_its_traffic_in_any_precision(tmp_path: Path) -> None:
    plan = replace(plan_on("h200", "mv:1,1,4096,4096"), gpu="NVIDIA H200")
    with Store(tmp_path / "s.db") as store:
        floor = OperatorFloor.of_origin(with_floor(plan, store).origin)
    assert floor is not None
    assert floor.bound_by == "traffic"
    assert floor.values["time_s"] == pytest.approx((4096 * 4096 + 2 * 4096) * 4 / 4.8e12)
    assert "recorded" in floor.roofline


def test_a_roofline_that_was_measured_here_goes_before_others_and_is_found_by_older_sessions(tmp_path: Path) -> None:
    plan = replace(plan_on("v100", "mm:1,256,256,256"), gpu="A board that nobody has published")
    sweep = read_recording(resources() / "recordings" / "h200-roofline-fp32.json.gz")
    with Store(tmp_path / "s.db") as store:
        session = store.create_session(plan)
        before = session_summary(ResultTable(plan.space), with_floor(plan, store))["roofline_floor"]
        assert "wattridge roofline" in before.why_not
        swept = store.create_session(replace(plan_replay(sweep.path, read=sweep), gpu=plan.gpu, source="simulated"))
        store.append(swept, list(sweep.measurements()))
        opened = stored_session(store, session)
        [floor] = references_of(opened.plan)
        assert (floor.kind, floor.label) == (Kind.FLOOR, "Roofline floor")
        assert f"session {swept}" in floor.note
        real = replace(plan, source="nvml")  # the same board, not simulated
        assert not references_of(with_floor(real, store)), "a simulated board's energies are no real one's"


def test_no_configuration_of_a_simulated_board_goes_below_the_floor_by_its_own_energies() -> None:
    from app.engine.models.roofline.energy_roofline import EnergyRoofline
    from app.engine.workloads.profiled import ProfiledKernel
    from app.sensors.simulated import laws
    from app.sensors.simulated.gpu import SimulatedGpu

    for name in ("MM1", "MV3", "CONV2"):
        gpu = open_gpu("simulated:h200", speed=float("inf"))
        assert isinstance(gpu, SimulatedGpu)
        plan = plan_on("h200", EXAMPLES[name].notation)
        kernel = ProfiledKernel.of(load_specification(kept_specification(EXAMPLES[name])), gpu.limits)
        twin = gpu.twin
        clock = twin.clocks.graphics_mhz[-1]
        energies = twin.energy
        model = EnergyRoofline(
            energies.eps_flop_pj["fp32"], energies.eps_mem_pj_per_b, 0.8 * twin.power.static_w, 67e12, 4.8e12
        )
        floor = floor_of(EXAMPLES[name], model, gpu.info.name)
        rng = np.random.default_rng(3)
        for row in rng.integers(plan.space.size, size=40).tolist():
            load = kernel.prepare(plan.space.configuration(row))
            point, power_w, _ = laws.settled_under_limits(twin, load, clock, twin.clocks.memory_mhz[-1], 700.0)
            assert point.launch_s >= floor.values["time_s"]
            assert power_w * point.launch_s >= floor.values["energy_j"]


def test_the_floor_of_a_board_that_its_limit_holds_is_within_the_limit(tmp_path: Path) -> None:
    """At the peak clock, which no kernel reaches there, a flop takes more energy than at the limit."""
    assert main(["roofline", "--gpu", "simulated:a4000", "--precision", "fp32", "--json"]) == 0
    with Store() as store:
        floor = OperatorFloor.of_origin(with_floor(plan_on("a4000", "mm:1,4096,4096,4096"), store).origin)
        [sweep] = sweeps_on_file(store)
    assert floor is not None
    assert sweep.model is not None
    assert floor.values["power_w"] == pytest.approx(140, rel=0.01)
    assert floor.values["energy_j"] < 0.9 * sweep.model.predict(2 * 4096**3, 3 * 4 * 4096**2)[1]


def test_the_best_is_compared_with_both_in_words(tmp_path: Path) -> None:
    plan = plan_on("a100", "mm:1,1024,1024,1024")
    with Store(tmp_path / "s.db") as store:
        plan = with_floor(replace(plan, gpu="NVIDIA A100-SXM4-40GB"), store)
    plan = replace(plan, origin={**plan.origin, **LIBRARY.to_origin()})
    values = {"time_s": 1.43e-4, "energy_j": 0.036, "power_w": 251.7}
    table = ResultTable(plan.space)
    row = int(plan.space.rows_with({"maker": "wattridge"})[0])
    table.append(Measurement(row, plan.space.configuration(row), State.OK, values, source="simulated"))
    figures = {each.label: each for each in describe_session(plan, table).figures}
    assert figures["Vendor library"].value == "cuBLAS 13.0.1: 0.13 ms, 0.04 J"
    assert figures["Against cuBLAS 13.0.1"].value == "10 % less energy for 10 % more time"
    assert figures["Above the floor"].value == "1.42 times its energy in 1.3 times its time"
    assert "calculated" in figures["Roofline floor"].note


def test_the_report_marks_both_in_its_front_and_leaves_what_was_only_timed_out_of_its_axes(tmp_path: Path) -> None:
    plan = plan_on("a100", "mm:1,1024,1024,1024")
    table = ResultTable(plan.space)
    *rows, last = plan.space.rows_with({"maker": "wattridge"})[:13].tolist()
    for place, row in enumerate(rows):
        values = {"time_s": 1e-4 + place * 1e-6, "energy_j": 0.05 - place * 1e-3, "power_w": 400.0}
        table.append(Measurement(row, plan.space.configuration(row), State.OK, values, source="simulated"))
    slow = {"time_s": 0.9}
    far = Measurement(last, plan.space.configuration(last), State.OK, slow, source="simulated", depth=Depth.TIME)
    table.append(far)
    with Store(tmp_path / "s.db") as store:
        plan = replace(plan, gpu="NVIDIA A100-SXM4-40GB", origin={**plan.origin, **LIBRARY.to_origin()})
        page = report_html(gather(plan, analyse(table, plan.objective), store))
    marks = re.findall(r'<path class="sign[^>]*><title>([^<]*)</title>', page)
    assert marks == ["cuBLAS 13.0.1", "Roofline floor"]
    [front] = [svg for svg in re.findall(r"<svg.*?</svg>", page, re.DOTALL) if "sign" in svg]
    across = [float(tick) for tick in re.findall(r'class="tick" x="[\d.]+" y="\d+">([^<]+)<', front)]
    assert max(across) < 2e-4
    shapes = {re.sub(r"M[\d.]+ [\d.]+", "", path) for path in re.findall(r'class="sign[^>]*d="([^"]*)"', front)}
    assert len(shapes) == 2, "they are told apart without colour, in the chart as in its key"
    assert "Against cuBLAS 13.0.1" in page


def test_what_is_kept_of_the_floor_and_damaged_is_refused_in_one_line() -> None:
    for text in ("[]", "{}", '{"values": {"time_s": "x"}, "bound_by": "", "roofline": "", "why_not": ""}', "[" * 10**5):
        with pytest.raises(InputError, match="damaged"):
            OperatorFloor.of_origin({"roofline_floor": text})
