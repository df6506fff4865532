"""The command `wattridge`: without a command it opens the window; every command works without one."""

from __future__ import annotations

import argparse
import difflib
import errno
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Any, Final, NoReturn

from . import __version__
from .base.configuration import options_of, setting, where
from .base.errors import InputError, LockedOutside, WattridgeError
from .base.processes import LOG, log_to, use_one_core
from .commands.arguments import add_board
from .commands.terminal import abandon_output, agrees, end_on_signals, prepare_streams, print_json, say


class _Parser(argparse.ArgumentParser):
    """Usage errors become InputError, so that `--json` can print them as a document."""

    def error(self, message: str) -> NoReturn:
        raise InputError(message, self.prog.removeprefix("wattridge").strip(), f"see `{self.prog} --help`")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        near = _nearest(str(value), map(str, action.choices))
        if isinstance(action, argparse._SubParsersAction):
            self.error(f"there is no command '{value}'{near}")
        choices = ", ".join(map(str, action.choices))
        raise argparse.ArgumentError(action, f"'{value}' is not one of {choices}{near}")


def _nearest(word: str, candidates: Iterable[str]) -> str:
    """The known word that `word` resembles, as the end of a message; empty if none does."""
    near = difflib.get_close_matches(word, list(candidates), 1)
    return f"; did you mean '{near[0]}'?" if near else ""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status: 0 done, 1 failed, 2 bad input or usage."""
    use_one_core()
    prepare_streams()
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        with end_on_signals():
            return _guarded(words, "--json" in _of_ours(words))
    finally:
        abandon_output()  # what could not be written must not fail again at the interpreter's end


def _guarded(words: list[str], as_json: bool) -> int:
    """Run, and say in one line what failed, whatever it was."""
    try:
        log_to(setting("WATTRIDGE_LOG"))
        LOG.debug("wattridge %s", " ".join(words))
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
        if isinstance(error.__cause__, SystemExit):  # of a signal's handler, within code in C
            raise error.__cause__ from None
        if os.environ.get(_TRACEBACK) == "1":
            raise
        what = f"a fault in Wattridge: {type(error).__name__}: {error}"
        return _failed(WattridgeError(what, "", f"please report it, with what {_TRACEBACK}=1 adds"), as_json)


_TRACEBACK = "WATTRIDGE_TRACEBACK"


def _run(words: list[str]) -> int:
    words, program = split_program(words)
    if words[:1] == ["help"]:
        words = [*words[1:2], "--help"]
    try:
        arguments, left = make_parser().parse_known_args(words)
    except SystemExit as done:  # --help and --version
        return int(done.code or 0)
    if left:
        _refuse(left, arguments)
    _use_defaults(arguments)
    arguments.program = program
    command: Callable[[argparse.Namespace], int] = arguments.command
    if arguments.command_name == "demo":
        return _demo(arguments)
    if arguments.command_name == "kernel-tuner" and arguments.window:
        return _script_in_window(arguments)
    try:
        return command(arguments)
    except LockedOutside as locked:
        once_more = f"{locked.where}: {locked.what}. Set it all the same, and leave it unlocked?"
        if arguments.json or arguments.command_name == "kernel-tuner" or not agrees(once_more):  # a script has begun
            raise
    arguments.over_locks = True
    return command(arguments)


def _refuse(left: Sequence[str], arguments: argparse.Namespace) -> NoReturn:
    """Name the unrecognised arguments and the most similar options. Raises InputError."""
    command: str = arguments.command_name or ""
    if command in ("measure", "profile") and not left[0].startswith("-"):
        remedy = f"a program stands after --: wattridge {command} -- {' '.join(left)}"
        raise InputError(f"'{left[0]}' is no option", command, remedy)
    flags = [flag for flag in arguments.known_flags if flag.startswith("--")]
    near = _nearest(left[0].partition("=")[0], flags) if left[0].startswith("--") else ""
    see = f"see `wattridge {command} --help`" if command else "see `wattridge --help`"
    raise InputError(f"not understood: {' '.join(left)}{near}", command, see)


def _failed(error: WattridgeError, as_json: bool = False) -> int:
    """Print what failed, if output is still possible, and return the exit status."""
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
    reason = error.strerror or str(error) or type(error).__name__
    if error.filename is None:
        return WattridgeError(f"writing failed: {reason}", "output", "free space, or send the output elsewhere")
    where = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else str(error.filename)
    kind = InputError if error.errno in (errno.ENAMETOOLONG, errno.ENOENT, errno.EISDIR, errno.ENOTDIR) else None
    return (kind or WattridgeError)(reason, where, "check the path, its permissions and the free space")


def _of_ours(words: list[str]) -> list[str]:
    """Those words that are no arguments of a script."""
    return words[: words.index("kernel-tuner")] if "kernel-tuner" in words else words


_RUN_PROGRAMS = ("check", "measure", "profile", "savings")


def split_program(words: list[str]) -> tuple[list[str], list[str]]:
    """Our words, and for some commands those of the program after `--`, which are not parsed."""
    begun = next((place for place, word in enumerate(words) if word in _RUN_PROGRAMS), len(words))
    if "--" not in words[begun:]:
        return words, []
    index = words.index("--", begun)
    return words[:index], words[index + 1 :]


# By task: the module of `commands` and the help. The module has the function, and the options in `NAME_arguments`.
_GROUPS: Final = {
    "First steps": {
        "demo": ("search", "the GEMM example on the simulated A100: in the window, or here without a display"),
        "examples": ("examples", "the specifications and scripts that come with the program, by name"),
        "doctor": ("doctor", "what is missing or wrong on this machine, and the remedy for each"),
        "install-desktop": (
            "install_desktop",
            "the program in this user's desktop menu; with --remove out of it again",
        ),
    },
    "Watch boards": {
        "gpus": ("watch", "the boards that answer, and what they report"),
        "monitor": ("watch", "watch a board for a while without a window"),
        "mark": ("watch", "set a named mark now in every recording that is running"),
        "idle": ("idle", "what a board draws while nothing works on it, and what a year of that costs"),
        "meters": ("meters", "the power meters that are here, and what they report"),
        "twin": ("watch", "a simulated board: with --truth what its sensors hide"),
    },
    "Measure and model": {
        "measure": ("measure", "time, energy and power of any program, as perf stat counts"),
        "check": ("check", "whether B needs more joules than A: commands, functions, kernels, commits, in turns"),
        "savings": ("savings", "what can be saved as you are: levers in turns with the untouched state, as a table"),
        "verify": ("verify", "whether every figure of an energy test's evidence file follows from its samples"),
        "profile": ("profile", "where the joules of a program go: kernels, ranges and gaps, with intervals"),
        "characterise": (
            "characterise",
            "how fast and how sharp a board's power sources are, and which one to measure through",
        ),
        "roofline": ("roofline", "what a flop, a byte and a second cost on a board"),
        "fit": ("fit", "fit the frequency model and find the ridge"),
    },
    "Tune": {
        "tune": ("search", "search a specification's space on a board"),
        "new": ("new", "a specification of a CUDA kernel, to begin with: what its source says, and guesses"),
        "space": ("space", "the size of a specification's search space"),
        "operators": ("operators", "operators of neural networks to be tuned by kind and shape, with examples"),
        "strategies": ("strategies", "the search strategies and their options"),
        "replay": ("search", "search a recorded session instead of a board"),
        "kernel-tuner": ("kernel_tuner", "run a script that imports kernel_tuner, unchanged, through Wattridge"),
    },
    "Look at results": {
        "sessions": ("search", "the sessions kept on disk"),
        "analyse": (
            "analyse",
            "what a session shows: front, choices, correlations, importance, difficulty, drift, failures",
        ),
        "compare": ("analyse", "several sessions or boards side by side"),
        "counters": ("counters", "hardware counters of a session's configurations, profiled in a pass of their own"),
        "report": ("report", "a session as one HTML file, to be read or printed"),
        "export": ("export", "write a session, or a file of one, in other formats"),
    },
    "Set clocks and limits": {
        "apply": ("control", "set a board's clocks and power limit, and see whether it obeys"),
        "restore": ("control", "put back what was set, also after a crash"),
        "helper": ("helper", "show, install or remove the helper with root's rights"),
    },
    "Judge ways to tune": {
        "compare-methods": ("methods", "the ways to tune for energy side by side, on the same clocks"),
        "score": ("score", "how good search strategies are on recorded caches"),
    },
    "Other machines and programs": {
        "serve-board": (
            "serve_board",
            "send what a board reports to a Wattridge on another machine, which starts this",
        ),
        "serve-energy": (
            "serve_energy",
            "joules of any stretch of time, for programs in C, C++ and Fortran (wattridge.h)",
        ),
        "pool": ("pool", "certificates and scheduler of a pool of boards, and which boards it has"),
        "worker": ("pool", "offer this machine's boards to a pool"),
        "mcp": (
            "mcp",
            "let an assistant watch, tune and report, by the Model Context Protocol; it never sets a real board",
        ),
        "schema": ("schema", "what each command prints with --json, as a JSON Schema"),
    },
}
_COMMANDS: Final = {name: item for group in _GROUPS.values() for name, item in group.items()}
_ALSO: Final = {"analyse": ["analyze"], "characterise": ["characterize"]}  # as spelled in American English


class _Command(_Parser):
    """One command. Its module is imported when it is chosen: `wattridge gpus` need not load what `tune` needs."""

    def __init__(self, module: str = "", function: str = "", **options: Any) -> None:
        super().__init__(**options)
        self._module, self._function = module, function

    def declare(self) -> None:
        """Add the command's options, with its module."""
        module = import_module(f".commands.{self._module}", __package__)
        self.add_argument("--json", action="store_true", help="one JSON document on standard output")
        getattr(module, f"{self._function}_arguments", lambda _parser: None)(self)
        flags = tuple(self._option_string_actions)
        self.set_defaults(command=getattr(module, self._function), known_flags=flags)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self.declare()
        self._use_file(sys.argv[1:] if args is None else args)
        _hold_back_defaults(self)
        return super().parse_known_args(args, namespace)

    def _use_file(self, words: Sequence[str]) -> None:
        """Take the command's options in the configuration file as defaults. Raises InputError.

        One that the words of the command line exclude is left out.
        """
        name = self.prog.rpartition(" ")[2]
        said = tuple(word.partition("=")[0] for word in words if word.startswith("--") and word != "--")
        excluded = {
            action.dest
            for group in self._mutually_exclusive_groups
            if any(flag.startswith(said) for action in group._group_actions for flag in action.option_strings)
            for action in group._group_actions
        }
        for key, value in options_of(name, _COMMANDS).items():
            action = self._option_string_actions.get(f"--{key.replace('_', '-')}")
            if action is None or action.dest in _SAID_EACH_TIME:
                why = "is said on the command line, each time" if action else f"is no option of `{name}`"
                raise InputError(f"'{key}' {why}", where(name), f"remove it; see `wattridge {name} --help`")
            if action.nargs == 0 or isinstance(value, bool):
                if not (action.nargs == 0 and isinstance(value, bool)):
                    raise InputError(f"'{key}' is {value!r}", where(name), "true or false for a flag, else its value")
                self.set_defaults(**{action.dest: value})
                continue
            several = isinstance(action.default, list) or action.nargs == "+"
            try:
                items = [self._get_value(action, str(each)) for each in (value if isinstance(value, list) else [value])]
                for item in items:
                    self._check_value(action, item)
            except argparse.ArgumentError as error:
                raise InputError(f"'{key}': {error.message}", where(name), "correct it") from None
            if action.dest not in excluded:
                self.set_defaults(**{action.dest: items if several else items[0] if items else None})


