"""Any program as a workload: `{name}` in its command line stands for a parameter, figures are read from its output.

The command line never passes a shell. The figures are found by the user's regular expressions. A pattern such as
`(a+)+$` takes exponential time on some texts, and `re` holds the interpreter's lock meanwhile, so that neither a time
limit nor Ctrl+C would be noticed: the search runs in a child process, which can be ended.
"""

from __future__ import annotations

import json
import math
import re
import shlex
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from ...base.errors import InputError
from ...base.processes import lone_module_command, original_environment
from ..results.measurement import Configuration, State, Value
from ..results.process import changed_environment
from ..specification.model import CommandSpec, Specification
from .subprocesses import Ended, run_process

_PLACE: Final = re.compile(r"\{(\w+)\}")


class CommandLine:
    """A command line that a specification holds; its program is looked for, and not run."""

    def __init__(self, text: str, folder: Path, where: str) -> None:
        """`folder` is the specification's. Raises InputError if it makes no sense or names no program."""
        self._folder = folder
        self._where = where
        try:
            self._words = shlex.split(text)
        except ValueError as error:
            raise InputError(f"not a command line: {error}", where, "close every quote") from None
        if not self._words:
            raise InputError("the command line is empty", where, "name a program")
        if not _PLACE.search(self._words[0]):
            self._words[0] = self._program(self._words[0])

    def words(self, scope: Mapping[str, Value]) -> list[str]:
        """The command line, word by word; names that are not in the scope stay. A value never becomes two words."""
        return fill_places(self._words, scope)

    def _program(self, name: str) -> str:
        """The program's path: one with a slash is relative to the specification."""
        path = str(self._folder / name) if "/" in name and not Path(name).is_absolute() else name
        program_path = shutil.which(path)
        if program_path is None:
            raise InputError(f"there is no program '{name}'", self._where, "give its name or its path")
        return program_path


def fill_places(words: list[str], scope: Mapping[str, Value]) -> list[str]:
    """The words with the values of the names that the scope has."""
    return [_PLACE.sub(lambda place: _text(scope[place[1]]) if place[1] in scope else place[0], word) for word in words]


