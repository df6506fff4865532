"""What the program says of the whole corpus of real files (`tests/corpus`). Run by hand:

    python tests/benchmarks/people_files.py FOLDER [--out FILE] [--part PART]

The files that do not lie in the repository are fetched into FOLDER, each at its commit, and checked by their sum.
"""

from __future__ import annotations

import hashlib
import json
import sys
import urllib.parse
import urllib.request
from argparse import ArgumentParser
from collections import Counter
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS.parent)]

from fixtures.people_files import verdict  # noqa: E402


def file_of(entry: dict[str, Any], folder: Path) -> Path:
    """Where a file of the corpus lies; fetched if it is not there."""
    if entry["kept"]:
        return TESTS / "corpus/files" / entry["file"]
    path = folder / entry["file"]
    if not path.exists():
        place = urllib.parse.quote(f"{entry['repo']}/{entry['commit']}/{entry['path']}")
        with urllib.request.urlopen(f"https://raw.githubusercontent.com/{place}", timeout=60) as answer:
            content = answer.read()
        if entry["sha256"] and hashlib.sha256(content).hexdigest() != entry["sha256"]:  # '' where only its text was had
            raise SystemExit(f"{entry['repo']}: {entry['path']} is not what it was")
        path.write_bytes(content)
    return path


def run() -> None:
    parser = ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--part", default="")
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    lines, every = [], Counter[tuple[str, str]]()
    for line in (TESTS / "corpus/manifest.jsonl").read_text("utf-8").splitlines():
        entry = json.loads(line)
        if arguments.part not in entry["part"] or arguments.only not in entry["file"]:
            continue
        said, words = verdict(entry, file_of(entry, arguments.folder))
        every[entry["part"], said] += 1
        lines.append(f"{said:7} {entry['kind']:14} {entry['file']:46} {entry['repo']:44} {words[:100]}".rstrip())
        print(lines[-1], flush=True)
    for part in dict.fromkeys(part for part, _ in every):
        counts = {said: every[part, said] for said in ("right", "asked", "silent", "false")}
        lines.append(f"{part}: {', '.join(f'{n} {said}' for said, n in counts.items())} of {sum(counts.values())}")
        print(lines[-1])
    if arguments.out:
        arguments.out.write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    run()
