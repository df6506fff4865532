"""From the command to the printed answer on an empty data folder: 60 random configurations of SGEMM 4096, and where the
time goes; then the whole space by `auto`, and whether its winner is one.

Run by hand on a board that nobody else uses, for four minutes: python tests/benchmarks/first_answer.py [--gpu 0]
[--out FOLDER]
It runs `wattridge tune` as a user does, in a process of its own, and writes down when what happens: the phases (start,
look at the sensor, compilation that is waited for, measuring, end), the share of the time in which the board has work,
what it waits for in the gaps, the processor time of everything per configuration, and the memory of the processes.
Bytecode is compiled before, as that of an installed program is.
Where Kernel Tuner can be imported it measures the same configurations afterwards, its wall time taken in the same way.
The whole space is tuned on another empty data folder. How long Kernel Tuner takes for all of it is reckoned from its
random sample: what it takes for one, so many times. Whether the winner is one is seen from all that could be: every
configuration is timed, and those that are not so slow that they would need less power than any that was measured draws
are measured, in one session beside the winner.
It reads and never sets: no clock, no limit, no mode. With --gpu simulated:h200 all of it runs but what only a real
board has: there is no look, no compiler, no runner process, and no Kernel Tuner.
"""

from __future__ import annotations

import argparse
import compileall
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

CONFIGURATIONS: Final = 60
KEPT_GAP_S: Final = 0.1  # longer gaps are listed
PARAMETERS: Final = ("block_size_x", "block_size_y", "tile_size_x", "tile_size_y")
MOST_S: Final = 40.0  # to the answer, and
MOST_SHARE: Final = 0.4  # of Kernel Tuner's wall time: what is aimed at on an H200
MOST_SHARE_OF_ALL: Final = 1 / 8  # of its time for the whole space
WITHIN: Final = 0.01  # of the least energy
LAUNCHING: Final = ("check", "few")  # requests during which the board runs what is looked at, beside begin to end
PACKAGES: Final = ("app", "numpy", "scipy", "platformdirs", "cuda", "pynvml")  # whose bytecode is compiled before


# --- inside the command's process -------------------------------------------------------------------------------------


class Diary:
    """When what happened, in s on the host's monotonic clock, which all processes share."""

    def __init__(self) -> None:
        self.events: list[tuple[float, str, str]] = []
        self.busy: list[tuple[float, float]] = []
        self.asked: list[tuple[float, float, str]] = []  # what the runner process was asked for
        self.processes: dict[int, dict[str, Any]] = {}

    def note(self, event: Any) -> None:
        what = getattr(event, "what", getattr(event, "length", ""))
        self.events.append((time.monotonic(), type(event).__name__, str(what)))

    def watch(self) -> None:
        """Replace what the engine calls by the same, written down."""
        from app.engine.runner.cuda.gpu import CudaGpu
        from app.engine.runner.kernels import process
        from app.engine.session import run
        from app.sensors.simulated.gpu import SimulatedGpu

        run_session = run.run_session

        def watched(plan: Any, store: Any, on_event: Callable[[Any], None], *others: Any, **named: Any) -> Any:
            def both(event: Any) -> None:
                self.note(event)
                on_event(event)

            return run_session(plan, store, both, *others, **named)

        run.run_session = watched
        for kind in (CudaGpu, SimulatedGpu):
            self._watch_launches(kind)
        ask = CudaGpu.ask

        def asked(gpu: Any, message: Any, *others: Any, **named: Any) -> Any:
            begun = time.monotonic()
            try:
                return ask(gpu, message, *others, **named)
            finally:
                self.asked.append((begun, time.monotonic(), str(message["do"])))

        CudaGpu.ask = asked  # type: ignore[method-assign]
        for name in ("kill", "close"):
            self._watch_end(process.AskedProcess, name)

    def _watch_launches(self, kind: Any) -> None:
        begin, end = kind.begin, kind.end
        since: dict[int, float] = {}

        def begun(gpu: Any, load: Any) -> None:
            begin(gpu, load)
            since[id(gpu)] = time.monotonic()

        def ended(gpu: Any) -> Any:
            execution = end(gpu)
            self.busy.append((since.pop(id(gpu), time.monotonic()), time.monotonic()))
            return execution

        kind.begin, kind.end = begun, ended

    def _watch_end(self, kind: Any, name: str) -> None:
        method = getattr(kind, name)

        def watched(runner: Any) -> Any:
            self.processes.setdefault(runner.pid, {"what": runner.what, **_memory_and_time(runner.pid)})
            return method(runner)

        setattr(kind, name, watched)


