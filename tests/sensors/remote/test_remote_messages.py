"""Names of machines, the other clock, and lines from a machine that is not trusted."""

from __future__ import annotations

import json
import math
import shlex

import pytest
from fixtures.scripted_gpu import ScriptedGpu
from hypothesis import given
from hypothesis import strategies as st

from app.base.errors import InputError
from app.base.text import visible
from app.sensors.channel import PowerSample, Reading
from app.sensors.gpu import GpuProcess, SensorError
from app.sensors.remote import messages
from app.sensors.remote import messages as fields
from app.sensors.remote.address import Address, parse_address, ssh_command
from app.sensors.remote.connection import Answer, ClockOffset

# --- addresses --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("ssh://gpu-server", Address("gpu-server")),
        ("ssh://me@gpu-server/1", Address("gpu-server", "me", board="1")),
        ("SSH://me@10.0.0.7:2222/GPU-1234-ab", Address("10.0.0.7", "me", 2222, "GPU-1234-ab")),
        ("ssh://[fe80::1]:22/0", Address("[fe80::1]", port=22)),
        ("ssh://box/simulated:h200", Address("box", board="simulated:h200")),
    ],
)
def test_an_address_names_user_host_port_and_board(text: str, meant: Address) -> None:
    assert parse_address(text) == meant
    assert parse_address(meant.selector) == meant


