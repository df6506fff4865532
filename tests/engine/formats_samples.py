"""Small files of every format, written by hand as other programs write them, and by this program."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from app.base.paths import resources
from app.engine.formats.csv_table import write_csv
from app.engine.formats.kernel_tuner import write_cache
from app.engine.formats.own import About
from app.engine.formats.read import read_recording
from app.engine.formats.t1_writer import write_t1
from app.engine.formats.t4 import write_t4
from app.engine.session.load import load_specification
from app.engine.session.planning import space_of
from app.sensors.limits import limits_of

CACHE: dict[str, Any] = {
    "device_name": "NVIDIA RTX A4000",
    "kernel_name": "vector_add",
    "problem_size": [1000, 1],
    "tune_params_keys": ["block_size_x", "nvml_gr_clock", "mode"],
    "tune_params": {"block_size_x": [32, 64, 128], "nvml_gr_clock": [900, 1500], "mode": ["plain", "vector"]},
    "objective": ["time", "nvml_energy"],
    "cache": {
        f"{block},{clock},{mode}": {
            "block_size_x": block,
            "nvml_gr_clock": clock,
            "mode": mode,
            "time": 2000 / block + clock / 1000,
            "times": [2000 / block, 2001 / block],
            "nvml_energy": 0.5 + block / 1000,
            "GFLOP/s": block / 10,
            "compile_time": 412.5,
            "verification_time": 0,
            "benchmark_time": 3.25,
            "strategy_time": 0,
            "framework_time": 1.5,
            "timestamp": f"2024-03-01 10:00:{block % 60:02d}.5+00:00",
        }
        | ({"__error__": "CompilationFailedConfig", "time": "CompilationFailedConfig"} if block == 128 else {})
        for block in (32, 64, 128)
        for clock in (900, 1500)
        for mode in ("plain", "vector")
    },
}

T4: dict[str, Any] = {
    "metadata": {"timeunit": "miliseconds"},
    "schema_version": "1.0.0",
    "results": [
        {
            "timestamp": "2023-12-21 10:44:42.236642+00:00",
            "configuration": {"block_size_x": 16, "unroll": True, "method": "best"},
            "times": {
                "compilation": 661.5,
                "benchmark": 393.9,
                "framework": 53.1,
                "search_algorithm": 0,
                "validation": 10.0,
                "runtimes": [12.2, 12.3],
            },
            "invalidity": "correct",
            "correctness": 1,
            "measurements": [
                {"name": "time", "value": 12.25, "unit": "ms"},
                {"name": "GFLOP/s", "value": 615.6, "unit": ""},
            ],
            "objectives": ["time"],
        },
        {
            "configuration": {"block_size_x": 32, "unroll": False, "method": "best"},
            "times": {"compilation_time": 500.0, "runtimes": []},
            "invalidity": "compile",
            "correctness": 1,
            "measurements": [],
            "objectives": ["time"],
        },
    ],
}

T1: dict[str, Any] = {
    "General": {"BenchmarkName": "blur", "OutputFormat": "JSON"},
    "ConfigurationSpace": {
        "TuningParameters": [
            {"Name": "block_size_x", "Type": "int", "Values": "[16 * i for i in range(1, 9)]", "Default": 16},
            {"Name": "block_size_y", "Type": "int", "Values": "[2**i for i in range(6)]", "Default": 1},
            {"Name": "tile", "Type": "uint", "Values": "[1] + list(range(2, 9, 2))", "Default": 1},
            {"Name": "radius", "Type": "int", "Values": "[3, 5]", "Default": 3},
            {"Name": "padded", "Type": "bool", "Values": "[True, False]"},
            {"Name": "scale", "Type": "float", "Values": "[0.5, 1.0]"},
            {"Name": "method", "Type": "string", "Values": "['direct', 'tiled']"},
        ],
        "Conditions": [
            {"Expression": "32 <= block_size_x * block_size_y <= 1024", "Parameters": ["block_size_x", "block_size_y"]},
            {"Expression": "method == 'tiled' or tile == 1", "Parameters": ["method", "tile"]},
        ],
    },
    "Search": {"Name": "Random", "Attributes": [{"Name": "max_fevals", "Value": 60}]},
    "Budget": [{"Type": "TuningDuration", "BudgetValue": 90}],
    "KernelSpecification": {
        "Language": "CUDA",
        "CompilerOptions": ["-std=c++14"],
        "KernelName": "blur",
        "KernelFile": "blur.cu",
        "GlobalSizeType": "CUDA",
        "LocalSize": {"X": "block_size_x", "Y": "block_size_y", "Z": "1"},
        "GlobalSize": {"X": "4096 // block_size_x", "Y": "4096 // block_size_y", "Z": "1"},
        "ProblemSize": [4096, "2048 * 2"],
        "GridDivX": ["block_size_x", "tile"],
        "GridDivY": ["block_size_y"],
        "SharedMemory": 0,
        "Stream": None,
        "Arguments": [
            {
                "Name": "out",
                "Type": "float",
                "MemoryType": "Vector",
                "AccessType": "WriteOnly",
                "FillType": "Constant",
                "FillValue": 0.0,
                "Size": "ProblemSize[0] * ProblemSize[1]",
                "Output": 1,
            },
            {
                "Name": "image",
                "Type": "float",
                "MemoryType": "Vector",
                "AccessType": "ReadOnly",
                "FillType": "Random",
                "FillValue": 1.0,
                "Size": "(ProblemSize[0] + max(radius)) * (ProblemSize[1] + max(radius))",
            },
            {
                "Name": "weights",
                "Type": "float",
                "MemoryType": "Vector",
                "MemType": "Constant",
                "FillType": "Generator",
                "DataSource": "1 / (1 + i % 4)",
                "Size": "max(radius) * max(radius)",
            },
            {"Name": "n", "Type": "int32", "MemoryType": "Scalar", "FillValue": 4096},
        ],
        "ReferenceArguments": [
            {
                "Name": "expected",
                "TargetName": "out",
                "FillType": "Constant",
                "FillValue": 0.5,
                "ValidationMethod": "SideBySideRelativeComparison",
                "ValidationThreshold": 0.001,
            }
        ],
    },
}


TABLE = """\
gpu,kernel_size,clock_mhz,variant,latency_ms,power (W),items_per_s,note
A100,16,1005.0,plain,12.5,200.0,800,first
A100,16,1410.0,plain,10.0,300.0,1000,second
A100,32,1005.0,tiled,6.25,210.0,1600,third
A100,32,1410.0,tiled,5.0,320.0,2000,fourth
"""


def write_samples(folder: Path) -> dict[str, list[Path]]:
    """Files by format: cache, t1, t4, csv, table."""
    folder.mkdir(parents=True, exist_ok=True)
    files: dict[str, list[Path]] = {"cache": [], "t1": [], "t4": [], "csv": [], "table": []}

    def keep(kind: str, name: str, text: str) -> Path:
        path = folder / name
        path.write_text(text)
        files[kind].append(path)
        return path

    cache = keep("cache", "foreign.json", json.dumps(CACHE))
    keep("cache", "open.json", open_cache(CACHE, 7))
    keep("t4", "foreign-t4.json", json.dumps(T4))
    keep("t1", "foreign-t1.json", json.dumps(T1, indent=2))
    keep("table", "table.csv", TABLE)
    keep("table", "table.jsonl", "".join(json.dumps({"block": n, "time_s": n / 7}) + "\n" for n in range(8)))
    recording = read_recording(cache)
    about = About("NVIDIA RTX A4000", "vector_add", recording.objective, "recorded", units=recording.units)
    table = recording.table()
    files["cache"].append(write_cache(table, folder / "own-cache.json", about))
    files["t4"].append(write_t4(table, folder / "own-t4.json", about))
    files["csv"].append(write_csv(table, folder / "own.csv", about))
    for name in ("gemm", "convolution"):
        spec = load_specification(resources() / "examples" / f"{name}.toml")
        files["t1"].append(write_t1(spec, space_of(spec), limits_of((8, 0)), folder / f"{name}-t1.json"))
    return files


def open_cache(document: dict[str, Any], count: int, *, ending: str = ",") -> str:
    """A cache as Kernel Tuner has it after so many entries, its brackets still open."""
    header = {key: value for key, value in document.items() if key != "cache"}
    text = json.dumps({**header, "cache": {}}, indent="")[:-3]
    entries = [json.dumps({key: entry})[1:-1] for key, entry in list(document["cache"].items())[:count]]
    return text + "".join(f"\n{entry}," for entry in entries[:-1]) + f"\n{entries[-1]}{ending}" if entries else text


def closed_cache(document: dict[str, Any], count: int) -> str:
    """The same after Kernel Tuner closed it."""
    return open_cache(document, count, ending="}\n}")
