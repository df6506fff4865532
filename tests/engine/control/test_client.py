"""The program's side of the conversation, against programs that are no helper, or none any more."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from app.base.errors import PermissionRefused
from app.engine.control import client
from app.engine.control.client import Helper, HelperGone
from app.sensors.gpu import GpuLost, NotSupported, SensorError

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the helper is for Linux")
HELLO = 'import sys, json; print(\'{"hello": 1, "state": {"left_over": false}}\', flush=True)\n'
ECHO = HELLO + (
    "for line in sys.stdin:\n"
    "    asked = json.loads(line)\n"
    "    print(json.dumps({'id': asked['id'], %s}), flush=True)\n"
    "    if asked['do'] == 'quit': break\n"
)


@pytest.fixture
def helper() -> Iterator[Callable[[str], Helper]]:
    made: list[Helper] = []

    def start(program: str) -> Helper:
        process = subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        made.append(Helper(process, "Some board"))
        return made[-1]

    yield start
    for each in made:
        each.close()


def test_it_says_every_second_that_we_live(helper: Callable[[str], Helper], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "BEAT_S", 0.05)
    one = helper(ECHO % "'state': {'number': asked['id']}")
    assert one.hello(10.0)
    deadline = time.monotonic() + 10.0
    while one.state.get("number", 0) < 5:
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("refused", PermissionRefused),
        ("busy", PermissionRefused),
        ("record", PermissionRefused),
        ("not_supported", NotSupported),
        ("lost", GpuLost),
        ("driver", SensorError),
        ("never heard of", SensorError),
    ],
)
def test_every_refusal_has_its_type_and_a_remedy(
    kind: str, expected: type[Exception], helper: Callable[[str], Helper]
) -> None:
    one = helper(ECHO % f"'error': {{'kind': '{kind}', 'what': 'because'}}, 'state': {{'applied': {{}}}}")
    assert one.hello(10.0)
    with pytest.raises(expected, match="because") as refused:
        one.ask("state")
    assert refused.value.remedy  # type: ignore[attr-defined]
    assert one.state == {"applied": {}}


@pytest.mark.parametrize("program", ["", "print('Sorry, try again.')", "print('[1]')", "print('{' * 100000)"])
def test_what_is_no_helper_never_gets_ready(program: str, helper: Callable[[str], Helper]) -> None:
    assert not helper(program).hello(10.0)


def test_a_helper_that_ends_is_gone_for_every_question(helper: Callable[[str], Helper]) -> None:
    one = helper(HELLO + "sys.stdin.readline()")
    assert one.hello(10.0)
    for _ in range(3):
        with pytest.raises(HelperGone) as gone:
            one.ask("state")
        assert "wattridge restore" in gone.value.remedy


def test_a_helper_that_does_not_answer_is_reported_after_a_while(
    helper: Callable[[str], Helper], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "ANSWER_S", 0.1)
    one = helper(HELLO + "sys.stdin.read()")
    assert one.hello(10.0)
    with pytest.raises(HelperGone, match="does not answer"):
        one.ask("state")
    monkeypatch.setattr(client, "ANSWER_S", 1000.0)
    with pytest.raises(HelperGone, match="does not answer"):
        one.ask("state")  # nor is it asked again


def test_a_prompt_can_be_broken_off(helper: Callable[[str], Helper]) -> None:
    one = helper("import sys; sys.stdin.read()")
    cancel = threading.Event()
    threading.Timer(0.05, cancel.set).start()
    began = time.monotonic()
    assert not one.hello(60.0, cancel)
    assert time.monotonic() - began < 30.0


def test_what_is_not_in_the_grammar_is_not_even_sent(helper: Callable[[str], Helper]) -> None:
    one = helper(ECHO % "'state': {}")
    assert one.hello(10.0)
    with pytest.raises(PermissionRefused):
        one.ask("set", settings={"fan_percent": 0})
    with pytest.raises(PermissionRefused):
        one.ask("format")
