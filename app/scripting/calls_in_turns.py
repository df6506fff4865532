"""Python functions measured in blocks of calls, one after another or two of them in turns."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from ..base.errors import WattridgeError
from ..engine.analysis.in_turns import ERROR, THRESHOLD, Block, InTurns, Side, Verdict, compare_in_turns, turns
from ..engine.metering.meter import RISE_S, least_window_s
from ..engine.metering.span import read_span
from ..engine.metering.watching import Watch
from ..engine.runner.function import Repeated, call_repeatedly, find_timer

LEAST_S: Final = 0.3  # of a block

Call = Callable[[], object]


def blocks_of_calls(
    calls: Mapping[Side, Call], sides: Iterable[Side], watch: Watch, stop: threading.Event | None = None
) -> Iterator[Block]:
    """Measure blocks of calls, each for as long as the board's power source needs.

    The device is waited for where PyTorch or CuPy is in use. A block is yielded once the next one has run, so that the
    board does not idle while its sensor catches up.

    Parameters
    ----------
    calls : mapping
        What is called for each side; each is called once before.
    sides : iterable of 'A' or 'B'
        The order of the blocks.
    watch : Watch
        The watched board.
    stop : threading.Event or None, optional
        Ends the blocks when set.

    Yields
    ------
    Block
        Time and energy of one call, with the samples of the block.

    Raises
    ------
    WattridgeError
        Where the energy of a block is not known.
    """
    for call in calls.values():
        call()  # compiles, allocates, fills caches
    timer, sensor = find_timer(), watch.sensor()
    least_s = LEAST_S if sensor is None else max(LEAST_S, least_window_s(sensor))
    ran: tuple[Side, Repeated] | None = None
    for side in sides:
        watch.mark()
        run = call_repeatedly(
            calls[side], timer, watch.gpu.clock.now_ns, rise_s=RISE_S, least_s=least_s, most_s=least_s, stop=stop
        )
        if ran is not None:
            yield _block(watch, *ran)
        ran = None if run is None else (side, run)
        if run is None:
            return
    if ran is not None:
        yield _block(watch, *ran)


def compare_calls(
    calls: Mapping[Side, Call],
    watch: Watch,
    *,
    threshold: float = THRESHOLD,
    error: float = ERROR,
    seconds: float = 60.0,
    stop: threading.Event | None = None,
) -> tuple[InTurns, list[Block]]:
    """Measure two functions in turns until it is known whether B needs more joules than A.

    Parameters
    ----------
    calls : mapping
        What is called for A and for B.
    watch : Watch
        The watched board.
    threshold : float, optional
        By how much B may need more, relative.
    error : float, optional
        The probability that the interval ever misses the difference.
    seconds : float, optional
        How long to measure at most, s on the board's clock.
    stop : threading.Event or None, optional
        Ends it when set.

    Returns
    -------
    compared : InTurns
        What is known.
    blocks : list of Block
        What it is known from.

    Raises
    ------
    WattridgeError
        Where the energy of a block is not known.
    """
    blocks: list[Block] = []
    compared = compare_in_turns(blocks, threshold, error)
    for block in blocks_of_calls(calls, turns(), watch, stop):
        blocks.append(block)
        if len(blocks) % 2 == 0:
            compared = compare_in_turns(blocks, threshold, error)
            if compared.verdict is not Verdict.OPEN or compared.seconds >= seconds:
                break
    return compared, blocks


def _block(watch: Watch, side: Side, run: Repeated) -> Block:
    span = read_span(watch, run.start_ns, run.end_ns)
    if span.unknown:
        raise WattridgeError(f"energy is not known: {span.unknown}", watch.gpu.info.label, "see `wattridge gpus`")
    return Block(
        side,
        run.start_ns / 1e9,
        run.end_ns / 1e9,
        span.time_s / run.calls,
        span.energy_j / run.calls,
        work=run.calls,
        evidence=span.evidence,
    )
