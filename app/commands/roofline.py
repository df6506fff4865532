"""`wattridge roofline`: what a flop, a byte and a second cost on a board, measured, from a file, or on file."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..input_files import is_there
from .terminal import number, print_json, print_table, say, show

if TYPE_CHECKING:
    from ..engine.tuning_methods.roofline_sweeps import PlacedKernel, Sweep

_SHARES = (  # of the theoretical peak (S4 table 3): key, what it is
    ("flop", "flop kernel, of the theoretical peak"),
    ("copy", "copy kernel, of the theoretical bandwidth"),
    ("roofline_flop", "roofline kernel, of the theoretical peak"),
    ("roofline_mem", "roofline kernel, of the theoretical bandwidth"),
)
_PUBLISHED = (  # columns of the published boards: key, head, factor
    ("eps_flop_pj", "pJ/flop", 1.0),
    ("eps_mem_pj_per_b", "pJ/B", 1.0),
    ("eps_mop_pj_per_word", "pJ/word", 1.0),
    ("pi_0_w", "pi_0 W", 1.0),
    ("pi_flop_w", "pi_flop W", 1.0),
    ("pi_mem_w", "pi_mem W", 1.0),
    ("eta_flop", "eta_flop %", 100.0),
    ("time_balance", "B_tau", 1.0),
    ("energy_balance", "B_eps", 1.0),
    ("effective_energy_balance", "effective B_eps", 1.0),
)
_FIGURES = (  # key, what it is, unit
    ("eps_flop_pj", "energy of a flop", "pJ/flop"),
    ("eps_mem_pj_per_b", "energy of a byte", "pJ/B"),
    ("eps_mop_pj_per_word", "energy of a word (eps_mop)", "pJ/word"),
    ("pi_0_w", "constant power", "W"),
    ("pi_flop_w", "power of the flops at peak speed (pi_flop)", "W"),
    ("pi_mem_w", "power of the traffic at full bandwidth (pi_mem)", "W"),
    ("eta_flop", "share of a flop's least energy that is its own", ""),
    ("peak_gflops", "highest speed", "GFLOP/s"),
    ("bandwidth_gb_s", "highest bandwidth", "GB/s"),
    ("time_balance", "time balance", "flop/B"),
    ("energy_balance", "energy balance", "flop/B"),
    ("effective_energy_balance", "effective energy balance", "flop/B"),
    ("r2", "R² of power", ""),
    ("r2_with_throttled", "R² of power, throttled points fitted too", ""),
    ("mean_relative_error", "mean error of power", "of it"),
    ("max_relative_error", "largest error of power", "of it"),
    ("condition_number", "condition number", ""),
    ("points", "points", ""),
)


def roofline(arguments: Namespace) -> int:
    """Measure the microbenchmarks on a board, read a sweep, or take what is on file; one document per board."""
    if arguments.file is not None and arguments.gpu is not None:
        raise InputError("one source is enough", "roofline", "name a file or session number, or a board with --gpu")
    kernel = _kernel(arguments.predict) if arguments.predict is not None else None
    if arguments.gpu is not None:
        sweeps = _of_board(arguments)
    else:
        sweeps = _on_file() if arguments.file is None else _of_file(arguments.file)
    documents = _documents(sweeps, kernel)
    if arguments.json:
        on_file = arguments.file is None and arguments.gpu is None
        print_json(documents if on_file or len(documents) > 1 else documents[0])
    else:
        for document in documents:
            if document["source"] != "published":
                _print(document)
        _print_published([document for document in documents if document["source"] == "published"])
    return 0


# --- where sweeps come from -------------------------------------------------------------------------------------------


def _of_board(arguments: Namespace) -> list[Sweep]:
    from ..engine.session.planning import plan_roofline
    from ..engine.store.database import Store
    from ..engine.tuning_methods.roofline_points import PRECISIONS
    from ..engine.tuning_methods.roofline_sweeps import sweep_of_session
    from ..sensors.select import open_gpu
    from .search import watch_session

    wanted = arguments.precision.split(",") if arguments.precision else list(PRECISIONS)
    gpu = open_gpu(arguments.gpu, seed=arguments.sim_seed, speed=arguments.speed)
    sweeps = []
    try:
        with Store() as store:
            for precision in wanted:
                plan = plan_roofline(gpu, precision)
                result = watch_session(plan, store, quiet=arguments.json)
                say(f"{precision}: session {result.session}, {len(result.table)} points")
                sweeps.append(
                    sweep_of_session(
                        result.table,
                        gpu=plan.gpu,
                        title=plan.title,
                        source=plan.source,
                        session=result.session,
                        board=gpu.info,
                    )
                )
    finally:
        gpu.close()
    return sweeps


def _of_file(file: str) -> list[Sweep]:
    import threading

    from ..engine.store.database import Store
    from ..engine.tuning_methods.roofline_sweeps import sweeps_of_file, sweeps_of_store

    if file.isdecimal() and not is_there(file):
        with Store() as store:
            return sweeps_of_store(store, int(file))
    return sweeps_of_file(Path(file), threading.Event())


def _on_file() -> list[Sweep]:
    """Every board whose roofline was measured here, and the recorded and the published ones of the program."""
    from ..engine.store.database import Store
    from ..engine.tuning_methods.roofline_sweeps import published_sweeps, recorded_sweeps, sweeps_on_file

    with Store() as store:
        return [*sweeps_on_file(store), *recorded_sweeps(), *published_sweeps()]


# --- what is told of them ---------------------------------------------------------------------------------------------


def _documents(sweeps: list[Sweep], kernel: PlacedKernel | None) -> list[dict[str, Any]]:
    """One per board and source. Raises InputError where no sweep gives a fit."""
    from ..engine.tuning_methods.roofline_points import published_to_json, to_json

    boards: dict[tuple[str, str], dict[str, Any]] = {}
    for sweep in sweeps:
        told: dict[str, Any]
        if sweep.published is not None:
            told = published_to_json(sweep.published, sweep.points.precision)
            told |= {"citation": sweep.origin, "tdp_w": sweep.limit_w, "reasons": list(sweep.reasons)}
        elif sweep.fit is not None:
            told = to_json(sweep.fit)
        else:
            say(f"{sweep.label}: {sweep.why_not}")
            continue
        if kernel is not None:
            told["predicted"] = _predicted(sweep, kernel)
            if kernel.time_s is not None:
                told["measured"] = {
                    "gpu": kernel.gpu,
                    "time_s": kernel.time_s,
                    "energy_j": kernel.energy_j,
                    "power_w": kernel.power_w,
                }
        boards.setdefault((sweep.points.gpu, sweep.source), {})[sweep.points.precision] = told
    if not boards:
        what, _, remedy = sweeps[0].why_not.partition(": ")
        raise InputError(what, f"{sweeps[0].points.gpu}, {sweeps[0].points.precision}", remedy)
    return [{"gpu": gpu, "source": source, "precisions": told} for (gpu, source), told in boards.items()]


def _kernel(text: str) -> PlacedKernel:
    """The kernel of `--predict`: its flops and bytes, or a session's best configuration that tells both."""
    from ..engine.tuning_methods.roofline_sweeps import PlacedKernel

    if text.isdecimal():
        return _kernel_of_session(int(text))
    try:
        work_flop, traffic_byte = (float(part) for part in text.split(","))
        if not (0 < work_flop < float("inf") and 0 < traffic_byte < float("inf")):
            raise ValueError
    except ValueError:
        remedy = "write its flops and bytes, as 1.4e11,2e8, or the number of a session"
        raise InputError(f"'{text}' is no kernel", "--predict", remedy) from None
    return PlacedKernel(work_flop, traffic_byte)


