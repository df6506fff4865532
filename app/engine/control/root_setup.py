"""Installs and removes the helper, as root. A program of its own, which root runs once and with the user's consent.

`installing.py` sends this text and one JSON document with the contents of every file, both through a pipe, to
`/usr/bin/python3 -I -S -B -`. Root reads no file of the user's: what was shown is what is installed, and nothing can be
exchanged between a check and a copy. Folders are opened one below the other and checked while they are held open, so
that none can be replaced by a link; files are written beside their place and moved there whole.

It ends with one line of JSON: {"done": [...], "notes": [...]}, or {"error": "..."} and exit status 1.
"""

import base64
import fcntl
import hashlib
import json
import os
import signal
import stat
import subprocess
import sys

if sys.version_info < (3, 9):  # noqa: UP036  (this is not the Python that the program itself runs on)
    print(json.dumps({"error": f"the helper needs Python 3.9 or later; {sys.executable} is {sys.version.split()[0]}"}))
    sys.exit(1)
try:
    import ctypes  # noqa: F401
except ImportError as missing:
    print(json.dumps({"error": f"the helper needs Python's whole standard library; {sys.executable}: {missing}"}))
    sys.exit(1)

import contextlib
from collections.abc import Iterator
from typing import Any

OTHERS_CAN_WRITE = 0o022
READ_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
NEW_FILE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
READ_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
PUT_BACK_S = 60.0


class Refused(Exception):
    """Nothing more is done; one line says why."""


def main(order: dict[str, Any]) -> int:
    """Carry out an order: {"do": "install", "remove" or "put back", "places": {...}, "tree": {...}, ...}."""
    done: list[str] = []
    notes: list[str] = []
    try:
        if os.geteuid() != 0:
            raise Refused("this needs the rights of root")
        os.umask(0o022)
        os.chdir("/")
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, how systemctl ended would not be known
        if order["do"] == "install":
            _install(order, done, notes)
        elif order["do"] == "put back":
            _put_back_all(order, done)
        else:
            _remove(order, done, notes)
    except (Refused, OSError) as error:
        before = f" (before that: {'; '.join(done)})" if done else ""
        print(json.dumps({"error": f"{error}{before}"}))
        return 1
    print(json.dumps({"done": done, "notes": notes}))
    return 0


# --- install ----------------------------------------------------------------------------------------------------------


def _install(order: dict[str, Any], done: list[str], notes: list[str]) -> None:
    tree = {name: _content(name, entry) for name, entry in order["tree"].items()}
    files = {path: _content(path, entry) for path, entry in order["files"].items()}
    library = order["places"]["library"]
    for path in files:
        if os.path.isdir(os.path.dirname(path)):
            with _folder(os.path.dirname(path), make=False):
                pass  # refused now, before anything is changed
    with _folder(os.path.dirname(library), make=True) as parent:
        _only_setup(parent)
        name = os.path.basename(library)
        _existing_folder(parent, name, library)
        _not_of_a_package(library, order["packaged"])
        new, old = f".{name}.new", f".{name}.old"
        _delete(parent, new)
        _delete(parent, old)
        os.mkdir(new, 0o755, dir_fd=parent)
        with _below(parent, new, library) as folder:
            for path, (content, mode) in sorted(tree.items()):
                with _folders_below(folder, os.path.dirname(path)) as inner:
                    _write(inner, os.path.basename(path), content, mode)
        if _kind(parent, name) is not None:
            os.rename(name, old, src_dir_fd=parent, dst_dir_fd=parent)
        os.rename(new, name, src_dir_fd=parent, dst_dir_fd=parent)
        os.fsync(parent)
        _delete(parent, old)
        done.append(f"{library}: {len(tree)} files, which only root can change")
    for path, (content, mode) in files.items():
        entry = order["files"][path]
        above = os.path.dirname(path)
        if entry["if_folder"] and not os.path.isdir(above):
            notes.append(f"{above} is not here: {os.path.basename(path)} was left out")
            continue
        with _folder(above, make=not entry["if_folder"]) as folder:
            if entry["keep"] and _kind(folder, os.path.basename(path)) is not None:
                notes.append(f"{path} stays as it is")
                continue
            _replace(folder, os.path.basename(path), content, mode, path)
            done.append(path)
    if order["systemd"]:
        _systemctl(["daemon-reload"], notes)
        _systemctl(["enable", "--quiet", os.path.basename(order["places"]["unit"])], notes)


def _content(name: str, entry: dict[str, Any]) -> tuple[bytes, int]:
    content = base64.b64decode(entry["base64"], validate=True)
    if hashlib.sha256(content).hexdigest() != entry["sha256"]:
        raise Refused(f"{name} did not arrive whole; nothing was changed")
    return content, 0o755 if entry["executable"] else 0o644


# --- remove -----------------------------------------------------------------------------------------------------------


