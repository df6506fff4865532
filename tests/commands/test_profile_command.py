"""`wattridge profile`: joules of a program from its trace and the power of the same time, compared and exported."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path
from typing import Any

import pytest

from app.cli import main
from tests.fixtures.programs import Program, random_program
from tests.fixtures.pytorch_traces import BASE_NS, kernel, named_range, of_program, operator, write_trace

DATA = Path(__file__).parents[1] / "engine" / "profile" / "data"
TRAINING = ("--trace", str(DATA / "train-trace.json.gz"), "--power", str(DATA / "train-power.csv"))


def profiled(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["profile", *words, "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


@pytest.fixture(scope="module")
def program() -> Program:
    return random_program(12, twin="h200", kind="phases", seconds=12.0)


@pytest.fixture(scope="module")
def files(program: Program, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    trace, power = of_program(program, tmp_path_factory.mktemp("program"))
    return "--trace", str(trace), "--power", str(power)


def test_hidden_joules_of_simulated_programs_lie_within_the_intervals(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    held = []
    for seed, kind in ((12, "phases"), (13, "bursts")):
        program = random_program(seed, twin="h200", kind=kind, seconds=12.0)
        trace, power = of_program(program, tmp_path)
        document = profiled(capsys, "--trace", str(trace), "--power", str(power))
        assert document["energy_j"] == pytest.approx(program.total_joules, rel=0.01)
        hidden = dict(zip(program.names, program.family_joules.tolist(), strict=True))
        alone = [item for item in document["families"] if item["group"] is None]
        for item in alone:
            low, high = item["energy_j_interval"]
            wider = 0.01 * item["energy_j"]
            held.append(low - wider <= hidden[item["name"]] <= high + wider)
        parts = [item["energy_j"] for item in (*alone, *document["groups"])]
        gaps_j = document["gaps"]["energy_j"] or 0.0
        assert sum(parts) + gaps_j + document["remainder"]["energy_j"] == pytest.approx(document["energy_j"], rel=1e-6)
    assert len(held) >= 12
    assert sum(held) >= 0.9 * len(held)


def test_ranges_have_the_joules_of_what_was_launched_in_them(
    program: Program, files: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """Each range of this program launches the kernels of one family."""
    document = profiled(capsys, *files)
    of_family = {item["name"]: item for item in document["families"]}
    for item in document["ranges"]:
        family = of_family[item["path"][0].removeprefix("all of ")]
        assert (item["count"], item["time_s"]) == (family["count"], pytest.approx(family["time_s"]))
        if family["energy_j"] is not None:
            assert item["energy_j"] == pytest.approx(family["energy_j"], rel=1e-6)


def test_a_real_training_has_its_phases_and_says_how_clocks_were_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", *TRAINING]) == 0
    text = capsys.readouterr().out
    for words in ("NVIDIA H200, recorded", "backward", "forward", "gaps: nothing runs", "remainder", "the time of day"):
        assert words in text
    document = profiled(capsys, *TRAINING)
    spent = {tuple(item["path"]): item["energy_j"] for item in document["ranges"]}
    assert spent["backward",] > spent["forward",] > spent["data",]
    assert document["families"] == sorted(document["families"], key=lambda item: document["families"].index(item))


def test_the_exports_hold_power_and_joules(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = profiled(capsys, *TRAINING, "--out", str(tmp_path))
    names = sorted(path.name for path in tmp_path.iterdir() if path.suffix not in (".wprofile", ""))
    assert names == [f"train-trace-{part}" for part in ("profile.csv", "profile.json", "speedscope.json", "trace.json")]
    events = json.loads((tmp_path / names[3]).read_text())["traceEvents"]
    counters = [event for event in events if event["ph"] == "C"]
    slices = [event for event in events if event["ph"] == "X" and event["pid"] == 0]
    assert all(event["args"]["W"] > 0 for event in counters)
    assert len(slices) == document["count"]
    known_j = document["energy_j"] - (document["gaps"]["energy_j"] or 0.0) - document["remainder"]["energy_j"]
    assert sum(event["args"]["energy_j"] for event in slices) == pytest.approx(known_j, rel=0.01)
    speedscope = json.loads((tmp_path / names[2]).read_text())
    (stacks,) = speedscope["profiles"]
    assert len(stacks["samples"]) == len(stacks["weights"])
    assert max(map(max, stacks["samples"])) < len(speedscope["shared"]["frames"])
    assert stacks["endValue"] == pytest.approx(sum(stacks["weights"]))
    rows = list(csv.DictReader((tmp_path / names[0]).read_text().splitlines()))
    assert float(rows[-1]["energy_j"]) == pytest.approx(document["energy_j"], rel=1e-5)
    assert main(["profile", *TRAINING, "--out", str(tmp_path)]) == 1  # they are there
    assert main(["profile", *TRAINING, "--out", str(tmp_path), "--force"]) == 0


def test_a_profile_that_was_kept_comes_back_and_is_compared(
    tmp_path: Path, files: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    document = profiled(capsys, *files)
    kept = tmp_path / "before.json"
    kept.write_text(json.dumps(document))
    assert profiled(capsys, str(kept)) == document
    after = {**document, "title": "after", "energy_j": document["energy_j"] - 100.0}
    low, high = document["energy_j_interval"]
    after["energy_j_interval"] = [low - 100.0, high - 100.0]
    (tmp_path / "after.json").write_text(json.dumps(after))
    compared = profiled(capsys, str(tmp_path / "after.json"), "--against", str(kept))
    assert compared["total"]["difference_j"] == pytest.approx(-100.0)
    half = (high - low) / 2
    assert compared["total"]["difference_j_interval"] == pytest.approx([-100 - half * 2**0.5, -100 + half * 2**0.5])
    assert all(item["difference_j"] in (0.0, None) for item in compared["families"])
    assert main(["profile", str(tmp_path / "after.json"), "--against", str(kept)]) == 0
    assert "difference" in capsys.readouterr().out


def test_products_of_known_shape_and_triton_kernels_have_a_next_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events, power = [], ["timestamp,power_w"]
    for number in range(60):
        at = 0.2e6 * number
        first = number % 3 != 2
        events.append(kernel("gemm" if first else "triton_poi_fused_add_0", at, 0.15e6, **{"External id": int(first)}))
    events.append(operator("aten::mm", 1, [[4096, 1024], [1024, 2048]], ["c10::BFloat16"] * 2))
    events.append(named_range("all", 0, 12e6))
    for tick in range(-20, 640):
        number, phase = divmod(0.02 * tick, 0.2)
        busy = 0 < phase < 0.151 and 0 <= number < 60
        power.append(f"{BASE_NS / 1e9 + 0.02 * tick:.3f},{(500 if number % 3 != 2 else 300) if busy else 100}")
    trace = write_trace(tmp_path / "t.json", events)
    (tmp_path / "p.csv").write_text("\n".join(power) + "\n")
    steps = profiled(capsys, "--trace", str(trace), "--power", str(tmp_path / "p.csv"))["next_steps"]
    assert [step["command"] for step in steps][:1] == ["wattridge tune mm:1,4096,2048,1024:bf16"]
    assert any("Triton" in step["step"] for step in steps)


def test_a_log_that_changes_from_sample_to_sample_is_no_mean_over_a_second(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a board that never waits the lag is not seen; its kernels take turns every 50 ms or so."""
    chance, at, spans = random.Random(4), 0.0, []
    while at < 20.0:
        spans.append((at, chance.uniform(0.03, 0.09), chance.choice(("hot", "cool"))))
        at += spans[-1][1]
    trace = write_trace(tmp_path / "t.json", [kernel(name, 1e6 * at, 1e6 * lasts) for at, lasts, name in spans])
    rows = ["timestamp,power_w"]
    for tick in range(1, 1000):
        begin, end = 0.02 * tick - 0.02, 0.02 * tick
        joules = sum(
            (600 if name == "hot" else 300) * max(0.0, min(end, at + lasts) - max(begin, at))
            for at, lasts, name in spans
        )
        rows.append(f"{BASE_NS / 1e9 + end:.3f},{joules / 0.02 + chance.gauss(0, 2):.2f}")
    (tmp_path / "p.csv").write_text("\n".join(rows) + "\n")
    document = profiled(capsys, "--trace", str(trace), "--power", str(tmp_path / "p.csv"))
    drawn_w = {item["name"]: item["power_w"] for item in document["families"]}
    assert drawn_w == {"hot": pytest.approx(600, rel=0.02), "cool": pytest.approx(300, rel=0.02)}


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ((), 2, "--trace is missing"),
        (("--trace", "x.json"), 2, "--power is missing"),
        (("--trace", "no-such.json", "--power", TRAINING[3]), 2, "no such file"),
        (("--trace", TRAINING[1], "--power", "no-such.csv"), 2, "no such file"),
        (("--trace", TRAINING[3], "--power", TRAINING[3]), 2, "not valid JSON"),
        (("--trace", TRAINING[1], "--power", TRAINING[1]), 2, "no log of power"),
        ((*TRAINING, "--offset", "3600"), 2, "no time in common"),
        ((TRAINING[1],), 2, "no profile"),
        ((TRAINING[3], "--trace", TRAINING[1]), 2, "does not go with a profile"),
    ],
)
def test_what_does_not_fit_is_one_line(
    words: tuple[str, ...], status: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["profile", *words]) == status
    error = capsys.readouterr().err.strip()
    assert said in error
    assert error.count("\n") == 0
