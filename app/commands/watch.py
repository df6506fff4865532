"""`wattridge gpus`, `monitor` and `twin`: looking at boards, changing nothing.

`wattridge monitor --openmetrics`: every figure that the window reads, for Prometheus and Grafana.
"""

from __future__ import annotations

import math
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.errors import InputError, WattridgeError
from ..base.files import refuse_taken
from ..base.formatting import duration
from ..base.records import as_json
from ..sensors import throttling
from ..sensors.channel import POWER_SAMPLES
from ..sensors.event_reasons import names as reason_names
from ..sensors.gpu import LIVE, Gpu, StreamsReadings
from ..sensors.nvml.devfreq import integrated_gpu
from ..sensors.pci import PciBoard, asleep
from ..sensors.recorded.gpu import RecordedGpu
from .arguments import add_board, add_force
from .terminal import ProgressBar, print_description, print_json, print_table, say, show, stop_on_interrupt

if TYPE_CHECKING:
    from ..sensors.openmetrics import MeteredBoard
    from ..sensors.trace.trace import EventSpan, Trace
    from .documents import Board, OpenclDevice, PowerProfile

_LOOK_S = 0.05
_PATIENCE_S = 5.0  # for the last reading
_NOW = (("power_instant_w", "W"), ("graphics_clock_mhz", "MHz"), ("temperature_c", "°C"), ("utilisation_percent", "%"))


def gpus_arguments(parser: ArgumentParser) -> None:
    """Declare the options of `wattridge gpus`."""
    parser.add_argument(
        "--verbose", action="store_true", help="also what runs kernels, and what each board does not report and why"
    )
    parser.add_argument("--on", metavar="[USER@]HOST", help="the boards of another machine, through ssh")


def gpus(arguments: Namespace) -> int:
    """Every board that answers, or the simulated ones where no driver does; 1 where a board's record is unreadable.

    A board that sleeps is named, and left asleep.
    """
    from ..sensors.select import list_gpus
    from .control import report_unreadable

    if arguments.on is not None:
        return _gpus_there(arguments)
    opencl: list[OpenclDevice] = []
    cuda, why_no_opencl = None, ""
    if arguments.verbose:
        from ..engine.runner.cuda.language import cuda_in_use

        cuda = cuda_in_use()
        opencl, why_no_opencl = _opencl_devices()
    sleeping, boards = asleep(), list_gpus()
    try:
        described = [_describe(gpu) for gpu in boards]
        with ThreadPoolExecutor() as pool:
            notes = pool.map(_counter_note, boards if arguments.verbose else ())
            for board, note in zip(described, notes, strict=False):
                board["energy_counter_note"] = note
    finally:
        for gpu in boards:
            gpu.close()
    unreadable = report_unreadable([board["uuid"] for board in described])
    unreadable = unreadable or any(board["left_over"] and board["left_over"].unreadable for board in described)
    if arguments.json:
        more = {"opencl": opencl} if arguments.verbose else {}
        print_json(
            [{**board, **more, **({"cuda": cuda} if cuda and board["source"] == "nvml" else {})} for board in described]
            + [
                {"uuid": rests.selector, "name": rests.name, "source": rests.source, "asleep": True}
                for rests in sleeping
            ]
        )
        return int(unreadable)
    _print_boards(described, sleeping)
    for line in dict.fromkeys(held.text for board in described for held in board["held_elsewhere"]):
        show(line)
    for board in described if arguments.verbose else ():
        _print_details(board)
    _print_languages(described, cuda, verbose=arguments.verbose)
    if why_no_opencl:
        show("", f"OpenCL: {why_no_opencl}")
    if opencl:
        show("", "OpenCL devices, for --gpu opencl:NUMBER")
        print_table([[index, *item.values()] for index, item in enumerate(opencl)], ("number", *opencl[0]))
    return int(unreadable)


def _print_languages(described: Sequence[Board], cuda: dict[str, Any] | None, *, verbose: bool) -> None:
    if cuda and any(board["source"] != "amd" for board in described):
        show("", f"Kernels on real boards: {_cuda_words(cuda)}")
    if verbose and any(board["source"] == "amd" for board in described):
        from ..engine.runner.hip.language import hip_in_words

        show("", f"Kernels on AMD boards: {hip_in_words()}")


