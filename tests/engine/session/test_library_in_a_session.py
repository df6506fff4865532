"""What the vendor's library does by itself is a row of an operator's session, and the answer unless one is better."""

from __future__ import annotations

import json
import math
import threading
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from fixtures.operator_definitions import operator_specification

from app.base.errors import InputError
from app.cli import main
from app.engine.analysis.finals import Finals
from app.engine.analysis.session_analysis import analyse
from app.engine.report.content import gather
from app.engine.report.export import choose
from app.engine.report.page import report_html
from app.engine.report.reproduce import export_command
from app.engine.results.measurement import Measurement, State
from app.engine.runner.cuda.offers import modelled_offers
from app.engine.session import live_session
from app.engine.session.describe_session import describe_session
from app.engine.session.load import load_specification
from app.engine.session.on_board import OneBoard
from app.engine.session.opened import Opened, stored_session
from app.engine.session.planning import plan_specification, space_of, with_offers
from app.engine.session.run import run_session
from app.engine.session.stored import open_session
from app.engine.session.summary import best_of, library_index, session_summary
from app.engine.space.result_table import ResultTable
from app.engine.specification.operator_kernels import kept_specification
from app.engine.specification.operator_shapes import CUBLASLT, LIBRARY, MAKER, parse_operator
from app.engine.specification.plan import SearchOptions, SessionPlan
from app.engine.store.database import Store
from app.engine.workloads.profiled import ProfiledKernel
from app.sensors.clock import VirtualClock
from app.sensors.gpu import Gpu
from app.sensors.select import open_gpu
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin

SMALL = "mm:1,512,512,512"  # in FP32, where the library's kernel is modelled as a plain one
LARGE = "mm:1,4096,4096,4096:bf16"  # at the power limit, where the library is as good as any
GOOD = {"block_m": 64, "block_n": 128, "block_k": 16, "thread_m": 8, "thread_n": 8, "lanes_n": 16, "slices_k": 2}
KEPT = "keep the library as it is"


@cache
def measured(text: str, *, good: bool = False) -> tuple[Opened, str]:
    """A short session of the simulated H200 as it is found stored, and its page of a report."""
    spec = load_specification(kept_specification(parse_operator(text)))
    if good:
        spec = replace(spec, starts=({**GOOD, "stages": 4, "split_k": 3, "stream_k": 0},))
    options = SearchOptions(strategy="random_sample", max_evaluations=2, seed=2)
    plan = plan_specification(spec, open_gpu("simulated:h200", speed=math.inf), options)
    with Store() as store:
        session = run_session(plan, store, lambda _: None, threading.Event()).session
        opened = stored_session(store, session)
        return opened, report_html(gather(opened.plan, analyse(opened.table, opened.plan.objective), store))


@pytest.mark.parametrize(("text", "good"), [(SMALL, True), (LARGE, False)])
def test_the_library_is_measured_and_takes_part_in_the_turns(text: str, *, good: bool) -> None:
    opened, _ = measured(text, good=good)
    library = library_index(opened.table, opened.plan.space)
    assert library is not None
    assert opened.table.measurement(library).configuration[MAKER] == LIBRARY
    finals = Finals.of_origin(opened.plan.origin)
    assert finals is not None
    assert int(opened.table.rows()[library]) in finals.rows


def test_what_takes_less_energy_for_certain_is_the_answer_and_stands_against_the_library() -> None:
    opened, page = measured(SMALL, good=True)
    figures = {each.label: each for each in describe_session(opened.plan, opened.table).figures}
    assert "maker=wattridge" in str(figures["Its configuration"].value)
    assert "less energy" in str(figures["Against the library by itself"].value)
    assert "Answer" not in figures
    assert f"Against the library by itself: {figures['Against the library by itself'].value}" in page
    assert KEPT not in page


def test_the_library_is_kept_where_nothing_is_better_in_text_json_report_and_export() -> None:
    opened, page = measured(LARGE)
    plan, table = opened.plan, opened.table
    figures = {each.label: each for each in describe_session(plan, table).figures}
    assert figures["Answer"].value == KEPT
    assert figures["Its configuration"].value == "maker=library"
    assert "the best of the others" in figures["Answer"].note
    assert "power limit" in str(figures["Of the board"].value)
    best = session_summary(table, plan)["best"]
    assert best is not None
    assert best["configuration"][MAKER] == LIBRARY
    assert choose(plan, table, session=1, index=None).measurement.configuration[MAKER] == LIBRARY
    assert f"Answer: {KEPT}" in page
    assert "maker = library" in page


