"""Options that several commands share, and what their values may be.

What the command line says of a search, for the commands that tune.
"""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ..base.errors import InputError
from ..base.files import is_input
from ..engine.results.objectives import Goal, parse_front, parse_limit

if TYPE_CHECKING:
    from ..engine.formats.table_columns import TableColumns
    from ..engine.metering.condition import Condition
    from ..engine.metering.external_meters import MeterChoice
    from ..engine.report.export import Existing
    from ..engine.specification.plan import SearchOptions
    from ..engine.store.database import Store
    from ..sensors.gpu import Gpu

_FASTEST = 100.0  # beyond it the physics of a simulated board cannot keep up with its own clock


def add_board(parser: ArgumentParser, speed: float = 1.0) -> None:
    parser.add_argument(
        "--gpu",
        metavar="GPU",
        help="an index, a UUID, pci:ADDRESS, simulated:NAME, recorded:FILE, opencl:NAME, host, ssh://[USER@]HOST/INDEX",
    )
    parser.add_argument("--sim-seed", type=int, default=0, metavar="N", help="seed of a simulated board's noise")
    parser.add_argument(
        "--speed",
        type=_speed,
        default=speed,
        metavar="X",
        help="seconds a simulated or recorded board lives per second; inf: as fast as it can be computed",
    )


@contextmanager
def board_of(arguments: Namespace, *, speed: float | None = None, remote: bool = False) -> Iterator[Gpu]:
    """The board that the options of `add_board` name, closed at the end. `speed` counts more than theirs.

    `remote`: it may be one of another machine.
    """
    from ..sensors.select import open_gpu

    speed = arguments.speed if speed is None else speed
    with closing(open_gpu(arguments.gpu, seed=arguments.sim_seed, speed=speed, remote=remote)) as gpu:
        yield gpu


def add_search(parser: ArgumentParser) -> None:
    parser.add_argument("--strategy", metavar="NAME", help="the search strategy: see `wattridge strategies`")
    parser.add_argument(
        "--strategy-option", action="append", default=[], type=key_value, metavar="K=V", help="an option of it"
    )
    parser.add_argument("--max-evaluations", type=positive_int, metavar="N", help="measure at most so many")
    parser.add_argument("--max-seconds", type=positive_float, metavar="S", help="search at most so long")
    parser.add_argument(
        "--patience", type=positive_int, metavar="N", help="end after N evaluations without a better one"
    )
    add_goal(parser)
    parser.add_argument("--seed", type=int, metavar="N", help="seed of the strategy")
    words = "keep the power samples of measurements in at most so many MB (64); 0 keeps none"
    parser.add_argument("--keep-samples", type=int, default=64, metavar="MB", help=words)


def store_of(arguments: Namespace) -> Store:
    """Open the store, whose new sessions keep as many samples as the command line says."""
    from ..engine.store.database import Store

    if not 0 <= arguments.keep_samples <= 1 << 20:
        raise InputError(f"{arguments.keep_samples} MB", "--keep-samples", "a number of MB from 0")
    return Store(evidence_byte=arguments.keep_samples << 20)


def add_repeats(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--repeats",
        type=positive_int,
        metavar="N",
        help="measure each configuration so often, and keep minimum, mean, maximum and deviation (default 1)",
    )


def add_force(parser: ArgumentParser) -> None:
    parser.add_argument("--force", action="store_true", help="replace what --out names, where it exists")


def existing_of(arguments: Namespace) -> Existing:
    """What becomes of files that lie where these options have new ones written."""
    return "new" if not arguments.out else "replace" if arguments.force else "refuse"


def add_out(parser: ArgumentParser) -> None:
    parser.add_argument("--out", metavar="FOLDER", help="export the best configuration into this folder")
    add_force(parser)


def add_choosing(parser: ArgumentParser) -> None:
    add_preferences(parser)
    parser.add_argument("--hours", type=float, default=4380.0, metavar="H", help="load of a year in hours (4380)")
    add_cost(parser)