def _memory_and_time(pid: int) -> dict[str, float]:
    """Of a process, as the kernel counts them; nothing where there is no /proc."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    except OSError:
        return {}
    highest = next((line for line in status.splitlines() if line.startswith("VmHWM")), "VmHWM: 0 kB")
    return {
        "resident_mib": int(highest.split()[1]) / 1024,
        "processor_s": sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK"),
    }


def child(kept: Path, words: Sequence[str]) -> int:
    """The command itself."""
    from app.cli import main as wattridge

    diary = Diary()
    diary.watch()
    status = wattridge(list(words))
    sys.stdout.flush()
    diary.events.append((time.monotonic(), "Printed", ""))
    diary.processes[os.getpid()] = {"what": "the command", **_memory_and_time(os.getpid())}
    kept.write_text(json.dumps(vars(diary)))
    return status


# --- phases -----------------------------------------------------------------------------------------------------------


def worked(diary: dict[str, Any]) -> list[tuple[float, float]]:
    """When the board had work: from begin to end of launches, and while outputs are checked and few launches timed."""
    launching = [(begin, end) for begin, end, what in diary["asked"] if what in LAUNCHING]
    return sorted([*((begin, end) for begin, end in diary["busy"]), *launching])


def phases(begun: float, diary: dict[str, Any]) -> dict[str, float]:
    """Seconds of each, in their order; together they are the whole."""
    events = diary["events"]

    def first(name: str, default: float, after: float = 0.0) -> float:
        return next((at for at, event, _ in events if event == name and at >= after), default)

    def last(name: str, default: float) -> float:
        return max((at for at, event, _ in events if event == name), default=default)

    printed = last("Printed", begun)
    started = first("SessionStarted", begun)
    looks = [(at, what) for at, event, what in events if event == "Preparing"]
    looked = max((at for at, _ in looks), default=started)
    looking = min((at for at, what in looks if "quick look" in what and "compiling" not in what), default=looked)
    launched = min((at for at, _ in worked(diary) if at >= looked), default=looked)
    measured, restated = last("MeasurementsAdded", launched), last("FiguresRestated", printed)
    restated = max(restated, measured)
    edges = {
        "start: command to session": started,
        "start: the look's load compiles, its process starts": looking,
        "look at the sensor": looked,
        "compile: until the first launch": launched,
        "measure": measured,
        "end: the first again, figures stated once more": restated,
        "end: until the answer is printed": printed,
    }
    found, before = {}, begun
    for phase, at in edges.items():
        found[phase] = at - before
        before = at
    return found


def gaps(diary: dict[str, Any]) -> tuple[float, float, dict[str, float], list[tuple[float, float]]]:
    """Of the time from the first launch after the look to the end of measuring, its length, and how long the board had
    work, checks of outputs included; what was asked for when it had none (s), and the long gaps (when, how long)."""
    looked = max((at for at, event, _ in diary["events"] if event == "Preparing"), default=0.0)
    measured = ("MeasurementsAdded", "FiguresRestated")
    ended = max((at for at, event, _ in diary["events"] if event in measured), default=0.0)
    busy = [(begin, min(end, ended)) for begin, end in worked(diary) if looked <= begin < ended]
    if not busy:
        return 0.0, 0.0, {}, []
    idle = []
    until = busy[0][1]
    for begin, end in busy[1:]:
        if begin > until:
            idle.append((until, begin))
        until = max(until, end)
    whole_s = until - busy[0][0]
    waited: dict[str, float] = defaultdict(float)
    for begin, end in idle:
        asked_s = 0.0
        for since, to, what in diary["asked"]:
            if what in LAUNCHING:
                continue
            overlap = min(end, to) - max(begin, since)
            if overlap > 0:
                waited[what] += overlap
                asked_s += overlap
        waited["the program itself"] += end - begin - asked_s
    long = [(begin - busy[0][0], end - begin) for begin, end in idle if end - begin > KEPT_GAP_S]
    return whole_s, whole_s - sum(end - begin for begin, end in idle), dict(waited), long


# --- the two programs -------------------------------------------------------------------------------------------------


def specification(folder: Path) -> Path:
    """The example without the clocks that this must not set."""
    text = (ROOT / "resources/examples/gemm.toml").read_text()
    head, _, rest = text.partition("[device_settings]\n")
    rest = rest[rest.index("[metrics]") :].replace('maximise = "GFLOPS/W"', 'minimise = "energy_j"')
    path = folder / "sgemm.toml"
    path.write_text((head + rest).replace("../kernels/", f"{(ROOT / 'resources/kernels').as_posix()}/"))
    return path


def ours(folder: Path, gpu: str, count: int, seed: int, strategy: str = "random_sample") -> dict[str, Any]:
    """`wattridge tune` on an empty data folder."""
    folder.mkdir()
    diary_file = folder / "diary.json"
    words = ["tune", str(specification(folder)), "--gpu", gpu, "--strategy", strategy, "--json"]
    words += ["--max-evaluations", str(count), "--seed", str(seed), "--speed", "1"]
    environment = {**os.environ, "WATTRIDGE_DATA": str(folder / "data"), "WATTRIDGE_READ_ONLY": "1"}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    command = [sys.executable, __file__, "--child", str(diary_file), *words]
    begun = time.monotonic()
    with (folder / "answer.json").open("wb") as answer, (folder / "said.txt").open("wb") as said:
        process = subprocess.Popen(command, env=environment, stdout=answer, stderr=said)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    wall_s = time.monotonic() - begun
    if process.returncode:
        raise SystemExit(f"wattridge tune ended with status {process.returncode}:\n{(folder / 'said.txt').read_text()}")
    diary = json.loads(diary_file.read_text())
    document = json.loads((folder / "answer.json").read_text())
    printed = next(at for at, event, _ in diary["events"] if event == "Printed")
    whole_s, worked_s, waited, long = gaps(diary)
    return {
        "to_the_answer_s": printed - begun,
        "wall_s": wall_s,
        "phases_s": phases(begun, diary),
        "evaluated": document["evaluated"],
        "timed": document.get("timed", 0),
        "valid": document["valid"],
        "failed": document["failed"],
        "best": document["best"],
        "session": document["session"],
        "measuring_s": whole_s,
        "board_works_s": worked_s,
        "waits_s": waited,
        "long_gaps_s": long,
        "processor_s_per_configuration": (used.ru_utime + used.ru_stime) / max(1, document["evaluated"]),
        "processes": list(diary["processes"].values()),
    }


def configurations(folder: Path, session: int) -> list[list[int]]:
    """What that session measured, in its order."""
    os.environ["WATTRIDGE_DATA"] = str(folder / "data")
    from app.engine.store.database import Store

    with Store() as store:
        table = store.load(session).table
    measured = [table.measurement(at).configuration for at in range(len(table))]
    return [[int(str(each[name])) for name in PARAMETERS] for each in measured]


def kernel_tuner(folder: Path, wanted: list[list[int]]) -> dict[str, Any] | str:
    """Wall time of the same through Kernel Tuner, from its command on; or why not."""
    if importlib.util.find_spec("kernel_tuner") is None:
        return "Kernel Tuner cannot be imported here"
    chosen = folder / "configurations.json"
    chosen.write_text(json.dumps(wanted))
    script = Path(__file__).with_name("h200_sgemm.py")
    begun = time.monotonic()
    told = subprocess.run(
        [sys.executable, str(script), "--kernel-tuner", str(chosen)], capture_output=True, text=True, check=False
    )
    wall_s = time.monotonic() - begun
    if told.returncode:
        return "Kernel Tuner did not run: " + " ".join(told.stderr.strip().splitlines()[-1:])
    return {**json.loads(told.stdout.strip().splitlines()[-1]), "wall_s": wall_s}


# --- whether the winner is one ----------------------------------------------------------------------------------------


def truth(folder: Path, gpu: str, winner: dict[str, Any]) -> dict[str, Any]:
    """The winner among all that could be, measured once more in one go, by this process.

    A configuration can need less energy than the winner only where its time, at the least power that any draws, does.
    """
    from app.engine.results.measurement import State
    from app.engine.session.load import load_specification
    from app.engine.session.planning import plan_specification
    from app.engine.specification.plan import SearchOptions
    from app.sensors.select import open_gpu

    os.environ["WATTRIDGE_DATA"] = str(folder / "data")
    spec, stop = load_specification(specification(folder)), threading.Event()
    begun = time.monotonic()
    with closing(open_gpu(gpu, speed=1.0, voltage=False)) as board:
        plan = plan_specification(spec, board, SearchOptions(max_evaluations=1))
        runner = plan.boards.runner(plan)
        try:
            rows = range(plan.space.size)
            timed = {m.row: m.values["time_s"] for m in runner.time(rows, stop) if m.state is State.OK}
            by_time = sorted(timed, key=lambda row: timed[row])
            slow = [m for m in runner.measure(by_time[-3:], stop) if m.state is State.OK]
            least_w = min(m.values["power_w"] for m in slow)
            least_j = winner["values"]["energy_j"]
            could_be = [row for row in by_time if timed[row] * least_w <= 1.05 * least_j]
            name = {row: [int(str(plan.space.configuration(row)[each])) for each in PARAMETERS] for row in rows}
            chosen = [int(winner["configuration"][each]) for each in PARAMETERS]
            own = next(row for row in rows if name[row] == chosen)
            asked = list(dict.fromkeys([*could_be, own]))
            measured = [m for m in runner.measure(asked, stop) if m.state is State.OK]
        finally:
            runner.close()
    energies = {m.row: m.values["energy_j"] for m in measured}
    best = min(energies, key=lambda row: energies[row])
    return {
        "timed": len(timed),
        "measured": len(measured),
        "least_power_w": least_w,
        "best": name[best],
        "best_energy_j": energies[best],
        "winner": chosen,
        "winner_energy_j": energies[own],
        "above": energies[own] / energies[best] - 1.0,
        "wall_s": time.monotonic() - begun,
    }


# --- the table --------------------------------------------------------------------------------------------------------


def show_whole(found: dict[str, Any], known: dict[str, Any], theirs: dict[str, Any] | str) -> None:
    """What was found of the whole space, as text."""
    print(
        f"\nthe whole space of {found['valid']} by auto, an empty data folder: {found['to_the_answer_s']:.1f} s to the"
    )
    print(f"  answer, {found['evaluated']} measured, {found['timed']} timed only; failed: {found['failed'] or 'none'}")
    for phase, seconds in found["phases_s"].items():
        print(f"  {phase:<52} {seconds:7.2f} s")
    print(
        f"  its winner {known['winner']} is {known['above']:+.2%} above the least energy (aim: {WITHIN:.0%}), that of "
        f"{known['best']}: {known['best_energy_j']:.4g} J, among {known['measured']} of {known['timed']} that could be "
        f"the best ({known['least_power_w']:.0f} W at least; {known['wall_s']:.0f} s)"
    )
    if not isinstance(theirs, str):
        all_s = theirs["wall_s"] + theirs["s_per_config"] * (found["valid"] - theirs["configurations"])
        share = found["to_the_answer_s"] / all_s
        print(f"  {share:.3f} of the {all_s:.0f} s that Kernel Tuner would take (aim: {MOST_SHARE_OF_ALL})")


def show(gpu: str, found: dict[str, Any], theirs: dict[str, Any] | str) -> None:
    """What was found, as text."""
    count = found["evaluated"]
    print(
        f"SGEMM 4096, {count} random configurations on {gpu}, an empty data folder; failed: {found['failed'] or 'none'}"
    )
    print(f"\nto the printed answer {found['to_the_answer_s']:.1f} s (aim on an H200: {MOST_S:.0f} s)")
    for phase, seconds in found["phases_s"].items():
        print(f"  {phase:<52} {seconds:7.2f} s")
    whole_s, works_s = found["measuring_s"], found["board_works_s"]
    if whole_s:
        print(f"\nfrom the first launch to the last the board has work for {works_s / whole_s:.1%} of {whole_s:.1f} s")
        for what, seconds in sorted(found["waits_s"].items(), key=lambda each: -each[1]):
            print(
                f"  without work: {what:<38} {seconds:7.2f} s, {seconds / max(1, count) * 1e3:.0f} ms a configuration"
            )
        for at, seconds in found["long_gaps_s"][:20]:
            print(f"  a gap of {seconds:.2f} s after {at:.1f} s")
    print(f"\nprocessor seconds per configuration, compilers included: {found['processor_s_per_configuration']:.3f}")
    for each in found["processes"]:
        if "resident_mib" in each:
            used = f"{each['resident_mib']:.0f} MiB at most, {each['processor_s']:.1f} s of processor"
            print(f"  {each['what']}: {used}")
    if isinstance(theirs, str):
        print(f"\n{theirs}")
        return
    share = found["to_the_answer_s"] / theirs["wall_s"]
    print(f"\nKernel Tuner {theirs['version']}: {theirs['wall_s']:.1f} s for the same")
    print(f"  ours is {share:.2f} of it (aim: {MOST_SHARE})")
    print(f"  best: {theirs['best']}, {theirs['best_energy_j']:.4g} J; ours {found['best']}")


def compile_bytecode() -> None:
    """Of all that is imported, as an installer does."""
    for package in PACKAGES:
        spec = importlib.util.find_spec(package)
        for place in (spec.submodule_search_locations or ()) if spec is not None else ():
            compileall.compile_dir(place, quiet=2, workers=0)


def main() -> int:
    if sys.argv[1:2] == ["--child"]:
        return child(Path(sys.argv[2]), sys.argv[3:])
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpu", default="0")
    parser.add_argument("--configurations", type=int, default=CONFIGURATIONS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", ".")))
    parser.add_argument("--without-kernel-tuner", action="store_true")
    parser.add_argument("--whole", type=int, default=30, help="energies that auto measures of the whole space")
    given = parser.parse_args()
    compile_bytecode()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "sample"
        found = ours(folder, given.gpu, given.configurations, given.seed)
        theirs: dict[str, Any] | str = "Kernel Tuner was left out"
        if given.gpu.startswith("simulated:"):
            theirs = "simulated: no look, no compiler, no runner process, and no Kernel Tuner"
        elif not given.without_kernel_tuner:
            theirs = kernel_tuner(folder, configurations(folder, found["session"]))
        show(given.gpu, found, theirs)
        kept = {"gpu": given.gpu, "ours": found, "theirs": theirs}
        if given.whole:
            folder = Path(name) / "whole"
            kept["whole"] = whole = ours(folder, given.gpu, given.whole, given.seed, "auto")
            kept["truth"] = known = truth(folder, given.gpu, whole["best"])
            show_whole(whole, known, theirs)
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "first_answer.json").write_text(json.dumps(kept, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