def _print_boards(described: Sequence[Board], sleeping: Sequence[PciBoard]) -> None:
    if described and described[0]["source"] not in LIVE:
        say("No NVIDIA driver answers here; these are the simulated boards.")
        if (integrated := integrated_gpu()) is not None:
            say(
                f"This is a Jetson, whose GPU no library reports before JetPack 6; its clock is"
                f" {integrated.clock_mhz():.0f} MHz. Programs: wattridge measure --gpu host --meter ina -- PROGRAM"
            )
    rows = []
    for board in described:
        clocks = board["graphics_clocks_mhz"]
        span = f"{clocks['min']}–{clocks['max']} by {clocks['step']}" if clocks["min"] else "not known"
        named = (board["index"], board["name"], board["source"], board["driver"])
        rows.append([*named, board["power_limit_w"].current_w, span, board["power_source"]])
    rows += [[None, b.name, b.source, "", None, "not known", f"asleep; woken by --gpu {b.selector}"] for b in sleeping]
    print_table(rows, ("index", "name", "source", "driver", "limit W", "graphics MHz", "power source"))


def _print_details(board: Board) -> None:
    """What the board does not report, and its workload power profiles."""
    if missing := board["unavailable"]:
        show("", f"{board['name']} does not report")
        show(*(f"  {name}: {reason}" for name, reason in missing.items()))
    held_back = throttling.throttled_words(board["throttled_s"])
    for note in filter(None, (held_back, board.get("energy_counter_note"))):
        show("", f"{board['name']}: {note}")
    profiles = board["workload_power_profiles"]
    why = board["cannot_set"].get("workload_power_profile", "")
    show("", f"{board['name']}: workload power profiles" + (f": none ({why})" if profiles is None else ""))
    if profiles is not None:
        print_table([list(profile.values()) for profile in profiles], tuple(profiles[0]))


def _counter_note(gpu: Gpu) -> str:
    from ..sensors.trace.counter import LEAST_S, counter_note, counter_now
    from ..sensors.trace.live_board import LiveBoard

    board = LiveBoard(gpu, interval_s=_LOOK_S)
    before = counter_now(gpu)
    gpu.clock.wait(LEAST_S)
    after = counter_now(gpu)
    board.close()  # and the GPU, which is looked at no more
    return counter_note(board.trace, before, after)


def _opencl_devices() -> tuple[list[OpenclDevice], str]:
    """Every device of OpenCL, with where its energy comes from; and why there is none."""
    from ..sensors.opencl.devices import is_board, opencl_devices
    from ..sensors.select import AMD, amd_boards, pci_address, real_boards
    from ..sensors.unmetered import NO_ENERGY

    try:
        devices = opencl_devices()
    except WattridgeError as error:
        return [], f"{error.what} ({error.remedy})"
    boards = [(f"that of GPU {index}", uuid, pci_address(uuid)) for index, uuid, _ in real_boards()]
    boards += [(f"that of GPU {AMD}:{index}", uuid, pci_address(uuid)) for index, uuid, _ in amd_boards()]
    rows: list[OpenclDevice] = []
    for device in devices:
        energy = next((words for words, uuid, pci in boards if is_board(device, uuid, pci)), NO_ENERGY)
        rows.append(
            {
                "name": device.name,
                "kind": device.kind,
                "platform": device.platform,
                "driver": device.driver,
                "energy": energy,
            }
        )
    return rows, "" if rows else "it has no devices here"


def _cuda_words(cuda: dict[str, Any]) -> str:
    if cuda["why_not"]:
        return f"none can run from here: {cuda['why_not']}"
    line = f"run by {cuda['library']} and compiled by {cuda['compiler']}"
    others = "".join(f"; WATTRIDGE_CUDA={name} takes {name}" for name in cuda["other_libraries"])
    return line + others


def _gpus_there(arguments: Namespace) -> int:
    from ..sensors.remote.address import parse_address
    from ..sensors.remote.run_there import boards_there

    boards = boards_there(parse_address(arguments.on))
    if arguments.json:
        print_json(boards)
    else:
        print_table([(b.index, b.name, b.source, b.selector) for b in boards], ("index", "name", "source", "--gpu"))
    return 0