def add_sweep(parser: ArgumentParser) -> None:
    words = "a clock sweep of a board of this model, for what an administrator could save by a lower clock"
    parser.add_argument("--sweep", metavar="FILE", help=words)


def add_preferences(parser: ArgumentParser) -> None:
    parser.add_argument("--slower", type=float, default=5.0, metavar="PERCENT", help="'at most so much slower' (5)")
    parser.add_argument("--power", type=positive_float, metavar="W", help="'at most so many watts'")
    parser.add_argument("--weight", type=float, default=0.5, metavar="A", help="a in a time + (1 - a) energy (0.5)")


def add_cost(parser: ArgumentParser) -> None:
    parser.add_argument("--boards", type=positive_int, default=1, metavar="N", help="on so many boards (1)")
    parser.add_argument("--price", type=positive_float, metavar="P", help="price of a kWh")
    parser.add_argument("--currency", default="EUR", metavar="C", help="its currency (EUR)")
    parser.add_argument("--carbon", type=positive_float, metavar="G", help="carbon intensity in g CO2 per kWh")


def add_condition(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--condition",
        metavar="T,P",
        help="state energy and power for this GPU temperature and mean power of the last half minute, as in 55C,420W"
        " (default: the board's own, fixed by its first session)",
    )


def add_meters(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--meter",
        action="append",
        default=[],
        metavar="METER",
        help="a meter beside the board, may be given several times: powersensor3:PORT, powersensor2:PORT,"
        " pm_counters[:PART], rapl, ina[:RAIL], pmt:NAME, command:PROGRAM or file:PATH, which print time stamps and"
        " watts; see `wattridge meters`",
    )
    parser.add_argument(
        "--energy-from",
        metavar="NAME",
        help="the source that energy_j comes from: board (default), a meter's name,"
        " or median, that of the board's readings in place of their mean, which is biased",
    )
    parser.add_argument(
        "--correct-gain",
        action="store_true",
        help="take the gain of the board's sensor, as a session with a meter found it, out of its power",
    )


def meter_choice(arguments: Namespace) -> MeterChoice | None:
    """The meters that the options of `add_meters` select; None if they select none."""
    from ..engine.metering.external_meters import BOARD, MeterChoice

    choice = MeterChoice(tuple(arguments.meter), arguments.energy_from or BOARD, arguments.correct_gain)
    return choice or None


def add_goal(parser: ArgumentParser) -> None:
    goal = parser.add_mutually_exclusive_group()
    goal.add_argument("--minimise", "--minimize", metavar="NAME", help="the figure to make small")
    goal.add_argument("--maximise", "--maximize", metavar="NAME", help="the figure to make large")
    parser.add_argument("--front", metavar="max:A,min:B", help="the figures of the Pareto front")
    parser.add_argument(
        "--limit",
        action="append",
        default=[],
        metavar="NAME<=NUMBER",
        help="a figure that must keep this bound (or >=) for a configuration to be chosen; may be given several times",
    )


def add_table(parser: ArgumentParser) -> None:
    """Which columns of another tool's table are what; they are guessed from its header."""
    group = parser.add_argument_group("a table of another tool: CSV, Parquet, JSON lines, a folder of JSON files")
    group.add_argument("--parameters", metavar="A,B", help="the columns that were chosen; NAME=HEADING renames one")
    group.add_argument("--figures", metavar="C,D", help="the columns that were measured; NAME=HEADING renames one")
    power = "power of the same time as a benchmark of a server; LOG#0,1: of these boards, LOG@+2h: two hours later"
    group.add_argument("--power-log", action="append", default=[], metavar="LOG", help=power)
    roles = "what a column is: power-limit, graphics-clock, time, energy, throughput, kernel, not-used, ..."
    group.add_argument("--roles", metavar="HEADING=ROLE,...", help=roles)
    kept = "keep these options in wattridge-roles.json beside the table, for tables with the same headings"
    group.add_argument("--remember", action="store_true", help=kept)


