"""What the fixture `energy` of `pytest --energy` does: measures calls, keeps baselines, and lists what it found.

Baselines are in `energy-baselines.json` beside the configuration of pytest, to be committed: by the model of the board
and by test the joules of one call in each of the last sessions that `--energy-update` added.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from ..base.errors import InputError, WattridgeError
from ..base.files import read_text, write_text
from ..engine.analysis.baseline import AgainstBaseline, CallEnergy
from ..engine.analysis.in_turns import InTurns, Side
from ..engine.metering.watching import Watch, watch
from ..engine.report.evidence_file import Measured, calls_evidence, in_turns_evidence, write_evidence
from ..engine.session.check import EnergyUnknown, Terms, alone, in_turns
from ..engine.session.contenders import CallContender, Contender
from ..sensors.gpu import GpuInfo

BLOCKS: Final = 5  # of calls, for the energy of one function
BASELINES: Final = "energy-baselines.json"
_KEPT: Final = 10  # sessions of a baseline


class EnergyRun:
    """One run of pytest: its results, and the baselines."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._path = config.rootpath / BASELINES
        self._boards: dict[str, dict[str, list[float]]] = _read_baselines(self._path)
        self._rows: list[tuple[str, str]] = []
        self._measured: list[Measured] = []
        self._board: GpuInfo | None = None

    @contextmanager
    def fixture(self, test: str) -> Iterator[EnergyFixture]:
        """Watch the board for a test, which is skipped where none can be measured.

        Parameters
        ----------
        test : str
            The test's name.

        Yields
        ------
        EnergyFixture
            What the test gets.
        """
        named = self._config.getoption("--energy-gpu")
        try:
            watched = watch(named)
        except WattridgeError as error:
            pytest.skip(f"no board can be measured: {error}")
        try:
            info = watched.gpu.info
            if named is None and not info.live:
                pytest.skip("no board that reports power answers here; --energy-gpu simulated:a100 tries the wiring")
            if watched.sensor() is None:
                pytest.skip(f"no board can be measured: {info.label} reports no power")
            self._board = info
            yield EnergyFixture(self, watched, test)
        finally:
            watched.release()

    def add(self, measured: Measured, words: str) -> None:
        """Keep a result for the table and the evidence.

        Parameters
        ----------
        measured : Measured
            The result with its blocks.
        words : str
            The result in the table.
        """
        self._measured.append(measured)
        self._rows.append((measured.name, words))

    @property
    def terms(self) -> Terms:
        """How long a comparison may take, and how much more is allowed."""
        seconds, percent = (float(self._config.getoption(f"--energy-{name}")) for name in ("seconds", "threshold"))
        return Terms(seconds, percent / 100)

    def sessions_j(self, name: str) -> list[float]:
        """Return the joules of earlier sessions of a measurement on this kind of board.

        Parameters
        ----------
        name : str
            The measurement.

        Returns
        -------
        list of float
            The joules of one call in each of them, oldest first.
        """
        assert self._board is not None
        return self._boards.get(self._board.label, {}).get(name, [])

    def judge(self, name: str, energy: CallEnergy, against: AgainstBaseline | None) -> None:
        """Update the baseline where that is asked for, else fail a test that needs more.

        Parameters
        ----------
        name : str
            The measurement.
        energy : CallEnergy
            What it needs now.
        against : AgainstBaseline or None
            The same against earlier sessions; None without any.
        """
        assert self._board is not None
        label = self._board.label
        if self._config.getoption("--energy-update"):
            earlier = [] if against is None or against.differs else self.sessions_j(name)
            kept = [*earlier, float(f"{energy.energy_j:.6g}")][-_KEPT:]
            self._boards.setdefault(label, {})[name] = kept
        elif against is not None and against.worse(self.terms.threshold):
            words = f"{energy.words}: {against.words} on {label}"
            pytest.fail(f"it needs more energy: {words} (--energy-update accepts it)", pytrace=False)

    def finish(self) -> bool:
        """Write baselines and evidence, as far as they are asked for.

        Returns
        -------
        bool
            Whether all was written; the table says why not.
        """
        evidence = self._config.getoption("--energy-evidence")
        try:
            if self._config.getoption("--energy-update"):
                document = {"version": 1, "boards": self._boards}
                text = json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False)
                write_text(self._path, text + "\n", overwrite=True)
            if evidence and self._board is not None:
                write_evidence(Path(evidence), self._board, self._measured)
        except WattridgeError as error:
            self._rows.append(("not written", str(error)))
            return False
        return True

    def summarise(self, reporter: pytest.TerminalReporter) -> None:
        """Print what was measured.

        Parameters
        ----------
        reporter : pytest.TerminalReporter
            Where to.
        """
        if self._board is not None and self._rows:
            reporter.section(f"energy on {self._board.label}")
            widest = max(len(name) for name, _ in self._rows)
            for name, words in self._rows:
                reporter.write_line(f"{name:<{widest}}  {words}")


