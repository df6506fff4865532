"""The helper as root installs it, started by the real sudo for an ordinary user, attacked, and removed again."""

from __future__ import annotations

import itertools
import json
import os
import pwd
import shutil
import stat
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import installation
import pytest
from as_nobody import NOBODY
from boards import StandIn, compiler
from fixtures.stand_in_fixtures import not_here

from app.base.errors import PermissionRefused, WattridgeError
from app.cli import main
from app.engine.control import installing
from app.engine.control.client import PYTHON, UNSAFE, Asking, helper_command
from app.engine.control.helper import policy
from app.engine.control.helper.__main__ import LAUNCHER, MANIFEST, unsafe_tree

OTHER = "GPU-00000000-0000-4000-8000-00000000000a"  # another board's
PATHS = {"PATH": "/usr/bin:/bin"}
Boards = Callable[..., StandIn]


class Machine:
    """A machine with one board and the real sudo, its parts of the helper below a folder of root's."""

    def __init__(self, folder: Path, stand_in: StandIn) -> None:
        self.folder, self.stand_in = folder, stand_in
        self.places = installation.places_below(folder)
        self.library = Path(self.places.library)
        self.launcher = self.library / LAUNCHER
        self.policy = Path(self.places.policy)
        self.board = stand_in.uuids[0]

    def install(self) -> dict[str, list[str]]:
        return installing.install(Asking.NEVER, places=self.places)

    def library_files(self) -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in self.library.rglob("*") if path.is_file()}

    def wattridge(self, *words: str, user: int = NOBODY, **environment: str) -> subprocess.CompletedProcess[str]:
        """The command as nobody, or as another user."""
        data = self.stand_in.folder / "data"
        data.mkdir(exist_ok=True)
        data.chmod(0o777)
        return subprocess.run(
            installation.command(self.places, self.stand_in.library, *words, user=user),
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            cwd="/",
            env={
                **PATHS,
                "LD_LIBRARY_PATH": str(self.stand_in.folder),
                "WATTRIDGE_DATA": str(data),
                **environment,
            },
        )

    def sudo(self, *words: str, lines: str = "", **more: Any) -> list[dict[str, Any]]:
        """The installed helper, started by the real sudo for nobody; its answers to these requests."""
        ran = subprocess.run(
            installation.as_nobody("sudo", "-n", "--", str(self.launcher), *(words or (self.board,))),
            input=lines,
            stdout=subprocess.PIPE,
            text=True,
            **{"cwd": "/", "env": PATHS, **more},
        )
        return [json.loads(line) for line in ran.stdout.splitlines()]

    @contextmanager
    def session(self, *prefix: str) -> Iterator[Callable[[str], Any]]:
        """The installed helper while it runs: `ask(line)` gives its reply."""
        words = [*prefix, str(self.launcher), self.board]
        process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/", env=PATHS)
        assert process.stdin is not None
        assert process.stdout is not None
        stdin, stdout = process.stdin, process.stdout

        def ask(line: str) -> Any:
            stdin.write(line)
            stdin.flush()
            return json.loads(stdout.readline())

        with stdout:
            stdout.readline()
            with stdin:
                yield ask
            process.wait(10)

    def everything(self) -> dict[str, tuple[int, int, bytes]]:
        """Every file and folder of the installation: its mode, owner and content."""
        found = {}
        for path in sorted(self.folder.rglob("*")):
            about = path.lstat()
            content = path.read_bytes() if stat.S_ISREG(about.st_mode) else b""
            found[str(path.relative_to(self.folder))] = (about.st_mode, about.st_uid, content)
        return found


