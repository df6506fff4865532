#!/usr/bin/python3 -ISB
"""The way in to the helper with rights; installed for root under the name `wattridge-control`.

Nothing else of the helper is imported before the version of Python is known and, in an installed copy, every file has
been checked. So this file uses the standard library only, and syntax that Python 3.6 reads: an older Python must get as
far as saying that it is too old.
"""

import hashlib
import importlib
import json
import os
import stat
import sys

OLDEST_PYTHON = (3, 9)
MANIFEST = "SHA256SUMS"  # of every installed file, in the format of sha256sum
OTHERS_CAN_WRITE = 0o022
LAUNCHER = "wattridge-control"


def unsafe(path: str) -> str:
    """Why a file or folder is not under the control of root alone; empty if it is."""
    try:
        about = os.lstat(path)
    except OSError as error:
        return f"{path}: {error.strerror}"
    if about.st_uid != 0:
        return f"{path} belongs to user {about.st_uid}, not to root"
    if stat.S_ISLNK(about.st_mode):
        return f"{path} is a symbolic link"
    if not (stat.S_ISDIR(about.st_mode) or stat.S_ISREG(about.st_mode)):
        return f"{path} is neither a file nor a folder"
    if about.st_mode & OTHERS_CAN_WRITE:
        return f"users other than root can write {path}"
    return ""


def unsafe_path(path: str) -> str:
    """As `unsafe`, of a path and every folder above it: a user who can write one of them can replace the rest."""
    while True:
        reason = unsafe(path)
        above = os.path.dirname(path)
        if reason or above == path:
            return reason
        path = above


def unsafe_link(path: str) -> str:
    """As `unsafe_path`, of a path that may lead over links: each must be root's, where only root can replace it."""
    end = os.path.realpath(path)
    for _ in range(40):
        link = _first_link(path)
        if not link:
            return unsafe_path(path) if path == end else f"{path} is not {end}"
        above = os.path.dirname(link)
        if os.lstat(link).st_uid != 0:
            return unsafe(link)
        reason = unsafe_path(above)
        if reason:
            return reason
        path = os.path.normpath(os.path.join(above, os.readlink(link)) + path[len(link) :])
    return f"{path} is a chain of links without an end"


def _first_link(path: str) -> str:
    """The first part of a path, from the root on, that is a link; empty if none is."""
    parts = path.split(os.sep)
    starts = (os.sep.join(parts[:length]) for length in range(2, len(parts) + 1))
    return next((start for start in starts if os.path.islink(start)), "")


def unsafe_tree(folder: str) -> str:
    """Why an installed tree must not run as root; empty if it may.

    Every file and folder in it and above it is root's alone, and the files are those of the manifest, unchanged:
    nothing is missing, and nothing was added, such as compiled code that Python would prefer to the source.
    """
    reason = unsafe_path(folder)
    if reason:
        return reason
    found = {}
    for parent, folders, files in os.walk(folder):
        for name in folders + files:
            reason = unsafe(os.path.join(parent, name))
            if reason:
                return reason
        for name in files:
            path = os.path.join(parent, name)
            found[os.path.relpath(path, folder)] = path
    manifest = found.pop(MANIFEST, None)
    if manifest is None:
        return f"{folder} has no list of its files ({MANIFEST})"
    try:
        with open(manifest, encoding="utf-8") as lines:
            listed = {line[66:].rstrip("\n"): line[:64] for line in lines}
        for name in sorted(set(found) | set(listed)):
            if name not in listed:
                return f"{found[name]} is not one of its files"
            if name not in found:
                return f"{os.path.join(folder, name)} is missing"
            with open(found[name], "rb") as file:
                if hashlib.sha256(file.read()).hexdigest() != listed[name]:
                    return f"{found[name]} was changed after it was installed"
    except (OSError, ValueError) as error:
        return f"{folder} cannot be read: {error}"
    return ""


def _of_this_copy():  # type: () -> str
    """Modules of a copy that root did not install: this project, and pynvml from the environment of this Python.

    Returns the name of the project's package: `wattridge`, in a checkout `app`.
    """
    here = os.path.dirname(os.path.abspath(__file__))
    package = os.path.abspath(os.path.join(here, *[os.pardir] * 3))
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    environment = os.path.join(os.path.dirname(os.path.dirname(sys.executable)), "lib", version, "site-packages")
    sys.path.extend([os.path.dirname(package), environment])
    return os.path.basename(package)


def _refuse(what: str) -> int:
    print(json.dumps({"error": {"kind": "installation", "what": what}}), flush=True)
    return 1


def _start() -> int:
    if sys.version_info < OLDEST_PYTHON:
        return _refuse(f"the helper needs Python 3.9 or later; {sys.executable} is {sys.version.split()[0]}")
    if os.path.basename(__file__) == LAUNCHER:
        folder = os.path.dirname(os.path.abspath(__file__))
        reason = unsafe_tree(folder)
        if reason:
            return _refuse(f"the installed helper does not start: {reason}")
        sys.path.append(folder)  # after the standard library, always
        package = "wattridge"
    else:
        package = _of_this_copy()
    holding = importlib.import_module(package + ".engine.control.helper.holding")
    return int(holding.main(sys.argv[1:]))


if __name__ == "__main__":
    sys.exit(_start())
