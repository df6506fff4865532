"""What the program says of a corpus of real files, against answers that were computed by other code. Run by hand:

    python tests/benchmarks/people_files.py FOLDER [--out FILE]

FOLDER holds `manifest.json` and `files/`: for each file its kind and the facts that `expected.py` beside it computed
from the file alone. The program is run as users run it, `wattridge analyse FILE --json`, and its words are compared:
right (what it answers is so), asked (it refuses, or answers while naming the column that it is not sure of), silent (it
refuses, or leaves out what the file holds), false (something that it says is not so).
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_CLOSE = 0.005
_FACTORS = (1.0, 1e-3, 1e3, 1e-6, 1e6, 1e-9, 1e9, 1 / 3600, 3600.0, 1 / 3.6e6, 3.6e6)


def said_of(path: Path) -> tuple[int, Any, str]:
    """Exit status, the document, and what is on standard error."""
    words = [sys.executable, "-m", "wattridge", "analyse", str(path), "--json"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
    document = json.loads(done.stdout) if done.returncode == 0 and done.stdout else None
    return done.returncode, document, done.stderr.strip()


def close(one: float, other: float, tolerance: float = _CLOSE) -> bool:
    return math.isclose(one, other, rel_tol=tolerance, abs_tol=1e-12)


def number(text: object) -> float | None:
    try:
        return float(str(text))
    except ValueError:
        return None


def same_value(wanted: object, there: object) -> bool:
    one, other = number(wanted), number(there)
    if one is not None and other is not None:
        return close(one, other, 1e-6)
    return str(wanted).strip() == str(there).strip()


def holds_setting(wanted: dict[str, Any], said: dict[str, Any]) -> bool:
    """Whether each wanted value is among those of a configuration; the names are ours there."""
    left = list(said.values())
    for key, value in wanted.items():
        figure = key in ("value", "unit", "how", "ties", "watts", "errors") or key.endswith(("_per_s", "_per_token"))
        if figure or isinstance(value, dict | list):
            continue
        match = next((each for each in left if same_value(value, each)), None)
        if match is None:
            return False
        left.remove(match)
    return True


def holds_value(wanted: dict[str, Any], values: dict[str, float]) -> bool:
    """Whether the figure is among those of a configuration, in any unit, or its inverse is."""
    value = number(wanted.get("value"))
    if value is None or value == 0:
        return True
    return any(
        close(each * factor, value) or (each and close(factor / each, value))
        for each in values.values()
        if isinstance(each, int | float) and each
        for factor in _FACTORS
    )


def faults_of_log(facts: dict[str, Any], document: dict[str, Any]) -> Iterator[str]:
    boards = document.get("boards", [])
    wanted = facts["boards"]
    if not boards or "health" in document:
        yield "silent: not read as a log"
        return
    if len(boards) != len(wanted):
        yield f"false: {len(boards)} boards, not {len(wanted)}"
        return
    for (name, each), board in zip(wanted.items(), boards, strict=True):
        text = json.dumps(board)
        found = list(numbers_in(board))
        if each.get("joules") is not None and not any(close(v, each["joules"], 0.01) for v in found):
            yield f"false: board '{name}': {each['joules']:.1f} J is not in {text[:200]}"
        if not any(close(v, each["readings"]) for v in found):
            yield f"false: board '{name}': {each['readings']} readings"


def numbers_in(document: object) -> Iterator[float]:
    if isinstance(document, dict):
        for value in document.values():
            yield from numbers_in(value)
    elif isinstance(document, list):
        for value in document:
            yield from numbers_in(value)
    elif isinstance(document, int | float) and not isinstance(document, bool):
        yield float(document)


_SERVED = {
    "fastest": ("best_throughput", "output_tokens_per_s"),
    "least_energy": ("best_joules_per_token", "joules_per_token"),
}


def as_table(facts: dict[str, Any]) -> dict[str, Any]:
    """The facts of a service as those of a table."""
    result = dict(facts)
    for name, (key, figure) in _SERVED.items():
        best = facts.get(key)
        if isinstance(best, dict) and best.get(figure) is not None:
            settings = {
                key: value
                for key, value in best.items()
                if not key.endswith(("_per_s", "_per_token")) and not isinstance(value, dict | list)
            }
            result.setdefault(name, {**settings, "value": best[figure], "unit": ""})
    return result


def faults_of_table(facts: dict[str, Any], document: dict[str, Any]) -> Iterator[str]:
    facts = as_table(facts)
    parts = document.get("kernels") or [document]
    wholes = [document, *parts]
    for name, chooser in (("fastest", "fastest"), ("least_energy", "least_energy")):
        also = [value for key, value in facts.items() if key.startswith(name) and isinstance(value, dict)]
        also += [{**value, **tie} for value in also for tie in value.get("ties", [])]
        wanted = also[:1] if facts.get(name) else [p[name] for p in facts.get("per", {}).values() if p.get(name)]
        if not wanted:
            continue
        said = [c for part in wholes if (c := part.get("choosers", {}).get(chooser)) is not None]
        if not said:
            yield f"silent: no {name}"
            continue
        if also and any(
            holds_setting(w, c["configuration"]) and holds_value(w, c["values"]) for w in also for c in said
        ):
            continue
        missing = [
            w
            for w in wanted
            if not any(
                holds_setting({**w, **tie}, c["configuration"]) for tie in ({}, *w.get("ties", [])) for c in said
            )
        ]
        wrong_value = [w for w in wanted if w not in missing and not any(holds_value(w, c["values"]) for c in said)]
        if missing:
            first = {k: v for k, v in missing[0].items() if k not in ("how",)}
            yield f"false: {name}: {len(missing)} of {len(wanted)}, such as {first}, not {said[0]['configuration']}"
        if wrong_value:
            figure = f"{wrong_value[0].get('value')} {wrong_value[0].get('unit')}"
            yield f"false: {name}: {figure} is not among {said[0]['values']}"


def without(facts: Any, constant: set[str]) -> Any:
    """The facts without columns that are the same in all rows: they choose nothing."""
    if isinstance(facts, dict):
        return {key: without(value, constant) for key, value in facts.items() if key not in constant}
    return facts


def verdict(entry: dict[str, Any], folder: Path) -> tuple[str, str]:
    _, document, error = said_of(folder / "files" / entry["file"])
    if document is None:
        if entry["kind"] == "unfit":
            return "right", error
        asked = entry["question"] and entry["question"]["column"] in error
        return ("asked" if asked else "silent"), error
    if entry["kind"] == "unfit":
        return "false", "an answer, where there is none"
    is_log = entry["kind"] == "power_log"
    if not is_log and not any(
        value for key, value in as_table(entry["facts"]).items() if key in ("fastest", "least_energy", "per")
    ):
        return "right" if document else "silent", "nothing but that it is read is compared"
    settings = entry["facts"].get("settings") or [{}]
    entry.setdefault("constant", [])
    if isinstance(settings, list) and len(settings) > 1:
        entry["constant"] += [key for key in settings[0] if len({str(each.get(key)) for each in settings}) == 1]
    entry["facts"] = without(entry["facts"], {each.rpartition(".")[2] for each in entry.get("constant") or ()})
    faults = list((faults_of_log if is_log else faults_of_table)(entry["facts"], document))
    if not faults:
        return "right", ""
    false = [fault for fault in faults if fault.startswith("false")]
    asked = "is not certain" in error or "is not certain" in json.dumps(document)
    if asked:
        return "asked", "; ".join(faults)
    return ("false" if false else "silent"), "; ".join(faults)


def main() -> None:
    parser = ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    entries = json.loads((arguments.folder / "manifest.json").read_text())
    counts: Counter[str] = Counter()
    lines = []
    for entry in entries:
        if arguments.only not in entry["file"]:
            continue
        said, words = verdict(entry, arguments.folder)
        counts[said] += 1
        lines.append(f"{said:7} {entry['kind']:14} {entry['file']:45} {words[:400]}")
        print(lines[-1], flush=True)
    lines.append(", ".join(f"{word} {count}" for word, count in counts.items()) + f" of {sum(counts.values())}")
    print(lines[-1])
    if arguments.out:
        arguments.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