@pytest.fixture
def machine(as_root: None, boards: Boards, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    if shutil.which("sudo") is None:
        not_here("sudo is not installed")
    if not os.access(PYTHON, os.X_OK):
        not_here(f"{PYTHON} is not installed")
    stand_in = boards("h200", "mi210")
    monkeypatch.delenv(UNSAFE)
    token = f"wattridge-test-{uuid.uuid4().hex[:12]}"
    folder, rules = Path("/opt", token), Path("/etc/sudoers.d", token)
    for each in (folder, folder / "polkit", folder / "systemd"):
        each.mkdir(mode=0o755, parents=True)
    one = Machine(folder, stand_in)
    installation.use(one.places, stand_in.library, monkeypatch.setattr)
    rule = f"nobody ALL=(root) NOTAFTER={datetime.now(UTC) + timedelta(minutes=5):%Y%m%d%H%M%SZ} NOPASSWD:"
    helpers = f"{rule} {one.launcher} GPU-*, {one.launcher} AMD-*"
    rules.write_text(f"{helpers}\n{rule} {PYTHON} -I -S -B -\n")  # void soon, should this be killed
    rules.chmod(0o440)
    allowed = subprocess.run(installation.as_nobody("sudo", "-n", "-l"), capture_output=True, text=True, cwd="/")
    try:
        if allowed.returncode:
            not_here(f"sudo does not work here: {allowed.stderr.strip()}")
        yield one
    finally:
        rules.unlink()
        shutil.rmtree(folder)


def set_clock(mhz: int) -> str:
    return json.dumps({"id": 1, "do": "set", "settings": {"graphics_clock_mhz": [mhz, mhz]}}) + "\n"


def set_limit(watts: int) -> str:
    return json.dumps({"id": 1, "do": "set", "settings": {"power_limit_w": watts}}) + "\n"


# --- the whole way ----------------------------------------------------------------------------------------------------


def test_an_ordinary_user_installs_sets_restores_and_removes_by_the_real_sudo(machine: Machine) -> None:
    before, empty = machine.stand_in.settings(), machine.everything()
    apply = ("apply", "--gpu", "0", "--clock", "1200", "--allow-control", "--keep", "--json")
    refused = machine.wattridge(*apply)
    assert refused.returncode == 1
    assert "not installed" in json.loads(refused.stdout)["error"]["what"]
    assert "wattridge helper install" in json.loads(refused.stdout)["error"]["remedy"]
    installed = machine.wattridge("helper", "install")
    assert installed.returncode == 0, installed.stderr
    assert f"Installed: {machine.library}" in installed.stdout
    assert machine.wattridge("helper").returncode == 0
    assert machine.stand_in.calls() == []
    applied = machine.wattridge(*apply)
    assert applied.returncode == 0, applied.stderr
    assert machine.stand_in.settings()["lock"] == (1200, 1200)
    [record] = Path(machine.places.records).glob("*.json")
    assert json.loads(record.read_text())["holder"]["uid"] == NOBODY
    removed = machine.wattridge("helper", "remove")
    assert removed.returncode == 0, removed.stderr
    assert machine.stand_in.settings() == before
    left = {name: entry for name, entry in machine.everything().items() if name not in ("lib",)}
    assert left == empty


def test_the_installed_helper_sets_a_board_of_amds_and_puts_it_back(machine: Machine) -> None:
    machine.install()
    stand_in, amd = machine.stand_in, machine.stand_in.uuids[1]
    before = stand_in.settings(1)
    hello, done = machine.sudo(amd, lines=set_limit(200))[:2]
    assert hello["state"]["name"] == "AMD Instinct MI210"
    assert done["state"]["applied"] == {"power_limit_w": 200}
    [call, back] = stand_in.calls()
    assert (call.function, call.b, back.function, back.b) == (
        "amdsmi_set_power_cap",
        200_000_000,
        call.function,
        280_000_000,
    )
    assert stand_in.settings(1) == before
    kept = machine.wattridge("apply", "--gpu", "amd:0", "--clock", "900", "--allow-control", "--keep", "--json")
    assert kept.returncode == 0, kept.stderr
    assert stand_in.settings(1)["lock"] == (899, 900)
    assert machine.wattridge("helper", "remove").returncode == 0  # puts every board back first
    assert stand_in.settings(1) == before


def test_what_is_installed_is_a_fixed_list_of_plain_files_that_only_root_can_change(machine: Machine) -> None:
    machine.install()
    files = {str(path.relative_to(machine.library)) for path in machine.library.rglob("*") if not path.is_dir()}
    helper = {f"wattridge/engine/control/helper/{name}.py" for name in ("__main__", *installing.MODULES)}
    around = {"wattridge/__init__.py", "wattridge/engine/__init__.py", "wattridge/engine/control/__init__.py"}
    binding = {f"wattridge/sensors/{name}" for name in ("__init__.py", "amd/__init__.py", "amd/binding.py")}
    assert files == helper | around | binding | {LAUNCHER, MANIFEST, "pynvml.py"}
    for path in [machine.library, *machine.library.rglob("*")]:
        about = path.lstat()
        executable = path.is_dir() or path.name == LAUNCHER
        assert (about.st_uid, about.st_gid, stat.S_IMODE(about.st_mode)) == (0, 0, 0o755 if executable else 0o644), path
    assert subprocess.run(["sha256sum", "--quiet", "-c", MANIFEST], cwd=machine.library).returncode == 0
    assert unsafe_tree(str(machine.library)) == ""


def test_every_module_of_the_helper_is_on_the_list(machine: Machine) -> None:
    """A new module that the installer does not know would be missed only on a user's machine."""
    own = Path(installing.__file__).parent / "helper"
    assert {path.stem for path in own.glob("*.py")} == {"__main__", *installing.MODULES}


def test_the_policy_for_polkit_and_the_unit_name_the_launcher() -> None:
    control = installing.resources() / "control"
    action = ElementTree.parse(control / "org.wattridge.control.policy").getroot()
    assert action.findtext("action/annotate") == f"/usr/lib/wattridge/{LAUNCHER}"
    assert action.findtext("action/defaults/allow_any") == "auth_admin"
    unit = (control / "wattridge-restore.service").read_text()
    assert f"ExecStart=/usr/lib/wattridge/{LAUNCHER} --restore\n" in unit
    assert "StateDirectory=wattridge\n" in unit
    for needed in ("ReadWritePaths=-/sys/devices", "DeviceAllow=char-drm rw", "DeviceAllow=char-kfd rw"):
        assert f"\n{needed}\n" in unit, "AMD's driver is set by files in /sys"


def test_the_unit_is_one_that_systemd_understands_and_keeps_apart(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    unit = tmp_path / "wattridge-restore.service"
    text = (installing.resources() / "control" / unit.name).read_text()
    unit.write_text(text.replace(f"/usr/lib/wattridge/{LAUNCHER}", "/bin/true"))
    verified = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True)
    assert (verified.returncode, verified.stderr) == (0, "")
    rated = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=30", str(unit)], capture_output=True, text=True
    )
    assert rated.returncode == 0, rated.stdout[-400:]  # exposure at most 3.0 of 10


