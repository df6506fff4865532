"""What the helper takes for a request, and what it takes for a record: exactly what is written for it, nothing else."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[2] / "nvml"))
from hostile import hostile

from app.engine.control.helper.grammar import MOST_BYTES, SETTINGS, Refused, line_of, parse
from app.engine.control.helper.record import Record, RecordError, Records, boot, is_uuid, started

UUID = "GPU-5f0e3c1a-1111-2222-3333-444455556666"

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=12), inner, max_size=3),
    max_leaves=8,
)
clocks = st.integers(1, 20_000)
good_settings = st.fixed_dictionaries(
    {},
    optional={
        "graphics_clock_mhz": st.lists(clocks, min_size=2, max_size=2).map(sorted),
        "memory_clock_mhz": clocks,
        "power_limit_w": st.floats(1, 10_000) | st.integers(1, 10_000),
    },
).filter(bool)
good = st.one_of(
    st.fixed_dictionaries({"do": st.sampled_from(("state", "confirm", "quit", "reset"))}),
    st.fixed_dictionaries({"do": st.just("set"), "settings": good_settings}),
    st.fixed_dictionaries(
        {"do": st.just("reset"), "settings": st.lists(st.sampled_from(SETTINGS), min_size=1, max_size=3, unique=True)},
        optional={"to": st.sampled_from(("start", "prior"))},
    ),
)


def or_refusal(ask: Callable[[], Any]) -> Any:
    """What `ask` returns, or with what it is refused."""
    try:
        return ask()
    except Refused as refused:
        return refused


@given(st.binary(max_size=2000))
@example(b'{"id": 1, "do": "state"}')
@example(b"[" * 1000)
@example(b'{"id": 1, "do": "set", "settings": {"power_limit_w": 1e999}}')
def test_any_bytes_are_a_request_or_refused(line: bytes) -> None:
    request = or_refusal(lambda: parse(line))
    if isinstance(request, Refused):
        assert str(request).isprintable()
    else:
        assert request.verb in ("state", "set", "reset", "confirm", "quit")
        assert len(line) <= MOST_BYTES


@given(st.integers(0, 2**53 - 1), good)
def test_what_is_in_the_grammar_is_parsed_as_it_was_meant(number: int, request: dict[str, Any]) -> None:
    parsed = parse(line_of({"id": number, **request}).rstrip(b"\n"))
    assert (parsed.number, parsed.verb) == (number, request["do"])
    if parsed.verb == "set":
        assert {name: list(v) if isinstance(v, tuple) else v for name, v in parsed.settings.items()} == request[
            "settings"
        ]
    else:
        assert list(parsed.names) == request.get("settings", [])
        assert parsed.to == request.get("to", "start")


@given(good, st.text(max_size=12), values)
def test_one_field_too_many_is_one_too_many(request: dict[str, Any], key: str, value: Any) -> None:
    assume(key not in ("id", "do", "settings", "to"))
    with pytest.raises(Refused):
        line_of({"id": 1, **request, key: value})


@given(st.sampled_from(SETTINGS), values)
def test_values_are_numbers_within_bounds_or_refused(name: str, value: Any) -> None:
    line = or_refusal(lambda: line_of({"id": 1, "do": "set", "settings": {name: value}}))
    if isinstance(line, Refused):
        assert str(line).isprintable()
    else:
        [parsed] = parse(line.rstrip(b"\n")).settings.values()
        for number in parsed if isinstance(parsed, tuple) else (parsed,):
            assert type(number) in (int, float)
            assert 1 <= number <= 20_000


def test_hostile_lines_are_refused_before_any_board_is_asked() -> None:
    rng, beside = random.Random(0), 0
    for _ in range(3000):
        line = hostile(rng).rstrip(b"\n")
        try:
            request = parse(line)
        except Refused:
            continue
        # what is left is in the grammar and outside this board, or a confirmation of nothing
        beside += 1
        assert request.verb in ("set", "confirm"), line
    assert beside < 400


# --- the record -------------------------------------------------------------------------------------------------------

posix = pytest.mark.skipif(os.name != "posix", reason="the helper is for Linux")
PRIOR = {"power_limit_mw": 650_000, "locked_graphics_mhz": None}
RECORD = Record(UUID, "Some board", PRIOR, touched=["power_limit_mw"], open=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "records"
    path.mkdir(mode=0o755)
    return path


@posix
def test_a_record_comes_back_as_it_was_written(folder: Path) -> None:
    with Records(str(folder), make=True) as records:
        assert records.read(UUID) is None
        records.write(RECORD)
        assert records.read(UUID) == RECORD
        assert records.uuids() == [UUID]
        assert RECORD.boot == boot()
        assert [path.name for path in folder.iterdir()] == [f"{UUID}.json"]
        records.remove(UUID)
        records.remove(UUID)
        assert records.read(UUID) is None


def changed_on_disk(folder: Path, change: dict[str, Any], *, without: str = "") -> None:
    """Write RECORD, then change it as another version or a vandal would."""
    with Records(str(folder), make=True) as records:
        records.write(RECORD)
    path = folder / f"{UUID}.json"
    document = {**json.loads(path.read_text()), **change}
    document.pop(without, None)
    path.write_text(json.dumps(document))


def found(folder: Path) -> Record:
    """The record that is there, whatever state it is in."""
    with Records(str(folder), make=True) as records:
        record = records.read(UUID)
    assert record is not None
    return record


@posix
@given(document=values)
@settings(max_examples=60)
def test_a_record_that_the_helper_did_not_write_is_reported(
    document: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("records")
    (folder / f"{UUID}.json").write_text(json.dumps(document))
    record = found(folder)
    assert f"{UUID}.json" in record.unreadable
    assert record.open
    assert record.prior == record.kept == {}


@posix
@given(text=st.binary(max_size=300))
@example(text=b"")
@example(text=b"[" * 5000)
@example(text=b"\xff\xfe{}")
@example(text=b'{"version": 1' + b"1" * 5000 + b"}")
def test_any_file_is_a_record_that_is_reported(text: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("records")
    (folder / f"{UUID}.json").write_bytes(text)
    record = found(folder)
    assert record.unreadable
    assert record.unreadable.isprintable()
    assert len(record.unreadable) < 1000
    assert record.open


@posix
@given(length=st.integers(0, 10_000))
def test_every_truncated_record_is_reported(length: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("records")
    changed_on_disk(folder, {})
    path = folder / f"{UUID}.json"
    whole = path.read_bytes()
    path.write_bytes(whole[: length % len(whole)])
    assert found(folder).unreadable


@posix
@pytest.mark.parametrize(
    ("change", "named", "prior"),
    [
        ({"version": 2}, "version 2", RECORD.prior),
        ({"version": "1"}, "version '1'", RECORD.prior),
        ({"more": 1}, "field 'more'", RECORD.prior),
        ({"\x1b[31m": 1}, "field '\\x1b[31m'", RECORD.prior),
        ({"version": 3, "fan": 1}, "version 3, field 'fan'", RECORD.prior),
        ({"prior": {"power_limit_mw": 650_000, "fan": 1}}, "'fan' in 'prior'", {"power_limit_mw": 650_000}),
        ({"prior": {"power_limit_mw": True}}, "'power_limit_mw' in 'prior'", {}),
        ({"prior": {"power_limit_mw": -1}}, "'power_limit_mw' in 'prior'", {}),
        ({"prior": {"locked_graphics_mhz": [1200]}}, "'locked_graphics_mhz' in 'prior'", {}),
        ({"prior": {"application_clocks_mhz": None}}, "'application_clocks_mhz' in 'prior'", {}),
        ({"prior": [1]}, "'prior' is [1]", {}),
        ({"kept": {"persistence_mode": 1}}, "'persistence_mode' confirmed, but not what it was before", RECORD.prior),
        ({"kept": "all"}, "'kept' is 'all'", RECORD.prior),
        ({"uuid": "GPU-00000000-0000-0000-0000-000000000000"}, "of another board", {}),
        ({"holder": {"pid": "1"}}, "'holder' is {'pid': '1'}", RECORD.prior),
        ({"holder": {"user": 1}}, "'holder' is {'user': 1}", RECORD.prior),
        ({"touched": "power_limit_mw"}, "'touched' is 'power_limit_mw'", RECORD.prior),
        ({"touched": ["fan", []]}, "'touched' is ['fan', []]", RECORD.prior),
        ({"touched": {}}, "'touched' is {}", RECORD.prior),
        ({"open": 1}, "'open' is 1", RECORD.prior),
        ({"name": "a\nb"}, "'name' is", RECORD.prior),
        ({"written_s": float("nan")}, "'written_s' is nan", RECORD.prior),
    ],
)
def test_what_another_version_wrote_is_named_and_the_rest_is_used(
    change: dict[str, Any], named: str, prior: dict[str, Any], folder: Path
) -> None:
    changed_on_disk(folder, change)
    record = found(folder)
    assert named in record.unreadable
    assert f"{UUID}.json" in record.unreadable
    assert record.open
    assert record.prior == prior
    assert record.touched == list(prior)  # all that can be read is put back
    assert set(record.kept) <= set(record.prior)


@posix
@pytest.mark.parametrize("name", ["version", "prior", "kept", "open", "holder", "boot", "written_s", "name", "uuid"])
def test_a_record_that_lacks_a_field_is_reported(name: str, folder: Path) -> None:
    changed_on_disk(folder, {}, without=name)
    record = found(folder)
    assert ("version None" if name == "version" else f"no {name!r}") in record.unreadable
    assert record.open
    assert record.prior == ({} if name == "prior" else RECORD.prior)


@posix
@pytest.mark.parametrize("kind", ["folder", "fifo", "link", "huge", "another user's"])
def test_what_is_not_the_helpers_own_file_is_reported_and_not_read(kind: str, folder: Path, tmp_path: Path) -> None:
    path = folder / f"{UUID}.json"
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to(tmp_path / "nowhere")
    else:
        changed_on_disk(folder, {"more": "x" * 9000} if kind == "huge" else {})
        if kind != "huge":
            if os.geteuid() != 0:
                pytest.skip("only root can give a file away")
            os.chown(path, 65534, -1)
    record = found(folder)
    expected = {
        "folder": "not a regular file",
        "fifo": "not a regular file",
        "link": "is a link",
        "huge": "too large",
        "another user's": "does not belong to the owner",
    }
    assert expected[kind] in record.unreadable
    assert record.prior == {}
    with Records(str(folder), make=True) as records:
        assert records.uuids() == [UUID]
        records.set_aside(UUID)
        assert records.uuids() == []


@posix
def test_no_link_is_followed_and_no_folder_of_others_is_trusted(folder: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("{}")
    (folder / f"{UUID}.json").symlink_to(secret)
    (folder / f"{UUID}.new").symlink_to(secret)  # where a new one is written first
    with Records(str(folder), make=True) as records:
        linked = records.read(UUID)
        assert linked is not None
        assert "is a link" in linked.unreadable
        records.write(RECORD)
        assert records.read(UUID) == RECORD
    assert secret.read_text() == "{}"
    link = tmp_path / "link"
    link.symlink_to(folder)
    with pytest.raises(RecordError):
        Records(str(link), make=True)
    folder.chmod(0o777)
    with pytest.raises(RecordError, match="alone to write"):
        Records(str(folder), make=True)


@posix
def test_a_process_is_known_by_its_start_too() -> None:
    assert started(os.getpid()) == started(os.getpid()) is not None
    assert started(2**22 + 1) is None
    dead = subprocess.Popen([sys.executable, "-c", ""])
    deadline = time.monotonic() + 10.0
    while started(dead.pid) is not None:  # it ends, and nobody has asked how
        assert time.monotonic() < deadline
        time.sleep(0.01)
    dead.wait()


@given(st.text())
@example("../../etc/passwd")
@example(UUID + "\n")
@example("GPU-5F0E3C1A-1111-2222-3333-444455556666")
def test_only_the_uuid_of_a_whole_board_becomes_a_file(text: str) -> None:
    assert is_uuid(UUID)
    assert not is_uuid(text)
