"""A kernel whose source was changed is another kernel: a session of the one before neither goes on nor exports it."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from fixtures.engine_fakes import Listener

from app.base.errors import InputError
from app.base.paths import resources
from app.engine.report.export import export_session
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_of, plan_resume, plan_specification
from app.engine.session.run import run_session
from app.engine.session.sources import are_as_measured, require_as_measured, to_origin
from app.engine.specification.plan import SearchOptions
from app.engine.store.database import Store
from app.sensors.select import open_gpu


@pytest.fixture
def specification(tmp_path: Path) -> Path:
    """An example with a source of its own, which is a few configurations small."""
    text = (resources() / "examples" / "copy.toml").read_text()
    name = next(line for line in text.splitlines() if line.startswith("source")).split('"')[1]
    source = tmp_path / Path(name).name
    source.write_text(((resources() / "examples") / name).read_text())
    path = tmp_path / "copy.toml"
    path.write_text(text.replace(name, source.name))
    return path


def test_a_changed_header_is_a_changed_source(specification: Path, tmp_path: Path) -> None:
    """Beside the source or in a folder of `include`, and included by what is included."""
    source, folder = next(tmp_path.glob("*.c*")), tmp_path / "headers"
    folder.mkdir()
    beside, deeper, foreign = tmp_path / "beside.h", folder / "deeper.h", tmp_path / "foreign.h"
    source.write_text(f'#include "{beside.name}"\n#include <cuda_fp16.h>\n{source.read_text()}')
    beside.write_text('#  include "deeper.h"\n')
    deeper.write_text("#define DEEPER 1\n")
    foreign.write_text("#define FOREIGN 1\n")
    specification.write_text(specification.read_text().replace("[kernel]", '[kernel]\ninclude = ["headers"]', 1))
    spec = load_specification(specification)
    origin = to_origin(spec)
    older = {key: value for key, value in origin.items() if not key.startswith("included")}
    foreign.write_text("#define FOREIGN 2\n")
    assert are_as_measured(spec, origin)
    for file in (beside, deeper):
        before = file.read_text()
        file.write_text(before + "// another one\n")
        assert not are_as_measured(spec, origin)
        with pytest.raises(InputError, match="a file that it includes"):
            require_as_measured(spec, origin, 1)
        assert are_as_measured(spec, older)
        file.write_text(before)
    assert are_as_measured(spec, origin)


def test_a_session_whose_source_was_changed_is_not_resumed_and_not_exported_with_it(
    specification: Path, tmp_path: Path
) -> None:
    spec = load_specification(specification)
    assert spec.kernel is not None
    (source,) = spec.kernel.sources
    before = source.read_text()
    with Store() as store:
        gpu = open_gpu("simulated:a100", speed=float("inf"))
        plan = plan_specification(spec, gpu, SearchOptions(max_evaluations=2))
        result = run_session(plan, store, Listener(), threading.Event())
        loaded = store.load(result.session)

        source.write_text(before + "// another kernel\n")
        with pytest.raises(InputError, match="source, or a file that it includes, has changed") as refused:
            plan_resume(store, result.session, SearchOptions(max_evaluations=4))
        assert str(source) in str(refused.value)
        with pytest.raises(InputError, match="as it was"):
            export_session(plan_of(loaded), loaded.table, result.session, None, tmp_path / "changed", ["source"])
        header, _ = export_session(plan_of(loaded), loaded.table, result.session, None, tmp_path / "h", ["header"])
        assert "#define" in header.read_text()

        source.write_text(before)
        assert plan_resume(store, result.session, SearchOptions(max_evaluations=4)).resume == result.session
        export_session(plan_of(loaded), loaded.table, result.session, None, tmp_path / "same", ["source"])
        gpu.close()
