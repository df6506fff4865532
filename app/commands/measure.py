"""`wattridge measure -- PROGRAM ...`: time, energy and power of any program, as `perf stat` counts."""

from __future__ import annotations

import math
import shlex
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, Final

from ..base.errors import InputError, WattridgeError
from ..base.formatting import duration, number
from .arguments import positive_int
from .terminal import Stop, print_description, print_json, say, stop_on_interrupt

if TYPE_CHECKING:
    from ..engine.metering.confidence import Interval
    from ..engine.metering.external_meters import Beside
    from ..engine.metering.span import Span
    from ..engine.metering.watching import Watch
    from ..engine.metering.window import SourcePower
    from ..engine.results.description import Description
    from ..engine.workloads.subprocesses import Ended

IDLE_S: Final = 2.0
GRACE_S: Final = 3.0  # an interrupt from the terminal reaches the program too; it may end by itself
_STANDARD_ERROR: Final = 2
_LABELS: Final = {
    "time_s": "Time",
    "energy_j": "Energy",
    "mean_power_w": "Mean power",
    "peak_power_w": "Peak power",
    "energy_above_idle_j": "Energy above idle",
}


def measure_arguments(parser: ArgumentParser) -> None:
    """Declare the options of `wattridge measure`."""
    parser.usage = (
        "wattridge measure [--gpu G[,G]] [--repeats N] [--subtract-idle] [--meter METER] [--json]"
        " -- PROGRAM [ARGUMENT ...]"
    )
    parser.add_argument("--gpu", metavar="GPU,...", help="one GPU or several: an index, a UUID, simulated:NAME, ...")
    parser.add_argument(
        "--meter", action="append", default=[], metavar="METER", help="also by this meter: see `wattridge meters`"
    )
    parser.add_argument("--sim-seed", type=int, default=0, metavar="N", help="seed of a simulated board's noise")
    parser.add_argument("--repeats", type=positive_int, default=1, metavar="N", help="run it so often (default 1)")
    parser.add_argument(
        "--subtract-idle",
        "--idle",
        action="store_true",
        help="also what it draws above the power before it started",
    )


def measure(arguments: Namespace) -> int:
    """Run a program and report what the boards drew meanwhile. A program that fails is status 1."""
    if not arguments.program:
        raise InputError("no program", "measure", "name one: wattridge measure -- PROGRAM [ARGUMENT ...]")
    names = [text.strip() for text in arguments.gpu.split(",")] if arguments.gpu else [None]
    if len(set(names)) < len(names):
        raise InputError("a GPU is named twice", "--gpu", "name each once")
    with ExitStack() as stack:
        watches = [_watched(name, arguments.sim_seed, stack) for name in names]
        beside = stack.enter_context(_beside(watches[0], arguments.meter))
        idle = _idle(watches) if arguments.subtract_idle else None
        runs: list[list[Span]] = []
        by_meters: list[Mapping[str, SourcePower]] = []  # of each run
        failure: Ended | None = None
        with stop_on_interrupt() as stop:
            while len(runs) < arguments.repeats and failure is None:
                ended = _run(arguments.program, watches, stop, quiet=arguments.json)
                runs.append(_spans(watches, ended))
                if beside is not None:
                    by_meters.append(beside.seen(ended.start_ns, ended.end_ns, steady=False))
                failure = ended if ended.exit_status or ended.stopped else None
    document = _document(arguments.program, runs, idle)
    document["meters"] = _of_meters(by_meters, [spans[0].time_s for spans in runs])
    if failure is not None and arguments.json:
        raise _failed(failure, arguments.program)
    if arguments.json:
        print_json(document)
    else:
        print_description(_describe(document))
        for note in document["notes"]:
            say(note)
    if failure is not None:
        raise _failed(failure, arguments.program)
    return 0


def _watched(name: str | None, seed: int, stack: ExitStack) -> Watch:
    from ..engine.metering.watching import watch
    from ..sensors.select import open_gpu

    found = watch(name, lambda text: open_gpu(text, seed=seed, voltage=False, remote=True))
    stack.callback(found.release)
    return found


def _beside(watch: Watch, selectors: Sequence[str]) -> AbstractContextManager[Beside | None]:
    from ..engine.metering.external_meters import MeterChoice, put_beside

    return put_beside(watch.gpu, MeterChoice(tuple(selectors)))


def _of_meters(runs: Sequence[Mapping[str, SourcePower]], times_s: Sequence[float]) -> dict[str, dict[str, Any]]:
    """What each meter reports, means over the runs."""
    document: dict[str, dict[str, Any]] = {}
    for name in runs[0] if runs else ():
        seen = [each[name] for each in runs]
        document[name] = {
            "energy_j": fmean(each.power_w * time_s for each, time_s in zip(seen, times_s, strict=True)),
            "mean_power_w": fmean(each.power_w for each in seen),
            "meter": seen[0].words,
            "note": "; ".join(dict.fromkeys(each.said for each in seen if each.said)) or None,
        }
    return document


