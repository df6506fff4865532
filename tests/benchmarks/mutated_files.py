"""Opens thousands of mutated caches, T1, T4 and CSV files, tables and logs and prints what came of them. By hand:

    python tests/benchmarks/mutated_files.py [--count 10000] [--real FOLDER] [--keep FOLDER] [--first SEED]

Every file must open or be refused by one clear line: no other exception, no hang, at most 500 MB, nothing executed.
Exit status 1 where one does not. `--real` mutates the recordings of that folder too, cut to their first entries.
"""

from __future__ import annotations

import argparse
import collections
import gzip
import itertools
import json
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[1])]

from fixtures.formats_samples import write_samples  # noqa: E402
from fixtures.log_samples import SAMPLES as LOGS  # noqa: E402
from fixtures.mutations import mutated  # noqa: E402

from app.base.errors import InputError  # noqa: E402
from app.engine.formats.growing_cache import CacheFollower  # noqa: E402
from app.engine.formats.read import read_recording  # noqa: E402
from app.engine.formats.t1 import is_specification  # noqa: E402
from app.engine.metering.recorded_energy import recorded_energy  # noqa: E402
from app.engine.session.load import load_specification  # noqa: E402
from app.engine.session.planning import plan_replay, space_of  # noqa: E402
from app.sensors.recorded.logs.read import read_log  # noqa: E402

BATCH = 250  # files per process, whose peak memory is looked at
SLOW_S, HANG_S, MOST_MB = 5.0, 60.0, 500
_WATCHED = (
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.spawn",
    "subprocess.Popen",
    "socket.connect",
    "pickle.find_class",
)


class Came(NamedTuple):
    """What came of one file."""

    seed: int
    kind: str
    outcome: str  # opened, refused, or what is wrong with it
    message: str
    seconds: float


class _Hangs(Exception):
    pass


def opened(path: Path, kind: str) -> str:
    """What the program does with such a file when a person opens it: '' or the line that refuses it."""
    try:
        if kind == "log":
            for board in read_log(path).boards:
                recorded_energy(board)
        elif is_specification(path):
            space_of(load_specification(path))
        else:
            recording = read_recording(path)
            plan_replay(path, read=recording)
            recording.table()
        if kind == "cache":
            follower = CacheFollower(path)
            while follower.look().more:
                pass
    except InputError as error:
        line = str(error)
        if "\n" in line or not error.what or not error.where or not error.remedy or len(line) > 1200:
            raise AssertionError(f"not one clear line: {line[:300]!r}") from error
        return line
    return ""


def one(seed: int, kind: str, path: Path) -> Came:
    begin = time.thread_time()
    executed.clear()
    signal.setitimer(signal.ITIMER_PROF, HANG_S)  # of the processor: others may want it too
    try:
        message = opened(path, kind)
        outcome = "refused" if message else "opened"
    except _Hangs:
        outcome, message = "HANGS", ""
    except BaseException as error:  # noqa: BLE001  (whatever it is, it is a finding)
        outcome, message = f"{type(error).__name__}", str(error)[:300]
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    seconds = time.thread_time() - begin  # that of the process ticks while its timer runs
    if executed:
        outcome, message = "EXECUTED", ", ".join(executed)
    elif seconds > SLOW_S and outcome in ("opened", "refused"):
        outcome, message = "SLOW", f"{seconds:.1f} s"
    return Came(seed, kind, outcome, message, seconds)


executed: list[str] = []


def batch(jobs: Sequence[tuple[int, str, Path]], pipe: Any) -> None:
    """A process of its own for some files: what came of them, and the most memory it had."""

    def hangs(*_: object) -> None:
        raise _Hangs

    signal.signal(signal.SIGPROF, hangs)
    os.chdir(jobs[0][2].parent)
    sys.addaudithook(lambda event, _: executed.append(event) if event.startswith(_WATCHED) else None)
    came = [one(seed, kind, path) for seed, kind, path in jobs]
    if Path("PWNED").exists():
        came.append(Came(-1, "", "EXECUTED", "PWNED is there", 0.0))
    pipe.send((came, most_mb()))
    pipe.close()


def most_mb() -> float:
    """The most memory this program had, its parent's left out (Linux)."""
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) / 1024