def columns_of(arguments: Namespace) -> TableColumns | None:
    """What the options of `add_table` say. Raises InputError."""
    from ..engine.formats.table_columns import TableColumns

    beside = "\n".join(str(Path(text).absolute()) for text in (*getattr(arguments, "more", ()), *arguments.power_log))
    columns = TableColumns.parse(arguments.parameters, arguments.figures, arguments.roles, beside)
    if arguments.remember:
        _remember(arguments, columns)
    return columns


def _remember(arguments: Namespace, columns: TableColumns | None) -> None:
    from ..engine.formats.any_table import table_of
    from ..engine.formats.remembered_roles import remember

    if columns is None or not columns.options:
        raise InputError("nothing is said of any column", "--remember", "say it: --roles HEADING=ROLE,...")
    named = [getattr(arguments, name, None) or () for name in ("source", "file", "sources")]
    paths = [Path(text) for each in named for text in ([each] if isinstance(each, str) else each)]
    for path in filter(is_input, paths):
        remember(path, table_of(path, columns).columns, columns.options)


def add_control(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--allow-control", action="store_true", help="set a real board's clocks and cap; the prior state returns"
    )
    over = "set clocks that another tool seems to have locked, and leave them unlocked: NVML cannot read a lock"
    parser.add_argument("--over-locks", action="store_true", help=over)


def clock_or_range(text: str) -> float | tuple[float, float]:
    low, separator, high = text.partition(":")
    if not separator:
        return positive_float(text)
    ends = positive_float(low), positive_float(high)
    if ends[0] > ends[1]:
        raise ArgumentTypeError(f"'{text}' is not LOW:HIGH")
    return ends


def _speed(text: str) -> float:
    value = float(text)
    if not (0 < value <= _FASTEST or value == float("inf")):
        raise ArgumentTypeError(f"'{text}' is not above 0 and at most {_FASTEST:g}, nor inf")
    return value


def positive_int(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ArgumentTypeError(f"'{text}' is not 1 or more")
    return value


def positive_float(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise ArgumentTypeError(f"'{text}' is not a positive number")
    return value


def clock_list(text: str) -> tuple[float, ...]:
    try:
        return tuple(map(positive_float, text.split(",")))
    except ValueError:
        raise ArgumentTypeError(f"'{text}' is no list of clocks in MHz, such as 1290,1560") from None


def key_value(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator or not key:
        raise ArgumentTypeError(f"'{text}' is not KEY=VALUE")
    return key, value


def goal_of(arguments: Namespace) -> Goal | None:
    """Return the goal that `--minimise` or `--maximise` names; None if neither is given."""
    if arguments.maximise:
        return Goal(arguments.maximise, True)
    return Goal(arguments.minimise, False) if arguments.minimise else None


def search_options(arguments: Namespace, repeats: int | None = None) -> SearchOptions:
    """Return the options that replace those of the specification."""
    from ..engine.specification.plan import SearchOptions

    return SearchOptions(
        strategy=arguments.strategy,
        strategy_options=dict(arguments.strategy_option),
        objective=goal_of(arguments),
        front=parse_front(arguments.front) if arguments.front else None,
        limits=tuple(parse_limit(text) for text in arguments.limit) or None,
        max_evaluations=arguments.max_evaluations,
        max_seconds=arguments.max_seconds,
        patience=arguments.patience,
        seed=arguments.seed,
        repeats=repeats,
        condition=condition_of(arguments),
    )


def condition_of(arguments: Namespace) -> Condition | None:
    """The thermal condition that the command line names, of the commands that have one."""
    from ..engine.metering.condition import Condition

    given = getattr(arguments, "condition", None)
    return None if given is None else Condition.parse(given, "--condition")