def _run(words: Sequence[str], watches: Sequence[Watch], stop: Stop, *, quiet: bool) -> Ended:
    """The program, with this terminal. With --json its output goes to standard error, for ours is the document."""
    from ..engine.workloads.subprocesses import run_process

    try:
        return run_process(
            words,
            capture=False,
            output_to=_STANDARD_ERROR if quiet else None,
            stop=stop,
            grace_s=lambda: GRACE_S if stop.interrupted else 0.0,
            now_ns=watches[0].gpu.clock.now_ns,
        )
    except OSError as error:
        raise InputError(
            f"the program does not start: {error.strerror or error}", words[0], "give its name or its path"
        ) from None


def _spans(watches: Sequence[Watch], ended: Ended) -> list[Span]:
    """Boards that answer here live on the host's clock, so the stamps count for all of them."""
    from ..engine.metering.span import read_span

    return [read_span(each, ended.start_ns, ended.end_ns) for each in watches]


def _idle(watches: Sequence[Watch]) -> tuple[float, Interval | None]:
    """What the boards draw together before the program starts, W, with its interval.

    Raises WattridgeError where that is not known.
    """
    from ..engine.metering.span import read_span

    begun = [each.gpu.clock.now_ns() for each in watches]
    watches[0].gpu.clock.wait(IDLE_S)
    spans = [read_span(each, at, each.gpu.clock.now_ns()) for each, at in zip(watches, begun, strict=True)]
    for span in spans:
        if span.unknown:
            raise WattridgeError(f"idle power is not known: {span.unknown}", span.gpu, "leave --subtract-idle out")
    return sum(span.mean_power_w for span in spans), _summed([span.power_interval_w for span in spans])


def _failed(ended: Ended, words: Sequence[str]) -> WattridgeError:
    what = "stopped" if ended.stopped else f"the program failed: {ended.how}"
    return WattridgeError(what, _shown(words), "see what it printed")


def _shown(words: Sequence[str]) -> str:
    text = shlex.join(words)
    return text if len(text) <= 120 else f"{text[:117]}..."


# --- the figures ------------------------------------------------------------------------------------------------------


def _document(
    words: Sequence[str], runs: Sequence[Sequence[Span]], idle: tuple[float, Interval | None] | None
) -> dict[str, Any]:
    """Means over the runs with minimum, maximum, deviation (from two runs on) and 95 % interval.

    The interval is Student's t over the runs, and never narrower than that of the power readings themselves.
    """
    from ..engine.metering.confidence import interval_of_repeats, not_negative

    per_run: dict[str, Callable[[Sequence[Span]], float]] = {
        "time_s": lambda spans: spans[0].time_s,
        "energy_j": lambda spans: sum(span.energy_j for span in spans),
        "mean_power_w": lambda spans: sum(span.mean_power_w for span in spans),
        "peak_power_w": _peak_w,
    }
    own = {
        "energy_j": [_summed([span.energy_interval_j for span in each]) for each in runs],
        "mean_power_w": [_summed([span.power_interval_w for span in each]) for each in runs],
    }
    spans = runs[0]
    condition = ", ".join(span.stated_for.words for span in spans if span.stated_for is not None)
    if condition:
        per_run["energy_at_condition_j"] = lambda spans: sum(span.energy_at_condition_j for span in spans)
        own["energy_at_condition_j"] = [
            _summed([span.energy_at_condition_interval_j for span in each]) for each in runs
        ]
    if idle is not None:
        idle_w, idle_interval = idle
        per_run["energy_above_idle_j"] = lambda spans: sum(s.energy_j for s in spans) - idle_w * spans[0].time_s
        own["energy_above_idle_j"] = [
            _summed([energy, idle_interval and (-idle_interval[1] * time_s, -idle_interval[0] * time_s)])
            for energy, time_s in zip(own["energy_j"], (each[0].time_s for each in runs), strict=True)
        ]
    document: dict[str, Any] = {
        "program": list(words),
        "gpu": ", ".join(span.gpu for span in spans),
        "source": ", ".join(dict.fromkeys(span.source for span in spans)),
        "repeats": len(runs),
    }
    for name, figure in per_run.items():
        values = [figure(each) for each in runs]
        known = [value for value in values if not math.isnan(value)]
        complete = len(known) == len(values)
        document[name] = fmean(known) if complete else math.nan
        intervals = [each for each in own.get(name, ()) if each is not None]
        interval = interval_of_repeats(known, intervals) if complete else None
        if interval is not None and name != "energy_above_idle_j":  # which is a difference, and can be negative
            interval = not_negative(interval)
        document[f"{name}_interval"] = interval
        document[f"{name}_min"], document[f"{name}_max"] = (min(known), max(known)) if complete else (None, None)
        document[f"{name}_deviation"] = stdev(known) if complete and len(known) > 1 else None
    if idle is not None:
        document["idle_power_w"] = idle[0]
    document.setdefault("energy_at_condition_j", None)
    document["condition"] = condition or None
    unknown = dict.fromkeys(span.unknown for each in runs for span in each if span.unknown)
    document["energy_unknown"] = "; ".join(unknown) or None
    document["power_source"] = ", ".join(dict.fromkeys(span.power_source for span in spans))
    document["gpus"] = [_board([each[at] for each in runs]) for at in range(len(spans))]
    document["runs"] = [{name: figure(each) for name, figure in per_run.items()} for each in runs]
    notes = [
        f"{span.gpu} is {span.source}: a program draws nothing there, so its power is the "
        + ("idle simulated board's" if span.source == "simulated" else "recording's")
        for span in spans
        if span.source in ("simulated", "recorded")
    ]
    document["notes"] = [*notes, *dict.fromkeys(line for each in runs for span in each for line in span.faults)]
    return document


