"""What each command prints with `--json`, as types: `wattridge schema` makes the JSON Schemas from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, NotRequired, TypedDict

from ..base.records import Count, DateTime, Finite, Source
from ..engine.analysis.across_boards import KernelsByBoards, OverMachines
from ..engine.analysis.analysis_document import AnalysisOfSession, Point
from ..engine.analysis.compare import Comparison
from ..engine.analysis.idle import IdleDocument
from ..engine.analysis.session_analysis import Counted
from ..engine.control.left_over import LeftOver
from ..engine.control.outside import Held
from ..engine.doctor.examine import Findings
from ..engine.metering.characterisation.sensor_figures import Characterisation
from ..engine.metering.limit_effect import LimitEffect
from ..engine.metering.over_runs import ProgramEnergy
from ..engine.metering.recorded_energy import LogEnergies
from ..engine.models.compare_methods import Methods
from ..engine.models.fit.caps import CapFit, CapsAgainstClocks
from ..engine.models.fit.frequency import FrequencyFit
from ..engine.models.roofline.roofline_document import RooflineDocument
from ..engine.profile.compare_profiles import ProfileComparison
from ..engine.profile.program_profile import ProgramProfile
from ..engine.report.evidence_file import Verified
from ..engine.report.receipt import Receipt
from ..engine.session.check import Checked
from ..engine.session.check_history import History
from ..engine.session.evidence import EvidenceOfSession
from ..engine.session.savings import Savings
from ..engine.session.summary import SessionSummary
from ..engine.strategies.scoring import Floats, Interval, MeanCurve
from ..engine.workloads.hardware_counters import Counter
from ..sensors.gpu import PowerLimit
from ..sensors.remote.run_there import RemoteBoard

SettingValues = Mapping[str, float | list[Finite]]  # by setting; several values where it is a range


class Files(TypedDict):
    files: list[str]


class Marked(TypedDict):
    text: str
    recordings: list[str]


class FilesOfSession(Files):
    session: int | None


class Exported(FilesOfSession):
    remarks: list[str]
    receipt: Receipt | None  # None of a specification, of which nothing is chosen


class DesktopEntry(Files):
    removed: bool


class Failure(TypedDict):
    what: str
    where: str
    remedy: str


class Failed(TypedDict):
    error: Failure


class SettingsMade(TypedDict):
    prior: SettingValues
    applied: SettingValues
    observed: SettingValues
    obeyed: bool
    message: str


class Applied(SettingsMade):
    gpu: str
    source: Source
    kept: bool
    limit_effect: LimitEffect | None  # of the power limit on the load that ran then; null without one


class Restored(SettingsMade):
    gpu: NotRequired[str]
    source: NotRequired[Source]


class SeveralRestored(TypedDict):
    boards: list[Restored]


class Range(TypedDict):
    min: float | None
    max: float | None


class Clocks(Range):
    step: float | None


class PowerProfile(TypedDict):
    number: int
    name: str
    priority: int
    conflicts_with: list[int]
    requested: bool
    enforced: bool


class OpenclDevice(TypedDict):
    name: str
    kind: str
    platform: str
    driver: str
    energy: str


class CudaInUse(TypedDict):
    library: str | None
    compiler: str | None
    other_libraries: list[str]
    why_not: str | None


class Board(TypedDict):
    index: int
    uuid: str
    name: str
    source: Source
    driver: str
    power_limit_w: PowerLimit
    graphics_clocks_mhz: Clocks
    memory_clocks_mhz: list[float]
    channels: Mapping[str, str]
    unavailable: Mapping[str, str]
    power_source: str
    characterisation: Mapping[str, Any] | None
    cannot_set: Mapping[str, str]
    workload_power_profiles: list[PowerProfile] | None
    left_over: LeftOver | None
    throttled_s: Mapping[str, float]
    energy_counter_note: NotRequired[str]
    held_elsewhere: list[Held]
    opencl: NotRequired[list[OpenclDevice]]
    cuda: NotRequired[CudaInUse]


class SleepingBoard(TypedDict):
    uuid: str  # what --gpu takes
    name: str
    source: Source
    asleep: Literal[True]


class HelperState(TypedDict):
    folder: str
    installed: bool
    ready: bool
    fault: str
    current: bool
    policy: str
    policy_fault: str


class HelperDone(TypedDict):
    done: list[str]
    notes: list[str]


class MeterHere(TypedDict):
    meter: str
    label: str


class MeterChannel(Range):
    label: str
    mean: float | None


class MeterReading(MeterHere):
    scope: str
    rate_hz: Finite
    samples: Count
    missed: Count
    margin_ms: float
    channels: Mapping[str, MeterChannel]


class ChannelOverTime(TypedDict):
    unit: str
    mean: float
    min: float
    max: float
    samples: Count


class ClockThere(TypedDict):
    ahead_s: Finite
    error_s: float


class Monitored(TypedDict):
    gpu: str
    source: Source
    duration_s: Finite
    channels: Mapping[str, ChannelOverTime]
    unavailable: Mapping[str, str]
    energy_j: float
    energy_source: str
    energy_counter_j: float
    energy_counter_note: str
    event_reasons_s: Mapping[str, Finite]
    clock_there: ClockThere | None
    held_elsewhere: list[Held]
    faults: list[str]
    files: NotRequired[list[str]]


class ServedBoard(TypedDict):
    gpu: str
    source: Source
    energy_j: float


class Served(TypedDict):
    url: str
    duration_s: Finite
    served: Count
    gpus: list[ServedBoard]


class NewFile(TypedDict):
    kernel: str
    kernels: list[str]
    specification: str
    guessed: list[str]
    missing: list[str]


class OperatorKind(TypedDict):
    shape: list[str]
    meaning: str


class OperatorExample(TypedDict):
    name: str
    operator: str
    kind: str
    shape: list[int]
    work_flop: Finite
    least_byte: Finite


class Operators(TypedDict):
    kinds: Mapping[str, OperatorKind]
    precisions: list[str]
    layouts: dict[str, str]  # of products of halves
    epilogues: list[str]
    examples: list[OperatorExample]


class Certificates(Files):
    folder: str


class Scheduler(TypedDict):
    scheduler: str


class PoolMember(TypedDict):
    key: str
    name: str
    source: Source
    host: str


class Example(TypedDict):
    name: str
    kind: Literal["specification", "service", "Python"]
    about: str
    file: str


class SchemaListed(TypedDict):
    command: str
    version: Count
    title: str


class StoredSession(TypedDict):
    session: int
    title: str
    name: str
    tags: list[str]
    favourite: bool
    gpu: str
    source: Source
    strategy: str
    state: Literal["running", "paused", "done", "stopped", "failed", "interrupted"]
    evaluated: Count
    timed: Count
    created: DateTime


class SpaceSize(TypedDict):
    cartesian: Count
    valid: Count
    seconds: Finite
    removed_by: Mapping[str, Count]
    removed_share_by: Mapping[str, float]
    values: Mapping[str, Count]
    notes: list[str]


class StrategyOption(TypedDict):
    name: str
    type: str
    default: Any
    help: str
    choices: list[Any] | None


class StrategyFacts(TypedDict):
    name: str
    label: str
    description: str
    options: list[StrategyOption]


class TruthAtClock(TypedDict):
    clock_mhz: float
    observed_clock_mhz: float
    power_w: float
    time_s: float
    rate: float
    rate_unit: str
    energy_j: float
    capped: bool


class Truth(TypedDict):
    gpu: str
    source: Literal["simulated"]
    workload: str
    not_shown: list[str]
    clocks: list[TruthAtClock]


class ProfilingFailure(TypedDict):
    row: int
    error: str


class ProfiledConfiguration(Point):
    counters: Mapping[str, float]
    metrics: Mapping[str, float]


class CountersDocument(TypedDict):
    session: int
    gpu: str
    source: Source
    tools: list[str]
    chosen: int | None
    profiled: int | None
    known: int | None
    failed: list[ProfilingFailure] | None
    configurations: list[ProfiledConfiguration]
    analysis: Counted | None


class ScoreDocument(TypedDict):
    scores: Mapping[str, Mapping[str, Interval]]
    overall: Mapping[str, Interval]
    budget: Mapping[str, Finite]
    repeats: Count
    seed: int
    boards: Count
    points: Mapping[str, Floats]
    unit: str
    timed: list[str]
    timed_share: Finite
    curves: Mapping[str, Mapping[str, MeanCurve]]
    wins: Mapping[str, Mapping[str, int]]


class ClocksAndCaps(TypedDict):
    clocks: FrequencyFit
    caps: CapFit
    comparison: CapsAgainstClocks | None


class WithFit(Files):
    fit: FrequencyFit


class ComparedFurther(TypedDict):
    kernels_by_boards: KernelsByBoards | None
    over_machines: list[OverMachines]
    decided_on: Mapping[str, str]


# What each command prints: a title and the type of the document. A tuple of types has the keys of all of them.
DOCUMENTS: Final[Mapping[str, tuple[str, Any]]] = {
    "analyse": (
        "What a session or a recording shows; samples of measurements; of a log of power, its energy and sampling",
        AnalysisOfSession | LogEnergies | EvidenceOfSession,
    ),
    "apply": ("What was set and whether the board obeys; with --out the files", Applied | Files),
    "characterise": ("How fast and how sharp a board's power sources are", (Characterisation, Files)),
    "check": (
        "Whether B needs more joules than A, measured in turns; with --history, over commits",
        Checked | list[History],
    ),
    "compare-methods": ("The published ways to tune for energy on the same clocks", Methods),
    "compare": ("Sessions or boards side by side", (Comparison, ComparedFurther)),
    "counters": (
        "Hardware counters of configurations; with --names, what there is to count",
        CountersDocument | Mapping[str, Counter],
    ),
    "demo": ("The session of the example, its frequency model and the exported files", (SessionSummary, WithFit)),
    "doctor": ("What is missing or wrong on this machine", Findings),
    "error": ("What every command prints with --json where it fails", Failed),
    "examples": ("Specifications and scripts that come with the program", list[Example]),
    "export": ("The files of a configuration or a session", Exported),
    "fit": (
        "The frequency model of a board or of a file; with --caps, power limits beside it",
        FrequencyFit | ClocksAndCaps | CapFit,
    ),
    "gpus": (
        "The boards that answer, or the simulated ones; with --on those of another machine",
        list[Board | SleepingBoard] | list[RemoteBoard],
    ),
    "helper": (
        "The helper with root's rights as it is installed; of install and remove, what was done",
        HelperState | HelperDone,
    ),
    "idle": ("What a board draws while nothing runs on it", IdleDocument),
    "install-desktop": ("The files of the menu entry", DesktopEntry),
    "mark": ("The recordings in which a mark was set", Marked),
    "measure": ("Time, energy and power of a program", ProgramEnergy),
    "meters": (
        "The power meters that are here; with --meter what each reports",
        list[MeterReading] | list[MeterHere],
    ),
    "monitor": ("What a board reported over a while; with --openmetrics, what was served", Monitored | Served),
    "new": ("A specification made from the source of a kernel", NewFile),
    "operators": ("Operators of neural networks that can be tuned by kind and shape", Operators),
    "pool": (
        "The certificates that were made, the address of the scheduler, or the boards of a pool",
        Certificates | Scheduler | list[PoolMember],
    ),
    "profile": (
        "Where the joules of a program go; with --against, two profiles compared",
        ProgramProfile | ProfileComparison,
    ),
    "replay": ("What a replayed session found", SessionSummary),
    "report": ("The file of the report", FilesOfSession),
    "restore": ("What was put back", Restored | SeveralRestored),
    "roofline": (
        "The energy roofline of a board, or of every board on file",
        RooflineDocument | list[RooflineDocument],
    ),
    "savings": ("What can be saved as the user is: levers in turns with the untouched state", Savings),
    "schema": ("The documents that have a schema", list[SchemaListed]),
    "score": ("How good search strategies are on recorded spaces", ScoreDocument),
    "sessions": (
        "The stored sessions, newest first; with a number, what that session found",
        list[StoredSession] | SessionSummary,
    ),
    "space": ("The size of a specification's search space", SpaceSize),
    "strategies": (
        "The search strategies and their options; with a name, that one",
        StrategyFacts | list[StrategyFacts],
    ),
    "tune": ("What a session found", SessionSummary),
    "twin": ("The names of the simulated boards; with --truth what the sensors of one hide", list[str] | Truth),
    "verify": ("Whether every figure of an evidence file follows from its samples", Verified),
}
VERSION: Final = 1  # of all of them; it changes only where a key that was promised goes or changes its meaning
