"""`wattridge score`: how good search strategies are on recorded search spaces."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from ..base.errors import InputError, WattridgeError
from ..engine.results.objectives import parse_front
from ..engine.session.named import recording_path
from .arguments import add_goal, goal_of, key_value, positive_int
from .terminal import ProgressBar, print_json, print_table, say, show, stop_on_interrupt

if TYPE_CHECKING:
    from ..engine.strategies.recorded_runs import Scores
    from .documents import ScoreDocument


def score_arguments(parser: ArgumentParser) -> None:
    """Declare the options of `wattridge score`."""
    parser.add_argument("caches", nargs="+", metavar="CACHE", help="a cache in which every configuration was measured")
    parser.add_argument("--strategy", metavar="NAME,...", help="the strategies (default: all)")
    parser.add_argument(
        "--strategy-option", action="append", default=[], type=key_value, metavar="K=V", help="an option of them all"
    )
    parser.add_argument("--repeats", type=positive_int, default=25, metavar="N", help="runs of each (default 25)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the first run (default 1)")
    add_goal(parser)
    parser.add_argument("--over-time", action="store_true", help="over the time that evaluating took, not evaluations")
    parser.add_argument("--batch", type=positive_int, default=1, metavar="N", help="rows asked for at once (default 1)")
    parser.add_argument(
        "--boards", type=positive_int, default=1, metavar="N", help="boards that measure at the same time (default 1)"
    )
    parser.add_argument("--jobs", type=positive_int, default=1, metavar="N", help="processes that share the work")


def score(arguments: Namespace) -> int:
    """Score strategies on caches and print the figures."""
    from ..engine import strategies  # noqa: F401  (registers them)
    from ..engine.strategies import base, recorded_runs

    named = [name.strip() for name in arguments.strategy.split(",")] if arguments.strategy else base.names()
    plan = recorded_runs.ScorePlan(
        caches=tuple(recording_path(path) for path in arguments.caches),
        strategies=tuple(dict.fromkeys(named)),
        repeats=arguments.repeats,
        seed=arguments.seed,
        goal=goal_of(arguments),
        front=parse_front(arguments.front) if arguments.front else (),
        over_time=arguments.over_time,
        batch=max(arguments.batch, arguments.boards),
        boards=arguments.boards,
        options=dict(arguments.strategy_option),
        jobs=arguments.jobs if arguments.jobs > 1 else None,
    )
    if arguments.seed < 0:
        raise InputError("the seed is negative", "--seed", "0 or more")
    bar = ProgressBar(quiet=arguments.json)
    with stop_on_interrupt() as stop:
        scores = recorded_runs.score(plan, stop, lambda done, total: bar.show(done, total, "runs", final=done == total))
    if scores is None:
        raise WattridgeError("stopped before every run was done", "score", "fewer --repeats or strategies are faster")
    if arguments.json:
        print_json(document(scores, plan))
    else:
        _print(scores, plan)
    return 0


def document(scores: Scores, plan: Any) -> ScoreDocument:
    """The figures as `--json` prints them."""
    from ..engine.runner.replay import TIMED_SHARE
    from ..engine.strategies.scoring import MeanCurve

    names, spaces = scores.strategies, scores.advantages
    return {
        "scores": {space: {name: scores.score(space, name) for name in names} for space in spaces},
        "overall": {name: scores.overall(name) for name in names},
        "budget": dict(scores.evaluations),
        "repeats": plan.repeats,
        "seed": plan.seed,
        "boards": plan.boards,
        "points": scores.points,
        "unit": scores.unit,
        "timed": list(scores.timed),
        "timed_share": TIMED_SHARE,
        "curves": {space: {name: MeanCurve(*scores.curve(space, name)) for name in names} for space in spaces},
        "wins": scores.wins,
    }


def _print(scores: Scores, plan: Any) -> None:
    from ..engine.runner.replay import TIMED_SHARE

    ranked = sorted(scores.strategies, key=lambda name: -scores.overall(name).mean)
    end = "has 95 % of the hypervolume" if plan.front else "is 95 % of the way from the median to the optimum"
    for space, budget in scores.evaluations.items():
        timed = f"; a row that is only timed counts as {TIMED_SHARE:g} of one" if space in scores.timed else ""
        say(f"{space}: {budget} evaluations, where random search {end}{timed}")
    header = ["strategy", *scores.advantages, "mean", "95 % interval"]
    rows = []
    for name in ranked:
        overall = scores.overall(name)
        on_spaces = [f"{scores.score(space, name).mean:.3f}" for space in scores.advantages]
        rows.append([name, *on_spaces, f"{overall.mean:.3f}", overall.words])
    figure = "hypervolume" if plan.front else "best found"
    show(f"score by {figure} over {scores.unit}, {plan.repeats} repeats: 0 as random search, 1 the optimum at once")
    print_table(rows, header)
    if len(ranked) > 1:
        show("", "on how many spaces the row beats the column significantly (Mann-Whitney, 5 %)")
        numbered = [f"{place} {name}" for place, name in enumerate(ranked, 1)]
        wins = [[scores.wins[a].get(b, "") for b in ranked] for a in ranked]
        lines = [[label, *line] for label, line in zip(numbered, wins, strict=True)]
        print_table(lines, ["", *(str(place) for place in range(1, len(ranked) + 1))])
