"""Opens thousands of mutated specifications, builds their spaces and prints what came of them. By hand:

    python tests/benchmarks/mutated_specifications.py [--count 10000] [--keep FOLDER] [--first SEED]

Every file must open or be refused by one clear line: no other exception, no hang, at most 500 MB, nothing executed.
Exit status 1 where one does not. The good ones are the examples, and one with ranges that depend on one another.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "benchmarks")]

from fixtures.specification_mutations import mutated  # noqa: E402
from mutated_files import BATCH, Came, report, run_batch  # noqa: E402

RANGES = b"""
restrictions = ["a * b <= n and c < b", "word == 'x' or a % 2 == 0", "(a + b + c + d) % 5 != 1", "e in [1, 2, a]"]
[constants]
n = 4000
[parameters]
a = "range(1, 200)"
b = "range(a, 400, 3)"
c = "range(b, 0, -a)"
d = [1, 2, 4, 8, 16, 32]
e = "[a, 2 * a]"
word = ["x", "y"]
share = [0.25, 0.5]
block_size_x = [32, 64, 128]
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--keep", type=Path, help="where to put the files that something is wrong with")
    arguments = parser.parse_args()
    bases = {path.stem: path.read_bytes() for path in sorted((ROOT / "resources" / "examples").glob("*.toml"))}
    bases["ranges"] = RANGES
    kinds = list(bases)
    came: list[Came] = []
    peaks: list[float] = []
    begin = time.monotonic()
    for start in range(0, arguments.count, BATCH):
        with tempfile.TemporaryDirectory() as folder:
            jobs = []
            for n in range(start, min(start + BATCH, arguments.count)):
                seed, kind = arguments.first + n, kinds[n % len(kinds)]
                path = Path(folder) / f"{kind}-{seed}.toml"
                path.write_bytes(mutated(bases[kind], seed))
                jobs.append((seed, kind, path))
            found, peak = run_batch(jobs)
            for each in found:
                if arguments.keep is not None and each.outcome not in ("opened", "refused"):
                    arguments.keep.mkdir(parents=True, exist_ok=True)
                    for _, _, path in (job for job in jobs if job[0] == each.seed):
                        shutil.copy(path, arguments.keep)
        came += found
        peaks.append(peak)
        print(f"{len(came)} of {arguments.count}, {peak:.0f} MB", end="\r", file=sys.stderr, flush=True)
    return report(came, peaks, dict.fromkeys(bases, 1), time.monotonic() - begin)


if __name__ == "__main__":
    raise SystemExit(main())
