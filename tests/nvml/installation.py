"""The helper installed in a place of a test's own, and the command `wattridge` of an ordinary user who finds it there.

    python installation.py UID PLACES LIBRARY WORD ...     the command, as that user; PLACES is `Places` as JSON
    python installation.py UID - PROGRAM ...               any program, as that user

Only where things lie differs from the product: below /opt instead of /usr and /etc, records included, and the installed
pynvml and AMD SMI's binding load the stand-ins for the drivers' libraries, which sudo would otherwise keep from them.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).resolve().parents[2])]

from as_nobody import NOBODY, become_nobody

from app.engine.control import client, installing
from app.engine.control.helper import policy, record
from app.engine.control.installing import Places


def places_below(folder: Path) -> Places:
    return Places(
        library=str(folder / "lib" / "wattridge"),
        action=str(folder / "polkit" / "org.wattridge.control.policy"),
        unit=str(folder / "systemd" / "wattridge-restore.service"),
        policy=str(folder / "etc" / "policy.conf"),
        records=str(folder / "records"),
        locks=str(folder / "locks"),
        sudoers=str(folder / "sudoers"),
    )


def use(places: Places, driver: Path, put: Callable[[Any, str, Any], None] = setattr) -> None:
    """From here on the product's constants are these places; `put` may be a monkeypatch's."""
    original = installing.tree

    def tree(packaged: str = "") -> dict[str, bytes]:
        put(installing, "_read", lambda path: _moved(read(path), path, places, driver))
        try:
            return original(packaged)
        finally:
            put(installing, "_read", read)

    read = installing._read
    put(installing, "tree", tree)
    put(installing, "PLACES", places)
    put(installing, "LIBRARY", Path(places.library))
    put(client, "LIBRARY", Path(places.library))
    put(policy, "PATH", places.policy)
    put(record, "FOLDER", places.records)
    put(record, "LOCK_FOLDER", places.locks)


def command(places: Places, driver: Path, *words: str, user: int = NOBODY) -> list[str]:
    """The command line of `wattridge` as nobody, or as another user."""
    return [*_as(user), json.dumps(asdict(places)), str(driver), *words]


def as_nobody(*words: str) -> list[str]:
    """A command line that runs any program as nobody."""
    return [*_as(NOBODY), "-", *words]


def _as(user: int) -> list[str]:
    return [sys.executable, str(Path(__file__).resolve()), str(user)]


def _moved(content: bytes, path: Path, places: Places, driver: Path) -> bytes:
    if path.name == "pynvml.py":
        return content + f"\nnvmlLib = CDLL({str(driver)!r})\n".encode()
    if path.name == "amd_board.py":
        library = str(driver.with_name("libamd_smi.so"))
        return content + f"\n\ndef load() -> AmdSmi:\n    return AmdSmi({library!r})\n".encode()
    for module, name, place in (
        ("record", "FOLDER", places.records),
        ("record", "LOCK_FOLDER", places.locks),
        ("policy", "PATH", places.policy),
    ):
        if path.name == f"{module}.py":
            lines = content.decode().split("\n")
            [at] = [index for index, line in enumerate(lines) if line.startswith(f"{name} = ")]
            lines[at] = f"{name} = {place!r}"
            content = "\n".join(lines).encode()
    return content


def _main(user: str, first: str, words: list[str]) -> int:
    become_nobody(int(user))
    if first == "-":
        os.execvp(words[0], words)
    use(Places(**json.loads(first)), Path(words[0]))
    from app.cli import main

    return main(words[1:])


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1], sys.argv[2], sys.argv[3:]))
