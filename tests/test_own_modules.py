"""Every child process that runs a module of ours starts also where the program is frozen into a folder without Python.

The frozen program is played by a script that does what its entry does, and that a bare `python -m` would not reach.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from app.base import installation
from app.base.errors import PermissionRefused
from app.base.paths import _PACKAGE as APP
from app.base.processes import RUN, lone_module_command, module_command
from app.engine.children.python import python_environment
from app.engine.control import client
from app.engine.runner.kernels.process import RunnerProcess
from app.engine.workloads.command import last_matches

_ENTRY = """#!{python}
import sys
sys.path.insert(0, {root!r})
sys.frozen = True
sys.executable = sys.argv[0]
with open({log!r}, "a") as log:
    log.write(" ".join(sys.argv[1:3]) + "\\n")
from app.frozen import main
sys.exit(main())
"""
_NAMES_IT = {  # and why
    "base/processes.py": "the one place",
    "engine/control/root_setup.py": "run by root's own Python, which it then calls again",
    "engine/control/client.py": "looks at who can change it",
    "engine/session/sides.py": "runs a user's script, in a frozen copy by the system's Python",
    "engine/report/reproduce.py": "in a script that is written for the user's Python",
}


@pytest.fixture
def frozen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """This process is a frozen program; what it was called for, line by line, is in the file returned."""
    program, log = tmp_path / "a folder" / "wattridge", tmp_path / "log"
    program.parent.mkdir()
    program.write_text(_ENTRY.format(python=sys.executable, root=str(APP.parent), log=str(log)))
    program.chmod(0o755)
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(sys, "executable", str(program))
    return log


@pytest.mark.skipif(sys.platform == "win32", reason="the script is started by its first line")
def test_a_frozen_program_runs_its_own_modules(frozen: Path) -> None:
    assert last_matches({"n": r"n=(\d+)"}, "n=1\nn=23") == {"n": "23"}
    assert frozen.read_text().split() == [RUN, "app.engine.workloads.matching_child"]


@pytest.mark.skipif(sys.platform == "win32", reason="the script is started by its first line")
def test_a_frozen_program_starts_its_runner(frozen: Path) -> None:
    runner = RunnerProcess("app.engine.runner.host.backend", "0", {})
    try:
        runner.ready()
    finally:
        runner.close()
    assert frozen.read_text().split() == [RUN, "app.engine.runner.kernels.worker"]


@pytest.mark.skipif(sys.platform == "win32", reason="the script is started by its first line")
def test_a_frozen_program_calls_its_own_commands(frozen: Path, tmp_path: Path) -> None:
    """Its library stays on the path, although what lies first there is no folder of ours."""
    program = Path(sys.executable)
    entry = program.read_text().replace(f"sys.path.insert(0, {str(APP.parent)!r})", (
        f"sys.path[:0] = ['/base_library.zip', {str(APP.parent)!r}]\n"
        "import atexit\natexit.register(lambda: print(sys.path[0]))"
    ))  # fmt: skip
    program.write_text(entry)
    done = subprocess.run(module_command("app", "strategies", "--json"), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "/base_library.zip"


@pytest.mark.skipif(os.name != "posix", reason="the reaper is of POSIX")
def test_a_frozen_program_that_is_killed_takes_what_it_started_with_it(frozen: Path, tmp_path: Path) -> None:
    told, python = tmp_path / "pid", Path(sys.executable).read_text().splitlines()[0].removeprefix("#!")
    code = (
        f"import sys; sys.path.insert(0, {str(APP.parent)!r}); sys.frozen = True; sys.executable = {sys.executable!r}\n"
        "import os, subprocess\n"
        "from app.engine.children.ending import ends_with_us\n"
        "process = subprocess.Popen(['sleep', '60'])\n"
        "with ends_with_us(process.pid, group=False):\n"
        f"    open({str(told)!r}, 'w').write(str(process.pid))\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([python, "-I", "-c", code], check=False, timeout=60)
    process = int(told.read_text())
    until = time.monotonic() + 60
    while _runs(process):
        assert time.monotonic() < until
        time.sleep(0.05)
    assert f"{RUN} app.engine.children.reaper" in frozen.read_text()


@pytest.mark.skipif(sys.platform == "win32", reason="the script is started by its first line")
@pytest.mark.parametrize("words", [["numpy"], [], ["apple.cli"], [""]])
def test_a_frozen_program_runs_no_other_module(frozen: Path, words: list[str]) -> None:
    done = subprocess.run([sys.executable, RUN, *words], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert "is no module of this program" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="the script is started by its first line")
def test_programs_of_the_user_get_their_own_libraries_back(frozen: Path, tmp_path: Path) -> None:
    """The bootloader's folder of libraries would break compilers and sudo that are started from here."""
    code = "import json, os; print(json.dumps(dict(os.environ)))"
    entry = Path(sys.executable).read_text().replace("sys.frozen = True", "sys.frozen = True; sys._MEIPASS = '/bundle'")
    asking = tmp_path / "asking"
    asking.write_text(entry.replace("from app.frozen import main\nsys.exit(main())", f"from app import frozen\n"
                                    f"frozen._give_back_environment()\n{code}\n"))  # fmt: skip
    asking.chmod(0o755)

    def environment(**given: str) -> dict[str, str]:
        done = subprocess.run([str(asking)], env={"PATH": "/usr/bin:/bin", **given}, capture_output=True, check=True)
        return {name: value for name, value in json.loads(done.stdout).items() if "LIBRARY" in name or "PYI" in name}

    assert environment(LD_LIBRARY_PATH="/bundle", _PYI_ARCHIVE_FILE="/bundle/x") == {}
    assert environment(LD_LIBRARY_PATH="/bundle", LD_LIBRARY_PATH_ORIG="/opt/cuda") == {"LD_LIBRARY_PATH": "/opt/cuda"}
    assert environment(LD_LIBRARY_PATH="/opt/cuda") == {"LD_LIBRARY_PATH": "/opt/cuda"}, "the user's own stays"


