"""`wattridge kernel-tuner SCRIPT.py`: a script that imports `kernel_tuner`, run unchanged through this program.

It runs the script, as Python would: only what the user names here is ever run.
"""

from __future__ import annotations

import argparse
import runpy
import sys
import traceback
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ..base.errors import InputError, WattridgeError
from ..base.files import is_input
from .arguments import add_control, add_meters, meter_choice, positive_float, positive_int
from .terminal import say, say_lines

if TYPE_CHECKING:
    from ..scripting.surroundings import Run

_HERE = str(Path(__file__).parents[1])


def kernel_tuner_arguments(parser: ArgumentParser) -> None:
    """Declare the options of `wattridge kernel-tuner`."""
    parser.usage = "wattridge kernel-tuner [OPTION ...] SCRIPT.py [ARGUMENT ...]"
    parser.add_argument("script", metavar="SCRIPT", help="the script, which is run as Python runs it")
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="ARGUMENT", help="arguments of the script")
    parser.add_argument("--gpu", metavar="GPU", help="in place of the device that the script names")
    parser.add_argument("--sim-seed", type=int, default=0, metavar="N", help="seed of a simulated board's noise")
    parser.add_argument("--profile", default="", metavar="NAME", help="how a simulated board costs the kernels")
    parser.add_argument("--energy", action="store_true", help="measure energy too where a script asks for time alone")
    parser.add_argument("--max-evaluations", type=positive_int, metavar="N", help="of each session of the script")
    parser.add_argument("--max-seconds", type=positive_float, metavar="S", help="of each session of the script")
    parser.add_argument("--window", action="store_true", help="watch its sessions in the window")
    add_meters(parser)
    add_control(parser)


def kernel_tuner(arguments: Namespace, run: Run | None = None) -> int:
    """Run the script; its exit status. Raises InputError if there is none, and what this program refuses.

    `run` is who runs its sessions, where that is a window.
    """
    from ..engine.metering.external_meters import NO_METERS
    from ..scripting.stand_in import standing_for_kernel_tuner
    from ..scripting.surroundings import Surroundings, running_with
    from .control import guard_of

    path = Path(arguments.script)
    if not is_input(path):
        raise InputError("there is no such script", arguments.script, "name a Python file")
    around = Surroundings(
        gpu=arguments.gpu,
        sim_seed=arguments.sim_seed,
        profile=arguments.profile,
        energy=arguments.energy,
        meters=meter_choice(arguments) or NO_METERS,
        guard=lambda gpu: guard_of(gpu, arguments, by="script"),
        max_evaluations=arguments.max_evaluations,
        max_seconds=arguments.max_seconds,
        **({} if run is None else {"run": run}),
    )
    with _as_main(path, arguments.words), standing_for_kernel_tuner(), running_with(around):
        try:
            runpy.run_path(str(path), run_name="__main__")
        except SystemExit as end:
            return _status(end)
        except (WattridgeError, KeyboardInterrupt, BrokenPipeError):
            raise
        except BaseException as error:  # noqa: BLE001  (the script's own: it is shown as Python shows it)
            say_lines(_of_the_script(error))
            return 1
    return 0


@contextmanager
def _as_main(path: Path, words: list[str]) -> Iterator[None]:
    """The script's own arguments, and imports from beside it."""
    argv, folders = sys.argv, list(sys.path)
    sys.argv = [str(path), *words]
    sys.path.insert(0, str(path.resolve().parent))
    try:
        yield
    finally:
        sys.argv, sys.path[:] = argv, folders


def _status(end: SystemExit) -> int:
    if isinstance(end.code, int) or end.code is None:
        return int(end.code or 0)
    say(str(end.code))
    return 1


def _of_the_script(error: BaseException) -> str:
    """The script's fault as Python shows it, without the lines of this program above and below it."""
    frames = [item for item in traceback.extract_tb(error.__traceback__) if not _is_machinery(item.filename)]
    lines = traceback.format_list(frames) + traceback.format_exception_only(error)
    return "Traceback (most recent call last):\n" + "".join(lines)


def _is_machinery(file: str) -> bool:
    return file.startswith((_HERE, "<frozen")) or Path(file).name == "runpy.py"
