"""Commands that are copied: the program's own parser reads them back to the same session, and they run."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

import app
from app.base import installation
from app.base.errors import InputError
from app.base.installation import Way
from app.base.paths import resources
from app.cli import main, make_parser
from app.commands.arguments import search_options
from app.engine.formats.read import read_recording
from app.engine.metering.condition import Condition
from app.engine.models.clock_fits import fits_of_file
from app.engine.models.fit.curve import Curve
from app.engine.models.roofline.points import sweeps_of_file
from app.engine.report.reproduce import (
    CommandLine,
    analyse_command,
    compare_command,
    export_command,
    fit_command,
    monitor_command,
    report_command,
    roofline_command,
    run_command,
    sweep_words,
)
from app.engine.results.objectives import Goal
from app.engine.session.events import Fit
from app.engine.session.follow import with_recording
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_of, plan_replay, plan_resume, plan_roofline, plan_specification
from app.engine.session.stored import best_of
from app.engine.specification.plan import SearchOptions, SessionPlan
from app.engine.store.database import Store
from app.engine.strategies import base as strategies
from app.sensors.clock import VirtualClock
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin

EXAMPLE = resources() / "examples" / "vector_add.toml"
RECORDING = resources() / "recordings" / "h200-sgemm-session.json.gz"
SPEC = load_specification(EXAMPLE)
READ = read_recording(RECORDING)
GPU = SimulatedGpu(load_twin("a100"), seed=3, clock=VirtualClock())


def planned(**asked: Any) -> SessionPlan:
    return plan_specification(SPEC, GPU, SearchOptions(**asked))


def parsed(command: CommandLine) -> Any:
    """What the program understands, from the line that a POSIX shell is given."""
    words = shlex.split(command.shell(windows=False))
    assert words[0] == "wattridge"
    return make_parser().parse_args(words[1:])


def planned_again(command: CommandLine) -> SessionPlan:
    arguments = parsed(command)
    if arguments.command_name == "replay":
        return plan_replay(Path(arguments.cache), search_options(arguments), read=READ)
    assert arguments.gpu == "simulated:a100"
    assert arguments.sim_seed == 3
    spec = load_specification(Path(arguments.specification))
    plan = plan_specification(spec, GPU, search_options(arguments, arguments.repeats))
    if arguments.resume is not None:
        plan = with_recording(plan, spec, read_recording(Path(arguments.resume)))
    return plan


def searched(plan: SessionPlan) -> dict[str, Any]:
    """All that decides what a session does."""
    options = strategies.make_options(strategies.get(plan.strategy), dict(plan.strategy_options))
    names = ("title", "gpu", "source", "objective", "strategy", "max_seconds", "seed")
    limits = {"budget": plan.budget, "patience": min(plan.patience or plan.space.size, plan.space.size)}
    facts = {name: getattr(plan, name) for name in names}
    chosen = {name: plan.origin.get(name) for name in ("repeats", "chosen_condition")}
    return {**facts, **limits, **chosen, "options": options, "rows": plan.space.size}


FIGURES = st.sampled_from(["time_s", "energy_j", "power_w", "GB/s", "GB/J"])
GOALS = st.builds(Goal, FIGURES, st.booleans())


def values_of(field: dataclasses.Field[Any]) -> st.SearchStrategy[Any]:
    """What an option of a strategy may be."""
    if choices := strategies.choices_of(field):
        return st.sampled_from(choices)
    low, high = field.metadata.get("limits") or (0, 100)
    if isinstance(field.default, bool):
        return st.booleans()
    if isinstance(field.default, int):
        return st.integers(math.ceil(low), int(min(high, strategies.LARGEST)))
    if isinstance(field.default, float):
        return st.floats(low, min(high, strategies.LARGEST))
    return st.just(field.default)


@st.composite
def asked(draw: st.DrawFn) -> dict[str, Any]:
    """Anything that the form of the window can hold."""
    name = draw(st.none() | st.sampled_from(strategies.names()))
    fields = dataclasses.fields(strategies.get(name).Options) if name is not None else ()
    options = draw(st.fixed_dictionaries({}, optional={field.name: values_of(field) for field in fields}))
    try:
        strategies.make_options(strategies.get(name or "auto"), options)
    except InputError:  # values that do not go together
        reject()
    return {
        "strategy": name,
        "strategy_options": options,
        "objective": draw(st.none() | GOALS),
        "front": draw(st.none() | st.lists(GOALS, min_size=2, max_size=2, unique_by=lambda g: g.name).map(tuple)),
        "max_evaluations": draw(st.none() | st.integers(1, 100_000)),
        "max_seconds": draw(st.none() | st.floats(1e-3, 1e6)),
        "patience": draw(st.none() | st.integers(1, 1000)),
        "seed": draw(st.none() | st.integers(-5, 2**31)),
    }


@settings(max_examples=150)
@given(options=asked(), repeats=st.none() | st.integers(1, 5))
def test_a_specifications_session_comes_back_from_its_command(options: dict[str, Any], repeats: int | None) -> None:
    plan = planned(**options, repeats=repeats)
    assert searched(planned_again(run_command(plan))) == searched(plan)


def test_a_session_at_a_chosen_condition_comes_back_from_its_command() -> None:
    plan = planned(condition=Condition(gpu_c=55.5, memory_c=50.0, slow_w=420.0))
    assert "55.5C,memory 50C,420W" in run_command(plan).words
    assert searched(planned_again(run_command(plan))) == searched(plan)


@settings(max_examples=30)
@given(options=asked())
def test_a_replay_comes_back_from_its_command(options: dict[str, Any]) -> None:
    known = READ.value_names
    goals = [*(options["front"] or ()), *([options["objective"]] if options["objective"] else [])]
    if any(goal.name not in known for goal in goals):
        options |= {"objective": None, "front": None}
    plan = plan_replay(RECORDING, SearchOptions(**options), read=READ)
    assert searched(planned_again(run_command(plan))) == searched(plan)


def test_nothing_is_said_that_the_file_says_itself() -> None:
    assert run_command(planned()).words == (
        "tune",
        str(EXAMPLE),
        "--gpu",
        "simulated:a100",
        "--sim-seed",
        "3",
    )
    own = strategies.make_options(strategies.get(SPEC.strategy), dict(SPEC.strategy_options))
    filled = {name: getattr(own, name) for name in own.__dataclass_fields__}  # as the form fills them in
    assert run_command(replace(planned(), strategy_options=filled)) == run_command(planned())


def test_a_limit_that_was_lifted_is_written_as_one_that_is_never_met(tmp_path: Path) -> None:
    path = tmp_path / "limited.toml"
    text = EXAMPLE.read_text(encoding="utf-8").replace("../kernels", str(resources() / "kernels"))
    head = text.partition("[search]")[0]
    path.write_text(f"{head}[search]\nmax_evaluations = 7\npatience = 5\nmax_seconds = 9\n", encoding="utf-8")
    plan = plan_specification(load_specification(path), GPU)
    lifted = replace(plan, max_evaluations=None, patience=None)
    assert searched(planned_again(run_command(lifted))) == searched(lifted)
    with pytest.raises(InputError, match="lifts the limit of 9 s"):
        run_command(replace(plan, max_seconds=None))


def test_what_has_no_option_says_why() -> None:
    steered = planned(device_settings={"graphics_clock_mhz": (1005, 1110)})
    with pytest.raises(InputError, match="graphics_clock_mhz: the window chose other values"):
        run_command(steered)
    changed = replace(planned(), origin={**planned().origin, "sha256": "0"})
    with pytest.raises(InputError, match="its file has changed"):
        run_command(changed)
    gone = replace(planned(), origin={**planned().origin, "file": "/nowhere/x.toml"})
    with pytest.raises(InputError, match="is gone"):
        run_command(gone)
    odd = replace(planned(), objective=replace(planned().objective, front=(Goal("a,b", True), Goal("c", True))))
    with pytest.raises(InputError, match="no option gives a front"):
        run_command(odd)


def test_a_resumed_session_and_a_roofline_have_their_own_commands() -> None:
    plan = plan_roofline(GPU, "fp64")
    assert run_command(plan).words == (
        *("roofline", "--gpu", "simulated:a100", "--sim-seed", "3", "--precision", plan.origin["precision"]),
    )
    main(["tune", str(EXAMPLE), "--gpu", "simulated:a100", "--max-evaluations", "5", "--strategy", "random_sample"])
    with Store() as store:
        [record] = store.sessions()
        more = plan_resume(store, record.id, SearchOptions(max_evaluations=9))
        words = run_command(more, store).words
    assert words == ("tune", "--resume", str(record.id), "--max-evaluations", "9")
    arguments = make_parser().parse_args(words)
    assert arguments.resume == str(record.id)


# --- they run ---------------------------------------------------------------------------------------------------------


def run_json(command: CommandLine, capsys: pytest.CaptureFixture[str], *more: str) -> Any:
    capsys.readouterr()
    assert main([*command.words, *more, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_command_measures_the_same_configurations(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    options = {
        "strategy": "genetic_algorithm",
        "strategy_options": {"population_size": 6},
        "max_evaluations": 12,
        "seed": 5,
    }
    command = run_command(planned(**options))
    first = run_json(command, capsys)["session"]
    with Store() as store:
        shown = store.load(first)
    again = run_json(run_command(replace(plan_of(shown), resume=None)), capsys)["session"]
    with Store() as store:
        repeated = store.load(again)
    rows = [[loaded.table.measurement(i).row for i in range(len(loaded.table))] for loaded in (shown, repeated)]
    assert rows[0] == rows[1]
    assert len(rows[0]) == 12
    plan, table = plan_of(shown), shown.table
    best = best_of(table, plan.objective.goal)
    assert best is not None
    assert "--configuration" not in export_command(plan, first, table, best).words
    other = 0 if best else 1
    folder = tmp_path / "out"
    files = run_json(export_command(plan, first, table, other), capsys, "--kind", "json", "--out", str(folder))["files"]
    exported = json.loads(Path(files[0]).read_text(encoding="utf-8"))
    assert exported["configuration"] == table.measurement(other).configuration
    assert run_json(analyse_command(plan, first), capsys)["session"] == first
    report = run_json(report_command(plan, first, table, other), capsys, "--out", str(tmp_path / "report.html"))
    assert shlex.quote(str(EXAMPLE)) in Path(report["files"][0]).read_text(encoding="utf-8")
    assert len(run_json(compare_command([first, again]), capsys)["sides"]) == 2


def test_a_fit_and_a_roofline_come_back_from_their_files(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    board = Curve(p_idle_w=40.0, alpha_w_per_mhz=0.08, beta_per_mhz=1.2e-3, ridge_mhz=1000.0)
    rows = [f"{clock},{float(board.power_w(clock)):.3f},{2 / clock:.8f}" for clock in range(600, 1501, 100)]
    file = tmp_path / "sweep of -1.csv"
    file.write_text("\n".join(["clock_mhz,power_w,time_s", *rows]), encoding="utf-8")
    [fit] = fits_of_file(file)
    assert fit.fit is not None
    assert run_json(fit_command(fit), capsys)["recommended_clock_mhz"] == fit.fit.recommended_clock_mhz
    [sweep] = sweeps_of_file(resources() / "recordings" / "h200-roofline-fp64.json.gz")
    assert sweep.fit is not None
    assert set(run_json(roofline_command(sweep), capsys)["precisions"]) == {"fp64"}
    for none in (None, replace(fit, words=())):
        with pytest.raises(InputError, match=r"no command gives this fit|no fit is shown"):
            fit_command(none)


def test_a_sweep_is_made_again_as_it_was_asked_for() -> None:
    asked = Fit(board=GPU.info.uuid, points=12, memory_clocks=True, power_limits=True)
    arguments = make_parser().parse_args(["fit", *sweep_words(asked, GPU)])
    assert (arguments.gpu, arguments.sim_seed, arguments.points) == ("simulated:a100", 3, 12)
    assert arguments.memory_clocks
    assert arguments.caps
    assert not arguments.allow_control
    assert sweep_words(Fit(), GPU) == ("--gpu", "simulated:a100", "--sim-seed", "3")
    assert make_parser().parse_args(["fit", "--gpu", "0"]).points == Fit().points


def test_a_session_without_a_number_has_no_command_yet() -> None:
    with pytest.raises(InputError, match="no session yet"):
        analyse_command(planned(), 0)


@pytest.fixture
def wattridge(tmp_path: Path) -> dict[str, str]:
    """An environment in which the checkout is the package `wattridge`, as once it is installed."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "wattridge").symlink_to(Path(app.__file__).parent)
    return {**os.environ, "PYTHONPATH": str(tmp_path / "site")}


