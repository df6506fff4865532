"""Energy rooflines of boards whose limit holds them: python tests/benchmarks/roofline_limits.py [SEEDS]

Of simulated boards, the energies of the twin's laws at the peak clock and at the session's thermal condition against
the fit: the error, the standard error, and how often two of these hold the truth. Beside them the plain capped model,
with energies that no clock changes [Choi2014]. Limits other than a board's own are set in a copy of its file. Of the
recorded H200, the speed at its limit against what both models predict. Needs no board.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
os.environ["WATTRIDGE_DATA"] = tempfile.mkdtemp()

from app.base.paths import resources  # noqa: E402
from app.engine.models.roofline.energy_roofline import FIXED  # noqa: E402
from app.engine.models.roofline.fit import RooflineFit, RooflinePoints, fit_roofline  # noqa: E402
from app.engine.models.roofline.points import points_of_table, recorded_sweeps  # noqa: E402
from app.engine.session.planning import plan_roofline  # noqa: E402
from app.engine.store.database import Store  # noqa: E402
from app.scripting.session_progress import watch_session  # noqa: E402
from app.sensors.select import open_gpu  # noqa: E402
from app.sensors.simulated import laws  # noqa: E402
from app.sensors.simulated.twin import load_twin  # noqa: E402

CASES = (  # board, limit in W, precision, locked clocks
    ("a4000", 140, "fp32", ()),
    ("a4000", 120, "fp32", ()),
    ("a6000", 250, "fp32", ()),
    ("a100", 180, "fp32", ()),
    ("a100", 150, "fp32", ()),
    ("h200", 500, "fp64", ()),
    ("h200", 450, "fp32", ()),
    ("v100", 180, "fp32", ()),
    ("titan_rtx", 190, "fp32", ()),
    ("mi210", 250, "fp64", ()),
    ("k20x", 150, "fp32", ()),
    ("rtx5090", 300, "fp32", ()),
    ("a4000", 140, "fp32", (1290,)),
    ("a4000", 140, "fp32", (1290, 1560)),
    ("a4000", 140, "fp32", (1290, 1560, 2100)),
    ("a100", 150, "fp32", (900, 1110)),
)
NAMES = ("eps_flop", "eps_mem", "pi_0")


def with_limit(name: str, limit_w: float) -> Path:
    """A copy of a twin's file with another limit."""
    text = (resources() / "twins" / f"{name}.toml").read_text("utf-8")
    text = re.sub(r"(?m)^limit_default_w = .*", f"limit_default_w = {limit_w}", text)
    lowest = re.search(r"(?m)^limit_minimum_w = ([\d.]+)", text)
    assert lowest is not None
    if limit_w < float(lowest[1]):
        text = re.sub(r"(?m)^limit_minimum_w = .*", f"limit_minimum_w = {limit_w}", text)
    path = Path(tempfile.mkdtemp()) / f"{name}.toml"
    path.write_text(text, encoding="utf-8")
    return path


def truth(name: str, precision: str, clock_mhz: float, temperature_c: float) -> np.ndarray:
    """eps_flop, eps_mem and pi_0 by the twin's laws."""
    twin = load_twin(name)
    voltage, reference = (laws.relative_voltage(twin, at) for at in (clock_mhz, twin.energy.reference_clock_mhz))
    leakage_w = twin.power.static_w * twin.power.leakage_share * voltage * laws.leakage_growth(twin, temperature_c)
    constant_w = laws.unleaked_w(twin, clock_mhz, twin.clocks.memory_mhz[-1], 1.0) + leakage_w
    eps_flop_pj = twin.energy.eps_flop_pj[precision] * (voltage / reference) ** 2
    return np.array([eps_flop_pj, twin.energy.eps_mem_pj_per_b, constant_w])


def sweep(
    name: str, limit_w: float, precision: str, clocks: tuple[int, ...], seed: int
) -> tuple[RooflinePoints, float]:
    """The points of a sweep and the temperature that they are stated for, °C."""
    file = with_limit(name, limit_w)
    with closing(open_gpu(f"simulated:{file}", seed=seed, speed=float("inf"))) as gpu, Store() as store:
        plan = plan_roofline(gpu, precision, clocks_mhz=clocks)
        result = watch_session(plan, store, quiet=True)
        condition = store.load(result.session).record.origin.get("condition", "")
    said = re.match(r"([\d.]+) °C", condition)
    temperatures = result.table.values("temperature_c")
    return points_of_table(result.table, name, precision), float(said[1]) if said else float(np.median(temperatures))


