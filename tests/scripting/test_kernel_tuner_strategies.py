"""Strategies of Kernel Tuner's scripts: their options, one of the script's own, and those of other packages."""

from __future__ import annotations

import importlib.util
import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app import InputError, tune, tune_kernel
from app.cli import main
from app.engine.specification.model import SearchOfAnySize
from app.engine.strategies import base
from app.scripting.stand_in import standing_for_kernel_tuner
from app.scripting.strategies import ELSEWHERE, OPTIONS, read_strategy
from app.strategies import Search, SearchSpace, Strategy

ROOT = Path(__file__).resolve().parents[2]
SOURCE = "__global__ void vector_add(float *c, const float *a, const float *b, int n) {}"
N = np.int32(1_000_000)
X = np.zeros(1000, np.float32)
BLOCKS = [32 * i for i in range(1, 25)]
# Every option that Kernel Tuner 1.5.0 declares, with a value of it that a script may give, by strategy.
_NEAR = {"neighbor": "adjacent", "restart": True, "order": [0, 1], "randomize": False}
_VALID = {"constraint_aware": True}
DECLARED: dict[str, dict[str, Any]] = {
    "brute_force": {},
    "random_sample": {"fraction": 0.2},
    "minimize": {"method": "Powell"},
    "basinhopping": {"method": "COBYLA", "T": 0.5},
    "dual_annealing": {"method": "Powell"},
    "diff_evo": {
        "popsize": 5,
        "popsize_times_dimensions": True,
        "maxiter": 3,
        "F": 0.7,
        "CR": 0.6,
        "method": "rand1exp",
    }
    | _VALID,
    "genetic_algorithm": {"popsize": 6, "maxiter": 3, "method": "two_point", "mutation_chance": 10, **_VALID},
    "greedy_mls": _NEAR,
    "ordered_greedy_mls": _NEAR,
    "mls": _NEAR,
    "greedy_ils": {"neighbor": "Hamming", "restart": True, "no_improvement": 50, "random_walk": 0.3},
    "pso": {"popsize": 5, "maxiter": 3, "w": 0.5, "c1": 3.5, "c2": 1.0, **_VALID},
    "simulated_annealing": {"T": 0.5, "T_min": 0.01, "alpha": 0.99, "maxiter": 1, **_VALID},
    "firefly_algorithm": {"popsize": 5, "maxiter": 3, "B0": 1.0, "gamma": 1.0, "alpha": 0.2, **_VALID},
    "bayes_opt": {
        "covariancekernel": "matern32",
        "covariancelengthscale": 1.5,
        "method": "ei",
        "samplingmethod": "lhs",
        "popsize": 10,
    },
    "nsga2": {
        "popsize": 8,
        "crossover_operator": "uniform-crossover",
        "crossover_prob": 1.0,
        "mutation_prob": 0.1,
        "ref_dirs_list": [[1.0, 0.0]],
    },
    "skopt": dict.fromkeys(
        ("learner", "acq_func", "lie_strategy", "kappa", "num_initial", "batch_size", "skopt_kwargs"), 1
    ),
    "pyatf_strategies": {"searchtechnique": "simulated_annealing", "use_searchspace_cache": False},
    "hybrid_vndx": dict.fromkeys(
        ("budget", "k", "cand_pool", "restart_iter", "tabu_size", "elite_size", "temp0", "cooling", "constraint_aware"),
        1,
    ),
    "adaptive_tabu_greywolf": dict.fromkeys(
        (
            *("budget", "pack_size", "tabu_factor", "shake_rate", "jump_rate", "stagn_limit", "restart_ratio"),
            *("t0", "t_decay", "t_min", "constraint_aware"),
        ),
        1,
    ),
    "nsga3": dict.fromkeys(("popsize", "crossover_operator", "crossover_prob", "mutation_prob", "ref_dirs_list"), 1),
}
REFUSED = {"order", "no_improvement", "covariancekernel", "covariancelengthscale", "ref_dirs_list"}


