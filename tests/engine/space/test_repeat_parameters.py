"""A parameter that only repeats the configurations chooses nothing: means are compared, and the scatter is reported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.cli import main
from app.engine.analysis.costs import costs_of
from app.engine.analysis.session_analysis import analyse
from app.engine.models.fit.points import choose
from app.engine.models.series import read_series, series_of_table
from app.engine.results.measurement import Measurement, State
from app.engine.results.objectives import Goal, Objective
from app.engine.session.stored import best_of
from app.engine.space.repeats import fold, is_repeat, repeat_names
from app.engine.space.result_table import ResultTable
from app.engine.space.search_space import space_of_table

TIMES = {32: 0.020, 64: 0.010, 128: 0.011}  # s


def table(names: tuple[str, ...] = ("block_size_x", "REPEAT"), repeats: int = 5, noise: float = 0.1) -> ResultTable:
    """Three block sizes, or one; the luckiest single reading is of 128, the least mean of 64."""
    rng = np.random.default_rng(1)
    blocks = tuple(TIMES) if "block_size_x" in names else (64,)
    rows = [(block, repeat) if len(names) > 1 else (repeat,) for block in blocks for repeat in range(repeats)]
    made = ResultTable(space_of_table(dict.fromkeys(names, ()), rows))
    for values in rows:
        configuration = dict(zip(names, values, strict=True))
        block, repeat = (values[0] if len(names) > 1 else 64), values[-1]
        wobble = (repeat - (repeats - 1) / 2) / repeats * noise * (5 if block == 128 else 1)
        time_s = TIMES[block] * (1 + wobble)
        failed = (block, repeat) == (32, 1)
        row = made.space.row_of(configuration)
        assert row is not None
        made.append(
            Measurement(
                row=row,
                configuration=configuration,
                state=State.RUNTIME if failed else State.OK,
                values={} if failed else {"time_s": time_s, "energy_j": 100 * time_s + rng.normal(0, 0.001)},
                source="recorded",
            )
        )
    return made


def cache(path: Path, source: ResultTable) -> Path:
    names = list(source.space.names)
    entries: dict[str, Any] = {}
    for index in range(len(source)):
        m = source.measurement(index)
        figures: dict[str, Any] = {"time": "RuntimeFailedConfig"}
        if m.state is State.OK:
            figures = {"time": 1e3 * m.values["time_s"], "nvml_energy": m.values["energy_j"]}
        entries[",".join(map(str, m.configuration.values()))] = {**m.configuration, **figures}
    listed = {parameter.name: list(parameter.values) for parameter in source.space.parameters}
    header = {"device_name": "A100", "kernel_name": "k", "tune_params_keys": names, "tune_params": listed}
    path.write_text(json.dumps({**header, "objective": "time", "cache": entries}))
    return path


def run(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


# --- which parameters -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "values", "repeats"),
    [
        ("REPEAT", range(10), True),
        ("repeat", (1, 2, 3), True),
        ("run_id", (0, 1), True),
        ("iteration", (0, 1, 2), True),
        ("trial", ("1", "2"), True),
        ("REPEAT", (0,), False),
        ("iteration", (1, 2, 4, 8), False),
        ("iterations", (1, 2, 3), False),
        ("runs", (1, 2, 3), False),
        ("repeat_unroll", (0, 1), False),
        ("unroll", (0, 1, 2), False),
        ("run", ("a", "b"), False),
        ("trial", (0.5, 1.5), False),
    ],
)
def test_a_name_and_values_that_count(name: str, values: tuple[object, ...], repeats: bool) -> None:
    assert is_repeat(name, values) == repeats


def test_a_parameter_that_changes_the_times_does_more_than_repeat() -> None:
    rows = [(block, at) for block in (32, 64) for at in (1, 2, 3)]
    made = ResultTable(space_of_table({"block": (), "iteration": ()}, rows))
    for row in range(made.space.size):
        configuration = made.space.configuration(row)
        values = {"time_s": float(configuration["iteration"])}
        made.append(Measurement(row, configuration, State.OK, values, source="recorded"))
    assert repeat_names(made) == ()
    assert repeat_names(table()) == ("REPEAT",)


@pytest.mark.parametrize(
    ("times", "repeats"),
    [
        ((3.0, 1.0, 1.02, 0.99), True),
        ((1.0, 1.7, 1.1, 1.6), True),
        ((3.0, 1.0), True),
        ((9.0, 1.0, 1.02, 0.99), False),
        ((1.0, 3.0), False),
        ((8.0, 4.0, 2.0, 1.0), False),
        ((1.0, 1.5, 2.0), False),
    ],
)
def test_a_slow_first_run_and_scatter_leave_a_counter_one_of_repeats(times: tuple[float, ...], repeats: bool) -> None:
    rows = [(block, at) for block in (32, 64) for at in range(1, len(times) + 1)]
    made = ResultTable(space_of_table({"block": (), "run": ()}, rows))
    for row in range(made.space.size):
        configuration = made.space.configuration(row)
        values = {"time_s": float(configuration["block"]) * times[int(configuration["run"]) - 1]}
        made.append(Measurement(row, configuration, State.OK, values, source="recorded"))
    assert repeat_names(made) == (("run",) if repeats else ())


# --- what is compared -------------------------------------------------------------------------------------------------


def test_means_with_their_intervals_stand_for_the_repeats() -> None:
    source = table()
    found = fold(source)
    assert found is not None
    assert found.table.space.names == ("block_size_x",)
    assert len(found.table) == 3
    assert found.repeats == (4, 5)
    for index in range(3):
        m = found.table.measurement(index)
        readings = [
            source.measurement(at).values["time_s"]
            for at in np.flatnonzero(found.index_of == index)
            if source.measurement(int(at)).state is State.OK
        ]
        assert m.values["time_s"] == pytest.approx(np.mean(readings))
        low, high = m.intervals["time_s"]
        assert low < np.mean(readings) < high
    assert found.scatter["time_s"] == pytest.approx(0.032, abs=0.005)
    assert fold(found.table) is None


def test_the_luckiest_reading_does_not_win() -> None:
    source = table()
    single = source.values("time_s")[: len(source)]
    luckiest = source.measurement(int(np.nanargmin(single))).configuration
    assert luckiest["block_size_x"] == 128, "else this shows nothing"
    analysis = analyse(source, Objective(Goal("time_s", False)))
    chosen = {choice.name: choice.index for choice in analysis.choices}
    assert chosen["fastest"] is not None
    assert source.measurement(chosen["fastest"]).configuration["block_size_x"] == 64
    best = best_of(source, Goal("time_s", False))
    assert best is not None
    assert source.measurement(best).configuration["block_size_x"] == 64
    assert np.isfinite(costs_of(source).time_s).sum() == 3, "each configuration counts once"
    for effects in analysis.effects:
        assert "REPEAT" not in [importance.name for importance in effects.importances]
        assert all("REPEAT" not in interaction.names for interaction in effects.interactions)
    assert "REPEAT" not in [correlation.name for correlation in analysis.correlations]


@pytest.mark.parametrize("names", [("REPEAT",), ("block_size_x", "REPEAT")])
def test_analyse_reports_the_scatter_and_no_winner_among_repeats(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], names: tuple[str, ...]
) -> None:
    path = cache(tmp_path / "repeats.json", table(names))
    document = run(capsys, "analyse", str(path))
    assert document["repeats"]["parameters"] == ["REPEAT"]
    assert document["repeats"]["scatter"]["time_s"] > 0.02
    assert "REPEAT" not in json.dumps([document[key] for key in ("importance", "choosers", "front", "correlations")])
    if names == ("REPEAT",):
        assert document["evaluated"] == 1
        assert all(choice["energy_change"] == 0 for choice in document["choosers"].values() if choice)
    assert main(["analyse", str(path)]) == 0
    assert "REPEAT only repeats each configuration" in capsys.readouterr().out


def test_compare_replay_and_report_do_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = cache(tmp_path / "repeats.json", table())
    alone = cache(tmp_path / "alone.json", table(("REPEAT",)))
    sides = run(capsys, "compare", str(path), str(alone))["sides"]
    assert [side["measured"] for side in sides] == [3, 1]
    assert sides[0]["fastest"]["configuration"] == {"block_size_x": 64}
    assert sides[1]["efficiency_change"] == 0
    document = run(capsys, "replay", str(path))
    assert document["evaluated"] == 15
    assert document["best"]["configuration"] == {"block_size_x": 64}
    assert any("only repeats" in note for note in document["notes"])
    [report] = run(capsys, "report", str(path), "--out", str(tmp_path / "report.html"))["files"]
    text = Path(report).read_text(encoding="utf-8")
    assert "REPEAT only repeats each configuration" in text
    assert "REPEAT=" not in text


def test_what_is_exported_is_a_configuration_and_every_reading(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = cache(tmp_path / "repeats.json", table())
    written = run(capsys, "export", str(path), "--out", str(tmp_path))["files"]
    files = {Path(file).name: Path(file).read_text() for file in written}
    assert "#define block_size_x 64" in files["k.h"]
    assert "REPEAT" not in files["k.h"]
    assert json.loads(files["k.json"])["parameters"] == {"block_size_x": 64}
    assert len(json.loads(files["k-cache.json"])["cache"]) == 15, "nothing is lost"
    folder = str(tmp_path / "other")
    words = ("export", str(path), "--out", folder, "--kind", "json", "--configuration", "block_size_x=128")
    chosen, receipt = run(capsys, *words)["files"]
    assert Path(receipt).name == "receipt.json"
    assert json.loads(Path(chosen).read_text())["parameters"] == {"block_size_x": 128}
    alone = cache(tmp_path / "alone.json", table(("REPEAT",)))
    header, _ = run(capsys, "export", str(alone), "--out", str(tmp_path / "alone"), "--kind", "header")["files"]
    assert Path(header).read_text().count("#define") == 1, "the include guard: there is nothing to choose"


def test_repeats_at_a_clock_are_points_of_one_series(tmp_path: Path) -> None:
    rows = [(clock, repeat) for clock in range(900, 1500, 100) for repeat in range(4)]
    made = ResultTable(space_of_table({"graphics_clock_mhz": (), "REPEAT": ()}, rows))
    for row in range(made.space.size):
        configuration = made.space.configuration(row)
        values = {"time_s": 1.0, "power_w": float(configuration["graphics_clock_mhz"]) / 10}
        made.append(Measurement(row, configuration, State.OK, values, source="recorded"))
    [points] = series_of_table(made)
    assert len(points.clock_mhz) == 24
    path = tmp_path / "sweep.csv"
    path.write_text("\n".join(["repeat,clock_mhz,power_w", *(f"{r},{c},{c / 10}" for c, r in rows)]))
    assert len(choose(read_series(path)).clock_mhz) == 24
