"""The server's side of the Model Context Protocol: its lifecycle, its tools, and ten thousand hostile lines."""

from __future__ import annotations

import io
import json
import random
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from app.base.errors import InputError
from app.commands.assistant.protocol import LONGEST_LINE, Server, Tool

HELLO = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}
GPU = {"type": "string", "maxLength": 20}
SECONDS = {"type": "number", "minimum": 0.1, "maximum": 30}


class Recorded:
    """Tools that note their calls."""

    def __init__(self) -> None:
        self.calls: list[Mapping[str, Any]] = []
        self.tools = {
            tool.name: tool
            for tool in (
                Tool("watch", "Watch", "Watches.", self._watch, {"gpu": GPU, "seconds": SECONDS}, ("gpu",)),
                Tool("fail", "Fail", "Fails.", self._fail),
                Tool("break", "Break", "Breaks.", self._break),
                Tool("talk", "Talk", "Says much.", lambda *_: {"text": "x" * 10**6}),
            )
        }

    def _watch(self, arguments: Mapping[str, Any], _stop: threading.Event) -> dict[str, Any]:
        self.calls.append(arguments)
        return {"watched": arguments["gpu"]}

    def _fail(self, *_: Any) -> dict[str, Any]:
        raise InputError("no such board\x1b[2J", "gpu", "name another")

    def _break(self, *_: Any) -> dict[str, Any]:
        raise RuntimeError("a secret of the program's")


def answers_to(lines: Sequence[bytes | Mapping[str, Any]], tools: Mapping[str, Tool] | None = None) -> list[Any]:
    """What the server writes, line by line, when it is sent these."""
    sent = b"".join(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines)
    sink = io.BytesIO()
    Server(Recorded().tools if tools is None else tools, "Say so.", io.BytesIO(sent), sink).run()
    written = sink.getvalue()
    assert written.isascii()
    assert all(byte >= 32 or byte == 10 for byte in written)
    return [json.loads(line) for line in written.splitlines()]


def request(number: int | str, method: str, **parameters: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}


def call(number: int | str, name: str, **arguments: Any) -> dict[str, Any]:
    return request(number, "tools/call", name=name, arguments=arguments)


# --- the lifecycle ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "agreed"),
    [("2025-06-18", "2025-06-18"), ("2025-11-25", "2025-11-25"), ("2024-11-05", "2025-11-25"), ("x", "2025-11-25")],
)
def test_initialize_agrees_on_a_revision_that_both_speak(asked: str, agreed: str) -> None:
    (answer,) = answers_to([{**HELLO, "params": {**HELLO["params"], "protocolVersion": asked}}])  # type: ignore[dict-item]
    result = answer["result"]
    assert (answer["id"], result["protocolVersion"], result["instructions"]) == (0, agreed, "Say so.")
    assert result["capabilities"] == {"tools": {}}
    assert result["serverInfo"]["name"] == "wattridge"


def test_nothing_but_a_ping_is_answered_before() -> None:
    answers = answers_to([request(1, "ping"), request(2, "tools/list"), call(3, "watch", gpu="0")])
    assert [("result" in answer, "error" in answer) for answer in answers] == [
        (True, False),
        (False, True),
        (False, True),
    ]


def test_tools_are_listed_with_schemas_of_their_arguments() -> None:
    _, listed = answers_to([HELLO, READY, request("a", "tools/list")])
    assert listed["id"] == "a"
    tools = {tool["name"]: tool for tool in listed["result"]["tools"]}
    assert set(tools) == {"watch", "fail", "break", "talk"}
    for tool in tools.values():
        Draft202012Validator.check_schema(tool["inputSchema"])
        assert tool["inputSchema"]["additionalProperties"] is False
        assert tool["annotations"]["readOnlyHint"] is True


def test_a_call_is_answered_as_structured_content_and_the_same_as_text() -> None:
    recorded = Recorded()
    answers = answers_to([HELLO, READY, call(7, "watch", gpu="simulated:a100", seconds=1.5)], recorded.tools)
    result = next(answer["result"] for answer in answers if answer["id"] == 7)
    assert result["structuredContent"] == {"watched": "simulated:a100"} == json.loads(result["content"][0]["text"])
    assert result["isError"] is False
    assert recorded.calls == [{"gpu": "simulated:a100", "seconds": 1.5}]