def _kernel_of_session(session: int) -> PlacedKernel:
    from ..engine.session.summary import by_goal
    from ..engine.store.database import Store
    from ..engine.tuning_methods.roofline_sweeps import kernel_of

    with Store() as store:
        loaded = store.load(session)
    record, table = loaded.record, loaded.table
    kernels = (
        kernel_of(table.measurement(at), record.title, record.gpu) for at in by_goal(table, record.objective.goal)
    )
    kernel = next((kernel for kernel in kernels if kernel is not None), None)
    if kernel is None:
        raise InputError(
            f"session {session} does not tell the work and the traffic of a configuration",
            "--predict",
            "give its specification the metrics 'GFLOP/s' and 'GB/s', or write its flops and bytes, as 1.4e11,2e8",
        )
    return kernel


def _predicted(sweep: Sweep, kernel: PlacedKernel) -> dict[str, float] | None:
    if sweep.model is None:
        return None
    time_s, energy_j, power_w = sweep.model.predict(kernel.work_flop, kernel.traffic_byte, sweep.limit_w)
    return {"time_s": time_s, "energy_j": energy_j, "power_w": power_w}


def _print(document: dict[str, Any]) -> None:
    precisions = document["precisions"]
    said = "" if document["source"] == "nvml" else f" ({document['source']})"
    show(f"{document['gpu']}{said}")
    rows = [(what, *(_cell(told[key]) for told in precisions.values()), unit) for key, what, unit in _FIGURES]
    shares = [told["share_of_peak"] or {} for told in precisions.values()]
    for key, what in _SHARES:
        if any(key in share for share in shares):
            rows.append((what, *(number(100 * share[key]) if key in share else "–" for share in shares), "%"))
    print_table(rows, ("", *precisions, "unit"))
    for precision, told in precisions.items():
        alone = told["alone"]
        if len(alone) == 3:
            flop, mem, base = (number(alone[name]) for name in ("eps_flop_pj", "eps_mem_pj_per_b", "pi_0_w"))
            show(f"{precision}, flop, copy and baseline kernel alone: {flop} pJ/flop, {mem} pJ/B, {base} W")
        for name, where in (("predicted", ""), ("measured", " on {gpu}")):
            if at := told.get(name):
                figures = (number(at["time_s"] * 1e3), number(at["energy_j"]), number(at["power_w"]))
                words = "{} ms, {} J, {} W".format(*figures)
                show(f"{precision}, the kernel of --predict, {name}{where.format(**at)}: {words}")
        for reason in told["reasons"]:
            say(f"{precision}: {reason}")


def _print_published(documents: list[dict[str, Any]]) -> None:
    """What others have fitted, a row per board and precision; what --predict expects of them beside it."""
    rows = []
    for document in documents:
        for precision, told in document["precisions"].items():
            figures = [number(factor * told[key]) for key, _, factor in _PUBLISHED]
            expected = told.get("predicted")
            if expected is not None:
                figures += [number(expected["time_s"] * 1e3), number(expected["energy_j"]), number(expected["power_w"])]
            rows.append([f"{document['gpu']}, {precision}", *figures])
    if not rows:
        return
    predicted = any("predicted" in told for document in documents for told in document["precisions"].values())
    heads = [*(head for _, head, _ in _PUBLISHED), *(("kernel ms", "J", "W") if predicted else ())]
    show("published: fitted by others, nothing was measured here")
    print_table(rows, ("", *heads))
    cited: dict[str, list[str]] = {}
    for document in documents:
        told = next(iter(document["precisions"].values()))
        cited.setdefault(told["citation"], []).append(document["gpu"])
    for citation, boards in cited.items():
        show(f"{', '.join(boards)}: {citation}")


def _cell(value: float | None) -> str:
    return "not identifiable" if value is None else number(value)
