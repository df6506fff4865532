"""`doctor --bundle`: one file for a report, from which a test can be made. Nothing in it names the machine.

It is a ZIP. `doctor.json` holds the findings, the system and the versions of packages; `board-N.csv.gz` is a recording
of some seconds of each board (`sensors/recorded/recording.py`): driver, limits, supported clocks, every channel or why
it is not there, and the readings. `wattridge --gpu recorded:board-0.csv.gz` replays it.
"""

from __future__ import annotations

import gzip
import json
import platform
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from importlib import metadata
from io import BytesIO
from pathlib import Path
from typing import Any, Final
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from ...base.errors import WattridgeError
from ...base.files import write_text
from ...base.text import nameless
from ...sensors.gpu import Gpu, SensorError
from ...sensors.nvml.library import LIBRARY
from ...sensors.select import amd_boards, open_gpu, pci_address, real_boards
from ...sensors.trace.live_board import LiveBoard
from .checks import Check
from .examine import to_json
from .finding import Finding

DURATION_S: Final = 5.0  # of each recording
_INTERVAL_S: Final = 0.05
_PATIENCE_S: Final = 5.0  # for the last reading
_PACKAGES: Final = ("numpy", "scipy", "nvidia-ml-py", "cuda-bindings", "pyopencl", "PySide6-Essentials", "pyqtgraph")
_README: Final = """\
Made by `wattridge doctor --bundle`. doctor.json: what it found. board-N.csv.gz: what a board reported for some seconds.
Serial numbers, UUIDs, PCI addresses, the names of machine and user and the home folder were replaced; look before you
send it. What a board reported is seen again, and tested, with: wattridge --gpu recorded:board-0.csv.gz
"""


def write_bundle(
    path: Path,
    findings: Sequence[tuple[Check, Finding]],
    *,
    selector: str | None = None,
    duration_s: float = DURATION_S,
    overwrite: bool = False,
    stop: threading.Event | None = None,
) -> list[dict[str, str]]:
    """Write the bundle of these findings, with a recording of the board that is selected, or of every real one.

    Parameters
    ----------
    path : Path
        The file to be written.
    findings : sequence of (Check, Finding)
        As `examine` yields them.
    selector : str, optional
        As of `open_gpu`; without it every real board that does not sleep.
    duration_s : float
        Length of the recordings, s; all boards are recorded at once.
    overwrite : bool
        Replace a file that lies there.
    stop : threading.Event, optional
        Set where the user wants it to end: then KeyboardInterrupt is raised.

    Returns
    -------
    list of dict
        Of each board its `file`, or the `error` for which there is none.

    Raises
    ------
    WattridgeError
        Where the file cannot be written, or the board that is selected does not open.
    """
    secrets = _names_of_boards()
    with tempfile.TemporaryDirectory(prefix="wattridge-bundle-") as folder, ExitStack() as open_boards:
        boards, watched = [], []
        for number, board in enumerate(_opened(selector)):
            if isinstance(board, SensorError):
                boards.append({"error": nameless(board.what, *secrets)})
                continue
            file = Path(folder, f"board-{number}.csv.gz")
            boards.append({"file": file.name})
            live = LiveBoard(board, interval_s=_INTERVAL_S, record_to=file, duration_s=duration_s)
            open_boards.callback(live.close)
            watched.append(live)
        _wait_for(watched, duration_s + _PATIENCE_S, stop or threading.Event())
        open_boards.close()
        document = {
            **to_json(findings),
            "system": f"{platform.system()} {platform.release()} {platform.machine()}, {' '.join(platform.libc_ver())}",
            "packages": {name: version for name in _PACKAGES if (version := _version(name))},
            "boards": boards,
        }
        found = json.dumps(_nameless(document, secrets), indent=1, ensure_ascii=False) + "\n"
        members = {"README.txt": _README.encode(), "doctor.json": found.encode()}
        for each in sorted(Path(folder).glob("*.csv.gz")):
            members[each.name] = _nameless_recording(each.read_bytes(), secrets)
    write_text(path, _packed(members), overwrite=overwrite)
    return boards


# --- inside -----------------------------------------------------------------------------------------------------------


def _names_of_boards() -> list[str]:
    """Identifiers of the boards of this machine, as far as their drivers tell it."""
    listed = [uuid for _, uuid, _ in (*real_boards(), *amd_boards())]
    names = [*listed, *map(pci_address, listed)]
    for index, _, _ in real_boards():
        try:
            serial = LIBRARY.call("nvmlDeviceGetSerial", LIBRARY.call("nvmlDeviceGetHandleByIndex", index))
        except SensorError:  # GeForce boards have none
            continue
        names.append(serial.decode("ascii", "replace") if isinstance(serial, bytes) else str(serial))
    return [name for name in names if name]


def _opened(selector: str | None) -> Iterable[Gpu | SensorError]:
    if selector is not None:
        yield open_gpu(selector)
        return
    for _, uuid, _ in (*real_boards(), *amd_boards()):
        try:
            yield open_gpu(uuid)
        except SensorError as error:
            yield error


def _wait_for(boards: Sequence[LiveBoard], most_s: float, stop: threading.Event) -> None:
    """Until the recordings are as long as they shall be; a reading that never returns ends the wait too."""
    latest_s = time.monotonic() + most_s
    while any(board.sampler.running for board in boards) and time.monotonic() < latest_s:
        if stop.wait(_INTERVAL_S):
            raise KeyboardInterrupt


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _nameless(value: Any, secrets: Sequence[str]) -> Any:
    """A JSON document without names in its texts."""
    if isinstance(value, str):
        return nameless(value, *secrets)
    if isinstance(value, dict):
        return {key: _nameless(each, secrets) for key, each in value.items()}
    return [_nameless(each, secrets) for each in value] if isinstance(value, list | tuple) else value


def _nameless_recording(packed: bytes, secrets: Sequence[str]) -> bytes:
    """A recording whose header names nothing; its other lines are numbers."""
    header, _, lines = gzip.decompress(packed).partition(b"\n")
    if not lines:
        raise WattridgeError("a board gave no reading", "doctor", "look at `wattridge gpus`, or leave --bundle out")
    line = json.dumps(_nameless(json.loads(header), secrets), ensure_ascii=False).encode()
    return gzip.compress(line + b"\n" + lines, mtime=0)


def _packed(members: dict[str, bytes]) -> bytes:
    whole = BytesIO()
    with ZipFile(whole, "w") as archive:
        for name, content in members.items():
            archive.writestr(ZipInfo(name), content, compress_type=ZIP_DEFLATED)
    return whole.getvalue()
