"""`tune` on a pool with boards of several models: a session for each, and what `compare` shows of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path

import pytest
from fixtures.fake_pool import FakePool

from app import cli
from app.base.paths import resources
from app.engine.control.guard import DeviceGuard
from app.engine.session.pool.opening import OpenedPool
from app.engine.session.pool.worker import BoardWork
from app.engine.store.database import Store
from app.sensors.select import open_gpu

EXAMPLE = str(resources() / "examples" / "gemm.toml")
SHORT = ("--max-evaluations", "12", "--strategy", "random_sample")


@pytest.fixture
def pool_of(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., list[FakePool]]]:
    """`pool_of("simulated:a100", ...)`: what `--pool` finds; the connections to it that were made."""
    with ExitStack() as stack:

        def make(*selectors: str) -> list[FakePool]:
            number = count()
            sides = []
            for selector in selectors:
                gpu = stack.enter_context(closing(open_gpu(selector, speed=float("inf"))))
                key = f"{gpu.info.uuid}@here/{next(number)}"
                sides.append(stack.enter_context(closing(BoardWork(gpu, DeviceGuard(gpu), host="here", key=key))))
            connections: list[FakePool] = []

            def connect() -> FakePool:
                connections.append(FakePool(*sides, all_open_first=True))
                return connections[-1]

            opened = OpenedPool(connect(), "here", connect=connect)
            monkeypatch.setattr("app.commands.pool._opened", lambda *_a, **_k: opened)
            return connections

        yield make


def test_each_model_has_a_session_of_its_own_and_they_are_compared(
    pool_of: Callable[..., list[FakePool]], capsys: pytest.CaptureFixture[str]
) -> None:
    connections = pool_of("simulated:a100", "simulated:a100#1", "simulated:v100")
    assert cli.main(["tune", EXAMPLE, "--pool", "node:8786", *SHORT]) == 0
    assert len(connections) == 2, "a connection carries one session"
    said = capsys.readouterr().out
    assert "Kernels by boards" in said
    assert "Decided on" in said, "which of the two boards of a model measured the finalists"
    with Store() as store:
        records = {record.gpu: record for record in store.sessions()}
        assert [record.evaluated for record in records.values()] == [12, 12]
        measured = {gpu: store.load(record.id).table for gpu, record in records.items()}
    assert {gpu: bool(table.decided_on) for gpu, table in measured.items()} == {
        "NVIDIA A100-PCIE-40GB": True,
        "Tesla V100-PCIE-16GB": False,
    }
    for gpu, table in measured.items():
        model = "a100" if "A100" in gpu else "v100"
        assert all(model in table.measurement(at).board for at in range(len(table)))


def test_it_prints_what_compare_prints(
    pool_of: Callable[..., list[FakePool]], capsys: pytest.CaptureFixture[str]
) -> None:
    pool_of("simulated:a100", "simulated:v100")
    assert cli.main(["tune", EXAMPLE, "--pool", "node:8786", "--json", *SHORT]) == 0
    tuned = json.loads(capsys.readouterr().out)
    with Store() as store:
        numbers = [str(record.id) for record in sorted(store.sessions(), key=lambda each: each.gpu)]
    assert cli.main(["compare", *numbers, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == tuned
    assert tuned["kernels_by_boards"]["boards"] == [
        "NVIDIA A100-PCIE-40GB (simulated)",
        "Tesla V100-PCIE-16GB (simulated)",
    ]


def test_one_model_can_be_named_and_what_is_for_one_session_needs_that(
    pool_of: Callable[..., list[FakePool]], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    pool_of("simulated:a100", "simulated:v100")
    words = ["tune", EXAMPLE, "--pool", "node:8786", *SHORT, "--out", str(tmp_path / "out")]
    assert cli.main(words) == 2
    assert "the pool has boards of several models" in capsys.readouterr().err
    connections = pool_of("simulated:a100", "simulated:v100")
    assert cli.main([*words, "--model", "Tesla V100-PCIE-16GB (simulated)"]) == 0
    assert len(connections) == 1
    with Store() as store:
        assert {record.gpu for record in store.sessions()} == {"Tesla V100-PCIE-16GB"}
