"""`Receipt`: which measurement an export holds, how it was chosen, and what it was made from; it stands in each file.

`new_folder`: a folder for one export, which nothing else is ever written into.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, Final

from ... import __version__
from ...base.errors import WattridgeError
from ...base.files import digest_of, write_text
from ...base.paths import PRIVATE_FOLDER, is_private, make_folder
from ...base.records import Count, DateTime, Values, as_json, figure
from ..analysis.standing import Standing, chosen_words
from ..results.measurement import Configuration
from ..results.state import SessionState
from ..specification.plan import SessionPlan

NAME: Final = "receipt.json"
_LEFT_OUT: Final = re.compile(
    r"\b(nvidia|amd|intel|geforce|tesla|instinct|radeon|pcie|sxm\d?|\d+gb)\b|\(.*?\)", re.IGNORECASE
)  # of the name of a board
_LONGEST: Final = 40  # characters of a title, and of a board, in a folder's name


@dataclass(frozen=True, slots=True)
class Receipt:
    """A record of an export. `measurement` and what follows from it are None where only a session was exported."""

    measurement: int | None  # its number in the session, from 1
    configuration: Configuration | None
    values: Values | None
    rule: str | None  # 'max:GFLOPS/W', 'fastest', ..., or 'by hand'
    standing: Standing | None
    objective: str
    kernel: str
    session: int | None
    session_state: SessionState | None  # None of a recording, which is no session
    measured: Count  # measurements that the session had
    board: str
    provenance: str
    inputs: Mapping[str, str]  # SHA-256 by file
    versions: Mapping[str, str]
    written: DateTime
    digest: str = ""  # SHA-256 of all above, as JSON with sorted keys; the same in each file of an export
    files: Mapping[str, str] = field(default_factory=dict, metadata=figure(meaning="SHA-256 of each file, by name"))

    @property
    def running(self) -> str:
        """That the session had not ended, as a sentence; empty if it had."""
        if self.session_state is None or not self.session_state.alive:
            return ""
        return f"The session was still {self.session_state.value}: {self.measured} measured so far."

    @property
    def how(self) -> str:
        """'measurement 12, session 3, chosen for max:GFLOPS/W, rank 1 of 40 for max:GFLOPS/W'."""
        parts = [f"measurement {self.measurement}"] if self.measurement is not None else []
        parts += [f"session {self.session}"] if self.session else []
        if self.standing is not None:
            parts += [chosen_words(self.rule or ""), f"{self.standing.rank_words} for {self.objective}"]
        return ", ".join(parts)

    @property
    def lines(self) -> tuple[str, ...]:
        """What a file of text says of itself after `how`."""
        inputs = [f"Input: {name}, SHA-256 {digest}." for name, digest in self.inputs.items()]
        return tuple(filter(None, (self.running, *inputs, f"Receipt: {NAME}, digest {self.digest}.")))


def receipt_of(
    plan: SessionPlan,
    session: int | None,
    measured: int,
    state: SessionState | None,
    provenance: str,
    *,
    standing: Standing | None = None,
    rule: str | None = None,
    configuration: Configuration | None = None,
    values: Mapping[str, float] | None = None,
) -> Receipt:
    """Make the receipt of an export, its files still unnamed."""
    origin = plan.origin
    given = {
        Path(origin.get("file", "")).name or "file": origin.get("sha256"),
        "the kernel's sources": origin.get("sources_sha256"),
        "files that they include": origin.get("included_sha256"),
    }
    versions = {"driver": plan.driver, "compiler": origin.get("compiler")}
    receipt = Receipt(
        measurement=standing.measurement if standing is not None else None,
        configuration=configuration,
        values=values,
        rule=rule,
        standing=standing,
        objective=str(plan.objective.goal),
        kernel=plan.title,
        session=session or None,  # a recording that is shown has number 0
        session_state=state,
        measured=measured,
        board=plan.board,
        provenance=provenance,
        inputs={name: digest for name, digest in given.items() if digest},
        versions={
            "wattridge": __version__,
            "python": platform.python_version(),
            **{name: version for name, version in versions.items() if version},
        },
        written=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    document = as_json(receipt)
    kept = json.dumps({key: document[key] for key in document if key not in ("digest", "files")}, sort_keys=True)
    return replace(receipt, digest=hashlib.sha256(kept.encode()).hexdigest())


def document_of(receipt: Receipt) -> dict[str, Any]:
    """The receipt as a file of the export has it: all but the files' digests, one of which would be its own."""
    return {key: value for key, value in as_json(receipt).items() if key != "files"}


def write_receipt(receipt: Receipt, files: list[Path], folder: Path) -> Path:
    """Write `receipt.json`, with the digests of the files. Raises WattridgeError as `write_text`."""
    whole = replace(receipt, files={path.name: digest_of(path) for path in files})
    text = json.dumps(as_json(whole), indent=2, ensure_ascii=False)
    return write_text(folder / NAME, f"{text}\n", overwrite=True)


def new_folder(plan: SessionPlan, session: int | None, inside: Path) -> Path:
    """Make a folder such as 'sgemm-a100-12-20261123-1': title, board, session, date and how many there were.

    Raises WattridgeError if it cannot be made.
    """
    parts = (plan.title, _LEFT_OUT.sub(" ", plan.gpu), str(session or ""), f"{datetime.now():%Y%m%d}")
    stem = "-".join(filter(None, (_slug(part) for part in parts))) or "export"
    try:
        make_folder(inside)
        for number in count(1):
            folder = inside / f"{stem}-{number}"
            with suppress(FileExistsError):
                os.mkdir(folder, PRIVATE_FOLDER if is_private(folder) else 0o777)
                return folder
    except OSError as error:
        what = f"cannot be written: {error.strerror or error}"
        raise WattridgeError(what, str(inside), "choose another folder") from None
    raise AssertionError("the numbers do not end")


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9._]+", "-", text.lower()).strip("-._")[:_LONGEST].rstrip("-._")