def test_a_tool_that_fails_breaks_or_says_too_much_answers_so_and_the_server_goes_on() -> None:
    answers = answers_to([HELLO, call(1, "fail"), call(2, "break"), call(3, "talk"), request(4, "ping")])
    by_id = {answer["id"]: answer["result"] for answer in answers}
    assert by_id[1]["isError"]
    assert by_id[1]["structuredContent"]["untrusted"]["error"]["remedy"] == "name another"
    assert by_id[2]["isError"]
    assert "secret" not in json.dumps(by_id[2])
    assert by_id[3]["isError"]
    assert "ask for less" in json.dumps(by_id[3])
    assert by_id[4] == {}


def test_a_call_that_is_cancelled_hears_of_it_and_others_do_not() -> None:
    begun = threading.Event()
    seen: list[bool] = []

    def wait(_arguments: Mapping[str, Any], stop: threading.Event) -> dict[str, Any]:
        begun.set()
        seen.append(stop.wait(60.0))
        return {}

    class Source(io.BytesIO):
        """The client cancels once the call has begun."""

        def readline(self, *sizes: Any) -> bytes:
            line = super().readline(*sizes)
            if b"cancelled" in line:
                assert begun.wait(60.0)
            return line

    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}}
    lines = b"".join(json.dumps(each).encode() + b"\n" for each in (HELLO, call(5, "wait"), cancel))
    Server({"wait": Tool("wait", "", "", wait)}, "", Source(lines), io.BytesIO()).run()
    assert seen == [True]


def test_a_client_that_goes_away_ends_the_calls_and_the_server() -> None:
    class Gone(io.BytesIO):
        def write(self, *_: Any) -> int:
            raise BrokenPipeError

    lines = b"".join(json.dumps(each).encode() + b"\n" for each in (HELLO, call(5, "watch", gpu="0")))
    Server(Recorded().tools, "", io.BytesIO(lines), Gone()).run()


# --- hostile lines ----------------------------------------------------------------------------------------------------

_TEXTS = (
    "", "\x00", "\x1b[2J\x1b]0;x\x07", "‮", "'; rm -rf / #", "$(touch /tmp/hostile)", "`id`", "../../etc/passwd", "%s%n",
    "__class__", "constructor", "A" * 5000, "\ud800", "😀" * 200, "notifications/initialized", "tools/call", "null",
)  # fmt: skip
_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 2**63, 10**400, 1.5, -0.0, 1e308, [], {}, [[]], {"": {}}, [1, "a", None], *_TEXTS,
)  # fmt: skip
_METHODS = ("tools/call", "tools/list", "resources/read", "prompts/get", "sampling/createMessage", "server/discover",
            "logging/setLevel", "completion/complete", "initialize", "TOOLS/CALL", "tools/call ", *_TEXTS)  # fmt: skip


def _hostile(random_: random.Random) -> bytes:
    """One line that must be answered with an error: no notification, no response, and no call that could be made."""
    pick = random_.choice
    kind = random_.randrange(10)
    if kind == 0:  # bytes
        return bytes(random_.randrange(256) for _ in range(random_.randrange(1, 60))).replace(b"\n", b"?") + b"\xff"
    if kind == 1:  # cut off
        whole = json.dumps(call(1, "watch", gpu="0")).encode()
        return whole[: random_.randrange(1, len(whole) - 1)]
    if kind == 2:  # nested
        return pick((b"[" * 20_000, b'{"a":' * 5_000, b"[" * 500 + b"]" * 500, b'{"a":' * 500 + b"1" + b"}" * 500))
    if kind == 3:  # no JSON that is one
        return pick((b"NaN", b"Infinity", b"{'a': 1}", b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}', b"\xef\xbb\xbf{}",
                     b"1" * 5000, b'{"id":' + b"9" * 5000 + b"}", b"\x00", b"undefined", b'{"a":1,}'))  # fmt: skip
    if kind == 4:  # JSON that is no object
        return json.dumps(pick((*_VALUES[:8], [call(1, "watch", gpu="0")] * 3, [], "ping"))).encode()
    if kind == 5:  # an object that is no message
        made = {pick(("jsonrpc", "id", "params", "result", "x")): pick(_VALUES) for _ in range(4)}
        made.pop("id", None)
        return json.dumps(made).encode()
    if kind == 6:  # the wrong version, or an id that is none
        wrong = {"jsonrpc": pick(("1.0", 2.0, None, "2", ["2.0"]))}
        bad_id = {"id": pick((None, True, 1.5, [], {}, "i" * 500, 10**300))}
        return json.dumps({**call(1, "watch", gpu="0"), **pick((wrong, bad_id))}).encode()
    if kind == 7:  # a method or parameters that are none
        parameters = pick((None, [], "gpu", 3, [{"name": "watch"}], True))
        return json.dumps(pick((
            {"jsonrpc": "2.0", "id": 1, "method": pick((None, 1, [], {}, True))},
            {"jsonrpc": "2.0", "id": 1, "method": pick(_METHODS), "params": parameters},
            {"jsonrpc": "2.0", "id": 1, "method": pick((*_METHODS[2:8], *_METHODS[9:])), "params": {}},
        ))).encode()  # fmt: skip
    if kind == 8:  # a tool that is none
        name = pick((*_TEXTS, None, 1, [], {"name": "watch"}, "Watch", "watch ", "fail\x00"))
        return json.dumps(request(pick((1, "x")), "tools/call", name=name, arguments={"gpu": "0"})).encode()
    arguments = pick((
        None, [], "0", 1, {}, {"gpu": pick((None, 1, True, [], {}, "", "g" * 21))},
        {"gpu": "0", "seconds": pick((0, -1, 31, 10**400, 1e308, "1", True, None, []))},
        {"gpu": "0", pick([text for text in _TEXTS if text]): pick(_VALUES)}, {"command": "id"},
    ))  # fmt: skip
    return json.dumps(request(1, "tools/call", name="watch", arguments=arguments)).encode()


