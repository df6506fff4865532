"""`wattridge fit`: the frequency model, power caps, and the two side by side."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..input_files import is_there
from .terminal import ProgressBar, number, print_json, print_table, show

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..engine.models.caps import CapFit
    from ..engine.models.clock_log import Plateau
    from ..engine.models.frequency import FrequencyFit

_PARAMETERS = (  # as people read them, their keys, their units
    ("P_idle", "p_idle_w", "W"),
    ("P_max", "p_max_w", "W"),
    ("α", "alpha_w_per_mhz", "W/MHz"),
    ("β", "beta_per_mhz", "per MHz"),
)


def fit(arguments: Namespace) -> int:
    """Fit the frequency model, or power caps, to a file, a stored session, or a sweep of a board."""
    if (arguments.file is None) == (arguments.gpu is None):
        raise InputError("one source is needed", "fit", "name a file or session number, or a board with --gpu")
    document = _of_board(arguments) if arguments.file is None else _of_file(arguments)
    if arguments.json:
        print_json(document)
    elif "comparison" in document:
        _print_comparison(document)
    elif "best_limit_w" in document:
        _print_caps(document)
    else:
        print_fit(document)
    return 0


def _of_file(arguments: Namespace) -> dict[str, Any]:
    from ..engine.models.cap_series import read_caps
    from ..engine.models.documents import fit_to_json, plain
    from ..engine.models.point_fits import fit_memory_clocks
    from ..engine.models.series import read_series
    from ..engine.store.database import Store
    from ..engine.tuning_methods.fits import caps_of_session, fit_of_session

    path = Path(arguments.file)
    named = {name: getattr(arguments, name) for name in ("power", "time", "rate", "series")}
    caps: list[CapFit] = []
    fitted: FrequencyFit | None = None
    plateaus: Sequence[Plateau] = ()
    try:
        if arguments.file.isdigit() and not is_there(path):
            with Store() as store:
                session = store.load(int(arguments.file))
            caps = caps_of_session(session)
            fitted, _ = fit_of_session(session)
        else:
            caps = [] if arguments.transpose else read_caps(path, **named)
            series = read_series(path, clock=arguments.clock, transpose=arguments.transpose, **named)
            fitted = fit_memory_clocks(series)
            plateaus = next(points.plateaus for points in series if points.series == fitted.series)
    except InputError:
        if not caps:
            raise
    if caps and (fitted is None or arguments.caps):
        return _caps_to_json(caps)
    if arguments.caps:
        raise InputError("no series has three power limits", f"{arguments.file}, --caps", "leave --caps out")
    assert fitted is not None
    document = fit_to_json(fitted)
    return document | {"plateaus": plain(list(plateaus))} if plateaus else document


def _of_board(arguments: Namespace) -> dict[str, Any]:
    from ..engine.models.caps import compare
    from ..engine.models.documents import fit_to_json, plain
    from ..engine.tuning_methods.fits import caps_of_sweep, fit_of_sweep
    from ..sensors.select import open_gpu
    from .control import guard_of

    gpu = open_gpu(arguments.gpu, seed=arguments.sim_seed, speed=arguments.speed)
    guard = guard_of(gpu, allow_control=arguments.allow_control, by="fit")
    bar = ProgressBar(quiet=arguments.json)
    try:
        fitted, _ = fit_of_sweep(
            gpu,
            points=arguments.points,
            steered=not arguments.uniform,
            memory_clocks=arguments.memory_clocks,
            on_progress=lambda done, total: bar.show(done, total, "clocks", final=done == total),
            guard=guard,
        )
        if not arguments.caps:
            return fit_to_json(fitted)
        caps = caps_of_sweep(
            gpu,
            points=arguments.points,
            on_progress=lambda done, total: bar.show(done, total, "power limits", final=done == total),
            guard=guard,
        )
        comparison = compare(fitted, caps)
        return {
            "clocks": fit_to_json(fitted),
            "caps": _caps_to_json([caps]),
            "comparison": None if comparison is None else {**plain(comparison), "words": comparison.words},
        }
    finally:
        guard.close()
        gpu.close()


def _caps_to_json(caps: list[CapFit]) -> dict[str, Any]:
    from ..engine.models.caps import median_saving
    from ..engine.models.documents import plain

    best = max(caps, key=lambda each: (len(each.limit_w), each.free_power_w))
    document = {**plain(best), "energy": plain(best.energy), "points": len(best.limit_w)}
    if len(caps) > 1:
        document["all_series"] = {
            "series": len(caps),
            "median_saving": median_saving(caps),
            "largest_overshoot": max(each.largest_overshoot for each in caps),
        }
    return document


def print_fit(document: dict[str, Any]) -> None:
    """The frequency model in a few lines."""
    simulated = " (simulated)" if document.get("simulated") else ""
    whose = f" of {document['gpu']}" if document["gpu"] else ""
    show(f"frequency model{whose}{simulated}: {document['series']}, {document['points']} points")
    if not document["identifiable"]:
        show("not identifiable: " + "; ".join(document["reasons"]))
        if document["recommended_clock_mhz"] is not None:
            show(f"recommended {number(document['recommended_clock_mhz'])} MHz")
        return
    low, high = document["optimum_interval_mhz"]
    show(f"most efficient {_clock(document, 'optimum')}, 95 % between {number(low)} and {number(high)} MHz")
    show(
        f"recommended {number(document['recommended_clock_mhz'])} MHz; expected there: "
        f"{100 * document['expected_loss']:.1f} % more energy than at the unknown best"
    )
    measured = document["voltage_ridge_mhz"]
    by_voltage = "" if measured is None else f", {number(measured)} MHz on the measured voltage"
    error = document["standard_errors"].get("ridge_mhz") if document["ridge_bracketed"] else None
    spread = "" if error is None else f", standard error {number(error, 2)} MHz,"
    show(f"ridge {_clock(document, 'ridge')}{spread} by the {document['form']} form{by_voltage}")
    low, high = document["range_mhz"]
    show(f"range to search {number(low)}–{number(high)} MHz (±10 %)")
    show(", ".join(_parameter(document, *each) for each in _PARAMETERS))
    show(f"R² {number(document['r2'], 5)}, RMSE {number(document['rmse_w'])} W")
    for reason in document["reasons"]:
        show(f"  {reason}")
    if document.get("plateaus"):
        show("", "plateaus of the log:")
        figures = ("clock_mhz", "power_w", "scatter_w", "readings", "seconds")
        rows = [[each[name] for name in figures] for each in document["plateaus"]]
        print_table(rows, ("MHz", "W", "± W", "readings", "s"))
    if document["choices"]:
        show("", "against the fastest of these clocks:")
        rows = [[c["wish"], c["clock_mhz"], _change(c["energy"]), _change(c["time"])] for c in document["choices"]]
        print_table(rows, ("wish", "MHz", "energy", "time"))
    if document["memory_clocks"]:
        show("", "against the best and the fastest memory clock:")
        names = ("memory_clock_mhz", "recommended_clock_mhz", "energy", "time")
        rows = [
            [each[names[0]], each[names[1]], *map(_change, (each["energy"], each["time"]))]
            for each in document["memory_clocks"]
        ]
        print_table(rows, ("memory MHz", "graphics MHz", "energy", "time"))


def _parameter(document: dict[str, Any], label: str, name: str, unit: str) -> str:
    """A fitted figure with its standard error, where the points tell them."""
    value, error = document[name], document["standard_errors"].get(name)
    if value is None:
        return f"{label} {'no cap seen' if name == 'p_max_w' else 'not told'}"
    return f"{label} {number(value)}" + (f" ± {number(error, 2)}" if error is not None else "") + f" {unit}"


def _clock(document: dict[str, Any], name: str) -> str:
    return f"{number(document[f'{name}_mhz'])} MHz" + ("" if document[f"{name}_bracketed"] else " (not bracketed)")


def _change(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.1f} %"


def _print_caps(document: dict[str, Any]) -> None:
    simulated = " (simulated)" if document["simulated"] else ""
    whose = f" of {document['gpu']}" if document["gpu"] else ""
    show(f"power limits{whose}{simulated}: {document['series']}, {document['points']} points")
    rows = [
        [limit, power, power / limit, _change(rate / document["rate"][-1]), _change(energy)]
        for limit, power, rate, energy in zip(
            document["limit_w"], document["power_w"], document["rate"], document["energy"], strict=True
        )
    ]
    print_table(rows, ("limit W", "power W", "of limit", "speed", "energy"))
    show(
        f"least energy at {number(document['best_limit_w'])} W: {100 * document['saving']:.1f} % less energy, "
        f"{100 * document['slower']:.1f} % slower than at the highest limit; within 5 % of full speed "
        f"{number(document['best_within_5_percent_w'])} W"
    )
    for reason in document["reasons"]:
        show(f"  {reason}")
    if "all_series" in document:
        told = document["all_series"]
        show(
            f"all {told['series']} series: median saving {100 * told['median_saving']:.1f} %, power at most "
            f"{100 * told['largest_overshoot']:.1f} % above its limit"
        )


def _print_comparison(document: dict[str, Any]) -> None:
    print_fit(document["clocks"])
    show()
    _print_caps(document["caps"])
    told = document["comparison"]
    if told is None:
        return
    show("", "clocks against power limits, over the board left to itself:")
    rows = [
        [name, f"{number(told[key]['setting'])} {unit}", _change(told[key]["energy"]), _change(told[key]["speed"])]
        for name, key, unit in (("locked clock", "clocks", "MHz"), ("power limit", "caps", "W"))
    ]
    print_table(rows, ("way", "setting", "energy", "speed"))
    show(told["words"])
    if told["power_ratio"] is not None:
        show(f"power at the same observed clock, locked against limited: {_change(told['power_ratio'])}")