def plain(points: RooflinePoints) -> RooflineFit:
    """The capped model with energies that no clock changes: all points count as at one clock."""
    same = np.full(len(points), 1.0)
    return fit_roofline(replace(points, clock_mhz=same, limited=np.zeros(len(points), dtype=bool)))


HEAD = (
    f"{'':37}free of  fitted   truth: pJ/flop, pJ/B, W  error, %              2 errors, %\n"
    f"board       W precision   locked MHz the limit     over  eps_flop eps_mem pi_0"
    "    flop    mem   pi_0   flop   mem   pi_0"
)


def row(case: str, free: int, over: str, true: np.ndarray, found: list[list[np.ndarray]]) -> str:
    errors, widths = 100 * np.mean(found, axis=0)
    figures = " ".join(f"{each:7.2f}" for each in true)
    off = " ".join(f"{each:+6.1f}" for each in errors)
    return (
        f"{case} {free:4}  {over:>11} {figures}  {off}  {' '.join(f'{each:5.1f}' for each in widths)}  of {len(found)}"
    )


def main(seeds: int) -> None:
    print(HEAD)
    held_by_all, refused = [], 0
    for name, limit_w, precision, clocks in CASES:
        found, whys, plains, over, free = [], [], [], set(), 0
        for seed in range(seeds):
            points, temperature_c = sweep(name, limit_w, precision, clocks, seed)
            true = truth(name, precision, float(np.nanmax(points.clock_mhz)), temperature_c)
            free = int((points.full() & ~points.held() & ~points.of_kind("flop")).sum())
            of_plain = plain(points)
            plains.append([*(of_plain.relative.figures / true - 1), of_plain.max_relative_error])
            try:
                fit = fit_roofline(points)
            except ValueError as error:
                whys.append(str(error))
                continue
            if not fit.identifiable:
                whys.append("; ".join(fit.reasons))
                continue
            over.add("all clocks" if fit.over_clocks else "peak clock")
            figures, errors = fit.relative.figures, np.array(fit.relative.standard_errors)
            found.append([figures / true - 1, 2 * errors / figures])
            held_by_all.append(np.abs(figures - true) <= 2 * errors)
        case = f"{name:9} {limit_w:3} {precision:9} {'+'.join(map(str, clocks)) or 'none':>14}"
        refused += len(whys)
        if found:
            print(row(case, free, "/".join(sorted(over)), true, found))
        for why in dict.fromkeys(whys):
            print(f"{case} {free:4}  refused {whys.count(why)} of {seeds}: {why}")
        if not clocks:
            flop, mem, constant, power = 100 * np.mean(plains, axis=0)
            off = f"{flop:+.0f}, {mem:+.0f}, {constant:+.0f} %"
            print(f"{'':45}plain capped model: off by {off}; misses power by {power:.0f} % at most")
    held = np.array(held_by_all)
    shares = ", ".join(f"{name} {share:.0%}" for name, share in zip(NAMES, held.mean(axis=0), strict=True))
    print(f"\n{len(held)} sweeps answered, {refused} refused; two standard errors hold the truth in: {shares}")
    print("\nSpeed at the limit of the recorded H200, predicted over measured: median and largest error")
    for each in recorded_sweeps():
        some = each.points.limited & each.points.of_kind("roofline") & each.points.full()
        assert each.model is not None
        assert each.limit_w is not None
        words = []
        for what, model in (("no clock", replace(each.model, law=FIXED)), ("law of the clock", each.model)):
            off = np.abs(model.capped(each.intensity()[some], each.limit_w)[0] / each.points.flops[some] - 1)
            words.append(f"{what} {np.median(off):.1%}, {off.max():.1%}")
        print(f"  {each.points.precision:12} {int(some.sum()):2} points: {'; '.join(words)}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
