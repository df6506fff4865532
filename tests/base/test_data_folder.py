"""What is kept in the data folder is for the user alone; what others keep beside it is left alone."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.base import paths
from app.base.files import write_text
from app.base.paths import is_private, private_folder
from app.cli import main
from app.engine.results.state import SessionState
from app.engine.store.database import Store

pytestmark = pytest.mark.skipif(os.name != "posix", reason="POSIX permissions")


@pytest.fixture(params=[0o000, 0o022, 0o077], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): stat.S_IMODE(path.lstat().st_mode) for path in [folder, *folder.rglob("*")]}


def assert_private(folder: Path) -> None:
    for name, mode in modes(folder).items():
        assert mode & 0o077 == 0, (name, oct(mode))


def test_whatever_a_command_keeps_there(own_data_folder: Path, umask: int) -> None:
    assert main(["demo", "--no-window", "--max-evaluations", "3"]) == 0
    assert main(["export"]) == 0
    assert main(["apply", "--gpu", "simulated:a100", "--clock", "900", "--keep"]) == 0
    assert_private(own_data_folder)
    kept = set(modes(own_data_folder))
    assert {"wattridge.sqlite", "exports"} <= kept
    script = next((own_data_folder / "exports").glob("sgemm-a100-1-*-2/*.sh"))
    assert os.access(script, os.X_OK)


def test_what_sqlite_puts_beside_the_database(own_data_folder: Path, umask: int) -> None:
    with Store() as store:
        assert store.sessions() == []
        store.set_state(1, SessionState.DONE)
        assert {"wattridge.sqlite-wal", "wattridge.sqlite-shm"} <= set(modes(own_data_folder))
        assert_private(own_data_folder)


def test_what_an_earlier_version_left_open_is_closed(own_data_folder: Path) -> None:
    (own_data_folder / "exports" / "session-1").mkdir(parents=True)
    for name in ("wattridge.sqlite", "device-log.jsonl", "exports/session-1/a.json", "exports/session-1/run.sh"):
        (own_data_folder / name).write_bytes(b"")
    for path in (own_data_folder, *own_data_folder.rglob("*")):
        path.chmod(0o777 if path.is_dir() or path.suffix == ".sh" else 0o666)
    assert main(["sessions"]) == 0
    assert_private(own_data_folder)
    assert stat.S_IMODE((own_data_folder / "exports/session-1/run.sh").stat().st_mode) == 0o700


def test_a_folder_of_the_users_own_keeps_its_rights(own_data_folder: Path, tmp_path: Path) -> None:
    """WATTRIDGE_DATA may name any folder, even the home folder."""
    own_data_folder.mkdir(mode=0o755)
    (own_data_folder / "thesis.txt").write_text("mine")
    (own_data_folder / "thesis.txt").chmod(0o644)
    (tmp_path / "elsewhere").mkdir(mode=0o755)
    (own_data_folder / "logs").symlink_to(tmp_path / "elsewhere")
    (own_data_folder / "profiles.json").symlink_to(own_data_folder / "thesis.txt")
    assert main(["sessions"]) == 0
    assert stat.S_IMODE((own_data_folder / "thesis.txt").stat().st_mode) == 0o644
    assert stat.S_IMODE((tmp_path / "elsewhere").stat().st_mode) == 0o755
    assert stat.S_IMODE(own_data_folder.stat().st_mode) == 0o755
    assert stat.S_IMODE((own_data_folder / "wattridge.sqlite").stat().st_mode) == 0o600


def test_a_file_written_elsewhere_has_the_rights_that_the_umask_gives(tmp_path: Path, umask: int) -> None:
    plain = write_text(tmp_path / "out" / "a.json", "{}")
    script = write_text(tmp_path / "out" / "a.sh", "#!/bin/sh", executable=True)
    assert stat.S_IMODE(plain.stat().st_mode) == 0o666 & ~umask
    assert stat.S_IMODE(script.stat().st_mode) == 0o777 & ~umask


def test_two_first_starts_at_once(own_data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failures: list[Exception] = []

    def begin() -> None:
        try:
            private_folder("exports", "session-1")
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=begin) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert_private(own_data_folder)


def test_what_is_in_the_folder_and_what_is_not(own_data_folder: Path, tmp_path: Path) -> None:
    private_folder()
    (tmp_path / "link").symlink_to(own_data_folder)
    assert is_private(own_data_folder / "exports" / "x")
    assert is_private(tmp_path / "link" / "x")
    assert not is_private(tmp_path / "x")
    assert not is_private(Path(f"{own_data_folder}-other") / "x")
    assert paths.data_folder() == own_data_folder
