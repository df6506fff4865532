"""`wattridge analyse`, `compare` and `report`: real caches and a simulated session through the command line."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from fixtures.commands import run

from app.base.paths import resources
from app.cli import main
from app.engine.report.html import esc
from app.engine.report.svg import Axis, Drawing, drawn
from app.engine.results.chart import Chart, Series

PS3 = "kernel-tuner/ps3_RTX4000Ada_wmma_complex_gemm_f16.json.gz"
VECTOR_ADD = "kernel-tuner/kt_vector_add_RTX4000Ada_PowerSensor3_15.json"
HOTSPOT = "kernel-tuner/ktpaper_hotspot_RTX_A4000.json.gz"
KEYS = {"front", "hull", "quadrants", "hypervolume", "correlations", "choosers", "difficulty"}


def test_a_session_that_was_exported_as_csv_is_no_log_though_it_holds_stamps_and_watts(
    capsys: pytest.CaptureFixture[str], session: int, tmp_path: Path
) -> None:
    assert main(["export", str(session), "--kind", "csv", "--out", str(tmp_path)]) == 0
    capsys.readouterr()
    (path,) = tmp_path.glob("*.csv")
    status, document = run(capsys, "analyse", str(path))
    assert status == 0
    assert set(document) >= KEYS


@pytest.fixture
def session(capsys: pytest.CaptureFixture[str]) -> int:
    """A tuned session of a simulated board in the test's store."""
    words = ["tune", str(resources() / "examples" / "gemm.toml"), "--gpu", "simulated:a100", "--max-evaluations", "60"]
    words += ["--strategy", "genetic_algorithm"]
    status, document = run(capsys, *words)
    assert status == 0
    return int(document["session"])


def test_a_recording_is_analysed_by_its_figures_of_work(capsys: pytest.CaptureFixture[str], shared_data: Path) -> None:
    status, document = run(
        capsys, "analyse", str(shared_data / PS3), "--slower", "30", "--price", "0.25", "--hours", "1000"
    )
    assert status == 0
    assert set(document) >= KEYS
    assert document["goals"] == ["max:TFLOPS", "max:TFLOPS/J"]
    assert (len(document["front"]), document["hypervolume"]) == (13, pytest.approx(73.898, abs=5e-4))
    assert document["choosers"]["at_most_slower"]["index"] == document["choosers"]["least_energy"]["index"]
    year = document["choosers"]["least_energy"]["yearly"]
    fast = document["choosers"]["fastest"]["values"]
    assert year["energy_kwh"] == pytest.approx(fast["energy_j"] / fast["time_s"], rel=1e-6), "W over 1000 h"
    assert year["saved_money"] == pytest.approx(0.25 * year["saved_kwh"])
    assert document["gpu"] == "NVIDIA RTX 4000 Ada Generation"