_SAID_EACH_TIME: Final = ("help", "json", "allow_control", "over_locks", "force")


def command_parsers() -> dict[str, argparse.ArgumentParser]:
    """The program's parser under "", and that of each command under its name; every module is imported."""
    whole = make_parser()
    (commands,) = (action for action in whole._actions if isinstance(action, argparse._SubParsersAction))
    named = {name: commands.choices[name] for name in _COMMANDS}
    for parser in named.values():
        parser.declare()
    return {"": whole, **named}


class _Program(_Parser):
    """The program's own parser: its help lists the commands by task."""

    def format_help(self) -> str:
        width = max(40, shutil.get_terminal_size().columns - 2)
        lines = [super().format_help().rstrip()]
        for title, group in _GROUPS.items():
            lines += ["", f"{title}:"]
            lines += [
                textwrap.fill(what, width, initial_indent=f"  {name:<16}  ", subsequent_indent=" " * 20)
                for name, (_, what) in group.items()
            ]
        return "\n".join([*lines, "", "wattridge COMMAND --help describes one of them.", ""])


def make_parser() -> argparse.ArgumentParser:
    """The command line: the window's options, and the commands."""
    parser = _Program(
        prog="wattridge",
        description="Shows what a GPU draws while it works, and finds where it does the most work per joule. "
        "Without a command it opens the window.",
    )
    parser.add_argument("--version", action="version", version=f"wattridge {__version__}")
    add_board(parser)
    parser.add_argument(
        "--specification",
        dest="window_specification",
        metavar="SPEC",
        help="open a specification or a recording in the window",
    )
    parser.set_defaults(command=_window, known_flags=tuple(parser._option_string_actions))
    _hold_back_defaults(parser)
    commands = parser.add_subparsers(
        metavar="COMMAND", dest="command_name", parser_class=_Command, help="one of those below"
    )
    for name, (module, what) in _COMMANDS.items():
        function, also = name.replace("-", "_"), _ALSO.get(name, [])
        commands.add_parser(name, aliases=also, description=what, module=module, function=function)
    return parser


