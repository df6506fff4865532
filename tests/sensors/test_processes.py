"""What runs on a board: NVML's words, names where they can be read, the simulated board's own load."""

from __future__ import annotations

import math
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from app.sensors.gpu import GpuLost, ListsProcesses, Load, NoPermission, NotSupported
from app.sensors.nvml.gpu import UNSEEN, NvmlGpu, nvml_processes, process_name
from app.sensors.select import open_gpu
from app.sensors.simulated.gpu import SimulatedGpu

COMPUTE, GRAPHICS = "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v3"


def entry(pid: int, mib: float | None) -> Any:
    return SimpleNamespace(pid=pid, usedGpuMemory=None if mib is None else int(mib * 2**20))


def asking(answers: dict[str, Any]) -> Any:
    def ask(function: str, *_: Any) -> Any:
        answer = answers.get(function, NotSupported("not here"))
        if isinstance(answer, Exception):
            raise answer
        return answer

    return ask


def test_the_largest_comes_first_and_one_of_both_kinds_once() -> None:
    mine = os.getpid()
    found = nvml_processes(
        asking({COMPUTE: [entry(999_999_999, 100), entry(mine, 2048)], GRAPHICS: [entry(mine, 2048), entry(7, None)]})
    )
    assert [p.pid for p in found] == [mine, 999_999_999, 7]
    assert found[0].use == "compute and graphics"
    assert found[0].memory_mib == 2048
    assert "python" in found[0].name or "pytest" in found[0].name
    assert found[1].pid == 999_999_999
    assert (found[1].name, found[1].memory_mib, found[1].use) == (UNSEEN, 100.0, "compute")
    assert math.isnan(found[2].memory_mib), "what is unknown is not 0"


def sample(pid: int, share: int, stamp: int) -> Any:
    return SimpleNamespace(pid=pid, smUtil=share, timeStamp=stamp)


def test_the_newest_share_of_each_process_where_the_driver_reports_it() -> None:
    samples = [sample(7, 80, 3), sample(7, 20, 2), sample(8, 4_294_967_295, 3), sample(99, 5, 3)]
    answers = {COMPUTE: [entry(7, 100), entry(8, 50)], "nvmlDeviceGetProcessUtilization": samples}
    first, second = nvml_processes(asking(answers))
    assert (first.pid, first.share_percent) == (7, 80.0)
    assert second.pid == 8
    assert math.isnan(second.share_percent), "what is no share is not shown as one"
    del answers["nvmlDeviceGetProcessUtilization"]
    assert all(math.isnan(process.share_percent) for process in nvml_processes(asking(answers)))


def test_an_older_driver_is_asked_in_its_own_words() -> None:
    assert [p.pid for p in nvml_processes(asking({COMPUTE.replace("_v3", "_v2"): [entry(7, 1)]}))] == [7]


@pytest.mark.parametrize(
    ("error", "kind"),
    [(NotSupported("no"), NotSupported), (NoPermission("no"), NoPermission), (GpuLost("gone"), GpuLost)],
    ids=["unsupported", "refused", "lost"],
)
def test_a_board_that_lists_nothing_says_why(error: Exception, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        nvml_processes(asking({COMPUTE: error, GRAPHICS: error}))


def test_a_script_is_named_and_nothing_odd_is_shown(tmp_path: Path) -> None:
    for pid, (line, short) in enumerate(
        [
            (b"/usr/bin/python3.11\0-u\0/home/x/train.py\0--secret\0abc\0", b"python3.11\n"),
            (b"./bench\0--size\x001\0", b"bench\n"),
            (b"", b"kworker\n"),
            (b"/bin/\x1b[31mred\0", b"red\n"),
        ]
    ):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "cmdline").write_bytes(line)
        (tmp_path / str(pid) / "comm").write_bytes(short)
    assert [process_name(pid, tmp_path) for pid in range(5)] == [
        "python3.11 train.py",
        "bench",
        "kworker",
        "?[31mred",
        UNSEEN,
    ]


def test_the_simulated_board_lists_its_load() -> None:
    gpu = open_gpu("simulated:a100", speed=math.inf)
    assert isinstance(gpu, SimulatedGpu)
    assert isinstance(gpu, ListsProcesses)
    assert gpu.processes() == []
    gpu.begin(Load("sgemm", "fp32", 1e12, 1e9))
    [process] = gpu.processes()
    assert (process.pid, process.name) == (os.getpid(), "sgemm (simulated)")
    gpu.end()
    assert gpu.processes() == []


def test_real_boards_list_them() -> None:
    assert issubclass(NvmlGpu, ListsProcesses)
