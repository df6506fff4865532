"""`wattridge savings TARGET`: what is tried, its table, its document and its page; data and `check --inputs`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from app.cli import main
from app.commands.schema import schema_of

COPY = "copy:block_size_x=256,items_per_thread=4,vector_width=4,loop_unroll_factor=1"
SUM = """
import numpy as np

def arrays():
    return np.full(200_000, 3.0), np.arange(4)

def total(values, places):
    with open("seen", "a") as file:
        print(values[:2].tolist(), places.tolist(), file=file)
    return values.sum()
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.engine.metering.watching.LINGER_S", 0.2)
    monkeypatch.setattr("app.engine.session.contenders._least_s", lambda watch, least_s: 0.2)
    monkeypatch.chdir(tmp_path)


def run(capsys: pytest.CaptureFixture[str], *words: str, gpu: str = "simulated:h200") -> tuple[int, Any]:
    status = main(["savings", "--json", "--seed", "1", "--gpu", gpu, *words])
    return status, json.loads(capsys.readouterr().out)


def test_a_copy_saves_joules_on_fewer_sms_and_lower_clocks_and_more_by_both(capsys: pytest.CaptureFixture[str]) -> None:
    status, found = run(capsys, COPY)
    assert status == 0
    Draft202012Validator(schema_of("savings")).validate(found)
    tried = {one["lever"]: one for one in found["tried"]}
    assert list(tried) == ["a part of the SMs", "graphics_clock_mhz", "power_limit_w", "together"]
    for one in tried.values():
        low, high = one["energy"]["interval"]
        assert one["helps"] == (high < 0)
        assert low - 0.02 < one["look"]["energy_j"] / found["untouched"]["energy_j"] - 1 < high + 0.02
    sms, together = tried["a part of the SMs"], tried["together"]
    assert sms["helps"]
    assert sms["permanent"].startswith("sm_count = [")
    assert sms["remark"].startswith("the fewest within 1 % of the time are 48 SMs, with 0.0")
    assert "wattridge apply --clock" in together["permanent"]
    assert together["energy"]["change"] < sms["energy"]["change"]
    assert [look["change"] for look in sms["first_looks"]][:2] == ["16 SMs", "32 SMs"]
    slow, *_, almost_all = (look["time_s"] for look in sms["first_looks"])
    assert slow > 1.5 * almost_all
    assert found["data"] == "a: random"
    assert found["words"].startswith(together["look"]["change"])


def test_a_product_has_no_sm_to_spare_which_is_an_answer_with_what_would_have_been_seen(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.engine.control.guard.DeviceGuard.why_forbidden", "WATTRIDGE_READ_ONLY=1 forbids it")
    status, found = run(capsys, "mm:1,2048,2048,2048")
    assert status == 0
    assert [one["helps"] for one in found["tried"]] == [False]
    assert found["words"].startswith("nothing found: a saving of more than ")
    assert found["refused"] == ["graphics clock and power limit stay as they are: WATTRIDGE_READ_ONLY=1 forbids it"]
    assert "An administrator can try it: wattridge apply --gpu simulated" in found["administrator"]
    assert "with 95 %" in found["administrator"]


def test_too_little_time_leaves_it_undecided_and_the_time_is_said_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["savings", "--seed", "1", "--gpu", "simulated:h200", "--seconds", "20", "sgemm:" + SGEMM]) == 0
    shown = capsys.readouterr()
    assert shown.err.startswith("about ")
    assert "each in turns with the untouched state" in shown.err
    assert "a first look: a part of the sms" in shown.out.lower()
    assert "interval unknown" in shown.out


SGEMM = "dim_m=16,dim_n=16,blk_m=128,blk_n=128,blk_k=8,simd=1"


def test_the_page_has_the_table_and_the_points(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, COPY, "--out", "page.html")[0] == 0
    page = (tmp_path / "page.html").read_text()
    assert "What copy:" in page
    assert "How to make it permanent" in page
    assert "<svg" in page
    assert "lever that helps" in page


def test_a_program_draws_nothing_on_a_board_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    status, found = run(capsys, "sleep 0.1", "--seconds", "1")
    assert (status, found["words"], found["tried"]) == (0, "nothing could be tried", [])
    assert found["refused"] == ["a program draws nothing on a board that is not there"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "name one target"),
        (["nothing-of-that-name-x"], "there is no program"),
        (["copy"], "1728 configurations match"),
        (["copy:block_size_x=7"], "no configuration has block_size_x=7"),
    ],
)
def test_a_target_that_makes_no_sense_is_refused_in_a_line(
    capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    status, found = run(capsys, *words)
    assert status == 2
    assert said in found["error"]["what"]


def test_one_function_is_compared_on_zeros_and_on_its_own_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whole numbers, which may be places, keep what they hold."""
    (tmp_path / "sums.py").write_text(SUM)
    words = ["check", "--json", "--gpu", "simulated:h200", "--seconds", "1", "sums.py:total", "--inputs"]
    assert main([*words, "arrays,own,zeros"]) == 3
    found = json.loads(capsys.readouterr().out)
    assert (found["a"], found["b"]) == ("sums.py:total", "sums.py:total on zeros")
    seen = set((tmp_path / "seen").read_text().splitlines())
    assert seen == {"[3.0, 3.0] [0, 1, 2, 3]", "[0.0, 0.0] [0, 1, 2, 3]"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["mm:1,512,512,512", "--inputs", "zeros,random"], "a simulated board draws the same for any data"),
        (["'sleep 0.1'", "--inputs", "zeros,random"], "the data of a program is its own"),
        (["mm:1,512,512,512", "--inputs", "zeros,random,ones"], "two are compared at a time"),
        (["mm:1,512,512,512", "--inputs", "zeros,gone.npy"], "there is no such file"),
        (["mm:1,512,512,512", "--inputs", "zeros,strange"], "'strange' is no data"),
    ],
)
def test_data_that_cannot_be_are_refused(capsys: pytest.CaptureFixture[str], words: list[str], said: str) -> None:
    assert main(["check", "--json", "--gpu", "simulated:h200", *[word.strip("'") for word in words]]) == 2
    assert said in json.loads(capsys.readouterr().out)["error"]["what"]
