"""Is the answer for a product in BF16 below the vendor's library for someone who has only the exported files?

    PYTHONPATH=. python tests/benchmarks/vendor_outside.py FOLDER --tune --gpu 0 --max-seconds 40 --shapes 1,3,5,7,9
    python tests/benchmarks/vendor_outside.py FOLDER [FOLDER ...] --gpu 0       those that are there, measured
    python tests/benchmarks/vendor_outside.py FOLDER [FOLDER ...] --table       what was measured before, once more

The shapes are the ten of `vendor_shapes.py`, by their number from 1, and d1 to d6 for development (`--development`: all
six). `--tune` runs `wattridge tune mm:B,T,O,I:bf16:nt` and `wattridge export` for each, with a data folder of its own,
into FOLDER/NAME: two processes on two boards may share the shapes and the folder. Without it, each answer that is there
is measured by another process that shares no line with the program and has PyTorch and nvidia-ml-py alone. It imports
the exported file of Python, checks its result and the library's against a product in FP32, and measures both on the
same operands, random normal numbers, in rounds of random order. The library is the fastest of `torch.mm`,
`torch.matmul` and `F.linear`. Each side of a round replays a CUDA graph back to back; counted is the later part of it:
time by events, power by the mean of the driver's samples, or between two steps of the energy counter, which takes a
step about every 100 ms, where there are fewer than four samples. A ratio is the mean of its logarithms within rounds,
with Student's interval of 95 %. Where the answer is the library as it is, the ratio is 1 by definition, and nothing is
measured. Each shape takes at most 12 s of the board. It reads and never sets. Lines of JSON go to FOLDER/outside.jsonl.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import os
import random
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from vendor_shapes import DEVELOPMENT, Shape, drawn

ROOT = Path(__file__).resolve().parents[2]
ROUNDS, LEAST_ROUNDS, SIDE_S, SKIPPED_S, MOST_S = 10, 8, 0.5, 0.2, 11.0
GRAPH_S = 0.01  # of a graph
LIMITS = 0x4 | 0x8 | 0x20 | 0x40 | 0x80  # power cap, hardware's slowdown, thermal ones, power brake
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)
OFF = 4.0  # times what rounding of the output may leave: parts of sums may be rounded, too


def notation(shape: Shape) -> str:
    """As `wattridge tune` takes it."""
    return f"mm:{shape.batch},{shape.tokens},{shape.outputs},{shape.inputs}:bf16:nt"


def name_of(shape: Shape) -> str:
    """Of its folder, and of the files in it."""
    return notation(shape).translate(str.maketrans(":,", "--"))


def shapes_of(words: str) -> list[Shape]:
    """Those that are named: numbers of the ten, d1 to d6, or notations."""
    ten = drawn()
    known = {str(place): shape for place, shape in enumerate(ten, 1)}
    known |= {f"d{place}": shape for place, shape in enumerate(DEVELOPMENT, 1)}
    known |= {notation(shape): shape for shape in (*ten, *DEVELOPMENT)}
    asked = words.replace(" ", ",").split(",") if ":" not in words else words.split()
    if unknown := [word for word in asked if word not in known]:
        sys.exit(f"no shape '{unknown[0]}': numbers from 1 to {len(ten)}, d1 to d{len(DEVELOPMENT)}, or notations")
    return [known[word] for word in asked]


# --- the program ------------------------------------------------------------------------------------------------------


def tune(shape: Shape, folder: Path, gpu: str, seconds: float) -> str:
    """What the program answers, exported; a line on it."""
    place = folder / name_of(shape)
    place.mkdir(parents=True, exist_ok=True)
    for before in (each for each in place.iterdir() if each.is_file()):  # of another answer
        before.unlink()
    environment = {**os.environ, "WATTRIDGE_DATA": str((place / "data").resolve())}
    program = [sys.executable, "-m", "app"]
    begun = time.monotonic()
    words = ["tune", notation(shape), "--gpu", gpu, "--max-seconds", str(seconds), "--json"]
    ran = subprocess.run([*program, *words], cwd=ROOT, env=environment, capture_output=True, text=True)
    (place / "tune.json").write_text(ran.stdout)
    if not ran.returncode:
        words = ["export", "--out", str(place.resolve()), "--force"]
        ran = subprocess.run([*program, *words], cwd=ROOT, env=environment, capture_output=True, text=True)
    if ran.returncode:
        return f"{name_of(shape)}: {words[0]} ended with {ran.returncode}: {ran.stderr.strip()[-300:]}"
    answer = answer_of(place)
    return f"{name_of(shape)}: {answer['maker']} {answer['algorithm']}, {time.monotonic() - begun:.0f} s"


def answer_of(place: Path) -> dict[str, Any]:
    """Of the exported document and that of the session: maker, what the program says against the library."""
    document = json.loads((place / f"{place.name}.json").read_text())
    configuration = document["configuration"]
    said = json.loads((place / "tune.json").read_text()) if (place / "tune.json").is_file() else {}
    library = ((said.get("vendor_library") or {}).get("values") or {}).get("energy_j")
    own = document["values"].get("energy_j", {}).get("value")
    maker = configuration.get("maker", "triton")
    return {
        "maker": maker,
        "algorithm": configuration.get("algorithm", "-"),
        "configuration": configuration,
        # the answer is another than the library only where it takes less for certain
        "better": maker != "library" and library is not None,
        "inside": own / library if own and library else None,
    }


# --- the other process: nothing of the program ------------------------------------------------------------------------


class Watch:
    """Samples of power, the energy counter and what limits the clocks, read by a thread until `close`."""

    def __init__(self, gpu: int) -> None:
        import pynvml

        self._nvml = pynvml
        pynvml.nvmlInit()
        self._board = pynvml.nvmlDeviceGetHandleByIndex(gpu)
        self.uuid = str(pynvml.nvmlDeviceGetUUID(self._board))
        self.limit_w = pynvml.nvmlDeviceGetEnforcedPowerLimit(self._board) / 1e3
        self.samples: dict[int, float] = {}  # us of the day's clock: W
        self.steps: list[tuple[float, float]] = []  # s, J: when the counter was seen to have another value
        self.reasons: list[tuple[float, int]] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def close(self) -> None:
        time.sleep(0.5)  # the driver's buffer is late
        self._over.set()
        self._thread.join()

    def power(self, since: float, until: float) -> tuple[float, str]:
        """Mean W between two times, and by what."""
        found = [watts for at, watts in self.samples.items() if since < at / 1e6 <= until]
        if len(found) >= 4:
            return statistics.mean(found), f"{len(found)} samples"
        steps = [step for step in self.steps if since < step[0] <= until]
        if len(steps) < 2 or steps[-1][0] - steps[0][0] < 0.15:
            return math.nan, f"{len(found)} samples, {len(steps)} steps of the counter"
        (first_s, first_j), (last_s, last_j) = steps[0], steps[-1]
        return (last_j - first_j) / (last_s - first_s), f"{len(steps)} steps of the counter"

    def limited(self, since: float, until: float) -> float:
        """The share of readings within which something held the clocks back."""
        found = [bool(value & LIMITS) for at, value in self.reasons if since < at <= until]
        return sum(found) / len(found) if found else math.nan

    def _read(self) -> None:
        nvml, board, newest, joules = self._nvml, self._board, 0, -1.0
        while not self._over.wait(0.004):
            try:
                now_j = nvml.nvmlDeviceGetTotalEnergyConsumption(board) / 1e3
                if now_j != joules:
                    self.steps.append((time.time(), now_j))
                    joules = now_j
            except nvml.NVMLError:
                pass
            if len(self.reasons) and time.time() - self.reasons[-1][0] < 0.04:
                continue
            self.reasons.append((time.time(), int(nvml.nvmlDeviceGetCurrentClocksEventReasons(board))))
            try:
                new = nvml.nvmlDeviceGetSamples(board, nvml.NVML_TOTAL_POWER_SAMPLES, newest)[1]
            except nvml.NVMLError:
                continue
            self.samples.update({each.timeStamp: each.sampleValue.uiVal / 1e3 for each in new})
            newest = max([newest, *self.samples])


def outside(shape: Shape, place: Path, gpu: int, rounds: int, side_s: float) -> dict[str, Any]:
    """The exported file and the library in turns; everything that was measured."""
    import torch
    from torch.nn.functional import linear

    path = place / f"{place.name.replace('-', '_')}.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    exported = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(exported)

    torch.cuda.init()
    watch = Watch(gpu)
    seen = str(getattr(torch.cuda.get_device_properties(0), "uuid", ""))
    if seen and seen not in watch.uuid:
        sys.exit(f"PyTorch has the board {seen}, NVML's {gpu} is {watch.uuid}")
    torch.manual_seed(5)
    a = torch.randn(shape.batch, shape.tokens, shape.inputs, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(shape.batch, shape.outputs, shape.inputs, device="cuda", dtype=torch.bfloat16)
    theirs: dict[str, Callable[[], Any]] = {"torch.matmul": lambda: torch.matmul(a, b.mT)}
    if shape.batch == 1:
        a, b = a[0], b[0]
        theirs |= {"torch.mm": lambda: torch.mm(a, b.t()), "F.linear": lambda: linear(a, b)}

    def recorded(work: Callable[[], Any], launches: int) -> Any:
        """A graph of so many launches."""
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            work()
        torch.cuda.synchronize()
        made = torch.cuda.CUDAGraph()
        with torch.cuda.graph(made, stream=stream):
            for _ in range(launches):
                work()
        return made

    def graphed(work: Callable[[], Any]) -> tuple[Any, int]:
        """A graph of so many launches that it takes about GRAPH_S, and how many these are."""
        one = recorded(work, 1)
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        for _ in range(2):  # the second one counts
            first.record()
            for _ in range(10):
                one.replay()
            last.record()
            last.synchronize()
        launches = max(1, min(4000, round(GRAPH_S / (first.elapsed_time(last) / 1e3 / 10))))
        return recorded(work, launches), launches

    def off(made: Any) -> float:
        wanted = torch.matmul(a.float(), b.float().mT)
        step = torch.finfo(torch.bfloat16).eps * (wanted.abs() + wanted.abs().mean() / 16)
        return float(((made.float() - wanted).abs() / step).nan_to_num(nan=math.inf).max())

    wrong = {"exported": off(exported.mm(a, b)), "library": off(next(iter(theirs.values()))())}
    if not wrong["exported"] <= max(OFF, 2 * wrong["library"]):
        sys.exit(
            f"the result of {path.name} is off by {wrong['exported']:.3g}, the library's by {wrong['library']:.3g}"
        )
    begun = time.time()  # Triton has compiled
    graphs = {name: graphed(work) for name, work in theirs.items()}

    def replayed(graph: tuple[Any, int], seconds: float, skipped_s: float) -> tuple[float, float, float]:
        """s of a launch in the later part of so many s of replays without a gap, and when that began and ended."""
        made, launches = graph
        marks = [torch.cuda.Event(enable_timing=True)]
        marks[0].record()
        ends: list[float] = []
        start = time.time()
        while not ends or ends[-1] - start < seconds:
            made.replay()
            marks.append(torch.cuda.Event(enable_timing=True))
            marks[-1].record()
            if len(marks) > 4:  # some are always queued
                marks[len(ends) + 1].synchronize()
                ends.append(time.time())
        torch.cuda.synchronize()
        ends += [time.time()] * (len(marks) - 1 - len(ends))
        first = next(place for place, at in enumerate(ends) if at - start >= skipped_s or place == len(ends) - 2)
        took_ms = marks[first + 1].elapsed_time(marks[-1])
        return took_ms / 1e3 / launches / (len(ends) - 1 - first), ends[first], ends[-1]

    fastest = min(graphs, key=lambda name: replayed(graphs[name], 0.1, 0.05)[0])
    sides = {"exported": graphed(lambda: exported.mm(a, b)), "library": graphs[fastest]}
    for side in sides.values():  # as warm as they will be
        replayed(side, 0.5, 0.1)
    rng, found = random.Random(11), list[dict[str, tuple[float, float, float]]]()
    while len(found) < rounds and (len(found) < LEAST_ROUNDS or time.time() - begun + 2 * side_s < MOST_S):
        found.append({who: replayed(sides[who], side_s, SKIPPED_S) for who in rng.sample(list(sides), 2)})
    board_s = time.time() - begun
    watch.close()
    rows = []
    for each in found:
        row: dict[str, Any] = {}
        for who, (time_s, since, until) in each.items():
            power_w, by = watch.power(since, until)
            row[who] = {"time_s": time_s, "power_w": power_w, "energy_j": power_w * time_s, "by": by}
            row[who]["limited"] = watch.limited(since, until)
        rows.append(row)
    return {
        "library": fastest,
        "off": wrong,
        "board": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "limit_w": watch.limit_w,
        "board_s": round(board_s, 2),
        "launches": {who: graph[1] for who, graph in sides.items()},
        "rounds": rows,
    }


# --- what it comes to -------------------------------------------------------------------------------------------------


def ratio(rounds: Sequence[dict[str, Any]], figure: str) -> tuple[float, float, float]:
    """(ratio, its lower and its upper end) of the exported file to the library."""
    logs = [math.log(each["exported"][figure] / each["library"][figure]) for each in rounds]
    middle = statistics.mean(logs)
    half = STUDENT[min(len(logs) - 2, len(STUDENT) - 1)] * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(middle), math.exp(middle - half), math.exp(middle + half)


def line(record: dict[str, Any]) -> str:
    """A row of the table."""
    answer, found = record["answer"], record.get("outside")
    head = f"{record['shape']:34s} {answer['maker']:9s}"
    if answer["maker"] == "library":
        return f"{head}  1 by definition: the answer is the library as it is"
    if found is None:
        return f"{head}  not measured: {record['why_not']}"
    whole = [each for each in found["rounds"] if all(math.isfinite(side["energy_j"]) for side in each.values())]
    if len(whole) < LEAST_ROUNDS:
        return f"{head}  {len(whole)} rounds with a power, {LEAST_ROUNDS} are needed"
    energy, low, high = ratio(whole, "energy_j")
    times, _, _ = ratio(whole, "time_s")
    inside = f"{answer['inside']:.3f}" if answer["inside"] else "-"
    agrees = ("yes" if high < 1 else "NO") if answer["better"] else "-"
    powers = {who: statistics.mean(each[who]["power_w"] for each in whole) for who in ("exported", "library")}
    at = [who for who in powers if statistics.mean(each[who]["limited"] for each in whole) > 0.5]
    limit = f"at the limit of {found['limit_w']:.0f} W: {', '.join(at)}" if at else ""
    said, drawn_w = "better" if answer["better"] else "-", " ".join(f"{power:4.0f}" for power in powers.values())
    return (
        f"{head}  {energy:.3f} ({low:.3f} to {high:.3f})  {times:.3f}  {inside:>6s}  {said:6s}  {agrees:3s}  "
        f"{drawn_w} W  {found['library']:12s} {limit}"
    )


def table(records: Sequence[dict[str, Any]]) -> None:
    print(f"{'shape':34s} maker      energy, 95 % interval   time   inside  said    so   power of both  library")
    for record in records:
        print(line(record))
    certain = [record for record in records if record.get("outside")]
    ends = [ratio(each["outside"]["rounds"], "energy_j") for each in certain]
    ends = [each for each in ends if math.isfinite(each[0])]
    by_3 = sum(high < 1 and middle <= 0.97 for middle, _, high in ends)
    worse = sum(low > 1 for _, low, _ in ends)
    print(f"{len(records)} shapes: {by_3} better by 3 % or more, {worse} above the library for certain")


def measured(shape: Shape, place: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """The record of a shape."""
    record: dict[str, Any] = {"shape": notation(shape), "kind": shape.kind, "answer": answer_of(place)}
    if record["answer"]["maker"] == "library":
        return record
    words = [sys.executable, str(Path(__file__).resolve()), str(place.resolve()), "--outside", notation(shape)]
    words += ["--gpu", arguments.gpu, "--rounds", str(arguments.rounds), "--seconds", str(arguments.seconds)]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": arguments.gpu}
    ran = subprocess.run(words, env=environment, cwd=place, capture_output=True, text=True)
    said = next((text for text in ran.stdout.splitlines() if text.startswith("OUTSIDE ")), None)
    if said is None:
        return {
            **record,
            "why_not": (ran.stderr.strip().splitlines() or [f"it ended with {ran.returncode}"])[-1][-300:],
        }
    return {**record, "outside": json.loads(said.removeprefix("OUTSIDE "))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help="with a folder for each shape")
    parser.add_argument("--tune", action="store_true", help="make the answers, in the first folder")
    parser.add_argument("--table", action="store_true", help="print what was measured before")
    parser.add_argument("--shapes", default=",".join(map(str, range(1, 11))), help="1 to 10, d1 to d6, or notations")
    parser.add_argument("--development", action="store_true", help="the six for development in place of the ten")
    parser.add_argument("--gpu", default="0", help="its index")
    parser.add_argument("--max-seconds", type=float, default=40.0, help="of the search for one shape")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--seconds", type=float, default=SIDE_S, help="of one side of a round")
    parser.add_argument("--outside", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.outside:
        found = outside(
            *shapes_of(arguments.outside),
            arguments.folders[0],
            int(arguments.gpu),
            arguments.rounds,
            arguments.seconds,
        )
        print("OUTSIDE " + json.dumps(found))
        return
    if arguments.rounds < LEAST_ROUNDS or arguments.seconds < SKIPPED_S + 0.25:
        sys.exit(f"at least {LEAST_ROUNDS} rounds, of at least {SKIPPED_S + 0.25:g} s for a side")
    development = ",".join(f"d{place}" for place in range(1, len(DEVELOPMENT) + 1))
    chosen = shapes_of(development if arguments.development else arguments.shapes)
    if arguments.tune:
        for shape in chosen:
            print(tune(shape, arguments.folders[0], arguments.gpu, arguments.max_seconds), flush=True)
        return
    records: list[dict[str, Any]] = []
    for shape, folder in ((shape, folder) for shape in chosen for folder in arguments.folders):
        kept, place = folder / "outside.jsonl", folder / name_of(shape)
        if arguments.table:
            lines = kept.read_text().splitlines() if kept.is_file() else []
            before = [record for record in map(json.loads, lines) if record["shape"] == notation(shape)]
            records += before[-1:]
        elif (place / f"{place.name}.json").is_file():
            records.append(measured(shape, place, arguments))
            with kept.open("a") as file:
                file.write(json.dumps(records[-1]) + "\n")
            print(line(records[-1]), flush=True)
    if not records:
        sys.exit("nothing of these shapes is there: --tune makes it")
    table(records)


if __name__ == "__main__":
    main()
