"""Stands for Nsight Compute's command line: runs a program on the device that is not there, and prints its launches.

It insists on what every call of ours must have. FAKE_NCU holds words that say how it misbehaves: `no_rights`,
`blackwell` (has other names of some metrics), `old` (lacks one), `localised`, `loses` (a launch).
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

LAUNCHES = "FAKE_CUDA_LAUNCHES"  # names the file in which the device notes its launches (`fake_cuda`)
LACKING = {"blackwell": "dram__bytes_read", "old": "lts__t_sector_op_read_hit_rate"}


def install(folder: Path) -> Path:
    """The program, in that folder."""
    path = folder / "ncu"
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{Path(__file__).resolve()}" "$@"\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def value_of(metric: str, launch: dict[str, object]) -> float:
    """What it reports: the threads of the launch for bytes, so that a test can tell launches apart; else 12.5."""
    threads = 1
    for size in (*launch["grid"], *launch["block"]):  # type: ignore[misc]
        threads *= size
    return float(threads) if metric.startswith("dram__bytes") else 12.5


def main(words: list[str]) -> int:
    if "--version" in words:
        print("NVIDIA (R) Nsight Compute Command Line Profiler\nVersion 2025.2.1.0 (build 35987062) (public-release)")
        return 0
    options, target = {}, []
    at = 0
    while at < len(words) and not target:
        if words[at] == "--csv":
            at += 1
        elif words[at].startswith("--"):
            options[words[at]] = words[at + 1]
            at += 2
        else:
            target = words[at:]
    log = Path(options["--log-file"])
    if options.get("--clock-control") != "none":  # what it would do by default changes what was measured
        log.write_text("==ERROR== the clocks would be locked\n")
        return 2
    assert options["--target-processes"] == "all"
    faults = os.environ.get("FAKE_NCU", "").split()
    metrics = options["--metrics"].split(",")
    lacking = tuple(LACKING[fault] for fault in faults if fault in LACKING)
    unknown = [name for name in metrics if name.startswith(lacking)] if lacking else []
    if unknown:
        log.write_text(f"==ERROR== Failed to find metric {unknown[0]}\n")
        return 1
    said = ["==PROF== Connected to process 1 (python)"]
    with tempfile.TemporaryDirectory() as folder:
        launches = Path(folder) / "launches"
        launches.touch()
        status = subprocess.run(target, env={**os.environ, LAUNCHES: str(launches)}, check=False).returncode
        seen = [json.loads(line) for line in launches.read_text().splitlines()]
    if "no_rights" in faults:
        said.append("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance")
        seen = []
    if "loses" in faults:
        seen = seen[:-1]
    if status:
        said.append(f"==ERROR== The application returned an error code ({status}).")
    said += _page(seen, metrics, localised="localised" in faults) if seen else ["==WARNING== No kernels were profiled."]
    log.write_text("\n".join([*said, "==PROF== Disconnected from process 1", ""]))
    return status


def _page(seen: list[dict[str, object]], metrics: list[str], *, localised: bool) -> list[str]:
    head = ["ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream"]
    head += ["Block Size", "Grid Size"]
    lines = []
    rows = [
        [
            str(index),
            "1",
            "python",
            "here",
            f"{one['name']}(float *)",
            "1",
            "7",
            _sizes(one["block"]),
            _sizes(one["grid"]),
        ]
        for index, one in enumerate(seen)
    ]
    lines.append(_line([*head, *metrics]))
    lines.append(_line([*[""] * len(head), *["byte" if m.startswith("dram__bytes") else "" for m in metrics]]))
    for row, one in zip(rows, seen, strict=True):
        figures = [f"{value_of(m, one):,.1f}" for m in metrics]
        if localised:
            figures = [figure.replace(",", " ").replace(".", ",") for figure in figures]
        lines.append(_line([*row, *figures]))
    return lines


def _sizes(sizes: object) -> str:
    return str(tuple(sizes))  # type: ignore[call-overload]


def _line(cells: list[str]) -> str:
    return ",".join(f'"{cell}"' for cell in cells)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