def test_a_newer_version_replaces_the_installed_one_and_keeps_root_s_policy(machine: Machine) -> None:
    machine.install()
    machine.policy.write_text("[all boards]\nread_only = no\n")
    (machine.library / "wattridge" / "__init__.py").write_text("# of an older version\n")
    report = machine.install()
    assert f"{machine.policy} stays as it is" in report["notes"]
    assert machine.policy.read_text() == "[all boards]\nread_only = no\n"
    assert installing.installation().ready
    assert sorted(os.listdir(machine.library.parent)) == ["wattridge"]  # nothing of the change is left beside it


def test_a_helper_that_a_package_brought_is_left_to_the_package(machine: Machine) -> None:
    machine.install()
    tree = installing.tree("wattridge")
    for name, content in tree.items():
        (machine.library / name).write_bytes(content)
    assert unsafe_tree(str(machine.library)) == "", "its files are on the list, the mark among them"
    assert installing.installation(machine.library).current
    before = machine.library_files()
    for do in (installing.install, installing.remove):
        with pytest.raises(WattridgeError, match="came with the package wattridge"):
            do(Asking.NEVER, places=machine.places)
    assert machine.library_files() == before
    assert machine.policy.is_file()


def test_the_user_reads_that_the_installed_helper_is_of_another_version(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.install()
    assert installing.why_install() == ""
    newer = installing.tree
    monkeypatch.setattr(installing, "tree", lambda: {**newer(), MANIFEST: newer()[MANIFEST].replace(b"a", b"b")})
    assert installing.why_install() == installing.OTHER_VERSION
    assert installing.installation().ready  # and works


# --- attacks on the installed tree ------------------------------------------------------------------------------------


HELPER = "wattridge/engine/control/helper"


def append(path: Path) -> None:
    path.write_text(path.read_text() + "\n# changed\n")


def plant_bytecode(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"not even bytecode")


def give_away(path: Path) -> None:
    os.chown(path, NOBODY, NOBODY)


def replace_by_link(path: Path) -> None:
    path.rename(path.parent.parent / "elsewhere")
    path.symlink_to(path.parent.parent / "elsewhere")


# what is done to which path of the installed tree; the refusal names that path
ATTACKS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "a changed file": (f"{HELPER}/board.py", append),
    "planted bytecode": (f"{HELPER}/__pycache__/board.cpython-311.pyc", plant_bytecode),
    "an extra module": ("ctypes_of_mine.py", Path.touch),
    "another user's file": ("pynvml.py", give_away),
    "another user's folder": ("wattridge/engine", give_away),
    "a group can write": (HELPER, lambda path: path.chmod(0o775)),
    "the folder above can be written": ("..", lambda path: path.chmod(0o1777)),
    "a link in place of a file": ("pynvml.py", replace_by_link),
    "a link in place of the tree": (".", replace_by_link),
    "a missing file": (f"{HELPER}/policy.py", Path.unlink),
}


def refused_for(machine: Machine, kind: str) -> str:
    """Why the installed helper refuses a setting; nothing is set."""
    refused = machine.sudo(lines=set_clock(1200))[-1]["error"]  # started past the client's own check
    assert refused["kind"] == kind
    assert "\n" not in refused["what"]
    assert machine.stand_in.calls() == []
    return str(refused["what"])


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_tree_that_is_not_as_root_installed_it_does_not_run(attack: str, machine: Machine) -> None:
    machine.install()
    assert "state" in machine.sudo()[0]
    where, attacked = ATTACKS[attack]
    path = Path(os.path.normpath(machine.library / where))
    attacked(path)
    assert str(path) in refused_for(machine, "installation")
    with pytest.raises(PermissionRefused, match="may not run as root") as by_the_client:
        helper_command(machine.board, "board")
    assert str(path) in by_the_client.value.what
    assert "wattridge helper install" in by_the_client.value.remedy
    assert str(path) in installing.why_install()


