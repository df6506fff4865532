"""Kernels under a stand-in for Nsight Compute, on a device that is not there: each is launched once and joined."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import fake_ncu
import pytest
from fixtures.cuda_bench import HERE, SPECIFICATION, SteadySensors

from app.base.errors import WattridgeError
from app.engine.runner.cuda.toolchain import Toolchain
from app.engine.runner.profiling import ncu as profiling
from app.engine.runner.profiling.ncu import NcuProfiler, find_ncu
from app.engine.runner.profiling.profiler import Profile
from app.engine.session.load import load_specification
from app.engine.space.build import build_space
from app.sensors.limits import limits_of

Profiled = Callable[..., list[Profile]]
READ = "dram__bytes_read.sum"


@pytest.fixture
def profiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Profiled]:
    """`profiled('fault = ["none"]', fault="no_rights")`: every row of a space, profiled."""
    program = fake_ncu.install(tmp_path)

    def profile(parameters: str, fault: str = "", rows: int | None = None) -> list[Profile]:
        monkeypatch.setenv("FAKE_NCU", fault)
        (tmp_path / "scale.cu").write_text("// what the fake compiler reads are the defines\n")
        path = tmp_path / "scale.toml"
        path.write_text(SPECIFICATION.format(parameters=parameters, reference="factor * x", kernel=""))
        spec = load_specification(path)
        space = build_space(spec.parameters, spec.restrictions, spec.constants, limits_of((9, 0), 132))
        toolchain = Toolchain((sys.executable, str(HERE / "fake_cuda.py")), "fake 1")
        with_tool = NcuProfiler(spec, SteadySensors(), space, ncu=program, backend="fake_cuda", toolchain=toolchain)
        assert with_tool.tool == "Nsight Compute 2025.2.1"
        return list(with_tool.profile(range(rows or space.size), threading.Event()))

    yield profile
    profiling.version_of.cache_clear()


def test_each_configuration_is_launched_once_and_has_its_own_counters(profiled: Profiled) -> None:
    found = profiled("launch_ms = [1, 2, 3]")
    assert [one.row for one in found] == [0, 1, 2]
    for one in found:
        assert not one.error
        assert one.metrics[READ] == 1024  # 16 blocks of 64 threads for 1000 values
        assert one.metrics["smsp__inst_executed.sum"] == 12.5


def test_numbers_of_another_locale_other_names_and_a_metric_less_change_nothing_else(profiled: Profiled) -> None:
    [one] = profiled('work = ["a"]', "localised blackwell old")
    assert (one.metrics[READ], one.metrics["sm__inst_issued.avg.per_cycle_active"]) == (1024, 12.5)
    assert "lts__t_sector_op_read_hit_rate.pct" not in one.metrics


def test_missing_rights_are_one_line_with_the_remedy(profiled: Profiled) -> None:
    with pytest.raises(WattridgeError, match="ERR_NVGPUCTRPERM") as refused:
        profiled('work = ["a"]', "no_rights")
    assert "as root" in refused.value.remedy
    assert "\n" not in str(refused.value)


def test_a_kernel_that_fails_is_a_result_and_costs_no_other_its_counters(profiled: Profiled) -> None:
    found = profiled('fault = ["segfault", "broken", "none", "illegal_address"]')
    assert {one.row: bool(one.metrics) for one in found} == {0: False, 1: False, 2: True, 3: False}
    errors = {one.row: one.error for one in found if one.error}
    assert errors.keys() == {0, 1, 3}
    assert "took the program along" in errors[0]
    assert "expected a" in errors[1]
    assert "illegal memory access" in errors[3]


def test_profiles_that_cannot_be_told_apart_are_refused(profiled: Profiled) -> None:
    with pytest.raises(WattridgeError, match="1 launches were profiled, and 2 ran"):
        profiled('work = ["a", "b"]', "loses")


def test_without_the_tool_one_line_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(profiling, "toolkits", lambda *a, **k: [])
    monkeypatch.setattr(profiling, "_PLACES", ())
    monkeypatch.delenv("WATTRIDGE_NCU", raising=False)
    with pytest.raises(WattridgeError, match="ncu, was not found"):
        find_ncu("H200")
    monkeypatch.setenv("WATTRIDGE_NCU", str(fake_ncu.install(tmp_path)))
    assert find_ncu("H200") == tmp_path / "ncu"
    monkeypatch.setenv("WATTRIDGE_NCU", "/nowhere/ncu")
    with pytest.raises(WattridgeError, match="no program"):
        find_ncu("H200")