def _describe(gpu: Gpu) -> Board:
    from ..engine.control.outside import held_elsewhere
    from ..engine.metering.characterisation.store import known_characterisation, to_json
    from ..engine.results.settings import PROFILE, WORDS, why_not_set
    from .control import describe_left_over

    info = gpu.info
    left_over, line = describe_left_over(gpu)
    if line:
        say(line)
    cannot_set = {name: why for name in WORDS if (why := why_not_set(gpu, name))}
    if info.power_limit.from_outside:
        say(f"{info.label}: {info.power_limit.from_outside}")
    for name, why in cannot_set.items() if info.live else ():  # of simulated boards: under cannot_set
        if name != PROFILE:  # most boards have none: see --verbose
            say(f"{info.label}: the {WORDS[name]} cannot be set: {why}")
    characterised = known_characterisation(info)
    clocks = list(gpu.graphics_clocks_mhz())
    steps = {b - a for a, b in pairwise(clocks)}
    return {
        "index": info.index,
        "uuid": info.uuid,
        "name": info.name,
        "source": info.source,
        "driver": info.driver,
        "power_limit_w": info.power_limit,
        "graphics_clocks_mhz": {
            "min": clocks[0] if clocks else None,
            "max": clocks[-1] if clocks else None,
            "step": min(steps) if steps else None,
        },
        "memory_clocks_mhz": list(gpu.memory_clocks_mhz()),
        "channels": {c.name: c.unit if c.available else f"not available: {c.unavailable}" for c in gpu.channels},
        "unavailable": {c.name: c.unavailable or "" for c in gpu.channels if not c.available},
        "power_source": characterised.words if characterised else info.power_source,
        "characterisation": to_json(characterised, answers=False) if characterised else None,
        "cannot_set": cannot_set,
        "workload_power_profiles": None if PROFILE in cannot_set else _power_profiles(gpu),
        "left_over": left_over,
        "throttled_s": throttling.throttled_s(gpu),
        "held_elsewhere": held_elsewhere(gpu),
    }


def _power_profiles(gpu: Gpu) -> list[PowerProfile]:
    from ..sensors.power_profiles import HasPowerProfiles

    assert isinstance(gpu, HasPowerProfiles)
    profiles = gpu.power_profiles()
    return [
        {
            "number": number,
            "name": profile.name,
            "priority": profile.priority,
            "conflicts_with": list(profile.conflicts),
            "requested": number in (profiles.requested or ()),
            "enforced": number in (profiles.enforced or ()),
        }
        for number, profile in profiles.supported.items()
    ]


def monitor_arguments(parser: ArgumentParser) -> None:
    """Declare the options of `wattridge monitor`."""
    add_board(parser)
    parser.add_argument("--duration", type=float, metavar="S", help="seconds to watch (default 10)")
    parser.add_argument("--interval", type=float, default=0.02, metavar="S", help="seconds between readings (0.02)")
    parser.add_argument("--out", metavar="FILE", help="write every reading to this file: .json, else CSV")
    add_force(parser)
    parser.add_argument(
        "--openmetrics", metavar="[HOST]:PORT", help="serve every figure for Prometheus until Ctrl+C (loopback)"
    )
    parser.add_argument(
        "--record", metavar="FILE", help="keep a recording: .wrec, which opens at once, else gzipped CSV"
    )
    parser.add_argument(
        "--loop", action="store_true", help="begin a recording again at its end, until the time is over"
    )


