"""Are the operators' exported winners below NVIDIA's library for someone who has only the exported files?

    PYTHONPATH=. python tests/benchmarks/operators_outside.py operators.jsonl --gpu 0 --shapes "MM1 MM4 MV3 CONV2"

The winner of each shape in a file that `operators.py` kept is measured once by `wattridge tune` and written by
`wattridge export`; a header with other parameters than the winner's ends all. From there on another process takes over
that shares no line with the program: it compiles the exported source, by the line at its head, and the file of the
machine code that was measured; reads the arrays' sizes from the exported header, checks both results against PyTorch,
and measures both and the library in turns from a board that has rested: graphs of 20 launches for some seconds, the
mean of the driver's samples of power over the last of them, time by events. The library is the fastest of what PyTorch
has for the shape, without TF32. It reads and never sets. It needs PyTorch, nvidia-ml-py and nvcc.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
OURS = {"source": ".cu", "code": "-code.c"}  # by nvcc, and as it was measured
DEFINED = re.compile(r"^#define (\w+) (\S+)", re.MULTILINE)
ARRAY = re.compile(r"^ \* (\w+): .* numbers of type \w+, (\d+) bytes(.*)$", re.MULTILINE)
LAUNCHES = 20  # of a graph


def exported(operator: str, configuration: dict[str, Any], gpu: str, folder: Path) -> Path:
    """The folder with the source and header that a user gets for this configuration."""
    kind, _, shape = operator.partition(":")
    start = ", ".join(f"{name} = {json.dumps(value)}" for name, value in configuration.items())
    path = folder / "operator.toml"
    path.write_text(
        f'[operator]\nkind = "{kind}"\nshape = [{shape}]\n[search]\nmax_evaluations = 1\nstart = [{{ {start} }}]\n'
    )
    environment = {**os.environ, "WATTRIDGE_DATA": str(folder / "data")}
    program = [sys.executable, "-m", "app"]
    for words in (["tune", str(path), "--gpu", gpu], ["export", "--out", str(folder)]):
        ran = subprocess.run([*program, *words], cwd=ROOT, env=environment, capture_output=True, text=True)
        if ran.returncode:
            raise RuntimeError(f"{' '.join(words)}: {ran.stderr[-400:]}")
    check_parameters(next(folder.glob("*.h")), configuration)
    return folder


def check_parameters(header: Path, configuration: dict[str, Any]) -> None:
    """End all where the header has other parameters: what it says would be measured as somebody else's."""
    found = dict(DEFINED.findall(header.read_text()))
    wanted = {name: str(int(value) if isinstance(value, bool) else value) for name, value in configuration.items()}
    if {name: value for name, value in found.items() if not name.startswith("WATTRIDGE_")} != wanted:
        sys.exit(f"{header.name} has {found}, and the winner is {wanted}")


def built(folder: Path, which: str) -> Path:
    """One of the exported files as a shared library."""
    source = next(each for each in folder.glob(f"*{OURS[which]}"))
    library, options = folder / f"{which}.so", list[str]()
    if which == "source":
        said = re.search(r"^// Compile: nvcc -c (.*)$", source.read_text(), re.MULTILINE)
        assert said is not None, "the line at its head"
        options = said[1].split()
    command = ["nvcc", "-shared", "-Xcompiler", "-fPIC", *options]  # C it hands to the compiler of C
    subprocess.run([*command, "-o", str(library), str(source)], check=True)
    return library


