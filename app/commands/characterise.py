"""`wattridge characterise`: what a board's power sources are worth."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from ..errors import WattridgeError
from .arguments import add_board, board_of
from .terminal import ProgressBar, print_description, print_json, show, stop_on_interrupt

if TYPE_CHECKING:
    from ..engine.metering.characterisation.figures import Characterisation
    from ..engine.metering.launching import LaunchingGpu
    from ..sensors.gpu import Gpu


def characterise_arguments(parser: ArgumentParser) -> None:
    """Declare the options of `wattridge characterise`."""
    add_board(parser, speed=float("inf"))
    parser.add_argument(
        "--show", action="store_true", help="what is known already, without running anything on the board"
    )


def characterise(arguments: Namespace) -> int:
    """Drive a square wave of load on a board, or with --show print what an earlier one found."""
    from ..engine.metering.characterisation.description import describe_characterisation
    from ..engine.metering.characterisation.store import save_characterisation, stored_characterisation, to_json

    with board_of(arguments) as gpu:
        if arguments.show:
            found = stored_characterisation(gpu.info)
            if found is None:
                raise WattridgeError("not characterised yet", gpu.info.label, "run: wattridge characterise")
            file = None
        else:
            found = _run(gpu, arguments)
            file = save_characterisation(found)
    if arguments.json:
        print_json({**to_json(found), "files": [str(file)] if file else []})
        return 0
    print_description(describe_characterisation(found, gpu.info.label))
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