def _text(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"  # as TOML writes it
    return str(value)


LIMIT_S: Final = 5.0  # for all patterns on one output
_LOOK_S: Final = 0.05  # between looks at `stop`


class TooSlow(Exception):
    """A pattern did not finish in time; `name` is its name."""

    def __init__(self, name: str, limit_s: float) -> None:
        super().__init__(f"{name}: the pattern takes longer than {limit_s:g} s on this output")
        self.name = name


def last_matches(
    patterns: Mapping[str, str], text: str, *, stop: threading.Event | None = None, limit_s: float | None = None
) -> dict[str, str | None] | None:
    """By name the first group of each pattern's last match, None if it does not match; None where `stop` was set.

    Raises TooSlow after `limit_s` (LIMIT_S), and OSError if the child process does not start.
    """
    limit_s = LIMIT_S if limit_s is None else limit_s
    process = subprocess.Popen(
        lone_module_command(f"{__package__}.matching_child"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl+C is for the session
    )
    deadline = time.monotonic() + limit_s
    ended = stopped = False
    question: bytes | None = json.dumps({"patterns": dict(patterns), "text": text}).encode("ascii")
    answer = b""
    try:
        while not ended and not stopped and time.monotonic() < deadline:
            try:
                answer, _ = process.communicate(question, timeout=_LOOK_S)
                ended = True
            except subprocess.TimeoutExpired:
                question = None  # it is on its way
                stopped = stop is not None and stop.is_set()
    finally:
        if not ended:
            process.kill()
            answer, _ = process.communicate()
    if stopped:
        return None
    result = dict(json.loads(line) for line in answer.decode("ascii").splitlines())
    missing = next((name for name in patterns if name not in result), None)
    if missing is not None and ended:
        raise OSError(f"the pattern of {missing} ended the search (exit status {process.returncode})")
    if missing is not None:
        raise TooSlow(missing, limit_s)
    return result


_SHOWN: Final = 2000  # characters of a failed program's last words


class CommandFailed(Exception):
    """One run that gave no figures: the configuration's state, and what is known of why."""

    def __init__(self, state: State, message: str) -> None:
        super().__init__(message)
        self.state = state


class Command:
    """A specification's command. It runs in the specification's folder, never through a shell, with nothing to read."""

    def __init__(self, spec: Specification) -> None:
        """Raises InputError if the command line makes no sense or names a program that is not there."""
        if spec.command is None:
            raise InputError("there is no [command]", str(spec.path), "add one with run = 'PROGRAM ARGUMENT ...'")
        self.spec: CommandSpec = spec.command
        self._constants = dict(spec.constants)
        self._environment = spec.environment
        self._folder = spec.path.resolve().parent
        self._line = CommandLine(self.spec.run, self._folder, f"{spec.path}: command.run")

    def words(self, configuration: Configuration) -> list[str]:
        """The command line of a configuration, word by word. A value never becomes two words, whatever it holds."""
        return self._line.words({**self._constants, **configuration})

    def run(
        self,
        configuration: Configuration,
        *,
        stop: threading.Event | None = None,
        now_ns: Callable[[], int] = time.monotonic_ns,
    ) -> Ended:
        """Run it once to its end, or to `stop`; the stamps are on the given clock. Raises CommandFailed."""
        environment = changed_environment(self._environment, configuration, original_environment())
        words, limit_s = self.words(configuration), self.spec.timeout_s
        return run_command(words, self._folder, limit_s, stop=stop, now_ns=now_ns, environment=environment)

    def values(self, ended: Ended, stop: threading.Event | None = None) -> dict[str, float] | None:
        """The figures in its output, as `figures_in` reads them."""
        return figures_in(self.spec.values, ended, stop)


def run_command(
    words: list[str],
    folder: Path,
    timeout_s: float,
    *,
    stop: threading.Event | None,
    now_ns: Callable[[], int],
    role: str = "",
    environment: Mapping[str, str] | None = None,
) -> Ended:
    """Run a program to its end, or to `stop`; the stamps are on the given clock.

    `environment` is the user's own if none is given. `role` names the program in the messages of CommandFailed, which
    is raised where it does not start, exceeds its time limit, or exits with another status than 0.
    """
    try:
        ended = run_process(
            words, folder=folder, timeout_s=timeout_s, stop=stop, now_ns=now_ns, environment=environment
        )
    except (OSError, ValueError) as error:  # ValueError: a NUL in a word
        raise CommandFailed(State.RUNTIME, f"{words[0]}: {getattr(error, 'strerror', None) or error}") from None
    if ended.timed_out and not ended.stopped:
        what = f"{role and f'{role} was '}ended after {timeout_s:g} s, its time limit"
        raise CommandFailed(State.TIMEOUT, with_last_words(what, ended))
    if ended.exit_status != 0 and not ended.stopped:
        raise CommandFailed(State.RUNTIME, with_last_words(f"{role and f'{role}: '}{ended.how}", ended))
    return ended


def figures_in(
    patterns: Mapping[str, str], ended: Ended, stop: threading.Event | None = None
) -> dict[str, float] | None:
    """The figures in a program's output: where a pattern matches several times, the last; None where `stop` was set.

    Raises CommandFailed, also where a pattern takes too long.
    """
    result: dict[str, float] = {}
    if not patterns:
        return result
    try:
        texts = last_matches(patterns, ended.output, stop=stop)
    except TooSlow as error:
        message = f"{error}: {patterns[error.name]} (avoid nested repetitions such as '(a+)+')"
        raise CommandFailed(State.TIMEOUT, message) from None
    except OSError as error:
        raise CommandFailed(State.RUNTIME, f"its output cannot be searched: {error.strerror or error}") from None
    if texts is None:
        return None
    for name, pattern in patterns.items():
        text = texts[name]
        try:
            result[name] = float(text or "")
        except ValueError:
            raise no_figure(name, text, pattern, ended) from None
    return {name: value for name, value in result.items() if not math.isnan(value)}


def with_last_words(what: str, ended: Ended) -> str:
    """What went wrong, and the end of what the program printed."""
    return with_output(what, ended.errors.strip() or ended.output)


def with_output(what: str, output: str) -> str:
    """What went wrong, and the end of an output that is not empty."""
    last = output.strip()[-_SHOWN:]
    return f"{what}\n{last}" if last else what


def no_figure(name: str, value: object, where: str, ended: Ended) -> CommandFailed:
    """The error for a figure whose value, None if there is none, is not a number."""
    what = "it is not in the output" if value is None else f"'{str(value)[:60]}' is no number"
    return CommandFailed(State.CORRECTNESS, with_last_words(f"{name}: {what} ({where})", ended))
