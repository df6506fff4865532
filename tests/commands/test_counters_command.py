"""`wattridge counters`: profiles what is asked for, shows what is known, and says in one line what is missing."""

from __future__ import annotations

import json

import pytest

from app.base.paths import resources
from app.cli import main
from app.engine.workloads.hardware_counters import COUNTERS


@pytest.fixture
def session(capsys: pytest.CaptureFixture[str]) -> int:
    """Some configurations of the example on the simulated A100."""
    spec = str(resources() / "examples" / "gemm.toml")
    words = ["tune", spec, "--gpu", "simulated:a100", "--strategy", "random_sample", "--max-evaluations", "24"]
    assert main([*words, "--seed", "2", "--json"]) == 0
    return int(json.loads(capsys.readouterr().out)["session"])


def test_the_best_are_profiled_shown_and_kept(session: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["counters", str(session)]) == 0
    assert "no configuration was profiled: choose some with --front" in capsys.readouterr().out
    assert main(["counters", str(session), "--best", "4", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["chosen"], document["profiled"], document["known"], document["failed"]) == (4, 4, 0, [])
    assert (document["source"], document["tools"]) == ("simulated", ["simulated"])
    assert len(document["configurations"]) == 4
    for each in document["configurations"]:
        assert each["counters"]["dram_read_byte"] == each["metrics"]["dram__bytes_read.sum"]
        assert each["values"]["energy_j"] > 0
        assert not set(each["values"]) & set(COUNTERS)
    assert main(["counters", "--best", "4"]) == 0
    text = capsys.readouterr().out
    assert "A100" in text
    assert "simulated" in text
    assert "4 had their counters" in text
    assert "dram_read_throughput (byte/s)" in text
    assert main(["analyse", str(session), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counters"]["configurations"] == 4


def test_counters_have_todays_names_and_those_of_the_studies(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["counters", "--names", "--json"]) == 0
    names = json.loads(capsys.readouterr().out)
    assert names["sm_efficiency"]["metrics"] == ["smsp__cycles_active.avg.pct_of_peak_sustained_elapsed"]
    assert "Zhang2024" in names["gld_transactions"]["published"]
    assert main(["counters", "--names"]) == 0
    assert "smsp__cycles_active" in capsys.readouterr().out


def test_the_guide_has_every_counter_with_its_metrics() -> None:
    page = (resources() / "guide" / "counters.md").read_text(encoding="utf-8")
    for name, counter in COUNTERS.items():
        metrics = " × ".join(f"`{metric}`" for metric in counter.metrics)
        assert f"| `{name}` | {counter.unit} | {counter.meaning} | {metrics} |" in page


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["counters", "9"], "there is no session 9"),
        (["counters"], "no session is stored"),
        (["counters", "1", "--best", "0"], "--best"),
        (["counters", "1", "--best", "2", "--front"], "not allowed"),
    ],
)
def test_bad_input_is_one_line(words: list[str], what: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    said = capsys.readouterr().err
    assert what in said
    assert said.count("\n") == 1


def test_a_replay_has_no_kernel_to_profile(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "h200-sgemm-session", "--max-evaluations", "20", "--json"]) == 0
    number = json.loads(capsys.readouterr().out)["session"]
    assert main(["counters", str(number), "--front"]) == 2
    assert "read from a recording" in capsys.readouterr().err