def test_a_tree_without_its_list_of_files_does_not_run(machine: Machine) -> None:
    machine.install()
    (machine.library / MANIFEST).unlink()
    assert f"{machine.library} has no list of its files" in refused_for(machine, "installation")
    with pytest.raises(PermissionRefused, match="may not run as root"):
        helper_command(machine.board, "board")
    assert str(machine.library) in installing.why_install()


def test_nothing_of_the_user_s_environment_runs_as_root(machine: Machine) -> None:
    machine.install()
    evil = machine.stand_in.folder / "evil"
    evil.mkdir()
    ran = evil / "ran-as-root"
    code = f"import os\nif os.geteuid() == 0:\n    open({str(ran)!r}, 'w').close()\n"
    custom, library_of_python, ours = ("sitecustomize", "usercustomize"), ("json", "ctypes", "configparser"), ("app",)
    for name in (*custom, *library_of_python, *ours, "wattridge", "pynvml", "startup"):
        (evil / f"{name}.py").write_text(code)
    source, library = evil / "evil.c", evil / "evil.so"
    source.write_text(
        "#include <fcntl.h>\n#include <unistd.h>\n__attribute__((constructor)) static void run(void)"
        f'{{ if (geteuid() == 0) close(open("{ran}", O_CREAT | O_WRONLY, 0600)); }}\n'
    )
    subprocess.run([compiler() or "cc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    check = {**PATHS, "LD_PRELOAD": str(library)}
    subprocess.run(["/bin/true"], env=check, check=True)
    assert ran.exists(), "the attack itself works"
    ran.unlink()
    environment = {
        "PATH": f"{evil}:/usr/bin:/bin",
        "PYTHONPATH": str(evil),
        "PYTHONHOME": str(evil),
        "PYTHONSTARTUP": str(evil / "startup.py"),
        "PYTHONUSERBASE": str(evil),
        "PYTHONINSPECT": "1",
        "LD_LIBRARY_PATH": str(evil),
        "BASH_ENV": str(evil / "startup.py"),
        "HOME": str(evil),
    }
    preloading = ["/usr/bin/env", f"LD_PRELOAD={library}", *(f"{name}={value}" for name, value in environment.items())]
    words = installation.as_nobody(*preloading, "/usr/bin/sudo", "-n", "--", str(machine.launcher), machine.board)
    answered = subprocess.run(words, input=set_clock(1200), stdout=subprocess.PIPE, text=True, cwd=evil, env=PATHS)
    hello, reply = (json.loads(line) for line in answered.stdout.splitlines())
    assert hello["hello"] == 1
    assert "error" not in reply
    assert [call.a for call in machine.stand_in.calls() if call.function == "nvmlDeviceSetGpuLockedClocks"] == [1200]
    assert not ran.exists()


@pytest.mark.parametrize(
    "words", [("--restore",), ("GPU-x --restore",), ("BOARD", "--restore"), ("GPU-../../etc/passwd",)]
)
def test_a_rule_of_sudo_for_the_helper_gives_nothing_but_one_board(words: tuple[str, ...], machine: Machine) -> None:
    machine.install()
    words = tuple(word.replace("BOARD", machine.board) for word in words)
    assert [reply for reply in machine.sudo(*words) if "error" not in reply] == []
    assert machine.stand_in.calls() == []


# --- attacks on the installation --------------------------------------------------------------------------------------


WAYS = ("link", "group", "everybody", "user")
PLACES = ("library", "its parent", "policy's folder", "polkit", "systemd")


@pytest.mark.parametrize(
    ("way", "where"), [*itertools.product(WAYS, PLACES), *(("file", where) for where in PLACES[:3])]
)
def test_the_installer_refuses_a_place_that_others_can_write(way: str, where: str, machine: Machine) -> None:
    path = {
        "library": machine.library,
        "its parent": machine.library.parent,
        "policy's folder": machine.policy.parent,
        "polkit": machine.folder / "polkit",
        "systemd": machine.folder / "systemd",
    }[where]
    target = machine.stand_in.folder / "target"
    target.mkdir()
    path.parent.mkdir(exist_ok=True)
    if way == "link":
        if path.exists():
            path.rmdir()
        path.symlink_to(target)
    elif way == "file":
        path.write_text("")
    else:
        path.mkdir(exist_ok=True)
        path.chmod({"group": 0o775, "everybody": 0o1777, "user": 0o755}[way])
        os.chown(path, NOBODY if way == "user" else 0, 0)
    before = machine.everything()
    with pytest.raises(WattridgeError) as refused:
        machine.install()
    assert str(path) in refused.value.what
    if where != "policy's folder":
        assert machine.everything().keys() <= before.keys() | {"lib"}  # at most the folder it would have gone to
    assert os.listdir(target) == []


def test_what_is_exchanged_after_the_program_was_made_is_not_installed(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root reads no file of the user's, so there is none to be exchanged between a check and a copy."""
    program = installing.setup_program("install", machine.places)
    monkeypatch.setattr(installing, "_read", lambda path: b"raise SystemExit('exchanged')")
    ran = subprocess.run([PYTHON, "-ISB", "-"], input=program, capture_output=True, text=True, env={})
    assert ran.returncode == 0, ran.stdout
    assert unsafe_tree(str(machine.library)) == ""
    assert all(b"exchanged" not in path.read_bytes() for path in machine.library.rglob("*.py"))


def test_a_program_that_was_cut_or_changed_on_the_way_installs_nothing(machine: Machine) -> None:
    program = installing.setup_program("install", machine.places)
    at = program.index('"base64": "') + 2000
    for damaged in (
        program[: len(program) // 2],
        f"{program[:at]}{'A' if program[at] != 'A' else 'B'}{program[at + 1 :]}",
    ):
        ran = subprocess.run([PYTHON, "-ISB", "-"], input=damaged, capture_output=True, text=True, env={})
        assert ran.returncode != 0
        assert not machine.library.exists()


def test_an_ordinary_user_without_rights_installs_nothing(machine: Machine) -> None:
    program = installing.setup_program("install", machine.places)
    words = installation.as_nobody(PYTHON, "-ISB", "-")
    ran = subprocess.run(words, input=program, capture_output=True, text=True, cwd="/")
    assert json.loads(ran.stdout) == {"error": "this needs the rights of root"}
    # of a user whom no rule names: tests that run beside this one have rules for nobody and daemon
    refused = machine.wattridge("helper", "install", user=pwd.getpwnam("bin").pw_uid)
    assert refused.returncode == 1
    assert "needs the rights of root" in refused.stderr
    assert "--print | sudo" in refused.stderr  # what an administrator can do
    assert not machine.library.exists()


@pytest.fixture
def slow_sudo(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A sudo that reads nothing for a while, as it does while it asks for a password."""
    program = machine.stand_in.folder / "slow" / "sudo"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\n[ "$1" = -n ] && exit 1\nsleep 0.7\nshift\nexec "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    return machine


def test_a_password_may_take_its_time(slow_sudo: Machine) -> None:
    report = installing.install(Asking.TERMINAL, places=slow_sudo.places)
    assert report["done"][0].startswith(str(slow_sudo.library))
    assert unsafe_tree(str(slow_sudo.library)) == ""


def test_a_user_who_gives_up_is_not_waited_for(slow_sudo: Machine) -> None:
    Path(slow_sudo.stand_in.folder, "slow", "sudo").write_text('#!/bin/sh\n[ "$1" = -n ] && exit 1\nexec sleep 60\n')
    cancel = threading.Event()
    threading.Timer(0.5, cancel.set).start()
    with pytest.raises(PermissionRefused, match="rights of root"):
        installing.install(Asking.TERMINAL, cancel, slow_sudo.places)
    assert cancel.is_set()
    assert not slow_sudo.library.exists()


def test_the_program_for_an_administrator_is_the_one_that_would_be_run(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["helper", "install", "--print"]) == 0
    assert capsys.readouterr().out == installing.setup_program("install", machine.places)
    assert not machine.library.exists()


def test_only_one_installs_at_a_time(machine: Machine) -> None:
    machine.install()
    import fcntl

    held = os.open(machine.library.parent, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(WattridgeError, match="by another process"):
            machine.install()
    finally:
        os.close(held)


# --- removing ---------------------------------------------------------------------------------------------------------


def kept_by_a_user(machine: Machine) -> None:
    replies = machine.sudo(lines=set_clock(1200) + '{"id": 2, "do": "confirm"}\n')
    assert [reply for reply in replies if "error" in reply] == []
    assert machine.stand_in.settings()["lock"] == (1200, 1200)


def test_removing_puts_boards_back_first_and_names_the_rules_of_sudo(machine: Machine) -> None:
    before = machine.stand_in.settings()
    machine.install()
    kept_by_a_user(machine)
    Path(machine.places.sudoers).write_text(f"# none\n%gpu ALL=(root) NOPASSWD: {machine.launcher} GPU-*\n")
    report = installing.remove(Asking.NEVER, places=machine.places)
    assert machine.stand_in.settings() == before
    assert f"{machine.places.sudoers}:2 still names the helper: remove that rule with visudo" in report["notes"]
    assert sorted(machine.everything()) == ["lib", "polkit", "sudoers", "systemd"]
    assert f"{machine.board} is as it was before" in report["notes"]
    places = machine.places
    folders = [places.library, places.records, places.locks, str(machine.policy.parent)]
    assert sorted(report["done"]) == sorted([*folders, places.action, places.unit, places.policy])
    again = installing.remove(Asking.NEVER, places=machine.places)
    assert again["done"] == []
    assert "nothing of the helper is installed here" in again["notes"]


def test_where_a_board_cannot_be_put_back_nothing_is_removed(machine: Machine) -> None:
    machine.install()
    kept_by_a_user(machine)
    before = machine.everything()
    machine.stand_in.fault("nvmlDeviceResetGpuLockedClocks", 999)
    with pytest.raises(WattridgeError, match="is not put back") as refused:
        installing.remove(Asking.NEVER, places=machine.places)
    assert "--leave-records" in refused.value.what
    assert machine.everything().keys() == before.keys()
    assert installing.installation().ready
    report = installing.remove(Asking.NEVER, places=machine.places, leave_records=True)
    assert any("its record stays" in note for note in report["notes"])
    assert f"{machine.places.records} stays: Directory not empty" in report["notes"]
    assert [path.name for path in Path(machine.places.records).iterdir()] == [f"{machine.board}.json"]
    assert not machine.library.exists()


def test_a_package_puts_every_board_back_before_it_is_removed(machine: Machine) -> None:
    """The program that its removal runs: also what a user kept goes back, and where it cannot, that is said."""
    machine.install()
    before = machine.stand_in.settings()
    kept_by_a_user(machine)
    assert machine.stand_in.settings() != before
    files = machine.library_files()

    def put_back() -> tuple[int, dict[str, Any]]:
        program = installing.setup_program("put back", machine.places)
        done = subprocess.run(
            [PYTHON, "-I", "-S", "-B", "-"], input=program, capture_output=True, text=True, check=False, env=PATHS
        )
        return done.returncode, json.loads(done.stdout)

    with machine.session():
        status, said = put_back()
        assert status == 1
        assert f"a session sets {machine.board} just now" in said["error"]
    machine.stand_in.fault("nvmlDeviceResetGpuLockedClocks", 999)
    status, said = put_back()
    assert status == 1
    assert "is not put back" in said["error"]
    machine.stand_in.no_faults()
    status, said = put_back()
    assert (status, said["done"]) == (0, ["every board is as it was"])
    assert machine.stand_in.settings() == before
    assert list(Path(machine.places.records).iterdir()) == []
    assert machine.library_files() == files, "the package manager removes them"


def test_a_board_that_is_being_set_keeps_its_helper(machine: Machine) -> None:
    machine.install()
    with machine.session():
        with pytest.raises(WattridgeError, match=f"a session sets {machine.board} just now"):
            installing.remove(Asking.NEVER, places=machine.places)
        assert installing.installation().ready
    installing.remove(Asking.NEVER, places=machine.places)


def test_a_policy_that_root_wrote_outlives_the_helper(machine: Machine) -> None:
    machine.install()
    machine.policy.write_text("[all boards]\nread_only = yes\n")
    report = installing.remove(Asking.NEVER, places=machine.places)
    assert f"{machine.policy} was changed here, and stays" in report["notes"]
    assert machine.policy.read_text() == "[all boards]\nread_only = yes\n"


def test_read_only_does_not_remove(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.install()
    monkeypatch.setenv("WATTRIDGE_READ_ONLY", "1")
    with pytest.raises(PermissionRefused, match="WATTRIDGE_READ_ONLY=1"):
        installing.remove(Asking.NEVER, places=machine.places)
    assert machine.library.is_dir()


# --- root's policy ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[all boards]\nread_only = yes\n", "makes this board read-only"),
        ("[BOARD]\nread_only = yes\n", "makes this board read-only"),
        ("[all boards]\ngraphics_clock_mhz = 300:1100\n", "graphics_clock_mhz = 1200 is outside 300:1100"),
        ("[all boards]\nread_only = maybe\n", "neither yes nor no"),
        ("[all boards]\nreadonly = yes\n", "readonly is not one of"),
        ("[all boards]\nread_only = no\nread_only = no\n", "read_only is there twice"),
        ("[all of them]\nread_only = yes\n", "neither [all boards] nor the whole UUID"),
        ("[OTHER]\npower_limit_w = 5\n", "not a range LOW:HIGH"),
        ("read_only = yes\n", "line 1: no section stands above it"),
        ("[all boards]\nread_only = yes\xff\n", "neither yes nor no"),
        ("#" * 70_000, "larger than"),
    ],
)
def test_the_helper_itself_obeys_root_s_policy(text: str, why: str, machine: Machine) -> None:
    machine.install()
    machine.policy.write_text(text.replace("BOARD", machine.board).replace("OTHER", OTHER))
    assert "error" not in machine.sudo()[0], "it starts, to put boards back"
    refused = refused_for(machine, "policy")
    assert why in refused
    assert str(machine.policy) in refused


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"[{OTHER.upper()}]\nread_only = yes\n", 1),
        (f"[{OTHER.replace('GPU-', 'gpu-')}]\nread_only = yes\n", 1),
        ("[GPU-00000000]\nread_only = yes\n", 1),
        (f"[{OTHER[:-1]}]\nread_only = yes\n", 1),
        (f"[ {OTHER}]\nread_only = yes\n", 1),
        (f"[{OTHER} ]\nread_only = yes\n", 1),
        (f"[{OTHER}] read_only = yes\n", 1),
        (f"[{OTHER}\nread_only = yes\n", 1),
        ("[]\nread_only = yes\n", 1),
        ("[GPU-]\nread_only = yes\n", 1),
        ("[All Boards]\nread_only = yes\n", 1),
        ("[all  boards]\nread_only = yes\n", 1),
        ("[MIG-00000000-0000-4000-8000-000000000000]\nread_only = yes\n", 1),
        ("[all boards]\nusers = nobody,\n  alice\n", 3),  # no line goes on in the next one
        ("[all boards]\nread_only: yes\n", 2),
        ("[all boards]\nread_only\n", 2),
        ("[all boards]\n; read_only = yes\n", 2),
        ("[all boards]\nusers = nobody\x0bread_only = yes\n", 2),
        ("[all boards]\nusers = nobody\rread_only = yes\n", 2),
        ("[all boards]\nusers = nobody\u2028read_only = yes\n", 2),
        ("[all boards]\nread_only\xa0= yes\n", 2),
        ("\ufeff[all boards]\nread_only = yes\n", 1),
        (f"[{OTHER}]\nread_only = no\n[{OTHER}]\nread_only = yes\n", 3),
        (f"[{OTHER}]\nread_only = yes # as bought\n", 2),
        ("[all boards]\ngraphics_clock_mhz = 300:\n", 2),
    ],
)
def test_a_section_or_a_line_that_is_not_understood_forbids_every_setting(
    text: str, line: int, machine: Machine
) -> None:
    machine.policy.parent.mkdir()
    machine.policy.write_text(text)
    for board in (machine.board, OTHER, machine.stand_in.uuids[1]):
        assert f"{machine.policy}, line {line}: " in policy.require(board, {"power_limit_w": 400})


@pytest.mark.parametrize("text", ["  [all boards]\n\tread_only\t=  yes  \n", "[all boards]\r\nRead_Only=yes\r\n"])
def test_an_indented_line_counts_as_any_other(text: str, machine: Machine) -> None:
    machine.policy.parent.mkdir()
    machine.policy.write_bytes(text.encode())
    assert "read-only" in policy.require(machine.board, {"power_limit_w": 400})


def test_no_slip_of_a_key_in_a_policy_lets_a_board_be_set(machine: Machine) -> None:
    machine.policy.parent.mkdir()
    whole = f"[all boards]\nusers = nobody\n\n[{machine.board}]\n  read_only = yes\n"
    slips = [
        f"{whole[:at]}{typed}{whole[at + gone :]}"
        for at in range(whole.index("\n\n") + 2, len(whole) - 1)
        for gone, typed in ((1, ""), (0, " "), (0, "\n"), (0, "="), (0, "x"), (0, "["), (0, "]"), (0, whole[at]))
    ]
    for text in slips:
        machine.policy.write_text(text)
        assert policy.require(machine.board, {"power_limit_w": 400}), text


def test_what_the_policy_allows_can_be_set(machine: Machine) -> None:
    machine.install()
    text = (
        f"[all boards]\nread_only = yes\n[{machine.board}]\nread_only = no\npower_limit_w = 300:500\nusers = nobody\n"
    )
    machine.policy.write_text(text)
    _, allowed = machine.sudo(lines=set_limit(400))
    assert "error" not in allowed
    _, refused = machine.sudo(lines=set_limit(501))
    assert "power_limit_w = 501 is outside 300:500" in refused["error"]["what"]


@pytest.mark.parametrize(
    ("users", "may"),
    [("nobody", True), (str(NOBODY), True), ("@nogroup", True), ("root, @root", False), ("", False), ("nosuch", False)],
)
def test_only_the_users_of_the_policy_may_start_the_helper(users: str, may: bool, machine: Machine) -> None:
    machine.install()
    machine.policy.write_text(f"[all boards]\nusers = {users}\n")
    first, *_ = machine.sudo()
    assert ("error" not in first) == may
    if not may:
        assert first["error"] == {"kind": "policy", "what": f"{machine.policy} does not list user nobody"}


@pytest.mark.parametrize("way", ["owner", "group", "link", "folder", "fifo", "parent"])
def test_a_policy_that_others_could_have_written_forbids_every_setting(way: str, machine: Machine) -> None:
    machine.install()
    path = machine.policy
    if way == "owner":
        os.chown(path, NOBODY, NOBODY)
    elif way == "group":
        path.chmod(0o664)
    elif way == "parent":
        path.parent.chmod(0o777)
    else:
        path.unlink()
        {
            "link": lambda: path.symlink_to("/dev/null"),
            "folder": lambda: path.mkdir(),
            "fifo": lambda: os.mkfifo(path),
        }[way]()
    assert str(path) in refused_for(machine, "policy")


def test_the_policy_holds_for_sessions_that_run_already_but_never_keeps_a_board_from_going_back(
    machine: Machine,
) -> None:
    before = machine.stand_in.settings()
    machine.install()
    with machine.session(*installation.as_nobody("sudo", "-n", "--")) as ask:
        assert "error" not in ask(set_clock(1200))
        machine.policy.write_text("[all boards]\nread_only = yes\n")
        assert "read-only" in ask(set_clock(900))["error"]["what"]
        assert "read-only" in ask('{"id": 2, "do": "confirm"}\n')["error"]["what"]
        assert machine.stand_in.settings()["lock"] == (1200, 1200)
        assert "error" not in ask('{"id": 3, "do": "reset"}\n')
        assert machine.stand_in.settings() == before


def test_a_user_reads_of_the_policy_before_anything_is_asked_of_root(machine: Machine) -> None:
    machine.install()
    kept_by_a_user(machine)
    machine.policy.write_text("[all boards]\nread_only = yes\n")
    refused = machine.wattridge("apply", "--gpu", "0", "--clock", "900", "--allow-control", "--json")
    assert refused.returncode == 1
    error = json.loads(refused.stdout)["error"]
    assert f"{machine.policy} makes this board read-only" in error["what"]
    assert "wattridge helper" in error["remedy"]
    restored = machine.wattridge("restore")  # which a policy never forbids
    assert restored.returncode == 0, restored.stderr
    assert machine.stand_in.settings()["lock"] == (0, 0)


def test_the_command_says_what_is_wrong_with_the_policy(machine: Machine) -> None:
    machine.install()
    machine.policy.write_text("[all boards]\nusers\n")
    shown = machine.wattridge("helper")
    assert shown.returncode == 1
    assert f"Nothing may be set: {machine.policy}" in shown.stdout or str(machine.policy) in shown.stdout


# --- Python -----------------------------------------------------------------------------------------------------------


def test_without_its_python_the_error_names_the_one_that_is_needed(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    from app.engine.control import client

    machine.install()
    monkeypatch.setattr(client, "PYTHON", "/usr/bin/python-that-is-not-here")
    with pytest.raises(PermissionRefused, match=r"needs /usr/bin/python-that-is-not-here, from 3\.9"):
        helper_command(machine.board, "board")
    with pytest.raises(WattridgeError, match="is missing"):
        machine.install()


def pythons() -> list[str]:
    """Every Python that this machine has by its version's name."""
    named = [path for minor in range(6, 16) if (path := shutil.which(f"python3.{minor}")) is not None]
    asked = [
        subprocess.run([path, "-ISc", "import sys; print(sys.executable)"], capture_output=True, text=True)
        for path in (PYTHON, sys.executable, *named)
    ]  # some only stand for the real one, as pyenv's do
    return sorted({os.path.realpath(answer.stdout.strip()) for answer in asked if answer.returncode == 0})


@pytest.mark.parametrize("python", pythons())
def test_the_installed_helper_runs_from_python_3_9_and_says_so_to_an_older_one(python: str, machine: Machine) -> None:
    machine.install()
    version = subprocess.run(
        [python, "-ISc", "import sys; print(sys.version_info[1])"], capture_output=True, text=True, check=True
    )
    ran = subprocess.run(
        [python, "-ISB", str(machine.launcher), machine.board],
        input=set_clock(1200),
        capture_output=True,
        text=True,
        env={},
    )
    replies = [json.loads(line) for line in ran.stdout.splitlines()]
    if int(version.stdout) >= 9:
        assert "error" not in replies[0]
        assert replies[1]["state"]["applied"] == {"graphics_clock_mhz": [1200, 1200]}
    else:
        [refused] = replies
        assert "needs Python 3.9 or later" in refused["error"]["what"]
        assert machine.stand_in.calls() == []
    assert ran.stderr == ""


def test_every_file_of_the_helper_is_of_python_3_9() -> None:
    import ast

    own = Path(installing.__file__).parent
    for path in [*(own / "helper").glob("*.py"), own / "root_setup.py"]:
        ast.parse(path.read_text(), feature_version=(3, 9))
    for path in (own / "helper" / "__main__.py", own / "root_setup.py"):  # these say that a Python is too old
        ast.parse(path.read_text(), feature_version=(3, 6))
