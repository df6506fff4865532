"""How long search spaces take to build, beside Kernel Tuner where that is installed. By hand:

python tests/benchmarks/spaces.py [FOLDER_OF_PUBLISHED_SPACES]

The folder holds `searchspaces_kernel_tuner_paper.json`. Every build is repeated, ours before and after theirs in one
process, and the shortest taken; seconds are those of the processor, which a busy machine changes least. Memory is the
peak of a process of its own. Never part of the test suite: time does not gate anything.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import platform
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from app.base.errors import InputError  # noqa: E402
from app.engine.session.load import load_specification  # noqa: E402
from app.engine.space.build import build_space  # noqa: E402
from app.engine.space.search_space import SearchSpace  # noqa: E402
from app.sensors.limits import limits_of  # noqa: E402

LIMITS = limits_of((8, 0))
REPEATS = 7
A_TWENTIETH = ("hotspot", "expdist", "microhh", "gemm")  # of the peer's time is the aim, for the others less than all
ALSO_THEIRS = ("one string of four conditions", "sum of 9, 10^9 combinations")  # it takes minutes over the others
ROWS = "{:34} {:>13} {:>10} {:>10} {:>11} {:>9} {:>7}  {}"

Definition = tuple[dict[str, Any], list[str], dict[str, Any]]


def digits(names: int, values: int, first: int = 0) -> dict[str, Any]:
    return {f"p{i}": list(range(first, first + values)) for i in range(names)}


def joined(symbol: str, names: int) -> str:
    return f" {symbol} ".join(f"p{i}" for i in range(names))


def hard() -> dict[str, Definition]:
    """Spaces of our own: what is large, thin, dependent, or hidden in one condition over everything."""
    dgemm = load_specification(ROOT / "resources/examples/dgemm.toml")
    grid = digits(8, 8, 1)
    return {
        "one string of four conditions": (
            grid,
            ["p0 * p1 == 16 and p2 < p3 and p4 + p5 == 9 and p6 % p7 == 0"],
            {},
        ),
        "DGEMM of S2, ranges on ranges": (dict(dgemm.parameters), list(dgemm.restrictions), dict(dgemm.constants)),
        "sum of 9, 10^9 combinations": (digits(9, 10), [f"{joined('+', 9)} <= 12"], {}),
        "product of 9, 10^9 combinations": (digits(9, 10, 1), [f"{joined('*', 9)} == 5040"], {}),
        "sum of 20, 10^20 combinations": (digits(20, 10), [f"{joined('+', 20)} <= 4"], {}),
        "triangles, ranges on ranges": (
            {"a": "range(1, 501)", "b": "range(a, 501)", "c": "range(b, 501)"},
            ["a * a + b * b == c * c"],
            {},
        ),
        "10^7 rows, no restriction": (digits(7, 10), [], {}),
        "10^7 rows of 11, one of 300 values": (
            {"a": list(range(300)), **digits(5, 4), **{f"q{i}": [0, 1] for i in range(5)}},
            [],
            {},
        ),
        "10^7 rows of 6 * 10^7": (digits(10, 6), [f"({joined('+', 10)}) % 6 == 0"], {}),
    }


def best_of(build: Callable[[], object], repeats: int) -> float:
    """Seconds of the shortest of several builds; slow ones are not repeated."""
    shortest = math.inf
    for _ in range(repeats):
        begun = time.process_time()
        build()
        shortest = min(shortest, time.process_time() - begun)
        if shortest > 3:
            break
    return shortest


def ours(definition: Definition) -> SearchSpace:
    parameters, restrictions, constants = definition
    return build_space(parameters, restrictions, constants, LIMITS)


def theirs() -> tuple[str, Callable[[Definition], Any] | None]:
    """Kernel Tuner's name and version, and its construction of a space; None where it is not installed."""
    try:
        from importlib.metadata import version

        from kernel_tuner.searchspace import Searchspace
    except ImportError:
        return "Kernel Tuner: not installed", None

    def build(definition: Definition) -> Any:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            return Searchspace(definition[0], definition[1], LIMITS.max_threads_per_block)

    return f"Kernel Tuner {version('kernel_tuner')}", build


def peak_mb(name: str) -> float:
    """Peak resident memory of a process that builds one space and looks a row up in it, in MB."""
    words = [sys.executable, __file__, *sys.argv[1:2], "--peak", name]
    return float(subprocess.run(words, capture_output=True, text=True, check=True).stdout)