def tuned(strategy: Any, options: Any = None, **more: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    usual = {"gpu": "simulated:a100", "profile": "vector_add", "quiet": True, "seed": 3, **more}
    parameters = {"block_size_x": BLOCKS, "u": [1, 2, 4]}
    return tune_kernel(
        "vector_add", SOURCE, int(N), [X, X, X, N], parameters, strategy=strategy, strategy_options=options, **usual
    )


def test_every_option_that_kernel_tuner_declares_is_honoured_or_refused_by_name() -> None:
    assert sum(map(len, DECLARED.values())) == 94
    assert {name for name, options in DECLARED.items() if options} == {*OPTIONS, *ELSEWHERE}
    refused = {}
    for strategy, options in DECLARED.items():
        assert set(options) == set(OPTIONS.get(strategy, options)), strategy
        for option, value in options.items():
            try:
                search = read_strategy(strategy, {option: value}, 2)
            except InputError as error:
                refused[strategy, option] = error
                continue
            base.make_options(base.get(search.strategy), dict(search.strategy_options))
    here = {pair: error for pair, error in refused.items() if pair[0] not in ELSEWHERE}
    assert {option for _, option in here} == REFUSED
    assert all(option in error.what and strategy in error.where for (strategy, option), error in here.items())
    assert all(error.remedy and strategy in str(error) for (strategy, _), error in refused.items())
    assert (len(refused), len(here)) == (34 + 7, 7)


@pytest.mark.parametrize(
    ("strategy", "options", "ours", "wanted"),
    [
        ("genetic_algorithm", {"method": "single_point"}, "genetic_algorithm", {"crossover": "single_point"}),
        ("genetic_algorithm", {"mutation_chance": 4}, "genetic_algorithm", {"mutation_chance": 0.25}),
        (
            "diff_evo",
            {"popsize": 5, "popsize_times_dimensions": True},
            "differential_evolution",
            {"population_size": 10},
        ),
        ("greedy_ils", {"random_walk": 0.5}, "greedy_ils", {"leap": 1}),
        ("mls", {"neighbor": "adjacent"}, "mls", {"neighbourhood": "adjacent"}),
        ("mls", {"restart": True}, "greedy_mls", {}),
        ("greedy_mls", {"restart": False}, "mls", {}),
        ("greedy_mls", {"randomize": False}, "ordered_greedy_mls", {}),
        ("ordered_greedy_mls", {"randomize": True}, "greedy_mls", {}),
        ("bayes_opt", {"method": "multi-fast"}, "bayesian_optimisation", {"acquisition": "portfolio"}),
        ("basinhopping", {"method": "Powell"}, "basin_hopping", {"method": "Powell"}),
    ],
)
def test_options_have_their_meaning_here(strategy: str, options: Any, ours: str, wanted: dict[str, Any]) -> None:
    search: SearchOfAnySize = read_strategy(strategy, options, 2)
    assert search.strategy == ours
    assert dict(search.strategy_options) == wanted


@pytest.mark.parametrize(
    ("strategy", "options"),
    [
        ("genetic_algorithm", {"constraint_aware": False}),
        ("genetic_algorithm", {"method": "none such"}),
        ("simulated_annealing", {"maxiter": 3}),
        ("bayes_opt", {"samplingmethod": "random"}),
        ("greedy_ils", {"restart": False}),
        ("pso", {"searchspace_construction_options": {"path_to_ATF_cache": "x"}}),
        ("nsga3", {}),
        ("brute_force", {"x0": [32, 1]}),
        ("pso", {"x0": [33, 1]}),
        ("pso", {"x0": [32]}),
    ],
)
def test_what_is_refused_is_named_in_one_line(strategy: str, options: dict[str, Any]) -> None:
    with pytest.raises(InputError) as refused:
        tuned(strategy, {**options, "max_fevals": 5})
    assert next(iter(options), strategy) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_search_begins_where_the_script_says() -> None:
    results, _ = tuned("simulated_annealing", {"x0": [96, 2], "max_fevals": 5})
    assert (results[0]["block_size_x"], results[0]["u"]) == (96, 2)


def test_the_methods_of_the_global_optimisers_are_scipys() -> None:
    for strategy in ("basinhopping", "dual_annealing"):
        results, _ = tuned(strategy, {"method": "Powell", "max_fevals": 20})
        assert len(results) == 20


def test_a_value_that_equals_another_is_left_out_with_a_note() -> None:
    _, environment = tune_kernel(
        "vector_add", SOURCE, int(N), [X, X, X, N], {"block_size_x": [64, 128], "m": ["a", 1, True]},
        gpu="simulated:a100", profile="vector_add", quiet=True,
    )  # fmt: skip
    assert any("True is the same as 1" in note for note in environment["notes"])


class Backwards(Strategy, name="backwards_of_a_test", label="Backwards"):
    """From the last configuration to the first."""

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: Any) -> Search:
        for row in reversed(range(space.size)):
            yield [row]


def test_a_strategy_of_ones_own_is_one_class() -> None:
    results, _ = tuned(Backwards, {"max_fevals": 4})
    assert [each["block_size_x"] for each in results] == [768, 768, 768, 736]
    calls: list[int] = []
    tune(lambda k: calls.append(k), {"k": [1, 2, 3]}, strategy=Backwards, max_evaluations=2, target=0.5, quiet=True)
    assert [*dict.fromkeys(calls)][-2:] == [3, 2] or [*dict.fromkeys(calls)][:2] == [3, 2]


