"""What a pool's ends say to each other: what is sent arrives, and whatever else arrives is one line and no more."""

from __future__ import annotations

import base64
import json
import math
import random
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fixtures.engine_fakes import grid, measurement_of
from fixtures.pool_sides import BUNDLE, board

from app.base.errors import InputError, WattridgeError
from app.base.paths import resources
from app.engine.results.evidence import Evidence
from app.engine.results.measurement import Depth, Measurement, State
from app.engine.runner.pool import messages
from app.engine.runner.pool.messages import Bundle, Request, SessionWork, bundle_message, bundle_of, parse_bundle
from app.engine.runner.pool.pool import PoolBoard, board_message, models_of, parse_board
from app.engine.session.load import load_specification
from app.engine.workloads.source_kernel import SourceKernel
from app.sensors.limits import limits_of
from app.sensors.remote.messages import Garbled, line_of

SPACE = grid()
SESSION = "0123456789abcdef" * 2
WORK = SessionWork(SESSION, BUNDLE, SPACE, 3, "55C,420W")
MEASURED = Measurement(
    row=17,
    configuration=SPACE.configuration(17),
    state=State.OK,
    values={"time_s": 0.25, "GFLOP/s": math.nan},
    intervals={"time_s": (0.2, 0.3), "power_w": (1.0, math.inf)},
    message="kernel.cu(3): warning\nat line 3",
    window_ns=(5, 9),
    observed_clock_mhz=1410.0,
    event_reasons=4,
    power_source="counter",
    source="simulated",
    timestamp_s=1.5e9,
    cost_s=0.3,
    evidence=Evidence.of([(5, 9)], np.zeros(1), np.full(1, 300.0), [(6, 1410.0, 4.0)]).pack(),
)
REQUESTS = (
    Request("open", SESSION, 1, work=WORK),
    Request("measure", SESSION, 2, (5, 3, 8), Depth.TIME),
    Request("features", SESSION, 3, (5,)),
    Request("restate", SESSION, 4, measurements=tuple(messages.rows_of([MEASURED]))),
    Request("conclude", SESSION, 5),
    Request("close", SESSION, 6),
)


def test_requests_arrive_as_they_were_sent() -> None:
    for request in REQUESTS[1:]:
        assert messages.parse_request(messages.request_line(request)) == request
    opened = messages.parse_request(messages.request_line(REQUESTS[0])).work
    assert opened is not None
    assert (opened.bundle, opened.repeats, opened.condition) == (BUNDLE, 3, "55C,420W")
    assert opened.space.parameters == SPACE.parameters
    assert np.array_equal(opened.space.codes, SPACE.codes)


def test_measurements_arrive_as_they_were_made_by_the_board_that_made_them() -> None:
    answer = messages.parse_answer(messages.measured_line(7, MEASURED), "there")
    arrived = messages.parse_measurement(answer.measured, SPACE, "GPU-1", "simulated")
    assert answer.number == 7
    assert arrived.board == "GPU-1"
    assert (arrived.row, arrived.configuration, arrived.state) == (17, MEASURED.configuration, State.OK)
    assert (arrived.message, arrived.window_ns, arrived.cost_s) == (MEASURED.message, (5, 9), 0.3)
    assert arrived.evidence == MEASURED.evidence
    assert arrived.values["time_s"] == 0.25
    assert math.isnan(arrived.values["GFLOP/s"])
    assert arrived.intervals["time_s"] == (0.2, 0.3)
    failed = Measurement.failed(3, {}, State.COMPILE, "error:\x1b[31m bad\nnext", source="simulated")
    sent = messages.parse_answer(messages.measured_line(8, failed), "there").measured
    arrived = messages.parse_measurement(sent, SPACE, "GPU-1", "simulated")
    assert (arrived.state, arrived.error) == (State.COMPILE, "error:\\x1b[31m bad\nnext")


def test_simulated_boards_of_a_machine_have_their_own_numbers() -> None:
    boards = [replace(board("x"), key=f"simulated:a100@node7/{number}", host="node7") for number in (0, 1, 12)]
    assert [each.label.split(" on ")[1].split(" (")[0] for each in boards] == ["node7 #0", "node7 #1", "node7 #12"]


