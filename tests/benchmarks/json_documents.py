"""`--json` of the commands before and after a change: the same documents, but for what differs from run to run.

    json_documents.py BEFORE AFTER [--keep FOLDER]

BEFORE and AFTER are checkouts. In each the commands of this checkout's `tests/commands/test_schemas.py` run in one data
folder, twice; a value that differs between two runs of one checkout (times, paths, process ids) is compared by its type
alone.
Prints one line for each difference and a count of values; exits 1 where there is a difference. `--keep` writes the
documents there.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[2]
CALLS = HERE / "tests" / "commands" / "test_schemas.py"
CAPS = "device,app,power_limit_w,power_w,time_s\n" + "".join(
    f"A,x,{w},{w - 5},{300 / w}\n" for w in (150, 200, 250, 300)
)
Values = dict[tuple[str, ...], Any]


def calls(folder: str) -> list[list[str]]:
    """The commands of the schemas' test, with the example and recordings by their short names."""
    names = {"EXAMPLE": "gemm", "SESSION": "h200-sgemm-session", "LOG": "h200-sgemm", "ROOFLINE": "h200-roofline-fp32"}
    board = ["--gpu", "simulated:a100", "--speed", "inf"]
    found = []
    for node in ast.parse(CALLS.read_text(encoding="utf-8")).body:
        named = node.target if isinstance(node, ast.AnnAssign) else None
        if not isinstance(named, ast.Name) or named.id not in ("CALLS", "FAILURES"):
            continue
        assert isinstance(node, ast.AnnAssign)
        assert isinstance(node.value, ast.Tuple)
        for call in node.value.elts:
            assert isinstance(call, ast.Tuple)
            words: list[str] = []
            for word in call.elts:
                if isinstance(word, ast.Starred):
                    words += board
                elif isinstance(word, ast.Constant):
                    words.append(word.value)
                elif isinstance(word, ast.Name):
                    words.append(names[word.id])
                else:  # sys.executable, a kernel of the resources
                    text = ast.unparse(word)
                    words.append(sys.executable if "executable" in text else f"{folder}/kernels/vector_add.cu")
            found.append([word.replace("{}", folder) for word in words])
    return found


def documents(checkout: Path, folder: Path) -> dict[str, Any]:
    """What each command prints in `checkout`, with its exit status, by the words of the command."""
    (folder / "caps.csv").write_text(CAPS)
    (folder / "examples").mkdir()
    shutil.copytree(checkout / "resources" / "kernels", folder / "kernels")
    example = (checkout / "resources" / "examples" / "gemm.toml").read_text(encoding="utf-8")
    for pattern, size in (("block_size_[xy]", "[16]"), ("tile_size_x", "[2, 4]"), ("tile_size_y", "[2]")):
        example = re.sub(rf"^({pattern}) = .*$", rf"\1 = {size}", example, flags=re.MULTILINE)
    (folder / "examples" / "small.toml").write_text(example.replace("points = 7", "points = 3"))
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("WATTRIDGE", "PYTHON"))}
    environment |= {"WATTRIDGE_DATA": f"{folder}/data", "XDG_DATA_HOME": f"{folder}/desktop", "WATTRIDGE_READ_ONLY": ""}
    printed = {}
    for words in calls(str(folder)):
        at = words.index("--") if "--" in words else len(words)
        run = subprocess.run(
            [sys.executable, "-m", "app", *words[:at], "--json", *words[at:]],
            cwd=checkout, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600,
        )  # fmt: skip
        name = " ".join(words).replace(str(folder), "{}").replace(sys.executable, "python")
        try:
            document = json.loads(run.stdout)
        except ValueError:
            document = {"no document": run.stderr[-500:]}
        printed[name] = {"status": run.returncode, "document": document}
    return json.loads(json.dumps(printed).replace(str(folder), "{}").replace(str(checkout), "{checkout}"))


def values(document: Any, path: tuple[str, ...] = ()) -> Values:
    """The leaves of a document by their path; a list's length is a leaf."""
    if isinstance(document, dict):
        found: Values = {}
        for key, value in document.items():
            found |= values(value, (*path, key))
        return found or {path: "{}"}
    if isinstance(document, list):
        found = {(*path, "length"): len(document)}
        for number, value in enumerate(document):
            found |= values(value, (*path, str(number)))
        return found
    return {path: document}


def both(checkout: Path) -> tuple[dict[str, Any], Values, set[tuple[str, ...]]]:
    """The documents of two runs of a checkout: the first's, its values, and the paths that differ between the two."""
    runs = []
    for _ in range(2):
        folder = Path(tempfile.mkdtemp(prefix="json-documents-"))
        try:
            runs.append(documents(checkout, folder))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    first, second = values(runs[0]), values(runs[1])
    varying = {path for path in first.keys() | second.keys() if first.get(path, ...) != second.get(path, ...)}
    return runs[0], first, varying


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--keep", type=Path, help="folder for the documents of both")
    arguments = parser.parse_args()
    with ThreadPoolExecutor(2) as at_once:
        before, after = at_once.map(both, (arguments.before.resolve(), arguments.after.resolve()))
    if arguments.keep:
        arguments.keep.mkdir(parents=True, exist_ok=True)
        for name, (document, _, _) in (("before", before), ("after", after)):
            (arguments.keep / f"{name}.json").write_text(json.dumps(document, indent=1))
    varying = before[2] | after[2]
    different = 0
    for path in sorted(before[1].keys() | after[1].keys()):
        old, new = before[1].get(path, ...), after[1].get(path, ...)
        alike = type(old) is type(new) if path in varying else old == new
        if not alike and not (path in varying and {type(old), type(new)} <= {int, float, type(None), type(...)}):
            different += 1
            print(f"{' / '.join(path)}: {old!r} -> {new!r}"[:300])
    counts = f"{len(before[0])} commands, {len(before[1])} values, {len(varying)} of them differ from run to run"
    print(f"{counts}; {different} differ before and after")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