def _remove(order: dict[str, Any], done: list[str], notes: list[str]) -> None:
    """Out of service first, then every board back, then the files; back into service where a board does not go back."""
    places = order["places"]
    library = places["library"]
    with _folder(os.path.dirname(library), make=False) as parent:
        _only_setup(parent)
        name = os.path.basename(library)
        _existing_folder(parent, name, library)
        _not_of_a_package(library, order["packaged"])
        old = f".{name}.old"
        if _kind(parent, name) is not None:
            _delete(parent, old)
            os.rename(name, old, src_dir_fd=parent, dst_dir_fd=parent)  # from here on no helper starts
        try:
            _require_no_session(places["locks"])
            launcher = os.path.join(os.path.dirname(library), old, order["launcher"])
            left = _put_boards_back(launcher, places["records"], notes)
            if left and not order["leave_records"]:
                raise Refused(f"nothing was removed, because {left[0]}; to remove it all the same: --leave-records")
            notes.extend(f"{reason}; its record stays in {places['records']}" for reason in left)
        except BaseException:
            with contextlib.suppress(OSError):
                os.rename(old, name, src_dir_fd=parent, dst_dir_fd=parent)
            raise
        if order["systemd"]:
            _systemctl(["disable", "--quiet", os.path.basename(places["unit"])], notes)
        for path in (places["unit"], places["action"]):
            _unlink(path, done)
        _unlink(places["policy"], done, notes, unless=order["default_policy_sha256"])
        if _kind(parent, old) is not None:
            _delete(parent, old)
            done.append(library)
    for folder in (places["locks"], places["records"], os.path.dirname(places["policy"])):
        try:
            _remove_folder(folder, done, locks=folder == places["locks"])
        except (Refused, OSError) as error:
            notes.append(f"{folder} stays: {getattr(error, 'strerror', None) or error}")
    if not done:
        notes.append("nothing of the helper is installed here")
    if order["systemd"]:
        _systemctl(["daemon-reload"], notes)
    notes.extend(f"{where} still names the helper: remove that rule with visudo" for where in _sudo_rules(order))


def _put_back_all(order: dict[str, Any], done: list[str]) -> None:
    """Every board as `_remove` leaves it, for a package manager that takes the helper away itself afterwards."""
    places = order["places"]
    _require_no_session(places["locks"])
    left = _put_boards_back(os.path.join(places["library"], order["launcher"]), places["records"], [])
    if left:
        raise Refused(left[0])
    done.append("every board is as it was")


def _require_no_session(locks: str) -> None:
    for name in os.listdir(locks) if os.path.isdir(locks) else []:
        with contextlib.suppress(FileNotFoundError):
            file = os.open(os.path.join(locks, name), READ_FILE)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                process = os.read(file, 20).decode("ascii", "replace")
                board = name.rpartition(".")[0]
                raise Refused(f"a session sets {board} just now (process {process}); end it first") from None
            finally:
                os.close(file)


def _put_boards_back(launcher: str, records: str, back: list[str]) -> list[str]:
    """Every board as it was before anything was confirmed, named in `back`; why not, of those that are not back."""
    left = []
    for name in sorted(os.listdir(records)) if os.path.isdir(records) else []:
        board, ending = os.path.splitext(name)
        if ending == ".json" and board.startswith(("GPU-", "AMD-")):
            reason = _put_back(launcher, board)
            if not reason and os.path.exists(os.path.join(records, name)):
                reason = "its record is still there"
            if reason:
                left.append(f"{board} is not put back: {reason}")
            else:
                back.append(f"{board} is as it was before")
    return left


def _put_back(launcher: str, board: str) -> str:
    """Ask the helper itself to; empty if the board is as it was."""
    requests = b'{"id": 1, "do": "reset", "to": "prior"}\n{"id": 2, "do": "quit"}\n'
    try:
        ran = subprocess.run(
            [sys.executable, "-I", "-S", "-B", launcher, board],
            input=requests,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=ENVIRONMENT,
            timeout=PUT_BACK_S,
        )
        replies = [json.loads(line) for line in ran.stdout.splitlines()]
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return "the helper does not answer"
    for reply in replies:
        if "error" in reply and reply.get("id") != 2:
            return str(reply["error"]["what"])
    return "" if any(reply.get("id") == 1 for reply in replies) else "the helper does not answer"


def _unlink(path: str, done: list[str], notes: "list[str] | None" = None, unless: str = "") -> None:
    """Remove a file. With `unless`, the digest of the file as it was installed, one that was changed stays."""
    above, name = os.path.split(path)
    if not os.path.isdir(above):
        return
    with _folder(above, make=False) as folder:
        if _kind(folder, name) is None:
            return
        if unless and notes is not None and hashlib.sha256(_read(folder, name)).hexdigest() != unless:
            notes.append(f"{path} was changed here, and stays")
            return
        os.unlink(name, dir_fd=folder)
        done.append(path)


def _remove_folder(path: str, done: list[str], *, locks: bool) -> None:
    """Remove a folder that is empty but for locks that no process holds. Raises OSError where more lies there."""
    if not os.path.isdir(path):
        return
    with _folder(path, make=False) as folder:
        for name in os.listdir(folder) if locks else []:
            os.unlink(name, dir_fd=folder)
    os.rmdir(path)
    done.append(path)


