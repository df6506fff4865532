"""`wattridge compare-methods`: the ways to tune for energy side by side, on the same clocks."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.errors import InputError, WattridgeError
from ..engine.session.named import is_specification, recording_path, session_number, specification_path
from .arguments import add_board, add_control
from .terminal import ProgressBar, print_description, print_json, say

if TYPE_CHECKING:
    from ..engine.models.compare_methods import Methods


def compare_methods_arguments(parser: ArgumentParser) -> None:
    """Declare the options of `wattridge compare-methods`."""
    parser.add_argument("source", metavar="SPEC|FILE|SESSION", help="a TOML specification, a cache, or a session")
    add_board(parser, speed=float("inf"))
    parser.add_argument("--clocks", metavar="N|MHZ,...", help="so many, these, or 'supported' (the specification's)")
    parser.add_argument("--base-clock", type=float, metavar="MHZ", help="the base clock (the board's, where known)")
    parser.add_argument("--method", metavar="NAME,...", help="only these methods")
    add_control(parser)


def compare_methods(arguments: Namespace) -> int:
    """Measure a specification's space at every clock, or take a recording or a session, and compare the methods."""
    from ..engine.models.compare_methods import methods_of_recording, methods_of_store
    from ..engine.models.roofline.describe_sweeps import describe_methods
    from ..engine.store.database import Store

    wanted = _wanted(arguments.method)
    session = session_number(arguments.source)
    if session is not None:
        with Store() as store:
            methods = methods_of_store(store, session, base_mhz=arguments.base_clock, methods=wanted)
    elif is_specification(arguments.source):
        methods = _of_board(specification_path(arguments.source), arguments, wanted)
    else:
        methods = methods_of_recording(recording_path(arguments.source), base_mhz=arguments.base_clock, methods=wanted)
    if arguments.json:
        print_json(methods)
    else:
        print_description(describe_methods(methods))
    return 0


def _wanted(text: str | None) -> tuple[str, ...]:
    from ..engine.models.tuning_methods import METHODS

    if text is None:
        return tuple(METHODS)
    names = tuple(part.strip() for part in text.split(","))
    unknown = next((name for name in names if name not in METHODS), None)
    if unknown is not None:
        raise InputError(f"unknown method '{unknown}'", "--method", f"one of {', '.join(METHODS)}")
    return names


def _of_board(path: Path, arguments: Namespace, wanted: tuple[str, ...]) -> Methods:
    from ..engine.models.compare_methods import compare_methods as compare
    from ..engine.models.compare_methods import measured_rows, steer_by_sweep
    from ..engine.models.tuning_methods import base_clock_of
    from ..engine.session.load import load_specification
    from ..engine.session.planning import plan_specification
    from ..engine.specification.plan import SearchOptions
    from ..engine.store.database import Store
    from ..scripting.session_progress import watch_session
    from .control import guarded_board

    spec = load_specification(path)
    with guarded_board(arguments, by="compare-methods") as (gpu, guard):
        settings: dict[str, Any] = {}
        if arguments.clocks is not None:
            settings = {"graphics_clock_mhz": _clock_list(arguments.clocks, gpu.graphics_clocks_mhz())}
        elif "graphics_clock_mhz" not in spec.device_settings:
            settings = {"graphics_clock_mhz": _clock_list("7", gpu.graphics_clocks_mhz())}
        options = SearchOptions(strategy="brute_force", device_settings=settings)
        plan = plan_specification(spec, gpu, options, guard=guard)
        plan = replace(plan, max_evaluations=None, max_seconds=None, patience=None)
        steering = None
        if "model_steered" in wanted:
            bar = ProgressBar(quiet=arguments.json)
            steering = steer_by_sweep(
                gpu,
                guard=guard,
                on_progress=lambda done, total: bar.show(done, total, "clocks", final=done == total),
            )
        with Store() as store:
            result = watch_session(plan, store, quiet=arguments.json)
        say(f"session {result.session} holds every measurement")
        return compare(
            plan.space,
            measured_rows(result.table),
            gpu=plan.gpu,
            title=plan.title,
            source=plan.source,
            steering=steering,
            base_mhz=base_clock_of(gpu) if arguments.base_clock is None else arguments.base_clock,
            methods=wanted,
        )


def _clock_list(text: str, supported: Any) -> tuple[int, ...]:
    """'7' spreads so many over the supported clocks, 'supported' is all, '900,1005' those."""
    from ..engine.models.sweep import spread_clocks

    if text == "supported":
        return tuple(supported)
    try:
        values = [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"'{text}' names no clocks", "--clocks", "a number, a list of MHz, or supported") from None
    if len(values) > 1:
        return tuple(values)
    if not 2 <= values[0] <= max(2, len(supported)):
        raise WattridgeError(f"{values[0]} clocks cannot be spread", "--clocks", f"2 to {len(supported)}")
    return tuple(spread_clocks(supported, values[0], lowest_share=0.0))
