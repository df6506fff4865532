"""Where the rights come from: root's own, sudo without a password, a prompt only where a person has asked for one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pynvml
import pytest
from boards import StandIn

from app.base.errors import PermissionRefused
from app.engine.control import client
from app.engine.control.client import UNSAFE, Asking, helper_command, start_helper
from app.engine.control.guard import DeviceGuard
from app.engine.control.helper import __main__ as launcher
from app.engine.control.helper.__main__ import unsafe_link, unsafe_path
from app.sensors.nvml.gpu import NvmlGpu

NVML = Path(__file__).parents[2] / "nvml"
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
    assert "run it as root" in refused.value.remedy
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


@pytest.fixture
def checked_copy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Nothing is installed, and the unsafe way is not asked for."""
    monkeypatch.delenv(UNSAFE, raising=False)
    monkeypatch.setattr(client, "LIBRARY", tmp_path / "not installed")
    return Path(client.__file__).parent / "helper"


def test_an_ordinary_user_starts_nothing_but_an_installed_helper(
    checked_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(PermissionRefused, match="is not installed") as refused:
        helper_command("GPU-x", "board")
    assert "wattridge helper install" in refused.value.remedy


def test_root_may_use_a_copy_that_is_root_s_alone(checked_copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    looked_at: list[str] = []

    def safe(path: str) -> str:
        looked_at.append(path)
        return ""

    monkeypatch.setattr(client, "unsafe", safe)
    monkeypatch.setattr(launcher, "unsafe_path", safe)
    assert helper_command("GPU-x", "board") == [sys.executable, "-I", "-S", "-B", str(checked_copy), "GPU-x"]
    packages = [checked_copy, *list(checked_copy.parents)[:3]]
    wanted = {str(package / "__init__.py") for package in packages}
    wanted |= {str(path) for path in checked_copy.rglob("*") if path.is_file()}
    amd = checked_copy.parents[2] / "sensors" / "amd"
    wanted |= {str(path) for path in (amd.parent / "__init__.py", amd / "__init__.py", amd / "binding.py")}
    wanted |= {os.path.realpath(pynvml.__file__), os.path.realpath(sys.executable), os.path.realpath(json.__file__)}
    assert wanted <= set(looked_at)


def test_a_path_over_links_is_as_safe_as_every_link_on_it(tmp_path: Path, as_root: None) -> None:
    """As ROCm lies: /opt/rocm is a link to a version's folder, and the library in it one to its version."""
    python = os.path.realpath("/usr/bin/env")
    if unsafe_path(python):
        pytest.skip("a file that is root's alone is needed")
    assert unsafe_link(python) == unsafe_link("/usr/bin/env") == ""
    (tmp_path / "rocm").symlink_to("/usr/bin")
    os.lchown(tmp_path / "rocm", 65534, 65534)
    assert "belongs to user 65534" in unsafe_link(str(tmp_path / "rocm" / "env"))
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert unsafe_link(str(tmp_path / "loop"))


def test_root_does_not_use_a_copy_that_others_can_change(checked_copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    theirs = str(checked_copy / "board.py")
    monkeypatch.setattr(launcher, "unsafe_path", lambda path: "")
    monkeypatch.setattr(client, "unsafe", lambda path: f"{path} belongs to user 1000" if path == theirs else "")
    with pytest.raises(PermissionRefused, match=r"board\.py belongs to user 1000") as refused:
        helper_command("GPU-x", "board")
    assert "wattridge helper install" in refused.value.remedy


def test_the_unsafe_way_has_to_be_asked_for_and_warns_every_time(
    boards: Boards, sudo: Sudo, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in = boards("h200")
    sudo(stand_in, free=True)
    for _ in range(2):
        start_helper(stand_in.uuids[0], "board", Asking.NEVER).close()
        assert f"WARNING: {UNSAFE}=1 runs files as root that others" in capfd.readouterr().err
    monkeypatch.setenv(UNSAFE, "yes")  # only 1 asks for it
    monkeypatch.setattr(client, "LIBRARY", stand_in.folder / "not installed")
    with pytest.raises(PermissionRefused, match="is not installed"):
        start_helper(stand_in.uuids[0], "board", Asking.NEVER)


def test_a_path_is_root_s_alone_only_with_every_folder_on_the_way(tmp_path: Path) -> None:
    assert unsafe_path(os.path.realpath("/usr/bin/env")) == ""
    assert "No such file" in unsafe_path(str(tmp_path / "not there"))
    link = tmp_path / "link"
    link.symlink_to("/usr/bin/env")
    assert unsafe_path(str(link))
    file = tmp_path / "file"
    file.write_text("")
    assert unsafe_path(str(file))  # the folders above belong to whoever runs the tests, or to everybody


def test_watching_boards_needs_nothing_that_only_unix_has() -> None:
    hidden = "import sys; sys.modules.update(dict.fromkeys(('fcntl', 'grp', 'pwd', 'resource'))); "
    ran = subprocess.run(
        [
            sys.executable,
            "-c",
            f"{hidden}import app.engine.control.guard, app.commands.helper, app.commands.control",
        ],
        capture_output=True,
        text=True,
        cwd=Path(client.__file__).parents[3],
    )
    assert ran.returncode == 0, ran.stderr


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
    assert "the helper that sets clocks and caps is not installed" in refused.stderr
    assert "wattridge helper install" in refused.stderr
    assert stand_in.calls() == []
