"""`wattridge idle`: what a board draws while nothing works on it, and what a year of that costs."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, Namespace

from ..base.errors import InputError
from .arguments import add_board, add_control, add_cost, positive_float
from .control import guarded_board
from .terminal import print_description, print_json, say, stop_on_interrupt


def idle_arguments(parser: ArgumentParser) -> None:
    """Declare the options of `wattridge idle`."""
    add_board(parser, speed=float("inf"))
    parser.add_argument("--seconds", type=positive_float, default=10.0, metavar="S", help="of each look (10)")
    parser.add_argument("--settle", type=positive_float, default=5.0, metavar="S", help="before each look (5)")
    parser.add_argument("--no-context", action="store_true", help="open no CUDA context")
    parser.add_argument("--with", dest="loaded", metavar="COMMAND", help="also with this program, which loads a model")
    parser.add_argument("--loads", type=positive_float, default=30.0, metavar="S", help="it takes so long to load (30)")
    parser.add_argument(
        "--memory-clocks", action="store_true", help="also at each memory clock, which needs --allow-control"
    )
    parser.add_argument(
        "--idle-hours", type=positive_float, default=8760.0, metavar="H", help="idle hours of a year (8760)"
    )
    add_cost(parser)
    add_control(parser)


def idle(arguments: Namespace) -> int:
    """Look at the board in every condition that was asked for; what is set is put back."""
    from ..engine.analysis.idle import IdleProgram, describe_idle, idle_document, study_idle
    from ..engine.analysis.tradeoff import HOURS_PER_YEAR, Load

    if arguments.idle_hours > HOURS_PER_YEAR:
        raise InputError(f"{arguments.idle_hours:g} hours a year", "--idle-hours", f"at most {HOURS_PER_YEAR:.0f}")
    load = Load(arguments.idle_hours, arguments.boards, arguments.price, arguments.currency, arguments.carbon)
    program = None
    if arguments.loaded is not None:
        program = IdleProgram(_command_line(arguments.loaded), loads_s=arguments.loads)
    with guarded_board(arguments, by="idle") as (gpu, guard), stop_on_interrupt() as stop:
        study = study_idle(
            gpu,
            guard,
            seconds=arguments.seconds,
            settle_s=arguments.settle,
            contexts=not arguments.no_context,
            program=program,
            memory_clocks=arguments.memory_clocks,
            stop=stop,
            progress=lambda look: say(f"looked: {look}"),
        )
    if arguments.json:
        print_json(idle_document(study, load))
    else:
        print_description(describe_idle(study, load))
    return 0 if study.looks else 1


def _command_line(text: str) -> list[str]:
    try:
        command = shlex.split(text)
    except ValueError as error:
        raise InputError(f"not a command line: {error}", "--with", "close every quote") from None
    if not command:
        raise InputError("the command line is empty", "--with", "name a program")
    return command
