"""A record that cannot be read: named by `gpus`, `restore` and the window, never taken for nothing left over."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from boards import AS_ROOT, StandIn

from app.base.errors import PermissionRefused, WattridgeError
from app.cli import main
from app.engine.control.guard import DeviceGuard
from app.engine.control.helper import record
from app.engine.control.left_over import all_left_over, left_over
from app.sensors.nvml.gpu import NvmlGpu
from app.sensors.nvml.library import LIBRARY

Boards = Callable[..., StandIn]
DAMAGE: dict[str, Callable[[str], str]] = {
    "another version": lambda text: text.replace('"version": 1', '"version": 2'),
    "an unknown field": lambda text: text[:-1] + ', "fan_percent": 80}',
    "an unknown setting": lambda text: text.replace('"locked_graphics_mhz"', '"fan_percent"'),
    "truncated": lambda text: text[: len(text) // 2],
    "empty": lambda text: "",
    "foreign": lambda text: '{"name": "left-pad", "version": "1.3.0"}',
    "huge": lambda text: text + " " * 10_000,
    "binary": lambda text: "\x00\x1b[31m" * 10,
}
UNDERSTOOD = ("another version", "an unknown field")  # of these all settings are known


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """`command("restore")`: exit status, JSON document and what was said."""

    def run(*words: str) -> tuple[int, Any, str]:
        LIBRARY.close()
        status = main([*words, "--json"])
        output = capsys.readouterr()
        return status, json.loads(output.out), output.err

    return run


def left_set(stand_in: StandIn, gpu: NvmlGpu) -> tuple[dict[str, Any], Path]:
    """Confirm a lock and a limit; the settings before, and the record."""
    before = {**stand_in.settings(), "limit": 650_000}
    guard = DeviceGuard(gpu, allow_control=True)
    guard.apply(graphics_clock_mhz=1200, power_limit_w=300.0)
    guard.confirm()
    guard.close()
    assert stand_in.settings() != before
    return before, Path(record.FOLDER, f"{stand_in.uuids[0]}.json")


@pytest.mark.parametrize("kind", DAMAGE)
def test_it_is_named_and_the_board_can_still_be_unlocked(
    kind: str, by_sudo: Boards, opened: Callable[..., NvmlGpu], command: Callable[..., Any]
) -> None:
    stand_in = by_sudo("h200")
    before, path = left_set(stand_in, opened())
    path.write_text(DAMAGE[kind](path.read_text()))
    damaged, is_set = path.read_bytes(), stand_in.settings()

    status, [board], said = command("gpus")
    assert status == 1
    assert path.name in board["left_over"]["unreadable"]
    assert str(path) in said
    assert "wattridge restore --defaults" in said
    assert "\x1b" not in said

    status, refused, said = command("restore")
    assert status == 1
    assert path.name in refused["error"]["what"]
    assert "--defaults" in refused["error"]["remedy"]
    assert "nothing is left over" not in said
    assert path.read_bytes() == damaged  # it stays until it is dealt with
    if kind in UNDERSTOOD:
        assert stand_in.settings() == before  # what it holds was put back
    elif kind == "an unknown setting":
        assert stand_in.settings() == {**before, "lock": (1200, 1200)}
    else:
        assert stand_in.settings() == is_set

    status, restored, said = command("restore", "--defaults")
    assert (status, restored["obeyed"]) == (0, True), said
    known = kind in (*UNDERSTOOD, "an unknown setting")
    after = stand_in.settings()
    assert (after["lock"], after["limit"]) == ((0, 0), 650_000 if known else 700_000)  # 700 W is the default
    assert path.with_suffix(".unreadable").read_bytes() == damaged

    assert command("restore")[0] == 0
    assert command("gpus")[0] == 0


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "status"), [("y\n", 0), ("\n", 1), ("", 1)])
def test_on_a_terminal_restore_asks_whether_to_unlock(
    answer: str, status: int, by_sudo: Boards, opened: Callable[..., NvmlGpu], monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in = by_sudo("h200")
    _, path = left_set(stand_in, opened())
    path.write_text("")
    said = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(sys, "stderr", said)
    LIBRARY.close()
    assert main(["restore"]) == status
    assert "Unlock its clocks and set its default power limit? [y/N]" in said.getvalue()
    assert stand_in.settings()["lock"] == ((0, 0) if status == 0 else (1200, 1200))


@pytest.mark.parametrize("kind", ["folder", "fifo", "link"])
def test_what_is_no_file_is_named_too(
    kind: str, by_sudo: Boards, opened: Callable[..., NvmlGpu], command: Callable[..., Any]
) -> None:
    stand_in = by_sudo("h200")
    _, path = left_set(stand_in, opened())
    path.unlink()
    {"folder": path.mkdir, "fifo": lambda: os.mkfifo(path), "link": lambda: path.symlink_to("/etc/hostname")}[kind]()
    assert command("gpus")[0] == 1
    assert command("restore")[0] == 1
    assert command("restore", "--defaults")[0] == 0
    assert stand_in.settings()["lock"] == (0, 0)
    assert command("restore")[0] == 0


@pytest.mark.parametrize("kind", ["truncated", "another version"])
@pytest.mark.parametrize("restored", [False, True], ids=["as found", "after restore"])
def test_a_session_neither_sets_nor_puts_back_a_board_whose_record_is_unreadable(
    restored: bool, kind: str, by_sudo: Boards, opened: Callable[..., NvmlGpu], command: Callable[..., Any]
) -> None:
    stand_in = by_sudo("h200")
    _, path = left_set(stand_in, opened())
    path.write_text(DAMAGE[kind](path.read_text()))
    if restored:
        assert command("restore")[0] == 1
    settings, calls, text = stand_in.settings(), stand_in.calls(), path.read_text()
    guard = DeviceGuard(opened(), allow_control=True)
    for _ in range(2):
        with pytest.raises(PermissionRefused, match=path.name) as refused:
            guard.apply(power_limit_w=400.0)
    guard.close()
    assert "wattridge restore --defaults" in refused.value.remedy
    assert (stand_in.settings(), stand_in.calls(), path.read_text()) == (settings, calls, text)


def test_defaults_are_only_for_what_is_not_known(
    by_sudo: Boards, opened: Callable[..., NvmlGpu], command: Callable[..., Any]
) -> None:
    stand_in = by_sudo("h200")
    before, _ = left_set(stand_in, opened())
    assert command("restore", "--defaults")[0] == 0
    assert stand_in.settings() == before  # 650 W, as recorded, not the default


def test_one_unreadable_record_does_not_keep_other_boards_from_being_put_back(
    by_sudo: Boards, opened: Callable[..., NvmlGpu], command: Callable[..., Any]
) -> None:
    stand_in = by_sudo("h200", "h200")
    _, path = left_set(stand_in, opened())
    before = stand_in.settings(1)
    second = DeviceGuard(opened(1), allow_control=True)
    second.apply(power_limit_w=300.0)
    second.confirm()
    second.close()
    path.write_text("")
    status, restored, said = command("restore")
    assert status == 1
    assert sorted(board["obeyed"] for board in restored["boards"]) == [False, True]
    assert path.name in said
    assert stand_in.settings(1) == before


def test_a_record_of_a_board_that_is_not_here_is_named(by_sudo: Boards, command: Callable[..., Any]) -> None:
    by_sudo("h200")
    folder = Path(record.FOLDER)
    folder.mkdir()
    name = "GPU-5f0e3c1a-1111-2222-3333-444455556666.json"
    (folder / name).write_text("")
    for verb in ("gpus", "restore"):
        status, _, said = command(verb)
        assert status == 1
        assert name in said


def test_records_that_cannot_be_listed_are_reported(by_sudo: Boards, command: Callable[..., Any]) -> None:
    stand_in = by_sudo("h200")
    Path(record.FOLDER).write_text("where the folder should be")
    found = left_over(stand_in.uuids[0])
    assert found is not None
    assert "Not a directory" in found.unreadable
    with pytest.raises(WattridgeError, match="cannot be read"):
        all_left_over()
    for verb in ("gpus", "restore"):
        assert command(verb)[0] == 1


@pytest.mark.skipif(not AS_ROOT, reason="only root can become another user here")
def test_a_record_that_the_user_may_not_read_is_reported(by_sudo: Boards, opened: Callable[..., NvmlGpu]) -> None:
    stand_in = by_sudo("h200")
    _, path = left_set(stand_in, opened())
    path.chmod(0)
    pid = os.fork()
    if pid == 0:
        os.setresuid(65534, 65534, 65534)
        found = left_over(stand_in.uuids[0])
        os._exit(0 if found is not None and "Permission denied" in found.unreadable else 1)
    assert os.waitpid(pid, 0)[1] == 0