def _summed(intervals: Sequence[Interval | None]) -> Interval | None:
    """The interval of a sum of independent figures, from theirs; None where one is not known."""
    known = [each for each in intervals if each is not None]
    if not known or len(known) < len(intervals):
        return None
    middle = sum((low + high) / 2 for low, high in known)
    half = math.hypot(*((high - low) / 2 for low, high in known))
    return middle - half, middle + half


def _peak_w(spans: Sequence[Span]) -> float:
    """The largest power reported; of several boards, of their sum at the first one's times."""
    import numpy as np

    if len(spans) == 1 or any(span.unknown for span in spans):
        return sum(span.peak_power_w for span in spans)
    times_s = spans[0].times_s
    return float(sum(np.interp(times_s, span.times_s, span.power_w) for span in spans).max())  # type: ignore[union-attr]


def _board(spans: Sequence[Span]) -> dict[str, Any]:
    """One board over all the runs."""
    reasons: dict[str, float] = {}
    for span in spans:
        for name, seconds in span.event_reasons_s.items():
            reasons[name] = reasons.get(name, 0.0) + seconds
    return {
        "gpu": spans[0].gpu,
        "source": spans[0].source,
        "label": spans[0].label,
        "energy_j": fmean(span.energy_j for span in spans),
        "mean_power_w": fmean(span.mean_power_w for span in spans),
        "peak_power_w": max(span.peak_power_w for span in spans),
        "graphics_clock_mhz": {
            "mean": fmean(span.clock_mhz.mean for span in spans),
            "min": min(span.clock_mhz.minimum for span in spans),
            "max": max(span.clock_mhz.maximum for span in spans),
        },
        "temperature_c": fmean(span.temperature_c for span in spans),
        "event_reasons_s": reasons,
    }


def _describe(document: dict[str, Any]) -> Description:
    from ..engine.formats.names import unit_of
    from ..engine.results.description import Description, Figure, Listing

    labels = dict(_LABELS)
    if document["condition"]:
        labels["energy_at_condition_j"] = f"Energy at {document['condition']}"
    named = [(key, label, unit_of(key, {})) for key, label in labels.items() if key in document]
    figures = [
        Figure(label, document[name], unit, interval=document[f"{name}_interval"]) for name, label, unit in named
    ]
    if "idle_power_w" in document:
        figures.append(Figure("Idle power before it started", document["idle_power_w"], "W"))
    for board in document["gpus"]:
        of = ""
        if len(document["gpus"]) > 1:
            of = f", {board['gpu']}"
            figures.append(Figure(f"Energy{of}", board["energy_j"], "J"))
        clock = board["graphics_clock_mhz"]
        span = f"from {number(clock['min'])} to {number(clock['max'])}"
        figures += [
            Figure(f"Graphics clock{of}", clock["mean"], "MHz", span),
            Figure(f"Temperature{of}", board["temperature_c"], "°C"),
            *(Figure(f"{reason}{of}", duration(seconds)) for reason, seconds in board["event_reasons_s"].items()),
        ]
    figures.append(Figure("Power from", document["power_source"]))
    for name, meter in document["meters"].items():
        note = meter["note"] or meter["meter"]
        figures.append(Figure(f"Energy by {name}", meter["energy_j"], "J", note=note))
        figures.append(Figure(f"Mean power by {name}", meter["mean_power_w"], "W"))
    runs = document["repeats"]
    kinds = ("min", "max", "deviation")
    rows = [[label, *(document[f"{key}_{kind}"] for kind in kinds), unit] for key, label, unit in named]
    spread = Listing("Over the runs", ("", "minimum", "maximum", "deviation", "unit"), rows)
    unknown = document["energy_unknown"]
    return Description(
        title=_shown(document["program"]),
        origin=f"{', '.join(board['label'] for board in document['gpus'])}, {runs} run{'s' if runs > 1 else ''}",
        figures=figures,
        listings=[spread] if runs > 1 else [],
        remarks=[f"energy is not known: {unknown}"] if unknown else [],
    )