def print_peak(definition: Definition) -> None:
    space = ours(definition)
    assert space.row_of(space.configuration(space.size // 2)) == space.size // 2
    status = Path("/proc/self/status").read_text()  # getrusage would tell the parent's peak, were it higher
    print(int(status.split("VmHWM:")[1].split()[0]) / 1024)


def published(folder: Path) -> dict[str, tuple[Definition, int]]:
    """The eight spaces of Kernel Tuner's paper, with how many configurations are valid."""
    facts = json.loads((folder / "searchspaces_kernel_tuner_paper.json").read_text())
    return {
        name: ((space["tune_params"], space["restrictions"], {}), space["valid_with_max_threads_1024_kt150"])
        for name, space in facts.items()
    }


def compare(spaces: dict[str, tuple[Definition, int | None]], peer: Callable[[Definition], Any] | None) -> None:
    print(ROWS.format("", "combinations", "valid", "ours, s", "theirs, s", "ratio", "MB", ""))
    for name, (definition, expected) in spaces.items():
        space = ours(definition)
        their_s = math.nan
        notes = []
        if expected is not None:
            notes.append("as published" if space.size == expected else f"NOT the published {expected}")
        our_s = best_of(lambda definition=definition: ours(definition), REPEATS)
        if peer is not None and (expected is not None or name in ALSO_THEIRS):
            their_size = int(peer(definition).size)
            their_s = best_of(lambda definition=definition: peer(definition), 3)
            our_s = min(our_s, best_of(lambda definition=definition: ours(definition), REPEATS))
            if their_size != space.size:
                notes.append(f"theirs has {their_size}")
        if name in A_TWENTIETH and their_s == their_s:
            notes.append("at least 20 times: " + ("yes" if their_s >= 20 * our_s else "NO"))
        theirs_text = ("", "") if math.isnan(their_s) else (f"{their_s:.3f}", f"{their_s / our_s:.1f}")
        figures = (f"{our_s:.4f}", *theirs_text, f"{peak_mb(name):.0f}")
        print(ROWS.format(name, f"{space.cartesian:.4g}", space.size, *figures, ", ".join(notes)), flush=True)


def moves(spaces: dict[str, Definition]) -> None:
    """What strategies ask of a space, in microseconds a row."""
    rows = "{:34} {:>10} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}"
    print(rows.format("us per row", "rows", "find", "many", "hamming", "adjacent", "strictly", "nearest", "hypercube"))
    for name, definition in spaces.items():
        space = ours(definition)
        rng = np.random.default_rng(1)
        some = rng.choice(space.size, 200, replace=False)
        one = space.configuration(int(some[0]))
        points = rng.random((100, len(space.names))) * np.array(space.axis_sizes) - 0.5
        space.nearest_rows(points[:1])  # built once
        figures = [
            best_of(lambda space=space, one=one: space.row_of(one), REPEATS),
            best_of(lambda space=space, some=some: space.rows_of_codes(space.codes[some]), REPEATS) / 200,
            *(
                best_of(lambda space=space, some=some, kind=kind: space.neighbours_of(some, kind), REPEATS) / 200
                for kind in ("hamming", "adjacent", "strictly_adjacent")
            ),
            best_of(lambda space=space, points=points: space.nearest_rows(points), 3) / 100,
            best_of(lambda space=space, rng=rng: space.sample_latin_hypercube(rng, 100), 3) / 100,
        ]
        print(rows.format(name, space.size, *(f"{figure * 1e6:.1f}" for figure in figures)), flush=True)


def refusals() -> None:
    """Spaces that are too large: how soon that is said."""
    for name, definition in {
        "10^18 rows": (digits(18, 10), [], {}),
        "nothing prunes 10^12 combinations": (digits(12, 10), [f"({joined('*', 12)}) % 7 == 3"], {}),
        "65536 x 65536 compared": (
            {"a": list(range(65536)), "b": list(range(65536))},
            ["(a * 7919) % 65537 == (b * 104729) % 65537"],
            {},
        ),
    }.items():
        begun = time.process_time()
        try:
            outcome = f"{ours(definition).size} rows"
        except InputError as error:
            outcome = str(error)
        print(f"{name}: {time.process_time() - begun:.2f} s, {outcome}", flush=True)


def main(words: Sequence[str]) -> None:
    folder = Path(words[0]) if words and words[0] != "--peak" else None
    spaces: dict[str, tuple[Definition, int | None]] = {}
    if folder is not None:
        spaces |= published(folder)
    else:
        print("no folder named: the published spaces are left out")
    own = hard()
    spaces |= {name: (definition, None) for name, definition in own.items()}
    if "--peak" in words:
        print_peak(spaces[words[-1]][0])
        return
    label, peer = theirs()
    print(f"Python {platform.python_version()}, NumPy {np.__version__}; {label}")
    print("processor seconds, the shortest of several builds; MB: the peak of a process that builds it\n")
    compare(spaces, peer)
    print()
    names = [name for name in ("hotspot", "expdist", "gemm") if name in spaces]
    moves({name: spaces[name][0] for name in (*names, "10^7 rows of 6 * 10^7")})
    print()
    refusals()


if __name__ == "__main__":
    main(sys.argv[1:])
