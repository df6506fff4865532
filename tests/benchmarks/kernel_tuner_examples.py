"""Kernel Tuner's own examples through `wattridge kernel-tuner`, unchanged: which run, and why the others do not.

    git clone https://github.com/KernelTuner/kernel_tuner /tmp/kernel_tuner
    PYTHONPATH=. python tests/benchmarks/kernel_tuner_examples.py /tmp/kernel_tuner/examples/cuda --gpu 0 --seconds 60
    PYTHONPATH=. python tests/benchmarks/kernel_tuner_examples.py /tmp/kernel_tuner/examples/opencl --gpu opencl
    PYTHONPATH=. python tests/benchmarks/kernel_tuner_examples.py FOLDER --beside PYTHON --rounds 5

Notebooks run as their cells with code. Each runs in a copy of its folder, with a data folder of its own, and
`--seconds` for each of its sessions; without
`--gpu` on the device that the script itself means. On a simulated board kernels do not run: the table shows then which
scripts get as far as a launch, and no figure in it means anything.

With `--beside PYTHON`, an interpreter with Kernel Tuner, those that ran go through Kernel Tuner as well, over the
configurations that were measured here: which fail, which is the best. Then Wattridge does the same over the same
configurations, restricted by the same function, so that the seconds of the two calls of `tune_kernel` are of the same
work. With `--rounds` the two winners are measured again in turns, round after round, by each of the two programs, and
by Wattridge with their energy, which shows the power and the clock that a longer load runs at. `--replace
sm_52=sm_90` gives both programs a copy of the scripts in which that text is another, and says so. Nothing is set on
the board by either.
Nothing that this fetches belongs into the repository.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
WATCHED = Path(__file__).with_name("kernel_tuner_watched.py")
# How a simulated board costs them; a script that has none here is costed as a copy, to see how far it gets.
PROFILES = {
    "convolution": "convolution",
    "matmul": "gemm",
    "reduction": "reduction",
    "sepconv": "convolution",
    "stencil": "stencil",
    "vector_add": "vector_add",
}
Configuration = tuple[str, ...]  # the values as text, in the order of the parameters


@dataclass(frozen=True)
class Round:
    """What one call of `tune_kernel` measured: times in ms, None where a configuration failed."""

    names: tuple[str, ...]
    times: Mapping[Configuration, float | None]
    seconds: float
    error: str = ""  # the first line of the first that failed
    boards: Mapping[Configuration, str] = field(default_factory=dict)  # power and clock, where energy was measured

    @property
    def best(self) -> Configuration | None:
        worked = {each: value for each, value in self.times.items() if value is not None}
        return min(worked, key=worked.__getitem__) if worked else None

    @property
    def failed(self) -> set[Configuration]:
        return {each for each, value in self.times.items() if value is None}

    def words(self, configuration: Configuration | None) -> str:
        if configuration is None:
            return "none worked"
        named = ", ".join(f"{name}={value}" for name, value in zip(self.names, configuration, strict=True))
        return f"{named}: {self.times[configuration]:.6g} ms"


@dataclass(frozen=True)
class Ended:
    """How a script ended."""

    words: str
    rounds: tuple[Round, ...]
    seconds: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--gpu", help="in place of the device that a script means")
    parser.add_argument("--seconds", type=float, default=30.0, help="of each session")
    parser.add_argument("--most", type=int, help="configurations of each session")
    parser.add_argument("--only", default="", help="scripts whose names hold one of these, separated by commas")
    parser.add_argument("--beside", metavar="PYTHON", help="an interpreter with Kernel Tuner")
    parser.add_argument("--rounds", type=int, default=0, help="so often both winners are measured again")
    parser.add_argument("--replace", action="append", default=[], metavar="OLD=NEW", help="a text of the scripts")
    parser.add_argument("--limit", type=float, default=900.0, help="seconds of a script")
    arguments = parser.parse_args()
    scripts = [
        path
        for path in sorted([*arguments.folder.glob("*.py"), *arguments.folder.glob("*.ipynb")])
        if any(part in path.name for part in arguments.only.split(","))
    ]
    for each in arguments.replace:
        print("in the scripts '{}' became '{}'".format(*each.split("=", 1)))
    print(f"{'script':32s} {'seconds':>8s}  result")
    ran = 0
    for path in scripts:
        ours = through_wattridge(path, arguments)
        ran += ours.words == "ran"
        print(f"{path.stem:32s} {ours.seconds:8.1f}  {ours.words}", flush=True)
        for each in ours.rounds:
            print(f"{'':42s} {len(each.times)} measured, {len(each.failed)} failed; best {each.words(each.best)}")
            if each.error:
                print(f"{'':42s} the first failure: {each.error[:160]}")
        if arguments.beside and ours.words == "ran" and ours.rounds:
            compare(path, ours, arguments)
    print(f"{ran} of {len(scripts)} ran")


def compare(path: Path, ours: Ended, arguments: argparse.Namespace) -> None:
    """The same configurations through Kernel Tuner, then the winners of both in turns."""
    calls = [list(each.times) for each in ours.rounds]
    theirs = watched(path, arguments, calls, rounds=1, wattridge=False)
    print(f"{'  Kernel Tuner':32s} {theirs.seconds:8.1f}  {theirs.words}")
    again = watched(path, arguments, calls, rounds=1, wattridge=True)
    print(f"{'  Wattridge, in the same way':32s} {again.seconds:8.1f}  {again.words}")
    for mine, other, timed in zip(ours.rounds, theirs.rounds, again.rounds, strict=False):
        same = mine.failed == other.failed and set(mine.times) == set(other.times)
        print(f"{'':42s} {len(other.times)} measured, {len(other.failed)} failed; best {other.words(other.best)}")
        best = "yes" if mine.best == other.best else "no"
        print(
            f"{'':42s} same configurations and failures: {'yes' if same else 'no'}; same best: {best}; "
            f"the call {timed.seconds:.1f} s here, {other.seconds:.1f} s there"
        )
        for each in sorted(mine.failed ^ other.failed)[:3]:
            print(f"{'':44s} fails {'here' if each in mine.failed else 'there'} alone: {', '.join(each)}")
    if arguments.rounds and theirs.rounds:
        in_turns(path, ours, theirs, arguments)


def in_turns(path: Path, ours: Ended, theirs: Ended, arguments: argparse.Namespace) -> None:
    """Both winners of each session measured again, round after round, by each program."""
    pairs = [
        [list(best) for best in dict.fromkeys((mine.best, other.best)) if best is not None]
        for mine, other in zip(ours.rounds, theirs.rounds, strict=False)
    ]
    for title, here in (("Wattridge", True), ("Kernel Tuner", False), ("Wattridge, with energy", True)):
        energy = title.endswith("energy")
        rounds = 1 if energy else arguments.rounds
        again = watched(path, arguments, pairs, rounds=rounds, wattridge=here, energy=energy)
        if again.words != "ran" and len(again.rounds) < len(pairs) * rounds:
            print(f"{'':42s} again by {title}: {again.words}")
        for at, winners in enumerate(pairs):
            turns = again.rounds[at * rounds : (at + 1) * rounds]
            for who, winner in zip(("ours", "theirs") if len(winners) > 1 else ("both's",), winners, strict=True):
                times = [value for each in turns if (value := each.times.get(tuple(winner))) is not None]
                board = "; ".join(words for each in turns if (words := each.boards.get(tuple(winner))))
                words = spread(times) + (f"; {board}" if board else "")
                print(f"{'':42s} again by {title}, session {at + 1}, {who} {', '.join(winner)}: {words}")


def spread(times: Sequence[float]) -> str:
    if not times:
        return "not measured"
    deviation = statistics.stdev(times) if len(times) > 1 else float("nan")
    return f"{statistics.mean(times):.6g} ms, deviation {deviation:.2g}, {len(times)} turns"


def through_wattridge(path: Path, arguments: argparse.Namespace) -> Ended:
    """By the command, as a user runs it."""
    with tempfile.TemporaryDirectory() as place:
        folder = copied(path.parent, Path(place) / "examples", arguments.replace)
        data = Path(place) / "data"
        environment = {
            **os.environ,
            "WATTRIDGE_DATA": str(data),
            "PYTHONPATH": os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", ""))),
        }
        words = ["--max-seconds", str(arguments.seconds), *(["--gpu", arguments.gpu] if arguments.gpu else [])]
        words += ["--max-evaluations", str(arguments.most)] if arguments.most else []
        if (arguments.gpu or "").startswith("simulated"):
            words += ["--profile", next((PROFILES[name] for name in PROFILES if name in path.stem), "copy")]
        script = path.name if path.suffix == ".py" else as_script(folder / path.name)
        command = [sys.executable, "-P", "-m", "app", "kernel-tuner", *words, script]
        said, status, seconds = run(command, folder, environment, arguments.limit)
        rounds = tuple(stored(data / "wattridge.sqlite")) if (data / "wattridge.sqlite").is_file() else ()
    return Ended("ran" if status == 0 else reason(said, status), rounds, seconds)


def as_script(notebook: Path) -> str:
    """The cells with code one after the other, without what only a notebook runs; `%%writefile` writes its cell."""
    lines = []
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] != "code":
            continue
        if text.startswith("%%writefile"):
            head, _, rest = text.partition("\n")
            (notebook.parent / head.split()[-1]).write_text(rest, encoding="utf-8")
        elif not text.startswith(("%%bash", "%%sh")):
            lines += [line for line in text.splitlines() if not line.lstrip().startswith(("%", "!"))]
    notebook.with_suffix(".py").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return notebook.with_suffix(".py").name


def stored(path: Path) -> list[Round]:
    """The sessions of a script, in their order."""
    sys.path.insert(0, str(ROOT))
    from app.engine.formats.names import THEIR_SETTINGS
    from app.engine.store.database import Store

    found = []
    with Store(path) as store:
        for record in sorted(store.sessions(), key=lambda each: each.id):
            table = store.load(record.id).table
            rows = [row for at in range(len(table)) if (row := table.measurement(at)).final]
            names = tuple(THEIR_SETTINGS.get(name, name) for name in table.space.names)
            times = {
                tuple(map(str, row.configuration.values())): row.values["time_s"] * 1e3 if row.state == "ok" else None
                for row in rows
            }
            error = next((row.error.splitlines()[0] for row in rows if row.error), "")
            found.append(Round(names, times, record.elapsed_s, error))
    return found


def copied(folder: Path, target: Path, replaced: Sequence[str]) -> Path:
    """The folder's copy, with the texts that are replaced in its scripts."""
    shutil.copytree(folder, target)
    for script in target.glob("*.py") if replaced else ():
        text = script.read_text(encoding="utf-8")
        for each in replaced:
            text = text.replace(*each.split("=", 1))
        script.write_text(text, encoding="utf-8")
    return target


