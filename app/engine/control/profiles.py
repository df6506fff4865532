"""Profiles: named settings for one kind of board, kept in the user's data folder."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Final

from ...base.board_files import BoardFiles
from ...base.errors import InputError
from ...base.files import is_there, read_text
from ...base.paths import data_folder
from ..results.settings import SETTINGS, BoardSettings, Setting, is_setting, lower, upper

_FILES: Final = BoardFiles("", (1,), most_bytes=1 << 20)  # one file, of all kinds of boards
_MOST_NAMES: Final = 200
_LONGEST_NAME: Final = 60


def profiles_of(gpu: str) -> dict[str, dict[str, Setting]]:
    """The profiles of boards of that name, by the profiles' names. Raises InputError for a damaged file."""
    return dict(_all().get(gpu, {}))


def save_profile(gpu: str, name: str, settings: BoardSettings) -> None:
    """Keep settings under a name, in place of an older profile of that name. Raises InputError, WattridgeError."""
    plain = " ".join(name.split())
    if not plain or len(plain) > _LONGEST_NAME or not plain.isprintable():
        raise InputError(f"a profile cannot be called '{name}'", "profile", f"up to {_LONGEST_NAME} letters")
    if not settings:
        raise InputError("nothing is chosen that could be kept", "profile", "choose a clock or a limit first")
    known = _all()
    profiles = known.setdefault(gpu, {})
    if plain not in profiles and len(profiles) >= _MOST_NAMES:
        raise InputError("there are too many profiles", "profile", "delete some first")
    profiles[plain] = dict(settings)
    _write(known)


def delete_profile(gpu: str, name: str) -> None:
    """Delete a profile, if it is there. Raises InputError, WattridgeError."""
    profiles = _all()
    if profiles.get(gpu, {}).pop(name, None) is not None:
        _write(profiles)


# --- inside -----------------------------------------------------------------------------------------------------------


def _all() -> dict[str, dict[str, dict[str, Setting]]]:
    path = data_folder() / "profiles.json"
    if not is_there(path):
        return {}
    try:
        document = json.loads(read_text(path, _FILES.most_bytes))
        if document["version"] not in _FILES.versions:
            raise ValueError
        return {
            str(gpu): {str(name): _settings(given) for name, given in profiles.items()}
            for gpu, profiles in document["profiles"].items()
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InputError("the profiles cannot be read", str(path), "fix the file, or move it elsewhere") from None


def _write(known: Mapping[str, Mapping[str, BoardSettings]]) -> None:
    profiles = {
        gpu: {
            name: {key: [lower(value), upper(value)] for key, value in settings.items()}
            for name, settings in of.items()
        }
        for gpu, of in known.items()
    }
    _FILES.keep(data_folder() / "profiles.json", {"profiles": profiles})


def _settings(given: Any) -> dict[str, Setting]:
    """Raises ValueError, TypeError, AttributeError for anything that `_write` does not write."""
    settings: dict[str, Setting] = {}
    for name, ends in given.items():
        low, high = ends
        good = all(type(end) in (int, float) and math.isfinite(end) and is_setting(name, end) for end in ends)
        if name not in SETTINGS or not good or low > high:
            raise ValueError
        settings[name] = float(high) if low == high else (float(low), float(high))
    return settings
