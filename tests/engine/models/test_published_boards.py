"""What is published of boards: found by the names that drivers report, and true to the tables it is from."""

from __future__ import annotations

import pytest

from app.engine.models.roofline.energy_roofline import board_named, published_boards
from app.engine.models.roofline.points import published_sweeps
from app.sensors.simulated.twin import load_twin, twin_names

# [Holtmann2024] tables 6 to 9, and 10 and 11: eps_mop pJ, pi_flop W, pi_mem W, eta %
TABLES = {
    ("A100 SXM4 40GB", "fp32"): (373.9, 121.0, 145.8, 55.14),
    ("A100 SXM4 80GB", "fp32"): (408.2, 129.3, 206.2, 54.67),
    ("GH200", "fp32"): (386.1, 327.8, 386.1, 65.94),
    ("MI210", "fp32"): (321.9, 188.8, 128.8, 62.77),
    ("A100 SXM4 40GB", "fp64"): (652.7, 139.7, 127.3, 59.24),
    ("A100 SXM4 80GB", "fp64"): (667.6, 145.8, 168.6, 58.31),
    ("GH200", "fp64"): (713.8, 397.0, 356.9, 70.00),
    ("MI210", "fp64"): (705.2, 440.5, 141.0, 80.82),
    ("GTX 580", "fp32"): (2052, 157.6, 73.9, 56.38),
    ("GTX 580", "fp64"): (4104, 41.8, 73.9, 25.56),  # table 10 repeats the 2052 of a word of 4 bytes
}


def test_the_published_lines_reproduce_the_tables_they_are_from() -> None:
    found = {(sweep.points.gpu, sweep.points.precision): sweep for sweep in published_sweeps()}
    assert set(found) == set(TABLES)
    for key, (eps_mop, pi_flop, pi_mem, eta) in TABLES.items():
        model = found[key].model
        assert model is not None
        assert model.eps_mop_pj(8 if key[1] == "fp64" else 4) == pytest.approx(eps_mop, rel=2e-3)
        assert model.pi_flop_w == pytest.approx(pi_flop, rel=3e-3)
        assert model.pi_mem_w == pytest.approx(pi_mem, rel=2e-3)
        assert 100 * model.eta_flop == pytest.approx(eta, abs=0.06)


def test_a_published_line_says_that_it_is_one_and_cites_its_source() -> None:
    for sweep in published_sweeps():
        assert sweep.source == "published"
        assert "(published)" in sweep.label
        assert "tables" in sweep.origin
        assert any("nothing was measured here" in reason for reason in sweep.reasons)
        assert len(sweep.points) == 0


@pytest.mark.parametrize("name", ["NVIDIA H200", "h200", "Nvidia H200 "])
def test_a_board_is_found_by_the_name_its_driver_reports(name: str) -> None:
    board = board_named(name)
    assert board is not None
    assert board.name == "H200"


@pytest.mark.parametrize("name", ["", "NVIDIA H200 NVL", "NVIDIA RTX A4000 Laptop GPU", "My board", "NVIDIA"])
def test_another_board_is_not_taken_for_it(name: str) -> None:
    assert board_named(name) is None


DELIVERED_W = {"NVIDIA GeForce RTX 5090": 600.0}  # a maker's limit above the data sheet's (the twin's source S14)


def test_every_twin_is_among_the_published_boards_with_its_limit_and_bandwidth() -> None:
    for name in twin_names():
        twin = load_twin(name)
        board = board_named(twin.name)
        assert board is not None, twin.name
        assert twin.power.limit_default_w == DELIVERED_W.get(twin.name, board.tdp_w)
        assert board.bandwidth_gb_s == pytest.approx(twin.rate.bandwidth_gb_s, rel=0.02)


def test_the_peak_efficiency_of_the_k20x_is_the_published_one() -> None:
    """[Anzt2015, section 4]: 1430 GFLOP/s over 235 W are 6.08 GFLOPS/W."""
    board = board_named("Tesla K20X")
    assert board is not None
    assert board.gflops["fp64"] / board.tdp_w == pytest.approx(6.08, abs=0.01)
    assert "fp16_tensor" not in board.gflops


def test_no_name_leads_to_two_boards() -> None:
    names = [board.name for board in published_boards()]
    assert len(names) == len(set(names))