def watched(
    path: Path,
    arguments: argparse.Namespace,
    calls: Sequence[Any],
    *,
    rounds: int,
    wattridge: bool,
    energy: bool = False,
) -> Ended:
    """By `kernel_tuner_watched.py`, in the interpreter of either program."""
    with tempfile.TemporaryDirectory() as place:
        folder = copied(path.parent, Path(place) / "examples", arguments.replace)
        asked = Path(place) / "asked.json"
        document = {"calls": calls, "rounds": rounds, "wattridge": wattridge, "gpu": arguments.gpu, "energy": energy}
        asked.write_text(json.dumps(document))
        environment = {**os.environ, "WATTRIDGE_DATA": str(Path(place) / "data")}
        python = sys.executable if wattridge else arguments.beside
        said, status, seconds = run([python, str(WATCHED), str(asked), path.name], folder, environment, arguments.limit)
    found = tuple(map(read_round, re.findall(r"^ROUND (.*)$", said, re.MULTILINE)))
    return Ended("ran" if status == 0 else reason(said, status), found, seconds)


def read_round(line: str) -> Round:
    said = json.loads(line)
    rows = {tuple(row["configuration"]): row for row in said["rows"]}
    boards = {each: row["board"] for each, row in rows.items() if row["board"]}
    return Round(tuple(said["names"]), {each: row["time"] for each, row in rows.items()}, said["seconds"], "", boards)


def run(command: list[str], folder: Path, environment: dict[str, str], limit: float) -> tuple[str, int | None, float]:
    began = time.monotonic()
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=limit
        )
    except subprocess.TimeoutExpired as late:
        return (late.output or b"").decode("utf-8", "replace"), None, time.monotonic() - began
    return done.stdout.decode("utf-8", "replace"), done.returncode, time.monotonic() - began


def reason(said: str, status: int | None) -> str:
    """Why it did not run to its end, in a line."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    if status is None:
        return "took too long"
    return (lines[-1] if lines else f"exit status {status}")[:150]


if __name__ == "__main__":
    main()