class EnergyFixture:
    """The fixture `energy` of one test."""

    def __init__(self, run: EnergyRun, watched: Watch, test: str) -> None:
        self._run, self._watch, self._test = run, watched, test
        self._count = 0

    def __call__(self, function: Callable[..., object], *arguments: Any, **keywords: Any) -> CallEnergy:
        """Measure a function, and fail where it needs more than its baseline.

        It is called again and again for `BLOCKS` windows of the board's power source, and the device is waited for
        where PyTorch or CuPy is in use.

        Parameters
        ----------
        function : callable
            What is measured.
        *arguments, **keywords
            Of every call.

        Returns
        -------
        CallEnergy
            Energy and time of one call, with 95 % intervals.
        """
        name, call = self._name(), partial(function, *arguments, **keywords)
        with _known():
            blocks = alone(CallContender(call, self._watch), self._watch.gpu, BLOCKS, threading.Event())
        sensor = self._watch.sensor()
        measured = calls_evidence(name, blocks, 0.0 if sensor is None else sensor.wander, self._run.sessions_j(name))
        energy: CallEnergy = measured.figures["energy"]
        against: AgainstBaseline | None = measured.figures["against_baseline"]
        self._run.add(measured, energy.words + ("" if against is None else f", {against.words}"))
        self._run.judge(name, energy, against)
        return energy

    def compare(
        self, first: Callable[..., object], second: Callable[..., object], *arguments: Any, **keywords: Any
    ) -> InTurns:
        """Measure two functions in turns until it is known whether the second needs more joules.

        Parameters
        ----------
        first, second : callable
            A, and B that is compared with it.
        *arguments, **keywords
            Of every call of both.

        Returns
        -------
        InTurns
            B relative to A: `energy`, `time` with their intervals, `worse`, `no_worse`, and `words` for all of it.
        """
        name = self._name()
        with _known():
            sides: dict[Side, Contender] = {
                "A": CallContender(partial(first, *arguments, **keywords), self._watch),
                "B": CallContender(partial(second, *arguments, **keywords), self._watch),
            }
            compared, blocks, _ = in_turns(sides, self._watch.gpu, self._run.terms, threading.Event())
        self._run.add(in_turns_evidence(name, blocks, compared), f"{compared.verdict}: {compared.words}")
        return compared

    def _name(self) -> str:
        """The name of a measurement: the test's, numbered from the second on."""
        self._count += 1
        return self._test if self._count == 1 else f"{self._test} #{self._count}"


@contextmanager
def _known() -> Iterator[None]:
    """Skip the test where the board does not say what is drawn."""
    try:
        yield
    except EnergyUnknown as error:
        pytest.skip(str(error))


def _read_baselines(path: Path) -> dict[str, dict[str, list[float]]]:
    """By board and test the joules of sessions. Ends the run where the file is damaged."""
    if not path.exists():
        return {}
    try:
        document = json.loads(read_text(path))
        boards = document["boards"] if document["version"] == 1 else {}
        for tests in boards.values():
            for sessions_j in tests.values():
                if not all(isinstance(value, float) and value > 0 for value in sessions_j):
                    raise ValueError("energies are positive numbers")
    except (InputError, ValueError, LookupError, TypeError, AttributeError) as error:
        pytest.exit(f"{path}: no baselines of energy: {error} (restore the file, or remove it)", returncode=4)
    return boards
