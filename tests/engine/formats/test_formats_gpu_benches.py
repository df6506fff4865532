"""The text that gpu-benches prints gives the same roofline as the table made of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.base.errors import InputError
from app.cli import main
from app.engine.models.roofline.points import read_points

POINT = "0 864 blocks     8 its      2.250 Fl/B       1340 GB/s      3015 GF/s   1410 Mhz   258 W   50°C"


def test_the_text_gives_the_figures_of_the_table(shared_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures_of_both = []
    for name in ("gpu_benches_a100_40.txt", "fp32_intensity_sweep_a100_l40.csv"):
        assert main(["roofline", str(shared_data / "roofline" / name), "--json"]) == 0
        figures_of_both.append(json.loads(capsys.readouterr().out))
    text, table = figures_of_both
    assert len(text) == 8
    assert [board["precisions"] for board in text] == [board["precisions"] for board in table[:8]]
    assert text[3]["gpu"] == "gpu_benches_a100_40 3"
    figures = text[0]["precisions"]["fp32"]
    assert 4.86 <= figures["eps_flop_pj"] <= 5.43
    assert 114 <= figures["eps_mem_pj_per_b"] <= 121
    assert 61 <= figures["pi_0_w"] <= 73


def test_lines_around_the_points_do_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "a100.txt"
    path.write_text(f"device 0: A100\n\n{POINT}\n{POINT}\n\ndone\n", encoding="utf-8")
    [points] = read_points(path)
    assert points.gpu == "a100 0"
    assert points.flops.tolist() == [3015e9] * 2
    assert points.bytes_per_s.tolist() == [1340e9] * 2
    assert points.power_w.tolist() == [258] * 2
    assert points.clock_mhz.tolist() == [1410] * 2


def test_a_point_that_is_cut_off_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a100.txt"
    path.write_text(f"{POINT}\n{POINT[:84]}\n", encoding="utf-8")
    with pytest.raises(InputError, match="line 2 is not a whole point"):
        read_points(path)


def test_a_table_with_decimal_commas_gives_the_same_points(shared_data: Path, tmp_path: Path) -> None:
    table = shared_data / "roofline" / "fp32_intensity_sweep_a100_l40.csv"
    path = tmp_path / "german.csv"
    path.write_text(table.read_text().replace(",", ";").replace(".", ","))
    for mine, theirs in zip(read_points(path), read_points(table), strict=True):
        assert mine.flops.tolist() == theirs.flops.tolist()
        assert mine.power_w.tolist() == theirs.power_w.tolist()


@pytest.mark.parametrize("command", ["fit", "analyse", "replay"])
def test_other_commands_name_the_one_that_reads_it(
    shared_data: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    assert main([command, str(shared_data / "roofline" / "gpu_benches_a100_40.txt")]) == 2
    assert "wattridge roofline" in capsys.readouterr().err