def test_a_limit_of_the_command_line_holds_for_every_session_that_is_compared(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for name in ("a", "b"):
        rows = "".join(f"{x},{1 + x},{9 - x}\n" for x in range(4))
        (tmp_path / f"{name}.csv").write_text(f"x,time_s,energy_j\n{rows}")
    files = [str(tmp_path / f"{name}.csv") for name in ("a", "b")]
    status, document = run(capsys, "compare", *files, "--limit", "energy_j<=7")
    assert status == 0
    assert [side["limits"] for side in document["sides"]] == [["energy_j <= 7"]] * 2
    assert [side["fastest"]["configuration"] for side in document["sides"]] == [{"x": 2}] * 2
    assert main(["compare", *files, "--limit", "watts<=7"]) == 2
    out = tmp_path / "report.html"
    assert main(["report", files[0], "--compare", files[1], "--limit", "energy_j<=7", "--out", str(out)]) == 0
    assert out.read_text().count("energy_j &lt;= 7") >= 2, "both sides of the comparison are within it"
    assert "left out" in out.read_text()


def test_files_whose_names_differ_behind_a_dot_are_not_one_kernel(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for number in (1, 2):
        rows = "".join(f"{x},{number * (x + 1)},{number * (9 - x)}\n" for x in range(4))
        (tmp_path / f"run.{number}.csv").write_text(f"x,time_s,energy_j\n{rows}")
    status, document = run(capsys, "compare", *(str(tmp_path / f"run.{number}.csv") for number in (1, 2)))
    assert status == 0
    assert (document["over_machines"], document["carried"]) == ([], [])


def test_a_session_that_comes_with_the_program(capsys: pytest.CaptureFixture[str]) -> None:
    status, document = run(capsys, "analyse", "h200-sgemm-session", "--maximise", "GFLOP/s")
    assert (status, document["gpu"], document["objective"]) == (0, "NVIDIA H200", "max:GFLOP/s")
    assert document["choosers"]["fastest"]["index"] == document["choosers"]["least_energy"]["index"]
    assert "at_most_power" not in document["choosers"], "no limit lies between what draws the same"
    assert document["choosers"]["fastest"]["configuration"]["block_size_x"] == 32


def test_the_front_may_be_over_other_figures(capsys: pytest.CaptureFixture[str], shared_data: Path) -> None:
    status, document = run(capsys, "analyse", str(shared_data / VECTOR_ADD), "--front", "min:time_s,min:energy_j")
    assert status == 0
    assert document["goals"] == ["min:time_s", "min:energy_j"]
    values = [(point["values"]["time_s"], point["values"]["energy_j"]) for point in document["front"]]
    assert document["reference"][0] >= max(t for t, _ in values)
    assert document["hypervolume"] > 0


def test_a_stored_session_is_analysed(capsys: pytest.CaptureFixture[str], session: int) -> None:
    status, document = run(capsys, "analyse", str(session))
    assert status == 0
    assert (document["session"], document["source"], document["evaluated"]) == (session, "simulated", 60)
    assert 0 < document["coverage"] < 1
    assert run(capsys, "analyse")[1]["session"] == session, "the newest without a number"
    assert main(["analyse", str(session)]) == 0
    said = capsys.readouterr().out
    assert "less energy for" in said
    assert "simulated" in said
    assert "Difficulty" in said


def table_under(said: str, title: str) -> list[list[str]]:
    """The cells of the table under a line that begins with `title`, its header first."""
    lines = iter(said.splitlines())
    next(line for line in lines if line.startswith(title))
    rows = []
    for line in lines:
        if not line.strip():
            break
        rows.append(line.split())
    return [rows[0], *rows[2:]]


def test_front_and_hull_are_tables_in_the_text(capsys: pytest.CaptureFixture[str], session: int) -> None:
    document = run(capsys, "analyse", str(session))[1]
    assert main(["analyse", str(session)]) == 0
    said = capsys.readouterr().out
    for title, points in (("The front", document["front"]), ("Corners of the convex hull", document["hull"])):
        header, *rows = table_under(said, title)
        assert header[:2] == ["GFLOP/s", "GFLOPS/W"]
        assert len(rows) == len(points) > 0
        for row, point in zip(rows, points, strict=True):
            assert float(row[0]) == pytest.approx(point["values"]["GFLOP/s"], rel=1e-3)
            assert float(row[1]) == pytest.approx(point["values"]["GFLOPS/W"], rel=1e-3)
            assert row[2:] == [str(value) for value in point["configuration"].values()]


def test_the_best_is_compared_with_the_theoretical_peak(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """[Anzt2015, section 4]: 1430 GFLOP/s over 235 W are 6.08 GFLOPS/W."""
    words = ["tune", str(resources() / "examples" / "dgemm.toml"), "--gpu", "simulated:k20x", "--max-evaluations", "20"]
    status, document = run(capsys, *words)
    assert status == 0
    share, best = document["share_of_peak"], document["best"]["values"]
    assert (share["precision"], share["theoretical_peak_gflops"], share["tdp_w"]) == ("fp64", 1430, 235)
    assert share["theoretical_peak_gflops_per_w"] == pytest.approx(6.08, abs=0.01)
    assert share["efficiency"] == pytest.approx(best["GFLOPS/W"] / (1430 / 235), rel=1e-6)
    assert share["speed"] == pytest.approx(best["GFLOP/s"] / 1430, rel=1e-9)
    assert run(capsys, "analyse")[1]["share_of_peak"] == share
    said = f"{100 * share['efficiency']:.1f} % of peak speed over the power limit"
    if share["efficiency"] > 1:
        said = f"{share['efficiency']:.2f} times peak speed over the power limit"
    assert main(["analyse"]) == 0
    assert said in capsys.readouterr().out
    file = tmp_path / "report.html"
    assert run(capsys, "report", "--out", str(file))[0] == 0
    text = file.read_text(encoding="utf-8")
    assert said in text
    assert "Corners of the convex hull" in text


def test_no_share_is_printed_where_the_precision_is_unknown(
    capsys: pytest.CaptureFixture[str], shared_data: Path
) -> None:
    """A cache names no precision, and nothing may be published for its board."""
    assert run(capsys, "analyse", str(shared_data / PS3))[1]["share_of_peak"] is None
    assert main(["analyse", str(shared_data / PS3)]) == 0
    assert "peak speed" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("analyse", "999"), "999"),
        (("analyse", "nothing.json"), "nothing.json"),
        (("analyse", "--weight", "2"), "--weight"),
        (("analyse", "--slower", "-1"), "--slower"),
        (("analyse", "--slower", "nan"), "--slower"),
        (("analyse", "--hours", "9999"), "--hours"),
        (("analyse", "--front", "max:nonsense,min:time_s"), "--front"),
        (("analyse", "--minimise", "nonsense"), "--minimise"),
        (("report", "--choose", "nonsense"), "--choose"),
        (("report", "--choose", "knee", "--configuration", "a=1"), "report"),
    ],
    ids=["no session", "no file", "weight", "slower", "no number", "hours", "front", "goal", "chooser", "two choices"],
)
def test_bad_words_are_one_line(
    capsys: pytest.CaptureFixture[str], session: int, words: tuple[str, ...], names: str
) -> None:
    status, document = run(capsys, *words)
    assert status == 2
    assert names in document["error"]["where"] or names in document["error"]["what"]
    assert document["error"]["remedy"]


