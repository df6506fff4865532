"""The recorded spaces of `scores_elsewhere.txt`, made of checkouts of public repositories. By hand:

    python tests/benchmarks/spaces_elsewhere.py OUT CHECKOUTS

CHECKOUTS holds a checkout of each, under its own name: `GPU_benchmarking_paper` (schoonhovenrichard), whose repeats of
a configuration lie in a file each and are averaged; `AutoTuning_AMD_vs_Nvidia_GPUs` (MiloLurati); `kernel_tuner_paper`
(fjwillemsen); `benchmark_hub` (AutoTuningAssociation); `KTT` (HiPerCoRe); and `kernel_tuner_visualization` (Maartenvm),
which does not say on which board its lists were measured. OUT gets `kept_aside` and `development`, of
which the first were not looked at before the change that the table shows was made, and `energy`, where that is the
objective.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
from pathlib import Path
from typing import Any

REPEATS = "GPU_benchmarking_paper/irace_tune/stochastic_cache_files"
UNSAID = "kernel_tuner_visualization/data"
PAPER = "kernel_tuner_paper/kernels/outputdata"
EXPDIST = f"{PAPER}/expdist/expdist_NVIDIA_RTX_A4000_size-32768x32768_cache.json"
HOTSPOT = f"{PAPER}/hotspot/hotspot_NVIDIA RTX A4000_size-8192x8192_cache.json"
UNUSED = "benchmark_hub/currently_unused/cachefiles"
AVERAGED = {
    "kept_aside": {
        "convolution_15x15-MI50": "MI50_convolution_15x15",
        "gemm-MI50": "MI50_GEMM",
        **{f"gemm-{board}": f"GEMM_{board}" for board in ("K20", "RTX_2070_SUPER")},
        **{f"convolution-{board}": f"convolution_{board}" for board in ("V100", "GTX_Titan_X", "P100")},
        **{f"pnpoly-{board}": f"pnpoly_{board}" for board in ("RTX_2070_SUPER", "P100")},
    },
    "development": {
        **{f"gemm-{board}": f"GEMM_{board}" for board in ("P100", "GTX_Titan_X")},
        **{f"convolution-{board}": f"convolution_{board}" for board in ("K20", "GTX_1080Ti")},
        **{f"pnpoly-{board}": f"pnpoly_{board}" for board in ("V100", "A100", "K20")},
    },
}
AS_THEY_ARE = {
    "kept_aside/coulomb-RTX_2080_Ti.json": "KTT/Examples/CoulombSum3d/coulomb_2080_full_search_space_converted.json",
    "kept_aside/pnpoly-RTX_2080_Ti.json.gz": f"{UNUSED}/pnpoly/RTX_2080_Ti.json.gz",
    "development/coulomb-GTX_1070.json": "KTT/Tutorials/08ProfileBasedSearcher/TuningOutput.json",
    "development/convolution_milo-MI50.json": "AutoTuning_AMD_vs_Nvidia_GPUs/cache_files/convolution_MI50.json",
}
OTHER_OBJECTIVES = {  # the caches' own is GFLOP/s
    "kept_aside/expdist-RTX_A4000.json": (EXPDIST, "time"),
    "energy/expdist-RTX_A4000-energy.json": (EXPDIST, "nvml_energy"),
    "energy/hotspot-RTX_A4000-energy.json": (HOTSPOT, "nvml_energy"),
}
LISTS = {
    "kept_aside/pnpoly-unknown_board.json": "pnpoly.json",
    "kept_aside/convolution_streams-unknown_board.json": "convolution_streams.json",
}


def averaged(runs: list[Path]) -> dict[str, Any]:
    """One cache of several, each of which has one repeat of all configurations."""
    repeats = [json.loads(run.read_text()) for run in runs]
    whole: dict[str, Any] = {"objective": "time", "problem_size": 1024, **repeats[0]}
    for key in whole["cache"]:
        values = dict(zip(whole["tune_params_keys"], map(json.loads, key.split(",")), strict=True))
        times = [repeat["cache"][key]["time"] for repeat in repeats]
        whole["cache"][key] = {**values, "time": sum(times) / len(times)}
    return whole


def cache_of_list(entries: list[dict[str, Any]]) -> dict[str, Any]:
    """A cache of what was kept as a list of configurations with their times."""
    names = [name for name in entries[0] if name != "time"]
    return {
        "device_name": "unknown",
        "kernel_name": "kernel",
        "problem_size": 1024,
        "objective": "time",
        "tune_params_keys": names,
        "tune_params": {name: sorted({entry[name] for entry in entries}) for name in names},
        "cache": {",".join(str(entry[name]) for name in names): entry for entry in entries},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("checkouts", type=Path)
    arguments = parser.parse_args()
    out, checkouts = arguments.out, arguments.checkouts
    for part in (*AVERAGED, "energy"):
        (out / part).mkdir(parents=True, exist_ok=True)
    for part, spaces in AVERAGED.items():
        for name, there in spaces.items():
            runs = sorted((checkouts / REPEATS).glob(f"{there}_processed_run*.json"))
            (out / part / f"{name}.json").write_text(json.dumps(averaged(runs)))
    for name, there in AS_THEY_ARE.items():
        shutil.copyfile(checkouts / there, out / name)
    for name, (there, objective) in OTHER_OBJECTIVES.items():
        text = (checkouts / there).read_text()
        (out / name).write_text(re.sub('"objective": "[^"]*"', f'"objective": "{objective}"', text, count=1))
    for name, there in LISTS.items():
        entries = json.loads((checkouts / UNSAID / there).read_text())
        (out / name).write_text(json.dumps(cache_of_list(entries)))


if __name__ == "__main__":
    main()
