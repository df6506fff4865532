"""`wattridge profile`: where the joules of a program go, while it runs or from a trace and the power of its time."""

from __future__ import annotations

import math
import shlex
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from ..base.errors import InputError, WattridgeError
from ..engine.session.named import recording_path
from .arguments import add_force
from .terminal import print_description, print_json, show, stop_on_interrupt

if TYPE_CHECKING:
    from ..engine.profile.attributed import AttributedTrace
    from ..engine.profile.compare_profiles import ProfileComparison
    from ..engine.profile.program_profile import ProgramProfile
    from ..sensors.recorded.logs.read import Log

_REMEDY = "name both, --trace FILE --power FILE; or a program: wattridge profile -- python train.py"


def profile_arguments(parser: ArgumentParser) -> None:
    """Declare the options of `wattridge profile`."""
    parser.usage = (
        "wattridge profile [--gpu GPU] [--seconds S] [--out FOLDER] -- PROGRAM [ARGUMENT ...]\n"
        "       wattridge profile --trace FILE --power FILE [--out FOLDER]\n"
        "       wattridge profile PROFILE [--against PROFILE]"
    )
    parser.add_argument("profile", nargs="?", metavar="PROFILE", help="a profile that was kept: .wprofile or JSON")
    parser.add_argument("--gpu", metavar="GPU", help="the board that a program runs on: an index, a UUID (first)")
    parser.add_argument("--seconds", type=float, metavar="S", help="end the program after so many seconds")
    parser.add_argument("--trace", metavar="FILE", help="a Chrome trace of PyTorch's profiler, .json or .json.gz")
    parser.add_argument(
        "--power",
        metavar="FILE",
        help="the power of the same time: a recording of `wattridge monitor --record`, or a log; FILE#N for board N",
    )
    parser.add_argument("--device", type=int, metavar="N", help="the board of the trace (default: the busiest)")
    parser.add_argument(
        "--offset", type=float, default=0.0, metavar="S", help="add so many seconds to the times of the trace (0)"
    )
    parser.add_argument("--interval", metavar="S", help="time between readings, where the log does not hold it")
    parser.add_argument("--against", metavar="PROFILE", help="compare with this profile, which was kept before")
    parser.add_argument("--out", metavar="FOLDER", help="write the profile, a trace for Perfetto, speedscope and CSV")
    add_force(parser)


def profile(arguments: Namespace) -> int:
    """Families, ranges and gaps with their joules; or two profiles compared."""
    from ..engine.profile.compare_profiles import compare_profiles
    from ..engine.profile.describe_profile import describe_comparison, describe_profile
    from ..engine.profile.export_profile import export_profile
    from ..engine.profile.kept_profile import keep_profile, read_profile

    attributed, failure = None, None
    given = [f"--{name}" for name in ("trace", "power", "out") if getattr(arguments, name) is not None]
    if arguments.profile is not None:
        if given or arguments.program:
            what = given[0] if given else arguments.program[0]
            raise InputError("it does not go with a profile that was kept", what, "leave one of them out")
        result = read_profile(recording_path(arguments.profile))[0]
    elif arguments.program:
        for option in {"--trace", "--power"}.intersection(given):
            raise InputError("it does not go with a program", option, "leave one of them out")
        (result, attributed), failure = _watched(arguments)
    else:
        result, attributed = _profiled(arguments)
    files = []
    if attributed is not None:
        try:
            files.append(keep_profile(result, attributed))
        except WattridgeError as problem:  # the profile is printed all the same
            failure = failure or problem
    if arguments.out is not None and attributed is not None:
        files += export_profile(result, attributed, Path(arguments.out), force=arguments.force)
    document: ProgramProfile | ProfileComparison = result
    description = describe_profile(result)
    if arguments.against is not None:
        document = compare_profiles(read_profile(Path(arguments.against))[0], result)
        description = describe_comparison(document)
    if arguments.json:
        print_json(document)
    else:
        print_description(description)
        if files:
            show(*map(str, files))
    if failure is not None:
        raise failure
    return 0


def _watched(arguments: Namespace) -> tuple[tuple[ProgramProfile, AttributedTrace], WattridgeError | None]:
    """The profile of a program, and what is to be said where it failed."""
    from ..engine.profile.live_profile import profile_program
    from ..sensors.select import open_gpu

    if arguments.seconds is not None and not 0 < arguments.seconds < math.inf:
        raise InputError(f"{arguments.seconds:g} s", "--seconds", "a positive number of seconds")
    with stop_on_interrupt() as stop:
        gpu = open_gpu(arguments.gpu, voltage=False)
        profiled, ended = profile_program(arguments.program, gpu, arguments.seconds, stop)
    if ended.exit_status == 0 or ended.timed_out or ended.stopped:
        return profiled, None
    return profiled, WattridgeError(f"the program failed: {ended.how}", shlex.join(arguments.program), "")


def _profiled(arguments: Namespace) -> tuple[ProgramProfile, AttributedTrace]:
    from ..engine.profile.aligned_power import align
    from ..engine.profile.attributed import attribute_trace
    from ..engine.profile.chrome_trace import read_chrome_trace

    for option in ("trace", "power"):
        if getattr(arguments, option) is None:
            raise InputError(
                f"a trace and the power of its time are needed, and --{option} is missing", "profile", _REMEDY
            )
    log = _log(arguments.power, arguments.interval)
    trace = read_chrome_trace(Path(arguments.trace), arguments.device)
    return attribute_trace(trace, align(trace, log.boards, arguments.power, arguments.offset), log.notes)


def _log(power: str, interval: str | None) -> Log:
    """The boards of a recording or log, or the one named behind '#', and what is to be known of the file."""
    from ..base.files import byte_chunks, is_input
    from ..sensors.recorded.gpu import is_own, open_recorded, read_any, seconds
    from ..sensors.recorded.logs.read import Log

    path = recording_path(power)
    if "#" in power and not is_input(path):
        return Log(path, "", (open_recorded(power, {}),), ())
    if not is_own(path) and next(byte_chunks(path), b"").lstrip()[:1] in (b"{", b"["):
        raise InputError("this is JSON, and no log of power", power, "name a recording, or a log such as nvidia-smi's")
    return read_any(path, None if interval is None else seconds(interval, "--interval"))
