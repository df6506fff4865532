"""Every document of `--json` obeys the schema that ships for it, on simulated and on recorded boards."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from app.base.paths import resources
from app.cli import _COMMANDS, main
from app.commands.documents import DOCUMENTS
from app.commands.schema import WITHOUT, schema_of
from app.sensors.recorded.marks import MarkInbox

EXAMPLE = str(resources() / "examples" / "gemm.toml")
RECORDINGS = resources() / "recordings"
SESSION = str(RECORDINGS / "h200-sgemm-session.json.gz")
LOG = str(RECORDINGS / "h200-sgemm.csv.gz")
ROOFLINE = str(RECORDINGS / "h200-roofline-fp32.json.gz")
DATA = Path(__file__).parents[1] / "engine" / "profile" / "data"
PROGRAM = ("--trace", str(DATA / "train-trace.json.gz"), "--power", str(DATA / "train-power.csv"))
A100 = ("--gpu", "simulated:a100", "--speed", "inf")
CAPS = "device,app,power_limit_w,power_w,time_s\n" + "".join(
    f"A,x,{w},{w - 5},{300 / w}\n" for w in (150, 200, 250, 300)
)

# In this order: later ones look at the sessions of earlier ones. {} is a folder for files.
CALLS: tuple[tuple[str, ...], ...] = (
    ("tune", EXAMPLE, "--gpu", "simulated:a100", "--max-evaluations", "15"),
    ("tune", EXAMPLE, "--gpu", "simulated:h200", "--max-evaluations", "12", "--condition", "55C,300W"),
    ("tune", "mv:1,1,256,256", "--gpu", "simulated:h200", "--max-evaluations", "4"),
    ("replay", SESSION, "--max-evaluations", "30"),
    ("demo", "--no-window", "--max-evaluations", "8", "--out", "{}/demo"),
    ("sessions",),
    ("sessions", "1"),
    ("sessions", "2", "--condition", "40C,200W"),
    ("analyse", "1"),
    ("analyse", SESSION, "--power", "600", "--price", "0.3", "--carbon", "300"),
    ("analyse", LOG),
    ("analyse", "1", "--evidence", "1", "2", "3"),
    ("analyse", "4", "--evidence", "1", "--out", "{}/samples.csv"),
    ("compare", "1", "2"),
    ("compare", SESSION, "1"),
    ("counters", "1", "--best", "2"),
    ("counters", "1"),
    ("counters", "--names"),
    ("export", "1", "--out", "{}/export"),
    ("export", SESSION, "--out", "{}/recorded"),
    ("report", "1", "--out", "{}/report.html"),
    ("gpus",),
    ("monitor", *A100, "--duration", "1", "--out", "{}/readings.csv"),
    ("monitor", "--gpu", "recorded:h200-sgemm", "--speed", "inf", "--duration", "1"),
    ("mark", "second epoch"),
    ("measure", "--gpu", "simulated:a100", "--", sys.executable, "-I", "-S", "-c", ""),
    ("measure", "--gpu", "recorded:h200-sgemm", "--repeats", "2", "--", sys.executable, "-I", "-S", "-c", ""),
    ("meters", "--gpu", "simulated:a100"),
    ("meters", *A100, "--meter", "simulated", "--duration", "1"),
    ("characterise", *A100),
    ("profile", *PROGRAM, "--out", "{}/profile"),
    ("profile", *PROGRAM, "--against", "{}/profile/train-trace-profile.json"),
    ("space", EXAMPLE, "--gpu", "simulated:a100"),
    ("new", str(resources() / "kernels" / "vector_add.cu")),
    ("fit", "--gpu", "simulated:a100", "--caps"),
    ("fit", "1"),
    ("fit", "{}/caps.csv", "--caps"),
    ("compare-methods", "{}/examples/small.toml", "--gpu", "simulated:a100", "--method", "race_to_idle,global_energy"),
    ("roofline", ROOFLINE),
    ("roofline", "--predict", "1e12,1e9"),
    ("strategies",),
    ("strategies", "auto"),
    ("operators",),
    ("examples",),
    ("score", SESSION, "--repeats", "2", "--strategy", "random_sample"),
    ("check", "--gpu", "simulated:h200", *("mm:1,512,512,512",) * 2, "--seed", "1", "--evidence", "{}/evidence.json"),
    ("savings", "--gpu", "simulated:h200", "mm:1,512,512,512", "--seed", "1", "--seconds", "20"),
    ("verify", "{}/evidence.json"),
    ("apply", *A100, "--clock", "1005", "--keep"),
    ("apply", *A100, "--clock", "900:1005", "--power-limit", "200", "--keep"),
    ("apply", "--gpu", "simulated:a100", "--clock", "1005", "--out", "{}/apply"),
    ("restore", "--gpu", "simulated:a100"),
    ("helper",),
    ("idle", *A100, "--seconds", "2", "--settle", "1"),
    ("install-desktop", "--remove"),
    ("pool", "certificates"),
    ("twin",),
    ("twin", "a100", "--truth"),
    ("doctor", "program"),
    ("schema",),
)  # fmt: skip


def _name(call: tuple[str, ...]) -> str:
    return " ".join(Path(word).name if os.path.isabs(word) else word for word in call)


FAILURES: tuple[tuple[str, ...], ...] = (
    ("tune", "nothing.toml"),
    ("gpus", "--nonsense"),
    ("sessions", "999"),
    ("schema", "nothing"),
    ("monitor", "--gpu", "simulated:nothing"),
)


_MOST_ENTRIES = 3  # an interval has two


def _small(example: str) -> str:
    """The specification with one size of block, two of tiles and three clocks."""
    text = re.sub(r"^(block_size_[xy]) = .*$", r"\1 = [16]", example, flags=re.MULTILINE)
    text = re.sub(r"^tile_size_x = .*$", "tile_size_x = [2, 4]", text, flags=re.MULTILINE)
    text = re.sub(r"^tile_size_y = .*$", "tile_size_y = [2]", text, flags=re.MULTILINE)
    return text.replace("points = 7", "points = 3")


def _printed(words: tuple[str, ...]) -> tuple[int, Any]:
    at = words.index("--") if "--" in words else len(words)
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()):
        status = main([*words[:at], "--json", *words[at:]])
    return status, json.loads(out.getvalue())


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[tuple[str, ...], tuple[int, Any]]]:
    """What each call printed, in a data folder that they share, with its exit status."""
    folder = tmp_path_factory.mktemp("schemas")
    (folder / "caps.csv").write_text(CAPS)
    (folder / "examples").mkdir()
    (folder / "kernels").mkdir()
    shutil.copy(resources() / "kernels" / "gemm.cu", folder / "kernels")
    (folder / "examples" / "small.toml").write_text(_small(Path(EXAMPLE).read_text(encoding="utf-8")))
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("WATTRIDGE_DATA", str(folder / "data"))
        environment.setenv("XDG_DATA_HOME", str(folder / "desktop"))
        inbox = MarkInbox(folder / "run.wrec")  # of a recording that runs, for `mark`
        yield {call: _printed(tuple(word.replace("{}", str(folder)) for word in call)) for call in CALLS}
        inbox.close()


@pytest.mark.parametrize("call", CALLS, ids=_name)
def test_what_a_command_prints_obeys_its_schema(
    documents: dict[tuple[str, ...], tuple[int, Any]], call: tuple[str, ...]
) -> None:
    status, document = documents[call]
    assert status == 0 or call == ("helper",), document
    validator = Draft202012Validator(schema_of(call[0]))
    validator.validate(document)
    assert not validator.is_valid({"error": {"what": "", "where": "", "remedy": ""}})


def test_the_schemas_are_strict_about_what_they_promise_and_open_to_more(
    documents: dict[tuple[str, ...], tuple[int, Any]],
) -> None:
    """Each promised key that is left out, or holds something else, is seen; one that is added is not."""
    seen: set[tuple[str, str]] = set()
    for call, (_, document) in documents.items():
        schema = schema_of(call[0])
        validator = Draft202012Validator(schema)
        promised = [key for key in _promised(schema, document) if (call[0], key) not in seen]
        if not promised:
            continue
        document = _shortened(document)
        more = {**document, "a_figure_of_tomorrow_j": 1.5}
        assert validator.is_valid(more) or call == ("counters", "--names"), call
        for key in promised:
            lacking = copy.copy(document)
            del lacking[key]
            assert not validator.is_valid(lacking), (call, key)
            seen.add((call[0], key))
            if key not in ("convergence",):
                assert not validator.is_valid({**document, key: {"": [{}]}}), (call, key)
    assert len(seen) > 250


def _shortened(document: Any) -> Any:
    """A few entries of each list are enough to be valid: to look at hundreds of configurations takes seconds."""
    if isinstance(document, list):
        return [_shortened(each) for each in document[:_MOST_ENTRIES]]
    if isinstance(document, dict):
        return {key: _shortened(each) for key, each in document.items()}
    return document


def _promised(schema: dict[str, Any], document: Any) -> list[str]:
    """The keys that the alternative of a schema which is about this object requires."""
    defined = schema.get("$defs", {})
    waiting, best = [schema], []
    while waiting:
        each = waiting.pop()
        if "$ref" in each:
            reference = each["$ref"]
            waiting.append(defined[reference.split("/")[-1].removeprefix("urn:wattridge:schema:").split(":")[0]])
        waiting += [*each.get("anyOf", ()), *each.get("allOf", ())]
        required = each.get("required", [])
        if isinstance(document, dict) and set(required) <= set(document) and len(required) > len(best):
            best = required
    return best


@pytest.mark.parametrize("call", FAILURES, ids=_name)
def test_what_a_command_prints_where_it_fails(call: tuple[str, ...]) -> None:
    status, document = _printed(call)
    assert status in (1, 2)
    Draft202012Validator(schema_of("error")).validate(document)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_schema_is_one_complete_in_itself_and_says_its_version(name: str) -> None:
    document = schema_of(name)
    Draft202012Validator.check_schema(document)
    assert document["$id"] == f"urn:wattridge:schema:{name}:{document['version']}"
    assert document["title"]
    named = set(re.findall(r'"\$ref": "([^"]*)"', json.dumps(document)))
    assert named <= {f"#/$defs/{each}" for each in document.get("$defs", {})}


def test_every_command_that_prints_a_document_has_a_schema_that_was_tried() -> None:
    known = set(DOCUMENTS) - {"error"}
    assert not known & set(WITHOUT)
    assert set(_COMMANDS) - set(WITHOUT) == known
    assert {call[0] for call in CALLS} == known


def test_schemas_are_printed_and_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "demo"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document == schema_of("demo")
    assert {"SessionSummary", "FrequencyFit"} <= set(document["$defs"])
    assert main(["schema"]) == 0
    assert "compare-methods" in capsys.readouterr().out
    assert main(["schema", "serve-board", "--json"]) == 2
    assert "another machine" in capsys.readouterr().out


def test_the_guide_names_the_schemas() -> None:
    text = (resources() / "guide" / "commands.md").read_text(encoding="utf-8")
    assert "wattridge schema" in text
