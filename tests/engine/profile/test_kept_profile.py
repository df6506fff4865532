"""A profile in one file: whole again as it was, and refused in one line where the file is damaged or hostile."""

from __future__ import annotations

import io
import json
import math
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.base.errors import InputError
from app.base.records import as_json
from app.cli import main
from app.engine.profile.attributed import AttributedTrace
from app.engine.profile.describe_profile import describe_profile
from app.engine.profile.kept_profile import kept_profiles, open_profile, read_profile, save_profile
from app.engine.profile.program_profile import ProgramProfile
from app.engine.profile.stacks import joules_of_stacks, span_parts, stacks_of
from tests.fixtures.profiles import small_profile

Both = tuple[ProgramProfile, AttributedTrace]


@pytest.fixture(scope="module")
def both() -> Both:
    return small_profile()


@pytest.fixture(scope="module")
def kept(both: Both, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_profile(tmp_path_factory.mktemp("kept") / "small.wprofile", *both)


def entries(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(path: Path, parts: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return path


def read_or_refused(path: Path) -> Both | None:
    """What the file holds; None where it was refused in one line that names it."""
    line = ""
    try:
        return open_profile(path)
    except InputError as error:
        line = str(error)
    assert str(path) in line
    assert "\n" not in line
    return None


def column(values: Any, dtype: str) -> bytes:
    data = io.BytesIO()
    np.save(data, np.asarray(values, dtype), allow_pickle=True)
    return data.getvalue()


def test_a_profile_is_whole_again(both: Both, kept: Path) -> None:
    profile, attributed = open_profile(kept)
    assert as_json(profile) == as_json(both[0])
    before, after = both[1].trace, attributed.trace
    for name in ("kind", "stream", "start_ns", "duration_ns", "instance", "range_path", "range_start_ns"):
        assert np.array_equal(getattr(before, name), getattr(after, name)), name
    assert (before.title, before.device, before.boards, before.paths) == (
        after.title, after.device, after.boards, after.paths
    )  # fmt: skip
    assert [family.name for family in attributed.families] == [family.name for family in both[1].families]
    assert attributed.energy_j == pytest.approx(both[1].energy_j, rel=1e-3, abs=1e-9)
    assert attributed.sample_w == pytest.approx(both[1].sample_w, rel=1e-6)


def test_nothing_is_replaced_unless_it_is_asked_for(both: Both, kept: Path) -> None:
    from app.base.errors import WattridgeError

    with pytest.raises(WattridgeError, match="exists"):
        save_profile(kept, *both)
    save_profile(kept, *both, force=True)


def test_stacks_hold_the_joules_of_all_slices(both: Both) -> None:
    stacks = joules_of_stacks(both[1])
    assert sum(joules for _, joules in stacks) == pytest.approx(float(np.nansum(both[1].energy_j)))
    assert any(len(stack) > 1 for stack, _ in stacks)


def test_a_span_has_what_ran_in_it_and_the_whole_has_all(both: Both) -> None:
    profile, attributed = both
    trace = attributed.trace
    end_ns = trace.span_ns[1] - trace.span_ns[0]
    rows = span_parts(profile, attributed, 0, end_ns)
    explained = profile.energy_j - profile.remainder.energy_j
    assert sum(energy_j for _, _, energy_j, _ in rows) == pytest.approx(explained, rel=0.01)
    for part, time_s, energy_j, interval in rows:
        assert energy_j == pytest.approx(part.energy_j, rel=0.01)
        assert time_s == pytest.approx(part.time_s, rel=0.02)
        assert interval is None or interval[0] <= energy_j <= interval[1]
    halves = [span_parts(profile, attributed, *ends) for ends in ((0, end_ns // 2), (end_ns // 2, end_ns))]
    assert sum(row[2] for half in halves for row in half) == pytest.approx(sum(row[2] for row in rows), rel=1e-6)


def test_gaps_in_a_group_count_with_the_group(both: Both) -> None:
    """In a span and in the stacks alike: by the group's power, as its slices do."""
    profile, attributed = both
    (group, *_), end_ns = profile.groups, attributed.trace.span_ns[1] - attributed.trace.span_ns[0]
    grouped = replace(profile, gaps=replace(profile.gaps, group=group.number, energy_j=math.nan, power_w=math.nan))
    before, after = (
        {part.label: energy_j for part, _, energy_j, _ in span_parts(each, attributed, 0, end_ns)}
        for each in (profile, grouped)
    )
    assert profile.gaps.label not in after
    gaps_j = profile.gaps.time_s * group.power_w
    assert after[group.label] == pytest.approx(before[group.label] + gaps_j, rel=1e-3)
    assert dict(stacks_of(grouped, attributed))[profile.gaps.label,] == pytest.approx(gaps_j)


@given(st.data())
def test_a_damaged_file_gives_one_line_or_a_profile(kept: Path, tmp_path_factory: Any, data: st.DataObject) -> None:
    content = bytearray(kept.read_bytes())
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content) - 1)) :]
    for _ in range(data.draw(st.integers(0, 8)) if content else 0):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("damaged") / "d.wprofile"
    path.write_bytes(bytes(content))
    read_or_refused(path)


_VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=5),
    st.lists(st.integers(), max_size=2),
)


