"""The files for continuous integration, step by step as a runner has them, where the third commit needs 2 % more."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.base.paths import resources
from app.engine.report.evidence_file import verify_evidence

ROOT = Path(__file__).resolve().parents[1]
CI = resources() / "ci"
SPECIFICATION = """
[kernel]
name = "vector_add"
source = "vector_add.cu"
problem_size = ["n"]
grid_divisors = { x = ["block_size_x", "items_per_thread"] }
arguments = [
    { name = "c", type = "float32", shape = ["n"], output = true },
    { name = "a", type = "float32", shape = ["n"], fill = "random" },
    { name = "b", type = "float32", shape = ["n"], fill = "random" },
]
profile = "vector_add"

[constants]
n = 67108864

[parameters]
block_size_x = [256]
items_per_thread = [4]
vector_width = [4]
grid_stride = [0]
loop_unroll_factor = [1]
"""
pytestmark = pytest.mark.skipif(not shutil.which("git") or not shutil.which("bash"), reason="a runner has git and bash")


class Place:
    """A repository of three commits, and what a runner has: our program, and a `gh` or `curl` that notes its call."""

    def __init__(self, folder: Path) -> None:
        self.repository, self.tools, self.called = folder / "repository", folder / "tools", folder / "called"
        for made in (self.repository, self.tools, self.called):
            made.mkdir()
        run = f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m app "$@"\n'
        note = f'#!/bin/sh\necho "$@" >> {self.called}/calls\ncp energy*.md {self.called}\n'
        note += f'case "$*" in *--jq*) cat {self.called}/earlier 2> /dev/null || true ;; esac\n'
        for name, script in (("wattridge", run), ("gh", note), ("curl", note)):
            (self.tools / name).write_text(script)
            (self.tools / name).chmod(0o755)
        clean = {name: text for name, text in os.environ.items() if not name.startswith("GIT_")}
        path = f"{self.tools}{os.pathsep}{os.environ['PATH']}"
        self.environment = {**clean, "PATH": path, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
        self.git("init", "-q")
        shutil.copy(resources() / "kernels" / "vector_add.cu", self.repository)
        for n in (67108864, 67108864, 68451041):
            (self.repository / "bench.toml").write_text(SPECIFICATION.replace("67108864", str(n)))
            self.git("add", "-A")
            self.git("commit", "-q", "--allow-empty", "-m", f"{n} elements")

    def git(self, *words: str) -> str:
        who = ("-c", "user.name=Someone", "-c", "user.email=someone@example.org")
        return self.run(["git", *who, *words]).stdout.strip()

    def run(self, words: list[str], **more: str) -> subprocess.CompletedProcess[str]:
        environment = {**self.environment, **more}
        return subprocess.run(
            words, cwd=self.repository, env=environment, capture_output=True, text=True, timeout=200, check=False
        )


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def github(place: Place, head: str, **inputs: str) -> list[tuple[str, int, str]]:
    """Run the steps of the action for a pull request of `head`: their names, exit statuses and outputs."""
    place.git("checkout", "-q", head)
    action = yaml.safe_load((CI / "github" / "actions" / "energy" / "action.yml").read_text())
    outputs, summary = place.called / "outputs", place.called / "summary"
    outputs.touch()
    known = {f"inputs.{name}": str(given.get("default", "")) for name, given in action["inputs"].items()}
    known |= {f"inputs.{name}": text for name, text in inputs.items()} | {"github.event.pull_request.number": "7"}
    done = []
    for step in action["runs"]["steps"]:
        if "run" not in step:
            continue
        known |= {
            f"steps.measure.outputs.{k}": v for k, _, v in (s.partition("=") for s in outputs.read_text().split())
        }
        if "!= '1'" in step.get("if", "") and known["steps.measure.outputs.status"] in ("1", "2"):
            continue
        given = {name: _filled(text, known) for name, text in step.get("env", {}).items()}
        given |= {"GITHUB_OUTPUT": str(outputs), "GITHUB_STEP_SUMMARY": str(summary), "GITHUB_REPOSITORY": "us/it"}
        ran = place.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]], **given)
        done.append((step["name"], ran.returncode, ran.stdout + ran.stderr))
        if ran.returncode and step["name"] != "Comment on the pull request":
            break
    return done


def _filled(text: str, known: dict[str, str]) -> str:
    return re.sub(r"\$\{\{ (.*?) \}\}", lambda found: known[found[1]], text)


def statuses(steps: list[tuple[str, int, str]]) -> dict[str, int]:
    return {name: status for name, status, _ in steps}


def test_the_workflow_finds_the_regression_in_the_third_commit(place: Place) -> None:
    base = place.git("rev-parse", "HEAD~1")
    steps = github(place, "HEAD", command="bench.toml", gpu="simulated:h200", base=base)
    expected = {"Measure in turns": 0, "Verify the evidence": 0, "Comment on the pull request": 0, "Judge": 4}
    assert statuses(steps) == expected, steps
    comment = (place.called / "energy-comment.md").read_text()
    found = re.search(r"❌ \*\*Energy\*\*: B needs ([\d.]+) ± 0\.\d % more joules", comment)
    assert found is not None
    assert 1.5 < float(found[1]) < 2.5  # 2 % more elements, by coins of its own each time
    assert (place.called / "summary").read_text() == (place.repository / "energy.md").read_text()
    assert "repos/us/it/issues/7/comments" in (place.called / "calls").read_text()
    assert verify_evidence(place.repository / "energy-evidence.json").holds
    (measured,) = json.loads((place.repository / "energy-evidence.json").read_text())["measured"]
    low, high = measured["figures"]["energy"]["interval"]
    assert low < 0.02 < high


def test_the_workflow_passes_the_second_commit(place: Place) -> None:
    base = place.git("rev-parse", "HEAD~2")
    (place.called / "earlier").write_text("12\n")
    steps = github(place, "HEAD~1", command="bench.toml", gpu="simulated:h200", base=base)
    assert set(statuses(steps).values()) == {0}, steps
    assert "PATCH repos/us/it/issues/comments/12 " in (place.called / "calls").read_text(), "one comment, kept current"
    assert "✅" in (place.called / "energy-comment.md").read_text()


def test_a_push_that_has_no_commit_before_is_compared_with_its_parent(place: Place) -> None:
    steps = github(place, "HEAD", command="bench.toml", gpu="simulated:h200", base="0" * 40)
    assert statuses(steps)["Judge"] == 4, steps


@pytest.mark.parametrize(("undecided", "status"), [("pass", 0), ("fail", 3)])
def test_what_cannot_be_told_passes_unless_asked_to_fail(place: Place, undecided: str, status: int) -> None:
    inputs = {"command": "bench.toml", "gpu": "simulated:h200", "base": "HEAD~1", "seconds": "2"}
    steps = github(place, "HEAD", undecided=undecided, **inputs)
    assert statuses(steps)["Judge"] == status, steps


def test_a_side_that_fails_is_no_comment_and_no_success(place: Place) -> None:
    steps = github(place, "HEAD", command="false", gpu="simulated:h200", base="HEAD~1")
    assert statuses(steps) == {"Measure in turns": 0, "Judge": 1}, steps
    assert not (place.called / "calls").exists()


def test_words_of_the_command_are_no_shell(place: Place) -> None:
    github(place, "HEAD", command="false; touch $(pwd)/owned `touch owned`", gpu="simulated:h200", base="HEAD~1")
    assert not (place.repository / "owned").exists()


def test_the_include_for_gitlab_judges_both_commits(place: Place) -> None:
    job = yaml.safe_load((CI / "gitlab.yml").read_text())[".energy"]
    given: dict[str, Any] = {**job["variables"], "ENERGY_GPU": "simulated:h200", "ENERGY_COMMAND": "bench.toml"}
    given |= {
        "WATTRIDGE_TOKEN": "t",
        "CI_API_V4_URL": "https://it/v4",
        "CI_PROJECT_ID": "3",
        "CI_MERGE_REQUEST_IID": "7",
    }
    for head, base, status, mark in (("HEAD", "HEAD~1", 4, "❌"), ("HEAD~1", "HEAD~1", 0, "✅")):
        place.git("checkout", "-q", head)
        commit = place.git("rev-parse", base)
        script = "\n".join(job["script"])
        ran = place.run(["bash", "-eo", "pipefail", "-c", script], **given, CI_MERGE_REQUEST_DIFF_BASE_SHA=commit)
        assert ran.returncode == status, ran.stdout + ran.stderr
        assert mark in ran.stdout
        assert "every figure follows" in ran.stdout
    assert "https://it/v4/projects/3/merge_requests/7/notes" in (place.called / "calls").read_text()
    assert set(job["artifacts"]["paths"]) <= {path.name for path in place.repository.iterdir()}


def test_the_workflow_names_the_action_as_it_lies_and_what_it_needs() -> None:
    workflow = yaml.safe_load((CI / "github" / "workflows" / "energy.yml").read_text())
    *_, step = workflow["jobs"]["energy"]["steps"]
    action = step["uses"].removeprefix("./.github/")
    inputs = yaml.safe_load((CI / "github" / action / "action.yml").read_text())["inputs"]
    assert set(step["with"]) <= set(inputs)
    assert {name for name, given in inputs.items() if given.get("required")} <= set(step["with"])
