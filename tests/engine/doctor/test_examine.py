"""The checks as a whole: each is isolated, and whatever one of them does costs one line."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from app.cli import main
from app.engine.doctor import examine as examining
from app.engine.doctor.checks import BY_NAME, CHECKS, Check
from app.engine.doctor.examine import examine
from app.engine.doctor.finding import State

_WELL = 'print(\'{"state": "ok", "what": "well", "remedy": "", "facts": {}}\')'


def _check(name: str, limit_s: float = 60.0) -> Check:
    return Check(name, name, "installation", f"install {name} again", limit_s)


def test_one_that_crashes_hangs_or_prints_nonsense_costs_one_line_each() -> None:
    programs = {
        "well": _WELL,
        "crashes": "import os, sys; print('libvendor: error: bad state', file=sys.stderr); os.abort()",
        "hangs": "import time; print('begun', flush=True); time.sleep(600)",
        "babbles": "print('hello' * 1000)",
        "silent": "",
        "other": 'print(\'{"state": "splendid", "what": 1}\')',
        "last": _WELL,
    }

    def command(check: Check) -> Sequence[str]:
        return [sys.executable, "-I", "-c", programs[check.name]]

    checks = [_check(name, 0.5 if name == "hangs" else 60.0) for name in programs]
    found = {check.name: finding for check, finding in examine(checks, command=command)}
    assert list(found) == list(programs)
    states = {name: finding.state for name, finding in found.items()}
    assert states == {name: State.OK if name in ("well", "last") else State.WRONG for name in programs}
    assert "libvendor: error: bad state" in found["crashes"].what
    assert found["hangs"].what == "no answer within 0.5 s"
    assert all(f.remedy == f"install {n} again" for n, f in found.items() if f.state is State.WRONG)
    assert all("\n" not in finding.what for finding in found.values())


def test_children_that_cannot_be_ended_hold_nothing_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where they hang in a driver: more of them than are looked at at once, and others behind them."""
    for_ever, really = threading.Event(), examining.run_process

    def run(words: Sequence[str], **options: Any) -> Any:
        if words == ["hangs"]:
            for_ever.wait()
        return really(words, **options)

    monkeypatch.setattr(examining, "run_process", run)
    monkeypatch.setattr(examining, "_END_S", 0.1)
    checks = [*(_check(f"hangs {number}", 0.1) for number in range(5)), _check("well")]
    words = {"well": [sys.executable, "-I", "-S", "-c", _WELL]}
    found = {check.name: each for check, each in examine(checks, command=lambda each: words.get(each.name, ["hangs"]))}
    for_ever.set()
    assert found["well"].state is State.OK
    assert [each.remedy for each in found.values() if each.state is State.WRONG] == ["reboot"] * 5


def test_stopping_ends_what_runs() -> None:
    stop = threading.Event()
    stop.set()
    assert list(examine([_check("any")], stop, lambda _: [sys.executable, "-c", "import time; time.sleep(600)"])) == []


def test_a_child_that_does_not_start_is_a_finding() -> None:
    ((_, found),) = examine([_check("any")], command=lambda _: ["/nonexistent/python"])
    assert found.state is State.WRONG
    assert "does not start" in found.what


def test_every_check_is_a_function_of_its_name() -> None:
    assert len(BY_NAME) == len(CHECKS)
    assert all(check.function.__name__ == check.name and check.function.__doc__ for check in CHECKS)


def test_doctor_prints_one_document_and_its_status_says_whether_something_is_wrong(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    assert main(["doctor", "program", "data", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [each["check"] for each in document["checks"]] == ["program", "data"]
    assert (document["ok"], document["wrong"]) == (2, 0)
    monkeypatch.setenv("WATTRIDGE_DATA", "/dev/null")
    assert main(["doctor", "data"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("wrong ")
    assert "->" in out
    assert main(["doctor", "nothing", "--json"]) == 2
    assert "nvidia_driver" in capsys.readouterr().out