@pytest.mark.parametrize("kind", ["tune", "monitor", "compare"])
def test_a_script_runs_as_it_is(kind: str, wattridge: dict[str, str], tmp_path: Path) -> None:
    command = {
        "tune": lambda: run_command(planned(strategy="random_sample", max_evaluations=6)),
        "monitor": lambda: monitor_command("simulated:a100", "A100", 0.5),
        "compare": lambda: compare_command([RECORDING, RECORDING]),
    }[kind]()
    script = tmp_path / "script.py"
    script.write_text(command.python(), encoding="utf-8")
    done = subprocess.run([sys.executable, script], env=wattridge, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    words = {"tune": "6 of 26880 configurations measured", "monitor": "(simulated): 0.", "compare": "sides"}
    assert words[kind] in done.stdout
    if kind == "tune":
        assert "best: {'configuration': {'block_size_x'" in done.stdout


@pytest.mark.skipif(os.name != "posix", reason="a program made of two lines for a shell")
@pytest.mark.parametrize("command", [run_command(planned(seed=2)), monitor_command("GPU-0", "A100", 2.0)])
def test_where_pythons_cannot_import_it_a_script_and_a_shell_call_the_program(
    command: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "WORDS of {a folder}" / "wattridge"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable} -I\nimport json, sys\nprint(json.dumps({{'front': sys.argv}}))\n")
    program.chmod(0o755)
    python = sys.executable
    monkeypatch.setattr(installation, "own_way", lambda: Way.FOLDER)
    monkeypatch.setattr(sys, "executable", str(program))
    script, line = command.python(), command.shell(windows=False)
    monkeypatch.undo()
    called = subprocess.run(line, shell=True, capture_output=True, text=True, check=True)
    assert json.loads(called.stdout)["front"] == [str(program), *command.words]
    script = script.partition("front = ")[0] + "\nprint(json.dumps(result))"
    done = subprocess.run([python, "-I", "-c", script], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.splitlines()[-1])["front"] == [str(program), *command.words, "--json"]
    assert "import wattridge" not in script
    assert "from wattridge" not in script


def test_a_script_ends_with_the_status_of_a_command_that_fails(wattridge: dict[str, str], tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(CommandLine(("analyse", "77"), 'a "session"\n\\').python(), encoding="utf-8")
    done = subprocess.run([sys.executable, script], env=wattridge, capture_output=True, text=True, timeout=200)
    assert done.returncode == 2
    assert "77" in done.stderr
    assert "Traceback" not in done.stderr


# --- shells -----------------------------------------------------------------------------------------------------------


@given(words=st.lists(st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\0")), max_size=4))
def test_a_posix_shell_reads_the_words_back(words: list[str]) -> None:
    assert shlex.split(CommandLine(tuple(words), "").shell(windows=False))[1:] == words


def windows_words(line: str) -> list[str]:
    """As the C runtime of Windows splits a command line without escaped quotes."""
    words, word, quoted, begun = [], "", False, False
    at = 0
    while at < len(line):
        slashes = len(line[at:]) - len(line[at:].lstrip("\\"))
        at += slashes
        if at < len(line) and line[at] == '"':
            word += "\\" * (slashes // 2)
            assert slashes % 2 == 0
            quoted, begun = not quoted, True
        else:
            word += "\\" * slashes
            if at < len(line) and line[at].isspace() and not quoted:
                words, word, begun = [*words, word] if word or begun else words, "", False
            elif at < len(line):
                word += line[at]
        at += 1
    return [*words, word] if word or begun else words


@given(words=st.lists(st.text(st.sampled_from("ab \\&|<>^();'é/=,:-")), min_size=1, max_size=4))
def test_windows_reads_the_words_back(words: list[str]) -> None:
    line = CommandLine(tuple(words), "").shell(windows=True)
    assert windows_words(line)[1:] == words


@pytest.mark.parametrize("word", ['a"b', "%PATH%", "$x", "`", "a\nb"])
def test_what_the_shells_of_windows_read_differently_is_refused(word: str) -> None:
    with pytest.raises(InputError, match="to each shell of Windows"):
        CommandLine(("tune", word), "").shell(windows=True)
