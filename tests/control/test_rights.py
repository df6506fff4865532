"""Where the rights come from: root's own, sudo without a password, a prompt only where a person has asked for one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from boards import StandIn

from app.engine.control import rights
from app.engine.control.guard import DeviceGuard
from app.engine.control.rights import Asking, helper_command, only_roots, start_helper
from app.errors import PermissionRefused
from app.sensors.nvml import NvmlGpu

NVML = Path(__file__).parents[1] / "nvml"
Boards = Callable[..., StandIn]
Opened = Callable[..., NvmlGpu]
Sudo = Callable[..., Path]


def test_sudo_without_a_password_needs_nobody(boards: Boards, sudo: Sudo, opened: Opened) -> None:
    stand_in = boards("h200")
    asked = sudo(stand_in, free=True)
    guard = DeviceGuard(opened(), allow_control=True)
    guard.apply(graphics_clock_mhz=1200)
    assert stand_in.settings()["lock"] == (1200, 1200)
    guard.close()
    uses = asked.read_text().splitlines()
    assert len(uses) == 1
    assert uses[0].startswith("sudo -n -- ")


def test_nobody_is_asked_for_a_password_unasked(boards: Boards, sudo: Sudo, opened: Opened) -> None:
    stand_in = boards("h200")
    asked = sudo(stand_in, free=False, granted=True)
    guard = DeviceGuard(opened(), allow_control=True)
    with pytest.raises(PermissionRefused) as refused:
        guard.apply(graphics_clock_mhz=1200)
    assert "root" in refused.value.what
    assert "all but setting works" in refused.value.remedy
    assert "wattridge restore --out" in refused.value.remedy  # what root can install once
    assert [use.split()[:2] for use in asked.read_text().splitlines()] == [["sudo", "-n"]]
    assert stand_in.calls() == []


@pytest.mark.parametrize(
    ("asking", "names", "expected"),
    [
        (Asking.TERMINAL, ("sudo", "pkexec"), ["sudo", "--"]),
        (Asking.TERMINAL, ("pkexec",), ["pkexec"]),
        (Asking.WINDOW, ("sudo", "pkexec"), ["pkexec", "--disable-internal-agent"]),
    ],
)
def test_who_has_asked_for_control_may_be_asked_for_a_password(
    asking: Asking, names: tuple[str, ...], expected: list[str], boards: Boards, sudo: Sudo, opened: Opened
) -> None:
    stand_in = boards("h200")
    asked = sudo(stand_in, free=False, granted=True, names=names)
    guard = DeviceGuard(opened())
    notes = guard.allow(asking)
    assert notes
    guard.apply(graphics_clock_mhz=1200)
    assert stand_in.settings()["lock"] == (1200, 1200)
    assert asked.read_text().splitlines()[-1].split()[: len(expected)] == expected
    guard.forbid()
    assert stand_in.settings()["lock"] == (0, 0)
    with pytest.raises(PermissionRefused, match="only looked at"):
        guard.apply(graphics_clock_mhz=1200)


def test_a_wrong_password_is_one_clear_line(boards: Boards, sudo: Sudo, opened: Opened) -> None:
    stand_in = boards("h200")
    sudo(stand_in, free=False, granted=False)
    guard = DeviceGuard(opened())
    with pytest.raises(PermissionRefused, match="rights of root"):
        guard.allow(Asking.WINDOW)
    assert not guard.allowed
    assert stand_in.calls() == []


@pytest.mark.parametrize("asking", list(Asking))
def test_read_only_wins_over_everything(
    asking: Asking, boards: Boards, sudo: Sudo, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in = boards("h200")
    asked = sudo(stand_in, free=True)
    guard = DeviceGuard(opened(), allow_control=True)
    monkeypatch.setenv("WATTRIDGE_READ_ONLY", "1")
    for forbidden in (
        lambda: guard.apply(power_limit_w=300.0),
        lambda: guard.allow(asking),
        lambda: guard.restore_prior(),
        lambda: start_helper(stand_in.uuids[0], "board", asking),
    ):
        with pytest.raises(PermissionRefused, match="WATTRIDGE_READ_ONLY"):
            forbidden()
    assert asked.read_text() == ""
    assert stand_in.calls() == []


def test_a_guard_that_was_open_before_read_only_still_puts_back(
    boards: Boards, sudo: Sudo, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in = boards("h200")
    sudo(stand_in, free=True)
    before = stand_in.settings()
    guard = DeviceGuard(opened(), allow_control=True)
    guard.apply(graphics_clock_mhz=1200)
    monkeypatch.setenv("WATTRIDGE_READ_ONLY", "1")
    guard.close()
    assert stand_in.settings() == before


def test_the_copy_that_only_root_can_change_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    folder = Path(rights.__file__).parent / "helper"
    own = [sys.executable, "-I", "-S", "-B", str(folder), "GPU-x"]
    assert helper_command("GPU-x") == own
    everyones = tmp_path / "wattridge-control"
    everyones.write_text("")
    everyones.chmod(0o777)
    monkeypatch.setattr(rights, "INSTALLED", everyones)
    assert helper_command("GPU-x") == own
    monkeypatch.setattr(rights, "only_roots", lambda path: path == everyones)
    assert helper_command("GPU-x") == [str(everyones), "GPU-x"]


def test_only_roots_looks_at_every_folder_on_the_way(tmp_path: Path) -> None:
    assert only_roots(Path("/usr/bin/env").resolve())
    assert not only_roots(tmp_path / "not there")
    link = tmp_path / "link"
    link.symlink_to("/usr/bin/env")
    assert not only_roots(link)
    file = tmp_path / "file"
    file.write_text("")
    assert not only_roots(file)  # the folders above belong to whoever runs the tests, or to everybody


def test_a_user_without_any_rights_sees_everything_and_sets_nothing(boards: Boards) -> None:
    stand_in = boards("h200")
    data = stand_in.folder / "data"
    data.mkdir()
    data.chmod(0o777)
    environment = {"LD_LIBRARY_PATH": str(stand_in.folder), "WATTRIDGE_DATA": str(data), "PATH": "/nowhere"}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(NVML / "as_nobody.py"), *words],
            capture_output=True,
            text=True,
            env=environment,
            stdin=subprocess.DEVNULL,
        )

    seen = run("gpus")
    assert seen.returncode == 0, seen.stderr
    assert "NVIDIA H200" in seen.stdout
    watched = run("monitor", "--gpu", "0", "--duration", "0.3", "--json")
    assert watched.returncode == 0, watched.stderr
    refused = run("apply", "--gpu", "0", "--clock", "1200", "--allow-control")
    assert refused.returncode == 1
    assert "rights of root" in refused.stderr
    assert "run it as root" in refused.stderr
    assert stand_in.calls() == []