def test_the_window_has_the_same_best_as_all_else() -> None:
    """It marked the row of the least figure, which was not what was recommended."""
    spec = load_specification(kept_specification(parse_operator(LARGE)))
    options = SearchOptions(strategy="random_sample", max_evaluations=2, seed=2)
    plan = plan_specification(spec, open_gpu("simulated:h200", speed=math.inf), options)
    with Store() as store:
        result = run_session(plan, store, lambda _: None, threading.Event())
        _, ended = open_session(store, result.session)
    library = library_index(result.table, result.plan.space)
    energies = result.table.values("energy_j")
    assert np.nanargmin(energies) != library, "another has less, and not for certain"
    assert result.progress.best_index == ended.progress.best_index == library


def test_the_command_says_so_too(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["tune", LARGE, "--gpu", "simulated:h200", "--speed", "inf", "--strategy", "random_sample"]
    assert main([*words, "--max-evaluations", "2", "--seed", "2"]) == 0
    assert KEPT in capsys.readouterr().out
    assert main([*words, "--max-evaluations", "2", "--seed", "2", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["best"]["configuration"]["maker"] == "library"
    assert said["vendor_library"]["library"] == "a model of the vendor's library"
    assert said["vendor_library"]["values"]["energy_j"] == said["best"]["values"]["energy_j"], "one figure of one thing"


def planned(text: str = LARGE, **more: Any) -> SessionPlan:
    path = kept_specification(parse_operator(text))
    spec = replace(operator_specification(text, **more), path=path)
    return plan_specification(spec, open_gpu("simulated:h200", speed=math.inf))


@pytest.mark.parametrize(
    ("energy_j", "half", "kept"),
    [(0.98, 0.001, False), (0.98, 0.05, True), (1.02, 0.001, True), (1.0, 0.001, True)],
)
def test_better_is_said_only_where_the_interval_excludes_the_library(energy_j: float, half: float, kept: bool) -> None:
    plan = planned()
    [library], [other, *_] = plan.space.rows_with({MAKER: LIBRARY}), plan.space.rows_with({MAKER: CUBLASLT})
    table = ResultTable(plan.space)
    for row, joules in ((int(other), energy_j), (int(library), 1.0)):
        values, interval = (
            {"time_s": 1e-3, "energy_j": joules},
            {"energy_j": (joules * (1 - half), joules * (1 + half))},
        )
        table.append(Measurement(row, plan.space.configuration(row), State.OK, values, interval, "simulated"))
    assert best_of(plan, table) == (1 if kept else 0)
    labels = {each.label: each.value for each in describe_session(plan, table).figures}
    assert (labels.get("Answer") == KEPT) == kept
    assert ("Against the library by itself" in labels) != kept


@pytest.mark.parametrize("board", ["h200", "a100", "rtx4090"])
@pytest.mark.parametrize(
    "text", [SMALL, LARGE, "mm:1,16,14336,4096:fp16:nt", "mm:64,100,72,40:bf16:tt", "mv:8,1,4096,1024"]
)
def test_what_a_simulated_board_offers_can_be_launched_there(board: str, text: str) -> None:
    gpu, operator = open_gpu(f"simulated:{board}", speed=math.inf), parse_operator(text)
    spec = operator_specification(text)
    limits = gpu.limits  # type: ignore[attr-defined]
    kernel, offers = ProfiledKernel.of(spec, limits), modelled_offers(operator, limits)
    assert offers[0] == {MAKER: LIBRARY}
    assert (len(offers) > 1) == operator.by_makers
    space = with_offers(space_of(spec, gpu), spec, offers)
    rows = [int(space.rows_with(offer)[-1]) for offer in offers]
    assert len(set(rows)) == len(offers)
    for row in rows:
        assert kernel.prepare(space.configuration(row)).work_flop == operator.work_flop
    assert space.size == len(offers) + space_of(spec, gpu).size


def test_every_offer_is_there_under_every_setting() -> None:
    clocks = {"graphics_clock_mhz": [1000, 1500]}
    plain, clocked = planned(LARGE), planned(LARGE, device_settings=clocks)
    set_to = sorted(
        map(str, {clocked.space.configuration(row)["graphics_clock_mhz"] for row in range(clocked.space.size)})
    )
    assert clocked.space.size == len(set_to) * plain.space.size
    for maker in (LIBRARY, CUBLASLT):
        rows = clocked.space.rows_with({MAKER: maker})
        assert len(rows) == len(set_to) * len(plain.space.rows_with({MAKER: maker})) > 0
        found = [str(clocked.space.configuration(int(row))["graphics_clock_mhz"]) for row in rows]
        assert [found.count(each) for each in set_to] == [len(rows) // len(set_to)] * len(set_to)


def test_nothing_is_offered_on_other_boards_nor_for_a_kernel_of_ones_own() -> None:
    operator = operator_specification(LARGE)
    recorded = cast(Gpu, SimpleNamespace(info=SimpleNamespace(source="recorded")))
    assert OneBoard(recorded).offers(operator) == ((), "")
    simulated = open_gpu("simulated:h200", speed=math.inf)
    assert OneBoard(simulated).offers(replace(operator, operator=None)) == ((), "")
    space = space_of(operator, simulated)
    assert with_offers(space, operator, ()) is space
    with pytest.raises(InputError, match="neither cuBLASLt nor Triton is here"):
        with_offers(space, operator, (), own=False)


def test_without_what_makes_our_kernels_the_librarys_rows_are_all_there_is() -> None:
    operator = operator_specification(LARGE)
    gpu = open_gpu("simulated:h200", speed=math.inf)
    offers = modelled_offers(parse_operator(LARGE), gpu.limits)  # type: ignore[attr-defined]
    space = with_offers(space_of(operator, gpu), operator, offers, own=False)
    assert space.size == len(offers)
    assert any("no kernels of Triton" in note for note in space.notes)


def test_rows_of_the_library_have_no_values_of_parameters_that_it_does_not_have() -> None:
    space = planned(SMALL).space
    [row] = space.rows_with({MAKER: LIBRARY})
    others = {name: value for name, value in space.configuration(int(row)).items() if name != MAKER}
    assert others.pop("algorithm") == "-"
    assert set(others.values()) == {0}
    assert np.all(space.column("block_m")[space.rows_with({MAKER: "wattridge"})] > 0)


def test_an_answer_that_is_the_library_is_exported_by_its_plain_command() -> None:
    """The command takes the best by itself: that of least energy, named alone, would be another."""
    opened, _ = measured(LARGE)
    library = library_index(opened.table, opened.plan.space)
    assert library is not None
    assert "--configuration" not in export_command(opened.plan, 1, opened.table, library).words


def against_the_library(text: str, gpu: Gpu, options: SearchOptions) -> None:
    """Run a session to its end, and check that the turns say how the library compares."""
    plan = plan_specification(load_specification(kept_specification(parse_operator(text))), gpu, options)
    with Store() as store:
        result = run_session(plan, store, lambda _: None, threading.Event())
    finals = Finals.of_origin(result.plan.origin)
    assert finals is not None
    assert all(math.isfinite(each.energy) for each in finals.others)
    (by_library,) = result.plan.space.rows_with({MAKER: LIBRARY}).tolist()
    [against, *_] = [each for each in finals.others if by_library in (each.row, finals.winner)]
    assert math.isfinite(against.energy_half)


def test_an_answer_against_the_library_has_an_interval_though_several_contend_in_long_windows() -> None:
    """Of four, each with windows of a second at the power limit, there were too few turns to say anything of one."""
    gpu = open_gpu("simulated:h200", speed=math.inf)
    against_the_library("mm:1,16,4096,4096:bf16:nt", gpu, SearchOptions(seed=1))


@pytest.mark.parametrize("seconds", [40.0, 60.0])
def test_a_session_with_a_limit_leaves_the_turns_with_the_library_what_they_take(
    seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the power limit each window takes a second: a tenth of one that was missing left no turns at all."""
    gpu = SimulatedGpu(load_twin("h200"), seed=1, clock=VirtualClock())
    monkeypatch.setattr(live_session, "time", SimpleNamespace(monotonic=lambda: gpu.clock.now_ns() / 1e9))
    begun_s = gpu.clock.now_ns() / 1e9
    against_the_library("mm:1,512,5120,5120:bf16:nt", gpu, SearchOptions(seed=1, max_seconds=seconds))
    assert gpu.clock.now_ns() / 1e9 - begun_s < seconds + 2
