"""`wattridge characterise`: what a board's power sources are worth."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Final

from ..base.errors import WattridgeError
from .arguments import add_board, board_of
from .terminal import ProgressBar, Stop, print_description, print_json, say, show, stop_on_interrupt

if TYPE_CHECKING:
    from ..engine.metering.characterisation.sensor_figures import Characterisation
    from ..engine.metering.launching import LaunchingGpu
    from ..sensors.gpu import Gpu

_AGAIN: Final = "the same command goes on from there"


def characterise_arguments(parser: ArgumentParser) -> None:
    """Declare the options of `wattridge characterise`."""
    add_board(parser, speed=float("inf"))
    parser.add_argument(
        "--show", action="store_true", help="what is known already, without running anything on the board"
    )
    parser.add_argument(
        "--when-idle", action="store_true", help="wait until the GPU idles, also between the parts of the look"
    )


def characterise(arguments: Namespace) -> int:
    """Look at a board's power sources under load, in parts that are kept, or with --show print what is known."""
    from ..engine.metering.characterisation.sensor_figures import describe_characterisation
    from ..engine.metering.characterisation.store import known_characterisation, to_json

    with board_of(arguments) as gpu:
        if arguments.show:
            characterisation = known_characterisation(gpu.info)
            if characterisation is None:
                raise WattridgeError("not characterised yet", gpu.info.label, "run: wattridge characterise")
            file = None
        else:
            characterisation, file = _run(gpu, arguments)
    if arguments.json:
        print_json({**to_json(characterisation), "files": [file] if file else []})
        return 0
    print_description(describe_characterisation(characterisation, gpu.info.label))
    if file is not None:
        show(f"kept: {file}")
    return 0


def _run(gpu: Gpu, arguments: Namespace) -> tuple[Characterisation, str]:
    """The look, and the file where it is kept. Raises WattridgeError if it was stopped before its end."""
    from ..engine.metering.characterisation.characterise import characterise as drive
    from ..engine.metering.characterisation.characterise import wave_loads
    from ..engine.metering.characterisation.store import one_look, save_characterisation, unfinished_characterisation

    bar, files = ProgressBar(quiet=arguments.json), []

    def progress(what: str, done_s: float, all_s: float) -> None:
        bar.show(round(done_s), round(all_s), f"s at most: {what}" if what else "s")

    with stop_on_interrupt() as stopped:
        if arguments.when_idle:  # before anything of ours is on the board, and before a session has to wait for it
            _await_idle(gpu, stopped)
        with one_look(gpu.info) as ours, _board(gpu) as board:
            if not ours:
                raise WattridgeError("another process looks at this GPU now", gpu.info.label, "wait until it has ended")
            known = unfinished_characterisation(gpu.info)
            if known is not None and known.parts:
                say(f"going on from what is kept: {', '.join(known.parts)}")
            characterisation = drive(
                board,
                wave_loads(board),
                characterisation=known,
                on_progress=progress,
                on_part=lambda part: files.append(str(save_characterisation(part))),
                before_part=(lambda: _await_idle(gpu, stopped)) if arguments.when_idle else None,
                stop=stopped,
            )
    if characterisation is None:
        raise WattridgeError("stopped before anything was known", gpu.info.label, "let it run to its end")
    if stopped.is_set() and not characterisation.complete:
        parts = ", ".join(characterisation.parts) or "the beginning of a quick look"
        raise WattridgeError(f"stopped; kept: {parts}", gpu.info.label, _AGAIN)
    bar.show(1, 1, "done", final=True)
    return characterisation, files[-1]


def _await_idle(gpu: Gpu, stopped: Stop) -> None:
    from ..engine.metering.characterisation.quick_look import IDLE_S, await_idle, is_busy

    if not gpu.clock.wait(1.0, stopped) and is_busy(gpu):  # by then the look's own load is no longer seen
        say(f"{gpu.info.label} is busy: waiting until it has idled for {IDLE_S:.0f} s")
    await_idle(gpu, stopped)


@contextmanager
def _board(gpu: Gpu) -> Iterator[LaunchingGpu]:
    """The board, able to run loads. Raises WattridgeError if it cannot."""
    from ..engine.metering.launching import require_launching

    if not gpu.info.live:
        yield require_launching(gpu)
        return
    from ..engine.runner.cuda.language import require_cuda
    from ..engine.runner.cuda.square_wave import WaveGpu

    require_cuda(gpu)
    with closing(WaveGpu(gpu)) as board:
        yield board
