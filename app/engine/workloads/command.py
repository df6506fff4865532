"""Any program as a workload: `{name}` in its command line stands for a parameter, figures are read from its output."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping
from typing import Final

from ...errors import InputError
from ..measurement import Configuration, State
from ..specification.model import CommandSpec, Specification
from .command_line import CommandLine
from .matching import TooSlow, last_matches
from .subprocesses import Ended, run_process

_SHOWN: Final = 2000  # characters of a failed program's last words


class CommandFailed(Exception):
    """One run that gave no figures: the configuration's state, and what is known of why."""

    def __init__(self, state: State, message: str) -> None:
        super().__init__(message)
        self.state = state


class Command:
    """A specification's command. It runs in the specification's folder, never through a shell, with nothing to read."""

    def __init__(self, spec: Specification) -> None:
        """Raises InputError where the command line makes no sense or names a program that is not there."""
        if spec.command is None:
            raise InputError("there is no [command]", str(spec.path), "add one with run = 'PROGRAM ARGUMENT ...'")
        self.spec: CommandSpec = spec.command
        self._constants = dict(spec.constants)
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
        words = self.words(configuration)
        try:
            ended = run_process(words, folder=self._folder, timeout_s=self.spec.timeout_s, stop=stop, now_ns=now_ns)
        except (OSError, ValueError) as error:  # ValueError: a NUL in a word
            reason = getattr(error, "strerror", None) or str(error)
            raise CommandFailed(State.RUNTIME, f"{words[0]}: {reason}") from None
        if ended.stopped:
            return ended
        if ended.timed_out:
            what = f"ended after {self.spec.timeout_s:g} s, its time limit"
            raise CommandFailed(State.TIMEOUT, with_last_words(what, ended))
        if ended.exit_status != 0:
            raise CommandFailed(State.RUNTIME, with_last_words(ended.how, ended))
        return ended

    def values(self, ended: Ended, stop: threading.Event | None = None) -> dict[str, float] | None:
        """The figures in its output, as `figures_in` reads them."""
        return figures_in(self.spec.values, ended, stop)


def figures_in(
    patterns: Mapping[str, str], ended: Ended, stop: threading.Event | None = None
) -> dict[str, float] | None:
    """The figures in a program's output: where a pattern matches several times, the last; None where `stop` was set.

    Raises CommandFailed, also where a pattern takes too long.
    """
    found: dict[str, float] = {}
    if not patterns:
        return found
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
            found[name] = float(text or "")
        except ValueError:
            what = "it is not in the output" if text is None else f"'{text[:60]}' is no number"
            message = with_last_words(f"{name}: {what} ({pattern})", ended)
            raise CommandFailed(State.CORRECTNESS, message) from None
    return {name: value for name, value in found.items() if not math.isnan(value)}


def with_last_words(what: str, ended: Ended) -> str:
    """What went wrong, and the end of what the program said."""
    said = (ended.errors.strip() or ended.output.strip())[-_SHOWN:]
    return f"{what}\n{said}" if said else what
