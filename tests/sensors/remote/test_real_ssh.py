"""Boards of another machine through a real ssh and a real sshd, on loopback."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from fixtures.real_ssh import WHY_NOT, Sshd
from fixtures.waiting import wait_for

from app.cli import main
from app.sensors.gpu import SensorError
from app.sensors.remote.gpu import RemoteGpu
from app.sensors.select import open_gpu
from app.sensors.trace.sampler import Sampler
from app.sensors.trace.trace import Trace

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "-")


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sshd]:
    """A machine that ssh knows as `box`."""
    sshd = Sshd(tmp_path)
    monkeypatch.setenv("PATH", f"{sshd.client}{os.pathsep}{os.environ['PATH']}")
    yield sshd
    sshd.close()


def test_a_board_there_is_watched_as_one_here_and_measured_over_the_same_time(
    box: Sshd, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["monitor", "--gpu", "ssh://box/simulated:h200", "--duration", "2", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["faults"] == []
    assert "H200" in document["gpu"]
    power = document["channels"]["power_instant_w"]
    assert power["samples"] > 5
    assert 0 < document["energy_j"] <= 1.2 * power["mean"] * document["duration_s"]  # less where a reading was late
    clock = document["clock_there"]
    assert 0 < clock["error_s"] < 1.0
    assert abs(clock["ahead_s"]) <= clock["error_s"], "it is this machine's own clock"
    assert main(["monitor", "--gpu", "ssh://box/simulated:h200", "--duration", "1"]) == 0
    assert "Times are right within" in capsys.readouterr().out


def test_the_boards_of_a_machine_are_listed_with_what_opens_them(box: Sshd, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gpus", "--on", "box", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert any("H200" in board["name"] for board in listed)
    with closing(open_gpu(listed[0]["selector"], remote=True)) as gpu:
        assert gpu.info.name == listed[0]["name"]
        assert gpu.info.host == "box"


def test_a_connection_that_is_cut_is_a_loss_and_comes_back(box: Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.sensors.remote.gpu._AGAIN_S", 0.2)
    monkeypatch.setattr("app.sensors.trace.sampler._RETRY_S", 0.2)
    kinds: list[str] = []
    with closing(open_gpu("ssh://box/simulated:h200", remote=True)) as gpu:
        trace = Trace(gpu.channels, rate_hz=50.0, span_s=60.0)
        sampler = Sampler(gpu, trace, interval_s=0.02, on_event=lambda event: kinds.append(event.kind))
        sampler.start()
        wait_for(lambda: len(trace) > 5)
        box.cut()
        wait_for(lambda: "lost" in kinds)
        wait_for(lambda: "back" in kinds)
        sampler.stop()
        sampler.join()


def test_nothing_stays_behind_there_once_it_is_closed(box: Sshd, tmp_path: Path) -> None:
    gpu = open_gpu("ssh://box/simulated:h200", remote=True)
    assert isinstance(gpu, RemoteGpu)
    assert _served(tmp_path)
    gpu.close()
    wait_for(lambda: not _served(tmp_path))


def _served(folder: Path) -> list[str]:
    """Processes that serve boards that this test started."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            ours = os.fsencode(folder / "programs")  # in the PATH
            if b"serve-board" in words and ours in (process / "environ").read_bytes():
                found.append(process.name)
        except OSError:
            continue
    return found


def test_who_is_not_let_in_and_what_is_not_there_are_said_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sshd = Sshd(tmp_path, installed=False)
    try:
        monkeypatch.setenv("PATH", f"{sshd.client}{os.pathsep}{os.environ['PATH']}")
        with pytest.raises(SensorError, match="not installed there") as caught:
            open_gpu("ssh://box", remote=True)
        assert caught.value.remedy == "install it there: ssh box pipx install wattridge"
        (tmp_path / "authorized").write_text((tmp_path / "stranger.pub").read_text())
        with pytest.raises(SensorError, match="Permission denied") as caught:
            open_gpu("ssh://box", remote=True)
        assert caught.value.remedy == "try: ssh box"
    finally:
        sshd.close()
    with pytest.raises(SensorError, match="refused"):
        open_gpu("ssh://box", remote=True)