@pytest.mark.parametrize(
    "text",
    [
        "ssh://",
        "ssh://-oProxyCommand=touch${IFS}x",
        "ssh://-F@host",
        "ssh://me@-oProxyCommand=x",
        "ssh://host;reboot",
        "ssh://ho st",
        "ssh://host/-x",
        "ssh://host/0;reboot",
        "ssh://host/$(reboot)",
        "ssh://host/0/1",
        "ssh://a@b@host",
        "ssh://host:0",
        "ssh://host:99999",
        "ssh://host\nProxyCommand x",
        "ssh://[::1",
        "ssh://hôst",
    ],
)
def test_what_could_be_an_option_or_mean_anything_to_a_shell_is_no_address(text: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_address(text)
    assert "ssh://[user@]host" in caught.value.remedy


@given(st.text(alphabet="ab0-@:/[]$;.% \n", max_size=30))
def test_no_word_of_an_address_reaches_ssh_as_an_option_or_a_shell_as_anything_but_a_word(text: str) -> None:
    try:
        address = parse_address(text)
    except InputError:
        return
    command = ssh_command(address, ["serve-board", "--gpu", address.board])
    before, (host, there) = command[: command.index("--")], command[command.index("--") + 1 :]
    assert not host.startswith("-")
    assert {word for word in before if word.startswith("-")} <= {"-T", "-o", "-p", "-l"}
    words = shlex.split(there)
    assert words[-1] == address.board
    assert shlex.join(words) == there


# --- the other clock --------------------------------------------------------------------------------------------------


@given(
    ahead_ns=st.integers(-(10**15), 10**15),
    trips=st.lists(st.tuples(st.integers(0, 2 * 10**8), st.integers(0, 2 * 10**8), st.integers(0, 10**9)), min_size=1),
)
def test_the_other_clock_is_known_within_the_stated_error_however_the_network_delays(
    ahead_ns: int, trips: list[tuple[int, int, int]]
) -> None:
    offset, now_ns = ClockOffset(), 10**12
    for there_ns, back_ns, pause_ns in trips:
        asked_ns = now_ns
        now_ns += there_ns
        remote_ns = now_ns + ahead_ns
        now_ns += back_ns
        offset.add(Answer(asked_ns, remote_ns, now_ns))
        assert abs(offset.offset_ns - ahead_ns) <= offset.error_ns(now_ns) + 1
        now_ns += pause_ns
        assert abs(offset.local_ns(now_ns + ahead_ns) - now_ns) <= offset.error_ns(now_ns) + 2


def test_an_offset_that_becomes_better_known_moves_slowly_so_that_stamps_keep_their_order() -> None:
    offset = ClockOffset()
    offset.add(Answer(0, 40_000_000, 60_000_000))  # 10 ms ahead, give or take 30
    offset.add(Answer(1_000_000_000, 1_000_500_000, 1_001_000_000))  # 0, give or take half
    assert offset.offset_ns == 0.0  # the first was wrong by more than the second can be
    offset.add(Answer(2_000_000_000, 2_000_600_000, 2_000_800_000))  # 0.2 ms, give or take 0.4
    assert 0 < offset.offset_ns < 2e5 + 1
    assert offset.offset_ns <= 1e-3 * 1e9


def test_of_a_clock_that_was_never_asked_nothing_is_known() -> None:
    assert not ClockOffset().known
    assert ClockOffset().error_ns(0) == math.inf
    with pytest.raises(ValueError, match="before its question"):
        ClockOffset().add(Answer(5, 0, 4))


# --- lines ------------------------------------------------------------------------------------------------------------

GPU = ScriptedGpu()
HELLO = messages.Hello(
    "1.0", GPU.info, GPU.channels, (345, 1005), (1215,), True, False, {"power_limit_w": "fixed"}, {1: "max_q"}
)


def sent(message: object) -> dict[str, object]:
    """A message as it arrives."""
    return fields.parse_line(fields.line_of(message))  # type: ignore[arg-type]


def test_a_greeting_arrives_as_it_was_sent_with_where_it_came_from() -> None:
    arrived = messages.parse_hello(sent(messages.hello_message(HELLO)), "me@there")
    assert arrived.info.host == "me@there"
    assert (arrived.info.name, arrived.info.power_limit) == (GPU.info.name, GPU.info.power_limit)
    assert (arrived.graphics_clocks_mhz, arrived.buffered, arrived.cannot_set) == ((345, 1005), True, HELLO.cannot_set)
    assert arrived.power_profiles == {1: "max_q"}
    reported = {channel.name for channel in arrived.channels if channel.available}
    assert reported == {channel.name for channel in GPU.channels if channel.available}


@given(
    time_ns=st.integers(0, 1 << 61),
    values=st.lists(st.floats(-1e12, 1e12) | st.just(math.nan), min_size=5, max_size=5),
)
def test_a_reading_arrives_as_it_was_sent(time_ns: int, values: list[float]) -> None:
    order = [place for place, channel in enumerate(GPU.channels) if channel.available]
    arrived = messages.parse_reading(
        sent(messages.reading_message(Reading(time_ns, tuple(values)), GPU.channels))["reading"], order, 5
    )
    assert arrived.time_ns == time_ns
    for place, (was, now) in enumerate(zip(values, arrived.values, strict=True)):
        assert (math.isnan(now) and (math.isnan(was) or place not in order)) or was == now


def test_samples_and_processes_arrive_as_they_were_sent() -> None:
    samples = [PowerSample(1, 100.0), PowerSample(2, 101.5)]
    assert messages.parse_samples(sent(messages.samples_message(samples))["samples"]) == samples
    process = GpuProcess(7, "train\x1b[31m.py", 12.5, "compute", 90.0)
    (arrived,) = messages.parse_processes(sent({"processes": [messages.process_document(process)]})["processes"])
    assert (arrived.pid, arrived.memory_mib, arrived.share_percent) == (7, 12.5, 90.0)
    assert arrived.name.isprintable()


def test_another_version_of_the_protocol_is_refused_with_both_names() -> None:
    hello = messages.hello_message(HELLO)
    hello["hello"]["protocol"] = 2
    with pytest.raises(SensorError, match=r"Wattridge 1\.0 there speaks another protocol") as caught:
        messages.parse_hello(sent(hello), "there")
    assert "same version" in caught.value.remedy


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(document=JSON, key=st.sampled_from(["hello", "reading", "samples", "processes", "answer"]))
def test_a_line_that_is_none_of_ours_is_one_error_and_nothing_else(document: object, key: str) -> None:
    """Whatever it holds: no other exception, no text with control characters."""
    try:
        message = fields.parse_line(json.dumps({key: document}).encode() + b"\n")
        if key == "hello":
            messages.parse_hello(message, "there")
        elif key == "reading":
            messages.parse_reading(message[key], [0, 2], 4)
        elif key == "samples":
            messages.parse_samples(message[key])
        else:
            messages.parse_processes(message[key])
    except SensorError as error:
        said = str(error)
    else:
        said = ""
    assert visible(said) == said


@given(st.binary(max_size=200))
def test_bytes_that_are_no_line_are_one_error(line: bytes) -> None:
    try:
        fields.parse_line(line)
    except SensorError as error:
        said = str(error)
    else:
        said = ""
    assert visible(said) == said
