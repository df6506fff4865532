"""`wattridge roofline`: what a flop, a byte and a second cost on a board, measured or from a file."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.commands.terminal import number, print_json, print_table, say
from app.errors import InputError

if TYPE_CHECKING:
    from app.engine.models.roofline_fit import RooflineFit

_FIGURES = (  # key, what it is, unit
    ("eps_flop_pj", "energy of a flop", "pJ/flop"),
    ("eps_mem_pj_per_b", "energy of a byte", "pJ/B"),
    ("pi_0_w", "constant power", "W"),
    ("eta_flop", "share of a flop's least energy that is its own", ""),
    ("peak_gflops", "highest speed", "GFLOP/s"),
    ("bandwidth_gb_s", "highest bandwidth", "GB/s"),
    ("time_balance", "time balance", "flop/B"),
    ("energy_balance", "energy balance", "flop/B"),
    ("effective_energy_balance", "effective energy balance", "flop/B"),
    ("r2", "R² of power", ""),
    ("mean_relative_error", "mean error of power", "of it"),
    ("max_relative_error", "largest error of power", "of it"),
    ("condition_number", "condition number", ""),
    ("points", "points", ""),
)


def roofline(arguments: Namespace) -> int:
    """Measure the microbenchmarks on a board, or read a sweep, and fit; one document per board."""
    from app.engine.rooflines import to_json

    if (arguments.file is None) == (arguments.gpu is None):
        raise InputError("one source is needed", "roofline", "name a file or session number, or a board with --gpu")
    kernel = _kernel(arguments.predict)
    fits = _of_board(arguments) if arguments.file is None else _of_file(arguments.file)
    boards: dict[str, dict[str, Any]] = {}
    for fit in fits:
        told = to_json(fit)
        if kernel is not None:
            told["predicted"] = _predicted(fit, kernel) if fit.identifiable else None
        boards.setdefault(fit.gpu, {})[fit.precision] = told
    documents = [{"gpu": gpu, "precisions": precisions} for gpu, precisions in boards.items()]
    if arguments.json:
        print_json(documents[0] if len(documents) == 1 else documents)
    else:
        for document in documents:
            _print(document)
    return 0


def _of_board(arguments: Namespace) -> list[RooflineFit]:
    from app.commands.search import watch_session
    from app.engine.rooflines import PRECISIONS, fit_points, plan_roofline, points_of_table
    from app.engine.store import Store
    from app.sensors.select import open_gpu

    wanted = arguments.precision.split(",") if arguments.precision else list(PRECISIONS)
    gpu = open_gpu(arguments.gpu, seed=arguments.sim_seed, speed=arguments.speed)
    fits = []
    try:
        with Store() as store:
            for precision in wanted:
                plan = plan_roofline(gpu, precision)
                result = watch_session(plan, store, quiet=arguments.json)
                say(f"{precision}: session {result.session}, {len(result.table)} points")
                try:
                    fits.append(fit_points(points_of_table(result.table, gpu.info.name, precision)))
                except InputError as few:
                    if precision == wanted[-1] and not fits:
                        raise
                    say(str(few))  # the other precision may be told all the same
    finally:
        gpu.close()
    return fits


def _of_file(file: str) -> list[RooflineFit]:
    from app.engine.rooflines import fit_points, points_of_table, precision_of, read_points
    from app.engine.store import Store

    if file.isdecimal() and not Path(file).exists():
        with Store() as store:
            loaded = store.load(int(file))
            record = loaded.record
            return [fit_points(points_of_table(loaded.table, record.gpu, precision_of(record.title)))]
    return [fit_points(points) for points in read_points(Path(file))]


def _kernel(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        work_flop, traffic_byte = (float(part) for part in text.split(","))
        if work_flop <= 0 or traffic_byte <= 0:
            raise ValueError
    except ValueError:
        raise InputError(f"'{text}' is no kernel", "--predict", "write its flops and bytes, as 1.4e11,2e8") from None
    return work_flop, traffic_byte


def _predicted(fit: RooflineFit, kernel: tuple[float, float]) -> dict[str, float]:
    time_s, energy_j, power_w = fit.model.predict(*kernel)
    return {"time_s": time_s, "energy_j": energy_j, "power_w": power_w}


def _print(document: dict[str, Any]) -> None:
    precisions = document["precisions"]
    print(document["gpu"])
    rows = [(what, *(_cell(told[key]) for told in precisions.values()), unit) for key, what, unit in _FIGURES]
    print_table(rows, ("", *precisions, "unit"))
    for precision, told in precisions.items():
        alone = told["alone"]
        if len(alone) == 3:
            flop, mem, base = (number(alone[name]) for name in ("eps_flop_pj", "eps_mem_pj_per_b", "pi_0_w"))
            print(f"{precision}, flop, copy and baseline kernel alone: {flop} pJ/flop, {mem} pJ/B, {base} W")
        if told.get("predicted"):
            at = told["predicted"]
            print(
                f"{precision}, the kernel of --predict: {number(at['time_s'] * 1e3)} ms, {number(at['energy_j'])} J, "
                f"{number(at['power_w'])} W"
            )
        for reason in told["reasons"]:
            say(f"{precision}: {reason}")


def _cell(value: float | None) -> str:
    return "not identifiable" if value is None else number(value)
