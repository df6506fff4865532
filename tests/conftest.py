"""Shared fixtures: real measurements where they are, a data folder of the test's own, and a guard against leaks."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from app.engine.store.database import Store

sys.path.insert(0, str(Path(__file__).parent))

from environment import clear

clear()

from app.base.processes import use_one_core  # noqa: E402

use_one_core()

# What lands does not hang on chance: the same examples every time. `--hypothesis-profile explore` looks for new ones.
settings.register_profile("same", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("explore", settings.get_profile("same"), derandomize=False)
settings.load_profile("same")

_MOST_BYTES = 16 << 30  # of addresses: what runs away fails as a test, and does not take the machine with it
if sys.platform == "linux":
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, resource.getrlimit(resource.RLIMIT_AS)[1]))

_SHARED = Path(os.environ.get("WATTRIDGE_SHARED", Path(__file__).resolve().parents[2] / "shared"))


def pytest_collection_finish() -> None:
    """What thousands of tests and the whole program loaded stays until the end: the collector need not walk it."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real measurements from public repositories; they are not part of the project, so a clone may lack them."""
    folder = _SHARED / "data"
    if not folder.is_dir():
        pytest.skip("real measurements are not here (set WATTRIDGE_SHARED)")
    return folder


@pytest.fixture(autouse=True)
def own_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test touches the person's own sessions."""
    folder = tmp_path / "wattridge-data"
    monkeypatch.setenv("WATTRIDGE_DATA", str(folder))
    return folder


@pytest.fixture
def store(own_data_folder: Path) -> Iterator[Store]:
    """The store of the test's own data folder, open until the test's end."""
    from app.engine.store.database import Store

    with Store() as opened:
        yield opened


@pytest.fixture(autouse=True)
def no_other_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the boards and the monitors of the machine that it runs on: neither on its PCI bus nor in /proc."""
    from app.engine.control import outside
    from app.sensors import pci

    monkeypatch.setattr(pci, "SYSFS", tmp_path / "sys")
    monkeypatch.setattr(pci, "_woken", set())
    monkeypatch.setattr(outside, "PROC", tmp_path / "proc")


@pytest.fixture(autouse=True)
def no_thread_left_behind() -> Iterator[None]:
    """A test that leaves a thread running fails: the program runs for weeks."""
    before = set(threading.enumerate())
    yield
    deadline = time.monotonic() + 20.0
    while leaked := [t for t in threading.enumerate() if t not in before and t.is_alive()]:
        if time.monotonic() > deadline:
            pytest.fail(f"threads left behind: {', '.join(t.name for t in leaked)}")
        time.sleep(0.02)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """A process of tests that died ends the run, with a failure: others would run on, or wait, for what it had."""
    if error:
        running = None
        with suppress(KeyError):  # it died before it had any
            running = node.config.pluginmanager.getplugin("dsession").sched.remove_node(node)
        pytest.exit(f"{node.gateway.id}, a process of tests, died in {running or 'no test'}: {error}", returncode=1)


@pytest.fixture
def no_signal_is_ignored() -> Iterator[None]:
    """Processes that a test starts receive SIGHUP, also where the tests themselves run under `nohup`."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)