def test_two_boards_side_by_side(capsys: pytest.CaptureFixture[str], tmp_path: Path, session: int) -> None:
    words = ["tune", str(resources() / "examples" / "gemm.toml"), "--gpu", "simulated:v100", "--max-evaluations", "60"]
    other = int(run(capsys, *words)[1]["session"])
    status, document = run(capsys, "compare", str(session), str(other))
    assert status == 0
    assert ["A100" in document["sides"][0]["gpu"], "V100" in document["sides"][1]["gpu"]] == [True, True]
    assert (document["speed_name"], document["efficiency_name"]) == ("GFLOP/s", "GFLOPS/W")
    for side in document["sides"]:
        alone = run(capsys, "analyse", side["name"].removeprefix("session "))[1]["choosers"]
        assert side["fastest"]["efficiency"] == alone["fastest"]["values"]["GFLOPS/W"]
        assert side["frugal"]["speed"] == alone["least_energy"]["values"]["GFLOP/s"]
        gained = alone["least_energy"]["values"]["GFLOPS/W"] / alone["fastest"]["values"]["GFLOPS/W"] - 1
        assert side["efficiency_change"] == pytest.approx(gained)
    for each in document["carried"]:
        assert each["time_ratio"] >= 1
        assert each["energy_ratio"] >= 1
    assert sum(side["share_of_joint"] for side in document["sides"]) >= 1
    mean = document["mean_efficiency_change"]
    assert mean == {"mean": None, "deviation": None, "count": 2}
    assert main(["compare", str(session), str(other)]) == 0
    text = capsys.readouterr().out
    assert "gained" in text
    line = next(line for line in text.splitlines() if "mean ± standard deviation" in line)
    assert "over 2 sessions on 2 boards, all simulated: efficiency too few, speed too few" in line
    out = tmp_path / "report.html"
    assert main(["report", str(session), "--compare", str(other), "--out", str(out)]) == 0
    capsys.readouterr()
    page = out.read_text()
    assert "Beside other sessions" in page
    assert line.partition("efficiency ")[2].partition(",")[0] in page
    assert run(capsys, "compare", str(session))[0] == 2


