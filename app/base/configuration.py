"""The configuration file: options that hold wherever neither an argument nor an environment variable says otherwise.

It is `config.toml` in the folder `wattridge` of `XDG_CONFIG_HOME`, else of `~/.config`; `WATTRIDGE_CONFIG` names
another. At its top stands what environment variables can say, `data` for WATTRIDGE_DATA, and a table for each command
holds its options. Arguments win over variables, these over the file, the file over the program's own defaults. The
helper with root's rights does not read it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from .errors import InputError

VARIABLE: Final = "WATTRIDGE_CONFIG"
KEYS: Final = ("cuda", "cuda_compiler", "data", "gpu", "log", "ncu", "read_only", "socket")
_MOST_BYTES: Final = 1 << 20


def setting(variable: str) -> str:
    """The value of an environment variable, else what the file says; empty where neither does. Raises InputError."""
    value = os.environ.get(variable)
    return value if value is not None else _read(_path()).get(variable.removeprefix("WATTRIDGE_").lower(), "")


def options_of(command: str, commands: Iterable[str]) -> Mapping[str, Any]:
    """The table of a command in the file; empty where there is none. Raises InputError, also for unknown tables."""
    tables: dict[str, Mapping[str, Any]] = {key[1:-1]: table for key, table in _read(_path()).items() if key[0] == "["}
    for name in tables.keys() - set(commands):
        raise InputError(f"there is no command '{name}'", where(name), "correct or remove it")
    return tables.get(command, {})


def where(command: str) -> str:
    """The table of a command, for messages."""
    return f"{_path()}, [{command}]"


def _path() -> Path | None:
    named = os.environ.get(VARIABLE)
    if named is not None:
        return Path(named).expanduser() if named else None
    from platformdirs import user_config_path  # imported late: the window's first frame does not need it

    path = user_config_path("wattridge", appauthor=False) / "config.toml"
    return path if path.is_absolute() and path.is_file() else None


@cache
def _read(path: Path | None) -> dict[str, Any]:
    """Values of the top as text, and tables of commands as `[command]`."""
    if path is None:
        return {}
    import tomllib

    try:
        with path.open("rb") as file:
            document = tomllib.loads(file.read(_MOST_BYTES).decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(str(error), str(path), "correct it, as TOML") from None
    except OSError as error:
        raise InputError(error.strerror or str(error), str(path), f"correct it, or unset {VARIABLE}") from None
    found: dict[str, Any] = {}
    for key, value in document.items():
        if isinstance(value, dict):
            found[f"[{key}]"] = value
        elif key in KEYS and isinstance(value, str | int):
            found[key] = str(int(value)) if isinstance(value, bool) else str(value)
        else:
            raise InputError(f"'{key}' is no setting", str(path), f"one of {', '.join(KEYS)}, or a command's [table]")
    return found