def test_an_object_with_tune_runs_and_its_faults_reach_the_script() -> None:
    with standing_for_kernel_tuner():
        from kernel_tuner.strategies.common import CostFunc  # type: ignore[import-not-found,unused-ignore]
        from kernel_tuner.util import StopCriterionReached  # type: ignore[import-not-found,unused-ignore]

    heard: list[Any] = []

    class Mine:
        def tune(self, searchspace: Any, runner: Any, tuning_options: Any) -> Any:
            cost = CostFunc(searchspace, tuning_options, runner)
            try:
                while True:
                    heard.append(cost(searchspace.get_random_sample(1)[0]))
            except StopCriterionReached:
                heard.append(round(cost.budget_spent_fraction, 3))
                raise

    results, environment = tuned(Mine(), {"max_fevals": 6})
    assert len(results) == 6
    assert heard[-1] == 1.0
    assert min(heard[:-1]) == pytest.approx(environment["best_config"]["time"])

    class Faulty:
        def tune(self, searchspace: Any, runner: Any, tuning_options: Any) -> Any:
            raise LookupError("the script's own")

    with pytest.raises(LookupError, match="the script's own"):
        tuned(Faulty())
    with pytest.raises(InputError, match="strategy"):
        tuned(3)


def test_one_that_asks_for_nothing_new_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.scripting.own_strategies._MOST_REPEATS", 10)
    with standing_for_kernel_tuner():
        from kernel_tuner.strategies.common import CostFunc

    class Stuck:
        def tune(self, searchspace: Any, runner: Any, tuning_options: Any) -> Any:
            cost = CostFunc(searchspace, tuning_options, runner)
            while True:
                cost(searchspace.list[0])

    assert len(tuned(Stuck())[0]) == 1


def test_errors_are_those_that_scripts_of_kernel_tuner_catch() -> None:
    with standing_for_kernel_tuner():
        import kernel_tuner  # type: ignore[import-not-found,unused-ignore]

        with pytest.raises(ValueError, match="nosuch"):
            kernel_tuner.tune_kernel("f", SOURCE, 1, [], {"a": [1]}, strategy="nosuch", quiet=True)


def test_a_report_is_written_of_a_session_whose_strategy_is_gone(tmp_path: Path) -> None:
    _, environment = tuned(Backwards, {"max_fevals": 4})
    class_of, base._REGISTRY = base._REGISTRY, {k: v for k, v in base._REGISTRY.items() if k != Backwards.name}
    try:
        assert main(["report", str(environment["session"]), "--out", str(tmp_path / "r.html")]) == 0
    finally:
        base._REGISTRY = class_of


INSTALLED = """
from app.engine.strategies.base import Strategy

class Installed(Strategy, name="of_a_package", label="Of a package"):
    '''Of another package.'''
    def search(self, space, rng, batch, options):
        yield [0]
"""
LISTED = "import sys; from app.engine.strategies import base; print('of_a_package' in base.names()); base.get('broken')"


def test_another_package_brings_a_strategy_and_the_helper_never_loads_it(tmp_path: Path) -> None:
    (tmp_path / "brings.py").write_text(INSTALLED)
    (tmp_path / "broken_one.py").write_text("raise RuntimeError('not today')\n")
    metadata = tmp_path / "brings-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: brings\nVersion: 1.0\n")
    entries = "[wattridge.strategies]\nof_a_package = brings:Installed\nbroken = broken_one:Nothing\n"
    (metadata / "entry_points.txt").write_text(entries)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), str(ROOT)))}

    def said(code: str) -> tuple[str, str]:
        words = [sys.executable, "-c", code]
        done = subprocess.run(words, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
        return done.stdout.strip(), done.stderr.strip().splitlines()[-1] if done.stderr else ""

    out, err = said(LISTED)
    assert out == "True"
    assert "broken" in err
    assert "not today" in err
    helper = "import sys; from app.engine.control.helper import __main__; "
    assert said(f"{helper}print([n for n in sys.modules if 'strategies' in n or n == 'brings'])")[0] == "[]"


def test_optuna_searches_one_session_by_ask_and_tell(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if importlib.util.find_spec("optuna") is None:
        pytest.skip("Optuna is not installed")
    import app

    monkeypatch.setitem(sys.modules, "wattridge", app)
    monkeypatch.setitem(sys.modules, "wattridge.strategies", app.strategies)
    monkeypatch.setattr(sys, "argv", ["optuna_strategy.py"])
    runpy.run_path(str(ROOT / "resources/examples/optuna_strategy.py"), run_name="__main__")
    assert "25 configurations by Optuna, simulated" in capsys.readouterr().out


def test_a_notebook_switches_in_one_line() -> None:
    code = (
        "import app.kernel_tuner as kernel_tuner, sys; from kernel_tuner.observers.nvml import NVMLObserver; "
        "import kernel_tuner as again; from app.observers import NVMLObserver as Ours; "
        "print(again is kernel_tuner, NVMLObserver is Ours, again.__version__, callable(again.tune_kernel))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True", "1.5.0", "True"]
