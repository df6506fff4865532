"""`wattridge schema`: what each command prints with `--json`, as a JSON Schema with a version."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from typing import Any, Final

from ..base.errors import InputError
from ..base.paths import resources
from .terminal import print_json, print_table

# Commands whose standard output is no document of ours.
WITHOUT: Final = {
    "mcp": "speaks the Model Context Protocol",
    "kernel-tuner": "prints what the script prints",
    "worker": "runs until it is stopped",
    "serve-board": "speaks to a Wattridge on another machine",
}
_ID: Final = "urn:wattridge:schema:"  # NAME:VERSION follows


def schema_arguments(parser: ArgumentParser) -> None:
    """Declare the options of `wattridge schema`."""
    parser.add_argument(
        "document", nargs="?", metavar="COMMAND", help="the command, or `error` (default: list those there are)"
    )


def schema(arguments: Namespace) -> int:
    """The schema of a command's document, complete in itself; or which documents have one."""
    if arguments.document is not None:
        print_json(schema_of(arguments.document))
        return 0
    listed = [{"command": name, "version": each["version"], "title": each["title"]} for name, each in _all()]
    if arguments.json:
        print_json(listed)
    else:
        print_table([list(each.values()) for each in listed], ("command", "version", "what it prints"))
    return 0


def schema_of(name: str) -> dict[str, Any]:
    """A document's schema, with those that it refers to embedded by their identifiers. Raises InputError."""
    known = dict(_all())
    if name not in known:
        why = f"`{name}` {WITHOUT[name]}" if name in WITHOUT else f"'{name}' has no schema"
        raise InputError(why, "schema", f"one of {', '.join(known)}")
    document = known[name]
    embedded: dict[str, Any] = {}
    waiting = list(_references(document))
    while waiting:
        other = waiting.pop().removeprefix(_ID).partition(":")[0]
        if other != name and other not in embedded:
            embedded[other] = known[other]
            waiting += _references(known[other])
    return {**document, "$defs": {**document.get("$defs", {}), **embedded}} if embedded else document


def _all() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in sorted((resources() / "schemas").glob("*.json")):
        yield path.stem, json.loads(path.read_text(encoding="utf-8"))


def _references(node: Any) -> Iterator[str]:
    """The identifiers of the documents that a schema refers to."""
    if isinstance(node, dict):
        reference = node.get("$ref")
        if isinstance(reference, str) and reference.startswith(_ID):
            yield reference
        for each in node.values():
            yield from _references(each)
    elif isinstance(node, list):
        for each in node:
            yield from _references(each)