@pytest.mark.skipif(os.name != "posix", reason="boards are set on Linux only")
def test_control_from_a_folder_that_others_can_write_is_refused(
    frozen: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(client.UNSAFE, raising=False)
    monkeypatch.setattr(client, "LIBRARY", tmp_path / "not installed")
    for user in (0, 1000):
        monkeypatch.setattr(os, "geteuid", lambda user=user: user)
        with pytest.raises(PermissionRefused) as refused:
            client.helper_command("GPU-x", "board")
        assert "wattridge helper install" in refused.value.remedy
        assert "is not installed" in refused.value.what
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    looked_at = []
    monkeypatch.setattr(client, "unsafe_link", lambda path: looked_at.append(path) or "")
    monkeypatch.setattr(client, "unsafe", lambda path: looked_at.append(path) or "")
    assert client.helper_command("GPU-x", "board") == [sys.executable, RUN, "app.engine.control.helper", "GPU-x"]
    assert sys.executable in looked_at, "root's own folder is looked at whole, the program in it"


@pytest.mark.parametrize("system_has", [(), ("libEGL.so.1",), ("libEGL.so.1", "libGLdispatch.so.0", "libxcb.so.1")])
def test_a_frozen_program_lends_qt_what_the_system_lacks(
    system_has: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the order in which they need each other, and nothing in place of the system's own."""
    needs = {"libEGL.so.1": "libGLdispatch.so.0", "libGLdispatch.so.0": "libxcb.so.1", "libxcb.so.1": ""}
    (tmp_path / "system").mkdir()
    for name in needs:
        (tmp_path / "system" / name).touch()
    loaded = ["", *system_has]

    def loads(library: str) -> bool:
        name = Path(library).name
        if name in loaded:
            return True
        if library == name or needs[name] not in loaded:
            return False
        loaded.append(name)
        return True

    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(sys, "_MEIPASS", str(tmp_path), raising=False)
    monkeypatch.setattr(installation, "_loads", loads)
    monkeypatch.setattr(installation, "_FONT_CONFIGURATIONS", (str(tmp_path / "no fonts.conf"),))
    monkeypatch.setenv("FONTCONFIG_FILE", "the user's")
    installation.lend_to_qt()
    assert sorted(loaded[1:]) == sorted(needs)
    assert os.environ["FONTCONFIG_FILE"] == "the user's"
    monkeypatch.delenv("FONTCONFIG_FILE")
    installation.lend_to_qt()
    assert os.environ["FONTCONFIG_FILE"] == str(tmp_path / "fonts" / "fonts.conf")


def test_a_python_runs_them_without_the_working_directory() -> None:
    words = module_command("app.engine.workloads.matching_child")
    assert words[:3] == [sys.executable, "-P", "-m"]
    words = lone_module_command("app.engine.workloads.matching_child")
    assert words[1:4] == ["-I", "-S", "-B"]
    assert Path(words[4]).is_file()
    assert Path(lone_module_command("app.engine.control.helper")[4]).is_dir()
    done = subprocess.run(words, input=b'{"patterns": {}, "text": ""}', env=python_environment(), check=False)
    assert done.returncode == 0


def test_nothing_else_names_the_interpreter_in_a_command_line() -> None:
    """A list that begins with `sys.executable` is a command line that no frozen program can run."""
    naming = set()
    for path in APP.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "sys.executable" in text else ():
            if isinstance(node, ast.List | ast.Tuple) and node.elts and ast.unparse(node.elts[0]) == "sys.executable":
                naming.add(path.relative_to(APP).as_posix())
    assert naming <= set(_NAMES_IT)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_lone_module_is_found_where_the_package_has_another_name_than_its_folder() -> None:
    assert Path(lone_module_command("wattridge.engine.children.reaper")[4]).is_file()
