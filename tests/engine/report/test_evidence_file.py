"""Evidence files: every figure follows from the samples, here and in the script that has nothing of ours."""

from __future__ import annotations

import json
import math
import runpy
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.base.errors import InputError, WattridgeError
from app.base.paths import resources
from app.engine.analysis.in_turns import Block, Verdict, compare_in_turns, turns
from app.engine.report.evidence_file import calls_evidence, in_turns_evidence, verify_evidence, write_evidence
from app.engine.results.evidence import Evidence
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin

SCRIPT = resources() / "ci" / "verify_evidence.py"


def blocks_of(sides: Sequence[str], more: float = 0.0, seed: int = 1) -> list[Block]:
    """Blocks of 0.4 s with samples every 20 ms of 300 W, of which B has more, and which drift and scatter by 0.5 %."""
    noise, blocks = np.random.default_rng(seed), []
    for number, side in enumerate(sides):
        start_s, times_s = 100.0 + 0.5 * number, np.arange(0.013, 0.4, 0.02)
        power_w = 300.0 * (1 + 1e-4 * number + 0.005 * noise.standard_normal(len(times_s))) * (1 + more * (side == "B"))
        seen = Evidence.of([(0, 400_000_000)], times_s, power_w, [])
        blocks.append(
            Block(side, start_s, start_s + 0.4, 0.01, seen.mean_power_w * 0.01, work=40, evidence=seen)  # type: ignore[arg-type]
        )
    return blocks


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """The energy of calls, with and without earlier sessions; and 40 blocks of which B needs 2 % more."""
    order, gpu = turns(seed=3), SimulatedGpu(load_twin("h200"))
    in_turns = blocks_of([next(order) for _ in range(40)], more=0.02)
    compared = compare_in_turns(in_turns)
    assert compared.verdict is Verdict.WORSE
    alone = blocks_of("AAAAA", seed=5)
    measured = [
        calls_evidence("alone", alone, 0.002, []),
        calls_evidence("known", alone, 0.0, [2.9, 3.0, 3.04]),
        in_turns_evidence("in turns", in_turns, compared),
        in_turns_evidence("too few", in_turns[:6], compare_in_turns(in_turns[:6])),
    ]
    return write_evidence(tmp_path / "evidence.json", gpu.info, measured)


def by_script(path: Path) -> tuple[int, str]:
    done = subprocess.run([sys.executable, "-I", SCRIPT, path], capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr


def test_what_was_written_holds(written: Path) -> None:
    verified = verify_evidence(written)
    assert verified.holds, verified.faults
    assert (verified.results, verified.blocks, verified.samples) == (4, 56, 56 * 20)
    status, text = by_script(written)
    assert status == 0, text
    change = json.loads(written.read_text())["measured"][2]["figures"]["energy"]
    assert change["interval"][0] < 0.02 < change["interval"][1]


def test_no_board_can_be_recognised(written: Path) -> None:
    info, text = SimulatedGpu(load_twin("h200")).info, written.read_text()
    assert info.name in text
    assert info.uuid not in text
    assert "uuid" not in text.lower()


def lower_a_sample(measured: list[Any]) -> None:
    measured[2]["blocks"][1]["power_w"][3] *= 0.99


def drop_a_sample(measured: list[Any]) -> None:
    del measured[0]["blocks"][0]["times_s"][3], measured[0]["blocks"][0]["power_w"][3]


def lower_a_block(measured: list[Any]) -> None:
    measured[2]["blocks"][4]["energy_j"] *= 0.999


def swap_sides(measured: list[Any]) -> None:
    for block in measured[2]["blocks"]:
        block["side"] = "AB"[block["side"] == "A"]


def drop_blocks(measured: list[Any]) -> None:
    del measured[2]["blocks"][-2:]


def another_verdict(measured: list[Any]) -> None:
    measured[2]["figures"]["verdict"] = "no worse"


def narrower(measured: list[Any]) -> None:
    measured[1]["figures"]["against_baseline"]["interval"][0] += 1e-3


def another_mean(measured: list[Any]) -> None:
    measured[0]["figures"]["energy"]["energy_j"] *= 1 + 1e-5


def longer_work(measured: list[Any]) -> None:
    for block in measured[2]["blocks"]:
        block["work"] *= 1.2


def another_order(measured: list[Any]) -> None:
    measured[2]["blocks"].reverse()


def another_baseline(measured: list[Any]) -> None:
    measured[1]["parameters"]["sessions_j"][0] = 2.8


@pytest.mark.parametrize(
    "tamper",
    [
        lower_a_sample, drop_a_sample, lower_a_block, swap_sides, drop_blocks, another_verdict, narrower, another_mean,
        longer_work, another_order, another_baseline,
    ],
)  # fmt: skip
def test_a_tampered_file_does_not_hold(written: Path, tamper: Callable[[list[Any]], None]) -> None:
    document = json.loads(written.read_text())
    tamper(document["measured"])
    written.write_text(json.dumps(document))
    verified = verify_evidence(written)
    assert not verified.holds
    assert verified.faults
    status, text = by_script(written)
    assert status == 1, text
    assert "Traceback" not in text


def leaves(value: Any) -> list[tuple[Any, Any]]:
    """Every number of a document, as its place: a container and a key."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    return [
        leaf
        for key, item in list(items)
        for leaf in (
            leaves(item) if isinstance(item, dict | list) else [(value, key)] if isinstance(item, float) else []
        )
    ]


def test_both_agree_on_whatever_number_is_changed(written: Path) -> None:
    """Also where a change does not matter, as that of a threshold that is not near."""
    script, chance = runpy.run_path(str(SCRIPT)), np.random.default_rng(11)
    text, unseen = written.read_text(), 0
    for _ in range(60):
        document = json.loads(text)
        results = [document["measured"][number] for number in (0, 1, 3)]
        places = leaves(chance.choice(results)["blocks"] if chance.random() < 0.5 else [r["figures"] for r in results])
        container, key = places[chance.integers(len(places))]
        container[key] *= 1 + 10.0 ** -chance.integers(2, 5)
        written.write_text(json.dumps(document))
        faults = [line for measured in document["measured"] for line in script["faults"](measured)]
        verified = verify_evidence(written)
        assert len(verified.faults) == len(faults), (verified.faults, faults)
        unseen += verified.holds
    assert unseen < 20


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"kind": "wattridge evidence", "version": 2}', "[" * 3000])
def test_another_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(InputError, match="no evidence file"):
        verify_evidence(path)


@pytest.mark.parametrize(
    ("key", "value"),
    [("blocks", [{}]), ("kind", "other"), ("parameters", {}), ("figures", None), ("name", 3)],
)
def test_a_damaged_file_is_refused(written: Path, key: str, value: object) -> None:
    document = json.loads(written.read_text())
    document["measured"][0][key] = value
    written.write_text(json.dumps(document))
    with pytest.raises(InputError, match="damaged"):
        verify_evidence(written)


def test_a_block_without_samples_leaves_no_evidence() -> None:
    block = Block("A", 0.0, 0.4, 0.01, 3.0, work=40)
    with pytest.raises(WattridgeError, match="no samples"):
        calls_evidence("test", [block], math.nan, [])
