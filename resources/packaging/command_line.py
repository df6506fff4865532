"""The command line as its own parser declares it: what manual pages and completions are made from."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Option:
    """An option, or what stands in its place without a flag."""

    flags: tuple[str, ...]  # none for what is named by where it stands
    value: str  # what follows, as the help names it; empty for a switch
    choices: tuple[str, ...]
    help: str


@dataclass(frozen=True, slots=True)
class Command:
    """One command; the empty name stands for the program without a command."""

    name: str
    about: str
    usage: str
    options: tuple[Option, ...]


def commands(parsers: Callable[[], Mapping[str, argparse.ArgumentParser]]) -> dict[str, Command]:
    """By name, in the order of the help. `parsers` is `command_parsers` of the program's `cli`."""
    found = parsers()
    return {name: _command(name, parser) for name, parser in found.items()}


def _command(name: str, parser: argparse.ArgumentParser) -> Command:
    options = []
    formatter = parser._get_formatter()
    for action in parser._actions:
        if action.help == argparse.SUPPRESS or isinstance(action, argparse._SubParsersAction):
            continue
        value = "" if action.nargs == 0 else formatter._format_args(action, _name_of(action))
        choices = tuple(str(each) for each in action.choices or ())
        shown = formatter._expand_help(action) if action.help else ""
        options.append(Option(tuple(action.option_strings), value, choices, " ".join(shown.split())))
    usage = " ".join(parser.format_usage().split()).removeprefix("usage: ")
    return Command(name, " ".join((parser.description or "").split()), usage, tuple(options))


def _name_of(action: argparse.Action) -> str:
    return action.dest.upper() if action.option_strings else action.dest
