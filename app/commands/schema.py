"""`wattridge schema`: what each command prints with `--json`, as a JSON Schema with a version."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any, Final

from ..base.errors import InputError
from ..base.records import json_schema
from .terminal import print_json, print_table

# Commands whose standard output is no document of ours.
WITHOUT: Final = {
    "mcp": "speaks the Model Context Protocol",
    "kernel-tuner": "prints what the script prints",
    "worker": "runs until it is stopped",
    "serve-energy": "runs until it is stopped",
    "serve-board": "speaks to a Wattridge on another machine",
}
_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


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
    from .documents import DOCUMENTS, VERSION, SchemaListed

    listed = [SchemaListed(command=name, version=VERSION, title=title) for name, (title, _) in DOCUMENTS.items()]
    if arguments.json:
        print_json(listed)
    else:
        print_table([list(entry.values()) for entry in listed], ("command", "version", "what it prints"))
    return 0


def schema_of(name: str) -> dict[str, Any]:
    """A document's schema, complete in itself. Raises InputError."""
    from .documents import DOCUMENTS, VERSION

    if name not in DOCUMENTS:
        why = f"`{name}` {WITHOUT[name]}" if name in WITHOUT else f"'{name}' has no schema"
        raise InputError(why, "schema", f"one of {', '.join(DOCUMENTS)}")
    title, kind = DOCUMENTS[name]
    heading = {"$schema": _DIALECT, "$id": f"urn:wattridge:schema:{name}:{VERSION}", "version": VERSION, "title": title}
    return heading | json_schema(*(kind if isinstance(kind, tuple) else (kind,)))