def _sudo_rules(order: dict[str, Any]) -> list[str]:
    """Where sudo's rules name the helper, as file:line."""
    launcher = os.path.join(order["places"]["library"], order["launcher"])
    main_file = order["places"]["sudoers"]
    folder = f"{main_file}.d"
    files = [main_file, *(os.path.join(folder, name) for name in (os.listdir(folder) if os.path.isdir(folder) else []))]
    results = []
    for path in files:
        with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as lines:
            results += [
                f"{path}:{number}"
                for number, line in enumerate(lines, 1)
                if launcher in line and not line.lstrip().startswith("#")
            ]
    return results


# --- files and folders ------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _folder(path: str, *, make: bool) -> Iterator[int]:
    """An absolute folder, open; it and every one above it is root's alone, and none is a link. Raises Refused."""
    with contextlib.ExitStack() as held:
        here = held.enter_context(_opened(os.open("/", READ_FOLDER), "/"))
        walked = ""
        for name in path.strip("/").split("/"):
            walked += f"/{name}"
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, 0o755, dir_fd=here)
            here = held.enter_context(_below(here, name, walked))
        yield here


@contextlib.contextmanager
def _folders_below(folder: int, path: str) -> Iterator[int]:
    """A folder below an open one, made if it is missing."""
    with contextlib.ExitStack() as held:
        for name in path.split("/") if path else []:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, 0o755, dir_fd=folder)
            folder = held.enter_context(_below(folder, name, path))
        yield folder


def _below(folder: int, name: str, path: str) -> contextlib.AbstractContextManager[int]:
    try:
        return _opened(os.open(name, READ_FOLDER, dir_fd=folder), path)
    except NotADirectoryError:
        raise Refused(f"{path} is a symbolic link or not a folder") from None
    except OSError as error:
        raise Refused(f"{path}: {error.strerror}") from None


@contextlib.contextmanager
def _opened(folder: int, path: str) -> Iterator[int]:
    try:
        about = os.fstat(folder)
        if about.st_uid != 0:
            raise Refused(f"{path} belongs to user {about.st_uid}, not to root")
        if about.st_mode & OTHERS_CAN_WRITE:
            raise Refused(f"users other than root can write {path}")
        yield folder
    finally:
        os.close(folder)


def _only_setup(folder: int) -> None:
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Refused("the helper is being installed or removed by another process") from None


def _existing_folder(parent: int, name: str, path: str) -> None:
    """Raise Refused where something other than a folder of root's stands in that place."""
    if _kind(parent, name) is not None:
        with _below(parent, name, path):
            pass


def _not_of_a_package(library: str, mark: str) -> None:
    """Raise Refused where the system's package manager put the helper there."""
    with contextlib.suppress(FileNotFoundError), open(os.path.join(library, mark), encoding="utf-8") as file:
        package = file.read(100).strip()
        raise Refused(f"the helper came with the package {package} of this system, which replaces and removes it too")


def _kind(folder: int, name: str) -> "int | None":
    """The type of an entry, links not followed; None if there is none."""
    try:
        return stat.S_IFMT(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return None


def _write(folder: int, name: str, content: bytes, mode: int) -> None:
    """A new file, on disk, read back and compared."""
    with os.fdopen(os.open(name, NEW_FILE, mode, dir_fd=folder), "r+b") as file:
        file.write(content)
        file.flush()
        os.fchmod(file.fileno(), mode)
        os.fchown(file.fileno(), 0, 0)
        os.fsync(file.fileno())
        file.seek(0)
        if file.read() != content:
            raise Refused(f"{name} does not read back as it was written")


def _replace(folder: int, name: str, content: bytes, mode: int, path: str) -> None:
    if _kind(folder, name) not in (None, stat.S_IFREG):
        raise Refused(f"{path} is not a regular file")
    _delete(folder, f".{name}.new")
    _write(folder, f".{name}.new", content, mode)
    os.rename(f".{name}.new", name, src_dir_fd=folder, dst_dir_fd=folder)
    os.fsync(folder)


def _read(folder: int, name: str) -> bytes:
    with os.fdopen(os.open(name, READ_FILE, dir_fd=folder), "rb") as file:
        return file.read(1 << 20)


def _delete(folder: int, name: str) -> None:
    """An entry with all in it, links not followed; nothing to do if there is none."""
    kind = _kind(folder, name)
    if kind == stat.S_IFDIR:
        with _below(folder, name, name) as inner:
            for each in os.listdir(inner):
                _delete(inner, each)
        os.rmdir(name, dir_fd=folder)
    elif kind is not None:
        os.unlink(name, dir_fd=folder)


def _systemctl(words: list[str], notes: list[str]) -> None:
    command = ["/usr/bin/timeout", "60", "/usr/bin/systemctl", *words]
    ran = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True)
    if ran.returncode:
        notes.append(f"systemctl {' '.join(words)}: {' '.join(ran.stderr.split()) or 'failed'}")
