"""The files of the program that a session of one CUDA kernel imports and enters, in all its processes.

    files_entered.py [--list]

`wattridge tune` measures two configurations on the stand-in for CUDA's driver, whose device is the host, and on a board
of the stand-in for NVML. A file is entered where one of its functions, methods or lambdas is called; what runs as it is
imported does not count. `--list` prints the files with the number of functions that were entered.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "engine"), str(ROOT / "tests" / "nvml")]

TRACER = """
import os, sys, threading

sys.setdlopenflags(os.RTLD_LAZY)  # PyCUDA is linked to more of the driver than the stand-in has
_seen, _lock = set(), threading.Lock()
_file = os.open(os.environ["ENTERED"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)


def _profile(frame, event, argument):
    code = frame.f_code
    if event == "call" and code not in _seen:
        _seen.add(code)
        if code.co_filename.startswith(os.environ["ENTERED_ROOT"]):
            is_function = code.co_flags & 1  # CO_OPTIMIZED: the body of a class or a module has it not
            line = f"{code.co_filename}\\t{code.co_firstlineno}\\t{code.co_name if is_function else '<module>'}\\n"
            os.write(_file, line.encode())


threading.setprofile(_profile)
sys.setprofile(_profile)
"""
SOURCE = """
extern "C" __global__ void vector_add(float *c, const float *a, const float *b, int n) {
    int i = blockIdx.x * block_size_x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}
"""
SPECIFICATION = """
[kernel]
name = "vector_add"
source = "vector_add.cu"
problem_size = 100000
arguments = [
    { name = "c", type = "float32", shape = [100000], output = true },
    { name = "a", type = "float32", shape = [100000], fill = "random" },
    { name = "b", type = "float32", shape = [100000], fill = "random" },
    { name = "n", type = "int32", value = 100000 },
]
verify = { reference = "a + b", rtol = 1e-5 }

[parameters]
block_size_x = [32, 64]

[objective]
minimise = "energy_j"
"""


def entered(folder: Path) -> tuple[set[str], Counter[str]]:
    """The files that were imported, and the number of functions of each that were called."""
    from boards import StandIn
    from host_cuda.build import build

    environment = dict(os.environ)
    environment |= build(folder)
    (folder / "sitecustomize.py").write_text(TRACER)
    nvcc = folder / "nvcc"
    compile_here = ROOT / "tests" / "engine" / "host_cuda" / "compile.py"
    nvcc.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && echo host V1.0 && exit\nexec {sys.executable} -I -S {compile_here} "$@"\n'
    )
    nvcc.chmod(0o755)
    (folder / "vector_add.cu").write_text(SOURCE)
    (folder / "vector_add.toml").write_text(SPECIFICATION)
    board = StandIn(folder, ["h200"])
    environment |= {
        "ENTERED": str(folder / "entered"),
        "ENTERED_ROOT": str(ROOT / "app") + os.sep,
        "PATH": f"{folder}{os.pathsep}{environment['PATH']}",
        "PYTHONPATH": f"{ROOT}{os.pathsep}{folder}",
        "WATTRIDGE_CUDA_COMPILER": "nvcc",
        "WATTRIDGE_DATA": str(folder / "data"),
    }
    command = [sys.executable, "-P", "-m", "app", "tune", str(folder / "vector_add.toml"), "--gpu", "0"]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    finally:
        board.close()
    print(done.stdout[-1500:], done.stderr[-1500:], sep="\n")
    done.check_returncode()
    imported, called = set(), Counter[str]()
    for line in {*(folder / "entered").read_text().splitlines()}:
        file, _, name = line.split("\t")
        file = str(Path(file).relative_to(ROOT))
        if name == "<module>":
            imported.add(file)
        elif not name.startswith("<") or name == "<lambda>":
            called[file] += 1
    return imported, called


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--list", action="store_true", help="print the files")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        imported, called = entered(Path(folder))
    if arguments.list:
        for file, functions in sorted(called.items()):
            print(f"{functions:5d}  {file}")
    print(f"{len(imported)} files imported, {len(called)} entered, {sum(called.values())} functions called")
    return 0


if __name__ == "__main__":
    sys.exit(main())
