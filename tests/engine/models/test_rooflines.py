"""A roofline sweep on a simulated board finds that board's own energies; it is read again from sessions and files."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fixtures.commands import run

from app.base.errors import InputError
from app.base.paths import resources
from app.cli import main
from app.engine.models.roofline.energy_roofline import FIXED
from app.engine.models.roofline.points import fit_points, past_sweeps, read_points, sweeps_of_file, sweeps_of_store
from app.engine.models.roofline.roofline_document import to_json
from app.engine.report.reproduce import run_command
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_of, space_of
from app.engine.store.database import Store
from app.sensors.gpu import Load
from app.sensors.simulated import laws
from app.sensors.simulated.twin import load_twin


@pytest.mark.parametrize(
    ("name", "precision"),
    [
        *(("h200", precision) for precision in ("fp32", "fp64", "fp16_tensor")),
        *(("a100", precision) for precision in ("fp32", "fp16_tensor", "bf16_tensor")),
        ("v100", "fp32"),
    ],
)
def test_a_sweep_finds_the_energies_of_a_simulated_board(
    capsys: pytest.CaptureFixture[str], name: str, precision: str
) -> None:
    status, printed = run(capsys, "roofline", "--gpu", f"simulated:{name}", "--precision", precision)
    assert status == 0
    document = printed["precisions"][precision]  # type: ignore[index]
    true = load_twin(name).energy
    assert document["identifiable"], document["reasons"]
    true_pj = true.eps_flop_pj["fp16_tensor" if "tensor" in precision else precision]  # type: ignore[index]
    # a tensor core's work reaches the limit early: fewer points, and no flop kernel at the peak clock
    assert document["eps_flop_pj"] == pytest.approx(true_pj, rel=0.05 if "tensor" in precision else 0.03)
    assert document["eps_mem_pj_per_b"] == pytest.approx(true.eps_mem_pj_per_b, rel=0.03)
    assert document["r2"] > 0.99
    assert document["mean_relative_error"] < 0.03
    assert document["condition_number"] < 100
    for figure, alone in document["alone"].items():
        assert alone == pytest.approx(document[figure], rel=0.05)


def test_a_sweep_of_the_mi210_finds_what_was_published_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    """[Holtmann2024, tables 6 and 8], within 6 %: its fits of one memory and one constant power differ by 9 and 7 %."""
    status, printed = run(capsys, "roofline", "--gpu", "simulated:mi210", "--precision", "fp32,fp64")
    assert status == 0
    for precision, published in (("fp32", (8.36, 80.48, 112.0)), ("fp64", (19.49, 88.15, 104.53))):
        document = printed["precisions"][precision]  # type: ignore[index]
        found = [document[figure] for figure in ("eps_flop_pj", "eps_mem_pj_per_b", "pi_0_w")]
        assert found == pytest.approx(published, rel=0.06), precision


@pytest.mark.parametrize(
    ("gpu", "precision"), [("v100", "fp16_tensor"), ("titan_rtx", "bf16_tensor"), ("h200", "int8")]
)
def test_a_precision_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str], gpu: str, precision: str) -> None:
    status, document = run(capsys, "roofline", "--gpu", f"simulated:{gpu}", "--precision", precision)
    assert status == 2
    assert "fp32" in document["error"]["remedy"]  # type: ignore[index]


ENERGIES = ("eps_flop_pj", "eps_mem_pj_per_b", "pi_0_w")


def with_limit(folder: Path, name: str, limit_w: float) -> str:
    """A copy of a simulated board with another power limit, as --gpu names it."""
    text = (resources() / "twins" / f"{name}.toml").read_text("utf-8")
    text = re.sub(r"(?m)^limit_(minimum|default)_w = .*", rf"limit_\1_w = {limit_w}", text)
    (folder / f"{name}.toml").write_text(text, encoding="utf-8")
    return f"simulated:{folder / name}.toml"


def laws_at(name: str, clock_mhz: float) -> tuple[float, float]:
    """eps_flop in FP32 and eps_mem of a simulated board at a clock, by its laws."""
    twin = load_twin(name)
    voltage = laws.relative_voltage(twin, clock_mhz) / laws.relative_voltage(twin, twin.energy.reference_clock_mhz)
    return twin.energy.eps_flop_pj["fp32"] * voltage**2, twin.energy.eps_mem_pj_per_b


@pytest.mark.parametrize(("name", "limit_w"), [("a4000", 140), ("a100", 180), ("titan_rtx", 190), ("rtx5090", 300)])
def test_points_that_a_limit_held_are_evidence(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str, limit_w: float
) -> None:
    """The board gives in by its clock: the energies at the peak clock lie within two standard errors of the laws."""
    gpu = with_limit(tmp_path, name, limit_w)
    status, printed = run(capsys, "roofline", "--gpu", gpu, "--precision", "fp32")
    assert status == 0
    document = printed["precisions"]["fp32"]  # type: ignore[index]
    assert document["identifiable"], document["reasons"]
    if name != "rtx5090":  # of which enough points are free of the limit
        assert document["over_clocks"]
        assert document["held"] >= 10
        assert f"those of {document['clock_mhz']:.0f} MHz" in document["reasons"][0]
    for figure, error, true in zip(
        ENERGIES, document["standard_errors"], laws_at(name, document["clock_mhz"]), strict=False
    ):
        assert abs(document[figure] - true) < 2 * error + 0.01 * true, figure
    limit = document["limit"]
    assert limit["limit_w"] == limit_w
    assert limit["headroom_w"] == pytest.approx(limit_w - document["pi_0_w"])
    for point in limit["points"]:
        assert point["power_w"] == pytest.approx(limit_w, rel=0.02)
        assert point["clock_mhz"] <= document["clock_mhz"]


def test_the_limit_and_what_it_held_stand_in_terminal_and_report(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["roofline", "--gpu", "simulated:a4000", "--precision", "fp32"]) == 0
    text = capsys.readouterr().out
    for words in (
        "Δπ (W)",
        "Peak clock (MHz)",
        "Held by a limit, NVIDIA RTX A4000 · FP32 (simulated)",
        "a limit held 16",
    ):
        assert words in text
    gemm = str(resources() / "examples" / "gemm.toml")
    session = run(capsys, "tune", gemm, "--gpu", "simulated:a4000", "--speed", "inf", "--max-evaluations", "3")[1][
        "session"
    ]
    page = tmp_path / "report.html"
    assert main(["report", str(session), "--out", str(page)]) == 0
    report = page.read_text(encoding="utf-8")
    assert "within 140 W" in report
    assert "Held by a limit" in report


def test_what_a_limit_lets_through_is_predicted_at_the_clock_that_it_leaves(capsys: pytest.CaptureFixture[str]) -> None:
    _, printed = run(capsys, "roofline", "--gpu", "simulated:a4000", "--precision", "fp32", "--predict", "12e12,1e12")
    document = printed["precisions"]["fp32"]  # type: ignore[index]
    [point] = [each for each in document["limit"]["points"] if each["intensity_flop_per_b"] == 12]
    assert point["clock_mhz"] < 0.9 * document["clock_mhz"]
    assert document["predicted"]["power_w"] == pytest.approx(140)
    assert document["predicted"]["time_s"] == pytest.approx(12e12 / (1e9 * point["gflops"]), rel=0.02)


def test_a_board_that_its_limit_holds_back_in_all_that_moves_data_says_which_energies_are_not_known(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    gpu = with_limit(tmp_path, "a4000", 120)
    status, document = run(capsys, "roofline", "--gpu", gpu, "--precision", "fp32")
    assert status == 2
    assert "at the peak clock" in document["error"]["what"]  # type: ignore[index]
    assert "eps_mem and pi_0 are not told apart" in document["error"]["what"]  # type: ignore[index]
    assert "(--clock)" in document["error"]["remedy"]  # type: ignore[index]
    status, printed = run(capsys, "roofline", "--gpu", gpu, "--precision", "fp32", "--clock", "1290")
    assert status == 0
    document = printed["precisions"]["fp32"]  # type: ignore[index]
    found = [document[figure] for figure in ENERGIES[:2]]
    assert document["clock_mhz"] == 1290
    assert found == pytest.approx(laws_at("a4000", 1290), rel=0.03)


def test_several_clocks_in_one_session_are_one_fit_at_the_highest(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("roofline", "--gpu", "simulated:a4000", "--precision", "fp32", "--clock", "1290,1560")
    _, printed = run(capsys, *words)
    document = printed["precisions"]["fp32"]  # type: ignore[index]
    assert document["over_clocks"]
    assert document["points"] > 60, "the clocks that were asked for, and the board's own beside them"
    found = [document[figure] for figure in ENERGIES[:2]]
    assert found == pytest.approx(laws_at("a4000", document["clock_mhz"]), rel=0.05)
    session = run(capsys, "sessions")[1][0]  # type: ignore[index]
    assert session["title"] == "roofline_fp32 at 1290, 1560 MHz", "it never stands for the board at its own clock"
    with Store() as store:
        assert " ".join(run_command(plan_of(store.load(session["session"]))).words).endswith("--clock 1290,1560")


def test_a_sweep_at_a_locked_clock_never_stands_for_the_board(capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "roofline", "--gpu", "simulated:a4000", "--precision", "fp32")
    run(capsys, "roofline", "--gpu", "simulated:a4000", "--precision", "fp32", "--clock", "1290")
    _, documents = run(capsys, "roofline")
    [own] = [document["precisions"] for document in documents if document["source"] == "simulated"]  # type: ignore[index]
    assert own["fp32"]["clock_mhz"] == 2100
    with Store() as store:
        newest, label = past_sweeps(store)[0]
        assert "FP32 at 1290 MHz" in label
        assert sweeps_of_store(store, newest)[0].origin == f"session {newest} at 1290 MHz"


def test_a_clock_that_is_not_there_or_cannot_be_locked_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    status, document = run(capsys, "roofline", "h200-roofline-fp32", "--clock", "900")
    assert status == 2
    assert document["error"]["where"] == "--clock"  # type: ignore[index]
    status, document = run(capsys, "roofline", "--gpu", "simulated:a4000", "--clock", "9000")
    assert status == 2
    assert "2100" in document["error"]["remedy"]  # type: ignore[index]
    status, document = run(capsys, "roofline", "--gpu", "simulated:a4000", "--clock", "fast")
    assert status == 2
    assert "'fast' is no list of clocks" in document["error"]["what"]  # type: ignore[index]
    text = (resources() / "twins" / "a4000.toml").read_text("utf-8")
    (tmp_path / "old.toml").write_text(text.replace("\nlockable = true", "\nlockable = false"), encoding="utf-8")
    status, document = run(capsys, "roofline", "--gpu", f"simulated:{tmp_path / 'old.toml'}", "--clock", "1290")
    assert status == 2
    assert "locked clocks need" in document["error"]["what"]  # type: ignore[index]


def test_on_a_real_board_the_law_of_the_clock_predicts_the_speed_at_its_limit() -> None:
    """An H200 at 700 W, recorded: with energies that no clock changes speeds come out 10 and 16 % off in the median."""
    for precision in ("fp32", "fp64"):
        [sweep] = sweeps_of_file(resources() / "recordings" / f"h200-roofline-{precision}.json.gz")
        held = sweep.points.limited & sweep.points.of_kind("roofline") & sweep.points.full()
        assert sweep.model is not None
        assert sweep.limit_w is not None
        measured, intensity = sweep.points.flops[held], sweep.intensity()[held]
        off = abs(sweep.model.capped(intensity, sweep.limit_w)[0] / measured - 1)
        plain = abs(replace(sweep.model, law=FIXED).capped(intensity, sweep.limit_w)[0] / measured - 1)
        assert np.median(off) < 0.03 < 0.09 < np.median(plain)


def cached(folder: Path, l2_per_flop: Callable[[float], float]) -> Path:
    """A CSV of points by a simulated A100's laws whose kernels move bytes on the chip too."""
    twin = load_twin("a100")
    lines = ["gflops,gb/s,l2 gb/s,power_w,mhz"]
    for intensity in (0, *np.geomspace(0.25, 64, 12)):
        load = Load("made", "fp32", 1e12 * intensity, 1e12, onchip_byte=1e12 * intensity * l2_per_flop(intensity))
        point, power_w, _ = laws.settled_under_limits(twin, load, 1410, twin.clocks.memory_mhz[-1], 400)
        rates = (each / point.launch_s / 1e9 for each in (load.work_flop, load.traffic_byte, load.onchip_byte))
        lines.append(",".join(f"{value:.8g}" for value in (*rates, power_w, 1410)))
    lines.append(f"0,0,0,{laws.settled(twin, laws.waiting(twin, 1410, twin.clocks.memory_mhz[-1]))[0]},1410")
    path = folder / "cached.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_a_cache_has_a_term_where_its_traffic_is_known(tmp_path: Path) -> None:
    document = to_json(fit_points(read_points(cached(tmp_path, lambda i: 0.6 if round(i * 4) % 2 else 0.1))[0]))
    assert document["identifiable"], document["reasons"]
    twin = load_twin("a100").energy
    voltage = laws.relative_voltage(load_twin("a100"), 1410) / laws.relative_voltage(
        load_twin("a100"), twin.reference_clock_mhz
    )
    assert document["caches_pj_per_b"]["L2"] == pytest.approx(twin.eps_onchip_pj_per_b * voltage**2, rel=0.1)