def test_a_board_is_announced_with_what_it_is_and_may() -> None:
    sent = PoolBoard("GPU-12345678-9abc", "node7", board("x").hello, board("x").limits, "control is off")
    arrived = parse_board(line_of(board_message(sent)))
    assert (arrived.key, arrived.host, arrived.limits, arrived.read_only) == (
        "GPU-12345678-9abc",
        "node7",
        sent.limits,
        "control is off",
    )
    assert arrived.info.name == sent.info.name
    assert arrived.label == f"{sent.info.name} (simulated) on node7 #0 (GPU-12345678)"
    assert arrived.why_not("graphics_clock_mhz") == "control is off"
    other = board("y", "v100")
    assert list(models_of([arrived, other])) == sorted([arrived.model, other.model])
    message = board_message(sent)
    message["hello"]["version"] = "0.0.1"
    with pytest.raises(WattridgeError, match=r"the worker runs Wattridge 0\.0\.1") as error:
        parse_board(line_of(message))
    assert "the same version" in error.value.remedy


def test_a_specification_travels_with_the_files_that_it_needs(tmp_path: Path) -> None:
    (tmp_path / "here" / "src").mkdir(parents=True)
    (tmp_path / "common").mkdir()
    (tmp_path / "here" / "src" / "k.cu").write_text('#include "../../common/a.h"\n__global__ void k(float *x) {}\n')
    (tmp_path / "common" / "a.h").write_text('#include "b.h"\n')
    (tmp_path / "common" / "b.h").write_text("#define B 1\n")
    (tmp_path / "common" / "secret.h").write_text("not named")
    np.save(tmp_path / "here" / "x.npy", np.zeros(8, np.float32))
    (tmp_path / "here" / "k.toml").write_text(
        '[kernel]\nname = "k"\nsource = "src/k.cu"\nproblem_size = ["8"]\n'
        'arguments = [ { name = "x", type = "float32", shape = ["8"], fill = "x.npy", output = true } ]\n'
        '[parameters]\nblock_size_x = [32, 64]\n[objective]\nminimise = "time_s"\n'
    )
    bundle = bundle_of(load_specification(tmp_path / "here" / "k.toml"))
    assert sorted(bundle.files) == ["common/a.h", "common/b.h", "here/k.toml", "here/src/k.cu", "here/x.npy"]
    (tmp_path / "there").mkdir()
    path = parse_bundle(json.loads(json.dumps(bundle_message(bundle)))).unpack(tmp_path / "there")
    arrived = load_specification(path)
    assert arrived.kernel is not None
    assert arrived.kernel.sources[0].read_text() == (tmp_path / "here" / "src" / "k.cu").read_text()
    assert (tmp_path / "there" / "common" / "b.h").is_file()


def test_an_example_runs_where_its_files_arrive(tmp_path: Path) -> None:
    example = load_specification(resources() / "examples" / "gemm.toml")
    arrived = load_specification(bundle_of(example).unpack(tmp_path))
    kernel = SourceKernel.of(arrived, limits_of((9, 0), 132))
    built = kernel.prepare({name: values[0] for name, values in arrived.parameters.items()}).build
    assert [path.name for path in built.sources] == ["gemm.cu"]
    assert all(path.is_relative_to(tmp_path) for path in built.sources)


def test_what_comes_with_wattridge_does_not_travel_with_files_of_others(tmp_path: Path) -> None:
    kernel = resources() / "kernels" / "gemm.cu"
    own = (resources() / "examples" / "gemm.toml").read_text().replace("../kernels/gemm.cu", str(kernel))
    (tmp_path / "mine.toml").write_text(own)
    assert list(bundle_of(load_specification(tmp_path / "mine.toml")).files) == ["mine.toml"]


def test_what_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    example = resources() / "examples" / "gemm.toml"
    monkeypatch.setattr("app.engine.runner.pool.messages.MOST_BYTES", 100)
    with pytest.raises(InputError, match="too large"):
        bundle_of(load_specification(example))


@pytest.mark.parametrize(
    "name", ["../k.cu", "/etc/passwd", "a/../../b", "a//b", ".", "a\\b", "c:k", "a\nb", "a/", "", "x" * 300]
)
def test_no_file_is_written_outside_the_folder_that_is_made_for_it(name: str) -> None:
    with pytest.raises(Garbled):
        parse_bundle({"specification": "k.toml", "files": {"k.toml": "", name: ""}})


def test_a_file_is_no_folder_too() -> None:
    with pytest.raises(Garbled):
        parse_bundle(bundle_message(Bundle("a", {"a": b"", "a/b": b""})))


