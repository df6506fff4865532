"""`wattridge meters`: the power meters that seem to be here, and what one of them reports."""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np

from .arguments import add_board, board_of, positive_float
from .terminal import ProgressBar, print_json, print_table, say, show, stop_on_interrupt

if TYPE_CHECKING:
    from ..sensors.meters.sampled import SampledMeter

_LOOK_S = 0.1


def meters_arguments(parser: ArgumentParser) -> None:
    """Declare the options of `wattridge meters`."""
    add_board(parser)
    parser.add_argument(
        "--meter", action="append", default=[], metavar="METER", help="read this one; may be given several times"
    )
    parser.add_argument("--duration", type=positive_float, default=5.0, metavar="S", help="seconds to read (default 5)")


def meters(arguments: Namespace) -> int:
    """List the meters, or read those that are named for a while and report each channel."""
    with board_of(arguments) as gpu:
        if not arguments.meter:
            return _list(arguments, gpu)
        from ..engine.metering.external_meters import shared_meter

        with ExitStack() as stack:
            sampled = [stack.enter_context(shared_meter(selector, gpu)) for selector in arguments.meter]
            begun_ns = gpu.clock.now_ns()
            begun = time.monotonic()
            bar = ProgressBar(quiet=arguments.json)
            with stop_on_interrupt() as stop:
                while (passed := time.monotonic() - begun) < arguments.duration and not stop.is_set():
                    bar.show(round(passed * 10), round(arguments.duration * 10), "")
                    stop.wait(_LOOK_S)
            bar.show(1, 1, "", final=True)
            described = [_describe(meter, begun_ns) for meter in sampled]
    if arguments.json:
        print_json(described)
        return 0
    for meter in described:
        counts = f"{meter['samples']} samples, {meter['missed']} missed"
        show(f"{meter['label']}: {counts}, as often as {meter['rate_hz']:.4g}/s")
        rows = [[name, c["mean"], c["min"], c["max"]] for name, c in meter["channels"].items()]
        print_table(rows, ("channel", "mean W", "min W", "max W"))
        if meter["margin_ms"]:
            show(f"its time stamps are late by {meter['margin_ms']:.2g} ms at most, by its marks")
    return 0


def _list(arguments: Namespace, gpu: Any) -> int:
    from ..sensors.meters.select import FORMS, find_meters

    matches = find_meters(gpu)
    if arguments.json:
        print_json([{"meter": match.selector, "label": match.label} for match in matches])
        return 0
    if matches:
        print_table([[match.selector, match.label] for match in matches], ("--meter", "what it seems to be"))
    else:
        say("No meter was found here.")
    say(f"What can be named: {FORMS}.")
    return 0


def _describe(meter: SampledMeter, since_ns: int) -> dict[str, Any]:
    meter.wait_until(since_ns, 0.5)
    columns = meter.record.trace.columns(since_ns, 1 << 62)
    channels = {}
    for channel in meter.channels:
        watts = columns[channel.name].astype(np.float64)
        watts = watts[np.isfinite(watts)]
        channels[channel.name] = {
            "label": channel.label,
            "mean": float(watts.mean()) if watts.size else None,
            "min": float(watts.min()) if watts.size else None,
            "max": float(watts.max()) if watts.size else None,
        }
    return {
        "meter": meter.info.kind,
        "label": meter.info.label,
        "scope": meter.info.scope,
        "rate_hz": 1.0 / meter.info.period_s,
        "samples": meter.record.count,
        "missed": meter.meter.missed,
        "margin_ms": 1e3 * meter.info.margin_s,
        "channels": channels,
    }