def test_a_cache_whose_traffic_follows_the_work_is_not_identifiable(tmp_path: Path) -> None:
    document = to_json(fit_points(read_points(cached(tmp_path, lambda _: 0.3))[0]))
    assert document["identifiable"], document["reasons"]
    assert document["caches_pj_per_b"] == {}
    assert "the energy of L2 is not identifiable" in document["reasons"][-1]
    eps = load_twin("a100").energy
    assert document["eps_flop_pj"] > 1.2 * eps.eps_flop_pj["fp32"], "its energy counts with that of the work"


def test_a_sweep_is_an_ordinary_session_that_can_be_read_again(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    _, measured = run(capsys, "roofline", "--gpu", "simulated:h200", "--precision", "fp64")
    assert main(["sessions", "--json"]) == 0
    session = json.loads(capsys.readouterr().out)[0]
    assert session["title"] == "roofline_fp64"
    _, again = run(capsys, "roofline", str(session["session"]))
    limits = [document["precisions"]["fp64"].pop("limit") for document in (again, measured)]  # type: ignore[index]
    assert again == measured
    assert [limit["limit_seen"] for limit in limits] == [True, False], "the session does not keep what was set"
    assert limits[0]["points"] == limits[1]["points"] != []
    assert main(["export", str(session["session"]), "--out", str(tmp_path)]) == 0
    capsys.readouterr()
    for file in (*tmp_path.glob("*.csv"), *(f for f in tmp_path.glob("*.json") if "cache" in f.name)):
        _, of_file = run(capsys, "roofline", str(file))
        stored, first = (d["precisions"]["fp64"]["eps_flop_pj"] for d in (of_file, measured))  # type: ignore[index]
        assert stored == pytest.approx(first, rel=1e-6), file


def test_every_board_of_a_public_sweep_has_its_own_roofline(shared_data: Path) -> None:
    boards = read_points(shared_data / "roofline" / "fp32_intensity_sweep_a100_l40.csv")
    assert [points.gpu for points in boards][:2] == ["A100-40GB 0", "A100-40GB 1"]
    assert len(boards) == 10
    for points in boards:
        document = to_json(fit_points(points))
        assert document["identifiable"] == points.gpu.startswith("A100")
        assert (document["eps_flop_pj"] is None) == (not document["identifiable"])


def test_a_kernel_of_known_work_is_predicted(capsys: pytest.CaptureFixture[str], shared_data: Path) -> None:
    file = str(shared_data / "roofline" / "fp32_intensity_sweep_a100_l40.csv")
    assert main(["roofline", file, "--predict", "1e12,1e9", "--json"]) == 0
    documents = json.loads(capsys.readouterr().out)
    a100, l40 = documents[0]["precisions"]["fp32"], documents[-1]["precisions"]["fp32"]
    assert a100["predicted"]["time_s"] == pytest.approx(1e3 / a100["peak_gflops"])
    energy_j = (1e12 * a100["eps_flop_pj"] + 1e9 * a100["eps_mem_pj_per_b"]) * 1e-12
    assert a100["predicted"]["energy_j"] == pytest.approx(energy_j + a100["pi_0_w"] * a100["predicted"]["time_s"])
    assert l40["predicted"] is None


def test_without_a_source_a_kernel_is_predicted_on_every_board_on_file(capsys: pytest.CaptureFixture[str]) -> None:
    """What was measured here, the newest of each, and the real boards that come with the program."""
    for seed in ("1", "2"):
        run(capsys, "roofline", "--gpu", "simulated:a100", "--precision", "fp64", "--sim-seed", seed)
    session = max(each["session"] for each in run(capsys, "sessions")[1])  # type: ignore[union-attr,index]
    status, documents = run(capsys, "roofline", "--predict", str(session))
    assert status == 0
    boards = {(document["gpu"], document["source"]): document["precisions"] for document in documents}  # type: ignore[index]
    a100, h200 = "NVIDIA A100-PCIE-40GB", "NVIDIA H200"
    measured = {board for board in boards if board[1] != "published"}
    assert measured == {(a100, "simulated"), (h200, "recorded")}
    assert set(boards["NVIDIA H200", "recorded"]) == {"fp32", "fp64", "fp16_tensor", "bf16_tensor"}
    own = boards[a100, "simulated"]["fp64"]
    assert own["measured"]["gpu"] == a100
    for figure in ("time_s", "energy_j", "power_w"):
        assert own["predicted"][figure] == pytest.approx(own["measured"][figure], rel=0.15), "near the ridge"
    assert boards[h200, "recorded"]["fp64"]["predicted"]["time_s"] < own["predicted"]["time_s"]
    assert own == run(capsys, "roofline", str(session))[1]["precisions"]["fp64"] | {  # type: ignore[index]
        name: own[name] for name in ("predicted", "measured")
    }


def test_published_boards_stand_beside_the_measured_ones(capsys: pytest.CaptureFixture[str]) -> None:
    """[Holtmann2024]: four boards in two precisions, and the GTX 580 of the paper that introduced the archline."""
    status, documents = run(capsys, "roofline", "--predict", "1e12,1e9")
    assert status == 0
    published = {each["gpu"]: each["precisions"] for each in documents if each["source"] == "published"}  # type: ignore[index]
    assert set(published) == {"A100 SXM4 40GB", "A100 SXM4 80GB", "GH200", "MI210", "GTX 580"}
    measured = next(each["precisions"]["fp32"] for each in documents if each["source"] == "recorded")  # type: ignore[index]
    for precisions in published.values():
        assert set(precisions) == {"fp32", "fp64"}
        for document in precisions.values():
            assert "20" in document["citation"]
            assert set(measured) <= set(document)  # the same keys: one reader serves both
            assert document["points"] == 0
            assert document["r2"] is None
    gh200 = published["GH200"]["fp64"]
    assert gh200["predicted"]["time_s"] == pytest.approx(1e12 / 34e12)
    energy_j = 1e12 * 11.68e-12 + 1e9 * 89.22e-12 + 170.10 * 1e12 / 34e12
    assert gh200["predicted"]["energy_j"] == pytest.approx(energy_j)
    capped = published["MI210"]["fp64"]["predicted"]
    assert capped["power_w"] == pytest.approx(300)  # [Holtmann2024]: its limit holds it back in FP64
    assert main(["roofline"]) == 0
    text = capsys.readouterr().out
    for words in ("Published", "Erlangen 2024", "IPDPS 2013", "GTX 580 · FP64"):
        assert words in text


def test_a_roofline_lists_its_powers_words_and_shares_of_the_peak(capsys: pytest.CaptureFixture[str]) -> None:
    file = str(resources() / "recordings" / "h200-roofline-fp64.json.gz")
    document = run(capsys, "roofline", file)[1]["precisions"]["fp64"]  # type: ignore[index]
    assert document["eps_mop_pj_per_word"] == pytest.approx(8 * document["eps_mem_pj_per_b"])
    assert document["pi_flop_w"] == pytest.approx(document["eps_flop_pj"] * document["peak_gflops"] / 1e3)
    assert document["pi_mem_w"] == pytest.approx(document["eps_mem_pj_per_b"] * document["bandwidth_gb_s"] / 1e3)
    assert (document["theoretical_peak_gflops"], document["theoretical_bandwidth_gb_s"]) == (34000, 4800)
    share = document["share_of_peak"]
    assert set(share) == {"flop", "copy", "roofline_flop", "roofline_mem"}
    assert share["roofline_flop"] <= max(share["flop"], share["roofline_flop"]) == document["peak_gflops"] / 34000
    assert 0.8 < share["copy"] < 0.9
    assert document["throttled"] > 0
    assert document["r2_with_throttled"] < document["r2"]  # at the limit the clock is another one
    assert main(["roofline", file]) == 0
    text = capsys.readouterr().out
    for words in ("ε_mop", "π_flop", "π_mem", "throttled points fitted too", "of the theoretical peak"):
        assert words in text


def test_a_board_without_published_figures_has_no_share(capsys: pytest.CaptureFixture[str], shared_data: Path) -> None:
    main(["roofline", str(shared_data / "roofline" / "fp32_intensity_sweep_a100_l40.csv"), "--json"])
    document = json.loads(capsys.readouterr().out)[0]["precisions"]["fp32"]
    assert document["share_of_peak"] is None
    assert document["theoretical_peak_gflops"] is None
    assert document["r2_with_throttled"] == pytest.approx(document["r2"], abs=0.01)


@pytest.mark.parametrize("precision", ["fp32", "fp64", "fp16_tensor", "bf16_tensor"])
def test_the_occupancy_goes_from_3_per_cent_to_all(precision: str) -> None:
    """[Holtmann2024, section 3.3], of the 2048 threads that its boards hold."""
    space = space_of(load_specification(resources() / "rooflines" / f"{precision}.toml"))
    configurations = [space.configuration(row) for row in range(len(space))]
    threads = {c["block_size_x"] * c["blocks_per_multiprocessor"] for c in configurations}  # type: ignore[operator]
    assert min(threads) / 2048 == pytest.approx(0.03, abs=0.005)
    assert max(threads) == 2048
    few = [c for c in configurations if c["block_size_x"] == 64 and c["load_store"]]
    assert len(few) >= 8


def test_a_session_that_without_traffic_predicts_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    gemm = str(resources() / "examples" / "gemm.toml")
    words = ("tune", gemm, "--gpu", "simulated:a100", "--speed", "inf", "--max-evaluations", "3")
    session = run(capsys, *words)[1]["session"]
    status, document = run(capsys, "roofline", "--predict", str(session))
    assert status == 2
    assert "known work and traffic" in document["error"]["what"]  # type: ignore[index]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "empty"),
        ("gflops,gbs,power_w\n", "no row"),
        ("a,b\n1,2\n", "no column with the rate"),
        ("gflops,gbs,power_w\n1,x,3\n", "'x' is not a number"),
        ("gflops,gbs,power_w\n1,nan,3\n", "without speed, traffic or power"),
        ("gflops,gbs,power_w\n1,2,3\n", "points at the peak clock"),
    ],
)
def test_files_without_a_roofline_are_one_clear_line(tmp_path: Path, text: str, what: str) -> None:
    path = tmp_path / "sweep.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=what):
        fit_points(read_points(path)[0])


@pytest.mark.parametrize("words", [("1e12",), ("a,b",), ("0,1",), ("-1,1",)])
def test_a_senseless_kernel_to_predict_is_refused(capsys: pytest.CaptureFixture[str], words: tuple[str, ...]) -> None:
    status, document = run(capsys, "roofline", "nothing.csv", f"--predict={words[0]}")
    assert status == 2
    assert document["error"]["where"] == "--predict"  # type: ignore[index]