@given(st.data())
def test_a_head_that_says_something_else_gives_one_line_or_a_profile(
    kept: Path, tmp_path_factory: Any, data: st.DataObject
) -> None:
    parts = entries(kept)
    head = json.loads(np.load(io.BytesIO(parts["head.npy"])).tobytes())
    place: Any = head
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = data.draw(st.sampled_from(keys))
        if isinstance(place[key], dict | list) and place[key] and data.draw(st.booleans()):
            place = place[key]
            continue
        place[key] = data.draw(_VALUES)
        break
    parts["head.npy"] = column(np.frombuffer(json.dumps(head).encode(), np.uint8), "u1")
    path = packed(tmp_path_factory.mktemp("head") / "h.wprofile", parts)
    if (both := read_or_refused(path)) is not None:
        describe_profile(both[0])
        joules_of_stacks(both[1])


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("family", column([10**6], "<i4")),
        ("family", column([{}], "O")),
        ("start_ns", column([2**62, 2**62], "<i8")),
        ("start_ns", b"\x93NUMPY\x01\x00\x76\x00{'descr': '<i8', 'fortran_order': False, 'shape': (1000000000000,), }"),
        ("sample_s", column([float("nan")], "<f8")),
        ("kind", column([[0, 0]], "u1")),
        ("instance", b""),
    ],
)
def test_a_hostile_column_is_refused(kept: Path, tmp_path: Path, name: str, data: bytes) -> None:
    path = packed(tmp_path / "hostile.wprofile", {**entries(kept), f"{name}.npy": data})
    with pytest.raises(InputError, match="no profile"):
        open_profile(path)


def test_what_unpacks_to_gigabytes_is_refused(kept: Path, tmp_path: Path) -> None:
    path = packed(tmp_path / "bomb.wprofile", {**entries(kept), "head.npy": bytes(2**26 + 1)})
    with pytest.raises(InputError, match="too large"):
        open_profile(path)


def test_what_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        open_profile(tmp_path / "none.wprofile")


def test_the_command_keeps_profiles_opens_them_and_compares_them(
    kept: Path, both: Both, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["profile", str(kept), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["energy_j"] == pytest.approx(both[0].energy_j)
    assert main(["profile", str(kept), "--against", str(kept)]) == 0
    assert "difference" in capsys.readouterr().out
    data = Path(__file__).parent / "data"
    words = ["--trace", str(data / "train-trace.json.gz"), "--power", str(data / "train-power.csv")]
    assert main(["profile", *words, "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    (item,) = kept_profiles()
    assert str(item.path) in printed
    assert item.profile.gpu == "NVIDIA H200"
    again, attributed = read_profile(tmp_path / "train-trace.wprofile")
    assert attributed is not None
    assert again.energy_j == item.profile.energy_j
    item.path.write_bytes(b"PK\x03\x04 damaged")
    assert kept_profiles() == []
