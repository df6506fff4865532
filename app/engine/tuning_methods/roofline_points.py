"""Energy rooflines of boards: the sessions that measure them, and from measurements to points and fits."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Final

import numpy as np

from ...errors import InputError
from ...files import read_text
from ...numbers import finite_or_none
from ...sensors.event_reasons import LIMITING
from ..formats.columns import Columns, parse_columns
from ..formats.gpu_benches import gpu_benches_columns, is_gpu_benches
from ..formats.kinds import other_kind
from ..formats.read import is_recording, read_recording
from ..models.arrays import Floats, Rows
from ..models.roofline.energy_roofline import EnergyRoofline
from ..models.roofline.fit import Estimate, RooflineFit, RooflinePoints, fit_roofline
from ..models.roofline.published_boards import board_named
from ..space.result_table import STATES, ResultTable

PRECISIONS: Final = ("fp32", "fp64")  # swept by default
TENSOR: Final = ("fp16_tensor", "bf16_tensor")
TENSOR_FROM: Final = (8, 0)  # least compute capability with the kernel's tensor core instruction
_WORD_BYTE: Final = {"fp32": 4, "fp64": 8, "fp16_tensor": 2, "bf16_tensor": 2}
KERNEL: Final = "roofline_"  # and the precision: the name of a sweep's kernel
_ENERGIES: Final = (  # figures of a model that are in its document, where they are known
    *("eps_flop_pj", "eps_mem_pj_per_b", "pi_0_w", "pi_flop_w", "pi_mem_w"),
    *("energy_balance", "effective_energy_balance", "eta_flop"),
)
_OF_FIT: Final = (  # figures of a fit, likewise
    *("r2", "r2_with_throttled", "mean_relative_error", "max_relative_error", "condition_number"),
    *("identifiable", "points", "throttled"),
)
_UNKNOWN: Final = (math.nan, math.nan)
_RATE, _TRAFFIC = "GFLOP/s", "GB/s"
_MAXIMUM_BYTES: Final = 32 << 20
_COLUMNS: Final = {  # of a CSV: each figure and its headings
    "rate": ("gflops", "gflop/s", "gflop_s"),
    "traffic": ("gbs", "gb/s", "gb_s"),
    "power": ("power_w", "power"),
    "clock": ("mhz", "clock_mhz", "observed_clock_mhz"),
}
_DEVICE: Final = ("gpu", "device", "device_name", "dev")


def precision_of(kernel: str) -> str:
    """Of a sweep's kernel by its name; 'fp32' where the name holds none."""
    return kernel.removeprefix(KERNEL) if kernel.startswith(KERNEL) else "fp32"


def word_byte(precision: str) -> int:
    """Bytes of one number."""
    return _WORD_BYTE.get(precision, 4)


def precision_words(precision: str) -> str:
    """As it is usually written: 'FP16 tensor'."""
    kind, _, unit = precision.partition("_")
    return f"{kind.upper()} {unit}".rstrip()


def points_of_table(table: ResultTable, gpu: str, precision: str) -> RooflinePoints:
    """The measured points of a sweep. Raises InputError where speed and traffic are not among the values."""
    missing = [name for name in (_RATE, _TRAFFIC, "power_w") if name not in table.value_names]
    if missing:
        raise InputError(
            f"there is no {' and no '.join(missing)} among the values",
            gpu,
            "a roofline needs the work, the traffic and the power of each point: wattridge roofline --gpu G",
        )
    ok = [at for at in range(len(table)) if STATES[table.states()[at]].value == "ok"]
    measured = [table.measurement(at) for at in ok]
    low, high = np.array([m.intervals.get("power_w", _UNKNOWN) for m in measured]).reshape(-1, 2).T
    return RooflinePoints.of(
        gpu,
        precision,
        flops=table.values(_RATE)[ok] * 1e9,
        bytes_per_s=table.values(_TRAFFIC)[ok] * 1e9,
        power_w=table.values("power_w")[ok],
        limited=np.array([bool(m.event_reasons & LIMITING) for m in measured], dtype=bool),
        clock_mhz=np.array([m.observed_clock_mhz for m in measured]),
        threads=table.values("threads_per_multiprocessor")[ok],
        power_error_w=(high - low) / 2,
    )


def read_points(path: Path) -> list[RooflinePoints]:
    """The points of a file, one list per board. Raises InputError.

    It is a recorded sweep, a CSV of GFLOP/s, GB/s and W, or the text that gpu-benches prints.
    """
    if is_recording(path):
        recording = read_recording(path)
        return [points_of_table(recording.table(), recording.device, precision_of(recording.kernel))]
    columns = _columns_of(path)
    by_name: dict[str, str] = {}
    for name in columns.cells:
        by_name.setdefault(name.strip().lower(), name)
    column = {what: next((by_name[n] for n in names if n in by_name), None) for what, names in _COLUMNS.items()}
    for what in ("rate", "traffic", "power"):
        if column[what] is None:
            raise InputError(f"no column with the {what}", str(path), f"name one of {', '.join(_COLUMNS[what])}")
    devices = [by_name[name] for name in _DEVICE if name in by_name]
    groups: dict[str, list[int]] = {}
    for at in range(len(columns)):
        groups.setdefault(" ".join(_short(columns.cells[name][at]) for name in devices), []).append(at)
    known = any(name != "dev" for name in devices)  # 'dev' is only a number: which board of the file it is
    return [
        _of_rows(name if known else f"{path.stem.partition('.')[0]} {name}".strip(), columns, np.array(rows), column)
        for name, rows in groups.items()
    ]