def monitor(arguments: Namespace) -> int:
    """Watch one board for a while: mean, least and largest of every channel, and the energy; or serve it."""
    from ..engine.control.outside import held_elsewhere
    from ..sensors.select import open_gpu
    from ..sensors.trace.counter import counter_note, counter_now
    from ..sensors.trace.live_board import LiveBoard

    if arguments.interval <= 0:
        raise InputError(f"an interval of {arguments.interval} s", "--interval", "a positive number of seconds")
    if arguments.openmetrics is not None:
        return serve(arguments)
    if arguments.duration is None:
        arguments.duration = 10.0
    if not 0 < arguments.duration < 365 * 86400:
        raise InputError(f"a duration of {arguments.duration} s", "--duration", "a positive number of seconds")
    if arguments.out:
        refuse_taken(Path(arguments.out), force=arguments.force)
    gpu = open_gpu(arguments.gpu, seed=arguments.sim_seed, speed=arguments.speed, remote=True)
    if isinstance(gpu, RecordedGpu) and arguments.duration > gpu.length_s:
        words = f"the recording holds {gpu.length_s:.1f} s"
        say(f"{words}, which are repeated" if arguments.loop else f"{words} and ends there; --loop begins it again")
        gpu.loops = arguments.loop
        if not arguments.loop:
            arguments.duration = gpu.length_s + arguments.interval  # with its last reading
    faults: list[str] = []
    begun_ns = gpu.clock.now_ns()
    begun, counted = throttling.mark(gpu), counter_now(gpu)
    board = LiveBoard(
        gpu,
        interval_s=arguments.interval,
        on_event=lambda event: faults.append(str(event)),
        record_to=Path(arguments.record) if arguments.record else None,
        duration_s=arguments.duration,
    )
    trace = board.trace
    latest_s = arguments.duration + _PATIENCE_S * gpu.clock.speed  # a reading that never returns ends the watch too
    bar = ProgressBar(quiet=arguments.json)
    try:
        with stop_on_interrupt() as stopped:
            while board.sampler.running and (passed := (gpu.clock.now_ns() - begun_ns) / 1e9) < latest_s:
                bar.show(round(passed), round(arguments.duration), _now_line(trace))
                if stopped.wait(_LOOK_S):  # on the wall: only the sampler may move a clock that runs without one
                    break
    finally:
        board.stop()
        board.sampler.join()
        try:
            board.finish_recording()
        except WattridgeError as error:
            faults.append(str(error))
    bar.show(1, 1, _now_line(trace), final=True)
    document = _monitor_document(gpu, trace, begun_ns, begun)
    document["energy_counter_note"] = counter_note(trace, counted, counter_now(gpu))
    document["clock_there"] = _clock_there(gpu)
    document["held_elsewhere"] = held_elsewhere(gpu)
    document["faults"] = faults
    if arguments.out:
        _write_trace(trace, Path(arguments.out), gpu)
        document["files"] = [str(Path(arguments.out).resolve())]
    board.close()
    if arguments.json:
        print_json(document)
    else:
        _print_monitor(document, gpu)
    return 0 if board.recording is None or board.recording.finished else 1


def _write_trace(trace: Trace, path: Path, gpu: Gpu) -> None:
    """As JSON where the file is called so, else as CSV."""
    from ..sensors.trace.files import write_trace

    try:
        write_trace(trace, path, trace.first_ns, trace.last_ns, gpu.info, as_json=path.suffix.lower() == ".json")
    except OSError as error:
        raise WattridgeError(f"cannot be written: {error.strerror}", str(path), "choose another folder") from None


def _now_line(trace: Trace) -> str:
    if not trace.last_ns:
        return "waiting for the first reading"
    now = trace.at(trace.last_ns)
    parts = [f"{now[name]:.0f} {unit}" for name, unit in _NOW if not math.isnan(now.get(name, math.nan))]
    reasons = now.get("event_reasons", math.nan)
    if not math.isnan(reasons) and int(reasons):
        parts.append(", ".join(reason_names(int(reasons))))
    return " · ".join(parts)


def _monitor_document(gpu: Gpu, trace: Trace, begun_ns: int, begun: throttling.Mark) -> dict[str, Any]:
    if not trace.last_ns:
        raise WattridgeError("the board gave no reading", gpu.info.label, "watch longer, or look at `wattridge gpus`")
    end_ns = trace.last_ns
    channels: dict[str, Any] = {}
    named = [c for c in gpu.channels if c.available and c.name != "event_reasons"]
    if trace.power_name == POWER_SAMPLES.name:
        named.insert(0, POWER_SAMPLES)
    for described in named:
        statistics = trace.statistics(described.name, begun_ns, end_ns)
        channels[described.name] = {"unit": described.unit, **as_json(statistics)}
    spans = trace.event_spans(begun_ns, end_ns)
    shares, passed_s = throttling.shares_between(begun, throttling.mark(gpu)), (end_ns - begun_ns) / 1e9
    energy_of = trace.trapezoid_j if isinstance(gpu, RecordedGpu) else trace.energy_j
    return {
        "gpu": gpu.info.name,
        "source": gpu.info.source,
        "duration_s": passed_s,
        "channels": channels,
        "unavailable": {c.name: c.unavailable for c in gpu.channels if not c.available},
        "energy_j": energy_of(begun_ns, end_ns),
        "energy_source": trace.power_name,
        "energy_counter_j": _counter_difference(trace, begun_ns, end_ns),
        "event_reasons_s": throttling.seconds_counted(_seconds_by_reason(spans), shares, passed_s),
    }


