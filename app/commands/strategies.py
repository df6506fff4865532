"""`wattridge strategies`: how each search strategy works, and its options."""

from __future__ import annotations

import dataclasses
from argparse import ArgumentParser, Namespace
from typing import Any

from .terminal import print_json, print_table, show


def strategies_arguments(parser: ArgumentParser) -> None:
    """Declare the options of `wattridge strategies`."""
    parser.add_argument("name", nargs="?", metavar="NAME", help="one of them, with its options (default: all)")


def strategies(arguments: Namespace) -> int:
    """Every strategy, or one with its options explained."""
    from ..engine import strategies  # noqa: F401  (registers every strategy)
    from ..engine.strategies import base

    names = [arguments.name] if arguments.name else base.names()
    documents = [_document(base.get(name)) for name in names]
    if arguments.json:
        print_json(documents[0] if arguments.name else documents)
    elif arguments.name:
        _print_one(documents[0])
    else:
        rows = [(d["name"], d["label"], ", ".join(o["name"] for o in d["options"])) for d in documents]
        print_table(rows, ("strategy", "what it is", "options"))
        show("", "`wattridge strategies NAME` explains one; options are given as --strategy-option NAME=VALUE")
    return 0


def _document(of: Any) -> dict[str, Any]:
    from ..engine.strategies.base import choices_of, description

    options = [
        {
            "name": option.name,
            "type": type(option.default).__name__,
            "default": option.default,
            "help": option.metadata["help"],
            "choices": list(choices_of(option)) or None,
        }
        for option in dataclasses.fields(of.Options)
    ]
    return {"name": of.name, "label": of.label, "description": description(of), "options": options}


def _print_one(document: dict[str, Any]) -> None:
    show(f"{document['label']} ({document['name']}): {document['description']}")
    if not document["options"]:
        show("It has no options.")
        return
    show()
    print_table(
        [(o["name"], o["default"], o["help"]) for o in document["options"]], ("option", "default", "what it is")
    )
    for option in document["options"]:
        if option["choices"]:
            show("", f"{option['name']} is one of {', '.join(option['choices'])}")
