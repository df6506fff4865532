"""`wattridge examples`: the specifications and scripts that come with the program."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Final

from ..engine.session.named import examples as by_name
from ..engine.specification.examples import about
from .terminal import print_json, print_table, show


def examples(arguments: Namespace) -> int:
    """Every example by its name, with the first sentence of its own description."""
    paths = by_name()
    rows = [
        {"name": name, "kind": _kind(paths[name]), "about": about(paths[name]), "file": str(paths[name])}
        for name in sorted(paths, key=lambda name: (_KINDS.index(_kind(paths[name])), name))
    ]
    if arguments.json:
        print_json(rows)
        return 0
    print_table([(row["name"], row["kind"], row["about"]) for row in rows], ("example", "kind", "what it shows"))
    show("", "Try one: wattridge tune gemm --gpu simulated:a100. The files, to be copied and read:")
    show(*sorted({f"  {path.parent}" for path in paths.values()}))
    return 0


_KINDS: Final = ("specification", "service", "Python")


def _kind(path: Path) -> str:
    if path.suffix == ".py":
        return "Python"
    return "service" if path.parent.name == "services" else "specification"