_EITHER_SIDE = {"gpu": "--gpu", "sim_seed": "--sim-seed", "speed": "--speed"}  # of the command, with the same meaning


def _hold_back_defaults(parser: argparse.ArgumentParser) -> None:
    """Hold back the defaults of options that may stand before the command: argparse lets a default win over them."""
    options = [action for action in parser._actions if action.dest in _EITHER_SIDE]
    parser.set_defaults(held_defaults={action.dest: action.default for action in options})
    for action in options:
        action.default = argparse.SUPPRESS


def _use_defaults(arguments: argparse.Namespace) -> None:
    """Complete the options, and refuse those before a command that has no use for them. Raises InputError."""
    command = arguments.command_name
    for name, flag in _EITHER_SIDE.items():
        if name in arguments and name not in arguments.held_defaults:
            raise InputError(f"{flag} does not apply to `{command}`", "usage", f"see `wattridge {command} --help`")
    for name, default in arguments.held_defaults.items():
        if name not in arguments:
            setattr(arguments, name, default)
    if command is not None and arguments.window_specification is not None:
        raise InputError(
            "--specification is for the window", f"before `{command}`", "name the file after the command instead"
        )


def _window(arguments: argparse.Namespace) -> int:
    """Open the window, or say in one line why it cannot be."""
    problem = _why_no_window()
    if problem is not None:
        raise problem
    from .engine.session.named import specification_path

    specification = specification_path(arguments.window_specification) if arguments.window_specification else None
    return _open_window(
        arguments.gpu, seed=arguments.sim_seed, speed=arguments.speed, demo=False, specification=specification
    )


