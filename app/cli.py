"""The command `wattridge`: without a command it opens the window; every command works without one."""

from __future__ import annotations

import argparse
import errno
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from . import __version__
from .blas_threads import use_one_core
from .commands.terminal import abandon_output, end_on_signals, prepare_streams, print_json, say
from .errors import InputError, WattridgeError


class _Parser(argparse.ArgumentParser):
    """Usage errors become InputError, so that `--json` can print them as a document."""

    def error(self, message: str) -> NoReturn:
        raise InputError(message, self.prog, f"see `{self.prog} --help`")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status: 0 done, 1 failed, 2 bad input or usage."""
    use_one_core()
    prepare_streams()
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        with end_on_signals():
            return _guarded(words, "--json" in words)
    finally:
        abandon_output()  # what could not be written must not fail again at the interpreter's end


def _guarded(words: list[str], as_json: bool) -> int:
    """Run, and say in one line what failed, whatever it was."""
    try:
        status = _run(words)
        sys.stdout.flush()
        return status
    except WattridgeError as error:
        return _failed(error, as_json)
    except BrokenPipeError:  # the reader went away (`| head`); nothing more to say
        return 1
    except KeyboardInterrupt:
        say("wattridge: stopped")
        return 1
    except MemoryError:
        return _failed(WattridgeError("there is not enough memory", "", "use smaller files, or end other programs"))
    except RecursionError:
        return _failed(InputError("the input is nested too deeply", "", "use a simpler file"), as_json)
    except OSError as error:
        return _failed(_of_system(error), as_json)
    except Exception as error:
        if os.environ.get(_TRACEBACK) == "1":
            raise
        what = f"a fault in Wattridge: {type(error).__name__}: {error}"
        return _failed(WattridgeError(what, "", f"please report it, with what {_TRACEBACK}=1 adds"), as_json)


_TRACEBACK = "WATTRIDGE_TRACEBACK"


def _run(words: list[str]) -> int:
    words, program = _split(words)
    try:
        arguments = _parser().parse_args(words)
    except SystemExit as done:  # --help and --version
        return int(done.code or 0)
    _use_defaults(arguments)
    arguments.program = program
    command: Callable[[argparse.Namespace], int] = arguments.command
    return command(arguments)


def _failed(error: WattridgeError, as_json: bool = False) -> int:
    """Say what failed, where it can still be said; the exit status."""
    try:
        if as_json:
            print_json(error.as_json())
            sys.stdout.flush()
            return error.exit_code
    except OSError:
        pass
    say(f"wattridge: {error}")
    return error.exit_code


def _of_system(error: OSError) -> WattridgeError:
    """What the operating system refused, in one line. Without a file it was the output (a full disk, mostly)."""
    said = error.strerror or str(error) or type(error).__name__
    if error.filename is None:
        return WattridgeError(f"writing failed: {said}", "output", "free space, or send the output elsewhere")
    where = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else str(error.filename)
    kind = InputError if error.errno in (errno.ENAMETOOLONG, errno.ENOENT, errno.EISDIR, errno.ENOTDIR) else None
    return (kind or WattridgeError)(said, where, "check the path, its permissions and the free space")


def _split(words: list[str]) -> tuple[list[str], list[str]]:
    """Our words, and for `measure` those of the program after `--`, which are none of ours."""
    if "measure" not in words or "--" not in words[words.index("measure") :]:
        return words, []
    at = words.index("--", words.index("measure"))
    return words[:at], words[at + 1 :]


def _call(module: str, function: str) -> Callable[[argparse.Namespace], int]:
    """A command by name, imported when it runs: `wattridge gpus` need not load what `tune` needs."""

    def run(arguments: argparse.Namespace) -> int:
        import importlib

        command: Callable[[argparse.Namespace], int] = getattr(
            importlib.import_module(f".commands.{module}", __package__), function
        )
        return command(arguments)

    return run


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="wattridge",
        description="Shows what a GPU draws while it works, and finds where it does the most work per joule. "
        "Without a command it opens the window.",
    )
    parser.add_argument("--version", action="version", version=f"wattridge {__version__}")
    _add_board(parser)
    parser.add_argument(
        "--specification",
        dest="window_specification",
        metavar="SPEC",
        help="open a specification or a recording in the window",
    )
    parser.set_defaults(command=_window)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command_name")

    def add(name: str, help_text: str, run: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=help_text, description=help_text)
        command.add_argument("--json", action="store_true", help="one JSON document on standard output")
        command.set_defaults(command=run)
        return command

    demo = add("demo", "the GEMM example on the simulated A100: in the window, or here without a display", _demo)
    _add_board(demo)
    _add_search(demo)
    demo.add_argument("--no-window", action="store_true", help="stay in the terminal even with a display")

    gpus = add("gpus", "the boards that answer, and what they tell", _call("watch", "gpus"))
    gpus.add_argument("--verbose", action="store_true", help="also what each board does not tell, and why")

    monitor = add("monitor", "watch a board for a while without a window", _call("watch", "monitor"))
    _add_board(monitor)
    monitor.add_argument("--duration", type=float, metavar="S", help="seconds to watch (default 10)")
    monitor.add_argument("--interval", type=float, default=0.02, metavar="S", help="seconds between readings (0.02)")
    monitor.add_argument("--out", metavar="FILE", help="write every reading to this file: .json, else CSV")
    monitor.add_argument(
        "--openmetrics", metavar="[HOST]:PORT", help="serve every figure for Prometheus until Ctrl+C (loopback)"
    )
    monitor.add_argument("--record", metavar="FILE", help="keep a recording that --gpu recorded:FILE replays")

    measure = add("measure", "time, energy and power of any program, as perf stat counts", _call("measure", "measure"))
    measure.usage = "wattridge measure [--gpu G[,G]] [--repeats N] [--subtract-idle] [--json] -- PROGRAM [ARGUMENT ...]"
    measure.add_argument("--gpu", metavar="GPU,...", help="one GPU or several: an index, a UUID, simulated:NAME, ...")
    measure.add_argument("--sim-seed", type=int, default=0, metavar="N", help="seed of a simulated board's noise")
    measure.add_argument("--repeats", type=_positive_int, default=1, metavar="N", help="run it so often (default 1)")
    measure.add_argument(
        "--subtract-idle",
        "--idle",
        action="store_true",
        help="also what it draws above the power before it started",
    )

    tune = add("tune", "search a specification's space on a board", _call("search", "tune"))
    tune.add_argument("specification", nargs="?", metavar="SPEC", help="the specification, TOML or T1 (JSON)")
    tune.add_argument(
        "--resume",
        metavar="SESSION|FILE",
        help="go on with a stored session, or with SPEC where a cache, T4 results or a CSV file left off",
    )
    tune.add_argument(
        "--repeats",
        type=_positive_int,
        metavar="N",
        help="measure each configuration so often, and keep minimum, mean, maximum and deviation (default 1)",
    )
    _add_board(tune, speed=float("inf"))
    _add_search(tune)
    _add_control(tune)

    replay = add("replay", "search a recorded session instead of a board", _call("search", "replay"))
    replay.add_argument(
        "cache",
        metavar="FILE",
        help="a Kernel Tuner cache, T4 results or a session as CSV, plain or .gz, or h200-sgemm-session",
    )
    replay.add_argument(
        "--follow", action="store_true", help="show a cache while a tuner writes it, until that is done or Ctrl+C"
    )
    _add_search(replay)

    characterise = add(
        "characterise",
        "how fast and how sharp a board's power sources are, and which one to measure through",
        _call("characterise", "characterise"),
    )
    _add_board(characterise, speed=float("inf"))
    characterise.add_argument(
        "--show", action="store_true", help="what is known already, without running anything on the board"
    )

    space = add("space", "the size of a specification's search space", _call("space", "space"))
    space.add_argument("specification", metavar="SPEC", help="the specification, TOML or T1 (JSON)")
    space.add_argument("--gpu", metavar="GPU", help="the board whose limits and clocks count")

    score = add("score", "how good search strategies are on recorded caches", _call("score", "score"))
    score.add_argument("caches", nargs="+", metavar="CACHE", help="a cache in which every configuration was measured")
    score.add_argument("--strategy", metavar="NAME,...", help="the strategies (default: all)")
    score.add_argument(
        "--strategy-option", action="append", default=[], type=_key_value, metavar="K=V", help="an option of them all"
    )
    score.add_argument("--repeats", type=_positive_int, default=25, metavar="N", help="runs of each (default 25)")
    score.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the first run (default 1)")
    _add_goal(score)
    score.add_argument("--over-time", action="store_true", help="over the time that evaluating took, not evaluations")
    score.add_argument("--batch", type=_positive_int, default=1, metavar="N", help="rows asked for at once (default 1)")
    score.add_argument("--jobs", type=_positive_int, default=1, metavar="N", help="processes that share the work")

    fit = add("fit", "fit the frequency model and find the ridge", _call("fit", "fit"))
    fit.add_argument("file", nargs="?", metavar="FILE", help="a CSV, a cache, T4 results, or the number of a session")
    _add_board(fit, speed=float("inf"))
    fit.add_argument(
        "--points", type=int, default=10, metavar="N", help="at most so many clocks with --gpu (default 10)"
    )
    fit.add_argument("--uniform", action="store_true", help="clocks evenly spread, not each where it tells most")
    fit.add_argument("--memory-clocks", action="store_true", help="a sweep at each memory clock of the board")
    fit.add_argument("--caps", action="store_true", help="power limits too, and how they compare with clocks")
    _add_control(fit)
    for column in ("clock", "power", "time", "rate"):
        fit.add_argument(f"--{column}", metavar="COLUMN", help=f"the column or value that holds the {column}")
    fit.add_argument(
        "--transpose",
        action="store_true",
        help="the file has one row per application and a column of powers per clock; --rate or --time: such a file",
    )
    fit.add_argument("--series", metavar="KEY=VALUE", help="the device, kernel or configuration to take")

    methods = add(
        "compare-methods",
        "the ways to tune for energy side by side, on the same clocks",
        _call("methods", "compare_methods"),
    )
    methods.add_argument("source", metavar="SPEC|FILE|SESSION", help="a TOML specification, a cache, or a session")
    _add_board(methods, speed=float("inf"))
    methods.add_argument("--clocks", metavar="N|MHZ,...", help="so many, these, or 'supported' (the specification's)")
    methods.add_argument("--base-clock", type=float, metavar="MHZ", help="the base clock (the board's, where known)")
    methods.add_argument("--method", metavar="NAME,...", help="only these methods")
    _add_control(methods)

    roofline = add("roofline", "what a flop, a byte and a second cost on a board", _call("roofline", "roofline"))
    roofline.add_argument(
        "file",
        nargs="?",
        metavar="FILE",
        help="a recorded sweep, a CSV, or the number of a session (default: all on file, and published boards)",
    )
    _add_board(roofline, speed=float("inf"))
    roofline.add_argument("--precision", metavar="P,...", help="fp32,fp64 (default), fp16_tensor, bf16_tensor")
    roofline.add_argument("--predict", metavar="FLOP,BYTE|SESSION", help="time, power and energy of a kernel")

    export = add("export", "write a session, or a file of one, in other formats", _call("take_away", "export"))
    export.add_argument(
        "source",
        nargs="?",
        metavar="SESSION|FILE",
        help="a session's number (default: the newest), a cache, T4 results, a CSV file, or a specification",
    )
    export.add_argument("--configuration", metavar="NAME=VALUE,...", help="the configuration (default: the best)")
    kinds = ("json", "header", "script", "csv", "cache", "t4", "t1")
    export.add_argument("--kind", action="append", choices=kinds, help="only these files")
    export.add_argument("--gpu", metavar="GPU", help="the board whose limits a specification's T1 has")
    export.add_argument("--out", metavar="FOLDER", help="where to write (default: the data folder)")

    apply = add("apply", "set a board's clocks and power limit, and see whether it obeys", _call("control", "apply"))
    _add_board(apply)
    apply.add_argument("--clock", type=_clocks, metavar="MHZ", help="the graphics clock, or a range as LOW:HIGH")
    apply.add_argument("--memory-clock", type=_positive_float, metavar="MHZ", help="the memory clock")
    apply.add_argument("--power-limit", type=_positive_float, metavar="W", help="the power limit")
    apply.add_argument("--profile", metavar="NAME", help="settings that were kept under this name in the window")
    apply.add_argument("--session", type=int, metavar="SESSION", help="take them from a configuration of this session")
    apply.add_argument("--configuration", metavar="NAME=VALUE,...", help="that configuration (default: the best)")
    apply.add_argument("--keep", action="store_true", help="confirm at once: they stay until `wattridge restore`")
    apply.add_argument(
        "--countdown", type=_positive_float, default=10.0, metavar="S", help="put back unless confirmed by then (10)"
    )
    apply.add_argument("--out", metavar="FOLDER", help="set nothing: write a script and a systemd unit that do")
    _add_control(apply)

    restore = add("restore", "put back what was set, also after a crash or a power cut", _call("control", "restore"))
    restore.add_argument("--gpu", metavar="GPU", help="this board only (default: every board that needs it)")
    restore.add_argument(
        "--defaults",
        action="store_true",
        help="where the record cannot be read: unlock the clocks, set the default power limit",
    )

    helper = add("helper", "show, install or remove the helper with root's rights", _call("helper", "helper"))
    helper.add_argument(
        "do", nargs="?", choices=("show", "install", "remove"), default="show", help="what to do (default: show)"
    )
    helper.add_argument("--print", action="store_true", help="only print the program that root would run for it")
    helper.add_argument(
        "--leave-records", action="store_true", help="remove it though a board cannot be put back; keep its record"
    )

    analyse = add(
        "analyse",
        "what a session tells: front, choices, correlations, importance, difficulty, drift, failures",
        _call("analyse", "analyse"),
    )
    analyse.add_argument("source", nargs="?", metavar="SESSION|FILE", help="a session (default: the newest) or a cache")
    _add_goal(analyse)
    _add_choosing(analyse)

    report = add("report", "a session as one HTML file, to be read or printed", _call("report", "report"))
    report.add_argument("source", nargs="?", metavar="SESSION|FILE", help="a session (default: the newest) or a cache")
    report.add_argument("--out", metavar="FILE", help="the file (default: TITLE-report.html here)")
    report.add_argument(
        "--configuration", metavar="NAME=VALUE,...", help="the chosen configuration (default: the best)"
    )
    report.add_argument(
        "--compare",
        action="append",
        default=[],
        metavar="SESSION|FILE",
        help="another session or board to set it beside; may be repeated",
    )
    report.add_argument("--choose", metavar="NAME", help="or a way to choose it: fastest, least_energy, knee, ...")
    _add_goal(report)
    _add_choosing(report)

    compare = add("compare", "several sessions or boards side by side", _call("analyse", "compare"))
    compare.add_argument("sources", nargs="+", metavar="SESSION|FILE", help="numbers of sessions, or caches")
    compare.add_argument("--front", metavar="max:A,min:B", help="the figures of the Pareto fronts")

    strategies = add("strategies", "the search strategies and their options", _call("strategies", "strategies"))
    strategies.add_argument("name", nargs="?", metavar="NAME", help="one of them, with its options (default: all)")

    add("sessions", "the sessions kept on disk", _call("search", "sessions"))

    twin = add("twin", "a simulated board: with --truth what its sensors hide", _call("watch", "twin"))
    twin.add_argument("name", nargs="?", metavar="NAME", help="a name or a TOML file; without it, the names")
    twin.add_argument("--truth", action="store_true", help="true power, speed and energy at every clock")
    twin.add_argument("--workload", default="full_load", metavar="NAME", help="what runs (default full_load)")
    twin.add_argument("--power-limit", type=float, metavar="W", help="the power limit in force")
    _keep_defaults(parser, commands.choices.values())
    return parser


_EITHER_SIDE = {"gpu": "--gpu", "sim_seed": "--sim-seed", "speed": "--speed"}  # of the command, with the same meaning


def _keep_defaults(window: argparse.ArgumentParser, commands: Iterable[argparse.ArgumentParser]) -> None:
    """Hold back the defaults of options that may stand before the command: argparse lets a default win over them."""
    for parser in (*commands, window):
        options = [action for action in parser._actions if action.dest in _EITHER_SIDE]
        parser.set_defaults(kept_defaults={action.dest: action.default for action in options})
        for action in options:
            action.default = argparse.SUPPRESS


def _use_defaults(arguments: argparse.Namespace) -> None:
    """Complete the options, and refuse those before a command that has no use for them. Raises InputError."""
    command = arguments.command_name
    for name, flag in _EITHER_SIDE.items():
        if name in arguments and name not in arguments.kept_defaults:
            raise InputError(f"{flag} does not apply to `{command}`", "usage", f"see `wattridge {command} --help`")
    for name, default in arguments.kept_defaults.items():
        if name not in arguments:
            setattr(arguments, name, default)
    if command is not None and arguments.window_specification is not None:
        raise InputError(
            "--specification is for the window", f"before `{command}`", "name the file after the command instead"
        )


def _add_board(parser: argparse.ArgumentParser, speed: float = 1.0) -> None:
    parser.add_argument("--gpu", metavar="GPU", help="an index, a UUID, simulated:NAME or recorded:FILE")
    parser.add_argument("--sim-seed", type=int, default=0, metavar="N", help="seed of a simulated board's noise")
    parser.add_argument(
        "--speed",
        type=_speed,
        default=speed,
        metavar="X",
        help="seconds a simulated or recorded board lives per second; inf: as fast as it can be computed",
    )


def _add_search(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--strategy", metavar="NAME", help="the search strategy: see `wattridge strategies`")
    parser.add_argument(
        "--strategy-option", action="append", default=[], type=_key_value, metavar="K=V", help="an option of it"
    )
    parser.add_argument("--max-evaluations", type=_positive_int, metavar="N", help="measure at most so many")
    parser.add_argument("--max-seconds", type=_positive_float, metavar="S", help="search at most so long")
    parser.add_argument(
        "--patience", type=_positive_int, metavar="N", help="end after N evaluations without a better one"
    )
    _add_goal(parser)
    parser.add_argument("--seed", type=int, metavar="N", help="seed of the strategy")
    parser.add_argument("--out", metavar="FOLDER", help="export the best configuration into this folder")


def _add_choosing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--slower", type=float, default=5.0, metavar="PERCENT", help="'at most so much slower' (5)")
    parser.add_argument("--power", type=_positive_float, metavar="W", help="'at most so many watts'")
    parser.add_argument("--weight", type=float, default=0.5, metavar="A", help="a in a time + (1 - a) energy (0.5)")
    parser.add_argument("--hours", type=float, default=4380.0, metavar="H", help="load of a year in hours (4380)")
    parser.add_argument("--boards", type=_positive_int, default=1, metavar="N", help="on so many boards (1)")
    parser.add_argument("--price", type=_positive_float, metavar="P", help="price of a kWh")
    parser.add_argument("--currency", default="EUR", metavar="C", help="its currency (EUR)")
    parser.add_argument("--carbon", type=_positive_float, metavar="G", help="carbon intensity in g CO2 per kWh")


def _add_goal(parser: argparse.ArgumentParser) -> None:
    goal = parser.add_mutually_exclusive_group()
    goal.add_argument("--minimise", metavar="NAME", help="the figure to make small")
    goal.add_argument("--maximise", metavar="NAME", help="the figure to make large")
    parser.add_argument("--front", metavar="max:A,min:B", help="the figures of the Pareto front")


def _add_control(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--allow-control", action="store_true", help="set a real board's clocks and cap; the prior state returns"
    )


def _clocks(text: str) -> float | tuple[float, float]:
    low, separator, high = text.partition(":")
    if not separator:
        return _positive_float(text)
    ends = _positive_float(low), _positive_float(high)
    if ends[0] > ends[1]:
        raise argparse.ArgumentTypeError(f"'{text}' is not LOW:HIGH")
    return ends


def _speed(text: str) -> float:
    value = float(text)
    if not (0 < value <= _FASTEST or value == float("inf")):
        raise argparse.ArgumentTypeError(f"'{text}' is not above 0 and at most {_FASTEST:g}, nor inf")
    return value


_FASTEST = 100.0  # beyond it the physics of a simulated board cannot keep up with its own clock


def _positive_int(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not 1 or more")
    return value


def _positive_float(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}' is not a positive number")
    return value


def _key_value(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator or not key:
        raise argparse.ArgumentTypeError(f"'{text}' is not KEY=VALUE")
    return key, value


def _window(arguments: argparse.Namespace) -> int:
    """Open the window, or say in one line why it cannot be."""
    problem = _why_no_window()
    if problem is not None:
        raise problem
    specification = Path(arguments.window_specification) if arguments.window_specification else None
    return _open_window(
        arguments.gpu, seed=arguments.sim_seed, speed=arguments.speed, demo=False, specification=specification
    )


def _demo(arguments: argparse.Namespace) -> int:
    """The demo in the window where there is one to be had, else in the terminal."""
    if not arguments.json and not arguments.no_window:
        from .qt_libraries import has_display

        if has_display():
            problem = _why_no_window()
            if problem is None:
                gpu = arguments.gpu or "simulated:a100"
                speed = arguments.speed if arguments.speed != 1.0 else _DEMO_SPEED
                return _open_window(gpu, seed=arguments.sim_seed, speed=speed, demo=True, specification=None)
            say(f"wattridge: {problem}")
        else:
            say("No display here: the demo runs in the terminal.")
    return _call("search", "demo")(arguments)


_DEMO_SPEED = 10.0  # the simulated board lives ten times as fast as the wall, so that the demo takes half a minute


def _why_no_window() -> WattridgeError | None:
    from .qt_libraries import has_display, missing_packages

    if not has_display():
        return WattridgeError("no display", "window", "use wattridge monitor, tune, replay or fit here, or set DISPLAY")
    missing = missing_packages()
    if missing:
        return WattridgeError(
            "system libraries of Qt are missing", "window", f"sudo apt-get install {' '.join(missing)}"
        )
    return None


def _open_window(gpu: str | None, **options: Any) -> int:
    try:
        from .views.shell.app import run
    except ImportError as error:  # a library that our list does not know, or PySide6 itself
        raise WattridgeError(
            f"Qt does not load: {error}", "window", "install PySide6-Essentials and its libraries"
        ) from error
    return run(gpu, **options)


if __name__ == "__main__":
    raise SystemExit(main())