def run_batch(jobs: Sequence[tuple[int, str, Path]]) -> tuple[list[Came], float]:
    """Run a batch in a fresh interpreter, which has no memory of ours."""
    mine, theirs = _CONTEXT.Pipe(duplex=False)
    process = _CONTEXT.Process(target=batch, args=(jobs, theirs))
    process.start()
    theirs.close()
    try:
        found: tuple[list[Came], float] = mine.recv()
    except EOFError:
        found = ([Came(jobs[0][0], "", "DIED", f"seeds {jobs[0][0]} and on", 0.0)], 0.0)
    process.join()
    return found


_CONTEXT = multiprocessing.get_context("spawn")


def real_bases(folder: Path) -> dict[str, list[bytes]]:
    """The recordings and T1 files of a folder, cut to their first entries so that thousands are read in minutes."""
    bases: dict[str, list[bytes]] = {"cache": [], "t1": [], "t4": []}
    for path in sorted(folder.iterdir()):
        data = path.read_bytes()
        try:
            document = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
        except ValueError:
            continue
        if isinstance(document.get("cache"), dict):
            document["cache"] = dict(itertools.islice(document["cache"].items(), 40))
            bases["cache"].append(json.dumps(document).encode())
        elif isinstance(document.get("results"), list):
            document["results"] = document["results"][:30]
            bases["t4"].append(json.dumps(document).encode())
        elif "ConfigurationSpace" in document:
            bases["t1"].append(json.dumps(document).encode())
    return bases


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--real", type=Path, action="append", default=[], help="a folder of real files")
    parser.add_argument("--keep", type=Path, help="where to put the files that something is wrong with")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bases = {kind: [path.read_bytes() for path in paths] for kind, paths in write_samples(Path(folder)).items()}
    for folder in arguments.real:
        for kind, found in real_bases(folder).items():
            bases[kind] += found
    bases["log"] = [text.encode() for text in LOGS.values()]
    kinds = list(bases)
    came: list[Came] = []
    peaks: list[float] = []
    begin = time.monotonic()
    for start in range(0, arguments.count, BATCH):
        with tempfile.TemporaryDirectory() as folder:
            jobs = []
            for n in range(start, min(start + BATCH, arguments.count)):
                seed, kind = arguments.first + n, kinds[n % len(kinds)]
                path = Path(folder) / f"{kind}-{seed}{'.json' if kind in ('cache', 't1', 't4') else '.csv'}"
                path.write_bytes(mutated(bases[kind][n // len(kinds) % len(bases[kind])], seed))
                jobs.append((seed, kind, path))
            found, peak = run_batch(jobs)
            for each in found:
                if arguments.keep is not None and each.outcome not in ("opened", "refused"):
                    arguments.keep.mkdir(parents=True, exist_ok=True)
                    for _, _, path in (job for job in jobs if job[0] == each.seed):
                        shutil.copy(path, arguments.keep)
        came += found
        peaks.append(peak)
        print(f"{len(came)} of {arguments.count}", end="\r", file=sys.stderr, flush=True)
    return report(came, peaks, {kind: len(found) for kind, found in bases.items()}, time.monotonic() - begin)


def report(came: Sequence[Came], peaks: Sequence[float], bases: dict[str, int], seconds: float) -> int:
    """Print the table; 1 where something is wrong."""
    print("files     of  opened  refused  other  median ms  largest s")
    wrong = [each for each in came if each.outcome not in ("opened", "refused")]
    for kind in bases:
        mine = [each for each in came if each.kind == kind]
        times = sorted(each.seconds for each in mine)
        counts = collections.Counter(each.outcome for each in mine)
        other = len(mine) - counts["opened"] - counts["refused"]
        print(
            f"{kind:6} {len(mine):5}  {counts['opened']:6}  {counts['refused']:7}  {other:5}"
            f"  {times[len(times) // 2] * 1e3:9.1f}  {times[-1]:9.2f}"
        )
    print(f"{len(came)} files of {sum(bases.values())} good ones, {seconds:.0f} s, most memory {max(peaks):.0f} MB")
    for each in wrong[:30]:
        print(f"  seed {each.seed} {each.kind}: {each.outcome}: {each.message}")
    return 1 if wrong or max(peaks) > MOST_MB else 0


if __name__ == "__main__":
    raise SystemExit(main())