def outside(operator: str, folder: Path, rest_s: float, load_s: float, turns: int) -> None:
    """Source, machine code and library measured in turns, by PyTorch, nvcc and NVML alone; one line of JSON."""
    import ctypes

    import pynvml
    import torch
    from torch.nn.functional import conv2d

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    kind, _, numbers = operator.partition(":")
    shape = [int(each) for each in numbers.split(",")]
    header = next(folder.glob("*.h")).read_text()
    torch.cuda.init()
    ctypes.CDLL("libcuda.so.1", mode=ctypes.RTLD_GLOBAL)
    launches = {each: getattr(ctypes.CDLL(str(built(folder, each))), f"launch_{kind}") for each in OURS}
    arrays = {
        name: torch.zeros(int(size) // 4, device="cuda") if "written" in said or "zeroed" in said
        # as small as what the sums may be off by is compared with
        else torch.rand(int(size) // 4, device="cuda") - 0.5
        for name, size, said in ARRAY.findall(header)
    }  # fmt: skip
    pointers = [ctypes.c_void_p(each.data_ptr()) for each in arrays.values()]

    def launched(which: str) -> None:
        failed = launches[which](*pointers, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
        if failed:
            raise RuntimeError(f"launch_{kind} of the {which} returned {failed}")

    if kind == "mm":
        batch, m, n, k = shape
        a, b = arrays["a"].view(batch, m, k), arrays["b"].view(batch, k, n)
        theirs = {"matmul": lambda: torch.matmul(a, b) if batch > 1 else torch.mm(a[0], b[0])}
    elif kind == "mv":
        batch, _, n, k = shape
        w, x = arrays["w"].view(batch, n, k), arrays["x"].view(batch, k, 1)
        theirs = {"matmul": lambda: torch.matmul(w, x)}
        if batch == 1:
            theirs["mv"] = lambda: torch.mv(w[0], x[0, :, 0])
    else:
        batch, h, width, c_in, c_out, size, stride, pad = shape
        x = arrays["x"].view(batch, h, width, c_in).permute(0, 3, 1, 2)  # channels_last, as it lies
        w = arrays["w"].view(size, size, c_in, c_out).permute(3, 2, 0, 1)
        x_plain, w_plain, w_last = x.contiguous(), w.contiguous(), w.contiguous(memory_format=torch.channels_last)
        theirs = {
            "conv2d NHWC": lambda: conv2d(x, w_last, stride=stride, padding=pad),
            "conv2d NCHW": lambda: conv2d(x_plain, w_plain, stride=stride, padding=pad),
        }
        if size == 1 and stride == 1 and pad == 0:
            rows, columns = arrays["x"].view(-1, c_in), arrays["w"].view(c_in, c_out)
            theirs["mm"] = lambda: torch.mm(rows, columns)

    wanted = next(iter(theirs.values()))()
    wanted = (wanted.permute(0, 2, 3, 1) if kind == "conv2d" else wanted).reshape(-1)
    written = next(each for name, each in arrays.items() if name in ("c", "y"))
    off = 0.0
    for which in OURS:
        written.fill_(float("nan"))
        launched(which)
        torch.cuda.synchronize()
        off = max(off, float((written - wanted).abs().max() / wanted.abs().max()))
        if not off < 1e-4:
            raise RuntimeError(f"the result of the exported {which} differs by {off:.2g}")

    def graph(work: Any) -> torch.cuda.CUDAGraph:
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            work()
        torch.cuda.synchronize()
        made = torch.cuda.CUDAGraph()
        with torch.cuda.graph(made, stream=stream):
            for _ in range(LAUNCHES):
                work()
        return made

    def time_s(made: torch.cuda.CUDAGraph, replays: int) -> float:
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(replays):
            made.replay()
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end)) / 1e3 / replays / LAUNCHES

    pynvml.nvmlInit()
    board = pynvml.nvmlDeviceGetHandleByIndex(0)

    def measured(made: torch.cuda.CUDAGraph) -> tuple[float, float, float, float]:
        """Seconds and joules of a launch, watts, degC: of the last two fifths of a load that began after a rest."""
        time.sleep(rest_s)
        replays = max(1, round(0.05 / (time_s(made, 3) * LAUNCHES)))
        began, times, newest = time.monotonic(), [], 0
        watts: list[float] = []
        warm: list[int] = []
        while (at := time.monotonic() - began) < load_s:
            late = at >= 0.6 * load_s
            took = time_s(made, replays)
            samples = pynvml.nvmlDeviceGetSamples(board, pynvml.NVML_TOTAL_POWER_SAMPLES, newest)[1]
            new = [(each.timeStamp, each.sampleValue.uiVal / 1e3) for each in samples if each.timeStamp > newest]
            newest = max([newest, *(stamp for stamp, _ in new)])
            if late:
                times.append(took)
                watts += [power for _, power in new]
                warm.append(pynvml.nvmlDeviceGetTemperature(board, pynvml.NVML_TEMPERATURE_GPU))
        seconds, power = sum(times) / len(times), sum(watts) / len(watts)
        return seconds, seconds * power, power, sum(warm) / len(warm)

    graphs = {name: graph(work) for name, work in theirs.items()}
    fastest = min(graphs, key=lambda name: time_s(graphs[name], 20))
    each = {**{which: graph(partial(launched, which)) for which in OURS}, "theirs": graphs[fastest]}
    rows = [{name: measured(made) for name, made in each.items()} for _ in range(turns)]
    print("OUTSIDE " + json.dumps({"library": fastest, "off": off, "rows": rows}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("record", type=Path, help="what operators.py kept, or the folder of an exported winner")
    parser.add_argument("--gpu", default="0")
    parser.add_argument("--shapes", default="MM1 MM4 MV3 CONV2")
    parser.add_argument("--rest", type=float, default=4.0, help="seconds without work before each load")
    parser.add_argument("--load", type=float, default=5.0, help="seconds of a load")
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--outside", metavar="OPERATOR", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.outside:
        outside(arguments.outside, arguments.record, arguments.rest, arguments.load, arguments.turns)
        return
    kept = [json.loads(line) for line in arguments.record.read_text().splitlines()]
    records = {each["shape"]: each for each in kept if "winners" in each}
    missed: list[str] = []
    print("by nvcc from the source / the machine code that was measured / the library; less: each of ours than it")
    print("shape  library       energy (mJ)                              less             in session  time (ms)  degC")
    for shape in arguments.shapes.split():
        record = records[shape]
        winner = dict(record["winners"])["k search"]
        inside = 1 - winner["energy_mj"] / (record["vendor"]["values"]["energy_j"] * 1e3)
        with tempfile.TemporaryDirectory() as place:
            try:
                folder = exported(record["operator"], winner["configuration"], arguments.gpu, Path(place))
                words = [sys.executable, __file__, str(folder), "--outside", record["operator"]]
                words += ["--rest", str(arguments.rest), "--load", str(arguments.load), "--turns", str(arguments.turns)]
                ran = subprocess.run(words, capture_output=True, text=True)
                found = re.search(r"^OUTSIDE (.*)$", ran.stdout, re.MULTILINE)
                if found is None:
                    raise RuntimeError((ran.stderr or ran.stdout)[-400:])
            except (RuntimeError, OSError, StopIteration) as error:
                missed.append(shape)
                print(f"{shape:5s}  not measured: {error}", flush=True)
                continue
        said = json.loads(found[1])
        joules = {who: [row[who][1] * 1e3 for row in said["rows"]] for who in (*OURS, "theirs")}
        times = {who: sum(row[who][0] for row in said["rows"]) / len(said["rows"]) * 1e3 for who in joules}
        less = " / ".join(f"{1 - sum(joules[who]) / sum(joules['theirs']):+.1%}" for who in OURS)
        warm = " ".join(f"{row[who][3]:.0f}" for row in said["rows"] for who in joules)
        all_joules = " / ".join(" ".join(f"{each:.2f}" for each in values) for values in joules.values())
        all_times = " / ".join(f"{each:.4f}" for each in times.values())
        print(
            f"{shape:5s}  {said['library']:12s}  {all_joules:40s} {less:16s} {inside:+10.1%}  {all_times}  {warm}",
            flush=True,
        )
    if missed:
        sys.exit(f"not measured: {', '.join(missed)}")


if __name__ == "__main__":
    main()