def test_a_space_is_not_unpacked_beyond_the_size_that_it_says() -> None:
    message = json.loads(messages.request_line(REQUESTS[0]))
    bomb = base64.b64encode(zlib.compress(bytes(64 << 20))).decode()
    described = json.loads(message["space"])
    for change in (
        {"shape": [1 << 39, 2]},
        {"shape": [100, 3]},
        {"dtype": "|O"},
        {"dtype": "<f8"},
        {"parameters": [["x", [1], False], ["letter", ["a"], False]]},
    ):
        message["space"] = json.dumps({**described, **change})
        with pytest.raises(Garbled):
            messages.parse_request(line_of(message))
    message |= {"space": json.dumps(described), "codes": bomb}
    with pytest.raises(Garbled, match="another size"):
        messages.parse_request(line_of(message))


# --- whatever else arrives --------------------------------------------------------------------------------------------

STRANGE: list[Any] = [None, True, -1, 0, 1 << 70, 1.5, 1e308, "", "x", "__import__('os').system('false')", [], {}]
STRANGE += [[None], {"a": {}}, "\x1b[2J", "../..", [[[]]], {"number": 1}, "!!python/object/apply:os.system"]


def _read_answer(line: bytes) -> None:
    answer = messages.parse_answer(line, "there")
    if answer.measured is not None:
        messages.parse_measurement(answer.measured, SPACE, "GPU-1", "simulated")
    if answer.answer is not None:
        messages.parse_abilities(answer.answer)
        messages.parse_features(answer.answer, 2, 1)
        messages.parse_origin(answer.answer)


ANSWER = {
    **messages.abilities_document(messages.Abilities(frozenset({"time_s"}), ("registers",), 16)),
    "features": [[1.0], [None]],
    "origin": {"condition": "55 °C"},
}
LINES: list[tuple[Callable[[bytes], object], bytes]] = [
    *((messages.parse_request, messages.request_line(request)) for request in REQUESTS),
    (_read_answer, messages.begun_line(3)),
    (_read_answer, messages.measured_line(3, MEASURED)),
    (_read_answer, messages.measured_line(3, measurement_of(SPACE, 3))),
    (_read_answer, messages.error_line(3, WattridgeError("it failed", "there", "try again"))),
    (parse_board, line_of(board_message(board("GPU-1")))),
]


def _mutated(line: bytes, rng: random.Random) -> bytes:
    """A line with bytes or fields of it changed, taken away, repeated or made strange."""
    if rng.random() < 0.3:
        damaged = bytearray(line)
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(damaged))
            damaged[at : at + rng.randint(0, 3)] = rng.randbytes(rng.randint(0, 3))
        return bytes(damaged) if rng.random() < 0.8 else bytes(damaged[: rng.randrange(len(damaged) + 1)])
    message = json.loads(line)
    place: Any = message
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            break
        key = rng.choice(keys)
        if isinstance(place[key], dict | list) and place[key] and rng.random() < 0.7:
            place = place[key]
            continue
        if rng.random() < 0.2:
            del place[key]
        elif rng.random() < 0.2 and isinstance(place, dict):
            place[str(rng.choice(STRANGE))] = place.pop(key)
        else:
            place[key] = rng.choice(STRANGE)
        break
    return json.dumps(message).encode() + b"\n"


def test_ten_thousand_malformed_lines_are_one_line_each_and_nothing_is_done() -> None:
    rng = random.Random(19)
    said: list[str] = []
    for turn in range(10_000):
        read, line = LINES[turn % len(LINES)]
        try:
            read(_mutated(line, rng))
        except WattridgeError as error:
            said.append(str(error))
    assert all(line.isprintable() and len(line) < 1500 for line in said)
    assert len(said) > 4_000, "most of them are noticed; a changed figure is still a figure"


@pytest.mark.parametrize(
    "change",
    [
        {"row": 100},
        {"row": -1},
        {"row": True},
        {"source": "nvml"},
        {"state": "fine"},
        {"depth": "all"},
        {"values": {"time_s": "1"}},
        {"values": {"a\nb": 1.0}},
        {"intervals": {"time_s": [1.0]}},
        {"window_ns": [1, 2, 3]},
        {"evidence": "AAAA"},
        {"evidence": [1]},
        {"error": None},
        {"cost_s": None},
    ],
)
def test_a_measurement_that_cannot_be_is_none(change: dict[str, Any]) -> None:
    document = messages.measurement_document(MEASURED)
    messages.parse_measurement(document, SPACE, "GPU-1", "simulated")
    with pytest.raises(Garbled):
        messages.parse_measurement({**document, **change}, SPACE, "GPU-1", "simulated")