def _id_of(line: bytes) -> str | int | None:
    """The id that an answer must name: that of a message which can be read and has one."""
    try:
        found = json.loads(line.decode("utf-8"), parse_constant=lambda _: 1 / 0)["id"]
    except (ValueError, RecursionError, LookupError, TypeError, ZeroDivisionError):
        return None
    well = isinstance(found, str | int) and not isinstance(found, bool) and len(str(found)) <= 200
    return found if well else None


def test_ten_thousand_hostile_lines_get_one_error_each_and_nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("subprocess.Popen", None)
    monkeypatch.setattr("os.system", None)
    random_, recorded = random.Random(21), Recorded()
    lines = [line for line in (_hostile(random_) for _ in range(10_000)) if line.strip()]
    assert len(lines) == 10_000
    answers = answers_to([HELLO, *(line + b"\n" for line in lines), request("end", "ping")], recorded.tools)
    assert len(answers) == len(lines) + 2
    assert answers[-1] == {"jsonrpc": "2.0", "id": "end", "result": {}}
    assert not recorded.calls
    for line, answer in zip(lines, answers[1:-1], strict=True):
        assert set(answer) == {"jsonrpc", "id", "error"}, line[:200]
        assert answer["error"]["code"] in (-32700, -32600, -32601, -32602)
        assert 0 < len(answer["error"]["message"]) <= 300
        assert answer["id"] == _id_of(line), line[:200]


def test_a_line_without_an_end_is_bounded_and_the_next_one_counts() -> None:
    long = b'{"jsonrpc":"2.0","id":1,"method":"' + b"a" * (3 * LONGEST_LINE) + b'"}\n'
    exactly = b"[" + b" " * (LONGEST_LINE - 3) + b"]\n"
    answers = answers_to([long, exactly, request(2, "ping"), b"[" * (2 * LONGEST_LINE)])
    assert [answer.get("error", {}).get("code") for answer in answers] == [-32700, -32600, None, -32700]


def test_notifications_responses_and_empty_lines_are_never_answered() -> None:
    assert not answers_to([
        READY, {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "watch", "arguments": {"gpu": "0"}}},
        {"jsonrpc": "2.0", "id": 9, "result": {}}, {"jsonrpc": "2.0", "id": 9, "error": {"code": 1, "message": ""}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": {}}}, b"\n", b"   \r\n",
    ])  # fmt: skip


@settings(max_examples=25)
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(), lambda inner: (
    st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["jsonrpc", "id", "method", "params", "name", "2.0"])
    | st.text(max_size=5), inner, max_size=5)), max_leaves=12))  # fmt: skip
def test_no_json_ends_the_server(value: Any) -> None:
    answers = answers_to([json.dumps(value).encode() + b"\n", request("end", "ping")])
    assert len(answers) <= 2
    assert answers[-1]["id"] == "end"
