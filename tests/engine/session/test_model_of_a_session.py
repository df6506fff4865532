"""A session that ends here keeps the frequency model that its measurements give, as the last one of its board."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from app.engine.models.fit_documents import latest_fit
from app.engine.report.export import export_session
from app.engine.results.state import SessionState
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_of, plan_replay, plan_specification
from app.engine.session.run import run_session
from app.engine.session.stored import open_session
from app.engine.store.database import Store
from app.sensors.select import open_gpu

SPECIFICATION = """
[kernel]
name = "gemm"
profile = "gemm"
[constants]
n = 4096
[parameters]
block_size_x = [16]
block_size_y = [8]
tile_size_x = [4]
tile_size_y = [4]
[device_settings]
graphics_clock_mhz = {{ points = {points} }}
[objective]
minimise = "energy_j"
"""


@pytest.fixture
def ended(tmp_path: Path) -> Callable[..., tuple[Store, int, str]]:
    def run(points: int) -> tuple[Store, int, str]:
        path = tmp_path / "kernel.toml"
        path.write_text(SPECIFICATION.format(points=points))
        store = Store(tmp_path / "store.db")
        with closing(open_gpu("simulated:a100", speed=math.inf)) as gpu:
            plan = plan_specification(load_specification(path), gpu)
            result = run_session(plan, store, lambda event: None, threading.Event())
            assert result.state is SessionState.DONE
            return store, result.session, gpu.info.uuid

    return run


def test_it_is_kept_once_for_the_board_and_opening_the_session_adds_none(
    ended: Callable[..., tuple[Store, int, str]],
) -> None:
    store, session, uuid = ended(9)
    with store:
        name = store.sessions()[0].gpu
        found = latest_fit(store, name, simulated=True, uuid=uuid)
        assert found is not None
        fit, source = found
        assert fit.identifiable
        assert source.startswith("session of gemm")
        assert source.endswith(", simulated")
        open_session(store, session)
        assert len(list(store.fits(name))) == 1


def test_too_few_clocks_leave_none(ended: Callable[..., tuple[Store, int, str]]) -> None:
    store, _, _ = ended(3)
    with store:
        assert list(store.fits(store.sessions()[0].gpu)) == []


def test_a_replay_of_its_cache_leaves_none(tmp_path: Path, ended: Callable[..., tuple[Store, int, str]]) -> None:
    store, session, _ = ended(9)
    with store:
        loaded = store.load(session)
        name, before = loaded.record.gpu, len(list(store.fits(loaded.record.gpu)))
        files = export_session(plan_of(loaded), loaded.table, session, None, tmp_path / "out")
        cache = next(file for file in files if "cache" in file.name)
        plan = plan_replay(cache)
        assert run_session(plan, store, lambda event: None, threading.Event()).state is SessionState.DONE
        assert len(list(store.fits(name))) == before == 1