def test_a_configuration_carried_over_costs_what_it_costs_there(
    capsys: pytest.CaptureFixture[str], shared_data: Path
) -> None:
    """The same cache twice: its best is its best there, too."""
    cache = str(shared_data / VECTOR_ADD)
    status, document = run(capsys, "compare", cache, cache)
    assert status == 0
    assert len(document["carried"]) == 4
    for each in document["carried"]:
        assert (each["time_ratio"] if each["chosen_for"] == "time" else each["energy_ratio"]) == 1


def test_sessions_without_a_common_configuration_compare_by_their_fronts(
    capsys: pytest.CaptureFixture[str], shared_data: Path
) -> None:
    status, document = run(capsys, "compare", str(shared_data / VECTOR_ADD), str(shared_data / HOTSPOT))
    assert status == 0
    assert document["carried"] == []
    assert [len(side["front_x"]) > 0 for side in document["sides"]] == [True, True]


# --- the report -------------------------------------------------------------------------------------------------------


class Strict(HTMLParser):
    """Every element closed in order; keeps tags, attributes and text."""

    VOID = frozenset({"meta", "br", "img", "wbr"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.ids: list[str] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def is_safe_and_alone(text: str) -> Strict:
    """Well-formed, no script, nothing fetched; its pictures are SVG."""
    page = Strict(text)
    assert "script" not in page.tags
    assert not {"iframe", "img", "link", "object", "embed", "form"} & set(page.tags)
    assert not [name for name, _ in page.attributes if name.startswith("on") or name in ("src", "srcset")]
    targets = [value for name, value in page.attributes if name == "href"]
    assert {target[:1] for target in targets} <= {"#"}, "links lead to its own sections"
    assert {target[1:] for target in targets} <= set(page.ids)
    style = re.search(r"<style>(.*?)</style>", text, re.S)
    assert style is not None
    assert "url(" not in style.group(1)
    assert "@import" not in style.group(1)
    assert "prefers-color-scheme:dark" in style.group(1)
    assert len(page.ids) == len(set(page.ids))
    for svg in re.findall(r"<svg.*?</svg>", text, re.S):
        ElementTree.fromstring(svg)
        assert "NaN" not in svg
        assert "nan" not in re.sub(r"<text.*?</text>|<title>.*?</title>", "", svg)
    assert "default-src 'none'" in dict(page.attributes).get("content", "") or "default-src" in text
    return page


def test_the_report_of_a_session(capsys: pytest.CaptureFixture[str], session: int, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    status, document = run(capsys, "report", str(session), "--out", str(file))
    assert (status, document["files"]) == (0, [str(file)])
    text = file.read_text(encoding="utf-8")
    page = is_safe_and_alone(text)
    said = " ".join(page.text)
    assert text.count("<svg") >= 7
    best = run(capsys, "analyse", str(session))[1]["choosers"]["least_energy"]
    for name, value in best["configuration"].items():
        assert f"{name} = {value}" in said
    assert best["words"] in said
    assert "simulated" in said
    assert "SIMULATED" in said
    assert f"wattridge analyse {session}" in said
    assert "gemm.toml --gpu simulated:a100 --strategy genetic_algorithm --max-evaluations 60" in said, (
        "what the file says already is not repeated"
    )
    assert "block_size_x = [16, 32, 64]" in said, "the specification whole"
    assert run(capsys, "report", str(session), "--out", str(file), "--force")[0] == 0, "an older report is replaced"


def test_the_report_is_printed_whole(capsys: pytest.CaptureFixture[str], session: int, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    assert run(capsys, "report", str(session), "--out", str(file))[0] == 0
    text = file.read_text(encoding="utf-8")
    assert re.search(r"<details open[^>]*><summary>The specification", text), "paper cannot be opened"
    results = text[text.index('<section id="results">') :]
    assert results.index('class="scroll wide"') < results.index("</section>"), "many columns: across the page"
    style = text[text.index("<style>") : text.index("</style>")]
    on_screen, _, on_paper = style.partition("@page")
    assert "@media screen and (prefers-color-scheme:dark)" in on_screen, "paper is light"
    assert ".scroll,pre{overflow:visible}" in on_paper, "nothing scrolls on paper"


def test_a_report_is_no_pdf(capsys: pytest.CaptureFixture[str], session: int, tmp_path: Path) -> None:
    status, document = run(capsys, "report", str(session), "--out", str(tmp_path / "report.PDF"))
    assert status == 2
    assert "from a browser" in document["error"]["remedy"]
    assert not list(tmp_path.glob("report*"))


def test_the_report_lists_the_powers_of_the_board_s_roofline(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ("--gpu", "simulated:a100")
    assert run(capsys, "roofline", *words, "--precision", "fp32")[0] == 0
    assert run(capsys, "tune", str(resources() / "examples" / "gemm.toml"), *words, "--max-evaluations", "5")[0] == 0
    file = tmp_path / "report.html"
    assert run(capsys, "report", "--out", str(file))[0] == 0
    said = " ".join(is_safe_and_alone(file.read_text(encoding="utf-8")).text)
    for meaning in (
        "energy of a word",
        "power of the flops alone at peak speed",
        "power of the traffic alone at full bandwidth",
        "throttled points fitted too",
        "traffic of the copy kernel, of the theoretical bandwidth",
    ):
        assert meaning in said


def test_the_report_of_a_recording_with_another_choice(
    capsys: pytest.CaptureFixture[str], shared_data: Path, tmp_path: Path
) -> None:
    file = tmp_path / "report.html"
    assert run(capsys, "report", str(shared_data / PS3), "--choose", "fastest", "--out", str(file))[0] == 0
    text = file.read_text(encoding="utf-8")
    said = " ".join(is_safe_and_alone(text).text)
    assert "nvml_gr_clock = 1815" in said
    assert "73.898" in said
    assert "block_size_y = 16" in said, "where failures lie"
    assert len(text) < 500_000, "a cloud of thousands of points stays small"
    one = "block_size_y=1,block_size_z=2,M_PER_BLOCK=64,N_PER_BLOCK=64,NBUFFER=2,nvml_gr_clock=1635"
    words = ["report", str(shared_data / PS3), "--configuration", one, "--out", str(file), "--force"]
    assert run(capsys, *words)[0] == 0
    assert "chosen by hand" in file.read_text(encoding="utf-8")


def test_a_foreign_file_is_left_alone(capsys: pytest.CaptureFixture[str], session: int, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text("<html>mine</html>")
    status, document = run(capsys, "report", str(session), "--out", str(file))
    assert status == 1
    assert "another name" in document["error"]["remedy"]
    assert file.read_text() == "<html>mine</html>"


def test_names_of_a_file_are_text_in_the_report(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    evil = '</title></style><script>alert(1)</script><img src=x onerror=alert(1)>" onload="x'
    cache = {
        "device_name": evil,
        "kernel_name": evil,
        "problem_size": evil,
        "tune_params_keys": [evil, "b"],
        "tune_params": {evil: [evil, "y"], "b": [1, 2, 3]},
        "objective": f"GFLOP/s {evil}",
        "cache": {
            f"{a},{b}": {evil: a, "b": b, "time": 1.0 + b, "energy": 3.0 - b / 2, f"GFLOP/s {evil}": 1 / b}
            if (a, b) != ("y", 3)
            else {evil: a, "b": b, "time": "RuntimeFailedConfig"}
            for a in (evil, "y")
            for b in (1, 2, 3)
        },
    }
    file, out = tmp_path / "evil.json", tmp_path / "out.html"
    file.write_text(json.dumps(cache))
    assert run(capsys, "report", str(file), "--out", str(out))[0] == 0
    page = is_safe_and_alone(out.read_text(encoding="utf-8"))
    assert evil in "".join(page.text)


def test_escaping() -> None:
    assert esc('<a b="c">\'&\x00\ud800') == "&lt;a b=&quot;c&quot;&gt;&#x27;&amp;��"
    assert esc("a\u202eb\u2066\u200bc") == "a�b��c"  # what turns the order of the text, or cannot be seen
    assert len(esc("x" * 10_000)) == 2001


def test_axes_and_charts() -> None:
    assert Axis("x", 0.0, 10.0).ticks() == [0, 2, 4, 6, 8, 10]
    assert Axis("x", 0.9, 110.0, log=True).ticks() == [1, 2, 5, 10, 20, 50, 100]
    assert Axis("x", 1e-3, 1e9, log=True).ticks()[0] == 1e-3
    assert Axis("x", 1.0, 100.0, log=True).place([1, 10, 100, -1])[:3].tolist() == [0, 0.5, 1]
    assert Axis.over("x", [np.nan]).high == 1
    flat = Axis.over("x", [5.0, 5.0])
    assert flat.low < 5 < flat.high
    chart = Drawing(Axis("x", 0, 1), Axis("y", 0, 1), "a <title>")
    chart.dots(np.linspace(0, 1, 100_000), np.full(100_000, 0.5), "c0")
    chart.line([0, np.nan, 1], [0, 1, 1], "b0", "words <")
    chart.mark(2.0, 0.5, "A")
    text = chart.text
    ElementTree.fromstring(text)
    assert len(text) < 20_000, "points that fall onto one another are drawn once"
    assert "<circle" not in text, "a mark outside the area is not drawn"


def test_bars_are_drawn_as_far_as_they_are_known() -> None:
    bars = [Series("x", "blue", np.array([-0.5, 0.1])), Series("y", "orange", np.array([1.0, np.nan]))]
    ElementTree.fromstring(drawn(Chart("share", "", tuple(bars), "", names=("a <b>", "b"))))
    unknown = Series("x", "blue", np.array([np.nan]))
    assert drawn(Chart("share", "", (unknown,), "", names=("a",))) == ""


def test_the_columns_of_a_table_are_named_by_flags(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "sweep.csv"
    path.write_text("a,b,speed,draw\n" + "".join(f"{a},{b},{a + b},{a * b + 9}\n" for a in (1, 2) for b in (3, 5)))
    words = ["--parameters", "cap=b,a", "--figures", "work_per_s=speed,power_w=draw"]
    status, document = run(capsys, "analyse", str(path), *words, "--front", "max:work_per_s,min:power_w")
    assert status == 0
    assert all(list(point["configuration"]) == ["cap", "a"] for point in document["front"])
    assert document["front"]
    assert main(["analyse", str(path), "--figures", "watts"]) == 2
    assert "no column 'watts'" in capsys.readouterr().err


def test_a_log_of_power_gives_energies_of_a_span_and_what_its_sampling_resolves(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "power.log"
    path.write_text("timestamp power\n" + "".join(f"{1.7e9 + n / 10:.1f} {100 + n % 2}\n" for n in range(101)))
    status, document = run(capsys, "analyse", str(path), "--span", "2:4")
    assert status == 0
    (board,) = document["boards"]
    (energy,) = board["energy"]
    assert (board["span_s"], energy["method"]) == ([2.0, 4.0], "trapezoid")
    assert energy["energy_j"] == pytest.approx(201.0)
    assert energy["sampling"]["step_s"] == pytest.approx(0.1, rel=1e-3)
    assert main(["analyse", str(path)]) == 0
    assert "energy by" in capsys.readouterr().out
    for options in (["--span", "4:2"], ["--span", "50:60"], ["--interval", "soon"]):
        assert main(["analyse", str(path), *options]) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_specifications_are_tuned_on_several_boards_at_once_and_end_in_one_table(
    capsys: pytest.CaptureFixture[str],
) -> None:
    kernels = [str(resources() / "examples" / f"{name}.toml") for name in ("gemm", "dot")]
    boards = ["simulated:a100#1", "simulated:a100#2", "simulated:a4000"]
    options = ["--max-evaluations", "8", "--strategy", "random_sample", "--seed", "1"]
    status, document = run(capsys, "compare", *kernels, "--gpu", ",".join(boards), *options)
    assert status == 0
    sides = document["sides"]
    assert [side["board"] for side in sides] == [board for board in boards for _ in kernels]
    table = document["kernels_by_boards"]
    assert table["kernels"] == ["sgemm", "dot"]
    assert table["boards"] == ["NVIDIA A100-PCIE-40GB (simulated)", "NVIDIA RTX A4000 (simulated)"]
    of_a4000 = [side["efficiency_change"] for side in sides if side["kernel"] == "sgemm" and "A4000" in side["gpu"]]
    pair, single = table["cells"][0]
    assert (pair["sessions"], single["sessions"]) == (2, 1)
    assert pair["efficiency_change"] == {"mean": None, "deviation": None, "count": 2}, "too few"
    assert [single["efficiency_change"]["mean"]] == of_a4000
    averages = {each["kernel"]: each for each in document["over_machines"]}
    # the eighth of each session is its best on the untouched board, of dot not the same on both models
    assert {kernel: len(average["points"]) for kernel, average in averages.items()} == {"sgemm": 8, "dot": 7}
    for average in averages.values():
        assert average["boards"] == 2
        energy = average["points"][0]["figures"]["energy_j"]
        assert energy["interval"][0] < energy["mean"] < energy["interval"][1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["gemm.toml"], "no board is named"),
        (["gemm.toml", "--gpu", "simulated:a100,simulated:a100"], "named twice"),
        (["1", "2", "--gpu", "simulated:a100"], "nothing is to be measured"),
    ],
)
def test_what_cannot_be_tuned_side_by_side_is_refused_in_one_line(
    capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    named = [str(resources() / "examples" / word) if word.endswith(".toml") else word for word in words]
    assert main(["compare", *named]) == 2
    [line] = capsys.readouterr().err.strip().splitlines()
    assert said in line


def test_where_nothing_was_set_command_and_report_say_what_an_administrator_could_save(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    session = str(resources() / "recordings" / "h200-sgemm-session.json.gz")
    sweep, report = tmp_path / "sweep.csv", tmp_path / "report.html"
    clocks = range(600, 2001, 100)
    power = [100 + 0.2 * clock * (1 + 0.0005 * max(0, clock - 1200)) ** 2 for clock in clocks]
    rows = [f"{clock},{watts:.2f},{1e3 / clock:.5f}" for clock, watts in zip(clocks, power, strict=True)]
    sweep.write_text("\n".join(["clock_mhz,power_w,time_s", *rows]))
    status, document = run(capsys, "analyse", session)
    assert status == 0
    [said] = [each["sentence"] for each in document["answers"] if "An administrator can try it" in each["sentence"]]
    assert "sudo nvidia-smi -i 0 -lgc 0,1365 (undone by" in said
    status, document = run(capsys, "analyse", session, "--sweep", str(sweep))
    [said] = [each["sentence"] for each in document["answers"] if "An administrator can try it" in each["sentence"]]
    assert "a clock sweep of a board of this model" in said
    assert main(["report", session, "--sweep", str(sweep), "--out", str(report)]) == 0
    assert esc(said) in report.read_text("utf-8")
    capsys.readouterr()
    sweep.write_text("\n".join(["gpu,clock_mhz,power_w,time_s", *(f"NVIDIA L40,{row}" for row in rows)]))
    assert main(["analyse", session, "--sweep", str(sweep)]) == 2
    assert "a sweep of NVIDIA L40, not of NVIDIA H200" in capsys.readouterr().err


def test_the_settings_of_a_choice_are_shown_in_full(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """With the digits of a figure a version 2024.2 would be 2024."""
    path = tmp_path / "builds.csv"
    path.write_text("build,gpus,time_s,energy_j\n2024.2,4,10.5,900\n2022.6,4,12.5,950\n2024.2,1,31.5,990\n")
    assert main(["analyse", str(path)]) == 0
    fastest = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("Fastest "))
    assert "2024.2" in fastest.split()
