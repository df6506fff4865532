"""`wattridge measure -- PROGRAM ...`: time, energy and power of any program, as `perf stat` counts."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING, Final

from ..base.errors import InputError, WattridgeError
from ..base.formatting import duration, number
from .arguments import positive_int
from .terminal import Stop, print_description, print_json, say, stop_on_interrupt

if TYPE_CHECKING:
    from ..engine.metering.confidence import Interval
    from ..engine.metering.external_meters import Beside
    from ..engine.metering.over_runs import ProgramEnergy
    from ..engine.metering.span import Span
    from ..engine.metering.watching import Watch
    from ..engine.metering.window import SourcePower
    from ..engine.results.description import Description
    from ..engine.workloads.subprocesses import Ended

IDLE_S: Final = 2.0
GRACE_S: Final = 3.0  # an interrupt from the terminal reaches the program too; it may end by itself
_STANDARD_ERROR: Final = 2


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
    from ..engine.metering.over_runs import program_energy

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
    measured = program_energy(arguments.program, runs, idle, by_meters)
    if failure is not None and arguments.json:
        raise _failed(failure, arguments.program)
    if arguments.json:
        print_json(measured)
    else:
        print_description(_describe(measured))
        for note in measured.notes:
            say(note)
    if failure is not None:
        raise _failed(failure, arguments.program)
    return 0


def _watched(name: str | None, seed: int, stack: ExitStack) -> Watch:
    from ..engine.metering.watching import watch
    from ..sensors.select import open_gpu

    result = watch(name, lambda text: open_gpu(text, seed=seed, voltage=False, remote=True))
    stack.callback(result.release)
    return result


def _beside(watch: Watch, selectors: Sequence[str]) -> AbstractContextManager[Beside | None]:
    from ..engine.metering.external_meters import MeterChoice, put_beside

    return put_beside(watch.gpu, MeterChoice(tuple(selectors)))


def _run(words: Sequence[str], watches: Sequence[Watch], stop: Stop, *, quiet: bool) -> Ended:
    """The program, with this terminal. With --json its output goes to standard error, for ours is the document."""
    from ..engine.metering.watching import mark_all
    from ..engine.workloads.subprocesses import run_process

    mark_all(watches)
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

    return [read_span(value, ended.start_ns, ended.end_ns) for value in watches]


def _idle(watches: Sequence[Watch]) -> tuple[float, Interval | None]:
    """What the boards draw together before the program starts, W, with its interval.

    Raises WattridgeError if that is not known.
    """
    from ..engine.metering.over_runs import sum_interval
    from ..engine.metering.span import read_span

    begun = [item.gpu.clock.now_ns() for item in watches]
    watches[0].gpu.clock.wait(IDLE_S)
    spans = [read_span(item, begun_ns, item.gpu.clock.now_ns()) for item, begun_ns in zip(watches, begun, strict=True)]
    for span in spans:
        if span.unknown:
            raise WattridgeError(f"idle power is not known: {span.unknown}", span.gpu, "leave --subtract-idle out")
    return sum(span.mean_power_w for span in spans), sum_interval([span.power_interval_w for span in spans])


def _failed(ended: Ended, words: Sequence[str]) -> WattridgeError:
    what = "stopped" if ended.stopped else f"the program failed: {ended.how}"
    return WattridgeError(what, _shown(words), "see what it printed")


def _shown(words: Sequence[str]) -> str:
    text = shlex.join(words)
    return text if len(text) <= 120 else f"{text[:117]}..."


# --- the figures ------------------------------------------------------------------------------------------------------


def _describe(energy: ProgramEnergy) -> Description:
    from ..engine.results.description import Description, Figure, Listing, figures_of

    labelled = figures_of(energy, energy_at_condition_j=f"Energy at {energy.condition}")
    figures = list(labelled.values())
    for board in energy.gpus:
        of = ""
        if len(energy.gpus) > 1:
            of = f", {board.gpu}"
            figures.append(Figure(f"Energy{of}", board.energy_j, "J"))
        clock = board.graphics_clock_mhz
        figures += [
            Figure(f"Graphics clock{of}", clock.mean, "MHz", f"from {number(clock.min)} to {number(clock.max)}"),
            Figure(f"Temperature{of}", board.temperature_c, "°C"),
            *(Figure(f"{reason}{of}", duration(seconds)) for reason, seconds in board.event_reasons_s.items()),
        ]
    figures.append(Figure("Power from", energy.power_source))
    for name, meter in energy.meters.items():
        figures.append(Figure(f"Energy by {name}", meter.energy_j, "J", note=meter.note or meter.meter))
        figures.append(Figure(f"Mean power by {name}", meter.mean_power_w, "W"))
    spreads = [(value, getattr(energy, name)) for name, value in labelled.items() if name != "idle_power_w"]
    rows = [[each.label, over.min, over.max, over.deviation, each.unit] for each, over in spreads]
    several = energy.repeats > 1
    return Description(
        title=_shown(energy.program),
        origin=f"{', '.join(board.label for board in energy.gpus)}, {energy.repeats} run{'s' if several else ''}",
        figures=figures,
        listings=[Listing("Over the runs", ("", "minimum", "maximum", "deviation", "unit"), rows)] if several else [],
        remarks=[f"energy is not known: {energy.energy_unknown}"] if energy.energy_unknown else [],
    )
