"""The plug-in for pytest: `pytest --energy` measures the tests that use the fixture `energy`, and skips them without.

pytest loads this in every run of every project that has Wattridge installed: nothing but pytest is imported before a
test asks for a measurement (`energy_tests.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .energy_tests import EnergyFixture, EnergyRun

_RUN: pytest.StashKey[EnergyRun] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options.

    Parameters
    ----------
    parser : pytest.Parser
        pytest's.
    """
    group = parser.getgroup("energy", "energy of tests (Wattridge)")
    group.addoption("--energy", action="store_true", help="measure the tests that use the fixture `energy`")
    group.addoption("--energy-gpu", metavar="GPU", help="an index, a UUID, simulated:NAME, ... (default GPU 0)")
    group.addoption(
        "--energy-threshold", type=float, default=0.5, metavar="PERCENT", help="more joules that are allowed (0.5)"
    )
    group.addoption(
        "--energy-seconds", type=float, default=60.0, metavar="S", help="longest comparison of two functions (60)"
    )
    group.addoption(
        "--energy-update", action="store_true", help="add this run to the baselines, or replace those that differ"
    )
    group.addoption("--energy-evidence", metavar="FILE", help="write samples and figures, for `wattridge verify`")


def pytest_configure(config: pytest.Config) -> None:
    """Declare the mark.

    Parameters
    ----------
    config : pytest.Config
        pytest's.
    """
    config.addinivalue_line("markers", "energy: it measures energy; set on every test that uses the fixture `energy`")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what `-m energy` selects.

    Parameters
    ----------
    items : list of pytest.Item
        The tests.
    """
    for item in items:
        if "energy" in getattr(item, "fixturenames", ()):
            item.add_marker("energy")


@pytest.fixture
def energy(request: pytest.FixtureRequest) -> Iterator[EnergyFixture]:
    """`energy(f, *args)`: joules of a call. `energy.compare(f, g, *args)`: both in turns, and how they differ.

    Parameters
    ----------
    request : pytest.FixtureRequest
        pytest's.

    Yields
    ------
    EnergyFixture
        What measures.
    """
    config = request.config
    if not config.getoption("--energy"):
        pytest.skip("energy is measured with --energy")
    if hasattr(config, "workerinput"):
        pytest.skip("energy is not measured while pytest-xdist runs other tests at the same time: add -n 0")
    from .energy_tests import EnergyRun

    run = config.stash.setdefault(_RUN, EnergyRun(config))
    with run.fixture(request.node.nodeid) as fixture:
        yield fixture


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the table of the run.

    Parameters
    ----------
    terminalreporter : pytest.TerminalReporter
        Where to.
    config : pytest.Config
        pytest's.
    """
    if (run := config.stash.get(_RUN, None)) is not None:
        run.summarise(terminalreporter)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write baselines and evidence.

    Parameters
    ----------
    session : pytest.Session
        pytest's.
    """
    if (run := session.config.stash.get(_RUN, None)) is not None and not run.finish():
        session.exitstatus = pytest.ExitCode.USAGE_ERROR