def _clock_there(gpu: Gpu) -> dict[str, float] | None:
    """How the clock of another machine stands to this one's, and how well that is known."""
    if not isinstance(gpu, StreamsReadings):
        return None
    ahead_s, error_s = gpu.clock_offset_s()
    return {"ahead_s": ahead_s, "error_s": error_s}


def _counter_difference(trace: Trace, begun_ns: int, end_ns: int) -> float:
    """What the board's own energy counter rose by, in J; NaN if it has none."""
    counter = trace.statistics("energy_j", begun_ns, end_ns)
    return counter.maximum - counter.minimum if counter.samples else math.nan


def _seconds_by_reason(spans: list[EventSpan]) -> dict[str, float]:
    seconds: dict[str, float] = {}
    for span in spans:
        for name in reason_names(int(span.reason)):
            seconds[name] = seconds.get(name, 0.0) + (span.end_ns - span.start_ns) / 1e9
    return seconds


def _print_monitor(document: dict[str, Any], gpu: Gpu) -> None:
    from ..engine.results.description import Description, Figure, Listing

    labels = {c.name: c.label for c in (*gpu.channels, POWER_SAMPLES)}
    rows = [
        [labels[name], c["mean"], c["min"], c["max"], c["unit"], c["samples"]]
        for name, c in document["channels"].items()
        if c["samples"] and name != "energy_j"  # a counter has no mean
    ]
    figures = [Figure("Energy", document["energy_j"], "J", f"integral of {labels[document['energy_source']]}")]
    if not math.isnan(counted := document["energy_counter_j"]):
        figures.append(Figure("Energy by the board's counter", counted, "J", "which is read now and then"))
    figures += [Figure(name, duration(seconds)) for name, seconds in document["event_reasons_s"].items()]
    if (clock := document["clock_there"]) is not None:
        way = "ahead of" if clock["ahead_s"] >= 0 else "behind"
        note = f"the clock of {gpu.info.host} is {duration(abs(clock['ahead_s']))} {way} this one's"
        figures.append(Figure("Times are right within", 1e3 * clock["error_s"], "ms", note))
    print_description(
        Description(
            title=gpu.info.label,
            origin=f"{document['duration_s']:.1f} s",
            figures=figures,
            listings=[Listing("", ("channel", "mean", "min", "max", "unit", "samples"), rows)],
            remarks=[f"{labels[name]}: not available, {why}" for name, why in document["unavailable"].items()],
        )
    )
    held = (match.text for match in document["held_elsewhere"])
    for line in filter(None, (document["energy_counter_note"], *document["faults"], *held)):
        say(line)
    for file in document.get("files", ()):
        show(f"written: {file}")


def mark_arguments(parser: ArgumentParser) -> None:
    """Declare the options of `wattridge mark`."""
    parser.add_argument("text", metavar="TEXT", nargs="+", help="the name of the mark, one line")


def mark(arguments: Namespace) -> int:
    """Set a mark now in every recording that this user has running, by a command or in a window."""
    from ..base.paths import data_folder
    from ..sensors.recorded.marks import mark as set_mark

    text = " ".join(arguments.text)
    recordings = [str(path) for path in set_mark(text)]
    if not recordings:
        remedy = "start one with `wattridge monitor --record FILE`, or by Record in the window"
        raise WattridgeError("no recording is running", str(data_folder()), remedy)
    if arguments.json:
        print_json({"text": text, "recordings": recordings})
    else:
        show(*(f"marked '{text}' in {recording}" for recording in recordings))
    return 0


def twin_arguments(parser: ArgumentParser) -> None:
    """Declare the options of `wattridge twin`."""
    parser.add_argument("name", nargs="?", metavar="NAME", help="a name or a TOML file; without it, the names")
    parser.add_argument("--truth", action="store_true", help="true power, speed and energy at every clock")
    parser.add_argument("--workload", default="full_load", metavar="NAME", help="what runs (default full_load)")
    parser.add_argument("--power-limit", type=float, metavar="W", help="the power limit in force")


