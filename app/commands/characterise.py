"""`wattridge characterise`: what a board's power sources are worth."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from ..errors import WattridgeError
from .terminal import ProgressBar, print_json, print_table, say, show, stop_on_interrupt

if TYPE_CHECKING:
    from ..engine.metering.characterisation.figures import Characterisation
    from ..engine.metering.launching import LaunchingGpu
    from ..sensors.gpu import Gpu

GAIN = "The gain of a board's sensor may be off by up to 5 %; only an external meter can show it."


def characterise(arguments: Namespace) -> int:
    """Drive a square wave of load on a board, or with --show print what an earlier one found."""
    from ..engine.metering.characterisation.store import save_characterisation, stored_characterisation, to_json
    from ..sensors.select import open_gpu

    gpu = open_gpu(arguments.gpu, seed=arguments.sim_seed, speed=arguments.speed)
    try:
        if arguments.show:
            found = stored_characterisation(gpu.info)
            if found is None:
                raise WattridgeError("not characterised yet", gpu.info.label, "run: wattridge characterise")
            file = None
        else:
            found = _run(gpu, arguments)
            file = save_characterisation(found)
    finally:
        gpu.close()
    if arguments.json:
        print_json({**to_json(found), "files": [str(file)] if file else []})
        return 0
    _print(found, gpu)
    if file is not None:
        show(f"kept: {file}")
    return 0


def _run(gpu: Gpu, arguments: Namespace) -> Characterisation:
    from ..engine.metering.characterisation.characterise import characterise as drive
    from ..engine.metering.characterisation.characterise import wave_loads

    bar = ProgressBar(quiet=arguments.json)
    with stop_on_interrupt() as stopped, _board(gpu) as board:
        found = drive(
            board,
            wave_loads(board),
            on_progress=lambda done_s, all_s: bar.show(round(done_s), round(all_s), "s of a square wave of load"),
            stop=stopped,
        )
    if found is None:
        raise WattridgeError("stopped before anything was known", gpu.info.label, "let it run to its end")
    bar.show(1, 1, "done", final=True)
    return found


@contextmanager
def _board(gpu: Gpu) -> Iterator[LaunchingGpu]:
    """The board, able to run loads. Raises WattridgeError where it cannot."""
    from ..engine.metering.launching import require_launching

    if gpu.info.source != "nvml":
        yield require_launching(gpu)
        return
    from ..engine.runner.cuda.open import require_cuda
    from ..engine.runner.cuda.square_wave import WaveGpu

    require_cuda(gpu)
    with closing(WaveGpu(gpu)) as board:
        yield board


def _print(found: Characterisation, gpu: Gpu) -> None:
    from ..engine.metering.characterisation.figures import WORDS, in_ms

    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(found.timestamp_s))
    show(f"{gpu.info.label}, driver {found.driver}, {when}, {found.seconds:.0f} s under {found.load}")
    rows = []
    for name, figures in found.sources.items():
        if figures is not None:
            cumulative = figures.window_ms is None
            cells = (
                in_ms(figures.refresh_ms),
                "cumulative" if cumulative else in_ms(figures.window_ms or 0.0, figures.window_margin_ms),
                in_ms(figures.lag_ms, figures.lag_margin_ms),
                in_ms(figures.settle_ms),
            )
            rows.append((WORDS[name], *cells, figures.noise_percent, figures.read_us))
    print_table(rows, ("source", "new every ms", "averages ms", "lags ms", "settles ms", "scatter %", "read costs µs"))
    buffer = found.sources["buffer"]
    if buffer is not None and buffer.published_ms is not None:
        show(f"the buffer's samples appear together, about every {buffer.published_ms:.0f} ms")
    for name, why in found.missing.items():
        show(f"{WORDS[name]}: not available, {why}")
    if found.counter_ratio is not None:
        against = f"the integral of {WORDS[found.chosen]}"
        show(f"the energy counter rises by {found.counter_ratio * 100:.2f} % of {against}")
    if found.aftereffect is not None:
        show(found.aftereffect.words)
    show(f"measures through: {found.words}, in windows of {found.measure_ms / 1e3:.2g} s")
    show(f"why: {found.why}")
    show(GAIN)
    for note in found.notes:
        say(f"note: {note}")
