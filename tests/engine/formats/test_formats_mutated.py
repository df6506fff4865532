"""A few of the thousands of files of `tests/benchmarks/mutated_files.py`: opened, or refused by one clear line."""

from __future__ import annotations

from pathlib import Path

import pytest
from fixtures.formats_samples import write_samples
from fixtures.mutations import mutated
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.base.errors import InputError
from app.engine.formats.growing_cache import CacheFollower
from app.engine.formats.read import read_recording
from app.engine.formats.t1 import is_specification
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_replay, space_of


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[bytes]]:
    files = write_samples(tmp_path_factory.mktemp("samples"))
    return {kind: [path.read_bytes() for path in paths] for kind, paths in files.items()}


def open_as_a_user_does(path: Path) -> None:
    if is_specification(path):
        space_of(load_specification(path))
        return
    recording = read_recording(path)
    plan_replay(path, read=recording)
    table = recording.table()
    assert len(table) == len(recording) == recording.space().size
    for row in range(len(recording)):
        measurement = recording.measurement(row)
        assert recording.space().row_of(measurement.configuration) == row == measurement.row


@pytest.mark.parametrize("kind", ["cache", "t1", "t4", "csv", "table"])
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**40), which=st.integers(0, 5))
def test_a_mutated_file_is_opened_or_refused_by_one_line(
    kind: str, samples: dict[str, list[bytes]], tmp_path: Path, seed: int, which: int
) -> None:
    content = mutated(samples[kind][which % len(samples[kind])], seed, bombs=False)
    path = tmp_path / ("file.csv" if kind in ("csv", "table") else "file.json")
    path.write_bytes(content)
    for look in (open_as_a_user_does, lambda path: CacheFollower(path).look()):
        refused: InputError | None = None
        try:
            look(path)
        except InputError as error:
            refused = error
        if refused is not None:
            assert refused.what
            assert str(path) in refused.where
            assert refused.remedy
            assert "\n" not in str(refused)
            assert len(str(refused)) < 1500


def test_the_samples_themselves_open(samples: dict[str, list[bytes]], tmp_path: Path) -> None:
    for kind, contents in samples.items():
        for content in contents:
            path = tmp_path / ("file.csv" if kind in ("csv", "table") else "file.json")
            path.write_bytes(content)
            open_as_a_user_does(path)