def _demo(arguments: argparse.Namespace) -> int:
    """The demo in the window where there is one to be had, else in the terminal."""
    if not arguments.json and not arguments.no_window:
        from .base.installation import has_display

        if has_display():
            problem = _why_no_window()
            if problem is None:
                gpu = arguments.gpu or "simulated:a100"
                return _open_window(gpu, seed=arguments.sim_seed, speed=arguments.speed, demo=True, specification=None)
            say(f"wattridge: {problem}")
        else:
            say("No display here: the demo runs in the terminal.")
    command: Callable[[argparse.Namespace], int] = arguments.command
    return command(arguments)


def _script_in_window(arguments: argparse.Namespace) -> int:
    """A script beside the window that shows its sessions; the script's exit status once the window is closed."""
    problem = _why_no_window()
    if problem is not None:
        raise problem
    ended = [0]

    def script(run: Any) -> None:
        ended[0] = _guarded_call(lambda: arguments.command(arguments, run))

    status = _open_window(arguments.gpu, seed=arguments.sim_seed, speed=1.0, demo=False, script=script)
    return ended[0] or status


def _guarded_call(call: Callable[[], int]) -> int:
    """The status of a call, and what failed in one line."""
    try:
        return call()
    except WattridgeError as error:
        return _failed(error)
    except KeyboardInterrupt:
        say("wattridge: stopped")
        return 1


def _why_no_window() -> WattridgeError | None:
    from .base.installation import why_no_display, why_no_libraries

    return why_no_display() or why_no_libraries()


def _open_window(gpu: str | None, **options: Any) -> int:
    try:
        from .views.shell.app import run
    except ImportError as error:  # a library that our list does not know, or PySide6 itself
        raise WattridgeError(f"Qt does not load: {error}", "window", "see what is missing: wattridge doctor") from error
    return run(gpu, **options)


if __name__ == "__main__":
    raise SystemExit(main())