def _columns_of(path: Path) -> Columns:
    """The table in a CSV, or in the text that gpu-benches prints. Raises InputError."""
    text = read_text(path, _MAXIMUM_BYTES)
    if is_gpu_benches(text):
        return Columns(str(path), gpu_benches_columns(text, str(path)), 1)
    known = other_kind(path)
    if known is not None:
        raise known
    return parse_columns(text, str(path))


def fit_points(points: RooflinePoints) -> RooflineFit:
    """The fit, with an InputError where the points are too few."""
    try:
        return fit_roofline(points)
    except ValueError as error:
        remedy = "measure more intensities"
        if not points.at_peak().all():
            remedy = (
                "a limit holds the board below its peak clock: measure at a lower, locked clock, or raise the limit"
            )
        raise InputError(str(error), f"{points.gpu}, {points.precision}", remedy) from None


def shares_of_peak(fit: RooflineFit) -> dict[str, float]:
    """Share of the theoretical peak that each microbenchmark reached [Holtmann2024, table 3]; empty where unknown.

    flop: speed of the flop kernel; copy: traffic of the copy kernel; roofline_*: both of the roofline kernel.
    """
    board = board_named(fit.gpu)
    if board is None:
        return {}
    shares: dict[str, float] = {}
    peak = board.gflops.get(fit.precision)
    for name, kernel, at, most in (
        ("flop", "flop", 0, peak),
        ("copy", "copy", 1, board.bandwidth_gb_s),
        ("roofline_flop", "roofline", 0, peak),
        ("roofline_mem", "roofline", 1, board.bandwidth_gb_s),
    ):
        if kernel in fit.highest and most is not None:
            shares[name] = fit.highest[kernel][at] / 1e9 / most
    return shares


def to_json(fit: RooflineFit) -> dict[str, Any]:
    """One precision, as `roofline --json` prints it: a figure that the points do not determine is null."""
    board = board_named(fit.gpu)
    return {
        **model_to_json(fit.model, fit.precision, identifiable=fit.identifiable),
        **{name: getattr(fit, name) for name in _OF_FIT},
        "standard_errors": list(fit.relative.standard_errors) if fit.identifiable else None,
        "max_relative_error_with_throttled": fit.max_relative_error_all,
        "theoretical_peak_gflops": board.gflops.get(fit.precision) if board else None,
        "theoretical_bandwidth_gb_s": board.bandwidth_gb_s if board else None,
        "share_of_peak": shares_of_peak(fit) or None,
        "least_squares_per_flop": _estimate(fit.per_flop),
        "least_squares_per_byte": _estimate(fit.per_byte),
        "alone": dict(fit.alone),
        "reasons": list(fit.reasons),
    }


def published_to_json(model: EnergyRoofline, precision: str) -> dict[str, Any]:
    """A published roofline with the keys of `to_json`: what needs measured points is null."""
    return {
        **model_to_json(model, precision),
        **dict.fromkeys((*_OF_FIT, "standard_errors", "max_relative_error_with_throttled", "share_of_peak")),
        "least_squares_per_flop": None,
        "least_squares_per_byte": None,
        "theoretical_peak_gflops": model.peak_flops / 1e9,
        "theoretical_bandwidth_gb_s": model.bandwidth / 1e9,
        "identifiable": True,
        "points": 0,
        "throttled": 0,
        "alone": {},
    }


def model_to_json(model: EnergyRoofline, precision: str, *, identifiable: bool = True) -> dict[str, float | None]:
    """What follows from the five figures of a roofline, units in the names; energies only where they are known."""
    word = word_byte(precision)
    return {
        **{name: finite_or_none(getattr(model, name)) if identifiable else None for name in _ENERGIES},
        "eps_mop_pj_per_word": finite_or_none(model.eps_mop_pj(word)) if identifiable else None,
        "word_byte": word,
        "peak_gflops": model.peak_flops / 1e9,
        "bandwidth_gb_s": model.bandwidth / 1e9,
        "time_balance": model.time_balance,
    }


def _estimate(estimate: Estimate | None) -> dict[str, float] | None:
    if estimate is None:
        return None
    return {name: getattr(estimate, name) for name in ("eps_flop_pj", "eps_mem_pj_per_b", "pi_0_w")}


def _short(text: str) -> str:
    """A device's name or number: '3.0' is 3."""
    name = text.strip()
    return name.removesuffix(".0") if name.replace(".", "", 1).isdigit() else name


def _of_rows(name: str, columns: Columns, rows: Rows, column: dict[str, str | None]) -> RooflinePoints:
    def numbers(what: str) -> Floats:
        heading = column[what]
        return columns.numbers(heading)[rows] if heading is not None else np.full(len(rows), np.nan)

    rate, traffic, power_w = numbers("rate"), numbers("traffic"), numbers("power")
    if not (np.isfinite(rate).all() and np.isfinite(traffic).all() and (power_w > 0).all()):
        raise InputError(f"{name} has a point without speed, traffic or power", columns.where, "leave it out")
    return RooflinePoints.of(name, "fp32", rate * 1e9, traffic * 1e9, power_w, clock_mhz=numbers("clock"))