def twin(arguments: Namespace) -> int:
    """A simulated board's figures, or with --truth its power, speed and energy at every clock."""
    from ..sensors.simulated.truth import truth
    from ..sensors.simulated.twin import load_twin, twin_names

    if arguments.name is None:
        names = list(twin_names())
        if arguments.json:
            print_json(names)
        else:
            show(*names)
        return 0
    board = load_twin(arguments.name)
    if not arguments.truth:
        raise InputError(
            "nothing asked of the twin", f"twin {arguments.name}", "add --truth, or watch it: --gpu simulated:NAME"
        )
    rows = truth(board, arguments.workload, power_limit_w=arguments.power_limit)
    if arguments.json:
        document = {"gpu": board.name, "source": "simulated", "workload": arguments.workload, "clocks": rows}
        print_json(document | {"not_shown": list(board.not_shown)})
        return 0
    show(f"{board.name} (simulated), {arguments.workload}: the truth behind its sensors")
    header = ("clock MHz", "observed MHz", "power W", "time ms", "rate", "unit", "energy J", "capped")
    print_table(
        [
            [
                *(row[key] for key in ("clock_mhz", "observed_clock_mhz", "power_w")),
                float(row["time_s"]) * 1e3,
                *(row[key] for key in ("rate", "rate_unit", "energy_j")),
                "capped" if row["capped"] else "",
            ]
            for row in rows
        ],
        header,
    )
    if board.not_shown:
        show(f"Not shown: {'; '.join(board.not_shown)}")
    return 0


def serve(arguments: Namespace) -> int:
    """Serve until Ctrl+C, or for the duration that was asked for. Raises InputError for options that do not fit."""
    from ..sensors.openmetrics import MeteredBoard, MetricsServer, exposition, parse_address

    unfit = next((name for name in ("out", "record") if getattr(arguments, name)), None)
    if unfit is not None:
        raise InputError(f"--{unfit} does not go with --openmetrics", "monitor", "run monitor twice")
    if arguments.duration is not None and not 0 < arguments.duration < math.inf:
        raise InputError(f"a duration of {arguments.duration} s", "--duration", "a positive number of seconds")
    if math.isinf(arguments.speed):
        raise InputError("--speed inf does not go with --openmetrics", "monitor", "a server lives on the wall's clock")
    host, port = parse_address(arguments.openmetrics)
    with ExitStack() as ends:
        watched = [MeteredBoard(gpu, interval_s=arguments.interval, report=say) for gpu in _boards(arguments)]
        for board in watched:
            ends.callback(board.close)
        server = MetricsServer(host, port, lambda: exposition([board.reading() for board in watched]))
        ends.callback(server.close)
        names = ", ".join(board.gpu.info.label for board in watched)
        say(f"{names}: OpenMetrics at {server.url} (Ctrl+C ends)")
        passed_s = _until_stopped(watched, arguments.duration)
        server.close()  # what is being sent counts or fails
        document: dict[str, Any] = {
            "url": server.url,
            "duration_s": passed_s,
            "served": server.served,
            "gpus": [
                {"gpu": board.gpu.info.name, "source": board.gpu.info.source, "energy_j": board.reading().integrated_j}
                for board in watched
            ],
        }
    if arguments.json:
        print_json(document)
    else:
        show(f"served {document['served']} times in {passed_s:.1f} s")
    return 0


def _boards(arguments: Namespace) -> Sequence[Gpu]:
    """The board that is named; else every real one, or the simulated one that the program shows without a driver."""
    from ..sensors.select import list_gpus, open_gpu

    if arguments.gpu is None:
        result = list_gpus()
        if result and result[0].info.live:
            return result
        for gpu in result:
            gpu.close()
    return [open_gpu(arguments.gpu, seed=arguments.sim_seed, speed=arguments.speed, remote=True)]


def _until_stopped(watched: Sequence[MeteredBoard], duration_s: float | None) -> float:
    """Wait on the wall's clock; how long it was."""
    begun = time.monotonic()
    with stop_on_interrupt() as stopped:
        while not stopped.is_set():
            left_s = math.inf if duration_s is None else begun + duration_s - time.monotonic()
            if left_s <= 0:
                break
            stopped.wait(min(1.0, left_s))
            for board in watched:
                board.add_up()
    return time.monotonic() - begun
