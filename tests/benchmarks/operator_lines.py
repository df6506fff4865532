"""What `operators.py` has to show, line by line, from the records that it keeps; each with what is asked of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from scipy.stats import spearmanr

from app.engine.models.energy_cost import Sample, fit, helps

A100: Final = {  # of [Zhang2024], tables 2 and 4: latency search and energy search, mJ; cuBLAS
    "MM1": (8.3, 6.5, 7.19),
    "MM2": (47.23, 45.07, 51.43),
    "MM3": (56.09, 54.36, None),
    "MM4": (375.18, 325.94, None),
    "MV1": (494.06, 479.65, 481.57),
    "MV2": (434.72, 427.27, 424.82),
    "MV3": (29.17, 27.85, None),
    "MV4": (109.14, 106.51, None),
    "CONV1": (68.47, 59.16, None),
    "CONV2": (89.47, 77.79, None),
    "CONV3": (324.37, 319.39, None),
}
SIZES: Final = (16, 32, 64, 128)  # rows that a model knows
SPLITS: Final = 5
Record = Mapping[str, Any]
Ratio = tuple[float, float]  # a relative difference, and half of its 95 % interval


def print_lines(records: Sequence[Record]) -> None:
    """All of them; those without data say so."""
    shapes = [each for each in records if "shape" in each]
    for gpu, source, driver, date in sorted(
        {(each["gpu"], each["source"], each.get("driver", "not kept"), each.get("date", "not kept")) for each in shapes}
    ):
        print(f"# {gpu} ({source}), driver {driver}, {date}")
    print_shapes(shapes)
    print_k_search(shapes)
    print_gain(shapes)
    print_library(shapes)
    print_floor(shapes)
    print_model(records, shapes)


def apart(figure: Mapping[str, Any], other: Mapping[str, Any]) -> Ratio:
    """How much less energy the first takes than the other, with the interval that theirs give."""
    halves = []
    for each in (figure, other):
        low, high = each["interval_mj"]
        halves.append((high - low) / 2 / each["energy_mj"] if math.isfinite(high - low) else math.nan)
    ratio = figure["energy_mj"] / other["energy_mj"]
    return 1 - ratio, ratio * math.hypot(*halves)


def percent(ratio: Ratio) -> str:
    half = f" ±{100 * ratio[1]:.1f}" if math.isfinite(ratio[1]) else ""
    return f"{100 * ratio[0]:+.1f}{half} %"


def library_of(shape: Record) -> dict[str, Any] | None:
    """As a winner has it; None where it was not measured."""
    vendor = shape["vendor"] or {}
    values = vendor.get("values") or {}
    if values.get("energy_j") is None:
        return None
    ends = (vendor.get("intervals_95") or {}).get("energy_j", [math.nan, math.nan])
    return {
        "energy_mj": values["energy_j"] * 1e3,
        "latency_ms": values["time_s"] * 1e3,
        "interval_mj": [end * 1e3 for end in ends],
        "name": vendor["library"],
    }


def print_shapes(shapes: Sequence[Record]) -> None:
    print(
        "\n1. Every shape: winners and library measured again; the A100 of [Zhang2024] beside them (other candidates)"
    )
    for shape in shapes:
        options = ", ".join(f"{name} {value}" for name, value in shape["options"].items()) or "options as by default"
        started = f"; started in {shape['started_s']:.1f} s" if "started_s" in shape else ""
        print(f"{shape['shape']}: {shape['valid']} valid; again for {shape['again_s']:g} s{started}; {options}")
        for arm, spent in shape["arms"].items():
            won = shape["winners"].get(arm)
            begun = ", one of those begun with" if won is not None and won.get("of_starts") else ""
            shown = (
                "nothing worked"
                if won is None
                else (
                    f"{won['energy_mj']:9.3f} mJ ({won['interval_mj'][0]:.3f}..{won['interval_mj'][1]:.3f}) "
                    f"{won['latency_ms']:.4f} ms"
                )
            )
            print(
                f"   {arm:20} {shown}; {spent['energies']} energies {spent['energy_s']:.1f} s, {spent['timed']} timed "
                f"{spent['timing_s']:.1f} s, wall {spent['wall_s']:.1f} s and {spent['reused_s']:.1f} s reused; "
                f"{spent['ended']}{begun}"
            )
        library = library_of(shape)
        if library is not None:
            print(f"   {library['name']:20} {library['energy_mj']:9.3f} mJ {library['latency_ms']:.4f} ms")
        else:
            print(f"   library: {(shape['vendor'] or {}).get('why_not', 'not measured')}")
        if shape["shape"] in A100:
            latency, energy, blas = A100[shape["shape"]]
            beside = f", cuBLAS {blas} mJ" if blas else ""
            print(f"   A100: latency search {latency} mJ, energy search {energy} mJ{beside}")


def print_k_search(shapes: Sequence[Record]) -> None:
    print("\n2. The k search against measuring everything (asked: within 1 %, at most 0.5 of the energies and 0.6 of")
    print(
        "   the board's time for energies; medians). Both begin with the same candidates; later ones are bred of what"
    )
    print("   an arm knows, so that their numbers differ by a few")
    rows, compared = [], []
    for shape in shapes:
        few, many = shape["arms"]["k search"], shape["arms"]["everything measured"]
        won = shape["winners"]
        if "k search" not in won or "everything measured" not in won or not many["energies"]:
            continue
        more = won["k search"]["energy_mj"] / won["everything measured"]["energy_mj"] - 1
        board = few["board_s"] / many["board_s"] if many["board_s"] else math.nan
        energy = few["energy_s"] / many["energy_s"] if many["energy_s"] else math.nan
        rows.append((more, few["energies"] / many["energies"], energy, board))
        compared.append(as_many_rounds(few, many))
        print(
            f"   {shape['shape']:6} {100 * more:+6.2f} % energy, {rows[-1][1]:.2f} of the energies, {energy:.2f} of "
            f"the time for them, {board:.2f} of all board time ({few['board_s']:.1f} of {many['board_s']:.1f} s), "
            f"{few['timed']} and {many['timed']} timed, k "
            + " ".join(f"{k:.2f}" for k in shape["k"])
            + ("" if compared[-1] else "; one was stopped earlier than the other")
        )
    if rows:
        print_medians("of all", rows)
        if not all(compared) and any(compared):
            print_medians("of as many rounds", [row for row, like in zip(rows, compared, strict=True) if like])


def as_many_rounds(few: Record, many: Record) -> bool:
    """Whether both arms had the same rounds; of files that do not hold them, whether neither was stopped."""
    if "rounds" in few:
        return bool(few["rounds"] == many["rounds"])
    return "stopped" not in (few["ended"], many["ended"])


def print_medians(of: str, rows: Sequence[tuple[float, ...]]) -> None:
    more, count, energy, board = np.nanmedian(np.array(rows, float), axis=0)
    verdict = "holds" if more <= 0.01 and count <= 0.5 and energy <= 0.6 else "does not hold"
    print(f"   median {of}: {100 * more:+.2f} %, {count:.2f}, {energy:.2f}, {board:.2f} -> {verdict}")


def print_gain(shapes: Sequence[Record]) -> None:
    print("\n3. Energy against the latency search, at a latency within 3 % ([Zhang2024] has 7.5 % in the mean, A100)")
    gains = []
    for shape in shapes:
        won = shape["winners"]
        if not {"as fast", "latency only", "k search"} <= won.keys():
            continue
        gain = apart(won["as fast"], won["latency only"])
        slower = won["as fast"]["latency_ms"] / won["latency only"]["latency_ms"] - 1
        least = apart(won["k search"], won["latency only"])
        late = won["k search"]["latency_ms"] / won["latency only"]["latency_ms"] - 1
        gains.append(gain)
        power = won["as fast"]["power_w"] / won["latency only"]["power_w"] - 1
        print(
            f"   {shape['shape']:6} {percent(gain)} less energy at {100 * slower:+.1f} % time, power "
            f"{100 * power:+.1f} %; least energy: {percent(least)} at {100 * late:+.1f} %"
        )
    if gains:
        half = math.sqrt(sum(each[1] ** 2 for each in gains)) / len(gains)
        print(f"   mean gain: {percent((float(np.mean([each[0] for each in gains])), half))}")


def print_library(shapes: Sequence[Record]) -> None:
    print("\n4. Against the vendor's library (asked: less energy on 7 of 11, within 10 % on the others)")
    gains = []
    for shape in shapes:
        library, won = library_of(shape), shape["winners"].get("k search")
        if library is None or won is None:
            continue
        gains.append(apart(won, library)[0])
        faster = 1 - won["latency_ms"] / library["latency_ms"]
        print(f"   {shape['shape']:6} {percent(apart(won, library))} less energy, {100 * faster:+.1f} % less time")
    if not gains:
        print("   no library was measured")
        return
    less, near = sum(gain > 0 for gain in gains), all(gain > -0.1 for gain in gains)
    verdict = "holds" if less >= 7 and near else "does not hold"
    others = "are" if near else "are not all"
    print(f"   less energy on {less} of {len(gains)}; the others {others} within 10 % -> {verdict}")


def print_floor(shapes: Sequence[Record]) -> None:
    print("\n5. Above the roofline's floor, and what bounds it")
    for shape in shapes:
        floor, won = shape["floor"], shape["winners"].get("k search")
        if floor["why_not"] or won is None:
            print(f"   {shape['shape']:6} {floor['why_not'] or 'nothing worked'}")
            continue
        time_ms, energy_mj = floor["values"]["time_s"] * 1e3, floor["values"]["energy_j"] * 1e3
        library = library_of(shape)
        beside = (
            f"; the library {library['energy_mj'] / energy_mj:.2f}, {library['latency_ms'] / time_ms:.2f}"
            if library
            else ""
        )
        more, longer = won["energy_mj"] / energy_mj, won["latency_ms"] / time_ms
        print(
            f"   {shape['shape']:6} {more:.2f} times its energy, {longer:.2f} times its time ({energy_mj:.3f} mJ, "
            f"{time_ms:.4f} ms, bound by the {floor['bound_by']}){beside}"
        )


def print_model(records: Sequence[Record], shapes: Sequence[Record]) -> None:
    print("\n6. The energy model, held out (asked: rank 0.95, median error 5 %; in the fastest quarter better than")
    print("   mean power x time)")
    known = next((each["model"] for each in records if "model" in each), {})
    samples = {name: sample for name, each in known.items() if (sample := _sample(each)) is not None}
    for name, (sample, energy_j) in samples.items():
        for size in SIZES:
            if 2 * size <= len(energy_j):
                rank, error, ours, mean_power = np.mean(
                    [held_out(sample, energy_j, size, split) for split in range(SPLITS)], axis=0
                )
                print(
                    f"   {name}: {size} of {len(energy_j)} random rows known: rank {rank:.3f}, error {100 * error:.1f} "
                    f"%; fastest quarter {100 * ours:.1f} %, mean power x time {100 * mean_power:.1f} %"
                )
    for name, (_, energy_j) in samples.items():
        scatters = scatters_of(known[name], shapes)
        figures = ", ".join(
            f"{reachable_rank(energy_j, relative):.3f} where that is {what} ({100 * np.mean(relative):.1f} %)"
            for what, relative in scatters.items()
        )
        if figures:
            print(f"   {name}: a model without error would reach rank, by the scatter of measured energies: {figures}")
    names = list(samples)
    if len(names) == 2:
        for own, other in (names, names[::-1]):
            prior = fit(*samples[other])
            for size in SIZES:
                sample, energy_j = samples[own]
                if 2 * size <= len(energy_j):
                    found = [prior_error(sample, energy_j, prior, size, split) for split in range(SPLITS)]
                    alone, with_it, kept = np.mean(found, axis=0)
                    print(
                        f"   {own}, {size} known: {100 * with_it:.1f} % off from the model of {other} on instead of "
                        f"{100 * alone:.1f} %; its own test keeps that in {kept * SPLITS:.0f} of {SPLITS} splits"
                    )
    for shape in shapes:
        pairs = shape["predicted"]
        if pairs and len(pairs["measured_j"]) > 8:
            predicted, measured = np.array(pairs["predicted_j"]), np.array(pairs["measured_j"])
            off = float(np.median(np.abs(predicted / measured - 1)))
            rank = float(spearmanr(predicted, measured)[0])
            scatter = two_looks(shapes)
            reachable = ""
            if scatter is not None:
                most = reachable_rank(measured, np.full(len(measured), scatter[0]))
                reachable = f"; without error {most:.2f}, by two looks"
            print(
                f"   {shape['shape']}: {len(measured)} of the k search's own, before they were known: {100 * off:.1f} "
                f"% off, rank {rank:.2f} (near the best only{reachable})"
            )


def held_out(sample: Sample, energy_j: np.ndarray, size: int, split: int) -> tuple[float, float, float, float]:
    """(rank, median error, the same among the fastest quarter, there by mean power x time) with `size` rows known."""
    order = np.random.default_rng((size, split)).permutation(len(energy_j))
    learnt, others = order[:size], order[size:]
    model = fit(sample.of(learnt), energy_j[learnt])
    predicted, true, times = model.energy_j(sample.of(others)), energy_j[others], sample.time_s[others]
    by_power = (energy_j[learnt] / sample.time_s[learnt]).mean() * times
    fast = times <= np.quantile(times, 0.25)
    off = np.abs(predicted / true - 1)
    return (
        float(spearmanr(predicted, true)[0]),
        float(np.median(off)),
        float(np.median(off[fast])),
        float(np.median(np.abs(by_power / true - 1)[fast])),
    )


def scatters_of(rows: Record, shapes: Sequence[Record]) -> dict[str, np.ndarray]:
    """How much the energies of rows may scatter, standard deviations relative to them, by where that is known from.

    Their intervals hold what all rows share, too (the sensor's error, the board's temperature): by them it is too much.
    """
    energy_j = np.array(rows["energy_j"], float)
    found = {}
    if "interval_j" in rows:
        low, high = np.array(rows["interval_j"], float).T
        found["all of their intervals"] = (high - low) / 2 / 1.96 / energy_j
    won = [each for shape in shapes for each in shape["winners"].values()]
    if won and not found:
        halves = [(each["interval_mj"][1] - each["interval_mj"][0]) / 2 / each["energy_mj"] for each in won]
        found["all of an interval as the winners have it"] = np.full(len(energy_j), np.nanmedian(halves) / 1.96)
    if (looks := two_looks(shapes)) is not None:
        found[f"what two looks at {looks[1]} winners differ by"] = np.full(len(energy_j), looks[0])
    return {what: np.nan_to_num(relative) for what, relative in found.items()}


def two_looks(shapes: Sequence[Record]) -> tuple[float, int] | None:
    """The scatter of one look, relative, by the difference of two at each winner; of how many. None without any."""
    looks = {  # each row once: arms may have the same winner
        (shape["shape"], each["row"]): each["energy_mj"] / each["before"]["energy_mj"] - 1
        for shape in shapes
        for each in shape["winners"].values()
        if each.get("before")
    }
    return (math.sqrt(np.mean(np.square(list(looks.values()))) / 2), len(looks)) if looks else None


def reachable_rank(energy_j: np.ndarray, relative: np.ndarray, draws: int = 400) -> float:
    """The mean rank correlation of true energies with measured ones, which scatter by `relative`, shape (rows,).

    The true ones are taken to be the measured ones drawn together until both spread as they should: measured ones are
    spread by the truth and by their scatter.
    """
    logs, rng = np.log(energy_j), np.random.default_rng(1)
    kept = math.sqrt(max(0.0, 1 - float(np.mean(relative**2)) / float(logs.var())))
    true = logs.mean() + kept * (logs - logs.mean())
    ranks = [spearmanr(true, true + relative * rng.standard_normal(len(true)))[0] for _ in range(draws)]
    return float(np.mean(ranks))


def prior_error(sample: Sample, energy_j: np.ndarray, prior: Any, size: int, split: int) -> tuple[float, float, float]:
    """(median error without the prior, with it, whether the search's own test would keep it), on the rows not known."""
    order = np.random.default_rng((size, split)).permutation(len(energy_j))
    learnt, others = order[:size], order[size:]
    known, true = sample.of(learnt), energy_j[others]
    errors = [
        float(np.median(np.abs(fit(known, energy_j[learnt], start).energy_j(sample.of(others)) / true - 1)))
        for start in (None, prior)
    ]
    with_it, without = helps(prior, known, energy_j[learnt])
    return errors[0], errors[1], float(with_it < without)


def _sample(rows: Record) -> tuple[Sample, np.ndarray] | None:
    if len(rows["energy_j"]) < 2 * SIZES[0]:
        return None
    features = np.array([[math.nan if x is None else x for x in row] for row in rows["features"]], float)
    return Sample(tuple(rows["names"]), features, np.array(rows["time_s"])), np.array(rows["energy_j"])
