"""What the tests of the laboratory's panels share: a context around a scripted engine, and real sessions to show."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from PySide6.QtCore import QObject, Signal

from app.engine.results.measurement import Measurement, State
from app.engine.results.objectives import Goal, Objective
from app.engine.results.state import Progress, SessionState
from app.engine.runner.boards import ReadyPlan
from app.engine.session import events
from app.engine.space.result_table import ResultTable
from app.engine.space.search_space import Parameter, SearchSpace
from app.engine.specification.plan import SessionPlan
from app.views.shared.bridge import EngineBridge
from app.views.shared.context import Context
from app.views.shared.countdown import Countdown
from app.views.shared.current_result import CurrentResult

if TYPE_CHECKING:
    from pytestqt.qtbot import QtBot

    from app.views.shell.app import Program
    from app.views.shell.window import MainWindow


SGEMM = """
[kernel]
name = "sgemm"
source = "sgemm.cu"
problem_size = ["n", "n"]
arguments = []
profile = "gemm"
[constants]
n = 2048
[parameters]
block_size_x = [16, 32]
block_size_y = [8, 16]
tile_size_x = [4]
tile_size_y = [4]
[device_settings]
graphics_clock_mhz = [810, 1005, 1410]
[metrics]
"GFLOP/s" = "2 * n**3 / time_s / 1e9"
"GFLOPS/W" = "2 * n**3 / energy_j / 1e9"
[objective]
maximise = "GFLOPS/W"
front = ["GFLOP/s", "GFLOPS/W"]
[search]
strategy = "brute_force"
"""


class ScriptedEngine:
    """Keeps the commands it is given; the test says what happens."""

    def __init__(self, on_event: Callable[[events.Event], None]) -> None:
        self.tell = on_event
        self.commands: list[events.Command] = []

    def start(self) -> None: ...

    def submit(self, command: events.Command) -> None:
        self.commands.append(command)

    def stop(self) -> None: ...

    def join(self, timeout: float | None = None) -> None: ...


class OneBoard(QObject):
    """What a panel sees of the watched boards where a test gives it one, or none, that nobody reads."""

    added, removed, board_changed = Signal(object), Signal(object), Signal(object)
    failed = Signal(str, str)
    speed_changed = Signal(float)
    speed = example_speed = 1.0

    def __init__(self, bridge: EngineBridge, gpu: Any, trace: Any) -> None:
        super().__init__()
        self.all: list[Any] = []
        self.current = self.add(gpu, trace)
        self.current.countdown.answered.connect(bridge.submit)
        bridge.subscribe(events.SettingApplied, self._setting_applied)
        bridge.subscribe(events.EngineFault, self._fault)
        bridge.subscribe(events.ControlChanged, self._control_changed)

    def add(self, gpu: Any, trace: Any = None) -> Any:
        """One more board."""
        uuid = getattr(getattr(gpu, "info", None), "uuid", "")
        rights = {"guard": None, "allowed": False, "holder": None, "countdown": Countdown(uuid)}
        board = SimpleNamespace(gpu=gpu, uuid=uuid, trace=trace, opened_s=time.time(), real=True, **rights)
        self.all.append(board)
        self.added.emit(board)
        return board

    def find(self, uuid: str) -> Any:
        return next((board for board in self.all if board.uuid == uuid), None)

    def name_of(self, board: Any) -> str:
        alike = sum(each.gpu.info.label == board.gpu.info.label for each in self.all) > 1
        return f"{board.gpu.info.label} · GPU {board.gpu.info.index}" if alike else str(board.gpu.info.label)

    def speed_up_example(self) -> None: ...

    def measured_by(self, _plan: SessionPlan) -> Any:
        return self.current

    def _control_changed(self, event: events.ControlChanged) -> None:
        self.current.allowed, self.current.holder = event.allowed, event.holder

    def _setting_applied(self, event: events.SettingApplied) -> None:
        if event.board == self.current.uuid:
            self.current.countdown.applied(event)

    def _fault(self, _event: events.EngineFault) -> None:
        self.current.countdown.fault()


class Lab:
    """A context whose engine is scripted. `session(table, plan)` is what the engine says when one starts."""

    def __init__(self, gpu: Any = None, store: Any = None, trace: Any = None) -> None:
        self.engine = ScriptedEngine(lambda event: self.bridge.deliver(event))
        self.bridge = EngineBridge(lambda _on_event: self.engine)
        self.boards: Any = OneBoard(self.bridge, gpu, trace)
        self.result = CurrentResult(self.bridge)
        self.context = Context(self.bridge, self.boards, store, self.result)

    def session(self, table: ResultTable, plan: SessionPlan) -> None:
        self.engine.tell(events.SessionStarted(1, plan, table))

    def grow(self, table: ResultTable, best: int | None = None, budget: int = 0) -> None:
        """The engine says that the table has grown."""
        self.engine.tell(events.MeasurementsAdded(1, len(table), progress(table, best=best, budget=budget)))


def progress(
    table: ResultTable,
    state: SessionState = SessionState.RUNNING,
    best: int | None = None,
    budget: int = 0,
) -> Progress:
    failed = sum(table.failures().values())
    value = None if best is None else 1.0
    return Progress(1, state, len(table), failed, budget or table.space.size, 2.0, 25.0, 8.0, best, value)


def plan_for(space: SearchSpace, objective: Objective, **rest: Any) -> ReadyPlan:
    facts = {"title": "gemm", "gpu": "Test GPU", "driver": "1", "source": "recorded", "strategy": "brute_force", **rest}
    return ReadyPlan(space=space, objective=objective, **facts)


def grid_space(clocks: int = 10, tiles: int = 8) -> SearchSpace:
    """Clocks x tiles x two words."""
    parameters = (
        Parameter("graphics_clock_mhz", tuple(900 + 60 * i for i in range(clocks)), device_setting=True),
        Parameter("tile", tuple(2 ** (i % 8) if tiles <= 8 else i for i in range(tiles))),
        Parameter("layout", ("row", "column")),
    )
    shape = [len(p.values) for p in parameters]
    codes = np.stack(np.meshgrid(*(np.arange(n) for n in shape), indexing="ij"), axis=-1).reshape(-1, len(shape))
    return SearchSpace(parameters, codes.astype(np.uint16), cartesian=len(codes))


SPEED, EFFICIENCY = Goal("GFLOP/s", True), Goal("GFLOPS/W", True)
OBJECTIVE = Objective(EFFICIENCY, (SPEED, EFFICIENCY))


def measured(space: SearchSpace, row: int) -> Measurement:
    """A measurement whose figures follow from its row: faster at higher clocks, most efficient in the middle."""
    configuration = space.configuration(row)
    clock, tile = float(configuration["graphics_clock_mhz"]), float(configuration["tile"])
    if configuration["layout"] == "column" and tile == space.parameters[1].values[-1]:
        return Measurement(row, configuration, State.COMPILE, error="too many registers", source="recorded")
    speed = clock * (1 + np.log2(1 + tile)) * (0.9 if configuration["layout"] == "column" else 1.0)
    power = 60 + 0.1 * clock * max(1.0, 1 + 1.5e-3 * (clock - 1100)) ** 2
    values = {"time_s": 1e3 / speed / 1e3, "energy_j": 1e3 / speed * power / 1e3, "power_w": power}
    values |= {"GFLOP/s": speed, "GFLOPS/W": speed / power}
    return Measurement(row, configuration, State.OK, values, observed_clock_mhz=clock, source="recorded")


def filled(space: SearchSpace, rows: int | None = None) -> ResultTable:
    table = ResultTable(space)
    table.extend(measured(space, row) for row in range(space.size if rows is None else rows))
    return table


def cache_session(path: Path) -> tuple[ResultTable, SessionPlan]:
    """Every entry of a Kernel Tuner cache as a finished session."""
    from app.engine.formats.read import read_recording

    cache = read_recording(path)
    table = ResultTable(cache.space())
    table.extend(cache.measurements())
    objective = Objective(Goal("TFLOPS/J", True), (Goal("TFLOPS", True), Goal("TFLOPS/J", True)))
    return table, plan_for(table.space, objective, title=path.name)


def ready(qtbot: QtBot, program: Program) -> MainWindow:
    """The program's window, once its panels are loaded."""
    window = program.window
    with qtbot.waitSignal(window.panels_loaded, timeout=20_000):
        pass
    return window
